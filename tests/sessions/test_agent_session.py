"""`AgentSession` from many threads, and what copies of it share."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from datetime import timedelta, timezone
from uuid import UUID

import anyio
import pytest

from raf_session.agent_session import AgentSession
from raf_session.conformance.clock import START, TickingClock
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionSnapshot

USER = ChatMessage.user


def test_an_id_made_up_is_a_uuid4() -> None:
    session = AgentSession()
    assert UUID(session.session_id).version == 4
    assert AgentSession(session_id="mine").session_id == "mine"


def test_eight_threads_lose_nothing() -> None:
    session = AgentSession("s")
    taken: list[SessionSnapshot] = []
    failures: list[str] = []
    start = threading.Barrier(8)

    def work(n: int) -> None:
        async def run() -> None:
            for part in range(40):
                if part % 4:
                    await session.add_message(USER(f"{n}:{part}"))
                else:
                    await session.add_messages_batch(
                        [USER(f"{n}:{part}"), USER(f"{n}:{part}+")]
                    )
                session.set_provider_state(f"p{n}", part)
                session.touch_request_hash([USER(f"{n}")])
                await session.touch_last_active()
                taken.append(session.snapshot())

        start.wait()
        try:
            anyio.run(run)
        except Exception as error:  # noqa: BLE001
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    final = [message.text for message in session.snapshot().messages]
    assert len(final) == len(set(final)) == 8 * 50
    assert session.get_message_count() == 400
    assert all(session.get_provider_state(f"p{n}") == 39 for n in range(8))
    for n in range(8):
        own = [text for text in final if text.startswith(f"{n}:")]
        assert own == sorted(own, key=lambda t: (int(t[2:].strip("+")), t))
        for text in own:
            if text.endswith("+"):
                assert final[final.index(text) - 1] == text[:-1]
    for snapshot in taken:
        texts = [message.text for message in snapshot.messages]
        assert snapshot.metadata.message_count == len(texts)
        assert texts == final[: len(texts)]


@pytest.mark.anyio
@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
async def test_copies_of_a_session_share_no_history(
    make: Callable[[AgentSession], AgentSession],
) -> None:
    session = AgentSession("s", clock=TickingClock())
    await session.add_message(USER("a"))
    try:
        twin = make(session)
    except TypeError:
        return  # refused, which is as good
    await twin.add_message(USER("theirs"))
    await session.add_message(USER("mine"))
    assert await twin.get_messages() == [USER("a"), USER("theirs")]
    assert await session.get_messages() == [USER("a"), USER("mine")]


@pytest.mark.anyio
async def test_a_clock_in_another_zone_tells_utc() -> None:
    zone = timezone(timedelta(hours=9))
    session = AgentSession("s", clock=lambda: START.astimezone(zone))
    session.set_provider_state("p", 1)
    await session.add_message(USER("a"))
    await session.touch_last_active()
    session.set_provider_state("p", 2)
    for moment in (
        session.created_at,
        session.last_active_at,
        session.metadata().updated_at,
    ):
        assert moment == START
        assert moment.utcoffset() == timedelta(0)


@pytest.mark.anyio
async def test_adding_costs_the_same_at_any_size() -> None:
    session = AgentSession("s")
    await session.add_messages_batch([USER("x")] * 10_000)
    log = session._view.log
    await session.add_message(USER("y"))
    assert session._view.log is log
    assert session.get_message_count() == 10_001
