"""The published pairs of request bodies break, or do not, where and why they say."""

from __future__ import annotations

import copy
import json
import runpy
import struct
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from raf_session.body_paths import in_body
from raf_session.prefix_comparison import compare_requests
from raf_session.prefix_history import PrefixHistory
from raf_session.prefix_match import Cause, PrefixMatch
from raf_session.request_shapes import RequestShape, read_request, shape_of
from raf_session.usage_reports import read_usage
from raf_session.verdicts import verdict

PATH = Path(__file__).parents[1] / "vectors" / "prefix-breaks-v1.json"
Pair = dict[str, Any]
PAIRS: list[Pair] = json.loads(PATH.read_text(encoding="ascii"))
BREAKS = [pair for pair in PAIRS if not pair["append_only"]]
MESSAGES = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
    "bedrock": "messages",
}


def _named(pairs: list[Pair]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pair", pairs, ids=lambda pair: pair["name"])


def _compare(pair: Pair, *, turned: bool = False) -> PrefixMatch:
    sides = ("current", "previous") if turned else ("previous", "current")
    return compare_requests(*(pair[side] for side in sides), provider=pair["shape"])


def _told(match: PrefixMatch) -> tuple[bool, str, str | None]:
    difference = match.first_difference
    return (
        match.append_only,
        match.cause.value,
        None if difference is None else str(difference),
    )


def _expected(pair: Pair) -> tuple[bool, str, str | None]:
    return pair["append_only"], pair["cause"], pair["path"]


# The answers ---------------------------------------------------------------------


@_named(PAIRS)
def test_cause_and_path(pair: Pair) -> None:
    before = copy.deepcopy(pair)
    match = _compare(pair)
    assert _told(match) == _expected(pair)
    assert pair == before  # neither body was changed


@_named(PAIRS)
def test_the_api_is_told_from_the_bodies(pair: Pair) -> None:
    shapes = [shape_of(pair[side]) for side in ("previous", "current")]
    certain = {shape for shape, certain in shapes if certain}
    assert certain <= {pair["shape"]}
    match = compare_requests(pair["previous"], pair["current"])
    assert match == _compare(pair)


@_named(PAIRS)
def test_a_history_says_the_same(pair: Pair) -> None:
    history = PrefixHistory()
    first = history.touch_request(pair["previous"])
    assert first.first
    assert first.append_only
    match = history.touch_request(pair["current"])
    assert match == _compare(pair)
    assert history.breaks == (not pair["append_only"])
    assert history.causes == ({} if pair["append_only"] else {match.cause: 1})


@_named(PAIRS)
def test_each_twin_says_the_same(prefix_impl: ModuleType, pair: Pair) -> None:
    shape: str = pair["shape"]
    tracker: Any = prefix_impl.PrefixTracker()
    for side in ("previous", "current"):
        request = read_request(pair[side], shape)
        match: PrefixMatch = tracker.touch(request.messages, request.header)
        digests = [prefix_impl.message_digest(m) for m in request.messages]
        assert tracker.digests == struct.pack(f"<{len(digests)}Q", *digests)
        assert tracker.header_digest == prefix_impl.header_digest(request.header)
        links = prefix_impl.prefix_hashes(request.messages)
        assert match.hash == (links[-1] if links else prefix_impl.ROOT)
        match = in_body(match, request, pair[side])
    assert match == _compare(pair)._replace(caching=None)


VERDICTS = [
    pytest.param(pair, provider, id=f"{pair['name']} ({provider})")
    for pair in PAIRS
    for provider in pair.get("verdicts", ())
]


@pytest.mark.parametrize(("pair", "provider"), VERDICTS)
def test_verdicts(pair: Pair, provider: str) -> None:
    wanted: dict[str, Any] = pair["verdicts"][provider]
    usage = wanted.get("usage")
    found = verdict(
        _compare(pair),
        provider,
        tokens=wanted["tokens"],
        shared_tokens=wanted.get("shared_tokens"),
        usage=None if usage is None else read_usage(usage),
    )
    assert (found.outcome.value, found.reason.value) == (
        wanted["outcome"],
        wanted["reason"],
    ), found.explanation
    if "reusable_tokens" in wanted:
        assert found.reusable_tokens == wanted["reusable_tokens"]
    if pair["report"] == 23:
        assert ("not your bytes" in found.explanation) == (found.outcome == "miss")


@_named([pair for pair in PAIRS if "keys" in pair])
def test_cache_keys(pair: Pair) -> None:
    hints = _compare(pair).caching
    assert hints is not None
    assert [list(values) for values in hints.keys.values()] == [pair["keys"]]


# From a stored record ------------------------------------------------------------


@_named(BREAKS)
def test_of_a_stored_record_nothing_is_guessed(
    prefix_impl: ModuleType, pair: Pair
) -> None:
    """Digests alone tell where; the cause is the right one, or it is unknown."""
    shape: str = pair["shape"]
    former = read_request(pair["previous"], shape)
    tracker: Any = prefix_impl.PrefixTracker()
    recorded = tracker.touch(former.messages, former.header)
    restored: Any = prefix_impl.PrefixTracker.restore(
        tracker.digests, tracker.header_digest, recorded.hash
    )
    request = read_request(pair["current"], shape)
    match: PrefixMatch = restored.touch(request.messages, request.header)
    full = _compare(pair)
    assert not match.append_only
    assert match.first_different == full.first_different
    assert match.header_changed == full.header_changed
    difference = match.first_difference
    assert difference is not None
    if match.header_changed:
        assert match.cause is Cause.UNKNOWN
        assert difference.path == "header"
        return
    assert full.first_difference is not None
    assert difference.index == full.first_difference.index
    assert difference.path == f"messages[{difference.index}]"
    if match.cause is not Cause.UNKNOWN:  # what stood there does not matter
        assert match.cause in HISTORY
        assert full.cause in {match.cause, Cause.REASONING_DROPPED}


HISTORY = {
    Cause.MESSAGE_REMOVED,
    Cause.MESSAGE_REORDERED,
    Cause.MESSAGE_EDITED,
    Cause.TRUNCATED_HEAD,
    Cause.COMPACTED,
    Cause.SYSTEM_CHANGED,
}


# The other way round, and elsewhere ----------------------------------------------


@_named(PAIRS)
def test_the_other_way_round(pair: Pair) -> None:
    match, forward = _compare(pair, turned=True), _compare(pair)
    if forward.header_changed or pair["cause"] == "message_edited":
        assert not match.append_only
    assert match.header_changed == forward.header_changed
    if not match.append_only and not forward.append_only:
        one, other = match.first_difference, forward.first_difference
        assert one is not None
        assert other is not None
        assert (one.section, one.index) == (other.section, other.index)
        assert one.only_form == other.only_form or match.messages != forward.messages
    if pair["cause"] in {"key_order", "whitespace", "unicode", "number_form"}:
        assert match.cause == forward.cause
        assert _told(match)[2] == pair["path"]


TURNED = {"tools_added": "tools_removed", "tools_removed": "tools_added"}


@_named([pair for pair in PAIRS if pair["cause"].startswith("tools_")])
def test_tools_the_other_way_round(pair: Pair) -> None:
    cause = pair["cause"]
    assert _compare(pair, turned=True).cause.value == TURNED.get(cause, cause)


def _listed(pair: Pair) -> bool:
    name = MESSAGES[pair["shape"]]
    return all(isinstance(pair[side][name], list) for side in ("previous", "current"))


def _extra(shape: str, number: int) -> list[dict[str, Any]]:
    texts = [f"Extra question {number}.", f"Extra answer {number}."]
    if shape == "gemini":
        user, model = [[{"text": text}] for text in texts]
        return [{"role": "user", "parts": user}, {"role": "model", "parts": model}]
    content: list[Any] = [[{"text": t}] for t in texts] if shape == "bedrock" else texts
    return [
        {"role": "user", "content": content[0]},
        {"role": "assistant", "content": content[1]},
    ]


def _with(pair: Pair, front: list[Any], back: list[Any]) -> Pair:
    """Return the pair with the same messages around those of both bodies."""
    name = MESSAGES[pair["shape"]]
    sides = {
        side: {**pair[side], name: [*front, *pair[side][name], *back]}
        for side in ("previous", "current")
    }
    return {**pair, **sides}


def _shifted(pair: Pair, by: int) -> str | None:
    path, name = pair["path"], f"{MESSAGES[pair['shape']]}["
    if path is None or not path.startswith(name):
        return path if path is None else str(path)
    index, _, rest = path.removeprefix(name).partition("]")
    return f"{name}{int(index) + by}]{rest}"


@_named([pair for pair in PAIRS if _listed(pair)])
def test_messages_in_front_shift_the_path(pair: Pair) -> None:
    front = _extra(pair["shape"], 1)
    append_only, cause, path = _told(_compare(_with(pair, front, [])))
    assert (append_only, path) == (pair["append_only"], _shifted(pair, len(front)))
    if pair["cause"] == "truncated_head":
        assert cause == "message_removed"  # it is not the head any more
    elif pair["cause"] == "system_changed" and pair["path"] == "messages[0]":
        assert cause == "message_removed"
    elif pair["cause"] == "system_changed" and pair["path"] == "messages[1]":
        assert cause == "message_edited"
    else:
        assert cause == pair["cause"]


@_named([pair for pair in PAIRS if _listed(pair)])
def test_system_messages_in_front_are_no_part_of_the_head(pair: Pair) -> None:
    front = [_extra(pair["shape"], 1)[0] | {"role": "system"}]
    told = _told(_compare(_with(pair, front, [])))
    assert told == (pair["append_only"], pair["cause"], _shifted(pair, 1))


@_named([pair for pair in BREAKS if _listed(pair)])
def test_the_conversation_goes_on_and_the_cause_stays(pair: Pair) -> None:
    name = MESSAGES[pair["shape"]]
    messages = [*pair["current"][name], *_extra(pair["shape"], 2)]
    match = _compare({**pair, "current": {**pair["current"], name: messages}})
    if pair["name"] == "gemini: the request ends sooner":
        assert match.cause is Cause.MESSAGE_EDITED  # other messages stand there now
        assert match.first_different == len(pair["current"][name])
    else:
        assert _told(match) == _expected(pair)


def _in_place(pair: Pair) -> bool:
    """Whether the current request has each former message at its place."""
    if not _listed(pair):
        return False
    name = MESSAGES[pair["shape"]]
    whole = pair["path"].startswith(f"{name}[") and pair["path"].endswith("]")
    inside = not whole or "." in pair["path"] or pair["cause"] == "message_reordered"
    return inside and len(pair["current"][name]) >= len(pair["previous"][name])


@_named([pair for pair in BREAKS if _in_place(pair)])
def test_the_same_messages_behind_keep_the_cause(pair: Pair) -> None:
    name = MESSAGES[pair["shape"]]
    count = len(pair["previous"][name])
    current = {**pair["current"], name: pair["current"][name][:count]}
    for back in ([], _extra(pair["shape"], 2)):
        longer = _with({**pair, "current": current}, [], back)
        assert _told(_compare(longer)) == _expected(pair)


@_named([pair for pair in BREAKS if pair["cause"] == "message_removed"])
def test_what_follows_a_removed_message_may_be_new(pair: Pair) -> None:
    """Cut off where the former request still goes on, it only ends sooner."""
    name = MESSAGES[pair["shape"]]
    index = _compare(pair).first_different
    cut = {**pair["current"], name: pair["current"][name][:index]}
    assert _told(_compare({**pair, "current": cut})) == _expected(pair)


@_named(PAIRS)
def test_a_third_request_that_goes_on_is_no_break(pair: Pair) -> None:
    name = MESSAGES[pair["shape"]]
    history = PrefixHistory(provider=pair["shape"])
    for side in ("previous", "current"):
        history.touch_request(pair[side])
    longer = {
        **pair["current"],
        name: [*pair["current"][name], *_extra(pair["shape"], 3)],
    }
    match = history.touch_request(longer)
    assert _told(match) == (True, "none", None)


# The file ------------------------------------------------------------------------


def test_the_file_is_what_its_script_makes() -> None:
    script = runpy.run_path(str(PATH.with_name("make_breaks.py")))
    assert script["text"](script["pairs"]()) == PATH.read_text(encoding="ascii")


def test_names_are_unique_and_tell_the_api() -> None:
    names = [pair["name"] for pair in PAIRS]
    assert len(set(names)) == len(names)
    assert all(pair["name"].startswith(f"{pair['shape']}: ") for pair in PAIRS)


def test_every_api_report_and_cause_is_there() -> None:
    reports: defaultdict[int, set[str]] = defaultdict(set)
    causes: defaultdict[str, list[str]] = defaultdict(list)
    for pair in PAIRS:
        if pair["report"] is None:
            causes[pair["cause"]].append(pair["shape"])
        else:
            reports[pair["report"]].add(pair["shape"])
    assert {pair["shape"] for pair in PAIRS} == {shape.value for shape in RequestShape}
    assert sorted(reports) == list(range(1, 24))
    assert all(len(shapes) >= 2 for shapes in reports.values())
    assert causes.keys() == {cause.value for cause in Cause} - {"unknown"}
    assert all(len(s) >= 2 and len(set(s)) >= 2 for s in causes.values())


@_named(PAIRS)
def test_a_pair_is_consistent(pair: Pair) -> None:
    assert pair["append_only"] == (pair["cause"] == "none") == (pair["path"] is None)
    optional = {"keys", "verdicts"}
    assert pair.keys() - optional == {
        *("name", "report", "shape", "previous", "current"),
        *("append_only", "cause", "path"),
    }
    assert len(json.dumps(pair["previous"])) < 4096  # no string is a large one
