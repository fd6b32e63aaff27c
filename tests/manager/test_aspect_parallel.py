"""Runs of one session at the same time: nothing is lost, mixed or refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack

import anyio
import anyio.lowlevel
import pytest
from aspect_values import BRIEF, Aspects, asks, gives, outline, reply, run, violations
from aspect_values import given as given_input
from hypothesis import given
from hypothesis import strategies as st
from journal_bindings import HARNESSES

from raf_session.conformance import JournalHarness
from raf_session.manager.aspect import SessionAspect
from raf_session.messages import ChatMessage
from raf_session.toolcalls import CONTINUED

GO_ON = f"user: {CONTINUED}"
"""Between a reply and the calls of another run."""


def judge_log(texts: Sequence[str], names: Sequence[str]) -> None:
    """Decide whether each run's input is there once, and its output in one piece."""
    for name in names:
        assert texts.count(f"user: {name} asks") == 1
        at = texts.index(f"assistant: {name}1 {name}2")
        assert texts[at : at + 4] == [
            f"assistant: {name}1 {name}2",
            "tool: done",
            "tool: done",
            f"assistant: {name} is told",
        ]
        assert texts.index(f"user: {name} asks") < at
    assert len(texts) == 5 * len(names)


class Racer:
    """A run that goes on one step at a time."""

    def __init__(self, aspect: SessionAspect, name: str, group: Sequence[str]) -> None:
        self._aspect = aspect
        self._name = name
        self._group = group
        self._stack = AsyncExitStack()

    async def steps(self, sent: list[tuple[ChatMessage, ...]]) -> AsyncGenerator[None]:
        """Yield after each step; note each request."""
        said = given_input(BRIEF, f"{self._name} asks")
        one = await self._stack.enter_async_context(
            self._aspect.around(run(self._name), said)
        )
        sent.append(one.messages)
        yield
        one.add(asks(*self._group))
        one.add(*map(gives, self._group))
        yield
        sent.append(await one.request())
        one.add(reply(f"{self._name} is told"))
        yield
        await self._stack.aclose()


@given(st.permutations("aaaabbbb"), st.booleans())
def test_runs_of_one_session_at_the_same_time_lose_and_mix_nothing(
    order: list[str], apart: bool
) -> None:
    async def race() -> None:
        async with Aspects() as aspects:
            shared = aspects.new()
            sent: list[tuple[ChatMessage, ...]] = []
            racers = {
                name: Racer(
                    aspects.new() if apart else shared, name, [f"{name}1", f"{name}2"]
                ).steps(sent)
                for name in "ab"
            }
            for name in order:
                await anext(racers[name], None)
            assert all(violations(request) == [] for request in sent)
            texts = outline(await aspects.stored())
            judge_log(texts, "ab")
            last = await aspects.new().before(run("c"), given_input(BRIEF, "well?"))
            assert violations(tuple(last.messages)) == []
            shown = [text for text in outline(last.messages) if text != GO_ON]
            assert shown[1:-1] == texts

    anyio.run(race)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    "harness", [pytest.param(harness, id=harness.name) for harness in HARNESSES]
)
async def test_runs_in_two_processes_store_each_output_in_one_piece(
    harness: JournalHarness,
) -> None:
    names = [f"{n}x" for n in range(8)]

    async def serve(aspect: SessionAspect, name: str) -> None:
        said = given_input(BRIEF, f"{name} asks")
        async with aspect.around(run(name), said) as one:
            assert violations(one.messages) == []
            one.add(asks(f"{name}1", f"{name}2"))
            await anyio.lowlevel.checkpoint()
            one.add(gives(f"{name}2"), gives(f"{name}1"))
            assert violations(await one.request()) == []
            one.add(reply(f"{name} is told"))

    async with (
        harness.storage() as opener,
        opener() as journal,
        Aspects(journal) as aspects,
        AsyncExitStack() as stack,
    ):
        other = journal
        if harness.name != "memory":
            other = await stack.enter_async_context(opener())
        served = aspects.new(), aspects.new(journal=other)
        async with anyio.create_task_group() as group:
            for n, name in enumerate(names):
                group.start_soon(serve, served[n % 2], name)
        judge_log(outline(await aspects.stored()), names)
        prepared = await aspects.new().before(run("next"), given_input(BRIEF, "so?"))
        assert violations(tuple(prepared.messages)) == []
        for aspect in served:
            await aspect.manager.close()
