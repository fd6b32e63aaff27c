"""What an extractive summary can be made of, and how much each line matters."""
# ruff: noqa: RUF001  (Chinese punctuation is meant)

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from raf_session.graphemes import whole_characters
from raf_session.messages import ChatMessage, MessageRole
from raf_session.summarizers.salience import is_question, puts_off, salience
from raf_session.summarizers.sentences import content_words, sentences
from raf_session.summarizers.summary_lines import Line, parse_summary

__all__ = ("Candidate", "Text", "candidates", "spoken_texts")

LONGEST_RESULT: Final = 200
"""A tool's result up to this length is read as something that was said."""

_KEPT_BEFORE: Final = 0.5
"""The least weight of a line of the last summary."""

_SPEAKERS: Final = {
    MessageRole.DEVELOPER: "system",
    MessageRole.FUNCTION: "tool",
}
_OPENING: Final = re.compile(
    r"^(?:(?:oh|ok|okay|well|so|right|fine|yes|yeah|no problem|by the way|btw|also|and"
    r"|hmm|anyway|just so you know|for the record|sure|noted|done|great|perfect)"
    r"[,.!:;]\s+|(?:嗯|哦|对了|行|好的|好|那|啊|另外|还有|顺便说一下)[，,。！!]\s*)+",
    re.IGNORECASE,
)
_JSON: Final = re.compile(r"\s*[\[{<]")
_YES_OR_NO: Final = re.compile(
    r"\s*(?:yes|no|yep|nope|correct|it (?:is|does|did|has|was))\b"
    r"|\s*(?:是的|不是|有的|没有|对)",
    re.IGNORECASE,
)


class Text(NamedTuple):
    """The sentences of one message."""

    speaker: str
    sentences: tuple[str, ...]


class _Reply(NamedTuple):
    """What was said between a message of the user's and the next."""

    beginning: str
    words: frozenset[str]

    def after(self, text: Text) -> _Reply:
        words = (content_words(sentence) for sentence in text.sentences)
        return _Reply(" ".join(text.sentences[:2]), self.words.union(*words))


_NO_REPLY: Final = _Reply("", frozenset())


class Candidate(NamedTuple):
    """A line that a summary may have."""

    line: Line
    weight: float
    place: int
    """Its place in the conversation; the last summary's come first."""


def spoken_texts(messages: Sequence[ChatMessage]) -> list[Text]:
    """Return what was said, without the output of tools that is not worth reading."""
    texts: list[Text] = []
    for message in messages:
        speaker = _SPEAKERS.get(message.role, message.role.value)
        text = whole_characters(message.text)
        if speaker == "tool" and (len(text) > LONGEST_RESULT or _JSON.match(text)):
            continue
        found = tuple(
            filter(None, (_OPENING.sub("", sentence) for sentence in sentences(text)))
        )
        if found:
            texts.append(Text(speaker, found))
    return texts


def candidates(former: str, texts: Sequence[Text]) -> list[Candidate]:
    """Return the lines of the last summary that still hold, and what was said since."""
    lines = [*_earlier(former, texts), *_said(texts)]
    return [
        Candidate(line, weight, place) for place, (line, weight) in enumerate(lines)
    ]


def _earlier(summary: str, texts: Sequence[Text]) -> Iterator[tuple[Line, float]]:
    """Yield the lines of the last summary that still hold."""
    answers = [
        content_words(sentence)
        for text in texts
        if text.speaker != "user"
        for sentence in text.sentences
        if not puts_off(sentence)
    ]
    for line in parse_summary(summary):
        asked = is_question(line.text)
        if not asked or not any(_covers(line.text, words) for words in answers):
            weight = salience(line.text, line.speaker, open_question=asked)
            yield line, max(weight, _KEPT_BEFORE)


def _covers(question: str, words: set[str]) -> bool:
    asked = content_words(question)
    return bool(asked) and len(asked & words) * 2 > len(asked)


def _said(texts: Sequence[Text]) -> Iterator[tuple[Line, float]]:
    lines: list[tuple[Line, float]] = []
    reply = _NO_REPLY
    user_follows = False
    for text in reversed(texts):
        from_user = text.speaker == "user"
        for sentence in reversed(text.sentences):
            asked = is_question(sentence) and not (
                _answered(sentence, reply) if from_user else user_follows
            )
            weight = salience(sentence, text.speaker, open_question=asked)
            lines.append((Line(text.speaker, sentence), weight))
        reply = _NO_REPLY if from_user else reply.after(text)
        user_follows = user_follows or from_user
    return reversed(lines)


def _answered(question: str, reply: _Reply) -> bool:
    """Tell whether a reply answers: it does not put off, and speaks of what was asked.

    A question of which no word says what it is about counts as answered by anything.
    """
    if not reply.beginning or puts_off(reply.beginning):
        return False
    asked = content_words(question)
    return (
        not asked
        or _YES_OR_NO.match(reply.beginning) is not None
        or not asked.isdisjoint(reply.words)
    )
