"""What the checks of a journal share: entries to store, and ways to compare."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from copy import deepcopy
from typing import Any, Final, TypeVar

import anyio

from raf_session.entries import Entry, Record
from raf_session.errors import (
    EntryConflictError,
    EntryTooLargeError,
    SessionError,
    SessionExistsError,
    SessionNotFoundError,
)
from raf_session.journal import Journal, Listed, Order
from raf_session.json_text import dump_json
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage, MessageRole
from raf_session.options import NewSession, Query

__all__ = (
    "KEY",
    "NEW",
    "alive",
    "batch",
    "body",
    "every",
    "ids",
    "places",
    "raises",
    "said",
    "same",
    "together",
    "unchanged",
    "varied",
    "whole",
)

_E = TypeVar("_E", bound=BaseException)
_T = TypeVar("_T")

KEY: Final = SessionKey("app", "user", "", "session")
NEW: Final = NewSession(key=KEY)

_OTHERS: Final = (SessionExistsError, EntryConflictError, EntryTooLargeError)


def said(
    entry_id: str, text: str | None = None, role: MessageRole = MessageRole.USER
) -> Entry:
    """Return a message entry; the text is made from the id where none is given."""
    content = f"the text of {entry_id}" if text is None else text
    return Entry(entry_id, message=ChatMessage(role=role, content=content))


def batch(*entry_ids: str) -> tuple[Entry, ...]:
    """Return a message entry for each id."""
    return tuple(said(entry_id) for entry_id in entry_ids)


def varied(entry: Entry, **fields: Any) -> Entry:
    """Return the entry with some of its fields replaced."""
    return entry._replace(**fields)  # pyright: ignore[reportPrivateUsage]


def ids(entries: Iterable[Entry]) -> list[str]:
    """Return their ids, in order."""
    return [entry.id for entry in entries]


def places(entries: Iterable[Entry]) -> list[int]:
    """Return their places, in order."""
    return [entry.seq for entry in entries]


def body(entry: Entry) -> str:
    """Return the caller's event as text that shows what ``==`` hides.

    Key order, 1 beside 1.0 and true, the sign of zero, null beside absent.
    """
    message = entry.message
    own: list[Any] = []
    if message is not None:
        made = message.created_at
        own = [
            message.wire(),
            message.id,
            None if made is None else made.isoformat(),
            message.metadata,
            message.source,
        ]
    delta = entry.state_delta
    usage = entry.usage
    return dump_json(
        [
            entry.id,
            entry.kind,
            own,
            entry.author,
            entry.invocation_id,
            entry.branch,
            entry.timestamp,
            None if delta is None else [delta.set, sorted(delta.deleted)],
            None if usage is None else usage.model_dump(),
            entry.metadata,
            entry.extra,
        ]
    )


def same(seen: Any, expected: Any, what: str) -> None:
    """Raise where two values differ, showing both."""
    assert seen == expected, f"{what}: expected {expected!r}, seen {seen!r}"


@contextmanager
def raises(error: type[_E], what: str) -> Generator[list[_E]]:
    """Raise where the block does not; the list holds the error afterwards."""
    caught: list[_E] = []
    try:
        yield caught
    except error as seen:
        if error is ValueError and isinstance(seen, _OTHERS):
            raise AssertionError(f"{what}: {seen!r} says another thing") from seen
        caught.append(seen)
    else:
        raise AssertionError(f"{what}: no {error.__name__} was raised")


async def whole(journal: Journal, key: SessionKey = KEY) -> Record:
    """Read everything that there is of a session."""
    return await journal.load(key, archived=True)


async def alive(journal: Journal, key: SessionKey = KEY) -> bool:
    """Say whether the session can be read."""
    try:
        await journal.load(key)
    except SessionNotFoundError:
        return False
    return True


@asynccontextmanager
async def unchanged(
    journal: Journal, what: str, *keys: SessionKey
) -> AsyncGenerator[None]:
    """Raise where the block altered anything that can be read of the sessions."""
    before = [deepcopy(await whole(journal, key)) for key in keys or (KEY,)]
    yield
    for key, former in zip(keys or (KEY,), before, strict=True):
        now = await whole(journal, key)
        for name, left, right in zip(Record._fields, former, now, strict=True):
            same(right, left, f"{what}: {name} of {str(key)!r} is as it was")


async def together(
    *calls: Callable[[], Awaitable[_T]], timeout: float = 60
) -> list[_T | SessionError]:
    """Run the calls in parallel; return what each gave or the error that it raised."""
    answers: dict[int, _T | SessionError] = {}

    async def run(index: int, call: Callable[[], Awaitable[_T]]) -> None:
        try:
            answers[index] = await call()
        except SessionError as error:
            answers[index] = error

    with anyio.fail_after(timeout):
        async with anyio.create_task_group() as group:
            for index, call in enumerate(calls):
                group.start_soon(run, index, call)
    return [answers[index] for index in range(len(calls))]


async def every(
    journal: Journal,
    query: Query | None = None,
    *,
    order: Order = "key",
    limit: int = 100,
    state: bool = False,
) -> list[Listed]:
    """List to the end, page by page."""
    found: list[Listed] = []
    cursor: str | None = None
    for _ in range(10_000):
        page = await journal.scan(
            query or Query(), cursor, order=order, limit=limit, state=state
        )
        same(len(page.sessions) <= limit, True, "a page is no longer than its limit")
        found.extend(page.sessions)
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("the listing does not end")
