"""`ChatMessage` and what it is made of: immutable, and lossless over real traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Self, cast

from pydantic import AfterValidator, BeforeValidator, SerializeAsAny, model_validator
from typing_extensions import override

from raf_session.calls import ToolCall, tool_call_from_openai, validate_call
from raf_session.clock import utc
from raf_session.errors import InvalidValueError
from raf_session.frozen import EMPTY, FrozenDict, freeze, freeze_json, frozen_dict, thaw
from raf_session.keys import check_name
from raf_session.parts import (
    ContentPart,
    FrozenModel,
    StrictText,
    build,
    frozen_object,
    part_from_openai,
    refuse_taken,
    validate_part,
)

__all__ = ("ChatMessage", "MessageRole", "MessageSource", "Usage")


class MessageRole(StrEnum):
    """Who speaks. RAF: ``MessageRole``, which lacks `DEVELOPER` and `FUNCTION`."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    FUNCTION = "function"
    """OpenAI's name for `TOOL` before there were tools."""


class MessageSource(StrEnum):
    """Where a message came from. RAF: ``MessageSource``; never sent."""

    EXTERNAL = "external"
    CHAT_HISTORY = "chatHistory"
    CONTEXT_PROVIDER = "contextProvider"
    TOOL_RESULT = "toolResult"


class Usage(FrozenModel):
    """The tokens of one model call, in both vocabularies. RAF: ``Usage``."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    prompt_cache_hit_tokens: int | None = None
    """Prompt tokens that the provider's cache held."""
    prompt_cache_miss_tokens: int | None = None
    """Prompt tokens that it did not hold; DeepSeek says it, OpenAI does not."""
    reasoning_tokens: int | None = None

    def cache_hit_ratio(self) -> float:
        """Return the share of the prompt that came from the cache, 0.0 to 1.0.

        Hits over hits and misses where misses are known (DeepSeek), else hits over
        `prompt_tokens` (OpenAI); 0.0 without data.
        """
        hit = self.prompt_cache_hit_tokens or 0
        miss = self.prompt_cache_miss_tokens
        total = self.prompt_tokens if miss is None else hit + miss
        return hit / total if total > 0 else 0.0


def _validate_content(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        raise ValueError("bytes are no text")  # noqa: TRY004  (pydantic wraps it)
    if isinstance(value, Sequence):
        return tuple(cast("Sequence[object]", value))
    return value


def _validate_id(value: str | None) -> str | None:
    return None if value is None else check_name(value, "id")


def _validate_time(value: datetime | None) -> datetime | None:
    return None if value is None else utc(value)


_Part = Annotated[SerializeAsAny[ContentPart], BeforeValidator(validate_part)]
_Parts = Annotated[Sequence[_Part], AfterValidator(tuple)]
_Call = Annotated[ToolCall, BeforeValidator(validate_call)]
_Own = Annotated[Mapping[str, Any], frozen_object(1)]


class ChatMessage(FrozenModel):
    """One message of a conversation. RAF: ``ChatMessage``.

    Immutable all the way down: lists are held as tuples, objects as frozen dicts, and
    nothing of the caller's is kept.  What the provider sees is exactly `to_openai`;
    `id`, `created_at`, `metadata` and `source` are ours and never sent.
    """

    __slots__ = ("_digest",)  # filled by the prefix hash; no copy or pickle takes it

    role: MessageRole
    """Who speaks."""

    content: StrictText | _Parts | None = None
    """Text, parts, or `None`: null where it was given, absent where it was not."""

    name: StrictText | None = None
    """The speaker's or the tool's name; `None`: absent."""

    tool_calls: Annotated[Sequence[_Call], AfterValidator(tuple)] | None = None
    """The calls that an assistant message asks for; `None`: absent."""

    tool_call_id: StrictText | None = None
    """The call that a tool message answers; `None`: absent."""

    refusal: StrictText | None = None
    """What the model said when it refused; `None`: absent."""

    extra: Annotated[Mapping[str, Any], frozen_object(1)] = EMPTY
    """Fields of the provider's that this class does not declare, in their order.

    A declared field whose value does not fit it, as ``"name": null``, stands here too.
    """

    id: Annotated[StrictText | None, AfterValidator(_validate_id)] = None
    """Ours: the identity of the message; stored once per session."""

    created_at: Annotated[datetime | None, AfterValidator(_validate_time)] = None
    """Ours: when it was said, aware, in UTC."""

    metadata: _Own = EMPTY
    """Ours: JSON values, stored and never sent."""

    source: MessageSource | None = None
    """Ours: where it came from."""

    @model_validator(mode="before")
    @classmethod
    def _prepare(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        fields = cast("dict[str, Any]", values)
        if "content" in fields:
            return {**fields, "content": _validate_content(fields["content"])}
        return fields

    @model_validator(mode="after")
    def _check_extra(self) -> Self:
        refuse_taken(self.extra, self._wire_names())
        return self

    # As sent --------------------------------------------------------------------

    @classmethod
    def from_openai(
        cls,
        message: Mapping[str, Any],
        *,
        id: str | None = None,  # noqa: A002  (the field's name)
        created_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        source: MessageSource | None = None,
    ) -> Self:
        """Return the message of a dict in the shape of OpenAI's chat API.

        Nothing is lost: `to_openai` gives back an equal JSON value, untyped objects in
        their key order.  The keyword arguments are ours, and are not looked for in
        the dict: an ``"id"`` there is the provider's.

        Raises:
            InvalidValueError: no role, or a value that JSON cannot hold, with its path.
        """
        if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValueError("", "a message is an object")
        fields = cast("FrozenDict[Any]", freeze(dict(message)))
        own: dict[str, Any] = {}
        if id is not None:
            own["id"] = check_name(id, "id")
        if created_at is not None:
            own["created_at"] = utc(created_at)
        if metadata:
            own["metadata"] = freeze(dict(metadata), "metadata")
        if source is not None:
            own["source"] = MessageSource(source)
        return cls.from_frozen(fields, own)

    @classmethod
    def from_stored(cls, fields: dict[str, Any], own: Mapping[str, Any]) -> Self:
        """Return the message of a JSON object that was written from one, unchecked."""
        if not own and len(fields) == 2:  # most messages, at a third of the cost
            role, content = _ROLES.get(fields["role"]), fields.get("content")
            if role is not None and type(content) is str:
                values = DEFAULTS.copy()
                values["role"] = role
                values["content"] = content
                message: Self = build(cls, values, {"role", "content"})
                return message
        for key, value in fields.items():
            if type(value) is not str and value is not None:
                fields[key] = freeze_json(value)
        return cls.from_frozen(fields, own)

    @classmethod
    def from_frozen(cls, fields: Mapping[str, Any], own: Mapping[str, Any]) -> Self:
        """Return the message of frozen wire fields and of own fields, unchecked.

        For readers of what was written from a message: `from_openai` checks and
        freezes first.

        Raises:
            InvalidValueError: there is no role that we know.
        """
        values = DEFAULTS.copy()
        rest: dict[str, Any] = {}
        for key, value in fields.items():
            if key == "content":
                _take_content(values, rest, value)
            elif key in TEXT_FIELDS and isinstance(value, str):
                values[key] = value
            elif key == "tool_calls" and _all_objects(value):
                values[key] = tuple(tool_call_from_openai(call) for call in value)
            elif key != "role":
                rest[key] = value
        role = _ROLES.get(fields.get("role"))  # type: ignore[arg-type]
        if role is None:
            raise InvalidValueError("role", f"{fields.get('role')!r} is no role")
        values["role"] = role
        given = set(fields)
        if rest:
            given = {key for key in fields if key not in rest and key in values}
            values["extra"] = frozen_dict(rest)
            given.add("extra")
        if own:
            values.update(own)
            given.update(own)
        return cast("Self", build(cls, values, given))

    def to_openai(self) -> dict[str, Any]:
        """Return the message as OpenAI's chat API takes it: plain, the caller's own."""
        return cast("dict[str, Any]", thaw(self.wire()))

    def wire(self) -> dict[str, Any]:
        """Return what `to_openai` returns, with frozen values inside."""
        fields = self.__dict__
        wire: dict[str, Any] = {"role": str(fields["role"])}
        content = fields["content"]
        if isinstance(content, tuple):
            parts = cast("tuple[ContentPart, ...]", content)
            wire["content"] = tuple(part.wire() for part in parts)
        elif content is not None or "content" in self.__pydantic_fields_set__:
            wire["content"] = content
        for name in ("name", "tool_calls", "tool_call_id", "refusal"):
            value = fields[name]
            if value is not None:
                wire[name] = value
        calls = fields["tool_calls"]
        if calls is not None:
            wire["tool_calls"] = tuple(call.wire() for call in calls)
        if fields["extra"]:
            wire.update(fields["extra"])
        return wire

    @property
    def text(self) -> str:
        """The text of the content: of its text parts joined, ``""`` where none is."""
        content = self.content
        if isinstance(content, str):
            return content
        return "".join(
            getattr(p, "text", "") for p in content or () if p.type == "text"
        )

    # Constructors of RAF ---------------------------------------------------------

    @classmethod
    def system(cls, content: str) -> Self:
        """Return a system message. RAF: ``ChatMessage::system``."""
        return cls(role=MessageRole.SYSTEM, content=content)

    @classmethod
    def user(cls, content: str | Sequence[ContentPart]) -> Self:
        """Return a user message. RAF: ``ChatMessage::user``."""
        return cls(role=MessageRole.USER, content=content)

    @classmethod
    def assistant(cls, content: str) -> Self:
        """Return an assistant message. RAF: ``ChatMessage::assistant``."""
        return cls(role=MessageRole.ASSISTANT, content=content)

    @classmethod
    def assistant_with_tools(
        cls, content: str | None, tool_calls: Sequence[ToolCall]
    ) -> Self:
        """Return one that asks for calls. RAF: ``assistant_with_tools``."""
        return cls(role=MessageRole.ASSISTANT, content=content, tool_calls=tool_calls)

    @classmethod
    def tool(cls, content: str, tool_call_id: str) -> Self:
        """Return the result of a call. RAF: ``ChatMessage::tool``."""
        return cls(role=MessageRole.TOOL, content=content, tool_call_id=tool_call_id)

    # Equality --------------------------------------------------------------------

    def _wire_names(self) -> list[str]:
        fields = self.__dict__
        names = [name for name in _WIRE_FIELDS if fields[name] is not None]
        if self._null_content():
            names.append("content")
        return names

    def _json(self) -> tuple[str, str]:
        # What Python's equality is blind to, `repr` is not.
        return repr(self.wire()), repr(self.metadata)

    def _null_content(self) -> bool:
        return self.content is None and "content" in self.__pydantic_fields_set__

    @override
    def __eq__(self, other: object) -> bool:
        """Compare every field as JSON has it, ours included.

        Null and absent content differ, 1, 1.0 and true differ, and so do the orders of
        keys in objects that are not typed.
        """
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        message = cast("Self", other)
        if self.__dict__ != message.__dict__:
            return False
        return self._json() == message._json()

    @override
    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))


_ROLES: Final[Mapping[str, MessageRole]] = {role.value: role for role in MessageRole}
TEXT_FIELDS: Final = frozenset(("name", "tool_call_id", "refusal"))
_WIRE_FIELDS: Final = (
    "role", "content", "name", "tool_calls", "tool_call_id", "refusal",
)  # fmt: skip
DEFAULTS: Final[dict[str, Any]] = {
    **dict.fromkeys(_WIRE_FIELDS),
    "extra": EMPTY,
    "id": None,
    "created_at": None,
    "metadata": EMPTY,
    "source": None,
}


def _all_objects(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(item, dict) for item in cast("tuple[object, ...]", value)
    )


def _take_content(values: dict[str, Any], rest: dict[str, Any], value: object) -> None:
    if value is None or isinstance(value, str):
        values["content"] = value
    elif _all_objects(value):
        parts = cast("tuple[FrozenDict[Any], ...]", value)
        values["content"] = tuple(part_from_openai(part) for part in parts)
    else:
        rest["content"] = value
