"""Checks of what `ISession` adds to the core for reading and for batches."""

from __future__ import annotations

from typing import Any, Final, cast

import anyio
import anyio.lowlevel
from typing_extensions import get_protocol_members

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import raises, same
from raf_session.conformance.session_harness import (
    CoreCheck,
    SessionCapability,
    SessionCheck,
    SessionFactory,
)
from raf_session.conformance.session_values import PLAIN, SHAPES, same_messages, shown
from raf_session.errors import EntryConflictError
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionMetadata, SessionSnapshot
from raf_session.session import ISession

__all__ = ("CHECKS", "NEEDS")

_BATCH: Final = (
    PLAIN[0],
    cast("ChatMessage", {"role": "user", "content": "no message"}),
    PLAIN[1],
)


async def check_has_every_member(make: SessionFactory) -> None:
    """The session has every member of the trait."""
    session = await make("s", clock=TickingClock())
    missing = [n for n in get_protocol_members(ISession) if not hasattr(session, n)]
    same(missing, [], "missing members")
    assert isinstance(session, ISession)


async def check_a_batch_is_kept_in_order(make: SessionFactory) -> None:
    """A batch is appended in its order, after what is there, from a list or a tuple."""
    session = await make("s", clock=TickingClock())
    await session.add_message(PLAIN[2])
    given = list(PLAIN)
    await session.add_messages_batch(given)
    given.clear()
    await session.add_messages_batch(tuple(SHAPES))
    expected = [PLAIN[2], *PLAIN, *SHAPES]
    same_messages(await session.get_messages(), expected, "after two batches")


async def check_an_empty_batch_changes_nothing(make: SessionFactory) -> None:
    """A batch of no messages is no activity and changes nothing."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    await session.add_message(PLAIN[0])
    before = (session.last_active_at, session.created_at)
    clock.tick(60)
    await session.add_messages_batch([])
    await session.add_messages_batch(())
    same((session.last_active_at, session.created_at), before, "the times")
    same_messages(await session.get_messages(), PLAIN[:1], "the messages")


async def check_a_batch_is_all_or_none(make: SessionFactory) -> None:
    """A batch that cannot be stored whole leaves the session as it was."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    await session.add_message(PLAIN[2])
    active = session.last_active_at
    clock.tick(60)
    with raises(Exception, "a batch that holds a dict"):
        await session.add_messages_batch(_BATCH)
    same_messages(await session.get_messages(), PLAIN[2:], "after the failure")
    same(session.last_active_at, active, "the time of activity")
    await session.add_messages_batch(PLAIN)
    same_messages(await session.get_messages(), [PLAIN[2], *PLAIN], "the next batch")


async def check_the_count_is_the_number_of_messages(make: SessionFactory) -> None:
    """`get_message_count` equals the length of what `get_messages` gives, always."""
    session = await make("s", clock=TickingClock())

    async def compare(expected: int) -> None:
        same(session.get_message_count(), expected, "the count")
        same(len(await session.get_messages()), expected, "the messages")
        same(session.metadata().message_count, expected, "the count in the metadata")

    await compare(0)
    await session.add_message(PLAIN[0])
    await compare(1)
    await session.add_messages_batch(PLAIN)
    await compare(4)
    session.touch_request_hash(PLAIN)
    session.set_provider_state("p", 1)
    await session.touch_last_active()
    await compare(4)
    await session.clear()
    await compare(0)
    await session.add_messages_batch(PLAIN)
    await compare(3)


async def check_metadata_agrees_with_the_members(make: SessionFactory) -> None:
    """`metadata` tells the same times, count and request hash as the members do."""
    session = await make("s", clock=TickingClock())
    for _ in range(2):
        metadata = session.metadata()
        same(type(metadata), SessionMetadata, "its type")
        same(metadata.created_at, session.created_at, "created_at")
        same(metadata.message_count, session.get_message_count(), "message_count")
        same(metadata.last_request_hash, session.get_last_request_hash(), "the hash")
        assert metadata.updated_at >= metadata.created_at
        await session.add_messages_batch(PLAIN)
        session.touch_request_hash(PLAIN)


async def check_a_snapshot_is_the_whole_session(make: SessionFactory) -> None:
    """`snapshot` tells id, metadata, messages, provider states and activity."""
    session = await make("s", clock=TickingClock())
    await session.add_messages_batch(SHAPES)
    session.set_provider_state("p", {"n": [1, None]})
    session.set_provider_state("q", None)
    session.touch_request_hash(PLAIN)
    snapshot = session.snapshot()
    same(type(snapshot), SessionSnapshot, "its type")
    same(snapshot.session_id, "s", "the id")
    same(snapshot.metadata, session.metadata(), "the metadata")
    same_messages(snapshot.messages, SHAPES, "the messages")
    same(snapshot.metadata.message_count, len(snapshot.messages), "the count")
    same(snapshot.provider_states.get("p"), {"n": (1, None)}, "a provider's state")
    same(snapshot.provider_states.get("missing"), None, "no provider's state")
    same(snapshot.last_active_at, session.last_active_at, "the last activity")


async def check_a_snapshot_stays_as_it_was(make: SessionFactory) -> None:
    """What the session does later is not seen in a snapshot taken before."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    await session.add_messages_batch(PLAIN)
    session.set_provider_state("p", [1])
    session.touch_request_hash(PLAIN)
    snapshot, text = session.snapshot(), session.serialize()
    told = (snapshot.metadata, snapshot.provider_states, snapshot.last_active_at)
    clock.tick(60)
    await session.clear()
    await session.add_message(PLAIN[0])
    session.set_provider_state("p", [2])
    session.touch_request_hash(PLAIN[:1])
    same_messages(snapshot.messages, PLAIN, "the messages")
    now = (snapshot.metadata, snapshot.provider_states, snapshot.last_active_at)
    same(now, told, "what else it told")
    assert session.serialize() != text, "the text of the session changed"


async def check_reads_are_consistent_while_others_write(make: SessionFactory) -> None:
    """Between parallel writers, count, metadata and snapshot always fit together.

    A snapshot is a first part of the final history, and never shrinks.
    """
    session = await make("s", clock=TickingClock())
    taken: list[SessionSnapshot] = []

    async def write(writer: int) -> None:
        for n in range(5):
            await session.add_messages_batch(
                [ChatMessage.user(f"{writer}:{n}:{part}") for part in range(3)]
            )
            taken.append(session.snapshot())
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        for writer in range(5):
            group.start_soon(write, writer)
    final = [shown(message) for message in await session.get_messages()]
    same(len(final), 75, "the number of messages")
    length = 0
    for snapshot in taken:
        seen = [shown(message) for message in snapshot.messages]
        same(snapshot.metadata.message_count, len(seen), "the count of a snapshot")
        same(seen, final[: len(seen)], "the messages of a snapshot")
        assert len(seen) >= length, "a snapshot has fewer messages than one before"
        length = len(seen)


async def check_a_known_message_is_kept_once(make: SessionFactory) -> None:
    """A message whose id is known, with the same body, is kept once."""
    session = await make("s", clock=TickingClock())
    said = [_named(f"m-{n}", f"{n}") for n in range(3)]
    await session.add_messages_batch(said)
    await session.add_message(said[1])
    await session.add_messages_batch(said)
    await session.add_message(_named("m-2", "2"))
    same_messages(await session.get_messages(), said, "after the repetitions")
    same(session.get_message_count(), 3, "the count")


async def check_an_id_names_one_message(make: SessionFactory) -> None:
    """An id that is known with another body, or in part of a batch, is refused."""
    session = await make("s", clock=TickingClock())
    said = [_named("m-0", "0"), _named("m-1", "1", 1)]
    await session.add_messages_batch(said)
    refused: tuple[tuple[str, list[ChatMessage]], ...] = (
        ("another text", [_named("m-0", "00")]),
        ("1.0 for 1", [_named("m-1", "1", 1.0)]),
        ("true for 1", [_named("m-1", "1", True)]),
        ("one known, one new", [said[0], _named("m-2", "2")]),
        ("one known, one without an id", [said[0], PLAIN[0]]),
        ("an id twice in a batch", [_named("m-3", "3"), _named("m-3", "3")]),
    )
    for what, batch in refused:
        with raises(EntryConflictError, what):
            await session.add_messages_batch(batch)
        same_messages(await session.get_messages(), said, f"after {what}")
    await session.clear()
    await session.add_message(_named("m-0", "anew"))
    same(session.get_message_count(), 1, "an id is free again after clear")


def _named(name: str, text: str, number: Any = None) -> ChatMessage:
    message = ChatMessage.user(text)
    return message.model_copy(update={"id": name, "metadata": {"n": number}})


async def check_members_do_not_mind_a_writer(make: SessionFactory) -> None:
    """While messages are added, no getter is empty and no provider state is lost."""
    session = await make("s", clock=TickingClock())
    await session.add_messages_batch(PLAIN)
    done = anyio.Event()
    noted = 0

    async def write() -> None:
        for n in range(20):
            await session.add_message(ChatMessage.user(str(n)))
        done.set()

    async def note() -> None:
        nonlocal noted
        while not done.is_set() and noted < 100:
            count = session.get_message_count()
            assert count >= len(PLAIN), f"{count} messages beside a writer"
            same(session.metadata().message_count, count, "the count of the metadata")
            same(len(session.snapshot().messages), count, "those of the snapshot")
            session.set_provider_state(f"p{noted}", noted)
            noted += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        group.start_soon(note)
    for n in range(noted):
        same(session.get_provider_state(f"p{n}"), n, "a state set beside a writer")
    same(session.get_message_count(), len(PLAIN) + 20, "the messages")


CHECKS: Final[tuple[SessionCheck, ...]] = (
    check_has_every_member,
    check_a_batch_is_kept_in_order,
    check_an_empty_batch_changes_nothing,
    check_a_batch_is_all_or_none,
    check_the_count_is_the_number_of_messages,
    check_metadata_agrees_with_the_members,
    check_a_snapshot_is_the_whole_session,
    check_a_snapshot_stays_as_it_was,
    check_reads_are_consistent_while_others_write,
    check_members_do_not_mind_a_writer,
    check_a_known_message_is_kept_once,
    check_an_id_names_one_message,
)

_SYNC: Final = frozenset((SessionCapability.SYNC_READS,))
_IDS: Final = frozenset((SessionCapability.MESSAGE_IDS, SessionCapability.SYNC_READS))

NEEDS: Final[dict[SessionCheck | CoreCheck, frozenset[SessionCapability]]] = {
    check_a_batch_is_all_or_none: frozenset((SessionCapability.ATOMIC_BATCH,)),
    check_the_count_is_the_number_of_messages: _SYNC,
    check_metadata_agrees_with_the_members: _SYNC,
    check_a_snapshot_is_the_whole_session: _SYNC,
    check_a_snapshot_stays_as_it_was: _SYNC,
    check_reads_are_consistent_while_others_write: _SYNC,
    check_members_do_not_mind_a_writer: _SYNC,
    check_a_known_message_is_kept_once: _IDS,
    check_an_id_names_one_message: _IDS,
}
"""What a session must claim for a check to apply to it, beside the trait."""
