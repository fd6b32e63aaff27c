"""`erase`: nothing of the user is left, nothing of others is touched."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from journal_bindings import loops

from raf_session.changes import StateDelta
from raf_session.conformance import JournalHarness, TickingClock
from raf_session.conformance.clock import START
from raf_session.conformance.journal_values import batch, every
from raf_session.errors import InvalidValueError
from raf_session.journal import Journal
from raf_session.journals.memory import MemoryJournal
from raf_session.key_paths import agent_key
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions
from raf_session.transfer import erase
from transfer.transfer_values import (
    ANN,
    BOB,
    BrokenError,
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
