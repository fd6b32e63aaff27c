"""One session's file, while its lock is held."""

# Paths are strings here: `Path` costs more than the calls.
# ruff: noqa: PTH120

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from raf_session.encoding import Row
from raf_session.entries import SessionHead
from raf_session.errors import SessionDamagedError, SessionError
from raf_session.journals import _rules
from raf_session.journals._jsonl_batches import parse
from raf_session.journals._jsonl_files import (
    BACKEND,
    TooLong,
    prune,
    remove_file,
    replace_file,
    sync_folder,
    write_all,
)
from raf_session.journals._jsonl_folder import Folder
from raf_session.journals._jsonl_lines import Line, Place, row_of
from raf_session.journals._jsonl_logs import Log
from raf_session.journals._jsonl_sidecars import sidecar_path
from raf_session.journals._jsonl_views import Pending, head_numbers
from raf_session.json_text import dump_json
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Slot", "hold", "read_rows")

_GAP: Final = 4096
"""Bytes between two entries that are rather read than skipped."""
_READ_ONLY: Final = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def hold(folder: Folder, key: SessionKey, *, patient: bool) -> Generator[Slot]:
    """Hold the lock of a session.

    Args:
        folder: the base directory.
        key: the session.
        patient: whether long work may be done.
    """
    path = folder.path(key)
    with folder.locks.hold("session", path, patient=patient):
        slot = Slot(folder, key, path, patient=patient)
        try:
            yield slot
        finally:
            slot.close()


class Slot:
    """A session's file, its lock held.

    Args:
        folder: the base directory.
        key: the session.
        path: its file.
        patient: whether long work may be done.
    """

    def __init__(
        self, folder: Folder, key: SessionKey, path: str, *, patient: bool
    ) -> None:
        self.folder = folder
        self.key = key
        self.path = path
        self.patient = patient
        self._fd = -1
        self._refusal: OSError | None = None

    @property
    def fd(self) -> int:
        """The file, for reading; open while the slot is held."""
        return self._fd

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def find(self, *, index: bool = False) -> Log | None:
        """Open the file and read what is new; what another left undone is finished.

        Args:
            index: whether the entries must be known.

        Returns:
            `None`: there is no such file, or it is empty.

        Raises:
            SessionDamagedError: none of it can be read, or, where the journal is
                strict, not all of it.
            SchemaVersionError: a newer library wrote it.
            TooLong: there is much to do, and no patience.
        """
        if self._fd < 0:
            try:
                self._open()
            except FileNotFoundError:
                self.folder.logs.drop(self.path)
                return None
        log = self.folder.logs.open(
            self._fd, self.path, self.key, index=index, patient=self.patient
        )
        if log is None:
            return None
        if log.torn and self._refusal is None:
            os.ftruncate(self._fd, log.end)
            self.folder.report(
                self.key,
                f"cut {log.torn} bytes behind line {log.lines}: "
                "a write that was not finished",
            )
            log.torn = 0
        self._tell(log)
        if log.view.pending:
            if not self.patient:
                raise TooLong
            self.finish(log)
        return log

    def _open(self) -> None:
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
            self._fd = os.open(self.path, os.O_RDONLY)
            self._refusal = error

    def _check_writable(self) -> None:
        """Raise what the system said where it lets the file be read alone."""
        if self._refusal is not None:
            raise self._refusal

    def _tell(self, log: Log) -> None:
        if self.folder.strict and log.damage:
            number, detail = log.damage[0]
            raise SessionDamagedError(self.key, BACKEND, f"line {number}: {detail}")
        for number, detail in log.damage[log.told :]:
            self.folder.report(self.key, f"skipped line {number}: {detail}")
        log.told = len(log.damage)

    def live(
        self, now: int, incarnation: str | None, *, index: bool = False
    ) -> tuple[Log, SessionHead]:
        """Return a session that may be used.

        Raises:
            SessionNotFoundError: missing, expired or another incarnation.
        """
        log = self.find(index=index)
        head = None if log is None else log.view.head
        head = self.folder.rules.live(self.key, head, now, incarnation)
        assert log is not None  # noqa: S101  (`live` raised otherwise)
        return log, head

    def rows(self, places: Sequence[Place]) -> list[Row]:
        """Return the entries of these places."""
        return read_rows(self._fd, self.key, places)

    # Writing ---------------------------------------------------------------------

    def append(
        self,
        log: Log,
        fields: Sequence[dict[str, Any]],
        head: SessionHead,
        tail_at: int,
    ) -> None:
        """Write lines at the end, all or none.

        Args:
            log: the file.
            fields: the lines.
            head: the session after them.
            tail_at: when its last active entry was stored.
        """
        self._check_writable()
        fd = self._fd
        texts = _batch(fields, head, tail_at)
        lines: list[Line] = []
        offset = log.end + log.open
        for i, (text, values) in enumerate(zip(texts, fields, strict=True)):
            lines.append(Line(log.lines + 1 + i, offset, len(text), values))
            offset += len(text) + 1
        data = b"\n" * log.open + b"\n".join(texts) + b"\n"
        try:
            write_all(fd, data)
            if self.folder.synced:
                os.fsync(fd)
        except BaseException:
            self.folder.logs.drop(self.path)
            os.ftruncate(fd, log.end)
            raise
        if os.lseek(fd, 0, os.SEEK_CUR) != log.end + len(data):
            self.folder.logs.drop(self.path)  # a program without our lock wrote too
            return
        try:
            log.grow(lines, data)
        except BaseException:
            self.folder.logs.drop(self.path)
            raise
        if log.behind:
            self.folder.logs.ask(log)

    def save(self, log: Log, *, least: int = 0) -> None:
        """Write the sidecar, where more bytes than these stand behind it."""
        with suppress(OSError):  # a cache: whoever misses it reads more
            log.save(least=least)

    def replace(
        self,
        log: Log | None,
        fields: Sequence[dict[str, Any]],
        head: SessionHead,
        tail_at: int,
    ) -> None:
        """Put a file of these lines in the place of what there is, or make it."""
        self._check_writable()
        data = b"\n".join(_batch(fields, head, tail_at)) + b"\n"
        self._forget(log)
        remove_file(sidecar_path(self.path))
        replace_file(self.path, data, synced=self.folder.synced, make_folder=True)
        self.folder.made += 1

    def _forget(self, log: Log | None) -> None:
        self.folder.logs.drop(self.path)
        if log is not None and log.view.pending:
            self._settle(log.view.pending, drop_others=False)  # it would be lost

    def remove(self, log: Log | None) -> None:
        """Remove the file and all that belongs to it."""
        self._check_writable()
        self._forget(log)
        sidecar = sidecar_path(self.path)
        # What goes first says nothing without the file.
        for path in (sidecar, f"{sidecar}.tmp", f"{self.path}.tmp", self.path):
            remove_file(path)
        folder = os.path.dirname(self.path)
        if self.folder.synced:
            sync_folder(folder)
        prune(folder, self.folder.root)

    def _settle(self, changes: Sequence[Pending], *, drop_others: bool) -> None:
        for name in ("user", "app"):
            mine = [change for change in changes if change.scope == name]
            if mine:
                self.folder.scopes.settle(
                    self.scope(name),
                    str(self.key),
                    mine,
                    drop_others=drop_others,
                    patient=self.patient,
                )

    def finish(self, log: Log | None, changes: Sequence[Pending] = ()) -> None:
        """Settle what was just written, and what was left to do before.

        Where that fails it is reported, and done by whoever uses the session next.
        """
        before = () if log is None else log.view.pending
        if not before and not changes:
            return
        try:
            self._settle([*before, *changes], drop_others=True)
        except (OSError, SessionError) as error:
            if log is None or not log.waiting:
                detail = f"the state of a scope could not be written yet: {error}"
                self.folder.report(self.key, detail)
            if log is not None:
                log.waiting = True
        else:
            if log is not None:
                log.view.pending.clear()
                log.waiting = False

    def scope(self, name: str) -> ScopeKey:
        """Return the scope that ``user`` or ``app`` is for this session."""
        of = _rules.user_scope if name == "user" else _rules.app_scope
        return of(self.key)


def _batch(
    fields: Sequence[dict[str, Any]], head: SessionHead, tail_at: int
) -> list[bytes]:
    n = len(fields)
    fields[-1]["raf"]["head"] = head_numbers(head, tail_at)
    texts: list[bytes] = []
    for i, line in enumerate(fields):
        line["raf"]["batch"] = [i, n]
        texts.append(dump_json(line).encode())
    return texts


def read_rows(fd: int, key: SessionKey, places: Sequence[Place]) -> list[Row]:
    """Return the entries of these places, those that stand together in one read.

    Raises:
        SessionDamagedError: one of them cannot be read.
    """
    rows: list[Row] = []
    first = 0
    for i, place in enumerate(places):
        after = places[i + 1] if i + 1 < len(places) else None
        end = place.offset + place.size
        if after is not None and 0 <= after.offset - end < _GAP:
            continue
        start = places[first].offset
        data = os.pread(fd, end - start, start)
        while len(data) < end - start:
            more = os.pread(fd, end - start - len(data), start + len(data))
            if not more:
                break
            data += more
        for one in places[first : i + 1]:
            at = one.offset - start
            try:
                rows.append(row_of(one, parse(data[at : at + one.size])))
            except Exception as error:
                detail = f"entry {one.id!r} at {one.seq}: {error}"
                raise SessionDamagedError(key, BACKEND, detail) from error
        first = i + 1
    return rows
