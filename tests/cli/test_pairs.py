"""How the arguments of `diff` name two bodies, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raf_session.provider_rules import RULES

HI = {"role": "user", "content": "Hi"}
HO = {"role": "assistant", "content": "Ho"}
ONE = {"model": "m", "messages": [HI]}
TWO = {"model": "m", "messages": [HI, HO]}
THREE = {"model": "m", "messages": [HI, HO, HI]}
CLAUDE = {"model": "m", "system": "Be", "messages": [HI]}
PLACES = {
    "one.json": json.dumps(ONE, indent=1),
    "two.json": json.dumps(TWO),
    "three.json": json.dumps([THREE]),
    "claude.json": json.dumps(CLAUDE),
    "log.jsonl": f"{json.dumps(ONE)}\n\n{json.dumps(TWO)}\n{json.dumps(THREE)}\n{{\n",
    "pair.jsonl": f"\n{json.dumps(ONE)}\n{json.dumps(TWO)}\n",
    "list.json": json.dumps([ONE, TWO]),
    "lines.json": f"[\n{json.dumps(ONE)},\n{json.dumps(TWO)},\n{json.dumps(THREE)}]",
    "pairs.json": json.dumps([{"request_n": ONE, "request_n1": TWO}]),
    "held.json": json.dumps({"id": 1, "request_n": ONE, "request_n1": TWO}),
    "wrapped.json": json.dumps(
        {"previous": {"body": ONE}, "current": {"request": TWO}}
    ),
    "logs.jsonl": json.dumps({"id": "x", "requests": [ONE, TWO, THREE]}),
    "short.jsonl": json.dumps({"id": "x", "requests": [ONE]}),
    "odd.jsonl": json.dumps({"id": "x", "requests": 7}),
    "name.jsonl:1": json.dumps(ONE),
    "empty.jsonl": "",
    "number.json": "7",
    "text.json": "hello",
    "none.json": "{}",
    "alien.json": '{"messages": [{"role": "alien"}]}',
    "deep.json": '{"messages": [], "tools": ' + "[" * 300 + "]" * 300 + "}",
    "badusage.json": json.dumps({"request": ONE, "usage": {"prompt_tokens": "x"}}),
    "nousage.json": json.dumps({"request": ONE, "usage": {}}),
}


@pytest.fixture(autouse=True)
def _files(run: Any) -> None:
    assert run
    for name, text in PLACES.items():
        Path(name).write_text(text)


PAIRS = {
    ("one.json", "two.json"): ("one.json None ", "two.json None ", 1, 2),
    ("two.json", "three.json"): ("two.json None ", "three.json None ", 2, 3),
    ("log.jsonl:1", "log.jsonl:3"): ("log.jsonl 1 ", "log.jsonl 3 ", 1, 2),
    ("name.jsonl:1", "two.json"): ("name.jsonl:1 None ", "two.json None ", 1, 2),
    ("log.jsonl:3",): ("log.jsonl 1 ", "log.jsonl 3 ", 1, 2),
    ("log.jsonl:4",): ("log.jsonl 3 ", "log.jsonl 4 ", 2, 3),
    ("lines.json:4",): ("lines.json 3 ", "lines.json 4 ", 2, 3),
    ("one.json:1", "lines.json:3"): ("one.json 1 ", "lines.json 3 ", 1, 2),
    ("pair.jsonl",): ("pair.jsonl 2 ", "pair.jsonl 3 ", 1, 2),
    ("list.json",): ("list.json None [0]", "list.json None [1]", 1, 2),
    ("pairs.json",): (
        "pairs.json None request_n",
        "pairs.json None request_n1",
        1,
        2,
    ),
    ("pairs.json:1",): ("pairs.json 1 request_n", "pairs.json 1 request_n1", 1, 2),
    ("held.json",): ("held.json None request_n", "held.json None request_n1", 1, 2),
    ("wrapped.json",): (
        "wrapped.json None previous.body",
        "wrapped.json None current.request",
        1,
        2,
    ),
    ("logs.jsonl:1",): ("logs.jsonl 1 requests[1]", "logs.jsonl 1 requests[2]", 2, 3),
    ("nousage.json", "two.json"): (
        "nousage.json None request",
        "two.json None ",
        1,
        2,
    ),
}


@pytest.mark.parametrize("arguments", PAIRS)
def test_a_pair(arguments: tuple[str, ...], run: Any) -> None:
    found = run("diff", *arguments, "--json").json
    places = [
        f"{body['file']} {body['line']} {body['path']}"
        for body in (found["previous"], found["current"])
    ]
    counts = found["previous_messages"], found["messages"]
    assert (*places, *counts) == PAIRS[arguments]


def test_standard_input(run: Any) -> None:
    one, both = json.dumps(ONE).encode(), PLACES["pair.jsonl"].encode()
    assert run("diff", "-", "two.json", stdin=one).status == 0
    assert run("diff", "two.json", "-", stdin=one).status == 1
    for name in ("-", "-:3"):
        found = run("diff", "--json", "--", name, stdin=both).json
        assert [found[key]["line"] for key in ("previous", "current")] == [2, 3]
    assert run("diff", "--", "-", "-:2", stdin=both).fault.startswith(
        "-: standard input is"
    )


FAULTS = {
    ("no.json", "two.json"): "no.json: ",
    ("no.json:3", "two.json"): "no.json: ",
    ("one.json",): "one.json: one body alone",
    ("log.jsonl:1",): "log.jsonl:1: one body alone",
    ("log.jsonl:2",): "log.jsonl:2: no value begins on this line",
    ("log.jsonl:0", "two.json"): "log.jsonl:0: no value begins on this line",
    ("log.jsonl:99", "two.json"): "log.jsonl:99: no value begins on this line",
    ("lines.json:9",): "lines.json:9: no value begins on this line",
    ("log.jsonl:5",): "log.jsonl:5: not JSON",
    ("one.json:2", "two.json"): "one.json:2: not JSON",
    ("log.jsonl",): "log.jsonl: more than two bodies: name one, as FILE:LINE",
    ("pair.jsonl", "two.json"): "pair.jsonl: several bodies: name one, as FILE:LINE",
    ("held.json", "two.json"): "held.json: two bodies or more",
    ("one.json", "logs.jsonl:1"): "logs.jsonl:1: two bodies or more",
    ("short.jsonl",): "short.jsonl: requests: fewer than two",
    ("odd.jsonl",): "odd.jsonl: requests: a number where a list is expected",
    ("empty.jsonl",): "empty.jsonl: no request body",
    ("empty.jsonl", "two.json"): "empty.jsonl: no request body",
    ("number.json", "two.json"): "number.json: a number where a request body",
    ("text.json", "two.json"): "text.json:1: not JSON",
    ("none.json", "two.json"): "none.json: messages: missing",
    ("one.json", "alien.json"): "alien.json: messages[0].role: 'alien' is no role",
    ("one.json", "deep.json"): "deep.json: tools",
    ("one.json", "badusage.json"): "badusage.json: usage.prompt_tokens: ",
    ("claude.json", "lines.json:3", "--provider", "gemini"): "claude.json: contents: ",
    ("one.json", "two.json", "--provider", "x\n"): "--provider: 'x\\n' is no shape",
    ("one.json", "two.json", "--for", "x"): "--for: no rules for 'x' (known: ",
    ("one.json", "two.json", "--elapsed", "inf"): "--elapsed: elapsed_seconds=inf",
}


@pytest.mark.parametrize("arguments", FAULTS)
def test_a_fault(arguments: tuple[str, ...], run: Any) -> None:
    fault = run("diff", *arguments).fault
    assert fault.startswith(FAULTS[arguments])


def test_bodies_of_two_apis(run: Any) -> None:
    Path("chat.json").write_text(json.dumps({**ONE, "seed": 1}))
    fault = run("diff", "chat.json", "claude.json").fault
    assert fault == (
        "claude.json: a request of anthropic after one of openai-chat: "
        "they share no cache"
    )
    assert run("diff", "one.json", "claude.json", "--json").status == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--tokens", "-1"),
        ("--tokens", "x"),
        ("--block-size", "0"),
        ("--elapsed", "-1"),
        ("--elapsed", "nan"),
        ("three.json",),
    ],
)
def test_a_wrong_option(options: tuple[str, ...], run: Any) -> None:
    ran = run("diff", "one.json", "two.json", *options)
    assert (ran.status, ran.out) == (2, "")


def test_the_help_names_the_providers(run: Any) -> None:
    assert {"vllm", "anthropic"} <= set(RULES)
    out = run("diff", "--help").out
    assert "FILE:LINE" in out
    assert "Exit status: 0 where B appends to A, 1 where it breaks off" in out
