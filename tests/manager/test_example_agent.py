"""The example agent over 200 turns in five channels, and through a restart."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aspect_values import begins, judge, said_in, wire

from raf_session.compaction import CompactionOutcome
from raf_session.history import HistoryRule
from raf_session.keys import SessionKey
from raf_session.manager import AgentsConfig
from raf_session.manager.aspect import SessionAspect
from raf_session.manager.session_manager import SessionManager
from raf_session.messages import ChatMessage
from raf_session.summarizers import ExtractiveSummarizer, ModelSummarizer, Summarizer

pytestmark = pytest.mark.anyio

FILE = Path(__file__).parents[2] / "examples" / "channel_agent.py"
TURNS = 200


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = spec_from_file_location("channel_agent", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class NoteTaker:
    """A model that is asked for summaries."""

    def __init__(self) -> None:
        self.asked: list[list[ChatMessage]] = []

    async def __call__(self, messages: list[ChatMessage]) -> str:
        self.asked.append(messages)
        return f"They have written {len(messages[-1].text)} characters about travel."


class Watch:
    """Looks at every request, and keeps what was said in each session."""

    def __init__(self) -> None:
        self.said: dict[SessionKey, list[ChatMessage]] = defaultdict(list)
        self.requests = 0
        self.breaks = 0
        self.compactions = 0
        self._sent: dict[SessionKey, tuple[ChatMessage, ...]] = {}
        self._moves: dict[SessionKey, int] = {}
        self._spliced: dict[SessionKey, int] = {}
        self._compacted: dict[SessionKey, bool] = {}

    def look(self, run: Any, manager: SessionManager) -> None:
        """Judge the requests of a turn."""
        session = run.input.session
        key = session.key
        moved = self._compacted.get(key, False)
        for report in run.reports:
            messages, view = report.request.messages, report.request.view
            judge(messages, manager)
            assert not view.overrun
            told = report.compaction
            compacted = told is not None and told.outcome is CompactionOutcome.COMPACTED
            moved |= compacted or view.moves != self._moves.get(key, 0)
            goes_on = begins(self._sent.get(key, ()), messages)
            assert report.append_only == goes_on
            assert goes_on or moved
            self.requests += 1
            self.breaks += not goes_on
            self.compactions += compacted
            self._sent[key], self._moves[key] = messages, view.moves
            moved = False
        spliced = session.head.spliced_at
        self._compacted[key] = spliced != self._spliced.get(key, 0)
        self._spliced[key] = spliced
        self.said[key] += [run.input.given.messages[-1], *run.added]


async def test_two_hundred_turns_in_five_channels_and_through_a_restart(
    example: ModuleType, tmp_path: Path
) -> None:
    watch, model, notes = Watch(), example.MadeUpModel(), NoteTaker()
    lives: list[tuple[str, Summarizer, range]] = [
        ("safeguard", ExtractiveSummarizer(max_chars=600), range(TURNS // 2)),
        ("auto", ModelSummarizer(notes), range(TURNS // 2, TURNS)),
    ]
    compactions: list[int] = []
    for mode, summarizer, life in lives:
        config = AgentsConfig.from_mapping(
            {"session": {"storage_path": str(tmp_path)}, "compaction": {"mode": mode}},
            base=example.CONFIG,
        )
        async with SessionManager.from_config(config, summarizer=summarizer) as manager:
            agent = example.ChannelAgent(SessionAspect(manager), model)
            for number in life:
                run = await agent.answer(example.said_in(number))
                watch.look(run, manager)
                assert example.line(number, run)
            for key, said in watch.said.items():
                assert wire(await said_in(manager.journal, key)) == wire(said)
        compactions.append(watch.compactions)
    assert len(watch.said) == len(example.CHATS)
    assert compactions[0] >= 3
    assert compactions[1] >= compactions[0] + 3
    assert len(notes.asked) >= 3
    assert all(request[0].role == "system" for request in notes.asked)
    assert watch.breaks < watch.requests / 5


def test_the_example_runs_as_it_says(example: ModuleType, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FILE), "20"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert example.HEADING in lines
    assert len([line for line in lines if line.strip()[:1].isdigit()]) >= 20
    assert list(tmp_path.iterdir()) == []


def test_the_example_says_how_it_is_called(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FILE), "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "invalid int value: 'x'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_example_explains_every_rule(example: ModuleType) -> None:
    assert set(example.WHY) == set(HistoryRule) - {HistoryRule.LIMIT}
