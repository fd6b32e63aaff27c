"""`dump` and `restore`: everything comes back, or nothing is stored."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raf_session.changes import Change
from raf_session.conformance import JournalHarness, TickingClock, strategies
from raf_session.conformance.clock import START
from raf_session.conformance.journal_values import alive, batch, body
from raf_session.entries import Entry
from raf_session.errors import (
    DumpDamagedError,
    EntryTooLargeError,
    SchemaVersionError,
    SessionExistsError,
    SessionNotFoundError,
)
from raf_session.journal import Journal
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions
from raf_session.transfer import dump, restore
from transfer.transfer_values import ANN, BOB, everything, fill, fill_scopes, kept

pytestmark = pytest.mark.anyio


async def lines_of(journal: Journal, key: SessionKey = ANN) -> list[str]:
    return [line async for line in dump(journal, key)]


async def test_everything_of_a_session_comes_back(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as journal:
        await fill(journal, ANN, clock)
        await fill_scopes(journal)
        before = await kept(journal, ANN)
        lines = await lines_of(journal)
        assert await kept(journal, ANN) == before
        assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
        assert len(lines) == 12
        json.loads(lines[0])
        with pytest.raises(SessionExistsError):
            await restore(journal, lines)
        assert await kept(journal, ANN) == before
        await journal.delete(ANN)
        clock.tick(99)
        commit = await restore(journal, lines)
        assert await kept(journal, ANN) == before
        assert commit.head.revision == 1
        other = ANN._replace(session="other")
        await restore(journal, "".join(lines).encode().splitlines(), key=other)
        assert await kept(journal, other) == before | {"key": other}
    async with MemoryJournal() as elsewhere:

        async def stream() -> AsyncIterator[bytes]:
            for line in lines:
                yield line.encode()
                yield b"\n"

        await restore(elsewhere, stream())
        assert await kept(elsewhere, ANN) == before | {"user": "{}", "app": "{}"}


@given(one=strategies.entries(st.just("one")), other=strategies.entries(st.just("é")))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_entry_comes_back(one: Entry, other: Entry) -> None:
    journal = MemoryJournal.opened()
    await journal.create(NewSession(key=ANN), [one], archived=[other])
    await restore(journal, await lines_of(journal), key=BOB)
    record = await journal.load(BOB, archived=True)
    assert [body(e) for e in record.entries] == [body(one)]
    assert [body(e) for e in record.archived] == [body(other)]


@given(change=strategies.changes())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_state_comes_back(change: Change) -> None:
    journal = MemoryJournal.opened()
    await journal.create(NewSession(key=ANN), change=change)
    before = await kept(journal, ANN)
    lines = await lines_of(journal)
    await journal.delete(ANN)
    await restore(journal, lines)
    assert await kept(journal, ANN) == before


async def test_a_missing_session_has_no_dump() -> None:
    with pytest.raises(SessionNotFoundError):
        await lines_of(MemoryJournal.opened())


# Torn and damaged ---------------------------------------------------------------------


async def made() -> list[str]:
    clock = TickingClock()
    journal = MemoryJournal.opened(clock=clock)
    await fill(journal, ANN, clock)
    return await lines_of(journal)


async def refused(lines: list[Any]) -> DumpDamagedError:
    journal = MemoryJournal.opened()
    with pytest.raises(DumpDamagedError) as caught:
        await restore(journal, lines)
    assert await everything(journal) == {}
    return caught.value


async def test_a_dump_torn_at_any_byte_is_refused() -> None:
    whole = "".join(await made()).encode()
    step = max(1, len(whole) // 400)
    for size in (*range(0, len(whole) - 1, step), len(whole) - 2):
        torn = whole[:size].splitlines(keepends=True)
        error = await refused(torn)
        assert len(torn) <= error.line <= len(torn) + 1


async def test_a_missing_line_is_refused() -> None:
    lines = await made()
    for index in range(len(lines)):
        error = await refused(lines[:index] + lines[index + 1 :])
        last = index == len(lines) - 1
        assert error.line == (1 if not index else len(lines) - (not last))


EDITS: dict[str, tuple[int, Callable[[dict[str, Any]], object]]] = {
    "no key": (0, lambda line: line.pop("key")),
    "no version": (0, lambda line: line.pop("raf_session_dump")),
    "a key that is none": (0, lambda line: line.update(key="a/b/c/d/e")),
    "no time": (0, lambda line: line["session"].update(created_at="soon")),
    "no zone": (0, lambda line: line["session"].update(updated_at="2026-01-01")),
    "a pin of another kind": (0, lambda line: line["session"].update(pinned=1)),
    "a title of another kind": (0, lambda line: line["session"].update(title=1)),
    "an origin of another kind": (
        0,
        lambda line: line["session"].update(forked_from=1),
    ),
    "an unknown status": (0, lambda line: line["session"].update(status="gone")),
    "labels of another kind": (0, lambda line: line["session"].update(labels="x")),
    "a state of another kind": (0, lambda line: line.update(state=[1])),
    "digests that are none": (0, lambda line: line["request"].update(digests="zz")),
    "a hash out of range": (0, lambda line: line["request"].update(hash=2**64)),
    "a hash that is a fraction": (0, lambda line: line["request"].update(hash=1.5)),
    "a hash that is true": (0, lambda line: line["request"].update(hash=True)),
    "a header of another kind": (0, lambda line: line["request"].update(header="x")),
    "a format of another kind": (0, lambda line: line["request"].update(format="1")),
    "no format": (0, lambda line: line["request"].update(format=None)),
    "a format out of range": (0, lambda line: line["request"].update(format=2**70)),
    "a version that is true": (0, lambda line: line.update(raf_session_dump=True)),
    "labels that are an object": (
        0,
        lambda line: line["session"].update(labels={"x": 1}),
    ),
    "pairs as a state": (0, lambda line: line.update(state=[["a", 1]])),
    "more in the head": (0, lambda line: line.update(more=1)),
    "more in the session": (0, lambda line: line["session"].update(more=1)),
    "more in the request": (0, lambda line: line["request"].update(more=1)),
    "more in an entry": (1, lambda line: line["archived"].update(more=1)),
    "more in a body": (1, lambda line: line["archived"]["body"].update(more=1)),
    "a timestamp that is a text": (
        1,
        lambda line: line["archived"]["body"].update(timestamp="12"),
    ),
    "a timestamp that is true": (
        1,
        lambda line: line["archived"]["body"].update(timestamp=True),
    ),
    "a change of state that is none": (
        1,
        lambda line: line["archived"]["body"].update(
            state_delta={"set": {}, "deleted": "x"}
        ),
    ),
    "an empty id": (1, lambda line: line["archived"].update(id="")),
    "an unknown kind": (1, lambda line: line["archived"].update(kind="x")),
    "a time of another kind": (1, lambda line: line["archived"].update(stored_at="1")),
    "a time out of range": (1, lambda line: line["archived"].update(stored_at=10**30)),
    "no body": (1, lambda line: line["archived"].pop("body")),
    "a body of another kind": (1, lambda line: line["archived"].update(body=[])),
    "a role that is none": (
        1,
        lambda line: line["archived"]["body"]["message"].update(role="x"),
    ),
    "an own id of another kind": (
        1,
        lambda line: line["archived"]["body"].update(own={"id": 5}),
    ),
    "an author of another kind": (
        1,
        lambda line: line["archived"]["body"].update(author=5),
    ),
    "a line of another kind": (2, lambda line: line.update(more=1)),
    "an archived entry behind an active one": (
        7,
        lambda line: line.update(archived=line.pop("active")),
    ),
    "another count": (11, lambda line: line["end"].update(active=4)),
}


@pytest.mark.parametrize("edit", EDITS)
async def test_a_damaged_line_is_named(edit: str) -> None:
    index, change = EDITS[edit]
    lines = await made()
    value = json.loads(lines[index])
    change(value)
    lines[index] = json.dumps(value)
    error = await refused(lines)
    assert error.line == index + 1, error


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (0, "{}"),
        (1, "[]"),
        (2, "{"),
        (3, "NaN"),
        (4, "[" * 100_000),
        (5, b"\xff"),
        (6, '{"active": 7}'),
        (6, "{}"),
    ],
)
async def test_a_line_that_is_none_is_named(index: int, text: str | bytes) -> None:
    lines: list[Any] = list(await made())
    lines[index] = text
    assert (await refused(lines)).line == index + 1


@pytest.mark.parametrize("kind", [str, bytes])
async def test_one_text_is_not_its_lines(kind: type[str | bytes]) -> None:
    text = "".join(await made())
    whole: Any = text if kind is str else text.encode()
    journal = MemoryJournal.opened()
    with pytest.raises(TypeError, match=f"one {kind.__name__}, not the lines"):
        await restore(journal, whole)
    opened = io.StringIO(text) if kind is str else io.BytesIO(text.encode())
    await restore(journal, opened)
    assert set(await everything(journal)) == {ANN}


async def test_what_comes_behind_the_end_is_refused() -> None:
    lines = await made()
    assert (await refused([*lines, lines[1]])).line == 13
    assert (await refused([*lines, "\n", lines[-1]])).line == 14
    twice = [*lines[:2], lines[1], *lines[2:]]
    assert "twice" in (await refused(twice)).reason


async def test_a_newer_version_is_refused() -> None:
    lines = await made()
    value = json.loads(lines[0])
    value["raf_session_dump"] = 2
    journal = MemoryJournal.opened()
    with pytest.raises(SchemaVersionError) as caught:
        await restore(journal, [json.dumps(value), *lines[1:]])
    assert (caught.value.found, caught.value.supported) == (2, 1)
    assert await everything(journal) == {}


async def test_what_would_be_expired_at_once_is_refused(
    harness: JournalHarness,
) -> None:
    clock = TickingClock()
    source = MemoryJournal.opened(clock=clock)
    for key in (ANN, BOB):
        pinned = key == BOB
        await source.create(NewSession(key=key, pinned=pinned), batch("a"))
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=60))
    later = TickingClock(START + timedelta(seconds=61))
    async with harness(clock=later, limits=limits) as journal:
        with pytest.raises(SessionNotFoundError) as caught:
            await restore(journal, await lines_of(source, ANN))
        assert caught.value.reason == "expired"
        await restore(journal, await lines_of(source, BOB))
        assert await alive(journal, BOB)
        later.set(START + timedelta(seconds=60))
        assert not await alive(journal, ANN)


async def test_an_entry_too_large_stores_nothing(harness: JournalHarness) -> None:
    async with harness(limits=Limits(max_entry_bytes=10)) as journal:
        with pytest.raises(EntryTooLargeError):
            await restore(journal, await made())
        assert await everything(journal) == {}
