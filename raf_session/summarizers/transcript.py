"""Messages as a plain text that a model can summarise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from raf_session.calls import ToolCall
from raf_session.graphemes import cut_text, pieces, whole_characters
from raf_session.json_text import dump_json
from raf_session.messages import ChatMessage, MessageRole
from raf_session.parts import (
    AudioPart,
    ContentPart,
    FilePart,
    ImagePart,
    ReasoningPart,
    RefusalPart,
    TextPart,
)

__all__ = (
    "CHUNK_CHARS",
    "MAX_VALUE_CHARS",
    "render_chunks",
    "render_message",
    "render_messages",
)

MAX_VALUE_CHARS: Final = 4000
"""How much is shown of a result, of arguments, or of a value that is not text."""

CHUNK_CHARS: Final = 48_000
"""How much transcript goes into one request."""

_RESULTS: Final = frozenset((MessageRole.TOOL, MessageRole.FUNCTION))


def render_messages(
    messages: Sequence[ChatMessage], *, max_value_chars: int = MAX_VALUE_CHARS
) -> str:
    """Return the messages as one text, a block for each with a blank line between."""
    return "\n\n".join(
        render_message(message, max_value_chars=max_value_chars) for message in messages
    )


def render_chunks(
    messages: Sequence[ChatMessage],
    *,
    chunk_chars: int = CHUNK_CHARS,
    max_value_chars: int = MAX_VALUE_CHARS,
) -> Iterator[str]:
    """Yield the transcript in parts of so many characters at most, nothing left out.

    A message is divided only where it is longer than that itself.
    """
    chunk = ""
    for message in messages:
        block = render_message(message, max_value_chars=max_value_chars)
        for piece in pieces(block, chunk_chars):
            if chunk and len(chunk) + 2 + len(piece) > chunk_chars:
                yield chunk
                chunk = ""
            chunk = f"{chunk}\n\n{piece}" if chunk else piece
    if chunk:
        yield chunk


def render_message(
    message: ChatMessage, *, max_value_chars: int = MAX_VALUE_CHARS
) -> str:
    """Return one message as a block of lines.

    The first line begins with who speaks; every other line is indented, so no content
    can pass for another speaker's.  Text is whole.  Calls stand with name, arguments
    and id, results with the call that they answer.  Images, sound and files are
    placeholders with kind and name; their data is counted, never shown.  Fields of the
    message and parts that are not typed stand as JSON; what a typed part carries beside
    its payload is left out.  Lone surrogates become U+FFFD.

    Args:
        message: the message.
        max_value_chars: results, arguments and JSON values beyond this are cut, with
            the number of the characters that are missing.
    """
    lines = "\n".join(_blocks(message, max_value_chars)) or "(empty)"
    shown = "\n  ".join(whole_characters(lines).splitlines())
    return f"{_speaker(message)}: {shown}"


def _speaker(message: ChatMessage) -> str:
    words = [message.role.value]
    if message.name:
        words.append(f"({message.name})")
    if message.tool_call_id:
        words.append(f"[answers {message.tool_call_id}]")
    return " ".join(whole_characters(" ".join(words)).split())


def _blocks(message: ChatMessage, limit: int) -> Iterator[str]:
    result = message.role in _RESULTS
    content = message.content
    if isinstance(content, str):
        if content:
            yield cut_text(content, limit) if result else content
    else:
        for part in content or ():
            shown = _part(part, limit)
            yield cut_text(shown, limit) if result else shown
    if message.refusal is not None:
        yield f"[refusal] {message.refusal}"
    for call in message.tool_calls or ():
        yield _call(call, limit)
    for name, value in message.extra.items():
        text = value if isinstance(value, str) else dump_json(value)
        yield f"[{name}] {cut_text(text, limit)}"


def _part(part: ContentPart, limit: int) -> str:
    match part:
        case TextPart():
            return part.text
        case ReasoningPart():
            return f"[reasoning] {part.text}"
        case RefusalPart():
            return f"[refusal] {part.refusal}"
        case ImagePart():
            return f"[image {_where(part.image_url.get('url'))}]"
        case AudioPart():
            kind = part.input_audio.get("format")
            return f"[audio {_where(part.input_audio.get('data'), kind)}]"
        case FilePart():
            return f"[file {_file(part)}]"
        case _:
            return f"[{part.type or 'part'}] {cut_text(dump_json(part.wire()), limit)}"


def _file(part: FilePart) -> str:
    names = (part.file.get("filename"), part.file.get("file_id"))
    known = [name for name in names if isinstance(name, str)]
    data = part.file.get("file_data")
    if data is not None or not known:
        known.append(_where(data, ""))
    return " ".join(known)


def _where(source: Any, kind: Any = None) -> str:
    """Return an address, or the kind and size of data."""
    words = [kind] if isinstance(kind, str) else []
    if not isinstance(source, str):
        words.append("without data")
    elif source.startswith("data:"):
        head, _, data = source.partition(",")
        words += [head[5:].partition(";")[0], f"{len(data):,} characters"]
    elif kind is None and len(source) <= _LONGEST_ADDRESS:
        words.append(source)
    else:
        words.append(f"{len(source):,} characters")
    return " ".join(filter(None, words))


_LONGEST_ADDRESS: Final = 500


def _call(call: ToolCall, limit: int) -> str:
    if call.name is None:
        return f"[call] {cut_text(dump_json(call.wire()), limit)}"
    given = call.arguments
    arguments = given if isinstance(given, str) else dump_json(given)
    shown = f"[call {call.id}]" if call.id else "[call]"
    return f"{shown} {call.name}({cut_text(arguments, limit)})"
