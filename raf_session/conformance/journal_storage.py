"""Checks that open one storage more than once: restart, two handles, a codec."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import anyio
from anyio import to_thread
from typing_extensions import override

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_harness import (
    Capability,
    JournalCheck,
    JournalHarness,
)
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    body,
    every,
    ids,
    places,
    raises,
    said,
    same,
    together,
    whole,
)
from raf_session.errors import (
    SessionExistsError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.journal import Codec, Commit
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions

_FULL: Final = Change(
    session=StateDelta({"s": [1, None, -0.0]}),
    user=StateDelta({"u": {"z": 1, "a": 2}}),
    app=StateDelta({"a": 2**64}),
    providers=StateDelta({"p": "\ud83d"}),
    request=RequestDelta(0, b"12345678" * 3, 2**64 - 1, 2**63, 1),
    title="Trip",
    model="m",
    labels=LabelDelta(added=("x", "y")),
)
_USER: Final = ScopeKey("app", "user")


class PackingCodec(Codec):
    """Turns the bytes over and packs them, so that none stands as it was."""

    @override
    def encode(self, data: bytes, /) -> bytes:
        """Return them packed."""
        return bytes(byte ^ 0xA5 for byte in zlib.compress(data))

    @override
    def decode(self, data: bytes, /) -> bytes:
        """Return them as they were."""
        return zlib.decompress(bytes(byte ^ 0xA5 for byte in data))


async def check_what_was_stored_survives_a_restart(harness: JournalHarness) -> None:
    """Everything that was acknowledged is read when the storage is opened again."""
    clock = TickingClock()
    async with harness.storage() as opened:
        async with opened(clock=clock) as journal:
            await journal.create(
                NEW, batch("a", "b"), archived=batch("z"), change=_FULL
            )
            clock.tick(0.000001)
            await journal.append(KEY, [said("c", "\0\ud83d😀")], trim=2)
            await journal.splice(KEY, 3, 3, batch("s"), archive=True)
            before = await whole(journal)
            listed = await every(journal, state=True)
            scoped = await journal.scoped_state(_USER)
        clock.tick(60)
        for _ in range(2):
            async with opened(clock=clock) as journal:
                after = await whole(journal)
                same(after, before, "the session")
                bodies = [body(e) for e in after.entries + after.archived]
                expected = [body(e) for e in before.entries + before.archived]
                same(bodies, expected, "the entries")
                same(await every(journal, state=True), listed, "the listing")
                same(await journal.scoped_state(_USER), scoped, "the user's state")


async def check_a_restart_changes_no_rule(harness: JournalHarness) -> None:
    """After a restart places, revisions, known ids and incarnations go on."""
    async with harness.storage() as opened:
        async with opened() as journal:
            head = (await journal.create(NEW, batch("a", "b", "c"))).head
            await journal.splice(KEY, 3, 3, archive=True)
            await journal.splice(KEY, 2, 2, archive=False)
        async with opened() as journal:
            again = await journal.append(KEY, batch("a", "c"), expected_revision=1)
            same(again.repeated, True, "known ids")
            with raises(StaleSessionError, "a stale append"):
                await journal.append(KEY, batch("d"), expected_revision=1)
            commit = await journal.append(
                KEY, batch("d"), expected_revision=3, incarnation=head.incarnation
            )
            same((places(commit.entries), commit.head.revision), ([4], 4), "place")
            await journal.delete(KEY)
        async with opened() as journal:
            same(await alive(journal), False, "a deleted session stays so")
            with raises(SessionNotFoundError, "a late append"):
                await journal.append(KEY, batch("e"), incarnation=head.incarnation)
            await journal.create(NEW)
            record = await whole(journal)
            same((record.entries, record.archived), ((), ()), "nothing came back")


async def check_opening_deletes_nothing(harness: JournalHarness) -> None:
    """Opening alone removes nothing; limits are those of whoever opens."""
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    async with harness.storage() as opened:
        async with opened(limits=limits, clock=clock) as journal:
            await journal.create(NEW, batch("a"))
        clock.tick(86_400 * 60)
        async with opened(limits=limits, clock=clock) as journal:
            same(await alive(journal), False, "expired under the limits")
        async with opened(clock=clock) as journal:
            same(await alive(journal), True, "alive without limits")
        async with opened(limits=limits, clock=clock) as journal:
            same(await journal.expire(), (KEY,), "swept when asked")
        async with opened(clock=clock) as journal:
            same(await alive(journal), False, "swept for everybody")


async def check_two_handles_see_one_storage(harness: JournalHarness) -> None:
    """What one journal commits the other reads at once, listings and scopes too."""
    clock = TickingClock()
    async with (
        harness.storage() as opened,
        opened(clock=clock) as one,
        opened(clock=clock) as two,
    ):
        await one.create(NEW, batch("a", "b"), change=_FULL)
        same(await whole(two), await whole(one), "a created session")
        with raises(SessionExistsError, "the key is taken for the other"):
            await two.create(NEW)
        await two.append(KEY, batch("c"), trim=2, change=Change(title="two"))
        same(await whole(one), await whole(two), "an append with trim")
        again = await one.append(KEY, batch("a", "c"))
        same(again.repeated, True, "ids that the other stored are known")
        await one.splice(KEY, 2, 2, batch("s"), archive=True)
        same(await whole(two), await whole(one), "a splice")
        await two.update_scoped_state(_USER, StateDelta({"v": 1}, ["u"]))
        same((await one.load(KEY)).user_state, {"v": 1}, "the user's state")
        clock.tick()
        await two.load(KEY, refresh=True)
        same(await every(one, order="activity"), await every(two), "the listing")
        with raises(StaleSessionError, "a stale write"):
            await one.append(KEY, batch("d"), expected_revision=1)
        old = (await one.load(KEY)).head.incarnation
        await two.delete(KEY)
        same(await alive(one), False, "a deleted session")
        await two.create(NEW, batch("x"))
        with raises(SessionNotFoundError, "a write of the former incarnation"):
            await one.append(KEY, batch("late"), incarnation=old)
        same(ids((await one.load(KEY)).entries), ["x"], "the re-created session")


async def check_two_handles_lose_no_write(harness: JournalHarness) -> None:
    """Parallel writers over two journals store each write once, and merge states."""
    async with harness.storage() as opened, opened() as one, opened() as two:
        await one.create(NEW)
        calls: list[Any] = []
        for n in range(40):
            change = Change(
                session=StateDelta({f"k{n}": n}),
                user=StateDelta({f"k{n}": n}),
                app=StateDelta({f"k{n}": n}),
            )
            journal = (one, two)[n % 2]
            calls.append(partial(journal.append, KEY, batch(f"e{n}"), change=change))
            calls.append(partial((two, one)[n % 2].append, KEY, batch(f"e{n}")))
        answers = await together(*calls[::2])
        same(sum(isinstance(a, Commit) for a in answers), 40, "all were stored")
        answers = await together(*calls[1::2])
        same(
            sum(isinstance(a, Commit) and a.repeated for a in answers),
            40,
            "all retries",
        )
        record = await whole(two)
        same(
            sorted(ids(record.entries)), sorted(f"e{n}" for n in range(40)), "each once"
        )
        same(places(record.entries), list(range(1, 41)), "the places")
        expected = {f"k{n}": n for n in range(40)}
        same(
            (record.state, record.user_state, record.app_state),
            (expected, expected, expected),
            "the states",
        )
        same(record.head.revision, 41, "the revision")


async def check_two_handles_have_one_creator(harness: JournalHarness) -> None:
    """Of parallel creators over two journals one wins each key."""
    async with harness.storage() as opened, opened() as one, opened() as two:
        for n in range(5):
            new = NewSession(key=SessionKey("app", "u", "", f"s{n}"))
            calls = [
                partial(journal.create, new, batch(f"{i}"))
                for i, journal in enumerate((one, two) * 5)
            ]
            answers = await together(*calls)
            same(sum(isinstance(a, Commit) for a in answers), 1, "winners")
            lost = sum(isinstance(a, SessionExistsError) for a in answers)
            same(lost, 9, "losers")


async def check_two_sweepers_report_each_once(harness: JournalHarness) -> None:
    """Sweeps over two journals report each expired session once between them."""
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    async with (
        harness.storage() as opened,
        opened(limits=limits, clock=clock) as one,
        opened(limits=limits, clock=clock) as two,
    ):
        keys = [SessionKey("app", "u", "", f"s{n:02}") for n in range(20)]
        for key in keys:
            await one.create(NewSession(key=key), batch("a"))
        clock.tick(11)
        found: list[object] = []
        for _ in range(10):
            answers = await together(*[partial(j.expire, 3) for j in (one, two)] * 2)
            for answer in answers:
                assert isinstance(answer, tuple), f"{answer!r}"
                found.extend(answer)
        same(sorted(map(str, found)), sorted(map(str, keys)), "each once")


async def check_threads_may_share_a_journal(harness: JournalHarness) -> None:
    """Writers in other threads, with event loops of their own, lose no write."""
    async with harness() as journal:
        await journal.create(NEW)

        async def write(writer: str) -> None:
            for n in range(20):
                change = Change(session=StateDelta({f"{writer}{n}": n}))
                await journal.append(KEY, batch(f"{writer}{n}"), change=change)

        def elsewhere(writer: str) -> None:
            anyio.run(write, writer)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for writer in ("x", "y", "z"):
                    group.start_soon(to_thread.run_sync, elsewhere, writer)
                group.start_soon(write, "here")
        record = await whole(journal)
        expected = [f"{w}{n}" for w in ("here", "x", "y", "z") for n in range(20)]
        same(sorted(ids(record.entries)), sorted(expected), "each once")
        same(set(record.state), set(expected), "the states")
        same(record.head.revision, 81, "the revision")
        for writer in ("here", "x", "y", "z"):
            own = [e for e in ids(record.entries) if e.startswith(writer)]
            same(
                own, [f"{writer}{n}" for n in range(20)], "in the order of each writer"
            )


async def check_a_codec_stands_between(harness: JournalHarness) -> None:
    """With a codec everything comes back as without, and known bodies are known."""
    clock = TickingClock()
    packing = PackingCodec()
    async with (
        harness.storage() as opened,
        opened(clock=clock, codec=packing) as journal,
    ):
        entries = [said("a", "😀" * 1000), said("b", "\ud83d"), said("c", "")]
        await journal.create(NEW, entries, archived=[said("z", "old")], change=_FULL)
        record = await whole(journal)
        same([body(e) for e in record.entries], [body(e) for e in entries], "entries")
        same(
            [body(e) for e in record.archived], [body(said("z", "old"))], "the archive"
        )
        same(record.state, {"s": (1, None, -0.0)}, "the session's state")
        same(
            (record.user_state, record.app_state),
            ({"u": {"z": 1, "a": 2}}, {"a": 2**64}),
            "scoped states",
        )
        same(record.provider_states, {"p": "\ud83d"}, "provider states")
        same((await journal.append(KEY, entries)).repeated, True, "known bodies")
        await journal.splice(KEY, 3, 4, [said("s", "é")], archive=True)
        same(ids((await journal.load(KEY)).entries), ["a", "s"], "after a splice")


async def check_a_codec_survives_a_restart(harness: JournalHarness) -> None:
    """What was stored through a codec is read through it after a restart."""
    packing = PackingCodec()
    async with harness.storage() as opened:
        async with opened(codec=packing) as journal:
            await journal.create(NEW, batch("a"), change=_FULL)
            before = await whole(journal)
        async with opened(codec=packing) as journal:
            same(await whole(journal), before, "the session")


NEEDS: Final[Mapping[JournalCheck, frozenset[Capability]]] = {
    check_what_was_stored_survives_a_restart: frozenset({Capability.DURABLE}),
    check_a_restart_changes_no_rule: frozenset({Capability.DURABLE}),
    check_opening_deletes_nothing: frozenset({Capability.DURABLE}),
    check_two_handles_see_one_storage: frozenset({Capability.SHARED}),
    check_two_handles_lose_no_write: frozenset({Capability.SHARED}),
    check_two_handles_have_one_creator: frozenset({Capability.SHARED}),
    check_two_sweepers_report_each_once: frozenset({Capability.SHARED}),
    check_threads_may_share_a_journal: frozenset({Capability.THREADS}),
    check_a_codec_stands_between: frozenset({Capability.CODEC}),
    check_a_codec_survives_a_restart: frozenset({Capability.CODEC, Capability.DURABLE}),
}
"""What each check of this module needs of a journal."""

CHECKS: Final[tuple[JournalCheck, ...]] = tuple(NEEDS)
