"""RAF's JSON: what `serialize` writes, so that RAF reads it, and what RAF writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from pydantic import ValidationError

from raf_session.calls import ToolCall
from raf_session.changes import RequestRecord
from raf_session.errors import InvalidValueError, SchemaVersionError
from raf_session.frozen import EMPTY, join_path, thaw
from raf_session.keys import check_name
from raf_session.messages import ChatMessage, MessageRole, MessageSource
from raf_session.metadata import ProviderStateStore, SessionMetadata, SessionSnapshot

__all__ = (
    "SCHEMA",
    "format_time",
    "message_from_raf",
    "message_to_raf",
    "parse_time",
    "snapshot_from_raf",
    "snapshot_to_raf",
)

SCHEMA: Final = 1
"""The version of the JSON that `snapshot_to_raf` writes."""

OURS: Final = "raf_session"
"""The key under which stands what RAF does not know."""

_RAF_ROLES: Final = {
    MessageRole.DEVELOPER: MessageRole.SYSTEM,
    MessageRole.FUNCTION: MessageRole.TOOL,
}
_MESSAGE: Final = frozenset(
    ("role", "content", "name", "tool_calls", "tool_call_id", "source", OURS)
)
_CALL: Final = frozenset(("id", "name", "arguments"))


def format_time(moment: datetime) -> str:
    """Return an aware moment as RFC 3339 with six digits and ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def parse_time(text: object, path: str) -> datetime:
    """Return the moment of an RFC 3339 text; digits after the sixth are dropped.

    Raises:
        InvalidValueError: it is no text, no time or names no zone.
    """
    try:
        moment = datetime.fromisoformat(cast("str", text))
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValueError(path, f"{text!r} is no time") from error
    raise InvalidValueError(path, f"{text!r} names no zone")


# Messages ------------------------------------------------------------------------


def message_to_raf(message: ChatMessage) -> dict[str, Any]:
    """Return a message in RAF's shape: ``content`` always a string, calls flat.

    What that shape loses stands in the same object under ``raf_session``, and wins
    when it is read.
    """
    role = _RAF_ROLES.get(message.role, message.role)
    raf: dict[str, Any] = {"role": role.value, "content": message.text}
    if message.name is not None:
        raf["name"] = message.name
    if message.tool_calls is not None:
        raf["tool_calls"] = [_call_to_raf(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        raf["tool_call_id"] = message.tool_call_id
    if message.source is not None:
        raf["source"] = message.source.value
    for name, value in message.extra.items():
        if name not in _MESSAGE:
            raf[name] = thaw(value)
    ours: dict[str, Any] = {}
    if not _same(raf, message):
        ours["openai"] = message.to_openai()
    if message.id is not None:
        ours["id"] = message.id
    if message.created_at is not None:
        ours["created_at"] = format_time(message.created_at)
    if message.metadata:
        ours["metadata"] = thaw(message.metadata)
    if ours:
        raf[OURS] = ours
    return raf


def _same(raf: Mapping[str, Any], message: ChatMessage) -> bool:
    """Tell whether RAF's shape alone gives the message back."""
    try:
        return repr(message_from_raf(raf).wire()) == repr(message.wire())
    except InvalidValueError:  # a field of the provider's has a name of RAF's
        return False


def _call_to_raf(call: ToolCall) -> dict[str, Any]:
    raf = {
        "id": call.id or "",
        "name": call.name or "",
        "arguments": thaw(call.arguments),
    }
    for name, value in call.extra.items():
        if name not in _CALL:
            raf[name] = thaw(value)
    return raf


def message_from_raf(raf: Mapping[str, Any], path: str = "") -> ChatMessage:
    """Return the message of RAF's JSON, ours or RAF's own.

    Raises:
        InvalidValueError: it is no message, with the path.
    """
    ours = _object(raf.get(OURS, EMPTY), _join(path, OURS))
    own: dict[str, Any] = {}
    if "id" in ours:
        own["id"] = ours["id"]
    if "metadata" in ours:
        own["metadata"] = _object(ours["metadata"], _join(path, "metadata"))
    if "created_at" in ours:
        own["created_at"] = parse_time(ours["created_at"], _join(path, "created_at"))
    source = raf.get("source")
    if source is not None:
        own["source"] = _source(source, _join(path, "source"))
    wire = ours.get("openai")
    if wire is None:
        wire = {key: value for key, value in raf.items() if key not in {"source", OURS}}
        calls = wire.get("tool_calls")
        if isinstance(calls, list):
            items = cast("list[object]", calls)
            wire["tool_calls"] = [_call_from_raf(call) for call in items]
    try:
        return ChatMessage.from_openai(_object(wire, _join(path, "openai")), **own)
    except InvalidValueError as error:
        raise InvalidValueError(_join(path, error.path), error.reason) from error


def _source(value: object, path: str) -> MessageSource:
    try:
        return MessageSource(cast("str", value))
    except ValueError as error:
        raise InvalidValueError(path, f"{value!r} is no source") from error


def _call_from_raf(call: object) -> object:
    if not isinstance(call, dict) or "function" in call:
        return call  # pyright: ignore[reportUnknownVariableType]
    fields = cast("dict[str, Any]", call)
    function = {key: fields[key] for key in ("name", "arguments") if key in fields}
    rest = {key: value for key, value in fields.items() if key not in _CALL}
    kind = {} if "type" in fields else {"type": "function"}
    return {"id": fields.get("id", ""), **kind, "function": function, **rest}


# Snapshots -----------------------------------------------------------------------


def snapshot_to_raf(snapshot: SessionSnapshot) -> dict[str, Any]:
    """Return RAF's five keys, ``schema``, and ``raf_session`` for what RAF lacks."""
    metadata = snapshot.metadata
    active = snapshot.last_active_at
    raf: dict[str, Any] = {
        **thaw(snapshot.extra),
        "session_id": snapshot.session_id,
        "metadata": {
            **thaw(metadata.extra),
            "created_at": format_time(metadata.created_at),
            "updated_at": format_time(metadata.updated_at),
            "message_count": len(snapshot.messages),
            "last_request_hash": metadata.last_request_hash,
        },
        "messages": [message_to_raf(message) for message in snapshot.messages],
        "provider_states": {
            **_more(snapshot, "provider_states"),
            "states": thaw(snapshot.provider_states.states),
        },
        "last_active_at": None if active is None else format_time(active),
        "schema": SCHEMA,
    }
    ours = _more(snapshot, OURS)
    if snapshot.request is not None:
        ours["request"] = _request_to_json(snapshot.request)
    if any(snapshot.entry_ids):
        ours["entry_ids"] = list(snapshot.entry_ids)
    if snapshot.state:
        ours["state"] = thaw(snapshot.state)
    if ours:
        raf[OURS] = ours
    return raf


def _more(snapshot: SessionSnapshot, name: str) -> dict[str, Any]:
    """Return the fields of an object of the JSON that a newer writer knew."""
    more: object = snapshot.extra.get(name)
    return cast("dict[str, Any]", thaw(more)) if isinstance(more, dict) else {}  # pyright: ignore[reportUnknownArgumentType]


def snapshot_from_raf(raf: Mapping[str, Any]) -> SessionSnapshot:
    """Return the snapshot of RAF's JSON, ours or RAF's own.

    ``provider_states`` and ``last_active_at`` may be missing; fields that we do not
    know are kept.

    Raises:
        InvalidValueError: a field does not fit, with its path.
        SchemaVersionError: a newer library wrote it.
    """
    fields = dict(raf)
    schema = fields.pop("schema", SCHEMA)
    if type(schema) is not int or schema < 1:
        raise InvalidValueError("schema", f"{schema!r} is no version")
    if schema > SCHEMA:
        raise SchemaVersionError("json", schema, SCHEMA)
    if not isinstance(fields.get("session_id"), str):
        raise InvalidValueError("session_id", "missing, or no string")
    ours = dict(_object(fields.pop(OURS, EMPTY), OURS))
    metadata = dict(_object(fields.pop("metadata", EMPTY), "metadata"))
    metadata.pop("message_count", None)  # derived from the messages
    messages = _list(fields.pop("messages", []), "messages")
    providers = dict(_object(fields.pop("provider_states", EMPTY), "provider_states"))
    states = _object(providers.pop("states", EMPTY), "provider_states.states")
    active = fields.pop("last_active_at", None)
    request = _request_from_json(ours.pop("request", None))
    entry_ids = _list(ours.pop("entry_ids", []), f"{OURS}.entry_ids")
    state = _object(ours.pop("state", EMPTY), f"{OURS}.state")
    nested = {"provider_states": providers, OURS: ours}
    fields.update((name, more) for name, more in nested.items() if more)
    try:
        return SessionSnapshot(
            session_id=fields.pop("session_id", None),
            metadata=SessionMetadata(
                created_at=parse_time(
                    metadata.pop("created_at", None), "metadata.created_at"
                ),
                updated_at=parse_time(
                    metadata.pop("updated_at", None), "metadata.updated_at"
                ),
                message_count=len(messages),
                last_request_hash=metadata.pop("last_request_hash", None),
                extra=metadata,
            ),
            messages=tuple(
                message_from_raf(_object(message, f"messages[{i}]"), f"messages[{i}]")
                for i, message in enumerate(messages)
            ),
            provider_states=ProviderStateStore(states=states),
            last_active_at=None
            if active is None
            else parse_time(active, "last_active_at"),
            request=request,
            entry_ids=[
                None if name is None else check_name(name, f"{OURS}.entry_ids")
                for name in entry_ids
            ],
            state=state,
            extra=fields,
        )
    except ValidationError as error:
        fault = error.errors()[0]
        raise InvalidValueError(join_path("", *fault["loc"]), fault["msg"]) from error


def _request_to_json(request: RequestRecord) -> dict[str, Any]:
    return {
        "digests": request.digests.hex(),
        "hash": request.hash,
        "header": request.header,
        "format": request.format,
    }


def _request_from_json(value: object) -> RequestRecord | None:
    if value is None:
        return None
    path = f"{OURS}.request"
    fields: dict[str, Any] = {"header": None, "format": 1, **_object(value, path)}
    for name in ("hash", "header", "format"):
        number = fields.get(name)
        if type(number) is not int and not (name == "header" and number is None):
            raise InvalidValueError(f"{path}.{name}", f"{number!r} is no integer")
    try:
        digests = bytes.fromhex(fields["digests"])
        return RequestRecord(
            digests, fields["hash"], fields["header"], fields["format"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidValueError(path, "no request record") from error


def _object(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValueError(path, f"{type(value).__name__} is not an object")
    return cast("Mapping[str, Any]", value)


def _list(value: object, path: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidValueError(path, f"{type(value).__name__} is not a list")
    return cast("Sequence[Any]", value)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name
