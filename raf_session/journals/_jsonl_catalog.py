"""The heads of all files as a listing needs them, and a file that keeps them.

The file is a cache: where it is missing or torn, sidecars are read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.journals._jsonl_batches import parse
from raf_session.journals._jsonl_files import read_file, replace_file
from raf_session.journals._jsonl_sidecars import head_of, head_values
from raf_session.json_text import dump_json, load_written

__all__ = ("Seen", "read_catalog", "write_catalog")

_VERSION: Final = 1


class Seen(NamedTuple):
    """A session as a listing saw it, and the file as it was then."""

    inode: int
    size: int
    changed_ns: int
    rank: tuple[int, tuple[str, ...]]
    """Minus its last activity, then its key."""
    created_at: int
    pinned: bool
    labels: str
    """Its labels, each between two NULs; no name holds one."""
    text: str
    """Its head."""

    @classmethod
    def of(cls, status: os.stat_result, head: SessionHead) -> Seen:
        """Return a session that was just read."""
        labels = "\0".join(sorted(head.labels))
        return cls(
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            (-to_micros(head.last_active_at), tuple(head.key)),
            to_micros(head.created_at),
            head.pinned,
            f"\0{labels}\0",
            dump_json(head_values(head)),
        )

    @property
    def head(self) -> SessionHead:
        """Its head."""
        return head_of(load_written(self.text))


def read_catalog(path: str, root: str) -> dict[str, Seen]:
    """Return what the file keeps, by path; nothing where it cannot be used."""
    data = read_file(path)
    if not data:
        return {}
    try:
        found = parse(data)
        if found["version"] != _VERSION:
            return {}
        rows: list[list[Any]] = found["sessions"]
        return {
            f"{root}/{name}": _seen([*stamp, (rank, tuple(key)), *rest])
            for name, stamp, rank, key, *rest in rows
        }
    except (ValueError, TypeError, KeyError):
        return {}


def _seen(fields: list[Any]) -> Seen:
    return Seen(*fields)


def write_catalog(path: str, root: str, sessions: Mapping[str, Seen]) -> None:
    """Write the file in one step; the caller holds a lock over its path."""
    rows: list[list[Any]] = []
    for name, seen in sessions.items():
        rank, key = seen.rank
        rows.append([name[len(root) + 1 :], seen[:3], rank, key, *seen[4:]])
    text = dump_json({"version": _VERSION, "sessions": rows})
    replace_file(path, text.encode(), synced=False)
