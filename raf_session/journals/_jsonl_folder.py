# Paths are strings here: `Path` costs more than the calls.
"""The base directory, and one session's file while its lock is held."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from raf_session.encoding import BodyFormat
from raf_session.errors import SchemaVersionError, SessionError, StorageError
from raf_session.journals._jsonl_batches import parse
from raf_session.journals._jsonl_files import (
    BACKEND,
    Busy,
    make_folder,
    read_file,
    replace_file,
)
from raf_session.journals._jsonl_locks import Locks
from raf_session.journals._jsonl_logs import Log, Logs
from raf_session.journals._jsonl_scopes import Scopes
from raf_session.journals._jsonl_sidecars import identify, same_file
from raf_session.journals._rules import Rules
from raf_session.journals._texts import Values
from raf_session.json_text import dump_json
from raf_session.key_paths import session_path
from raf_session.keys import SessionKey

__all__ = ("OWN_FOLDER", "Folder")

OWN_FOLDER: Final = ".raf"
"""Where locks, scopes and the version are; no key's folder begins with a dot."""
_VERSION: Final = 1
_GAP: Final = 4096
"""Bytes between two entries that are rather read than skipped."""


class Folder:
    """A base directory, opened.

    Args:
        root: the directory.
        rules: limits and clock of the journal.
        bodies: how entries become text.
        values: how states become text.
        synced: whether to have all on the disk before it is acknowledged.
        strict: whether damage is an error.
        timeout_secs: how long to wait for a lock.

    Attributes:
        made: how many files were made or replaced.
    """

    def __init__(
        self,
        root: str,
        rules: Rules,
        bodies: BodyFormat,
        values: Values,
        *,
        synced: bool,
        strict: bool,
        timeout_secs: float,
    ) -> None:
        self.root = root
        self.rules = rules
        self.bodies = bodies
        self.values = values
        self.synced = synced
        self.strict = strict
        own = f"{root}/{OWN_FOLDER}"
        self.locks = Locks(root, f"{own}/locks", timeout_secs)
        self.logs = Logs()
        self.scopes = Scopes(f"{own}/scopes", rules, self.locks, synced=synced)
        self.made = 0
        self._reports: list[tuple[str, str]] = []

    def open(self) -> None:
        """Make the directory where it is missing, and look at its version.

        Raises:
            SchemaVersionError: a newer library made it; it is left as it is.
            StorageError: its version cannot be read.
        """
        own = f"{self.root}/{OWN_FOLDER}"
        path = f"{own}/version.json"
        data = read_file(path)
        if data:
            try:
                version = parse(data)["schema"]
            except (ValueError, KeyError) as error:
                raise StorageError(BACKEND, f"{path}: {error}") from error
            if version > _VERSION:
                raise SchemaVersionError(BACKEND, version, _VERSION)
        for name in ("locks", "scopes"):
            make_folder(f"{own}/{name}", synced=self.synced)
        if not data:
            text = dump_json({"schema": _VERSION})
            with self.locks.hold("base", own, patient=True):
                replace_file(path, text.encode(), synced=self.synced)

    def close(self) -> None:
        """Write the sidecars that are behind, and forget all files."""
        self.save([*self.logs.due(), *self.logs.clear()], patient=True)

    def path(self, key: SessionKey) -> str:
        """Return the file of a session."""
        return f"{self.root}/{session_path(key)}"

    def save(self, logs: Iterable[Log], *, patient: bool) -> None:
        """Write the sidecars of files that are used no longer."""
        for log in logs:
            # A sidecar is only a cache: whoever misses it reads more.
            with (
                suppress(Busy, OSError, SessionError),
                self.locks.hold("session", log.path, patient=patient),
            ):
                fd = os.open(log.path, os.O_RDONLY)
                try:
                    if same_file(log.identity, identify(fd)):
                        log.save()
                finally:
                    os.close(fd)

    # Reports ---------------------------------------------------------------------

    def report(self, where: object, detail: str) -> None:
        """Have told, after the call, what was cut or skipped in a session or file."""
        self._reports.append((str(where), detail))

    def tell(self, hook: Callable[[str, str], None]) -> None:
        """Tell what is to be told."""
        while self._reports:
            hook(*self._reports.pop(0))
