"""An agent that serves several channels, with its sessions kept by `SessionAspect`.

Run it with ``python examples/channel_agent.py``, and with a number for so many turns.
Chats, threads and tasks of five channels take turns; each has a session of its own, in
a JSONL file.  Model and tools are made up: put real ones in their place.  Half-way the
program begins anew, as after a restart, and the prompt cache does not notice.
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from raf_session import ChatMessage, ToolCall
from raf_session.manager import (
    AgentInput,
    AgentPoint,
    AgentRun,
    AgentsConfig,
    CompactionOutcome,
    HistoryRule,
    SessionAspect,
    SessionManager,
)
from raf_session.summarizers import ExtractiveSummarizer

CONFIG: Final = AgentsConfig.from_mapping(
    {
        "session": {
            "max_messages": 60,
            "max_token_count": 2000,
            "reserve_tokens": 100,
            "ttl": "168h",
            "idle_timeout": "24h",
        },
        "compaction": {
            "mode": "safeguard",
            "keep_recent_count": 10,
            "target_tokens_percent": 60,
            "min_messages_to_compact": 20,
        },
        "tool_calls": {"keep_tool_calls_count": 6, "max_tool_result_size": 800},
    }
)
"""Small limits, so that a short run meets all of them."""

INSTRUCTIONS: Final = ChatMessage.system("You help people to travel. Be brief.")

CHATS: Final = (
    AgentInput("discord", "per_peer", peer="ann"),
    AgentInput("feishu", "per_channel_peer", chat="oc_team", peer="bob"),
    AgentInput("forum", "thread", chat="travel", thread="trains"),
    AgentInput("mail", "per_account_channel", account="support", peer="ann"),
    AgentInput("cron", "task", task="nightly"),
)
QUESTIONS: Final = (
    "What is the weather in Oslo and in Rome?",
    "I prefer trains to planes, and I decided to leave on Friday.",
    "Search the timetable from Oslo to Rome.",
    "Thanks!",
    "Plan the whole trip: weather first, then search a hotel and the timetable.",
    "How much was it again?",
    "We agreed on two nights in Milan. What is the weather there?",
)


def said_in(turn: int) -> AgentInput:
    """Return what somebody says in this turn, and where."""
    question = ChatMessage.user(f"{QUESTIONS[turn % len(QUESTIONS)]} (no. {turn})")
    chat = CHATS[turn // 2 % len(CHATS)]
    return replace(chat, messages=[INSTRUCTIONS, question])


# The model and the tools, made up ------------------------------------------------


class MadeUpModel:
    """Asks for the tools that the user's words name, then repeats what they found."""

    def __init__(self) -> None:
        self._calls = count(1)

    async def __call__(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        """Return the next message of the assistant."""
        await asyncio.sleep(0)
        start = max(i for i, m in enumerate(messages) if m.role == "user")
        question, results = messages[start].text, messages[start + 1 :]
        wanted = [name for name in TOOLS if name in question.lower()]
        if "plan" in question.lower():  # one after the other
            done = {c.name for m in results for c in m.tool_calls or ()}
            wanted = [name for name in wanted if name not in done][:1] * 2
        elif results:
            wanted = []
        if wanted:
            calls = [
                ToolCall(
                    id=f"call_{next(self._calls)}",
                    name=name,
                    arguments=json.dumps({"about": question}),
                )
                for name in wanted
            ]
            return ChatMessage.assistant_with_tools("Let me look.", calls)
        found = "; ".join(m.text[:40] for m in results if m.role == "tool")
        return ChatMessage.assistant(f"You said {question!r}. I know: {found or 'it'}.")


async def look_at_the_weather(about: str) -> str:
    """Return a short text."""
    await asyncio.sleep(0)
    return f"Sunny, {len(about) % 30} degrees."


async def search(about: str) -> str:
    """Return a long JSON text: more than a request shall hold."""
    await asyncio.sleep(0)
    hits = [{"hit": n, "text": f"{about} {n} {'.' * 60}"} for n in range(40)]
    return json.dumps(hits)


TOOLS: Final[Mapping[str, Callable[[str], Awaitable[str]]]] = {
    "weather": look_at_the_weather,
    "search": search,
}


# The agent -----------------------------------------------------------------------


GUIDE: Final = AgentPoint("guide", model="made-up")
"""Names no run, so each turn is one of its own."""


class ChannelAgent:
    """Answers what is said in any channel.

    Args:
        aspect: keeps the sessions.
        model: from a request to the assistant's next message.
    """

    def __init__(
        self,
        aspect: SessionAspect,
        model: Callable[[Sequence[ChatMessage]], Awaitable[ChatMessage]],
    ) -> None:
        self._aspect = aspect
        self._model = model

    async def answer(self, said: AgentInput) -> AgentRun:
        """Answer, with as many calls of tools as the model asks for.

        What is stored by `save` is known after a crash in the middle of the turn too.
        """
        async with self._aspect.around(GUIDE, said) as run:
            while True:
                message = await self._model(await run.request())
                run.add(message)
                if not message.tool_calls:
                    return run
                await run.save()
                run.add(*await asyncio.gather(*map(_result, message.tool_calls)))


async def _result(call: ToolCall) -> ChatMessage:
    arguments = json.loads(call.arguments)
    text = await TOOLS[call.name or ""](arguments["about"])
    return ChatMessage.tool(text, call.id or "")


# The report ----------------------------------------------------------------------


WHY: Final = {
    HistoryRule.MAX_MESSAGES: "over max_messages",
    HistoryRule.MAX_TOKENS: "over max_token_count",
    HistoryRule.TURN: "the rest of a turn that a limit cut",
    HistoryRule.TOOL_CALLS: "calls and results over keep_tool_calls_count",
    HistoryRule.GROUP: "calls or results whose others left",
    HistoryRule.ORPHAN: "results without calls, or thoughts that led to nothing",
}
"""Why messages of the history are not in a request."""


def line(number: int, run: AgentRun) -> str:
    """Return what there is to say of a turn: how much was reused, what was left out."""
    said, report, requests = run.input, run.report, run.reports
    where = f"{said.channel}/{said.thread or said.task or said.peer}"
    share = " new" if report.reuse is None else f"{report.reuse:4.0%}"
    notes: list[str] = []
    if report.compaction is not None:
        notes.append(f"compaction: {report.compaction.outcome}")
    notes += [f"prefix broken: {r.cause}" for r in requests if not r.append_only]
    rules = Counter(entry.rule for entry in requests[-1].dropped)
    notes += [f"left out: {n} ({WHY[rule]})" for rule, n in rules.most_common()]
    messages, view = report.request.messages, report.request.view
    if view.truncated:
        notes.append(f"cut to max_tool_result_size: {len(view.truncated)} results")
    return (
        f"{number:4} {where:14} {len(requests):5} {len(messages):8} {view.tokens:6} "
        f"{share:>6}  {'; '.join(notes)}"
    ).rstrip()


HEADING: Final = "turn where          calls messages tokens reused  what happened"
LEGEND: Final = """\
calls: of the model; messages, tokens: of the last of these requests; reused: the share
of bytes, over the turn's requests, that the session's request before began with
"""


async def serve(folder: Path, turns: int) -> None:
    """Serve so many turns, half of them in a second life, and print a line for each."""
    session = CONFIG.session.model_copy(update={"storage_path": str(folder)})
    config = CONFIG.model_copy(update={"session": session})
    model, compactions = MadeUpModel(), 0
    print(LEGEND)
    print(HEADING)
    for life in (range(turns // 2), range(turns // 2, turns)):
        async with SessionManager.from_config(
            config, summarizer=ExtractiveSummarizer(max_chars=600)
        ) as manager:
            agent = ChannelAgent(SessionAspect(manager), model)
            for number in life:
                run = await agent.answer(said_in(number))
                done = run.report.compaction
                if done is not None and done.outcome is CompactionOutcome.COMPACTED:
                    compactions += 1
                print(line(number, run))
            print("-- closed" if life.start else "-- closed, and begun anew")
            if life.start:
                await _sum_up(manager, compactions)


async def _sum_up(manager: SessionManager, compactions: int) -> None:
    listing = await manager.list(agent_id="guide")
    print(f"sessions: {len(listing.sessions)}, compactions: {compactions}")
    for meta in listing.sessions:
        reuse = manager.reuse(meta.key)
        print(
            f"{meta.key}: {meta.message_count} messages; of {reuse.requests} requests "
            f"{reuse.breaks} broke the prefix, {reuse.reuse or 0:.0%} of bytes reused"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve made-up chats, and tell how.")
    parser.add_argument("turns", type=int, nargs="?", default=60, help="default: 60")
    with TemporaryDirectory() as place:
        asyncio.run(serve(Path(place), parser.parse_args().turns))
