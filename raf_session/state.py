"""Scoped state: one namespace for the caller, three places in storage, one in none.

The prefix of a key says to whom it belongs: ``app:`` to the app, ``user:`` to the
user, ``temp:`` to one run and to no storage, none to the session.
tRPC-Agent: ``sessions/_utils.py`` and ``State``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, Self

from typing_extensions import override

from raf_session.changes import Change, StateDelta
from raf_session.errors import InvalidValueError
from raf_session.frozen import EMPTY, FrozenDict, FrozenJson, freeze_states, thaw

__all__ = (
    "APP_PREFIX",
    "TEMP_PREFIX",
    "USER_PREFIX",
    "State",
    "StateStorageEntry",
    "extract_state_delta",
    "is_temporary",
    "merge_state",
    "state_changes",
    "without_temporary",
)

APP_PREFIX: Final = "app:"
USER_PREFIX: Final = "user:"
TEMP_PREFIX: Final = "temp:"

_NOTHING: Final = StateDelta()


@dataclass(frozen=True, slots=True)
class StateStorageEntry:
    """A delta split by scope, the prefixes taken off; temporary keys are in none."""

    session: StateDelta = _NOTHING
    user: StateDelta = _NOTHING
    app: StateDelta = _NOTHING

    @property
    def session_state(self) -> dict[str, Any]:
        """What is set of the session's state, as a dict of the caller's own."""
        return _plain(self.session)

    @property
    def user_state_delta(self) -> dict[str, Any]:
        """What is set of the user's state, as a dict of the caller's own."""
        return _plain(self.user)

    @property
    def app_state_delta(self) -> dict[str, Any]:
        """What is set of the app's state, as a dict of the caller's own."""
        return _plain(self.app)

    def then(self, later: StateStorageEntry) -> StateStorageEntry:
        """Return what does this and then `later`."""
        return StateStorageEntry(
            self.session.then(later.session),
            self.user.then(later.user),
            self.app.then(later.app),
        )

    @property
    def change(self) -> Change:
        """The change that commits all of it."""
        return Change(
            session=self.session or None, user=self.user or None, app=self.app or None
        )


def _plain(delta: StateDelta) -> dict[str, Any]:
    values: dict[str, Any] = thaw(delta.set)
    return values


def is_temporary(key: str) -> bool:
    """Tell whether a key belongs to one run and is never stored."""
    return key.startswith(TEMP_PREFIX)


def without_temporary(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items whose keys are not temporary."""
    return {key: value for key, value in values.items() if not is_temporary(key)}


def extract_state_delta(
    state_delta: Mapping[str, Any] | None, deleted: Iterable[str] = ()
) -> StateStorageEntry:
    """Split a delta by the prefixes of its keys; temporary keys are left out.

    Args:
        state_delta: keys to set, with their prefixes, and JSON values.
        deleted: keys to delete, with their prefixes.

    Raises:
        InvalidValueError: a key or a value that cannot be stored, with its path as
            the caller wrote it; a key that is both set and deleted.
    """
    sets: dict[str, dict[str, Any]] = {"": {}, USER_PREFIX: {}, APP_PREFIX: {}}
    gone: dict[str, set[str]] = {"": set(), USER_PREFIX: set(), APP_PREFIX: set()}
    for key, value in without_temporary(state_delta or EMPTY).items():
        prefix = _prefix(key)
        sets[prefix][key.removeprefix(prefix)] = value
    if isinstance(deleted, str):
        raise InvalidValueError("deleted", "is one string, not several names")
    for key in deleted:
        if not is_temporary(key):
            prefix = _prefix(key)
            gone[prefix].add(key.removeprefix(prefix))
    session, user, app = (_delta(prefix, sets[prefix], gone[prefix]) for prefix in sets)
    return StateStorageEntry(session, user, app)


def _prefix(key: str) -> str:
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValueError("", f"a key is {type(key).__name__}, no string")
    for prefix in (USER_PREFIX, APP_PREFIX):
        if key.startswith(prefix):
            return prefix
    return ""


def _delta(prefix: str, values: Mapping[str, Any], deleted: set[str]) -> StateDelta:
    if not values and not deleted:
        return _NOTHING
    try:
        return StateDelta(set=values, deleted=deleted)
    except InvalidValueError as error:
        raise InvalidValueError(f"{prefix}{error.path}", error.reason) from None


def merge_state(
    session: Mapping[str, Any],
    user: Mapping[str, Any] = EMPTY,
    app: Mapping[str, Any] = EMPTY,
) -> FrozenDict[FrozenJson]:
    """Return one namespace of three scopes: the session's, then the app's, the user's.

    Args:
        session: frozen values by name.
        user: those of the user's, without their prefix.
        app: those of the app's, without theirs.
    """
    merged = dict(session)
    merged.update((f"{APP_PREFIX}{name}", value) for name, value in app.items())
    merged.update((f"{USER_PREFIX}{name}", value) for name, value in user.items())
    return FrozenDict(merged)


def state_changes(
    stored: Mapping[str, FrozenJson], now: Mapping[str, Any]
) -> tuple[FrozenDict[FrozenJson], frozenset[str]]:
    """Return what was set and what was deleted since a state was stored.

    Whatever was done to the dict or inside its values is found, since values are
    compared.  Temporary keys count in neither.

    Args:
        stored: frozen values by key.
        now: the state that the caller changed.

    Raises:
        InvalidValueError: a value is no JSON value, with its path.
    """
    current = freeze_states(without_temporary(now))
    changed = {
        key: value
        for key, value in current.items()
        if key not in stored or not _same(stored[key], value)
    }
    return FrozenDict(changed), frozenset(stored) - frozenset(current)


def _same(one: FrozenJson, other: FrozenJson) -> bool:
    # Python takes 1, 1.0 and True for one value, and objects whatever their order.
    return one is other or (one == other and repr(one) == repr(other))


class State(MutableMapping[str, Any]):
    """A state that writes through to a dict and records what was written.

    Values are copied in, so that what the caller does to them later changes nothing;
    what is read is the value itself, and so is what is recorded.

    Args:
        value: the state; it is changed in place.
        delta: where keys that were set are recorded.
        deleted: where keys that were deleted are recorded.
    """

    def __init__(
        self,
        value: dict[str, Any],
        delta: dict[str, Any] | None = None,
        deleted: set[str] | None = None,
    ) -> None:
        self._value = value
        self._delta = {} if delta is None else delta
        self._deleted = set[str]() if deleted is None else deleted

    @property
    def delta(self) -> dict[str, Any]:
        """What was set since the record began."""
        return self._delta

    @property
    def deleted(self) -> set[str]:
        """The keys that were deleted since the record began."""
        return self._deleted

    def has_delta(self) -> bool:
        """Tell whether anything was set or deleted."""
        return bool(self._delta or self._deleted)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the whole state."""
        copied: dict[str, Any] = thaw(freeze_states(self._value))
        return copied

    @override
    def __getitem__(self, key: str) -> Any:
        return self._value[key]

    @override
    def __setitem__(self, key: str, value: Any) -> None:
        own = thaw(freeze_states({key: value})[key])
        self._value[key] = self._delta[key] = own
        self._deleted.discard(key)

    @override
    def __delitem__(self, key: str) -> None:
        del self._value[key]
        self._delta.pop(key, None)
        self._deleted.add(key)

    @override
    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value, set to a copy of the default where there is none."""
        if key not in self._value:
            self[key] = default
        return self._value[key]

    def __ior__(self, other: Mapping[str, Any]) -> Self:
        """Set all items of another mapping."""
        self.update(other)
        return self

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    @override
    def __len__(self) -> int:
        return len(self._value)

    @override
    def __repr__(self) -> str:
        return f"State({self._value!r})"
