"""Whether a provider would take a sequence of messages, and why not.

Three validators, each written from what its provider publishes and from the errors that
it returns.  They judge what the messages become when they are translated in the obvious
way, whichever of the three shapes each message is in, and know nothing of the code that
repairs histories.
"""

from __future__ import annotations

from raf_session.validity.anthropic import anthropic_violations
from raf_session.validity.gemini import gemini_violations
from raf_session.validity.openai import openai_violations
from raf_session.validity.violations import Provider, Rule, Violation

__all__ = (
    "Provider",
    "Rule",
    "Violation",
    "anthropic_violations",
    "gemini_violations",
    "openai_violations",
)
