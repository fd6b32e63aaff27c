"""The sessions that a manager holds: others' faults, other incarnations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from around_journals import AroundJournal, as_journal
from manager_values import CharacterCounter, texts, user
from typing_extensions import override

from raf_session.errors import StorageError
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.manager import ManagedSession, SessionManager, SessionRequest

pytestmark = pytest.mark.anyio

HELD = 256


def of(number: int) -> SessionRequest:
    return SessionRequest("main", "discord", "per_peer", f"p{number}")


class Refusing(AroundJournal):
    """Fails each update of one session."""

    refused: SessionKey | None = None

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        if name == "update" and args[0] == self.refused:
            raise StorageError("memory", "the disk is on fire")
        return await call(*args, **kwargs)


async def asked(manager: SessionManager, number: int) -> ManagedSession:
    """Return a session in which a request is pending."""
    session = await manager.get_or_create(of(number))
    await manager.request(session, unsaved=[user("hello")])
    return session


async def test_a_session_that_cannot_be_stored_is_no_fault_of_others() -> None:
    around = Refusing(MemoryJournal.opened())
    manager = SessionManager(as_journal(around), counter=CharacterCounter())
    bad = await asked(manager, 0)
    around.refused = bad.key
    for number in range(1, HELD + 9):
        session = await manager.get_or_create(of(number))
        assert session.session_id == f"p{number}"
    assert bad.dirty
    around.refused = None
    assert await manager.get_or_create(of(0)) is bad
    await manager.close()
    assert not bad.dirty


async def test_closing_stores_all_that_can_be_stored_and_tells_of_the_rest() -> None:
    around = Refusing(MemoryJournal.opened())
    manager = SessionManager(as_journal(around), counter=CharacterCounter())
    sessions = [await asked(manager, number) for number in range(3)]
    around.refused = sessions[1].key
    with pytest.raises(StorageError):
        await manager.close()
    assert [session.dirty for session in sessions] == [False, True, False]
    sessions[1].abandon()
    await manager.close()


class Overtaken(AroundJournal):
    """Runs something behind the next call of `create`, before that returns."""

    then: Callable[[], Awaitable[Any]] | None = None

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        answer = await call(*args, **kwargs)
        then = self.then
        if name == "create" and then is not None:
            self.then = None
            await then()
        return answer


async def test_a_session_that_was_made_anew_is_had_at_once() -> None:
    around = Overtaken(MemoryJournal.opened())
    manager = SessionManager(as_journal(around), counter=CharacterCounter())
    key = of(0).key(manager.config.session.default_scope)

    async def replace() -> None:
        await manager.get_or_create(of(0))  # it is held from now on
        await around.inner.delete(key)

    around.then = replace
    session = await manager.get_or_create(of(0))
    await session.add_message(user("hello"))
    record = await around.inner.load(key)
    assert texts([e.message for e in record.entries if e.message]) == ["hello"]
