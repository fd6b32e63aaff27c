"""Which cores a measurement runs on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ("apart",)


@contextmanager
def apart(server: int | None) -> Iterator[None]:
    """Keep this thread on one core, and a server off it, as on machines of their own.

    The scheduler puts a client and a server that wait for each other on one core or on
    two. A round trip on one takes half as long, so that two contenders would be
    compared by what each has met. Connections have to be made inside: what serves them
    begins where the server is then. Nothing is done with a single core, and on systems
    that cannot say it.

    Args:
        server: the process, `None`: there is none.
    """
    if server is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        yield
        return
    ours = {min(cores)}
    _move(server, cores - ours)
    os.sched_setaffinity(0, ours)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        _move(server, cores)


def _move(process: int, cores: set[int]) -> None:
    """Let all threads of a process run on these cores."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)
