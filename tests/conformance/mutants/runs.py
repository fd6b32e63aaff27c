"""Runs the checks on a mutant, and tells which of them trip."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import anyio

from mutants.harnesses import journal_harness, session_harness, store_harness
from mutants.registry import Kind
from raf_session.conformance import (
    BACKDOOR_CHECKS,
    JOURNAL_CHECKS,
    SESSION_CHECKS,
    SESSION_CORE_CHECKS,
    STORE_CHECKS,
    CheckOutcome,
    run_journal_checks,
)
from raf_session.conformance.session import run_session_check
from raf_session.conformance.store import run_store_check

__all__ = ("CHECK_NAMES", "tripped")

PATIENCE = 20
"""Seconds after which a check that waits is taken for one that trips."""

_Run = Callable[[], Awaitable[CheckOutcome]]


def _name(check: Callable[..., object]) -> str:
    return check.__name__.removeprefix("check_")


CHECK_NAMES: dict[Kind, tuple[str, ...]] = {
    "journal": tuple(map(_name, (*JOURNAL_CHECKS, *BACKDOOR_CHECKS))),
    "store": tuple(map(_name, STORE_CHECKS)),
    "session": tuple(map(_name, (*SESSION_CORE_CHECKS, *SESSION_CHECKS))),
}
"""Every check of the kit, by what it checks."""


def _runs(kind: Kind, cls: type) -> dict[str, _Run]:
    if kind == "journal":
        journal = journal_harness(cls)

        async def run(check: object) -> CheckOutcome:
            return (await run_journal_checks(journal, [check]))[0]  # type: ignore[list-item]

        return {
            _name(check): partial(run, check)
            for check in (*JOURNAL_CHECKS, *BACKDOOR_CHECKS)
        }
    if kind == "store":
        store = store_harness(cls)
        return {
            _name(check): partial(run_store_check, check, store)
            for check in STORE_CHECKS
        }
    session = session_harness(cls)
    return {
        _name(check): partial(run_session_check, check, session)
        for check in (*SESSION_CORE_CHECKS, *SESSION_CHECKS)
    }


def tripped(
    kind: Kind,
    cls: type,
    names: Iterable[str] | None = None,
    *,
    backend: str = "asyncio",
    seed: int = 0,
) -> dict[str, Exception]:
    """Return the checks that do not pass, with what they said."""
    random.seed(seed)
    runs = _runs(kind, cls)

    async def run() -> dict[str, Exception]:
        found: dict[str, Exception] = {}
        for name in runs if names is None else names:
            outcome = None
            with anyio.move_on_after(PATIENCE):
                outcome = await runs[name]()
            if outcome is None:
                found[name] = TimeoutError(f"no end after {PATIENCE} s")
            elif outcome.error is not None:
                found[name] = outcome.error
        return found

    return anyio.run(run, backend=backend)
