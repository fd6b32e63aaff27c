"""Stores that save, read and remove wrongly."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from raf_session.agent_session import AgentSession
from raf_session.changes import Change
from raf_session.entries import Entry, new_id
from raf_session.frozen import FrozenDict
from raf_session.journaled_session import JournaledSession
from raf_session.keys import SessionKey
from raf_session.options import NewSession
from raf_session.session import SessionCore
from raf_session.stores import SessionStore


@fault("store", "an_empty_session_is_kept")
class SkipsEmptySessions(SessionStore):
    """A session in which nothing was said is not stored."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        key = self.key(session.session_id)
        if await session.get_messages() or self._origins.get(session, key):
            await super().save_session(session, **options)


@fault("store", "a_session_is_read_as_it_was")
class DropsProviderStates(SessionStore):
    """What providers keep is not read back."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        found = await super().get_session(session_id)
        if type(found) is AgentSession:
            found._view = found._view._replace(providers=FrozenDict())
        return found


@fault("store", "request_tracking_goes_on")
class ForgetsTheDigests(SessionStore):
    """Of the last request the hash is kept alone."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        found = await super().get_session(session_id)
        if isinstance(found, AgentSession):
            found._told_hash = found.get_last_request_hash()
            found._tracker = None
        return found


@fault("store", "an_unknown_type_is_refused")
class SavesAnyType(SessionStore):
    """A type that nobody named is stored, and cannot be read back."""

    @override
    def _known_type(self, cls: type[Any]) -> str:
        return cls.__name__


@fault("store", "an_older_save_does_not_undo_a_newer")
class SavesWhatWas(SessionStore):
    """Of saves that overlap, the one that came first is stored last."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        if type(session) is AgentSession:
            former = session.snapshot()
            await checkpoint()
            if session.get_message_count() > len(former.messages):
                for _ in range(20):
                    await checkpoint()
                session, options = (
                    AgentSession.from_snapshot(former),
                    {"overwrite": True},
                )
        await super().save_session(session, **options)


@fault("store", "parallel_opens_make_one_session")
class OpensAnew(SessionStore):
    """Two who open at once both make the session, and the second one stays."""

    @override
    async def open_session(
        self, session_id: str, *, exclusive: bool = False
    ) -> JournaledSession:
        there = await self.get_session(session_id)
        await checkpoint()
        if there is None:
            await self.journal.delete(self.key(session_id))
        return await super().open_session(session_id, exclusive=exclusive)


@fault("store", "without_limits_nothing_expires")
class SweepsAfterAMonth(SessionStore):
    """A clean-up removes what is older than a month, whatever the limits."""

    @override
    async def cleanup_expired(self) -> int:
        removed = await super().cleanup_expired()
        if self.journal.limits.sessions.enabled:
            return removed
        for listed in (await self.list_sessions()).sessions:
            if self.journal.clock() - listed.head.created_at > timedelta(days=30):
                removed += await self.journal.delete(listed.head.key)
        return removed


@fault("store", "a_clock_that_goes_back_expires_nothing")
class FutureIsOver(SessionStore):
    """A session from the future has expired."""

    @override
    async def cleanup_expired(self) -> int:
        removed = await super().cleanup_expired()
        for listed in (await self.list_sessions()).sessions:
            if listed.head.last_active_at > self.journal.clock():
                removed += await self.journal.delete(listed.head.key)
        return removed


@fault("store", "cleanup_counts_what_it_removes")
class SweepsOneBatch(SessionStore):
    """A clean-up removes as many as fit into one batch."""

    @override
    async def cleanup_expired(self) -> int:
        return len(await self.journal.expire(2))


@fault("store", "what_is_no_id_is_refused")
class ShortensIds(SessionStore):
    """A name that is too long is cut."""

    @override
    def key(self, session_id: str) -> SessionKey:
        return super().key(session_id[:512])


@fault("store", "saves_are_incremental")
class StoresTheFirstAgain(SessionStore):
    """A save that adds to a longer history stores its first message again."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        key = self.key(session.session_id)
        known = self._origins.get(session, key)
        await super().save_session(session, **options)
        if known and len(known.messages) > 3:
            again = Entry.of(known.messages[0], new_id())
            await self.journal.append(key, [again])


@fault("store", "clear_is_stored")
class AppendsAlone(SessionStore):
    """A history that became shorter is not stored."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        known = self._origins.get(session, self.key(session.session_id))
        if known and known.messages and not await session.get_messages():
            return
        await super().save_session(session, **options)


@fault("store", "edited_histories_are_stored")
class NeverEdits(SessionStore):
    """A history that was edited is stored up to where it was edited."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        known = self._origins.get(session, self.key(session.session_id))
        now = await session.get_messages()
        if known and 0 < len(now) < len(known.messages):
            return
        await super().save_session(session, **options)


@fault("store", "overwriting_replaces_what_is_stored")
class NeverOverwrites(SessionStore):
    """To be told to overwrite changes nothing."""

    @override
    async def save_session(self, session: SessionCore, /, **_: Any) -> None:
        await super().save_session(session)


@fault("store", "delete_removes_the_session")
class DeletesLater(SessionStore):
    """A deleted session is only cleared."""

    @override
    async def delete_session(self, session_id: str, /) -> None:
        there = await self.get_session(session_id)
        await super().delete_session(session_id)
        if there is not None:
            key = self.key(session_id)
            await self.journal.create(NewSession(key=key, session_type="AgentSession"))


@fault("store", "the_last_request_wins")
class FirstRequestStays(SessionStore):
    """Where another handle stored a request, a later one is dropped."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        stored = await self.get_session(session.session_id)
        await super().save_session(session, **options)
        if isinstance(stored, AgentSession) and stored.request_record is not None:
            former = Change(request=stored.request_record.after(None))
            await self.journal.update(self.key(session.session_id), former)


@fault("store", "copies_are_independent")
class SharesProviderStates(SessionStore):
    """Copies of one session share what providers keep."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        found = await super().get_session(session_id)
        if type(found) is AgentSession:
            first = self.__dict__.setdefault("_first", {}).setdefault(session_id, found)
            found.__dict__["set_provider_state"] = first.set_provider_state
            found.__dict__["get_provider_state"] = first.get_provider_state
        return found


@fault("store", "two_stores_share_what_is_stored")
class KeepsANamespace(SessionStore):
    """What one store saves is under a name that the other does not know."""

    @override
    def key(self, session_id: str) -> SessionKey:
        return super().key(session_id)._replace(scope=f"{id(self):x}")
