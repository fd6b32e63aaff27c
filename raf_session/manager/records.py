"""A session and its messages as the document prints them in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Self, cast

from pydantic import BeforeValidator, ConfigDict, model_serializer, model_validator
from pydantic.alias_generators import to_camel

from raf_session.calls import ToolCall, tool_call_from_openai
from raf_session.changes import SessionStatus
from raf_session.clock import utc, utc_now
from raf_session.entries import Entry, SessionHead, new_id
from raf_session.errors import InvalidValueError
from raf_session.frozen import EMPTY, FrozenDict, freeze, join_path, thaw
from raf_session.key_paths import SessionScope, check_agent_key, format_agent_key
from raf_session.keys import check_name
from raf_session.manager.checked_model import CheckedModel
from raf_session.messages import ChatMessage, MessageRole, MessageSource
from raf_session.parts import StrictText, frozen_object
from raf_session.raf_json import format_time, parse_time

__all__ = ("SessionMessage", "SessionMeta", "SessionState")


class SessionState(StrEnum):
    """What a session is. The document: ``SessionState``."""

    ACTIVE = "active"
    IDLE = "idle"
    """Without activity for a while, and not expired."""
    COMPACTED = "compacted"
    """A summary stands for its older messages."""
    ARCHIVED = "archived"


def _moment(value: object) -> datetime:
    return utc(value) if isinstance(value, datetime) else parse_time(value, "")


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a whole number from 0, not {value!r:.60}")
    return int(value)


def _calls(value: object) -> tuple[ToolCall, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("expected a list of calls")  # noqa: TRY004  (pydantic's way)
    return tuple(_call(f"[{i}]", call) for i, call in enumerate(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _call(path: str, value: object) -> ToolCall:
    if isinstance(value, ToolCall):
        return value
    if not isinstance(value, Mapping):
        raise InvalidValueError(path, "a call is an object")
    fields = dict(cast("Mapping[str, object]", value))
    return tool_call_from_openai(cast("FrozenDict[Any]", freeze(fields, path)))


_Id = Annotated[str, BeforeValidator(lambda value: check_name(value, ""))]
_Moment = Annotated[datetime, BeforeValidator(_moment)]
_Count = Annotated[int, BeforeValidator(_count)]
_Calls = Annotated[tuple[ToolCall, ...], BeforeValidator(_calls)]
_Object = Annotated[Mapping[str, Any], frozen_object(1)]


class _Record(CheckedModel):
    """A struct of the document's: its JSON names, and null as absent, as Go reads it.

    `model_dump` and `model_dump_json` give the document's JSON: fields in its order,
    those marked ``omitempty`` left out where they are empty, times as RFC 3339 in UTC.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel, populate_by_name=True
    )
    omitted_if_empty: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        fields = cast("dict[str, Any]", values)
        return {name: value for name, value in fields.items() if value is not None}

    @model_serializer
    def _json(self) -> dict[str, Any]:
        return {
            to_camel(name): _plain(value)
            for name, value in self.__dict__.items()
            if value or name not in self.omitted_if_empty
        }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [call.to_openai() for call in cast("tuple[ToolCall, ...]", value)]
    return thaw(value)


class SessionMessage(_Record):
    """One message of a session. The document: ``SessionMessage``.

    Its JSON is the document's part of the message's line in a session's file.

    Raises:
        InvalidValueError: a field is not known, is missing or does not fit.
    """

    omitted_if_empty: ClassVar[frozenset[str]] = frozenset(
        ("name", "tool_calls", "tool_call_id", "metadata", "raf")
    )

    id: _Id
    role: MessageRole
    content: StrictText = ""
    """The text; of parts, the text of each, joined."""
    name: StrictText = ""
    """The tool's or the speaker's name."""
    tool_calls: _Calls = ()
    """JSON: ``{"id", "type", "function": {"name", "arguments"}}`` each."""
    tool_call_id: StrictText = ""
    metadata: _Object = EMPTY
    created_at: _Moment
    raf: _Object = EMPTY
    """Ours: what no field of the document's can say, as images and reasoning, named as
    in a session's file; mostly empty, and then not written."""

    @classmethod
    def from_entry(cls, entry: Entry) -> Self:
        """Return the message of a stored entry; its time is that of storing.

        Raises:
            InvalidValueError: it carries none, or is not stored.
        """
        if entry.message is None:
            raise InvalidValueError("message", "the entry carries none")
        if entry.stored_at is None:
            raise InvalidValueError("stored_at", "the entry is not stored")
        metadata = entry.message.metadata or entry.metadata
        return cls._of(entry.message, entry.id, entry.stored_at, metadata)

    @classmethod
    def from_chat(
        cls,
        message: ChatMessage,
        *,
        id: str | None = None,  # noqa: A002  (the field's name)
        created_at: datetime | None = None,
    ) -> Self:
        """Return a message in the document's shape.

        Args:
            message: what was said.
            id: its id; `None`: the message's own, else a new one.
            created_at: when; `None`: the message's own time, else now.

        Raises:
            InvalidValueError: the id is no name.
        """
        return cls._of(
            message,
            id or message.id or new_id(),
            created_at or message.created_at or utc_now(),
            message.metadata,
        )

    @classmethod
    def _of(
        cls,
        message: ChatMessage,
        id: str,  # noqa: A002
        created_at: datetime,
        metadata: Mapping[str, Any],
    ) -> Self:
        wire = message.wire()
        ours: dict[str, Any] = {}
        said: dict[str, Any] = {
            name: getattr(message, name) for name in _SAID if getattr(message, name)
        }
        told = {"role", *said}
        if "content" in wire and "content" not in message.extra:
            told.add("content")
            if not isinstance(message.content, str):
                ours["content"] = wire["content"]
        else:
            ours["bare"] = True
        others = {name: value for name, value in wire.items() if name not in told}
        if others:
            ours["message"] = others
        own: dict[str, Any] = {}
        if message.id is not None and message.id != id:
            own["id"] = message.id
        if message.created_at is not None and message.created_at != created_at:
            own["created_at"] = format_time(message.created_at)
        if message.source is not None:
            own["source"] = message.source.value
        if own:
            ours["event"] = {"own": own}
        return cls(
            id=id,
            role=message.role,
            content=_text_of(wire.get("content")),
            metadata=metadata,
            created_at=created_at,
            raf=ours,
            **said,
        )

    def to_chat(self) -> ChatMessage:
        """Return the message as models take it, with `id`, `created_at` and metadata.

        Raises:
            InvalidValueError: `raf` was written by another program and does not fit.
        """
        wire: dict[str, Any] = {"role": self.role.value}
        if "bare" not in self.raf:
            wire["content"] = self.raf.get("content", self.content)
        if self.name:
            wire["name"] = self.name
        if self.tool_calls:
            wire["tool_calls"] = [call.wire() for call in self.tool_calls]
        if self.tool_call_id:
            wire["tool_call_id"] = self.tool_call_id
        wire.update(_object(self.raf, "message"))
        own = _object(_object(self.raf, "event"), "own")
        said_at, source = own.get("created_at"), own.get("source")
        try:
            return ChatMessage.from_openai(
                wire,
                id=own.get("id", self.id),
                created_at=self.created_at
                if said_at is None
                else parse_time(said_at, "created_at"),
                metadata=self.metadata,
                source=None if source is None else MessageSource(source),
            )
        except ValueError as error:
            raise InvalidValueError("raf", str(error)) from error


_SAID: Final = ("name", "tool_calls", "tool_call_id")
"""Fields of a message that the document's struct has too, and omits where empty."""


def _text_of(content: object) -> str:
    """Return a text, or the texts of all parts joined, as in a session's file."""
    if isinstance(content, str):
        return content
    parts = cast("tuple[object, ...]", content) if isinstance(content, tuple) else ()
    texts: list[object] = [
        cast("Mapping[str, object]", part).get("text")
        for part in parts
        if isinstance(part, Mapping)
    ]
    return "".join([text for text in texts if isinstance(text, str)])


def _object(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = fields.get(name, EMPTY)
    if not isinstance(found, Mapping):
        raise InvalidValueError(join_path("raf", name), "expected an object")
    return cast("Mapping[str, Any]", found)


class SessionMeta(_Record):
    """What is known of a session. The document: ``SessionMeta``.

    Raises:
        InvalidValueError: a field is not known, is missing or does not fit.
    """

    omitted_if_empty: ClassVar[frozenset[str]] = frozenset(
        ("model", "compacted_summary")
    )

    key: StrictText
    """``agent:{agent}:channel:{channel}:scope:{scope}:{scope id}``."""
    agent_id: StrictText
    channel: StrictText
    scope: SessionScope
    scope_id: StrictText
    title: StrictText = ""
    model: StrictText = ""
    total_token_count: _Count = 0
    """Of the active window."""
    message_count: _Count = 0
    """Of the active window, a summary counting one."""
    state: SessionState = SessionState.ACTIVE
    compacted_summary: StrictText = ""
    """The text that stands for the older messages."""
    created_at: _Moment
    updated_at: _Moment

    @classmethod
    def of(cls, head: SessionHead, summary: str = "", *, idle: bool = False) -> Self:
        """Return the description of a session.

        Args:
            head: the session.
            summary: the text of its summary, if there is one.
            idle: whether it is without activity; shown where it is neither compacted
                nor archived.

        Raises:
            InvalidValueError: its key is not that of an agent's session.
        """
        parts = check_agent_key(head.key)
        state = SessionState(head.status.value)
        if idle and head.status is SessionStatus.ACTIVE:
            state = SessionState.IDLE
        return cls(
            key=format_agent_key(head.key),
            agent_id=parts.agent,
            channel=parts.channel,
            scope=parts.scope,
            scope_id=parts.scope_id,
            title=head.title,
            model=head.model,
            total_token_count=head.active.tokens,
            message_count=head.active.messages,
            state=state,
            compacted_summary=summary,
            created_at=head.created_at,
            updated_at=head.updated_at,
        )
