"""Stores that bring their journal, by class and by URL."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, TypedDict

from typing_extensions import Unpack, override

from raf_session.clock import Clock, utc_now
from raf_session.journal import Codec, Durability
from raf_session.options import Limits, SessionTTLOptions
from raf_session.stores.session_store import DEFAULT_TYPES, SessionStore
from raf_session.stores.urls import open_journal

__all__ = (
    "FileSystemSessionStore",
    "InMemorySessionStore",
    "MysqlSessionStore",
    "OwningStore",
    "PostgresSessionStore",
    "RedisSessionStore",
    "SqliteSessionStore",
    "StoreOptions",
    "open_store",
)


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
        from raf_session.journals.memory import MemoryJournal

        super().__init__(
            MemoryJournal.opened(limits=_limits(ttl), clock=clock), types=types
        )


class StoreOptions(TypedDict, total=False):
    """What every store with a journal of its own takes; see `open_store`."""

    ttl: SessionTTLOptions | None
    types: Sequence[type[Any]]
    clock: Clock
    codec: Codec | None
    durability: Durability


def _of_journal(options: StoreOptions) -> dict[str, Any]:
    return {
        "limits": _limits(options.get("ttl")),
        "clock": options.get("clock", utc_now),
        "codec": options.get("codec"),
        "durability": options.get("durability", "kill"),
    }


class FileSystemSessionStore(OwningStore):
    """Sessions in JSONL files, one each.

    Args:
        folder: where they stand; it is made where it is missing.
        strict: whether a damaged line is an error; else it is skipped and reported.
        options: see `open_store`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        strict: bool = False,
        **options: Unpack[StoreOptions],
    ) -> None:
        from raf_session.journals.jsonl import JsonlJournal

        journal = JsonlJournal(folder, strict=strict, **_of_journal(options))
        super().__init__(journal, types=options.get("types", DEFAULT_TYPES))


class SqliteSessionStore(OwningStore):
    """Sessions in one SQLite file.

    Args:
        path: the file; it is made where it is missing.
        options: see `open_store`.
    """

    def __init__(
        self, path: str | os.PathLike[str], **options: Unpack[StoreOptions]
    ) -> None:
        from raf_session.journals.sqlite import SqliteJournal

        journal = SqliteJournal(path, **_of_journal(options))
        super().__init__(journal, types=options.get("types", DEFAULT_TYPES))


class RedisSessionStore(OwningStore):
    """Sessions in Redis.

    Args:
        target: a URL, or a client of yours, which is never closed.
        prefix: what stands in front of all keys.
        wait_replicas: how many replicas must have a write before it is acknowledged.
        options: see `open_store`.
    """

    def __init__(
        self,
        target: str | object,
        *,
        prefix: str = "raf",
        wait_replicas: int = 0,
        **options: Unpack[StoreOptions],
    ) -> None:
        from raf_session.journals.redis import RedisJournal

        journal = RedisJournal(
            target, prefix=prefix, wait_replicas=wait_replicas, **_of_journal(options)
        )
        super().__init__(journal, types=options.get("types", DEFAULT_TYPES))


class PostgresSessionStore(OwningStore):
    """Sessions in PostgreSQL.

    Args:
        target: a URL, or a pool of `asyncpg` of yours, which is never closed.
        schema: where the tables stand.
        migrate: whether opening makes the tables where they are missing.
        options: see `open_store`.
    """

    def __init__(
        self,
        target: str | object,
        *,
        schema: str = "raf_session",
        migrate: bool = True,
        **options: Unpack[StoreOptions],
    ) -> None:
        from raf_session.journals.postgres import PostgresJournal

        journal = PostgresJournal(
            target, schema=schema, migrate=migrate, **_of_journal(options)
        )
        super().__init__(journal, types=options.get("types", DEFAULT_TYPES))


class MysqlSessionStore(OwningStore):
    """Sessions in MySQL or MariaDB.

    Args:
        url: of a database.
        migrate: whether opening makes the tables where they are missing.
        options: see `open_store`.
    """

    def __init__(
        self, url: str, *, migrate: bool = True, **options: Unpack[StoreOptions]
    ) -> None:
        from raf_session.journals.mysql import MysqlJournal

        journal = MysqlJournal(url, migrate=migrate, **_of_journal(options))
        super().__init__(journal, types=options.get("types", DEFAULT_TYPES))
