"""`CompactionDraft`: which messages of a session the next summary stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from raf_session.compaction import plan_compaction
from raf_session.entries import Entry, Record
from raf_session.history.log import as_shown
from raf_session.manager.history_windows import long_running_calls
from raf_session.manager.summary_messages import is_summary, original_count, summary_of
from raf_session.messages import ChatMessage
from raf_session.toolcalls import find_groups

__all__ = ("CompactionDraft",)


class CompactionDraft(NamedTuple):
    """What a summary is going to stand for."""

    record: Record
    messages: tuple[ChatMessage | None, ...]
    """Of all entries of the record."""
    places: tuple[int, ...]
    """The places of the entries that are covered, ascending."""
    fresh: tuple[ChatMessage, ...]
    """The messages of these, the former summary left out."""
    previous: str
    """The text of the former summary, ``""`` for none."""

    @classmethod
    def of(cls, record: Record, keep_recent: int) -> Self:
        """Return what of a whole record the next summary stands for.

        All active messages count, those too that no request shows.  The last ones stay,
        calls that wait for results, and pinned messages with the calls and results that
        they are of.  What stays begins with a message of the user's, unless that keeps
        more than half of what may go: a turn that is most of the history is cut,
        between its groups.
        """
        messages = tuple(entry.message for entry in record.entries)
        long_running = long_running_calls(messages)
        turns, anywhere = (
            plan_compaction(
                messages,
                keep_recent=keep_recent,
                from_user_turn=from_user_turn,
                long_running=long_running,
            ).covered
            for from_user_turn in (True, False)
        )
        plan = turns if 2 * len(turns) >= len(anywhere) else anywhere
        pinned = _pinned(messages, long_running)
        places = tuple(place for place in plan if place not in pinned)
        covered = [messages[place] for place in places]
        return cls(
            record,
            messages,
            places,
            tuple(m for m in covered if m is not None and not is_summary(m)),
            summary_of(covered),
        )

    @property
    def covered(self) -> tuple[Entry, ...]:
        """The entries that leave."""
        return tuple(self.record.entries[place] for place in self.places)

    @property
    def keep(self) -> list[int]:
        """The places in the log, between these, of entries that stay."""
        first, last, covered = self.places[0], self.places[-1], set(self.places)
        between = range(first, last)
        return [self.record.entries[i].seq for i in between if i not in covered]

    @property
    def originals(self) -> int:
        """How many messages the new summary stands for, those of the former one too."""
        covered = (self.messages[place] for place in self.places)
        former = [m for m in covered if m is not None and is_summary(m)]
        return len(self.fresh) + sum(map(original_count, former))

    def after(self, summary: ChatMessage) -> list[ChatMessage | None]:
        """Return the history with a summary in the place of what it stands for."""
        covered, history = set(self.places), list(self.messages)
        history[self.places[0]] = summary
        covered.discard(self.places[0])
        return [m for i, m in enumerate(history) if i not in covered]


def _pinned(
    messages: Sequence[ChatMessage | None], long_running: frozenset[str]
) -> frozenset[int]:
    """Return the places of pinned messages, with the calls and results they are of."""
    places = {
        index
        for index, message in enumerate(messages)
        if message is not None and message.metadata.get("pinned") is True
    }
    if not places:
        return frozenset()
    shown = [m if m is None else as_shown(m) for m in messages]
    bundles = find_groups(shown, long_running).bundles()
    return frozenset(places).union(*(b for b in bundles if not places.isdisjoint(b)))
