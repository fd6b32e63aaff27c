"""`request`: what a model call is given, and how much a prompt cache reuses of it."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager_bindings import ManagerHarness, on_every_manager, with_claims
from manager_values import (
    ANN,
    KEY,
    CharacterCounter,
    Scribe,
    agent,
    call,
    configured,
    result,
    texts,
    turns,
    user,
)
from typing_extensions import override

from raf_session.conformance import Capability
from raf_session.journals.memory import MemoryJournal
from raf_session.manager import AgentsConfig, CompactionOutcome, SessionManager
from raf_session.messages import ChatMessage
from raf_session.prefix_match import Cause
from raf_session.validity import openai_violations

pytestmark = pytest.mark.anyio

BRIEF = ChatMessage.system("be brief")
ROOMY = configured(tool_calls={"keep_tool_calls_count": None})


def over(config: AgentsConfig = ROOMY) -> SessionManager:
    return SessionManager(MemoryJournal.opened(), config, counter=CharacterCounter())


async def test_a_request_is_instructions_history_and_what_is_not_stored() -> None:
    manager = over()
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, turns(2))
    unsaved = [user("go"), call("c1"), result("c1")]
    turn = await manager.request(session, [BRIEF], unsaved)
    assert turn.messages == (BRIEF, *turns(2), *unsaved)
    assert turn.view.messages == turn.messages[1:]
    assert turn.compaction is None
    assert turn.match.first
    assert len(await session.get_messages()) == 4
    session.abandon()


async def test_a_request_fits_with_its_instructions_and_the_reserve() -> None:
    config = configured(session={"max_token_count": 500, "reserve_tokens": 100})
    manager = over(config)
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, turns(20))
    long = ChatMessage.system("x" * 200)
    turn = await manager.request(session, [long], [user("go")])
    assert sum(len(message.text) for message in turn.messages) <= 400
    assert not turn.view.overrun
    assert len(turn.messages) > 2
    huge = await manager.request(session, [ChatMessage.system("x" * 600)])
    assert huge.view.overrun
    session.abandon()


async def test_what_was_said_in_a_run_is_not_read_anew_when_it_is_stored() -> None:
    counted: list[str] = []

    class Spy(CharacterCounter):
        @override
        def count(self, message: ChatMessage, /) -> int:
            counted.append(message.text)
            return super().count(message)

    manager = SessionManager(MemoryJournal.opened(), ROOMY, counter=Spy())
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, turns(20))
    said = [user("go"), agent("gone")]
    await manager.request(session, unsaved=said)
    named = [m.model_copy(update={"id": f"r{n}"}) for n, m in enumerate(said)]
    await manager.add_messages(session, named)
    counted.clear()
    turn = await manager.request(session, unsaved=[user("and?")])
    assert [m.id for m in turn.messages[-3:]] == ["r0", "r1", None]
    assert set(counted) == {"and?"}
    session.abandon()


async def test_a_request_shows_what_others_have_stored() -> None:
    manager = over()
    session = await manager.get_or_create(ANN)
    other = await SessionManager(manager.journal).get_or_create(ANN)
    await other.add_message(user("from elsewhere"))
    turn = await manager.request(session)
    assert texts(turn.messages) == ["from elsewhere"]
    session.abandon()


async def test_a_call_that_waits_at_the_end_is_no_obstacle() -> None:
    manager = over()
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, [user("go"), call("c1")])
    turn = await manager.request(session)
    assert not openai_violations(turn.messages)
    session.abandon()


KINDS = st.sampled_from(("talk", "tools", "parallel", "unsaved"))


@given(st.lists(KINDS, min_size=2, max_size=8))
def test_while_nothing_leaves_each_request_goes_on_from_the_one_before(
    kinds: list[str],
) -> None:
    async def check() -> None:
        journal = MemoryJournal.opened()
        for n, kind in enumerate(kinds):
            # another manager each time, as after a restart
            manager = SessionManager(journal, ROOMY, counter=CharacterCounter())
            session = await manager.get_or_create(ANN)
            await manager.add_message(session, user(f"go {n}"))
            turn = await manager.request(session, [BRIEF])
            assert turn.match.append_only
            assert turn.match.first == (n == 0)
            said: list[ChatMessage] = []
            if kind in {"tools", "unsaved"}:
                said = [call(f"c{n}", text="wait"), result(f"c{n}", "x" * 3000)]
            elif kind == "parallel":
                said = [call(f"a{n}", f"b{n}"), result(f"b{n}"), result(f"a{n}")]
            if kind == "unsaved":
                for end in range(1, len(said) + 1):
                    if end % 2 == 0:
                        turn = await manager.request(session, [BRIEF], said[:end])
                        assert turn.match.append_only
            await manager.add_messages(session, [*said, agent(f"done {n}")])
            await manager.close()

    anyio.run(check)


@with_claims(Capability.DURABLE)
async def test_a_restart_does_not_forget_the_last_request(
    bound: ManagerHarness,
) -> None:
    async with bound.storage() as opener:
        for n in range(3):
            async with opener(ROOMY) as manager:
                session = await manager.get_or_create(ANN)
                await manager.add_message(session, user(f"go {n}"))
                turn = await manager.request(session, [BRIEF], header={"model": "m"})
                assert turn.match.append_only
                assert turn.match.shared_messages == 2 * n
                await manager.add_message(session, agent(f"done {n}"))


@on_every_manager
async def test_what_broke_the_prefix_is_counted(bound: ManagerHarness) -> None:
    config = configured(
        session={"max_messages": 8},
        compaction={"keep_recent_count": 2, "min_messages_to_compact": 0},
    )
    async with bound(config, summarizer=Scribe()) as manager:
        session = await manager.get_or_create(ANN)
        for message in turns(3):
            await manager.add_message(session, message)
            await manager.request(session, [BRIEF])
        assert manager.reuse(KEY).requests == 6
        assert manager.reuse(KEY).breaks == 0
        await manager.request(session, [ChatMessage.system("be long")])
        await manager.compact(KEY)
        turn = await manager.request(session, [ChatMessage.system("be long")])
        assert turn.compaction is not None
        assert turn.compaction.outcome is CompactionOutcome.COMPACTED
        reuse = manager.reuse(session)
        assert reuse.requests == 8
        assert reuse.causes == {Cause.SYSTEM_CHANGED: 1, Cause.COMPACTED: 1}
        assert reuse.breaks == 2
        assert reuse.reuse is not None
        assert 0 < reuse.reuse < 1
        assert (await manager.statistics(KEY)).reuse == reuse
        await manager.delete(KEY)
        again = await manager.get_or_create(ANN)
        await manager.request(again, [BRIEF])
        assert manager.reuse(KEY).requests == 1


async def test_a_window_that_moves_in_steps_breaks_less_often() -> None:
    breaks = {}
    for mode in ("stepped", "sliding"):
        manager = over(configured(session={"max_messages": 10, "window": mode}))
        session = await manager.get_or_create(ANN)
        for message in turns(30):
            await manager.add_message(session, message)
            turn = await manager.request(session, [BRIEF])
            assert len(turn.view.kept) <= 10
            assert turn.messages[-1] == message
        breaks[mode] = manager.reuse(KEY).breaks
        await manager.close()
    assert 0 < breaks["stepped"] <= breaks["sliding"] / 3


async def test_reuse_of_a_session_without_requests_is_nothing() -> None:
    manager = over()
    assert manager.reuse(KEY).requests == 0
    assert manager.reuse(KEY).reuse is None
