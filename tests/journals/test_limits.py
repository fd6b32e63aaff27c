"""Values at the edge of what fits: the same answer from every journal."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator

import pytest
from journal_bindings import HARNESSES

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance import JournalHarness, JournalOpener
from raf_session.conformance.journal_values import KEY, NEW, batch, every, ids
from raf_session.entries import MAX_TOKENS, Entry, EntryKind, raw_entry
from raf_session.errors import SessionNotFoundError, StaleSessionError
from raf_session.journal import Journal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import Usage
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

pytestmark = pytest.mark.anyio

MANY = 40_000
HUGE = 1 << 70


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=[pytest.param(h, id=h.name) for h in HARNESSES])
async def opener(request: pytest.FixtureRequest) -> AsyncGenerator[JournalOpener]:
    harness: JournalHarness = request.param
    async with harness.storage() as opened:
        yield opened


@pytest.fixture
async def journal(opener: JournalOpener) -> AsyncGenerator[Journal]:
    async with opener() as opened:
        await opened.create(NEW, batch("e1"))
        yield opened


@pytest.mark.parametrize("n", [1, 2])
async def test_arguments_that_no_column_holds(journal: Journal, n: int) -> None:
    entries = batch(*(f"x{i}" for i in range(n)))
    for revision in (HUGE, -HUGE, 1 << 63, -1):
        with pytest.raises(StaleSessionError):
            await journal.append(KEY, entries, expected_revision=revision)
    for incarnation in ("\ud800", "\0", "x" * 200, "é" * 50, "x" * 100_000, ""):
        with pytest.raises(SessionNotFoundError, match="replaced"):
            await journal.append(KEY, entries, incarnation=incarnation)
        with pytest.raises(SessionNotFoundError, match="replaced"):
            await journal.update(KEY, Change(title="t"), incarnation=incarnation)
        assert not await journal.delete(KEY, incarnation=incarnation)
    appended = await journal.append(KEY, entries, trim=HUGE)
    assert appended.head.active.entries == n + 1


@pytest.mark.parametrize("secs", [1e12, 1e13, 1e18, sys.maxsize, 1e300, 1.7e308])
async def test_a_time_to_live_longer_than_time(
    opener: JournalOpener, secs: float
) -> None:
    options = SessionTTLOptions(max_idle_secs=secs, max_lifetime_secs=secs)
    limits = Limits(sessions=options, user_state=options, app_state=options)
    delta = StateDelta({"a": 1})
    change = Change(session=delta, user=delta, app=delta)
    async with opener(limits=limits) as journal:
        await journal.create(NEW, batch("e1"), change=change)
        await journal.append(KEY, batch("e2"))
        await journal.append(KEY, batch("e3"), change=change)
        assert await journal.expire() == ()
        assert await journal.expire(dry_run=True) == ()
        assert ids((await journal.load(KEY, refresh=True)).entries) == [
            "e1",
            "e2",
            "e3",
        ]
        assert [listed.head.key for listed in await every(journal)] == [KEY]
        scope = ScopeKey(KEY.app, KEY.user)
        assert (await journal.scoped_state(scope)).state == {"a": 1}
        assert scope in await journal.scopes(KEY.app)


async def test_more_names_than_a_statement_has_marks(journal: Journal) -> None:
    names = [f"k{n}" for n in range(MANY)]
    scope = ScopeKey("app", "many")
    await journal.update(KEY, Change(session=StateDelta(dict.fromkeys(names, 1))))
    assert len((await journal.load(KEY)).state) == MANY
    await journal.update(KEY, Change(session=StateDelta({}, names[1:])))
    assert (await journal.load(KEY)).state == {"k0": 1}
    await journal.update_scoped_state(scope, StateDelta(dict.fromkeys(names, 1)))
    assert len((await journal.scoped_state(scope)).state) == MANY
    await journal.update_scoped_state(scope, StateDelta({}, names))
    assert (await journal.scoped_state(scope)).state == {}


async def test_states_of_more_sessions_than_one_list_names(journal: Journal) -> None:
    for n in range(1100):
        state = StateDelta({"n": n}) if n % 100 == 0 else None
        key = SessionKey("listed", "", "", f"s{n:04}")
        await journal.create(NewSession(key=key), change=Change(session=state))
    page = await journal.scan(Query(app="listed"), order="key", limit=2000, state=True)
    states = [listed.state for listed in page.sessions]
    assert states == [{"n": n} if n % 100 == 0 else {} for n in range(1100)]


async def test_many_labels_go_at_once(journal: Journal) -> None:
    labels = [f"l{n}" for n in range(2500)]
    await journal.update(KEY, Change(labels=LabelDelta(added=labels)))
    await journal.update(KEY, Change(labels=LabelDelta(removed=labels[1:])))
    assert (await journal.load(KEY)).head.labels == {"l0"}


async def test_a_cursor_beyond_time_is_none(journal: Journal) -> None:
    for number in (HUGE, -HUGE, 10**30):
        with pytest.raises(ValueError, match="no cursor"):
            await journal.scan(Query(), f"activity:{number}:a")
    assert (await journal.scan(Query(), f"activity:{1 << 62}:a")).sessions
    assert not (await journal.scan(Query(), f"activity:{-(1 << 62)}:a")).sessions


async def test_scopes_of_an_app_that_no_key_names(journal: Journal) -> None:
    for app in ("\ud800", "a\0b", "x" * 10_000):
        with pytest.raises(ValueError, match="app"):
            await journal.scopes(app)


async def test_the_most_tokens_and_digests(journal: Journal) -> None:
    usage = Usage(total_tokens=MAX_TOKENS, prompt_tokens=0)
    for n in range(5):
        entry = Entry(f"t{n}", EntryKind.EVENT, usage=usage)
        head = (await journal.append(KEY, [entry])).head
    assert head.total.tokens == 5 * MAX_TOKENS
    assert (await journal.load(KEY)).entries[-1].usage == usage
    last = (1 << 62) - 1
    request = RequestDelta(last, b"", 1, base=1)
    with pytest.raises(StaleSessionError):
        await journal.append(KEY, batch("keep"), change=Change(request=request))
    request = RequestDelta(0, b"12345678", 1, format=last)
    await journal.append(KEY, batch("format"), change=Change(request=request))
    stored = (await journal.load(KEY)).request
    assert stored is not None
    assert stored.format == last


async def test_a_stored_count_that_no_caller_may_give_is_read(
    journal: Journal,
) -> None:
    usage = Usage(total_tokens=1, prompt_tokens=HUGE, reasoning_tokens=-1)
    fields = list(Entry("odd", EntryKind.EVENT))
    fields[Entry._fields.index("usage")] = usage  # as one of before may be stored
    await journal.append(KEY, [raw_entry(tuple(fields))])
    assert (await journal.load(KEY)).entries[-1].usage == usage
