"""What is left where a server evicted, or somebody deleted, a part of a session."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias

import pytest
from redis.exceptions import ResponseError
from redis_clients import client, fresh_prefix

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, batch, every, ids, whole
from raf_session.errors import (
    SessionDamagedError,
    SessionExistsError,
    SessionNotFoundError,
    StorageError,
)
from raf_session.journaled_session import JournaledSession
from raf_session.journals.redis import RedisJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

pytestmark = pytest.mark.anyio

CHANGE = Change(
    session=StateDelta({"s": 1}),
    user=StateDelta({"u": 1}),
    app=StateDelta({"a": 1}),
    request=RequestDelta(0, b"12345678" * 3, 1),
    labels=LabelDelta(added=("x",)),
)
Call: TypeAlias = Callable[[], Any]
GONE = (SessionDamagedError, SessionNotFoundError)
INDEXES = (
    *("keys", "activity", "created", "tokens", "labels"),
    *("scopes", "app_activity", "user_created"),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Stage(NamedTuple):
    journal: RedisJournal
    real: Any
    prefix: str

    def name(self, kind: str) -> str:
        return f"{self.prefix}:{kind}:{{app:user}}::session"

    async def of_session(self) -> set[str]:
        found = [k async for k in self.real.scan_iter(f"{self.prefix}:*session")]
        return {key.decode() for key in found}


@asynccontextmanager
async def stage(**options: Any) -> AsyncGenerator[Stage]:
    prefix = fresh_prefix()
    async with (
        client(prefix) as real,
        RedisJournal(real, prefix=prefix, **options) as journal,
    ):
        await journal.create(NEW, batch("a"), archived=batch("z"), change=CHANGE)
        yield Stage(journal, real, prefix)


def calls(journal: RedisJournal) -> list[Call]:
    return [
        lambda: journal.load(KEY),
        lambda: journal.load(KEY, archived=True),
        lambda: journal.append(KEY, batch("new"), trim=1),
        lambda: journal.append(KEY, batch("new"), change=CHANGE),
        lambda: journal.splice(KEY, 1, 99, archive=True),
        lambda: journal.update(KEY, Change(title="t")),
    ]


@pytest.mark.parametrize("kind", ["session", "entries", "archive", "ids", "digests"])
async def test_a_lost_part_is_noticed_by_every_call(kind: str) -> None:
    async with stage() as s:
        assert await s.real.delete(s.name(kind)) == 1
        left = await s.of_session()
        for call in calls(s.journal):
            with pytest.raises(GONE):
                await call()
        assert await s.of_session() == left, "nothing was written"
        with pytest.raises(SessionDamagedError):
            await s.journal.create(NEW)
        assert await s.of_session() == left, "what holds entries stays"
        assert await s.journal.delete(KEY) == (kind != "session")
        assert await s.of_session() == set()
        await s.journal.create(NEW, batch("b"))
        assert ids((await whole(s.journal)).entries) == ["b"]


@pytest.mark.parametrize("kind", ["entries", "ids"])
async def test_an_append_alone_notices_what_it_needs(kind: str) -> None:
    async with stage() as s:
        await s.real.delete(s.name(kind))
        with pytest.raises(SessionDamagedError):
            await s.journal.append(KEY, batch("new"))
        with pytest.raises(SessionDamagedError):
            await s.journal.append(KEY, batch("a"))


@pytest.mark.parametrize("kept", ["session", "ids", "digests"])
async def test_create_replaces_what_holds_no_entries(kept: str) -> None:
    async with stage() as s:
        for kind in ("session", "entries", "archive", "ids", "digests"):
            if kind != kept:
                await s.real.delete(s.name(kind))
        with pytest.raises(GONE):
            await s.journal.load(KEY)
        commit = await s.journal.create(NEW, batch("b"))
        assert commit.head.revision == 1
        record = await whole(s.journal)
        assert (ids(record.entries), record.archived) == (["b"], ())
        assert (record.state, record.request) == ({}, None)


async def test_an_empty_session_is_no_damaged_one() -> None:
    async with stage() as s:
        other = SessionKey("app", "user", "", "other")
        await s.journal.create(NewSession(key=other))
        with pytest.raises(SessionExistsError):
            await s.journal.create(NewSession(key=other))


async def test_delete_of_another_incarnation_leaves_remains() -> None:
    async with stage() as s:
        await s.real.delete(s.name("session"))
        left = await s.of_session()
        assert not await s.journal.delete(KEY, incarnation="none")
        assert await s.of_session() == left


async def test_a_session_that_was_evicted_whole_is_taken_out_of_the_index() -> None:
    async with stage() as s:
        for name in await s.of_session():
            await s.real.delete(name)
        assert await every(s.journal) == []
        assert await s.real.zcard(f"{s.prefix}:{{index}}:keys") == 1
        assert await s.real.zcard(f"{s.prefix}:{{index}}:labels") == 1


async def test_an_expired_session_is_replaced_whatever_is_left_of_it() -> None:
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=0))
    async with stage(limits=limits) as s:
        await s.real.delete(s.name("ids"))
        await s.journal.create(NEW)


# The index ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*INDEXES, "*"])
async def test_a_lost_index_is_made_anew(name: str) -> None:
    async with stage() as s:
        sessions = [SessionKey("app", f"u{n}", "", "s") for n in range(30)]
        sessions.append(SessionKey("", "", "", "alone"))
        for key in sessions:
            await s.journal.create(NewSession(key=key), change=CHANGE)
        before = [
            await every(s.journal, Query(labels=("x",)), order="key"),
            await every(s.journal, order="activity"),
            await s.journal.scopes("app"),
        ]
        assert [len(part) for part in before] == [32, 32, 32]
        async for key in s.real.scan_iter(f"{s.prefix}:{{index}}:{name}"):
            await s.real.delete(key)
        assert await s.journal.scopes("app") == before[2]
        async for key in s.real.scan_iter(f"{s.prefix}:{{index}}:{name}"):
            await s.real.delete(key)
        for order, part in (("activity", before[1]), ("key", before[1])):
            found = await every(s.journal, order=order)  # type: ignore[arg-type]
            assert sorted(found, key=str) == sorted(part, key=str)
        labelled = await every(s.journal, Query(labels=("x",)), order="key")
        assert labelled == before[0]


@pytest.mark.parametrize("name", INDEXES[:5])
async def test_a_sweep_finds_what_a_lost_index_held(name: str) -> None:
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=0, max_lifetime_secs=0))
    async with stage(limits=limits) as s:
        await s.real.delete(f"{s.prefix}:{{index}}:{name}")
        assert await s.journal.expire() == (KEY,)
        assert await s.of_session() == set()


# Foreign values ----------------------------------------------------------------------


async def test_bytes_that_are_no_text_are_damage() -> None:
    async with stage() as s:
        (row,) = await s.real.zrange(s.name("entries"), 0, -1)
        await s.real.delete(s.name("entries"))
        await s.real.zadd(s.name("entries"), {row[:-2] + b"\xff": 2})
        with pytest.raises(SessionDamagedError, match="'a' at 2"):
            await s.journal.load(KEY)


async def test_a_head_that_cannot_be_read_is_damage() -> None:
    async with stage() as s:
        await s.real.hset(s.name("session"), "about", "nonsense")
        scan: Call = lambda: s.journal.scan(Query())  # noqa: E731
        for call in (*calls(s.journal), scan):
            with pytest.raises(SessionDamagedError, match="head"):
                await call()
        await s.real.hset(s.name("session"), "facts", "1 2 3")
        for call in calls(s.journal):
            with pytest.raises(SessionDamagedError, match="head"):
                await call()


async def test_keys_of_another_kind_are_an_error_and_stay() -> None:
    async with stage() as s:
        await s.real.delete(s.name("ids"))
        await s.real.set(s.name("ids"), "mine")
        with pytest.raises(StorageError) as caught:
            await s.journal.append(KEY, batch("new"))
        assert isinstance(caught.value.__cause__, ResponseError)
        assert await s.real.get(s.name("ids")) == b"mine"


async def test_state_of_a_scope_that_was_evicted_is_empty() -> None:
    async with stage() as s:
        await s.real.delete(f"{s.prefix}:user_state:{{app:user}}")
        await s.real.delete(f"{s.prefix}:app_state:{{app}}")
        record = await s.journal.load(KEY)
        assert (record.user_state, record.app_state) == ({}, {})
        assert await s.journal.scopes("app") == ()
        await s.journal.update_scoped_state(ScopeKey("app"), StateDelta({"a": 2}))
        assert (await s.journal.load(KEY)).app_state == {"a": 2}


# A failover that lost writes ----------------------------------------------------------


async def test_a_handle_whose_session_went_back_is_read_again() -> None:
    async with stage() as s:
        handle = await JournaledSession.open(s.journal, KEY)
        names = await s.of_session()
        before = {name: await s.real.dump(name) for name in names}
        for text in ("lost 1", "lost 2", "lost 3"):
            await handle.add_message(ChatMessage.user(text))
        for name, value in before.items():
            await s.real.restore(name, 0, value, replace=True)
        await handle.add_message(ChatMessage.user("new"))
        stored = [entry.message for entry in (await s.journal.load(KEY)).entries]
        assert [message.text for message in stored if message][-1] == "new"
        assert await handle.get_messages() == stored
