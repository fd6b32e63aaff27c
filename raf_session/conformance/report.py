"""`ConformanceReport`: what a run of the kit found, to be read and to be shown."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from raf_session._version import __version__
from raf_session.conformance.findings import (
    Finding,
    elsewhere,
    other_loop,
    running_loop,
    why_absent,
)
from raf_session.conformance.outcome import CheckOutcome, run_check

__all__ = ("ConformanceError", "ConformanceReport", "Kind", "report")

Kind = Literal["session", "store", "journal"]
_TRAITS: Mapping[Kind, str] = {
    "session": "ISession",
    "store": "ISessionStore",
    "journal": "Journal",
}
_LONGEST = 600


class ConformanceError(AssertionError):
    """An implementation breaks what it has to keep.

    Attributes:
        report: the whole run.
    """

    def __init__(self, report: ConformanceReport) -> None:
        self.report = report
        broken = report.broken
        counts = f"{len(broken)} of {len(report.ran)} requirements"
        trait = _TRAITS[report.kind]
        lines = [f"{report.name} breaks {counts} of {trait} on {report.loop}:"]
        for outcome in broken:
            lines += (
                f"- {outcome.name}: {outcome.requirement}",
                f"    {_why(outcome)}",
            )
        if not report.ran:
            lines.append("- no check was run")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """What became of every check of one kind."""

    kind: Kind
    name: str
    """The implementation, as its harness calls it."""
    outcomes: tuple[CheckOutcome, ...]
    claims: tuple[str, ...]
    """What was declared, or found where nothing was."""
    findings: Mapping[str, Finding]
    """What looking for each capability found."""
    loop: str = "asyncio"
    """The event loop of the run."""
    declared: bool = True
    """Whether the claims were declared, rather than found by looking."""

    def _those(self, result: str) -> tuple[CheckOutcome, ...]:
        return tuple(o for o in self.outcomes if o.result == result)

    @property
    def kept(self) -> tuple[CheckOutcome, ...]:
        """The checks that passed."""
        return self._those("kept")

    @property
    def broken(self) -> tuple[CheckOutcome, ...]:
        """The checks that failed, those that skipped themselves included."""
        return self._those("broken")

    @property
    def absent(self) -> tuple[CheckOutcome, ...]:
        """The checks that were not run, because nothing claims what they need."""
        return self._those("absent")

    @property
    def ran(self) -> tuple[CheckOutcome, ...]:
        """The checks that were run."""
        return tuple(o for o in self.outcomes if o.result != "absent")

    @property
    def ok(self) -> bool:
        """Whether something was run and all of it was kept; absent is not kept."""
        return bool(self.kept) and len(self.kept) == len(self.ran)

    def require(self) -> Self:
        """Return the report where it is ok.

        Raises:
            ConformanceError: it is not; the message names each broken requirement.
        """
        if not self.ok:
            raise ConformanceError(self)
        return self

    def plus(self, outcomes: Iterable[CheckOutcome]) -> ConformanceReport:
        """Return the report with further outcomes."""
        return ConformanceReport(
            self.kind,
            self.name,
            (*self.outcomes, *outcomes),
            self.claims,
            self.findings,
            self.loop,
            self.declared,
        )

    def _summary(self) -> str:
        return (
            f"{len(self.kept)} kept, {len(self.broken)} broken, "
            f"{len(self.absent)} absent; {self.loop}, "
            f"Python {platform.python_version()}, {platform.system()}."
        )

    def markdown(self) -> str:
        """Return the report as Markdown, for a README."""
        lines = [
            f"### {self.name}: {_TRAITS[self.kind]} of raf_session {__version__}",
            "",
            self._summary(),
            "",
            f"| capability | {'claimed' if self.declared else 'counted'} | looking |",
            "|---|---|---|",
        ]
        for name, finding in sorted(self.findings.items()):
            claimed = "yes" if name in self.claims else "no"
            lines.append(f"| {name} | {claimed} | {_cell(str(finding))} |")
        if self.broken:
            lines += ("", "Broken:", "")
            for outcome in self.broken:
                lines += (
                    f"- **{outcome.name}**: {outcome.requirement}",
                    f"  {_cell(_why(outcome))}",
                )
        if self.absent:
            lines += ("", "Absent:", "")
            for reason in dict.fromkeys(outcome.reason for outcome in self.absent):
                names = [o.name for o in self.absent if o.reason == reason]
                lines.append(f"- {reason}: {', '.join(names)}")
        return "\n".join(lines) + "\n"


async def report(
    kind: Kind,
    name: str,
    run: Callable[[], Awaitable[tuple[CheckOutcome, ...]]],
    claims: Collection[str],
    findings: Mapping[Any, Finding],
    *,
    declared: bool,
) -> ConformanceReport:
    """Run the checks here and, where trio is claimed, on the other event loop too."""

    async def check_the_other_event_loop() -> None:
        """On the other of asyncio and trio every requirement is kept as well."""
        broken: list[CheckOutcome] = []

        async def again() -> None:
            broken.extend(o for o in await run() if o.result == "broken")

        await elsewhere(again, loop=other_loop())
        told = "; ".join(f"{o.name}: {o.requirement} {_why(o)}" for o in broken)
        assert not broken, f"on {other_loop()} {len(broken)} are broken: {told}"

    outcomes = await run()
    reason = why_absent({"trio"} - set(claims))
    last = await run_check(
        check_the_other_event_loop,
        check_the_other_event_loop,
        applies=not reason,
        reason=reason,
    )
    return ConformanceReport(
        kind,
        name,
        (*outcomes, last),
        tuple(sorted(claims)),
        findings,
        running_loop(),
        declared,
    )


def _why(outcome: CheckOutcome) -> str:
    error: Any = outcome.error
    while isinstance(error, BaseExceptionGroup):
        error = cast("Any", error).exceptions[0]
    text = f"{type(error).__name__}: {error}".strip()
    if isinstance(error, AssertionError) and str(error):
        text = str(error)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
