"""Figures as one drawing: cost against size for each library, log-log, SVG or HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10
from pathlib import Path

from benches.contenders import LIBRARIES, OURS_LABEL
from benches.figures import Figure, Unit, shown
from benches.machine import described, machine
from benches.tables import series

__all__ = ("draw", "write_plot")

_WIDTH, _HEIGHT = 560, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 172, 44, 52
_COLUMNS = 2
_COLOURS = (
    *("#d62728", "#8c564b", "#e377c2", "#ff9896", "#7f7f7f", "#bdbdbd"),
    *("#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#bcbd22"),
)
_LABEL_GAP = 13
_VALUES: dict[Unit, str] = {"s": "median time", "B": "bytes", "x": "bytes for each"}
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-weight:600;"
    "font-size:14px}.axis{fill:#555}.grid{stroke:#e4e4e4}.frame{stroke:#999;fill:none}"
    ".line{fill:none;stroke-width:1.8}.ours{stroke-width:3.2}"
)


def _colour(library: str) -> str:
    return _COLOURS[LIBRARIES.index(library) % len(_COLOURS)]


class _Axis:
    """A logarithmic axis from the power of ten below to the one above."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.low = floor(log10(min(values)) + 1e-9)
        self.high = max(self.low + 1, ceil(log10(max(values)) - 1e-9))
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        """Return the place of a value."""
        part = (log10(value) - self.low) / (self.high - self.low)
        return self._start + part * (self._end - self._start)

    @property
    def ticks(self) -> list[float]:
        """The powers of ten."""
        return [10.0**power for power in range(self.low, self.high + 1)]


def _text(x: float, y: float, text: str, *, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="grid" {place}/>'


def _grid(x: _Axis, y: _Axis, unit: Unit) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value in x.ticks:
        yield _rule(x.at(value), _TOP, x.at(value), bottom)
        yield _text(
            *(x.at(value), bottom + 17, f"{value:,.0f}"),
            attributes='class="axis" text-anchor="middle"',
        )
    for value in y.ticks:
        yield _rule(_LEFT, y.at(value), right, y.at(value))
        yield _text(
            *(_LEFT - 7, y.at(value) + 4, shown(value, unit)),
            attributes='class="axis" text-anchor="end"',
        )
    yield (
        f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" '
        f'height="{bottom - _TOP}"/>'
    )


def _line(library: str, points: Sequence[tuple[float, float]], told: str) -> str:
    colour = _colour(library)
    place = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    ours = " ours" if library == OURS_LABEL else ""
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points
    )
    return (
        f'<g><title>{escape(told)}</title><polyline class="line{ours}" '
        f'stroke="{colour}" points="{place}"/>{dots}</g>'
    )


def _legend(ends: dict[str, tuple[float, float]]) -> Iterator[str]:
    """Name each line at its end, from the top down, moved apart."""
    least = 0.0
    for library, (x, y) in sorted(ends.items(), key=lambda end: end[1][1]):
        least = max(y, least + _LABEL_GAP)
        left = _WIDTH - _RIGHT + 12
        colour = _colour(library)
        yield (
            f'<path d="M{x:.1f} {y:.1f}L{left - 3:.1f} {least:.1f}" stroke="{colour}" '
            'stroke-width="0.7" stroke-dasharray="2 2" fill="none"/>'
        )
        weight = ";font-weight:600" if library == OURS_LABEL else ""
        style = f'style="fill:{colour}{weight}"'
        yield _text(left, least + 4, library, attributes=style)


def _panel(work: str, backend: str, lines: dict[str, list[Figure]]) -> Iterator[str]:
    every = [figure for line in lines.values() for figure in line]
    unit = every[0].unit
    x = _Axis([figure.size for figure in every], _LEFT, _WIDTH - _RIGHT)
    y = _Axis([figure.typical for figure in every], _HEIGHT - _BOTTOM, _TOP)
    yield _text(_LEFT, 26, f"{work}, {backend}", attributes='class="title"')
    yield from _grid(x, y, unit)
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield _text(
        *(middle, _HEIGHT - 14, _size_label(work)),
        attributes='class="axis" text-anchor="middle"',
    )
    height = (_TOP + _HEIGHT - _BOTTOM) / 2
    yield _text(
        *(14, height, _VALUES[unit]),
        attributes=f'class="axis" text-anchor="middle" '
        f'transform="rotate(-90 14 {height})"',
    )
    ends: dict[str, tuple[float, float]] = {}
    for library, line in lines.items():
        points = [(x.at(f.size), y.at(f.typical)) for f in line]
        told = ", ".join(f"{f.size:,}: {shown(f.typical, unit)}" for f in line)
        yield _line(library, points, f"{library}: {told}")
        ends[library] = points[-1]
    yield from _legend(ends)


def _size_label(work: str) -> str:
    if "session" in work and "memory" not in work:
        return "sessions in the store"
    if work.startswith("append by"):
        return "writers at once"
    return "messages in the session"


def draw(figures: Sequence[Figure]) -> str:
    """Return an SVG with a panel for each work and backend of two sizes or more.

    It needs no script, no font and no file beside it.  Pointing at a line shows its
    values.
    """
    panels: dict[tuple[str, str], dict[str, list[Figure]]] = {}
    for figure in figures:
        panels.setdefault((figure.work, figure.backend), {})
    for (work, backend, library), line in series(figures).items():
        measured = [f for f in line if f.values and f.typical > 0]
        if len(measured) > 1:
            panels[work, backend][library] = measured
    panels = {key: lines for key, lines in panels.items() if lines}
    rows = -(-len(panels) // _COLUMNS)
    width, height = _WIDTH * min(_COLUMNS, max(1, len(panels))), _HEIGHT * max(1, rows)
    whole = f'width="{width}" height="{height}"'
    box = f'viewBox="0 0 {width} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {whole}>',
        f'<style>{_STYLE}</style><rect {whole} fill="white"/>',
    ]
    for n, ((work, backend), lines) in enumerate(panels.items()):
        left, top = n % _COLUMNS * _WIDTH, n // _COLUMNS * _HEIGHT
        parts.append(f'<g transform="translate({left} {top})">')
        parts += _panel(work, backend, lines)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"])


def write_plot(path: Path, figures: Sequence[Figure]) -> None:
    """Write the drawing: a page around it where the name ends in ``.html``."""
    text = draw(figures)
    if path.suffix == ".html":
        where = escape(described(machine())).replace("\n", "<br>")
        text = (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            "<title>Cost against size</title>"
            f"<h1>Cost against size</h1><p>{where}</p>"
            "<p>Medians; both axes are logarithmic: a flat line costs the same "
            "however much is stored.</p>"
            f"{text}</html>"
        )
    path.write_text(text + "\n", encoding="utf-8")
