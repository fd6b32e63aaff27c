"""The files of sessions as a listing saw them, and a file that keeps that.

The file is a cache: where it is missing or torn, folders and sidecars are read.  Its
first line is a checksum, the second holds a column for each thing that is known of all
sessions; then comes a line for the head of each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, NamedTuple

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.journals._jsonl_batches import parse
from raf_session.journals._jsonl_files import read_file, replace_file, sealed, unsealed
from raf_session.journals._jsonl_sidecars import head_of, head_values
from raf_session.json_text import dump_json, load_written

__all__ = (
    "Branch",
    "Leaf",
    "Seen",
    "key_of",
    "rank_of",
    "read_catalog",
    "write_catalog",
)

_VERSION: Final = 2
_UNSETTLED: Final = -1
"""In the place of a time stamp that another change may bear too."""


class Seen(NamedTuple):
    """A session as a listing saw it, and the file as it was then."""

    inode: int
    size: int
    changed_ns: int
    path: str
    rank: tuple[int, tuple[str, ...]]
    """Minus its last activity, then its key."""
    created_at: int
    pinned: bool
    labels: str
    """Its labels, each between two NULs; no name holds one."""
    text: bytes
    """Its head."""

    @classmethod
    def of(
        cls, path: str, status: os.stat_result, head: SessionHead, *, settled: bool
    ) -> Seen:
        """Return a session that was just read."""
        return cls(
            status.st_ino,
            status.st_size,
            status.st_mtime_ns if settled else _UNSETTLED,
            path,
            (-to_micros(head.last_active_at), tuple(head.key)),
            to_micros(head.created_at),
            head.pinned,
            "".join([f"\0{label}\0" for label in sorted(head.labels)]),
            dump_json(head_values(head)).encode(),
        )

    @property
    def head(self) -> SessionHead:
        """Its head."""
        return head_of(load_written(self.text))


class Leaf(NamedTuple):
    """A folder as a listing saw it."""

    stamp: tuple[int, ...] | None
    """Its inode and times; `None`: names may be added to it that change neither."""
    files: Mapping[str, Seen | None]
    """By path; `None` for what is no session, or not known as one."""
    folders: tuple[str, ...]
    """The paths of the folders in it."""


rank_of: Final[Callable[[Seen], tuple[int, tuple[str, ...]]]] = attrgetter("rank")
"""Returns by what sessions are in order of their activity."""


def key_of(seen: Seen) -> tuple[str, ...]:
    """Return by what sessions are in order of their keys."""
    return seen.rank[1]


@dataclass(slots=True)
class Branch:
    """The folder of an app with all that is in it, as a listing saw it.

    Attributes:
        leaves: its folders, by path.
        active: its sessions, the one last active first; those alike by key.
    """

    leaves: Mapping[str, Leaf]
    active: list[Seen]
    _by_key: list[Seen] | None = field(default=None, repr=False)

    @property
    def by_key(self) -> list[Seen]:
        """Its sessions in order of their keys."""
        found = self._by_key
        if found is None:
            found = self._by_key = sorted(self.active, key=key_of)
        return found

    def changed(
        self, leaves: Mapping[str, Leaf], gone: Collection[Seen], fresh: list[Seen]
    ) -> Branch:
        """Return it with other folders, without some sessions and with others."""
        if not gone and not fresh:
            return Branch(leaves, self.active, self._by_key)
        lost = set(map(id, gone))
        active = [seen for seen in self.active if id(seen) not in lost] + fresh
        active.sort(key=rank_of)
        if self._by_key is None:
            return Branch(leaves, active)
        by_key = [seen for seen in self._by_key if id(seen) not in lost] + fresh
        by_key.sort(key=key_of)
        return Branch(leaves, active, by_key)

    def shortened(self, most: int) -> Branch:
        """Return it with so many sessions, those last active."""
        lost = {seen.path for seen in self.active[most:]}
        leaves = {
            path: leaf._replace(
                files={
                    name: None if name in lost else seen
                    for name, seen in leaf.files.items()
                }
            )
            for path, leaf in self.leaves.items()
        }
        return Branch(leaves, self.active[:most])


# The file --------------------------------------------------------------------------


def read_catalog(path: str, root: str) -> dict[str, Branch]:
    """Return the branches that the file keeps, by path; none where it is of no use."""
    try:
        data = unsealed(read_file(path))
    except OSError:
        return {}  # each folder tells whether it can be read
    if not data:
        return {}
    try:
        first, *texts = data.split(b"\n")
        table = parse(first)
        return _branches(root, table, texts) if table["version"] == _VERSION else {}
    except (ValueError, TypeError, KeyError, IndexError):
        return {}


def _branches(
    root: str, table: dict[str, Any], texts: list[bytes]
) -> dict[str, Branch]:
    folders = [f"{root}/{name}" for name in table["folders"]]
    files: list[dict[str, Seen | None]] = [{} for _ in folders]
    ranks = zip(table["active"], zip(*table["keys"], strict=True), strict=True)
    places = table["places"]
    paths = [
        f"{folders[place]}/{name}"
        for place, name in zip(places, table["names"], strict=True)
    ]
    every = list(
        map(
            Seen._make,
            zip(*table["stamps"], paths, ranks, *table["others"], texts, strict=True),
        )
    )
    for seen, place in zip(every, places, strict=True):
        files[place][seen.path] = seen
    leaves = [
        Leaf(
            None if stamp is None else tuple(stamp),
            files[place],
            tuple([f"{folders[place]}/{name}" for name in names]),
        )
        for place, (stamp, names) in enumerate(table["leaves"])
    ]
    branches: dict[str, Branch] = {}
    leaf = row = 0
    for leaf_end, row_end in table["ends"]:
        kept = dict(zip(folders[leaf:leaf_end], leaves[leaf:leaf_end], strict=True))
        branches[folders[leaf]] = Branch(kept, every[row:row_end])
        leaf, row = leaf_end, row_end
    return branches


def write_catalog(path: str, root: str, branches: Iterable[Branch]) -> None:
    """Write the file in one step; the caller holds a lock over its path."""
    folders: dict[str, int] = {}
    leaves: list[Any] = []
    every: list[Seen] = []
    ends: list[tuple[int, int]] = []
    for branch in branches:
        for folder, leaf in branch.leaves.items():
            folders[folder] = len(folders)
            known = None not in leaf.files.values()
            names = [name[len(folder) + 1 :] for name in leaf.folders]
            leaves.append((leaf.stamp if known else None, names))
        every += branch.active
        ends.append((len(folders), len(every)))
    paths = [seen.path.rpartition("/") for seen in every]
    table = {
        "version": _VERSION,
        "folders": [folder[len(root) + 1 :] for folder in folders],
        "leaves": leaves,
        "ends": ends,
        "places": [folders[folder] for folder, _, _ in paths],
        "names": [name for _, _, name in paths],
        "stamps": [[seen[i] for seen in every] for i in range(3)],
        "active": [seen.rank[0] for seen in every],
        "keys": [[seen.rank[1][i] for seen in every] for i in range(4)],
        "others": [[seen[i] for seen in every] for i in range(5, 8)],
    }
    data = b"\n".join([dump_json(table).encode(), *[seen.text for seen in every]])
    replace_file(path, sealed(data), synced=False)
