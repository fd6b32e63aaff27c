"""``raf-session show``: one session, its messages to be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from raf_session.calls import ToolCall
from raf_session.cli.faults import Fault
from raf_session.cli.listing import head_json, key_of, shown_id, shown_time
from raf_session.cli.terminal import cut, one_line, safe
from raf_session.entries import Entry, Record
from raf_session.errors import InvalidValueError, SessionNotFoundError
from raf_session.journal import Journal
from raf_session.json_text import dump_json
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import WHOLE, Window
from raf_session.parts import ContentPart, ReasoningPart, RefusalPart, TextPart

__all__ = ("find_session", "print_session", "session_json")

LONGEST_VALUE = 200
"""How much is shown of a value that is not text."""


async def find_session(
    journal: Journal, name: str, place: str, window: Window = WHOLE
) -> Record:
    """Return the session of an id, or of a key as `list` prints it.

    Raises:
        Fault: there is none.
    """
    for make_key in (SessionKey.raf, key_of):
        try:
            return await journal.load(make_key(name), window)
        except (InvalidValueError, SessionNotFoundError):
            continue
    raise Fault(place, f"no session {name!r}")


def session_json(record: Record) -> dict[str, Any]:
    """Return the session as one JSON value; its messages are as they were sent."""
    return {
        **head_json(record.head),
        "messages": [
            entry.message.to_openai()
            for entry in record.entries
            if entry.message is not None
        ],
    }


def print_session(record: Record, console: Console) -> None:
    """Print what is known of a session, and a block for each message."""
    for line in _head_lines(record):
        console.print(Text(one_line(line)), soft_wrap=True)
    for index, entry in enumerate(record.entries):
        console.print()
        title = f"[{index}] {one_line(_title(entry))}"
        console.print(Text(title, style="bold"), soft_wrap=True)
        for block in _blocks(entry):
            console.print(Text(safe(block)), soft_wrap=True)


def _head_lines(record: Record) -> Iterator[str]:
    head = record.head
    yield f"session  {shown_id(head.key)}"
    yield (
        f"created  {shown_time(head.created_at)} UTC, "
        f"last active {shown_time(head.last_active_at)} UTC"
    )
    yield f"messages {head.active.messages:,}"
    if head.request_n is not None:
        yield f"request  {head.request_n:,} messages, hash {head.request_hash:016x}"
    for name, text in (
        ("title", head.title),
        ("model", head.model),
        ("labels", ", ".join(sorted(head.labels))),
        ("status", "" if head.status.value == "active" else head.status.value),
        ("state", ", ".join(record.state)),
        ("provider", ", ".join(record.provider_states)),
    ):
        if text:
            yield f"{name:<8} {text}"


def _title(entry: Entry) -> str:
    message = entry.message
    if message is None:
        return " ".join(filter(None, (entry.kind.value, entry.author)))
    words = [message.role.value, message.name, message.tool_call_id]
    if entry.kind.value != "message":
        words.append(f"({entry.kind.value})")
    return " ".join(filter(None, words))


def _blocks(entry: Entry) -> Iterator[str]:
    """Yield what is below the title: text, parts, calls, and fields we do not type."""
    message = entry.message
    if message is None:
        return
    content = message.content
    if isinstance(content, str):
        if content:
            yield content
    else:
        yield from map(_part, content or ())
    if message.refusal is not None:
        yield f"refusal: {message.refusal}"
    yield from map(_call, message.tool_calls or ())
    yield from _fields(message)


def _part(part: ContentPart) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, ReasoningPart):
        return f"reasoning: {part.text}"
    if isinstance(part, RefusalPart):
        return f"refusal: {part.refusal}"
    return _value(part.type or "part", part.wire())


def _call(call: ToolCall) -> str:
    if call.name is None:
        return _value("call", call.wire())
    given = call.arguments
    arguments = given if isinstance(given, str) else dump_json(given)
    return f"call {call.name}({arguments}) {call.id or ''}".rstrip()


def _fields(message: ChatMessage) -> Iterator[str]:
    fields: Mapping[str, Any] = message.extra
    for name, value in fields.items():
        yield f"{name}: {value}" if isinstance(value, str) else _value(name, value)


def _value(name: str, value: object) -> str:
    return f"{name}: {cut(dump_json(value), LONGEST_VALUE)}"
