"""``raf-session dump`` and ``restore``: one session as a file of lines, and back."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Annotated

import typer

from raf_session.cli.faults import Fault, Place, unusable
from raf_session.cli.listing import key_of, shown_id
from raf_session.cli.running import UrlArgument, run
from raf_session.cli.store_url import opened, opened_existing, shown, store_of
from raf_session.cli.terminal import one_line
from raf_session.cli.transcript import find_session
from raf_session.errors import (
    DumpDamagedError,
    InvalidValueError,
    SchemaVersionError,
    SessionError,
    SessionNotFoundError,
)
from raf_session.journals.memory import MemoryJournal
from raf_session.options import HEAD_ONLY
from raf_session.transfer import dump, restore

__all__ = ("dump_command", "restore_command")

_STDIO = "-"


def dump_command(
    url: UrlArgument,
    key: Annotated[str, typer.Argument(metavar="KEY", help="As list prints it.")],
    *,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="By default, stdout."),
    ] = _STDIO,
) -> None:
    """Write a session, archive included, as lines of JSON that restore reads.

    FILE is replaced when the dump is whole.
    """
    run(lambda: _dump(url, key, output))


async def _dump(url: str, name: str, output: str) -> None:
    async with opened_existing(url, "URL") as store:
        found = await find_session(store.journal, name, shown(url), HEAD_ONLY)
        with _replaced(output) as file:
            async for line in dump(store.journal, found.head.key):
                file.write(line.encode())


@contextmanager
def _replaced(output: str) -> Generator[IO[bytes]]:
    """Give a file that takes the place of another when the block has ended well.

    Raises:
        Fault: it cannot be written.
    """
    if output == _STDIO:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    try:
        with NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except SessionError:
        raise
    except (OSError, ValueError) as error:
        raise unusable(output, error) from error


def restore_command(
    url: UrlArgument,
    path: Annotated[
        str, typer.Argument(metavar="FILE", help="A dump, or - for stdin.")
    ],
    *,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="KEY", help="By default, that of the dump."),
    ] = None,
) -> None:
    """Create the session of a dump, whole or not at all.

    A dump that is torn or damaged is refused, and so is one whose key is taken.
    """
    run(lambda: _restore(url, path, key))


async def _restore(url: str, path: str, name: str | None) -> None:
    store = store_of(url, "URL")
    if isinstance(store.journal, MemoryJournal):
        raise Fault("URL", "memory:// keeps nothing when the command ends")
    try:
        key = None if name is None else key_of(name)
    except InvalidValueError as error:
        raise Fault("--key", str(error)) from error
    with _read(path) as file:
        async with opened(store, url):
            try:
                commit = await restore(store.journal, file, key=key)
            except DumpDamagedError as error:
                raise Fault(Place(path, error.line), error.reason) from error
            except (SchemaVersionError, SessionNotFoundError) as error:
                raise Fault(Place(path), str(error)) from error
    head = commit.head
    archived = head.total.entries - head.active.entries
    sys.stdout.write(
        f"restored {one_line(shown_id(head.key))}: {head.active.entries:,} entries, "
        f"{archived:,} archived\n"
    )


@contextmanager
def _read(path: str) -> Generator[IO[bytes]]:
    if path == _STDIO:
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("rb"))
        except (OSError, ValueError) as error:
            raise unusable(path, error) from error
        yield file
