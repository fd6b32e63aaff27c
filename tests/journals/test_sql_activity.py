"""Bounds and orders by activity: whatever is indexed, they mean the same."""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from raf_session.journals._sql_activity import Activity, Term

BITS = 4
PLAIN, BY_PERIOD = Activity(None), Activity(BITS)
MICROS = st.integers(-100, 100)


def heads(times: list[int]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE TABLE heads (last_active_at INT, "
        f"activity_period INT AS (last_active_at >> {BITS}) STORED)"
    )
    connection.executemany(
        "INSERT INTO heads (last_active_at) VALUES (?)", [(time,) for time in times]
    )
    return connection


def found(connection: sqlite3.Connection, end: str, *values: int) -> list[int]:
    rows = connection.execute(f"SELECT last_active_at FROM heads {end}", values)  # noqa: S608
    return [time for (time,) in rows]


@given(st.lists(MICROS), MICROS)
def test_a_period_bounds_nothing_away(times: list[int], moment: int) -> None:
    connection = heads(times)

    def match(term: Term) -> list[int]:
        condition, *values = term
        return sorted(found(connection, f"WHERE {condition}", *values))

    times.sort()
    for activity in (PLAIN, BY_PERIOD):
        assert match(activity.since(moment)) == [at for at in times if at >= moment]
        assert match(activity.before(moment)) == [at for at in times if at < moment]
        assert match(activity.until(moment)) == [at for at in times if at <= moment]
    connection.close()


@given(st.lists(MICROS))
def test_periods_come_in_the_order_of_their_times(times: list[int]) -> None:
    connection = heads(times)
    for activity in (PLAIN, BY_PERIOD):
        oldest = found(connection, f"ORDER BY {activity.oldest_first}")
        assert oldest == sorted(times)
        assert found(connection, f"ORDER BY {activity.newest_first}") == oldest[::-1]
    connection.close()
