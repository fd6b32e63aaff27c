"""What `diff` tells of two bodies: to people, to programs, and by its exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from raf_session.cli.causes import ADVICE
from raf_session.cli.diff_report import MOST_PARTS
from raf_session.cli.ribbon import PartState
from raf_session.prefix_comparison import compare_requests
from raf_session.prefix_match import Cause
from raf_session.provider_rules import RULES

EXAMPLES = Path(__file__).parents[2] / "examples"
BEFORE, AFTER = (EXAMPLES / f"cache-miss.{name}.json" for name in ("before", "after"))

TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look."}}]
TALK = [
    {"role": "system", "content": "The time is 09:14."},
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": "Two."},
    {"role": "user", "content": "Three?"},
    {"role": "assistant", "content": "Four."},
    {"role": "user", "content": "Five?"},
]


def body(messages: list[Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "tools": TOOLS, "messages": messages, **fields}


def write(*bodies: Any, name: str = "log.jsonl") -> str:
    Path(name).write_text("".join(json.dumps(one) + "\n" for one in bodies))
    return name


def diff(run: Any, one: Any, other: Any, *options: str) -> Any:
    return run("diff", write(one, other), *options)


def ribbon(out: str) -> list[str]:
    """Return name, mark and words of each part, without bars and bytes."""
    found = re.findall(r"(?m)^(\S.*?) +([=x~+-])\2* +[\d,]+ bytes  (.*)$", out)
    return [" ".join(parts) for parts in found]


GOES_ON = """\
A  log.jsonl:1  openai-chat, 2 messages
B  log.jsonl:2  openai-chat, 4 messages

B goes on from A: 157 of its 224 bytes (70.0 %) were in A.

model, tools    ========================  81 bytes  as in A
messages[0..1]  =======================   76 bytes  as in A
messages[2..3]  ++++++++++++++++++++      67 bytes  new

B has 57 prompt tokens, estimated at 4 bytes a token (--tokens N sets them).

provider  outcome  reused  reason
-----------------------------------
sglang    hit          40  appended

sglang: The former request begins this one. Expected from the cache: 40 of 57
  tokens.
"""

# People --------------------------------------------------------------------------


def test_a_request_that_goes_on(run: Any) -> None:
    ran = diff(run, body(TALK[:2]), body(TALK[:4]), "--for", "sglang")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == GOES_ON


def test_a_request_that_breaks_off(run: Any) -> None:
    later = [{**TALK[0], "content": "The time is 09:21."}, *TALK[1:4]]
    ran = diff(run, body(TALK[:2]), body(later))
    assert ran.status == 1
    lines = ran.out.splitlines()
    assert lines[3] == "B breaks off from A: system_changed at messages[0].content"
    start = lines.index("messages[0].content")
    assert lines[start + 1 : start + 3] == [
        '- "The time is 09:14."',
        '+ "The time is 09:21."',
    ]
    assert lines[start + 3].startswith("system_changed: The system prompt is no longer")
    assert ADVICE[Cause.SYSTEM_CHANGED].remedy.split(",")[0] in ran.out
    assert ribbon(ran.out) == [
        "model, tools = as in A",
        "messages[0] x changed",
        "messages[1] ~ as in A, but behind the break",
        "messages[2..3] + new",
    ]


def image(data: str) -> dict[str, Any]:
    url = {"url": f"data:image/png;base64,{data}"}
    return {"role": "user", "content": [{"type": "image_url", "image_url": url}]}


RIBBONS: dict[str, tuple[Any, Any, list[str]]] = {
    "nothing": (body([]), body([]), ["model, tools = as in A"]),
    "truncated": (
        body(TALK[:4]),
        body([TALK[0], *TALK[3:]]),
        [
            "model, tools = as in A",
            "messages[0] = as in A",
            "messages[1..2] - in A only",
            "messages[1] ~ as in A, but behind the break",
            "messages[2..3] + new",
        ],
    ),
    "ended": (
        body(TALK),
        body(TALK[:2]),
        [
            "model, tools = as in A",
            "messages[0..1] = as in A",
            "messages[2..5] - in A only",
        ],
    ),
    "put in front": (
        body(TALK[1:3]),
        body(TALK[:3]),
        [
            "model, tools = as in A",
            "messages[0] + new",
            "messages[1..2] ~ as in A, but behind the break",
        ],
    ),
    "model": (
        body(TALK[:2]),
        body(TALK[:3], model="n"),
        [
            "model x changed",
            "tools ~ as in A, but behind the break",
            "messages[0..1] ~ as in A, but behind the break",
            "messages[2] + new",
        ],
    ),
    "no tools": (
        body(TALK[:2]),
        body(TALK[:2], tools=[]),
        [
            "model = as in A",
            "tools - in A only",
            "messages[0..1] ~ as in A, but behind the break",
        ],
    ),
    "parameter": (
        body(TALK[:1]),
        body(TALK[:1], reasoning_effort="low"),
        [
            "model, tools = as in A",
            "reasoning_effort + new",
            "messages[0] ~ as in A, but behind the break",
        ],
    ),
    "twice the same": (
        body([TALK[1], TALK[1], TALK[2]]),
        body([TALK[1], TALK[2], TALK[1], TALK[1]]),
        [
            "model, tools = as in A",
            "messages[0] = as in A",
            "messages[1..2] ~ as in A, but behind the break",
            "messages[3] + new",
        ],
    ),
    "image": (
        body([image("AAAA")]),
        body([image("BBBB"), TALK[2]]),
        ["model, tools = as in A", "messages[0] x changed", "messages[1] + new"],
    ),
    "input": (
        {"model": "m", "instructions": "Be", "input": "hi"},
        {"model": "m", "instructions": "Do", "input": "hi"},
        [
            "model = as in A",
            "instructions x changed",
            "input[0] ~ as in A, but behind the break",
        ],
    ),
}


@pytest.mark.parametrize("name", RIBBONS)
def test_the_ribbon(name: str, run: Any) -> None:
    one, other, expected = RIBBONS[name]
    assert ribbon(diff(run, one, other).out) == expected
    found = json.loads(diff(run, one, other, "--json").out)
    sizes = [p["bytes"] for p in found["parts"] if p["state"] != PartState.GONE]
    rest = found["header_bytes"] + found["bytes"] - sum(sizes)
    assert 0 <= rest < 8  # the header as an object


def test_a_ribbon_of_many_parts_is_cut(run: Any) -> None:
    messages = [{"role": "user", "content": f"{i} {'x' * i}"} for i in range(99)]
    mixed = [m if i % 2 else {**m, "x": 1} for i, m in enumerate(messages)]
    ran = diff(run, body(messages), body(mixed))
    assert len(ribbon(ran.out)) == MOST_PARTS
    assert re.search(r"(?m)^… and 76 more parts, [\d,]+ bytes$", ran.out)


def test_every_cause_has_advice() -> None:
    assert set(ADVICE) == set(Cause)
    for cause, advice in ADVICE.items():
        assert advice.meaning.endswith(".")
        assert advice.remedy.endswith(".") == (cause is not Cause.NONE)


@pytest.mark.parametrize("columns", ["1", "40", "80", "200"])
def test_a_narrow_terminal(
    columns: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    ran = run("diff", str(BEFORE), str(AFTER), "--for", "all")
    assert ran.status == 1
    assert "\x1b" not in ran.out
    assert all(line == line.rstrip() for line in ran.out.splitlines())
    assert max(map(len, ran.out.splitlines())) <= max(int(columns), 72)
    assert all(f"\n{name} " in ran.out for name in RULES)
    assert " 3,442 bytes " in ran.out


def test_what_a_value_holds_does_not_move_the_cursor(run: Any) -> None:
    wild = "\x1b[2J\r\u202e\u2028\x9b\ud800 中文" + "y" * 10_000
    one, other = body([{"role": "user", "content": "\x07" + wild, wild: 1}]), body([])
    two = body([{"role": "user", "content": wild, wild: 2}], prompt_cache_key="\x1b[")
    for ran in (diff(run, one, two), diff(run, two, other), diff(run, other, one)):
        assert ran.status in {0, 1}
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\ud800]", ran.out)
        assert max(map(len, ran.out.splitlines())) < 120


def test_a_cache_key_is_shown(run: Any) -> None:
    keyed = body(TALK, prompt_cache_key="b")
    ran = diff(run, body(TALK[:1]), keyed, "--for", "openai", "--tokens", "9999")
    assert ran.status == 0
    assert "\nprompt_cache_key\n- (none)\n+ b\n" in ran.out
    assert re.search(r"(?m)^openai +miss +0 +key_changed$", ran.out)


def test_a_form_that_some_render_alike_is_told(run: Any) -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "One?"}]}]
    out = diff(run, body(TALK[1:2]), body(parts)).out
    assert "A and B differ in forms alone" in out


# Programs ------------------------------------------------------------------------


def test_json_has_what_python_has(run: Any) -> None:
    ran = run("diff", str(BEFORE), str(AFTER), "--json")
    assert (ran.status, ran.err) == (1, "")
    found = json.loads(ran.out)
    one, other = (json.loads(path.read_text()) for path in (BEFORE, AFTER))
    match = compare_requests(one, other)
    for name in match._fields:
        if name not in {"first_difference", "caching"}:
            assert found[name] == getattr(match, name)
    assert found["append_only"] is False
    assert found["cause"] == "system_changed"
    difference = found["first_difference"]
    assert difference["section"] == "system"
    assert difference["index"] is None
    assert difference["path"].startswith("system")
    assert "09:14:05" in difference["before"]
    assert "09:14:21" in difference["after"]
    assert difference["only_form"] is False
    assert match.caching is not None
    assert found["caching"]["model"] == "claude-sonnet-4-5"
    assert found["caching"]["keys"] == {}
    assert found["previous"] == {"file": str(BEFORE), "line": None, "path": ""}
    assert found["shape"] == "anthropic"
    assert found["tokens_from"] == "estimated"
    assert found["usage"] is None
    assert [part["state"] for part in found["parts"]] == [
        "shared",
        "changed",
        "behind",
        "new",
    ]
    assert [one["provider"] for one in found["verdicts"]] == ["anthropic", "bedrock"]
    assert found["verdicts"][0].keys() == {
        *("provider", "outcome", "reason", "reusable_tokens", "tokens"),
        *("ttl_left_seconds", "reported_tokens", "explanation", "rules"),
    }


DEFAULTS = {
    (): ["openai", "openai-5.5", "deepseek", "vllm", "sglang"],
    ("--provider", "openai"): ["openai", "openai-5.5"],
    ("--provider", "vllm"): ["vllm"],
    ("--provider", "anthropic"): ["anthropic", "bedrock"],
    ("--for", "gemini", "--for", "vllm", "--for", "gemini"): ["gemini", "vllm"],
    ("--for", "vllm", "--for", "all"): list(RULES),
}


@pytest.mark.parametrize("options", DEFAULTS)
def test_whose_cache_is_asked_about(options: tuple[str, ...], run: Any) -> None:
    plain: list[Any] = [{"model": "m", "messages": TALK[1:n]} for n in (2, 4)]
    found = diff(run, *plain, "--json", *options).json
    assert [one["provider"] for one in found["verdicts"]] == DEFAULTS[options]


def test_numbers_are_passed_on(run: Any) -> None:
    bodies = body(TALK[:5], prompt_cache_key="k"), body(TALK, prompt_cache_key="k")
    options = ("--json", "--tokens", "100000")
    found = diff(run, *bodies, *options, "--for", "vllm", "--block-size", "512").json
    assert found["tokens"] == found["verdicts"][0]["tokens"] == 100_000
    assert found["tokens_from"] == "given"
    assert found["verdicts"][0]["reusable_tokens"] % 512 == 0
    found = diff(run, *bodies, *options, "--for", "openai", "--elapsed", "9999").json
    assert found["verdicts"][0]["reason"] == "expired"


USAGE = {"prompt_tokens": 5000, "prompt_tokens_details": {"cached_tokens": 0}}


@pytest.mark.parametrize(
    "entry",
    [
        {"request": body(TALK), "usage": USAGE},
        {"body": body(TALK), "response": {"usage": USAGE}},
        {"body": body(TALK), "response": {"status": 200, "body": {"usage": USAGE}}},
    ],
)
def test_usage_of_a_log_is_held_against_one_provider(entry: Any, run: Any) -> None:
    former = {"request": body(TALK[:5]), "usage": None}
    path = write(former, entry)
    found = run("diff", path, "--json", "--for", "openai").json
    assert (found["tokens"], found["tokens_from"]) == (5000, "reported")
    assert found["usage"]["prompt_cache_hit_tokens"] == 0
    assert found["verdicts"][0]["reason"] == "provider_side_miss"
    several = run("diff", path, "--json").json
    assert {one["reported_tokens"] for one in several["verdicts"]} == {None}
    assert "reported 0\n  from cache; --for NAME" in run("diff", path).out
    assert run("diff", path, "--tokens", "7", "--json").json["tokens"] == 7
