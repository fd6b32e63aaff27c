"""Connections that send a script at once send the bytes that the driver would send."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.asyncio.connection import Connection, ConnectionPool, parse_url
from redis.exceptions import ConnectionError as RedisConnectionError
from redis_clients import client
from servers import redis as servers

from raf_session.journals._redis_connections import direct
from raf_session.journals._redis_scripts import Script

pytestmark = pytest.mark.anyio

ECHO = Script("return {KEYS[1], ARGV[1]}")
LARGE = "x" * 3_000_000
"""More than a transport takes at once."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Transport:
    """Takes bytes as a transport does, with so many of earlier ones left."""

    def __init__(self, waiting: int = 0) -> None:
        self.written = b""
        self._waiting = waiting

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self._waiting


class Writer:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.drained = False

    def write(self, data: bytes) -> None:
        self.transport.written += data

    def writelines(self, data: list[bytes]) -> None:
        self.write(b"".join(data))

    async def drain(self) -> None:
        self.drained = True


async def sent(kind: Any, args: tuple[Any, ...], waiting: int = 0) -> Writer:
    """Send a command by a connection of that kind that only seems to be connected."""
    connection: Any = kind()
    writer = Writer(Transport(waiting))
    connection._reader, connection._writer = object(), writer
    await connection.send_command(*args)
    connection._reader = connection._writer = None
    return writer


WORDS = st.lists(st.binary(max_size=99) | st.text(max_size=99) | st.integers())


@given(words=WORDS, name=st.sampled_from(("EVALSHA", "EVAL", "CONFIG GET")))
def test_the_bytes_are_those_of_the_driver(words: list[Any], name: str) -> None:
    args = (name, "0" * 40, 1, *words)
    try:
        expected = asyncio.run(sent(Connection, args))
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            asyncio.run(sent(direct(Connection), args))
        return
    found = asyncio.run(sent(direct(Connection), args))
    assert found.transport.written == expected.transport.written
    assert found.drained == (name != "EVALSHA")


@pytest.mark.parametrize("word", [1.5, memoryview(b"x"), bytearray(b"x")])
async def test_other_arguments_are_the_drivers(word: object) -> None:
    args = ("EVALSHA", "0" * 40, 1, word)
    expected = await sent(Connection, args)
    found = await sent(direct(Connection), args)
    assert found.transport.written == expected.transport.written


@pytest.mark.parametrize(("word", "waiting"), [("x" * 40_000, 0), ("x", 1)])
async def test_what_may_have_to_wait_is_waited_for(word: str, waiting: int) -> None:
    args = ("EVALSHA", "0" * 40, 1, word)
    expected = await sent(Connection, args)
    found = await sent(direct(Connection), args, waiting)
    assert found.transport.written == expected.transport.written
    assert found.drained


async def asked(connection: Any, *command: Any) -> Any:
    await connection.send_command(*command)
    return await connection.read_response()


@pytest.mark.parametrize("kind", ["", "?health_check_interval=1", "?socket_timeout=9"])
@pytest.mark.parametrize("word", ["x", LARGE])
async def test_replies_come_and_lost_connections_are_noticed(
    kind: str, word: str
) -> None:
    options: dict[str, Any] = dict(parse_url(f"{servers.url()}{kind}"))
    options["connection_class"] = direct(Connection)
    pool: Any = ConnectionPool(**options)
    held: Any = Redis.from_pool(pool)
    async with held as theirs, client() as real:
        await real.script_load(ECHO.text)
        call = ("EVALSHA", ECHO.sha, 1, "k", word)
        for _ in range(3):
            assert await theirs.execute_command(*call) == [b"k", word.encode()]
        connection = await pool.get_connection()
        await real.client_kill_filter(_id=await asked(connection, "CLIENT", "ID"))
        with pytest.raises(RedisConnectionError):
            await asked(connection, *call)
        await pool.release(connection)
        assert await theirs.execute_command(*call) == [b"k", word.encode()]
