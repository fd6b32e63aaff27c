"""A journal over something that we do not ship keeps the whole contract."""

from __future__ import annotations

from object_journal import HARNESS

from raf_session.conformance import JournalContract


class TestObjects(JournalContract):
    harness = HARNESS
