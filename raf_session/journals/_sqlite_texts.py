"""State in the SQLite tables: one row per name, its value as JSON text."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from raf_session.changes import StateDelta
from raf_session.errors import SessionDamagedError
from raf_session.frozen import EMPTY, FrozenDict, freeze_json
from raf_session.journal import Codec
from raf_session.journals._sqlite_faults import BACKEND
from raf_session.json_text import dump_json, load_json

__all__ = (
    "PROVIDER_STATES",
    "SCOPED_STATE",
    "SESSION_STATE",
    "Pairs",
    "StateTable",
    "Texts",
    "Values",
)

Pairs: TypeAlias = Iterable[tuple[str, str]]
"""Names and texts, as they are stored."""


class Values:
    """Turns the values of a state into text and back.

    Args:
        codec: what stands between JSON and storage.
    """

    def __init__(self, codec: Codec | None) -> None:
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
                raise SessionDamagedError(key, BACKEND, detail) from error
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


class StateTable:
    """A table of names and values, told apart by the number of their owner."""

    def __init__(self, table: str, owner: str) -> None:
        self._read = (
            f"SELECT name, value FROM {table} WHERE {owner} = ? ORDER BY name LIMIT ?"  # noqa: S608
        )
        self._put = f"REPLACE INTO {table} ({owner}, name, value) VALUES (?, ?, ?)"  # noqa: S608
        self._delete = f"DELETE FROM {table} WHERE {owner} = ? AND name = ?"  # noqa: S608

    def read(
        self, cursor: sqlite3.Cursor, owner: int, limit: int = -1
    ) -> list[tuple[str, str]]:
        """Return the rows of an owner, by name."""
        return cursor.execute(self._read, (owner, limit)).fetchall()

    def write(self, cursor: sqlite3.Cursor, owner: int, texts: Texts) -> None:
        """Delete and set what the delta names."""
        for name in texts.deleted:
            cursor.execute(self._delete, (owner, name))
        for name, text in texts.set:
            cursor.execute(self._put, (owner, name, text))


SESSION_STATE: Final = StateTable("session_state", "session")
PROVIDER_STATES: Final = StateTable("provider_states", "session")
SCOPED_STATE: Final = StateTable("scoped_state", "scope")
