"""Journals by URL."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from raf_session.clock import Clock, utc_now
from raf_session.journal import Codec, Durability, Journal
from raf_session.options import Limits

__all__ = ("naming_extras", "open_journal", "shown_url", "sqlite_path")

_SECRET: Final = re.compile("pass|pwd|secret|token|key", re.IGNORECASE)
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_HOST: Final = re.compile(r"(\[[^][@]*\]|[^][@:]*)(:\d*)?")


def shown_url(url: str) -> str:
    """Return a URL as messages may show it: without what gives access.

    Hidden are the password and the value of any parameter whose name holds ``pass``,
    ``pwd``, ``secret``, ``token`` or ``key``.  Where it cannot be told which part is
    the password, only the scheme is shown.
    """
    parts = _split(url)
    if parts is None or _misplaced(url, parts):
        scheme = _SCHEME.match(url)
        return f"{scheme[0]}://…" if scheme else "…"
    users, at, hosts = parts.netloc.rpartition("@")
    user, colon, _ = users.partition(":")
    netloc = f"{user}{':***' if colon else ''}{at}{hosts}"
    query = "&".join(map(_shown_field, parts.query.split("&")))
    if netloc == parts.netloc and query == parts.query:
        return url
    return (
        f"{parts.scheme}://{netloc}{parts.path}"
        f"{'?' if query else ''}{query}{'#***' if parts.fragment else ''}"
    )


def _shown_field(field: str) -> str:
    name, equals, _ = field.partition("=")
    if not equals:
        return "***" if field else ""
    return f"{name}=***" if _SECRET.search(unquote(name)) else field


def _split(url: str) -> SplitResult | None:
    """Return the parts of a URL, `None` where its hosts are none."""
    try:
        parts = urlsplit(url)
    except ValueError:  # its text holds the URL
        return None
    hosts = parts.netloc.rpartition("@")[2]
    return parts if all(map(_HOST.fullmatch, hosts.split(","))) else None


def _misplaced(url: str, parts: SplitResult) -> bool:
    """Tell whether an ``@`` stands where it may end a password."""
    behind = "@" in f"{parts.path}{parts.query}{parts.fragment}"
    return behind and bool(parts.netloc or ("://" not in url and ":" in url))


def open_journal(
    url: str,
    *,
    limits: Limits | None = None,
    clock: Clock = utc_now,
    codec: Codec | None = None,
    durability: Durability = "kill",
) -> Journal:
    """Return the journal of a URL, to be opened by ``async with``.

    ========================================  =======================================
    ``memory://``                             while the object lives
    ``file:///folder``                        JSONL files
    ``sqlite:///relative.db``                 one SQLite file;
                                              ``sqlite:////absolute/path.db``
    ``redis://``, ``rediss://``, ``unix://``  Redis or Valkey
    ``redis+cluster://``                      Redis Cluster
    ``redis+sentinel://h1,h2/name``           Redis behind Sentinels
    ``postgresql://``                         PostgreSQL
    ``mysql://``, ``mariadb://``              MySQL or MariaDB
    ========================================  =======================================

    The URLs of SQLAlchemy (``postgresql+asyncpg://``, ``mysql+pymysql://``,
    ``sqlite+aiosqlite:///``) mean the same as those without a driver.

    Args:
        url: where sessions are kept.
        limits: time to live and sizes; `None`: nothing expires.
        clock: whose time decides.
        codec: between JSON and storage.
        durability: what an acknowledged write survives; ``memory://`` has none.

    Raises:
        ValueError: nothing is known to carry this URL.
        ModuleNotFoundError: its driver is not installed.
    """
    parts = _split(url)
    if parts is None:
        raise ValueError(
            f"{shown_url(url)} is no URL: of a password, any of /?#[]@ is written as "
            "%2F, %3F, %23, %5B, %5D, %40, and a port is a number"
        )
    scheme = parts.scheme
    opener = _OPENERS.get(scheme.partition("+")[0])
    if opener is None:
        shown = shown_url(url)
        hint = "" if scheme else f"; did you mean sqlite:///{shown}?"
        raise ValueError(
            f"no store for {shown!r}: memory://, file:///folder, sqlite:///path, "
            f"redis://, postgresql:// or mysql://{hint}"
        )
    options: dict[str, Any] = {"limits": limits, "clock": clock, "codec": codec}
    with naming_extras(f"{scheme}://"):
        return opener(url, options, durability)


@contextmanager
def naming_extras(what: str) -> Generator[None]:
    """Say of a driver that is not installed which extra brings it.

    Args:
        what: what needs the driver.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = _EXTRAS.get(package)
        if extra is None:
            raise
        raise ModuleNotFoundError(
            f"{what} needs the package {package}: pip install 'raf-session[{extra}]'",
            name=package,
        ) from error


def _memory(_: str, options: dict[str, Any], __: Durability) -> Journal:
    from raf_session.journals.memory import MemoryJournal

    return MemoryJournal(**options)


def _jsonl(url: str, options: dict[str, Any], durability: Durability) -> Journal:
    from raf_session.journals.jsonl import JsonlJournal

    parts = urlsplit(url)
    if (
        parts.netloc not in {"", "localhost"}
        or parts.query
        or parts.fragment
        or not parts.path.strip("/")
    ):
        raise ValueError(f"{shown_url(url)!r} names no folder: file:///absolute/folder")
    return JsonlJournal(unquote(parts.path), durability=durability, **options)


def _sqlite(url: str, options: dict[str, Any], durability: Durability) -> Journal:
    from raf_session.journals.sqlite import SqliteJournal

    return SqliteJournal(sqlite_path(url), durability=durability, **options)


def sqlite_path(url: str) -> str:
    """Return the file that a URL of SQLite names.

    Raises:
        ValueError: it names none.
    """
    parts = urlsplit(url)
    if parts.netloc or parts.query or parts.fragment or not parts.path.strip("/"):
        raise ValueError(
            f"{shown_url(url)!r} names no file: sqlite:///relative.db or "
            "sqlite:////absolute.db"
        )
    return unquote(parts.path[1:])


def _redis(url: str, options: dict[str, Any], durability: Durability) -> Journal:
    from raf_session.journals.redis import RedisJournal

    return RedisJournal(url, durability=durability, **options)


def _postgres(url: str, options: dict[str, Any], durability: Durability) -> Journal:
    from raf_session.journals.postgres import PostgresJournal

    return PostgresJournal(url, durability=durability, **options)


def _mysql(url: str, options: dict[str, Any], durability: Durability) -> Journal:
    from raf_session.journals.mysql import MysqlJournal

    return MysqlJournal(url, durability=durability, **options)


_EXTRAS: Final = {
    "redis": "redis",
    "asyncpg": "postgres",
    "asyncmy": "mysql",
    "yaml": "yaml",
}
"""Which extra brings a package."""

_OPENERS: Final[Mapping[str, Callable[[str, dict[str, Any], Durability], Journal]]] = (
    MappingProxyType(
        {
            "memory": _memory,
            "file": _jsonl,
            "sqlite": _sqlite,
            **dict.fromkeys(("redis", "rediss", "unix"), _redis),
            **dict.fromkeys(("postgresql", "postgres"), _postgres),
            **dict.fromkeys(("mysql", "mariadb"), _mysql),
        }
    )
)
