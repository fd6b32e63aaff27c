"""The tracker: stored, restored, copied and pickled."""

from __future__ import annotations

import copy
import pickle
import struct
import weakref
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefix_inputs import few_messages, outcome, plain_values, same_message

from raf_session.messages import ChatMessage
from raf_session.prefix_match import ROOT

Twins = tuple[ModuleType, ModuleType]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def models(*texts: str) -> list[ChatMessage]:
    return [ChatMessage.user(text) for text in texts]


@given(request=st.lists(few_messages, max_size=4), header=plain_values)
def test_restore_is_the_way_back(
    prefix_impl: ModuleType, request: list[Any], header: Any
) -> None:
    tracker = prefix_impl.PrefixTracker()
    tracker.touch(request, header)
    again = prefix_impl.PrefixTracker.restore(
        tracker.digests, tracker.header_digest, tracker.hash
    )
    for name in ("digests", "header_digest", "hash", "count"):
        assert getattr(again, name) == getattr(tracker, name)
    assert again.last is None
    assert again.kept == (None,) * len(request)
    longer = [*(same_message(message) for message in request), user("end")]
    assert again.touch(longer, header) == tracker.touch(longer, header)
    assert again.kept == tracker.kept


def test_restore_refuses_what_cannot_be(prefix_impl: ModuleType) -> None:
    restore = prefix_impl.PrefixTracker.restore
    digests = struct.pack("<2Q", 1, 2)
    tracker = prefix_impl.PrefixTracker()
    tracker.touch([])
    assert (tracker.hash, tracker.digests) == (ROOT, b"")
    assert restore(b"", None, ROOT).touch([]).previous_messages == 0
    assert restore(b"", 0, ROOT).touch([]).header_changed  # 0 is a digest too
    assert restore(b"", 0, ROOT).header_digest == 0
    for wrong, error in (
        ((digests, None, ROOT), ValueError),
        ((digests[:-1], None, ROOT), ValueError),
        ((b"", None, 0), ValueError),
        ((b"", None, -1), ValueError),
        ((b"", None, 2**64), ValueError),
        ((b"", 2**64, ROOT), ValueError),
        ((b"", 1.5, ROOT), TypeError),
        ((b"", None, None), TypeError),
        ((b"", None, "1"), TypeError),
        ((bytearray(), None, ROOT), TypeError),
        ((2, None, ROOT), TypeError),
    ):
        with pytest.raises(error):
            restore(*wrong)


def test_twins_refuse_with_the_same_words(prefix_twins: Twins) -> None:
    for wrong in (
        (b"12345678", None, ROOT),
        (b"1", None, 1),
        (1, None, 1),
        (b"", "", 1),
    ):
        results = [outcome(t.PrefixTracker.restore, *wrong) for t in prefix_twins]
        assert results[0] == results[1]


@pytest.mark.parametrize("touched", [True, False])
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy]
    + [
        lambda tracker, protocol=protocol: pickle.loads(  # noqa: S301
            pickle.dumps(tracker, protocol)
        )
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ],
)
def test_a_copy_knows_the_digests(
    prefix_impl: ModuleType, duplicate: Any, touched: bool
) -> None:
    tracker = prefix_impl.PrefixTracker()
    request = [*models("a"), user("b")]
    if touched:
        tracker.touch(request, {"model": "m"})
    twin = duplicate(tracker)
    assert twin is not tracker
    for name in ("digests", "header_digest", "hash", "count"):
        assert getattr(twin, name) == getattr(tracker, name)
    match = twin.touch([*request, user("c")], {"model": "m"})
    assert match == tracker.touch([*request, user("c")], {"model": "m"})
    assert match.first is not touched
    if duplicate in (copy.copy, copy.deepcopy):
        assert type(twin) is type(tracker)


def test_a_subclass_stays_one(prefix_impl: ModuleType) -> None:
    base: Any = prefix_impl.PrefixTracker
    own = type("Own", (base,), {})
    tracker = own()
    assert type(copy.copy(tracker)) is own
    tracker.touch([user("a")])
    assert type(copy.copy(tracker)) is own
    assert type(own.restore(tracker.digests, None, tracker.hash)) is own
    watch = weakref.ref(tracker)
    del tracker
    assert watch() is None


def test_a_tracker_takes_no_arguments(prefix_impl: ModuleType) -> None:
    with pytest.raises(TypeError):
        prefix_impl.PrefixTracker(1)
    tracker = prefix_impl.PrefixTracker()
    for name in ("hash", "last", "count", "digests", "header_digest", "kept"):
        with pytest.raises(AttributeError):
            setattr(tracker, name, None)
