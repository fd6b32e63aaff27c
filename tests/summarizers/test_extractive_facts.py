"""How many planted facts are left in a summary at 10 : 1."""

from __future__ import annotations

import pytest

from raf_session.summarizers import ExtractiveSummarizer
from summarizers.conversations import LANGUAGES, SETS, Conversation, conversation

pytestmark = pytest.mark.anyio

CONVERSATIONS = 6
"""Of each set and language: 36 in all, with 288 facts."""

ROUNDS = 5
LEAST_KEPT = 0.8

on_every_set = pytest.mark.parametrize(
    ("name", "language"), [(name, language) for name in SETS for language in LANGUAGES]
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def conversations(name: str, language: str) -> list[Conversation]:
    return [conversation(name, language, seed) for seed in range(CONVERSATIONS)]


def share_kept(conversations: list[Conversation], summaries: list[str]) -> float:
    kept = [
        fact.kept_in(summary)
        for spoken, summary in zip(conversations, summaries, strict=True)
        for fact in spoken.facts
    ]
    return sum(kept) / len(kept)


@on_every_set
async def test_most_planted_facts_are_in_a_summary(name: str, language: str) -> None:
    spoken = conversations(name, language)
    summaries = [
        await ExtractiveSummarizer(one.max_chars).summarize(one.messages)
        for one in spoken
    ]
    for one, summary in zip(spoken, summaries, strict=True):
        assert len(summary) <= one.max_chars
    assert share_kept(spoken, summaries) >= LEAST_KEPT


@on_every_set
async def test_most_are_still_there_after_five_rounds(name: str, language: str) -> None:
    spoken = conversations(name, language)
    summaries: list[str] = []
    for one in spoken:
        summarizer = ExtractiveSummarizer(one.max_chars)
        summary = None
        for messages in one.rounds(ROUNDS):
            summary = await summarizer.summarize(messages, summary)
            assert len(summary) <= one.max_chars
        assert summary is not None
        summaries.append(summary)
    assert share_kept(spoken, summaries) >= LEAST_KEPT


@on_every_set
async def test_the_conversations_are_more_than_their_facts(
    name: str, language: str
) -> None:
    for one in conversations(name, language):
        said = sum(len(message.text) for message in one.messages)
        assert said >= 11 * sum(len(fact.text) for fact in one.facts)
        assert len({message.role for message in one.messages}) >= 2
