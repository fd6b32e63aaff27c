"""`copy`: all sessions of one journal into another, as often as is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from raf_session.changes import Change, StateDelta
from raf_session.clock import UNIX_EPOCH, to_micros, utc
from raf_session.entries import Record, SessionHead
from raf_session.errors import (
    CopyMismatchError,
    EntryTooLargeError,
    SchemaVersionError,
    SessionDamagedError,
    SessionExistsError,
    SessionNotFoundError,
)
from raf_session.expiry import ExpiryRule
from raf_session.journal import Commit, Journal
from raf_session.json_text import dump_json
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import HEAD_ONLY, WHOLE, Query
from raf_session.transfer.copy_report import Conflict, CopyReport, Failure
from raf_session.transfer.images import (
    change_of,
    check_counts,
    new_session,
    record_image,
)
from raf_session.transfer.listing import Listing

__all__ = ("OnExists", "copy")

OnExists: TypeAlias = Literal["complete", "skip"]
"""What to do with a session that the target has: `complete` an earlier copy of it, or
`skip` it without looking at it."""

_EVERYTHING: Final = Query()
_UNCOPIED: Final = (SessionDamagedError, EntryTooLargeError, SchemaVersionError)
"""Errors that concern one session or scope, so that the next can be copied."""


async def copy(
    source: Journal,
    target: Journal,
    *,
    query: Query = _EVERYTHING,
    on_exists: OnExists = "complete",
) -> CopyReport:
    """Copy sessions, and the states of their users and apps, into another journal.

    A copy has the key, times, entries (id, kind, body, `stored_at` and order), archive,
    states, provider states, request record, title, model, labels, status, pin, type and
    `forked_from` of the session; incarnation, revision and places are the target's.
    Each session is read and created as it is at one moment, so the memory needed is
    that of the largest.  What has expired in either journal is not copied.

    It may be repeated, after an error or the end of the process too: what is there
    already is not written again, and a copy that nobody has written to in the target
    is replaced where the session has changed in the source.  Anything else that stands
    in the target is left as it is and reported as a conflict.  Replacing removes the
    earlier copy first, so nobody should write to the target meanwhile.

    Of the states of users and apps, keys that the target lacks are set; a key that has
    another value there is a conflict.  Where the query asks for no more than app and
    user, the states of users without a session are copied too; those of an app without
    any session only where the query names the app.

    What cannot be read, or is over a limit of the target, stands in `failures`, and
    the next is copied.  A session is read together with the states of its user and
    app: where one of these cannot be read, the session cannot be copied either.

    Args:
        source: what to copy from, open; it is only read.
        target: where to, open.
        query: which sessions.
        on_exists: whether to look at sessions that the target has.

    Returns:
        What was done; `complete` says whether something stands against it.

    Raises:
        CopyMismatchError: the target counts other entries or sessions than it was
            given.
        StorageError: a journal failed; repeat the call to go on.
        ValueError: both journals are one object, or `on_exists` has no such value.
    """
    if source is target:
        raise ValueError("a journal cannot be copied into itself")
    if on_exists not in {"complete", "skip"}:
        raise ValueError(f"on_exists={on_exists!r} is neither complete nor skip")
    return await _Copy(source, target, query, on_exists).run()


class _Copy:
    def __init__(
        self, source: Journal, target: Journal, query: Query, on_exists: OnExists
    ) -> None:
        self._source = source
        self._target = target
        self._query = query
        self._skips = on_exists == "skip"
        self._rule = ExpiryRule(target.limits.sessions)
        self._copied = self._completed = self._unchanged = 0
        self._skipped = self._expired = self._entries = self._state_keys = 0
        self._conflicts: list[Conflict] = []
        self._failures: list[Failure] = []
        self._app: str | None = None
        self._user: str | None = None
        self._by_user = False

    async def run(self) -> CopyReport:
        if self._query.app is not None:
            await self._enter_app(self._query.app)
        listing = Listing(self._source, self._query)
        while (page := await listing.page()) is not None:
            for head in page.heads:
                await self._enter(head.key)
                await self._copy_session(head.key)
            if page.damaged is not None:
                await self._enter(page.damaged.key)
                self._failures.append(Failure(*page.damaged))
        await self._check_all()
        return CopyReport(
            self._copied,
            self._completed,
            self._unchanged,
            self._skipped,
            self._expired,
            self._entries,
            self._state_keys,
            tuple(self._conflicts),
            tuple(self._failures),
        )

    # Sessions --------------------------------------------------------------------

    async def _copy_session(self, key: SessionKey) -> None:
        await checkpoint()  # a journal in memory never waits
        try:
            if self._skips and await _found(self._target, key, whole=False):
                self._skipped += 1
                return
            record = await _found(self._source, key)
            if record is None:
                return  # it has gone since it was listed
            if self._rule.head_expired(
                record.head, to_micros(utc(self._target.clock()))
            ):
                self._expired += 1
                return
            await self._bring(record)
        except _UNCOPIED as error:
            self._failures.append(Failure(key, error))

    async def _bring(self, record: Record) -> None:
        key = record.head.key
        there = await _found(self._target, key)
        try:
            if there is None:
                self._count(record, await self._create(record))
                self._copied += 1
            else:
                await self._complete(record, there)
        except SessionExistsError:
            rival = await _found(self._target, key)
            if rival is not None and record_image(rival) == record_image(record):
                self._unchanged += 1  # another copy was at work
            else:
                self._conflicts.append(Conflict(key, "it was created during the copy"))

    async def _complete(self, record: Record, there: Record) -> None:
        """Make what is there the same, where it is an earlier copy."""
        head = record.head
        wanted, found = record_image(record), record_image(there)
        changed = {name for name in wanted if wanted[name] != found[name]}
        if changed <= {"last_active_at"}:
            if there.head.last_active_at < head.last_active_at:
                await self._target.update(
                    head.key,
                    Change(touch=head.last_active_at),
                    incarnation=there.head.incarnation,
                )
            self._unchanged += 1
            return
        reason = _objection(head, there.head)
        if head.created_at == UNIX_EPOCH and not _contains(wanted, found):
            reason = "it is another session: it never told when it began"
        if reason:
            self._conflicts.append(Conflict(head.key, reason))
            return
        with anyio.CancelScope(shield=True):
            await self._replace(there, record)
        self._completed += 1

    async def _replace(self, there: Record, record: Record) -> None:
        key, incarnation = there.head.key, there.head.incarnation
        await self._target.delete(key, incarnation=incarnation)
        try:
            self._count(record, await self._create(record))
        except (CopyMismatchError, SessionExistsError):
            raise
        except Exception:
            await self._create(there)
            raise

    async def _create(self, record: Record) -> Commit:
        return await self._target.create(
            new_session(record.head),
            record.entries,
            archived=record.archived,
            change=change_of(record),
        )

    def _count(self, record: Record, commit: Commit) -> None:
        self._entries += check_counts(record, commit).entries

    async def _check_all(self) -> None:
        """Compare how many sessions there are; where none can expire meanwhile."""
        expected = self._copied + self._completed + self._unchanged
        if self._rule.enabled or not expected:
            return
        narrow = self._query
        query = Query(app=narrow.app, user=narrow.user, scope=narrow.scope)
        found = 0
        listing = Listing(self._target, query)
        while (page := await listing.page()) is not None:
            found += len(page.heads)
        if found < expected:
            raise CopyMismatchError("", f"{expected} sessions", f"{found} sessions")

    # Scopes ----------------------------------------------------------------------

    @property
    def _narrowed(self) -> bool:
        """Whether the query asks for more than app and user."""
        query = self._query
        return query != Query(app=query.app, user=query.user)

    async def _enter(self, key: SessionKey) -> None:
        """Copy the states that this session is the first to have a part in."""
        if key.app != self._app:
            await self._enter_app(key.app)
        if self._by_user and key.user != self._user:
            self._user = key.user
            await self._copy_scope(ScopeKey(key.app, key.user))

    async def _enter_app(self, app: str) -> None:
        self._app, self._user = app, None
        self._by_user = self._narrowed
        scopes: tuple[ScopeKey, ...] = (ScopeKey(app),)
        if not self._narrowed:
            try:
                scopes = await self._source.scopes(app)
            except _UNCOPIED as error:
                self._failures.append(Failure(ScopeKey(app), error))
                self._by_user = True
        for scope in scopes:
            if self._query.user is None or scope.user in {None, self._query.user}:
                await self._copy_scope(scope)

    async def _copy_scope(self, scope: ScopeKey) -> None:
        try:
            await self._bring_scope(scope)
        except _UNCOPIED as error:
            self._failures.append(Failure(scope, error))

    async def _bring_scope(self, scope: ScopeKey) -> None:
        wanted = (await self._source.scoped_state(scope)).state
        if not wanted:
            return
        found = (await self._target.scoped_state(scope)).state
        missing = {name: value for name, value in wanted.items() if name not in found}
        if missing:
            await self._target.update_scoped_state(scope, StateDelta(missing))
            self._state_keys += len(missing)
        others = [
            name
            for name, value in wanted.items()
            if name in found and dump_json(found[name]) != dump_json(value)
        ]
        if others:
            names = ", ".join(map(repr, others))
            self._conflicts.append(
                Conflict(scope, f"the state has other values of {names}")
            )


async def _found(
    journal: Journal, key: SessionKey, *, whole: bool = True
) -> Record | None:
    try:
        return await journal.load(key, WHOLE if whole else HEAD_ONLY, archived=whole)
    except SessionNotFoundError:
        return None


def _objection(head: SessionHead, there: SessionHead) -> str:
    """Say why what is there is no untouched earlier copy; empty where it is one."""
    same = ("created_at", "session_type", "forked_from")
    if any(getattr(head, name) != getattr(there, name) for name in same):
        return "it is another session"
    if there.revision != 1:
        return "it was changed since it came there"
    if there.updated_at > head.updated_at or there.last_active_at > head.last_active_at:
        return "it is newer than what would be copied"
    return ""


def _contains(wanted: dict[str, Any], found: dict[str, Any]) -> bool:
    """Tell whether every entry of the one is among those of the other."""
    return set(_entries(found)) <= set(_entries(wanted))


def _entries(image: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for entry_id, _, _, body in (*image["archived"], *image["entries"]):
        yield entry_id, body
