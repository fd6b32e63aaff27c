"""What a manager stores of messages: tokens, usage, tool calls, all or none."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager_bindings import ManagerHarness, on_every_manager, with_claims
from manager_values import (
    ANN,
    KEY,
    CharacterCounter,
    agent,
    call,
    configured,
    result,
    stored,
    texts,
    turns,
    user,
)

from raf_session.conformance import Capability, TickingClock
from raf_session.entries import Entry
from raf_session.errors import EntryConflictError
from raf_session.journal import Journal
from raf_session.journaled_session import JournaledSession
from raf_session.journals.memory import MemoryJournal
from raf_session.manager import ManagedSession, SessionManager, SessionRequest
from raf_session.messages import ChatMessage, Usage
from raf_session.tokens import EstimatingTokenCounter
from raf_session.toolcalls import calls_in, results_in

pytestmark = pytest.mark.anyio

COUNTER = CharacterCounter()
UNSAVED = configured(tool_calls={"save_tool_calls": False})


def over(journal: Journal, **options: bool) -> SessionManager:
    return SessionManager(
        journal,
        configured(tool_calls=dict(options)) if options else None,
        counter=COUNTER,
    )


async def entries(session: ManagedSession) -> Sequence[Entry]:
    return (await session.journal.load(session.key)).entries


@on_every_manager
async def test_the_head_knows_the_tokens_of_the_active_window(
    bound: ManagerHarness,
) -> None:
    async with bound() as manager:
        session = await manager.get_or_create(ANN)
        await session.add_message(user("four"))
        await session.add_messages_batch([agent("to"), user("me")])
        await manager.add_message(KEY, agent("again"))
        assert session.head.active.tokens == 13
        assert (await manager.statistics(KEY)).active.tokens == 13
        assert [e.usage and e.usage.total_tokens for e in await entries(session)] == [
            *(4, 2, 2, 5)
        ]
        await session.clear()
        assert session.head.active.tokens == 0


async def test_the_reply_has_the_completion_tokens_that_were_reported() -> None:
    manager = over(MemoryJournal.opened())
    session = await manager.get_or_create(ANN)
    usage = Usage(
        prompt_tokens=900, completion_tokens=70, total_tokens=970, reasoning_tokens=50
    )
    await manager.add_messages(session, [user("hello"), agent("hi")], usage=usage)
    _, reply = await entries(session)
    assert reply.usage is not None
    assert reply.usage.total_tokens == 20  # reasoning is not sent again
    assert reply.usage.prompt_tokens == 900
    assert session.head.active.tokens == 25


@pytest.mark.parametrize(
    ("messages", "usage"),
    [
        ([agent("hi"), user("ho")], Usage(completion_tokens=0)),
        ([agent("hi"), user("ho")], Usage(completion_tokens=9, reasoning_tokens=9)),
        ([user("hi"), user("ho")], Usage(completion_tokens=70)),
    ],
    ids=["nothing said", "reasoning only", "no reply"],
)
async def test_what_was_not_reported_of_a_reply_is_counted(
    messages: list[ChatMessage], usage: Usage
) -> None:
    manager = over(MemoryJournal.opened())
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, messages, usage=usage)
    assert session.head.active.tokens == 4


async def test_what_was_reported_is_of_the_last_reply_alone() -> None:
    manager = over(MemoryJournal.opened())
    session = await manager.get_or_create(ANN)
    batch = [user("go"), call("c1", text="wait"), result("c1"), agent("hi")]
    await manager.add_messages(session, batch, usage=Usage(completion_tokens=70))
    *others, reply = await entries(session)
    assert reply.usage is not None
    assert reply.usage.total_tokens == 70
    assert [e.usage and e.usage.total_tokens for e in others] == [2, 13, 5]


async def test_the_model_that_answered_is_kept_with_the_session() -> None:
    manager = over(MemoryJournal.opened())
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, [user("hello")], model="m-1")
    assert session.head.model == "m-1"
    revision = session.head.revision
    await manager.add_messages(session, [agent("hi")], model="m-2")
    assert (session.head.model, session.head.revision) == ("m-2", revision + 1)
    await manager.add_messages(session, [user("and?")])
    assert session.head.model == "m-2"


@on_every_manager
async def test_a_batch_is_all_or_none_and_the_same_again_is_stored_once(
    bound: ManagerHarness,
) -> None:
    async with bound() as manager:
        session = await manager.get_or_create(ANN)
        batch = [user("hello", "m1"), agent("hi", "m2")]
        for _ in range(2):
            await manager.add_messages(session, batch, model="m-1")
        with pytest.raises(EntryConflictError):
            await manager.add_messages(session, [user("new", "m3"), user("no", "m1")])
        assert texts(await session.get_messages()) == ["hello", "hi"]
        assert session.head.active.tokens == 7


# Tool calls ------------------------------------------------------------------------


TOOL_USE: dict[str, object] = {
    "type": "tool_use",
    "id": "c1",
    "name": "look",
    "input": {},
}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "found"}


def parts(role: str, *items: object) -> ChatMessage:
    return ChatMessage.from_openai({"role": role, "content": list(items)})


@pytest.mark.parametrize(
    ("batch", "kept"),
    [
        ([call("c1"), result("c1"), agent("done")], ["done"]),
        ([call("c1", text="wait"), result("c1")], ["wait"]),
        ([call("c1", "c2"), result("c2"), result("c1")], []),
        (
            [
                parts("assistant", {"type": "text", "text": "I look"}, TOOL_USE),
                parts("user", TOOL_RESULT, {"type": "text", "text": "and?"}),
            ],
            ["I look", "and?"],
        ),
        (
            [
                parts("assistant", {"type": "thinking", "thinking": "hm"}),
                parts("assistant", TOOL_USE),
                parts("user", TOOL_RESULT),
                agent("done"),
            ],
            ["done"],
        ),
        ([user("hello"), agent("hi")], ["hello", "hi"]),
    ],
    ids=["openai", "beside", "parallel", "anthropic", "reasoning", "none"],
)
async def test_calls_and_results_are_not_stored_where_they_are_not_saved(
    batch: list[ChatMessage], kept: list[str]
) -> None:
    manager = SessionManager(MemoryJournal.opened(), UNSAVED)
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, batch)
    assert texts(await session.get_messages()) == kept
    for entry in await entries(session):
        assert entry.message is not None
        assert not calls_in(entry.message)
        assert not results_in(entry.message)


@on_every_manager
async def test_by_default_calls_and_results_are_stored(bound: ManagerHarness) -> None:
    async with bound() as manager:
        session = await manager.get_or_create(ANN)
        batch = [user("go"), call("c1", text="wait"), result("c1"), agent("done")]
        await manager.add_messages(session, batch)
        assert await session.get_messages() == batch


async def test_a_batch_of_which_nothing_is_saved_is_activity() -> None:
    clock = TickingClock()
    manager = SessionManager(MemoryJournal.opened(clock=clock), UNSAVED)
    session = await manager.get_or_create(ANN)
    now = clock.tick(60)
    await manager.add_messages(session, [call("c1"), result("c1")], model="m-1")
    assert (session.last_active_at, session.head.model) == (now, "m-1")


# Several writers -------------------------------------------------------------------


@with_claims(Capability.SHARED)
async def test_two_managers_of_one_storage_see_what_the_other_stores(
    bound: ManagerHarness,
) -> None:
    async with bound.storage() as opener, opener() as one, opener() as other:
        here = await one.get_or_create(ANN)
        there = await other.get_or_create(ANN)
        assert here.head.incarnation == there.head.incarnation
        await one.add_message(here, user("from here"))
        await other.add_message(there, user("from there"))
        assert (await one.load_history(KEY)).messages == (
            await other.load_history(KEY)
        ).messages
        assert texts(await here.get_messages()) == ["from here", "from there"]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_tasks_lose_nothing_and_count_everything(sizes: list[int]) -> None:
    async def check() -> None:
        manager = over(MemoryJournal.opened())
        session = await manager.get_or_create(ANN)

        async def say(n: int, size: int) -> None:
            batch = [user(f"{n}-{i}") for i in range(size)]
            await manager.add_messages(KEY, batch)

        async with anyio.create_task_group() as tasks:
            for n, size in enumerate(sizes):
                tasks.start_soon(say, n, size)
        said = stored(session)
        assert len(said) == len(set(said)) == sum(sizes)
        assert session.head.active.tokens == 3 * sum(sizes)

    anyio.run(check)


async def test_more_sessions_than_are_held_keep_what_is_pending() -> None:
    journal = MemoryJournal.opened()
    manager = over(journal)
    first = await manager.get_or_create(ANN)
    await manager.add_messages(first, turns(1))
    await manager.request(first)
    for n in range(300):
        key = f"agent:a:channel:c:scope:task:{n}"
        await SessionManager(journal).get_or_create(
            SessionRequest("a", "c", "task", task=str(n))
        )
        assert await manager.get(key) is not None
    again = await manager.get_or_create(ANN)
    assert again is not first
    assert (await manager.request(again)).match.previous_messages == 2
    await manager.close()


@on_every_manager
async def test_the_same_again_is_stored_once_whatever_counts_its_tokens(
    bound: ManagerHarness,
) -> None:
    async with bound.storage() as opener, opener() as one:
        session = await one.get_or_create(ANN)
        usage = Usage(prompt_tokens=9, completion_tokens=5, reasoning_tokens=5)
        batch = [user("hello", "m1"), agent("hi", "m2")]
        await one.add_messages(session, batch, usage=usage)
        estimating = EstimatingTokenCounter()
        other = SessionManager(one.journal, one.config, counter=estimating)
        await other.add_messages(KEY, batch, usage=usage)
        assert texts(await session.get_messages()) == ["hello", "hi"]
        assert session.head.active.tokens == 7
        for changed in (None, Usage(prompt_tokens=8, completion_tokens=5)):
            with pytest.raises(EntryConflictError):
                await other.add_messages(KEY, batch, usage=changed)
        with pytest.raises(EntryConflictError):
            await other.add_messages(KEY, [user("hello!", "m1")])
        await other.close()


async def test_what_a_plain_session_stored_is_known_too() -> None:
    journal = MemoryJournal.opened()
    manager = over(journal)
    session = await manager.get_or_create(ANN)
    plain = await JournaledSession.open(journal, session.key)
    await plain.add_message(user("hello", "m1"))
    await manager.add_message(session, user("hello", "m1"))
    assert texts(await session.get_messages()) == ["hello"]
