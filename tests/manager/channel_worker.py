"""A process that serves a channel through the aspect, until a test kills it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from aspect_values import BRIEF, asks, config, given, gives, reply, run

from raf_session.conformance import JournalOpener
from raf_session.journal import Journal
from raf_session.manager import AgentInput
from raf_session.manager.aspect import SessionAspect
from raf_session.manager.session_manager import SessionManager
from raf_session.messages import ChatMessage

__all__ = ("STOPS_AT", "Job", "manager_over", "outputs", "said", "start", "wait_for")

STOPS_AT: Final = 2
"""The turn in which a worker stops, where it does."""
_PATIENCE_SECS: Final = 60.0
_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["raf_session.manager", "anyio._backends._asyncio"])

_CONFIG: Final = config(
    session={"max_token_count": 1000},
    compaction={"mode": "safeguard", "keep_recent_count": 4, "target_tokens": 400},
)


class _Short:
    """Writes short summaries."""

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        return f"{len(messages)} messages, behind {len(previous or '')} characters"


def manager_over(journal: Journal) -> SessionManager:
    """Return a manager as every worker has one."""
    return SessionManager(journal, _CONFIG, summarizer=_Short())


def said(n: int) -> AgentInput:
    """Return what the user says in a turn."""
    return given(BRIEF, f"question {n}")


def outputs(n: int) -> tuple[ChatMessage, ...]:
    """Return what the agent says in a turn: calls, results and a reply."""
    calls = f"c{n}", f"d{n}"
    results = [gives(name, f"{name} " + "text " * 20) for name in calls]
    return asks(*calls), *results, reply(f"answer {n}")


class Job(NamedTuple):
    """What a worker does."""

    opener: JournalOpener
    notes: Path
    """Where it says how far it is, a line at a time."""
    place: str
    """Where it stops: at the ``model``, within a ``tool``; ``""``: nowhere."""

    def noted(self, word: str) -> list[int]:
        """Return the turns of which the worker has said this."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [int(line.split()[1]) for line in lines if line.startswith(f"{word} ")]


async def _turn(aspect: SessionAspect, job: Job, n: int) -> None:
    with job.notes.open("a", buffering=1) as notes:
        async with aspect.around(run(f"run {n}"), said(n)) as one:
            print("said", n, file=notes)
            calls, first, second, answer = outputs(n)
            if job.place == "model" and n == STOPS_AT:
                await anyio.sleep_forever()
            one.add(calls, first)
            if job.place == "tool" and n == STOPS_AT:
                await anyio.sleep_forever()
            one.add(second)
            await one.request()
            one.add(answer)
        print("done", n, file=notes)


def _work(job: Job) -> None:
    async def serve() -> None:
        async with job.opener() as journal, manager_over(journal) as manager:
            aspect = SessionAspect(manager)
            for n in range(1_000_000):
                await _turn(aspect, job, n)

    anyio.run(serve)


def start(job: Job) -> BaseProcess:
    """Start a worker."""
    worker = _CONTEXT.Process(target=_work, args=(job,), daemon=True)
    worker.start()
    return worker


def wait_for(worker: BaseProcess, job: Job, word: str, n: int) -> None:
    """Wait until a worker has said this of a turn."""
    until = time.monotonic() + _PATIENCE_SECS
    while n not in job.noted(word):
        assert worker.is_alive(), f"it ended with {worker.exitcode}"
        assert time.monotonic() < until, f"it never came to {word} {n}"
        time.sleep(0.002)
