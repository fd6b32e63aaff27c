"""Listings of the JSONL journal: what they keep, and that they miss nothing for it."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session._file_stamps_py import changed_files
from raf_session.changes import Change, LabelDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import batch, every
from raf_session.entries import SessionHead
from raf_session.errors import SessionExistsError, SessionNotFoundError
from raf_session.journal import Order
from raf_session.journals import _jsonl_tree
from raf_session.journals.jsonl import JsonlJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession, Query

pytestmark = pytest.mark.anyio

APPS: Final = ("app", "ab", "b")
KEYS: Final = tuple(
    SessionKey(app, user, scope, f"s{n}")
    for app in APPS
    for user in ("u", "v")
    for scope in ("", "x")
    for n in range(2)
)
CATALOG: Final = ".raf/catalog.json"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def opened(folder: Path, clock: TickingClock | None = None) -> JsonlJournal:
    return JsonlJournal(
        folder, clock=clock or TickingClock(), report=lambda _where, _detail: None
    )


def let_a_tick_pass(folder: Path) -> None:
    """Wait until the file system gives other time stamps."""
    probe = folder / "probe"
    probe.touch()
    before = probe.stat().st_mtime_ns
    while probe.stat().st_mtime_ns == before:
        probe.touch()
    probe.unlink()


@contextmanager
def settled(news: int = 1) -> Generator[None]:
    """Have everything that a listing sees be kept, and the catalog be written."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_SETTLED_NS", "_COARSE_NS"):
            patch.setattr(_jsonl_tree, name, -(10**15))
        patch.setattr(_jsonl_tree, "_NEWS", news)
        yield


@contextmanager
def calls(folder: Path) -> Generator[list[str]]:
    """Note what of the folder is opened, or listed."""
    seen: list[str] = []

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        def note(path: Any, *args: Any, **options: Any) -> Any:
            name = str(path)
            if name.startswith(str(folder)) and "/locks/" not in name:
                seen.append(name)
            return call(path, *args, **options)

        return note

    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "scandir", "listdir"):
            patch.setattr(os, name, noting(getattr(os, name)))
        yield seen


# What others do --------------------------------------------------------------------

Act = Callable[[JsonlJournal, Path, SessionKey], Any]


def file_of(folder: Path, key: SessionKey) -> Path:
    names = [key.app, key.user, *([key.scope] if key.scope else [])]
    return folder.joinpath(*names, f"{key.session}.jsonl")


async def create(journal: JsonlJournal, _: Path, key: SessionKey) -> None:
    await journal.create(NewSession(key=key), batch("a"))


async def append(journal: JsonlJournal, _: Path, key: SessionKey) -> None:
    head = (await journal.load(key)).head
    await journal.append(key, batch(f"n{head.last_seq}"))


async def describe(journal: JsonlJournal, _: Path, key: SessionKey) -> None:
    await journal.update(key, Change(title="t", labels=LabelDelta(added=("l",))))


async def delete(journal: JsonlJournal, _: Path, key: SessionKey) -> None:
    await journal.delete(key)


async def write_a_line(_: JsonlJournal, folder: Path, key: SessionKey) -> None:
    path = file_of(folder, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"role": "user", "content": "by hand"}) + "\n")


async def remove_the_file(_: JsonlJournal, folder: Path, key: SessionKey) -> None:
    file_of(folder, key).unlink(missing_ok=True)


async def move_the_file(_: JsonlJournal, folder: Path, key: SessionKey) -> None:
    other = file_of(folder, key._replace(session="moved"))
    for end in (".jsonl", ".head"):
        if file_of(folder, key).with_suffix(end).exists():
            file_of(folder, key).with_suffix(end).replace(other.with_suffix(end))


async def copy_the_file(_: JsonlJournal, folder: Path, key: SessionKey) -> None:
    if file_of(folder, key).exists():
        data = file_of(folder, key).read_bytes()
        file_of(folder, key._replace(session="copied")).write_bytes(data)


async def empty_the_file(_: JsonlJournal, folder: Path, key: SessionKey) -> None:
    if file_of(folder, key).exists():
        file_of(folder, key).write_bytes(b"")


async def move_the_folder(_: JsonlJournal, folder: Path, key: SessionKey) -> None:
    here, there = folder / key.app / key.user, folder / key.app / "w"
    if here.exists() and not there.exists():
        here.replace(there)


ACTS: Final[tuple[Act, ...]] = (
    *(create, create, create, append, describe, delete),
    *(write_a_line, remove_the_file, move_the_file, copy_the_file),
    *(empty_the_file, move_the_folder),
)


def forget(folder: Path) -> None:
    (folder / CATALOG).unlink(missing_ok=True)
    for sidecar in folder.rglob("*.head"):
        sidecar.unlink()


LISTINGS: Final[tuple[tuple[Order, Query], ...]] = (
    ("activity", Query()),
    ("key", Query()),
    ("key", Query(app="app")),
    ("activity", Query(app="ab", labels=("l",))),
)


async def listed(journal: JsonlJournal) -> dict[str, list[SessionHead]]:
    found: dict[str, list[SessionHead]] = {}
    for order, query in LISTINGS:
        pages = await every(journal, query, order=order, limit=7)
        found[f"{order} {query}"] = [item.head for item in pages]
    return found


@given(
    st.lists(st.tuples(st.sampled_from(ACTS), st.sampled_from(KEYS)), max_size=5),
    st.integers(0, 40),
)
def test_what_is_kept_hides_nothing(
    acts: list[tuple[Act, SessionKey]], most: int
) -> None:
    """Who kept much, little, or the catalog alone lists what a new journal does."""

    async def run(folder: Path) -> None:
        clock = TickingClock()
        async with opened(folder, clock) as two, opened(folder, clock) as one:
            for key in KEYS[::3]:
                await two.create(NewSession(key=key), batch("a"))
                clock.tick()
            await listed(one)
            for act, key in acts:
                let_a_tick_pass(folder)
                clock.tick()
                try:
                    await act(two, folder, key)
                except (SessionExistsError, SessionNotFoundError):
                    continue
                await one.scan(Query(app="app"), limit=1)
            found = await listed(one)
            async with opened(folder, clock) as cold:
                assert await listed(cold) == found
            forget(folder)
            async with opened(folder, clock) as fresh:
                assert await listed(fresh) == found
            keys = [head.key for head in found[f"key {Query()}"]]
            assert keys == sorted(set(keys)), "each once"
            for head in found[f"activity {Query()}"]:
                assert (await two.load(head.key)).head == head

    with settled(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_jsonl_tree, "_MAX_HEADS", most)
        with tempfile.TemporaryDirectory() as name:
            anyio.run(partial(run, Path(name)))


# What is kept ----------------------------------------------------------------------


async def make_all(folder: Path) -> list[SessionKey]:
    async with opened(folder) as journal:
        for key in KEYS:
            await journal.create(NewSession(key=key), batch("a"))
        await every(journal)  # the sidecars are written when it is closed
    let_a_tick_pass(folder)
    return sorted(KEYS)


async def test_what_did_not_change_is_not_opened(tmp_path: Path) -> None:
    keys = await make_all(tmp_path)
    with settled():
        async with opened(tmp_path) as journal:
            await every(journal)
            with calls(tmp_path) as seen:
                assert [x.head.key for x in await every(journal)] == keys
            assert set(seen) == {str(tmp_path)}, "the apps alone"
            await journal.append(KEYS[0], batch("b"))
            with calls(tmp_path) as seen:
                assert len(await every(journal, Query(app="app"))) == 8
            changed = str(file_of(tmp_path, KEYS[0]))
            assert set(seen) <= {
                *(changed, changed.replace(".jsonl", ".head")),
                f"{tmp_path / CATALOG}.tmp",
            }
        async with opened(tmp_path) as journal:
            with calls(tmp_path) as seen:
                assert [x.head.key for x in await every(journal)] == keys
            names = ("", CATALOG, ".raf/probe.tmp", "app/u")
            named = {str(tmp_path / name) for name in names}
            assert set(seen) == named, "a folder to which a sidecar was added"


@contextmanager
def looks() -> Generator[list[str]]:
    """Note the paths that Python asks the system about."""
    seen: list[str] = []
    plain = os.stat

    def note(path: Any, **options: Any) -> os.stat_result:
        seen.append(str(path))
        return plain(path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", note)
        yield seen


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "as built"])
async def test_each_file_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pure: bool
) -> None:
    keys = await make_all(tmp_path)
    files = sorted(str(file_of(tmp_path, key)) for key in keys)
    folders = {str(Path(file).parent) for file in files}
    if pure:
        monkeypatch.setattr(_jsonl_tree, "changed_files", changed_files)
    elif vars(_jsonl_tree)["changed_files"] is changed_files:
        pytest.skip("the package is pure")
    with settled():
        async with opened(tmp_path) as journal, opened(tmp_path) as other:
            await every(journal)
            with looks() as seen:
                assert len((await journal.scan(Query(), limit=5)).sessions) == 5
            assert sorted(path for path in seen if path.endswith(".jsonl")) == (
                files if pure else []  # what is compiled looks by itself
            )
            assert folders < set(seen), "for files that are new"
            assert len(seen) == len(set(seen))
            let_a_tick_pass(tmp_path)
            await other.append(KEYS[0], batch("b"))
            with looks() as seen:
                await journal.scan(Query(), limit=5)
            again = [str(file_of(tmp_path, KEYS[0]))]
            assert sorted(path for path in seen if path.endswith(".jsonl")) == (
                sorted(files + again) if pure else again
            )


@pytest.mark.parametrize("stamp", [0, 1_700_000_000_123_456_789])
async def test_folders_without_a_date_are_read_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stamp: int
) -> None:
    plain = os.stat

    def undated(path: Any, **options: Any) -> Any:
        status = plain(path, **options)
        if not stat.S_ISDIR(status.st_mode):
            return status
        times = {"st_mtime_ns": stamp, "st_ctime_ns": stamp, "st_ino": status.st_ino}
        return SimpleNamespace(st_mode=status.st_mode, **times)

    keys = await make_all(tmp_path)
    monkeypatch.setattr(os, "stat", undated)
    other = keys[0]._replace(session="other")
    with settled():
        async with opened(tmp_path) as one, opened(tmp_path) as two:
            assert len(await every(one)) == len(keys)
            await two.create(NewSession(key=other))
            assert [x.head.key for x in await every(one)] == sorted([*keys, other])


async def test_a_damaged_catalog_is_of_no_use(tmp_path: Path) -> None:
    keys = await make_all(tmp_path)
    with settled():
        async with opened(tmp_path) as journal:
            heads = [item.head for item in await every(journal)]
            assert [head.key for head in heads] == keys
        data = (tmp_path / CATALOG).read_bytes()
        for place in range(0, len(data), 97):
            torn = bytearray(data)
            torn[place] ^= 1
            for bad in (bytes(torn), data[:place], data[:place] + bytes(40)):
                (tmp_path / CATALOG).write_bytes(bad)
                async with opened(tmp_path) as journal:
                    found = [item.head for item in await every(journal)]
                assert found == heads, place


async def test_a_catalog_of_another_folder_is_not_believed(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with settled():
        for folder in (one, two):
            await make_all(folder)
            async with opened(folder) as journal:
                await every(journal)
        async with opened(two) as journal:
            await journal.append(KEYS[0], batch("b"))
            heads = [item.head for item in await every(journal)]
        (one / CATALOG).replace(two / CATALOG)
        async with opened(two) as journal:
            assert [item.head for item in await every(journal)] == heads
