"""What starting costs: the import, and the first message of an empty store."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from benches.contenders import OURS_LABEL, Contender
from benches.contenders.ours import OurSession
from benches.corpus import numbered
from benches.figures import Figure
from benches.places import open_place
from benches.scope import Scope
from benches.timing import turned

__all__ = ("BASE", "USED", "check_lazy", "figures", "openings", "ours")

BASE = "pydantic and anyio"
USED = "from raf_session import ChatMessage, JournaledSession, open_journal"
_BASE_IMPORT = "from pydantic import BaseModel; import anyio"
_LATE = (
    *("sqlite3", "redis", "asyncpg", "asyncmy", "filelock", "typer"),
    *("raf_session.service", "raf_session.cli", "raf_session.conformance"),
    *("raf_session.journals.sqlite", "raf_session.journals.redis"),
)
"""What is imported on first use."""

_TOLD = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"


def _seconds(statement: str) -> float:
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [sys.executable, "-W", "ignore", "-c", _TOLD.format(statement)],
        capture_output=True,
        check=True,
        text=True,
    )
    return float(done.stdout.split()[-1])


def check_lazy() -> None:
    """Raise where importing this library imports what it shall import on first use."""
    told = "import sys, raf_session; print(*sys.modules)"
    done = subprocess.run(  # noqa: S603  (our own interpreter)
        [sys.executable, "-c", told], capture_output=True, check=True, text=True
    )
    early = set(_LATE) & set(done.stdout.split())
    assert not early, f"import raf_session imports {', '.join(sorted(early))}"


def _imports(statements: dict[str, str], rounds: int) -> list[Figure]:
    """Measure each statement in new processes, alternating, its files read before."""
    found = {name: Figure("import", "-", name, 1) for name in statements}
    for round_ in range(rounds + 1):
        for name in turned(list(statements), round_):
            seconds = _seconds(statements[name])
            if round_:
                found[name].values.append(seconds)
    return list(found.values())


def ours(rounds: int) -> list[Figure]:
    """Measure this library's import.

    Returns:
        It alone; with the names that a session needs; what everybody imports anyway.
    """
    check_lazy()
    own = {OURS_LABEL: OurSession.imports, USED: USED, BASE: _BASE_IMPORT}
    return _imports(own, rounds)


async def openings(cls: type[Contender], rounds: int) -> Figure:
    """Measure opening an empty store and storing the first message of a session."""
    figure = Figure("open, create, first append", cls.backend, cls.label, 1)
    for round_ in range(rounds + 1):
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            place = await stack.enter_async_context(
                open_place(cls.backend, Path(folder))
            )
            contender = cls(place)
            message = contender.message(numbered(0, 1)[0])
            started = time.perf_counter()
            await stack.enter_async_context(contender)
            await contender.append(await contender.create("s"), message)
            seconds = time.perf_counter() - started
            assert len(await contender.load("s")) == 1
        if round_:  # the first one imports
            figure.values.append(seconds)
    return figure


async def figures(scope: Scope) -> list[Figure]:
    """Measure imports of all libraries, and openings on every backend of the scope."""
    check_lazy()
    rounds = 1 if scope.quick else 7
    statements = {BASE: _BASE_IMPORT, USED: USED}
    for backend in scope.backends:
        for cls in scope.one_each(backend, "bytes"):
            ours = cls.label == OURS_LABEL
            name = cls.label if ours else f"{cls.label}: {cls.imports.split()[-1]}"
            statements[name] = cls.imports
    found = _imports(statements, rounds)
    for backend in scope.backends:
        for cls in scope.one_each(backend, "bytes"):
            found.append(await openings(cls, 1 if scope.quick else 5))
    return found
