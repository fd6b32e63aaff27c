"""``raf-session erase``: everything of one user, and a receipt of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer

from raf_session.cli.faults import Fault, unusable
from raf_session.cli.running import UrlArgument, run
from raf_session.cli.store_url import opened_existing
from raf_session.cli.terminal import one_line, print_json
from raf_session.errors import InvalidValueError
from raf_session.journal import Journal
from raf_session.json_text import dump_json
from raf_session.options import Query
from raf_session.transfer import erase

__all__ = ("erase_command",)


def erase_command(
    url: UrlArgument,
    *,
    app: Annotated[
        str, typer.Option("--app", metavar="APP", help="The app; may be empty.")
    ],
    user: Annotated[str, typer.Option("--user", metavar="USER", help="The user.")],
    receipt: Annotated[
        str,
        typer.Option(
            "--receipt", metavar="FILE", help="A new file for what was removed, JSON."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove all sessions of a user in an app, archives included, and the user's state.

    Sessions that had expired are swept as well, of all users. State of the app stays.
    It can be run again: what is gone is gone.
    """
    run(lambda: _erase(url, app, user, receipt, yes=yes))


async def _erase(url: str, app: str, user: str, receipt: str, *, yes: bool) -> None:
    async with opened_existing(url, "URL") as store:
        if not yes:
            count = await _count(store.journal, Query(app=app, user=user))
            whose = one_line(f"user {user!r} in app {app!r}")
            typer.confirm(
                f"erase {count:,} sessions and the state of {whose}?",
                abort=True,
                err=True,
            )
        with _new(receipt) as file:
            try:
                erased = await erase(store.journal, app, user)
            except InvalidValueError as error:
                raise Fault("--user", str(error)) from error
            try:
                file.write(f"{dump_json(erased.to_json())}\n")
                file.flush()
                os.fsync(file.fileno())
            except OSError as error:
                print_json(erased.to_json())  # it is not to be had again
                raise unusable(receipt, error) from error
    sys.stdout.write(
        f"erased {len(erased.sessions) + len(erased.expired):,} sessions and "
        f"{erased.state_keys:,} keys of state\n"
    )


async def _count(journal: Journal, query: Query) -> int:
    count = 0
    cursor: str | None = None
    while True:
        page = await journal.scan(query, cursor, order="key", limit=500)
        count += len(page.sessions)
        cursor = page.cursor
        if cursor is None:
            return count


@contextmanager
def _new(path: str) -> Generator[IO[str]]:
    """Make a file, before anything is done, and remove it where that fails.

    Raises:
        Fault: it is there already, or cannot be made.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("x", encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise unusable(path, error) from error
        try:
            yield file
        except BaseException:
            Path(path).unlink()
            raise
