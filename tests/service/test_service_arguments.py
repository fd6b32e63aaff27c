"""What is passed in the wrong place is refused, and says what is wanted."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from raf_session.service import (
    Event,
    InMemorySessionService,
    SessionServiceConfig,
    SessionSummarizer,
    set_summarizer_events_count_threshold,
)
from raf_session.summarizers import ExtractiveSummarizer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "arguments",
    [
        {"summarizer_manager": SessionServiceConfig()},
        {"summarizer_manager": SessionSummarizer(ExtractiveSummarizer())},
        {"session_config": {"max_events": 3}},
    ],
)
def test_a_service_takes_managers_and_configurations(arguments: Any) -> None:
    (name,) = arguments
    with pytest.raises(TypeError, match=name):
        InMemorySessionService(**arguments)


@pytest.mark.parametrize("wrong", ["text", None, 3])
async def test_an_event_is_appended_to_a_session(wrong: Any) -> None:
    service = InMemorySessionService()
    session = await service.create_session(app_name="a", user_id="u")
    with pytest.raises(TypeError, match="Event"):
        await service.append_event(session, wrong)
    with pytest.raises(TypeError, match="Session"):
        await service.append_event(wrong, Event(content="hi"))
    with pytest.raises(TypeError, match="Session"):
        await service.append_event(Event(content="hi"), session)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [3, b"x", {"content": ("hi", 3)}, {"content": 3}])
def test_what_says_nothing_is_no_content(content: object) -> None:
    with pytest.raises(ValidationError, match="content"):
        Event(content=content)


def test_a_list_of_texts_is_a_message() -> None:
    assert Event(content=["a", {"type": "text", "text": "b"}]).text == "ab"


def test_a_threshold_follows_a_manager() -> None:
    with pytest.raises(TypeError, match="manager"):
        set_summarizer_events_count_threshold(InMemorySessionService(), 3)  # type: ignore[arg-type]


MISSING = """
import sys
sys.modules["{module}"] = None
from raf_session.service import RedisSessionService, SqlSessionService
try:
    {made}
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "extra", "made"),
    [
        ("redis.asyncio", "redis", 'RedisSessionService("redis://localhost")'),
        ("asyncpg", "postgres", 'SqlSessionService("postgresql://localhost/db")'),
        ("asyncmy", "mysql", 'SqlSessionService("mysql://localhost/db")'),
    ],
)
def test_a_driver_that_is_missing_is_named_with_its_extra(
    module: str, extra: str, made: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING.format(module=module, made=made)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"pip install 'raf-session[{extra}]'" in done.stdout
