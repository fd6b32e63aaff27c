"""Sessions that hold everything a session can hold, and what must be kept of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from raf_session.changes import (
    Change,
    LabelDelta,
    RequestRecord,
    SessionStatus,
    StateDelta,
)
from raf_session.conformance import TickingClock
from raf_session.conformance.journal_values import body, every, said, whole
from raf_session.entries import Entry, EntryKind
from raf_session.journal import Journal
from raf_session.json_text import dump_json
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import ChatMessage, MessageSource, Usage
from raf_session.options import NewSession

ANN = SessionKey("shop", "ann", "", "s/1")
BOB = SessionKey("shop", "bob%", "web:per_peer", "ß")
RAF = SessionKey.raf("alone")

SPECIAL = Entry(
    "special",
    EntryKind.EVENT,
    ChatMessage.from_openai(
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "\ud83d é\0"},
                {"odd": [1, 1.0, True]},
            ],
            "tool_calls": [
                {"id": "c", "function": {"name": "f", "arguments": {}}}
            ],
            "x-unknown": {"z": 10**40, "a": -0.0},
        },
        id="special",
        metadata={"k": None},
        source=MessageSource.EXTERNAL,
    ),
    author="a",
    invocation_id="i",
    branch="b",
    timestamp=12.5,
    state_delta=StateDelta({"x": 1}, {"y"}),
    usage=Usage(prompt_tokens=3, total_tokens=7),
    metadata={"m": [1]},
    extra={"e": {"b": 1, "a": 2}},
)  # fmt: skip


async def fill(journal: Journal, key: SessionKey, clock: TickingClock) -> None:
    """Make a session with a past: compacted around a kept entry, trimmed, described."""
    created = clock()
    await journal.create(NewSession(key=key, session_type="Mine", forked_from="a/b//c"))
    for n in range(6):
        clock.tick(1, microseconds=7)
        await journal.append(key, [said(f"e{n}")])
    clock.tick()
    summary = Entry(
        "sum", EntryKind.SUMMARY, ChatMessage.assistant("so far"), usage=Usage()
    )
    await journal.splice(key, 1, 4, [summary], keep={3}, archive=True)
    clock.tick()
    await journal.append(key, [SPECIAL, said("last")], trim=5)
    clock.tick()
    await journal.splice(key, 1, 3, [said("sum2")], archive=True)
    clock.tick()
    request = RequestRecord(bytes(range(24)), 2**64 - 1, 5)
    await journal.update(
        key,
        Change(
            session=StateDelta({"n": 1.0, "z": {"b": [], "a": None}, "é": True}),
            providers=StateDelta({"openai": {"id": "x"}}),
            request=request.after(None),
            title="Talk é",
            model="m-1",
            labels=LabelDelta({"x", "y"}),
            pin=True,
            status=SessionStatus.COMPACTED,
            touch=clock(),
        ),
    )
    assert clock() > created


async def fill_scopes(journal: Journal) -> None:
    for scope, state in (
        (ScopeKey("shop"), {"rate": 1.5, "name": "shop"}),
        (ScopeKey("shop", "ann"), {"lang": "de"}),
        (ScopeKey("shop", "zoe"), {"lang": "it"}),
    ):
        await journal.update_scoped_state(scope, StateDelta(state))


async def kept(journal: Journal, key: SessionKey) -> dict[str, Any]:
    """Return everything that is to be the same of a session in any journal."""
    record = await whole(journal, key)
    head = record.head
    return {
        "key": head.key,
        "times": (head.created_at, head.updated_at, head.last_active_at),
        "pinned": head.pinned,
        "origin": (head.session_type, head.forked_from),
        "described": (head.title, head.model, head.status, sorted(head.labels)),
        "active": head.active,
        "entries": shown(record.entries),
        "archived": shown(record.archived),
        "state": dump_json(record.state),
        "providers": dump_json(record.provider_states),
        "user": dump_json(record.user_state),
        "app": dump_json(record.app_state),
        "request": record.request,
        "request head": (
            head.request_n,
            head.request_hash,
            head.request_header,
            head.request_format,
        ),
    }


def shown(entries: Iterable[Entry]) -> list[tuple[str, Any]]:
    return [(body(entry), entry.stored_at) for entry in entries]


async def everything(journal: Journal) -> dict[SessionKey, Any]:
    return {
        listed.head.key: await kept(journal, listed.head.key)
        for listed in await every(journal)
    }


class BrokenError(Exception):
    """A call that was made to fail."""


CALLS = frozenset(
    (
        *("create", "load", "append", "splice", "update", "delete", "scan", "expire"),
        *("scoped_state", "update_scoped_state", "scopes"),
    )
)


class Watched:
    """A journal that runs a hook around each call."""

    def __init__(self, inner: Journal) -> None:
        self.inner = inner
        self.calls: list[str] = []
        self.before: Callable[[str], Awaitable[None]] | None = None
        self.after: Callable[[str, Any], Awaitable[Any]] | None = None

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if name not in CALLS:
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            if self.before is not None:
                await self.before(name)
            answer = await value(*args, **kwargs)
            if self.after is not None:
                return await self.after(name, answer)
            return answer

        return call

    @property
    def journal(self) -> Journal:
        return cast("Journal", self)

    def break_at(self, number: int, *, late: bool) -> None:
        """Let the call of this number fail, before it does anything or after it did."""

        async def early(_: str) -> None:
            if len(self.calls) > number:
                raise BrokenError

        async def lately(_: str, __: Any) -> Any:
            if len(self.calls) > number:
                raise BrokenError
            return __

        if late:
            self.after = lately
        else:
            self.before = early


class Damage:
    """An SQLite file in which single values can be torn.

    Args:
        path: where it is made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def tear(self, sql: str, *values: str) -> None:
        with closing(sqlite3.connect(self.path)) as database, database:
            assert database.execute(sql, values).rowcount > 0

    def tear_head(self, key: SessionKey) -> None:
        self.tear(
            "UPDATE heads SET status = 'none' "
            "WHERE app = ? AND user = ? AND scope = ? AND session = ?",
            *key,
        )

    def tear_state(self, name: str) -> None:
        self.tear("UPDATE scoped_state SET value = '{torn' WHERE name = ?", name)
