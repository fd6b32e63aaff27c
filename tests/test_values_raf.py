"""RAF's JSON: what RAF wrote is read, what we write RAF reads, nothing is lost."""

from __future__ import annotations

import copy
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_values_messages import JSON, TEXT, WIRE, exact

from raf_session.agent_session import AgentSession
from raf_session.changes import RequestRecord
from raf_session.conformance.session_values import RAF_TEXT, SHAPES, shown
from raf_session.errors import InvalidValueError, SchemaVersionError
from raf_session.frozen import thaw
from raf_session.json_text import dump_json, load_json
from raf_session.messages import ChatMessage, MessageSource
from raf_session.metadata import ProviderStateStore, SessionMetadata, SessionSnapshot
from raf_session.raf_json import (
    format_time,
    message_from_raf,
    message_to_raf,
    parse_time,
    snapshot_from_raf,
    snapshot_to_raf,
)

RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)\Z", re.ASCII
)
TIMES = st.datetimes(
    datetime(1970, 1, 1),  # noqa: DTZ001
    datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=30))),
)
NAMES = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1)
OWN = st.fixed_dictionaries(
    {},
    optional={
        "id": NAMES.filter(lambda name: len(name.encode()) <= 512),
        "created_at": TIMES,
        "metadata": st.dictionaries(TEXT, JSON, max_size=3),
        "source": st.sampled_from(MessageSource),
    },
)
MESSAGES = st.builds(lambda wire, own: ChatMessage.from_openai(wire, **own), WIRE, OWN)
HASHES = st.integers(0, 2**64 - 1)
RECORDS = st.builds(
    lambda digests, last, header: RequestRecord(
        b"".join(digest.to_bytes(8, "little") for digest in digests), last, header
    ),
    st.lists(HASHES, max_size=3),
    HASHES.filter(bool),
    st.none() | HASHES,
)
SNAPSHOTS = st.builds(
    lambda messages, states, request, times, active, state: SessionSnapshot(
        session_id="s",
        metadata=SessionMetadata(
            created_at=times[0],
            updated_at=times[1],
            message_count=len(messages),
            last_request_hash=None if request is None else request.hash,
        ),
        messages=messages,
        provider_states=ProviderStateStore(states=states),
        last_active_at=active,
        request=request,
        state=state,
    ),
    st.lists(MESSAGES, max_size=3),
    st.dictionaries(TEXT, JSON, max_size=3),
    st.none() | RECORDS,
    st.tuples(TIMES, TIMES),
    st.none() | TIMES,
    st.dictionaries(TEXT, JSON, max_size=2),
)


# A reader as strict as serde is --------------------------------------------------


def strict_time(value: object) -> None:
    assert isinstance(value, str)
    assert RFC3339.match(value), value


def strict_u64(value: object) -> None:
    assert type(value) is int
    assert 0 <= value < 2**64


def strict_object(
    value: object, required: dict[str, Any], optional: dict[str, Any]
) -> None:
    assert isinstance(value, dict)
    for name, check in required.items():
        assert name in value, name
        check(value[name])
    for name, check in optional.items():
        if value.get(name) is not None:
            check(value[name])


def strict_string(value: object) -> None:
    assert type(value) is str


def strict_one_of(*names: str) -> Any:
    def check(value: object) -> None:
        assert value in names

    return check


def strict_list(check: Any) -> Any:
    def check_all(value: object) -> None:
        assert isinstance(value, list)
        for item in value:
            check(item)

    return check_all


def anything(_: object) -> None:
    pass


def strict_call(value: object) -> None:
    strict_object(
        value, {"id": strict_string, "name": strict_string, "arguments": anything}, {}
    )


def strict_message(value: object) -> None:
    strict_object(
        value,
        {
            "role": strict_one_of("system", "user", "assistant", "tool"),
            "content": strict_string,
        },
        {
            "name": strict_string,
            "tool_calls": strict_list(strict_call),
            "tool_call_id": strict_string,
            "source": strict_one_of(
                "external", "chatHistory", "contextProvider", "toolResult"
            ),
        },
    )


def strict_states(value: object) -> None:
    strict_object(value, {"states": lambda v: strict_object(v, {}, {})}, {})


def strict_session(value: object) -> None:
    strict_object(
        value,
        {
            "session_id": strict_string,
            "metadata": lambda v: strict_object(
                v,
                {
                    "created_at": strict_time,
                    "updated_at": strict_time,
                    "message_count": strict_u64,
                },
                {"last_request_hash": strict_u64},
            ),
            "messages": strict_list(strict_message),
            "provider_states": strict_states,
        },
        {"last_active_at": strict_time},
    )


# Both ways -----------------------------------------------------------------------


@given(MESSAGES)
def test_a_message_comes_back_from_rafs_shape(message: ChatMessage) -> None:
    raf = message_to_raf(message)
    strict_message(raf)
    again = message_from_raf(load_json(dump_json(raf)))
    assert shown(again) == shown(message)
    assert again == message
    assert message_to_raf(again) == raf


@given(SNAPSHOTS)
def test_a_snapshot_comes_back(snapshot: SessionSnapshot) -> None:
    text = dump_json(snapshot_to_raf(snapshot))
    value = load_json(text)
    strict_session(value)
    again = snapshot_from_raf(value)
    assert again == snapshot
    assert [shown(m) for m in again.messages] == [shown(m) for m in snapshot.messages]
    assert exact(thaw(again.provider_states.states)) == exact(
        thaw(snapshot.provider_states.states)
    )
    assert dump_json(snapshot_to_raf(again)) == text


@given(st.lists(MESSAGES, max_size=4), JSON)
def test_serialize_is_read_by_a_strict_reader(
    messages: list[ChatMessage], state: Any
) -> None:
    session = AgentSession("s")
    for message in messages:
        plain = message.model_copy(update={"id": None})
        with pytest.raises(StopIteration):
            session.add_message(plain).send(None)
    session.set_provider_state("p", state)
    session.touch_request_hash(messages)
    text = session.serialize()
    strict_session(load_json(text))
    again = AgentSession.deserialize(text)
    assert again.snapshot() == session.snapshot()
    assert again.serialize() == text


@pytest.mark.parametrize("message", SHAPES, ids=lambda m: m.role.value)
def test_each_shape_is_rafs(message: ChatMessage) -> None:
    raf = message_to_raf(message)
    strict_message(raf)
    assert shown(message_from_raf(raf)) == shown(message)


@pytest.mark.parametrize("depth", [100, 190, 195, 196, 197, 198, 199])
def test_what_a_session_may_hold_it_reads_back(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    session = AgentSession("s")
    message = ChatMessage.from_openai({"role": "user", "content": "x", "deep": value})
    with pytest.raises(StopIteration):
        session.add_message(message).send(None)
    session.set_provider_state("p", value)
    again = AgentSession.deserialize(session.serialize())
    assert again.get_provider_state("p") == session.get_provider_state("p")
    assert again.snapshot() == session.snapshot()


def test_a_large_and_hostile_session_is_read_back() -> None:
    session = AgentSession("s")
    text = "\ud83d\0" + "é" * 10_000_000
    for message in (
        ChatMessage.user(text),
        ChatMessage.from_openai({"role": "user", "n": [2**63, 10**400]}),
    ):
        with pytest.raises(StopIteration):
            session.add_message(message).send(None)
    session.set_provider_state("p", -(2**70))
    written = session.serialize()
    written.encode()
    assert AgentSession.deserialize(written).snapshot() == session.snapshot()


# What RAF wrote ------------------------------------------------------------------


def test_rafs_own_sample_is_read() -> None:
    snapshot = snapshot_from_raf(load_json(RAF_TEXT))
    assert snapshot.session_id == "s"
    metadata = snapshot.metadata
    assert metadata.created_at == datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)
    assert metadata.updated_at == datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)
    assert metadata.last_request_hash == 2**64 - 1
    assert metadata.message_count == 3
    assert snapshot.last_active_at == datetime(2026, 1, 2, 3, 4, 7, 500000, UTC)
    call = (snapshot.messages[1].tool_calls or ())[0]
    assert (call.id, call.name, call.type) == ("c", "f", "function")
    assert exact(thaw(call.arguments)) == '{"z": 1, "a": [2]}'
    assert snapshot.messages[1].source is MessageSource.CHAT_HISTORY
    assert snapshot.provider_states.get("p") == {"n": 1}
    strict_session(snapshot_to_raf(snapshot))


def test_the_hash_that_raf_recorded_survives() -> None:
    session = AgentSession.deserialize(RAF_TEXT)
    assert session.get_last_request_hash() == 2**64 - 1
    assert load_json(session.serialize())["metadata"]["last_request_hash"] == 2**64 - 1


def test_what_old_writers_left_out_is_read() -> None:
    value = load_json(RAF_TEXT)
    del value["provider_states"], value["last_active_at"]
    session = AgentSession.deserialize(dump_json(value))
    assert session.last_active_at == session.created_at
    assert session.provider_states.states == {}
    value["last_active_at"] = None
    value["metadata"]["last_request_hash"] = None
    session = AgentSession.deserialize(dump_json(value))
    assert session.get_last_request_hash() is None


def test_a_wrong_count_is_not_believed() -> None:
    value = load_json(RAF_TEXT)
    value["metadata"]["message_count"] = 99
    assert AgentSession.deserialize(dump_json(value)).metadata().message_count == 3


@pytest.mark.parametrize(
    ("at", "is_kept_at"),
    [
        (("newer",), ("newer",)),
        (("metadata", "newer"), ("metadata", "newer")),
        (("provider_states", "newer"), ("provider_states", "newer")),
        (("raf_session", "newer"), ("raf_session", "newer")),
    ],
    ids=str,
)
def test_unknown_fields_are_written_again(
    at: tuple[str, ...], is_kept_at: tuple[str, ...]
) -> None:
    value = load_json(RAF_TEXT)
    place = value
    for step in at[:-1]:
        place = place.setdefault(step, {})
    place[at[-1]] = {"z": 1, "a": [2]}
    snapshot = snapshot_from_raf(value)
    written: Any = snapshot_to_raf(snapshot)
    for step in is_kept_at:
        written = written.get(step, {})
    assert exact(written) == '{"z": 1, "a": [2]}'


def test_unknown_fields_of_a_message_stay_where_raf_looks() -> None:
    value = load_json(RAF_TEXT)
    value["messages"][0]["newer"] = 1
    written = snapshot_to_raf(snapshot_from_raf(value))
    assert written["messages"][0].get("newer") == 1


def test_unknown_fields_of_a_call_leave_it_a_call() -> None:
    value = load_json(RAF_TEXT)
    value["messages"][1]["tool_calls"][0]["newer"] = 1
    call = (snapshot_from_raf(value).messages[1].tool_calls or ())[0]
    assert (call.id, call.name) == ("c", "f")
    assert exact(thaw(call.arguments)) == '{"z": 1, "a": [2]}'
    assert call.extra == {"newer": 1}


# Faults --------------------------------------------------------------------------


def full_value() -> Any:
    session = AgentSession("s")
    said = (ChatMessage.user("a"), *SHAPES[13:16], SHAPES[-1])
    for message in said:
        with pytest.raises(StopIteration):
            session.add_message(message).send(None)
    session.touch_request_hash(said, header={"model": "m"})
    session.set_provider_state("p", {"a": [1]})
    return load_json(session.serialize())


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for name, item in items:
        found += places(item, (*path, name))
    return found


WRONG: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**64, "", "x", "\0", [], {}, [None], {"x": 1}, ["x"],
)  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_damaged_text_is_read_or_refused_by_name(wrong: Any) -> None:
    value = full_value()
    faults: dict[str, str] = {}
    for path in places(value):
        damaged = copy.deepcopy(value)
        place = damaged
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = wrong
        try:
            session = AgentSession.deserialize(dump_json(damaged))
            AgentSession.deserialize(session.serialize())
        except (InvalidValueError, SchemaVersionError):
            pass
        except Exception as error:  # noqa: BLE001
            where = ".".join(re.sub(r"\d+", "#", str(step)) for step in path)
            faults[where] = f"{type(error).__name__}: {str(error)[:80]}"
    assert not faults


# Times ---------------------------------------------------------------------------


@given(TIMES)
def test_times_come_back(moment: datetime) -> None:
    text = format_time(moment)
    strict_time(text)
    assert parse_time(text, "") == moment


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime(999, 1, 1, tzinfo=UTC),
    ],
    ids=str,
)
def test_far_times_come_back(moment: datetime) -> None:
    strict_time(format_time(moment))
    assert parse_time(format_time(moment), "") == moment


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2026-01-02T03:04:05Z", 0),
        ("2026-01-02T03:04:05.1Z", 100000),
        ("2026-01-02T03:04:05.123456789Z", 123456),
        ("2026-01-02T03:04:05.000000999+00:00", 0),
        ("2026-01-02T05:04:05.5+02:00", 500000),
    ],
)
def test_times_of_rfc3339_are_read(text: str, micros: int) -> None:
    expected = datetime(2026, 1, 2, 3, 4, 5, micros, UTC)
    assert parse_time(text, "t") == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "2026-01-02", "2026-01-02T03:04:05", "1", None, 1, 1.5, []),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    ],
)
def test_what_is_no_moment_is_refused(text: object) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_time(text, "t")
    assert caught.value.path == "t"
