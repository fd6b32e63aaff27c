"""The journal in Redis: many nodes, one server or a cluster of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Final, Self, cast

from typing_extensions import override

from raf_session.changes import NO_CHANGE, Change, StateDelta
from raf_session.clock import Clock, utc_now
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry, Record
from raf_session.errors import JournalClosedError, StorageError
from raf_session.journal import Codec, Commit, Durability, Order, Page, ScopedState
from raf_session.journals import _checks, _splices
from raf_session.journals._base import DurableJournal
from raf_session.journals._redis_appends import Append
from raf_session.journals._redis_clients import Client, client_maker, handed_in
from raf_session.journals._redis_core import Core, protected
from raf_session.journals._redis_creates import Create, Delete, Update
from raf_session.journals._redis_debts import Debts
from raf_session.journals._redis_faults import BACKEND
from raf_session.journals._redis_keys import Names
from raf_session.journals._redis_links import Link, Links
from raf_session.journals._redis_listing import Listing
from raf_session.journals._redis_operations import Index, Timing
from raf_session.journals._redis_reads import Load, Scopes
from raf_session.journals._redis_repair import Repair
from raf_session.journals._redis_server import Opening
from raf_session.journals._redis_splices import Splice
from raf_session.journals._redis_sweep import Sweep
from raf_session.journals._redis_writes import Writes
from raf_session.journals._rules import Rules
from raf_session.journals._texts import ChangeTexts, Texts, Values
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Limits, NewSession, Query, Window

__all__ = ("RedisJournal",)


class RedisJournal(DurableJournal):
    """Sessions in Redis 7.0 or later, Valkey, a Cluster, or behind Sentinels.

    An append is one round trip.  By URL the journal makes one client for each event
    loop that uses it; a client that is handed in stays with its own event loop, and is
    not closed.

    Args:
        target: ``redis://``, ``rediss://``, ``unix://``, ``redis+cluster://``,
            ``redis+sentinel://host:port,host:port/name``, or a client with the
            interface of `redis.asyncio.Redis`.
        limits: what to enforce.
        clock: whose time decides.
        codec: between JSON and the stored text.
        durability: ``kill``: what was acknowledged survives the death of every
            process, the server's included; ``power``: it is on the disk before it is
            acknowledged.  A server that cannot keep it is refused.
        prefix: what stands in front of all keys of this journal.
        wait_replicas: how many replicas must have a write before it is acknowledged.
        wait_timeout_secs: how long to wait for them.
        expiry_grace_secs: how long after the rule of `limits` the server may collect
            a session by itself.

    Raises:
        ValueError: a URL, durability, prefix or number that cannot be.
    """

    def __init__(
        self,
        target: str | object,
        *,
        limits: Limits | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
        durability: Durability = "kill",
        prefix: str = "raf",
        wait_replicas: int = 0,
        wait_timeout_secs: float = 1.0,
        expiry_grace_secs: float = 3600.0,
    ) -> None:
        if wait_replicas < 0:
            raise ValueError(f"wait_replicas={wait_replicas} is negative")
        if not 0 < wait_timeout_secs < float("inf"):
            raise ValueError(
                f"wait_timeout_secs={wait_timeout_secs} is no time to wait"
            )
        if not 0 <= expiry_grace_secs < float("inf"):
            raise ValueError(f"expiry_grace_secs={expiry_grace_secs} is no grace")
        self._make = (
            client_maker(target)
            if isinstance(target, str)
            else handed_in(cast("Client", target))
        )
        self._wait_replicas = wait_replicas
        self._wait_ms = max(1, round(wait_timeout_secs * 1000))
        rules = Rules(BACKEND, limits or Limits(), clock)
        super().__init__(rules, durability)
        names = Names(prefix)
        self._core = Core(
            rules,
            BodyFormat(BACKEND, codec, rules.limits.max_entry_bytes),
            Values(BACKEND, codec),
            names,
            Index(names),
            Timing(expiry_grace_secs),
        )
        self._debts = Debts(self._core)
        self._writes = Writes(self._core, self._debts)
        self._repair = Repair(self._core)
        self._scopes = Scopes(self._core, self._debts, self._repair)
        self._listing = Listing(self._core, self._repair)
        self._links: Links | None = None

    @property
    def prefix(self) -> str:
        """What stands in front of all keys."""
        return self._core.names.prefix

    # Opening and closing ---------------------------------------------------------

    @override
    async def __aenter__(self) -> Self:
        """Connect, and check the server.

        Raises:
            RuntimeError: the journal is open already, or this is not asyncio.
            StorageError: the server cannot be reached, is older than 7.0, or cannot
                keep the durability.
            SchemaVersionError: a newer library wrote what is stored.
        """
        if self._links is not None:
            raise RuntimeError("the redis journal is open already")
        _check_asyncio()
        links = Links(self._make, replicas=self._wait_replicas, wait_ms=self._wait_ms)
        self._links = links
        try:
            opening = Opening(self._core, self._repair, self._durability)
            links.one_slot = await opening.run(await links.get())
        except BaseException:
            self._links = None
            await protected(links.close())
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
        """Close the connections that were opened here."""
        links, self._links = self._links, None
        if links is not None:
            await protected(links.close())

    async def _link(self) -> Link:
        if self._links is None:
            raise JournalClosedError(BACKEND)
        return await self._links.get()

    def _texts(self, change: Change | None) -> ChangeTexts:
        if change is None or change is NO_CHANGE:
            return _NO_TEXTS
        return ChangeTexts(change, self._core.values)

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
        bodies = [self._core.bodies.encode(entry) for entry in everything]
        create = Create(
            self._writes, new, entries, archived, bodies, self._texts(change)
        )
        return await create.run(await self._link())

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
        bodies = [self._core.bodies.encode(entry) for entry in entries]
        append = Append(
            self._core,
            self._debts,
            key,
            entries,
            bodies,
            self._texts(change),
            trim,
            expected_revision,
            incarnation,
        )
        return await append.run(await self._link(), confirm=self._wait_replicas > 0)

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
        splice = Splice(
            self._writes,
            key,
            first,
            last,
            entries,
            tail,
            [self._core.bodies.encode(entry) for entry in wanted],
            frozenset(keep),
            archive,
            purge,
            self._texts(change),
            expected_revision,
            incarnation,
        )
        return await splice.run(await self._link())

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
        texts = self._texts(change)
        update = Update(self._writes, key, texts, expected_revision, incarnation)
        return await update.run(await self._link())

    @override
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        """Remove a session; see `Journal.delete`."""
        return await Delete(self._writes, key, incarnation).run(await self._link())

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
        load = Load(
            self._core, self._debts, self._scopes, key, window, refresh, archived
        )
        return await load.run(await self._link())

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
        link = await self._link()
        return await self._listing.scan(link, query, after, order, limit, state=state)

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        """Delete what has expired, and report what the server collected by itself.

        An error ends the call: with it, or, where something was deleted before, with
        that, so that nothing goes unreported.
        """
        _checks.check_limit(limit)
        link = await self._link()
        sweep = Sweep(self._writes, self._repair, limit, dry_run=dry_run)
        try:
            await protected(sweep.run(link))
        except StorageError:
            if not sweep.gone:
                raise
        return tuple(sweep.gone)

    # Scopes ----------------------------------------------------------------------

    @override
    async def scoped_state(
        self, scope: ScopeKey, *, refresh: bool = False
    ) -> ScopedState:
        """Read the state of an app or user; see `Journal.scoped_state`."""
        return await self._scopes.read(await self._link(), scope, refresh=refresh)

    @override
    async def update_scoped_state(self, scope: ScopeKey, delta: StateDelta) -> None:
        """Set and delete keys; see `Journal.update_scoped_state`."""
        texts = Texts.of(delta, self._core.values)
        link = await self._link()
        await protected(self._scopes.write(link, scope, texts))

    @override
    async def scopes(self, app: str) -> tuple[ScopeKey, ...]:
        """Return the scopes that hold live state; see `Journal.scopes`."""
        app = ScopeKey(app).app
        return await self._scopes.live(await self._link(), app)


def _check_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "the redis journal needs asyncio: its driver does not run on trio"
        ) from None


_NO_TEXTS: Final = ChangeTexts(NO_CHANGE, Values(BACKEND, None))
