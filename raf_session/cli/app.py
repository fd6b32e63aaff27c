"""The commands of ``raf-session``."""

from __future__ import annotations

from typing import Annotated

import typer

from raf_session._version import __version__
from raf_session.cli.conform import conform_command
from raf_session.cli.copying import copy_command
from raf_session.cli.diff import ALL, DiffOptions, compare, diff_json
from raf_session.cli.diff_report import print_diff
from raf_session.cli.dumping import dump_command, restore_command
from raf_session.cli.erasing import erase_command
from raf_session.cli.listing import head_json, heads, print_heads
from raf_session.cli.migrating import migrate_command
from raf_session.cli.pairs import read_pair
from raf_session.cli.replay_run import replay_files
from raf_session.cli.running import JsonOption, StoreOption, faults, run
from raf_session.cli.store_url import DEFAULT_STORE, opened_existing, shown
from raf_session.cli.sweeping import sweep_command
from raf_session.cli.terminal import console, print_json
from raf_session.cli.transcript import find_session, print_session, session_json

__all__ = ("app",)

app: typer.Typer = typer.Typer(
    name="raf-session",
    help="Sessions of agents, and why their prompt cache misses.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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
    """Sessions of agents, and why their prompt cache misses."""


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
    {"id", "requests": [body, ...]}, whose bodies may be of any API. A conversation
    without an id has the name of the file and, where there are several, its number.

    A file may also be one request log itself, with a body on each line or in a list,
    bare or as {"request": body} or {"body": body}; the log has the file's name. A body
    is what has "contents", or "messages" or "input" together with "model", "modelId",
    "tools", "system" or "instructions"; with "messages" and an "id" it is a
    conversation.

    Before each assistant message the messages so far are one request; of a request
    log each body is one. "bytes" are those of all requests. "reused %" is the part of
    them that the request before began with, over all requests but the first of a
    conversation, weighted by bytes. "first break" is the first request that did not
    go on from the one before, and where it left it; "cause" is why.

    What is stored already is not stored again: a run that broke off can be repeated.
    """
    run(lambda: replay_files(paths, store, as_json=as_json))


# Diff ----------------------------------------------------------------------------


@app.command("diff")
def diff_command(
    first: Annotated[
        str, typer.Argument(metavar="A", help="The former body, or both of them.")
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="The later body.")
    ] = None,
    *,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="The API of the bodies: openai-chat, openai-responses, anthropic, "
            "gemini, bedrock, openai, deepseek, vllm or sglang; told by looking.",
        ),
    ] = None,
    judges: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="NAME",
            help=f"Whose cache is asked about, repeatable; {ALL!r} for every one. By "
            "default those that speak the API.",
        ),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens", metavar="N", min=0, help="The prompt tokens of B, counted."
        ),
    ] = None,
    elapsed: Annotated[
        float | None,
        typer.Option("--elapsed", metavar="SECONDS", min=0, help="Since A was sent."),
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option(
            "--block-size", metavar="N", min=1, help="The cache's block, in tokens."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two request bodies: does B go on from A, and what is reused if not?

    Each of A and B is a JSON file with one body, FILE:LINE for one of a log with a body
    on each line, or - for standard input. Alone, A holds both: two lines, a list of
    two, {"previous": body, "current": body}, or {"id", "requests": [body, ...]}, whose
    last two are compared; FILE:LINE of a body is compared with the one before it.

    A body may be wrapped, as {"request": body, "usage": ...} or {"body": body,
    "response": {"usage": ...}}: the prompt tokens are then the reported ones.

    What is shown: = stands as in A, x changed, ~ as in A but behind the break, + new,
    - in A only. What the caches do is a prediction by their documented rules.

    Exit status: 0 where B appends to A, 1 where it breaks off, 2 for a fault.
    """
    options = DiffOptions(provider, judges or (), tokens, elapsed, block_size)
    with faults():
        found = compare(read_pair(first, second), options)
        if as_json:
            print_json(diff_json(found))
        else:
            print_diff(found, console())
    if not found.match.append_only:
        raise typer.Exit(1)


# List and show -------------------------------------------------------------------


@app.command("list")
def list_command(
    *,
    store: StoreOption = DEFAULT_STORE,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="The most to list.")
    ] = 20,
    full: Annotated[
        bool, typer.Option("--full", help="Print long keys whole on a terminal too.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List sessions, last active first."""
    run(lambda: _list(store, limit, full=full, as_json=as_json))


async def _list(url: str, limit: int, *, full: bool, as_json: bool) -> None:
    async with opened_existing(url) as store:
        found, more = await heads(store.journal, limit)
    if as_json:
        print_json({"sessions": [head_json(head) for head in found], "more": more})
    else:
        print_heads(found, more=more, full=full, console=console())


@app.command("show")
def show_command(
    session_id: Annotated[str, typer.Argument(metavar="ID", help="As list prints it.")],
    *,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Print a session and its messages."""
    run(lambda: _show(session_id, store, as_json=as_json))


async def _show(session_id: str, url: str, *, as_json: bool) -> None:
    async with opened_existing(url) as store:
        record = await find_session(store.journal, session_id, shown(url))
    if as_json:
        print_json(session_json(record))
    else:
        print_session(record, console())


# Whole stores --------------------------------------------------------------------

app.command("conform")(conform_command)
app.command("copy")(copy_command)
app.command("dump")(dump_command)
app.command("restore")(restore_command)
app.command("erase")(erase_command)
app.command("sweep")(sweep_command)
app.command("migrate")(migrate_command)
