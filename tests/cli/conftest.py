"""A command line in a directory of its own, and a look at what it stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import anyio
import pytest
from typer.testing import CliRunner

from raf_session.cli.app import app
from raf_session.cli.store_url import DEFAULT_STORE
from raf_session.entries import Record
from raf_session.options import Query
from raf_session.stores import open_store


class Ran(NamedTuple):
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        assert self.status == 0, self.err
        return json.loads(self.out)

    @property
    def fault(self) -> str:
        """The one line of a fault."""
        assert self.status == 2
        assert not self.out
        assert self.err.startswith("raf-session: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("raf-session: ").removesuffix("\n")


class Run(Protocol):
    """Runs the command."""

    def __call__(self, *arguments: str, stdin: bytes | None = None) -> Ran: ...


def run_command(*arguments: str, stdin: bytes | None = None) -> Ran:
    result = CliRunner().invoke(app, arguments, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def read_store(url: str = DEFAULT_STORE) -> dict[str, Record]:
    """Return everything that a store holds, by session id."""

    async def read() -> dict[str, Record]:
        async with open_store(url) as store:
            page = await store.journal.scan(Query(), order="key", limit=1000)
            keys = [listed.head.key for listed in page.sessions]
            return {k.session: await store.journal.load(k, archived=True) for k in keys}

    return anyio.run(read)


def messages_of(record: Record) -> list[Any]:
    """Return the messages as they were sent."""
    return [e.message.to_openai() for e in record.entries if e.message is not None]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run commands in an empty directory, 80 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return run_command


@pytest.fixture
def store() -> Callable[[], dict[str, Record]]:
    """Read the default store of the directory."""
    return read_store


@pytest.fixture
def sent() -> Callable[[Record], list[Any]]:
    """Read the messages of a session as they were sent."""
    return messages_of
