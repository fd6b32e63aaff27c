"""The store of a command line: opened by its URL, its errors told as faults."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from raf_session.cli.faults import Fault
from raf_session.errors import SessionError, StorageError
from raf_session.stores import OwningStore, open_store

__all__ = ("DEFAULT_STORE", "opened", "opened_existing", "shown", "store_of")

DEFAULT_STORE: Final = "sqlite:///raf-sessions.db"


def store_of(url: str) -> OwningStore:
    """Return the store of a URL, not yet opened.

    Raises:
        Fault: nothing is known to carry this URL.
    """
    try:
        return open_store(url)
    except ValueError as error:
        raise Fault("--store", str(error)) from error


@asynccontextmanager
async def opened(store: OwningStore, url: str) -> AsyncGenerator[OwningStore]:
    """Open the store of a URL, and make its database where there is none.

    Raises:
        Fault: it cannot be opened, or fails later.
    """
    try:
        async with store:
            yield store
    except StorageError as error:
        raise Fault(shown(url), error.detail) from error
    except SessionError as error:
        raise Fault(shown(url), str(error)) from error


@asynccontextmanager
async def opened_existing(url: str) -> AsyncGenerator[OwningStore]:
    """Open the store of a URL where there is one.

    Raises:
        Fault: there is none, it cannot be opened, or fails later.
    """
    store = store_of(url)
    path = _sqlite_path(url)
    if path is not None and not path.exists():
        raise Fault(str(path), "no such database")
    async with opened(store, url):
        yield store


def shown(url: str) -> str:
    """Return what to call the store: the file, or the URL without its password."""
    path = _sqlite_path(url)
    if path is not None:
        return str(path)
    parts = urlsplit(url)
    if parts.password is None:
        return url
    netloc = parts.netloc.replace(f":{parts.password}@", ":***@")
    return parts._replace(netloc=netloc).geturl()


def _sqlite_path(url: str) -> Path | None:
    parts = urlsplit(url)
    return Path(unquote(parts.path[1:])) if parts.scheme == "sqlite" else None
