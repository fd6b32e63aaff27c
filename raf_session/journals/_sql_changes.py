"""What a `Change` alters outside the head, and a change without entries."""

from __future__ import annotations

from raf_session.changes import NO_CHANGE
from raf_session.entries import SessionHead
from raf_session.journals import _rules
from raf_session.journals._heads import Stored
from raf_session.journals._rules import Rules
from raf_session.journals._sql_dialect import Dialect, Transaction
from raf_session.journals._sql_heads import update_head
from raf_session.journals._sql_scopes import Scopes
from raf_session.journals._sql_states import Digests, StateTable
from raf_session.journals._texts import ChangeTexts
from raf_session.keys import SessionKey

__all__ = ("Changes",)


class Changes:
    """Stores changes, inside a transaction that has locked the session.

    Args:
        dialect: of the server.
        rules: limits and clock of the journal.
    """

    def __init__(self, dialect: Dialect, rules: Rules) -> None:
        self._rules = rules
        self._session = StateTable(dialect, "~session_state", "session")
        self._providers = StateTable(dialect, "~provider_states", "session")
        self.digests = Digests(dialect)
        self.scopes = Scopes(dialect, rules)

    async def apply(
        self,
        tx: Transaction,
        key: SessionKey,
        number: int,
        texts: ChangeTexts,
        *,
        former_n: int | None,
        now: int,
    ) -> None:
        """Store what does not stand in the head.

        Args:
            tx: the transaction.
            key: the session.
            number: its number.
            texts: the change.
            former_n: the messages of the request that is stored.
            now: the journal's time.

        Raises:
            SessionDamagedError: digests that are to be kept are not there.
        """
        change = texts.change
        if change is NO_CHANGE:
            return
        await self._session.write(tx, number, texts.session)
        await self._providers.write(tx, number, texts.providers)
        if change.request is not None:
            await self.digests.write(tx, key, number, former_n or 0, change.request)
        # The scopes come last, and in this order: others wait for them.
        if change.user:
            await self.scopes.write(tx, _rules.user_scope(key), texts.user, now)
        if change.app:
            await self.scopes.write(tx, _rules.app_scope(key), texts.app, now)

    async def alone(
        self, tx: Transaction, stored: Stored, texts: ChangeTexts, now: int
    ) -> SessionHead:
        """Store a change without entries; return the head after it."""
        head = stored.head
        after = self._rules.updated(head, texts.change, now)
        await update_head(tx, stored, after, stored.tail_at)
        await self.apply(
            tx, head.key, stored.number, texts, former_n=head.request_n, now=now
        )
        return after
