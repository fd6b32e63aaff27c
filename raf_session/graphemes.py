"""Places at which a text can be cut without breaking a character."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ("cut_place", "cut_text", "pieces", "whole_characters")

LONGEST_CLUSTER: Final = 64
"""Where more code points than these cling together, they are cut all the same."""

_JOINER: Final = "\u200d"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def whole_characters(text: str) -> str:
    """Return the text with each pair of surrogates joined and lone ones as U+FFFD."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut_place(text: str, limit: int) -> int:
    """Return the last place up to `limit`, in code points, where a character ends.

    Kept whole are surrogate pairs, marks with their base, emoji sequences, pairs of
    regional indicators, Hangul syllables in parts, and CR LF.  Where a cluster is
    longer than 64 code points, `limit` itself is returned.
    """
    if limit >= len(text):
        return len(text)
    lowest = max(limit - LONGEST_CLUSTER, 0)
    for place in range(limit, lowest, -1):
        if not _cling(text, place):
            return place
    return limit if lowest else 0


def cut_text(text: str, limit: int) -> str:
    """Return the text, or its beginning in `limit` code points and what was cut.

    What is cut is said behind the beginning, as ``… [1,234 characters cut]``.
    """
    if len(text) <= limit:
        return text
    place = cut_place(text, limit)
    return f"{text[:place]}… [{len(text) - place:,} characters cut]"


def pieces(text: str, limit: int) -> list[str]:
    """Return the text in pieces of at most `limit` code points, no character broken.

    A piece ends at a line's end where one stands in its second half.
    """
    found: list[str] = []
    start = 0
    while len(text) - start > limit:
        window = text[start : start + limit + 1]
        line_end = window.rfind("\n", limit // 2, limit) + 1
        place = line_end or cut_place(window, limit) or limit
        found.append(window[:place])
        start += place
    found.append(text[start:])
    return found


def _cling(text: str, place: int) -> bool:
    """Tell whether the code points on both sides of a place are one character."""
    before, after = text[place - 1], text[place]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if _JOINER in {before, after} or unicodedata.category(after) in _MARKS:
        return True
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if "\u1160" <= after <= "\u11ff":  # vowel or final of a Hangul syllable
        return True
    if after in _SPACING_LETTERS:
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True
    return _is_regional(after) and _regional_before(text, place) % 2 == 1


_MARKS: Final = frozenset(("Mn", "Mc", "Me"))
_SPACING_LETTERS: Final = frozenset("\u0e33\u0eb3")
"""The Thai and Lao vowels that are letters to Unicode and marks to UAX #29."""


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regional_before(text: str, place: int) -> int:
    start = place
    while start and _is_regional(text[start - 1]) and place - start < LONGEST_CLUSTER:
        start -= 1
    return place - start
