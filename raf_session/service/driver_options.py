"""Options of the originals' drivers, as our journals take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from raf_session.clock import Clock
from raf_session.journal import Journal
from raf_session.options import Limits
from raf_session.stores.urls import naming_extras, sqlite_path

__all__ = ("redis_journal", "sql_journal")

_NO_RECYCLING: Final = -1
"""SQLAlchemy's way to say that connections are never too old."""

_REDIS_OWN: Final = frozenset(
    ("codec", "durability", "prefix", "wait_replicas", "wait_timeout_secs")
)
_REDIS_URL: Final = frozenset(
    (
        "client_name",
        "health_check_interval",
        "max_connections",
        "protocol",
        "retry_on_timeout",
        "socket_connect_timeout",
        "socket_keepalive",
        "socket_timeout",
    )
)
"""What redis-py reads from the query of its URL."""

_REDIS_WITHOUT_MEANING: Final = frozenset(("decode_responses", "encoding"))
"""Sessions are read as bytes and come back as text, whatever the client does."""

_SQL_OWN: Final = frozenset(("codec", "durability"))
_SERVER_OWN: Final = _SQL_OWN | {"migrate", "pool_size"}
_SQL_WITHOUT_MEANING: Final = frozenset(("pool_pre_ping", "pool_use_lifo", "echo"))
"""A broken connection is replaced when it is found broken, and a call repeated."""


def redis_journal(
    target: str | object, limits: Limits, clock: Clock, options: Mapping[str, Any]
) -> Journal:
    """Return the journal of `RedisSessionService`.

    Args:
        target: a URL, or a client.
        limits: what to enforce.
        clock: whose time decides.
        options: of the journal, or of redis-py where `target` is a URL.

    Raises:
        TypeError: an option that is not known.
    """
    with naming_extras("RedisSessionService"):
        from raf_session.journals.redis import RedisJournal

    by_url = _REDIS_URL if isinstance(target, str) else frozenset[str]()
    _refuse_unknown(options, _REDIS_OWN | _REDIS_WITHOUT_MEANING | by_url)
    own = {name: value for name, value in options.items() if name in _REDIS_OWN}
    query = {name: value for name, value in options.items() if name in by_url}
    if isinstance(target, str) and query:
        target = _with_query(target, query)
    return RedisJournal(target, limits=limits, clock=clock, **own)


def _with_query(url: str, options: Mapping[str, Any]) -> str:
    given = "&".join(f"{name}={quote(str(value))}" for name, value in options.items())
    return f"{url}{'&' if urlsplit(url).query else '?'}{given}"


def sql_journal(
    url: str, limits: Limits, clock: Clock, options: Mapping[str, Any]
) -> Journal:
    """Return the journal of `SqlSessionService`.

    Args:
        url: of SQLite, PostgreSQL, MySQL or MariaDB, in SQLAlchemy's form too.
        limits: what to enforce.
        clock: whose time decides.
        options: of the journal, or of SQLAlchemy's engine.

    Raises:
        ValueError: a URL that is of no SQL database.
        TypeError: an option that is not known.
    """
    scheme = urlsplit(url).scheme.partition("+")[0]
    own = dict(options)
    for name in _SQL_WITHOUT_MEANING & own.keys():
        del own[name]
    if "pool_timeout" in own:
        own["busy_timeout_secs"] = own.pop("pool_timeout")
    recycle = own.pop("pool_recycle", None)
    overflow = own.pop("max_overflow", 0)
    if overflow:
        own["pool_size"] = own.get("pool_size", 5) + overflow
    given: dict[str, Any] = {"limits": limits, "clock": clock}
    if scheme == "sqlite":
        from raf_session.journals.sqlite import SqliteJournal

        own.pop("pool_size", None)
        _refuse_unknown(own, _SQL_OWN | {"busy_timeout_secs"})
        return SqliteJournal(sqlite_path(url), **given, **own)
    if scheme in {"postgresql", "postgres"}:
        with naming_extras("SqlSessionService"):
            from raf_session.journals.postgres import PostgresJournal

        _refuse_unknown(own, _SERVER_OWN | {"busy_timeout_secs", "schema"})
        return PostgresJournal(url, **given, **own)
    if scheme in {"mysql", "mariadb"}:
        with naming_extras("SqlSessionService"):
            from raf_session.journals.mysql import MysqlJournal

        if recycle is not None:
            endless = recycle == _NO_RECYCLING
            own["pool_recycle_secs"] = float("inf") if endless else recycle
        _refuse_unknown(own, _SERVER_OWN | {"busy_timeout_secs", "pool_recycle_secs"})
        return MysqlJournal(url, **given, **own)
    raise ValueError(f"{scheme}:// is of no SQL database")


def _refuse_unknown(options: Mapping[str, Any], known: frozenset[str]) -> None:
    unknown = sorted(options.keys() - known)
    if unknown:
        raise TypeError(f"options that are not known: {', '.join(unknown)}")
