"""``raf-session list``: what a store holds, last active first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from raf_session.cli.report import LINES, print_table
from raf_session.cli.terminal import one_line, shorten
from raf_session.entries import SessionHead
from raf_session.errors import InvalidValueError
from raf_session.journal import Journal
from raf_session.key_paths import agent_parts, format_agent_key, parse_agent_key
from raf_session.keys import SessionKey
from raf_session.options import Query
from raf_session.raf_json import format_time

__all__ = (
    "head_json",
    "heads",
    "key_of",
    "print_heads",
    "shown_id",
    "shown_time",
)

LONGEST_ID = 40
BESIDE_ID = 40
"""The columns of a row without its id."""


async def heads(journal: Journal, limit: int) -> tuple[list[SessionHead], bool]:
    """Return the heads of the sessions last active, and whether there are more."""
    found: list[SessionHead] = []
    cursor: str | None = None
    while len(found) <= limit:  # one more than asked for
        want = limit + 1 - len(found)
        page = await journal.scan(Query(), cursor, limit=min(want, 500))
        found += [listed.head for listed in page.sessions]
        cursor = page.cursor
        if cursor is None:
            break
    return found[:limit], len(found) > limit


def shown_id(key: SessionKey) -> str:
    """Return what `show` finds the session by: its id, or its key.

    That of an agent's session as TPCLAW's document writes it.
    """
    if agent_parts(key) is not None:
        return format_agent_key(key)
    alone = not (key.app or key.user or key.scope)
    return key.session if alone else str(key)


def key_of(text: str) -> SessionKey:
    """Return the key of this text, in TPCLAW's form or in ours.

    Raises:
        InvalidValueError: no key is written so.
    """
    try:
        return parse_agent_key(text)
    except InvalidValueError:
        return SessionKey.parse(text)


def shown_time(moment: datetime) -> str:
    """Return a moment in UTC, to the second."""
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def print_heads(
    found: list[SessionHead], *, more: bool, full: bool, console: Console
) -> None:
    """Print a row for each session.

    Args:
        found: the sessions.
        more: whether there are more of them.
        full: whether ids are whole on a terminal too, where long ones are shortened.
        console: where to.
    """
    table = Table(box=LINES, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("session", no_wrap=True)
    table.add_column("messages", justify="right", no_wrap=True)
    table.add_column("last active (UTC)", no_wrap=True)
    table.add_column("title", overflow="fold")
    names = [one_line(shown_id(head.key)) for head in found]
    width = max(map(cell_len, names), default=0) + BESIDE_ID
    if console.is_terminal and not full:
        width = console.width
        room = max(12, min(width - BESIDE_ID, LONGEST_ID))
        names = [shorten(name, room) for name in names]
    for head, name in zip(found, names, strict=True):
        table.add_row(
            Text(name),
            Text(f"{head.active.messages:,}"),
            Text(shown_time(head.last_active_at)),
            Text(one_line(head.title)),
        )
    print_table(table, console, width)
    if more:
        console.print("\nthere are more: --limit")


def head_json(head: SessionHead) -> dict[str, Any]:
    """Return what is known of a session without its messages, as a JSON value."""
    return {
        "id": head.key.session,
        "key": str(head.key),
        "message_count": head.active.messages,
        "created_at": format_time(head.created_at),
        "updated_at": format_time(head.updated_at),
        "last_active_at": format_time(head.last_active_at),
        "revision": head.revision,
        "title": head.title,
        "model": head.model,
        "status": head.status.value,
        "labels": sorted(head.labels),
        "pinned": head.pinned,
        "last_request": None
        if head.request_n is None
        else {"messages": head.request_n, "hash": head.request_hash},
    }
