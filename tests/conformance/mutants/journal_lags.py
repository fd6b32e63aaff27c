"""Journals whose state of users and apps commits in another step than its call."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from anyio import CancelScope
from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from raf_session.changes import Change
from raf_session.journal import Commit
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey


@fault("journal", "scopes_commit_with_their_session")
class AppStateFollows(MemoryJournal):
    """The app's state is written in a second step, when the entries are stored."""

    @override
    async def append(
        self, key: SessionKey, *args: Any, change: Change | None = None, **options: Any
    ) -> Commit:
        first = change and replace(change, app=None)
        commit = await super().append(key, *args, change=first, **options)
        with CancelScope(shield=True):
            await checkpoint()
            if change and change.app and not commit.repeated:
                await self.update_scoped_state(ScopeKey(key.app), change.app)
        return commit


@fault("journal", "scopes_commit_with_their_session")
class StatesGoAhead(MemoryJournal):
    """A splice commits the states of user and app first, then the entries."""

    @override
    async def splice(
        self, key: SessionKey, *args: Any, change: Change | None = None, **options: Any
    ) -> Commit:
        before = deepcopy(self._sessions.get(key))
        commit = await super().splice(key, *args, change=change, **options)
        after = self._sessions[key]
        if before and change and (change.user or change.app):
            self._sessions[key] = before
            with CancelScope(shield=True):
                await checkpoint()
            self._sessions[key] = after
        return commit
