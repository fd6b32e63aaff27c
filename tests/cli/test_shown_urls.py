"""No message shows what gives access to a store."""

from __future__ import annotations

from typing import Any

import pytest

from raf_session.stores import open_journal
from raf_session.stores.urls import shown_url

HIDDEN = {
    "postgress://bob:hunter2@h/db": "postgress://bob:***@h/db",
    "postgresql://bob:hunter2@h:1/db": "postgresql://bob:***@h:1/db",
    "postgresql://bob:a@hunter2@h:1/db": "postgresql://bob:***@h:1/db",
    "postgresql://bob:hunter2@h:1,i:2/db": "postgresql://bob:***@h:1,i:2/db",
    "postgresql://bob:hunter2@[::1]:1/db": "postgresql://bob:***@[::1]:1/db",
    "postgresql://h/db?user=bob&password=hunter2": (
        "postgresql://h/db?user=bob&password=***"
    ),
    "postgresql:///db?host=/run&passfile=hunter2": (
        "postgresql:///db?host=/run&passfile=***"
    ),
    "postgresql://h/db?p%61ssword=hunter2&a=1": "postgresql://h/db?p%61ssword=***&a=1",
    "mysql://h/db?password=a&hunter2": "mysql://h/db?password=***&***",
    "mysql://h/db?password=a#hunter2": "mysql://h/db?password=***#***",
    "redis://h?ssl_keyfile=hunter2&TOKEN=hunter2&client_secret=hunter2": (
        "redis://h?ssl_keyfile=***&TOKEN=***&client_secret=***"
    ),
    "redis://:hunter2@h/0": "redis://:***@h/0",
    "unix://u:hunter2@/run/x?db=0": "unix://u:***@/run/x?db=0",
    "sqlite://bob:hunter2@h/db": "sqlite://bob:***@h/db",
    "file://bob:hunter2@h/x": "file://bob:***@h/x",
    "mysql://root:hunter2/x@h:1/db": "mysql://…",
    "mysql://root:hunter2#x@h:1/db": "mysql://…",
    "mysql://root:hunter2?x@h:1/db": "mysql://…",
    "mysql://root:123/hunter2@h:1/db": "mysql://…",
    "mysql://root:[hunter2@h:1/db": "mysql://…",
    "postgresql://bob:hunter2\u2100@h/db": "postgresql://…",
    "postgresql://bob:hunter2@h:hunter2/db": "postgresql://…",
    "bob:hunter2@h/db": "bob://…",
}
"""What is shown of a URL with a password in it."""

PLAIN = [
    *("memory://", "x", "a@b.db", "C:\\x", "redis://", "postgresql://h/db"),
    *("sqlite:///a@b.db", "sqlite:////a/b", "file:///a:b@c/d", "unix:///run/@x"),
    *("redis+sentinel://h1,h2:5/name", "postgresql://u@%2Frun/db", "mysql://[::1]:5/d"),
    *("postgresql:///db?host=/run&port=5", "mysql://u@h/db?unix_socket=/x"),
]


@pytest.mark.parametrize("url", HIDDEN)
def test_a_password_is_not_shown(url: str) -> None:
    assert shown_url(url) == HIDDEN[url]


@pytest.mark.parametrize("url", PLAIN)
def test_what_holds_none_is_shown_as_it_is(url: str) -> None:
    assert shown_url(url) == url


@pytest.mark.parametrize("url", HIDDEN)
def test_no_error_of_opening_shows_it(url: str) -> None:
    try:
        open_journal(url)
    except ValueError as error:
        chain: BaseException | None = error
        while chain is not None:
            assert "hunter2" not in str(chain)
            chain = chain.__cause__ or chain.__context__


@pytest.mark.parametrize("url", [url for url in HIDDEN if "…" in HIDDEN[url]])
def test_a_url_that_cannot_be_read_is_a_fault(run: Any, url: str) -> None:
    for command in (("migrate", url), ("list", "--store", url)):
        fault = run(*command).fault
        assert "hunter2" not in fault
        assert HIDDEN[url] in fault or "123/" in url


@pytest.mark.parametrize("command", ["copy", "dump", "restore", "sweep", "migrate"])
def test_no_command_shows_it(run: Any, command: str) -> None:
    more = {
        "copy": ["sqlite:///x.db"],
        "dump": ["key"],
        "restore": ["-"],
        "sweep": ["--max-idle", "1d"],
        "migrate": [],
    }[command]
    for url in (
        "postgresql://bob:hunter2@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=bob&password=hunter2",
        "redis://:hunter2@127.0.0.1:1/0?bad=1",
    ):
        fault = run(command, url, *more).fault
        assert "hunter2" not in fault
        assert "***" in fault
