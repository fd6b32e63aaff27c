"""What `sqlite3` raises, told in the library's own errors."""

from __future__ import annotations

import sqlite3
from typing import Final, TypeAlias

from raf_session.errors import StorageError, StorageFullError

__all__ = (
    "BACKEND",
    "FAULTS",
    "Busy",
    "KnownId",
    "TooLong",
    "refuse",
    "storage_error",
)

BACKEND: Final = "sqlite"

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_FULL: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}


class Busy(Exception):  # noqa: N818  (never leaves the journal)
    """Somebody else has the lock; nothing was done, and it may be tried again."""


class TooLong(Exception):  # noqa: N818  (never leaves the journal)
    """More work than the thread of an event loop may do; nothing was done."""


class KnownId(Exception):  # noqa: N818  (never leaves the journal)
    """An entry's id is stored already; nothing was done."""


Fault: TypeAlias = sqlite3.Error | UnicodeDecodeError
"""What `sqlite3` raises; it fails to decode its own message about a damaged file."""

FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)


def refuse(error: Fault) -> Exception:
    """Return what is to be raised for an error of `sqlite3`, the cause not yet set."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF in _BUSY:
        return Busy(str(error))
    return storage_error(error)


def storage_error(error: Fault) -> StorageError:
    """Return the `StorageError` for an error of `sqlite3`."""
    code = getattr(error, "sqlite_errorcode", 0)
    name = getattr(error, "sqlite_errorname", "")
    kind = StorageFullError if code in _FULL else StorageError
    return kind(BACKEND, f"{error} ({name})" if name else str(error))
