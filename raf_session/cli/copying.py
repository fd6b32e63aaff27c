"""``raf-session copy``: all sessions of one store into another."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from raf_session.cli.faults import Fault
from raf_session.cli.running import JsonOption, run
from raf_session.cli.store_url import (
    explained,
    opened,
    opened_existing,
    shown,
    store_of,
)
from raf_session.cli.terminal import console, one_line, print_json
from raf_session.errors import InvalidValueError
from raf_session.options import Query
from raf_session.transfer import CopyReport, copy

__all__ = ("copy_command",)


def copy_command(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="The store to copy from.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="DST", help="The store to copy into.")
    ],
    *,
    app: Annotated[
        str | None, typer.Option("--app", metavar="APP", help="Only this app's.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Only this user's.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Copy sessions into another store, with the states of their users and apps.

    It can be run again, after it broke off or when there is more to copy: what is there
    already is not written again, a copy that nobody has written to is brought up to
    date, and anything else that stands in the target is left as it is and reported.

    Exit status: 0 where all of it is there, 1 where something stands against it, 2 for
    a fault.
    """
    run(lambda: _copy(source, target, app, user, as_json=as_json))


async def _copy(
    source: str, target: str, app: str | None, user: str | None, *, as_json: bool
) -> None:
    try:
        query = Query(app=app, user=user)
    except InvalidValueError as error:
        raise Fault(f"--{error.path}", str(error)) from error
    there = store_of(target, "DST")
    async with opened_existing(source, "SRC") as here, opened(there, target):
        with explained(f"{shown(source)} to {shown(target)}"):
            report = await copy(here.journal, there.journal, query=query)
    if as_json:
        print_json(report.to_json())
    else:
        _print(report, console())
    if not report.complete:
        raise typer.Exit(1)


def _print(report: CopyReport, console: Console) -> None:
    for count, what in (
        (report.copied, f"copied, with {report.entries:,} entries"),
        (report.completed, "brought up to date"),
        (report.unchanged, "there already"),
        (report.expired, "expired by the limits of the target"),
    ):
        if count or what.startswith("copied"):
            console.print(f"{count:,} {what}")
    if report.state_keys:
        console.print(f"{report.state_keys:,} keys of app and user states")
    for conflict in report.conflicts:
        line = f"conflict {conflict.key}: {conflict.reason}"
        console.print(Text(one_line(line)), soft_wrap=True)
    for failure in report.failures:
        line = f"failed {failure.key}: {failure.error}"
        console.print(Text(one_line(line)), soft_wrap=True)
