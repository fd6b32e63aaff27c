"""Stores that bring their journal, by class and by URL."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from typing_extensions import override

from raf_session.clock import Clock, utc_now
from raf_session.journal import Codec, Journal
from raf_session.options import Limits, SessionTTLOptions
from raf_session.stores.session_store import DEFAULT_TYPES, SessionStore

__all__ = (
    "InMemorySessionStore",
    "OwningStore",
    "SqliteSessionStore",
    "open_journal",
    "open_store",
)

Durability = Literal["kill", "power"]


def open_journal(
    url: str,
    *,
    limits: Limits | None = None,
    clock: Clock = utc_now,
    codec: Codec | None = None,
    durability: Durability = "kill",
) -> Journal:
    """Return the journal of a URL, to be opened by ``async with``.

    ``memory://`` keeps sessions while the object lives; ``sqlite:///relative.db`` and
    ``sqlite:////absolute/path.db`` in a file.

    Args:
        url: where sessions are kept.
        limits: time to live and sizes; `None`: nothing expires.
        clock: whose time decides.
        codec: between JSON and storage.
        durability: ``kill``: what was acknowledged survives the end of every process;
            ``power``: it is synced to the disk first.

    Raises:
        ValueError: nothing is known to carry this URL.
    """
    parts = urlsplit(url)
    if parts.scheme == "memory":
        from raf_session.journals.memory import MemoryJournal  # noqa: PLC0415

        return MemoryJournal(limits=limits, clock=clock, codec=codec)
    if parts.scheme == "sqlite":
        from raf_session.journals.sqlite import SqliteJournal  # noqa: PLC0415

        return SqliteJournal(
            _sqlite_path(url),
            limits=limits,
            clock=clock,
            codec=codec,
            durability=durability,
        )
    hint = "" if parts.scheme else f"; did you mean sqlite:///{url}?"
    raise ValueError(f"no store for {url!r}: memory:// or sqlite:///path{hint}")


def _sqlite_path(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc or parts.query or parts.fragment or not parts.path.strip("/"):
        raise ValueError(
            f"{url!r} names no file: sqlite:///relative.db or sqlite:////absolute.db"
        )
    return unquote(parts.path[1:])


class OwningStore(SessionStore):
    """A store that opens its journal with ``async with``, and closes it."""

    @override
    async def _open(self, stack: AsyncExitStack) -> None:
        await stack.enter_async_context(self.journal)


def open_store(
    url: str,
    *,
    ttl: SessionTTLOptions | None = None,
    types: Sequence[type[Any]] = DEFAULT_TYPES,
    clock: Clock = utc_now,
    codec: Codec | None = None,
    durability: Durability = "kill",
) -> OwningStore:
    """Return the store of a URL, to be opened by ``async with``.

    Args:
        url: see `open_journal`.
        ttl: how long sessions live; `None`: for ever.
        types: see `SessionStore`.
        clock: whose time decides.
        codec: between JSON and storage.
        durability: see `open_journal`.
    """
    journal = open_journal(
        url, limits=_limits(ttl), clock=clock, codec=codec, durability=durability
    )
    return OwningStore(journal, types=types)


def _limits(ttl: SessionTTLOptions | None) -> Limits:
    return Limits() if ttl is None else Limits(sessions=ttl)


class InMemorySessionStore(SessionStore):
    """Sessions in dicts, usable at once; ``async with`` adds the sweep.

    RAF: ``InMemorySessionStore``.
    """

    def __init__(
        self,
        *,
        ttl: SessionTTLOptions | None = None,
        types: Sequence[type[Any]] = DEFAULT_TYPES,
        clock: Clock = utc_now,
    ) -> None:
        from raf_session.journals.memory import MemoryJournal  # noqa: PLC0415

        super().__init__(
            MemoryJournal.opened(limits=_limits(ttl), clock=clock), types=types
        )


class SqliteSessionStore(OwningStore):
    """Sessions in one SQLite file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        ttl: SessionTTLOptions | None = None,
        types: Sequence[type[Any]] = DEFAULT_TYPES,
        clock: Clock = utc_now,
        codec: Codec | None = None,
        durability: Durability = "kill",
    ) -> None:
        from raf_session.journals.sqlite import SqliteJournal  # noqa: PLC0415

        journal = SqliteJournal(
            path,
            limits=_limits(ttl),
            clock=clock,
            codec=codec,
            durability=durability,
        )
        super().__init__(journal, types=types)
