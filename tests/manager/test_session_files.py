"""The session files of the document's layout, written and read through the manager."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aspect_values import BRIEF, asks, config, gives, outline, reply, violations

from raf_session.key_paths import SessionScope
from raf_session.manager import (
    AgentInput,
    AgentPoint,
    SessionAspect,
    SessionManager,
    SessionMessage,
    SessionRequest,
)
from raf_session.messages import ChatMessage
from raf_session.parts import ImagePart, TextPart

pytestmark = pytest.mark.anyio

KEY = "agent:assistant:channel:feishu:scope:per_channel_peer:oc_xxx_user123"
FILE = "assistant/feishu/per_channel_peer_oc_xxx_user123.jsonl"
CALL = {
    "index": 0,
    "id": "c1",
    "type": "function",
    "function": {"name": "look", "arguments": "{}"},
}
DOCUMENT: list[dict[str, Any]] = [
    {
        "id": "m1",
        "role": "user",
        "content": "look",
        "createdAt": "2024-01-15T10:30:00Z",
    },
    {
        "id": "m2",
        "role": "assistant",
        "content": "",
        "toolCalls": [CALL],
        "createdAt": "2024-01-15T18:30:00.123456789+08:00",
    },
    {
        "id": "m3",
        "role": "tool",
        "content": "found",
        "name": "look",
        "toolCallId": "c1",
        "createdAt": "2024-01-15T10:30:01Z",
    },
    {
        "id": "m4",
        "role": "assistant",
        "content": "[历史摘要] ...",
        "metadata": {"type": "compaction_summary", "original_count": 50},
        "createdAt": "2024-01-15T10:30:02.5Z",
    },
]
"""Lines as a Go program writes the document's struct."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def manager_in(folder: Path) -> SessionManager:
    return SessionManager.from_config(config(session={"storage_path": str(folder)}))


async def said(manager: SessionManager, *output: ChatMessage) -> list[str]:
    """Do a run in the document's session; return the request that it began with."""
    given = AgentInput(
        "feishu",
        "per_channel_peer",
        "oc_xxx_user123",
        messages=[BRIEF, ChatMessage.user("and?")],
    )
    aspect = SessionAspect(manager)
    async with aspect.around(AgentPoint("assistant"), given) as one:
        one.add(*output)
        assert violations(one.messages) == []
        return outline(one.messages)


async def test_a_file_of_the_documents_keys_alone_goes_on_through_the_aspect(
    tmp_path: Path,
) -> None:
    file = tmp_path / FILE
    file.parent.mkdir(parents=True)
    written = "".join(json.dumps(line) + "\n" for line in DOCUMENT)
    file.write_text(written, encoding="utf-8")
    async with manager_in(tmp_path) as manager:
        assert [meta.key for meta in (await manager.list()).sessions] == [KEY]
        request = await said(manager, reply())
        assert request[1:] == [
            "user: look",
            "assistant: c1",
            "tool: found",
            "user: [历史摘要] ...",
            "user: and?",
        ]
        meta = await manager.meta(KEY)
        assert meta is not None
        assert meta.message_count == 6
        assert meta.compacted_summary == "..."
    assert file.read_text(encoding="utf-8").startswith(written)
    async with manager_in(tmp_path) as manager:
        session = await manager.get(KEY)
        assert session is not None
        record = await manager.journal.load(session.key)
        shown = [SessionMessage.from_entry(entry) for entry in record.entries]
        assert [message.id for message in shown[:4]] == ["m1", "m2", "m3", "m4"]
        assert [SessionMessage(**line) for line in DOCUMENT] == shown[:4]


async def test_a_line_of_a_message_is_its_json_beside_ours(tmp_path: Path) -> None:
    image = ImagePart(type="image_url", image_url={"url": "https://e.org/a.png"})
    async with manager_in(tmp_path) as manager:
        session = await manager.get_or_create(
            SessionRequest(
                "assistant", "feishu", "per_channel_peer", scope_id="oc_xxx_user123"
            )
        )
        await manager.add_messages(
            session,
            [
                ChatMessage.user([TextPart(text="what?"), image]),
                asks("c1", text="let me see"),
                gives("c1", "好"),
                reply().model_copy(update={"metadata": {"pinned": True}}),
            ],
        )
        record = await manager.journal.load(session.key)
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    messages = [line for line in lines if "role" in line]
    shown = [SessionMessage.from_entry(e).model_dump() for e in record.entries]
    for line, message in zip(messages, shown, strict=True):
        line.pop("raf", None)
        message.pop("raf", None)
        assert list(line.items()) == list(message.items())


def session_files(folder: Path) -> list[Path]:
    """Return all files in a folder, but for those that are the journal's own."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return [
        path for path in found if ".raf" not in path.parts and path.suffix != ".head"
    ]


HOSTILE = (
    *("a_b", "a:b", "a/b", "a\\b", "a b", "A_b", "a_b ", "a_b."),
    *("é", "e\u0301", "\uff41", "a", "\uff05", "%2f", "*", "?"),
    *("..", "../../x", "/etc/x", "C:x", "a\nb", "CON", "\uff5e", "scope:task:t"),
    *("x" * 512, "X" * 512, "é" * 256),
)


@pytest.mark.parametrize("scope", [SessionScope.TASK, SessionScope.PER_PEER])
async def test_hostile_ids_have_sessions_and_files_of_their_own(
    scope: SessionScope, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    async with manager_in(root) as manager:
        keys: list[str] = []
        for name in HOSTILE:
            request = SessionRequest("a", "c", scope, name)
            session = await manager.get_or_create(request)
            await manager.add_message(session, ChatMessage.user(f"mark {name}"))
            keys.append(session.agent_key)
        assert len(set(keys)) == len(HOSTILE)
    async with manager_in(root) as manager:
        for name, key in zip(HOSTILE, keys, strict=True):
            shown = (await manager.load_history(key)).messages
            assert [message.text for message in shown] == [f"mark {name}"]
    files = session_files(tmp_path)
    assert len({str(path).casefold() for path in files}) == len(HOSTILE)
    assert {path.parent for path in files} == {root / "a" / "c"}
