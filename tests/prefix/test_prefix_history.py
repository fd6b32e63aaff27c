"""`PrefixHistory`: what the requests of a session reused, and what breaks cost."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefix_inputs import few_messages

from raf_session.errors import InvalidValueError
from raf_session.prefix import PrefixTracker
from raf_session.prefix_history import PrefixHistory
from raf_session.prefix_match import Cause
from raf_session.request_shapes import RequestShape

headers = st.sampled_from([None, {}, {"model": "m"}, {"model": "n", "tools": [{}]}])
requests = st.lists(
    st.tuples(st.lists(few_messages, max_size=4), headers), min_size=1, max_size=8
)


@given(requests=requests, limit=st.integers(1, 10))
def test_totals_are_of_all_requests(requests: Any, limit: int) -> None:
    history, tracker = PrefixHistory(limit=limit), PrefixTracker()
    matches = []
    for messages, header in requests:
        match = tracker.touch(messages, header)
        assert history.touch(messages, header) == match
        matches.append((match, tracker.header_digest))
    assert history.requests == len(matches)
    assert history.bytes == sum(m.bytes for m, _ in matches)
    assert history.compared_bytes == sum(m.bytes for m, _ in matches[1:])
    assert history.shared_bytes == sum(m.shared_bytes for m, _ in matches[1:])
    breaks = [m for m, _ in matches if not m.append_only]
    assert history.breaks == len(breaks) == sum(history.causes.values())
    assert set(history.causes) == {m.cause for m in breaks}
    entries = history.entries
    assert len(entries) == min(limit, len(matches))
    start = len(matches) - len(entries)
    for number, (entry, (match, digest)) in enumerate(
        zip(entries, matches[start:], strict=True), start + 1
    ):
        assert (entry.number, entry.n, entry.hash) == (
            number,
            match.messages,
            match.hash,
        )
        assert (entry.header_digest, entry.match) == (digest, match)
    if breaks:
        assert history.first_break is not None
        assert history.first_break.match == breaks[0]
        assert history.worst_break is not None
        assert history.worst_break.lost_bytes <= history.lost_bytes
    else:
        assert (history.first_break, history.worst_break) == (None, None)
        assert history.lost_bytes == 0


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_what_a_break_costs_is_what_appending_would_have_reused() -> None:
    assert PrefixHistory().reuse is None
    history = PrefixHistory()
    first = [user("a" * 100), user("b" * 200)]
    one = history.touch(first, {"model": "m"})
    assert one.cause is Cause.NONE
    history.touch([*first, user("c")], {"model": "m"})
    assert history.lost_bytes == 0
    two = history.touch([first[0], user("x"), user("c")], {"model": "m"})
    lost = history.entries[-1].lost_bytes
    assert lost == history.entries[-2].match.bytes - two.shared_bytes > 0
    history.touch([first[0], user("x"), user("c")], {"model": "n"})
    worst = history.worst_break
    assert worst is not None
    assert worst.number == 4 or worst.lost_bytes == lost
    assert history.entries[-1].lost_bytes == two.bytes + two.header_bytes
    assert history.causes == {Cause.MESSAGE_EDITED: 1, Cause.MODEL: 1}
    assert history.first_break is not None
    assert history.first_break.number == 3
    reuse = history.reuse
    assert reuse is not None
    assert 0 < reuse < 1


def test_a_refused_request_leaves_all_as_it_was() -> None:
    history = PrefixHistory()
    body = {"model": "m", "messages": [user("a")]}
    history.touch_request(body)
    for bad in (
        {"model": "m", "messages": [{"role": "x"}]},
        {"model": "m", "messages": 7},
        {"model": "m", "messages": [user("a")], "prompt_cache_key": 7},
    ):
        with pytest.raises(InvalidValueError):
            history.touch_request(bad)
    with pytest.raises(InvalidValueError):
        history.touch([{"role": "x"}])
    assert (history.requests, len(history.entries)) == (1, 1)
    assert history.touch_request(body).append_only


@pytest.mark.parametrize("wrong", [0, -1])
def test_limits(wrong: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        PrefixHistory(limit=wrong)
    with pytest.raises(ValueError, match="shape"):
        PrefixHistory(provider="nobody")


def test_a_body_that_changes_later_is_noticed_and_not_held() -> None:
    class Body(dict[str, Any]):
        __slots__ = ("__weakref__",)

    history = PrefixHistory(provider="openai")
    body = Body(model="m", messages=[user("a"), user("b")])
    history.touch_request(body)
    body["messages"][0]["content"] = "other"
    match = history.touch_request(body)
    assert match.cause is Cause.MESSAGE_EDITED
    assert str(match.first_difference) == "messages[0].content"
    held = weakref.ref(body)
    del body
    gc.collect()
    assert held() is None


def test_a_body_that_could_be_of_several_apis_is_of_the_one_seen_last() -> None:
    sure = {
        "model": "m",
        "max_tokens": 9,
        "system": "s",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}],
    }
    vague = copy.deepcopy(sure)
    del vague["system"]
    history = PrefixHistory()
    history.touch_request(sure)
    match = history.touch_request(vague)
    assert match.first_difference is not None
    assert match.first_difference.section == "system"
    assert history.touch_request(vague).append_only
    given = PrefixHistory(provider=RequestShape.ANTHROPIC)
    given.touch_request(vague)
    assert given.touch_request(
        {**vague, "messages": [user("q")]}
    ).append_only  # one text, in both forms


def test_what_was_seen_by_messages_has_no_marks() -> None:
    history = PrefixHistory()
    body = {"model": "m", "messages": [user("a")]}
    assert history.touch_request(body).caching is None
    assert history.touch_request(body).caching is not None
    assert history.touch([user("a")], {"model": "m"}).caching is None
    assert history.touch_request(body).caching is None
    assert history.tracker.count == 1
