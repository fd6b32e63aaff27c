"""App and user state outside a run: read, update, delete a key, list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from raf_session.changes import StateDelta
from raf_session.frozen import thaw
from raf_session.keys import ScopeKey, check_name, check_names, text_of
from raf_session.service.base import BaseSessionService
from raf_session.state import APP_PREFIX, USER_PREFIX, extract_state_delta
from raf_session.stores.keeper import JournalKeeper

__all__ = ("ScopedStates",)


class ScopedStates(BaseSessionService):
    """The half of a session service that knows no session.

    Keys are given and returned without their prefix; the scope's own prefix in front
    of a key is taken off, another scope's is refused.  Values are JSON values, copied
    in and out.  Reading and writing counts as access.
    """

    _keeper: JournalKeeper

    async def get_app_state(self, app_name: str) -> dict[str, Any]:
        """Return the state of an app; empty where there is none or it expired."""
        return await self._get(app_scope(app_name))

    async def update_app_state(
        self,
        app_name: str,
        state_delta: Mapping[str, Any],
        *,
        deleted: Iterable[str] = (),
    ) -> None:
        """Set and delete keys of an app's state; the others stay.

        Raises:
            InvalidValueError: a key or value that cannot be stored; nothing changed.
        """
        delta = _delta(APP_PREFIX, state_delta, deleted)
        await self._update(app_scope(app_name), delta)

    async def delete_app_state(self, app_name: str, key: str) -> None:
        """Delete a key of an app's state; a missing one is fine."""
        await self.update_app_state(app_name, {}, deleted=(key,))

    async def get_user_state(self, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state of a user; empty where there is none or it expired."""
        return await self._get(user_scope(app_name, user_id))

    async def update_user_state(
        self,
        app_name: str,
        user_id: str,
        state_delta: Mapping[str, Any],
        *,
        deleted: Iterable[str] = (),
    ) -> None:
        """Set and delete keys of a user's state; the others stay.

        Raises:
            InvalidValueError: a key or value that cannot be stored; nothing changed.
        """
        delta = _delta(USER_PREFIX, state_delta, deleted)
        await self._update(user_scope(app_name, user_id), delta)

    async def delete_user_state(self, app_name: str, user_id: str, key: str) -> None:
        """Delete a key of a user's state; a missing one is fine."""
        await self.update_user_state(app_name, user_id, {}, deleted=(key,))

    async def list_user_states(self, app_name: str) -> dict[str, dict[str, Any]]:
        """Return the state of each user of an app that has any; no access."""
        journal = await self._keeper.get()
        states: dict[str, dict[str, Any]] = {}
        for scope in await journal.scopes(check_name(app_name, "app_name")):
            if scope.user is not None:
                states[scope.user] = thaw((await journal.scoped_state(scope)).state)
        return states

    async def _get(self, scope: ScopeKey) -> dict[str, Any]:
        journal = await self._keeper.get()
        state: dict[str, Any] = thaw(
            (await journal.scoped_state(scope, refresh=True)).state
        )
        return state

    async def _update(self, scope: ScopeKey, delta: StateDelta) -> None:
        journal = await self._keeper.get()
        await journal.update_scoped_state(scope, delta)


def app_scope(app_name: str) -> ScopeKey:
    """Return the scope of an app.

    Raises:
        InvalidValueError: the name is empty, or cannot be one.
    """
    return ScopeKey(check_name(app_name, "app_name"))


def user_scope(app_name: str, user_id: str) -> ScopeKey:
    """Return the scope of a user.

    Raises:
        InvalidValueError: a name is empty, or cannot be one.
    """
    return ScopeKey(check_name(app_name, "app_name"), check_name(user_id, "user_id"))


def _delta(
    prefix: str, values: Mapping[str, Any], deleted: Iterable[str]
) -> StateDelta:
    split = extract_state_delta(
        {_prefixed(prefix, key): value for key, value in values.items()},
        [_prefixed(prefix, key) for key in check_names(deleted, "deleted")],
    )
    return split.app if prefix == APP_PREFIX else split.user


def _prefixed(prefix: str, key: str) -> str:
    key = text_of(key, "a key")
    scope, colon, _ = key.partition(":")
    if f"{scope}{colon}" in {APP_PREFIX, USER_PREFIX, "temp:"} - {prefix}:
        raise ValueError(f"{key!r} is no key of the scope {prefix!r}")
    return key if key.startswith(prefix) else prefix + key
