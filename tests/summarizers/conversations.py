"""Conversations with planted facts, made from a seed."""
# ruff: noqa: RUF001  (Chinese punctuation is meant)

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from raf_session.messages import ChatMessage
from raf_session.parts import TextPart

HERE = Path(__file__).parent
SETS = ("planted", "held_back", "fresh")
"""The first was written before the extractor, the second after it was finished, the
third after it had been changed for what the second showed."""

LANGUAGES = ("english", "chinese")
RATIO = 10
"""Characters of a conversation to characters of its summary."""

SHARE = 15
"""Characters of a conversation to characters of its planted facts, before these take
the place of some filler."""

FACTS = 8
_ROWS = {"english": (3, 12), "chinese": (1, 4)}


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that a summary has to keep."""

    kind: str
    speaker: str
    text: str
    keys: tuple[str, ...]

    def kept_in(self, summary: str) -> bool:
        """Tell whether one line of the summary holds everything that counts."""
        return any(
            all(key.lower() in line.lower() for key in self.keys)
            for line in summary.splitlines()
        )


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns, each a few messages, and what is planted in them."""

    turns: tuple[tuple[ChatMessage, ...], ...]
    facts: tuple[Fact, ...]

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        return tuple(message for turn in self.turns for message in turn)

    @property
    def max_chars(self) -> int:
        """The room of a summary at 10 : 1."""
        return sum(len(message.text) for message in self.messages) // RATIO

    def rounds(self, count: int) -> list[tuple[ChatMessage, ...]]:
        """The messages in so many parts, cut between turns."""
        size = -(-len(self.turns) // count)
        parts = (self.turns[i : i + size] for i in range(0, len(self.turns), size))
        return [tuple(message for turn in part for message in turn) for part in parts]


@cache
def _data(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def facts(name: str, language: str) -> list[Fact]:
    """The facts of one set."""
    return [
        Fact(kind, speaker, text, tuple(keys))
        for kind, rows in _data(f"{name}_facts")[language].items()
        for speaker, text, keys in rows
    ]


def conversation(name: str, language: str, seed: int) -> Conversation:
    """A conversation of that language with facts and filler of that set."""
    random = Random(f"{name} {language} {seed}")
    planted = random.sample(facts(name, language), FACTS)
    least = SHARE * sum(len(fact.text) for fact in planted)
    filler = _data(f"{name}_filler")[language]
    turns: list[list[ChatMessage]] = []
    while len(turns) < 2 * FACTS or _length(turns) < least:
        turns.append(_turn(random, language, filler, None))
    for place, fact in zip(
        sorted(random.sample(range(len(turns)), FACTS)), planted, strict=True
    ):
        turns[place] = _turn(random, language, filler, fact)
    return Conversation(tuple(map(tuple, turns)), tuple(planted))


def _length(turns: list[list[ChatMessage]]) -> int:
    return sum(len(message.text) for turn in turns for message in turn)


def _turn(
    random: Random, language: str, filler: dict[str, list[str]], fact: Fact | None
) -> list[ChatMessage]:
    joint = " " if language == "english" else ""
    asked = random.sample(filler["user"], random.choice((1, 1, 2)))
    if random.random() < 0.1:
        asked.insert(0, random.choice(filler["greetings"]))
    answered = [random.choice(filler["assistant"])]
    if fact is not None and fact.speaker == "user":
        asked.insert(random.randint(0, len(asked)), fact.text)
        if random.random() < 0.4:
            asked = [fact.text]
        if fact.text.endswith(("?", "？")):
            answered.insert(0, random.choice(filler["deferrals"]))
    elif fact is not None:
        answered.insert(random.randint(0, 1), fact.text)
    question = joint.join(asked)
    turn = [
        ChatMessage.user(
            question if random.random() < 0.8 else [TextPart(text=question)]
        )
    ]
    if random.random() < 0.15:
        turn += _lookup(random, language)
    return [*turn, ChatMessage.assistant(joint.join(answered))]


def _lookup(random: Random, language: str) -> list[ChatMessage]:
    call = f"call_{random.randrange(10**6)}"
    rows = [
        {
            "id": f"R-{random.randrange(10**5)}",
            "score": random.randrange(1000) / 1000,
            "city": random.choice(("Lyon", "Ulm", "York", "Turku", "Bari")),
        }
        for _ in range(random.randint(*_ROWS[language]))
    ]
    asks = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": call,
                "type": "function",
                "function": {"name": "search", "arguments": '{"page": 1}'},
            }
        ],
    }
    return [
        ChatMessage.from_openai(asks),
        ChatMessage.tool(json.dumps({"rows": rows}), call),
    ]
