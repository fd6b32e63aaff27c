"""What a provider's cache is expected to reuse of a request, and why."""

from __future__ import annotations

from raf_session.verdicts.outcomes import Outcome, Reason, Verdict
from raf_session.verdicts.prediction import verdict

__all__ = ("Outcome", "Reason", "Verdict", "verdict")
