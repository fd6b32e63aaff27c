"""Sweeps: what has expired goes, and what a crash left undone is finished."""

from __future__ import annotations

from typing import Final

from raf_session.errors import SchemaVersionError, SessionDamagedError
from raf_session.journals._jsonl_folder import Folder
from raf_session.journals._jsonl_listing import Listing, has_expired
from raf_session.journals._jsonl_slots import hold
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Sweep",)

_UNREADABLE: Final = (SessionDamagedError, SchemaVersionError)
_REFUSED: Final = (*_UNREADABLE, PermissionError)


class Sweep:
    """Finds and deletes what has expired.

    Args:
        folder: the base directory.
        listing: the sessions in it.
    """

    def __init__(self, folder: Folder, listing: Listing) -> None:
        self._folder = folder
        self._listing = listing

    def run(
        self, limit: int, gone: list[SessionKey | ScopeKey], *, dry_run: bool
    ) -> None:
        """Delete until there are so many in the list, or nothing is left to delete."""
        folder = self._folder
        rules = folder.rules
        now = rules.now()
        if rules.sessions.enabled:
            for seen in self._listing.sessions():
                if len(gone) >= limit:
                    break
                if has_expired(seen, rules.sessions, now):
                    key = seen.head.key
                    try:
                        if dry_run or self._remove(key):
                            gone.append(key)
                    except _REFUSED as error:
                        folder.report(key, f"left out of a sweep: {error}")
        for path in folder.scopes.files():
            try:
                scope = folder.scopes.scope_of(path)
                if scope is None:
                    continue
                if not dry_run:
                    self._finish(scope)
                if len(gone) < limit and folder.scopes.expire(
                    scope, rules.now(), dry_run=dry_run, patient=True
                ):
                    gone.append(scope)
            except _UNREADABLE as error:
                folder.report(path, f"left out of a sweep: {error}")

    def _remove(self, key: SessionKey) -> bool:
        """Remove a session that has expired; it is looked at again, under its lock."""
        rules = self._folder.rules
        with hold(self._folder, key, patient=True) as slot:
            log = slot.find()
            head = None if log is None else log.view.head
            if head is None or not rules.sessions.head_expired(head, rules.now()):
                return False
            slot.remove(log)
            return True

    def _finish(self, scope: ScopeKey) -> None:
        """Have the scope take what sessions recorded for it when they were cut off."""
        folder = self._folder
        for name in folder.scopes.outstanding(scope):
            key = SessionKey.parse(name)
            with hold(folder, key, patient=True) as slot:
                try:
                    log = slot.find()
                except _UNREADABLE as error:
                    folder.report(key, f"its changes of {scope} wait: {error}")
                    continue
                if log is None or not log.view.pending:
                    # What it drew and did not record it never will.
                    folder.scopes.settle(
                        scope, name, (), drop_others=True, patient=True
                    )
