"""Private throw-away servers: a folder, a process and its end."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Final, Self, TypeVar

__all__ = ("PrivateServer", "free_port", "once")

_T = TypeVar("_T")

_PREFIX: Final = "raf-test-"
_UP_SECS: Final = 60.0

# A server ends with the *thread* that started it, so one thread starts them all.
_STARTER: Final = ThreadPoolExecutor(1, thread_name_prefix="servers")
_LOCK: Final = threading.Lock()


def once(make: Callable[[], _T]) -> Callable[[], _T]:
    """Return a function that makes something at its first call, for the whole run."""
    made: list[_T] = []

    def get() -> _T:
        with _LOCK:
            if not made:
                made.append(make())
        return made[0]

    return get


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class PrivateServer(ABC):
    """A server in a folder of its own, which ends with this process at the latest.

    Args:
        user: who runs it, where this process may choose; `None`: whoever we are.

    Attributes:
        folder: its files; short enough for a socket's path.
        port: on 127.0.0.1, the same after a restart.
        url: where it answers.
    """

    stop_signal: signal.Signals = signal.SIGTERM
    """What makes it end at once, in order."""

    def __init__(self, user: str | None = None) -> None:
        _sweep()
        self._user = user if os.geteuid() == 0 else None
        self.folder = Path(mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        if self._user is not None:
            shutil.chown(self.folder, self._user, self._user)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it answers."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """Return what starts it in the foreground."""

    @abstractmethod
    def _answers(self) -> bool:
        """Tell whether it takes queries."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process that may be killed."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = _STARTER.submit(self._start).result()
        until = time.monotonic() + _UP_SECS
        while not self._answers():
            assert time.monotonic() < until, self.log()
            time.sleep(0.01)
            if self._process.poll() is not None:
                # What a kill left behind of the one before is not gone yet.
                time.sleep(0.2)
                self._process = _STARTER.submit(self._start).result()

    def _start(self) -> subprocess.Popen[bytes]:
        command = list(self._command())
        if setpriv := shutil.which("setpriv"):
            command = [setpriv, "--pdeathsig", self.stop_signal.name[3:], *command]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user else None,
                start_new_session=True,
            )

    def run(self, *command: str) -> None:
        """Run a program as the server's user, to its end."""
        with (self.folder / "log").open("ab") as log:
            subprocess.run(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user else None,
                check=True,
            )

    def log(self) -> str:
        """Return what it has said."""
        return (self.folder / "log").read_text(errors="replace")

    def kill(self) -> None:
        """End it with SIGKILL, its children too."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(self.stop_signal)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if how is signal.SIGKILL:
            os.killpg(process.pid, how)
        else:
            process.send_signal(how)
        process.wait(_UP_SECS)

    def close(self) -> None:
        """End it and remove its folder; idempotent."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)


def _sweep() -> None:
    """Remove the folders of runs that were killed."""
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdecimal() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
