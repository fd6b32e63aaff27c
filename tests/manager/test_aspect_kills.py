"""Processes that serve a channel are killed: nothing said is lost, and others go on."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread
import pytest
from aspect_values import KEY, given, judge, outline, run, said_in
from channel_worker import STOPS_AT, Job, manager_over, outputs, said, start, wait_for
from journal_bindings import HARNESSES

from raf_session.conformance import Capability, JournalHarness
from raf_session.manager import AgentOutput
from raf_session.manager.aspect import SessionAspect

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does"),
]

SHARED = [
    pytest.param(harness, id=harness.name)
    for harness in HARNESSES
    if {Capability.DURABLE, Capability.SHARED} <= harness.capabilities
]
PLACES = [
    pytest.param(harness, place, id=f"{harness.name}-{place}")
    for harness in HARNESSES
    if {Capability.DURABLE, Capability.SHARED} <= harness.capabilities
    for place in ("model", "tool")
    if place == "tool" or harness.name in {"jsonl", "sqlite"}
]
"""A worker waits in a tool on every journal, and in its model call on those of files:
storage cannot tell one from the other."""
KILLS = 8 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def kill(job: Job, word: str, n: int, *, delay: float = 0.0) -> None:
    """Start a worker, and kill it so long after it has said this."""
    worker = start(job)
    try:
        wait_for(worker, job, word, n)
        time.sleep(delay)
    finally:
        worker.kill()
        worker.join()
    assert worker.exitcode == -9


async def judge_session(job: Job) -> None:
    """Decide whether what was acknowledged is stored, once, and the next run begins."""
    async with job.opener() as journal:
        everything = outline(await said_in(journal, KEY))
        last = max(job.noted("said"))
        begun = {n for n in range(last + 2) if f"user: question {n}" in everything}
        assert begun >= set(job.noted("said"))
        assert all(everything.count(f"user: question {n}") == 1 for n in begun)
        for n in begun:
            stored = [line for line in outline(outputs(n)) if line in everything]
            assert all(everything.count(line) == 1 for line in stored)
            assert len(stored) in ((4,) if n in job.noted("done") else (0, 4))

        last = max(begun)
        # Another process takes the last run up, and does it as it should have been.
        aspect = SessionAspect(manager_over(journal))
        prepared = await aspect.before(run(f"run {last}"), said(last))
        judge(prepared.messages, aspect.manager)
        assert outline(prepared.messages).count(f"user: question {last}") == 1
        await aspect.after(run(f"run {last}"), prepared, AgentOutput(outputs(last)))
        prepared = await aspect.before(run("next"), given("next"))
        judge(prepared.messages, aspect.manager)
        assert outline(prepared.messages)[-1] == "user: next"
        everything = outline(await said_in(journal, KEY))
        for line in (f"user: question {last}", *outline(outputs(last))):
            assert everything.count(line) == 1
        await aspect.manager.close()


@pytest.mark.parametrize(("harness", "place"), PLACES)
async def test_a_run_is_killed_between_before_and_after(
    harness: JournalHarness, place: str, tmp_path: Path
) -> None:
    async with harness.storage() as opener:
        job = Job(opener, tmp_path / "notes", place)
        await anyio.to_thread.run_sync(kill, job, "said", STOPS_AT)
        assert job.noted("said")[-1] == STOPS_AT
        assert job.noted("done") == [0, 1]
        await judge_session(job)


@pytest.mark.parametrize("harness", SHARED)
async def test_a_run_is_killed_at_any_time(
    harness: JournalHarness, tmp_path: Path
) -> None:
    chance = Random(harness.name)
    for round_ in range(KILLS):
        async with harness.storage() as opener:
            job = Job(opener, tmp_path / f"notes {round_}", "")
            n, delay = chance.randrange(6, 14), chance.random() * 0.02
            killing = partial(kill, job, "said", n, delay=delay)
            await anyio.to_thread.run_sync(killing)
            await judge_session(job)
