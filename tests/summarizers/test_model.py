"""`ModelSummarizer`: any async callable writes the summary."""

from __future__ import annotations

from typing import Any

import pytest

from raf_session.errors import SummaryFailedError
from raf_session.messages import ChatMessage
from raf_session.summarizers import SUMMARY_PROMPT, ModelSummarizer

pytestmark = pytest.mark.anyio


class Model:
    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[list[ChatMessage]] = []

    async def __call__(self, messages: list[ChatMessage]) -> Any:
        self.requests.append(messages)
        return self.answers.pop(0)


@pytest.mark.parametrize(
    "answer",
    [
        " notes ",
        {"content": "notes"},
        {"role": "assistant", "content": [{"type": "text", "text": "notes"}]},
        ChatMessage.assistant("notes\n"),
    ],
)
async def test_any_message_is_a_summary(answer: Any) -> None:
    model = Model(answer)
    said = [ChatMessage.user("hello"), ChatMessage.assistant("hi")]
    assert await ModelSummarizer(model).summarize(said, "before") == "notes"
    ((system, user),) = model.requests
    assert (system.role, system.text) == ("system", SUMMARY_PROMPT)
    assert user.role == "user"
    assert user.text.index("before") < user.text.index("hello") < user.text.index("hi")


async def test_the_prompt_is_replaced() -> None:
    model = Model("notes")
    await ModelSummarizer(model, prompt="Be short.").summarize([ChatMessage.user("x")])
    assert model.requests[0][0].text == "Be short."


async def test_every_message_reaches_a_request() -> None:
    said = [ChatMessage.user(f"marker-{n} " + "word " * 30) for n in range(40)]
    model = Model(*[f"notes {n}" for n in range(99)])
    summary = await ModelSummarizer(model, chunk_chars=1000).summarize(said)
    assert summary == f"notes {len(model.requests) - 1}"
    assert len(model.requests) > 3
    asked = [request[1].text for request in model.requests]
    assert all(any(f"marker-{n} " in text for text in asked) for n in range(40))
    assert all(f"notes {n}" in text for n, text in enumerate(asked[1:]))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("  ", "empty"),
        (ChatMessage.assistant(""), "empty"),
        ({"content": None}, "empty"),
        ({"content": None, "refusal": "I will not"}, "refused"),
        (None, "malformed"),
        (3, "malformed"),
    ],
)
async def test_what_is_no_text_is_a_failure(answer: Any, reason: str) -> None:
    with pytest.raises(SummaryFailedError) as caught:
        await ModelSummarizer(Model(answer)).summarize([ChatMessage.user("x")])
    assert caught.value.reason == reason


async def test_nothing_is_summarised_without_a_question() -> None:
    assert await ModelSummarizer(Model()).summarize([], "before") == "before"
    with pytest.raises(ValueError, match="nothing"):
        await ModelSummarizer(Model()).summarize([])


@pytest.mark.parametrize("options", [{"model": "gpt"}, {"chunk_chars": 0}])
def test_bad_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        ModelSummarizer(**({"model": Model()} | options))
