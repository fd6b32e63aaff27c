"""Text for a terminal: nothing in it moves the cursor or reorders what is shown."""

from __future__ import annotations

import re
import sys
from io import TextIOWrapper
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from raf_session.json_text import dump_json

__all__ = ("console", "cut", "one_line", "print_json", "safe", "shorten")

# Controls but tab and line feed, separators that some take for a line's end, marks
# that turn the direction of writing, and surrogates, which no encoding can carry.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BREAKS: Final = str.maketrans({"\n": "\\n", "\t": "\\t"})


def safe(text: str) -> str:
    r"""Return the text with control characters as ``\x1b``; lines stay lines."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str) -> str:
    r"""Return the text as `safe` does, on one line."""
    return safe(text).translate(_BREAKS)


def shorten(text: str, width: int) -> str:
    """Return the text in at most that many columns: its beginning, ``…``, its end."""
    if cell_len(text) <= width:
        return text
    head = width // 2
    tail = width - head - 1
    end = set_cell_size(text[::-1], tail).strip()[::-1] if tail > 0 else ""
    return f"{set_cell_size(text, head).strip()}…{end}"


def cut(text: str, length: int) -> str:
    """Return the text, or its beginning and how long it is."""
    if len(text) <= length:
        return text
    return f"{text[:length]}… ({len(text):,} characters)"


def console(*, stderr: bool = False) -> Console:
    """Return a console that shows text as it is: no markup, no emoji codes."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def print_json(value: object) -> None:
    """Write one JSON document to standard output, whatever its encoding."""
    text = dump_json(value)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = _ascii(text)
    sys.stdout.write(text + "\n")


def _ascii(text: str) -> str:
    """Return JSON text with everything beyond ASCII escaped, as pairs where needed."""
    units = (
        int.from_bytes(pair, "big")
        for pair in zip(*[iter(text.encode("utf-16-be"))] * 2, strict=True)
    )
    return "".join(chr(u) if u < 0x80 else f"\\u{u:04x}" for u in units)
