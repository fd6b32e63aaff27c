"""The journal in JSONL files: for people who read and grep their sessions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Final, Self

from typing_extensions import override

from raf_session.changes import NO_CHANGE, Change, StateDelta
from raf_session.clock import Clock, utc_now
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry, Record
from raf_session.errors import JournalClosedError, StorageError
from raf_session.journal import Codec, Commit, Durability, Order, Page, ScopedState
from raf_session.journals import _checks, _splices
from raf_session.journals._base import DurableJournal
from raf_session.journals._jsonl_changes import NO_ALTERATION, Alteration
from raf_session.journals._jsonl_files import BACKEND
from raf_session.journals._jsonl_folder import Folder
from raf_session.journals._jsonl_reads import Load
from raf_session.journals._jsonl_runner import Runner
from raf_session.journals._jsonl_splices import Splice
from raf_session.journals._jsonl_sweep import Sweep
from raf_session.journals._jsonl_writes import Append, Create, Delete, Update
from raf_session.journals._records import NO_STATE
from raf_session.journals._rules import Rules
from raf_session.journals._texts import Texts, Values
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Limits, NewSession, Query, Window

__all__ = ("JsonlJournal",)


def _warn(where: str, detail: str) -> None:
    warnings.warn(f"{where}: {detail}", RuntimeWarning, stacklevel=2)


class JsonlJournal(DurableJournal):
    """Sessions in append-only files, one each, shared by threads and processes.

    ``{base}/{agent}/{channel}/{scope}_{id}.jsonl`` for the keys of agents,
    ``{base}/{app}/{user}/{session}.jsonl`` for others.  A line is a message as the
    TPCLAW document has it; what that cannot say stands under ``raf``.  Beside the file
    may stand ``….head``, a cache that may be removed at any time.  ``.raf`` holds the
    locks, the state of users and apps, and the version.

    A short append or update is made on the thread of the event loop, where the lock is
    free and nothing has to be read anew; everything else runs in threads.

    A write that its writer's death cut off is removed by whoever opens the file next,
    and reported.  Lines that cannot be read are left where they are, skipped, and
    reported once for each journal; where `strict` is set they are
    `SessionDamagedError`.

    Args:
        path: the base directory; it is made where it is missing.
        limits: what to enforce.
        clock: whose time decides.
        codec: between JSON and the stored text.
        durability: ``kill``: what was acknowledged survives the death of every
            process; ``power``: it is on the disk before it is acknowledged.
        strict: whether a damaged line is an error.
        busy_timeout_secs: how long to wait for others that use the same session.
        report: called after the call with a session, in its text form, or a file,
            and with what was cut or skipped there; a `RuntimeWarning` where it is not
            given.

    Raises:
        ValueError: an empty path, a durability of another name, a negative time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limits: Limits | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
        durability: Durability = "kill",
        strict: bool = False,
        busy_timeout_secs: float = 30.0,
        report: Callable[[str, str], None] = _warn,
    ) -> None:
        name = os.fsdecode(path)
        if not name:
            raise ValueError("an empty path is no directory")
        if not busy_timeout_secs >= 0:
            raise ValueError(f"busy_timeout_secs={busy_timeout_secs} is negative")
        self._path = os.path.abspath(name)  # noqa: PTH100  (links stay as they are)
        self._strict: Final = strict
        self._busy_timeout_secs: Final = busy_timeout_secs
        self._report: Final = report
        super().__init__(Rules(BACKEND, limits or Limits(), clock), durability)
        self._bodies = BodyFormat(BACKEND, codec, self.limits.max_entry_bytes)
        self._values = Values(BACKEND, codec)
        self._runner: Runner | None = None

    @property
    def path(self) -> str:
        """The base directory, absolute."""
        return self._path

    # Opening and closing ---------------------------------------------------------

    @override
    async def __aenter__(self) -> Self:
        """Open the base directory, or make it.

        Raises:
            RuntimeError: the journal is open already.
            SchemaVersionError: a newer library made it; it is left as it is.
            StorageError: it cannot be made or read.
        """
        if self._runner is not None:
            raise RuntimeError("the jsonl journal is open already")
        kill = self._durability == "kill"
        folder = Folder(
            self._path,
            self._rules,
            self._bodies,
            self._values,
            synced=not kill,
            strict=self._strict,
            timeout_secs=self._busy_timeout_secs,
        )
        self._runner = runner = Runner(folder, inline=kill, report=self._report)
        try:
            await runner.run(lambda _: folder.open())
        except BaseException:
            self._runner = None
            raise
        return self

    @override
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close it, once its caches are written."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.close()

    def _opened(self) -> Runner:
        if self._runner is None:
            raise JournalClosedError(BACKEND)
        return self._runner

    # Writes ----------------------------------------------------------------------

    @override
    async def create(
        self,
        new: NewSession,
        entries: Sequence[Entry] = (),
        *,
        archived: Sequence[Entry] = (),
        change: Change | None = None,
    ) -> Commit:
        """Create a session; see `Journal.create`."""
        everything = (*archived, *entries)
        _checks.check_unique(new.key, everything)
        bodies = [self._bodies.encode(entry) for entry in everything]
        alteration = self._alteration(change)
        runner = self._opened()
        create = Create(runner.folder, new, entries, archived, bodies, alteration)
        return await runner.run(create.run)

    @override
    async def append(
        self,
        key: SessionKey,
        entries: Sequence[Entry],
        *,
        change: Change | None = None,
        trim: int | None = None,
        expected_revision: int | None = None,
        incarnation: str | None = None,
    ) -> Commit:
        """Add entries at the end; see `Journal.append`."""
        _checks.check_append(key, entries, trim)
        bodies = [self._bodies.encode(entry) for entry in entries]
        alteration = self._alteration(change)
        runner = self._opened()
        append = Append(
            runner.folder,
            key,
            entries,
            bodies,
            alteration,
            trim,
            expected_revision,
            incarnation,
        )
        return await runner.write(
            append.run, size=_size(bodies, alteration), entries=len(bodies)
        )

    @override
    async def splice(
        self,
        key: SessionKey,
        first: int,
        last: int,
        entries: Sequence[Entry] = (),
        *,
        tail: Sequence[Entry] = (),
        keep: Collection[int] = (),
        archive: bool,
        purge: bool = False,
        change: Change | None = None,
        expected_revision: int | None = None,
        incarnation: str | None = None,
    ) -> Commit:
        """Replace a run of active entries; see `Journal.splice`."""
        wanted = (*entries, *tail)
        _splices.check_splice(key, first, last, wanted, archive=archive, purge=purge)
        bodies = [self._bodies.encode(entry) for entry in wanted]
        runner = self._opened()
        splice = Splice(
            runner.folder,
            key,
            first,
            last,
            entries,
            tail,
            bodies,
            frozenset(keep),
            archive,
            purge,
            self._alteration(change),
            expected_revision,
            incarnation,
        )
        return await runner.run(splice.run)

    @override
    async def update(
        self,
        key: SessionKey,
        change: Change,
        *,
        expected_revision: int | None = None,
        incarnation: str | None = None,
    ) -> Commit:
        """Alter what the change names; see `Journal.update`."""
        alteration = self._alteration(change)
        runner = self._opened()
        update = Update(runner.folder, key, alteration, expected_revision, incarnation)
        return await runner.write(update.run, size=alteration.size)

    @override
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        """Remove a session; see `Journal.delete`."""
        runner = self._opened()
        return await runner.run(Delete(runner.folder, key, incarnation).run)

    def _alteration(self, change: Change | None) -> Alteration:
        if change is None or change is NO_CHANGE:
            return NO_ALTERATION
        return Alteration(change, self._values)

    # Reads -----------------------------------------------------------------------

    @override
    async def load(
        self,
        key: SessionKey,
        window: Window = WHOLE,
        *,
        refresh: bool = False,
        archived: bool = False,
    ) -> Record:
        """Read a session; see `Journal.load`."""
        runner = self._opened()
        load = Load(runner.folder, key, window, refresh, archived)
        return await runner.run(load.run)

    @override
    async def scan(
        self,
        query: Query,
        cursor: str | None = None,
        *,
        order: Order = "activity",
        limit: int = 100,
        state: bool = False,
    ) -> Page:
        """List sessions; see `Journal.scan`."""
        _checks.check_scan(order, limit)
        after = None if cursor is None else _checks.read_cursor(order, cursor)
        runner = self._opened()
        return await runner.run(
            lambda _: runner.listing.scan(query, after, order, limit, state=state)
        )

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        """Delete what has expired; see `Journal.expire`.

        What sessions recorded for scopes before their writers died is finished.  An
        error ends the call: with that error, or, where something was deleted before,
        with that, so that nothing goes unreported.
        """
        _checks.check_limit(limit)
        runner = self._opened()
        sweep = Sweep(runner.folder, runner.listing)
        gone: list[SessionKey | ScopeKey] = []
        try:
            await runner.run(lambda _: sweep.run(limit, gone, dry_run=dry_run))
        except StorageError:
            if not gone:
                raise
        return tuple(gone)

    # Scopes ----------------------------------------------------------------------

    @override
    async def scoped_state(
        self, scope: ScopeKey, *, refresh: bool = False
    ) -> ScopedState:
        """Read the state of an app or user; see `Journal.scoped_state`."""
        runner, rules = self._opened(), self._rules
        scopes = runner.folder.scopes

        def work(patient: bool) -> ScopedState:
            now = rules.now()
            if refresh:
                scopes.refresh(scope, now, patient=patient)
            found = scopes.read(scope, now)
            return NO_STATE if found is None else found.state(scope, self._values)

        return await runner.run(work)

    @override
    async def update_scoped_state(self, scope: ScopeKey, delta: StateDelta) -> None:
        """Set and delete keys; see `Journal.update_scoped_state`."""
        texts = Texts.of(delta, self._values)
        runner, rules = self._opened(), self._rules
        await runner.run(
            lambda patient: runner.folder.scopes.write(
                scope, texts, rules.now(), patient=patient
            )
        )

    @override
    async def scopes(self, app: str) -> tuple[ScopeKey, ...]:
        """Return the scopes that hold live state; see `Journal.scopes`."""
        app = ScopeKey(app).app
        runner, rules = self._opened(), self._rules
        return await runner.run(lambda _: runner.folder.scopes.live(app, rules.now()))


def _size(bodies: Sequence[str], alteration: Alteration) -> int:
    return sum(map(len, bodies)) + alteration.size
