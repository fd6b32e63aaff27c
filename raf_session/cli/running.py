"""What every command shares: its options, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Annotated

import anyio
import typer

from raf_session.cli.faults import Fault

__all__ = ("JsonOption", "StoreOption", "UrlArgument", "faults", "run")

StoreOption = Annotated[
    str, typer.Option("--store", metavar="URL", help="Where sessions are kept.")
]
UrlArgument = Annotated[
    str, typer.Argument(metavar="URL", help="Where sessions are kept.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead.")
]


@contextmanager
def faults() -> Generator[None]:
    """A fault is one line and exit status 2."""
    try:
        yield
    except Fault as fault:
        sys.stderr.write(f"raf-session: {fault}\n")
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def run(command: Callable[[], Awaitable[None]]) -> None:
    """Run a command to its end."""
    with faults():
        anyio.run(command)
