"""The store of a command line: opened by its URL, its errors told as faults."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from raf_session.cli.faults import Fault
from raf_session.errors import SessionError, StorageError
from raf_session.options import SessionTTLOptions
from raf_session.stores import OwningStore, open_store
from raf_session.stores.urls import shown_url

__all__ = (
    "DEFAULT_STORE",
    "explained",
    "opened",
    "opened_existing",
    "shown",
    "store_of",
)

DEFAULT_STORE: Final = "sqlite:///raf-sessions.db"


def store_of(
    url: str, place: str = "--store", *, ttl: SessionTTLOptions | None = None
) -> OwningStore:
    """Return the store of a URL, not yet opened.

    Args:
        url: where sessions are kept.
        place: the option or argument that names it.
        ttl: how long sessions live; `None`: for ever.

    Raises:
        Fault: nothing is known to carry this URL, or its driver is not installed.
    """
    try:
        return open_store(url, ttl=ttl)
    except (ModuleNotFoundError, ValueError) as error:
        raise Fault(place, str(error)) from error


@asynccontextmanager
async def opened(store: OwningStore, url: str) -> AsyncGenerator[OwningStore]:
    """Open the store of a URL, and make its database where there is none.

    Raises:
        Fault: it cannot be opened, or fails later.
    """
    try:
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(store)
            except (TypeError, ValueError) as error:  # a driver's, of a parameter
                if isinstance(error, SessionError):
                    raise
                raise Fault(shown(url), str(error)) from error
            yield store
    except StorageError as error:
        raise Fault(shown(url), error.detail) from error
    except SessionError as error:
        raise Fault(shown(url), str(error)) from error


@asynccontextmanager
async def opened_existing(
    url: str, place: str = "--store", *, ttl: SessionTTLOptions | None = None
) -> AsyncGenerator[OwningStore]:
    """Open the store of a URL where there is one.

    Raises:
        Fault: there is none, it cannot be opened, or fails later.
    """
    store = store_of(url, place, ttl=ttl)
    _check_exists(url)
    async with opened(store, url):
        yield store


def _check_exists(url: str) -> None:
    """Raise a `Fault` where the file or folder of a URL is missing."""
    path = _path(url)
    if path is not None and not path.exists():
        folder = _scheme(url) == "file"
        raise Fault(str(path), "no such folder" if folder else "no such database")


@contextmanager
def explained(place: str) -> Generator[None]:
    """Tell an error of the library as a fault at that place."""
    try:
        yield
    except SessionError as error:
        raise Fault(place, str(error)) from error


def shown(url: str) -> str:
    """Return what to call the store: the file, or the URL as `shown_url` has it."""
    path = _path(url)
    if path is not None:
        return str(path)
    return shown_url(url)


def _scheme(url: str) -> str:
    return urlsplit(url).scheme.partition("+")[0]


def _path(url: str) -> Path | None:
    """Return the file or folder of a URL, where it names one."""
    path = unquote(urlsplit(url).path)
    match _scheme(url):
        case "sqlite":
            return Path(path[1:])
        case "file":
            return Path(path)
        case _:
            return None
