"""Runs whose messages a compaction archives: in each request, and stored once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from aspect_values import (
    BRIEF,
    KEY,
    Aspects,
    asks,
    config,
    given,
    gives,
    outline,
    reply,
    run,
    violations,
)

from raf_session.compaction import CompactionOutcome
from raf_session.errors import EntryConflictError
from raf_session.manager import AgentOutput
from raf_session.manager.aspect import SessionAspect
from raf_session.manager.turn_request import TurnRequest
from raf_session.messages import ChatMessage, MessageRole

pytestmark = pytest.mark.anyio

WHOLE = config(
    compaction={"keep_recent_count": 0, "min_messages_to_compact": 0},
)
"""A compaction leaves its summary and nothing else."""
LONG = "of all that was said " * 20
GROUP = (asks("a", "b"), gives("a", LONG), gives("b"))


class Short:
    """Writes short summaries."""

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        return f"{len(messages)}, {len(previous or '')}"


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


def delivered(message_id: str, text: str = LONG) -> ChatMessage:
    """Return what a channel delivers under an id of its own."""
    return ChatMessage(role=MessageRole.USER, content=text, id=message_id)


async def compact(aspects: Aspects) -> None:
    """Put a summary in the place of all there is, as another process does."""
    manager = aspects.new(WHOLE, summarizer=Short()).manager
    assert (await manager.compact(KEY)).outcome is CompactionOutcome.COMPACTED


async def answered(aspects: Aspects, *said: ChatMessage) -> None:
    """Do a run that answers these."""
    async with aspects.new().around(run("former"), given(BRIEF, *said)) as one:
        one.add(reply("well"))


async def test_a_message_that_is_delivered_again_with_a_new_one_is_stored_once(
    aspects: Aspects,
) -> None:
    await answered(aspects, delivered("one"))
    await compact(aspects)
    said = given(BRIEF, delivered("one"), delivered("two", "and?"))
    prepared = await aspects.new().before(run("now"), said)
    assert violations(tuple(prepared.messages)) == []
    assert "user: and?" in outline(prepared.messages)
    stored = [m.id for m in await aspects.everything()]
    assert sorted(name for name in stored if name in {"one", "two"}) == ["one", "two"]


async def test_another_message_under_an_archived_id_is_refused(
    aspects: Aspects,
) -> None:
    await answered(aspects, delivered("one"))
    await compact(aspects)
    said = given(delivered("one", "otherwise"), delivered("two"))
    with pytest.raises(EntryConflictError) as caught:
        await aspects.new().before(run("now"), said)
    assert caught.value.entry_id == "one"
    assert len(await aspects.everything()) == 2


async def test_two_processes_are_delivered_some_of_the_same_messages_at_once(
    aspects: Aspects, monkeypatch: pytest.MonkeyPatch
) -> None:
    aspect, other = aspects.new(), aspects.new()
    await aspect.before(run("0"), given("hi"))
    session = await aspect.manager.get(KEY)
    assert session is not None
    save = session.save

    async def late(*args: Any, **options: Any) -> None:
        monkeypatch.setattr(session, "save", save)
        await other.before(run("1"), given(delivered("one", "one")))
        await save(*args, **options)

    monkeypatch.setattr(session, "save", late)
    both = given(delivered("one", "one"), delivered("two", "two"))
    prepared = await aspect.before(run("2"), both)
    assert outline(prepared.messages) == ["user: hi", "user: one", "user: two"]
    assert outline(await aspects.stored()) == outline(prepared.messages)


async def test_the_output_of_an_attempt_that_was_archived_is_stored_once(
    aspects: Aspects,
) -> None:
    prepared = await aspects.new().before(run("now"), given(BRIEF, "look"))
    failed = AgentOutput(GROUP, error="429")
    await aspects.new().after(run("now"), prepared, failed)
    await compact(aspects)
    aspect = aspects.new()
    for _ in range(2):
        prepared = await aspect.before(run("now"), given(BRIEF, "look"))
        await aspect.after(run("now"), prepared, AgentOutput([*GROUP, reply()]))
    everything = outline(await aspects.everything())
    assert everything == ["user: look", *outline(GROUP), "assistant: well"]


async def test_an_attempt_that_says_some_of_it_otherwise_is_stored_once(
    aspects: Aspects,
) -> None:
    own = reply("mine").model_copy(update={"id": "own"})
    aspect = aspects.new()
    prepared = await aspect.before(run("now"), given("hi"))
    for text in ("one", "two", "two"):
        await aspect.after(run("now"), prepared, AgentOutput([own, reply(text)]))
    assert outline(await aspects.stored()) == [
        "user: hi",
        "assistant: mine",
        "assistant: one",
        "assistant: two",
    ]


# While a run is under way --------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_run_goes_on_while_another_one_has_the_session_compacted(
    at: int, aspects: Aspects
) -> None:
    await answered(aspects, delivered("old"))
    aspect = aspects.new()
    async with aspect.around(run("now"), given(BRIEF, "look it up")) as one:
        for place, message in enumerate(GROUP):
            if place == at:
                async with aspects.new().around(
                    run("other"), given(BRIEF, "and me?")
                ) as other:
                    await compact(aspects)
                    other.add(asks("x"), gives("x"))
                    assert violations(await other.request()) == []
                    assert outline(other.messages).count("user: and me?") == 1
                    other.add(reply("you too"))
            one.add(message)
            sent = await one.request()
            assert violations(sent) == []
            assert outline(sent).count("user: look it up") == 1
        assert outline(one.messages)[-3:] == outline(GROUP)
        one.add(reply("found"))
    everything = outline(await aspects.everything())
    assert sorted(everything) == sorted(
        [
            *(f"user: {LONG}", "assistant: well", "user: look it up", "user: and me?"),
            *("assistant: x", "tool: done", "assistant: you too"),
            *outline(GROUP),
            "assistant: found",
        ]
    )
    following = await aspect.before(run("next"), given(BRIEF, "thanks"))
    assert violations(tuple(following.messages)) == []


def compacting(
    aspects: Aspects, aspect: SessionAspect, patch: pytest.MonkeyPatch
) -> None:
    """Let another process compact just before the next request reads the session."""
    manager = aspect.manager
    request = manager.request

    async def late(*args: Any, **options: Any) -> TurnRequest:
        patch.setattr(manager, "request", request)
        await compact(aspects)
        return await request(*args, **options)

    patch.setattr(manager, "request", late)


async def test_a_compaction_right_before_a_request_leaves_the_input_in_it(
    aspects: Aspects, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answered(aspects, delivered("old"))
    aspect = aspects.new()
    compacting(aspects, aspect, monkeypatch)
    prepared = await aspect.before(run("now"), given(BRIEF, LONG))
    assert outline(prepared.messages)[-1] == f"user: {LONG}"
    async with aspect.around(run("next"), given(BRIEF, f"again {LONG}")) as one:
        one.add(*GROUP)
        compacting(aspects, aspect, monkeypatch)
        sent = await one.request()
        assert violations(sent) == []
        assert outline(sent)[-4:] == [f"user: again {LONG}", *outline(GROUP)]
