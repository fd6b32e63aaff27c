"""Stores that forget, or misjudge, what a session goes on from."""

from __future__ import annotations

from typing import Any

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from raf_session.agent_session import AgentSession
from raf_session.base_session import BaseSession
from raf_session.changes import Change, StateDelta
from raf_session.errors import StaleSessionError
from raf_session.journals.memory import MemoryJournal
from raf_session.session import SessionCore
from raf_session.stores import SessionStore
from raf_session.stores.origins import Origin


@fault("store", "a_note_makes_no_stale_copy_fresh")
class NotesMakeFresh(SessionStore):
    """Who stored anything is taken to have seen everything."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        await super().save_session(session, **options)
        key = self.key(session.session_id)
        known = self._origins.get(session, key)
        if isinstance(known, Origin):
            revision = (await self.journal.load(key)).head.revision
            self._origins.remember(session, known._replace(revision=revision))


@fault("store", "a_written_out_copy_goes_on")
class KnowsObjectsAlone(SessionStore):
    """Only the object that was read or saved here is known."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        key = self.key(session.session_id)
        there = await self.get_session(session.session_id)
        if there is not None and not options and not self._origins.get(session, key):
            raise StaleSessionError(key, None, 1)
        await super().save_session(session, **options)


@fault("store", "a_foreign_object_may_be_saved_again")
class ForgetsForeignObjects(SessionStore):
    """What is known of an object is kept in the base class that it may not have."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        await super().save_session(session, **options)
        if not isinstance(session, BaseSession):
            self._origins._kept.pop(id(session), None)
            self._origins._held.pop(id(session), None)


@fault("store", "a_late_save_spares_the_new_session")
class WritesIntoTheNext(SessionStore):
    """A session that was made anew under its id is taken for the former one."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        key = self.key(session.session_id)
        known = self._origins.get(session, key)
        record = await self._load(key)
        if isinstance(known, Origin) and record is not None:
            named = record.head.incarnation
            self._origins.remember(session, known._replace(incarnation=named))
        await super().save_session(session, **options)


@fault("store", "what_was_saved_survives_a_restart")
class KeepsRequestsInMemory(SessionStore):
    """The last request is told by the object that stored it alone."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        found = await super().get_session(session_id)
        seen: set[str] = self.__dict__.setdefault("_seen", set())
        if isinstance(found, AgentSession) and session_id not in seen:
            found.restore_request(None)
        return found

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        self.__dict__.setdefault("_seen", set()).add(session.session_id)
        await super().save_session(session, **options)


@fault("store", "an_expired_id_can_be_taken")
class KeepsExpiredStates(SessionStore):
    """What providers kept of an expired session is there in the next one of its id."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        key = self.key(session.session_id)
        assert isinstance(self.journal, MemoryJournal)
        rows = self.journal._sessions
        left = rows[key].providers if key in rows and not await self._load(key) else {}
        await super().save_session(session, **options)
        if left:
            await self.journal.update(key, Change(providers=StateDelta(left)))


@fault("store", "the_clock_may_go_back")
class SkipsTheFuture(SessionStore):
    """A session that was changed later than now is not saved."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        now = self.journal.clock()
        if not isinstance(session, AgentSession) or session.last_active_at <= now:
            await super().save_session(session, **options)


@fault("store", "states_of_two_handles_are_merged")
class ReplacesProviderStates(SessionStore):
    """A save removes what providers keep that the session does not know."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        await super().save_session(session, **options)
        if isinstance(session, AgentSession):
            key = self.key(session.session_id)
            stored = (await self.journal.load(key)).provider_states
            gone = stored.keys() - session.provider_states.states.keys()
            if gone:
                await self.journal.update(key, Change(providers=StateDelta({}, gone)))


@fault("store", "parallel_saves_of_one_object")
class OverlapsForget(SessionStore):
    """A save that begins while another is under way knows nothing of what is stored."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        saving: list[int] = self.__dict__.setdefault("_saving", [])
        saving.append(id(session))
        await checkpoint()
        if saving.count(id(session)) > 1:
            self._origins._kept.pop(id(session), None)
        try:
            await super().save_session(session, **options)
        finally:
            saving.remove(id(session))


@fault("store", "a_limit_of_zero_is_at_once")
class ZeroIsOff(SessionStore):
    """A limit of 0 is no limit."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        assert isinstance(self.journal, MemoryJournal)
        rules = self.journal._rules
        if 0 in {rules.sessions.max_idle, rules.sessions.max_lifetime}:
            rules.sessions = rules.users
        return await super().get_session(session_id)


@fault("store", "a_derived_session_keeps_its_states")
class ForgetsDerivedStates(SessionStore):
    """What providers keep is restored for the type that is shipped alone."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        found = await super().get_session(session_id)
        if isinstance(found, BaseSession) and not isinstance(found, AgentSession):
            for name in found.provider_states.states:
                found.set_provider_state(name, None)
        return found
