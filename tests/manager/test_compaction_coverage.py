"""Every message is in a summarizer's input or verbatim, after any compactions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager_bindings import ManagerHarness, on_every_manager
from manager_values import (
    ANN,
    KEY,
    CharacterCounter,
    Scribe,
    agent,
    call,
    configured,
    result,
    texts,
    user,
)

from raf_session.journals.memory import MemoryJournal
from raf_session.manager import AgentsConfig, CompactionOutcome, SessionManager
from raf_session.messages import ChatMessage
from raf_session.validity import (
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

KINDS = ("user", "agent", "pinned", "calls", "pending", "long", "answer")


class Round(NamedTuple):
    """What is said, and whether the summary that follows can be used."""

    kinds: tuple[str, ...]
    works: bool


ROUNDS = st.lists(
    st.builds(
        Round,
        st.lists(st.sampled_from(KINDS), min_size=1, max_size=6).map(tuple),
        st.sampled_from((True, True, True, False)),
    ),
    min_size=5,
    max_size=6,
)


def keeping(keep: int) -> AgentsConfig:
    return configured(
        compaction={
            "mode": "off",
            "keep_recent_count": keep,
            "min_messages_to_compact": 0,
        }
    )


class Speaker:
    """Says things that can be told apart."""

    def __init__(self) -> None:
        self._numbers = count()
        self._open: list[str] = []

    def say(self, kinds: Sequence[str]) -> list[ChatMessage]:
        """Return messages of these kinds, each unlike any other."""
        return [message for kind in kinds for message in self._said(kind)]

    def _said(self, kind: str) -> list[ChatMessage]:
        number = next(self._numbers)
        text, name = f"{kind} {number} ".ljust(40, "."), f"c{number}"
        if kind == "answer":
            if not self._open:
                return [agent(text)]
            return [result(self._open.pop(0), text)]
        if kind == "calls":
            return [
                call(f"{name}a", f"{name}b", text=text),
                result(f"{name}b", f"{text}b"),
                result(f"{name}a", f"{text}a"),
            ]
        if kind == "pending":
            return [call(name, text=text)]
        if kind == "long":
            self._open.append(name)
            return [call(name, text=text, long_running_tool_ids=[name])]
        if kind == "agent":
            return [agent(text)]
        return [user(text, pinned=True) if kind == "pinned" else user(text)]


async def check(
    manager: SessionManager, scribe: Scribe, rounds: Sequence[Round]
) -> None:
    """Say and compact, and look after each step for what has been said."""
    speaker = Speaker()
    session = await manager.get_or_create(ANN)
    said: list[ChatMessage] = []
    covered: list[ChatMessage] = []
    for said_now, works in rounds:
        new = speaker.say(said_now)
        await manager.add_messages(session, new)
        said += new
        scribe.inputs.clear()
        scribe.answer = None if works else ""
        report = await manager.compact(KEY)
        if report.outcome is CompactionOutcome.COMPACTED:
            ((given_now, _),) = scribe.inputs
            covered += given_now
            assert report.covered == len(given_now)
            assert report.tokens_after < report.tokens_before
        shown = await session.get_messages()
        verbatim = [message for message in shown if message in said]
        summaries = [message for message in shown if message not in said]
        assert sorted(texts([*covered, *verbatim])) == sorted(texts(said))
        assert verbatim == [message for message in said if message in verbatim]
        assert len(summaries) == bool(covered)
        for summary in summaries:
            assert summary.metadata["original_count"] == len(covered)
        assert all(m in verbatim for m in said if m.metadata.get("pinned") is True)
        record = await session.journal.load(session.key, archived=True)
        archived = [e.message for e in record.archived if e.kind != "summary"]
        assert sorted(m.text for m in archived if m) == sorted(texts(covered))
    view = await manager.load_history(KEY)
    assert not openai_violations(view.messages)
    assert not anthropic_violations(view.messages)
    assert not gemini_violations(view.messages)


@given(rounds=ROUNDS, keep=st.integers(0, 5))
def test_every_message_is_covered_by_a_summary_or_verbatim(
    rounds: list[Round], keep: int
) -> None:
    scribe = Scribe()
    manager = SessionManager(
        MemoryJournal.opened(),
        keeping(keep),
        summarizer=scribe,
        counter=CharacterCounter(),
    )
    anyio.run(check, manager, scribe, rounds)


@pytest.mark.anyio
@on_every_manager
async def test_five_compactions_in_a_row_cover_everything_on_every_journal(
    bound: ManagerHarness,
) -> None:
    scribe = Scribe()
    rounds = [
        Round((*KINDS, "user", "agent", *KINDS, "user"), works=n != 2) for n in range(6)
    ]
    async with bound(keeping(2), summarizer=scribe) as manager:
        await check(manager, scribe, rounds)


async def pending_scene(manager: SessionManager) -> list[ChatMessage]:
    session = await manager.get_or_create(ANN)
    long = [
        call(f"c{n}", text=f"ask {n}", long_running_tool_ids=[f"c{n}"]) for n in (1, 2)
    ]
    said = [user("go"), long[0], agent("soon"), user("and?"), long[1], agent("wait")]
    await manager.add_messages(session, [*said, user("x" * 200), agent("y" * 200)])
    return long


@pytest.mark.anyio
async def test_calls_that_wait_are_never_covered() -> None:
    scribe = Scribe()
    manager = SessionManager(
        MemoryJournal.opened(),
        keeping(0),
        summarizer=scribe,
        counter=CharacterCounter(),
    )
    long = await pending_scene(manager)
    for n in range(5):
        await manager.compact(KEY)
        session = await manager.get(KEY)
        assert session is not None
        shown = session.messages_now()
        assert [message for message in shown if message in long] == long
        more = [user(f"more {n}".ljust(90)), agent(f"sure {n}".ljust(90))]
        await manager.add_messages(session, more)
