"""Stored rows as heads: the compiled reader and the one in Python are one."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_values_rules import KEY

from raf_session import _stored_heads_py
from raf_session.changes import SessionStatus
from raf_session.clock import UNIX_EPOCH, from_micros
from raf_session.conformance.record_strategies import heads
from raf_session.entries import Counts, SessionHead
from raf_session.journals._heads import head_values

EXTENSION = "raf_session._stored_heads"
SPARSE = SessionHead(
    *(KEY, "1", 1, UNIX_EPOCH, UNIX_EPOCH, UNIX_EPOCH, False, 0, 0, Counts(), Counts()),
    *("", "", SessionStatus.ACTIVE, frozenset(), "", None, 1),
)


@pytest.fixture(scope="module")
def compiled(request: pytest.FixtureRequest) -> ModuleType:
    if find_spec(EXTENSION) is None:
        if request.config.getoption("--require-ext"):
            pytest.fail(f"{EXTENSION} was not built")
        pytest.skip(f"{EXTENSION} was not built")
    return import_module(EXTENSION)


def outcome(module: ModuleType, row: Any, labels: frozenset[str]) -> Any:
    """Return the head and its types, or the error and its text."""
    try:
        head = module.read_head(KEY, row, labels)
    except Exception as error:  # noqa: BLE001  (any, as long as both raise it)
        return type(error), str(error)
    return head, [type(part) for part in head], type(head)


def columns_of(head: SessionHead, *hashes: bytes | None) -> list[Any]:
    bare = head._replace(request_hash=None, request_header=None)
    row = [1, 0, *head_values(bare)]
    row[25:27] = hashes
    return row


HASHES = st.none() | st.binary(min_size=8, max_size=8)


@given(heads(), HASHES, HASHES)
def test_twins_read_the_same_head(
    compiled: ModuleType,
    head: SessionHead,
    of_all: bytes | None,
    of_header: bytes | None,
) -> None:
    row = columns_of(head, of_all, of_header)
    for columns in (row, (*row, "labels")):
        found = outcome(compiled, columns, head.labels)
        assert found == outcome(_stored_heads_py, columns, head.labels)
        assert found[0][:19] == head._replace(key=KEY)[:19]


MOMENTS = st.integers(-(1 << 70), 1 << 70) | st.integers(-(10**16), 26 * 10**16)
FOUND = MOMENTS | st.none() | st.text() | st.floats() | st.binary() | st.booleans()


@given(heads(), st.dictionaries(st.integers(2, 27), FOUND, max_size=4))
def test_twins_agree_on_columns_that_nobody_wrote(
    compiled: ModuleType, head: SessionHead, spoiled: dict[int, Any]
) -> None:
    row = columns_of(head, None, None)
    for place, value in spoiled.items():
        row[place] = value
    assert outcome(compiled, row, head.labels) == outcome(
        _stored_heads_py, row, head.labels
    )


@given(st.lists(st.integers(0, 253_402_300_799_999_999), min_size=3, max_size=3))
def test_twins_know_the_calendar(compiled: ModuleType, times: list[int]) -> None:
    row = columns_of(SPARSE, None, None)
    row[4:7] = times
    head = compiled.read_head(KEY, row, frozenset())
    assert list(head[3:6]) == [from_micros(micros) for micros in times]


def test_twins_know_every_day_of_some_centuries(compiled: ModuleType) -> None:
    row = columns_of(SPARSE, None, None)
    day = 86_400_000_000
    for n in range(0, 400 * 366, 3):
        row[4:7] = micros = n * day, (n + 1) * day - 1, (n + 2) * day + 1
        head = compiled.read_head(KEY, row, frozenset())
        assert head[3:6] == tuple(map(from_micros, micros))


COUNTS = st.builds(Counts, *(st.integers(0, 1 << 62) for _ in Counts._fields))
NOW = st.integers(0, 253_402_300_799_999_999)
TIMES = st.tuples(*[st.none() | st.datetimes(timezones=st.just(UTC))] * 2)


@given(heads(), COUNTS, NOW, TIMES)
def test_twins_append_to_the_same_head(
    compiled: ModuleType,
    head: SessionHead,
    counts: Counts,
    now: int,
    times: tuple[datetime | None, datetime | None],
) -> None:
    updated, active = (from_micros(now) if time is None else time for time in times)
    for former in (head, head._replace(total=head.active)):
        expected = former._replace(
            revision=former.revision + 1,
            updated_at=max(former.updated_at, updated),
            last_active_at=max(former.last_active_at, active),
            last_seq=former.last_seq + counts.entries,
            active=former.active.plus(counts),
            total=former.total.plus(counts),
        )
        for module in (compiled, _stored_heads_py):
            grown = module.grown_head(former, counts, now, *times)
            assert grown == expected
            assert [type(part) for part in grown] == [type(part) for part in expected]
            assert type(grown) is SessionHead
            if active <= former.last_active_at:
                assert grown.last_active_at is former.last_active_at


def test_a_compiled_head_grows_of_nothing_else(compiled: ModuleType) -> None:
    for head, counts in ((tuple(SPARSE), Counts()), (SPARSE, (0, 0, 0, 0))):
        with pytest.raises(TypeError):
            compiled.grown_head(head, counts, 1)
