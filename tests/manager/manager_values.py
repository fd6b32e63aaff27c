"""Messages, summarizers and counters that the tests of the managers share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from raf_session.manager import AgentsConfig, ManagedSession, SessionRequest
from raf_session.messages import ChatMessage, MessageRole

ANN = SessionRequest("main", "discord", "per_peer", "ann")
"""The session that most tests use."""
KEY = "agent:main:channel:discord:scope:per_peer:ann"


def configured(**sections: dict[str, Any]) -> AgentsConfig:
    """Return the configuration of these sections."""
    return AgentsConfig.from_mapping(sections)


def user(text: str, name: str | None = None, **metadata: Any) -> ChatMessage:
    """Return a message of the user's."""
    return ChatMessage(role=MessageRole.USER, content=text, id=name, metadata=metadata)


def agent(text: str, name: str | None = None, **metadata: Any) -> ChatMessage:
    """Return a message of the assistant's."""
    return ChatMessage(
        role=MessageRole.ASSISTANT, content=text, id=name, metadata=metadata
    )


def call(*names: str, text: str | None = None, **metadata: Any) -> ChatMessage:
    """Return a message by which the assistant calls tools."""
    return ChatMessage.from_openai(
        {
            "role": "assistant",
            "content": text,
            "tool_calls": [
                {
                    "id": name,
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"at": 1}'},
                }
                for name in names
            ],
        },
        metadata=metadata,
    )


def result(name: str, text: str = "found") -> ChatMessage:
    """Return the result of a call."""
    return ChatMessage.tool(text, name)


def turns(count: int, size: int = 40, start: int = 0) -> list[ChatMessage]:
    """Return questions and answers of so many characters each."""
    return [
        said(f"{word} {n} ".ljust(size, "."))
        for n in range(start, start + count)
        for said, word in ((user, "question"), (agent, "answer"))
    ]


def texts(messages: Sequence[ChatMessage]) -> list[str]:
    """Return what is said."""
    return [message.text for message in messages]


def stored(session: ManagedSession) -> list[str]:
    """Return what a live session shows of what is stored."""
    return texts(session.messages_now())


class CharacterCounter:
    """A token for each character of the text, and for each of the arguments."""

    def count(self, message: ChatMessage, /) -> int:
        """Return the characters, at least 1."""
        calls = message.tool_calls or ()
        return max(1, len(message.text) + sum(len(str(c.arguments)) for c in calls))


class Scribe:
    """A `Summarizer` that notes its input, and does as it is told.

    Attributes:
        inputs: the messages and the previous summary of each call.
        act: what happens before it answers.
        answer: what it answers; `None`: a short text that differs each time.
    """

    def __init__(
        self,
        act: Callable[[], Awaitable[Any]] | None = None,
        answer: Any = None,
    ) -> None:
        self.inputs: list[tuple[tuple[ChatMessage, ...], str | None]] = []
        self.act = act
        self.answer = answer

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        """Return a text that every input shortens to."""
        self.inputs.append((tuple(messages), previous))
        if self.act is not None:
            await self.act()
        if isinstance(self.answer, BaseException):
            raise self.answer
        if self.answer is None:
            return f"#{len(self.inputs)}"
        text: str = self.answer
        return text

    @property
    def given(self) -> list[list[str]]:
        """The texts of each input."""
        return [texts(messages) for messages, _ in self.inputs]
