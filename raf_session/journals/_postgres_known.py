"""Heads as appends of this journal left them, so that the next one need not ask."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from raf_session.entries import SessionHead
from raf_session.journals._sql_writes import Append
from raf_session.keys import SessionKey

__all__ = ("KnownHead", "KnownHeads")

_MOST: Final = 1024


class KnownHead(NamedTuple):
    """A head, and the version of its row that says so."""

    head: SessionHead
    number: int
    xmin: int
    """The transaction that wrote this version; whatever is written next has another."""
    alone: bool = True
    """Whether nobody else wrote between the last two appends."""


class KnownHeads:
    """The heads of the sessions that were appended to last.

    An append goes by what is known only where the row is still of the version that is
    known; else nothing is written, and the whole row is asked for. Where others write
    in turn it would be another each time: such a session is asked for at once.
    """

    def __init__(self) -> None:
        self._heads: OrderedDict[SessionKey, KnownHead] = OrderedDict()

    def find(self, append: Append) -> KnownHead | None:
        """Return the head that the append is likely to meet, `None`: nobody knows."""
        known = self._heads.get(append.key)
        if (
            known is None
            or not known.alone
            or append.incarnation not in {None, known.head.incarnation}
            or append.expected_revision not in {None, known.head.revision}
        ):
            return None
        return known

    def note(self, head: SessionHead, number: int, xmin: int) -> None:
        """Keep what an append has left."""
        before = self._heads.pop(head.key, None)
        alone = before is None or before.head.revision + 1 == head.revision
        self._heads[head.key] = KnownHead(head, number, xmin, alone)
        if len(self._heads) > _MOST:
            self._heads.popitem(last=False)

    def forget(self, key: SessionKey) -> None:
        """Know nothing of a session that is written in another way."""
        self._heads.pop(key, None)
