"""What becomes of a check."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import override

__all__ = ("CheckOutcome", "requirement", "run_check")


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

    @override
    def __str__(self) -> str:
        line = f"{self.result:6} {self.name}: {self.requirement}"
        return line if self.error is None else f"{line}\n       {self.error!r}"


def requirement(check: Callable[..., Any]) -> str:
    """Return what a check demands, in one line."""
    return (check.__doc__ or "").strip().split("\n")[0]


async def run_check(
    check: Callable[..., Any], run: Callable[[], Awaitable[None]], *, applies: bool
) -> CheckOutcome:
    """Run one check, if it applies, and return what became of it."""
    name, demanded = check.__name__, requirement(check)
    if not applies:
        return CheckOutcome(name, demanded, "absent")
    try:
        await run()
    except Exception as error:  # noqa: BLE001  (whatever it is, it is reported)
        return CheckOutcome(name, demanded, "broken", error)
    return CheckOutcome(name, demanded, "kept")
