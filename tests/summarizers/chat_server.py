"""A local server that speaks the chat completions protocol, well or badly."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

KEY = "sk-secret-31337"
Reply = Callable[[ByteStream], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came."""

    target: str
    headers: Mapping[str, str]
    body: Any

    @property
    def said(self) -> str:
        """The user message."""
        text: str = self.body["messages"][1]["content"]
        return text


@dataclass(slots=True)
class ChatServer:
    """Answers its requests with these replies, the last one again and again."""

    replies: tuple[Reply, ...]
    url: str
    received: list[Received] = field(default_factory=list)

    async def serve(self, stream: ByteStream) -> None:
        async with stream:
            reader = BufferedByteReceiveStream(stream)
            head = await reader.receive_until(b"\r\n\r\n", 65536)
            first, *rows = head.decode().split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (row.partition(":") for row in rows)
            }
            body = await reader.receive_exactly(int(headers["content-length"]))
            self.received.append(Received(first, headers, json.loads(body)))
            reply = self.replies[min(len(self.received), len(self.replies)) - 1]
            await reply(stream)


@asynccontextmanager
async def chat_server(*replies: Reply) -> AsyncGenerator[ChatServer]:
    """A server on a port of its own, while the block lasts."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610  (not Django)
        server = ChatServer(replies, f"http://127.0.0.1:{port}/v1")
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


def raw(body: bytes, status: int = 200, **headers: str) -> Reply:
    """Return a reply with this body."""
    lines = [
        f"HTTP/1.1 {status} Status",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]

    async def reply(stream: ByteStream) -> None:
        await stream.send("\r\n".join([*lines, "", ""]).encode() + body)

    return reply


def answers(body: Any, status: int = 200, **headers: str) -> Reply:
    """Return a reply with this JSON value."""
    return raw(json.dumps(body).encode(), status, **headers)


def says(
    text: str | None, *, finish: str | None = "stop", refusal: str | None = None
) -> Reply:
    """Return a completion with this text."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return answers({"id": "x", "object": "chat.completion", "choices": [choice]})


def fails(status: int, message: str = "no", **headers: str) -> Reply:
    """Return an error as OpenAI words it; a repeat may follow at once."""
    error = {"error": {"message": message, "type": "t", "code": None}}
    return answers(error, status, **{"Retry_After_Ms": "1", **headers})


async def hangs(_: ByteStream) -> None:
    await anyio.sleep_forever()


async def drops(_: ByteStream) -> None:
    """Close the connection without a word."""


async def tears(stream: ByteStream) -> None:
    """Send the beginning of an answer, and close."""
    await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")


async def trickles(stream: ByteStream) -> None:
    """Send blanks for ever, as servers do to keep a connection alive."""
    await stream.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await stream.send(b"1\r\n\n\r\n")
        await anyio.sleep(0.001)
