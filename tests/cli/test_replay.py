"""What a replay stores and what it tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from raf_session.cli.app import app
from raf_session.defaults import record_of
from raf_session.messages import ChatMessage
from raf_session.prefix import PrefixTracker, message_size

SYSTEM = {"role": "system", "content": "The time is 09:14."}
LATER = {"role": "system", "content": "The time is 09:21."}
TALK = [
    SYSTEM,
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": "Two."},
    {"role": "user", "content": "Three?"},
    {"role": "assistant", "content": "Four."},
    {"role": "user", "content": "Five?"},
]
EXAMPLE = Path(__file__).parents[2] / "examples" / "support.requests.jsonl"


def write(name: str, **fields: Any) -> str:
    path = Path(f"{name}.jsonl")
    path.write_text(json.dumps({"id": name, **fields}) + "\n")
    return str(path)


def size(messages: list[Any]) -> int:
    return sum(message_size(ChatMessage.from_openai(m)) for m in messages)


def body(messages: list[Any], **header: Any) -> dict[str, Any]:
    return {"messages": messages, **header}


def test_a_conversation_is_measured(
    run: Any, store: Callable[[], dict[str, Any]]
) -> None:
    found = run("replay", write("talk", messages=TALK), "--json").json
    first, second = size(TALK[:2]), size(TALK[:4])
    figures = {
        "messages": 6,
        "requests": 2,
        "bytes": first + second,
        "compared_bytes": second,
        "shared_bytes": first,
        "reuse": first / second,
    }
    row = {"id": "talk", "file": "talk.jsonl", "line": 1, **figures}
    assert found["conversations"] == [{**row, "first_break": None}]
    assert found["totals"] == {"conversations": 1, **figures, "broken": 0}
    assert found["run"].keys() == {"store", "written_messages", "writes", "seconds"}
    assert found["run"]["written_messages"] == 6
    tracker = PrefixTracker()
    tracker.touch(TALK[:4])
    assert store()["talk"].request == record_of(tracker)


LOGS: dict[str, tuple[list[Any], Any]] = {
    "appended": ([body(TALK[:2]), body(TALK[:4]), body(TALK)], None),
    "repeated": ([body(TALK[:2]), body(TALK[:2]), body(TALK[:4])], None),
    "edited first": ([body(TALK[:4]), body([LATER, *TALK[1:]])], (2, "messages[0]")),
    "edited middle": (
        [body(TALK), body([*TALK[:3], TALK[1], *TALK[4:]]), body(TALK)],
        (2, "messages[3]"),
    ),
    "shortened": ([body(TALK), body(TALK[:2]), body(TALK[:5])], (2, "messages[2]")),
    "emptied": ([body(TALK), body([]), body(TALK)], (2, "messages[0]")),
    "removed": ([body(TALK), body([SYSTEM, *TALK[3:]])], (2, "messages[1]")),
    "swapped": ([body(TALK[:3]), body([SYSTEM, TALK[2], TALK[1]])], (2, "messages[1]")),
    "model": ([body(TALK[:2], model="a"), body(TALK[:4], model="b")], (2, "header")),
    "only model": ([body(TALK, model="a"), body(TALK, model="b")], (2, "header")),
    "tools": (
        [
            body(TALK[:2], model="a"),
            body(TALK[:4], model="a"),
            body(TALK, tools=[], model="a"),
        ],
        (3, "header"),
    ),
    "not in front": (
        [
            body(TALK[:2], temperature=0, model="a", stream=True, metadata={"x": 1}),
            {"model": "a", "max_tokens": 9, "user": "u", "messages": TALK[:4]},
        ],
        None,
    ),
    "number form": (
        [body([{**SYSTEM, "x": 1}]), body([{**SYSTEM, "x": 1.0}])],
        (2, "messages[0]"),
    ),
    "cache mark": ([body([{**SYSTEM, "cache_control": {}}]), body([SYSTEM])], None),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_log(
    name: str,
    run: Any,
    store: Callable[[], dict[str, Any]],
    sent: Callable[[Any], list[Any]],
) -> None:
    requests, first_break = LOGS[name]
    path = write("log", requests=requests)
    found = run("replay", path, "--json").json
    row = found["conversations"][0]
    assert row["requests"] == len(requests)
    assert row["first_break"] == (
        first_break and {"request": first_break[0], "at": first_break[1]}
    )
    stored = store()
    record = stored["log"]
    assert repr(sent(record)) == repr(requests[-1]["messages"])
    assert [entry.id for entry in record.entries] == [
        f"log/{i}" for i in range(len(record.entries))
    ]
    assert record.archived == ()
    assert record.request is not None
    assert record.request.n == row["messages"] == len(requests[-1]["messages"])
    again = run("replay", path, "--json").json
    assert again["conversations"] == found["conversations"]
    assert again["run"]["writes"] == 0
    assert store() == stored


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_broke_off_is_continued(
    name: str, run: Any, store: Callable[[], dict[str, Any]]
) -> None:
    requests, _ = LOGS[name]
    path = write("log", requests=requests)
    whole = run("replay", path, "--json").json["conversations"]
    record = store()["log"]
    Path("raf-sessions.db").unlink()
    for count in range(1, len(requests) + 1):
        write("log", requests=requests[:count])
        found = run("replay", path, "--json").json["conversations"]
    assert found == whole
    plain = [entry.plain for entry in store()["log"].entries]
    assert plain == [entry.plain for entry in record.entries]
    assert store()["log"].request == record.request


def test_the_table(run: Any) -> None:
    ran = run("replay", str(EXAMPLE))
    assert ran.status == 0
    assert ran.err == ""
    rows = ran.out.splitlines()
    assert max(map(len, rows[:-1])) <= 80
    assert all(row == row.rstrip() for row in rows)
    assert rows[0].split("  ")[0] == "conversation"
    assert "request 4: messages[0]" in ran.out
    assert rows[-3].startswith("total: 2")
    assert rows[-1].endswith(" s: raf-sessions.db")
    again = run("replay", str(EXAMPLE)).out.splitlines()
    assert again[:-1] == rows[:-1]
    assert again[-1].startswith("nothing new to write in ")


@pytest.mark.parametrize("columns", ["1", "40", "62", "80", "200"])
def test_a_narrow_terminal_keeps_every_number(
    columns: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    name = "airline-customer-support-2026-11-29-conversation-中文-0042"
    found = run("replay", write(name, messages=TALK * 400), "--json").json["totals"]
    rows = run("replay", f"{name}.jsonl").out.splitlines()
    for number in (found["messages"], found["requests"], found["bytes"]):
        assert f" {number:,} " in rows[2]
    assert rows[2].startswith("air")
    assert "42 " in rows[2]
    assert ("…" in rows[2]) == (columns != "200")


def test_all_rows_are_printed(run: Any) -> None:
    text = "".join(
        json.dumps({"id": f"c{i}", "messages": TALK}) + "\n" for i in range(100)
    )
    Path("many.jsonl").write_text(text)
    rows = run("replay", "many.jsonl").out.splitlines()
    assert [row.split()[0] for row in rows[2:102]] == [f"c{i}" for i in range(100)]


TEXT = st.text(st.characters(), max_size=8)
KEY = st.text(st.characters(), min_size=1, max_size=8)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOAT | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEY, inner, max_size=2),
    max_leaves=4,
)
CALL = st.fixed_dictionaries(
    {"id": TEXT, "type": st.just("function")},
    optional={"function": st.fixed_dictionaries({"name": TEXT, "arguments": TEXT})},
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "developer"])},
    optional={
        "content": TEXT | st.none() | st.lists(st.dictionaries(KEY, JSON, max_size=2)),
        "name": TEXT | st.none(),
        "tool_calls": st.lists(CALL, max_size=2),
        "tool_call_id": TEXT,
        "anything": JSON,
    },
)


@settings(max_examples=25)
@given(st.lists(st.lists(MESSAGE, max_size=6), min_size=1, max_size=3))
def test_every_message_is_read_back(conversations: list[list[Any]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "talks.jsonl")
        text = [json.dumps({"id": f"t{i}", "messages": messages})
                for i, messages in enumerate(conversations)]  # fmt: skip
        path.write_text("\n".join(text))
        store = ("--store", f"sqlite:///{folder}/talks.db")
        runs = [
            json.loads(CliRunner().invoke(app, ["replay", str(path), *store, "--json"])
                .stdout) for _ in range(2)
        ]  # fmt: skip
        assert runs[0]["conversations"] == runs[1]["conversations"]
        assert runs[1]["run"]["writes"] == 0
        for i, messages in enumerate(conversations):
            shown = CliRunner().invoke(app, ["show", f"t{i}", *store, "--json"])
            assert _canonical(json.loads(shown.stdout)["messages"]) == _canonical(
                messages
            )


@settings(max_examples=25)
@given(st.lists(st.lists(MESSAGE, max_size=5), min_size=1, max_size=4))
def test_a_session_follows_any_log(requests: list[list[Any]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        bodies = [{"messages": messages} for messages in requests]
        path.write_text(json.dumps({"id": "log", "requests": bodies}))
        store = ("--store", f"sqlite:///{folder}/log.db")
        for writes in (True, False):
            ran = CliRunner().invoke(app, ["replay", str(path), *store, "--json"])
            assert writes or json.loads(ran.stdout)["run"]["writes"] == 0
        shown = CliRunner().invoke(app, ["show", "log", *store, "--json"])
        assert _canonical(json.loads(shown.stdout)["messages"]) == _canonical(
            requests[-1]
        )


def _canonical(messages: list[Any]) -> str:
    # The order of a message's own fields is ours; numbers keep their form.
    return json.dumps(messages, sort_keys=True)
