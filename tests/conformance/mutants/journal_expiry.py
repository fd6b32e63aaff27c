"""Journals that expire wrongly, or that open and close wrongly."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any, ClassVar, Self

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import Bodied, Ruled, Skewed
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry, Record, SessionHead
from raf_session.errors import SessionError, StaleSessionError
from raf_session.expiry import ExpiryRule
from raf_session.journal import Page
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, Query, SessionTTLOptions

DECADE = timedelta(days=3652)
MICROSECOND = timedelta(microseconds=1)


@fault(
    "journal",
    "expired_is_invisible_to_every_call",
    wide="each check that lets a session expire looks whether it is gone",
    machine=True,
)
class ReadsExpired(Skewed):
    """Only the sweeper knows of expiry; a read returns what it has not reached."""

    @override
    async def load(self, key: SessionKey, *args: Any, **options: Any) -> Record:
        return await self.load_at(-DECADE, key, *args, **options)


@fault("journal", "expiry_is_strict_to_the_microsecond")
class ExpiresLate(Skewed):
    """The limit is one microsecond too long."""

    @override
    async def load(self, key: SessionKey, *args: Any, **options: Any) -> Record:
        return await self.load_at(-MICROSECOND, key, *args, **options)


@fault("journal", "expiry_is_strict_to_the_microsecond")
class ExpiresAtTheLimit(Skewed):
    """``>=`` where the rule is ``>``."""

    @override
    async def load(self, key: SessionKey, *args: Any, **options: Any) -> Record:
        return await self.load_at(MICROSECOND, key, *args, **options)


@fault("journal", "expired_is_invisible_to_every_call")
class ListsExpired(Skewed):
    """A listing shows what has expired and was not swept."""

    @override
    async def scan(self, query: Query, *args: Any, **options: Any) -> Page:
        return await self.scan_at(-DECADE, query, *args, **options)


@fault("journal", "without_limits_nothing_expires")
class OffIsAMonth(Ruled):
    """Where nobody set a limit, a session is removed after a month."""

    @override
    def ttl(self, options: SessionTTLOptions) -> SessionTTLOptions:
        month = SessionTTLOptions(max_idle_secs=86_400 * 30)
        return options if options.enabled else month


class _Unpinned(ExpiryRule):
    @override
    def head_expired(self, head: SessionHead, now: int) -> bool:
        return super().head_expired(head._replace(pinned=False), now)


@fault("journal", "a_pinned_session_does_not_expire")
class PinsNothing(Ruled):
    """A pinned session expires like any other."""

    expiry = _Unpinned


class _Absolute(ExpiryRule):
    @override
    def expired(self, created_at: int, last_active_at: int, now: int) -> bool:
        ahead = max(now, 2 * last_active_at - now)
        return super().expired(created_at, last_active_at, ahead)


@fault("journal", "a_clock_set_back_expires_nothing")
class AbsoluteAges(Ruled):
    """A clock that was set back is as far away as one that went on."""

    expiry = _Absolute


@fault("journal", "expire_takes_at_most_its_limit")
class SweepsWhenDry(MemoryJournal):
    """A dry run deletes."""

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        return await super().expire(limit)


@fault(
    "journal",
    "parallel_sweeps_report_each_once",
    also=("two_sweepers_report_each_once",),
)
class ReportsWhatOthersSwept(MemoryJournal):
    """What was found expired is reported, whoever deleted it."""

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        found = await super().expire(limit, dry_run=True)
        await checkpoint()
        if not dry_run:
            await super().expire(limit)
        return found


@fault("journal", "creators_may_race_a_sweep")
class SweepsWhatIsLive(MemoryJournal):
    """What was found expired is deleted, whatever happened to it since."""

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        found = await super().expire(limit, dry_run=True)
        await checkpoint()
        if not dry_run:
            for key in found:
                if isinstance(key, SessionKey) and key in self._sessions:
                    self._remove(key)
        return await super().expire(limit, dry_run=dry_run) if dry_run else found


@fault("journal", "scoped_state_expires")
class ScopesLiveOn(MemoryJournal):
    """A sweep takes sessions, and never the state of users and apps."""

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        scopes, self._scopes = self._scopes, {}
        gone = await super().expire(limit, dry_run=dry_run)
        self._scopes = scopes
        return gone


@fault("journal", "a_journal_opens_once")
class OpensTwice(MemoryJournal):
    """A journal that is open already opens again."""

    @override
    async def __aenter__(self) -> Self:
        self._open = False
        return await super().__aenter__()


@fault("journal", "a_closed_journal_refuses_every_call")
class NeverCloses(MemoryJournal):
    """A closed journal goes on."""

    @override
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        return None


@fault("journal", "a_journal_shows_what_it_was_given")
class TellsDefaults(MemoryJournal):
    """The limits that are told are not those that are enforced."""

    @property
    @override
    def limits(self) -> Limits:
        return replace(super().limits, max_entry_bytes=Limits().max_entry_bytes)


@fault("journal", "journals_share_nothing")
class SharesTheProcess(MemoryJournal):
    """Journals that are open at the same time share one connection."""

    _first: ClassVar[list[SharesTheProcess]] = []

    @override
    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._first.append(self)
        first = self._first[0]
        self._sessions, self._listing = first._sessions, first._listing
        return self

    @override
    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__(None, None, None)
        if self in self._first:
            self._first.remove(self)


@fault("journal", "what_was_stored_survives_a_restart")
class ForgetsProviders(MemoryJournal):
    """What providers keep is not there after a restart."""

    @override
    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__(None, None, None)
        for session in self._sessions.values():
            session.providers = {}


class _Plain(BodyFormat):
    @override
    def encode(self, entry: Entry) -> str:
        codec, self._codec = self._codec, None
        body = super().encode(entry)
        self._codec = codec
        return body


@fault("journal", "a_codec_stands_between")
class WritesAroundTheCodec(Bodied):
    """What is written leaves the codec out, and what is read does not."""

    bodies = _Plain


@fault("journal", "a_codec_survives_a_restart")
class SaltsCodecs(MemoryJournal):
    """What a codec made can be read by the process that made it alone."""

    @override
    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__(None, None, None)
        if self._bodies._codec is not None:
            for session in self._sessions.values():
                session.active = [row._replace(body='"AA=="') for row in session.active]


@fault("journal", "an_error_leaves_the_journal_usable")
class ClosesOnErrors(MemoryJournal):
    """An error closes the connection."""

    @override
    async def append(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().append(*args, **options)
        except SessionError as error:
            self._open = self._open and not isinstance(error, StaleSessionError)
            raise
