"""The lines of a session's file: entries as the document has them, ours under `raf`.

An entry's line is TPCLAW's ``SessionMessage``.  What that cannot say stands under
``raf``: the place, the time in microseconds, what else the event has.  The body of the
entry, as every backend stores it, is made of the line again, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from raf_session.clock import from_micros, to_micros
from raf_session.encoding import Row
from raf_session.entries import Counts
from raf_session.json_text import dump_json, load_written
from raf_session.keys import check_name
from raf_session.messages import MessageRole
from raf_session.raf_json import format_time, parse_time

__all__ = (
    "ENTRY_KINDS",
    "Line",
    "Place",
    "bare",
    "check_kinds",
    "clean",
    "entry_fields",
    "foreign_place",
    "is_entry",
    "place_of",
    "row_of",
    "splice_fields",
)

_FARTHEST_US: Final = 1 << 57
"""No moment is as far from 1970, in microseconds."""
ENTRY_KINDS: Final = frozenset(("message", "event", "summary"))

_WIRE: Final = {
    "role": "role",
    "name": "name",
    "tool_calls": "toolCalls",
    "tool_call_id": "toolCallId",
}
"""Fields of a message by their names in the document; the content is beside them."""
_ORDER: Final = ("role", "content", "name", "tool_calls", "tool_call_id")
_OWN: Final = ("id", "created_at", "metadata", "source")
_BEFORE_METADATA: Final = (
    "own",
    "author",
    "invocation_id",
    "branch",
    "timestamp",
    "state_delta",
    "usage",
)


class Line(NamedTuple):
    """A line that could be read."""

    number: int
    """Which one, from 1."""
    offset: int
    size: int
    """How many bytes, without the newline."""
    fields: dict[str, Any]

    @property
    def ours(self) -> dict[str, Any]:
        """What stands under ``raf``; empty in a line of another program's."""
        found = self.fields.get("raf")
        return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


class Place(NamedTuple):
    """An entry without its body, and where its line is."""

    seq: int
    left_at: int
    id: str
    kind: str
    stored_at: int
    offset: int
    size: int
    counts: Counts


def is_entry(ours: Mapping[str, Any]) -> bool:
    """Tell whether the line of this ``raf`` is an entry's."""
    return ours.get("kind", "message") in ENTRY_KINDS


def bare(place: Place) -> Row:
    """Return the entry of a place, its body empty."""
    return Row(*place[:5], "", place.counts)


# Writing -------------------------------------------------------------------------


def entry_fields(row: Row, *, replaces: bool = False) -> dict[str, Any]:
    """Return the line of an entry.

    Args:
        row: the entry.
        replaces: whether it takes a place that another entry had.
    """
    event = load_written(row.body)
    ours: dict[str, Any] = {"seq": row.seq, "at": row.stored_at}
    if row.kind != "message":
        ours["kind"] = row.kind
    if row.left_at:
        ours["left"] = row.left_at
    if replaces:
        ours["replaces"] = True
    ours["counts"] = row.counts[1:]
    line: dict[str, Any] = {"id": row.id}
    if isinstance(event, dict) and "message" in event:
        line |= _message_fields(event, ours)  # pyright: ignore[reportUnknownArgumentType]
    else:
        ours["event"] = event
    line["createdAt"] = format_time(from_micros(row.stored_at))
    line["raf"] = ours
    if _body_of(line, ours) != row.body:
        ours["event"] = event
        ours["whole"] = True
    return line


def splice_fields(runs: Sequence[Sequence[int]], left_at: int) -> dict[str, Any]:
    """Return the line that archives the active entries of these runs of places."""
    return {"raf": {"kind": "splice", "removed": runs, "left": left_at}}


def _message_fields(event: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = event["message"]
    line: dict[str, Any] = {"role": message.get("role", "")}
    content = message.get("content")
    if isinstance(content, str):
        line["content"] = content
    else:
        line["content"] = _text_of(content)
        if "content" in message:
            ours["content"] = content
        else:
            ours["bare"] = True
    for name, documented in _WIRE.items():
        if name in message:
            line[documented] = message[name]
    others = {name: value for name, value in message.items() if name not in _ORDER}
    if others:
        ours["message"] = others
    rest = {name: value for name, value in event.items() if name != "message"}
    own = rest.get("own")
    if own and "metadata" in own:
        line["metadata"] = own["metadata"]
        rest["own"] = {name: own[name] for name in own if name != "metadata"}
    elif "metadata" in rest:
        line["metadata"] = rest.pop("metadata")
        ours["entry_metadata"] = True
    if rest:
        ours["event"] = rest
    return line


def _text_of(content: Any) -> str:
    """Return the text of a content that is no string, for who reads strings alone."""
    parts = cast("list[object]", content) if isinstance(content, list) else []
    texts: list[object] = [
        cast("dict[str, object]", part).get("text")
        for part in parts
        if isinstance(part, dict)
    ]
    return "".join([text for text in texts if isinstance(text, str)])


# Reading -------------------------------------------------------------------------


def place_of(line: Line, ours: Mapping[str, Any]) -> Place:
    """Return where the entry of a line is, and all of it but the body.

    Raises:
        Exception: it is no entry's line; `KeyError`, `TypeError` and the like.
    """
    seq, left, at = ours["seq"], ours.get("left", 0), ours["at"]
    messages, conversations, tokens = ours["counts"]
    check_kinds(int, (seq, left, at, messages, conversations, tokens))
    if abs(at) > _FARTHEST_US:
        raise ValueError("no moment")
    return Place(
        seq,
        left,
        check_name(line.fields["id"], "id"),
        ours.get("kind", "message"),
        at,
        line.offset,
        line.size,
        Counts(1, messages, conversations, tokens),
    )


def check_kinds(kind: type, values: Iterable[object]) -> None:
    """Raise `TypeError` unless each value is of this type, not of one below it."""
    if set(map(type, values)) != {kind}:
        raise TypeError(f"no {kind.__name__}")


def row_of(place: Place, fields: dict[str, Any]) -> Row:
    """Return the entry that is in this place.

    Args:
        place: where it is.
        fields: the line there.

    Raises:
        Exception: it is no entry's line.
    """
    ours = fields.get("raf")
    if ours is None:
        clean(fields)
    return Row(*place[:5], _body_of(fields, ours or {}), place.counts)


def _body_of(fields: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    if "role" not in fields or "whole" in ours:
        return dump_json(ours["event"])
    message: dict[str, Any] = {"role": fields["role"]}
    if "bare" not in ours:
        message["content"] = ours["content"] if "content" in ours else fields["content"]
    for name in _ORDER[2:]:
        if _WIRE[name] in fields:
            message[name] = fields[_WIRE[name]]
    message.update(ours.get("message", {}))
    event: dict[str, Any] = {"message": message}
    rest: dict[str, Any] = ours.get("event", {})
    if "metadata" not in fields:
        return dump_json(event | rest)
    if "entry_metadata" not in ours:
        own = rest.get("own", {}) | {"metadata": fields["metadata"]}
        own = {name: own[name] for name in _OWN if name in own}
        return dump_json(event | {"own": own} | rest | {"own": own})
    event |= {name: rest[name] for name in _BEFORE_METADATA if name in rest}
    event["metadata"] = fields["metadata"]
    return dump_json(event | rest)


# Lines of other programs ---------------------------------------------------------


def clean(fields: dict[str, Any]) -> None:
    """Leave out of another program's line what says nothing."""
    fields.setdefault("content", "")
    for name in ("name", "toolCalls", "toolCallId", "metadata"):
        if name in fields and not fields[name]:
            del fields[name]


def foreign_place(line: Line, seq: int, not_before: int) -> Place:
    """Return the place of a line that another program wrote.

    The line becomes a message; its place and its time are those that come next.

    Args:
        line: the line.
        seq: its place.
        not_before: when the entry in front was stored.

    Raises:
        ValueError: it is no message.
    """
    fields = line.fields
    role = MessageRole(fields.get("role", ""))
    at = not_before
    if "createdAt" in fields:
        at = max(at, to_micros(parse_time(fields["createdAt"], "createdAt")))
    name = fields.get("id") or f"line-{seq}"
    return Place(
        seq,
        0,
        check_name(name, "id"),
        "message",
        at,
        line.offset,
        line.size,
        Counts(1, 1, int(role is MessageRole.USER), 0),
    )
