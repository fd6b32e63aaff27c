"""The JSONL journal's files: where they are, what their lines are, what else fits."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.clock import UNIX_EPOCH
from raf_session.conformance import strategies
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_storage import PackingCodec
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    batch,
    body,
    every,
    ids,
    said,
    whole,
)
from raf_session.encoding import BodyFormat, Row
from raf_session.entries import Counts, Entry
from raf_session.errors import JournalClosedError, SchemaVersionError, StorageError
from raf_session.journals._jsonl_batches import parse
from raf_session.journals._jsonl_lines import Line, entry_fields, place_of, row_of
from raf_session.journals.jsonl import JsonlJournal
from raf_session.json_text import dump_json
from raf_session.key_paths import agent_key
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio

PEER: Final = agent_key("per_peer", agent="main", channel="discord", peer="user12345")
PEER_FILE: Final = "main/discord/per_peer_user12345.jsonl"


def opened(folder: Path, **options: Any) -> JsonlJournal:
    return JsonlJournal(folder, clock=TickingClock(), **options)


def files_in(folder: Path, pattern: str = "*") -> set[str]:
    found = (path for path in folder.rglob(pattern) if path.is_file())
    return {str(path.relative_to(folder)) for path in found}


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# Lines -----------------------------------------------------------------------------


async def test_a_message_is_a_line_of_the_document(tmp_path: Path) -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]
    async with opened(tmp_path) as journal:
        await journal.create(NewSession(key=PEER), change=Change(title="Trip"))
        await journal.append(
            PEER,
            [
                Entry("m1", message=ChatMessage.user("你好\nthere")),
                Entry(
                    "m2",
                    message=ChatMessage.from_openai(
                        {"role": "assistant", "tool_calls": calls}
                    ),
                ),
                Entry(
                    "m3",
                    message=ChatMessage.from_openai(
                        {
                            "role": "tool",
                            "content": "ok",
                            "name": "f",
                            "tool_call_id": "c1",
                        }
                    ),
                    metadata={"type": "note"},
                ),
            ],
        )
    meta, *lines = lines_of(tmp_path / PEER_FILE)
    raf = [line.pop("raf") for line in (meta, *lines)]
    at = "2026-01-01T00:00:00.000000Z"
    assert meta == {
        "key": "agent:main:channel:discord:scope:per_peer:user12345",
        "agentId": "main",
        "channel": "discord",
        "scope": "per_peer",
        "scopeId": "user12345",
        "title": "Trip",
        "totalTokenCount": 0,
        "messageCount": 0,
        "state": "active",
        "createdAt": at,
        "updatedAt": at,
    }
    assert lines == [
        {"id": "m1", "role": "user", "content": "你好\nthere", "createdAt": at},
        {
            "id": "m2",
            "role": "assistant",
            "content": "",
            "toolCalls": calls,
            "createdAt": at,
        },
        {
            "id": "m3",
            "role": "tool",
            "content": "ok",
            "name": "f",
            "toolCallId": "c1",
            "metadata": {"type": "note"},
            "createdAt": at,
        },
    ]
    assert [x["batch"] for x in raf] == [[0, 1], [0, 3], [1, 3], [2, 3]]
    assert raf[0]["version"] == 1
    assert "你好" in (tmp_path / PEER_FILE).read_text(), "it can be read with grep"


@given(entry=strategies.entries())
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_line_gives_the_body_back(entry: Entry) -> None:
    stored = BodyFormat("jsonl", None, 1 << 24).encode(entry)
    row = Row(7, 0, entry.id, entry.kind.value, 5, stored, Counts.of((entry,)))
    fields = entry_fields(row)
    data = dump_json(fields).encode()
    assert b"\n" not in data
    read = parse(data)
    place = place_of(Line(1, 0, len(data), read), read["raf"])
    assert row_of(place, read) == row


async def test_the_body_is_stored_once(tmp_path: Path) -> None:
    text = "x" * 1000
    async with opened(tmp_path) as journal:
        await journal.create(NEW)
        for n in range(50):
            await journal.append(KEY, [said(f"entry-{n}", text)])
    size = (tmp_path / "app/user/session.jsonl").stat().st_size
    assert size < 50 * 1000 * 1.5


async def test_a_codec_leaves_nothing_to_read(tmp_path: Path) -> None:
    async with opened(tmp_path, codec=PackingCodec()) as journal:
        await journal.create(NEW)
        await journal.append(
            KEY,
            [said("a", "a secret")],
            change=Change(
                session=StateDelta({"k": "a secret"}),
                user=StateDelta({"u": "a secret"}),
            ),
        )
        assert ids((await journal.load(KEY)).entries) == ["a"]
    for name in files_in(tmp_path):
        assert b"secret" not in (tmp_path / name).read_bytes(), name
    line = lines_of(tmp_path / "app/user/session.jsonl")[1]
    assert isinstance(line["raf"]["event"], str)
    assert "content" not in line


# Layout ----------------------------------------------------------------------------


async def test_where_files_are(tmp_path: Path) -> None:
    long = "長" * 170
    keys = {
        PEER: PEER_FILE,
        agent_key("main", agent="a"): "a/default/main_main.jsonl",
        KEY: "app/user/session.jsonl",
        SessionKey("app", "user", "sc", "s"): "app/user/sc/s.jsonl",
        SessionKey.raf("A/../b"): "_/_/%41%2f%2e%2e%2fb.jsonl",
        SessionKey("..", ".raf", "", "locks"): "%2e%2e/%2eraf/locks.jsonl",
        SessionKey("app", long, "", long): None,
    }
    async with opened(tmp_path) as journal:
        for key in keys:
            await journal.create(NewSession(key=key), batch("a"))
    files = files_in(tmp_path, "*.jsonl")
    assert {file for file in keys.values() if file} <= files
    assert len(files) == len(keys)
    for sidecar in files_in(tmp_path, "*.head"):
        (tmp_path / sidecar).unlink()
    (tmp_path / ".raf" / "catalog.json").unlink(missing_ok=True)
    async with opened(tmp_path) as journal:
        assert {x.head.key for x in await every(journal)} == set(keys)
        assert {x.head.key for x in await every(journal, Query(app="app"))} == {
            key for key in keys if key.app == "app"
        }


async def test_deletion_leaves_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await journal.create(NEW, change=Change(user=StateDelta({"u": 1})))
        for n in range(100):
            await journal.append(KEY, [said(f"{n}", "x" * 1000)])
        assert (tmp_path / "app/user/session.head").exists()
        await journal.delete(KEY)
        assert not (tmp_path / "app").exists()
        await journal.update_scoped_state(
            ScopeKey("app", "user"), StateDelta({}, ["u"])
        )
    left = {x for x in files_in(tmp_path) if not x.startswith(".raf/locks/")}
    assert left == {".raf/version.json"}
    assert os.listdir(tmp_path / ".raf/scopes") == []  # noqa: PTH208


async def test_other_files_are_let_alone(tmp_path: Path) -> None:
    strange = ["notes.jsonl", "app/Upper.jsonl", "app/user/x.txt", "app/user/UP.jsonl"]
    for name in strange:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"role": "user", "content": "x"}\n')
    async with opened(tmp_path) as journal:
        await journal.create(NEW)
        assert [x.head.key for x in await every(journal)] == [KEY]
        await journal.delete(KEY)
    for name in strange:
        assert (tmp_path / name).exists()


# Files of other programs -----------------------------------------------------------

FOREIGN: Final = """\
{"id":"m1","role":"user","content":"hi","createdAt":"2024-01-15T10:30:00Z"}
{"id":"m2","role":"assistant","content":"","toolCalls":[{"id":"c","type":"function",\
"function":{"name":"f","arguments":"{}"}}],"createdAt":"2024-01-15T10:30:01+08:00"}
{"id":"m3","role":"tool","content":"ok","toolCallId":"c","name":"f","metadata":null}
{"role":"assistant","content":"[历史摘要] x","metadata":{"type":"compaction_summary",\
"original_count":50}}
"""


async def test_a_file_of_the_documents_keys_alone_loads(tmp_path: Path) -> None:
    path = tmp_path / PEER_FILE
    path.parent.mkdir(parents=True)
    path.write_text(FOREIGN)
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=3600 * 24 * 365 * 5))
    async with opened(tmp_path, limits=limits) as journal:
        (listed,) = await every(journal)
        record = await whole(journal, PEER)
        assert listed.head == record.head
        assert ids(record.entries) == ["m1", "m2", "m3", "line-4"]
        head = record.head
        assert (head.key, head.revision, head.last_seq) == (PEER, 4, 4)
        assert head.created_at.isoformat() == "2024-01-15T10:30:00+00:00"
        assert head.active == Counts(4, 4, 1, 0)
        call = record.entries[1].message
        assert call is not None
        assert call.tool_calls is not None
        assert call.tool_calls[0].name == "f"
        summary = record.entries[3].message
        assert summary is not None
        assert summary.metadata == {"type": "compaction_summary", "original_count": 50}
        last = await journal.load(PEER, Window(last=2))
        assert last.entries == record.entries[2:]
        commit = await journal.append(
            PEER, batch("new"), incarnation=head.incarnation, expected_revision=4
        )
        assert commit.entries[0].seq == 5
        assert (await journal.append(PEER, record.entries[:2])).repeated
        assert path.read_text().startswith(FOREIGN), "what was there stays"
        with path.open("a") as file:  # the other program goes on
            file.write('{"id":"m9","role":"user","content":"more"}\n')
        await journal.append(PEER, batch("after"))
        found = await whole(journal, PEER)
        expected = ["m1", "m2", "m3", "line-4", "new", "m9", "after"]
        assert ids(found.entries) == expected
        assert [e.seq for e in found.entries] == list(range(1, 8))
        assert found.head.active.entries == 7
        await journal.splice(PEER, 1, 4, batch("s"), archive=True)
        await journal.splice(PEER, 6, 6, archive=False)
        found = await whole(journal, PEER)
    async with opened(tmp_path) as journal:
        again = await whole(journal, PEER)
        assert again == found
        assert ids(again.entries) == ["s", "new", "after"]


async def test_a_file_without_times_does_not_expire(tmp_path: Path) -> None:
    path = tmp_path / "app/user/session.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"role":"user","content":"hi"}\n')
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=1, max_lifetime_secs=1))
    async with opened(tmp_path, limits=limits) as journal:
        assert (await journal.load(KEY)).head.created_at == UNIX_EPOCH
        assert await journal.expire() == ()


# Versions --------------------------------------------------------------------------


async def test_a_newer_directory_is_refused_and_left(tmp_path: Path) -> None:
    (tmp_path / ".raf").mkdir()
    (tmp_path / ".raf" / "version.json").write_text('{"schema": 2}')
    before = files_in(tmp_path)
    journal = opened(tmp_path)
    with pytest.raises(SchemaVersionError) as caught:
        await journal.__aenter__()
    assert (caught.value.found, caught.value.supported) == (2, 1)
    assert files_in(tmp_path) == before
    with pytest.raises(JournalClosedError):
        await journal.load(KEY)
    (tmp_path / ".raf" / "version.json").write_text("{}")
    with pytest.raises(StorageError):
        await journal.__aenter__()
    (tmp_path / ".raf" / "version.json").write_text('{"schema": 1}')
    async with journal:
        await journal.create(NEW)


async def test_a_newer_file_is_refused_and_left(tmp_path: Path) -> None:
    told: list[str] = []
    async with opened(tmp_path) as journal:
        await journal.create(NEW, batch("a"))
    path = tmp_path / "app/user/session.jsonl"
    text = path.read_text().replace('"version":1', '"version":2')
    path.write_text(text)
    async with opened(tmp_path, report=lambda _, x: told.append(x)) as journal:
        for call in (
            lambda: journal.load(KEY),
            lambda: journal.append(KEY, batch("b")),
            lambda: journal.create(NEW),
            lambda: journal.delete(KEY),
            lambda: journal.splice(KEY, 1, 1, archive=False),
        ):
            with pytest.raises(SchemaVersionError):
                await call()
        assert await every(journal) == []
        assert len(told) == 1
    assert path.read_text() == text


# Everything at once ----------------------------------------------------------------


async def test_a_file_written_anew_is_the_same_session(tmp_path: Path) -> None:
    clock = TickingClock()
    async with JsonlJournal(tmp_path, clock=clock) as journal:
        await journal.create(NEW, batch("a", "b"), archived=batch("y", "z"))
        clock.tick()
        await journal.update(
            KEY,
            Change(
                session=StateDelta({"s": "\ud83d", "t": [1.0, 2**70]}),
                providers=StateDelta({"p": {"z": 1, "a": None}}),
                request=RequestDelta(0, b"12345678" * 3, 2**64 - 1, 2**63, 1),
                labels=LabelDelta(added=("x", "y")),
                pin=True,
                model="m",
            ),
        )
        await journal.append(KEY, batch("c", "d", "e"), trim=4)
        before = await whole(journal)
        commit = await journal.splice(KEY, 6, 6, archive=False)
        after = await whole(journal)
    assert ids(after.entries) == ["b", "c", "e"]
    assert after.archived == before.archived
    assert after[3:] == before[3:]
    changed = {"revision", "updated_at", "spliced_at", "active"}
    for name, value in after.head._asdict().items():
        assert name in changed or value == getattr(before.head, name), name
    assert after.head == commit.head
    async with JsonlJournal(tmp_path, clock=clock) as journal:
        assert await whole(journal) == after
        assert [body(e) for e in after.entries] == [
            body(e) for e in (await journal.load(KEY, Window(last=3))).entries
        ]
        assert (await journal.load(KEY)).head.created_at == START
