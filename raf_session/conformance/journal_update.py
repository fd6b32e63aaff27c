"""Checks of `Journal.update` and of the revision: what a change touches."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final

from raf_session.changes import (
    Change,
    LabelDelta,
    RequestDelta,
    RequestRecord,
    SessionStatus,
    StateDelta,
)
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    batch,
    raises,
    same,
    together,
    unchanged,
    whole,
)
from raf_session.entries import Record
from raf_session.errors import SessionNotFoundError, StaleSessionError
from raf_session.journal import Commit

_FULL: Final = Change(
    session=StateDelta({"s": 1}),
    user=StateDelta({"u": 1}),
    app=StateDelta({"a": 1}),
    providers=StateDelta({"p": 1}),
    request=RequestDelta(0, b"12345678", 1, 2, 3),
    title="title",
    model="model",
    labels=LabelDelta(added=("x",)),
    status=SessionStatus.COMPACTED,
)
_D: Final = tuple(bytes([n]) * 8 for n in range(6))


def _moved(before: Record, **head: Any) -> Record:
    """Return the record with another head, its own update time left aside."""
    return before._replace(head=before.head._replace(**head))


async def check_update_touches_only_what_is_named(make: JournalFactory) -> None:
    """Each part of a change alters that part; everything else stays as it was."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a", "b"), archived=batch("z"), change=_FULL)
        parts: tuple[tuple[Change, dict[str, Any], dict[str, Any]], ...] = (
            (Change(session=StateDelta({"t": 2})), {"state": {"s": 1, "t": 2}}, {}),
            (Change(session=StateDelta({}, ["s"])), {"state": {"t": 2}}, {}),
            (Change(providers=StateDelta({"q": 2})),
             {"provider_states": {"p": 1, "q": 2}}, {}),
            (Change(title="other"), {}, {"title": "other"}),
            (Change(title=""), {}, {"title": ""}),
            (Change(model="other"), {}, {"model": "other"}),
            (Change(model=""), {}, {"model": ""}),
            (Change(labels=LabelDelta(("y",))), {}, {"labels": frozenset("xy")}),
            (Change(labels=LabelDelta((), ["x", "n"])), {}, {"labels": frozenset("y")}),
            (Change(pin=True), {}, {"pinned": True}),
            (Change(pin=False), {}, {"pinned": False}),
            (Change(status=SessionStatus.ARCHIVED), {}, {"status": "archived"}),
        )  # fmt: skip
        for change, fields, head in parts:
            before = await whole(journal)
            now = clock.tick()
            commit = await journal.update(KEY, change)
            after = await whole(journal)
            expected = _moved(
                before, revision=before.head.revision + 1, updated_at=now, **head
            )._replace(**fields)
            same(after, expected, f"{change}")
            same(commit.head, after.head, "the answer")
            same(commit.entries, (), "an update stores no entries")


async def check_small_changes_keep_the_revision(make: JournalFactory) -> None:
    """Touch, request record, user and app state alone do not count as a revision."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a"), change=_FULL)
        clock.tick()
        record = RequestRecord(b"87654321", 5, None, 1)
        parts: tuple[tuple[Change, dict[str, Any]], ...] = (
            (Change(user=StateDelta({"v": 2})), {"user_state": {"u": 1, "v": 2}}),
            (Change(app=StateDelta({"b": 2})), {"app_state": {"a": 1, "b": 2}}),
            (Change(request=record.after(None)), {"request": record}),
        )
        for change, fields in parts:
            before = await whole(journal)
            commit = await journal.update(KEY, change)
            after = await whole(journal)
            same(after.head.revision, 1, f"the revision after {change}")
            same(commit.head, after.head, "the answer")
            same(
                after._replace(head=before.head), before._replace(**fields), f"{change}"
            )
            same(after.head.last_active_at, START, "it is no activity")
        await journal.update(KEY, _FULL)
        same((await journal.load(KEY)).head.revision, 2, "all at once counts once")


async def check_touch_moves_only_activity(make: JournalFactory) -> None:
    """A touch moves last_active_at, never back, and nothing else."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a"), change=_FULL)
        before = await whole(journal)
        clock.tick(100)
        moment = START + timedelta(seconds=50, microseconds=1)
        await journal.update(KEY, Change(touch=moment))
        same(await whole(journal), _moved(before, last_active_at=moment), "a touch")
        async with unchanged(journal, "a touch in the past"):
            await journal.update(KEY, Change(touch=START))


async def check_an_empty_update_changes_nothing(make: JournalFactory) -> None:
    """A change that names nothing, or only empty deltas, is a no-op."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a"), change=_FULL)
        clock.tick()
        async with unchanged(journal, "an empty update"):
            commit = await journal.update(KEY, Change())
            same(commit.head, (await journal.load(KEY)).head, "the answer")
            empty = StateDelta()
            await journal.update(
                KEY,
                Change(
                    session=empty,
                    user=empty,
                    app=empty,
                    providers=empty,
                    labels=LabelDelta(),
                ),
            )


async def check_update_takes_the_time_told(make: JournalFactory) -> None:
    """`updated_at` of a change stands for the journal's clock."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW)
        clock.tick(100)
        made = START + timedelta(seconds=7)
        await journal.update(KEY, Change(title="t", updated_at=made))
        same((await journal.load(KEY)).head.updated_at, made, "updated_at")


async def check_update_checks_session_and_revision(make: JournalFactory) -> None:
    """Missing, of another incarnation, stale: nothing changes in any scope."""
    async with make() as journal:
        with raises(SessionNotFoundError, "an update of nothing"):
            await journal.update(KEY, _FULL)
        old = (await journal.create(NEW)).head.incarnation
        same((await whole(journal)).user_state, {}, "nothing was stored")
        await journal.delete(KEY)
        await journal.create(NEW)
        async with unchanged(journal, "a refused update"):
            with raises(SessionNotFoundError, "another incarnation") as gone:
                await journal.update(KEY, _FULL, incarnation=old)
            same(gone[0].reason, "replaced", "the reason")
            with raises(StaleSessionError, "a stale update") as caught:
                await journal.update(KEY, _FULL, expected_revision=9)
            same((caught[0].key, caught[0].expected), (str(KEY), 9), "the error")
        commit = await journal.update(KEY, _FULL, expected_revision=1)
        same(commit.head.revision, 2, "the revision")


async def check_parallel_updates_merge(make: JournalFactory) -> None:
    """Keys, labels and titles that parallel writers set are all there."""
    async with make() as journal:
        await journal.create(NEW)
        calls: list[Any] = []
        for n in range(20):
            delta = StateDelta({f"k{n}": n})
            change = Change(
                session=delta,
                user=delta,
                app=delta,
                providers=delta,
                labels=LabelDelta(added=(f"l{n}",)),
            )
            calls.append(partial(journal.update, KEY, change))
            calls.append(partial(journal.append, KEY, batch(f"e{n}")))
        calls.append(partial(journal.update, KEY, Change(title="Trip")))
        answers = await together(*calls)
        same(sum(isinstance(a, Commit) for a in answers), 41, "all were stored")
        record = await whole(journal)
        expected = {f"k{n}": n for n in range(20)}
        same(record.state, expected, "the session's state")
        same(record.user_state, expected, "the user's state")
        same(record.app_state, expected, "the app's state")
        same(record.provider_states, expected, "provider states")
        same(record.head.labels, frozenset(f"l{n}" for n in range(20)), "the labels")
        same(record.head.title, "Trip", "the title")
        same(record.head.revision, 42, "the revision")
        same(len(record.entries), 20, "the entries")


async def check_append_commits_its_change(make: JournalFactory) -> None:
    """State of all scopes is stored in the step that appends, or not at all."""
    async with make() as journal:
        await journal.create(NEW)
        await journal.append(KEY, batch("a"), change=_FULL)
        record = await whole(journal)
        same(
            (record.state, record.user_state, record.app_state, record.provider_states),
            ({"s": 1}, {"u": 1}, {"a": 1}, {"p": 1}),
            "the states",
        )
        same(record.request, RequestRecord(b"12345678", 1, 2, 3), "the request")
        same((record.head.title, record.head.revision), ("title", 2), "the head")
        other = Change(
            session=StateDelta({"s": 2}),
            user=StateDelta({}, ["u"]),
            app=StateDelta({"a": 2}),
            providers=StateDelta({}, ["p"]),
            title="other",
        )
        async with unchanged(journal, "a stale append"):
            with raises(StaleSessionError, "a stale append"):
                await journal.append(KEY, batch("b"), change=other, expected_revision=1)


async def check_a_deleted_key_is_no_null(make: JournalFactory) -> None:
    """`None` is a value in every state, a deleted key is gone, the last write wins."""
    async with make() as journal:
        none = StateDelta({"x": None, "y": None})
        change = Change(session=none, user=none, app=none, providers=none)
        await journal.create(NEW, change=change)
        gone = StateDelta({}, ["y", "never"])
        change = Change(session=gone, user=gone, app=gone, providers=gone)
        await journal.append(KEY, batch("a"), change=change)
        record = await whole(journal)
        states = (
            record.state, record.user_state, record.app_state, record.provider_states,
        )  # fmt: skip
        same(states, ({"x": None},) * 4, "after the deletion")
        back = StateDelta({"y": 2})
        await journal.update(KEY, Change(session=back, user=back))
        record = await whole(journal)
        same(record.state, {"x": None, "y": 2}, "a key set anew")
        same(record.user_state, {"x": None, "y": 2}, "a key of the user's set anew")


async def check_request_keeps_the_first_digests(make: JournalFactory) -> None:
    """A request record is "keep k, then these", and survives what others write."""
    async with make() as journal:
        await journal.create(NEW)
        same((await journal.load(KEY)).request, None, "before the first")
        steps = (
            (RequestDelta(0, _D[0] + _D[1] + _D[2], 2**64 - 1, None, 1), (0, 1, 2)),
            (RequestDelta(3, _D[3], 0, 2**64 - 1, 1, 2**64 - 1), (0, 1, 2, 3)),
            (RequestDelta(1, _D[4] + _D[5], 2**63, 0, 2, 0), (0, 4, 5)),
            (RequestDelta(2, b"", 7, base=2**63), (0, 4)),
            (RequestDelta(0, b"", 8, base=1), ()),
            (RequestDelta(0, b"".join(_D) * 200, 9, 10), tuple(range(6)) * 200),
        )
        for n, (delta, digests) in enumerate(steps):
            if n % 2:
                await journal.append(KEY, batch(f"r{n}"), change=Change(request=delta))
            else:
                await journal.update(KEY, Change(request=delta))
            await journal.append(KEY, batch(f"e{n}"), trim=2)
            await journal.update(KEY, Change(title=f"t{n}"))
            record = await journal.load(KEY)
            expected = RequestRecord(
                b"".join(_D[i] for i in digests), delta.hash, delta.header, delta.format
            )
            same(record.request, expected, f"after {n}")
            head = record.head
            seen = (head.request_n, head.request_hash, head.request_header)
            same(seen, (len(digests), delta.hash, delta.header), "the head")
            same(head.request_format, delta.format, "the format")


async def check_request_keeps_only_what_it_knows(make: JournalFactory) -> None:
    """Keeping digests of another record than the stored one is stale, and no change."""
    async with make() as journal:
        first = Change(request=RequestDelta(0, _D[0] + _D[1], 1))
        await journal.create(NEW, batch("a", "b"), change=first)
        for delta in (
            RequestDelta(3, _D[1], 2, base=1),  # more than there are
            RequestDelta(1, _D[1], 2, base=7),  # of another record
            RequestDelta(1, b"", 2),  # of no record
        ):
            change = Change(
                request=delta,
                session=StateDelta({"k": 1}),
                user=StateDelta({"u": 1}),
                title="t",
            )
            async with unchanged(journal, f"{delta}"):
                with raises(StaleSessionError, f"an update with {delta}"):
                    await journal.update(KEY, change)
                with raises(StaleSessionError, f"an append with {delta}"):
                    await journal.append(KEY, batch("c"), change=change)
                with raises(StaleSessionError, f"a splice with {delta}"):
                    await journal.splice(
                        KEY, 1, 1, batch("s"), archive=True, change=change
                    )
        await journal.update(KEY, Change(request=RequestDelta(2, _D[2], 2, base=1)))
        record = RequestRecord(_D[0] + _D[1] + _D[2], 2)
        same((await journal.load(KEY)).request, record, "the record")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_update_touches_only_what_is_named,
    check_small_changes_keep_the_revision,
    check_touch_moves_only_activity,
    check_an_empty_update_changes_nothing,
    check_update_takes_the_time_told,
    check_update_checks_session_and_revision,
    check_parallel_updates_merge,
    check_append_commits_its_change,
    check_a_deleted_key_is_no_null,
    check_request_keeps_the_first_digests,
    check_request_keeps_only_what_it_knows,
)
