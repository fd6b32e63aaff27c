"""Checks of `serialize` and `deserialize`: RAF's JSON, and what ours adds."""

from __future__ import annotations

from typing import Any, Final

from raf_session.clock import UNIX_EPOCH
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import raises, same
from raf_session.conformance.session_harness import (
    CoreCheck,
    SessionCapability,
    SessionCheck,
    SessionFactory,
)
from raf_session.conformance.session_values import (
    HOSTILE_TEXTS,
    PLAIN,
    RAF_TEXT,
    SHAPES,
    STATES,
    same_messages,
)
from raf_session.errors import InvalidValueError, SchemaVersionError
from raf_session.frozen import thaw
from raf_session.json_text import dump_json, load_json
from raf_session.messages import ChatMessage
from raf_session.raf_json import format_time, snapshot_from_raf
from raf_session.session import ISession

__all__ = ("CHECKS", "NEEDS")

_RAF_ROLES: Final = frozenset(("system", "user", "assistant", "tool"))


async def _full(make: SessionFactory, clock: TickingClock) -> ISession:
    session = await make("s", clock=clock)
    await session.add_messages_batch(SHAPES)
    await session.add_messages_batch([ChatMessage.user(text) for text in HOSTILE_TEXTS])
    for n, state in enumerate(STATES):
        session.set_provider_state(f"p.{n}", state)
    session.touch_request_hash(SHAPES)
    return session


async def check_the_text_is_rafs(make: SessionFactory) -> None:
    """`serialize` gives UTF-8 JSON with RAF's keys, and RAF's shape of each message."""
    session = await _full(make, TickingClock())
    text = session.serialize()
    value: dict[str, Any] = load_json(text.encode())
    same(value["session_id"], "s", "session_id")
    metadata = value["metadata"]
    same(metadata["message_count"], session.get_message_count(), "message_count")
    same(metadata["last_request_hash"], session.get_last_request_hash(), "the hash")
    told = session.metadata()
    same(metadata["created_at"], format_time(told.created_at), "created_at")
    same(metadata["updated_at"], format_time(told.updated_at), "updated_at")
    same(value["last_active_at"], format_time(session.last_active_at), "last_active_at")
    states = value["provider_states"]["states"]
    for n, state in enumerate(STATES):
        same(dump_json(states[f"p.{n}"]), dump_json(state), f"provider state {n}")
    for index, message in enumerate(value["messages"]):
        what = f"message {index}"
        assert message["role"] in _RAF_ROLES, f"{what}: RAF has no {message['role']!r}"
        assert isinstance(message["content"], str), f"{what}: content is no string"
        for call in message.get("tool_calls", ()):
            assert isinstance(call["id"], str), f"{what}: a call's id is no string"
            assert isinstance(call["name"], str), f"{what}: a call's name is no string"
            assert "arguments" in call, f"{what}: a call has no arguments"


async def check_the_text_is_the_snapshot(make: SessionFactory) -> None:
    """`serialize` tells what `snapshot` tells, to the last field."""
    session = await _full(make, TickingClock())
    read = snapshot_from_raf(load_json(session.serialize()))
    snapshot = session.snapshot()
    same_messages(read.messages, snapshot.messages, "the messages")
    same(read, snapshot, "the snapshot")


async def check_a_session_is_read_back(make: SessionFactory) -> None:
    """`deserialize` of `serialize` is an equal session of the same class."""
    clock = TickingClock()
    session = await _full(make, clock)
    clock.tick(60)
    text = session.serialize()
    again = type(session).deserialize(text)
    same(type(again), type(session), "the class")
    same(again.session_id, "s", "the id")
    messages = await session.get_messages()
    same_messages(await again.get_messages(), messages, "the messages")
    for n, state in enumerate(STATES):
        found = again.get_provider_state(f"p.{n}")
        same(dump_json(thaw(found)), dump_json(state), f"provider state {n}")
    same(again.get_last_request_hash(), session.get_last_request_hash(), "the hash")
    same(again.last_active_at, session.last_active_at, "last_active_at")
    same(again.created_at, session.created_at, "created_at")
    same(again.metadata(), session.metadata(), "the metadata")
    same(again.serialize(), text, "the text, written again")


async def check_a_session_read_back_is_independent(make: SessionFactory) -> None:
    """What is done to a session that was read back is not seen in the first one."""
    session = await _full(make, TickingClock())
    messages = await session.get_messages()
    again = type(session).deserialize(session.serialize())
    await again.add_message(PLAIN[0])
    again.set_provider_state("p.0", "changed")
    again.touch_request_hash([])
    await session.add_message(PLAIN[1])
    same_messages(await session.get_messages(), [*messages, PLAIN[1]], "the first")
    same_messages(await again.get_messages(), [*messages, PLAIN[0]], "the copy")
    same(session.get_provider_state("p.0"), STATES[0], "the first one's state")


async def check_rafs_own_text_is_read(make: SessionFactory) -> None:
    """What RAF wrote is read: 9-digit fractions, a 64-bit hash, flat calls."""
    session = await make("s", clock=TickingClock())
    again = type(session).deserialize(RAF_TEXT)
    messages = await again.get_messages()
    same([message.role.value for message in messages],
         ["system", "assistant", "tool"], "the roles")  # fmt: skip
    calls = messages[1].tool_calls
    assert calls, "the calls are gone"
    same(calls[0].name, "f", "the call's name")
    same(dump_json(thaw(calls[0].arguments)), '{"z":1,"a":[2]}', "its arguments")
    same(messages[2].tool_call_id, "c", "the call that is answered")
    same(again.get_provider_state("p"), {"n": 1}, "the provider's state")
    active = format_time(again.last_active_at)
    same(active, "2026-01-02T03:04:07.500000Z", "last_active_at")
    if again.created_at != UNIX_EPOCH:
        created = format_time(again.created_at)
        same(created, "2026-01-02T03:04:05.123456Z", "created_at")
        same(again.get_last_request_hash(), 2**64 - 1, "the hash of the last request")


async def check_old_and_short_texts_are_read(make: SessionFactory) -> None:
    """Text without provider states or last activity is read."""
    session = await make("s", clock=TickingClock())
    value: dict[str, Any] = load_json(RAF_TEXT)
    for missing in ("provider_states", "last_active_at"):
        short = {key: item for key, item in value.items() if key != missing}
        again = type(session).deserialize(dump_json(short))
        same(len(await again.get_messages()), 3, f"the messages without {missing}")
    again = type(session).deserialize(dump_json({**value, "last_active_at": None}))
    same(again.get_message_count(), 3, "the messages with null for last_active_at")


async def check_what_is_no_session_is_refused(make: SessionFactory) -> None:
    """Text that is no session is refused with the path, a newer version by number."""
    cls = type(await make("s", clock=TickingClock()))
    value: dict[str, Any] = load_json(RAF_TEXT)
    for text in ("", "{", "[]", "null", "NaN", '"s"', "{}", RAF_TEXT + "x"):
        with raises(InvalidValueError, f"the text {text[:20]!r}"):
            cls.deserialize(text)
    faults: tuple[tuple[str, Any], ...] = (
        ("session_id", 1),
        ("metadata", []),
        ("messages", {}),
        ("messages", [{"role": "king", "content": ""}]),
        ("messages", [7]),
        ("provider_states", []),
        ("last_active_at", "yesterday"),
    )
    for name, fault in faults:
        with raises(InvalidValueError, f"{name}={fault!r}") as caught:
            cls.deserialize(dump_json({**value, name: fault}))
        path = caught[0].path
        assert path.startswith(name), f"the path is {path!r}, not {name!r}"
    with raises(SchemaVersionError, "a newer version"):
        cls.deserialize(dump_json({**value, "schema": 1000}))


async def check_unknown_fields_are_kept(make: SessionFactory) -> None:
    """Fields that a newer writer added are read, kept and written again."""
    session = await make("s", clock=TickingClock())
    value: dict[str, Any] = load_json(RAF_TEXT)
    value["newer"] = {"z": 1, "a": [2]}
    value["metadata"]["newer"] = 1
    value["messages"][0]["newer"] = 1
    again = load_json(type(session).deserialize(dump_json(value)).serialize())
    same(again.get("newer"), {"z": 1, "a": [2]}, "a field of the session")
    same(again["metadata"].get("newer"), 1, "a field of the metadata")
    message = snapshot_from_raf(again).messages[0]
    same(message.extra.get("newer"), 1, "a field of a message")


async def check_the_count_told_is_not_believed(make: SessionFactory) -> None:
    """The count is that of the messages, whatever number stands in the text."""
    session = await make("s", clock=TickingClock())
    await session.add_messages_batch(PLAIN)
    fields: dict[str, Any] = load_json(session.serialize())
    for told in (0, 1, 99):
        fields["metadata"]["message_count"] = told
        found = type(session).deserialize(dump_json(fields))
        same(found.get_message_count(), len(PLAIN), f"the count where {told} is told")
        same(found.metadata().message_count, len(PLAIN), "the count of the metadata")
        same_messages(await found.get_messages(), PLAIN, "the messages")


async def check_activity_never_told_is_the_beginning(make: SessionFactory) -> None:
    """Where a text tells no activity, the session was last active when it began."""
    session = await make("s", clock=TickingClock())
    value: dict[str, Any] = load_json(RAF_TEXT)
    for told in ({"last_active_at": None}, {}):
        short = {k: v for k, v in value.items() if k != "last_active_at"}
        again = type(session).deserialize(dump_json({**short, **told}))
        same(again.last_active_at, again.created_at, "last_active_at")


CHECKS: Final[tuple[SessionCheck, ...]] = (
    check_the_text_is_rafs,
    check_the_text_is_the_snapshot,
    check_a_session_is_read_back,
    check_a_session_read_back_is_independent,
    check_rafs_own_text_is_read,
    check_old_and_short_texts_are_read,
    check_the_count_told_is_not_believed,
    check_activity_never_told_is_the_beginning,
    check_what_is_no_session_is_refused,
    check_unknown_fields_are_kept,
)

_SYNC: Final = frozenset((SessionCapability.SYNC_READS,))
_READS: Final = _SYNC | {SessionCapability.DESERIALIZES}

NEEDS: Final[dict[SessionCheck | CoreCheck, frozenset[SessionCapability]]] = {
    **dict.fromkeys(CHECKS, _READS),
    check_the_text_is_rafs: _SYNC,
    check_the_text_is_the_snapshot: _SYNC,
    check_activity_never_told_is_the_beginning: _READS
    | {SessionCapability.TELLS_TIMES},
    check_unknown_fields_are_kept: _READS | {SessionCapability.TELLS_TIMES},
}
"""What a session must claim for a check to apply to it, beside the trait."""
