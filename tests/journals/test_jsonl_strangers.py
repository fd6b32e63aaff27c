"""Files of the JSONL journal that others moved, edited, damaged or forbade."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    batch,
    every,
    ids,
    said,
    varied,
    whole,
)
from raf_session.errors import SessionDamagedError, StorageError
from raf_session.journals import _jsonl_batches, _jsonl_reads
from raf_session.journals._jsonl_batches import Ending, batches
from raf_session.journals._jsonl_reads import lines_backwards
from raf_session.journals._jsonl_scopes import Scopes
from raf_session.journals.jsonl import JsonlJournal
from raf_session.key_paths import session_path
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio

OTHER: Final = KEY._replace(session="other")
FILE: Final = "app/user/session.jsonl"
SIDECAR: Final = "app/user/session.head"
USER: Final = ScopeKey("app", "user")
USER_FILE: Final = ".raf/scopes/app/users/user.json"
LIMITS: Final = Limits(
    sessions=SessionTTLOptions(max_idle_secs=10),
    user_state=SessionTTLOptions(max_idle_secs=10),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def opened(folder: Path, told: list[str] | None = None, **options: Any) -> JsonlJournal:
    reports = [] if told is None else told
    options.setdefault("clock", TickingClock())
    return JsonlJournal(
        folder, report=lambda key, x: reports.append(f"{key}: {x}"), **options
    )


async def make(folder: Path, *names: str, key: SessionKey = KEY) -> None:
    """Make a session, and its sidecar."""
    async with opened(folder) as journal:
        await journal.create(NewSession(key=key))
        for name in names:
            await journal.append(key, batch(name))


async def sessions(journal: JsonlJournal) -> list[str]:
    return [item.head.key.session for item in await every(journal)]


# Names -----------------------------------------------------------------------------


async def test_a_file_moved_with_its_sidecar_is_listed_under_its_name(
    tmp_path: Path,
) -> None:
    await make(tmp_path, "a")
    for end in (".jsonl", ".head"):
        path = (tmp_path / FILE).with_suffix(end)
        path.replace(path.with_name(f"other{end}"))
    async with opened(tmp_path) as journal:
        (item,) = await every(journal)
        assert item.head.key == OTHER
        assert (await journal.load(OTHER)).head == item.head


async def test_what_is_no_file_is_no_session(tmp_path: Path) -> None:
    await make(tmp_path, "a")
    folder = tmp_path / "app/user"
    (folder / "folder.jsonl").mkdir()
    (tmp_path / "app/folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "itself.jsonl").symlink_to("itself.jsonl")
    (folder / "itself").symlink_to("itself")
    (folder / "nowhere.jsonl").symlink_to(tmp_path / "missing")
    async with opened(tmp_path) as journal:
        for query in (Query(), Query(app="app")):
            assert [x.head.key for x in await every(journal, query)] == [KEY]


async def test_a_key_that_no_line_tells_is_reported(tmp_path: Path) -> None:
    key = SessionKey("app", "u" * 300, "", "s" * 300)
    await make(tmp_path, "a", key=key)
    path = tmp_path / session_path(key)
    sidecar = path.with_suffix(".head")
    data = path.read_bytes()
    path.write_bytes(b"\0" * 20 + data[20:])
    told: list[str] = []
    async with opened(tmp_path, told) as journal:
        assert [x.head.key for x in await every(journal)] == [key], "the sidecar does"
    sidecar.unlink()
    async with opened(tmp_path, told) as journal:
        del told[:]
        assert await every(journal) == []
        assert len(told) == 1
        assert "left out of a listing" in told[0]
        await journal.update(key, Change(title="t"))
        assert [x.head.key for x in await every(journal)] == [key], "a later line does"


async def test_what_a_create_left_goes_with_a_delete(tmp_path: Path) -> None:
    await make(tmp_path, "a")
    left = [tmp_path / f"app/user/other.{end}" for end in ("jsonl.tmp", "head")]
    for path in left:
        path.write_text("what was never acknowledged")
    async with opened(tmp_path) as journal:
        assert not await journal.delete(OTHER)
        assert not any(path.exists() for path in left)
        assert await sessions(journal) == ["session"]


# Contents --------------------------------------------------------------------------


def edit(folder: Path, old: bytes, new: bytes) -> None:
    """Rewrite a file as some editors do: the inode stays."""
    with (folder / FILE).open("r+b") as file:
        data = file.read()
        assert old in data
        file.seek(0)
        file.write(data.replace(old, new))
        file.truncate()


async def test_a_file_edited_in_its_place_is_read_anew(tmp_path: Path) -> None:
    await make(tmp_path, "a", "b", "c")
    told: list[str] = []
    async with opened(tmp_path, told) as journal:
        await journal.load(KEY)
        edit(tmp_path, b"the text of a", b"a text by hand" * 9)
        found = (await journal.load(KEY)).entries
        assert ids(found) == ["a", "b", "c"]
        assert found[0].message is not None
        assert found[0].message.content == "a text by hand" * 9
        edit(tmp_path, b"a text by hand", b"a longer text by hand")
        await journal.append(KEY, batch("d"))
        assert ids((await journal.load(KEY)).entries) == ["a", "b", "c", "d"]
    edit(tmp_path, b"a longer text by hand", b"a text by hand, longer still")
    async with opened(tmp_path, told) as journal:
        assert ids((await journal.load(KEY, Window(last=1))).entries) == ["d"]
        await journal.append(KEY, batch("e"))
        assert ids((await whole(journal)).entries) == ["a", "b", "c", "d", "e"]
    assert not told, "nothing is damaged"


async def test_what_stands_inside_a_damaged_record_is_no_record(tmp_path: Path) -> None:
    nested: dict[str, Any] = {
        "id": "x",
        "role": "user",
        "content": "said by nobody",
        "raf": {},
    }
    async with opened(tmp_path) as journal:
        await journal.create(NEW, batch("a"))
        entry = varied(said("b"), metadata={"owner": nested, "others": [nested, 1]})
        await journal.append(KEY, [entry])
        await journal.append(KEY, batch("c"))
    data = (tmp_path / FILE).read_bytes()
    place = data.rindex(b'"createdAt":"', 0, data.index(b'"id":"c"')) + 13
    (tmp_path / FILE).write_bytes(data[:place] + b"\0" + data[place + 1 :])
    (tmp_path / SIDECAR).unlink(missing_ok=True)
    told: list[str] = []
    async with opened(tmp_path, told) as journal:
        assert ids((await whole(journal)).entries) == ["a", "c"]
    assert len(told) == 1


async def test_lines_without_an_id_never_share_one(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)

    def write(text: str) -> None:
        with path.open("a") as file:
            file.write(json.dumps({"role": "user", "content": text}) + "\n")

    for text in ("one", "two", "three"):
        write(text)
    async with opened(tmp_path) as journal:
        await journal.splice(KEY, 1, 2, archive=False)
        write("four")
        write("five")
        found = ids((await whole(journal)).entries)
        assert len(set(found)) == len(found) == 3
        again = await journal.append(KEY, (await journal.load(KEY)).entries[1:2])
        assert again.repeated


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("outstanding",), 1),
        (("outstanding", "x"), "app/user//session"),
        (("outstanding", "1"), 7),
        (("gone",), "x"),
        (("gone", "old"), "1"),
        (("keys",), []),
        (("keys", "u"), None),
        (("keys", "u"), ["1", 1]),
        (("counter",), 1.5),
        (("created_at",), {}),
        (("last_active_at",), 1 << 80),
    ],
    ids=str,
)
async def test_a_scope_of_other_kinds_is_damaged(
    tmp_path: Path, path: tuple[str, ...], value: object
) -> None:
    delta = StateDelta({"u": 1}, ["old"])
    async with opened(tmp_path, limits=LIMITS) as journal:
        await journal.create(NEW, batch("a"), change=Change(user=delta))
        fields = json.loads((tmp_path / USER_FILE).read_text())
        place = fields
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        data = json.dumps(fields)
        (tmp_path / USER_FILE).write_text(data)
        for call in (
            lambda: journal.load(KEY),
            lambda: journal.scoped_state(USER),
            lambda: journal.update_scoped_state(USER, delta),
            lambda: journal.append(KEY, batch("b"), change=Change(user=delta)),
        ):
            with pytest.raises(SessionDamagedError):
                await call()
        assert await journal.expire() == ()
    assert (tmp_path / USER_FILE).read_text() == data


@pytest.mark.parametrize(
    ("name", "value"),
    [("head", [None] * 14), ("seq", "1"), ("counts", [1, 1, "1"]), ("at", 1 << 80)],
)
async def test_a_line_of_other_kinds_is_damage(
    tmp_path: Path, name: str, value: object
) -> None:
    await make(tmp_path, "a", "b", "c")
    lines = (tmp_path / FILE).read_bytes().splitlines()
    fields = json.loads(lines[2])
    fields["raf"][name] = value
    lines[2] = json.dumps(fields).encode()
    (tmp_path / FILE).write_bytes(b"\n".join(lines) + b"\n")
    (tmp_path / SIDECAR).unlink()
    told: list[str] = []
    async with opened(tmp_path, told) as journal:
        assert {"a", "c"} <= set(ids((await journal.load(KEY)).entries))
        assert len(told) == 1
        await journal.append(KEY, batch("d"))
        assert ids((await journal.load(KEY, Window(last=1))).entries) == ["d"]


# Lines -----------------------------------------------------------------------------


@given(
    st.lists(st.binary(max_size=40).map(lambda x: x.replace(b"\n", b"")), max_size=9),
    st.booleans(),
    st.integers(1, 50),
)
def test_lines_are_the_same_in_whatever_blocks_they_are_read(
    texts: list[bytes], ended: bool, block: int
) -> None:
    data = b"\n".join([b'{"n":0}', *texts]) + b"\n" * ended
    fd = os.memfd_create("lines") if hasattr(os, "memfd_create") else -1
    if fd < 0:
        return
    try:
        os.write(fd, data)
        whole_file = list(batches(fd, 0, len(data)))
        backwards = list(lines_backwards(fd, len(data)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_jsonl_batches, "_BLOCK", block)
            patch.setattr(_jsonl_reads, "_BLOCK", block)
            assert list(batches(fd, 0, len(data))) == whole_file
            assert list(lines_backwards(fd, len(data))) == backwards
    finally:
        os.close(fd)
    assert isinstance(whole_file[-1], Ending)
    assert all(data[at : at + len(line)] == line for line, at in backwards)
    assert [x for x, _ in backwards][::-1] == [x for x in data.split(b"\n") if x]


# What may not be read or written ---------------------------------------------------


async def test_a_cache_that_cannot_be_read_is_of_no_use(tmp_path: Path) -> None:
    await make(tmp_path, "a")
    for path in (tmp_path / SIDECAR, tmp_path / ".raf/catalog.json"):
        path.unlink(missing_ok=True)
        path.mkdir()
    async with opened(tmp_path) as journal:
        assert await sessions(journal) == ["session"]
        assert ids((await journal.load(KEY)).entries) == ["a"]
        await journal.append(KEY, batch("b"))


async def test_a_file_that_may_only_be_read_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(tmp_path, "a")
    await make(tmp_path, "a", key=OTHER)
    (tmp_path / SIDECAR).unlink()
    data = (tmp_path / FILE).read_bytes() + b'{"id":"torn'
    (tmp_path / FILE).write_bytes(data)
    plain = os.open

    def refuse(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if str(path) == str(tmp_path / FILE) and flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return plain(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    clock = TickingClock()
    told: list[str] = []
    async with opened(tmp_path, told, clock=clock, limits=LIMITS) as journal:
        assert await sessions(journal) == ["other", "session"]
        assert ids((await journal.load(KEY)).entries) == ["a"]
        for call in (
            lambda: journal.append(KEY, batch("b")),
            lambda: journal.update(KEY, Change(labels=LabelDelta(added=("l",)))),
            lambda: journal.splice(KEY, 1, 1, archive=False),
            lambda: journal.delete(KEY),
        ):
            with pytest.raises(StorageError, match="Permission denied"):
                await call()
        clock.tick(100)
        assert await journal.expire() == (OTHER,)
        assert len(told) == 1
        assert "left out of a sweep" in told[0]
    assert (tmp_path / FILE).read_bytes() == data


async def test_a_scope_that_cannot_be_read_does_not_end_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = TickingClock()
    third = SessionKey("app", "v", "", "s")
    newer = ScopeKey("app", "a")
    told: list[str] = []
    async with opened(tmp_path, told, clock=clock, limits=LIMITS) as journal:
        for scope in (newer, ScopeKey("app", "z")):
            await journal.update_scoped_state(scope, StateDelta({"x": 1}))
        await journal.create(NEW)
        await journal.create(NewSession(key=third))
        with monkeypatch.context() as patch:
            patch.setattr(Scopes, "settle", cut_off)
            await journal.append(
                KEY, batch("a"), change=Change(user=StateDelta({"u": 1}))
            )
        (tmp_path / USER_FILE).write_bytes(b"{")
        path = tmp_path / ".raf/scopes/app/users/a.json"
        fields = json.loads(path.read_text())
        path.write_text(json.dumps(fields | {"version": 99}))
        clock.tick(100)
        del told[:]
        assert set(await journal.expire()) == {third, ScopeKey("app", "z")}
        left_out = [x for x in told if "left out of a sweep" in x]
        assert len(left_out) == 3, "a session and two scopes"


def cut_off(*_: Any, **__: Any) -> None:
    raise OSError(errno.EIO, "cut off")
