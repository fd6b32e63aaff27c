"""What becomes of a check."""

from __future__ import annotations

import unittest
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import override

__all__ = ("CheckOutcome", "is_skip", "requirement", "run_check")


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What became of one check."""

    name: str
    """The name of the check."""
    requirement: str
    """What it demands, in one line."""
    result: Literal["kept", "broken", "absent"]
    """Absent: what the check needs is not claimed, so it was not run."""
    error: Exception | None = None
    """What it raised, where it is broken."""
    reason: str = ""
    """Why it is absent."""

    @override
    def __str__(self) -> str:
        line = f"{self.result:6} {self.name}: {self.requirement}"
        if self.error is not None:
            return f"{line}\n       {self.error!r}"
        return f"{line} ({self.reason})" if self.reason else line


def requirement(check: Callable[..., Any]) -> str:
    """Return what a check demands, in one line."""
    return (check.__doc__ or "").strip().split("\n")[0]


def is_skip(error: BaseException) -> bool:
    """Tell whether a test framework raised this to leave a test out."""
    return isinstance(error, unittest.SkipTest) or any(
        base.__module__ == "_pytest.outcomes" and type(error).__name__ == "Skipped"
        for base in type(error).__mro__
    )


async def run_check(
    check: Callable[..., Any],
    run: Callable[[], Awaitable[None]],
    *,
    applies: bool,
    reason: str = "",
) -> CheckOutcome:
    """Run one check, if it applies, and return what became of it.

    A check that skips itself, or whose harness does, is broken: it was claimed.

    Args:
        check: the check, for its name and docstring.
        run: runs it.
        applies: whether what it needs is claimed.
        reason: why it does not apply.
    """
    name, demanded = check.__name__, requirement(check)
    if not applies:
        return CheckOutcome(name, demanded, "absent", reason=reason)
    try:
        await run()
    except Exception as error:  # noqa: BLE001  (whatever it is, it is reported)
        return CheckOutcome(name, demanded, "broken", error)
    except BaseException as error:
        if not is_skip(error):
            raise
        skipped = AssertionError(f"claimed, but skipped: {error}")
        skipped.__cause__ = error
        return CheckOutcome(name, demanded, "broken", skipped)
    return CheckOutcome(name, demanded, "kept")
