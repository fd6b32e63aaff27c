"""Long results made short, in whatever shape they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from raf_session.frozen import freeze
from raf_session.history.shortening import fit_text, fit_value, share_out, value_size
from raf_session.messages import ChatMessage
from raf_session.parts import ContentPart
from raf_session.toolcalls import CallShape, Mark, results_in
from raf_session.toolcalls.results import from_wire
from raf_session.toolcalls.shapes import part_container

__all__ = ("Truncation", "shorten_results")


class Truncation(NamedTuple):
    """How much of a message's results is shown, in characters."""

    size: int
    """Of all its results before."""
    shown: int
    """After, the marks of what is missing included."""


def shorten_results(
    message: ChatMessage, limit: int
) -> tuple[ChatMessage, Truncation | None]:
    """Return the message with each of its results in at most `limit` characters.

    The characters of a result are those of its text, of all its texts together, or of
    its JSON text; images and other data are not among them.  Texts are cut as
    `fit_text` has it; several share the room.  What fits stays as it is, and a message
    without anything too long is returned itself.

    Args:
        message: any.
        limit: at least 1; of JSON at least 2 characters stay, of each text 1.
    """
    sizes = [0, 0]
    content = message.content
    marks = results_in(message)
    if not marks or (isinstance(content, str) and len(content) <= limit):
        return message, None
    wire = message.wire()
    container, items = part_container(message)
    if marks[0].part is None:
        whole = _fit_payload(wire.get("content"), limit, sizes)
        short = {**wire, "content": whole}
    else:
        places = {mark.part: mark for mark in marks}
        short = {**wire}
        short[container] = tuple(
            _fit_part(_wire(item), places[place], limit, sizes)
            if place in places
            else _wire(item)
            for place, item in enumerate(items)
        )
    size, shown = sizes
    if size == shown:
        return message, None
    frozen = cast("Mapping[str, Any]", freeze(short))
    return from_wire(message, frozen), Truncation(size, shown)


_PAYLOADS: Final[Mapping[CallShape, str]] = {
    CallShape.ANTHROPIC: "content",
    CallShape.RESPONSES: "output",
    CallShape.BEDROCK: "content",
    CallShape.GEMINI: "response",
}


def _fit_part(
    part: Mapping[str, Any], mark: Mark, limit: int, sizes: list[int]
) -> Mapping[str, Any]:
    name = _PAYLOADS[mark.shape]
    flat = mark.shape in {CallShape.ANTHROPIC, CallShape.RESPONSES}
    fields = part if flat else cast("Mapping[str, Any]", part[mark.kind])
    if name not in fields:
        return part
    short = {**fields, name: _fit_payload(fields[name], limit, sizes)}
    return short if flat else {**part, mark.kind: short}


def _fit_payload(payload: Any, limit: int, sizes: list[int]) -> Any:
    """Return what a result holds, short, and add its characters to the sizes."""
    if isinstance(payload, str):
        return _fit_texts([payload], limit, sizes)[0]
    if isinstance(payload, list | tuple):
        blocks = [_wire(block) for block in cast("Sequence[Any]", payload)]
        texts = [(i, b["text"]) for i, b in enumerate(blocks) if _has_text(b)]
        fitted = _fit_texts([text for _, text in texts], limit, sizes)
        for (place, _), text in zip(texts, fitted, strict=True):
            blocks[place] = {**blocks[place], "text": text}
        return tuple(blocks)
    if payload is None:
        return payload
    size = value_size(payload)
    fitted = fit_value(payload, limit)
    sizes[0] += size
    sizes[1] += size if fitted is payload else value_size(fitted)
    return fitted


def _fit_texts(texts: Sequence[str], limit: int, sizes: list[int]) -> list[str]:
    lengths = [len(text) for text in texts]
    fitted = [*texts]
    if sum(lengths) > limit:
        shares = share_out(lengths, limit)
        fitted = [fit_text(t, max(1, s)) for t, s in zip(texts, shares, strict=True)]
    sizes[0] += sum(lengths)
    sizes[1] += sum(map(len, fitted))
    return fitted


def _has_text(block: Any) -> bool:
    if not isinstance(block, Mapping):
        return False
    return isinstance(cast("Mapping[str, Any]", block).get("text"), str)


def _wire(item: Any) -> Any:
    return item.wire() if isinstance(item, ContentPart) else item
