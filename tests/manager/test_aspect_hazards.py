"""Faults that users of other session layers have met, played through the aspect."""

from __future__ import annotations

import json

import pytest
from aspect_values import (
    BRIEF,
    KEY,
    ROOMY,
    Aspects,
    asks,
    begins,
    config,
    given,
    gives,
    judge,
    outline,
    reply,
    run,
    violations,
    wire,
)
from journal_bindings import HARNESSES

from raf_session.conformance import Capability, JournalHarness, JournalOpener
from raf_session.conformance.clock import TickingClock
from raf_session.errors import SessionNotFoundError
from raf_session.journal import Journal
from raf_session.journals.memory import MemoryJournal
from raf_session.manager import AgentOutput, SessionRequest
from raf_session.messages import ChatMessage
from raf_session.prefix import prefix_hashes
from raf_session.toolcalls import INTERRUPTED

pytestmark = pytest.mark.anyio

EVERYWHERE = pytest.mark.parametrize(
    "harness", [pytest.param(harness, id=harness.name) for harness in HARNESSES]
)
DURABLE = pytest.mark.parametrize(
    "harness",
    [
        pytest.param(harness, id=harness.name)
        for harness in HARNESSES
        if Capability.DURABLE in harness.capabilities
    ],
)
ODD = ChatMessage.from_openai(
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "index": 0,
                "id": "c1",
                "type": "function",
                "function": {"name": "f", "arguments": '{"b": 1.0,"a":1, "": null}'},
            }
        ],
        "reasoning_content": "so…\u2028",
        "vendor": {"z": 1.0, "a": [1, True, None, 10**20]},
    }
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def as_sent(messages: tuple[ChatMessage, ...]) -> list[str]:
    """Return the bytes of each message of a request."""
    return [json.dumps(message) for message in wire(messages)]


@EVERYWHERE
async def test_a_process_that_is_killed_while_a_tool_runs_can_be_resumed(
    harness: JournalHarness,
) -> None:
    async with harness.storage() as opener, opener() as journal:
        async with Aspects(journal) as first:
            manager = first.new().manager
            await manager.get_or_create(SessionRequest(channel="chat", peer="ann"))
            await manager.add_message(KEY, ChatMessage.user("look"))
            await manager.add_message(KEY, asks("c1", "c2"))
            await manager.add_message(KEY, gives("c1"))
        async with Aspects(journal) as second:
            prepared = await second.new().before(run("2"), given("are you there?"))
            assert outline(prepared.messages) == [
                "user: look",
                "assistant: c1 c2",
                "tool: done",
                f"tool: {INTERRUPTED}",
                "user: are you there?",
            ]
            assert violations(tuple(prepared.messages)) == []


async def talk(opener: JournalOpener) -> tuple[ChatMessage, ...]:
    """Do a run in a process of its own; return its last request."""
    async with opener() as journal, Aspects(journal) as aspects:
        async with aspects.new().around(run("1"), given(BRIEF, "hi \ud83d")) as one:
            one.add(ODD, gives("c1", "\U0001f468\u200d\U0001f469 \x7f"))
            sent = await one.request()
            one.add(reply("e\u0301 and \u00e9"))
        return sent


@DURABLE
async def test_a_resumed_session_is_sent_as_it_was_before(
    harness: JournalHarness,
) -> None:
    async with harness.storage() as opener:
        sent = await talk(opener)
        async with opener() as journal, Aspects(journal) as aspects:
            prepared = await aspects.new().before(run("2"), given(BRIEF, "and?"))
            messages = tuple(prepared.messages)
            assert as_sent(messages)[: len(sent)] == as_sent(sent)
            assert prepared.report is not None
            match = prepared.report.match
            assert match.append_only
            assert match.shared_messages == len(sent)
            hashes = prefix_hashes(messages)
            assert match.hash == hashes[-1]
            assert prefix_hashes(sent)[-1] in hashes


@EVERYWHERE
async def test_old_messages_are_the_same_at_any_time(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with (
        harness.storage() as opener,
        opener(clock=clock) as journal,
        Aspects(journal) as aspects,
    ):
        aspect = aspects.new()
        former: tuple[ChatMessage, ...] = ()
        for n in range(4):
            async with aspect.around(run(f"{n}"), given(BRIEF, f"{n}?")) as one:
                assert begins(former, one.messages)
                assert one.report.append_only
                former = one.messages
                one.add(reply(f"{n}."))
            clock.tick(3600)
            await aspect.manager.update(KEY, title=f"{n}", add_labels=[f"l{n}"])
            session = await aspect.manager.get(KEY)
            assert session is not None
            session.set_provider_state("p", {"n": n})
            await session.touch_last_active()
            if n == 1:
                aspect = aspects.new()


async def test_results_that_a_client_sends_again_stand_once_in_a_request() -> None:
    async with Aspects() as aspects:
        aspect = aspects.new()
        prepared = await aspect.before(run("1"), given("look"))
        output = [asks("c1"), gives("c1"), gives("c1"), gives("c1", "other")]
        await aspect.after(run("1"), prepared, AgentOutput([*output, reply()]))
        prepared = await aspect.before(run("2"), given(gives("c1", "late"), "and?"))
        judge(prepared.messages, aspect.manager)
        assert outline(prepared.messages) == [
            "user: look",
            "assistant: c1",
            "tool: late",
            "assistant: well",
            "user: and?",
        ]
        assert len(await aspects.stored()) == 8


async def test_a_run_of_very_many_calls_stays_within_the_window() -> None:
    narrow = config(session={"max_token_count": 600})
    async with Aspects() as aspects:
        aspect = aspects.new(narrow)
        async with aspect.around(run("1"), given(BRIEF, "count to hundred")) as one:
            for n in range(100):
                one.add(asks(f"c{n}"), gives(f"c{n}", f"{n} " * 20))
                judge(await one.request(), aspect.manager)
                assert "user: count to hundred" in outline(one.messages)
            one.add(reply())
        assert len(await aspects.stored()) == 202
        prepared = await aspect.before(run("2"), given(BRIEF, "thanks"))
        judge(prepared.messages, aspect.manager)


async def test_a_session_that_expires_during_a_long_call_is_not_half_revived() -> None:
    mortal = config(session={"idle_timeout": "2s"})
    clock = TickingClock()
    journal: Journal = MemoryJournal.opened(limits=mortal.session.limits, clock=clock)
    async with Aspects(journal) as aspects:
        aspect = aspects.new(mortal)

        async def slow() -> None:
            async with aspect.around(run("1"), given("look")) as one:
                one.add(asks("c1"))
                clock.tick(3)
                await aspect.manager.cleanup_expired()
                clock.tick(2)
                one.add(gives("c1"), reply())

        with pytest.raises(SessionNotFoundError):
            await slow()
        prepared = await aspect.before(run("2"), given("again"))
        assert outline(prepared.messages) == ["user: again"]


async def test_a_conversation_that_expired_begins_anew() -> None:
    mortal = config(session={"ttl": "10s"})
    clock = TickingClock()
    journal: Journal = MemoryJournal.opened(limits=mortal.session.limits, clock=clock)
    async with Aspects(journal) as aspects:
        aspect = aspects.new(mortal)
        await aspect.before(run("1"), given("old"))
        clock.tick(11)
        prepared = await aspect.before(run("2"), given("new"))
        assert outline(prepared.messages) == ["user: new"]
        assert ROOMY.session.ttl is None
