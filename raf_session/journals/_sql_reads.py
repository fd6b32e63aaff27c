"""What a load reads in its one transaction, and a refresh writes in another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from raf_session.clock import from_micros
from raf_session.encoding import RawRow
from raf_session.entries import SessionHead
from raf_session.errors import SessionDamagedError
from raf_session.journals import _rules
from raf_session.journals._records import Found, Scoped
from raf_session.journals._rules import Rules
from raf_session.journals._sql_dialect import Row, Transaction
from raf_session.journals._sql_entries import read_archive, read_window
from raf_session.journals._sql_heads import find_live
from raf_session.journals._sql_scopes import Scopes
from raf_session.journals._sql_states import join_digests
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Window

__all__ = (
    "BESIDE",
    "DIGESTS",
    "PROVIDERS",
    "SCOPED",
    "SCOPES",
    "SESSION",
    "Reads",
)

_Parts: TypeAlias = defaultdict[int, list[tuple[Any, ...]]]

DIGESTS, SESSION, PROVIDERS = 1, 2, 3
SCOPES, SCOPED = 4, 6
"""Of the app; of the user one more."""

# What stands beside the entries, in one statement: of which part it is, two numbers, a
# name, a text and bytes. The part with bytes comes first, so that its column has that
# type.
BESIDE: Final = f"""
    SELECT {DIGESTS}, chunk, 0, NULL, NULL, digests FROM ~request_digests
    WHERE session = ?
    UNION ALL
    SELECT {SESSION}, 0, 0, name, value, NULL FROM ~session_state WHERE session = ?
    UNION ALL
    SELECT {PROVIDERS}, 0, 0, name, value, NULL FROM ~provider_states WHERE session = ?
    UNION ALL
    SELECT {SCOPES} + of_user, created_at, last_active_at, NULL, NULL, NULL FROM ~scopes
    WHERE app = ? AND (of_user = 0 AND usr = ? OR of_user = 1 AND usr = ?)
    UNION ALL
    SELECT {SCOPED} + of_user, 0, 0, name, value, NULL
    FROM ~scopes JOIN ~scoped_state ON scope = number
    WHERE app = ? AND (of_user = 0 AND usr = ? OR of_user = 1 AND usr = ?)
"""  # noqa: S608  (numbers of our own)


class Reads:
    """The transactions that read a session.

    Args:
        rules: limits and clock of the journal.
        scopes: the state of apps and users.
    """

    def __init__(self, rules: Rules, scopes: Scopes) -> None:
        self._rules = rules
        self._scopes = scopes

    async def load(
        self, tx: Transaction, key: SessionKey, window: Window, *, archived: bool
    ) -> Found:
        """Read the rows of a session, all of one moment."""
        rules = self._rules
        now = rules.now()
        head, number, _ = await find_live(tx, rules, key, now, lock=False)
        active = await read_window(tx, number, window)
        old = await read_archive(tx, number) if archived else ()
        beside = await tx.rows(
            BESIDE, number, number, number, *(key.app, "", key.user) * 2
        )
        return self.found(head, window, active=active, old=old, beside=beside, now=now)

    def found(
        self,
        head: SessionHead,
        window: Window,
        *,
        active: Sequence[RawRow],
        old: Sequence[RawRow],
        beside: Sequence[Row],
        now: int,
    ) -> Found:
        """Put together what was read of a session at one moment.

        Args:
            head: the session.
            window: what was asked for.
            active: the active entries of the window.
            old: the archived entries, if they were asked for.
            beside: the rows of `BESIDE`.
            now: the journal's time.

        Raises:
            SessionDamagedError: entries or digests are missing.
        """
        key, rules = head.key, self._rules
        if window == WHOLE and len(active) != head.active.entries:
            detail = f"{len(active)} active entries, not {head.active.entries}"
            raise SessionDamagedError(key, rules.backend, detail)
        parts: _Parts = defaultdict(list)
        for part, *values in beside:
            parts[part].append(tuple(values))
        chunks = [values[4] for values in sorted(parts[DIGESTS])]
        return Found(
            head,
            active,
            old,
            _pairs(parts[SESSION]),
            _pairs(parts[PROVIDERS]),
            join_digests(rules.backend, key, head.request_n, chunks),
            self._scoped(parts, _rules.user_scope(key), now),
            self._scoped(parts, _rules.app_scope(key), now),
        )

    def _scoped(self, parts: _Parts, scope: ScopeKey, now: int) -> Scoped | None:
        of_user = int(scope.user is not None)
        if not parts[SCOPES + of_user]:
            return None
        created_at, last_active_at, *_ = parts[SCOPES + of_user][0]
        if self._rules.scope_rule(scope).expired(created_at, last_active_at, now):
            return None
        return Scoped(_pairs(parts[SCOPED + of_user]), created_at, last_active_at)

    async def refresh(self, tx: Transaction, found: Found) -> SessionHead:
        """Move the activity of what was read to now; return the head.

        Raises:
            SessionNotFoundError: it has gone meanwhile.
        """
        rules, head = self._rules, found.head
        now = rules.now()
        stored = await find_live(tx, rules, head.key, now, head.incarnation, lock=True)
        await tx.execute(
            """
            UPDATE ~heads SET last_active_at = ?
            WHERE number = ? AND last_active_at < ?
            """,
            now,
            stored.number,
            now,
        )
        if found.user is not None:
            await self._scopes.refresh(tx, _rules.user_scope(head.key), now)
        if found.app is not None:
            await self._scopes.refresh(tx, _rules.app_scope(head.key), now)
        return _rules.touched(head, from_micros(now))


def _pairs(values: list[tuple[Any, ...]]) -> list[tuple[str, str]]:
    return sorted((name, text) for _, _, name, text, _ in values)
