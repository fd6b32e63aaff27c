"""Checks of `SessionCore`: what holds for every session, whatever else it can do."""

from __future__ import annotations

from functools import partial
from typing import Final

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import same, together
from raf_session.conformance.session_harness import CoreCheck, CoreFactory
from raf_session.conformance.session_values import (
    HOSTILE_TEXTS,
    PLAIN,
    SHAPES,
    same_messages,
)
from raf_session.messages import ChatMessage
from raf_session.session import SessionCore

__all__ = ("CHECKS",)


async def check_a_new_session_is_empty(make: CoreFactory) -> None:
    """A session that was just made has no messages, and has the core's members."""
    session = await make("s", clock=TickingClock())
    assert isinstance(session, SessionCore)
    same(await session.get_messages(), [], "a new session")


async def check_the_id_is_stable(make: CoreFactory) -> None:
    """The session keeps the id that it was given, whatever is done to it."""
    session = await make("An id/é:1", clock=TickingClock())
    same(session.session_id, "An id/é:1", "the id")
    await session.add_message(PLAIN[0])
    await session.clear()
    same(session.session_id, "An id/é:1", "the id after a message and a clear")


async def check_ids_made_up_are_unique(make: CoreFactory) -> None:
    """Sessions made without an id have different ones, which stay."""
    clock = TickingClock()
    sessions = [await make(clock=clock) for _ in range(3)]
    ids = [session.session_id for session in sessions]
    assert all(ids), f"an id is not empty: {ids}"
    same(len(set(ids)), 3, "different ids")
    same([session.session_id for session in sessions], ids, "the ids, read again")


async def check_messages_come_in_order(make: CoreFactory) -> None:
    """Messages come back oldest first, also where the clock stands still."""
    session = await make("s", clock=TickingClock())
    added: list[ChatMessage] = []
    for n in range(30):
        message = ChatMessage.user(f"{n * 7919 % 30}")
        await session.add_message(message)
        added.append(message)
        same((await session.get_messages())[-1], message, "the last message")
    same_messages(await session.get_messages(), added, "all messages")


async def check_equal_messages_are_kept_apart(make: CoreFactory) -> None:
    """Two messages that say the same are two messages."""
    session = await make("s", clock=TickingClock())
    again = ChatMessage.user("ok")
    for message in (again, again, ChatMessage.user("ok")):
        await session.add_message(message)
    same_messages(await session.get_messages(), [again] * 3, "three times ok")


async def check_each_read_is_a_list_of_its_own(make: CoreFactory) -> None:
    """The list that `get_messages` returns is new, and is the caller's to change."""
    session = await make("s", clock=TickingClock())
    for message in PLAIN:
        await session.add_message(message)
    first = await session.get_messages()
    same(type(first), list, "what get_messages returns")
    first.reverse()
    first.clear()
    same_messages(await session.get_messages(), PLAIN, "a read after that")


async def check_a_list_once_read_stays(make: CoreFactory) -> None:
    """A list that was read does not change with the session."""
    session = await make("s", clock=TickingClock())
    await session.add_message(PLAIN[0])
    first = await session.get_messages()
    await session.add_message(PLAIN[1])
    second = await session.get_messages()
    await session.clear()
    await session.add_message(PLAIN[2])
    same_messages(first, PLAIN[:1], "the first list")
    same_messages(second, PLAIN[:2], "the second list")


async def check_clear_empties_the_history(make: CoreFactory) -> None:
    """After `clear` there are no messages, and new ones are kept as before."""
    session = await make("s", clock=TickingClock())
    for _ in range(2):
        await session.clear()
        same(await session.get_messages(), [], "a cleared session")
        for message in PLAIN:
            await session.add_message(message)
        same_messages(await session.get_messages(), PLAIN, "messages after a clear")


async def check_every_shape_comes_back(make: CoreFactory) -> None:
    """Content, calls, arguments and unknown fields of every shape come back exactly.

    Key order, 1 beside 1.0 and true, null beside absent and empty included.
    """
    session = await make("s", clock=TickingClock())
    for message in SHAPES:
        await session.add_message(message)
    same_messages(await session.get_messages(), SHAPES, "every shape")


async def check_hostile_text_comes_back(make: CoreFactory) -> None:
    """NUL, lone surrogates, emoji, CJK and control characters come back exactly."""
    session = await make("s", clock=TickingClock())
    said = [ChatMessage.user(text) for text in HOSTILE_TEXTS]
    said.extend(
        ChatMessage.from_openai({"role": "user", "content": "", text: {text: text}})
        for text in HOSTILE_TEXTS
        if text not in {"role", "content"}
    )
    for message in said:
        await session.add_message(message)
    same_messages(await session.get_messages(), said, "hostile text")


async def check_a_large_message_comes_back(make: CoreFactory) -> None:
    """A message of a megabyte comes back exactly, beside small ones."""
    session = await make("s", clock=TickingClock())
    said = [PLAIN[0], ChatMessage.user("x" * 999_999 + "é"), PLAIN[1]]
    for message in said:
        await session.add_message(message)
    same_messages(await session.get_messages(), said, "a large message")


async def check_sessions_share_nothing(make: CoreFactory) -> None:
    """What is done to one session is not seen in another."""
    clock = TickingClock()
    one, other = await make("one", clock=clock), await make("other", clock=clock)
    await one.add_message(PLAIN[0])
    await other.add_message(PLAIN[1])
    await one.clear()
    same(await one.get_messages(), [], "the one")
    same_messages(await other.get_messages(), PLAIN[1:2], "the other")


async def check_parallel_writers_lose_nothing(make: CoreFactory) -> None:
    """Messages that tasks add in parallel are all kept once, each task's in order."""
    session = await make("s", clock=TickingClock())

    async def write(writer: int) -> None:
        for n in range(5):
            await session.add_message(ChatMessage.user(f"{writer}:{n}"))

    answers = await together(*(partial(write, n) for n in range(10)))
    same(answers, [None] * 10, "what the writers got")
    texts = [message.text for message in await session.get_messages()]
    same(len(texts), 50, "the number of messages")
    for writer in range(10):
        own = [text for text in texts if text.startswith(f"{writer}:")]
        same(own, [f"{writer}:{n}" for n in range(5)], f"those of writer {writer}")


CHECKS: Final[tuple[CoreCheck, ...]] = (
    check_a_new_session_is_empty,
    check_the_id_is_stable,
    check_ids_made_up_are_unique,
    check_messages_come_in_order,
    check_equal_messages_are_kept_apart,
    check_each_read_is_a_list_of_its_own,
    check_a_list_once_read_stays,
    check_clear_empties_the_history,
    check_every_shape_comes_back,
    check_hostile_text_comes_back,
    check_a_large_message_comes_back,
    check_sessions_share_nothing,
    check_parallel_writers_lose_nothing,
)
