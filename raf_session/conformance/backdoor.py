"""`Backdoor`: the storage of a journal past the journal, for checks that ask for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeAlias

from typing_extensions import Protocol

from raf_session.entries import Entry
from raf_session.journal import Journal
from raf_session.keys import SessionKey

__all__ = ("Backdoor", "BackdoorFactory")


class Backdoor(Protocol):
    """Raw rows in and out, so that no read has to trust a write, nor the reverse.

    Write it with the tools of the storage alone: a back door that calls the journal, or
    shares its encoder, proves nothing.
    """

    @abstractmethod
    async def rows(self, key: SessionKey) -> Sequence[Entry]:
        """Return what the storage holds of the session's entries, in any order.

        Those in the archive too, each with `seq`, `stored_at` and `left_at`; nothing
        where there is no such session.  Messages need only role and text.
        """
        ...

    @abstractmethod
    async def put(self, key: SessionKey, rows: Sequence[Entry]) -> None:
        """Make these all that an existing session holds, in this order of writing.

        Places, times and `left_at` are theirs; what the storage keeps beside them, the
        highest place and counts, is made to fit.  Messages have role and text alone.
        """
        ...

    @abstractmethod
    async def spoil(self, key: SessionKey, seq: int) -> None:
        """Damage the stored body of the active entry on that place, as a bad disk."""
        ...


BackdoorFactory: TypeAlias = Callable[[Journal], Backdoor]
"""Gives the back door to the storage of an open journal."""
