# Paths are strings here: `Path` costs more than the calls.
# ruff: noqa: PTH120, PTH208
"""The state of apps and users: a small file for each, replaced as a whole.

A session's file cannot be written in one step with these.  So a write first draws a
number from the scope; the change travels with that number in the session's record; it
is then applied, key by key, over smaller numbers only.  Until that is done the number
is outstanding, and whoever finds it so finishes the work.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from raf_session.errors import SchemaVersionError, SessionDamagedError
from raf_session.journals._jsonl_batches import parse
from raf_session.journals._jsonl_files import (
    BACKEND,
    prune,
    read_file,
    remove_file,
    replace_file,
    sync_folder,
)
from raf_session.journals._jsonl_locks import Locks
from raf_session.journals._jsonl_views import Pending
from raf_session.journals._records import Scoped
from raf_session.journals._rules import Rules
from raf_session.journals._texts import Texts
from raf_session.json_text import dump_json, load_written
from raf_session.key_paths import safe_component
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Scopes", "Ticket")

_VERSION: Final = 1
_TOO_LARGE: Final = 1 << 57
"""No moment is as far from 1970, in microseconds, and no number as large."""


class Ticket(NamedTuple):
    """A number drawn from a scope."""

    epoch: str
    """Names the life of the scope's file: numbers begin anew in another."""
    number: int


@dataclass(slots=True)
class _File:
    """What a scope's file holds."""

    epoch: str
    counter: int = 0
    created_at: int = 0
    last_active_at: int = 0
    keys: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """Each key's number and value."""
    gone: dict[str, int] = field(default_factory=dict[str, int])
    """The numbers of deleted keys, while a smaller one is outstanding."""
    outstanding: dict[str, str] = field(default_factory=dict[str, str])
    """The sessions that drew a number which may not be applied yet."""

    def checked(self) -> _File:
        """Return it where all is of the kind that it should be.

        Raises:
            Exception: it is not; `ValueError`, `TypeError` or `AttributeError`.
        """
        numbers = [self.counter, self.created_at, self.last_active_at]
        numbers += [number for number, _ in self.keys.values()]
        numbers += self.gone.values()
        if not all(type(x) is int and 0 <= x < _TOO_LARGE for x in numbers):
            raise ValueError("a number is none")
        for number, name in self.outstanding.items():
            int(number)
            SessionKey.parse(name)
        return self

    def draw(self) -> int:
        self.counter += 1
        return self.counter

    def apply(
        self,
        number: int,
        at: int,
        values: Mapping[str, Any],
        deleted: Iterable[str],
        *,
        expired: bool,
    ) -> None:
        if expired:
            self.keys.clear()
        if not self.keys:
            self.created_at = self.last_active_at = at
        for name, value in values.items():
            if self._number(name) < number:
                self.keys[name] = [number, value]
                self.gone.pop(name, None)
        for name in deleted:
            if self._number(name) < number:
                self.keys.pop(name, None)
                self.gone[name] = number
        self.last_active_at = max(self.last_active_at, at)

    def _number(self, name: str) -> int:
        kept = self.keys.get(name)
        number: int = self.gone.get(name, 0) if kept is None else kept[0]
        return number

    def tidy(self) -> None:
        """Forget the numbers of deleted keys that nothing older can meet."""
        if self.gone:
            oldest = min(map(int, self.outstanding), default=self.counter + 1)
            self.gone = {k: n for k, n in self.gone.items() if n > oldest}


class Scopes:
    """The scopes of one base directory.

    Args:
        folder: where their files are.
        rules: limits and clock of the journal.
        locks: the locks of the base directory.
        synced: whether to have all on the disk before anything returns.
    """

    def __init__(
        self, folder: str, rules: Rules, locks: Locks, *, synced: bool
    ) -> None:
        self._folder = folder
        self._rules = rules
        self._locks = locks
        self._synced = synced

    # Files -----------------------------------------------------------------------

    def _path(self, scope: ScopeKey) -> str:
        app = f"{self._folder}/{safe_component(scope.app)}"
        if scope.user is None:
            return f"{app}/app.json"
        return f"{app}/users/{safe_component(scope.user)}.json"

    def _read(self, scope: object, path: str) -> _File | None:
        data = read_file(path)
        if data is None:
            return None
        try:
            found = parse(data)
            version = found.pop("version")
            if version <= _VERSION:
                found.pop("scope")
                return _File(**found).checked()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SessionDamagedError(scope, BACKEND, f"{path}: {error}") from error
        raise SchemaVersionError(BACKEND, version, _VERSION)

    def _write(self, scope: ScopeKey, path: str, file: _File) -> None:
        """Store a scope; one that holds nothing and waits for nothing goes."""
        file.tidy()
        if not file.keys and not file.outstanding:
            if remove_file(path):
                folder = os.path.dirname(path)
                if self._synced:
                    sync_folder(folder)
                prune(folder, self._folder)
            return
        text = dump_json(
            {
                "version": _VERSION,
                "scope": str(scope),
                "epoch": file.epoch,
                "counter": file.counter,
                "created_at": file.created_at,
                "last_active_at": file.last_active_at,
                "keys": file.keys,
                "gone": file.gone,
                "outstanding": file.outstanding,
            }
        )
        replace_file(path, text.encode(), synced=self._synced, make_folder=True)

    def _expired(self, scope: ScopeKey, file: _File, now: int) -> bool:
        return self._rules.scope_rule(scope).expired(
            file.created_at, file.last_active_at, now
        )

    # Reading ---------------------------------------------------------------------

    def read(self, scope: ScopeKey, now: int) -> Scoped | None:
        """Return the live state of a scope, `None` where there is none."""
        file = self._read(scope, self._path(scope))
        if file is None or not file.keys or self._expired(scope, file, now):
            return None
        pairs = [(name, dump_json(value)) for name, (_, value) in file.keys.items()]
        return Scoped(sorted(pairs), file.created_at, file.last_active_at)

    def files(self, app: str | None = None) -> Iterator[str]:
        """Return the files of scopes: of an app, or all."""
        apps = os.listdir(self._folder) if app is None else [safe_component(app)]
        for name in apps:
            folder = f"{self._folder}/{name}"
            yield f"{folder}/app.json"
            try:
                users = os.listdir(f"{folder}/users")
            except FileNotFoundError:
                continue  # there is no user's state
            for user in users:
                if user.endswith(".json"):
                    yield f"{folder}/users/{user}"

    def scope_of(self, path: str) -> ScopeKey | None:
        """Return the scope of a file, `None` where there is none.

        Raises:
            SessionDamagedError: it cannot be read.
        """
        data = read_file(path)
        if data is None:
            return None
        try:
            return ScopeKey.parse(parse(data)["scope"])
        except (ValueError, TypeError, KeyError) as error:
            name = path.removeprefix(f"{self._folder}/")
            raise SessionDamagedError(name, BACKEND, str(error)) from error

    def live(self, app: str, now: int) -> tuple[ScopeKey, ...]:
        """Return the scopes of an app that hold live state, in order."""
        found = map(self.scope_of, self.files(app))
        return tuple(
            sorted(
                scope
                for scope in found
                if scope is not None and self.read(scope, now) is not None
            )
        )

    def outstanding(self, scope: ScopeKey) -> frozenset[str]:
        """Return the sessions that drew numbers which may not be applied yet."""
        file = self._read(scope, self._path(scope))
        return frozenset() if file is None else frozenset(file.outstanding.values())

    # Writing ---------------------------------------------------------------------

    def refresh(self, scope: ScopeKey, now: int, *, patient: bool) -> None:
        """Move the activity of a live scope to now."""
        path = self._path(scope)
        with self._locks.hold("scope", path, patient=patient):
            file = self._read(scope, path)
            if (
                file is not None
                and file.keys
                and file.last_active_at < now
                and not self._expired(scope, file, now)
            ):
                file.last_active_at = now
                self._write(scope, path, file)

    def write(self, scope: ScopeKey, texts: Texts, now: int, *, patient: bool) -> None:
        """Set and delete keys of a scope, and touch it."""
        path = self._path(scope)
        with self._locks.hold("scope", path, patient=patient):
            file = self._read(scope, path) or _File(secrets.token_hex(8))
            file.apply(
                file.draw(),
                now,
                {name: load_written(text) for name, text in texts.set},
                texts.deleted,
                expired=self._expired(scope, file, now),
            )
            self._write(scope, path, file)

    def draw(self, scope: ScopeKey, session: str, *, patient: bool) -> Ticket:
        """Draw a number for a change that a session is about to record.

        The lock of the session is held.
        """
        path = self._path(scope)
        with self._locks.hold("scope", path, patient=patient):
            file = self._read(scope, path) or _File(secrets.token_hex(8))
            number = file.draw()
            file.outstanding[str(number)] = session
            self._write(scope, path, file)
            return Ticket(file.epoch, number)

    def settle(
        self,
        scope: ScopeKey,
        session: str,
        changes: Sequence[Pending],
        *,
        drop_others: bool,
        patient: bool,
    ) -> None:
        """Apply what a session recorded, where that was not done.

        Args:
            scope: the scope.
            session: the session; its lock is held.
            changes: what it recorded.
            drop_others: whether these are all, so that other numbers of the session
                were drawn in vain.
            patient: whether to wait for the scope's lock.
        """
        path = self._path(scope)
        with self._locks.hold("scope", path, patient=patient):
            file = self._read(scope, path)
            if file is None:
                return
            mine = {n for n, name in file.outstanding.items() if name == session}
            undone = [
                x for x in changes if x.epoch == file.epoch and str(x.number) in mine
            ]
            for change in undone:
                file.apply(
                    change.number,
                    change.at,
                    change.set,
                    change.deleted,
                    expired=self._expired(scope, file, change.at),
                )
            done = mine if drop_others else {str(change.number) for change in undone}
            for number in done:
                del file.outstanding[number]
            if done:
                self._write(scope, path, file)

    def expire(
        self, scope: ScopeKey, now: int, *, dry_run: bool, patient: bool
    ) -> bool:
        """Delete a scope's state where it has expired; tell whether it had."""
        path = self._path(scope)
        with self._locks.hold("scope", path, patient=patient):
            file = self._read(scope, path)
            if file is None or not file.keys or not self._expired(scope, file, now):
                return False
            if not dry_run:
                file.keys.clear()
                self._write(scope, path, file)
            return True
