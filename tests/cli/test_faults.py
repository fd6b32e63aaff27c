"""Every fault: one line that says where, exit status 2, what was before it stored."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = '{"id": "good", "messages": [{"role": "user", "content": "Hi"}]}'
MESSAGE = '{"role": "user", "content": "Hi"}'
DEEP = "[" * 300 + "]" * 300

BROKEN = {
    '{"id": "x", "messages": [{"role": "user"': "not JSON",
    '{"id": "x", "messages": []} {}': "not JSON: Extra data",
    '{"id": "x", "messages": NaN}': "NaN is not a JSON number",
    '{"id": "x", "messages": [' + "9" * 5000 + "]}": "not JSON: Exceeds the limit",
    "[" * 100_000: "nested too deeply",
    "\0\0": "binary data",
    '{"id": "x\0"}': "binary data",
    "7": "a number where a conversation",
    "[]": "a list where a conversation",
    '{"content": "x"}': 'without "messages", "requests" or "role"',
    MESSAGE: "a message in a file that began with a conversation",
    '{"model": "m", "messages": []}': "a request in a file that began with a conv",
    '{"contents": []}': "a request in a file that began with a conversation",
    '{"requests": []}': "a request log in a file that began with a conversation",
    '{"id": "x", "messages": {}}': "messages: an object where a list",
    '{"id": "x", "messages": [null]}': "messages[0]: null where a message",
    '{"id": "x", "messages": [{}]}': "messages[0]: a message without role",
    '{"id": "x", "messages": [{"role": "alien"}]}': "messages[0].role: 'alien'",
    f'{{"id": "x", "messages": [{{"role": "user", "x": {DEEP}}}]}}': "nested deeper",
    '{"id": "x", "messages": [{"role": "user", "x": 1e999}]}': "not a JSON number",
    '{"id": "", "messages": []}': "id is empty",
    '{"id": [], "messages": []}': "id is list, not a string",
    '{"id": true, "messages": []}': "id is bool, not a string",
    '{"id": "\\ud800", "messages": []}': "id holds a surrogate",
    f'{{"id": "{"x" * 501}", "messages": []}}': "id is longer than 500 bytes",
    '{"id": "good", "messages": []}': "the id 'good' was taken at some.jsonl:1",
}


@pytest.mark.parametrize("line", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_line(
    line: str, run: Any, store: Callable[[], dict[str, Any]]
) -> None:
    Path("some.jsonl").write_text(f"{GOOD}\n\n{line}\n{GOOD}\n")
    fault = run("replay", "some.jsonl").fault
    assert fault.startswith("some.jsonl:3: ")
    assert BROKEN[line] in fault
    assert list(store()) == ["good"]


def test_bytes_that_are_not_utf8(run: Any, store: Callable[[], dict[str, Any]]) -> None:
    Path("some.jsonl").write_bytes(f"{GOOD}\n".encode() + b'{"id": "\xff"}\n')
    assert run("replay", "some.jsonl").fault == "some.jsonl:2: not UTF-8 text"
    assert list(store()) == ["good"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"content": "x"}', "a message without role"),
        ('{"role": "user"', "not JSON"),
        ("null", "null where a message is expected"),
        (GOOD, "a conversation in a file that began with a message"),
        ('{"requests": []}', "a request log in a file that began with a message"),
        ('{"model": "m", "input": "Hi"}', "a request in a file that began with a mess"),
    ],
)
def test_a_broken_message_ends_what_is_stored(
    line: str, reason: str, run: Any, store: Callable[[], dict[str, Any]]
) -> None:
    good = (MESSAGE, MESSAGE.replace("user", "assistant"), MESSAGE)
    path = Path("chat.jsonl")
    path.write_text("\n".join((*good, line, MESSAGE)))
    fault = run("replay", "chat.jsonl").fault
    assert fault.startswith("chat.jsonl:4: ")
    assert reason in fault
    assert store()["chat"].head.active.messages == 3
    path.write_text("\n".join((*good, MESSAGE)))
    assert run("replay", "chat.jsonl", "--json").json["run"]["written_messages"] == 1


def test_a_broken_first_message_makes_nothing(run: Any) -> None:
    Path("chat.jsonl").write_text('{"role": "alien"}\n')
    assert run("replay", "chat.jsonl").fault == "chat.jsonl:1: role: 'alien' is no role"
    assert not Path("raf-sessions.db").exists()


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (f"[\n{GOOD},\n{{,\n{GOOD}]", 3, "not JSON: Expecting property name"),
        (f"[\n{GOOD}\n{GOOD}]", 3, "',' or ']' expected"),
        (f"[\n{GOOD}\n", 2, "',' or ']' expected"),
        (f"[{GOOD}]\n[{GOOD}]", 2, "text after the end of the list"),
        (f"[\n{GOOD},\n\nNaN]", 4, "NaN is not a JSON number"),
        (f"[\n{GOOD},\n\n{'[' * 100_000}", 4, "nested too deeply"),
        (f"[\n{GOOD},\n]", 3, "not JSON: "),
        (f"[\n{GOOD},\n7]", 3, "a number where a conversation"),
    ],
    ids=range(8),
)
def test_a_broken_list(
    text: str, line: int, reason: str, run: Any, store: Callable[[], dict[str, Any]]
) -> None:
    Path("some.json").write_text(text)
    fault = run("replay", "some.json").fault
    assert fault.startswith(f"some.json:{line}: ")
    assert reason in fault
    assert list(store()) == ["good"]


def test_a_broken_object_over_lines(run: Any) -> None:
    Path("some.json").write_text('{\n"messages": [\n}')
    assert run("replay", "some.json").fault.startswith("some.json:3: not JSON: ")


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ({}, "requests: an object where a list is expected"),
        ([[]], "requests[0]: a list where a request body is expected"),
        ([{"messages": []}, {}], "requests[1].messages: missing"),
        ([{"body": {"messages": 7}}], "requests[0].body.messages: a number where"),
        (
            [{"messages": [7]}],
            "requests[0].messages[0]: a number where a message is expected",
        ),
        ([{"contents": [{"role": 7}]}], "requests[0].contents[0].role: 7 is no role"),
        (
            [{"input": "x", "conversation": "c"}],
            "requests[0].conversation: the history",
        ),
        (
            [{"messages": "x"}],
            "requests[0].messages: a string where a list is expected",
        ),
        ([{"messages": [{"role": 1}]}], "requests[0].messages[0].role: 1 is no role"),
        ([{"messages": [], "tools": json.loads(DEEP)}], "requests[0].tools"),
    ],
)
def test_a_broken_log(requests: Any, reason: str, run: Any) -> None:
    log = json.dumps({"id": "x", "requests": requests})
    Path("some.jsonl").write_text(f"\n{log}\n")
    fault = run("replay", "some.jsonl").fault
    assert fault.startswith("some.jsonl:2: ")
    assert reason in fault


def test_files_that_cannot_be_read(
    run: Any, store: Callable[[], dict[str, Any]]
) -> None:
    Path("good.jsonl").write_text(GOOD)
    Path("folder").mkdir()
    missing = os.strerror(2)
    assert run("replay", "no.jsonl").fault == f"no.jsonl: {missing}"
    assert not Path("raf-sessions.db").exists()
    assert run("replay", "good.jsonl", "no.jsonl").fault == f"no.jsonl: {missing}"
    assert list(store()) == ["good"]
    assert run("replay", "folder").fault.startswith("folder: ")
    assert run("replay", "a\n\x1b[2J").fault == f"a\\n\\x1b[2J: {missing}"
    assert run("replay", "a\0").fault.startswith("a\\x00: ")


def test_the_same_id_in_two_files(run: Any) -> None:
    Path("one.jsonl").write_text(GOOD)
    Path("two.jsonl").write_text(f"\n{GOOD}")
    fault = run("replay", "one.jsonl", "two.jsonl").fault
    assert fault == "two.jsonl:2: the id 'good' was taken at one.jsonl:1"


@pytest.mark.parametrize(
    "line",
    [
        GOOD.replace("Hi", "Ho"),
        '{"id": "good", "messages": []}',
        '{"id": "good", "requests": [{"messages": [{"role": "user"}]}]}',
        '{"id": "good", "requests": []}',
        '{"id": "good", "messages": [{"role": "user", "content": "Hi", "x": 1}]}',
    ],
)
def test_the_store_holds_something_else(
    line: str, run: Any, store: Callable[[], dict[str, Any]]
) -> None:
    Path("good.jsonl").write_text(GOOD)
    run("replay", "good.jsonl")
    before = store()
    Path("other.jsonl").write_text(line)
    fault = run("replay", "other.jsonl").fault
    assert fault.startswith("other.jsonl:1: the store holds another session 'good'")
    assert store() == before


@pytest.mark.parametrize("command", [("list",), ("show", "x"), ("replay", "g.jsonl")])
def test_stores_that_cannot_be_opened(command: tuple[str, ...], run: Any) -> None:
    Path("g.jsonl").write_text(GOOD)
    Path("text.db").write_text("hello, hello, hello, hello\n" * 40)
    fault = run(*command, "--store", "sqlite:///text.db").fault
    assert fault.startswith("text.db: ")
    assert "--store" in run(*command, "--store", "text.db").fault
    assert "--store" in run(*command, "--store", "sqlite:///").fault


@pytest.mark.parametrize("command", [("list",), ("show", "x")])
def test_reading_makes_no_database(command: tuple[str, ...], run: Any) -> None:
    assert run(*command).fault == "raf-sessions.db: no such database"
    assert not list(Path().iterdir())


def test_a_damaged_session(run: Any) -> None:
    Path("good.jsonl").write_text(GOOD)
    run("replay", "good.jsonl")
    with sqlite3.connect("raf-sessions.db") as database:
        database.execute("UPDATE entries SET body = '{'")
    database.close()
    assert run("show", "good").fault.startswith("raf-sessions.db: session 'good'")
    assert run("replay", "good.jsonl").fault.startswith("raf-sessions.db: session")
