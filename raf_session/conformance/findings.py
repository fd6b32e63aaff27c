"""Looking for a capability: what a probe can tell without being told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from typing import Literal, TypeVar

import anyio
from anyio import to_thread
from typing_extensions import override

from raf_session.conformance.outcome import is_skip

__all__ = (
    "CannotTellError",
    "Finding",
    "elsewhere",
    "found",
    "look",
    "other_loop",
    "running_loop",
    "why_absent",
)

_H = TypeVar("_H")
_C = TypeVar("_C", bound=StrEnum)
_PATIENCE = 60.0


class CannotTellError(Exception):
    """A probe cannot tell whether the capability is there; the text says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What looking for one capability found."""

    result: Literal["found", "not found", "unknown"]
    detail: str = ""
    """What was in the way."""

    @override
    def __str__(self) -> str:
        return f"{self.result} ({self.detail})" if self.detail else self.result


async def look(
    harness: _H, probes: Mapping[_C, Callable[[_H], Awaitable[None]]]
) -> dict[_C, Finding]:
    """Try each probe: it returns where the capability is there, and raises if not."""
    return {
        name: await _tried(partial(probe, harness)) for name, probe in probes.items()
    }


async def _tried(probe: Callable[[], Awaitable[None]]) -> Finding:
    try:
        with anyio.fail_after(_PATIENCE):
            await probe()
    except CannotTellError as error:
        return Finding("unknown", str(error))
    except Exception as error:  # noqa: BLE001  (whatever it is, it is reported)
        return Finding("not found", _brief(error))
    except BaseException as error:
        if not is_skip(error):
            raise
        return Finding("unknown", _brief(error))
    return Finding("found")


def _brief(error: BaseException) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 100 else f"{text[:99]}…"


def found(findings: Mapping[_C, Finding]) -> frozenset[_C]:
    """Return the capabilities that looking found."""
    return frozenset(c for c, finding in findings.items() if finding.result == "found")


def why_absent(missing: Iterable[str]) -> str:
    """Return why a check that needs these capabilities is not run; empty for none."""
    names = " and ".join(sorted(missing))
    return f"needs {names}, not claimed" if names else ""


# Event loops ---------------------------------------------------------------------


def running_loop() -> str:
    """Return the event loop that is running: ``asyncio`` or ``trio``."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "trio"
    return "asyncio"


def other_loop() -> str:
    """Return the event loop that is not running."""
    return "trio" if running_loop() == "asyncio" else "asyncio"


async def elsewhere(call: Callable[[], Awaitable[None]], *, loop: str) -> None:
    """Run the call to its end in another thread, on an event loop of its own.

    Raises:
        CannotTellError: that event loop is not installed.
    """
    if find_spec(loop) is None:
        raise CannotTellError(f"{loop} is not installed")
    await to_thread.run_sync(partial(anyio.run, call, backend=loop))
