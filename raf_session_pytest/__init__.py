"""The pytest plugin of `raf_session.conformance`.

It stands outside the package, so that loading it imports nothing but pytest: a suite
that does not use the kit pays for neither pydantic nor hypothesis.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any, Final

import pytest

_KIT: Final = "raf_session.conformance"
_MARK: Final = "raf_session_contract"
_EXCUSES: Final = ("absent: ",)
_COUNTED: Final = {
    "passed": "kept",
    "failed": "broken",
    "error": "broken",
    "xfailed": "known to fail",
    "skipped": "absent",
}

if _KIT not in sys.modules:
    pytest.register_assert_rewrite(_KIT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count what a contract keeps; what is claimed and skipped has failed."""
    report = yield
    cls: Any = getattr(item, "cls", None)
    name = getattr(cls, _MARK, None)
    if name is None or item.originalname not in cls.requirements:  # type: ignore[attr-defined]
        return report
    if report.when == "setup":
        item.user_properties.append((_MARK, f"{cls.__name__} [{name()}]"))
        report.user_properties = list(item.user_properties)
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = _reason(report)
        if not reason.startswith(_EXCUSES):
            report.outcome = "failed"
            report.longrepr = f"claimed, but skipped: {reason}"
    return report


def _reason(report: pytest.TestReport) -> str:
    longrepr = report.longrepr
    text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return text.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print, for each contract, how much is kept, broken, known to fail and absent."""
    lines: dict[str, dict[str, int]] = {}
    details: dict[str, dict[str, int]] = {}
    for outcome, word in _COUNTED.items():
        for report in terminalreporter.stats.get(outcome, ()):
            contract = dict(getattr(report, "user_properties", ())).get(_MARK)
            if contract is None:
                continue
            counts = lines.setdefault(contract, dict.fromkeys(_COUNTED.values(), 0))
            counts[word] += 1
            if word in {"absent", "known to fail"}:
                told = (
                    _reason(report)
                    if word == "absent"
                    else f"known to fail: {report.wasxfail}"
                )
                reasons = details.setdefault(contract, {})
                reasons[told] = reasons.get(told, 0) + 1
    if lines:
        terminalreporter.section("raf_session conformance")
    for contract, counts in sorted(lines.items()):
        told = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
        terminalreporter.write_line(f"{contract}: {told}")
        for reason, n in sorted(details.get(contract, {}).items()):
            terminalreporter.write_line(f"    {reason} ({n})")
