# Paths are strings here: `Path` costs more than the calls.
# ruff: noqa: PTH103, PTH105, PTH106, PTH108, PTH112, PTH120
"""Files as the JSONL journal writes them, and the errors of the system as ours."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from raf_session.errors import StorageError, StorageFullError

__all__ = (
    "BACKEND",
    "Busy",
    "TooLong",
    "faults",
    "make_folder",
    "prune",
    "read_file",
    "remove_file",
    "replace_file",
    "sealed",
    "sync_folder",
    "unsealed",
    "write_all",
)

BACKEND: Final = "jsonl"

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MODE: Final = 0o666  # what the umask leaves of it
_RETRIES: Final = 100


class Busy(Exception):  # noqa: N818  (never leaves the journal)
    """Somebody else has the lock; nothing was done, and it may be tried again."""


class TooLong(Exception):  # noqa: N818  (never leaves the journal)
    """More work than the thread of an event loop may do; nothing was done."""


@contextmanager
def faults() -> Generator[None]:
    """Turn errors of the system into `StorageError` and `StorageFullError`."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        kind = StorageFullError if error.errno in _FULL else StorageError
        raise kind(BACKEND, str(error)) from error


def write_all(fd: int, data: bytes) -> None:
    """Write all of it: with one call, unless the system takes a part only."""
    written = os.write(fd, data)
    while written < len(data):
        data = data[written:]
        written = os.write(fd, data)


def replace_file(
    path: str, data: bytes, *, synced: bool, make_folder: bool = False
) -> None:
    """Put a file in the place of another, or make it, in one step.

    The caller holds the lock that guards the path.

    Args:
        path: the file.
        data: what it is to hold.
        synced: whether it is on the disk when this returns.
        make_folder: whether to make its folder where that is missing.
    """
    folder = os.path.dirname(path)
    temporary = f"{path}.tmp"
    fd = _create(temporary, folder if make_folder else None, synced=synced)
    try:
        try:
            write_all(fd, data)
            if synced:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if synced:
        sync_folder(folder)


def _create(path: str, folder: str | None, *, synced: bool) -> int:
    for _ in range(_RETRIES):
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE)
        except FileNotFoundError:
            if folder is None:
                raise
            # Where another removes it as empty in between, it is made again.
            with suppress(FileNotFoundError, FileExistsError):
                make_folder(folder, synced=synced)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE)


def make_folder(path: str, *, synced: bool) -> None:
    """Make a folder and those above it, where they are missing."""
    missing: list[str] = []
    above = path
    while not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    os.makedirs(path, exist_ok=True)
    if synced:
        for folder in missing:
            sync_folder(os.path.dirname(folder))


def prune(folder: str, root: str) -> None:
    """Remove a folder and those above it up to the root, where they are empty."""
    while folder != root:
        try:
            os.rmdir(folder)
        except OSError:
            return  # in use, or gone already
        folder = os.path.dirname(folder)


def read_file(path: str) -> bytes | None:
    """Return what a file holds, `None` where it is missing."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        parts: list[bytes] = []
        while part := os.read(fd, 1 << 20):
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(fd)


def sealed(data: bytes) -> bytes:
    """Return what a cache holds, with a checksum on a line in front."""
    return b"%08x\n%b" % (zlib.crc32(data), data)


def unsealed(data: bytes | None) -> bytes | None:
    """Return what was sealed, `None` where it is missing or not as it was written."""
    seal, _, rest = (data or b"").partition(b"\n")
    return rest if seal == b"%08x" % zlib.crc32(rest) else None


def remove_file(path: str) -> bool:
    """Remove a file; tell whether there was one."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def sync_folder(path: str) -> None:
    """Have the names in a folder on the disk when this returns."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # it was empty, and another removed it
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
