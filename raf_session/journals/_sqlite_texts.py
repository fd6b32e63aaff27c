"""State in the SQLite tables: one row per name, its value as JSON text."""

from __future__ import annotations

import sqlite3
from typing import Final

from raf_session.journals._texts import Texts

__all__ = ("PROVIDER_STATES", "SCOPED_STATE", "SESSION_STATE", "StateTable")


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
