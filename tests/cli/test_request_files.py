"""Request bodies of every API in `replay`: in logs, and as files of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raf_session.cli.bodies import is_body
from raf_session.cli.faults import Place
from raf_session.cli.request_logs import RequestReader

HI = {"role": "user", "content": "Hi"}
HO = {"role": "assistant", "content": "Ho"}
BLOCK = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
PARTS = [{"role": "user", "parts": [{"text": "Hi"}]}]
TEXT = [{"role": "user", "content": [{"text": "Hi"}]}]

APIS: dict[str, tuple[list[Any], list[Any], str | None]] = {
    "openai-chat": (
        [{"model": "m", "messages": [HI]}, {"model": "m", "messages": [HI, HO]}],
        [HI, HO],
        None,
    ),
    "openai-responses": (
        [
            {"model": "m", "instructions": "Be", "input": "Hi"},
            {"model": "m", "instructions": "Do", "input": [HI, {"type": "reasoning"}]},
        ],
        [HI, {"type": "reasoning", "role": "assistant"}],
        "request 2: instructions",
    ),
    "anthropic": (
        [
            {"model": "claude-x", "system": "Be", "messages": [HI]},
            {
                "model": "claude-x",
                "system": [{"type": "text", "text": "Be", "cache_control": {}}],
                "messages": [{"role": "user", "content": [BLOCK]}, HO],
            },
        ],
        [HI, HO],
        None,
    ),
    "gemini": (
        [{"contents": PARTS}, {"contents": [{"role": "model", "parts": []}]}],
        [{"role": "assistant", "parts": []}],
        "request 2: contents[0]",
    ),
    "bedrock": (
        [{"modelId": "a", "messages": TEXT}, {"modelId": "b", "messages": TEXT}],
        TEXT,
        "request 2: modelId",
    ),
}


def lines(values: list[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


FORMS: dict[str, tuple[str, Callable[[list[Any]], str]]] = {
    "log": ("x", lambda bodies: json.dumps({"id": "x", "requests": bodies})),
    "lines": ("chat", lines),
    "a list": ("chat", json.dumps),
    "wrapped as request": (
        "chat",
        lambda bodies: lines([{"id": 1, "request": one, "usage": 7} for one in bodies]),
    ),
    "wrapped as body": (
        "chat",
        lambda bodies: lines([{"custom_id": "c", "body": one} for one in bodies]),
    ),
    "wrapped in a log": (
        "chat",
        lambda bodies: json.dumps({"requests": [{"body": one} for one in bodies]}),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("api", APIS)
def test_bodies_of_every_api(
    api: str,
    form: str,
    run: Any,
    store: Callable[[], dict[str, Any]],
    sent: Callable[[Any], list[Any]],
) -> None:
    bodies, messages, first_break = APIS[api]
    name, text = FORMS[form]
    Path("chat.jsonl").write_text(text(bodies))
    found = run("replay", "chat.jsonl", "--json").json
    (row,) = found["conversations"]
    assert (row["id"], row["requests"], row["line"]) == (name, 2, 1)
    broken = row["first_break"]
    assert first_break == (broken and f"request {broken['request']}: {broken['at']}")
    stored = store()
    assert {key: sent(record) for key, record in stored.items()} == {name: messages}
    again = run("replay", "chat.jsonl", "--json").json
    assert again["conversations"] == found["conversations"]
    assert again["run"]["writes"] == 0
    assert store() == stored


BODIES = {
    '{"messages": []}': False,
    '{"id": null, "messages": [], "model": "m"}': False,
    '{"messages": [], "reward": 1}': False,
    '{"messages": [], "model": null}': True,
    '{"messages": [], "modelId": "m"}': True,
    '{"messages": [], "tools": []}': True,
    '{"messages": [], "system": "x"}': True,
    '{"input": "x"}': False,
    '{"input": "x", "model": "m"}': True,
    '{"input": "x", "instructions": "m"}': True,
    '{"contents": "x"}': True,
    '{"role": "user", "contents": "x"}': False,
    '{"role": "user", "content": "x", "model": "m", "input": 1}': False,
    '{"id": 1, "request": {"messages": []}}': True,
    '{"body": {"input": "x"}}': True,
    '{"body": {"x": 1}}': False,
    '{"body": "x"}': False,
    '{"role": "user", "body": {"messages": []}}': False,
    '{"messages": [], "request": {"messages": []}}': False,
}


@pytest.mark.parametrize("text", BODIES)
def test_what_is_a_body(text: str) -> None:
    assert is_body(json.loads(text)) is BODIES[text]


def test_one_body_is_a_log_of_one(run: Any) -> None:
    Path("chat.json").write_text(json.dumps(APIS["anthropic"][0][0], indent=2))
    (row,) = run("replay", "chat.json", "--json").json["conversations"]
    assert (row["id"], row["requests"], row["first_break"]) == ("chat", 1, None)


def test_the_example(run: Any) -> None:
    examples = Path(__file__).parents[2] / "examples"
    bodies = [
        (examples / f"cache-miss.{n}.json").read_text() for n in ("before", "after")
    ]
    Path("miss.json").write_text(f"[{','.join(bodies)}]")
    (row,) = run("replay", "miss.json", "--json").json["conversations"]
    assert row["causes"] == {"system_changed": 1}
    assert row["first_break"]["at"].startswith("system")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"messages": []}', "a conversation in a file that began with a request"),
        ('{"role": "user"}', "a message in a file that began with a request"),
        ("7", "a number where a conversation or a message"),
        ('{"x": 1}', 'an object without "messages", "requests" or "role"'),
        (
            '{"model": "m", "messages": 7}',
            "messages: a number where a list is expected",
        ),
        ('{"model": "m", "messages": [{}]}', "messages[0].role: "),
        ('{"model": "m", "messages"', "not JSON"),
    ],
)
def test_what_is_before_a_fault_is_stored(
    line: str, reason: str, run: Any, store: Callable[[], dict[str, Any]]
) -> None:
    good = APIS["openai-chat"][0]
    Path("chat.jsonl").write_text(f"{lines(good)}{line}\n")
    fault = run("replay", "chat.jsonl").fault
    assert fault.startswith("chat.jsonl:3: ")
    assert reason in fault
    assert store()["chat"].head.active.messages == 2


def test_a_broken_first_body_makes_nothing(run: Any) -> None:
    Path("chat.jsonl").write_text('{"model": "m", "messages": 7}\n')
    assert "chat.jsonl:1: messages: a number" in run("replay", "chat.jsonl").fault
    assert not Path("raf-sessions.db").exists()


@pytest.mark.parametrize("api", APIS)
def test_a_message_that_stays_is_the_same_object(api: str) -> None:
    reader = RequestReader("x")
    one = APIS[api][0][0]
    first, second = (
        reader.read(json.loads(json.dumps(one)), Place("f")) for _ in range(2)
    )
    assert first.messages
    for former, now in zip(first.messages, second.messages, strict=True):
        assert now is former


def test_a_body_that_could_be_of_two_apis_is_of_the_one_before() -> None:
    reader = RequestReader("x")
    text = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    bodies = [
        {"model": "m", "messages": text, "system": "Be"},
        {"model": "m", "messages": text},
    ]
    for body in bodies:
        assert reader.read(body, Place("f")).messages[0].content == "Hi"
