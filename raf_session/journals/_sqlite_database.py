"""The connections to one SQLite file: a writer, a few readers and a checkpointer.

Nothing here belongs to an event loop: `Database` is used from any thread, and one
thread at a time holds a connection.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from weakref import WeakSet

from raf_session.errors import JournalClosedError, StorageError
from raf_session.journals._sqlite_faults import BACKEND, FAULTS, Busy, refuse
from raf_session.journals._sqlite_heads import HeadCache
from raf_session.journals._sqlite_schema import prepare

__all__ = ("Database", "Read", "Write")

_T = TypeVar("_T")

Read: TypeAlias = Callable[[sqlite3.Cursor], _T]
"""What is read in one transaction; it may be done again where that came to nothing."""

Write: TypeAlias = Callable[[sqlite3.Cursor, bool], _T]
"""What is written; it is told whether it may take its time."""

CHECKPOINT_FRAMES: Final = 1000
"""How many pages of the log are written before they are moved into the file."""
_CROWDED_FRAMES: Final = 8 * CHECKPOINT_FRAMES
"""So many in the log: writers are held off until it can begin anew."""
_IDLE_READERS: Final = 4
_SLICE_SECS: Final = 0.05
"""How long a thread waits for a lock before its caller may change its mind."""
_FORK_SECS: Final = 10.0


class Database:
    """One SQLite file, opened for a journal.

    Args:
        path: the file, absolute.
        synced: whether a commit waits for the disk.
    """

    def __init__(self, path: str, *, synced: bool) -> None:
        self.path = path
        self.mode = ""
        """The journal mode of the file, once it is open."""
        self.heads = HeadCache()
        """Of the writing connection; for a `Write` alone."""
        self._synced = synced
        self._closed = False
        self._frames = 0
        self._writer: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None
        self._checkpointer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._reading = 0
        self._held: list[threading.Lock | threading.Condition] = []
        self._make_locks()
        _OPENED.add(self)

    def _make_locks(self) -> None:
        self._file: tuple[int, int] | None = None
        self._write_lock = threading.Lock()
        self._checkpoint_lock = threading.Lock()
        self._readers = threading.Condition()

    @property
    def wal(self) -> bool:
        """Whether readers and the writer do not wait for one another."""
        return self.mode == "wal"

    @property
    def crowded(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self._frames >= CHECKPOINT_FRAMES and self.wal

    # Writing ---------------------------------------------------------------------

    def try_write(self, work: Write[_T], size: int = 0) -> _T:
        """Do this in a transaction, at once or not at all.

        Args:
            work: what to do with the cursor.
            size: how many bytes it writes, roughly.

        Raises:
            Busy: it would have to wait; nothing was done.
        """
        if not self._write_lock.acquire(blocking=False):
            raise Busy("another thread is writing")
        try:
            if self._cursor is None:
                raise Busy("the file is to be opened")
            return self._transact(self._cursor, work, size, patient=False)
        finally:
            self._write_lock.release()

    def write(self, work: Write[_T], size: int = 0) -> _T:
        """Do this in a transaction, after a short wait where one is needed.

        Raises:
            Busy: the wait was too short; nothing was done.
        """
        until = time.monotonic() + _SLICE_SECS
        if not self._write_lock.acquire(timeout=_SLICE_SECS):
            raise Busy("another thread is writing")
        try:
            pause = 0.0002
            while True:
                try:
                    return self._transact(self._open_writer(), work, size, patient=True)
                except Busy:
                    if time.monotonic() >= until:
                        raise
                time.sleep(pause)
                pause = min(2 * pause, 0.005)
        finally:
            self._write_lock.release()

    def _transact(
        self, cursor: sqlite3.Cursor, work: Write[_T], size: int, *, patient: bool
    ) -> _T:
        if self._closed:
            raise JournalClosedError(BACKEND)
        self._check_file()
        connection = cursor.connection
        before = connection.total_changes
        try:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                result = work(cursor, patient)
                cursor.execute("COMMIT")
                self.heads.committed(cursor)
            except BaseException:
                self._roll_back(cursor)
                raise
        except FAULTS as error:
            raise refuse(error) from error
        self._frames += 3 + connection.total_changes - before + size // 4096
        return result

    def _roll_back(self, cursor: sqlite3.Cursor) -> None:
        self.heads.forget()
        try:
            if cursor.connection.in_transaction:
                cursor.execute("ROLLBACK")
        except FAULTS:
            # Closing ends the transaction; the next write opens a new connection.
            cursor.connection.close()
            self._writer = self._cursor = None

    def open(self) -> None:
        """Open the file, or make it.

        Raises:
            Busy: somebody else is about to do the same.
            StorageError: it cannot be opened, or is something else's.
            SchemaVersionError: a newer library made it.
        """
        with self._write_lock:
            self._open_writer()

    def _open_writer(self) -> sqlite3.Cursor:
        if self._closed:
            raise JournalClosedError(BACKEND)
        if self._cursor is None:
            # Where everything depends on one lock, its holder is waited for.
            connection = self._connect(0)
            try:
                self.mode = prepare(connection)
                if not self.wal:
                    connection.execute("PRAGMA busy_timeout = 1000")
            except FAULTS as error:
                connection.close()
                raise refuse(error) from error
            except BaseException:
                connection.close()
                raise
            self._writer = connection
            self._cursor = connection.cursor()
            self._file = self._file or _identity(self.path)
            self.heads.forget()
        return self._cursor

    def _check_file(self) -> None:
        """Raise where the file is not the one that was opened: it would be lost."""
        if self._file is not None and _identity(self.path) != self._file:
            raise StorageError(
                BACKEND, f"the file was removed or replaced: {self.path!r}"
            )

    def _connect(self, busy_ms: int) -> sqlite3.Connection:
        # A file that was there once is not made anew: it would hold nothing.
        access = "rw" if self.mode else "rwc"
        folder = os.path.dirname(self.path)  # noqa: PTH120  (a path as it was given)
        if not os.path.isdir(folder):  # noqa: PTH112
            raise StorageError(BACKEND, f"there is no directory {folder!r}")
        try:
            connection = sqlite3.connect(
                f"{Path(self.path).as_uri()}?mode={access}",
                uri=True,
                timeout=busy_ms / 1000,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
        except FAULTS as error:
            raise StorageError(BACKEND, f"{error}: {self.path!r}") from error
        try:
            for pragma in (
                f"synchronous = {'FULL' if self._synced else 'NORMAL'}",
                f"fullfsync = {int(self._synced)}",
                f"checkpoint_fullfsync = {int(self._synced)}",
                "foreign_keys = OFF",  # what goes is deleted by name, which is faster
                "wal_autocheckpoint = 0",
                "cache_size = -16384",
                "secure_delete = ON",
            ):
                connection.execute(f"PRAGMA {pragma}")
        except FAULTS as error:
            connection.close()
            raise refuse(error) from error
        return connection

    # Reading ---------------------------------------------------------------------

    def read(self, work: Read[_T]) -> _T:
        """Do this with the file as it is at one moment.

        Raises:
            Busy: it cannot be read yet.
        """
        self._check_file()
        connection = self._take_reader()
        usable = True
        try:
            cursor = connection.cursor()
            cursor.execute("BEGIN")
            try:
                return work(cursor)
            finally:
                if connection.in_transaction:
                    cursor.execute("ROLLBACK")
        except FAULTS as error:
            usable = False
            raise refuse(error) from error
        finally:
            self._give_reader(connection, usable=usable)

    def _take_reader(self) -> sqlite3.Connection:
        with self._readers:
            if self._closed:
                raise JournalClosedError(BACKEND)
            self._reading += 1
            if self._idle:
                return self._idle.pop()
        try:
            connection = self._connect(int(1000 * _SLICE_SECS))
            connection.execute("PRAGMA query_only = ON")
        except BaseException:
            with self._readers:
                self._reading -= 1
                self._readers.notify_all()
            raise
        return connection

    def _give_reader(self, connection: sqlite3.Connection, *, usable: bool) -> None:
        with self._readers:
            if usable and not self._closed and len(self._idle) < _IDLE_READERS:
                self._idle.append(connection)
            else:
                connection.close()
            self._reading -= 1
            self._readers.notify_all()

    # Checkpoints -----------------------------------------------------------------

    def checkpoint(self) -> None:
        """Move what the log holds into the file; what fails is left for the next."""
        if not self._checkpoint_lock.acquire(blocking=False):
            return
        try:
            if self._closed:
                return
            self._frames = 0
            if self._checkpointer is None:
                self._checkpointer = self._connect(1000)
            _, logged, _ = self._checkpoint("PASSIVE")
            if logged > _CROWDED_FRAMES:
                self._checkpoint("TRUNCATE")
        except (*FAULTS, StorageError, Busy):
            # The log holds everything that was acknowledged, and readers read it there.
            return
        finally:
            self._checkpoint_lock.release()

    def _checkpoint(self, kind: str) -> tuple[int, int, int]:
        assert self._checkpointer is not None  # noqa: S101  (the caller made it)
        sql = f"PRAGMA wal_checkpoint({kind})"
        busy, logged, moved = self._checkpointer.execute(sql).fetchone()
        return busy, logged, moved

    # The end ---------------------------------------------------------------------

    def close(self) -> None:
        """Close all connections once their work is done; idempotent."""
        self._closed = True
        with self._write_lock, self._checkpoint_lock, self._readers:
            try:
                if self._cursor is not None and self.wal:
                    # Where others have the file open, they do this when they close.
                    self._cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except FAULTS:
                pass  # the log stays, and is read when the file is opened again
            finally:
                self._close_connections()  # a reader at work closes its own
        _OPENED.discard(self)

    def _close_connections(self) -> None:
        self._close_writer()
        self._close_checkpointer()
        self._close_readers()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = self._cursor = None

    def _close_checkpointer(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.close()
            self._checkpointer = None

    def _close_readers(self) -> None:
        while self._idle:
            self._idle.pop().close()

    # Forks -----------------------------------------------------------------------

    def before_fork(self) -> None:
        """Close everything: a copy of a connection in a child ruins the file."""
        for lock, close in (
            (self._write_lock, self._close_writer),
            (self._checkpoint_lock, self._close_checkpointer),
            (self._readers, self._close_readers),
        ):
            if lock.acquire(timeout=_FORK_SECS):
                self._held.append(lock)
                if lock is self._readers:
                    self._readers.wait_for(lambda: not self._reading, _FORK_SECS)
                close()

    def after_fork(self) -> None:
        """Go on: the next call opens the file anew."""
        for lock in self._held:
            lock.release()
        self._held.clear()

    def after_fork_in_child(self) -> None:
        """Go on in the child, where no other thread is left."""
        # What could not be closed in time is kept, unused: closing it would harm.
        _ABANDONED.append((self._writer, self._checkpointer, *self._idle))
        self._writer = self._cursor = self._checkpointer = None
        self._idle = []
        self._held.clear()
        self._reading = 0
        self._make_locks()


_ABANDONED: Final[list[object]] = []
_OPENED: WeakSet[Database] = WeakSet()


def _on_each(method: Callable[[Database], None]) -> Callable[[], None]:
    def call() -> None:
        for database in tuple(_OPENED):
            method(database)

    return call


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_on_each(Database.before_fork),
        after_in_parent=_on_each(Database.after_fork),
        after_in_child=_on_each(Database.after_fork_in_child),
    )


def _identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another of the same name; `None`: none there."""
    try:
        found = os.stat(path)  # noqa: PTH116  (on every write)
    except OSError:
        return None
    return found.st_dev, found.st_ino
