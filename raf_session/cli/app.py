"""The commands: ``replay``, ``list`` and ``show``."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Annotated

import anyio
import typer

from raf_session._version import __version__
from raf_session.cli.conversations import (
    Conversation,
    RequestLog,
    read_sources,
    stem_of,
)
from raf_session.cli.faults import Fault, Place
from raf_session.cli.json_values import JsonValues, open_values
from raf_session.cli.listing import head_json, heads, print_heads
from raf_session.cli.meter import Played
from raf_session.cli.progress import Show, show_progress
from raf_session.cli.replay import replay
from raf_session.cli.report import print_report, report_json
from raf_session.cli.store_url import (
    DEFAULT_STORE,
    opened,
    opened_existing,
    shown,
    store_of,
)
from raf_session.cli.terminal import console, print_json
from raf_session.cli.transcript import find_session, print_session, session_json

__all__ = ("app",)

app: typer.Typer = typer.Typer(
    name="raf-session",
    help="Sessions of agents: replay, list and show them.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

StoreOption = Annotated[
    str, typer.Option("--store", metavar="URL", help="Where sessions are kept.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead.")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"raf-session {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Sessions of agents: replay, list and show them."""


def _run(command: Callable[[], Awaitable[None]]) -> None:
    """Run a command; a fault is one line and exit status 2."""
    try:
        anyio.run(command)
    except Fault as fault:
        sys.stderr.write(f"raf-session: {fault}\n")
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


# Replay --------------------------------------------------------------------------


@app.command("replay")
def replay_command(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Files, or - for stdin.")
    ],
    *,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Play conversations into a store, and tell what a prompt cache could reuse.

    A file holds conversations, one a line as {"id", "messages"}, or messages, one a
    line, or a JSON list of either, in the shape of OpenAI's chat API; or request logs,
    {"id", "requests": [body, ...]}. A conversation without an id has the name of the
    file and, where there are several, its number.

    Before each assistant message the messages so far are one request; of a request
    log each body is one. "bytes" are those of all requests. "reused %" is the part of
    them that the request before began with, over all requests but the first of a
    conversation, weighted by bytes. "first break" is the first request that did not
    go on from the one before, and where it left it.

    What is stored already is not stored again: a run that broke off can be repeated.
    """
    _run(lambda: _replay(paths, store, as_json=as_json))


async def _replay(paths: Sequence[str], url: str, *, as_json: bool) -> None:
    begun = perf_counter()
    store = store_of(url)
    played: list[Played] = []
    with show_progress(paths) as show:
        run = _Run(paths, show)
        with closing(run.sources()) as sources:
            first = next(sources, None)  # nothing is made for what cannot be read
            if first is not None:
                async with opened(store, url):
                    for source in chain((first,), sources):
                        played.append(await replay(store, source, run.step))  # noqa: PERF401
    for path in run.empty:
        sys.stderr.write(f"raf-session: {Fault(Place(path), 'no conversations')}\n")
    seconds = perf_counter() - begun
    if as_json:
        print_json(report_json(played, store=shown(url), seconds=seconds))
    else:
        print_report(played, store=shown(url), seconds=seconds, console=console())


def _consumed(values: JsonValues, before: int) -> int:
    return before + values.consumed


class _Run:
    """The sources of a run, and how far it has come."""

    def __init__(self, paths: Sequence[str], show: Show) -> None:
        self.empty: list[str] = []
        """The files that hold no conversation."""
        self._paths = paths
        self._show = show
        self._places: dict[str, Place] = {}
        self._consumed: Callable[[], int] = int
        self._messages = 0

    def sources(self) -> Generator[Conversation | RequestLog]:
        """Yield what is to be played.

        Raises:
            Fault: a file cannot be read on, or an id comes twice.
        """
        before = 0
        for path in self._paths:
            count = len(self._places)
            with open_values(path) as values:
                self._consumed = partial(_consumed, values, before)
                for source in read_sources(values, stem_of(path)):
                    other = self._places.setdefault(source.id, source.place)
                    if other is not source.place:
                        reason = f"the id {source.id!r} was taken at {other}"
                        raise Fault(source.place, reason)
                    yield source
                before += values.consumed
            if len(self._places) == count:
                self.empty.append(path)

    def step(self) -> None:
        """Show that a message, or a request of a log, was played."""
        self._messages += 1
        self._show(self._consumed(), len(self._places), self._messages)


# List and show -------------------------------------------------------------------


@app.command("list")
def list_command(
    *,
    store: StoreOption = DEFAULT_STORE,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="The most to list.")
    ] = 20,
    as_json: JsonOption = False,
) -> None:
    """List sessions, last active first."""
    _run(lambda: _list(store, limit, as_json=as_json))


async def _list(url: str, limit: int, *, as_json: bool) -> None:
    async with opened_existing(url) as store:
        found, more = await heads(store.journal, limit)
    if as_json:
        print_json({"sessions": [head_json(head) for head in found], "more": more})
    else:
        print_heads(found, more=more, console=console())


@app.command("show")
def show_command(
    session_id: Annotated[str, typer.Argument(metavar="ID", help="As list prints it.")],
    *,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Print a session and its messages."""
    _run(lambda: _show(session_id, store, as_json=as_json))


async def _show(session_id: str, url: str, *, as_json: bool) -> None:
    async with opened_existing(url) as store:
        record = await find_session(store.journal, session_id, shown(url))
    if as_json:
        print_json(session_json(record))
    else:
        print_session(record, console())
