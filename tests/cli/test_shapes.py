"""Every shape of file that `replay` reads, and the ids it gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HELLO = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
]
BYE = [
    {"role": "user", "content": "Bye"},
    {"role": "assistant", "content": None, "refusal": "No"},
]
TWO: list[dict[str, Any]] = [
    {"id": "a", "messages": HELLO},
    {"id": "b", "messages": BYE},
]
LOG = {"id": "log", "requests": [{"messages": HELLO[:2]}, {"messages": HELLO}]}


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def anonymous(*conversations: Any) -> list[Any]:
    return [{"messages": messages} for messages in conversations]


SHAPES = {
    "conversations, one a line": (lines(*TWO), {"a": HELLO, "b": BYE}),
    "messages, one a line": (lines(*HELLO), {"chat": HELLO}),
    "a list of conversations": (json.dumps(TWO), {"a": HELLO, "b": BYE}),
    "a list over lines": (json.dumps(TWO, indent=2), {"a": HELLO, "b": BYE}),
    "a list of messages": (json.dumps(HELLO, indent=1), {"chat": HELLO}),
    "one conversation": (json.dumps(TWO[0], indent=4), {"a": HELLO}),
    "logs, one a line": (lines(LOG), {"log": HELLO}),
    "a list of logs": (json.dumps([LOG]), {"log": HELLO}),
    "one log": (json.dumps(LOG, indent=2), {"log": HELLO}),
    "no ids": (lines(*anonymous(HELLO, BYE)), {"chat-1": HELLO, "chat-2": BYE}),
    "no id, alone": (lines(*anonymous(HELLO)), {"chat": HELLO}),
    "no id, in a list": (json.dumps(anonymous(HELLO)), {"chat-1": HELLO}),
    "some ids": (lines(TWO[0], *anonymous(BYE)), {"a": HELLO, "chat-2": BYE}),
    "a number as id": (lines({"id": 7, "messages": BYE}), {"7": BYE}),
    "null as id": (lines({"id": None, "messages": BYE}), {"chat": BYE}),
    "other fields": (lines({**TWO[0], "reward": 1.0}), {"a": HELLO}),
    "no messages": (lines({"id": "a", "messages": []}), {"a": []}),
    "no requests": (lines({"id": "a", "requests": []}), {"a": []}),
    "nothing": ("", {}),
    "an empty list": (" [ ]\n", {}),
    "blank lines": ("\n \n" + lines(*TWO).replace("\n", "\r\n\t\r\n"), "TWO"),
    "a byte order mark": ("\ufeff" + lines(*TWO), "TWO"),
    "no line feed at the end": (lines(*TWO).rstrip(), "TWO"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape(
    name: str,
    run: Any,
    store: Callable[[], dict[str, Any]],
    sent: Callable[[Any], list[Any]],
) -> None:
    text, expected = SHAPES[name]
    wanted: Any = {"a": HELLO, "b": BYE} if expected == "TWO" else expected
    Path("chat.jsonl").write_bytes(text.encode())
    first = run("replay", "chat.jsonl", "--json").json
    assert [c["id"] for c in first["conversations"]] == list(wanted)
    stored = store() if wanted else {}
    assert {name: sent(record) for name, record in stored.items()} == wanted
    for session, record in stored.items():
        ids = [entry.id for entry in record.entries]
        assert ids == [f"{session}/{i}" for i in range(len(ids))]
    again = run("replay", "chat.jsonl", "--json").json
    assert again["conversations"] == first["conversations"]
    assert again["totals"] == first["totals"]
    assert again["run"]["writes"] == again["run"]["written_messages"] == 0
    assert not wanted or store() == stored
    assert wanted or not Path("raf-sessions.db").exists()


def test_several_files(run: Any, store: Callable[[], dict[str, Any]]) -> None:
    Path("one.jsonl").write_text(lines(TWO[0]))
    Path("two.jsonl").write_text(lines(*BYE))
    found = run("replay", "one.jsonl", "two.jsonl", "--json").json
    assert [(c["file"], c["line"], c["id"]) for c in found["conversations"]] == [
        ("one.jsonl", 1, "a"),
        ("two.jsonl", 1, "two"),
    ]
    assert list(store()) == ["a", "two"]


def test_standard_input(run: Any, store: Callable[[], dict[str, Any]]) -> None:
    run("replay", "-", stdin=lines(*HELLO).encode())
    assert list(store()) == ["stdin"]


def test_a_file_without_conversations_is_named(run: Any) -> None:
    Path("empty.jsonl").touch()
    ran = run("replay", "empty.jsonl")
    assert ran.status == 0
    assert ran.err == "raf-session: empty.jsonl: no conversations\n"


def test_what_json_can_hold_passes(
    run: Any,
    store: Callable[[], dict[str, Any]],
    sent: Callable[[Any], list[Any]],
) -> None:
    big = 10**300
    wild = {"role": "user", "content": "\ud800 \0 \u2028", "x": [big, 1, 1.0, True]}
    Path("wild.jsonl").write_text(lines(wild))
    run("replay", "wild.jsonl")
    assert repr(sent(store()["wild"])) == repr([wild])
    assert run("replay", "wild.jsonl", "--json").json["run"]["writes"] == 0


def test_a_file_that_grew_is_continued(
    run: Any,
    store: Callable[[], dict[str, Any]],
    sent: Callable[[Any], list[Any]],
) -> None:
    path = Path("chat.jsonl")
    path.write_text(lines(*HELLO))
    run("replay", "chat.jsonl")
    path.write_text(lines(*HELLO, *BYE))
    found = run("replay", "chat.jsonl", "--json").json
    assert found["run"]["written_messages"] == len(BYE)
    assert found["totals"]["requests"] == 2
    record = store()["chat"]
    assert sent(record) == HELLO + BYE
    assert record.request is not None
    assert record.request.n == 4
