"""The tracker: what it holds, and what cannot upset it."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from raf_session.errors import InvalidValueError
from raf_session.messages import ChatMessage
from raf_session.prefix_match import PrefixMatch

Twins = tuple[ModuleType, ModuleType]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def models(*texts: str) -> list[ChatMessage]:
    return [ChatMessage.user(text) for text in texts]


# What it holds -----------------------------------------------------------------


def test_a_dict_changed_in_place_is_noticed(prefix_impl: ModuleType) -> None:
    tracker = prefix_impl.PrefixTracker()
    request: list[Any] = [
        user("a"),
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "tool_calls": [{"function": {"arguments": {"k": [1]}}}]},
    ]
    tracker.touch(request)
    assert tracker.touch(request).append_only
    request[2]["tool_calls"][0]["function"]["arguments"]["k"].append(2)
    assert tracker.touch(request).first_different == 2
    request[1]["content"][0]["text"] = "y"
    assert tracker.touch(request).first_different == 1
    request[0]["name"] = "n"
    assert tracker.touch(request).first_different == 0


def test_no_reference_to_a_dict_is_kept(prefix_impl: ModuleType) -> None:
    class Own(dict[str, Any]):
        pass

    tracker = prefix_impl.PrefixTracker()
    plain = user("a")
    count = sys.getrefcount(plain)
    own = Own(plain)
    tracker.touch([plain, own, plain])
    assert sys.getrefcount(plain) == count
    watch = weakref.ref(own)
    del own
    gc.collect()
    assert watch() is None
    assert tracker.kept == (prefix_impl.encode_message(plain),) * 3


def test_messages_are_let_go(prefix_impl: ModuleType) -> None:
    tracker = prefix_impl.PrefixTracker()
    a, b, c = models("a", "b", "c")

    def counts() -> list[int]:
        return [sys.getrefcount(a), sys.getrefcount(b), sys.getrefcount(c)]

    start = counts()

    def held() -> list[int]:
        return [now - then for now, then in zip(counts(), start, strict=True)]

    tracker.touch([a, b])
    assert held() == [1, 1, 0]
    tracker.touch([a, b, c])
    tracker.touch((a, b, c))
    assert held() == [1, 1, 1]
    assert not tracker.former_kept
    tracker.touch([a, c])
    assert min(held()) == 1  # `b` is in the former request
    assert tracker.kept == (a, c)
    assert tracker.former_kept == (a, b, c)
    tracker.touch([a, c])
    assert held() == [1, 0, 1]
    assert not tracker.former_kept
    tracker.touch([user("a"), user("c")])
    assert held() == [0, 0, 0]
    tracker.touch([a, a, a])
    assert held() == [3, 0, 0]
    with pytest.raises(InvalidValueError):
        tracker.touch([a, b, {}])
    assert held() == [3, 0, 0]
    tracker = None
    assert held() == [0, 0, 0]


def test_the_former_request_is_at_hand_where_the_last_one_left_it(
    prefix_impl: ModuleType,
) -> None:
    tracker = prefix_impl.PrefixTracker()
    first = models("a", "b")
    tracker.touch([*first, user("c")])
    digests = tracker.digests
    assert (tracker.former_kept, tracker.former_digests) == (None, None)
    tracker.touch([first[0], user("x"), user("y"), user("z")])
    assert tracker.former_kept == (*first, prefix_impl.encode_message(user("c")))
    assert tracker.former_digests == digests
    kept = tracker.kept
    assert kept == (first[0], *(prefix_impl.encode_message(user(t)) for t in "xyz"))
    tracker.touch([user("q")])
    assert tracker.former_kept == kept
    tracker.touch([user("q"), user("r")])
    assert (tracker.former_kept, tracker.former_digests) == (None, None)


def test_many_messages_of_all_kinds_in_turns(prefix_impl: ModuleType) -> None:
    tracker = prefix_impl.PrefixTracker()
    request: list[Any] = []
    for turn in range(120):
        text = f"turn {turn} " * (turn * 3)
        request.append(user(text) if turn % 3 else ChatMessage.user(text))
        request.append(ChatMessage.assistant(f"answer {turn}"))
        match = tracker.touch(request)
        assert match.append_only
        assert match.shared_messages == 2 * turn
    sizes = [prefix_impl.message_size(message) for message in request]
    for cut in (239, 200, 17, 1, 0):
        match = tracker.touch(request[:cut])
        assert match.first_different == cut
        assert match.bytes == match.shared_bytes == sum(sizes[:cut])
        tracker.touch(request)
    del request[100]
    assert tracker.touch(request).first_different == 100
    assert tracker.hash == prefix_impl.prefix_hashes(request)[-1]


# What cannot upset it ----------------------------------------------------------


def _state(tracker: Any) -> tuple[Any, ...]:
    return (
        tracker.last, tracker.hash, tracker.count, tracker.digests,
        tracker.header_digest, tracker.kept, tracker.former_kept,
        tracker.former_digests,
    )  # fmt: skip


@pytest.mark.parametrize("header", [{"model": "m"}, None])
def test_a_failed_touch_changes_nothing(prefix_impl: ModuleType, header: Any) -> None:
    tracker = prefix_impl.PrefixTracker()
    request = [*models("a", "b"), user("c")]
    tracker.touch([user("x"), user("y")])
    for _ in range(2):
        before = _state(tracker)
        faulty: list[tuple[Any, Any]] = [
            ([*request, {"role": "user", "content": b""}], header),
            ([*models("new"), {"role": "nobody"}], header),
            ([*request[:2], 5], header),
            ([], {"a": float("nan")}),
            ("text", header),
            (None, header),
            ([user("z"), {"role": "user", "x": [[float("inf")]]}], None),
        ]
        for messages, other in faulty:
            with pytest.raises((ValueError, TypeError)):
                tracker.touch(messages, other)
            assert _state(tracker) == before
        tracker.touch(request, header)
    assert tracker.touch([*request, user("d")], header).shared_messages == 3


class Meddler(Mapping[str, Any]):
    """A message that runs code of its own while it is read."""

    def __init__(self, fields: dict[str, Any], act: Any) -> None:
        self._fields = fields
        self._act = act

    @override
    def __getitem__(self, key: str) -> Any:
        return self._fields[key]

    @override
    def __iter__(self) -> Iterator[str]:
        self._act()
        return iter(self._fields)

    @override
    def __len__(self) -> int:
        return len(self._fields)


def test_a_touch_within_a_touch(prefix_impl: ModuleType) -> None:
    tracker = prefix_impl.PrefixTracker()
    old = models("a", "b")
    tracker.touch(old)
    inner: list[PrefixMatch] = []

    def act() -> None:
        if len(inner) < 3:
            inner.append(tracker.touch([user("p"), *models(*"q" * (30 * len(inner)))]))

    match = tracker.touch([*old, Meddler(user("c"), act), user("d")])
    assert [m.messages for m in inner] == [1]
    assert inner[0].shared_messages == 0
    assert match.previous_messages == 1  # compared with what was there at the end
    assert match.shared_messages == 0
    assert match.messages == 4
    assert (
        tracker.hash
        == prefix_impl.prefix_hashes([user("a"), user("b"), user("c"), user("d")])[-1]
    )
    assert tracker.kept[:2] == tuple(old)
    again = tracker.touch([*old, Meddler(user("c"), act), user("d")])
    assert again.messages == 4
    del old
    gc.collect()
    assert tracker.count == 4


@given(
    turns=st.lists(
        st.tuples(st.lists(st.sampled_from("abcd"), max_size=4), st.booleans())
    )
)
def test_an_answer_that_is_held_does_not_change(
    prefix_impl: ModuleType, turns: list[tuple[list[str], bool]]
) -> None:
    tracker = prefix_impl.PrefixTracker()
    known = dict(zip("abcd", models(*"abcd"), strict=True))
    held: list[tuple[PrefixMatch, tuple[Any, ...]]] = []
    for texts, hold in turns:
        match = tracker.touch([known[text] for text in texts])
        if hold:
            held.append((match, tuple(match)))
        del match
        assert all(tuple(match) == told for match, told in held)


@pytest.mark.parametrize("shared", [0, 2])
@pytest.mark.parametrize("valid", [True, False])
def test_an_answer_that_is_asked_for_within_a_touch(
    prefix_impl: ModuleType,
    shared: int,
    valid: bool,
) -> None:
    tracker = prefix_impl.PrefixTracker()
    old = models("a", "b")
    tracker.touch(old)
    held: list[tuple[PrefixMatch, tuple[Any, ...]]] = []
    content = {"role": "user" if valid else "nobody", "content": "c"}

    def act() -> None:
        held.append((tracker.last, tuple(tracker.last)))

    request = [*old[:shared], Meddler(content, act), user("d")]
    if valid:
        assert tracker.touch(request) is tracker.last
    else:
        with pytest.raises(ValueError, match="role"):
            tracker.touch(request)
    assert held
    assert all(match.messages == 2 and tuple(match) == told for match, told in held)


def test_a_list_that_changes_while_it_is_read(prefix_impl: ModuleType) -> None:
    tracker = prefix_impl.PrefixTracker()
    request: list[Any] = models(*"abcdefgh")
    tracker.touch(list(request))

    def act() -> None:
        request.clear()
        request.extend(models("z"))
        gc.collect()

    request.append(Meddler(user("x"), act))
    request.extend(models("y"))
    match = tracker.touch(request)
    assert match.messages in {9, 10}
    assert match.shared_messages == 8


def test_a_dict_that_changes_while_it_is_read(prefix_impl: ModuleType) -> None:
    tracker = prefix_impl.PrefixTracker()
    fields: dict[str, Any] = {"role": "user", "big": "x" * 70_000}
    request: list[Any] = [fields]

    def act() -> None:
        fields.clear()
        fields["role"] = "user"

    request.append(Meddler(user("x"), act))
    assert tracker.touch(request).messages == 2
    assert tracker.touch(request).first_different == 0


@pytest.mark.parametrize("size", [100, 70_000])
def test_threads_on_one_tracker(prefix_impl: ModuleType, size: int) -> None:
    tracker = prefix_impl.PrefixTracker()
    base: list[Any] = models(*"abcdef")
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(60):
                # Each answer is right for some order of the calls.
                text = f"{number}-{turn}" + "x" * size
                match = tracker.touch([*base, user(text), ChatMessage.user(text)])
                assert match.messages == 8
                assert match.shared_messages in {0, 6, 7, 8}
                assert tracker.count == 8
        except BaseException as error:  # noqa: BLE001  (handed to the main thread)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert tracker.touch(base).shared_messages == 6


def test_any_sequence_will_do(prefix_impl: ModuleType) -> None:
    class Window(Sequence[Any]):
        def __init__(self, items: list[Any]) -> None:
            self._items = items

        @override
        def __getitem__(self, index: Any) -> Any:
            return self._items[index]

        @override
        def __len__(self) -> int:
            return len(self._items)

    request = [*models("a"), user("b")]
    tracker = prefix_impl.PrefixTracker()
    tracker.touch(Window(request))
    for other in (tuple(request), list(request), Window(request), iter(request)):
        assert tracker.touch(other).shared_messages == 2
    assert prefix_impl.prefix_hashes(Window(request)) == (
        prefix_impl.prefix_hashes(request)
    )


def test_what_a_subclass_touched_does_not_outlive_restore(
    prefix_impl: ModuleType,
) -> None:
    class Touched(prefix_impl.PrefixTracker):  # type: ignore[misc, name-defined]  # of either twin
        def __init__(self) -> None:
            super().__init__()
            one, two = ChatMessage.user("a"), ChatMessage.user("b")
            self.touch([one, two, ChatMessage.user("c")])
            self.touch([one, two, ChatMessage.user("d")])

    tracker = Touched.restore(b"", None, prefix_impl.ROOT)
    assert tracker.digests == b""
    assert tracker.last is None
    match = tracker.touch([ChatMessage.user("a")])
    assert match.previous_messages == 0
