"""What this process knows of sessions' files, and how it keeps up with them."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Final

from raf_session.errors import SchemaVersionError, SessionDamagedError
from raf_session.journals._jsonl_batches import Damage, Ending, batches
from raf_session.journals._jsonl_files import BACKEND, TooLong
from raf_session.journals._jsonl_index import Index
from raf_session.journals._jsonl_lines import Line, bare
from raf_session.journals._jsonl_locks import Mutex
from raf_session.journals._jsonl_sidecars import (
    TAIL_BYTES,
    Identity,
    Sidecar,
    identify,
    read_sidecar,
    same_file,
    tail_of,
    write_sidecar,
)
from raf_session.journals._jsonl_views import View
from raf_session.journals._rows import total
from raf_session.keys import SessionKey

__all__ = ("Log", "Logs")

_QUICK_BYTES: Final = 64 * 1024
"""As much may be read on the thread of an event loop."""
_SIDECAR_BYTES: Final = 32 * 1024
"""A sidecar is written when so many bytes stand behind it, or some times its size."""
_SIDECAR_SHARE: Final = 4
_TURNS: Final = 64
"""After so many uses it is looked how many entries are kept."""
_MAX_DAMAGE: Final = 100
"""As many damaged lines are told of one file."""


class Log:
    """What is known of a session's file.

    Used under the lock of the file alone.

    Attributes:
        path: the file.
        identity: what tells it from others of its name.
        view: what its lines say, up to `end`.
        index: where the entries are, where that is known.
        end: the offset behind the last batch that was read.
        tail: the last bytes in front of it.
        lines: how many lines stand in front of it.
        open: whether the last of them wants its newline.
        torn: how many bytes of an unfinished batch stand behind.
        damage: the lines that could not be read.
        told: how many of these were reported.
        waiting: whether a change of scoped state could not reach its scope.
    """

    def __init__(self, path: str, key: SessionKey, identity: Identity) -> None:
        self.path = path
        self.identity = identity
        self.view = View(key)
        self.index: Index | None = None
        self.end = 0
        self.tail = b""
        self.lines = 0
        self.open = False
        self.torn = 0
        self.damage: list[Damage] = []
        self.told = 0
        self.waiting = False
        self._sidecar_end = 0
        self._sidecar_size = 0

    # Reading ---------------------------------------------------------------------

    def catch_up(self, fd: int, size: int) -> None:
        """Read what was written since.

        Raises:
            SchemaVersionError: a newer library wrote it.
            SessionDamagedError: nothing of the file can be read.
        """
        self.torn = 0
        if size == self.end:
            return
        marred = self.view.marred
        for found in batches(fd, self.end, size, self.lines):
            if isinstance(found, Damage):
                self._spoil(found)
            elif isinstance(found, Ending):
                self.end, self.lines = found.end, found.lines
                self.tail = tail_of(fd, self.end)
                self.open, self.torn = found.open, found.torn
            else:
                for line in found:
                    self.apply(line)
        head = self.view.head
        if head is None:
            detail = f"no line of {size} bytes can be read"
            if self.damage:
                detail += f"; line {self.damage[0].number}: {self.damage[0].detail}"
            raise SessionDamagedError(self.view.key, BACKEND, detail)
        if self.index is not None and (self.view.marred or marred):
            self._recount(self.index)

    def apply(self, line: Line) -> None:
        """Take a line into account; one that says nothing of use is damage."""
        try:
            self.view.apply(line, self.index)
        except SchemaVersionError:
            raise
        except Exception as error:  # noqa: BLE001  (whatever a strange line raises)
            detail = f"no line of a session: {type(error).__name__}: {error}"
            self._spoil(Damage(line.number, detail))

    def _spoil(self, damage: Damage) -> None:
        self.view.marred = True
        if len(self.damage) < _MAX_DAMAGE:
            self.damage.append(damage)

    def _recount(self, index: Index) -> None:
        view = self.view
        assert view.head is not None  # noqa: S101  (the caller looked)
        active = index.active
        counts = total(map(bare, active))
        view.head = view.head._replace(active=counts)
        view.tail_at = active[-1].stored_at if active else 0

    def grow(self, lines: list[Line], data: bytes) -> None:
        """Take what was just written into account."""
        self.end += len(data)
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        self.lines += len(lines)
        self.open = False
        for line in lines:
            self.view.apply(line, self.index)

    # The sidecar -----------------------------------------------------------------

    def restore(self, fd: int, size: int) -> bool:
        """Begin with what the sidecar says; tell whether there is one that fits."""
        sidecar = read_sidecar(self.path)
        if (
            sidecar is None
            or sidecar.end > size
            or sidecar.view.key != self.view.key
            or not same_file(sidecar.identity, self.identity)
            or sidecar.tail != tail_of(fd, sidecar.end)
        ):
            return False
        self.view = sidecar.view
        self.end, self.tail, self.lines = sidecar.end, sidecar.tail, sidecar.lines
        self.damage = list(sidecar.damage)
        self._sidecar_end = sidecar.end
        return True

    @property
    def behind(self) -> bool:
        """Whether the sidecar is so far behind that it should be written."""
        room = max(_SIDECAR_BYTES, _SIDECAR_SHARE * self._sidecar_size)
        return self.end - self._sidecar_end > room

    def save(self, *, least: int = 0) -> None:
        """Write the sidecar, where more bytes than these stand behind it."""
        if self.end - self._sidecar_end <= least or self.view.pending or self.open:
            return
        sidecar = Sidecar(
            self.identity,
            self.end,
            self.tail,
            self.lines,
            tuple(self.damage),
            self.view,
        )
        self._sidecar_size = write_sidecar(self.path, sidecar)
        self._sidecar_end = self.end


class Logs:
    """The logs that are kept: those used last, and so many entries at most.

    Args:
        files: how many files.
        entries: how many entries, all files together.
    """

    def __init__(self, files: int = 512, entries: int = 500_000) -> None:
        self._files = files
        self._entries = entries
        self._mutex = Mutex()
        self._logs: OrderedDict[str, Log] = OrderedDict()
        self._due: list[Log] = []
        self._turns = 0

    def open(
        self, fd: int, path: str, key: SessionKey, *, index: bool, patient: bool
    ) -> Log | None:
        """Return what is known of an open file, brought up to its end.

        Args:
            fd: the file, its lock held.
            path: its path.
            key: the session.
            index: whether its entries must be known.
            patient: whether much may be read.

        Returns:
            `None`: the file is empty.

        Raises:
            TooLong: there is much to read, and no patience.
        """
        size = os.fstat(fd).st_size
        if not size:
            return None
        identity = identify(fd)
        log = self._kept(path, identity, fd, size)
        if log is None or (index and log.index is None):
            fresh = Log(path, key, identity)
            if log is not None:
                fresh.told, fresh.waiting = log.told, log.waiting
            log = fresh
            if index:
                log.index = Index()
            else:
                log.restore(fd, size)
        if not patient and size - log.end > _QUICK_BYTES:
            raise TooLong
        log.catch_up(fd, size)
        self.keep(log)
        return log

    def _kept(self, path: str, identity: Identity, fd: int, size: int) -> Log | None:
        if self._mutex.forked:
            # What the parent was about to change is not to be trusted here.
            self._logs, self._due = OrderedDict(), []
        with self._mutex:
            log = self._logs.pop(path, None)
        # It is put back by `keep`, when it was brought up to date without an error.
        if (
            log is None
            or size < log.end
            or not same_file(log.identity, identity)
            or log.tail != tail_of(fd, log.end)
        ):
            return None
        return log

    def keep(self, log: Log) -> None:
        """Keep a log; those used longest ago are put out."""
        with self._mutex:
            self._logs[log.path] = log
            self._turns += 1
            surplus = len(self._logs) - self._files
            if self._turns % _TURNS == 0:
                surplus = max(surplus, self._surplus())
            for _ in range(surplus):
                self._due.append(self._logs.popitem(last=False)[1])

    def _surplus(self) -> int:
        """Return how many logs must go so that the entries of the others are few."""
        sizes = [0 if x.index is None else len(x.index) for x in self._logs.values()]
        entries, surplus = sum(sizes), 0
        while entries > self._entries and surplus < len(sizes) - 1:
            entries -= sizes[surplus]
            surplus += 1
        return surplus

    def ask(self, log: Log) -> None:
        """Have the sidecar of a file written soon."""
        with self._mutex:
            self._due.append(log)

    @property
    def waiting(self) -> bool:
        """Whether there are sidecars to write."""
        return bool(self._due)

    def due(self) -> list[Log]:
        """Return the logs whose sidecars are to be written, once."""
        with self._mutex:
            logs, self._due = self._due, []
        return logs

    def drop(self, path: str) -> None:
        """Forget a file."""
        with self._mutex:
            self._logs.pop(path, None)

    def clear(self) -> list[Log]:
        """Forget all files; return what was known."""
        with self._mutex:
            logs = list(self._logs.values())
            self._logs.clear()
        return logs
