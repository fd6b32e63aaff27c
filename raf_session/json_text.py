"""JSON as text: one encoder for storage and export, and a reader for both."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

from pydantic_core import from_json, to_json

__all__ = ("dump_json", "dump_text", "load_json", "load_written")


def _writer(*, ascii_only: bool) -> Callable[[object], str]:
    """Return `JSONEncoder.encode`, its machine in C made once and not on every call."""
    encoder = json.JSONEncoder(
        ensure_ascii=ascii_only,
        allow_nan=False,
        check_circular=False,
        separators=(",", ":"),
    )
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    escape = "encode_basestring_ascii" if ascii_only else "encode_basestring"
    chunks = make(
        None,
        encoder.default,
        getattr(json.encoder, escape),
        None,
        encoder.key_separator,
        encoder.item_separator,
        encoder.sort_keys,
        encoder.skipkeys,
        encoder.allow_nan,
    )
    return lambda value: "".join(chunks(value, 0))


_readable: Final = _writer(ascii_only=False)
_escaped: Final = _writer(ascii_only=True)

_HUGE: Final = re.compile(r"[eE]\+?\d{3}|\d{300}")
"""What a number looks like that may be too large for a float."""


def dump_json(value: object) -> str:
    """Return compact JSON text of a frozen or plain JSON value, keys in their order.

    The text can be encoded as UTF-8: a value that holds a lone surrogate is escaped
    to ASCII as a whole, all others stay readable.

    Raises:
        ValueError: NaN or an infinity; `frozen.freeze` tells where.
    """
    text = _readable(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _escaped(value)
    return text


def dump_text(text: str) -> str:
    """Return `dump_json` of a string, long ASCII at a quarter of the cost."""
    return to_json(text).decode() if text.isascii() else dump_json(text)


def load_json(text: str | bytes) -> Any:
    """Return the plain value of JSON text, lone surrogates and large integers exact.

    Raises:
        ValueError: the text is no JSON, is nested too deeply to be read, or holds NaN,
            an infinity or a number that only an infinity could stand for.
    """
    digits = text if isinstance(text, str) else text.decode("utf-8", "surrogatepass")
    if _HUGE.search(digits):
        return _load_carefully(digits)
    return load_written(text)


def load_written(text: str | bytes) -> Any:
    """Do as `load_json` with text that `dump_json` wrote: no number is too large."""
    try:
        return from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError):  # a lone surrogate, which it refuses, or a fault
        return _load_carefully(text)


def _load_carefully(text: str | bytes) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply to be read") from error


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a JSON number: it is too large")
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
