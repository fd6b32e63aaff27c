"""Locks between processes, threads and journals: a fixed set of files.

A session's lock is one of 256 files, chosen by its path.  They are never removed, so
that nobody waits for a file that another has replaced.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final

from raf_session.errors import StorageBusyError
from raf_session.journals._jsonl_files import BACKEND, Busy

__all__ = ("Locks", "Mutex")

_PAUSES: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005)
"""Seconds between two looks at a lock that another has."""

if sys.platform != "win32":
    import fcntl

_held: set[int] = set()


def _drop_held() -> None:
    """Let go of the parent's locks in a child, which would hold them for ever."""
    for fd in tuple(_held):
        os.close(fd)
    _held.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_drop_held)


def _try_lock(path: str) -> int | None:
    """Return an open file whose lock is had, `None` where another has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(fd)
        if isinstance(error, BlockingIOError):
            return None
        raise
    _held.add(fd)
    return fd


def _release(fd: int) -> None:
    if fd in _held:  # else this is a child of who had it
        _held.discard(fd)
        fcntl.flock(fd, fcntl.LOCK_UN)  # for a child too that was made just now
        os.close(fd)


class Mutex:
    """A lock between threads that a forked child finds free."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def forked(self) -> bool:
        """Whether this process is a child that did not use it yet."""
        return self._process != os.getpid()

    def __enter__(self) -> None:
        if self.forked:
            self._begin()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Locks:
    """The locks of one base directory.

    Args:
        root: the base directory.
        folder: where their files are.
        timeout_secs: how long to wait for one.

    Raises:
        RuntimeError: the system is Windows.
    """

    def __init__(self, root: str, folder: str, timeout_secs: float) -> None:
        if sys.platform == "win32":
            raise RuntimeError("the jsonl journal needs flock, which Windows lacks")
        self._root = root
        self._folder = folder
        self._timeout_secs = timeout_secs

    @contextmanager
    def hold(self, kind: str, path: str, *, patient: bool) -> Generator[None]:
        """Hold the lock of a path, alone in all processes.

        Args:
            kind: what it is; paths of two kinds share no lock.
            path: what is guarded, inside the base directory.
            patient: whether to wait.

        Raises:
            Busy: another has it, and there is no patience.
            StorageBusyError: it was not had in time.
        """
        # The same for all, by whatever path they came to the base directory.
        inside = os.fsencode(path.removeprefix(self._root))
        stripe = blake2b(inside, digest_size=1).hexdigest()
        file = f"{self._folder}/{kind}-{stripe}"
        fd = _try_lock(file)
        if fd is None:
            if not patient:
                raise Busy
            fd = self._wait(file)
        try:
            yield
        finally:
            _release(fd)

    def _wait(self, path: str) -> int:
        until = time.monotonic() + self._timeout_secs
        looks = 0
        while True:
            time.sleep(_PAUSES[min(looks, len(_PAUSES) - 1)])
            looks += 1
            fd = _try_lock(path)
            if fd is not None:
                return fd
            if time.monotonic() >= until:
                detail = f"locked for {self._timeout_secs:g} s"
                raise StorageBusyError(BACKEND, detail)
