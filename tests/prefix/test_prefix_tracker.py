"""The tracker: what it answers to a request."""

from __future__ import annotations

import struct
import types
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefix_inputs import any_messages, few_messages, outcome, plain_values

from raf_session.messages import ChatMessage
from raf_session.prefix_match import ROOT, PrefixMatch

Twins = tuple[ModuleType, ModuleType]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def models(*texts: str) -> list[ChatMessage]:
    return [ChatMessage.user(text) for text in texts]


def test_a_first_request(prefix_impl: ModuleType) -> None:
    tracker = prefix_impl.PrefixTracker()
    assert (tracker.last, tracker.hash, tracker.count) == (None, None, 0)
    assert (tracker.digests, tracker.header_digest, tracker.kept) == (b"", None, ())
    match = tracker.touch([user("a"), user("b")])
    size = prefix_impl.message_size(user("a"))
    assert match == PrefixMatch(
        shared_messages=0,
        shared_bytes=0,
        messages=2,
        bytes=2 * size,
        append_only=True,
        first_different=None,
        previous_messages=None,
        header_changed=False,
        hash=prefix_impl.prefix_hashes([user("a"), user("b")])[-1],
    )
    assert match.first
    assert match.reuse is None
    assert tracker.last is match
    assert tracker.hash == match.hash
    assert tracker.count == 2
    digests = [prefix_impl.message_digest(user(text)) for text in "ab"]
    assert tracker.digests == struct.pack("<2Q", *digests)


@pytest.mark.parametrize(
    ("old", "new", "shared", "first_different"),
    [
        ("ab", "abcd", 2, None),
        ("ab", "ab", 2, None),
        ("", "ab", 0, None),
        ("", "", 0, None),
        ("ab", "axcd", 1, 1),
        ("ab", "xb", 0, 0),
        ("abc", "ab", 2, 2),
        ("abc", "", 0, 0),
        ("abcd", "bcde", 0, 0),
    ],
)
@pytest.mark.parametrize("kind", [user, ChatMessage.user], ids=["dict", "model"])
def test_the_next_request(  # noqa: PLR0917
    prefix_impl: ModuleType,
    kind: Any,
    old: str,
    new: str,
    shared: int,
    first_different: int | None,
) -> None:
    tracker = prefix_impl.PrefixTracker()
    tracker.touch([kind(text) for text in old])
    match = tracker.touch([kind(text) for text in new])
    assert match.shared_messages == shared
    assert match.first_different == first_different
    assert match.append_only is (first_different is None)
    assert match.previous_messages == len(old)
    assert not match.first
    assert not match.header_changed
    if new:
        assert match.reuse == shared / len(new) == match.shared_bytes / match.bytes
    else:
        assert match.reuse is None
    links = prefix_impl.prefix_hashes([kind(text) for text in new])
    assert match.hash == tracker.hash == (links[-1] if links else ROOT)


def test_another_header_shares_nothing(prefix_impl: ModuleType) -> None:
    tracker = prefix_impl.PrefixTracker()
    request = models("a", "b")
    headers: list[Any] = [
        None,
        {"model": "m"},
        {"model": "m"},
        {"model": "n"},
        {},
        None,
    ]
    changed = [False, True, False, True, True, True]
    for header, change in zip(headers, changed, strict=True):
        match = tracker.touch(request, header)
        assert match.header_changed is change
        digest = None if header is None else prefix_impl.header_digest(header)
        assert tracker.header_digest == digest
        if change:
            assert (match.shared_messages, match.shared_bytes) == (0, 0)
            assert match.first_different is None
            assert not match.append_only
            assert match.reuse == 0.0
            assert match.hash == prefix_impl.prefix_hashes(request)[-1]
    assert tracker.touch(request[:1]).first_different == 1
    assert tracker.touch(request[:1], header={}).first_different is None


def test_a_moved_mark_is_no_change(prefix_impl: ModuleType) -> None:
    tracker = prefix_impl.PrefixTracker()
    part = {"type": "text", "text": "t"}
    mark = {"cache_control": {"type": "ephemeral"}}
    tools = [{"name": "t", **mark}]
    tracker.touch([{"role": "user", "content": [{**part, **mark}]}], {"tools": tools})
    match = tracker.touch(
        [{"role": "user", "content": [part]}, {**user("x"), **mark}],
        {"tools": [{"name": "t"}]},
    )
    assert match.append_only
    assert match.shared_messages == 1


@given(
    pool=st.lists(few_messages, min_size=1, max_size=4),
    requests=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.sampled_from("dmos")), max_size=6),
        max_size=5,
    ),
    headers=st.lists(
        st.one_of(st.none(), st.sampled_from([{}, {"a": 1}]), plain_values), max_size=5
    ),
    restores=st.sets(st.integers(0, 4)),
)
def test_like_a_comparison_of_encodings(
    prefix_twins: Twins,
    pool: list[Any],
    requests: list[Any],
    headers: list[Any],
    restores: set[int],
) -> None:
    """A naive model, which compares whole encodings, and both twins agree."""
    for impl in prefix_twins:
        tracker = impl.PrefixTracker()
        shared_models = [ChatMessage.from_openai(message) for message in pool]
        previous: list[bytes] | None = None
        previous_header: Any = None
        for step, request in enumerate(requests):
            if step in restores and previous is not None:
                tracker = impl.PrefixTracker.restore(
                    tracker.digests, tracker.header_digest, tracker.hash
                )
            header = headers[step] if step < len(headers) else None
            made: list[Any] = []
            for number, kind in request:
                message = pool[number % len(pool)]
                if kind == "m":
                    made.append(ChatMessage.from_openai(message))
                elif kind == "s":
                    made.append(shared_models[number % len(pool)])
                elif kind == "o":
                    made.append(types.MappingProxyType(message))
                else:
                    made.append(message)
            match = tracker.touch(made, header)
            encodings = [impl.encode_message(message) for message in made]
            sizes = [impl.message_size(message) for message in made]
            marked = None if header is None else impl.header_digest(header)
            expected = _expected(previous, encodings, sizes, previous_header != marked)
            assert match[:8] == expected
            links = impl.prefix_hashes(made)
            assert match.hash == (links[-1] if links else ROOT)
            digests = [impl.message_digest(message) for message in made]
            assert tracker.digests == struct.pack(f"<{len(digests)}Q", *digests)
            kept = tracker.kept
            assert len(kept) == len(made)
            for message, encoding, was in zip(made, encodings, kept, strict=True):
                assert was is message or was == encoding
            former = tracker.former_digests
            assert (former is None) is (
                previous is None or encodings[: len(previous)] == previous
            )
            previous, previous_header = encodings, marked


def _expected(
    old: list[bytes] | None, new: list[bytes], sizes: list[int], other_header: bool
) -> tuple[Any, ...]:
    if old is None:
        return (0, 0, len(new), sum(sizes), True, None, None, False)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    if other_header:
        return (0, 0, len(new), sum(sizes), False, None, len(old), True)
    appends = same == len(old)
    first = None if appends else same
    return (
        same, sum(sizes[:same]), len(new), sum(sizes), appends, first, len(old), False,
    )  # fmt: skip


@given(requests=st.lists(st.lists(any_messages, max_size=3), max_size=3))
def test_twins_on_any_requests(prefix_twins: Twins, requests: list[Any]) -> None:
    trackers = [twin.PrefixTracker() for twin in prefix_twins]
    for request in requests:
        results = [outcome(tracker.touch, request) for tracker in trackers]
        assert results[0] == results[1]
        assert trackers[0].digests == trackers[1].digests
        assert trackers[0].kept == trackers[1].kept
        assert trackers[0].former_kept == trackers[1].former_kept
