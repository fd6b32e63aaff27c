"""The text of an extractive summary: lines by speaker, and back."""
# ruff: noqa: RUF001  (Chinese punctuation is meant)

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from raf_session.summarizers.sentences import sentences

__all__ = ("Line", "line_cost", "parse_summary", "render_summary")

_LABELS: Final = {
    "user": ("User:", "用户："),
    "assistant": ("Assistant:", "助手："),
    "system": ("System:", "系统："),
    "tool": ("Tool:", "工具："),
}
_SPEAKERS: Final = {
    label: speaker for speaker, labels in _LABELS.items() for label in labels
}
_BULLET: Final = "- "
_HAN: Final = re.compile("[\u4e00-\u9fff]")


class Line(NamedTuple):
    """One statement of a summary."""

    speaker: str
    """A role, or ``""`` where the summary does not say."""

    text: str
    """Without line breaks, and not blank."""


def line_cost(line: Line, speakers: set[str]) -> int:
    """Return the characters that a line adds to a summary of these speakers."""
    label = 0
    if line.speaker and line.speaker not in speakers:
        label = len(_LABELS[line.speaker][0]) + 1
    return label + len(_BULLET) + len(line.text) + 1


def render_summary(lines: Iterable[Line]) -> str:
    """Return the lines as text, those of one speaker together in the order given."""
    kept = list(lines)
    chinese = sum(bool(_HAN.search(line.text)) for line in kept) * 2 > len(kept)
    shown = [f"{_BULLET}{line.text}" for line in kept if not line.speaker]
    for speaker, labels in _LABELS.items():
        said = [f"{_BULLET}{line.text}" for line in kept if line.speaker == speaker]
        if said:
            shown += [labels[chinese], *said]
    return "\n".join(shown)


def parse_summary(text: str) -> Iterator[Line]:
    """Yield the lines of a summary, or the sentences of one written elsewhere."""
    speaker = ""
    for row in text.splitlines():
        if row in _SPEAKERS:
            speaker = _SPEAKERS[row]
        elif row.startswith(_BULLET) and row[len(_BULLET) :].strip():
            yield Line(speaker, row[len(_BULLET) :].strip())
        else:
            speaker = ""
            yield from (Line("", sentence) for sentence in sentences(row))
