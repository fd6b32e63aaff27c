"""A text is never cut within a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.conformance.strategies import hostile_text
from raf_session.graphemes import (
    LONGEST_CLUSTER,
    cut_place,
    cut_text,
    pieces,
    whole_characters,
)

CLUSTERS = (
    "a",
    "字",
    "é",
    "e\u0301",
    "กำ",
    "कि",
    "각",
    "\u1100\u1161\u11a8",
    "👍🏽",
    "👩\u200d👩\u200d👧\u200d👦",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
    "🇨🇳",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "\r\n",
    "\ud83d\ude00",
)
"""Characters of one to eight code points; the last as a pair of surrogates."""


@given(st.lists(st.sampled_from(CLUSTERS), max_size=12), st.integers(0, 60))
def test_a_cut_stands_between_characters(clusters: list[str], limit: int) -> None:
    text = "".join(clusters)
    ends = {len("".join(clusters[:count])) for count in range(len(clusters) + 1)}
    place = cut_place(text, limit)
    assert place == max(end for end in ends if end <= limit)


@pytest.mark.parametrize(("limit", "place"), [(1, 0), (2, 2), (3, 2), (4, 4), (5, 4)])
def test_flags_that_stand_together_are_cut_between_two(limit: int, place: int) -> None:
    assert cut_place("🇨🇳🇩🇪🇫🇷", limit) == place


@pytest.mark.parametrize("limit", [1, 500, LONGEST_CLUSTER + 1])
def test_a_cluster_without_end_is_cut_all_the_same(limit: int) -> None:
    text = "a" + "\u0301" * 1000
    assert cut_place(text, limit) == (limit if limit > LONGEST_CLUSTER else 0)


@given(hostile_text(), st.integers(0, 30))
def test_a_cut_text_tells_how_much_is_missing(text: str, limit: int) -> None:
    shown = cut_text(text, limit)
    if len(text) <= limit:
        assert shown == text
        return
    head, _, note = shown.rpartition("… [")
    assert text.startswith(head)
    assert len(head) <= limit
    assert note == f"{len(text) - len(head):,} characters cut]"


@given(st.lists(st.sampled_from((*CLUSTERS, "\n")), max_size=40), st.integers(1, 30))
def test_pieces_are_the_text_and_each_is_short_enough(
    clusters: list[str], limit: int
) -> None:
    text = "".join(clusters)
    parts = pieces(text, limit)
    assert "".join(parts) == text
    assert all(len(part) <= limit for part in parts)
    assert all(parts) or text == ""


def test_a_piece_ends_with_a_line_where_it_can() -> None:
    assert pieces("aaaa\nbbb\ncc", 10) == ["aaaa\nbbb\n", "cc"]


@given(hostile_text())
def test_whole_characters_can_be_encoded_and_nothing_else_changes(text: str) -> None:
    whole = whole_characters(text)
    whole.encode()
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert whole == text


def test_a_pair_of_surrogates_is_joined_and_a_lone_one_replaced() -> None:
    assert whole_characters("a\ud83d\ude00b\ud83dc\ude00") == "a😀b\ufffdc\ufffd"
