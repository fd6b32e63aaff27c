"""What ``raf-session diff`` shows to people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from raf_session.cli.causes import ADVICE
from raf_session.cli.diff import BYTES_PER_TOKEN, Comparison, TokenSource
from raf_session.cli.report import LINES, print_table
from raf_session.cli.ribbon import Part, PartState
from raf_session.cli.terminal import one_line, shorten
from raf_session.verdicts import Outcome, Verdict

__all__ = ("print_diff",)


_MARKS: Final = {
    PartState.SHARED: ("=", "green", "as in A"),
    PartState.CHANGED: ("x", "red", "changed"),
    PartState.BEHIND: ("~", "yellow", "as in A, but behind the break"),
    PartState.NEW: ("+", "cyan", "new"),
    PartState.GONE: ("-", "red", "in A only"),
}
"""The character, the colour and the words of each state."""

_COLOURS: Final = {Outcome.HIT: "green", Outcome.MISS: "red", Outcome.PARTIAL: "yellow"}

LONGEST_NAME: Final = 26
LONGEST_BAR: Final = 24
SHORTEST_BAR: Final = 6
MOST_PARTS: Final = 24
"""How many lines the ribbon may have."""

LEAST_WIDTH: Final = 40
MOST_WIDTH: Final = 100
"""Between these, text is as wide as the terminal."""

INDENT: Final = "  "


def print_diff(found: Comparison, console: Console) -> None:
    """Print how the later request, B, goes on from the former one, A."""
    width = max(LEAST_WIDTH, min(console.width, MOST_WIDTH))
    for line in (
        *_head(found, width),
        Text(),
        *_ribbon(found.parts, width),
        Text(),
        *_break(found, width),
        *_cache_key(found, width),
        *_tokens(found, width),
        Text(),
    ):
        console.print(line, soft_wrap=True)
    _print_verdicts(found.verdicts, console)
    for line in _explanations(found.verdicts, width):
        console.print(line, soft_wrap=True)


# Which requests, and how much ----------------------------------------------------


def _head(found: Comparison, width: int) -> Iterator[Text]:
    match = found.match
    counts = (match.previous_messages or 0, match.messages)
    for letter, body, count in zip("AB", found.pair, counts, strict=True):
        noun = "message" if count == 1 else "messages"
        tail = f"  {found.shape}, {count:,} {noun}"
        name = shorten(one_line(str(body)), max(12, width - 3 - len(tail)))
        yield Text(f"{letter}  {name}{tail}")
    yield Text()
    shared, whole = (
        sum(part.bytes for part in found.parts if part.state in states)
        for states in ({PartState.SHARED}, set(PartState) - {PartState.GONE})
    )
    percent = int(shared * 1000 / whole) / 10 if whole else 0.0
    share = f"{shared:,} of its {whole:,} bytes ({percent:.1f} %)"
    if match.append_only:
        yield Text(f"B goes on from A: {share} were in A.", style="bold green")
        return
    cause = f"B breaks off from A: {match.cause} at "
    room = max(12, width - len(cause))
    place = shorten(one_line(str(match.first_difference)), room)
    yield Text(cause + place, style="bold red")
    yield Text(f"{share} stand before the break.")


def _ribbon(parts: Sequence[Part], width: int) -> Iterator[Text]:
    """Yield a line for each part: name, bar, bytes, what became of it."""
    shown = parts[:MOST_PARTS]
    names = [shorten(one_line(part.name), LONGEST_NAME) for part in shown]
    sizes = [f"{part.bytes:,}" for part in shown]
    broad = max(map(cell_len, names), default=0)
    digits = max(map(len, sizes), default=0)
    words = max((len(_MARKS[part.state][2]) for part in shown), default=0)
    room = width - broad - digits - words - len("      bytes  ")
    longest = max(SHORTEST_BAR, min(room, LONGEST_BAR))
    most = max((part.bytes for part in shown), default=0) or 1
    for part, name, size in zip(shown, names, sizes, strict=True):
        mark, colour, word = _MARKS[part.state]
        bar = mark * max(1, round(longest * part.bytes / most))
        yield Text.assemble(
            f"{name}{' ' * (broad - cell_len(name))}  ",
            (bar, colour),
            f"{' ' * (longest - len(bar))}  {size:>{digits}} bytes  {word}",
        )
    if len(parts) > len(shown):
        rest = sum(part.bytes for part in parts[MOST_PARTS:])
        yield Text(f"… and {len(parts) - len(shown):,} more parts, {rest:,} bytes")


# Where and why -------------------------------------------------------------------


def _break(found: Comparison, width: int) -> Iterator[Text]:
    difference = found.match.first_difference
    if difference is None:
        return
    yield Text(one_line(difference.path), style="bold")
    for mark, colour, value in (
        ("-", "red", difference.before),
        ("+", "green", difference.after),
    ):
        text = "(nothing)" if value is None else one_line(value)
        yield Text(f"{mark} {_cut(text, width - 2)}", style=colour)
    advice = ADVICE[found.match.cause]
    yield from _wrapped(f"{found.match.cause}: {advice.meaning}", width)
    if advice.remedy:
        yield from _wrapped(f"Usual remedy: {advice.remedy}", width)
    if difference.only_form:
        yield from _wrapped(
            "A and B differ in forms alone that some providers render alike: a text as "
            "a string or as the only part, null or nothing.",
            width,
        )
    yield Text()


def _cache_key(found: Comparison, width: int) -> Iterator[Text]:
    caching = found.match.caching
    if caching is None:
        return
    for name, values in caching.keys.items():
        if values[0] == values[1]:
            continue
        yield Text(name, style="bold")
        for mark, colour, key in zip("-+", ("red", "green"), values, strict=True):
            text = "(none)" if key is None else one_line(key)
            yield Text(f"{mark} {_cut(text, width - 2)}", style=colour)
        yield Text()


def _cut(text: str, width: int) -> str:
    """Return the text in at most that many columns: its beginning."""
    if cell_len(text) <= width:
        return text
    return f"{set_cell_size(text, width - 1).rstrip()}…"


# Verdicts ------------------------------------------------------------------------

_SOURCES: Final = {
    TokenSource.GIVEN: "as given",
    TokenSource.REPORTED: "as the provider reported",
    TokenSource.ESTIMATED: f"estimated at {BYTES_PER_TOKEN} bytes a token (--tokens N "
    "sets them)",
}


def _tokens(found: Comparison, width: int) -> Iterator[Text]:
    text = f"B has {found.tokens:,} prompt tokens, {_SOURCES[found.tokens_from]}."
    usage = found.usage
    if usage is not None and usage.prompt_cache_hit_tokens is not None:
        text += f" The provider reported {usage.prompt_cache_hit_tokens:,} from cache"
        alone = len(found.verdicts) == 1
        text += "." if alone else "; --for NAME holds that against its rules."
    yield from _wrapped(text, width)


def _print_verdicts(verdicts: Sequence[Verdict], console: Console) -> None:
    table = Table(box=LINES, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    rows = [(*_cells(one), one.outcome) for one in verdicts]
    headers = ("provider", "outcome", "reused", "reason")
    columns = zip(headers, *(cells[:-1] for cells in rows), strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    for header, width in zip(headers, widths, strict=True):
        table.add_column(
            header,
            width=width,
            no_wrap=True,
            justify="right" if header == "reused" else "left",
        )
    for *cells, outcome in rows:
        name, said, *rest = map(Text, cells)
        said.stylize(_COLOURS.get(outcome, ""))
        table.add_row(name, said, *rest)
    print_table(table, console, width=sum(widths) + 2 * len(widths))


def _cells(found: Verdict) -> tuple[str, str, str, str]:
    known = found.reusable_tokens
    reused = "?" if known is None else f"{known:,}"
    return found.provider, found.outcome.value, reused, found.reason.value


def _explanations(verdicts: Sequence[Verdict], width: int) -> Iterator[Text]:
    """Yield why, once for all providers of which the same is said."""
    said: dict[str, list[str]] = {}
    for one in verdicts:
        said.setdefault(one_line(one.explanation), []).append(one.provider)
    for text, names in said.items():
        yield Text()
        yield from _wrapped(f"{', '.join(names)}: {text}", width)


def _wrapped(text: str, width: int) -> Iterator[Text]:
    lines = textwrap.wrap(
        text,
        width,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from map(Text, lines)
