"""What of a run's messages is stored: what says something, whole, under fixed ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from raf_session.errors import InvalidValueError
from raf_session.messages import ChatMessage, MessageRole
from raf_session.toolcalls import is_preamble
from raf_session.toolcalls.reasoning import holds_thoughts, is_silent
from raf_session.toolcalls.results import from_wire, wire_parts
from raf_session.toolcalls.shapes import part_container
from raf_session.toolcalls.tidying import says_nothing, text_of

__all__ = (
    "RunInput",
    "numbered",
    "other_prefix",
    "read_input",
    "spoken",
    "unlike",
    "without_open_thoughts",
)

_DIGEST_BYTES: Final = 8


class RunInput(NamedTuple):
    """The messages that a run is given, by what becomes of them."""

    instructions: tuple[ChatMessage, ...]
    """Of the system and the developer: sent in front of each request, never stored."""
    said: tuple[ChatMessage, ...]
    """What is stored, each with its id."""


def read_input(messages: Sequence[ChatMessage], run_id: str) -> RunInput:
    """Return what a run is given, ready to be stored.

    Raises:
        InvalidValueError: a message says nothing, with its path.
    """
    instructions = tuple(message for message in messages if is_preamble(message))
    said: list[ChatMessage] = []
    for index, message in enumerate(messages):
        if is_preamble(message):
            continue
        something = _without_empty_texts(message)
        if something is None:
            raise InvalidValueError(
                f"messages[{index}]", "says nothing, which providers refuse"
            )
        said.append(something)
    return RunInput(instructions, numbered(said, f"{run_id}:in"))


def spoken(messages: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the messages that say something; empty texts beside other parts leave.

    Providers refuse an empty message wherever it stands, so one that a model gave once
    would make every later request invalid.
    """
    found = map(_without_empty_texts, messages)
    return tuple(message for message in found if message is not None)


def _without_empty_texts(message: ChatMessage) -> ChatMessage | None:
    """Return the message, or `None` where nothing is left of it."""
    if message.role is MessageRole.TOOL:
        return message
    parts = wire_parts(message)
    alone = not any(map(_prints, parts))
    kept = tuple(part for part in parts if not _is_blank(part, alone=alone))
    if len(kept) < len(parts):
        container, _ = part_container(message)
        message = from_wire(message, {**message.wire(), container: kept or None})
    if message.role is MessageRole.ASSISTANT:
        says = holds_thoughts(message) or not is_silent(message)
    else:
        says = not says_nothing(message)
    return message if says else None


def _is_blank(part: object, *, alone: bool) -> bool:
    """Tell whether a part is a text without a character, or without a printed one.

    Args:
        part: as it is sent.
        alone: no text beside it says something, so that it parts nothing.
    """
    text = text_of(part)
    return text is not None and not (text.strip() if alone else text)


def _prints(part: object) -> bool:
    text = text_of(part)
    return text is not None and bool(text.strip())


def without_open_thoughts(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the messages without thoughts at the end, which led to nothing yet.

    Providers refuse a turn of the assistant's that is nothing else.
    """
    end = len(messages)
    while end and is_silent(messages[end - 1]):
        end -= 1
    return tuple(messages[:end])


def unlike(
    messages: Sequence[ChatMessage], stored: Iterable[ChatMessage]
) -> list[ChatMessage]:
    """Return the messages that do not stand among the stored just as they are."""
    known = {message.id: message for message in stored}
    return [message for message in messages if known.get(message.id) != message]


# Ids -----------------------------------------------------------------------------


def numbered(
    messages: Iterable[ChatMessage], prefix: str, first: int = 0
) -> tuple[ChatMessage, ...]:
    """Return the messages with ids of their own, or else ``{prefix}:{number}``."""
    return tuple(
        message
        if message.id is not None
        else message.model_copy(update={"id": f"{prefix}:{number}"})
        for number, message in enumerate(messages, first)
    )


def other_prefix(messages: Sequence[ChatMessage], prefix: str) -> str:
    """Return a prefix of ids that depends on what the messages say.

    For the output of another attempt of a run: the same again has the same ids.
    """
    wire = json.dumps([message.to_openai() for message in messages])
    digest = blake2b(wire.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{prefix}:{digest}"
