"""Windows over recorded conversations: any configuration, any cut.

`RAF_TEST_CONVERSATIONS` names other ones: a file with an object with ``messages`` in
each line.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.history import (
    HistoryPolicy,
    HistoryRule,
    HistoryView,
    HistoryWindow,
    WindowMode,
    select_history,
)
from raf_session.messages import ChatMessage, MessageRole
from raf_session.tokens import EstimatingTokenCounter, count_tokens
from raf_session.validity import (
    Rule,
    Violation,
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

EXAMPLES = Path(__file__).parents[2] / "examples" / "support.requests.jsonl"
CORPUS = Path(os.environ.get("RAF_TEST_CONVERSATIONS", EXAMPLES))
COUNTER = EstimatingTokenCounter()
CHECKS = (openai_violations, anthropic_violations, gemini_violations)


@cache
def conversations() -> list[list[ChatMessage]]:
    """Return each conversation whole, of a log of requests as the last one has it."""
    with CORPUS.open(encoding="utf-8") as lines:
        logs = [json.loads(line) for line in lines]
    return [
        [*map(ChatMessage.from_openai, log.get("requests", [log])[-1]["messages"])]
        for log in logs
    ]


POLICIES = st.builds(
    HistoryPolicy,
    max_messages=st.none() | st.integers(1, 60),
    max_tokens=st.none() | st.integers(1, 8_000),
    keep_tool_calls=st.none() | st.integers(0, 6),
    max_tool_result_size=st.none() | st.integers(1, 2_000),
    tool_call_placeholder=st.none() | st.just("[left out]"),
    mode=st.sampled_from(WindowMode),
    low_mark=st.sampled_from([0.2, 0.55, 1.0]),
)


def violations(view: HistoryView) -> list[Violation]:
    """Return what any provider refuses, but that there is nothing to send."""
    found = [v for judge in CHECKS for v in judge(view.messages)]
    return [v for v in found if v.rule is not Rule.EMPTY_REQUEST]


DEMANDS = {
    HistoryRule.MAX_MESSAGES: "max_messages",
    HistoryRule.MAX_TOKENS: "max_tokens",
    HistoryRule.TOOL_CALLS: "keep_tool_calls",
}


def check(history: list[ChatMessage], policy: HistoryPolicy, limit: int | None) -> None:
    """Judge a view by what the design says of it."""
    view = select_history(history, policy, COUNTER, limit=limit, close_end=True)
    assert violations(view) == []
    assert sorted((*view.kept, *view.dropped)) == list(range(len(history)))
    assert view.tokens == count_tokens(view.messages, COUNTER)
    if not view.overrun:
        most = min(n for n in (policy.max_messages, limit, len(history)) if n)
        assert len(view.kept) <= most
        assert policy.max_tokens is None or view.tokens <= policy.max_tokens
    for rule in {*view.dropped.values()} & DEMANDS.keys():
        by_limit = rule is HistoryRule.MAX_MESSAGES and limit is not None
        assert by_limit or getattr(policy, DEMANDS[rule]) is not None
    if limit is None:
        turns = [i for i, m in enumerate(history) if m.role is MessageRole.USER]
        assert {*turns[-1:]} <= {*view.kept}
    untouched = {*view.kept} - {*view.stripped} - {*view.truncated}
    sent = {message.text for message in view.messages}
    moved = {repair.message_index for repair in view.repairs}
    assert {history[i].text for i in untouched - moved} <= sent


@given(st.data(), POLICIES, st.none() | st.integers(1, 60))
def test_any_cut_of_any_conversation_is_valid_whole_and_within_its_limits(
    data: st.DataObject, policy: HistoryPolicy, limit: int | None
) -> None:
    number = data.draw(st.integers(0, len(conversations()) - 1))
    history = conversations()[number]
    start = data.draw(st.integers(0, len(history) - 1))
    end = data.draw(st.integers(start + 1, len(history)))
    check(history[start:end], policy, limit)


@pytest.mark.parametrize("mode", WindowMode)
def test_each_conversation_is_valid_at_every_message(mode: WindowMode) -> None:
    policy = HistoryPolicy(max_tokens=1_500, keep_tool_calls=2, mode=mode)
    for history in conversations():
        window = HistoryWindow(policy, COUNTER)
        view = window.view(close_end=True)
        for message in history:
            window.extend([message])
            view = window.view(close_end=True)
            assert violations(view) == []
        assert view == select_history(history, policy, COUNTER, close_end=True)
