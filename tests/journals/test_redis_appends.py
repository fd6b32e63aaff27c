"""The script's short way for the usual append does what its long way does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, NamedTuple
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st
from redis_clients import client, fresh_prefix

from raf_session.changes import Change
from raf_session.conformance import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, said
from raf_session.errors import SessionError
from raf_session.journals import _redis_appends, _redis_scripts
from raf_session.journals.redis import RedisJournal
from raf_session.options import NewSession

USUAL = _redis_scripts.APPEND
LONG = _redis_scripts.Script(USUAL.text.replace(_redis_scripts.USUAL, ""))
"""The same script without its short way."""


class Step(NamedTuple):
    """One append, and by how many microseconds the clock moves before it."""

    micros: int
    name: str
    text: str = "x"
    more: int = 0
    trim: int | None = None
    revision: int | None = None
    incarnation: str | None = None


STEPS = st.lists(
    st.builds(
        Step,
        micros=st.sampled_from((1, 1000, 0, -1, -(10**12), 10**12)),
        name=st.sampled_from("abcdefgh"),
        text=st.sampled_from(("x", "y", "é\0\n%d")),
        more=st.sampled_from((0, 0, 0, 1)),
        trim=st.sampled_from((None, None, 0, 2)),
        revision=st.sampled_from((None, None, 1, 2)),
        incarnation=st.sampled_from((None, None, "own", "other")),
    ),
    max_size=8,
)


async def outcomes(
    script: object, start: datetime, steps: list[Step]
) -> tuple[list[Any], dict[bytes, Any]]:
    """Return what each step gave, and what stands in Redis behind them all."""
    prefix, clock = fresh_prefix(), TickingClock(start)
    found: list[Any] = []
    stored: dict[bytes, Any] = {}
    async with client(prefix) as real:
        with (
            patch.object(_redis_appends, "APPEND", script),
            patch("raf_session.journals._rules.secrets.token_hex", return_value="own"),
        ):
            async with RedisJournal(real, prefix=prefix, clock=clock) as journal:
                await journal.create(NEW)
                other = NewSession(key=KEY._replace(user=""))
                await journal.create(other, change=Change(pin=True))
                for step in steps:
                    clock.tick(0, microseconds=step.micros)
                    more = [said(f"{step.name}{n}") for n in range(step.more)]
                    for key in (KEY, other.key):
                        try:
                            commit = await journal.append(
                                *(key, [said(step.name, step.text), *more]),
                                trim=step.trim,
                                expected_revision=step.revision,
                                incarnation=step.incarnation,
                            )
                        except SessionError as error:
                            found.append((type(error), str(error)))
                        else:
                            found.append(commit)
        async for key in real.scan_iter(f"{prefix}*"):
            name = key.removeprefix(prefix.encode())
            if await real.type(key) == b"hash":
                stored[name] = await real.hgetall(key)
            elif await real.type(key) == b"zset":
                stored[name] = await real.zrange(key, 0, -1, withscores=True)
    return found, stored


@settings(max_examples=40, deadline=None)
@given(
    start=st.sampled_from(
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC))
    ),
    steps=STEPS,
)
@example(
    start=datetime(2026, 1, 1, tzinfo=UTC),
    steps=[Step(1, "a"), Step(1, "b"), Step(0, "c"), Step(1, "b"), Step(1, "b", "y")],
)
def test_the_short_way_is_the_long_way(start: datetime, steps: list[Step]) -> None:
    short = asyncio.run(outcomes(USUAL, start, steps))
    assert short == asyncio.run(outcomes(LONG, start, steps))


def test_the_usual_append_takes_the_short_way() -> None:
    broken = _redis_scripts.Script(
        _redis_scripts.USUAL, "return redis.error_reply('the long way')"
    )
    start = datetime(2026, 1, 1, tzinfo=UTC)
    steps = [Step(1, "a"), Step(1, "b", incarnation="own")]
    assert asyncio.run(outcomes(broken, start, steps)) == asyncio.run(
        outcomes(LONG, start, steps)
    )
