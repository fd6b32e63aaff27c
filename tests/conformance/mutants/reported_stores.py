"""Stores that fail as those did of which users complain."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from typing_extensions import override

from mutants.registry import fault
from raf_session.agent_session import AgentSession
from raf_session.base_session import take_snapshot
from raf_session.errors import SessionNotFoundError, StaleSessionError
from raf_session.keys import SessionKey
from raf_session.session import SessionCore
from raf_session.stores import SessionStore


@fault("store", "a_stale_edit_is_refused", reported=True)
class LastWriterWins(SessionStore):
    """Whoever saves last replaces what others have saved."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        await super().save_session(session, overwrite=True)


@fault(
    "store",
    "what_is_not_known_is_not_overwritten",
    reported=True,
    also=("parallel_creators_make_one_session",),
)
class ReplacesWhatItDoesNotKnow(SessionStore):
    """A session that was not read from the store replaces what is there."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        known = self._origins.get(session, self.key(session.session_id))
        await super().save_session(session, **({"overwrite": known is None} | options))


@fault(
    "store",
    "a_late_save_revives_nothing",
    reported=True,
    also=("an_expired_session_is_not_revived",),
)
class Revives(SessionStore):
    """A late save of a session that was deleted brings it back."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        try:
            await super().save_session(session, **options)
        except SessionNotFoundError:
            await super().save_session(session, overwrite=True)


@fault("store", "copies_are_independent", reported=True)
class SharesObjects(SessionStore):
    """What is returned is the object that was saved."""

    _objects: dict[str, SessionCore]

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        await super().save_session(session, **options)
        self.__dict__.setdefault("_objects", {})[session.session_id] = session

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        found = await super().get_session(session_id)
        return found and self.__dict__.get("_objects", {}).get(session_id, found)


@fault(
    "store",
    "both_sides_of_each_limit",
    reported=True,
    also=("activity_defers_idleness_alone",),
)
class ReadsExpired(SessionStore):
    """A session that has expired is returned until it is swept."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        rules = self.journal._rules  # type: ignore[attr-defined]
        rules.sessions, kept = rules.users, rules.sessions
        try:
            return await super().get_session(session_id)
        finally:
            rules.sessions = kept


@fault(
    "store", "reading_defers_nothing", reported=True, also=("reading_moves_no_time",)
)
class RefreshesByReading(SessionStore):
    """To get a session keeps it alive."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        with suppress(SessionNotFoundError):
            await self.journal.load(self.key(session_id), refresh=True)
        return await super().get_session(session_id)


@fault(
    "store",
    "saving_moves_no_time",
    reported=True,
    also=("saving_in_the_same_instant_moves_no_time", "times_never_told_do_not_expire"),
)
class SavingIsActivity(SessionStore):
    """To save a session keeps it alive."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        await super().save_session(session, **options)
        await self.journal.load(self.key(session.session_id), refresh=True)


@fault("store", "each_type_is_read_as_itself", reported=True)
class ForgetsTypes(SessionStore):
    """Every session comes back as the one that is shipped."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        found = await super().get_session(session_id)
        if found is None or type(found) is AgentSession:
            return found
        return AgentSession.from_snapshot(await take_snapshot(found))


@fault(
    "store",
    "ids_are_kept_apart",
    reported=True,
    machine=True,
)
class FoldsCase(SessionStore):
    """Ids are compared as a file system does that knows no case."""

    @override
    def key(self, session_id: str) -> SessionKey:
        return super().key(session_id.lower())


@fault("store", "ids_are_kept_apart", reported=True)
class NormalisesPaths(SessionStore):
    """What stands before the last slash of an id does not count."""

    @override
    def key(self, session_id: str) -> SessionKey:
        return super().key(session_id.rsplit("/", 1)[-1] or session_id)


@fault("store", "cleanup_counts_what_it_removes", reported=True)
class CountsTheUsersToo(SessionStore):
    """A clean-up counts one more than there was."""

    @override
    async def cleanup_expired(self) -> int:
        found = await self.journal.expire(dry_run=True)
        return len(found) and await super().cleanup_expired() + 1


@fault("store", "cleanup_counts_what_it_removes", reported=True)
class CountsOnly(SessionStore):
    """A clean-up tells the number and removes nothing."""

    @override
    async def cleanup_expired(self) -> int:
        return len(await self.journal.expire(dry_run=True))


@fault("store", "a_stale_edit_is_refused", reported=True)
class ReportsSuccess(SessionStore):
    """A save that failed looks like one that did not."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        with suppress(StaleSessionError):
            await super().save_session(session, **options)


@fault("store", "ids_are_kept_apart", reported=True)
class DeletesNeighbours(SessionStore):
    """To delete a session deletes all whose ids begin with it."""

    @override
    async def delete_session(self, session_id: str, /) -> None:
        page = await self.list_sessions(limit=1000)
        for listed in page.sessions:
            if listed.head.key.session.startswith(session_id):
                await super().delete_session(listed.head.key.session)
        await super().delete_session(session_id)


@fault("store", "a_missing_session_is_none", reported=True)
class CannotDeleteTwice(SessionStore):
    """To delete what is not there is an error."""

    @override
    async def delete_session(self, session_id: str, /) -> None:
        if not await self.journal.delete(self.key(session_id)):
            raise SessionNotFoundError(self.key(session_id))


@fault(
    "store",
    "a_missing_session_is_none",
    reported=True,
    wide="whatever has to be gone is there",
    machine=True,
)
class MakesWhatIsMissing(SessionStore):
    """To get what is not there makes it."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        found = await super().get_session(session_id)
        return found or AgentSession(session_id)


@fault("store", "edited_histories_are_stored", reported=True)
class SeesOnlyAdditions(SessionStore):
    """An edited message is not saved where the number is the same."""

    @override
    async def save_session(self, session: SessionCore, /, **options: Any) -> None:
        stored = await self.get_session(session.session_id)
        if stored is not None and not options:
            now, then = await session.get_messages(), await stored.get_messages()
            if len(now) == len(then) and now != then:
                return
        await super().save_session(session, **options)


@fault(
    "store",
    "two_handles_lose_nothing",
    reported=True,
    wide="whatever is read twice is as it was",
)
class CachesReads(SessionStore):
    """What was read once is answered from memory, whoever saved since."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        found = await super().get_session(session_id)
        if found is not None and type(found) is AgentSession:
            cache = self.__dict__.setdefault("_cache", {})
            snapshot = cache.setdefault(session_id, found.snapshot())
            found = AgentSession.from_snapshot(snapshot, clock=self.journal.clock)
        return found
