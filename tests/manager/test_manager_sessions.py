"""Sessions of a manager: made once, found, expired, removed, listed, described."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from around_journals import AroundJournal, as_journal
from manager_bindings import ManagerHarness, on_every_manager, with_claims
from manager_values import (
    ANN,
    KEY,
    Scribe,
    agent,
    configured,
    stored,
    texts,
    turns,
    user,
)
from typing_extensions import override

from raf_session.conformance import Capability, TickingClock
from raf_session.errors import InvalidValueError, SessionNotFoundError
from raf_session.journals.memory import MemoryJournal
from raf_session.key_paths import SessionScope, parse_agent_key
from raf_session.keys import SessionKey
from raf_session.manager import (
    AgentsConfig,
    CompactionOutcome,
    ManagedSession,
    SessionManager,
    SessionRequest,
    SessionState,
)
from raf_session.options import NewSession

pytestmark = pytest.mark.anyio

BOB = replace(ANN, scope_id="bob")


# Made and found --------------------------------------------------------------------


@on_every_manager
async def test_of_parallel_first_messages_one_makes_the_session(
    bound: ManagerHarness,
) -> None:
    async with bound() as manager:

        async def say(n: int) -> None:
            session = await manager.get_or_create(ANN)
            await manager.add_message(session, user(f"u{n}"))

        async with anyio.create_task_group() as tasks:
            for n in range(8):
                tasks.start_soon(say, n)
        session = await manager.get(KEY)
        assert session is not None
        said = texts(await session.get_messages())
        assert sorted(said) == [f"u{n}" for n in range(8)]
        assert session.head.active.messages == 8


@on_every_manager
async def test_get_does_not_create(bound: ManagerHarness) -> None:
    async with bound() as manager:
        assert await manager.get(KEY) is None
        assert await manager.meta(KEY) is None
        assert not await manager.delete(KEY)
        with pytest.raises(SessionNotFoundError):
            await manager.add_message(KEY, user("hello"))
        with pytest.raises(SessionNotFoundError):
            await manager.load_history(KEY)
        with pytest.raises(SessionNotFoundError):
            await manager.statistics(KEY)
        with pytest.raises(SessionNotFoundError):
            await manager.update(KEY, title="none")
        assert (await manager.list()).sessions == ()


@on_every_manager
async def test_a_session_is_found_by_text_by_key_and_as_it_is(
    bound: ManagerHarness,
) -> None:
    async with bound() as manager:
        made = await manager.get_or_create(ANN)
        assert made.agent_key == KEY
        assert made.key == parse_agent_key(KEY)
        for ref in (KEY, made.key, made):
            found = await manager.get(ref)
            assert found is not None
            assert found.head.incarnation == made.head.incarnation
            await manager.add_message(ref, user("hello"))
        assert texts(await made.get_messages()) == ["hello"] * 3


async def test_what_is_no_agents_session_is_refused() -> None:
    manager = SessionManager(MemoryJournal.opened())
    for ref in (SessionKey.raf("s1"), "s1", "agent:a:channel:b:scope:nowhere:c"):
        with pytest.raises(InvalidValueError):
            await manager.get(ref)


@on_every_manager
async def test_an_expired_session_is_replaced(bound: ManagerHarness) -> None:
    clock = TickingClock()
    config = configured(session={"idle_timeout": "30m", "ttl": "24h"})
    async with bound(config, clock=clock) as manager:
        first = await manager.get_or_create(ANN)
        await manager.add_message(first, user("old"))
        incarnation = first.head.incarnation
        clock.tick(30 * 60)
        assert (await manager.get_or_create(ANN)).head.incarnation == incarnation
        clock.tick(microseconds=1)
        assert await manager.get(KEY) is None
        second = await manager.get_or_create(ANN)
        assert second.head.incarnation != incarnation
        assert await second.get_messages() == []
        with pytest.raises(SessionNotFoundError):
            await manager.add_message(first, user("late"))


@on_every_manager
async def test_the_time_to_live_ends_a_session_that_is_in_use(
    bound: ManagerHarness,
) -> None:
    clock = TickingClock()
    config = configured(session={"idle_timeout": None, "ttl": "2h"})
    async with bound(config, clock=clock) as manager:
        session = await manager.get_or_create(ANN)
        for n in range(2):
            clock.tick(3600)
            await manager.add_message(session, user(f"u{n}"))
        clock.tick(microseconds=1)
        assert await manager.get(KEY) is None
        assert await manager.cleanup_expired() == 1
        assert await manager.cleanup_expired() == 0


@on_every_manager
async def test_a_pinned_session_does_not_expire(bound: ManagerHarness) -> None:
    clock = TickingClock()
    async with bound(AgentsConfig(), clock=clock) as manager:
        for request in (ANN, BOB):
            await manager.get_or_create(request)
        await manager.update(KEY, pinned=True)
        clock.tick(48 * 3600)
        assert await manager.cleanup_expired() == 1
        assert await manager.get(KEY) is not None


@with_claims(Capability.DURABLE)
async def test_a_session_is_there_after_a_restart(bound: ManagerHarness) -> None:
    async with bound.storage() as opener:
        async with opener() as manager:
            session = await manager.get_or_create(ANN)
            await manager.add_messages(session, [user("hello"), agent("hi")])
        async with opener() as manager:
            found = await manager.get(KEY)
            assert found is not None
            assert stored(found) == ["hello", "hi"]
            assert found.head.active.tokens == len("hello") + len("hi")


@on_every_manager
async def test_a_deleted_session_is_gone_and_another_begins_empty(
    bound: ManagerHarness,
) -> None:
    async with bound() as manager:
        first = await manager.get_or_create(ANN)
        await manager.add_message(first, user("old"))
        await manager.request(first)
        assert await manager.delete(KEY)
        assert await manager.get(KEY) is None
        with pytest.raises(SessionNotFoundError):
            await manager.request(first)
        second = await manager.get_or_create(ANN)
        assert await second.get_messages() == []
        assert not await manager.delete(first)
        assert await manager.delete(second)


# Described -------------------------------------------------------------------------


@on_every_manager
async def test_update_alters_what_is_named_and_is_no_activity(
    bound: ManagerHarness,
) -> None:
    clock = TickingClock()
    async with bound(clock=clock) as manager:
        session = await manager.get_or_create(ANN)
        before = session.last_active_at
        clock.tick(60)
        meta = await manager.update(
            KEY, title="Trip", model="m-1", add_labels=("vip", "eu")
        )
        assert (meta.title, meta.model, meta.key) == ("Trip", "m-1", KEY)
        assert session.head.labels == {"vip", "eu"}
        meta = await manager.update(
            session, state=SessionState.ARCHIVED, remove_labels=("eu",)
        )
        assert (meta.title, meta.state) == ("Trip", SessionState.ARCHIVED)
        assert session.head.labels == {"vip"}
        assert session.last_active_at == before
        with pytest.raises(ValueError, match="idle"):
            await manager.update(KEY, state=SessionState.IDLE)


@on_every_manager
async def test_meta_describes_the_session_as_the_document_does(
    bound: ManagerHarness,
) -> None:
    clock = TickingClock()
    async with bound(clock=clock) as manager:
        session = await manager.get_or_create(ANN)
        await manager.add_messages(session, [user("hello"), agent("hi")], model="m-1")
        meta = await manager.meta(KEY)
        assert meta == session.meta
        assert meta is not None
        assert (meta.agent_id, meta.channel) == ("main", "discord")
        assert (meta.scope, meta.scope_id) == (SessionScope.PER_PEER, "ann")
        assert (meta.message_count, meta.total_token_count) == (2, 7)
        assert (meta.model, meta.compacted_summary) == ("m-1", "")
        assert (meta.created_at, meta.updated_at) == (clock(), clock())
        assert meta.state is SessionState.ACTIVE
        clock.tick(301)
        assert session.meta.state is SessionState.IDLE


async def test_meta_has_the_summary_and_a_listing_has_not() -> None:
    scribe = Scribe(answer="short")
    manager = SessionManager(MemoryJournal.opened(), summarizer=scribe)
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, turns(15))
    assert (await manager.compact(KEY)).outcome is CompactionOutcome.COMPACTED
    meta = await manager.meta(KEY)
    assert meta is not None
    assert (meta.compacted_summary, meta.state) == ("short", SessionState.COMPACTED)
    (listed,) = (await manager.list()).sessions
    assert listed == meta.model_copy(update={"compacted_summary": ""})


# Listed ----------------------------------------------------------------------------


async def pages(manager: SessionManager, **wanted: object) -> list[str]:
    """Return the scope ids of a whole listing, read in pages of 2."""
    found: list[str] = []
    cursor = None
    while True:
        page = await manager.list(limit=2, cursor=cursor, **wanted)  # type: ignore[arg-type]
        assert len(page.sessions) <= 2
        found += [meta.scope_id for meta in page.sessions]
        cursor = page.cursor
        if cursor is None:
            return sorted(found)


@on_every_manager
async def test_a_listing_is_filtered_and_comes_in_pages(bound: ManagerHarness) -> None:
    clock = TickingClock()
    async with bound(clock=clock) as manager:
        for request in (
            SessionRequest("a", "irc", "per_peer", peer="ann"),
            SessionRequest("a", "irc", "per_peer", peer="bob"),
            SessionRequest("a", "irc", "thread", chat="c", thread="t"),
            SessionRequest("a", "mail", "per_channel_peer", chat="c", peer="ann"),
            SessionRequest("b", "irc", "per_peer", peer="cid"),
            SessionRequest("b", scope="main"),
        ):
            await manager.get_or_create(request)
        await manager.journal.create(NewSession(key=SessionKey.raf("other face")))
        await manager.update(
            "agent:b:channel:irc:scope:per_peer:cid", state=SessionState.ARCHIVED
        )
        everybody = ["ann", "bob", "c/ann", "c/t", "cid", "main"]
        assert await pages(manager) == everybody
        assert await pages(manager, agent_id="a") == ["ann", "bob", "c/ann", "c/t"]
        assert await pages(manager, channel="irc") == ["ann", "bob", "c/t", "cid"]
        assert await pages(manager, scope="per_peer") == ["ann", "bob", "cid"]
        assert await pages(manager, channel="irc", scope="thread") == ["c/t"]
        assert await pages(manager, user_id="ann") == ["ann", "c/ann"]
        assert await pages(manager, agent_id="b", user_id="ann") == []
        assert await pages(manager, state="archived") == ["cid"]
        assert await pages(manager, state="idle") == []
        clock.tick(301)
        idle = sorted(set(everybody) - {"cid"})
        assert await pages(manager, state="idle") == idle
        with pytest.raises(ValueError, match="1"):
            await manager.list(limit=0)


class Counting(AroundJournal):
    """Counts the calls."""

    calls = 0

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        self.calls += 1
        return await call(*args, **kwargs)


async def test_a_page_is_one_scan_whatever_it_holds() -> None:
    around = Counting(MemoryJournal.opened())
    manager = SessionManager(as_journal(around))
    for n in range(20):
        session = await manager.get_or_create(replace(ANN, scope_id=f"p{n}"))
        await manager.add_messages(session, turns(n))
    for limit in (1, 20):
        around.calls = 0
        page = await manager.list(limit=limit, user_id=None, state="active")
        assert (len(page.sessions), around.calls) == (limit, 1)


# Off -------------------------------------------------------------------------------


async def test_with_sessions_off_nothing_is_stored_and_no_folder_made(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "sessions"
    config = configured(session={"enabled": False, "storage_path": str(folder)})
    async with SessionManager.from_config(config, summarizer=Scribe()) as manager:
        session = await manager.get_or_create(ANN)
        await manager.add_messages(session, turns(2))
        turn = await manager.request(session)
        assert len(turn.messages) == 4  # as long as its holder holds it
        await manager.add_message(session.agent_key, user("lost"))
        assert await manager.get(KEY) is None
        assert (await manager.load_history(KEY)).messages == ()
        assert (await manager.list()).sessions == ()
        assert (await manager.statistics(KEY)).active.messages == 0
        report = await manager.compact(KEY)
        assert report.outcome is CompactionOutcome.NOTHING_TO_DO
        assert not await manager.delete(KEY)
        assert await manager.cleanup_expired() == 0
        again = await manager.get_or_create(ANN)
        assert await again.get_messages() == []
        await session.flush()
    assert not folder.exists()


async def test_files_appear_in_the_storage_path_under_the_documents_names(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "kept"
    config = configured(session={"storage_path": str(folder)})
    async with SessionManager.from_config(config) as manager:
        await manager.add_message(await manager.get_or_create(ANN), user("hello"))
    file = folder / "main" / "discord" / "per_peer_ann.jsonl"
    assert '"hello"' in file.read_text(encoding="utf-8")


async def test_a_url_takes_the_place_of_the_storage_path(tmp_path: Path) -> None:
    config = configured(session={"storage_path": str(tmp_path / "unused")})
    clock = TickingClock()
    manager = SessionManager.from_config(config, url="memory://", clock=clock)
    async with manager:
        await manager.get_or_create(ANN)
        clock.tick(30 * 60 + 1)
        assert await manager.get(KEY) is None  # the limits are the configuration's
    assert not (tmp_path / "unused").exists()


async def test_a_time_to_live_that_the_journal_has_not_is_refused() -> None:
    config = configured(session={"ttl": "1h"})
    with pytest.raises(ValueError, match="limits=config"):
        SessionManager(MemoryJournal.opened(), config)
    limits = config.session.limits
    SessionManager(MemoryJournal.opened(limits=limits), config)
    SessionManager(MemoryJournal.opened(), AgentsConfig())  # none was named
    assert config.session.ttl == timedelta(hours=1)


async def test_the_default_scope_is_that_of_requests_that_name_none() -> None:
    config = configured(session={"default_scope": "thread"})
    manager = SessionManager(MemoryJournal.opened(), config)
    request = SessionRequest("a", "irc", chat="c", thread="t", peer="ann")
    session = await manager.get_or_create(request)
    assert session.agent_key == "agent:a:channel:irc:scope:thread:c/t"
    session = await manager.get_or_create(replace(request, scope="per_peer"))
    assert session.agent_key == "agent:a:channel:irc:scope:per_peer:ann"
    assert isinstance(session, ManagedSession)
