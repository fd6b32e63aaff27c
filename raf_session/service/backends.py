"""Services that bring their journal, by class and by URL."""

from __future__ import annotations

from typing import Any, ClassVar

from raf_session.clock import Clock, utc_now
from raf_session.journal import Codec, Durability
from raf_session.service.config import SessionServiceConfig, config_of
from raf_session.service.driver_options import redis_journal, sql_journal
from raf_session.service.session_service import SessionService
from raf_session.service.summary_manager import SummarizerSessionManager
from raf_session.stores.urls import open_journal

__all__ = (
    "InMemorySessionService",
    "OwningSessionService",
    "RedisSessionService",
    "SqlSessionService",
    "open_service",
)


class OwningSessionService(SessionService):
    """A service that opens its journal when it is first used, and closes it."""

    _owns_journal: ClassVar[bool] = True


def open_service(
    url: str,
    *,
    summarizer_manager: SummarizerSessionManager | None = None,
    session_config: SessionServiceConfig | None = None,
    clock: Clock = utc_now,
    codec: Codec | None = None,
    durability: Durability = "kill",
) -> OwningSessionService:
    """Return the session service of a URL; it is opened when it is first used.

    Args:
        url: see `raf_session.open_journal`.
        summarizer_manager: when and how sessions are summarised; `None`: never.
        session_config: what sessions show and how long they live.
        clock: whose time decides.
        codec: between JSON and storage.
        durability: see `raf_session.open_journal`.
    """
    config = config_of(session_config)
    journal = open_journal(
        url, limits=config.limits, clock=clock, codec=codec, durability=durability
    )
    return OwningSessionService(
        journal, summarizer_manager=summarizer_manager, session_config=config
    )


class InMemorySessionService(SessionService):
    """Sessions in dicts. tRPC-Agent: ``InMemorySessionService``.

    Args:
        summarizer_manager: when and how sessions are summarised; `None`: never.
        session_config: what sessions show and how long they live.
        clock: whose time decides.
    """

    def __init__(
        self,
        summarizer_manager: SummarizerSessionManager | None = None,
        session_config: SessionServiceConfig | None = None,
        *,
        clock: Clock = utc_now,
    ) -> None:
        from raf_session.journals.memory import MemoryJournal

        config = config_of(session_config)
        super().__init__(
            MemoryJournal.opened(limits=config.limits, clock=clock),
            summarizer_manager=summarizer_manager,
            session_config=config,
        )


class RedisSessionService(OwningSessionService):
    """Sessions in Redis. tRPC-Agent: ``RedisSessionService``.

    Keys expire by themselves: `cleanup_interval_seconds` is read and not used.

    Args:
        db_url: see `raf_session.journals.redis.RedisJournal`; a client is taken too.
        summarizer_manager: when and how sessions are summarised; `None`: never.
        session_config: what sessions show and how long they live.
        is_async: read and not used: the service never blocks its event loop.
        clock: whose time decides.
        options: of the journal, or of redis-py's connections.

    Raises:
        TypeError: an option that is not known.
    """

    def __init__(
        self,
        db_url: str | object,
        summarizer_manager: SummarizerSessionManager | None = None,
        session_config: SessionServiceConfig | None = None,
        is_async: bool = False,  # noqa: ARG002  (the document's)
        *,
        clock: Clock = utc_now,
        **options: Any,
    ) -> None:
        config = config_of(session_config)
        super().__init__(
            redis_journal(db_url, config.limits, clock, options),
            summarizer_manager=summarizer_manager,
            session_config=config,
        )


class SqlSessionService(OwningSessionService):
    """Sessions in SQLite, PostgreSQL, MySQL or MariaDB.

    tRPC-Agent: ``SqlSessionService``.

    Args:
        db_url: SQLAlchemy's URLs are taken as they are, with any driver; see
            `raf_session.open_journal`.
        summarizer_manager: when and how sessions are summarised; `None`: never.
        is_async: read and not used: the service never blocks its event loop.
        session_config: what sessions show and how long they live.
        clock: whose time decides.
        options: of the journal, or of SQLAlchemy's engine.

    Raises:
        ValueError: a URL that is of no SQL database.
        TypeError: an option that is not known.
    """

    def __init__(
        self,
        db_url: str,
        summarizer_manager: SummarizerSessionManager | None = None,
        is_async: bool = False,  # noqa: ARG002  (the document's)
        session_config: SessionServiceConfig | None = None,
        *,
        clock: Clock = utc_now,
        **options: Any,
    ) -> None:
        config = config_of(session_config)
        super().__init__(
            sql_journal(db_url, config.limits, clock, options),
            summarizer_manager=summarizer_manager,
            session_config=config,
        )
