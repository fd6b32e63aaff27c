"""Durations: the document's, Go's, seconds, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.manager import format_duration, parse_duration

MICROS = {"us": 1, "ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6}
durations = st.timedeltas(timedelta(0))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("24h", 86_400),
        ("30m", 1800),
        ("168h", 604_800),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("250ms", 0.25),
        ("10us", 0.00001),
        ("10\u00b5s", 0.00001),
        ("10\u03bcs", 0.00001),
        ("1500ns", 0.000002),
        ("7d", 604_800),
        ("1h1h", 7200),
        (" 5m\n", 300),
        ("90", 90),
        ("0", 0),
        (90, 90),
        (0.25, 0.25),
        (0, 0),
        (timedelta(minutes=3), 180),
    ],
)
def test_a_duration_is_read(value: object, seconds: float) -> None:
    assert parse_duration(value).total_seconds() == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "h", "24H", "24 h", "1h 30m", "-5m", "+5m", "1h-5m", "5x", "1,5h"),
        *("1e3s", "inf", "nan", "\u0662h", "0x1s", "..5s", "1h30", "1:30", "PT24H"),
        *("9" * 5000 + "h", "9" * 90 + "h", 10**400, 1e300, float("nan"), -0.1, -1),
        *(float("inf"), True, None, b"24h", (), timedelta(seconds=-1)),
    ],
    ids=lambda value: f"{value!r:.20}" if not isinstance(value, int) else "number",
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="expected a duration such as '24h', '30m'"):
        parse_duration(value)


@given(
    st.lists(
        st.tuples(st.decimals(0, 10**6, places=3), st.sampled_from(sorted(MICROS))),
        min_size=1,
        max_size=6,
    )
)
def test_units_add_up_exactly(parts: list[tuple[object, str]]) -> None:
    micros = sum((Fraction(str(n)) * MICROS[unit] for n, unit in parts), Fraction())
    found = parse_duration("".join(f"{number}{unit}" for number, unit in parts))
    assert found == timedelta(microseconds=round(micros))


@given(durations)
def test_what_is_written_is_read_again(duration: timedelta) -> None:
    text = format_duration(duration)
    assert parse_duration(text) == duration
    assert not text.startswith("0") or duration < timedelta(seconds=1)


@given(st.floats(0, 10**9))
def test_numbers_are_seconds(seconds: float) -> None:
    assert abs(parse_duration(seconds).total_seconds() - seconds) <= 0.000001


@given(st.text("0123456789.hmsd u", max_size=12))
def test_a_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        found = parse_duration(text)
    except ValueError as error:
        assert "expected a duration" in str(error)  # noqa: PT017
    else:
        assert found >= timedelta(0)


def test_the_texts_of_the_document_are_written_as_they_were() -> None:
    for text in ("24h", "30m", "168h", "1h30m", "90m30s", "0s", "0.5s", "2.000001s"):
        shown = format_duration(parse_duration(text))
        assert shown == {"90m30s": "1h30m30s"}.get(text, text)
