"""What messages cost: the estimate, the tokenizer, and what the provider says."""

from __future__ import annotations

from typing import Any

import pytest
from call_histories import Form, call, histories, messages, result
from hypothesis import given
from hypothesis import strategies as st

from raf_session.messages import ChatMessage
from raf_session.tokens import (
    IMAGE_TOKENS,
    PAGE_TOKENS,
    SMALL_IMAGE_TOKENS,
    Calibration,
    EstimatingTokenCounter,
    TiktokenCounter,
    TokenCounter,
    count_tokens,
)

COUNTER = EstimatingTokenCounter()
ANY_TEXT = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=40)

SAMPLES = [
    (
        "Please cancel my reservation and refund it to the original payment method.",
        13,
        13,
    ),
    (
        '{"user": "emma_kim_9957", "flights": [{"number": "HAT156", "price": 122}]}',
        30,
        30,
    ),
    (
        "会话管理模块负责维护智能体与用户之间的对话上下文。支持会话隔离、历史加载。",
        26,
        42,
    ),
    ("東京は日本の首都であり、世界最大級の都市圏を形成している。", 21, 31),
    ("Москва является столицей России и крупнейшим городом страны.", 12, 33),
    ("القاهرة هي عاصمة جمهورية مصر العربية وأكبر مدنها.", 15, 36),
    ("서울은 대한민국의 수도이며 최대 도시입니다.", 10, 23),
]
"""Texts, and their tokens by o200k_base and by cl100k_base."""


@pytest.mark.parametrize(("text", "newer", "older"), SAMPLES)
def test_the_estimate_is_near_what_tokenizers_count(
    text: str, newer: int, older: int
) -> None:
    estimate = COUNTER.text_tokens(text)
    assert 0.85 * newer <= estimate <= 1.15 * older


@given(histories())
def test_each_message_costs_something_and_equal_ones_the_same(history: Any) -> None:
    for message in history.messages:
        if message is not None:
            again = ChatMessage.from_openai(message.to_openai())
            assert COUNTER.count(message) == COUNTER.count(again) >= 1


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_costs_about_what_its_parts_do(one: str, other: str) -> None:
    together = COUNTER.text_tokens(f"{one}\n{other}")
    apart = COUNTER.text_tokens(one) + COUNTER.text_tokens(other)
    assert apart - 2 <= together <= apart + 2


@pytest.mark.parametrize(
    "form", [f for f in Form if f not in {Form.FUNCTION, Form.GEMINI_NAMED}]
)
def test_a_call_costs_the_same_whatever_its_id(form: Form) -> None:
    short = messages([call("c1"), result("c1")], form)
    long = messages([call("c" * 40), result("c1")], form)
    assert short[0] is not None
    assert long[0] is not None
    assert COUNTER.count(short[0]) == COUNTER.count(long[0])


def test_arguments_names_and_unknown_parts_count() -> None:
    bare = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    full = {**bare, "function": {"name": "f", "arguments": '{"city": "Berlin"}'}}
    costs = [
        COUNTER.count(
            ChatMessage.from_openai({"role": "assistant", "tool_calls": [made]})
        )
        for made in (bare, full)
    ]
    assert costs[1] - costs[0] == COUNTER.text_tokens('{"city": "Berlin"}')
    part = {"type": "weather_report", "city": "Berlin", "cache_control": {"a": "b"}}
    unknown = ChatMessage.from_openai({"role": "user", "content": [part]})
    assert COUNTER.count(unknown) > COUNTER.count(ChatMessage.user("Berlin"))
    del part["cache_control"]
    plain = ChatMessage.from_openai({"role": "user", "content": [part]})
    assert COUNTER.count(plain) == COUNTER.count(unknown)
    extra = {"role": "assistant", "content": "a", "reasoning_content": "I think so"}
    assert COUNTER.count(ChatMessage.from_openai(extra)) > 6


URL = "data:image/png;base64," + "A" * 40_000
MEDIA: list[tuple[dict[str, Any], int]] = [
    ({"type": "image_url", "image_url": {"url": URL}}, IMAGE_TOKENS),
    (
        {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
        SMALL_IMAGE_TOKENS,
    ),
    ({"type": "input_image", "image_url": URL, "detail": "low"}, SMALL_IMAGE_TOKENS),
    ({"type": "image", "source": {"type": "base64", "data": URL}}, IMAGE_TOKENS),
    ({"image": {"format": "png", "source": {"bytes": URL}}}, IMAGE_TOKENS),
    ({"inlineData": {"mimeType": "image/png", "data": URL}}, IMAGE_TOKENS),
    ({"type": "input_audio", "input_audio": {"data": "A" * 64_000}}, 11),
    ({"inlineData": {"mimeType": "audio/wav", "data": "A" * 64_000}}, 11),
    ({"type": "file", "file": {"file_id": "f1"}}, PAGE_TOKENS),
    ({"type": "document", "source": {"data": "A" * 400_000}}, 9000),
]


@pytest.mark.parametrize(("part", "expected"), MEDIA)
def test_media_cost_what_they_are_and_not_their_base64(
    part: dict[str, Any], expected: int
) -> None:
    message = ChatMessage.from_openai({"role": "user", "content": [part]})
    assert expected <= COUNTER.count(message) <= expected + 10


def test_media_in_results_cost_what_they_are() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": URL}}
    part = {"type": "tool_result", "tool_use_id": "c", "content": [image]}
    message = ChatMessage.from_openai({"role": "user", "content": [part]})
    assert IMAGE_TOKENS <= COUNTER.count(message) <= IMAGE_TOKENS + 10


def test_proofs_of_reasoning_cost_nothing() -> None:
    part = {"type": "thinking", "thinking": "so", "signature": "A" * 4000}
    message = ChatMessage.from_openai({"role": "assistant", "content": [part]})
    assert COUNTER.count(message) < 12


def test_the_sum_is_of_all_messages() -> None:
    made = [ChatMessage.user("a"), ChatMessage.assistant("b")]
    assert count_tokens(made, COUNTER) == sum(COUNTER.count(m) for m in made)


# An exact tokenizer -------------------------------------------------------------------


@pytest.fixture
def exact() -> TiktokenCounter:
    """A counter with a tokenizer of bytes and one merge."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([n]): n for n in range(256)} | {b"ab": 256}
    encoding = tiktoken.Encoding(
        "bytes",
        pat_str=r"\S+|\s+",
        mergeable_ranks=ranks,
        special_tokens={"<|end|>": 257},
    )
    return TiktokenCounter(encoding)


def test_a_tokenizer_of_ones_own_counts(exact: TiktokenCounter) -> None:
    counter: TokenCounter = exact
    base = counter.count(ChatMessage.user(""))
    assert counter.count(ChatMessage.user("abab x")) == base + 4
    assert counter.count(ChatMessage.user("<|end|>")) == base + 7
    assert counter.count(ChatMessage.user("\ud800")) > base
    assert counter.count(ChatMessage.user("\ud83d\ude00")) == base + 4


def test_an_encoding_that_is_not_known_is_refused() -> None:
    pytest.importorskip("tiktoken")
    with pytest.raises(ValueError, match="no_such_base"):
        TiktokenCounter("no_such_base")


# What the provider says ---------------------------------------------------------------


@given(st.integers(500, 10**6), st.floats(0.2, 6.0), st.floats(-0.04, 0.04))
def test_a_calibration_settles_and_small_changes_do_not_move_it(
    counted: int, scale: float, noise: float
) -> None:
    settled = Calibration().observed(counted, round(counted * scale))
    assert abs(settled.scale - scale) <= 0.1
    again = settled.observed(counted, round(counted * settled.scale * (1 + noise / 6)))
    assert again == settled
    assert settled.within(settled.scaled(counted)) >= counted


def test_a_calibration_does_not_follow_what_says_nothing() -> None:
    start = Calibration(10)
    assert start.observed(499, 5000) == start
    assert start.observed(5000, 0) == start
    assert start.observed(500, 10**9) == Calibration(64)
    assert start.observed(10**9, 1) == Calibration(1)
    swing = [start := start.observed(1000, n) for n in (1160, 1200, 1170, 1190)]
    assert set(swing) == {Calibration(10)}
