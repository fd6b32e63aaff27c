"""Checks of what a store gives back, and as what."""

from __future__ import annotations

from typing import Final

from raf_session.clock import UNIX_EPOCH
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import raises, same
from raf_session.conformance.session_values import (
    HOSTILE_TEXTS,
    PLAIN,
    SHAPES,
    STATES,
    same_messages,
)
from raf_session.conformance.store_harness import (
    StoreCapability,
    StoreCheck,
    StoreHarness,
)
from raf_session.conformance.store_values import (
    DerivedSession,
    ForeignSession,
    OtherSession,
    WaitingSession,
    named,
    read,
    same_session,
    texts,
)
from raf_session.errors import UnknownSessionTypeError
from raf_session.messages import ChatMessage
from raf_session.store import ISessionStore

__all__ = ("CHECKS", "NEEDS")


async def check_a_missing_session_is_none(harness: StoreHarness) -> None:
    """A session that was never saved is `None`, and may be deleted."""
    async with harness() as store:
        assert isinstance(store, ISessionStore)
        same(await store.get_session("missing"), None, "a missing session")
        await store.delete_session("missing")
        same(await store.cleanup_expired(), 0, "what is expired in an empty store")


async def check_a_session_is_read_as_it_was(harness: StoreHarness) -> None:
    """What was saved is read back: messages, times, provider states, request record."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, *SHAPES)
        clock.tick(10)
        await session.add_messages_batch([ChatMessage.user(t) for t in HOSTILE_TEXTS])
        for n, state in enumerate(STATES):
            session.set_provider_state(f"p.{n}", state)
        session.touch_request_hash([*SHAPES, *PLAIN])
        clock.tick(10)
        await session.touch_last_active()
        clock.tick(10)
        await store.save_session(session)
        clock.tick(10)
        await same_session(await read(store, "s"), session, "read back")


async def check_an_empty_session_is_kept(harness: StoreHarness) -> None:
    """A session without messages is kept like any other."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock)
        await store.save_session(session)
        await same_session(await read(store, "s"), session, "read back")


async def check_copies_are_independent(harness: StoreHarness) -> None:
    """Saved object, stored session and each copy that is read share nothing."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, "one")
        session.set_provider_state("p", 1)
        await store.save_session(session)
        await session.add_message(PLAIN[0])
        session.set_provider_state("p", 2)
        first = await read(store, "s")
        same(await texts(store, "s"), ["one"], "after the saved object changed")
        same(first.get_provider_state("p"), 1, "the provider's state")
        await first.clear()
        first.set_provider_state("p", 3)
        second = await read(store, "s")
        assert second is not first, "one object was given twice"
        same(await texts(store, "s"), ["one"], "after a copy changed")
        same(second.get_provider_state("p"), 1, "the provider's state")
        same(session.get_message_count(), 2, "the messages of the saved object")


async def check_reading_moves_no_time(harness: StoreHarness) -> None:
    """However often a session is read, its times stay."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, "one")
        await store.save_session(session)
        for _ in range(3):
            clock.tick(60)
            await same_session(await read(store, "s"), session, "read later")


async def check_saving_moves_no_time(harness: StoreHarness) -> None:
    """Saving is no activity: the stored times are those of the session."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, "one")
        await store.save_session(session)
        clock.tick(60)
        await store.save_session(session)
        await same_session(await read(store, "s"), session, "saved unchanged")
        session.set_provider_state("p", 1)
        session.touch_request_hash(PLAIN)
        clock.tick(60)
        await store.save_session(session)
        await same_session(await read(store, "s"), session, "saved with states")
        session = await read(store, "s")
        await session.add_message(PLAIN[0])
        clock.tick(60)
        await store.save_session(session)
        await same_session(await read(store, "s"), session, "saved with a message")
        await session.clear()
        clock.tick(60)
        await store.save_session(session)
        await same_session(await read(store, "s"), session, "saved after clear")


async def check_saving_in_the_same_instant_moves_no_time(
    harness: StoreHarness,
) -> None:
    """A message of the instant of the last save keeps that time, saved later."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, "one")
        await store.save_session(session)
        await session.add_message(PLAIN[0])
        clock.tick(60)
        await store.save_session(session)
        await same_session(await read(store, "s"), session, "a message")
        clock.tick(60)
        await session.add_message(PLAIN[1])
        await store.save_session(session)
        await session.clear()
        clock.tick(60)
        await store.save_session(session)
        await same_session(await read(store, "s"), session, "a clear")


async def check_the_clock_may_go_back(harness: StoreHarness) -> None:
    """Where the clock goes back, what is stored is still equal and in order."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, "one")
        await store.save_session(session)
        for n in range(3):
            clock.tick(-3600)
            await session.add_message(ChatMessage.user(str(n)))
            await store.save_session(session)
            await same_session(await read(store, "s"), session, "an hour before")
            session = await read(store, "s")


async def check_request_tracking_goes_on(harness: StoreHarness) -> None:
    """A session that was read compares its next request with the stored one."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, *PLAIN)
        session.touch_request_hash(PLAIN, header={"model": "m"})
        await store.save_session(session)
        again = await read(store, "s")
        again.touch_request_hash([*PLAIN, PLAIN[1]], header={"model": "m"})
        match = again.prefix_match
        assert match is not None
        same(match.shared_messages, 3, "the shared messages")
        same(match.append_only, True, "whether the request only appends")
        await store.save_session(again)
        await same_session(await read(store, "s"), again, "the next request")
        again.touch_request_hash([])
        await store.save_session(again)
        await same_session(await read(store, "s"), again, "an empty request")


async def check_each_type_is_read_as_itself(harness: StoreHarness) -> None:
    """A session of any type that the store knows comes back as that type."""
    clock = TickingClock()
    types: tuple[type[ForeignSession | DerivedSession], ...] = (
        *(ForeignSession, WaitingSession),
        DerivedSession,
    )
    async with harness(clock=clock, types=types) as store:
        for cls in types:
            session = cls(cls.__name__)
            for message in SHAPES:
                await session.add_message(message)
            await store.save_session(session)
            again = await read(store, cls.__name__, cls)
            same_messages(await again.get_messages(), SHAPES, cls.__name__)
            for target in (session, again):
                await target.add_message(PLAIN[0])
            await store.save_session(again)
            again = await read(store, cls.__name__, cls)
            expected = [*SHAPES, PLAIN[0]]
            same_messages(await again.get_messages(), expected, cls.__name__)


async def check_a_derived_session_keeps_its_states(harness: StoreHarness) -> None:
    """Provider states, request record and sentinels of a subclass survive."""
    async with harness(clock=TickingClock(), types=(DerivedSession,)) as store:
        session = DerivedSession("s")
        await session.add_message(PLAIN[0])
        session.set_provider_state("p", {"z": 1, "a": [1.0, True]})
        session.touch_request_hash(PLAIN)
        await store.save_session(session)
        again = await read(store, "s", DerivedSession)
        await same_session(again, session, "read back")
        same(again.created_at, UNIX_EPOCH, "created_at, never told")
        same(again.last_active_at, UNIX_EPOCH, "last_active_at, never told")
        await session.touch_last_active()
        await store.save_session(session)
        again = await read(store, "s", DerivedSession)
        await same_session(again, session, "after a touch")


async def check_an_unknown_type_is_refused(harness: StoreHarness) -> None:
    """A type that the store was not given is refused before anything is written."""
    clock = TickingClock()
    async with harness(clock=clock, types=(ForeignSession,)) as store:
        for cls in (OtherSession, DerivedSession):
            session = cls("s")
            await session.add_message(PLAIN[0])
            with raises(UnknownSessionTypeError, cls.__name__) as caught:
                await store.save_session(session)
            same(caught[0].session_type, cls.__name__, "the type in the error")
            same(await store.get_session("s"), None, "what was stored")
        known = ForeignSession("s")
        await known.add_message(PLAIN[1])
        await store.save_session(known)
        with raises(UnknownSessionTypeError, "over a session of another type"):
            await store.save_session(OtherSession("s"))
        same(await texts(store, "s"), [PLAIN[1].text], "what was stored before")


CHECKS: Final[tuple[StoreCheck, ...]] = (
    check_a_missing_session_is_none,
    check_a_session_is_read_as_it_was,
    check_an_empty_session_is_kept,
    check_copies_are_independent,
    check_reading_moves_no_time,
    check_saving_moves_no_time,
    check_saving_in_the_same_instant_moves_no_time,
    check_the_clock_may_go_back,
    check_request_tracking_goes_on,
    check_each_type_is_read_as_itself,
    check_a_derived_session_keeps_its_states,
    check_an_unknown_type_is_refused,
)

NEEDS: Final[dict[StoreCheck, frozenset[StoreCapability]]] = {
    check_each_type_is_read_as_itself: frozenset((StoreCapability.TYPES,)),
    check_a_derived_session_keeps_its_states: frozenset((StoreCapability.TYPES,)),
    check_an_unknown_type_is_refused: frozenset(
        (StoreCapability.TYPES, StoreCapability.STRICT)
    ),
}
"""What a store must claim for a check to apply to it."""
