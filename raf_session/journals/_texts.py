"""States as names and texts: one text per name, its value as JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from raf_session.changes import Change, StateDelta
from raf_session.errors import SessionDamagedError
from raf_session.frozen import EMPTY, FrozenDict, freeze_json
from raf_session.journal import Codec
from raf_session.json_text import dump_json, load_json

__all__ = ("ChangeTexts", "Pairs", "Texts", "Values")

Pairs: TypeAlias = Iterable[tuple[str, str]]
"""Names and texts, as they are stored."""


class Values:
    """Turns the values of a state into text and back.

    Args:
        backend: the journal's name, for errors.
        codec: what stands between JSON and storage.
    """

    def __init__(self, backend: str, codec: Codec | None) -> None:
        self._backend = backend
        self._codec = codec

    def encode(self, value: object) -> str:
        """Return the text of a value."""
        text = dump_json(value)
        if self._codec is None:
            return text
        return f'"{base64.b64encode(self._codec.encode(text.encode())).decode()}"'

    def decode(self, key: object, pairs: Pairs) -> FrozenDict[Any]:
        """Return the state of these names and texts.

        Raises:
            SessionDamagedError: a value cannot be read; it names it.
        """
        state: dict[str, Any] = {}
        for name, text in pairs:
            try:
                state[name] = freeze_json(load_json(self._json(text)))
            except Exception as error:
                detail = f"state {name!r}: {error}"
                raise SessionDamagedError(key, self._backend, detail) from error
        return FrozenDict(state) if state else EMPTY

    def _json(self, text: str) -> str:
        if self._codec is None:
            return text
        return self._codec.decode(base64.b64decode(text.strip('"'))).decode()


class Texts(NamedTuple):
    """A `StateDelta` with its values as text."""

    set: tuple[tuple[str, str], ...] = ()
    deleted: tuple[str, ...] = ()

    @classmethod
    def of(cls, delta: StateDelta | None, values: Values) -> Texts:
        """Encode the values of a delta."""
        if delta is None:
            return cls()
        return cls(
            tuple((name, values.encode(value)) for name, value in delta.set.items()),
            tuple(delta.deleted),
        )

    @property
    def size(self) -> int:
        """How many characters the values have."""
        return sum([len(text) for _, text in self.set])


class ChangeTexts:
    """A `Change`, encoded before anything is locked.

    Attributes:
        change: the change.
        session: what it sets and deletes of the session's state.
        providers: the same of the provider states.
        user: the same of the user's state.
        app: the same of the app's state.
        size: how many bytes it writes, roughly.
    """

    __slots__ = ("app", "change", "providers", "session", "size", "user")

    def __init__(self, change: Change, values: Values) -> None:
        self.change = change
        self.session = Texts.of(change.session, values)
        self.providers = Texts.of(change.providers, values)
        self.user = Texts.of(change.user, values)
        self.app = Texts.of(change.app, values)
        deltas = (self.session, self.providers, self.user, self.app)
        self.size = sum(texts.size for texts in deltas)
        if change.request is not None:
            self.size += len(change.request.digests)
