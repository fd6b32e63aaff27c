"""Which statements say the same, and which take the place of an older one."""
# ruff: noqa: RUF001  (Chinese punctuation is meant)

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from raf_session.summarizers.sentences import content_words, numbers

__all__ = ("Statement", "repeats", "replaces")

_CHANGED: Final = re.compile(
    r"\b(?:actually|instead|rather than|chang\w+ (?:my|our|his|her|their) minds?"
    r"|no longer|not? (?:\w+ ){0,3}any ?more|make (?:it|that)|correction|scratch that"
    r"|after all|moved?|now|update[ds]?|switch\w*)\b"
    r"|改|换成|换到|不再|更正|取消|其实|还是|变成|变了|现在|挪到|推迟",
    re.IGNORECASE,
)
_ATTRIBUTE: Final = re.compile(
    r"(?:my|our|the)\s+(?P<name>[\w' -]{2,40}?)\s+(?:is|are|was|will be)\s"
    r"|(?:我|我们|咱们)?的?(?P<item>[^，。是为:：\s]{2,10})[是为：:]",
    re.IGNORECASE,
)
_SAME_WORDS: Final = 0.8
_SAME_SUBJECT: Final = 0.5


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with what comparing it needs."""

    text: str
    words: frozenset[str] = field(init=False)
    numbers: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", frozenset(content_words(self.text)))
        object.__setattr__(self, "numbers", frozenset(numbers(self.text)))


def repeats(one: Statement, other: Statement) -> bool:
    """Tell whether two statements say the same: most words shared, numbers equal."""
    if one.text == other.text:
        return True
    if one.numbers != other.numbers or not one.words or not other.words:
        return False
    shared = len(one.words & other.words)
    return shared >= _SAME_WORDS * len(one.words | other.words)


def replaces(newer: Statement, older: Statement) -> bool:
    """Tell whether a statement takes the place of an older one by the same speaker.

    It does where it says that something changed and shares at least two words and half
    of the shorter one's, or where both give the same attribute another number (``my
    budget is 900``).  Other statements on one subject may both hold, and stay.
    """
    shared = len(newer.words & older.words)
    least = min(len(newer.words), len(older.words))
    if _CHANGED.search(newer.text) and shared >= max(2, _SAME_SUBJECT * least):
        return True
    if not newer.numbers or not older.numbers or newer.numbers == older.numbers:
        return False
    name = _attribute(newer.text)
    return name is not None and name == _attribute(older.text)


def _attribute(text: str) -> str | None:
    found = _ATTRIBUTE.match(text)
    return (found["name"] or found["item"]).lower() if found else None
