"""`SessionMeta` and `SessionMessage`: the document's JSON, there and back."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session import AudioPart, ChatMessage, ImagePart, TextPart, ToolCall
from raf_session.changes import SessionStatus
from raf_session.clock import to_micros
from raf_session.conformance.message_strategies import messages
from raf_session.conformance.record_strategies import heads
from raf_session.conformance.text_strategies import moments, names, objects
from raf_session.encoding import BodyFormat, Row
from raf_session.entries import Counts, Entry, EntryKind, SessionHead
from raf_session.errors import InvalidValueError
from raf_session.journals._jsonl_lines import entry_fields
from raf_session.journals._jsonl_views import meta_fields
from raf_session.json_text import dump_json, load_json
from raf_session.key_paths import SessionScope, agent_key
from raf_session.keys import SessionKey
from raf_session.manager import SessionMessage, SessionMeta, SessionState
from raf_session.messages import MessageRole, MessageSource

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
BODIES = BodyFormat("test", None, 1 << 30)

keys: st.SearchStrategy[SessionKey] = st.builds(
    agent_key,
    st.sampled_from(sorted(set(SessionScope) - {SessionScope.MAIN})),
    agent=names(),
    channel=names().filter(lambda name: len(name.encode()) < 400),
    scope_id=names(),
)
agent_heads: st.SearchStrategy[SessionHead] = st.builds(
    lambda head, key: head._replace(key=key), heads(), keys
)
stored: st.SearchStrategy[Entry] = st.builds(
    lambda name, kind, message, metadata, at: Entry(
        name, kind, message, author="a", metadata=metadata
    ).stored(3, to_micros(at)),
    names(),
    st.sampled_from(EntryKind),
    messages(),
    objects(),
    moments(),
)


def line_of(entry: Entry) -> dict[str, Any]:
    """Return the line of a session's file that holds the entry."""
    assert entry.stored_us is not None
    counts = Counts.of([entry])
    row = Row(
        entry.seq,
        entry.left_at,
        entry.id,
        entry.kind.value,
        entry.stored_us,
        BODIES.encode(entry),
        counts,
    )
    line = load_json(dump_json(entry_fields(row)))
    assert isinstance(line, dict)
    return line


# Messages ------------------------------------------------------------------------


def test_a_message_has_the_documents_json() -> None:
    call = ToolCall(id="c1", name="search", arguments='{"q": "x"}')
    message = SessionMessage.from_chat(
        ChatMessage.assistant_with_tools("Looking.", [call]), id="m1", created_at=NOON
    )
    assert message.model_dump() == {
        "id": "m1",
        "role": "assistant",
        "content": "Looking.",
        "toolCalls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "search", "arguments": '{"q": "x"}'},
            }
        ],
        "createdAt": "2026-01-15T12:00:00.000000Z",
    }
    result = ChatMessage.tool("found", "c1").model_copy(
        update={"name": "search", "metadata": {"pinned": True}}
    )
    shown = SessionMessage.from_chat(result, id="m2", created_at=NOON).model_dump()
    assert list(shown) == [
        *("id", "role", "content", "name", "toolCallId", "metadata", "createdAt")
    ]
    assert (shown["role"], shown["name"], shown["toolCallId"]) == (
        "tool",
        "search",
        "c1",
    )
    assert shown["metadata"] == {"pinned": True}


def test_the_documents_summary_is_read_and_written() -> None:
    document = {
        "id": "s1",
        "role": "assistant",
        "content": "[历史摘要] ...\n\n关键信息:\n- ...\n- ...",
        "metadata": {
            "type": "compaction_summary",
            "original_count": 50,
            "compacted_at": "2024-01-15T10:30:00Z",
        },
        "createdAt": "2024-01-15T10:30:00.000000Z",
    }
    message = SessionMessage(**document)  # type: ignore[arg-type]
    assert message.model_dump() == document
    assert message.to_chat().metadata == document["metadata"]


@given(stored)
def test_a_message_is_the_documents_part_of_its_line(entry: Entry) -> None:
    line = line_of(entry)
    if "whole" in line["raf"]:
        return
    expected: dict[str, Any] = {}
    for name in DOCUMENTED:
        value = line.get(name)
        fits = {"name": isinstance(value, str), "toolCalls": _all_objects(value)}
        if name in REQUIRED or (value and fits.get(name, True)):
            expected[name] = value
    message = SessionMessage.from_entry(entry)
    shown = load_json(dump_json(message.model_dump()))
    assert SessionMessage(**shown) == message
    ours = shown.pop("raf", {})
    assert list(shown.items()) == list(expected.items())
    if "content" in ours:
        assert ours["content"] == line["raf"]["content"]
    assert_whole(message, entry)


DOCUMENTED = (
    *("id", "role", "content", "name", "toolCalls", "toolCallId", "metadata"),
    "createdAt",
)
REQUIRED = {"id", "role", "content", "createdAt"}


def _all_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def assert_whole(message: SessionMessage, entry: Entry) -> None:
    """Check that nothing of what was said is lost."""
    again = SessionMessage(**load_json(dump_json(message.model_dump())))
    chat, original = again.to_chat(), entry.message
    assert original is not None
    assert repr(chat.wire()) == repr(original.wire())
    assert chat.source is original.source
    assert chat.id == (original.id or entry.id)
    assert chat.created_at == (original.created_at or entry.stored_at)
    assert chat.metadata == (original.metadata or entry.metadata)


@given(messages())
def test_a_message_of_a_chat_comes_back(message: ChatMessage) -> None:
    known = message.model_copy(
        update={"id": message.id or "m", "created_at": message.created_at or NOON}
    )
    shown = SessionMessage.from_chat(known)
    assert shown.to_chat() == known
    assert pickle.loads(pickle.dumps(shown)) == shown  # noqa: S301


def test_images_survive_behind_the_text() -> None:
    parts = (
        TextPart(text="What is "),
        ImagePart(image_url={"url": "data:image/png;base64,AAAA"}),
        TextPart(text="this?"),
        AudioPart(input_audio={"data": "", "format": "wav"}),
    )
    said = ChatMessage.user(parts)
    message = SessionMessage.from_chat(said)
    assert message.content == "What is this?"
    assert message.model_dump()["raf"]["content"] == said.to_openai()["content"]
    assert message.to_chat().content == parts


def test_a_plain_message_has_nothing_of_ours() -> None:
    said = ChatMessage.user("hello").model_copy(
        update={"id": "m1", "created_at": NOON, "metadata": {"a": 1}}
    )
    assert "raf" not in SessionMessage.from_chat(said).model_dump()


def test_what_is_not_told_is_made_up() -> None:
    one, two = (SessionMessage.from_chat(ChatMessage.user("x")) for _ in range(2))
    assert one.id != two.id
    assert abs((one.created_at - datetime.now(UTC)).total_seconds()) < 60


def test_an_entry_without_a_message_or_place_is_none() -> None:
    with pytest.raises(InvalidValueError, match="carries none"):
        SessionMessage.from_entry(Entry("e", EntryKind.EVENT).stored(1, 1))
    with pytest.raises(InvalidValueError, match="not stored"):
        SessionMessage.from_entry(Entry("e", message=ChatMessage.user("x")))


def test_what_a_go_program_writes_is_read() -> None:
    message = SessionMessage(
        **json.loads(
            '{"id":"1","role":"assistant","content":"","name":"","toolCalls":['
            '{"index":0,"id":"c","type":"function","function":{"name":"f",'
            '"arguments":"{}"},"extra":{"a":1}}],"toolCallId":"","metadata":null,'
            '"createdAt":"2024-01-15T18:30:00.123456789+08:00"}'
        )
    )
    assert message.created_at == datetime(2024, 1, 15, 10, 30, 0, 123456, UTC)
    assert message.tool_calls[0].name == "f"
    assert message.to_chat().to_openai()["tool_calls"][0]["extra"] == {"a": 1}
    assert set(message.model_dump()) == {
        "id",
        "role",
        "content",
        "toolCalls",
        "createdAt",
    }


GOOD: dict[str, Any] = {"id": "1", "role": "user", "createdAt": "2024-01-15T10:30:00Z"}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"id": ""}, "id"),
        ({"id": None}, "id"),
        ({"id": "x" * 513}, "id"),
        ({"role": "robot"}, "role"),
        ({"content": ["x"]}, "content"),
        ({"name": 3}, "name"),
        ({"toolCalls": {"id": "c"}}, "toolCalls"),
        ({"toolCalls": [{"id": "c"}, "x"]}, "toolCalls[1]"),
        ({"toolCalls": [{"x": float("nan")}]}, "toolCalls[0].x"),
        ({"metadata": {"x": {1: 2}}}, "metadata.x"),
        ({"createdAt": "2024-01-15T10:30:00"}, "createdAt"),
        ({"createdAt": 1705314600}, "createdAt"),
        ({"createdAt": None}, "createdAt"),
        ({"tokenCount": 3}, "tokenCount"),
    ],
)
def test_a_message_that_is_none_is_refused_with_its_path(
    fields: dict[str, Any], path: str
) -> None:
    SessionMessage(**GOOD)
    with pytest.raises(InvalidValueError) as caught:
        SessionMessage(**GOOD | fields)
    assert caught.value.path == path


@pytest.mark.parametrize(
    "raf",
    [
        {"message": 3},
        {"event": []},
        {"event": {"own": "x"}},
        {"event": {"own": {"created_at": "x"}}},
        {"event": {"own": {"source": "x"}}},
        {"event": {"own": {"id": 3}}},
        {"message": {"role": "x"}},
    ],
)
def test_ours_from_another_program_is_refused_when_it_does_not_fit(raf: Any) -> None:
    message = SessionMessage(**GOOD, raf=raf)
    with pytest.raises(InvalidValueError) as caught:
        message.to_chat()
    assert caught.value.path.startswith("raf")


def test_a_record_cannot_be_changed() -> None:
    message = SessionMessage.from_chat(ChatMessage.user("x"))
    with pytest.raises(ValueError, match="frozen"):
        message.content = "y"
    shown = message.model_dump()
    shown["content"] = "y"
    assert message.content == "x"
    assert message.role is MessageRole.USER
    assert message.to_chat().source is None
    sent = ChatMessage.user("x").model_copy(update={"source": MessageSource.EXTERNAL})
    assert SessionMessage.from_chat(sent).to_chat().source is MessageSource.EXTERNAL


# Meta ----------------------------------------------------------------------------


def test_meta_has_the_documents_json() -> None:
    meta = SessionMeta(
        key="agent:main:channel:discord:scope:per_peer:user12345",
        agent_id="main",
        channel="discord",
        scope=SessionScope.PER_PEER,
        scope_id="user12345",
        total_token_count=12,
        message_count=2,
        created_at=NOON,
        updated_at=NOON,
    )
    document = {
        "key": "agent:main:channel:discord:scope:per_peer:user12345",
        "agentId": "main",
        "channel": "discord",
        "scope": "per_peer",
        "scopeId": "user12345",
        "title": "",
        "totalTokenCount": 12,
        "messageCount": 2,
        "state": "active",
        "createdAt": "2026-01-15T12:00:00.000000Z",
        "updatedAt": "2026-01-15T12:00:00.000000Z",
    }
    assert list(meta.model_dump().items()) == list(document.items())
    full = {**document, "model": "m", "compactedSummary": "s", "state": "compacted"}
    again = SessionMeta(**full)  # type: ignore[arg-type]
    assert again.model_dump() == full
    assert list(again.model_dump()) == [
        *("key", "agentId", "channel", "scope", "scopeId", "title", "model"),
        *("totalTokenCount", "messageCount", "state", "compactedSummary"),
        *("createdAt", "updatedAt"),
    ]


@given(agent_heads, st.text(max_size=8))
def test_meta_is_the_documents_part_of_its_line(
    head: SessionHead, summary: str
) -> None:
    meta = SessionMeta.of(head, summary)
    shown = meta.model_dump()
    assert SessionMeta(**shown) == meta
    with pytest.raises(InvalidValueError, match="not the key of an agent's"):
        SessionMeta.of(head._replace(key=SessionKey.raf("s")))
    line = load_json(dump_json(meta_fields(head)))
    del line["raf"]
    assert shown.pop("compactedSummary", "") == summary
    assert shown == line


@given(agent_heads, st.booleans())
def test_idle_shows_where_nothing_was_done_to_the_session(
    head: SessionHead, idle: bool
) -> None:
    state = SessionMeta.of(head, idle=idle).state
    if head.status is SessionStatus.ACTIVE:
        assert state is (SessionState.IDLE if idle else SessionState.ACTIVE)
    else:
        assert state.value == head.status.value


def test_the_states_are_the_documents() -> None:
    assert list(SessionState) == ["active", "idle", "compacted", "archived"]
