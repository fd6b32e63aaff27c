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
from raf_session.transfer import Erasure, ErasureReceipt
from raf_session.transfer.listing import Listing

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
    It can be run again: what is gone is gone. Where it fails, FILE tells what it
    removed until then, and that it is not complete.
    """
    run(lambda: _erase(url, app, user, receipt, yes=yes))


async def _erase(url: str, app: str, user: str, receipt: str, *, yes: bool) -> None:
    async with opened_existing(url, "URL") as store:
        try:
            erasure = Erasure(store.journal, app, user)
        except InvalidValueError as error:
            raise Fault(f"--{error.path}", str(error)) from error
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
                erased = await erasure.run()
            finally:
                _write(file, receipt, erasure.receipt())
    count = len(erased.sessions) + len(erased.expired) + len(erased.damaged)
    sys.stdout.write(
        f"erased {count:,} sessions and {erased.state_keys:,} keys of state\n"
    )


async def _count(journal: Journal, query: Query) -> int:
    count = 0
    listing = Listing(journal, query)
    while (page := await listing.page()) is not None:
        count += len(page.heads) + (page.damaged is not None)
    return count


@contextmanager
def _new(path: str) -> Generator[IO[str]]:
    """Make a file, before anything is done.

    Raises:
        Fault: it is there already, or cannot be made.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("x", encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise unusable(path, error) from error
        yield file


def _write(file: IO[str], path: str, receipt: ErasureReceipt) -> None:
    """Write the receipt; where that fails, print it and remove the file.

    Raises:
        Fault: it cannot be written.
    """
    try:
        file.write(f"{dump_json(receipt.to_json())}\n")
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        print_json(receipt.to_json())  # it is not to be had again
        Path(path).unlink()
        raise unusable(path, error) from error
