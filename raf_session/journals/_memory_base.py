"""`MemoryBase`: the journal in memory without its sessions: scopes, clock, opening."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from typing_extensions import override

from raf_session.changes import StateDelta
from raf_session.clock import Clock, from_micros, utc_now
from raf_session.encoding import BodyFormat
from raf_session.errors import JournalClosedError
from raf_session.journal import Codec, ScopedState
from raf_session.journals import _rules
from raf_session.journals._base import BaseJournal
from raf_session.journals._memory_records import MemoryScope, by_name
from raf_session.journals._records import NO_STATE
from raf_session.journals._rules import Rules
from raf_session.keys import ScopeKey
from raf_session.options import Limits

__all__ = ("MemoryBase",)


class MemoryBase(BaseJournal):
    """What the journal in memory keeps of apps and users.

    Args:
        limits: what to enforce.
        clock: whose time decides.
        codec: between JSON and the stored text, as on other backends.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
    ) -> None:
        super().__init__(Rules("memory", limits or Limits(), clock))
        self._bodies = BodyFormat("memory", codec, self.limits.max_entry_bytes)
        self._lock = threading.Lock()
        self._open = False
        self._scopes: dict[ScopeKey, MemoryScope] = {}

    @classmethod
    def opened(cls, *, limits: Limits | None = None, clock: Clock = utc_now) -> Self:
        """Return a journal that is open at once: it holds nothing to be closed."""
        journal = cls(limits=limits, clock=clock)
        journal._open = True
        return journal

    @override
    async def __aenter__(self) -> Self:
        """Open it; what it held when it was closed is still there."""
        if self._open:
            raise RuntimeError("the memory journal is open already")
        self._open = True
        return self

    @override
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close it."""
        self._open = False

    def _now(self) -> int:
        if not self._open:
            raise JournalClosedError("memory")
        return self._rules.now()

    # Scopes ----------------------------------------------------------------------

    @override
    async def scoped_state(
        self, scope: ScopeKey, *, refresh: bool = False
    ) -> ScopedState:
        """Read the state of an app or user; see `Journal.scoped_state`."""
        with self._lock:
            now = self._now()
            return self._read_scope(scope, now, refresh=refresh)

    def _read_scope(self, scope: ScopeKey, now: int, *, refresh: bool) -> ScopedState:
        kept = self._live_scope(scope, now)
        if kept is None:
            return NO_STATE
        if refresh:
            kept.last_active_at = max(kept.last_active_at, now)
        return ScopedState(
            by_name(kept.state),
            from_micros(kept.created_at),
            from_micros(kept.last_active_at),
        )

    def _live_scope(self, scope: ScopeKey, now: int) -> MemoryScope | None:
        kept = self._scopes.get(scope)
        if kept is not None and self._rules.scope_rule(scope).expired(
            kept.created_at, kept.last_active_at, now
        ):
            return None
        return kept

    @override
    async def update_scoped_state(self, scope: ScopeKey, delta: StateDelta) -> None:
        """Set and delete keys; see `Journal.update_scoped_state`."""
        with self._lock:
            now = self._now()
            self._write_scope(scope, delta, now)

    def _write_scope(self, scope: ScopeKey, delta: StateDelta, now: int) -> None:
        kept = self._live_scope(scope, now) or MemoryScope({}, now, now)
        _rules.merge(kept.state, delta)
        kept.last_active_at = max(kept.last_active_at, now)
        if kept.state:
            self._scopes[scope] = kept
        else:
            self._scopes.pop(scope, None)

    @override
    async def scopes(self, app: str) -> tuple[ScopeKey, ...]:
        """Return the scopes that hold live state; see `Journal.scopes`."""
        app = ScopeKey(app).app
        with self._lock:
            now = self._now()
            return tuple(
                sorted(
                    scope
                    for scope in self._scopes
                    if scope.app == app and self._live_scope(scope, now) is not None
                )
            )
