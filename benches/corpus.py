"""The conversations that every contender gets: the same bytes in every run."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

__all__ = ("conversation", "numbered")

_SENTENCE = (
    "the flight was booked for two passengers and the refund will reach the card in "
    "five to seven business days unless the reservation is changed before departure "
    "please confirm that the baggage allowance and the seat are still as you wish"
)
_WORDS = _SENTENCE.split(" ")


def _text(rng: random.Random, size: int) -> str:
    words: list[str] = []
    length = 0
    while length < size:
        word = rng.choice(_WORDS)
        words.append(word)
        length += len(word) + 1
    return " ".join(words)[:size]


def conversation(
    count: int = 200, size: int = 510, seed: int = 1
) -> list[dict[str, Any]]:
    """Return messages with tool calls, OpenAI's shape, ASCII, of about `size` bytes.

    The default 200 are 113 kB as compact JSON.
    """
    rng = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "system", "content": _text(rng, size)}]
    turn = 0
    while len(messages) < count:
        turn += 1
        call = f"call_{turn:06d}"
        messages += [
            {"role": "user", "content": _text(rng, size)},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": call,
                        "type": "function",
                        "function": {
                            "name": "search_reservations",
                            "arguments": f'{{"query":"{_text(rng, size - 90)}"}}',
                        },
                    }
                ],
            },
            {"role": "tool", "tool_call_id": call, "content": _text(rng, size)},
            {"role": "assistant", "content": _text(rng, size)},
        ]
    return messages[:count]


_BASE = 1000


@cache
def _bases() -> list[str]:
    rng = random.Random(3)
    return [_text(rng, 200) for _ in range(_BASE)]


def numbered(start: int, count: int) -> list[dict[str, Any]]:
    """Return messages of about 200 bytes, no two the same: the number stands in front.

    Args:
        start: the number of the first.
        count: how many.
    """
    bases = _bases()
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"{n} {bases[n % _BASE]}"}
        for n in range(start, start + count)
    ]
