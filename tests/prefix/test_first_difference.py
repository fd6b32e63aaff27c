"""For any conversation and any edit, the first difference is the edit's place."""

from __future__ import annotations

import copy
import unicodedata
from types import ModuleType
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from prefix_inputs import few_messages, valid_messages
from request_bodies import SHAPES, Path, at, bodies, messages_name, places

from raf_session.frozen import join_path
from raf_session.prefix_comparison import compare_requests
from raf_session.prefix_history import PrefixHistory
from raf_session.prefix_match import Cause, PrefixMatch
from raf_session.request_shapes import RequestShape, read_request

FEWER = settings(max_examples=max(1, settings().max_examples // 10))
"""For tests that run once for each shape."""
SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.value)

NOT_RENDERED = {
    "temperature",
    "max_output_tokens",
    "max_tokens",
    "maxTokens",
    "inferenceConfig",
}
TOLD_BY_THE_READER = {"role", "type"}
"""Fields that decide how the rest is read: an edit may show beside them."""


def compared(
    before: dict[str, Any], after: dict[str, Any], shape: RequestShape
) -> PrefixMatch:
    """Compare the bodies, and check that a history says the same."""
    match = compare_requests(before, after, provider=shape)
    history = PrefixHistory(provider=shape)
    history.touch_request(before)
    other = history.touch_request(copy.deepcopy(after))
    assert other.append_only == match.append_only
    if match.first_difference is not None:
        assert str(other.first_difference) == str(match.first_difference)
    return match


def broken_at(match: PrefixMatch, path: Path) -> None:
    """Check that the requests part at this place, or at the message around it."""
    place = join_path("", *path)
    assert not match.append_only
    assert match.cause is not Cause.NONE
    difference = match.first_difference
    assert difference is not None
    found = str(difference)
    deeper = found.startswith(place)
    # A text that is or was the only part of its list is told as the list itself.
    shallower = place.startswith(f"{found}[") and found.endswith(("content", "system"))
    about_the_reading = path[-1] in TOLD_BY_THE_READER
    assert deeper or shallower or about_the_reading, (found, place)
    if about_the_reading and difference.section == "messages":
        assert found.split(".", 1)[0] == place.split(".", 1)[0]


def editable(body: dict[str, Any]) -> list[Path]:
    return [
        path
        for path in places(body)
        if path[0] not in NOT_RENDERED and path[-1] not in NOT_RENDERED
    ]


@SHAPE
@FEWER
@given(data=st.data())
def test_a_changed_leaf_is_the_first_difference(
    shape: RequestShape, data: st.DataObject
) -> None:
    before = data.draw(bodies(shape))
    leaves = [p for p in editable(before) if not isinstance(at(before, p), dict | list)]
    path = data.draw(st.sampled_from([p for p in leaves if p[-1] != "role"]))
    after = copy.deepcopy(before)
    old = at(before, path)
    new = data.draw(st.sampled_from([f"{old}!", f" {old}", "other", 7]))
    assume(new != old)
    at(after, path[:-1])[path[-1]] = new
    broken_at(compared(before, after, shape), path)


@SHAPE
@FEWER
@given(data=st.data())
def test_a_field_put_in_or_taken_out(shape: RequestShape, data: st.DataObject) -> None:
    before = data.draw(bodies(shape))
    objects = [p for p in editable(before) if isinstance(at(before, p), dict)]
    path = data.draw(st.sampled_from(objects))
    after = copy.deepcopy(before)
    at(after, path)["zz_new"] = data.draw(st.sampled_from(["x", 0, None, {"a": []}]))
    if path[0] in {"toolConfig", "generationConfig"} and len(path) == 1:
        broken = compared(before, after, shape)
        assert not broken.append_only or at(after, path)["zz_new"] is None
        return
    if at(after, path)["zz_new"] is None and len(path) == 1:
        return  # a parameter that is null is none
    broken_at(compared(before, after, shape), (*path, "zz_new"))
    broken_at(compared(after, before, shape), (*path, "zz_new"))


@SHAPE
@FEWER
@given(data=st.data())
def test_an_element_put_in_or_taken_out(
    shape: RequestShape, data: st.DataObject
) -> None:
    more = data.draw(bodies(shape))
    lists = [p for p in editable(more) if isinstance(at(more, p), list) and at(more, p)]
    path = data.draw(st.sampled_from(lists))
    index = data.draw(st.integers(0, len(at(more, path)) - 1))
    fewer = copy.deepcopy(more)
    del at(fewer, path)[index]
    assume(at(fewer, path) or path[0] == "tools")  # an empty one is another thing
    rest = at(more, path)[index:]
    assume(len(rest) < 2 or rest[0] != rest[1])
    broken_at(compared(more, fewer, shape), (*path, index))
    back = compared(fewer, more, shape)
    if path == (messages_name(shape),) and index == len(at(more, path)) - 1:
        assert back.append_only
        assert back.first_difference is None
    else:
        broken_at(back, (*path, index))


@SHAPE
@FEWER
@given(data=st.data())
def test_a_moved_message(shape: RequestShape, data: st.DataObject) -> None:
    before = data.draw(bodies(shape))
    name = messages_name(shape)
    count = len(before[name])
    one, other = sorted(
        data.draw(
            st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True)
        )
    )
    after = copy.deepcopy(before)
    after[name].insert(other, after[name].pop(one))
    assume(after != before)
    match = compared(before, after, shape)
    broken_at(match, (name, one))
    assert match.cause is Cause.MESSAGE_REORDERED


@SHAPE
@FEWER
@given(data=st.data())
def test_a_re_encoded_value(shape: RequestShape, data: st.DataObject) -> None:
    before = data.draw(bodies(shape))
    objects = [
        path
        for path in editable(before)
        if isinstance(at(before, path), dict)
        and len(at(before, path)) > 1
        and path[-1] in {"parameters", "input_schema", "json", "properties", "args"}
        and len(path) > 1
    ]
    assume(objects)
    path = data.draw(st.sampled_from(objects))
    after = copy.deepcopy(before)
    turned = dict([*at(before, path).items()][::-1])
    at(after, path[:-1])[path[-1]] = turned
    match = compared(before, after, shape)
    broken_at(match, path)
    assert match.cause is Cause.KEY_ORDER
    difference = match.first_difference
    assert difference is not None
    assert difference.wire is not None
    assert difference.wire[0] != difference.wire[1]
    assert difference.canonical is not None
    assert difference.canonical[0] == difference.canonical[1]


@SHAPE
@FEWER
@given(data=st.data(), form=st.sampled_from([Cause.WHITESPACE, Cause.UNICODE]))
def test_a_re_encoded_text(
    shape: RequestShape, data: st.DataObject, form: Cause
) -> None:
    before = data.draw(bodies(shape))
    paths = [
        path
        for path in editable(before)
        if isinstance(at(before, path), str)
        and path[-1] in {"text", "content", "description", "instructions", "result"}
    ]
    path = data.draw(st.sampled_from(paths))
    after = copy.deepcopy(before)
    old = at(before, path)
    if form is Cause.WHITESPACE:
        at(before, path[:-1])[path[-1]] = old + " é"
        new = old + "\n é"
    else:
        old = unicodedata.normalize("NFC", old + "é")
        at(before, path[:-1])[path[-1]] = old
        new = unicodedata.normalize("NFD", old)
    at(after, path[:-1])[path[-1]] = new
    match = compared(before, after, shape)
    broken_at(match, path)
    assert match.cause is form


@SHAPE
@FEWER
@given(data=st.data())
def test_an_append_is_no_difference(shape: RequestShape, data: st.DataObject) -> None:
    after = data.draw(bodies(shape))
    name = messages_name(shape)
    before = copy.deepcopy(after)
    kept = data.draw(st.integers(0, len(after[name])))
    del before[name][kept:]
    match = compared(before, after, shape)
    assert match.append_only
    assert match.cause is Cause.NONE
    assert match.first_difference is None
    assert (match.shared_messages, match.previous_messages) == (kept, kept)


MARKS = {
    RequestShape.OPENAI_CHAT: ("prompt_cache_breakpoint", {"mode": "explicit"}),
    RequestShape.ANTHROPIC: ("cache_control", {"type": "ephemeral", "ttl": "1h"}),
    RequestShape.BEDROCK: ("cachePoint", {"type": "default"}),
}


@pytest.mark.parametrize("shape", MARKS, ids=lambda shape: shape.value)
@FEWER
@given(data=st.data())
def test_a_moved_mark_is_no_difference(
    shape: RequestShape, data: st.DataObject
) -> None:
    bare = data.draw(bodies(shape))
    before, after = copy.deepcopy(bare), copy.deepcopy(bare)
    for body in (before, after):
        _mark(shape, body, data)
    match = compared(before, after, shape)
    assert match.append_only
    assert match.cause is Cause.NONE
    assert match.caching is not None
    assert match.caching.written is not None


def _mark(shape: RequestShape, body: dict[str, Any], data: st.DataObject) -> None:
    name, value = MARKS[shape]
    lists = [
        m["content"] for m in body["messages"] if isinstance(m.get("content"), list)
    ]
    tools = body.get("toolConfig", body).get("tools")
    lists += [tools] if tools else []
    if shape is not RequestShape.OPENAI_CHAT:
        lists.append(body["system"])
    if not lists:
        body["messages"][-1][name] = value
        return
    chosen = data.draw(st.sampled_from(lists))
    index = data.draw(st.integers(0, len(chosen) - 1))
    if shape is RequestShape.BEDROCK:
        chosen.insert(index + 1, {name: value})
    else:
        chosen[index][name] = value


# The tracker ------------------------------------------------------------------------


@given(
    before=st.lists(st.one_of(few_messages, valid_messages), max_size=6),
    after=st.lists(st.one_of(few_messages, valid_messages), max_size=6),
    shared=st.integers(0, 6),
)
def test_two_trackers_explain_alike(
    prefix_twins: tuple[ModuleType, ModuleType],
    before: list[Any],
    after: list[Any],
    shared: int,
) -> None:
    after = before[:shared] + after
    matches: list[PrefixMatch] = []
    for twin in prefix_twins:
        tracker = twin.PrefixTracker()
        tracker.touch(before)
        matches.append(tracker.touch(after))
        assert tracker.last == matches[-1]
    assert matches[0] == matches[1]
    first = [
        one == other
        for one, other in zip(
            map(prefix_twins[0].encode_message, before),
            map(prefix_twins[0].encode_message, after),
            strict=False,
        )
    ]
    parted = first.index(False) if False in first else len(first)
    match = matches[0]
    if parted == len(before):
        assert match.append_only
        assert (match.cause, match.first_difference) == (Cause.NONE, None)
        return
    difference = match.first_difference
    assert difference is not None
    assert (difference.section, difference.index) == ("messages", parted)
    assert str(difference).startswith(f"messages[{parted}]")
    assert match.cause not in {Cause.NONE, Cause.UNKNOWN}


@SHAPE
@FEWER
@given(data=st.data())
def test_a_restored_tracker_says_what_digests_show(
    prefix_impl: ModuleType, shape: RequestShape, data: st.DataObject
) -> None:
    """Never a guess: its cause is that of who knows the messages, or unknown."""
    before = data.draw(bodies(shape))
    after = copy.deepcopy(before)
    messages = after[messages_name(shape)]
    start = data.draw(st.integers(0, len(messages)))
    end = data.draw(st.integers(start, len(messages)))
    kind = data.draw(st.sampled_from(["drop", "turn", "edit"]))
    if kind == "drop":
        del messages[start:end]
    elif kind == "turn":
        messages[start:end] = messages[start:end][::-1]
    else:
        messages[start:end] = [{"role": "user", "content": "else", "parts": []}]
    one, other = (read_request(body, shape) for body in (before, after))
    tracker = prefix_impl.PrefixTracker()
    tracker.touch(one.messages, one.header)
    restored = prefix_impl.PrefixTracker.restore(
        tracker.digests, tracker.header_digest, tracker.hash
    )
    known = tracker.touch(other.messages, other.header)
    told = restored.touch(other.messages, other.header)
    assert told[:10] == known[:10]
    assert told.cause in {known.cause, Cause.UNKNOWN, Cause.MESSAGE_REMOVED}
    if known.first_difference is not None:
        assert told.first_difference is not None
        assert told.first_difference.index == known.first_difference.index
        assert told.first_difference.section == known.first_difference.section
