"""How changes of user and app state reach their files beside a session's."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from raf_session.changes import Change, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch, raises
from raf_session.errors import SessionDamagedError, StorageError
from raf_session.journals._jsonl_scopes import Scopes
from raf_session.journals.jsonl import JsonlJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions

pytestmark = pytest.mark.anyio

USER: Final = ScopeKey("app", "user")
APP: Final = ScopeKey("app")
OTHER: Final = KEY._replace(session="other")
USER_FILE: Final = ".raf/scopes/app/users/user.json"


def opened(folder: Path, told: list[str] | None = None, **options: Any) -> JsonlJournal:
    options.setdefault("clock", TickingClock())
    reports = [] if told is None else told
    return JsonlJournal(folder, report=lambda _, x: reports.append(x), **options)


def user(**values: Any) -> Change:
    return Change(user=StateDelta(values))


def file_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / USER_FILE).read_text())
    return found


@contextmanager
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Have no change reach its scope, as where the writer dies before that."""

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "cut off")

    with monkeypatch.context() as patch:
        patch.setattr(Scopes, "settle", fail)
        yield


async def test_the_next_use_of_the_session_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    async with opened(tmp_path, told) as journal:
        await journal.create(NEW)
        with cut_off(monkeypatch):
            await journal.append(KEY, batch("a"), change=user(k=1))
            assert len(told) == 1
            assert (await journal.scoped_state(USER)).state == {}
            assert (await journal.load(KEY)).user_state == {}, "it can be read"
        record = await journal.load(KEY)
        assert record.user_state == {"k": 1}
        assert file_of(tmp_path)["outstanding"] == {}


@pytest.mark.parametrize("restart", [False, True])
async def test_a_newer_value_is_not_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    async with opened(tmp_path) as journal:
        await journal.create(NEW)
        await journal.create(NewSession(key=OTHER))
        with cut_off(monkeypatch):
            change = Change(user=StateDelta({"k": 1, "mine": 1, "gone": 1}))
            await journal.append(KEY, batch("a"), change=change)
        await journal.append(OTHER, batch("a"), change=user(k=2))
        await journal.update_scoped_state(USER, StateDelta({"direct": 3}, ["gone"]))
        assert file_of(tmp_path)["gone"], "a deletion is remembered while it matters"
        if not restart:
            await journal.load(KEY)
            expected = {"k": 2, "mine": 1, "direct": 3}
            assert (await journal.scoped_state(USER)).state == expected
    if restart:
        async with opened(tmp_path) as journal:
            await journal.expire()
            expected = {"k": 2, "mine": 1, "direct": 3}
            assert (await journal.scoped_state(USER)).state == expected
    assert file_of(tmp_path)["gone"] == {}, "and no longer"


async def test_a_change_is_applied_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await journal.create(NEW)
        await journal.append(KEY, batch("a"), change=user(k=1))
        await journal.update_scoped_state(USER, StateDelta({}, ["k"]))
        assert not (tmp_path / USER_FILE).exists(), "an empty one goes"
    (tmp_path / "app/user/session.head").unlink(missing_ok=True)
    async with opened(tmp_path) as journal:  # the whole record is read again
        await journal.append(KEY, batch("b"))
        assert (await journal.load(KEY)).user_state == {}
        await journal.append(KEY, batch("c"), change=user(other=1))
        assert (await journal.load(KEY)).user_state == {"other": 1}


@pytest.mark.parametrize("end", ["delete", "expire", "create", "rewrite"])
async def test_nothing_is_lost_with_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    async with opened(tmp_path, clock=clock, limits=limits) as journal:
        await journal.create(NEW, batch("x"))
        with cut_off(monkeypatch):
            await journal.append(KEY, batch("a"), change=user(k=1))
            if end == "delete":
                with raises(StorageError, "what would be lost is not deleted"):
                    await journal.delete(KEY)
            if end == "rewrite":
                with raises(StorageError, "nor written anew without it"):
                    await journal.splice(KEY, 1, 1, archive=False)
        if end == "delete":
            assert await journal.delete(KEY)
        elif end == "rewrite":
            await journal.splice(KEY, 1, 1, archive=False, change=user(more=1))
        else:
            clock.tick(11)
            if end == "expire":
                assert await journal.expire() == (KEY,)
            else:
                await journal.create(NEW, change=user(more=1))
        more = {"more": 1} if end in {"create", "rewrite"} else {}
        assert (await journal.scoped_state(USER)).state == {"k": 1} | more
        assert file_of(tmp_path)["outstanding"] == {}


async def test_what_waits_is_settled_before_the_file_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, failures = Scopes.settle, [2]

    def late(self: Scopes, *args: Any, **options: Any) -> None:
        failures[0] -= 1
        if failures[0] >= 0:
            raise OSError(errno.EIO, "cut off")
        settle(self, *args, **options)

    monkeypatch.setattr(Scopes, "settle", late)
    async with opened(tmp_path) as journal:
        await journal.create(NEW, batch("x"))
        await journal.append(KEY, batch("a"), change=user(k=1))
        await journal.splice(KEY, 1, 1, archive=False, change=user(more=1))
        assert (await journal.scoped_state(USER)).state == {"k": 1, "more": 1}


async def test_a_number_drawn_in_vain_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as journal:
        await journal.create(NEW)
        write = os.write

        def full(fd: int, data: bytes) -> int:
            if b'"batch"' in bytes(data):
                raise OSError(errno.ENOSPC, "full")
            return write(fd, data)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with raises(StorageError, "no space for the record"):
                await journal.append(KEY, batch("a"), change=user(k=1))
            with raises(StorageError, "no space for the session"):
                await journal.create(NewSession(key=OTHER), change=user(k=1))
        assert len(file_of(tmp_path)["outstanding"]) == 2
        assert (await journal.scoped_state(USER)).state == {}
        await journal.expire(dry_run=True)
        assert len(file_of(tmp_path)["outstanding"]) == 2
        await journal.expire()
        assert not (tmp_path / USER_FILE).exists()


async def test_numbers_of_a_former_life_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as journal:
        await journal.create(NEW, change=user(old=1))
        await journal.update_scoped_state(USER, StateDelta({}, ["old"]))
        assert not (tmp_path / USER_FILE).exists()
        with cut_off(monkeypatch):
            await journal.append(KEY, batch("a"), change=user(new=1))
    (tmp_path / "app/user/session.head").unlink(missing_ok=True)
    async with opened(tmp_path) as journal:
        assert (await journal.load(KEY)).user_state == {"new": 1}


async def test_a_change_finished_late_keeps_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = TickingClock()
    limits = Limits(user_state=SessionTTLOptions(max_idle_secs=10))
    async with opened(tmp_path, clock=clock, limits=limits) as journal:
        await journal.create(NEW)
        with cut_off(monkeypatch):
            await journal.append(KEY, batch("a"), change=user(k=1))
        clock.tick(11)
        assert (await journal.load(KEY)).user_state == {}, "it has expired since"
        assert await journal.expire() == (USER,)


@pytest.mark.parametrize("data", [b"", b"{", b"\0" * 100, b'{"version": 1}'])
async def test_damaged_state_is_an_error_and_stays(tmp_path: Path, data: bytes) -> None:
    told: list[str] = []
    async with opened(tmp_path, told) as journal:
        await journal.create(NEW, change=Change(app=StateDelta({"a": 1})))
        path = tmp_path / ".raf/scopes/app/app.json"
        path.write_bytes(data)
        calls = (
            lambda: journal.load(KEY),
            lambda: journal.scoped_state(APP),
            lambda: journal.update_scoped_state(APP, StateDelta({"b": 1})),
            lambda: journal.append(
                KEY, batch("a"), change=Change(app=StateDelta({"b": 1}))
            ),
            lambda: journal.scopes("app"),
        )
        for call in calls:
            with pytest.raises(SessionDamagedError):
                await call()
        await journal.append(KEY, batch("b"))
        await journal.update_scoped_state(USER, StateDelta({"u": 1}))
        assert len(told) == 1, "told once that a change waits"
        assert await journal.expire() == ()
        assert len(told) == 2, "a sweep goes on"
    assert path.read_bytes() == data


async def test_keys_that_look_alike_have_files_of_their_own(tmp_path: Path) -> None:
    names = ("", "_", "app", "A", "a", "users", "..", "u/x", "長" * 170)
    async with opened(tmp_path) as journal:
        for n, name in enumerate(names):
            await journal.update_scoped_state(ScopeKey(name), StateDelta({"n": n}))
            scope = ScopeKey("app", name)
            await journal.update_scoped_state(scope, StateDelta({"n": -n}))
        for n, name in enumerate(names):
            assert (await journal.scoped_state(ScopeKey(name))).state == {"n": n}
            found = await journal.scoped_state(ScopeKey("app", name))
            assert found.state == {"n": -n}
        scopes = await journal.scopes("app")
        assert scopes == tuple(
            sorted([ScopeKey("app"), *(ScopeKey("app", x) for x in names)])
        )


async def test_many_sessions_of_one_user(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        keys = [SessionKey("app", "user", "", f"s{n}") for n in range(20)]
        for n, key in enumerate(keys):
            await journal.create(NewSession(key=key), change=user(**{f"k{n}": n}))
        expected = {f"k{n}": n for n in range(20)}
        assert (await journal.load(keys[0])).user_state == expected
        found = file_of(tmp_path)
        assert (found["counter"], found["outstanding"]) == (20, {})
