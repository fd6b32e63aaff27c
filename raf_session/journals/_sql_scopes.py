"""The state of apps and users in a server's tables."""

from __future__ import annotations

from typing import NamedTuple

from raf_session.journals._records import Scoped
from raf_session.journals._rules import Rules
from raf_session.journals._sql_dialect import Dialect, Transaction
from raf_session.journals._sql_states import StateTable
from raf_session.journals._texts import Texts
from raf_session.keys import ScopeKey

__all__ = ("Scopes", "scope_columns")

_FIND = """
    SELECT number, created_at, last_active_at FROM ~scopes
    WHERE app = ? AND of_user = ? AND usr = ?
"""


class _Found(NamedTuple):
    number: int
    expired: bool
    created_at: int
    last_active_at: int


def scope_columns(scope: ScopeKey) -> tuple[str, int, str]:
    """Return what stands in `app`, `of_user` and `usr`."""
    return scope.app, int(scope.user is not None), scope.user or ""


class Scopes:
    """The state of apps and users, inside a transaction.

    Whoever writes several locks the user's first and the app's then, as the last locks
    of a transaction, so that none waits for another in a ring.

    Args:
        dialect: of the server.
        rules: limits and clock of the journal.
    """

    def __init__(self, dialect: Dialect, rules: Rules) -> None:
        self._rules = rules
        self._states = StateTable(dialect, "~scoped_state", "scope")

    async def _find(
        self, tx: Transaction, scope: ScopeKey, now: int, *, lock: bool
    ) -> _Found | None:
        sql = f"{_FIND} FOR UPDATE" if lock else _FIND
        found = await tx.rows(sql, *scope_columns(scope))
        if not found:
            return None
        number, created_at, last_active_at = found[0]
        expired = self._rules.scope_rule(scope).expired(created_at, last_active_at, now)
        return _Found(number, expired, created_at, last_active_at)

    async def read(self, tx: Transaction, scope: ScopeKey, now: int) -> Scoped | None:
        """Return the live state of a scope, `None` where there is none."""
        found = await self._find(tx, scope, now, lock=False)
        if found is None or found.expired:
            return None
        pairs = await tx.rows(
            "SELECT name, value FROM ~scoped_state WHERE scope = ? ORDER BY name",
            found.number,
        )
        return Scoped(
            [(name, value) for name, value in pairs],
            found.created_at,
            found.last_active_at,
        )

    async def refresh(self, tx: Transaction, scope: ScopeKey, now: int) -> None:
        """Move the activity of a live scope to now."""
        found = await self._find(tx, scope, now, lock=True)
        if found is not None and not found.expired:
            await self._touch(tx, found.number, now)

    async def write(
        self, tx: Transaction, scope: ScopeKey, texts: Texts, now: int
    ) -> None:
        """Set and delete keys of a scope, and touch it; an empty one goes."""
        while True:
            found = await self._find(tx, scope, now, lock=True)
            if found is not None and found.expired:
                await self.delete(tx, found.number)
                found = None
            if found is not None:
                await self._change(tx, found.number, texts, now)
                return
            if not texts.set:
                return
            number = await tx.insert(
                """
                INSERT INTO ~scopes (app, of_user, usr, created_at, last_active_at)
                VALUES (?, ?, ?, ?, ?)
                """,
                *scope_columns(scope),
                now,
                now,
            )
            if number is not None:
                await self._states.write(tx, number, texts)
                return
            # Another has made it meanwhile: it is found now.

    async def _change(
        self, tx: Transaction, number: int, texts: Texts, now: int
    ) -> None:
        await self._states.write(tx, number, texts)
        if not texts.set and await self._states.empty(tx, number):
            await self.delete(tx, number)
        else:
            await self._touch(tx, number, now)

    @staticmethod
    async def _touch(tx: Transaction, number: int, now: int) -> None:
        await tx.execute(
            """
            UPDATE ~scopes SET last_active_at = ?
            WHERE number = ? AND last_active_at < ?
            """,
            now,
            number,
            now,
        )

    @staticmethod
    async def delete(tx: Transaction, number: int) -> None:
        """Delete a scope, and by its foreign key its state."""
        await tx.execute("DELETE FROM ~scopes WHERE number = ?", number)

    async def live(self, tx: Transaction, app: str, now: int) -> tuple[ScopeKey, ...]:
        """Return the scopes of an app that hold live state, in order."""
        rows = await tx.rows(
            """
            SELECT of_user, usr, created_at, last_active_at FROM ~scopes
            WHERE app = ? ORDER BY of_user, usr
            """,
            app,
        )
        scopes: list[ScopeKey] = []
        for of_user, user, created_at, last_active_at in rows:
            scope = ScopeKey(app, user if of_user else None)
            rule = self._rules.scope_rule(scope)
            if not rule.expired(created_at, last_active_at, now):
                scopes.append(scope)
        return tuple(scopes)
