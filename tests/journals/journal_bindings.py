"""How the conformance kit gets at each journal: one entry of `HARNESSES` each."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from raf_session.conformance import Capability, JournalHarness, JournalOpener
from raf_session.journals.memory import MemoryJournal


def memory() -> JournalHarness:
    return JournalHarness.transient(
        "memory", MemoryJournal, Capability.CODEC, Capability.THREADS
    )


def sqlite() -> JournalHarness:
    from raf_session.journals.sqlite import SqliteJournal  # noqa: PLC0415

    @asynccontextmanager
    async def storage() -> AsyncGenerator[JournalOpener]:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            yield partial(SqliteJournal, Path(folder) / "sessions.db")

    return JournalHarness("sqlite", storage, frozenset(Capability))


HARNESSES = [memory()]
if find_spec("raf_session.journals.sqlite") is not None:
    HARNESSES.append(sqlite())
