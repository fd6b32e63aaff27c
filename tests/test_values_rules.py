"""Bodies, expiry and options: round trips, both sides, and what is refused."""

from __future__ import annotations

import zlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_values_messages import JSON, TEXT, exact
from test_values_raf import MESSAGES, NAMES
from typing_extensions import override

from raf_session.changes import RequestDelta, RequestRecord, SessionStatus, StateDelta
from raf_session.clock import UNIX_EPOCH, from_micros, to_micros
from raf_session.conformance.session_values import shown
from raf_session.encoding import BodyFormat, Row
from raf_session.entries import MAX_TOKENS, Counts, Entry, EntryKind, SessionHead
from raf_session.errors import (
    EntryTooLargeError,
    InvalidValueError,
    SessionDamagedError,
)
from raf_session.expiry import ExpiryRule, Lifecycle, lifecycle
from raf_session.frozen import thaw
from raf_session.journal import Codec
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage, Usage
from raf_session.options import (
    Limits,
    NewSession,
    Query,
    SessionTTLOptions,
    Window,
    micros,
)

KEY = SessionKey.raf("s")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class ZipCodec(Codec):
    @override
    def encode(self, data: bytes, /) -> bytes:
        return zlib.compress(data)

    @override
    def decode(self, data: bytes, /) -> bytes:
        return zlib.decompress(data)


PLAIN = BodyFormat("memory", None, 1 << 30)
CODED = BodyFormat("memory", ZipCodec(), 1 << 30)
KEYS = NAMES.filter(lambda name: len(name.encode()) <= 512)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
DELTAS = st.builds(
    lambda values, deleted: StateDelta(values, set(deleted) - values.keys()),
    st.dictionaries(KEYS, JSON, max_size=2),
    st.lists(KEYS, max_size=2),
)


def entry_of(*fields: Any) -> Entry:
    return Entry(*fields)


ENTRIES = st.builds(
    entry_of,
    KEYS,
    st.sampled_from(EntryKind),
    st.none() | MESSAGES,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    st.none() | DELTAS,
    st.none() | st.builds(Usage, prompt_tokens=st.integers(0, MAX_TOKENS)),
    OBJECTS,
    OBJECTS,
)


def row_of(entry: Entry, body: str, seq: int = 1) -> Row:
    at = to_micros(NOW)
    return Row(seq, 0, entry.id, entry.kind.value, at, body, Counts.of([entry]))


def plain(entry: Entry) -> list[Any]:
    delta = entry.state_delta
    return [
        *entry[:2],
        None if entry.message is None else shown(entry.message),
        *entry[3:7],
        None if delta is None else (exact(thaw(delta.set)), sorted(delta.deleted)),
        entry.usage,
        exact(thaw(entry.metadata)),
        exact(thaw(entry.extra)),
    ]


@given(st.lists(ENTRIES, max_size=3))
def test_entries_come_back_from_their_bodies(entries: list[Entry]) -> None:
    for form in (PLAIN, CODED):
        rows = [row_of(e, form.encode(e), n) for n, e in enumerate(entries, 1)]
        for row in rows:
            row.body.encode()
        found = form.decode(KEY, rows)
        for n, (entry, again) in enumerate(zip(entries, found, strict=True), 1):
            assert plain(again) == plain(entry)
            assert again.plain == entry
            assert (again.seq, again.stored_at, again.left_at) == (n, NOW, 0)
            assert form.same(KEY, rows[n - 1], entry)
            assert form.encode(again) == form.encode(entry)


@given(ENTRIES, ENTRIES)
def test_same_tells_entries_apart(one: Entry, other: Entry) -> None:
    for form in (PLAIN, CODED):
        expected = plain(one)[1:] == plain(other)[1:]
        assert form.same(KEY, row_of(one, form.encode(one)), other) == expected


@pytest.mark.parametrize("value", [1.0, True, "1", None, [1], {"a": 1}])
def test_same_is_json_equality(value: Any) -> None:
    def said(number: Any) -> Entry:
        return Entry("e", message=ChatMessage.user("x"), metadata={"n": number})

    assert not PLAIN.same(KEY, row_of(said(1), PLAIN.encode(said(1))), said(value))


def test_an_entry_over_the_limit_is_refused() -> None:
    entry = Entry("e", message=ChatMessage.user("é" * 100))
    size = len(PLAIN.encode(entry).encode())
    assert BodyFormat("memory", None, size).encode(entry)
    with pytest.raises(EntryTooLargeError) as caught:
        BodyFormat("memory", None, size - 1).encode(entry)
    assert (caught.value.entry_id, caught.value.size) == ("e", size)


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "null", "[]", "1", "{},{}", '{"message":1}', '{"message":{}}'),
        *('{"message":{"role":"king"}}', '"AAAA"', '{"own":{}}]', "NaN", "\x00"),
        *('{"message":{"role":"user"},"own":1}', '{"usage":1}', '{"state_delta":[]}'),
        '{"message":{"role":"user"},"own":{"created_at":"x"}}',
    ],
)
@pytest.mark.parametrize("form", [PLAIN, CODED], ids=["plain", "coded"])
def test_a_torn_body_is_named(form: BodyFormat, body: str) -> None:
    good = Entry("good", message=ChatMessage.user("x"))
    rows = [
        row_of(good, form.encode(good)),
        row_of(Entry("bad"), body, 2),
    ]
    with pytest.raises(SessionDamagedError) as caught:
        form.decode(KEY, rows)
    assert (caught.value.key, caught.value.backend) == ("s", "memory")
    assert "'bad' at 2" in caught.value.detail


# Expiry --------------------------------------------------------------------------


@given(
    st.none() | st.floats(0, 1e9),
    st.none() | st.floats(0, 1e9),
    st.integers(0, 2**52),
    st.integers(0, 2**52),
    st.integers(0, 2**52),
)
def test_the_rule_is_the_one_of_the_design(
    idle: float | None, lifetime: float | None, created: int, active: int, now: int
) -> None:
    rule = ExpiryRule(SessionTTLOptions(max_idle_secs=idle, max_lifetime_secs=lifetime))
    max_idle, max_lifetime = micros(idle), micros(lifetime)
    expected = (max_idle is not None and active != 0 and now - active > max_idle) or (
        max_lifetime is not None and created != 0 and now - created > max_lifetime
    )
    assert rule.expired(created, active, now) == expected
    assert rule.enabled == (idle is not None or lifetime is not None)
    idle_cut, lifetime_cut = rule.cutoffs(now)
    by_cutoff = (idle_cut is not None and active != 0 and active < idle_cut) or (
        lifetime_cut is not None and created != 0 and created < lifetime_cut
    )
    assert by_cutoff == expected


def head(created: datetime, active: datetime, *, pinned: bool = False) -> SessionHead:
    return SessionHead(
        KEY, "i", 1, created, created, active, pinned, 0, 0, Counts(), Counts(),
        "", "", SessionStatus.ACTIVE, frozenset(), "", None, 1,
    )  # fmt: skip


def test_both_sides_of_a_limit() -> None:
    options = SessionTTLOptions(max_idle_secs=0.4, max_lifetime_secs=60)
    rule = ExpiryRule(options)
    start = to_micros(NOW)
    step = timedelta(microseconds=1)
    for active, created, age in (
        (NOW, NOW, timedelta(milliseconds=400)),
        (NOW + timedelta(minutes=1), NOW, timedelta(minutes=1)),
    ):
        edge = NOW + age
        assert not rule.head_expired(head(created, active), to_micros(edge))
        assert rule.head_expired(head(created, active), to_micros(edge + step))
        assert lifecycle(head(created, active), options, edge) is not Lifecycle.EXPIRED
        late = lifecycle(head(created, active), options, edge + step)
        assert late is Lifecycle.EXPIRED
        pinned = head(created, active, pinned=True)
        assert not rule.head_expired(pinned, to_micros(edge + step))
    assert not rule.expired(0, 0, start)
    assert not rule.expired(start + 10**9, start + 10**9, start)


def test_a_session_is_idle_after_a_while() -> None:
    options = SessionTTLOptions()
    quiet = head(NOW, NOW)
    step = timedelta(microseconds=1)
    edge = NOW + timedelta(seconds=300)
    assert lifecycle(quiet, options, edge) is Lifecycle.ACTIVE
    assert lifecycle(quiet, options, edge + step) is Lifecycle.IDLE
    soon = lifecycle(quiet, options, NOW + step, idle_after_secs=0)
    assert soon is Lifecycle.IDLE


@given(st.integers(-(10**15), 10**17))
def test_microseconds_are_exact(number: int) -> None:
    assert to_micros(from_micros(number)) == number
    assert (from_micros(number) - UNIX_EPOCH) == timedelta(microseconds=number)


# Options -------------------------------------------------------------------------

TRIED: tuple[Any, ...] = (
    0,
    -1,
    0.4,
    1e12,
    float("nan"),
    float("inf"),
    None,
    "60",
    True,
)
TRIED_TOO: tuple[Any, ...] = (
    *(-0.0, -1e-9, -float("inf"), "", [], 1j),
    *(timedelta(0), timedelta(hours=1)),
)


@pytest.mark.parametrize("value", [*TRIED, *TRIED_TOO], ids=repr)
@pytest.mark.parametrize(
    "name", ["max_idle_secs", "max_lifetime_secs", "cleanup_interval_secs"]
)
def test_time_to_live_is_validated(name: str, value: Any) -> None:
    good = value in (0, 0.4, 1e12) and type(value) in (int, float)
    if name == "cleanup_interval_secs":
        good = good and value != 0
    elif value is None:
        good = True
    if good:
        options = SessionTTLOptions(**{name: value})
        assert getattr(options, name) == value
        assert options.enabled == (name.startswith("max") and value is not None)
    else:
        with pytest.raises(ValueError, match=name):
            SessionTTLOptions(**{name: value})


def test_nothing_of_a_limit_is_rounded() -> None:
    rule = ExpiryRule(SessionTTLOptions(max_idle_secs=0.4, max_lifetime_secs=1e12))
    assert rule.max_idle == 400_000
    assert rule.max_lifetime == 10**18


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match="max_idle"):
        SessionTTLOptions(max_idle=60)  # type: ignore[call-arg]


def test_the_defaults_are_rafs() -> None:
    options = SessionTTLOptions()
    assert options.max_idle_secs is None
    assert options.max_lifetime_secs is None
    assert options.cleanup_interval_secs == 3600
    assert not options.enabled


def test_windows_queries_and_limits_are_validated() -> None:
    with pytest.raises(ValueError, match="negative"):
        Window(last=-1)
    with pytest.raises(ValueError, match="naive"):
        Window(after_time=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="naive"):
        Query(active_since=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="at least 1"):
        Limits(max_entry_bytes=0)
    assert Query(labels=["a", "b"]).labels == frozenset(("a", "b"))
    assert Window(last=0).last == 0


@pytest.mark.parametrize(
    ("digests", "last", "header"),
    [(b"1234567", 1, None), (b"", -1, None), (b"", 2**64, None), (b"", 1, 2**64)],
)
def test_a_request_record_is_validated(
    digests: bytes, last: int, header: int | None
) -> None:
    with pytest.raises(ValueError, match=r"."):
        RequestRecord(digests, last, header)


@given(
    st.binary(max_size=48).map(lambda data: data[: len(data) // 8 * 8]),
    st.binary(max_size=48).map(lambda data: data[: len(data) // 8 * 8]),
)
def test_a_request_delta_makes_the_later_record(one: bytes, other: bytes) -> None:
    former, later = RequestRecord(one, 1), RequestRecord(other, 2, 3)
    delta = later.after(former)
    assert one[: 8 * delta.keep] + delta.digests == other
    assert (delta.hash, delta.header, delta.n) == (2, 3, later.n)
    assert delta.base == 1
    whole = later.after(None)
    assert (whole.keep, whole.digests, whole.base) == (0, other, None)


@given(OBJECTS.map(lambda o: {k: v for k, v in o.items() if k}), DELTAS, DELTAS)
def test_deltas_compose(
    state: dict[str, Any], one: StateDelta, two: StateDelta
) -> None:
    expected = two.apply(one.apply(state))
    assert one.then(two).apply(state) == expected
    assert exact(thaw(one.then(two).apply(state))) == exact(thaw(expected))


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_texts_of_a_session_that_no_journal_holds(text: str) -> None:
    key = SessionKey.raf("a")
    for fields in ({"session_type": text}, {"forked_from": text}):
        with pytest.raises(InvalidValueError, match=r"NUL|surrogate"):
            NewSession(key=key, **fields)  # type: ignore[arg-type]
    for name in ("app", "user", "scope"):
        with pytest.raises(InvalidValueError, match=name):
            Query(**{name: text})  # type: ignore[arg-type]


def test_the_origin_of_a_session_may_be_longer_than_a_name() -> None:
    key = SessionKey("%" * 512, "/" * 512, "é" * 256, "s" * 512)
    assert NewSession(key=key, forked_from=str(key)).forked_from == str(key)
    with pytest.raises(InvalidValueError, match="session_type"):
        NewSession(key=key, session_type="x" * 513)
    with pytest.raises(InvalidValueError, match="app"):
        Query(app="x" * 513)
    assert Query(app="").app == ""


@pytest.mark.parametrize("number", [-1, 1 << 62, 1 << 70])
def test_numbers_of_a_request_that_no_journal_holds(number: int) -> None:
    with pytest.raises(InvalidValueError, match="keep"):
        RequestDelta(number, b"", 1)
    for make in (RequestDelta(0, b"", 1), RequestRecord(b"", 1)):
        with pytest.raises(InvalidValueError, match="format"):
            replace(make, format=number)
    with pytest.raises(InvalidValueError, match="base"):
        RequestDelta(0, b"", 1, base=-1)


@pytest.mark.parametrize("name", sorted(Usage.model_fields))
def test_tokens_that_no_journal_can_sum_up(name: str) -> None:
    for number in (-1, MAX_TOKENS + 1, 1 << 70):
        usage = Usage(**{name: number})
        with pytest.raises(InvalidValueError, match=f"usage.{name}"):
            Entry("a", EntryKind.EVENT, usage=usage)
    for number in (0, MAX_TOKENS):
        usage = Usage(**{name: number})
        assert Entry("a", EntryKind.EVENT, usage=usage).usage == usage


def test_seconds_beyond_time_are_as_long_as_time() -> None:
    assert micros(1e300) == micros(1e12) == 10**18
    assert micros(3e11) == 3 * 10**17
