"""What a load reads: under the lock what changes, behind it what does not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from raf_session.clock import from_micros, to_micros
from raf_session.encoding import Row
from raf_session.entries import Record, SessionHead
from raf_session.journals import _rules
from raf_session.journals._jsonl_batches import parse
from raf_session.journals._jsonl_changes import head_fields
from raf_session.journals._jsonl_folder import Folder
from raf_session.journals._jsonl_lines import Line, Place, is_entry, place_of, row_of
from raf_session.journals._jsonl_logs import Log
from raf_session.journals._jsonl_slots import Slot, hold, read_rows
from raf_session.journals._records import Found, record_of
from raf_session.journals._windows import within
from raf_session.keys import SessionKey
from raf_session.options import WHOLE, Window

__all__ = ("Load", "lines_backwards")

_BLOCK: Final = 64 * 1024


class Load(NamedTuple):
    """The arguments of `Journal.load`, and how to do it."""

    folder: Folder
    key: SessionKey
    window: Window
    refresh: bool
    archived: bool

    def run(self, patient: bool) -> Record:
        """Read a session."""
        folder, key = self.folder, self.key
        places: Sequence[Place] = ()
        left: Sequence[Place] = ()
        fd = -1
        try:
            with hold(folder, key, patient=patient) as slot:
                now = folder.rules.now()
                log, head = slot.live(now, None)
                if self.refresh:
                    head = _refresh(slot, log, head, now)
                rows = self._last(slot, log, head)
                if rows is None or self.archived:
                    log, head = slot.live(now, None, index=True)
                    assert log.index is not None  # noqa: S101  (it was asked for)
                    places = within(log.index.active, self.window)
                    left = sorted(log.index.archived) if self.archived else ()
                    rows = []
                    fd = os.dup(slot.fd)
                view = log.view
                found = Found(
                    head,
                    rows,
                    (),
                    sorted(view.session.items()),
                    sorted(view.providers.items()),
                    view.digests,
                    *[
                        folder.scopes.read(slot.scope(name), now)
                        for name in ("user", "app")
                    ],
                )
            # Nothing in front of the end of a file ever changes.
            if fd >= 0:
                found = found._replace(
                    active=read_rows(fd, key, places), archived=read_rows(fd, key, left)
                )
        finally:
            if fd >= 0:
                os.close(fd)
        return record_of(found, folder.bodies, folder.values)

    def _last(self, slot: Slot, log: Log, head: SessionHead) -> list[Row] | None:
        """Return the window where it is best read from the end, else `None`."""
        window = self.window
        if window.last == 0:
            return []
        if log.index is not None or log.view.marred or window.before_seq is not None:
            return None
        if window == WHOLE:
            return None
        return _last_rows(slot.fd, log.end, head, window)


def _refresh(slot: Slot, log: Log, head: SessionHead, now: int) -> SessionHead:
    """Move the activity of what is read to now; return the head."""
    after = _rules.touched(head, from_micros(now))
    if after != head:
        slot.append(log, [head_fields()], after, log.view.tail_at)
    for name in ("user", "app"):
        slot.folder.scopes.refresh(slot.scope(name), now, patient=slot.patient)
    return after


# From the end ----------------------------------------------------------------------


def _last_rows(
    fd: int, end: int, head: SessionHead, window: Window
) -> list[Row] | None:
    """Read a window from the end of the file, as far back as it reaches.

    Lines are met from the last to the first.  What a later line archived is passed
    over.  A new entry has a higher place than all in front of it, so that behind one
    there is no more of the window once there are enough of higher places.

    Returns:
        `None`: there is a line that says nothing without those in front of it.
    """
    found: dict[int, tuple[Place, dict[str, Any]]] = {}
    removed: list[tuple[int, int]] = []
    moment = None if window.after_time is None else to_micros(window.after_time)
    for data, offset in lines_backwards(fd, end):
        if len(found) == head.active.entries:
            break
        try:
            fields = parse(data)
            ours = fields["raf"]
            if not is_entry(ours):
                if ours["kind"] == "splice":
                    _remove(removed, ours["removed"])
                continue
            place = place_of(Line(0, offset, len(data), fields), ours)
        except (ValueError, KeyError, TypeError):
            return None
        seq = place.seq
        active = not place.left_at and not any(a <= seq <= b for a, b in removed)
        if active:
            found[seq] = place, fields
        if place.left_at or "replaces" in ours:
            continue
        if (
            (window.after_seq is not None and seq <= window.after_seq + 1)
            or (moment is not None and active and place.stored_at <= moment)
            or (
                window.last is not None
                and len(found) >= window.last
                and sum([place >= seq for place in found]) >= window.last
            )
        ):
            break
    places = within([found[seq][0] for seq in sorted(found)], window)
    return [row_of(place, found[place.seq][1]) for place in places]


def _remove(removed: list[tuple[int, int]], runs: Sequence[Sequence[int]]) -> None:
    """Add runs of places; those of one trim after another become one."""
    for low, high in runs:
        if removed and removed[-1][0] == high + 1:
            removed[-1] = (low, removed[-1][1])
        else:
            removed.append((low, high))


def lines_backwards(fd: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Return the lines in front of an offset and where they are, the last first."""
    parts: list[bytes] = []  # of the line whose beginning is not read yet, from behind
    while end > 0:
        start = max(0, end - _BLOCK)
        first, *others = os.pread(fd, end - start, start).split(b"\n")
        at = end
        for other in reversed(others):
            at -= len(other)
            line = b"".join([other, *reversed(parts)])
            if line:
                yield line, at
            at -= 1
            parts = []
        parts.append(first)
        end = start
    line = b"".join(reversed(parts))
    if line:
        yield line, 0
