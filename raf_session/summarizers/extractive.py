"""`ExtractiveSummarizer`: summaries of the conversation's own sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from anyio import to_thread

from raf_session.graphemes import cut_place, whole_characters
from raf_session.messages import ChatMessage
from raf_session.summarizers.candidates import Candidate, candidates, spoken_texts
from raf_session.summarizers.protocol import check_input
from raf_session.summarizers.salience import is_question
from raf_session.summarizers.subjects import Statement, repeats, replaces
from raf_session.summarizers.summary_lines import Line, line_cost, render_summary
from raf_session.summarizers.transcript import render_messages

__all__ = ("ExtractiveSummarizer",)

LEAST_MAX_CHARS: Final = 80
_TINY: Final = 200
_COMPARED: Final = 4
"""How much more than fits is compared before it is chosen from, as a multiple."""


class ExtractiveSummarizer:
    """A `Summarizer` that picks sentences: no model, no network, always the same text.

    Kept are the lines of the last summary and the sentences that state decisions,
    preferences, constraints, facts about the user, and what is open; English and
    Chinese are told by how such things are worded and by what is concrete in them.
    Greetings, explanations, answered questions, code and the output of tools go.  Of
    statements that repeat each other the newest stays, and one that changes an older
    one takes its place.  When room is short the lightest lines go first, of equals the
    oldest.

    The text has a line for each sentence, under the name of the role that said it, and
    is shorter than what it stands for, unless that was below 200 characters.  It is
    made in a thread, so the event loop goes on.

    Args:
        max_chars: the longest summary, in characters, at least 80.

    Raises:
        ValueError: `max_chars` is below 80.
    """

    def __init__(self, max_chars: int = 2000) -> None:
        if max_chars < LEAST_MAX_CHARS:
            raise ValueError(
                f"max_chars is at least {LEAST_MAX_CHARS}, not {max_chars}"
            )
        self._max_chars = max_chars

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        """Return a summary of everything up to the last of these messages.

        Raises:
            ValueError: there is no message and no summary.
        """
        former = whole_characters(check_input(messages, previous))
        return await to_thread.run_sync(self._write, tuple(messages), former)

    def _write(self, messages: Sequence[ChatMessage], former: str) -> str:
        texts = spoken_texts(messages)
        if former and not texts and len(former) <= self._max_chars:
            return former
        said = sum(len(message.text) for message in messages)
        limit = self._max_chars
        if len(former) + said >= _TINY:
            limit = min(limit, len(former) + said // 2)
        found = candidates(former, texts)
        chosen = _choose(_distinct(found, limit), limit)
        if chosen:
            return render_summary(candidate.line for candidate in chosen)
        if found:
            line = max(found, key=_rank).line
        else:
            line = Line("", " ".join(render_messages(messages).split()))
        return render_summary([_shortened(line, limit)])


def _rank(candidate: Candidate) -> tuple[float, int]:
    return candidate.weight, candidate.place


def _distinct(found: Iterable[Candidate], limit: int) -> list[Candidate]:
    """Return those worth keeping, without what a newer one repeats or replaces."""
    room = _COMPARED * limit
    worthy: list[Candidate] = []
    for candidate in sorted(found, key=_rank, reverse=True):
        if candidate.weight <= 0 or room < 0:
            break
        room -= len(candidate.line.text)
        worthy.append(candidate)
    kept: dict[int, tuple[Candidate, Statement]] = {}
    by_word: dict[str, list[int]] = {}
    for older in sorted(worthy, key=_place, reverse=True):
        statement = Statement(older.line.text)
        near = {place for word in statement.words for place in by_word.get(word, ())}
        newer = next(
            (
                place
                for place in sorted(near)
                if _same_speaker(kept[place][0].line, older.line)
                and _outdates(kept[place][1], statement)
            ),
            None,
        )
        if newer is None:
            kept[older.place] = older, statement
            for word in statement.words:
                by_word.setdefault(word, []).append(older.place)
        elif kept[newer][0].weight < older.weight:
            heavier = kept[newer][0]._replace(weight=older.weight)
            kept[newer] = heavier, kept[newer][1]
    return [candidate for candidate, _ in kept.values()]


def _place(candidate: Candidate) -> int:
    return candidate.place


def _same_speaker(one: Line, other: Line) -> bool:
    return one.speaker == other.speaker or not one.speaker or not other.speaker


def _outdates(newer: Statement, older: Statement) -> bool:
    asked = is_question(newer.text)
    return repeats(newer, older) or (not asked and replaces(newer, older))


def _choose(found: Iterable[Candidate], limit: int) -> list[Candidate]:
    """Return the heaviest that fit, in the order of the conversation."""
    chosen: list[Candidate] = []
    speakers: set[str] = set()
    for candidate in sorted(found, key=_rank, reverse=True):
        cost = line_cost(candidate.line, speakers)
        if cost <= limit:
            limit -= cost
            speakers.add(candidate.line.speaker)
            chosen.append(candidate)
    return sorted(chosen, key=_place)


def _shortened(line: Line, limit: int) -> Line:
    room = limit - line_cost(line._replace(text="…"), set())
    if len(line.text) <= room:
        return line
    return line._replace(text=f"{line.text[: cut_place(line.text, room)]}…")
