"""What a store can do, found by looking: a probe for each capability."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.findings import elsewhere, running_loop
from raf_session.conformance.journal_values import raises, same
from raf_session.conformance.session_values import PLAIN
from raf_session.conformance.store_harness import StoreCapability, StoreHarness
from raf_session.conformance.store_values import (
    ForeignSession,
    OtherSession,
    named,
    read,
    texts,
)
from raf_session.errors import UnknownSessionTypeError
from raf_session.store import ISessionStore

__all__ = ("STORE_PROBES",)


async def _written(store: ISessionStore) -> None:
    await store.save_session(await named("s", TickingClock(), "one"))
    await _read(store)


async def _read(store: ISessionStore) -> None:
    same(await texts(store, "s"), ["one"], "what was saved")


async def _durable(harness: StoreHarness) -> None:
    async with harness.storage() as opened:
        async with opened() as store:
            await _written(store)
        async with opened() as store:
            await _read(store)


async def _shared(harness: StoreHarness) -> None:
    async with harness.storage() as opened, opened() as one, opened() as other:
        await _written(one)
        await _read(other)


async def _types(harness: StoreHarness) -> None:
    async with harness(types=(ForeignSession,)) as store:
        session = ForeignSession("s")
        await session.add_message(PLAIN[0])
        await store.save_session(session)
        await read(store, "s", ForeignSession)


async def _strict(harness: StoreHarness) -> None:
    async with harness(types=(ForeignSession,)) as store:
        with raises(UnknownSessionTypeError, "saving another type"):
            await store.save_session(OtherSession("s"))


async def _overwrite(harness: StoreHarness) -> None:
    async with harness() as store:
        await _written(store)
        other = await named("s", TickingClock(), "two")
        await cast("Any", store).save_session(other, overwrite=True)
        same(await texts(store, "s"), ["two"], "what was overwritten")


async def _opens(harness: StoreHarness) -> None:
    async with harness() as store:
        session = await cast("Any", store).open_session("s")
        await session.add_message(PLAIN[0])
        same(await texts(store, "s"), [PLAIN[0].text], "what the live session wrote")


async def _trio(harness: StoreHarness) -> None:
    async def run() -> None:
        async with harness() as store:
            await _written(store)

    await (run() if running_loop() == "trio" else elsewhere(run, loop="trio"))


STORE_PROBES: Final[
    Mapping[StoreCapability, Callable[[StoreHarness], Awaitable[None]]]
] = {
    StoreCapability.TYPES: _types,
    StoreCapability.STRICT: _strict,
    StoreCapability.DURABLE: _durable,
    StoreCapability.SHARED: _shared,
    StoreCapability.OVERWRITE: _overwrite,
    StoreCapability.OPENS: _opens,
    StoreCapability.TRIO: _trio,
}
"""Each returns where the capability is there, and raises where it is not."""
