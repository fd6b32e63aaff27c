"""Reads that trust no write, and writes that trust no read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from backdoors import MemoryBackdoor, sqlite_backdoor
from journal_bindings import BY_NAME
from typing_extensions import override

from raf_session.conformance import (
    BACKDOOR_CHECKS,
    JournalCheck,
    JournalHarness,
    requirement,
    run_journal_checks,
)
from raf_session.entries import Record
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey

pytestmark = pytest.mark.anyio

MEMORY = replace(BY_NAME["memory"], backdoor=MemoryBackdoor)
SQLITE = replace(BY_NAME["sqlite"], backdoor=sqlite_backdoor)


@pytest.mark.parametrize("check", BACKDOOR_CHECKS)
@pytest.mark.parametrize("harness", [MEMORY, SQLITE], ids=lambda bound: bound.name)
async def test_requirement(harness: JournalHarness, check: JournalCheck) -> None:
    await check(harness)


async def test_without_a_back_door_they_are_absent() -> None:
    outcomes = await run_journal_checks(BY_NAME["memory"], BACKDOOR_CHECKS)
    assert {outcome.result for outcome in outcomes} == {"absent"}
    assert {outcome.reason for outcome in outcomes} == {
        "needs a back door, and none is given"
    }


class ReadsAsWritten(MemoryJournal):
    """Trusts that rows were written in order, and hides one that cannot be read."""

    @override
    async def load(self, key: SessionKey, *args: Any, **options: Any) -> Record:
        kept = self._sessions.get(key)
        if kept is not None:
            kept.active = [row for row in kept.active if row.body.endswith("}")]
        return await super().load(key, *args, **options)


class LeavesTheArchive(MemoryJournal):
    """Deletes what can be read; the archive waits for the next session of the key."""

    @override
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        kept = self._sessions.get(key)
        gone = await super().delete(key, incarnation=incarnation)
        if gone and kept is not None and kept.archive:
            self._buried[key] = kept.archive
        return gone

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._buried: dict[SessionKey, Any] = {}


class BuriedBackdoor(MemoryBackdoor):
    def __init__(self, journal: Any) -> None:
        super().__init__(journal)
        self._buried = journal._buried

    @override
    async def rows(self, key: SessionKey) -> Sequence[Any]:
        return [*await super().rows(key), *self._buried.get(key, ())]


@pytest.mark.parametrize(
    ("harness", "name"),
    [
        (
            JournalHarness.transient("a", ReadsAsWritten, backdoor=MemoryBackdoor),
            "check_damage_is_told",
        ),
        (
            JournalHarness.transient("b", LeavesTheArchive, backdoor=BuriedBackdoor),
            "check_what_goes_leaves_no_row",
        ),
    ],
    ids=["hides damage", "leaves the archive"],
)
async def test_they_can_fail(harness: JournalHarness, name: str) -> None:
    outcomes = await run_journal_checks(harness, BACKDOOR_CHECKS)
    broken = [outcome.name for outcome in outcomes if outcome.result == "broken"]
    assert broken == [name]


def test_each_says_what_it_demands() -> None:
    assert all(requirement(check).endswith(".") for check in BACKDOOR_CHECKS)
