"""A write whose answer is lost, and other ends that nobody was told of."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from raf_session import (
    AgentSession,
    ChatMessage,
    InMemorySessionStore,
    JournaledSession,
    SessionKey,
    SessionStore,
    StorageError,
    open_journal,
    open_store,
)
from raf_session.base_session import read_snapshot
from raf_session.conformance.store_values import ForeignSession
from raf_session.journals.memory import MemoryJournal

pytestmark = pytest.mark.anyio

MESSAGE = ChatMessage.user("x")
URLS = ["memory://", "sqlite:///{folder}/s.db"]


@asynccontextmanager
async def forgetful(
    url: str, folder: Path, types: tuple[type[Any], ...]
) -> AsyncGenerator[tuple[SessionStore, list[str]]]:
    """A store whose journal does what it is asked and forgets to say so."""
    lost: list[str] = []
    async with open_journal(url.format(folder=folder)) as journal:
        for name in ("create", "append", "splice"):
            real = getattr(journal, name)

            async def write(*args: Any, real: Any = real, **kwargs: Any) -> Any:
                commit = await real(*args, **kwargs)
                if lost:
                    raise StorageError("test", lost.pop())
                return commit

            setattr(journal, name, write)
        yield SessionStore(journal, types=types), lost


async def texts(store: SessionStore, session_id: str) -> list[str]:
    session = await store.get_session(session_id)
    assert session is not None
    return [message.text for message in await session.get_messages()]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("cls", [AgentSession, ForeignSession])
@pytest.mark.parametrize("begun", ["create", "append", "splice"])
async def test_a_save_whose_answer_is_lost_is_gone_on_from(
    url: str, cls: Any, begun: str, tmp_path: Path
) -> None:
    async with forgetful(url, tmp_path, (cls,)) as (store, lost):
        session = cls("s")
        await session.add_message(ChatMessage.user("one"))
        expected = ["one"]
        if begun != "create":
            await store.save_session(session)
            if begun == "splice":
                await session.clear()
                expected = []
            await session.add_message(ChatMessage.user("two"))
            expected.append("two")
        lost.append("the connection broke")
        with pytest.raises(StorageError):
            await store.save_session(session)
        await session.add_message(ChatMessage.user("three"))
        await store.save_session(session)
        assert await texts(store, "s") == [*expected, "three"]
        await session.add_message(ChatMessage.user("four"))
        await store.save_session(session)
        assert await texts(store, "s") == [*expected, "three", "four"]


async def test_others_may_have_written_meanwhile(tmp_path: Path) -> None:
    async with forgetful("memory://", tmp_path, (AgentSession,)) as (store, lost):
        session = AgentSession("s")
        await store.save_session(session)
        await session.add_message(ChatMessage.user("mine"))
        lost.append("gone")
        with pytest.raises(StorageError):
            await store.save_session(session)
        other = await store.open_session("s")
        await other.add_message(ChatMessage.user("theirs"))
        await session.add_message(ChatMessage.user("mine too"))
        await store.save_session(session)
        assert await texts(store, "s") == ["mine", "theirs", "mine too"]


@pytest.mark.parametrize("url", URLS)
def test_one_object_is_saved_from_two_event_loops(url: str, tmp_path: Path) -> None:
    async def save(store: SessionStore, session: AgentSession, name: str) -> None:
        for n in range(8):
            await session.add_message(ChatMessage.user(f"{name}{n}" + "x" * 70_000))
            await store.save_session(session)

    async def main() -> None:
        async with open_store(url.format(folder=tmp_path)) as store:
            session = AgentSession("s")
            thread = threading.Thread(
                target=lambda: anyio.run(save, store, session, "thread")
            )
            thread.start()
            await save(store, session, "main")
            await anyio.to_thread.run_sync(thread.join)
            stored = [text.rstrip("x") for text in await texts(store, "s")]
            for name in ("thread", "main"):
                mine = [text for text in stored if text.startswith(name)]
                assert mine == [f"{name}{n}" for n in range(8)]

    anyio.run(main)


async def test_unknown_fields_of_a_session_are_stored() -> None:
    async def saved(store: SessionStore, text: str) -> str:
        session = AgentSession.deserialize(text)
        await store.save_session(session)
        again = await store.get_session("s")
        assert isinstance(again, AgentSession)
        assert again.state == session.state
        return again.serialize()

    text = (
        '{"session_id":"s","metadata":{"created_at":"2026-01-01T00:00:00Z",'
        '"updated_at":"2026-01-01T00:00:00Z","message_count":0,'
        '"last_request_hash":null,"lang":"de"},"messages":[],'
        '"provider_states":{"states":{},"newer":1},"last_active_at":null,'
        '"tenant":"acme"}'
    )
    told = read_snapshot(await saved(InMemorySessionStore(), text))
    assert told.extra == {"tenant": "acme", "provider_states": {"newer": 1}}
    assert told.metadata.extra == {"lang": "de"}


@pytest.mark.parametrize("url", URLS)
async def test_leaving_the_store_stores_what_is_pending(
    url: str, tmp_path: Path
) -> None:
    store = open_store(url.format(folder=tmp_path))
    async with store:
        session = await store.open_session("s")
        await session.add_message(ChatMessage.user("hi"))
        session.set_provider_state("p", 1)
        session.touch_request_hash(await session.get_messages())
    assert not session.dirty
    async with store.journal as journal:
        again = await JournaledSession.open(journal, SessionKey.raf("s"))
        assert again.get_provider_state("p") == 1
        assert again.get_last_request_hash() == session.get_last_request_hash()


async def test_open_makes_what_was_deleted_between_making_and_reading() -> None:
    async with MemoryJournal() as journal:
        real = journal.load
        deleted: list[bool] = []

        async def load(key: SessionKey, *args: Any, **kwargs: Any) -> Any:
            if len(deleted) < 3:
                deleted.append(await journal.delete(key))
            return await real(key, *args, **kwargs)

        journal.load = load  # type: ignore[method-assign]
        session = await JournaledSession.open(journal, SessionKey.raf("s"))
        assert session.get_message_count() == 0
        assert deleted == [False, True, True]


@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_a_file_that_is_not_the_one_that_was_opened_is_not_written(
    how: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.db"
    async with open_store(f"sqlite:///{path}") as store:
        session = await store.open_session("s")
        await session.add_message(ChatMessage.user("kept"))
        if how == "removed":
            path.unlink()
        else:
            (tmp_path / "backup").write_bytes(path.read_bytes())
            os.replace(tmp_path / "backup", path)  # noqa: PTH105
        for call in (
            session.get_messages(),
            session.add_message(ChatMessage.user("x")),
        ):
            with pytest.raises(StorageError, match="removed or replaced"):
                await call


async def test_a_class_that_cannot_be_made_names_the_way_out() -> None:
    class KeywordOnly(ForeignSession):
        def __init__(self, *, sid: str) -> None:
            super().__init__(sid)

    store = InMemorySessionStore(types=[KeywordOnly])
    await store.save_session(KeywordOnly(sid="k"))
    with pytest.raises(TypeError, match="from_snapshot"):
        await store.get_session("k")


async def test_an_integer_too_long_to_be_written_is_refused_at_once() -> None:
    store = InMemorySessionStore()
    session = await store.open_session("s")
    with pytest.raises(ValueError, match=r"^p\.n: an integer"):
        session.set_provider_state("p", {"n": 10**5000})
    await session.add_message(ChatMessage.user("hi"))
    assert not session.dirty
    for number in (10**4298, -(10**4298)):
        session.set_provider_state("p", number)
        await session.flush()
        assert session.get_provider_state("p") == number
