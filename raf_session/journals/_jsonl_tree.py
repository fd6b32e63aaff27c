"""The folders and files of sessions, looked at anew by each listing.

A file is read where its inode, size or time stamp is another than before, a folder
where its inode or times are: so all that a listing costs, where nothing changed, is to
ask the system for the status of each.
"""

# Paths are strings here: `Path` costs more than the calls.
# ruff: noqa: PTH116

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from raf_session.entries import SessionHead
from raf_session.journals._jsonl_catalog import (
    Branch,
    Leaf,
    Seen,
    read_catalog,
    write_catalog,
)
from raf_session.journals._jsonl_files import Busy, remove_file
from raf_session.journals._jsonl_folder import OWN_FOLDER, Folder
from raf_session.journals._jsonl_locks import Mutex
from raf_session.key_paths import safe_component

if TYPE_CHECKING or os.environ.get("RAF_SESSION_PURE") == "1":
    from raf_session._file_stamps_py import changed_files
else:
    try:
        from raf_session._file_stamps import changed_files
    except ModuleNotFoundError:  # a pure build; a broken one still raises
        from raf_session._file_stamps_py import changed_files

__all__ = ("Tree",)

_MAX_HEADS: Final = 100_000
"""As many heads are kept."""
_SETTLED_NS: Final = 100_000_000
"""What changed so short ago may change again at the same time stamp."""
_COARSE_NS: Final = 3_000_000_000
"""The same where time stamps are whole seconds: some file systems have no others."""
_SLACK_NS: Final = 3_000_000_000
"""By so much a folder's date may be before that of the file added to it."""
_SECOND_NS: Final = 1_000_000_000
_NEWS: Final = 100
"""The catalog is written when it lacks so many heads."""
_DEPTH: Final = 3
"""In so many folders a session's file is, one inside the other."""
_ABSENT: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
_NO_LEAF: Final = Leaf(None, {}, ())
_NO_BRANCH: Final = Branch({}, [])

Read = Callable[[str, os.stat_result], SessionHead | None]
"""Reads the head of a file; `None`: it is no session's."""


class Tree:
    """The branches of a base directory: the folder of each app, with all in it.

    What is kept is replaced, never changed: several threads may look at once.

    Args:
        folder: the base directory.
        read: how to read a head.
    """

    def __init__(self, folder: Folder, read: Read) -> None:
        self._folder = folder
        self._read = read
        self._path = f"{folder.root}/{OWN_FOLDER}/catalog.json"
        self._branches: dict[str, Branch] | None = None
        self._dated = False
        self._news = 0
        self._mutex = Mutex()

    def look(self, app: str | None = None) -> list[Branch]:
        """Return the branch of an app, or all of them, as they are now."""
        root = self._folder.root
        with self._mutex:
            known = self._branches
            if known is None:
                self._dated = _dates_folders(f"{root}/{OWN_FOLDER}")
                known = self._branches = read_catalog(self._path, root)
        if app is not None:
            tops = [f"{root}/{safe_component(app)}"]
        else:
            with os.scandir(root) as found:
                names = [entry.name for entry in found if entry.is_dir()]
            tops = [f"{root}/{name}" for name in names if name != OWN_FOLDER]
        seen = {top: self._branch(top, known.get(top, _NO_BRANCH)) for top in tops}
        with self._mutex:
            self._branches = _bounded(seen if app is None else known | seen)
        return list(seen.values())

    def _branch(self, top: str, known: Branch) -> Branch:
        leaves: dict[str, Leaf] = {}
        gone: list[Seen] = []
        fresh: list[Seen] = []
        waiting = [(top, 1)]
        while waiting:
            path, depth = waiting.pop()
            before = known.leaves.get(path, _NO_LEAF)
            now_ns = time.time_ns()
            try:
                leaf = _leaf(path, before, now_ns if self._dated else 0)
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                continue  # it has gone meanwhile
            changes = self._changes(path, leaf.files, now_ns)
            old = before.files
            touched = changes if leaf is before else old
            if changes:
                leaf = leaf._replace(files={**leaf.files, **changes})
                fresh += filter(None, changes.values())
            new = leaf.files
            gone += [
                seen
                for name in touched
                if (seen := old.get(name)) is not None and new.get(name) is not seen
            ]
            leaves[path] = leaf
            if depth < _DEPTH:
                waiting += [(name, depth + 1) for name in leaf.folders]
        for path in known.leaves.keys() - leaves.keys():
            gone += filter(None, known.leaves[path].files.values())
        if fresh:
            with self._mutex:
                self._news += len(fresh)
        return known.changed(leaves, gone, fresh)

    def _changes(
        self, folder: str, files: Mapping[str, Seen | None], now_ns: int
    ) -> dict[str, Seen | None]:
        """Return what is to be known of the files that are not as they were seen."""
        changes: dict[str, Seen | None] = {}
        for path in changed_files(folder, files):
            seen = files[path]
            try:
                status = os.stat(path)
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                if seen is not None:
                    changes[path] = None
                continue
            settled = _settled(status.st_mtime_ns, now_ns)
            head = None
            if status.st_size and stat.S_ISREG(status.st_mode):
                head = self._read(path, status)
            if head is not None:
                changes[path] = Seen.of(path, status, head, settled=settled)
            elif seen is not None:
                changes[path] = None
        return changes

    # The catalog -----------------------------------------------------------------

    def close(self) -> None:
        """Write the catalog, where many sessions were made."""
        with suppress(OSError):  # a cache
            if self._folder.made >= _NEWS:
                self.look()
        self.save()

    def save(self) -> None:
        """Write the catalog, where it lacks much."""
        with self._mutex:
            branches, news = self._branches, self._news
            if branches is None or news < _NEWS:
                return
            self._news = 0
        # A catalog is only a cache: whoever misses it reads sidecars.
        with (
            suppress(OSError, Busy),
            self._folder.locks.hold("base", self._path, patient=False),
        ):
            write_catalog(self._path, self._folder.root, branches.values())


def _dates_folders(path: str) -> bool:
    """Tell whether the file system dates a folder to which a name is added.

    Those do not that stand before an object store, or the like.
    """
    probe = f"{path}/probe.tmp"
    try:
        fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            made_ns = os.fstat(fd).st_mtime_ns
        finally:
            os.close(fd)
            remove_file(probe)
        status = os.stat(path)
    except OSError:
        return False
    return min(status.st_mtime_ns, status.st_ctime_ns) >= made_ns - _SLACK_NS


def _leaf(path: str, before: Leaf, now_ns: int) -> Leaf:
    """Return a folder as it is now, what is known of its files with it.

    Args:
        path: the folder.
        before: what is known of it.
        now_ns: the time, 0 where those of folders say nothing.
    """
    status = os.stat(path)
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    stamp = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    if now_ns and stamp == before.stamp:
        return before
    settled = _settled(changed, now_ns)
    files: dict[str, Seen | None] = {}
    folders: list[str] = []
    with os.scandir(path) as found:
        for entry in found:
            name = entry.path
            if name.endswith(".jsonl"):
                files[name] = before.files.get(name)
            elif "." not in entry.name and (entry.is_symlink() or entry.is_dir()):
                folders.append(name)  # where a link leads is seen when it is looked at
    return Leaf(stamp if settled and now_ns else None, files, tuple(folders))


def _settled(changed_ns: int, now_ns: int) -> bool:
    room = _SETTLED_NS if changed_ns % _SECOND_NS else _COARSE_NS
    return now_ns - changed_ns > room


def _bounded(branches: dict[str, Branch]) -> dict[str, Branch]:
    room = _MAX_HEADS
    if sum([len(branch.active) for branch in branches.values()]) <= room:
        return branches
    kept: dict[str, Branch] = {}
    for path, branch in branches.items():
        kept[path] = branch if len(branch.active) <= room else branch.shortened(room)
        room -= len(kept[path].active)
    return kept
