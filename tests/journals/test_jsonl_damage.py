"""Files of the JSONL journal that are torn, overwritten, glued, copied or emptied."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from raf_session.changes import Change, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    ids,
    said,
    whole,
)
from raf_session.errors import SessionDamagedError, SessionNotFoundError
from raf_session.journals._jsonl_files import sealed, unsealed
from raf_session.journals.jsonl import JsonlJournal
from raf_session.options import NewSession, Query, Window

pytestmark = pytest.mark.anyio

FILE: Final = "app/user/session.jsonl"
SIDECAR: Final = "app/user/session.head"


class Reports(list[str]):
    def __call__(self, _: str, detail: str) -> None:
        self.append(detail)


def opened(
    folder: Path, reports: Reports | None = None, **options: Any
) -> JsonlJournal:
    told = Reports() if reports is None else reports
    return JsonlJournal(folder, clock=TickingClock(), report=told, **options)


async def make(folder: Path, *texts: str) -> list[bytes]:
    """Make a session of an entry for each text; return the lines of its file."""
    async with opened(folder) as journal:
        await journal.create(NEW)
        for n, text in enumerate(texts, 1):
            await journal.append(KEY, [said(f"e{n}", text)])
    return lines_of(folder)


def lines_of(folder: Path) -> list[bytes]:
    return (folder / FILE).read_bytes().splitlines(keepends=True)


def put(folder: Path, data: bytes) -> None:
    """Put other bytes in the place of the file's, and nothing beside it."""
    (folder / FILE).write_bytes(data)
    (folder / SIDECAR).unlink(missing_ok=True)


async def go_on(folder: Path, reports: Reports, name: str = "e4") -> list[str]:
    """Append, and return what a journal that comes later reads."""
    async with opened(folder, reports) as journal:
        await journal.append(KEY, [said(name)])
    async with opened(folder, reports) as journal:
        record = await whole(journal)
        found = ids(record.entries)
        assert record.head.active.entries == len(found)
        listed = (await journal.scan(Query())).sessions
        assert [item.head for item in listed] == [record.head]
        assert ids((await journal.load(KEY, Window(last=1))).entries) == [name]
    return found


# The end -------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["load", "append"])
async def test_torn_at_every_byte_of_the_last_record(
    tmp_path: Path, first: str
) -> None:
    lines = await make(tmp_path, "one", "two", "drei 😀 ü")
    front, last = b"".join(lines[:-1]), lines[-1]
    for size in range(len(last) + 1):
        put(tmp_path, front + last[:size])
        reports = Reports()
        if first == "load":
            async with opened(tmp_path, reports) as journal:
                await journal.load(KEY)
        found = await go_on(tmp_path, reports)
        complete = size >= len(last) - 1  # the newline alone may be missing
        assert found == ["e1", "e2", *(["e3"] if complete else []), "e4"]
        torn = 0 < size < len(last) - 1
        assert len(reports) == torn, "once, where there was anything"
        for line in lines_of(tmp_path):
            json.loads(line)


@pytest.mark.parametrize("kept", [1, 2, 3])
async def test_a_batch_that_is_not_whole_is_cut(tmp_path: Path, kept: int) -> None:
    await make(tmp_path, "one")
    before = (tmp_path / FILE).read_bytes()
    async with opened(tmp_path) as journal:
        await journal.append(
            KEY,
            batch("x", "y", "z"),
            change=Change(session=StateDelta({"s": 1}), title="t"),
        )
    lines = lines_of(tmp_path)
    assert len(lines) == 2 + 5
    put(tmp_path, b"".join(lines[: 2 + kept]))
    reports = Reports()
    async with opened(tmp_path, reports) as journal:
        record = await whole(journal)
        assert (ids(record.entries), record.state, record.head.title) == (
            ["e1"],
            {},
            "",
        )
    assert (tmp_path / FILE).read_bytes() == before
    assert len(reports) == 1
    assert "cut" in reports[0]
    assert await go_on(tmp_path, Reports()) == ["e1", "e4"]


async def test_a_final_block_of_zeros_is_cut(tmp_path: Path) -> None:
    lines = await make(tmp_path, "one", "two")
    put(tmp_path, b"".join(lines) + b"\0" * 5000)
    reports = Reports()
    assert await go_on(tmp_path, reports) == ["e1", "e2", "e4"]
    assert len(reports) == 1


async def test_the_first_write_is_never_cut(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await journal.create(NEW, batch("a", "b", "c"))
    lines = lines_of(tmp_path)
    data = b"".join(lines[:3])
    put(tmp_path, data)
    reports = Reports()
    async with opened(tmp_path, reports) as journal:
        record = await journal.load(KEY)
        assert ids(record.entries) == ["a", "b"]
        assert (tmp_path / FILE).read_bytes() == data
        assert len(reports) == 1
        commit = await journal.append(KEY, batch("d"))
        assert commit.entries[0].seq == 3


# The middle ----------------------------------------------------------------------

DAMAGES: Final[dict[str, Callable[[list[bytes]], list[bytes]]]] = {
    "zeros as a line": lambda x: [*x[:2], b"\0" * 700 + b"\n", *x[3:]],
    "zeros over a part": lambda x: [
        *x[:2],
        x[2][:20] + b"\0" * 40 + x[2][60:],
        *x[3:],
    ],
    "half a line": lambda x: [*x[:2], x[2][:30] + b"\n", *x[3:]],
    "no UTF-8": lambda x: [*x[:2], x[2].replace(b"two", b"t\xff"), *x[3:]],
    "another value": lambda x: [*x[:2], b"[1, 2]\n", *x[3:]],
    "an object that says nothing": lambda x: [*x[:2], b'{"a": 1}\n', *x[3:]],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_damage_in_the_middle_is_skipped_and_told(
    tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]]
) -> None:
    lines = damage(await make(tmp_path, "one", "two", "three"))
    put(tmp_path, b"".join(lines))
    reports = Reports()
    async with opened(tmp_path, reports) as journal:
        for _ in range(2):
            record = await journal.load(KEY)
            assert ids(record.entries) == ["e1", "e3"]
            assert record.head.active.entries == 2
        await journal.append(KEY, batch("e4"))
        assert len(reports) == 1, "told once"
        assert "line 3" in reports[0]
    assert lines_of(tmp_path)[:4] == lines, "nothing was deleted"
    assert await go_on(tmp_path, Reports(), "e5") == ["e1", "e3", "e4", "e5"]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_strict_raises_with_the_line(
    tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]]
) -> None:
    lines = damage(await make(tmp_path, "one", "two", "three"))
    put(tmp_path, b"".join(lines))
    async with opened(tmp_path, strict=True) as journal:
        for _ in range(2):
            with pytest.raises(SessionDamagedError) as caught:
                await journal.load(KEY)
            assert "line 3" in caught.value.detail
            with pytest.raises(SessionDamagedError):
                await journal.append(KEY, batch("e4"))
    assert lines_of(tmp_path) == lines
    async with opened(tmp_path) as journal:
        await journal.append(KEY, batch("e4"))
    async with opened(tmp_path, strict=True) as journal:
        with pytest.raises(SessionDamagedError):
            await journal.load(KEY, Window(last=1))  # a sidecar hides nothing


async def test_a_record_with_zeros_behind_it_is_kept(tmp_path: Path) -> None:
    lines = await make(tmp_path, "one", "two", "three")
    lines[2] = lines[2][:-1] + b"\0" * 300 + b"\n"
    put(tmp_path, b"".join(lines))
    reports = Reports()
    assert await go_on(tmp_path, reports) == ["e1", "e2", "e3", "e4"]
    assert reports
    assert all("line 3" in report for report in reports)


@pytest.mark.parametrize("torn", [None, 10, 60])
async def test_records_glued_on_one_line_are_kept(
    tmp_path: Path, torn: int | None
) -> None:
    lines = await make(tmp_path, "one", "two", "three", "four")
    lines[2] = lines[2][:-1] if torn is None else lines[2][:torn]
    put(tmp_path, b"".join(lines))
    reports = Reports()
    found = await go_on(tmp_path, reports, "e5")
    second = ["e2"] if torn is None else []
    assert found == ["e1", *second, "e3", "e4", "e5"]
    assert reports


async def test_a_damaged_first_line_loses_no_entry(tmp_path: Path) -> None:
    lines = await make(tmp_path, "one", "two")
    put(tmp_path, b"\0" * 100 + b"\n" + b"".join(lines[1:]))
    reports = Reports()
    async with opened(tmp_path, reports) as journal:
        first = await journal.load(KEY)
        assert ids(first.entries) == ["e1", "e2"]
        assert first.head.revision == 3
        assert len(reports) == 1
    async with opened(tmp_path) as journal:
        assert (await journal.load(KEY)).head == first.head, "the same each time"
        await journal.append(KEY, batch("e3"), incarnation=first.head.incarnation)


async def test_a_lost_line_of_a_splice_loses_no_entry(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        await journal.splice(KEY, 1, 2, batch("s"), archive=True)
        await journal.append(KEY, batch("d"))
    lines = lines_of(tmp_path)
    place = next(n for n, line in enumerate(lines) if b'"splice"' in line)
    lines[place] = b"?\n"
    put(tmp_path, b"".join(lines))
    async with opened(tmp_path) as journal:
        found = ids((await journal.load(KEY)).entries)
        assert set(found) == {"a", "s", "b", "c", "d"}


# The whole -----------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"\0" * 4096, b"garbage\n", b"{", b"\n\n"])
async def test_an_unreadable_file_is_an_error_and_stays(
    tmp_path: Path, data: bytes
) -> None:
    await make(tmp_path, "one")
    put(tmp_path, data)
    reports = Reports()
    async with opened(tmp_path, reports) as journal:
        for call in (
            lambda: journal.load(KEY),
            lambda: journal.append(KEY, batch("x")),
            lambda: journal.create(NEW),
            lambda: journal.update(KEY, Change(title="t")),
            lambda: journal.delete(KEY, incarnation="some"),
        ):
            with pytest.raises(SessionDamagedError):
                await call()
        assert (await journal.scan(Query())).sessions == ()
        assert len(reports) == 1, "a listing tells what it leaves out"
        assert (tmp_path / FILE).read_bytes() == data
        assert await journal.delete(KEY), "asked to, it removes it"
    assert not (tmp_path / FILE).exists()


async def test_an_empty_file_is_no_session(tmp_path: Path) -> None:
    await make(tmp_path, "one")
    put(tmp_path, b"")
    async with opened(tmp_path) as journal:
        assert not await alive(journal)
        with pytest.raises(SessionNotFoundError):
            await journal.append(KEY, batch("x"))
        assert (await journal.scan(Query())).sessions == ()
        await journal.create(NEW, batch("new"))
        assert ids((await journal.load(KEY)).entries) == ["new"]


# The sidecar ---------------------------------------------------------------------


async def test_the_sidecar_is_only_a_cache(tmp_path: Path) -> None:
    await make(tmp_path, "one", "two")
    old = (tmp_path / SIDECAR).read_bytes()
    async with opened(tmp_path) as journal:
        await journal.append(
            KEY, batch("e3"), change=Change(session=StateDelta({"s": 1}), title="t")
        )
        expected = await whole(journal)
        listed = await journal.scan(Query(), state=True)
    new = (tmp_path / SIDECAR).read_bytes()
    assert new != old
    for data in (b"", b"{", old, new[:-1], new[: len(new) // 2], None, b"[]", b"null"):
        (tmp_path / SIDECAR).unlink(missing_ok=True)
        if data is not None:
            (tmp_path / SIDECAR).write_bytes(data)
        async with opened(tmp_path) as journal:
            assert await journal.scan(Query(), state=True) == listed
        async with opened(tmp_path) as journal:
            last = await journal.load(KEY, Window(last=2))
            assert (last.head, last.state) == (expected.head, expected.state)
            assert ids(last.entries) == ["e2", "e3"]
            assert await whole(journal) == expected
            again = await journal.append(KEY, batch("e3"))
            assert again.repeated
    assert (tmp_path / SIDECAR).read_bytes() == new, "it was built again"


async def test_a_sidecar_of_another_file_is_not_believed(tmp_path: Path) -> None:
    await make(tmp_path, "one", "two")
    other = KEY._replace(session="other")
    async with opened(tmp_path) as journal:
        await journal.create(NewSession(key=other), batch("x"))
        await journal.append(other, batch("y"))
    data = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).write_bytes(data)  # as a restored backup does
    (tmp_path / SIDECAR).write_bytes((tmp_path / "app/user/other.head").read_bytes())
    async with opened(tmp_path) as journal:
        assert ids((await journal.load(KEY, Window(last=9))).entries) == ["e1", "e2"]
        keys = [item.head.key for item in (await journal.scan(Query())).sessions]
        assert sorted(keys) == [other, KEY]


async def test_a_sidecar_of_a_former_session_is_not_believed(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await journal.create(NEW, change=Change(title="old"))
        await journal.append(KEY, batch("old"))
    old = (tmp_path / SIDECAR).read_bytes()
    async with opened(tmp_path) as journal:
        await journal.delete(KEY)
    await make(tmp_path, "one", "two", "three")
    status = (tmp_path / FILE).stat()
    fields = json.loads(unsealed(old) or b"")
    fields["identity"][:2] = status.st_dev, status.st_ino  # inodes are used again
    (tmp_path / SIDECAR).write_bytes(sealed(json.dumps(fields).encode()))
    reports = Reports()
    async with opened(tmp_path, reports) as journal:
        head = (await journal.load(KEY, Window(last=0))).head
        assert (head.title, head.last_seq) == ("", 3)
        record = await journal.load(KEY, Window(last=9))
        assert (record.head, ids(record.entries)) == (head, ["e1", "e2", "e3"])
    assert not reports


async def test_a_copied_file_is_a_session_of_its_own(tmp_path: Path) -> None:
    await make(tmp_path, "one")
    for end in ("jsonl", "head"):
        copy = tmp_path / f"app/user/copy.{end}"
        copy.write_bytes((tmp_path / f"app/user/session.{end}").read_bytes())
    key = KEY._replace(session="copy")
    async with opened(tmp_path) as journal:
        keys = [item.head.key for item in (await journal.scan(Query())).sessions]
        assert sorted(keys) == [key, KEY]
        record = await journal.load(key)
        assert (record.head.key, ids(record.entries)) == (key, ["e1"])
        await journal.append(key, batch("x"))
        assert ids((await journal.load(KEY)).entries) == ["e1"]
