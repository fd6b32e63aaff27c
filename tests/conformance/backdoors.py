"""Back doors to the journals in memory and on SQLite, by the storage's own tools."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from typing_extensions import override

from raf_session.conformance import Backdoor
from raf_session.encoding import Row
from raf_session.entries import Counts, Entry
from raf_session.journal import Journal
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage

SPOILT = '{"message": {"role": "user", "con'


def _body(entry: Entry) -> str:
    """Return a body as another writer might spell it."""
    assert entry.message is not None
    fields = {"content": entry.message.text, "role": entry.message.role.value}
    return json.dumps({"message": fields}, indent=1)


def _entry(row: Sequence[Any]) -> Entry:
    seq, left_at, entry_id, kind, stored_us, body = row
    message = json.loads(body)["message"]
    entry = Entry(entry_id, kind, ChatMessage.from_openai(message))
    return entry.stored(seq, stored_us, left_at)


class MemoryBackdoor(Backdoor):
    def __init__(self, journal: Journal) -> None:
        self._kept = cast("MemoryJournal", journal)._sessions

    @override
    async def rows(self, key: SessionKey) -> Sequence[Entry]:
        kept = self._kept.get(key)
        if kept is None:
            return ()
        return [_entry(row[:6]) for row in (*kept.archive, *kept.active)]

    @override
    async def put(self, key: SessionKey, rows: Sequence[Entry]) -> None:
        kept = self._kept[key]
        made = [
            Row(
                e.seq,
                e.left_at,
                e.id,
                e.kind.value,
                e.stored_us or 0,
                _body(e),
                Counts.of((e,)),
            )
            for e in rows
        ]
        kept.active = sorted(row for row in made if not row.left_at)
        kept.archive = [row for row in made if row.left_at]
        kept.head = kept.head._replace(last_seq=max(row.seq for row in made))
        kept.index()

    @override
    async def spoil(self, key: SessionKey, seq: int) -> None:
        kept = self._kept[key]
        kept.active = [
            row._replace(body=SPOILT) if row.seq == seq else row for row in kept.active
        ]


class SqliteBackdoor(Backdoor):
    def __init__(self, path: Path) -> None:
        self._path = path

    def _do(self, statement: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(self._path, timeout=10)) as db, db:
            return db.execute(statement, values).fetchall()

    def _number(self, key: SessionKey) -> int | None:
        found = self._do(
            "SELECT number FROM heads"
            " WHERE app = ? AND user = ? AND scope = ? AND session = ?",
            *key,
        )
        return found[0][0] if found else None

    @override
    async def rows(self, key: SessionKey) -> Sequence[Entry]:
        return [
            _entry(row)
            for row in self._do(
                "SELECT seq, left_at, id, kind, stored_at, body FROM entries"
                " WHERE session = ? ORDER BY random()",
                self._number(key),
            )
        ]

    @override
    async def put(self, key: SessionKey, rows: Sequence[Entry]) -> None:
        number = self._number(key)
        self._do("DELETE FROM entries WHERE session = ?", number)
        for entry in rows:
            self._do(
                "INSERT INTO entries (session, left_at, seq, id, kind, stored_at,"
                " messages, conversations, tokens, body)"
                " VALUES (?, ?, ?, ?, ?, ?, 1, 1, 0, ?)",
                *(number, entry.left_at, entry.seq, entry.id, entry.kind.value),
                *(entry.stored_us, _body(entry)),
            )
        active = [entry for entry in rows if not entry.left_at]
        self._do(
            "UPDATE heads SET last_seq = ?, active_entries = ?, active_messages = ?,"
            " active_conversations = ?, tail_at = ? WHERE number = ?",
            max(entry.seq for entry in rows),
            *(len(active),) * 3,
            max(entry.stored_us or 0 for entry in active),
            number,
        )

    @override
    async def spoil(self, key: SessionKey, seq: int) -> None:
        self._do(
            "UPDATE entries SET body = ? WHERE session = ? AND seq = ? AND left_at = 0",
            *(SPOILT, self._number(key), seq),
        )


def sqlite_backdoor(journal: Journal) -> Backdoor:
    return SqliteBackdoor(cast("Any", journal).path)
