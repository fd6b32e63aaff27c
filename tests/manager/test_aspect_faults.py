"""A fault at each call of the journal within `before`, `after` and `around`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest
from aspect_values import (
    BRIEF,
    Aspects,
    asks,
    config,
    given,
    gives,
    judge,
    outline,
    reply,
    run,
)
from interrupting_journal import Fault, InterruptingJournal
from journal_bindings import BY_NAME

from raf_session.conformance.interruptions import interrupted
from raf_session.errors import StorageError
from raf_session.journal import Journal
from raf_session.manager import AgentOutput
from raf_session.manager.aspect import SessionAspect
from raf_session.messages import ChatMessage

pytestmark = pytest.mark.anyio

NARROW = config(
    session={"max_token_count": 1200},
    compaction={"mode": "safeguard", "keep_recent_count": 2, "target_tokens": 300},
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


FAULTS = [pytest.param(fault, id=fault.value) for fault in Fault]
TEXT = "We decided to meet at ten, and to bring the plans. " * 20
SAID = given(BRIEF, "and now?")
OUTPUT = (asks("n1", "n2"), gives("n2"), gives("n1"), reply("done"))
Work = Callable[[SessionAspect], Awaitable[object]]


class Short:
    """Writes short summaries."""

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        return f"{len(messages)} messages, behind {previous}"


class Stage:
    """A session with some turns, and a journal for a run that is interrupted."""

    def __init__(self, aspects: Aspects, turns: int) -> None:
        self.aspects = aspects
        self.turns = turns
        self.journal = InterruptingJournal(aspects.journal)

    async def prepared(self) -> SessionAspect:
        """Return the aspect over the journal that will be interrupted."""
        former = self.aspects.new()
        for n in range(self.turns):
            async with former.around(run(f"old {n}"), given(BRIEF, f"{n}?")) as one:
                one.add(asks(f"o{n}"), gives(f"o{n}", TEXT), reply(f"{n}."))
        return self.new(journal=cast("Journal", self.journal))

    def new(self, **options: Any) -> SessionAspect:
        return self.aspects.new(NARROW, summarizer=Short(), **options)

    async def interrupted(
        self, work: Work, aspect: SessionAspect, at: int, fault: Fault
    ) -> bool:
        """Do some work whose call of this number is befallen; tell if that ended it."""
        self.journal.arm(at, fault)
        with self.journal.scope, suppress(StorageError):
            await work(aspect)
            return False
        return True

    async def judge(self) -> None:
        """Decide whether the run can be repeated, and the next one begin."""
        for _ in range(2):
            prepared = await self.new().before(run("now"), SAID)
            judge(prepared.messages, self.new().manager)
            assert outline(prepared.messages).count("user: and now?") == 1
            await self.new().after(run("now"), prepared, AgentOutput(OUTPUT))
        everything = outline(await self.aspects.everything())
        assert everything.count("user: and now?") == 1
        assert everything.count("assistant: n1 n2") == 1
        assert everything.count("assistant: done") == 1
        assert len(everything) == 4 * self.turns + 5
        following = await self.new().before(run("next"), given(BRIEF, "next"))
        judge(following.messages, self.new().manager)
        assert outline(following.messages)[-1] == "user: next"


async def count_calls(stage: Stage, work: Work) -> list[str]:
    """Return the calls of some work that nothing befalls."""
    aspect = await stage.prepared()
    stage.journal.arm(-1, Fault.REFUSED)
    await work(aspect)
    return list(stage.journal.calls)


async def whole_run(aspect: SessionAspect) -> None:
    async with aspect.around(run("now"), SAID) as one:
        one.add(*OUTPUT[:3])
        await one.request()
        one.add(OUTPUT[3])


@pytest.mark.parametrize("turns", [0, 6])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_at_any_call_leaves_a_run_that_can_be_repeated(
    turns: int, fault: Fault
) -> None:
    async with Aspects() as aspects:
        calls = await count_calls(Stage(aspects, turns), whole_run)
    assert ("splice" in calls) == (turns == 6)
    assert ("create" in calls) == (turns == 0)
    for at in range(len(calls)):
        async with Aspects() as aspects:
            stage = Stage(aspects, turns)
            aspect = await stage.prepared()
            assert await stage.interrupted(whole_run, aspect, at, fault)
            await stage.judge()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_at_any_call_of_after_loses_and_doubles_nothing(
    fault: Fault,
) -> None:
    async def after(aspect: SessionAspect) -> None:
        await aspect.after(run("now"), said, AgentOutput(OUTPUT))

    async with Aspects() as aspects:
        stage = Stage(aspects, 2)
        aspect = await stage.prepared()
        said = await aspect.before(run("now"), SAID)
        assert not await stage.interrupted(after, aspect, -1, fault)
        calls = list(stage.journal.calls)
    assert "append" in calls
    for at in range(len(calls)):
        async with Aspects() as aspects:
            stage = Stage(aspects, 2)
            aspect = await stage.prepared()
            said = await aspect.before(run("now"), SAID)
            stage.journal.arm(at, fault)
            with (
                pytest.raises(StorageError)
                if "cancel" not in fault.value
                else stage.journal.scope
            ):
                await after(aspect)
            await stage.judge()


@pytest.mark.parametrize("fault", [Fault.CANCELLED, Fault.CANCELLED_LATE])
async def test_a_run_that_is_cancelled_while_it_is_stored_is_stored(
    fault: Fault,
) -> None:
    async with Aspects() as aspects:
        calls = await count_calls(Stage(aspects, 2), whole_run)
    at = len(calls) - 1 - calls[::-1].index("append")
    async with Aspects() as aspects:
        stage = Stage(aspects, 2)
        aspect = await stage.prepared()
        assert await stage.interrupted(whole_run, aspect, at, fault)
        assert outline(await aspects.stored())[-5:] == [
            "user: and now?",
            *outline(OUTPUT),
        ]


@pytest.mark.parametrize("name", ["jsonl", "sqlite"])
async def test_a_run_may_be_cancelled_at_any_turn_of_the_loop(name: str) -> None:
    for turns in (0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 25, 40):
        async with (
            BY_NAME[name].storage() as opener,
            opener() as journal,
            Aspects(journal) as aspects,
        ):
            stage = Stage(aspects, 1)
            aspect = await stage.prepared()
            await interrupted(turns, partial(whole_run, aspect))
            await stage.judge()
