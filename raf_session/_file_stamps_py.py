"""Files that changed, in pure Python; ``ext/_file_stamps.pyx`` finds the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

__all__ = ("changed_files",)


def changed_files(
    folder: str,  # noqa: ARG001  (the compiled twin opens it)
    files: Mapping[str, tuple[Any, ...] | None],
) -> list[str]:
    """Return the paths of the files that are not as they were seen, in any order.

    The system is asked once for each file; links are followed.  A file that cannot be
    looked at has changed.

    Args:
        folder: where all of them are.
        files: by path, the inode, size in bytes and time of the last change in
            nanoseconds with which each was seen, and whatever else; `None`: it has
            changed, and is not looked at.
    """
    changed: list[str] = []
    ask = os.stat
    for path, seen in files.items():
        if seen is not None:
            try:
                status = ask(path)
            except OSError:
                pass  # whoever reads it is told why
            else:
                if (
                    status.st_mtime_ns == seen[2]
                    and status.st_size == seen[1]
                    and status.st_ino == seen[0]
                ):
                    continue
        changed.append(path)
    return changed
