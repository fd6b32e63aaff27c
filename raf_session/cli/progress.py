"""Progress of a replay, on standard error where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from raf_session.cli.terminal import console

__all__ = ("Show", "show_progress")

Show = Callable[[int, int, int], None]
"""Shows how many bytes were read, conversations begun and messages played."""


@contextmanager
def show_progress(paths: Sequence[str]) -> Generator[Show]:
    """Show a bar while the block runs; it is gone afterwards."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield _nothing
        return
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("reading", total=_total(paths))

        def show(consumed: int, conversations: int, messages: int) -> None:
            text = f"{conversations:,} conversations, {messages:,} messages"
            progress.update(task, completed=consumed, description=text)

        yield show


def _nothing(_consumed: int, _conversations: int, _messages: int) -> None:
    pass


def _total(paths: Sequence[str]) -> int | None:
    """Return the size of all files, `None` where one is no file or has no size."""
    total = 0
    for path in paths:
        try:
            found = Path(path).stat()
        except (OSError, ValueError):
            return None
        if not S_ISREG(found.st_mode):
            return None
        total += found.st_size
    return total
