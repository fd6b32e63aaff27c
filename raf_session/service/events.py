"""`Event` and `EventActions`: what happens in a session, as the caller holds it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self, cast
from uuid import uuid4

from pydantic import (
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from typing_extensions import override

from raf_session.messages import ChatMessage, Usage
from raf_session.parts import build
from raf_session.service.contents import message_of
from raf_session.toolcalls import Mark, calls_in, is_user_turn, results_in
from raf_session.usage_reports import read_usage

__all__ = ("Event", "EventActions", "EventModel")


class EventModel(BaseModel):
    """A model that its owner may change; it reads camelCase as well."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        defer_build=True,
        alias_generator=AliasGenerator(validation_alias=to_camel),
    )

    @override
    def __eq__(self, other: object) -> bool:
        """Compare the fields; what a service remembers of it is not compared."""
        if type(self) is not type(other):
            return NotImplemented
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


class EventActions(EventModel):
    """What an event does beside what it says. tRPC-Agent: ``EventActions``."""

    state_delta: dict[str, Any] = Field(default_factory=dict)
    """Keys of the state that it sets, with their prefixes; JSON values."""

    state_deleted: set[str] = Field(default_factory=set)
    """Keys of the state that it deletes, with their prefixes."""

    artifact_delta: dict[str, int] = Field(default_factory=dict)
    """Versions of artifacts by name; kept as they are."""

    skip_summarization: bool | None = None
    """Whether a result of a tool is shown to the user as it is."""

    transfer_to_agent: str | None = None
    """The agent that goes on."""

    escalate: bool | None = None
    """Whether the agent gives back to the one above."""

    @classmethod
    def restored(cls, fields: dict[str, Any]) -> Self:
        """Return actions of fields that are known to be valid, their owner's own."""
        deleted: set[str] = set()  # `set[str]()` costs as much as all else here
        values: dict[str, Any] = {
            "state_delta": {},
            "state_deleted": deleted,
            "artifact_delta": {},
            "skip_summarization": None,
            "transfer_to_agent": None,
            "escalate": None,
        }
        if fields:
            values.update(fields)
        made: Self = build(cls, values, set(fields))
        return made


def _read_usage(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        complete = "total_tokens" in fields or "prompt_tokens" not in fields
        if not complete or not fields.keys() <= set(Usage.model_fields):
            return read_usage(fields)
    return cast("object", value)


def _read_actions(value: Any) -> Any:
    return {} if value is None else value


class Event(EventModel):
    """One thing that happened in a session. tRPC-Agent: ``Event``.

    A plain object of its owner's: a service copies it when it is appended, and gives
    copies of what it has stored.
    """

    id: str = Field(default_factory=lambda: str(uuid4()))
    """1 to 512 bytes; an event of an id that is stored already is not stored again."""

    invocation_id: str = ""
    """The run that it belongs to."""

    author: str = ""
    """Who made it: ``user``, or the name of an agent."""

    content: ChatMessage | None = None
    """What was said; text, dicts and google-genai's contents are read too."""

    actions: Annotated[EventActions, BeforeValidator(_read_actions)] = Field(
        default_factory=EventActions
    )
    """What it does to the state."""

    timestamp: float = Field(default_factory=time.time, allow_inf_nan=False)
    """When it happened, in seconds since the epoch; data, the order is another."""

    branch: str | None = None
    """The path of the agent within the run."""

    partial: bool | None = None
    """Whether it is a piece of a stream; pieces are never stored."""

    usage_metadata: Annotated[Usage | None, BeforeValidator(_read_usage)] = None
    """The tokens of the model call; usage objects of any provider are read."""

    custom_metadata: dict[str, Any] | None = None
    """JSON values of the caller's."""

    long_running_tool_ids: set[str] | None = None
    """The calls whose results come later than the next message."""

    turn_complete: bool | None = None
    """Whether the model has finished its turn."""

    interrupted: bool | None = None
    """Whether the user broke into it."""

    error_code: str | None = None
    """The code of an error that ended it."""

    error_message: str | None = None
    """What the error says."""

    grounding_metadata: dict[str, Any] | None = None
    """What the answer rests on, as the provider tells it."""

    request_id: str | None = None
    """The request that it answers."""

    response_id: str | None = None
    """The provider's name of the answer."""

    parent_invocation_id: str | None = None
    """The run that started this one."""

    tag: str | None = None
    """A mark of the caller's."""

    filter_key: str | None = None
    """A mark of the caller's, to select by."""

    visible: bool = True
    """Whether it is shown to the user."""

    if TYPE_CHECKING:  # what the validators read is more than what the fields hold

        def __init__(
            self,
            *,
            id: str = ...,  # noqa: A002
            invocation_id: str = "",
            author: str = "",
            content: object = None,
            actions: EventActions | Mapping[str, Any] | None = ...,
            timestamp: float = ...,
            branch: str | None = None,
            partial: bool | None = None,
            usage_metadata: Usage | Mapping[str, Any] | None = None,
            custom_metadata: Mapping[str, Any] | None = None,
            long_running_tool_ids: Collection[str] | None = None,
            turn_complete: bool | None = None,
            interrupted: bool | None = None,
            error_code: str | None = None,
            error_message: str | None = None,
            grounding_metadata: Mapping[str, Any] | None = None,
            request_id: str | None = None,
            response_id: str | None = None,
            parent_invocation_id: str | None = None,
            tag: str | None = None,
            filter_key: str | None = None,
            visible: bool = True,
        ) -> None: ...

    _stored_us: int | None = PrivateAttr(default=None)
    _seq: int = PrivateAttr(default=0)
    _summary: bool = PrivateAttr(default=False)

    @model_validator(mode="before")
    @classmethod
    def _read_content(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and "content" in values:
            fields = cast("Mapping[str, Any]", values)
            author = fields.get("author")
            content = message_of(
                fields["content"], author if isinstance(author, str) else ""
            )
            return {**fields, "content": content}
        return cast("object", values)

    @field_serializer("content")
    def _write_content(self, content: ChatMessage | None) -> dict[str, Any] | None:
        """Dump it in OpenAI's shape, which is read again."""
        return None if content is None else content.to_openai()

    @property
    def is_summary(self) -> bool:
        """Whether it stands for events that were summarised."""
        private = self.__pydantic_private__  # pydantic's own way to it is slow
        return bool(private and private["_summary"])

    @property
    def seq(self) -> int:
        """Its place in the session's log, from 1; 0 before it is stored."""
        return self._seq

    @property
    def age_us(self) -> int:
        """When its age begins, in microseconds: when it happened or was stored.

        The earlier of both, so that no time of the caller's makes it live longer.
        """
        private = self.__pydantic_private__
        stored = private["_stored_us"] if private else None
        happened = round(self.timestamp * 1_000_000)
        return happened if stored is None else min(happened, stored)

    @property
    def text(self) -> str:
        """The text of what was said; ``""`` where there is none."""
        return "" if self.content is None else self.content.text

    def get_function_calls(self) -> list[Mark]:
        """Return the calls of tools that it asks for, in their order."""
        return [] if self.content is None else list(calls_in(self.content))

    def get_function_responses(self) -> list[Mark]:
        """Return the results of tools that it carries, in their order."""
        return [] if self.content is None else list(results_in(self.content))

    @property
    def is_user_turn(self) -> bool:
        """Whether the user speaks in it; results carried for a tool are no speech."""
        return self.content is not None and is_user_turn(self.content)

    def is_final_response(self) -> bool:
        """Tell whether the agent has finished answering with it.

        It is no piece of a stream and neither asks for calls nor carries results,
        unless these are shown as they are, or come later.
        """
        if self.actions.skip_summarization or self.long_running_tool_ids:
            return True
        return not (
            self.partial or self.get_function_calls() or self.get_function_responses()
        )

    @classmethod
    def restored(
        cls,
        fields: dict[str, Any],
        *,
        stored_us: int | None,
        seq: int,
        summary: bool = False,
    ) -> Self:
        """Return an event of fields that are known to be valid, its owner's own.

        Args:
            fields: those that differ from their defaults, and those that have none.
            stored_us: when it was stored, in microseconds since the epoch.
            seq: its place in the log.
            summary: whether it stands for events that were summarised.
        """
        private = {"_stored_us": stored_us, "_seq": seq, "_summary": summary}
        made: Self = build(cls, _EVENT_DEFAULTS | fields, set(fields), private)
        return made


_EVENT_DEFAULTS: Final = {
    name: None if field.is_required() else field.default
    for name, field in Event.model_fields.items()
}
