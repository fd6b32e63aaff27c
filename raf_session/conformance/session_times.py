"""Checks of which call moves which time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, timedelta
from typing import Any, Final

from raf_session.clock import UNIX_EPOCH
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_values import same
from raf_session.conformance.session_harness import (
    CoreCheck,
    SessionCapability,
    SessionCheck,
    SessionFactory,
)
from raf_session.conformance.session_values import PLAIN
from raf_session.prefix import prefix_hashes
from raf_session.session import ISession

__all__ = ("CHECKS", "NEEDS", "SPARES")


async def check_times_begin_with_the_session(make: SessionFactory) -> None:
    """A new session began now, was active now, and says so in UTC."""
    session = await make("s", clock=TickingClock())
    metadata = session.metadata()
    times = (session.created_at, session.last_active_at, metadata.updated_at)
    same(times, (START, START, START), "the times of a new session")
    for moment in (*times, metadata.created_at):
        same(moment.utcoffset(), timedelta(0), "the zone")
        same(moment.tzinfo, UTC, "the zone")


async def _moved(
    make: SessionFactory, call: Callable[[ISession], Awaitable[object]]
) -> tuple[bool, bool, bool]:
    """Tell whether a call moves created_at, updated_at and last_active_at to now."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    await session.add_messages_batch(PLAIN)
    former = (
        session.created_at, session.metadata().updated_at, session.last_active_at,
    )  # fmt: skip
    now = clock.tick(60)
    await call(session)
    times = (
        session.created_at, session.metadata().updated_at, session.last_active_at,
    )  # fmt: skip
    for old, new in zip(former, times, strict=True):
        assert new in {old, now}, f"a time is {new}, neither {old} nor {now}"
    created, updated, active = (
        new != old for old, new in zip(former, times, strict=True)
    )
    same(session.snapshot().last_active_at, times[2], "last_active_at of the snapshot")
    return created, updated, active


async def check_writes_are_activity(make: SessionFactory) -> None:
    """A message, a batch and `clear` move updated_at and last_active_at to now."""
    calls: dict[str, Callable[[ISession], Awaitable[object]]] = {
        "add_message": lambda session: session.add_message(PLAIN[0]),
        "add_messages_batch": lambda session: session.add_messages_batch(PLAIN),
        "clear": lambda session: session.clear(),
    }
    for name, call in calls.items():
        same(await _moved(make, call), (False, True, True), f"what {name} moves")


async def check_touch_moves_the_activity_alone(make: SessionFactory) -> None:
    """`touch_last_active` moves last_active_at to now, and no other time."""
    moved = await _moved(make, lambda session: session.touch_last_active())
    same(moved, (False, False, True), "what touch_last_active moves")


async def check_reads_move_no_time(make: SessionFactory) -> None:
    """No read moves a time."""

    async def read(session: ISession) -> None:
        await session.get_messages()
        session.get_message_count()
        session.metadata()
        session.snapshot()
        session.serialize()
        session.get_provider_state("p")
        session.get_last_request_hash()

    same(await _moved(make, read), (False, False, False), "what reads move")


async def check_notes_are_no_activity(make: SessionFactory) -> None:
    """Provider state and request hash do not move last_active_at, nor created_at."""

    async def state(session: ISession) -> None:
        session.set_provider_state("p", 1)

    async def request(session: ISession) -> None:
        session.touch_request_hash(PLAIN)

    created, _, active = await _moved(make, state)
    same((created, active), (False, False), "what set_provider_state moves")
    moved = await _moved(make, request)
    same(moved, (False, False, False), "what touch_request_hash moves")


async def check_no_time_goes_back(make: SessionFactory) -> None:
    """Where the clock goes back, no time does."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    late = clock.tick(3600)
    await session.add_message(PLAIN[0])
    clock.tick(-7200)
    calls: tuple[Callable[[], Awaitable[Any]], ...] = (
        lambda: session.add_message(PLAIN[1]),
        lambda: session.add_messages_batch(PLAIN),
        session.touch_last_active,
        session.clear,
    )
    for call in calls:
        session.set_provider_state("p", 1)
        await call()
        told = (session.metadata().updated_at, session.last_active_at)
        same(told, (late, late), "updated_at and last_active_at")
        same(session.created_at, START, "created_at")


async def check_times_never_told_are_the_sentinel(make: SessionFactory) -> None:
    """A session that does not tell its times says `UNIX_EPOCH`, the same each time."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    await session.add_messages_batch(PLAIN)
    for _ in range(2):
        same(session.created_at, UNIX_EPOCH, "created_at")
        same(session.last_active_at, UNIX_EPOCH, "last_active_at")
        clock.tick(60)
    await session.touch_last_active()
    same(session.created_at, UNIX_EPOCH, "created_at after a touch")
    same(session.last_active_at.utcoffset(), timedelta(0), "the zone")


async def check_clear_forgets_the_request(make: SessionFactory) -> None:
    """`clear` erases the request record with the history, and keeps the beginning."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    await session.add_messages_batch(PLAIN)
    session.touch_request_hash(PLAIN)
    clock.tick(60)
    await session.clear()
    same(session.get_last_request_hash(), None, "the hash after clear")
    same(session.metadata().last_request_hash, None, "that of the metadata")
    same(session.created_at, START, "created_at")
    session.touch_request_hash(PLAIN[:1])
    same(session.get_last_request_hash(), prefix_hashes(PLAIN[:1])[-1], "the next one")


CHECKS: Final[tuple[SessionCheck, ...]] = (
    check_times_begin_with_the_session,
    check_writes_are_activity,
    check_clear_forgets_the_request,
    check_touch_moves_the_activity_alone,
    check_reads_move_no_time,
    check_notes_are_no_activity,
    check_no_time_goes_back,
    check_times_never_told_are_the_sentinel,
)

_TOLD: Final = frozenset((SessionCapability.TELLS_TIMES, SessionCapability.SYNC_READS))

NEEDS: Final[dict[SessionCheck | CoreCheck, frozenset[SessionCapability]]] = (
    dict.fromkeys(CHECKS[:-1], _TOLD)
)
"""What a session must claim for a check to apply to it, beside the trait."""

SPARES: Final[dict[SessionCheck | CoreCheck, SessionCapability]] = {
    check_times_never_told_are_the_sentinel: SessionCapability.TELLS_TIMES
}
"""What exempts a session that claims it from a check."""
