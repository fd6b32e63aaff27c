"""The append step by step, as it goes where the server's procedure is not to be had."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from mysql_databases import ask, database
from typing_extensions import override

from raf_session.conformance import (
    JOURNAL_CHECKS,
    Capability,
    JournalHarness,
    JournalOpener,
    journal_append,
    journal_cancellation,
    journal_identity,
)
from raf_session.journals._mysql_routine import ROUTINES
from raf_session.journals._sql_runner import Runner
from raf_session.journals.mysql import MysqlJournal

pytestmark = pytest.mark.anyio

MODULES: tuple[ModuleType, ...] = (
    journal_append,
    journal_cancellation,
    journal_identity,
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Stepwise(MysqlJournal):
    """A journal that calls no procedure."""

    @override
    async def _prepare(self, runner: Runner) -> None:
        await super()._prepare(runner)
        self._missing.update(ROUTINES)


@asynccontextmanager
async def emptied(url: str) -> AsyncGenerator[JournalOpener]:
    opener: Any = partial(Stepwise, url)
    try:
        yield opener
    finally:
        await ask(url, "DELETE FROM raf_heads", "DELETE FROM raf_scopes")


CHECKS = [
    check
    for check in JOURNAL_CHECKS
    if check.__module__ in {module.__name__ for module in MODULES}
]


@pytest.mark.slow
async def test_the_contract_holds_step_by_step() -> None:
    assert len(CHECKS) >= 30
    async with database() as url:
        await MysqlJournal(url).migrate()
        harness = JournalHarness(
            "stepwise", partial(emptied, url), frozenset({Capability.SHARED})
        )
        for check in CHECKS:
            await check(harness)
