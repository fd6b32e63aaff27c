"""What a journal can do, found by looking: a probe for each capability."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from typing_extensions import override

from raf_session.conformance.findings import (
    CannotTellError,
    elsewhere,
    found,
    look,
    running_loop,
)
from raf_session.conformance.journal_harness import Capability, JournalHarness
from raf_session.conformance.journal_scope_commits import look_while_writing
from raf_session.conformance.journal_storage import PackingCodec
from raf_session.conformance.journal_values import KEY, NEW, batch, ids, same
from raf_session.journal import Journal

__all__ = ("JOURNAL_PROBES",)


async def _written(journal: Journal) -> None:
    await journal.create(NEW, batch("a"))
    await _read(journal)


async def _read(journal: Journal) -> None:
    same(ids((await journal.load(KEY)).entries), ["a"], "what was stored")


async def _durable(harness: JournalHarness) -> None:
    async with harness.storage() as opened:
        async with opened() as journal:
            await _written(journal)
        async with opened() as journal:
            await _read(journal)


async def _shared(harness: JournalHarness) -> None:
    async with harness.storage() as opened, opened() as one, opened() as other:
        await _written(one)
        await _read(other)


async def _atomic_scopes(harness: JournalHarness) -> None:
    async with harness() as journal:
        await look_while_writing(journal)
    if found(await look(harness, {Capability.DURABLE: _durable})):
        raise CannotTellError("no reader saw a lag; what a crash leaves cannot be seen")


async def _threads(harness: JournalHarness) -> None:
    async with harness() as journal:
        await _written(journal)
        await elsewhere(partial(_read, journal), loop="asyncio")


class _CountingCodec(PackingCodec):
    used = 0

    @override
    def encode(self, data: bytes, /) -> bytes:
        self.used += 1
        return super().encode(data)


async def _codec(harness: JournalHarness) -> None:
    codec = _CountingCodec()
    async with harness.storage() as opened, opened(codec=codec) as journal:
        await _written(journal)
    assert codec.used, "the codec was never asked"


async def _trio(harness: JournalHarness) -> None:
    async def run() -> None:
        async with harness() as journal:
            await _written(journal)

    await (run() if running_loop() == "trio" else elsewhere(run, loop="trio"))


JOURNAL_PROBES: Final[
    Mapping[Capability, Callable[[JournalHarness], Awaitable[None]]]
] = {
    Capability.DURABLE: _durable,
    Capability.SHARED: _shared,
    Capability.ATOMIC_SCOPES: _atomic_scopes,
    Capability.THREADS: _threads,
    Capability.CODEC: _codec,
    Capability.TRIO: _trio,
}
"""Each returns where the capability is there, and raises where it is not."""
