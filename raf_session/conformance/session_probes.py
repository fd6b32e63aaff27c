"""What a session can do, found by looking: a probe for each capability."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, cast

from typing_extensions import get_protocol_members

from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.findings import elsewhere, running_loop
from raf_session.conformance.journal_values import same
from raf_session.conformance.session_harness import SessionCapability, SessionHarness
from raf_session.conformance.session_values import PLAIN
from raf_session.messages import ChatMessage
from raf_session.session import ISession, SessionCore

__all__ = ("SESSION_PROBES",)

_Probe = Callable[[Any], Awaitable[None]]


async def _trait(session: Any) -> None:
    missing = [n for n in get_protocol_members(ISession) if not hasattr(session, n)]
    assert not missing, f"it has no {', '.join(sorted(missing))}"


async def _sync_reads(session: Any) -> None:
    await session.add_message(PLAIN[0])
    same(session.get_message_count(), 1, "the count")


async def _tells_times(session: Any) -> None:
    same(session.created_at, START, "created_at by the clock of the factory")


async def _deserializes(session: Any) -> None:
    again: Any = cast("Any", type(session)).deserialize(session.serialize())
    same(again.session_id, session.session_id, "the id of what was read")


async def _atomic_batch(session: Any) -> None:
    batch = (PLAIN[0], cast("ChatMessage", {"role": "user", "content": "a dict"}))
    try:
        await session.add_messages_batch(batch)
    except Exception:  # noqa: BLE001  (whatever it raises)
        same(await session.get_messages(), [], "what a failed batch left")
    else:
        raise AssertionError("it takes a dict for a message")


async def _message_ids(session: Any) -> None:
    for _ in range(2):
        message = ChatMessage.user("x").model_copy(update={"id": "m"})
        await session.add_message(message)
    same(len(await session.get_messages()), 1, "how often one id is kept")


async def _threads(session: SessionCore) -> None:
    await elsewhere(partial(session.add_message, PLAIN[0]), loop="asyncio")
    same(await session.get_messages(), [PLAIN[0]], "what another thread added")


def _on_one(probe: _Probe) -> Callable[[SessionHarness], Awaitable[None]]:
    async def probe_one(harness: SessionHarness) -> None:
        async with harness.opened() as make:
            await probe(await make("s", clock=TickingClock()))

    return probe_one


async def _trio(harness: SessionHarness) -> None:
    async def run() -> None:
        async with harness.opened() as make:
            session = await make("s", clock=TickingClock())
            await session.add_message(PLAIN[0])
            same(await session.get_messages(), [PLAIN[0]], "the message")

    await (run() if running_loop() == "trio" else elsewhere(run, loop="trio"))


SESSION_PROBES: Final[
    Mapping[SessionCapability, Callable[[SessionHarness], Awaitable[None]]]
] = {
    SessionCapability.TRAIT: _on_one(_trait),
    SessionCapability.SYNC_READS: _on_one(_sync_reads),
    SessionCapability.ATOMIC_BATCH: _on_one(_atomic_batch),
    SessionCapability.TELLS_TIMES: _on_one(_tells_times),
    SessionCapability.DESERIALIZES: _on_one(_deserializes),
    SessionCapability.MESSAGE_IDS: _on_one(_message_ids),
    SessionCapability.THREADS: _on_one(_threads),
    SessionCapability.TRIO: _trio,
}
"""Each returns where the capability is there, and raises where it is not."""
