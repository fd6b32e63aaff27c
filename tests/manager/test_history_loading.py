"""`load_history`: what the configuration says, and storage as it was."""

from __future__ import annotations

import json

import pytest
from manager_bindings import ManagerHarness, on_every_manager
from manager_values import (
    ANN,
    KEY,
    CharacterCounter,
    agent,
    call,
    configured,
    result,
    texts,
    turns,
    user,
)

from raf_session.conformance import TickingClock
from raf_session.history import HistoryRule, WindowMode
from raf_session.journals.memory import MemoryJournal
from raf_session.manager import AgentsConfig, SessionManager
from raf_session.messages import ChatMessage
from raf_session.toolcalls import calls_in, results_in
from raf_session.validity import (
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

pytestmark = pytest.mark.anyio


async def loaded(config: AgentsConfig, *messages: ChatMessage) -> SessionManager:
    """Return a manager with a session that holds these messages."""
    manager = SessionManager(
        MemoryJournal.opened(clock=TickingClock()), config, counter=CharacterCounter()
    )
    await manager.add_messages(await manager.get_or_create(ANN), messages)
    return manager


def groups(count: int, text: str = "found") -> list[ChatMessage]:
    """Return turns with a group of call and result each."""
    return [
        message
        for n in range(count)
        for message in (
            user(f"go {n}"),
            call(f"c{n}", text=f"I look {n}"),
            result(f"c{n}", text),
            agent(f"done {n}"),
        )
    ]


@on_every_manager
async def test_loading_changes_nothing_in_storage(bound: ManagerHarness) -> None:
    clock = TickingClock()
    config = configured(session={"max_messages": 5})
    async with bound(config, clock=clock) as manager:
        session = await manager.get_or_create(ANN)
        await manager.add_messages(session, [*groups(8, "x" * 5000), call("pending")])
        before = await manager.journal.load(session.key, archived=True)
        clock.tick(60)
        for limit in (0, 3):
            await manager.load_history(KEY, limit)
            await manager.load_history(session, limit)
            await manager.get(KEY)
            await manager.meta(KEY)
            await manager.statistics(KEY)
            await manager.list()
        assert await manager.journal.load(session.key, archived=True) == before


@on_every_manager
async def test_the_history_is_valid_for_every_provider(bound: ManagerHarness) -> None:
    config = configured(session={"max_messages": 6, "max_token_count": 4000})
    async with bound(config) as manager:
        session = await manager.get_or_create(ANN)
        said = [*groups(3), call("c1", "c2"), result("c2"), user("stop"), call("last")]
        for message in said:
            await manager.add_message(session, message)
            for limit in range(7):
                shown = (await manager.load_history(KEY, limit)).messages
                if not shown:
                    assert limit == 1  # a result alone is none
                    continue
                assert not openai_violations(shown)
                assert not anthropic_violations(shown)
                assert not gemini_violations(shown)


async def test_at_most_so_many_messages_are_shown() -> None:
    manager = await loaded(configured(session={"max_messages": 10}), *turns(30))
    view = await manager.load_history(KEY)
    assert 0 < len(view.messages) <= 10
    assert view.messages[-1] == turns(30)[-1]
    assert set(view.dropped.values()) == {HistoryRule.MAX_MESSAGES}
    assert len(view.kept) + len(view.dropped) == 60
    everything = await loaded(configured(session={"max_messages": None}), *turns(130))
    assert len((await everything.load_history(KEY)).messages) == 260
    by_default = await loaded(AgentsConfig(), *turns(130))
    assert len((await by_default.load_history(KEY)).messages) <= 200


async def test_at_most_so_many_tokens_are_shown() -> None:
    config = configured(session={"max_token_count": 400, "reserve_tokens": 100})
    manager = await loaded(config, *turns(30))
    view = await manager.load_history(KEY)
    assert 0 < view.tokens <= 300
    assert view.tokens == sum(len(message.text) for message in view.messages)
    assert set(view.dropped.values()) == {HistoryRule.MAX_TOKENS}


async def test_the_models_context_limits_what_is_shown() -> None:
    config = configured(session={"max_token_count": 9999, "model_context": 200})
    manager = await loaded(config, *turns(30))
    assert 0 < (await manager.load_history(KEY)).tokens <= 200


async def test_a_sliding_window_leaves_as_much_as_fits() -> None:
    stepped, sliding = [
        await loaded(
            configured(session={"max_messages": 20, "window": mode}), *turns(33)
        )
        for mode in WindowMode
    ]
    assert len((await sliding.load_history(KEY)).messages) >= 19
    assert len((await stepped.load_history(KEY)).messages) < 19


@pytest.mark.parametrize("limit", [1, 2, 5, 12])
async def test_a_limit_shows_the_last_messages(limit: int) -> None:
    manager = await loaded(AgentsConfig(), *turns(6))
    view = await manager.load_history(KEY, limit)
    assert [turns(6)[place] for place in view.kept] == turns(6)[-limit:]
    with pytest.raises(ValueError, match="negative"):
        await manager.load_history(KEY, -1)


@pytest.mark.parametrize(
    ("limit", "rule"),
    [
        (3, HistoryRule.LIMIT),
        (4, HistoryRule.MAX_MESSAGES),
        (0, HistoryRule.MAX_MESSAGES),
    ],
)
async def test_what_is_left_out_is_told_with_the_rule_that_is_to_blame(
    limit: int, rule: HistoryRule
) -> None:
    config = configured(session={"max_messages": 4, "window": "sliding"})
    manager = await loaded(config, *turns(6))
    view = await manager.load_history(KEY, limit)
    left = len(turns(6)) - len(view.kept)
    assert left >= 12 - 4
    assert [entry.message for entry in view.dropped_messages] == turns(6)[:left]
    assert {entry.rule for entry in view.dropped_messages} == {rule}
    assert [*view.dropped.values()] == [entry.rule for entry in view.dropped_messages]


@pytest.mark.parametrize(("keep", "shown"), [(0, 0), (2, 2), (None, 9)])
async def test_the_last_groups_of_calls_are_shown(keep: int | None, shown: int) -> None:
    config = configured(tool_calls={"keep_tool_calls_count": keep})
    manager = await loaded(config, *groups(9), user("and now?"))
    view = await manager.load_history(KEY)
    called = [message for message in view.messages if calls_in(message)]
    answered = [message for message in view.messages if results_in(message)]
    assert len(called) == len(answered)
    assert len(called) == shown if keep is None else len(called) <= shown
    said = texts(view.messages)
    assert all(f"I look {n}" in said for n in range(9))  # said beside the calls


async def test_by_default_five_groups_are_shown_and_2000_characters_of_a_result() -> (
    None
):
    manager = await loaded(AgentsConfig(), *groups(9, "x" * 5000), user("and now?"))
    view = await manager.load_history(KEY)
    answers = [message for message in view.messages if results_in(message)]
    assert 1 <= len(answers) <= 5
    assert all(1900 <= len(message.text) <= 2000 for message in answers)


async def test_a_placeholder_stands_for_groups_that_are_not_shown() -> None:
    config = configured(
        tool_calls={"keep_tool_calls_count": 0, "placeholder": "(looked something up)"}
    )
    manager = await loaded(config, *groups(2), user("and now?"))
    shown = "\n".join(texts((await manager.load_history(KEY)).messages))
    assert shown.count("(looked something up)") == 2


async def test_a_long_result_is_made_short_and_stays_json() -> None:
    config = configured(tool_calls={"max_tool_result_size": 200})
    long = json.dumps({"rows": [{"name": f"row {n} 雪"} for n in range(100)]})
    said = [user("go"), call("c1"), result("c1", long), agent("done"), user("more")]
    manager = await loaded(config, *said)
    view = await manager.load_history(KEY)
    (short,) = (m.text for m in view.messages if results_in(m))
    assert len(short) <= 200
    assert json.loads(short)
    assert view.truncated[2].size == len(long)
    session = await manager.get(KEY)
    assert session is not None
    assert await session.get_messages() == said


@on_every_manager
async def test_a_history_that_grew_by_another_hand_is_shown_whole(
    bound: ManagerHarness,
) -> None:
    async with bound() as manager:
        session = await manager.get_or_create(ANN)
        await manager.add_messages(session, turns(3))
        first = await manager.load_history(KEY)
        other = await SessionManager(manager.journal).get(KEY)
        assert other is not None
        await other.add_messages_batch(turns(2, start=3))
        second = await manager.load_history(KEY)
        assert second.messages == (*first.messages, *turns(2, start=3))
        await other.clear()
        assert (await manager.load_history(KEY)).messages == ()
