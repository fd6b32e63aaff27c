"""`erase`: nothing of the user is left, nothing of others is touched."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from journal_bindings import loops

from raf_session.changes import Change, StateDelta
from raf_session.conformance import JournalHarness, TickingClock
from raf_session.conformance.clock import START
from raf_session.conformance.journal_values import batch, every
from raf_session.errors import InvalidValueError, SessionDamagedError, StorageBusyError
from raf_session.journal import Journal, Order, Page
from raf_session.journals.memory import MemoryJournal
from raf_session.journals.sqlite import SqliteJournal
from raf_session.key_paths import agent_key
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions
from raf_session.transfer import Erasure, erase
from transfer.transfer_values import (
    ANN,
    BOB,
    BrokenError,
    Damage,
    Watched,
    everything,
    fill,
    fill_scopes,
)

pytestmark = pytest.mark.anyio

OTHERS = (
    BOB,
    SessionKey("shop", "ann2", "", "s"),
    SessionKey("shop", "", "ann", "ann"),
    SessionKey("other", "ann", "", "s/1"),
    SessionKey("shop", "ANN", "", "s"),
)
MINE = (
    ANN,
    SessionKey("shop", "ann", "", "s2"),
    SessionKey("shop", "ann", "web", "s/1"),
    agent_key("per_peer", agent="shop", channel="web", peer="ann"),
    agent_key("per_channel_peer", agent="shop", channel="w", chat="c", peer="ann"),
)


async def made(journal: Journal, clock: TickingClock) -> None:
    for key in (*MINE, *OTHERS):
        await fill(journal, key, clock)
    await fill_scopes(journal)


async def nothing_left(journal: Journal) -> None:
    assert await every(journal, Query(app="shop", user="ann")) == []
    assert (await journal.scoped_state(ScopeKey("shop", "ann"))).state == {}


async def test_everything_of_the_user_goes(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as journal:
        await made(journal, clock)
        before = await everything(journal)
        incarnations = {
            listed.head.key: listed.head.incarnation for listed in await every(journal)
        }
        begun = clock()
        receipt = await erase(journal, "shop", "ann")
        await nothing_left(journal)
        assert await everything(journal) == {key: before[key] for key in OTHERS}
        assert {e.key: e.incarnation for e in receipt.sessions} == {
            key: incarnations[key] for key in MINE
        }
        assert {(e.entries, e.entries_in_all) for e in receipt.sessions} == {(5, 10)}
        assert (receipt.app, receipt.user) == ("shop", "ann")
        assert (receipt.begun_at, receipt.finished_at) == (begun, begun)
        assert receipt.backend == journal.backend
        assert (receipt.state_keys, receipt.expired, receipt.walks) == (1, (), 2)
        found = json.loads(json.dumps(receipt.to_json()))
        assert found["sessions"][0]["key"] in {str(key) for key in MINE}
        assert found["begun_at"] == f"{begun:%Y-%m-%dT%H:%M:%S.%f}Z"
        assert set(await journal.scopes("shop")) == {
            ScopeKey("shop"),
            ScopeKey("shop", "zoe"),
        }


async def test_again_it_finds_nothing(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as journal:
        await made(journal, clock)
        await erase(journal, "shop", "ann")
        receipt = await erase(journal, "shop", "ann")
        assert (receipt.sessions, receipt.expired) == ((), ())
        assert (receipt.state_keys, receipt.walks) == (0, 1)


async def test_nothing_of_it_comes_back_under_the_key(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as journal:
        await fill(journal, ANN, clock)
        await erase(journal, "shop", "ann")
        await journal.create(NewSession(key=ANN))
        record = await journal.load(ANN, archived=True)
        assert (record.entries, record.archived) == ((), ())
        assert (record.state, record.provider_states) == ({}, {})
        assert record.request is None
        await journal.append(ANN, batch("e0"))


async def test_what_had_expired_goes_too(harness: JournalHarness) -> None:
    clock = TickingClock()
    ttl = SessionTTLOptions(max_idle_secs=60)
    limits = Limits(sessions=ttl, user_state=ttl)
    async with harness(clock=clock, limits=limits) as journal:
        for n in range(3):
            key = ANN._replace(session=f"old{n}")
            await journal.create(NewSession(key=key), batch("secret"))
        await journal.create(NewSession(key=BOB))
        scope = ScopeKey("shop", "ann")
        await journal.update_scoped_state(scope, StateDelta({"old": 1}))
        clock.tick(61)
        await journal.create(NewSession(key=ANN), batch("secret"))
        receipt = await erase(journal, "shop", "ann")
        assert [e.key for e in receipt.sessions] == [ANN]
        assert sorted(key.session for key in receipt.expired) == [
            *("old0", "old1", "old2")
        ]
        assert await journal.expire() == ()
        clock.set(START)
        await nothing_left(journal)


async def test_writers_at_work_keep_nothing_back(harness: JournalHarness) -> None:
    async with harness() as journal:
        await journal.create(NewSession(key=ANN), batch("a"))
        watched = Watched(journal)
        made: list[SessionKey] = []

        async def after(name: str, answer: Any) -> Any:
            # What a writer does right behind the listing that missed it.
            if name == "scan" and len(made) < 3:
                key = ANN._replace(session=f"new{len(made)}")
                made.append(key)
                await journal.create(NewSession(key=key), batch("b"))
                await journal.update_scoped_state(
                    ScopeKey("shop", "ann"), StateDelta({f"k{len(made)}": 1})
                )
            return answer

        watched.after = after
        receipt = await erase(watched.journal, "shop", "ann")
        assert {e.key for e in receipt.sessions} == {ANN, *made}
        assert (receipt.state_keys, receipt.walks) == (3, 5)
        await nothing_left(journal)


async def test_a_session_replaced_meanwhile_is_removed_under_its_own_incarnation() -> (
    None
):
    journal = MemoryJournal.opened()
    await journal.create(NewSession(key=ANN), batch("a"))
    watched = Watched(journal)
    replaced: list[str] = []

    async def before(name: str) -> None:
        if name == "delete" and watched.calls.count("delete") == 1:
            await journal.delete(ANN)
            commit = await journal.create(NewSession(key=ANN), batch("b"))
            replaced.append(commit.head.incarnation)

    watched.before = before
    receipt = await erase(watched.journal, "shop", "ann")
    assert [e.incarnation for e in receipt.sessions] == replaced
    await nothing_left(journal)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_stopped_at_any_call_it_goes_on(
    harness: JournalHarness, *, late: bool
) -> None:
    number = 0
    while True:
        clock = TickingClock()
        async with harness(clock=clock) as journal:
            for key in (*MINE[:2], BOB):
                await journal.create(NewSession(key=key), batch("a"))
            await fill_scopes(journal)
            watched = Watched(journal)
            watched.break_at(number, late=late)
            try:
                await erase(watched.journal, "shop", "ann")
            except BrokenError:
                number += 1
            else:
                assert number > 5
                return
            await erase(journal, "shop", "ann")
            await nothing_left(journal)
            assert set(await everything(journal)) == {BOB}


# What cannot be read ------------------------------------------------------------------


async def test_what_cannot_be_read_goes_too(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with SqliteJournal(path) as journal:
        state = StateDelta({"a": 1, "it's": 2, "q\"'\\": 3, "z": 4})
        for key in (*MINE, BOB):
            change = Change(user=state)
            await journal.create(NewSession(key=key), batch("secret"), change=change)
        damage = Damage(path)
        damage.tear_head(MINE[1])
        damage.tear_head(MINE[2])
        damage.tear(
            "UPDATE scoped_state SET value = '{torn' WHERE name <> 'z' AND scope = "
            "(SELECT number FROM scopes WHERE user = 'ann')"
        )
        receipt = await erase(journal, "shop", "ann")
        assert receipt.complete
        assert (set(receipt.damaged), receipt.failures) == (set(MINE[1:3]), ())
        mine = {MINE[0], *MINE[3:]}
        assert {e.key for e in receipt.sessions} == mine
        assert receipt.state_keys == 4
        assert receipt.to_json()["damaged"] == sorted(map(str, MINE[1:3]))
        await nothing_left(journal)
        assert set(await everything(journal)) == {BOB}
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM entries").fetchone() == (1,)


async def test_what_cannot_be_named_is_told_when_all_else_has_gone() -> None:
    journal = MemoryJournal.opened()
    for key in (ANN, BOB):
        change = Change(user=StateDelta({"a": 1}))
        await journal.create(NewSession(key=key), batch("a"), change=change)
    watched = Watched(journal)
    scope = ScopeKey("shop", "ann")
    damage = SessionDamagedError(scope, "memory", "the file is torn")

    async def before(name: str) -> None:
        if name == "scoped_state":
            raise damage

    watched.before = before
    erasure = Erasure(watched.journal, "shop", "ann")
    with pytest.raises(SessionDamagedError) as caught:
        await erasure.run()
    assert caught.value is damage
    assert set(await everything(journal)) == {BOB}
    receipt = erasure.receipt()
    assert not receipt.complete
    assert [e.key for e in receipt.sessions] == [ANN]
    assert [(f.key, f.error) for f in receipt.failures] == [(scope, damage)]
    assert receipt.to_json()["failures"] == [{"key": "shop/ann", "error": str(damage)}]


@pytest.mark.parametrize("name", ["shop/ann//torn", "a/b/c/d/e"])
async def test_a_listing_that_does_not_go_on_is_told_at_the_end(name: str) -> None:
    journal = MemoryJournal.opened()
    scope = ScopeKey("shop", "ann")
    await journal.update_scoped_state(scope, StateDelta({"a": 1}))
    watched = Watched(journal)
    damage = SessionDamagedError(name, "memory", "torn")

    async def before(call: str) -> None:
        if call == "scan":
            raise damage

    watched.before = before
    erasure = Erasure(watched.journal, "shop", "ann")
    with pytest.raises(SessionDamagedError) as caught:
        await erasure.run()
    assert caught.value is damage
    assert watched.calls[-1] == "expire"
    assert (await journal.scoped_state(scope)).state == {}
    assert (erasure.receipt().state_keys, erasure.receipt().complete) == (1, False)


async def test_a_damaged_session_that_cannot_be_deleted_is_told_at_the_end() -> None:
    journal = MemoryJournal.opened()
    for key in MINE[:3]:
        await journal.create(NewSession(key=key), batch("a"))
    watched = Watched(journal)
    damage = SessionDamagedError(MINE[1], "memory", "torn")

    async def scan(
        query: Query, cursor: str | None = None, *, order: Order, limit: int
    ) -> Page:
        page = await journal.scan(query, cursor, order=order, limit=limit)
        if any(listed.head.key == MINE[1] for listed in page.sessions):
            raise damage
        return page

    async def delete(key: SessionKey, *, incarnation: str | None = None) -> bool:
        if key == MINE[1]:
            raise damage
        return await journal.delete(key, incarnation=incarnation)

    watched.scan = scan  # type: ignore[attr-defined]
    watched.delete = delete  # type: ignore[attr-defined]
    erasure = Erasure(watched.journal, "shop", "ann")
    with pytest.raises(SessionDamagedError) as caught:
        await erasure.run()
    assert caught.value is damage
    assert [f.key for f in erasure.receipt().failures] == [MINE[1]]
    assert [listed.head.key for listed in await every(journal)] == [MINE[1]]


# Held by others -----------------------------------------------------------------------


async def expired_and_held(rounds: int) -> tuple[Watched, MemoryJournal]:
    """Return a journal whose sweeps pass over so often what has expired."""
    clock = TickingClock()
    ttl = SessionTTLOptions(max_idle_secs=60)
    journal = MemoryJournal.opened(clock=clock, limits=Limits(sessions=ttl))
    for key in (ANN, BOB):
        await journal.create(NewSession(key=key), batch("secret"))
    clock.tick(61)
    watched = Watched(journal)
    sweep = journal.expire

    async def expire(limit: int = 1000, *, dry_run: bool = False) -> tuple[Any, ...]:
        nonlocal rounds
        if dry_run or rounds == 0:
            return await sweep(limit, dry_run=dry_run)
        rounds -= 1
        return ()

    watched.expire = expire  # type: ignore[attr-defined]
    return watched, journal


async def test_it_waits_for_what_somebody_else_holds() -> None:
    watched, journal = await expired_and_held(2)
    receipt = await erase(watched.journal, "shop", "ann")
    assert receipt.expired == (ANN,)
    assert await journal.expire(dry_run=True) == ()


async def test_it_does_not_call_done_what_stays_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("raf_session.transfer.erasure._PAUSE", 0)
    watched, _ = await expired_and_held(-1)
    erasure = Erasure(watched.journal, "shop", "ann")
    with pytest.raises(StorageBusyError, match="shop/ann//s%2f1") as caught:
        await erasure.run()
    assert str(BOB) not in str(caught.value)
    assert not erasure.receipt().complete


@pytest.mark.parametrize("user", ["", "\0", "x" * 600])
async def test_a_user_is_named(user: str) -> None:
    journal = MemoryJournal.opened()
    await journal.create(NewSession(key=SessionKey.raf("s")))
    with pytest.raises(InvalidValueError):
        await erase(journal, "", user)
    assert len(await every(journal)) == 1


def test_on_every_loop(harness: JournalHarness) -> None:
    async def run() -> None:
        async with harness() as journal:
            await journal.create(NewSession(key=ANN))
            assert len((await erase(journal, "shop", "ann")).sessions) == 1

    for loop in loops(harness):
        anyio.run(run, backend=loop)
