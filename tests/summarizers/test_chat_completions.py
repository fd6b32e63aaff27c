"""`ChatCompletionsSummarizer`: what it sends, and what it makes of the answers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import pytest
from openai import AsyncOpenAI

from raf_session.errors import SummaryFailedError
from raf_session.messages import ChatMessage
from raf_session.summarizers import (
    SUMMARY_PROMPT,
    ChatCompletionsSummarizer,
    Summarizer,
    render_messages,
)
from summarizers.chat_server import KEY, ChatServer, chat_server, fails, says

pytestmark = pytest.mark.anyio

TALK = (
    ChatMessage.user("We meet in Ghent."),
    ChatMessage.assistant("Noted, Ghent it is."),
)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    loop: str = request.param
    return loop


def summarizer(server: ChatServer, **options: Any) -> ChatCompletionsSummarizer:
    return ChatCompletionsSummarizer(server.url, "small-1", KEY, **options)


async def test_the_request_is_one_of_its_own() -> None:
    async with chat_server(says("  They meet in Ghent.\n")) as server:
        async with summarizer(server) as writer:
            trait: Summarizer = writer
            assert await trait.summarize(TALK) == "They meet in Ghent."
        (request,) = server.received
    assert request.target == "POST /v1/chat/completions HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "small-1",
        "messages": [
            {"role": "system", "content": SUMMARY_PROMPT},
            {
                "role": "user",
                "content": f"Conversation since then:\n{render_messages(TALK)}",
            },
        ],
    }


async def test_the_prompt_and_the_tokens_can_be_set_and_the_last_summary_is_sent() -> (
    None
):
    async with chat_server(says("new")) as server:
        async with summarizer(server, prompt="Sum up.", max_tokens=300) as writer:
            assert await writer.summarize(TALK, " They like tea. \n") == "new"
        (request,) = server.received
    assert request.body["max_tokens"] == 300
    assert request.body["messages"][0] == {"role": "system", "content": "Sum up."}
    assert request.said == (
        "Notes so far:\nThey like tea.\n\n"
        f"Conversation since then:\n{render_messages(TALK)}"
    )


def test_the_prompt_asks_for_what_a_summary_is_for() -> None:
    for word in ("decisions", "preferences", "open tasks", "facts"):
        assert word in SUMMARY_PROMPT


async def test_every_part_of_a_long_history_reaches_some_request() -> None:
    marks = [f"<marker {number}>" for number in range(30)]
    text = "".join(mark + "old words " * 1000 for mark in marks)
    history = [
        ChatMessage.user(text),
        *(ChatMessage.user(f"<short {number}>") for number in range(200)),
    ]
    replies = [says(f"result {number}") for number in range(1, 100)]
    async with chat_server(*replies) as server:
        async with summarizer(server, chunk_chars=20_000) as writer:
            last = await writer.summarize(history, "result 0")
        said = [request.said for request in server.received]
    assert last == f"result {len(said)}"
    for mark in [*marks, *(f"<short {number}>" for number in range(200))]:
        assert sum(mark in text for text in said) == 1, mark
    for number, text in enumerate(said):
        assert text.startswith(f"Notes so far:\nresult {number}\n\n")
        assert len(text) <= 20_000 + 100


async def test_a_failure_after_the_first_part_is_the_failure_of_all() -> None:
    history = [ChatMessage.user("words " * 300)] * 3
    async with chat_server(says("one"), says("two"), says(" ")) as server:
        async with summarizer(server, chunk_chars=2000) as writer:
            with pytest.raises(SummaryFailedError) as failed:
                await writer.summarize(history)
        assert len(server.received) == 3
    assert failed.value.reason == "empty"


async def test_half_characters_are_sent_as_replacements() -> None:
    talk = [ChatMessage.user("a\ud83d b\ud83d\ude00")]
    async with chat_server(says("ok")) as server:
        async with summarizer(server, prompt="p\udc00") as writer:
            await writer.summarize(talk, "s\ud83d")
        (request,) = server.received
    assert request.body["messages"][0]["content"] == "p\ufffd"
    assert request.said == (
        "Notes so far:\ns\ufffd\n\nConversation since then:\nuser: a\ufffd b😀"
    )


async def test_without_new_messages_nothing_is_asked() -> None:
    async with chat_server(says("ok")) as server, summarizer(server) as writer:
        assert await writer.summarize([], "They like tea.") == "They like tea."
        with pytest.raises(ValueError, match="nothing to summarise"):
            await writer.summarize([], " ")
        assert server.received == []


async def test_thoughts_before_the_answer_are_no_part_of_it() -> None:
    async with (
        chat_server(says("<think>\nhm </think>\n\nThey use <think> tags.")) as server,
        summarizer(server) as writer,
    ):
        assert await writer.summarize(TALK) == "They use <think> tags."


async def test_a_busy_server_is_asked_again() -> None:
    async with (
        chat_server(fails(429), fails(503), says("ok")) as server,
        summarizer(server) as writer,
    ):
        assert await writer.summarize(TALK) == "ok"
        assert len(server.received) == 3
        assert len({str(request.body) for request in server.received}) == 1


async def test_two_sessions_can_be_summarised_at_once() -> None:
    texts: list[str] = []

    async def write(word: str) -> None:
        texts.append(await writer.summarize([ChatMessage.user(word)]))

    async with chat_server(says("ok")) as server, summarizer(server) as writer:
        async with anyio.create_task_group() as tasks:
            for word in ("one", "two", "three"):
                tasks.start_soon(write, word)
        said = sorted(request.said.split()[-1] for request in server.received)
    assert texts == ["ok"] * 3
    assert said == ["one", "three", "two"]


# Clients -----------------------------------------------------------------------


async def test_its_own_client_is_closed_with_it() -> None:
    async with chat_server(says("ok")) as server:
        async with summarizer(server) as writer:
            await writer.summarize(TALK)
        await writer.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await writer.summarize(TALK)


async def test_a_client_that_was_given_stays_open_and_keeps_its_settings() -> None:
    async with (
        chat_server(says("ok")) as server,
        AsyncOpenAI(base_url=server.url, api_key="sk-other") as client,
    ):
        async with ChatCompletionsSummarizer(None, "m", client=client) as writer:
            assert await writer.summarize(TALK) == "ok"
        assert not client.is_closed()
        async with ChatCompletionsSummarizer(
            f"{server.url}/proxy", "m", KEY, client=client
        ) as writer:
            assert await writer.summarize(TALK) == "ok"
        assert not client.is_closed()
        first, second = server.received
    assert first.headers["authorization"] == "Bearer sk-other"
    assert second.headers["authorization"] == f"Bearer {KEY}"
    assert second.target.split()[1] == "/v1/proxy/chat/completions"


async def test_address_and_key_come_from_the_environment_where_none_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with chat_server(says("ok")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
        async with ChatCompletionsSummarizer(None, "m") as writer:
            assert await writer.summarize(TALK) == "ok"
        assert server.received[0].headers["authorization"] == "Bearer sk-env"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"chunk_chars": 999}, "chunk_chars is at least 1000"),
        ({"max_value_chars": -1}, "max_value_chars is at least 0"),
        ({"max_tokens": 0}, "max_tokens is at least 1"),
        ({"max_retries": -1}, "max_retries is at least 0"),
        ({"timeout_secs": 0}, "timeout_secs is above 0"),
        ({"timeout_secs": float("nan")}, "timeout_secs is above 0"),
        ({"timeout_secs": float("inf")}, "timeout_secs is above 0"),
        ({"model": ""}, "no name"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], words: str) -> None:
    fields: dict[str, Any] = {"base_url": "http://localhost", "model": "m", **options}
    with pytest.raises(ValueError, match=words):
        ChatCompletionsSummarizer(api_key=KEY, **fields)


def test_a_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="api_key"):
        ChatCompletionsSummarizer("http://localhost", "m")


def test_without_the_package_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ModuleNotFoundError, match=r"raf-session\[openai\]") as missing:
        ChatCompletionsSummarizer("http://localhost", "m", KEY)
    assert missing.value.name == "openai"


def test_the_package_is_imported_only_when_it_is_needed() -> None:
    script = "import sys, raf_session.summarizers; print('openai' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "False"
