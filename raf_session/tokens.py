"""Tokens of messages: an estimate that needs nothing, and a tokenizer's count."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol, cast

from typing_extensions import override

from raf_session.calls import ToolCall
from raf_session.messages import ChatMessage
from raf_session.parts import ContentPart

__all__ = (
    "Calibration",
    "EstimatingTokenCounter",
    "TiktokenCounter",
    "TokenCounter",
    "count_tokens",
)


class TokenCounter(Protocol):
    """Says how many tokens a message is in a prompt."""

    def count(self, message: ChatMessage, /) -> int:
        """Return the tokens of a message, at least 1; the same for equal messages."""
        ...


def count_tokens(messages: Iterable[ChatMessage], counter: TokenCounter) -> int:
    """Return the tokens of all these messages together."""
    return sum(map(counter.count, messages))


# What a message is made of --------------------------------------------------------

MESSAGE_TOKENS: Final = 4
"""The role, and what stands between messages (OpenAI's cookbook, "How to count tokens
with tiktoken": 3 for each message, and the role)."""
CALL_TOKENS: Final = 8
"""What stands around the name and the arguments of a call, its id included."""
RESULT_TOKENS: Final = 3
"""The id of the call that a result answers."""
IMAGE_TOKENS: Final = 765
"""An image of 1024 by 1024 pixels in high detail (OpenAI's guide "Images and vision":
85 and 170 for each of 4 tiles); sizes are not looked at."""
SMALL_IMAGE_TOKENS: Final = 85
"""An image in low detail (as above)."""
AUDIO_BYTES: Final = 4800
"""Of one token: 100 ms of 16-bit sound at 24 kHz (OpenAI, "Realtime API")."""
PAGE_TOKENS: Final = 1500
"""A page of a document (Anthropic, "PDF support": 1,500 to 3,000); the least of a file
whose contents are not at hand."""
PAGE_BYTES: Final = 50_000
"""What such a page is taken to have in a file."""

_IDS: Final = frozenset(
    ("id", "call_id", "tool_call_id", "tool_use_id", "toolUseId", "type", "index")
)
"""Fields that frame an item, and are in the tokens of its frame."""
_UNREAD: Final = frozenset(
    (
        *("cache_control", "cachePoint", "prompt_cache_breakpoint"),
        *("signature", "thoughtSignature", "thought_signature", "encrypted_content"),
    )
)
"""Fields that the model reads nothing of: marks of the cache, proofs of reasoning."""
_CALLS: Final = frozenset(
    ("tool_use", "toolUse", "functionCall", "function_call", "server_tool_use")
)
_MEDIA_TYPES: Final = ("mimeType", "mime_type", "media_type", "format")
_MEDIA_DATA: Final = ("data", "bytes", "file_data", "fileUri", "file_uri", "url")


class _MessageReader(ABC):
    """Adds up the tokens of what a message is made of."""

    @abstractmethod
    def text_tokens(self, text: str) -> int:
        """Return the tokens of a text."""

    def count(self, message: ChatMessage, /) -> int:
        """Return how many tokens the message is, at least 1."""
        content = message.content
        total = MESSAGE_TOKENS
        if isinstance(content, str):
            total += self.text_tokens(content)
        elif content:
            total += sum(map(self._part, content))
        if message.name is not None:
            total += 1 + self.text_tokens(message.name)
        if message.tool_calls:
            total += sum(map(self._call, message.tool_calls))
        if message.tool_call_id is not None:
            total += RESULT_TOKENS
        if message.refusal:
            total += self.text_tokens(message.refusal)
        if message.extra:
            total += self._value(message.extra)
        return total

    def _call(self, call: ToolCall) -> int:
        total = CALL_TOKENS + self.text_tokens(call.name or "")
        return total + sum(
            self._value(value)
            for value in (call.arguments, call.function_extra, call.extra)
            if value
        )

    def _part(self, part: ContentPart) -> int:
        fields = part.wire()
        if part.type == "text" and len(fields) == 2:
            return self.text_tokens(cast("str", fields["text"]))
        return self._fields(fields)

    def _fields(self, fields: Mapping[str, Any]) -> int:
        kind = fields.get("type")
        if kind in {"image_url", "image", "input_image"} or "image" in fields:
            return _image_tokens(fields)
        if kind in {"file", "document", "input_file"} or "document" in fields:
            return max(PAGE_TOKENS, _data_size(fields) * PAGE_TOKENS // PAGE_BYTES)
        if kind == "input_audio":
            return 1 + _data_size(fields) // AUDIO_BYTES
        medium = next((fields[n] for n in _MEDIA_TYPES if n in fields), None)
        if isinstance(medium, str) and any(name in fields for name in _MEDIA_DATA):
            return _medium_tokens(medium, fields)
        frame = CALL_TOKENS if kind in _CALLS else 0
        for name, value in fields.items():
            if name in _UNREAD or name in _IDS:
                continue
            frame += CALL_TOKENS if name in _CALLS else 1 + self.text_tokens(name)
            frame += self._value(value)
        return frame

    def _value(self, value: Any) -> int:
        if isinstance(value, str):
            return self.text_tokens(value)
        if isinstance(value, Mapping):
            return self._fields(cast("Mapping[str, Any]", value))
        if isinstance(value, list | tuple):
            return sum(1 + self._value(item) for item in cast("Iterable[Any]", value))
        return self.text_tokens(str(value))


def _image_tokens(fields: Mapping[str, Any]) -> int:
    image = fields.get("image_url")
    details = [fields.get("detail")]
    if isinstance(image, Mapping):
        details.append(cast("Mapping[str, Any]", image).get("detail"))
    return SMALL_IMAGE_TOKENS if "low" in details else IMAGE_TOKENS


def _medium_tokens(medium: str, fields: Mapping[str, Any]) -> int:
    if medium.startswith("image/"):
        return IMAGE_TOKENS
    if medium.startswith("audio/"):
        return 1 + _data_size(fields) // AUDIO_BYTES
    return max(PAGE_TOKENS, _data_size(fields) * PAGE_TOKENS // PAGE_BYTES)


def _data_size(value: Any) -> int:
    """Return the bytes of the base64 data in there: of its longest text."""
    if isinstance(value, str):
        return len(value) * 3 // 4
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return max(map(_data_size, fields.values()), default=0)
    return 0


# Estimate -------------------------------------------------------------------------

_PIECE: Final = re.compile(
    r"[A-Z]?[a-zß-öø-ÿ]{1,10}"
    r"|[A-Z]{1,4}"
    r"|[0-9]{1,3}"
    r"|[!-/:-@\[-`{-~]{1,4}"
    r"|[\n\r]\s*"
    r"|[ \t]{2,}"
)
"""What is one token, nearly: words and pieces of long ones, three digits, what stands
between words, lines with their indentation; one blank belongs to the next word."""

_SCRIPTS: Final[tuple[tuple[re.Pattern[str], int], ...]] = (
    (re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+"), 7),
    (re.compile(r"[\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff]+"), 6),
    (re.compile(r"[\u0400-\u052f]+"), 3),
    (re.compile(r"[\u0600-\u07ff\ufb50-\ufdff\ufe70-\ufeff]+"), 4),
    (re.compile(r"[\u0370-\u03ff\u0590-\u05ff\u0900-\u0dff\u0e00-\u0eff]+"), 6),
    (re.compile(r"[\u00c0-\u024f]+"), 4),
    (re.compile(r"[\U00010000-\U0010ffff]+"), 16),
)
"""Scripts, and the eighths of a token that one of their characters is: Chinese and
Japanese; Korean; Cyrillic; Arabic; Greek, Hebrew, Indic, Thai and Lao; Latin letters
with marks; emoji and what else is beyond the basic plane.  Each is the mean of what
o200k_base and cl100k_base make of prose, rounded."""

_OTHER: Final = re.compile(r"[^\x00-\x7f\s]")
_OTHER_EIGHTHS: Final = 8


class EstimatingTokenCounter(_MessageReader):
    """Estimates; needs no tokenizer.

    English, source code and JSON come within about a tenth of what OpenAI's tokenizers
    count, other scripts between o200k_base and the older cl100k_base, which differ by
    a factor of up to three there.  Images, sound and files cost what the constants of
    this module say, calls their name and arguments and 8 for the rest, unknown parts
    the tokens of their fields; ids cost the same however long they are.  A
    `Calibration` takes up what is left of the difference.
    """

    @override
    def text_tokens(self, text: str) -> int:
        """Return about how many tokens the text is."""
        pieces = len(_PIECE.findall(text))
        return pieces if text.isascii() else pieces + _beyond_ascii(text)


def _beyond_ascii(text: str) -> int:
    left = len(_OTHER.findall(text))
    eighths = 0
    for script, weight in _SCRIPTS:
        runs = script.findall(text)
        if runs:
            size = sum(map(len, runs))
            eighths += size * weight
            left -= size
    return (eighths + left * _OTHER_EIGHTHS + 7) // 8


# An exact tokenizer ---------------------------------------------------------------


class TiktokenCounter(_MessageReader):
    """Counts texts with a tokenizer of tiktoken (extra ``tokens``).

    What is no text costs as with `EstimatingTokenCounter`.

    Args:
        encoding: the name of an encoding, whose file tiktoken may have to download, or
            a `tiktoken.Encoding`.

    Raises:
        ModuleNotFoundError: tiktoken is not installed, and a name was given.
        ValueError: there is no encoding of that name.
    """

    def __init__(self, encoding: Any = "o200k_base") -> None:
        if isinstance(encoding, str):
            encoding = import_module("tiktoken").get_encoding(encoding)
        self._encoding = encoding

    @override
    def text_tokens(self, text: str) -> int:
        """Return how many tokens the text is; names of special tokens are text."""
        return len(self._encoding.encode_ordinary(text))


# What the provider counts ---------------------------------------------------------

_LEAST_COUNTED: Final = 500
_MOST_EIGHTHS: Final = 64


class Calibration(NamedTuple):
    """How many tokens a provider counts for one of ours, in eighths.

    It moves in whole eighths and not for less than three quarters of one, so that
    windows do not move because of it.
    """

    eighths: int = 8
    """1 to 64."""

    @property
    def scale(self) -> float:
        """The provider's tokens for one of ours."""
        return self.eighths / 8

    def observed(self, counted: int, reported: int) -> Calibration:
        """Return the calibration after a request.

        Args:
            counted: its tokens by our counter; fewer than 500 say nothing.
            reported: its tokens by the provider's usage; 0 says nothing.
        """
        if counted < _LEAST_COUNTED or reported <= 0:
            return self
        exact = reported * 8 / counted
        if abs(exact - self.eighths) < 0.75:
            return self
        return Calibration(min(max(round(exact), 1), _MOST_EIGHTHS))

    def scaled(self, counted: int) -> int:
        """Return about how many the provider counts where we count so many."""
        return -(-counted * self.eighths // 8)

    def within(self, limit: int) -> int:
        """Return how many of ours are within a limit of the provider's."""
        return limit * 8 // self.eighths

    def narrowed(self, limit: int) -> int:
        """Return how many of ours are within a limit of both counts."""
        return min(limit, self.within(limit))
