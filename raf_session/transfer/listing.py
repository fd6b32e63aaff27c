"""`Listing`: the heads of sessions, past those that cannot be read."""

from __future__ import annotations

from typing import Final, NamedTuple

from raf_session.entries import SessionHead
from raf_session.errors import SessionDamagedError
from raf_session.journal import Journal
from raf_session.keys import SessionKey
from raf_session.options import Query

__all__ = ("Damaged", "Heads", "Listing")

_PAGE: Final = 500


class Damaged(NamedTuple):
    """A session whose head cannot be read."""

    key: SessionKey
    error: SessionDamagedError


class Heads(NamedTuple):
    """A part of a listing: heads, or the one that cannot be read."""

    heads: tuple[SessionHead, ...] = ()
    damaged: Damaged | None = None


class Listing:
    """The sessions of a query in the order of their keys, page by page.

    A journal refuses a page with a head that cannot be read.  The page is then asked
    for in smaller parts, down to that one session, and the listing goes on behind it.

    Args:
        journal: whose sessions.
        query: which of them.
    """

    def __init__(self, journal: Journal, query: Query) -> None:
        self._journal = journal
        self._query = query
        self._cursor: str | None = None
        self._limit = _PAGE
        self._ended = False

    async def page(self) -> Heads | None:
        """Return the next page, which may be empty; `None` behind the last.

        Raises:
            SessionDamagedError: what cannot be read is no session of the listing.
        """
        if self._ended:
            return None
        try:
            page = await self._journal.scan(
                self._query, self._cursor, order="key", limit=self._limit
            )
        except SessionDamagedError as error:
            if self._limit > 1:
                self._limit //= 2
                return Heads()
            return Heads(damaged=self._pass_over(error))
        self._limit = min(2 * self._limit, _PAGE)
        self._cursor = page.cursor
        self._ended = page.cursor is None
        return Heads(tuple(listed.head for listed in page.sessions))

    def _pass_over(self, error: SessionDamagedError) -> Damaged:
        try:
            key = SessionKey.parse(error.key)
        except ValueError:
            raise error from None
        behind = f"key:{key}"
        if behind == self._cursor:
            raise error
        self._cursor = behind
        return Damaged(key, error)
