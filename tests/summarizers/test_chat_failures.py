"""Whatever a server does wrong is one typed error, which never shows the key."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import anyio
import pytest
from openai import APIConnectionError, AuthenticationError

from raf_session.errors import SummaryFailedError
from raf_session.messages import ChatMessage
from raf_session.summarizers import ChatCompletionsSummarizer
from summarizers.chat_server import (
    KEY,
    Reply,
    answers,
    chat_server,
    drops,
    fails,
    hangs,
    raw,
    says,
    tears,
    trickles,
)

pytestmark = pytest.mark.anyio

TALK = [ChatMessage.user("We meet in Ghent.")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def failure(*replies: Reply, **options: Any) -> tuple[SummaryFailedError, int]:
    """The error of a summary, and how many requests came."""
    settings: dict[str, Any] = {"max_retries": 0, "timeout_secs": 30, **options}
    async with (
        chat_server(*replies) as server,
        ChatCompletionsSummarizer(server.url, "m", KEY, **settings) as writer,
    ):
        with pytest.raises(SummaryFailedError) as failed:
            await writer.summarize(TALK, "They like tea.")
    return failed.value, len(server.received)


def completion(**choice: Any) -> Reply:
    return answers({"choices": [{"finish_reason": "stop", **choice}]})


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}

UNUSABLE = [
    ("empty", says("")),
    ("empty", says(" \n\t")),
    ("empty", says(None)),
    ("empty", says("<think>only thoughts</think>")),
    ("empty", completion(message={"role": "assistant"})),
    (
        "empty",
        completion(message={"content": None, "tool_calls": [CALL]}),
    ),
    ("refused", says(None, refusal="I can't help with that.")),
    ("refused", says("some text", refusal="I can't help with that.")),
    ("refused", says("", finish="content_filter")),
    ("refused", says("half a", finish="content_filter")),
    ("truncated", says("They meet in", finish="length")),
    ("truncated", says("", finish="length")),
    ("malformed", raw(b"")),
    ("malformed", raw(b"{")),
    ("malformed", raw(b"<html>Bad gateway</html>", Content_Type="text/html")),
    ("malformed", raw(b"\xff\xfe")),
    ("malformed", answers(None)),
    ("malformed", answers([])),
    ("malformed", answers({})),
    ("malformed", answers({"choices": None})),
    ("malformed", answers({"choices": []})),
    ("malformed", answers({"choices": [{}]})),
    ("malformed", answers({"choices": [{"message": None}]})),
    ("malformed", completion(message={"content": 7})),
    ("malformed", answers({"error": {"message": "overloaded"}})),
    ("connection", drops),
    ("connection", tears),
    ("connection", raw(b"", Content_Encoding="gzip", Content_Length="5")),
    *(
        ("status", fails(status))
        for status in (400, 401, 403, 404, 409, 422, 429, 500, 502, 503)
    ),
    ("status", raw(b"<html>", 502)),
    ("status", raw(b"", 500)),
]


@pytest.mark.parametrize(("reason", "reply"), UNUSABLE)
async def test_an_unusable_answer_is_a_failed_summary(
    reason: str, reply: Reply
) -> None:
    error, requests = await failure(reply)
    assert error.reason == reason
    assert error.attempts == requests == 1
    assert KEY not in str(error)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize("reply", [hangs, trickles])
async def test_a_server_that_does_not_finish_is_left_in_time(reply: Reply) -> None:
    error, requests = await failure(reply, timeout_secs=0.2)
    assert error.reason == "timeout"
    assert error.attempts == requests == 1
    assert "0.2 seconds" in str(error)
    assert isinstance(error.__cause__, TimeoutError)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_repeats_do_not_outlast_the_time() -> None:
    error, requests = await failure(fails(503), hangs, timeout_secs=0.3, max_retries=5)
    assert error.reason == "timeout"
    assert error.attempts is None
    assert requests == 2


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_repeats_are_bounded_and_counted(status: int) -> None:
    error, requests = await failure(fails(status, "busy"), max_retries=3)
    assert error.reason == "status"
    assert error.attempts == requests == 4
    assert f"HTTP {status}: busy" in str(error)


async def test_an_answer_after_repeats_counts_them_too() -> None:
    error, requests = await failure(fails(429), says(""), max_retries=3)
    assert error.reason == "empty"
    assert error.attempts == requests == 2


@pytest.mark.parametrize(
    "reply", [fails(400), fails(401), fails(404), says(""), says("x", finish="length")]
)
async def test_what_would_fail_again_is_not_repeated(reply: Reply) -> None:
    error, requests = await failure(reply, max_retries=3)
    assert error.attempts == requests == 1


async def test_the_server_is_not_there() -> None:
    async with chat_server(drops) as server:
        pass
    async with ChatCompletionsSummarizer(server.url, "m", KEY, max_retries=0) as writer:
        with pytest.raises(SummaryFailedError) as failed:
            await writer.summarize(TALK)
    assert failed.value.reason == "connection"
    assert failed.value.attempts == 1
    assert isinstance(failed.value.__cause__, APIConnectionError)


async def test_the_key_is_not_shown_even_where_the_server_repeats_it() -> None:
    said = f"Incorrect API key provided:\n{KEY}." + " and so on" * 500
    error, _ = await failure(fails(401, said))
    assert isinstance(error.__cause__, AuthenticationError)
    assert KEY not in str(error)
    assert KEY not in repr(error)
    assert all(KEY not in str(fact) for fact in vars(error).values())
    assert str(error).startswith(
        "no summary (status): HTTP 401: Incorrect API key provided: ***."
    )
    assert len(str(error)) < 500


async def test_a_refusal_says_what_the_model_said() -> None:
    error, _ = await failure(says(None, refusal="I can't help with that."))
    assert str(error) == "no summary (refused): I can't help with that."


async def test_the_error_can_be_copied_and_pickled() -> None:
    error, _ = await failure(says(""))
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert (again.reason, again.detail, again.attempts) == (
            "empty",
            "the answer holds no text",
            1,
        )


async def test_a_cancelled_summary_is_cancelled_and_not_failed() -> None:
    async with (
        chat_server(hangs) as server,
        ChatCompletionsSummarizer(server.url, "m", KEY) as writer,
    ):
        with anyio.move_on_after(0.2) as scope:
            await writer.summarize(TALK)
    assert scope.cancelled_caught
