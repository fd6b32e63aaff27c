"""Sentences, their words, and what says the same or changes it."""
# ruff: noqa: RUF001  (Chinese punctuation is meant)

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.conformance.strategies import hostile_text
from raf_session.graphemes import whole_characters
from raf_session.summarizers.sentences import LONGEST_SENTENCE, content_words, sentences
from raf_session.summarizers.subjects import Statement, repeats, replaces
from raf_session.summarizers.summary_lines import (
    Line,
    line_cost,
    parse_summary,
    render_summary,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("第一句。第二句！第三句？", ["第一句。", "第二句！", "第三句？"]),
        ("先这样。Then English. 好的", ["先这样。", "Then English.", "好的"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        (
            "Dr. Weiss pays 3.50 e.g. on v1.2.3.",
            ["Dr. Weiss pays 3.50 e.g. on v1.2.3."],
        ),
        ("Mail me at a.b@example.org.", ["Mail me at a.b@example.org."]),
        ("What?! No...", ["What?!", "No..."]),
        ("- first\n* second\n3. third\n## head", ["first", "second", "third", "head"]),
        ("before\n```\nx = 1.\ny = 2\n```\nafter", ["before", "after"]),
        ("open ```\nx = 1", ["open"]),
        ("\n \n", []),
    ],
)
def test_sentences_end_where_readers_see_them_end(
    text: str, expected: list[str]
) -> None:
    assert list(sentences(text)) == expected


@given(hostile_text())
def test_a_sentence_is_one_line_and_not_blank(text: str) -> None:
    for sentence in sentences(whole_characters(text)):
        assert sentence.splitlines() == [sentence]
        assert sentence == sentence.strip()
        assert 0 < len(sentence) <= LONGEST_SENTENCE


@pytest.mark.parametrize("word", ["twenty words, ", "没有句号，", "solid"])
def test_a_sentence_without_end_loses_no_word(word: str) -> None:
    text = word * 400
    parts = list(sentences(text))
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert max(map(len, parts)) <= LONGEST_SENTENCE


def test_words_of_no_content_are_none_in_both_languages() -> None:
    assert content_words("I think that is what it was about, really.") == set()
    assert content_words("我觉得这个是可以的吧。") == set()
    assert content_words("The copper roofs") == {"copper", "roof"}
    assert content_words("屋顶还是用铜的") == {"屋顶", "用铜"}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My budget is 900 euros.", "My budget is 1,200 euros."),
        ("The demo is on the 4th in room 2.", "Actually, the demo is in room 7."),
        ("Book the hotel in Rome.", "We no longer need the hotel in Rome."),
        ("预算是900元。", "预算是1200元。"),
        ("发布会定在九月的上海。", "发布会改到十月，还是上海。"),
    ],
)
def test_a_newer_statement_replaces_an_older_one_on_its_subject(
    older: str, newer: str
) -> None:
    assert replaces(Statement(newer), Statement(older))
    assert not repeats(Statement(newer), Statement(older))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Order 1001 goes to Berlin.", "Order 1002 goes to Berlin."),
        ("My sister is a doctor.", "My sister is 34."),
        ("The flight out is on 3 May.", "The flight back is on 9 May."),
        ("My budget is 900.", "My rent is 700."),
        ("I like tea.", "Actually, the train leaves at six."),
        ("I like tea in the morning.", "Actually, the morning train is at six."),
        ("我喜欢喝茶。", "其实火车六点开。"),
    ],
)
def test_statements_that_may_both_hold_stay(older: str, newer: str) -> None:
    assert not replaces(Statement(newer), Statement(older))
    assert not repeats(Statement(newer), Statement(older))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I never eat coriander.", "As I said: I never eat coriander!"),
        ("香菜我不吃。", "香菜我是不吃的。"),
        ("ok", "ok"),
    ],
)
def test_the_same_said_twice_is_a_repetition(one: str, other: str) -> None:
    assert repeats(Statement(one), Statement(other))


LINES = st.builds(
    Line,
    st.sampled_from(("", "user", "assistant", "system", "tool")),
    hostile_text()
    .map(lambda text: " ".join(whole_characters(text).split()))
    .filter(bool),
)


@given(st.lists(LINES, max_size=4))
def test_a_summary_is_read_as_it_was_written(lines: list[Line]) -> None:
    text = render_summary(lines)
    read = list(parse_summary(text))
    for speaker in {line.speaker for line in lines}:
        assert [line for line in read if line.speaker == speaker] == [
            line for line in lines if line.speaker == speaker
        ]
    assert len(read) == len(lines)
    assert render_summary(read) == text


@given(st.lists(LINES, min_size=1, max_size=4))
def test_the_cost_of_lines_is_never_below_their_length(lines: list[Line]) -> None:
    speakers: set[str] = set()
    cost = 0
    for line in lines:
        cost += line_cost(line, speakers)
        speakers.add(line.speaker)
    assert len(render_summary(lines)) <= cost


def test_a_summary_written_elsewhere_is_taken_sentence_by_sentence() -> None:
    text = "The user likes tea. They live in Ghent.\n- a bullet"
    assert list(parse_summary(text)) == [
        Line("", "The user likes tea."),
        Line("", "They live in Ghent."),
        Line("", "a bullet"),
    ]
