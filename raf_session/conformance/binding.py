"""From what an implementer has at hand, a class or a function, to a harness."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias, cast

from raf_session.clock import Clock, utc_now
from raf_session.conformance.journal_harness import JournalHarness, JournalOpener
from raf_session.conformance.session_harness import CoreFactory, SessionHarness
from raf_session.conformance.store_harness import (
    AGENT,
    NO_LIMITS,
    StoreHarness,
    StoreOpener,
)
from raf_session.options import SessionTTLOptions
from raf_session.session import SessionCore
from raf_session.store import ISessionStore

__all__ = (
    "AnySession",
    "AnyStore",
    "Harness",
    "journal_harness",
    "session_harness",
    "store_harness",
)

Harness: TypeAlias = SessionHarness | StoreHarness | JournalHarness

AnySession: TypeAlias = SessionHarness | CoreFactory | Callable[..., SessionCore]
"""A harness, an async factory, or a class that takes an id, and a clock if it likes."""

AnyStore: TypeAlias = StoreHarness | StoreOpener | Callable[..., ISessionStore]
"""A harness, or what makes a store, or a context of one, over new, empty storage.

It takes ``ttl=``, ``clock=`` and ``types=``.
"""


def _name(target: object) -> str:
    return getattr(target, "__name__", type(target).__name__)


def _takes(target: Callable[..., Any], parameter: str) -> bool:
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:  # a class of C
        return True
    return any(
        p.name == parameter or p.kind is inspect.Parameter.VAR_KEYWORD
        for p in parameters
    )


def session_harness(target: AnySession, name: str | None = None) -> SessionHarness:
    """Return the harness of sessions; it claims nothing where none was given."""
    if isinstance(target, SessionHarness):
        return target
    with_clock = _takes(target, "clock")

    async def make(session_id: str | None = None, *, clock: Clock) -> SessionCore:
        options = {"clock": clock} if with_clock else {}
        made: Any = target(session_id, **options)
        return cast("SessionCore", await made if inspect.isawaitable(made) else made)

    return SessionHarness.of(name or _name(target), make)


def store_harness(target: AnyStore, name: str | None = None) -> StoreHarness:
    """Return the harness of stores; it claims nothing where none was given."""
    if isinstance(target, StoreHarness):
        return target

    @asynccontextmanager
    async def opened(
        *,
        ttl: SessionTTLOptions = NO_LIMITS,
        clock: Clock = utc_now,
        types: Sequence[type[Any]] = AGENT,
    ) -> AsyncGenerator[ISessionStore]:
        made: Any = target(ttl=ttl, clock=clock, types=types)
        if isinstance(made, AbstractAsyncContextManager):
            async with cast("AbstractAsyncContextManager[ISessionStore]", made) as held:
                yield held
        else:
            yield cast("ISessionStore", made)

    @asynccontextmanager
    async def storage() -> AsyncGenerator[StoreOpener]:
        yield opened

    return StoreHarness(name or _name(target), storage)


def journal_harness(
    target: JournalHarness | JournalOpener, name: str | None = None
) -> JournalHarness:
    """Return the harness of journals; it claims nothing where none was given."""
    if isinstance(target, JournalHarness):
        return target
    return JournalHarness.transient(name or _name(target), target)
