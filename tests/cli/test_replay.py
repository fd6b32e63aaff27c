"""What a replay stores and what it tells."""

from __future__ import annotations

import json
import re
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
    figures: dict[str, Any] = {
        "messages": 6,
        "requests": 2,
        "bytes": first + second,
        "compared_bytes": second,
        "shared_bytes": first,
        "reuse": first / second,
    }
    figures |= {"lost_bytes": 0, "causes": {}, "breaks": 0}
    row = {"id": "talk", "file": "talk.jsonl", "line": 1, **figures}
    assert found["conversations"] == [{**row, "first_break": None, "worst_break": None}]
    assert found["totals"] == {"conversations": 1, **figures, "broken": 0}
    assert found["run"].keys() == {"store", "written_messages", "writes", "seconds"}
    assert found["run"]["written_messages"] == 6
    tracker = PrefixTracker()
    tracker.touch(TALK[:4])
    assert store()["talk"].request == record_of(tracker)


LOGS: dict[str, tuple[list[Any], Any]] = {
    "appended": ([body(TALK[:2]), body(TALK[:4]), body(TALK)], None),
    "repeated": ([body(TALK[:2]), body(TALK[:2]), body(TALK[:4])], None),
    "edited first": (
        [body(TALK[:4]), body([LATER, *TALK[1:]])],
        (2, "messages[0]", "messages[0].content", "system_changed"),
    ),
    "edited middle": (
        [body(TALK), body([*TALK[:3], TALK[1], *TALK[4:]]), body(TALK)],
        (2, "messages[3]", "messages[3].content", "message_edited"),
    ),
    "shortened": (
        [body(TALK), body(TALK[:2]), body(TALK[:5])],
        (2, "messages[2]", "messages[2]", "message_removed"),
    ),
    "emptied": (
        [body(TALK), body([]), body(TALK)],
        (2, "messages[0]", "messages[0]", "message_removed"),
    ),
    "removed": (
        [body(TALK), body([SYSTEM, *TALK[3:]])],
        (2, "messages[1]", "messages[1]", "truncated_head"),
    ),
    "swapped": (
        [body(TALK[:3]), body([SYSTEM, TALK[2], TALK[1]])],
        (2, "messages[1]", "messages[1]", "message_reordered"),
    ),
    "model": (
        [body(TALK[:2], model="a"), body(TALK[:4], model="b")],
        (2, "model", "model", "model"),
    ),
    "only model": (
        [body(TALK, model="a"), body(TALK, model="b")],
        (2, "model", "model", "model"),
    ),
    "tools": (
        [
            body(TALK[:2], model="a", tools=[{"name": "look", "description": "x"}]),
            body(TALK[:4], model="a", tools=[{"name": "look", "description": "x"}]),
            body(TALK, model="a", tools=[{"name": "look", "description": "y"}]),
        ],
        (3, "tools[0].description", "tools[0].description", "tools_changed"),
    ),
    "no tools": ([body(TALK[:2], model="a"), body(TALK, tools=[], model="a")], None),
    "not in front": (
        [
            body(TALK[:2], temperature=0, model="a", stream=True, metadata={"x": 1}),
            {"model": "a", "max_tokens": 9, "user": "u", "messages": TALK[:4]},
        ],
        None,
    ),
    "number form": (
        [body([{**SYSTEM, "x": 1}]), body([{**SYSTEM, "x": 1.0}])],
        (2, "messages[0]", "messages[0].x", "number_form"),
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
    found_break = row["first_break"]
    assert first_break == (
        found_break
        and tuple(found_break[name] for name in ("request", "at", "path", "cause"))
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


TABLE = """\
conversation  messages  requests   bytes  reused %  first break  cause
-------------------------------------------------------------------------------
support-1042        10         5   4,210      75.6  -            -
support-2077        12         6   5,955      63.9  request 4:   system_changed
                                                    messages[0]
-------------------------------------------------------------------------------
total: 2            22        11  10,165      68.7  in 1 of 2

1 break in all: 1 system_changed; 878 bytes lost
"""


def test_the_table(run: Any) -> None:
    ran = run("replay", str(EXAMPLE))
    assert ran.status == 0
    assert ran.err == ""
    *rows, last = ran.out.splitlines(keepends=True)
    assert "".join(rows) == TABLE
    assert last.startswith("28 messages written in ")
    assert last.endswith(" s: raf-sessions.db\n")
    *again, last = run("replay", str(EXAMPLE)).out.splitlines(keepends=True)
    assert again == rows
    assert last.startswith("nothing new to write in ")


def test_breaks_are_counted_by_cause(run: Any) -> None:
    late, later = ([{**SYSTEM, "content": f"It is {n}."}, *TALK[1:]] for n in "67")
    first = [body(m) for m in (TALK[:2], TALK, [SYSTEM, *TALK[3:]], late, later)]
    write("one", requests=first)
    write("two", requests=[body(TALK, model="a"), body(TALK, model="b")])
    found = run("replay", "one.jsonl", "two.jsonl", "--json").json
    one, two = found["conversations"]
    assert one["causes"] == {"system_changed": 2, "truncated_head": 1}
    assert list(one["causes"]) == ["system_changed", "truncated_head"]
    assert (one["breaks"], two["breaks"], found["totals"]["breaks"]) == (3, 1, 4)
    assert found["totals"]["causes"] == {**one["causes"], **two["causes"]}
    assert found["totals"]["broken"] == 2
    worst = one["worst_break"]
    assert (one["first_break"]["request"], worst["request"]) == (3, 5)
    assert worst["before"] == '"It is 6."'
    assert worst["after"] == '"It is 7."'
    assert worst["lost_bytes"] == size(late)
    lost = one["lost_bytes"] + two["lost_bytes"]
    assert found["totals"]["lost_bytes"] == lost
    out = run("replay", "one.jsonl", "two.jsonl").out
    causes = "2 system_changed, 1 truncated_head, 1 model"
    assert f"\n4 breaks in all: {causes}; {lost:,} bytes lost\n" in out


def test_a_long_path_is_shortened(run: Any) -> None:
    deep = {"type": "function", "function": {"name": "look", "parameters": None}}
    tools = [
        {**deep, "function": {"parameters": {"properties": {"\x1b" * 9: {"x": n}}}}}
        for n in (1, 2)
    ]
    path = write("log", requests=[body(TALK, tools=[tool]) for tool in tools])
    found = run("replay", path, "--json").json["conversations"][0]["first_break"]
    assert found["at"] == found["path"]
    rows = run("replay", path).out.splitlines()
    assert re.search(r"request 2: +tools_changed$", rows[2])
    assert rows[3].strip().startswith("tools[0].")
    assert "…" in rows[3]
    assert len(rows[3].strip()) == 20


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
