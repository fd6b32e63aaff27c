"""Both twins say the same of requests of every API, large and hostile ones too."""

from __future__ import annotations

import copy
import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_inputs import deep, outcome
from request_bodies import SHAPES, Dialogue, Tool, Turn, bodies, messages_name
from shape_inputs import hostile_bodies
from xxhash import xxh64_intdigest

from raf_session.errors import InvalidValueError
from raf_session.prefix_comparison import compare_requests
from raf_session.prefix_match import Cause, PrefixMatch
from raf_session.request_shapes import RequestShape, read_request

SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.value)
FEWER = settings(max_examples=max(1, settings().max_examples // 10))

Twins = tuple[ModuleType, ModuleType]


def touched(impl: ModuleType, *requests: Any) -> list[tuple[Any, ...]]:
    tracker = impl.PrefixTracker()
    answers: list[tuple[Any, ...]] = []
    for request in requests:
        answers.append(outcome(tracker.touch, request.messages, request.header))
        answers.append((tracker.digests, tracker.header_digest, tracker.hash))
    return answers


@SHAPE
@FEWER
@given(data=st.data())
def test_bodies(prefix_twins: Twins, shape: RequestShape, data: st.DataObject) -> None:
    first, second = data.draw(bodies(shape)), data.draw(bodies(shape))
    requests = [read_request(body, shape) for body in (first, second, first)]
    compiled, pure = prefix_twins
    assert touched(compiled, *requests) == touched(pure, *requests)
    for request in requests:
        header = request.header
        assert compiled.encode_header(header) == pure.encode_header(header)
        for message in request.messages:
            assert compiled.encode_message(message) == pure.encode_message(message)


@given(body=hostile_bodies(), other=hostile_bodies(), shape=st.sampled_from([*SHAPES]))
def test_hostile_bodies(
    prefix_twins: Twins, body: Any, other: Any, shape: RequestShape
) -> None:
    try:
        requests = [read_request(one, shape) for one in (body, other)]
    except InvalidValueError:
        return
    answers = [touched(twin, *requests) for twin in prefix_twins]
    assert answers[0] == answers[1]
    for request in requests:
        headers = [outcome(twin.encode_header, request.header) for twin in prefix_twins]
        assert headers[0] == headers[1]


@given(body=hostile_bodies(), other=hostile_bodies())
def test_hostile_bodies_are_compared_or_refused(body: Any, other: Any) -> None:
    before = copy.deepcopy((body, other))
    try:
        match = compare_requests(body, other)
    except InvalidValueError:
        return
    assert (match.first_difference is None) == match.append_only
    assert (match.cause is Cause.NONE) == match.append_only
    assert repr((body, other)) == repr(before)


# Sizes ------------------------------------------------------------------------------

MEGABYTES = "x" * 10_000_000


@SHAPE
def test_ten_megabytes(prefix_twins: Twins, shape: RequestShape) -> None:
    made = [
        SHAPES[shape](Dialogue("s", [], [Turn(text, None, "", [], "a")]))
        for text in (MEGABYTES, MEGABYTES, f"{MEGABYTES}!", f"你{MEGABYTES}")
    ]
    requests = [read_request(body, shape) for body in made]
    compiled, pure = (touched(twin, *requests) for twin in prefix_twins)
    assert compiled == pure
    matches = [answer[1] for answer in compiled[::2]]
    assert [match.append_only for match in matches] == [True, True, False, False]
    assert all(match.bytes > len(MEGABYTES) for match in matches)
    match = compare_requests(made[0], made[2], provider=shape)
    difference = match.first_difference
    assert difference is not None
    assert difference.before is not None
    assert difference.after is not None
    assert difference.after.endswith('x!"')
    assert len(difference.after) < 200
    assert match.cause is Cause.MESSAGE_EDITED


@SHAPE
def test_a_thousand_tools(prefix_twins: Twins, shape: RequestShape) -> None:
    tools = [
        Tool(f"tool{n}", f"does {n}", {"type": "object", "properties": {"q": {"n": n}}})
        for n in range(1000)
    ]
    before, after = (
        SHAPES[shape](Dialogue("s", made, [Turn("q", None, "", [], "a")]))
        for made in (tools, [*tools[:700], Tool("tool700", "", {}), *tools[701:]])
    )
    requests = [read_request(body, shape) for body in (before, before, after)]
    compiled, pure = (touched(twin, *requests) for twin in prefix_twins)
    assert compiled == pure
    match = compare_requests(before, after, provider=shape)
    assert match.cause is Cause.TOOLS_CHANGED
    difference = match.first_difference
    assert difference is not None
    assert difference.index == 700
    turned = compare_requests(
        before,
        SHAPES[shape](Dialogue("s", tools[::-1], [Turn("q", None, "", [], "a")])),
        provider=shape,
    )
    assert turned.cause is Cause.TOOLS_ORDER


@SHAPE
def test_two_hundred_levels_and_no_more(
    prefix_impl: ModuleType, shape: RequestShape
) -> None:
    for place in ("tool", "message"):
        levels = _deepest(prefix_impl, shape, place)
        assert 190 < levels < 200
        good = _nested(shape, place, levels)
        other = _nested(shape, place, levels, leaf=2)
        match = compare_requests(good, other, provider=shape)
        assert not match.append_only
        assert match.first_difference is not None
        assert match.first_difference.after == "2"
        with pytest.raises(InvalidValueError, match="nested deeper than 200") as caught:
            compare_requests(good, _nested(shape, place, levels + 1), provider=shape)
        front = messages_name(shape) if place == "message" else "tool"
        assert caught.value.path.startswith(front)
        with pytest.raises(InvalidValueError, match="nested deeper than 200"):
            compare_requests(good, _nested(shape, place, 5000), provider=shape)


def _nested(shape: RequestShape, place: str, levels: int, leaf: Any = 1) -> Any:
    dialogue = Dialogue("s", [Tool("t", "d", {})], [Turn("q", None, "", [], "a")])
    body = json.loads(json.dumps(SHAPES[shape](dialogue)))
    value = deep(levels, leaf)
    if place == "message":
        body[messages_name(shape)][0]["zz"] = value
    else:
        tools = body.get("toolConfig", body)["tools"]
        tools[0]["zz"] = value
    return body


def _deepest(impl: ModuleType, shape: RequestShape, place: str) -> int:
    """Return how many levels this place may hold, by trying."""
    for levels in range(199, 0, -1):
        request = read_request(_nested(shape, place, levels), shape)
        answer = outcome(impl.PrefixTracker().touch, request.messages, request.header)
        if answer[0] == "value":
            return levels
    raise AssertionError


def test_header_bytes_are_those_of_the_encoding(prefix_impl: ModuleType) -> None:
    header = {"model": "m", "tools": [{"name": "f", "description": "x" * 5000}]}
    match: PrefixMatch = prefix_impl.PrefixTracker().touch([], header)
    encoding = prefix_impl.encode_header(header)
    assert match.header_bytes == len(encoding) + 5000 - 8
    assert xxh64_intdigest(encoding) == prefix_impl.header_digest(header)
    assert prefix_impl.PrefixTracker().touch([]).header_bytes == 0
