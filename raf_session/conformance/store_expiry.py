"""Checks of the limits: what expires, when, and what of it is seen again."""

from __future__ import annotations

from typing import Final

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import raises, same, together
from raf_session.conformance.session_values import PLAIN
from raf_session.conformance.store_harness import (
    StoreCapability,
    StoreCheck,
    StoreHarness,
)
from raf_session.conformance.store_values import (
    DerivedSession,
    ForeignSession,
    named,
    read,
    texts,
)
from raf_session.errors import SessionNotFoundError
from raf_session.messages import ChatMessage
from raf_session.options import SessionTTLOptions

__all__ = ("CHECKS", "NEEDS")

_IDLE: Final = SessionTTLOptions(max_idle_secs=60)
_LIFETIME: Final = SessionTTLOptions(max_lifetime_secs=60)


async def check_without_limits_nothing_expires(harness: StoreHarness) -> None:
    """Where no limit is set, nothing expires, however long it takes."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        await store.save_session(await named("s", clock, "one"))
        clock.tick(10 * 365 * 86400)
        same(await store.cleanup_expired(), 0, "what was removed")
        same(await texts(store, "s"), ["one"], "the session")


async def check_both_sides_of_each_limit(harness: StoreHarness) -> None:
    """A session is there at the limit, and gone a microsecond later, unswept."""
    for ttl in (_IDLE, _LIFETIME):
        clock = TickingClock()
        async with harness(ttl=ttl, clock=clock) as store:
            await store.save_session(await named("s", clock, "one"))
            clock.tick(60)
            same(await store.cleanup_expired(), 0, "what was removed at the limit")
            same(await texts(store, "s"), ["one"], f"at the limit of {ttl}")
            clock.tick(0, microseconds=1)
            same(await store.get_session("s"), None, f"after the limit of {ttl}")
            same(await store.cleanup_expired(), 1, "what was removed")
            same(await store.cleanup_expired(), 0, "what was removed again")
            same(await store.get_session("s"), None, "after the sweep")


async def check_a_limit_of_zero_is_at_once(harness: StoreHarness) -> None:
    """A limit of 0 expires a session with the next microsecond."""
    for ttl in (
        SessionTTLOptions(max_idle_secs=0),
        SessionTTLOptions(max_lifetime_secs=0),
    ):
        clock = TickingClock()
        async with harness(ttl=ttl, clock=clock) as store:
            await store.save_session(await named("s", clock, "one"))
            same(await texts(store, "s"), ["one"], "in the same microsecond")
            clock.tick(0, microseconds=1)
            same(await store.get_session("s"), None, "in the next")


async def check_activity_defers_idleness_alone(harness: StoreHarness) -> None:
    """Activity that is saved defers the idle limit, and never the lifetime."""
    ttl = SessionTTLOptions(max_idle_secs=60, max_lifetime_secs=300)
    clock = TickingClock()
    async with harness(ttl=ttl, clock=clock) as store:
        session = await named("s", clock, "one")
        await store.save_session(session)
        for n in range(10):
            clock.tick(30)
            if n % 2:
                await session.touch_last_active()
            else:
                await session.add_message(PLAIN[0])
            await store.save_session(session)
            assert await store.get_session("s") is not None, f"after {30 * (n + 1)} s"
        clock.tick(0, microseconds=1)
        same(await store.get_session("s"), None, "after the lifetime")


async def check_reading_defers_nothing(harness: StoreHarness) -> None:
    """Reading a session does not keep it from expiring."""
    clock = TickingClock()
    async with harness(ttl=_IDLE, clock=clock) as store:
        await store.save_session(await named("s", clock, "one"))
        for _ in range(2):
            clock.tick(30)
            assert await store.get_session("s") is not None, "before the limit"
        clock.tick(1)
        same(await store.get_session("s"), None, "after the limit")


async def check_cleanup_counts_what_it_removes(harness: StoreHarness) -> None:
    """`cleanup_expired` removes and counts each expired session once, no other."""
    clock = TickingClock()
    async with harness(ttl=_IDLE, clock=clock) as store:
        for n in range(10):
            await store.save_session(await named(f"old-{n}", clock, "one"))
        await store.delete_session("old-9")
        clock.tick(45)
        for n in range(4):
            await store.save_session(await named(f"new-{n}", clock, "one"))
        clock.tick(45)
        counts = await together(*[store.cleanup_expired] * 3)
        same(sum(int(str(count)) for count in counts), 9, "what three sweeps removed")
        for n in range(4):
            same(await texts(store, f"new-{n}"), ["one"], "a session that lives")
        for n in range(10):
            same(await store.get_session(f"old-{n}"), None, "one that expired")


async def check_an_expired_id_can_be_taken(harness: StoreHarness) -> None:
    """The id of an expired session, swept or not, is free; nothing of it comes back."""
    for sweep in (False, True):
        clock = TickingClock()
        async with harness(ttl=_IDLE, clock=clock) as store:
            old = await named("s", clock, "old")
            old.set_provider_state("p", 1)
            await store.save_session(old)
            clock.tick(61)
            if sweep:
                same(await store.cleanup_expired(), 1, "what was removed")
            await store.save_session(await named("s", clock, "new"))
            same(await texts(store, "s"), ["new"], "the new session")
            state = (await read(store, "s")).get_provider_state("p")
            same(state, None, "its provider state")
            same(await store.cleanup_expired(), 0, "what was removed later")


async def check_an_expired_session_is_not_revived(harness: StoreHarness) -> None:
    """A copy of an expired session cannot be saved, swept or not."""
    for sweep in (False, True):
        clock = TickingClock()
        async with harness(ttl=_IDLE, clock=clock) as store:
            await store.save_session(await named("s", clock, "old"))
            handle = await read(store, "s")
            clock.tick(61)
            if sweep:
                await store.cleanup_expired()
            await handle.add_message(PLAIN[0])
            with raises(SessionNotFoundError, "a late save"):
                await store.save_session(handle)
            same(await store.get_session("s"), None, "the expired session")


async def check_a_clock_that_goes_back_expires_nothing(harness: StoreHarness) -> None:
    """Where the clock goes back, what is alive stays so."""
    clock = TickingClock()
    async with harness(ttl=_IDLE, clock=clock) as store:
        session = await named("s", clock, "one")
        await store.save_session(session)
        clock.tick(-86400)
        same(await store.cleanup_expired(), 0, "what was removed")
        await session.add_message(ChatMessage.user("two"))
        await store.save_session(session)
        same(await texts(store, "s"), ["one", "two"], "the session")
        clock.tick(86400 + 60)
        same(await texts(store, "s"), ["one", "two"], "at the limit")


async def check_times_never_told_do_not_expire(harness: StoreHarness) -> None:
    """A type that tells no times is exempt from the limits that need them."""
    ttl = SessionTTLOptions(max_idle_secs=60, max_lifetime_secs=60)
    clock = TickingClock()
    types = (DerivedSession, ForeignSession)
    async with harness(ttl=ttl, clock=clock, types=types) as store:
        for cls in types:
            session = cls(cls.__name__)
            await session.add_message(PLAIN[0])
            await store.save_session(session)
            await session.add_message(PLAIN[1])
            await store.save_session(session)
        clock.tick(86400 * 365)
        same(await store.cleanup_expired(), 0, "what was removed")
        for cls in types:
            found = await texts(store, cls.__name__)
            same(found, [PLAIN[0].text, PLAIN[1].text], cls.__name__)


CHECKS: Final[tuple[StoreCheck, ...]] = (
    check_without_limits_nothing_expires,
    check_both_sides_of_each_limit,
    check_a_limit_of_zero_is_at_once,
    check_activity_defers_idleness_alone,
    check_reading_defers_nothing,
    check_cleanup_counts_what_it_removes,
    check_an_expired_id_can_be_taken,
    check_an_expired_session_is_not_revived,
    check_a_clock_that_goes_back_expires_nothing,
    check_times_never_told_do_not_expire,
)

NEEDS: Final[dict[StoreCheck, frozenset[StoreCapability]]] = {
    check_times_never_told_do_not_expire: frozenset((StoreCapability.TYPES,)),
}
"""What a store must claim for a check to apply to it."""
