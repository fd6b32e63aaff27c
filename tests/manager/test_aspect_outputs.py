"""Outputs in providers' own shapes: requests may be sent, and nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from itertools import islice
from typing import Any

import pytest
from aspect_values import (
    BRIEF,
    Aspects,
    asks,
    begins,
    config,
    given,
    gives,
    outline,
    reply,
    run,
    violations,
    wire,
)

from raf_session.manager import AgentOutput
from raf_session.messages import ChatMessage
from raf_session.toolcalls.reasoning import is_silent, with_thoughts

pytestmark = pytest.mark.anyio

THINKING = {"type": "thinking", "thinking": "so", "signature": "s"}
REASONING = {"type": "reasoning", "text": "so"}
SEALED = {"type": "reasoning", "text": "", "encrypted_content": "e"}
CALL: dict[str, Any] = {"name": "look", "args": {}}
FOUND = {"name": "look", "response": {"x": 1}}
IMAGE = {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


def said(*wires: dict[str, Any]) -> list[ChatMessage]:
    """Return what a model and its tools say; without a role, the assistant."""
    return [ChatMessage.from_openai({"role": "assistant", **w}) for w in wires]


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


ROUNDS = {
    "anthropic": said(
        {
            "content": [
                THINKING,
                text(" "),
                {"type": "tool_use", "id": "t", "name": "look", "input": {}},
            ]
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": ""}],
        },
        {"content": [THINKING, text("done")]},
    ),
    "gemini content": said(
        {"content": [{"functionCall": CALL}, {"functionCall": CALL}]},
        {
            "role": "user",
            "content": [{"functionResponse": FOUND}, {"functionResponse": FOUND}],
        },
        {"content": "done"},
    ),
    "gemini parts": said(
        {"parts": [{"text": ""}, {"functionCall": CALL, "thoughtSignature": "s"}]},
        {"role": "user", "parts": [{"functionResponse": FOUND}]},
        {"parts": [{"text": "done"}]},
    ),
    "reasoning": said(
        {"content": [REASONING]},
        {"content": [SEALED]},
        {
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": ""}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"content": "done", "reasoning_content": "hm"},
    ),
    "an image": said(
        {"content": " ", "tool_calls": asks("c").to_openai()["tool_calls"]},
        {"role": "tool", "tool_call_id": "c", "content": [IMAGE, text("seen")]},
        {"content": [text("\n"), IMAGE]},
    ),
    "a result of nothing": said(
        asks("c").to_openai(),
        {"role": "tool", "tool_call_id": "c", "content": [text("")]},
        {"content": "done"},
    ),
}


def shown(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return what requests hold of these: reasoning in the calls that it led to."""
    *thoughts, led_to = islice(messages, 3)
    if "tool_calls" not in led_to.to_openai() or not all(map(is_silent, thoughts)):
        return wire(messages)
    return wire([with_thoughts(thoughts, led_to), *messages[3:]])


@pytest.mark.parametrize("name", ROUNDS)
async def test_a_round_in_any_providers_shape_may_be_sent_and_comes_back(
    name: str, aspects: Aspects
) -> None:
    async with aspects.new().around(run("1"), given(BRIEF, "hi")) as one:
        one.add(*ROUNDS[name])
    prepared = await aspects.new().before(run("2"), given(BRIEF, "and?"))
    assert violations(tuple(prepared.messages)) == []
    assert wire(prepared.messages)[2:-1] == shown(one.added)
    assert [m.role for m in one.added] == [m.role for m in ROUNDS[name]]
    assert len(await aspects.stored()) == len(ROUNDS[name]) + 2


@pytest.mark.parametrize("name", ROUNDS)
async def test_the_model_is_given_what_its_tools_found_in_the_same_run(
    name: str, aspects: Aspects
) -> None:
    *round_, answer = ROUNDS[name]
    for saved in (True, False):
        aspect = aspects.new(config(tool_calls={"save_tool_calls": saved}))
        said_ = given(BRIEF, "hi", peer=f"{saved}")
        async with aspect.around(run(f"{saved}"), said_) as one:
            one.add(*round_)
            sent = await one.request()
            assert violations(sent) == []
            assert wire(sent)[2:] == shown(one.added)
            one.add(answer)
        again = await aspect.before(
            run(f"{saved} 2"), given(BRIEF, "and?", peer=f"{saved}")
        )
        assert violations(tuple(again.messages)) == []


NOTHING: list[dict[str, Any]] = [
    {"content": None, "parts": [{"text": ""}]},
    {"content": None, "parts": [{"text": " "}, {"text": "\n"}]},
    {"content": [text(" "), text("\n")]},
    {"content": [{"type": "refusal", "refusal": ""}]},
    {"content": [THINKING]},
    {"content": [THINKING, text(" ")]},
    {"content": [REASONING]},
    {"content": None, "reasoning_content": "hm"},
    {"content": [], "audio": {}},
]


@pytest.mark.parametrize("wire_", NOTHING, ids=map(str, range(len(NOTHING))))
@pytest.mark.parametrize("whole", [False, True])
async def test_an_answer_that_says_nothing_is_in_no_request_and_not_stored(
    wire_: dict[str, Any], whole: bool, aspects: Aspects
) -> None:
    aspect = aspects.new()
    group = [asks("a"), gives("a")] if whole else []
    async with aspect.around(run("1"), given(BRIEF, "hi")) as one:
        one.add(*group, *said(wire_))
        assert violations(await one.request()) == []
        assert outline(one.messages)[1:] == ["user: hi", *outline(group)]
    stored = ["user: hi", *outline(group)]
    assert outline(await aspects.stored()) == stored
    prepared = await aspect.before(run("2"), given(BRIEF, "and?"))
    assert violations(tuple(prepared.messages)) == []
    output = AgentOutput([*group, *said(wire_)])
    await aspect.after(run("2"), prepared, output)
    assert outline(await aspects.stored()) == [*stored, "user: and?", *outline(group)]


async def test_thoughts_stand_in_a_request_once_they_led_to_something(
    aspects: Aspects,
) -> None:
    thought = said({"content": [REASONING]})[0]
    async with aspects.new().around(run("1"), given(BRIEF, "hi")) as one:
        one.add(thought)
        first = await one.request()
        one.add(asks("a"), gives("a"))
        second = await one.request()
        assert begins(first, second)
        assert second[2].to_openai()["content"] == [REASONING]
        one.add(reply())
    assert len(await aspects.stored()) == 5


async def test_texts_that_part_others_stay(aspects: Aspects) -> None:
    parts = said({"content": [text("a"), text(" "), text("b"), text("")]})
    async with aspects.new().around(run("1"), given("hi")) as one:
        one.add(*parts)
    assert (await aspects.stored())[1].text == "a b"


# Where calls are not saved -------------------------------------------------------

UNSAVED = config(tool_calls={"save_tool_calls": False})
GROUP = (asks("a", text="let me see"), gives("a"))


async def test_attempts_whose_calls_are_not_saved_store_what_is_said_once(
    aspects: Aspects,
) -> None:
    aspect = aspects.new(UNSAVED)
    prepared = await aspect.before(run("1"), given("hi"))
    failed = AgentOutput(GROUP, error="429")
    done = AgentOutput([*GROUP, reply()])
    for output in (failed, failed, done, done):
        await aspect.after(run("1"), prepared, output)
        await aspects.new(UNSAVED).after(run("1"), given("hi"), output)
    assert outline(await aspects.stored()) == [
        "user: hi",
        "assistant: let me see",
        "assistant: well",
    ]


async def test_a_result_that_is_given_is_sent_and_not_saved(aspects: Aspects) -> None:
    saving, aspect = aspects.new(), aspects.new(UNSAVED)
    async with saving.around(run("1"), given("build it")) as one:
        one.add(asks("c"))
    for _ in range(2):
        async with aspect.around(run("2"), given(gives("c", "built"))) as one:
            sent = await one.request()
            assert outline(sent)[-2:] == ["assistant: c", "tool: built"]
            assert violations(sent) == []
    assert outline(await aspects.stored()) == ["user: build it", "assistant: c"]
