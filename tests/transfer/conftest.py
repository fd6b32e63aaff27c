"""Every journal of the bindings, on an event loop that all of them know."""

from __future__ import annotations

import pytest
from journal_bindings import HARNESSES

from raf_session.conformance import JournalHarness


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=HARNESSES, ids=lambda harness: harness.name)
def harness(request: pytest.FixtureRequest) -> JournalHarness:
    bound: JournalHarness = request.param
    return bound
