"""Any runs under any limits: requests may be sent and append, and nothing is lost."""

from __future__ import annotations

from typing import Any, NamedTuple

import anyio
from aspect_values import (
    BRIEF,
    Aspects,
    asks,
    begins,
    config,
    gives,
    outline,
    reply,
    run,
    violations,
)
from aspect_values import given as given_input
from hypothesis import given
from hypothesis import strategies as st

from raf_session.manager import AgentsConfig
from raf_session.manager.agent_run import AgentRun
from raf_session.messages import ChatMessage
from raf_session.tokens import count_tokens


class ModelFailedError(Exception):
    """What ends a run."""


class Step(NamedTuple):
    """What one answer of the model leads to."""

    results: tuple[int, ...]
    """The sizes of the results of its calls; none: it is the reply."""
    text: str | None = None


class Turn(NamedTuple):
    """What one user says, and what a run makes of it."""

    said: str
    steps: tuple[Step, ...]
    fails: bool
    """Whether it ends within the last step."""
    restarts: bool
    """Whether another process takes over in front of it."""


SIZES = st.sampled_from((0, 5, 80, 700))
STEPS = st.builds(
    Step,
    st.lists(SIZES, max_size=3).map(tuple),
    st.sampled_from((None, "", "let me see", "a word" * 25)),
)
TURNS = st.lists(
    st.builds(
        Turn,
        st.sampled_from(("hi", "tell me more " * 8, "?")),
        st.lists(STEPS, max_size=3).map(tuple),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


def limited(session: dict[str, Any], tool_calls: dict[str, Any]) -> AgentsConfig:
    return config(session=session, tool_calls=tool_calls)


CONFIGS = st.builds(
    limited,
    st.fixed_dictionaries(
        {
            "max_messages": st.sampled_from((None, 3, 8, 20)),
            "max_token_count": st.sampled_from((None, 120, 400, 1500)),
            "window": st.sampled_from(("stepped", "sliding")),
        }
    ),
    st.fixed_dictionaries(
        {
            "keep_tool_calls_count": st.sampled_from((None, 0, 1, 3)),
            "max_tool_result_size": st.sampled_from((None, 40, 200)),
            "placeholder": st.sampled_from((None, "(left out)")),
        }
    ),
)


class Talk:
    """Turns in one session, and what has to be stored of them."""

    def __init__(self, aspects: Aspects, configuration: AgentsConfig) -> None:
        self.aspects = aspects
        self.configuration = configuration
        self.aspect = aspects.new(configuration)
        self.expected: list[str] = []
        self.sent: tuple[ChatMessage, ...] = ()
        self.shown: tuple[Any, ...] = ()

    async def turn(self, number: int, turn: Turn) -> None:
        if turn.restarts:
            await self.aspect.manager.close()
            self.aspect = self.aspects.new(self.configuration)
        self.expected.append(f"user: {turn.said}")
        try:
            async with self.aspect.around(
                run(f"{number}"), given_input(BRIEF, turn.said)
            ) as one:
                await self._ask(one)
                for place, step in enumerate(turn.steps):
                    last = place + 1 == len(turn.steps)
                    await self._step(
                        one, f"{number}-{place}", step, last and turn.fails
                    )
        except ModelFailedError:
            assert turn.fails

    async def _step(self, one: AgentRun, name: str, step: Step, fails: bool) -> None:
        if not step.results:
            one.add(reply(step.text or ""))
            if step.text:
                self.expected.append(f"assistant: {step.text}")
        else:
            ids = [f"c{name}-{n}" for n in range(len(step.results))]
            group = [asks(*ids, text=step.text)]
            group += [
                gives(name, f"{name} " + "x" * size)
                for name, size in zip(ids, step.results, strict=True)
            ]
            if fails:
                one.add(*group[:-1])
                self.expected += outline(group[:-1])
                raise ModelFailedError
            one.add(*group)
            self.expected += outline(group)
        if fails:
            raise ModelFailedError
        await self._ask(one)

    async def _ask(self, one: AgentRun) -> None:
        sent, report = await one.request(), one.reports[-1]
        view = report.request.view
        assert violations(sent) == []
        manager = self.aspect.manager
        window = manager.config.session.request_tokens
        if window is not None:
            tokens = count_tokens(sent, manager.counter)
            assert tokens <= window or view.overrun.tokens >= tokens - window
        shown = (view.moves, view.repairs)
        if sent != self.sent:
            assert report.append_only == begins(self.sent, sent)
            assert report.append_only or shown != self.shown
        self.sent, self.shown = sent, shown


@given(TURNS, CONFIGS)
def test_requests_may_be_sent_and_append_until_a_limit_moves_the_window(
    turns: list[Turn], configuration: AgentsConfig
) -> None:
    async def talk() -> None:
        async with Aspects() as aspects:
            talk = Talk(aspects, configuration)
            for number, turn in enumerate(turns):
                await talk.turn(number, turn)
            assert outline(await aspects.stored()) == talk.expected

    anyio.run(talk)
