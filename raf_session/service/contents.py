"""What an event says, in whatever shape it comes, as a `ChatMessage`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from raf_session.errors import InvalidValueError
from raf_session.messages import ChatMessage, MessageRole

__all__ = ("USER_AUTHOR", "message_of")

USER_AUTHOR: Final = "user"
"""The author of what the user says."""

_GEMINI_ROLES: Final[Mapping[object, str]] = {
    "model": "assistant",
    "function": "user",
    "tool": "user",
    None: "user",
}


def message_of(content: object, author: str) -> ChatMessage | None:
    """Return the message that a content stands for; `None` stays `None`.

    Args:
        content: a `ChatMessage`; text; a list of parts; a dict in OpenAI's shape, or in
            Gemini's (``{"role": ..., "parts": [...]}``); a model with `model_dump` that
            gives such a dict, as google-genai's ``Content``.
        author: who says it; text without a role is the user's where it is ``user`` or
            empty, else the assistant's.

    Raises:
        InvalidValueError: it is none of these, or does not fit its shape.
    """
    if content is None or isinstance(content, ChatMessage):
        return content
    role = MessageRole.USER if author in {"", USER_AUTHOR} else MessageRole.ASSISTANT
    if isinstance(content, str):
        return ChatMessage(role=role, content=content)
    if isinstance(content, Mapping):
        return _of_object(cast("Mapping[str, Any]", content), role)
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
        parts = [_of_part(part) for part in cast("Any", content)]
        return _checked(ChatMessage.from_openai({"role": role.value, "content": parts}))
    dump = getattr(content, "model_dump", None)
    if dump is None:
        raise InvalidValueError("content", f"{type(content).__name__} says no message")
    return _of_object(dump(mode="json", exclude_none=True, by_alias=True), role)


def _of_object(fields: Mapping[str, Any], role: MessageRole) -> ChatMessage:
    if "parts" in fields:
        given = fields.get("role")
        parts = fields["parts"]
        if not isinstance(parts, Sequence) or isinstance(parts, str | bytes):
            raise InvalidValueError("content.parts", "a list is expected")
        return ChatMessage.from_openai(
            {
                "role": _GEMINI_ROLES.get(given, given),
                "content": [_of_part(part) for part in cast("Any", parts)],
            }
        )
    return _checked(ChatMessage.from_openai({"role": role.value, **fields}))


def _checked(message: ChatMessage) -> ChatMessage:
    if "content" in message.extra:
        raise InvalidValueError("content", "neither text nor a list of parts")
    return message


def _of_part(part: Any) -> Any:
    """Return a part of Gemini's; text gets the type that our text parts have."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, Mapping) and set(cast("Mapping[str, Any]", part)) == {"text"}:
        return {"type": "text", **cast("Mapping[str, Any]", part)}
    return cast("object", part)
