"""Checks of `Journal.load`: windows, refresh, isolation and the archive."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta
from typing import Any, Final, cast

import anyio

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    batch,
    every,
    ids,
    places,
    raises,
    said,
    same,
    unchanged,
    whole,
)
from raf_session.entries import Entry
from raf_session.errors import SessionNotFoundError
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import HEAD_ONLY, NewSession, Window

_USER: Final = ScopeKey("app", "user")
_APP: Final = ScopeKey("app")


def _fits(entry: Entry, window: Window) -> bool:
    after_time = window.after_time
    assert entry.stored_at is not None, "a stored entry has a time"
    return (
        (window.after_seq is None or entry.seq > window.after_seq)
        and (window.before_seq is None or entry.seq < window.before_seq)
        and (after_time is None or entry.stored_at > after_time)
    )


async def check_load_reads_the_window(make: JournalFactory) -> None:
    """Last n, after, before and later than: alone and combined, strict, in order."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, archived=batch("gone"))
        for n in range(5):  # 2 entries each second, at places 2 to 11
            clock.set(START + timedelta(seconds=n))
            await journal.append(KEY, batch(f"a{n}", f"b{n}"))
        record = await journal.load(KEY)
        stored = record.entries
        same(places(stored), list(range(2, 12)), "the whole window")
        seconds = (None, -1, 0, 2, 4)
        times = [None if s is None else START + timedelta(seconds=s) for s in seconds]
        times.append(START + timedelta(seconds=2, microseconds=-1))
        for last in (None, 0, 1, 3, 10, 11, 1000):
            for after in (None, 0, 1, 5, 11, 2**40):
                for before in (None, 0, 2, 6, 12, 2**40):
                    for after_time in times:
                        window = Window(
                            last=last,
                            after_seq=after,
                            before_seq=before,
                            after_time=after_time,
                        )
                        left = [e for e in stored if _fits(e, window)]
                        if last is not None:
                            left = left[max(0, len(left) - last) :]
                        seen = await journal.load(KEY, window)
                        same(places(seen.entries), places(left), f"{window}")


async def check_load_of_a_window_knows_the_whole_head(make: JournalFactory) -> None:
    """Head, state and archive do not depend on the window of active entries."""
    async with make() as journal:
        await journal.create(
            NEW, batch("a", "b"), change=Change(session=StateDelta({"k": 1}))
        )
        await journal.append(KEY, batch("c"), trim=2)
        full = await whole(journal)
        part = await journal.load(KEY, HEAD_ONLY, archived=True)
        same(part.entries, (), "no entry was asked for")
        same(part._replace(entries=full.entries), full, "all else is the same")


async def check_load_of_a_missing_session_raises(make: JournalFactory) -> None:
    """What does not exist is `SessionNotFoundError`, with its key."""
    async with make() as journal:
        await journal.create(NEW)
        for key in (KEY._replace(session="other"), KEY._replace(user="other")):
            with raises(SessionNotFoundError, f"load of {key}") as caught:
                await journal.load(key)
            same((caught[0].key, caught[0].reason), (str(key), "missing"), "the error")


async def check_refresh_moves_only_activity(make: JournalFactory) -> None:
    """A refresh moves last_active_at of session and scopes read, and nothing else."""
    clock = TickingClock()
    change = Change(user=StateDelta({"u": 1}), app=StateDelta({"a": 1}))
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a"), change=change)
        other = SessionKey("app", "else", "", "session")
        await journal.create(NewSession(key=other), change=Change(user=change.user))
        before = await whole(journal)
        now = clock.tick(60)
        answer = await journal.load(KEY, refresh=True)
        same(answer.head.last_active_at, now, "the answer shows the refresh")
        after = await whole(journal)
        same(
            after,
            before._replace(head=before.head._replace(last_active_at=now)),
            "all but last_active_at",
        )
        for scope, moved in ((_USER, True), (_APP, True), (ScopeKey("app", "else"), 0)):
            scoped = await journal.scoped_state(scope)
            same(scoped.created_at, START, f"created_at of {scope}")
            same(scoped.last_active_at, now if moved else START, f"activity of {scope}")
        head = (await journal.load(other)).head
        same(head.last_active_at, START, "another session is not refreshed")


async def check_refresh_never_goes_back(make: JournalFactory) -> None:
    """A refresh by a clock that went backwards moves no time."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, change=Change(user=StateDelta({"u": 1})))
        clock.tick(-60)
        async with unchanged(journal, "a refresh in the past"):
            await journal.load(KEY, refresh=True)
            await journal.scoped_state(_USER, refresh=True)
        scoped = await journal.scoped_state(_USER)
        same(scoped.last_active_at, START, "nor that of the user's state")


async def check_reads_move_nothing(make: JournalFactory) -> None:
    """Load, scan, scoped_state, scopes and a dry expire leave every time alone."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(
            NEW,
            batch("a"),
            change=Change(
                user=StateDelta({"u": 1}),
                app=StateDelta({"a": 1}),
                labels=LabelDelta(added=("x",)),
            ),
        )
        clock.tick(60)
        async with unchanged(journal, "reading"):
            await journal.load(KEY)
            await journal.load(KEY, Window(last=1), archived=True)
            await every(journal, order="activity", state=True)
            await every(journal, order="key")
            await journal.scoped_state(_USER)
            await journal.scopes("app")
            await journal.expire(dry_run=True)
        for scope in (_USER, _APP):
            scoped = await journal.scoped_state(scope)
            same(scoped.last_active_at, START, f"activity of {scope}")


async def check_archive_is_read_on_request(make: JournalFactory) -> None:
    """The archive comes in the order of places, and only when it is asked for."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c", "d"))
        await journal.splice(KEY, 3, 3, archive=True)
        await journal.splice(KEY, 1, 1, archive=True)
        same((await journal.load(KEY)).archived, (), "a plain load")
        record = await journal.load(KEY, archived=True)
        same(ids(record.archived), ["a", "c"], "by place, not by leaving")
        same([e.left_at for e in record.archived], [3, 2], "who left when")
        same(ids(record.entries), ["b", "d"], "the active window")


async def check_load_is_of_one_moment(make: JournalFactory) -> None:
    """Head, state and entries of a load belong together while others write."""
    async with make() as journal:
        await journal.create(
            NEW, batch("0"), change=Change(session=StateDelta({"n": 0}))
        )
        seen: list[int] = []
        done = anyio.Event()

        async def write() -> None:
            for n in range(1, 60):
                change = Change(session=StateDelta({"n": n}))
                await journal.append(KEY, batch(str(n)), change=change, trim=5)
                await anyio.lowlevel.checkpoint()
            done.set()

        async def read() -> None:
            while not done.is_set():
                record = await journal.load(KEY, archived=True)
                n = record.state["n"]
                both = [*record.archived, *record.entries]
                same(
                    ids(both), [str(i) for i in range(n + 1)], "entries at that moment"
                )
                same(record.head.revision, n + 1, "the revision of that moment")
                same(record.head.active.entries, len(record.entries), "active count")
                seen.append(n)
                await anyio.lowlevel.checkpoint()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(write)
                group.start_soon(read)
                group.start_soon(read)
        same(seen != [], True, "something was read")


async def check_load_of_many_entries_is_whole(make: JournalFactory) -> None:
    """More entries than fit in a page come once each, in order, archived ones too."""
    many = [said(f"e{n}", str(n)) for n in range(2500)]
    async with make() as journal:
        await journal.create(NEW, many[1200:1210], archived=many[:1200])
        await journal.append(KEY, many[1210:])
        record = await whole(journal)
        same(ids(record.archived), ids(many[:1200]), "the archive")
        same(ids(record.entries), ids(many[1200:]), "the active window")
        same(places(record.entries), list(range(1201, 2501)), "the places")
        part = await journal.load(KEY, Window(last=1100, before_seq=2450))
        same(places(part.entries), list(range(1350, 2450)), "a long window")


async def check_what_is_read_is_nobodys(make: JournalFactory) -> None:
    """Changing what a call returned changes nothing that is stored."""
    change = Change(
        session=StateDelta({"s": {"deep": [1]}}),
        user=StateDelta({"u": {"deep": [1]}}),
        app=StateDelta({"a": {"deep": [1]}}),
        providers=StateDelta({"p": {"deep": [1]}}),
    )
    async with make() as journal:
        entry = Entry(
            "a",
            message=ChatMessage.from_openai({"role": "user", "x": {"deep": [1]}}),
            metadata={"deep": {"list": [1]}},
            extra={"deep": {"list": [1]}},
        )
        commit = await journal.create(NEW, [entry], change=change)
        async with unchanged(journal, "changing what was returned"):
            record = await whole(journal)
            listed = await every(journal, state=True)
            scoped = await journal.scoped_state(_USER)
            stored = record.entries[0]
            assert stored.message is not None, "the message was stored"
            for value in (
                record.state,
                record.user_state,
                record.app_state,
                record.provider_states,
                listed[0].state,
                scoped.state,
                stored.metadata,
                stored.extra,
                stored.message.extra,
                commit.entries[0].metadata,
            ):
                _spoil(value)
        same(
            (await journal.scoped_state(_USER)).state,
            {"u": {"deep": (1,)}},
            "the user's state is as it was",
        )


def _spoil(value: Any) -> None:
    """Try to change a value on every level; a refusal is as good as a copy."""
    for name, inner in list(value.items()):
        if isinstance(inner, dict):
            _spoil(cast("dict[str, Any]", inner))
        elif isinstance(inner, list):
            cast("list[object]", inner).append("spoiled")
        try:
            value[name] = "spoiled"
        except TypeError:
            continue
    try:
        value["new"] = "spoiled"
    except TypeError:
        return


async def check_what_is_read_can_be_copied(make: JournalFactory) -> None:
    """A record survives a deep copy and a pickle, with its times and places."""
    async with make(clock=TickingClock()) as journal:
        change = Change(session=StateDelta({"s": {"deep": [1]}}))
        await journal.create(NEW, batch("a"), archived=batch("z"), change=change)
        record = await whole(journal)
        same(copy.deepcopy(record), record, "a deep copy")
        same(pickle.loads(pickle.dumps(record)), record, "a pickle")  # noqa: S301
        stored = pickle.loads(pickle.dumps(record.entries[0]))  # noqa: S301
        same((stored.stored_at, stored.seq), (START, 2), "its time and place")


async def check_what_is_given_stays_the_callers(make: JournalFactory) -> None:
    """Changing an argument after the call changes nothing that is stored."""
    nested: dict[str, Any] = {"deep": [1, {"x": 1}]}
    entries = [Entry("a", metadata=nested, extra=nested)]
    async with make() as journal:
        await journal.create(
            NEW,
            entries,
            change=Change(session=StateDelta(nested), user=StateDelta(nested)),
        )
        more = [said("b")]
        await journal.append(
            KEY, more, change=Change(providers=StateDelta({"p": nested}))
        )
        async with unchanged(journal, "changing what was given"):
            nested["deep"][1]["x"] = 2
            nested["deep"].append(3)
            nested["new"] = 4
            entries.clear()
            more.append(said("c"))


async def check_a_follower_misses_nothing(make: JournalFactory) -> None:
    """Who reads on after the last place seen sees each entry once, beside writers."""
    async with make() as journal:
        await journal.create(NEW)
        writing = 4
        seen: list[Entry] = []

        async def write(writer: int) -> None:
            nonlocal writing
            for n in range(10):
                await journal.append(KEY, batch(f"{writer}-{n}"))
                await anyio.lowlevel.checkpoint()
            writing -= 1

        async def follow() -> None:
            while True:
                over = not writing
                after = seen[-1].seq if seen else 0
                seen.extend((await journal.load(KEY, Window(after_seq=after))).entries)
                if over:
                    return
                await anyio.lowlevel.checkpoint()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for writer in range(writing):
                    group.start_soon(write, writer)
                group.start_soon(follow)
        same(ids(seen), ids((await journal.load(KEY)).entries), "what was followed")
        same(len(seen), 40, "how many")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_load_reads_the_window,
    check_load_of_a_window_knows_the_whole_head,
    check_load_of_a_missing_session_raises,
    check_refresh_moves_only_activity,
    check_refresh_never_goes_back,
    check_reads_move_nothing,
    check_archive_is_read_on_request,
    check_load_is_of_one_moment,
    check_a_follower_misses_nothing,
    check_load_of_many_entries_is_whole,
    check_what_is_read_is_nobodys,
    check_what_is_read_can_be_copied,
    check_what_is_given_stays_the_callers,
)
