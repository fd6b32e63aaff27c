"""`JournalContract`, `StoreContract`, `SessionContract`: pytest classes to subclass.

::

    class TestMine(JournalContract):
        harness = JournalHarness.transient("mine", MyJournal)

Each requirement is a test of its own, on each event loop that is claimed.  What is not
claimed is skipped with its reason.  A test that is replaced is refused; what is known
to fail says so: ``test_scan_filters = xfail(reason="…")``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, cast

import anyio
import pytest
from typing_extensions import override

from raf_session.conformance.backdoor_checks import BACKDOOR_CHECKS
from raf_session.conformance.binding import (
    Harness,
    journal_harness,
    session_harness,
    store_harness,
)
from raf_session.conformance.findings import found, look
from raf_session.conformance.journal import (
    JOURNAL_CHECKS,
    journal_absence,
    run_journal_check,
)
from raf_session.conformance.journal_probes import JOURNAL_PROBES
from raf_session.conformance.outcome import CheckOutcome, is_skip, requirement
from raf_session.conformance.session import (
    SESSION_CHECKS,
    SESSION_CORE_CHECKS,
    run_session_check,
    session_absence,
)
from raf_session.conformance.session_probes import SESSION_PROBES
from raf_session.conformance.store import STORE_CHECKS, run_store_check, store_absence
from raf_session.conformance.store_probes import STORE_PROBES

__all__ = (
    "ABSENT",
    "Contract",
    "JournalContract",
    "SessionContract",
    "StoreContract",
    "xfail",
)

ABSENT: Final = "absent: "
"""How the reason of a skip begins that is no failure."""

_Test: TypeAlias = Callable[[Any, str], None]


@dataclass(frozen=True, slots=True)
class _KnownFailure:
    reason: str


def xfail(*, reason: str) -> Any:
    """Return what may stand in the place of a test: it runs, and is known to fail.

    It shows in every report; when it passes it fails, so that it is taken away.

    Raises:
        ValueError: the reason is empty.
    """
    if not reason.strip():
        raise ValueError("xfail needs a reason")
    return _KnownFailure(reason)


class Contract(ABC):
    """What the three have in common; subclass one of them."""

    harness: ClassVar[Any]
    """The harness; or a class or function that makes what is tested."""

    requirements: ClassVar[Mapping[str, _Test]] = MappingProxyType({})
    """Every test by name; none of them can be replaced."""
    absences: ClassVar[Mapping[str, Callable[[Any], str]]] = MappingProxyType({})
    """Why a test does not apply to a harness; empty where it does."""

    _known: ClassVar[dict[str, _Test]] = {}
    _looked: ClassVar[Harness | None] = None

    @override
    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a subclass that replaces a test.

        Raises:
            TypeError: it does, with the name.
        """
        super().__init_subclass__(**options)
        cls._known, cls._looked = dict(cls._known), None
        for name, mark in tuple(vars(cls).items()):
            if isinstance(mark, _KnownFailure):
                if name not in cls.requirements:
                    raise TypeError(f"{cls.__name__}.{name}: there is no such test")
                cls._known[name] = _marked(cls.requirements[name], mark.reason)
                setattr(cls, name, cls._known[name])
        cls.refuse_replaced()

    @classmethod
    def refuse_replaced(cls) -> None:
        """Raise `TypeError` where a test is not the kit's own any more."""
        for name, test in cls.requirements.items():
            if getattr(cls, name, None) is not cls._known.get(name, test):
                raise TypeError(
                    f"{cls.__name__}.{name} replaces a requirement "
                    f"({requirement(test)}) and would hide whether it is kept; where "
                    f'it is known to fail write {name} = xfail(reason="…")'
                )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test the event loops on which it has to hold."""
        cls = type(self)
        cls.refuse_replaced()
        if metafunc.function.__name__ in cls.requirements:
            metafunc.parametrize("loop", self._loops(metafunc.function.__name__))

    @classmethod
    def _loops(cls, name: str) -> list[str]:
        harness = cls._given()
        if harness is None:
            return ["asyncio", "trio"] if find_spec("trio") else ["asyncio"]
        if cls.absences[name](harness) or "trio" not in harness.capabilities:
            return ["asyncio"]
        return ["asyncio", "trio"]

    @classmethod
    def _given(cls) -> Harness | None:
        """Return the harness that declares something, `None` for another target."""
        target: Any = getattr(cls, "harness", None)
        if target is None:
            raise TypeError(f"{cls.__name__} has no harness")
        return target if isinstance(target, Harness) else None

    @classmethod
    @abstractmethod
    def look(cls) -> Harness:
        """Return a harness of a target without one, which claims what is found."""

    @classmethod
    def bound(cls) -> Harness:
        """Return the harness; what declares nothing claims what looking finds."""
        harness = cls._given() or cls._looked
        if harness is None:
            harness = cls._looked = cls.look()
        return harness

    @classmethod
    def raf_session_contract(cls) -> str:
        """Return what reports call the implementation; the plugin asks for it."""
        return cls.bound().name

    def require(self, name: str, loop: str, run: _Test, demanded: str) -> None:
        """Run one requirement on one event loop, or skip it with the reason."""
        harness = self.bound()
        reason = self.absences[name](harness)
        if not reason and loop == "trio" and "trio" not in harness.capabilities:
            reason = "needs trio, not found by looking"
        if reason:
            pytest.skip(f"{ABSENT}{reason}")
        try:
            run(harness, loop)
        except BaseException as error:
            if is_skip(error):
                raise AssertionError(f"claimed, but skipped: {error}") from error
            error.add_note(f"{harness.name} breaks a requirement: {demanded}")
            raise


def _marked(test: _Test, reason: str) -> _Test:
    def known_to_fail(self: Any, loop: str) -> None:
        test(self, loop)

    known_to_fail.__name__, known_to_fail.__doc__ = test.__name__, test.__doc__
    return cast("_Test", pytest.mark.xfail(reason=reason, strict=True)(known_to_fail))


def _test(name: str, doc: str, run: _Test) -> _Test:
    def test(self: Contract, loop: str) -> None:
        self.require(name, loop, run, doc)

    test.__name__, test.__qualname__, test.__doc__ = name, name, doc
    return test


def _check(check: Any, run_one: Callable[..., Awaitable[CheckOutcome]]) -> _Test:
    def run(harness: Any, loop: str) -> None:
        outcome = anyio.run(run_one, check, harness, backend=loop)
        if outcome.error is not None:
            raise outcome.error

    return _test(_name(check), requirement(check), run)


def _name(check: Callable[..., Any]) -> str:
    return f"test_{check.__name__.removeprefix('check_')}"


def _drawn(name: str, doc: str, module: str, function: str) -> _Test:
    """Return a test that needs hypothesis."""

    def run(harness: Any, loop: str) -> None:
        drive = getattr(import_module(f"{__package__}.{module}"), function)
        drive(harness, backend=loop)

    return _test(name, doc, run)


def _no_hypothesis(harness: object) -> str:
    del harness
    return "" if find_spec("hypothesis") else "needs hypothesis, not installed"


_HISTORIES: Final = "After any history all that can be read is as in a model."
_VALUES: Final = "Whatever value is given comes back as it was."


def _fill(
    cls: type[Contract],
    kind: str,
    checks: Sequence[Any],
    run_one: Callable[..., Awaitable[CheckOutcome]],
    absence: Callable[..., str],
) -> None:
    """Give the contract a test for each check, and two that draw what they try."""
    machine = "journal_histories" if kind == "journal" else f"{kind}_machine"
    drawn = (
        _drawn("test_random_histories", _HISTORIES, machine, f"run_{kind}_machine"),
        _drawn("test_any_value", _VALUES, "any_values", f"run_{kind}_values"),
    )
    tests = {_name(check): _check(check, run_one) for check in checks}
    absences: dict[str, Callable[[Any], str]] = {
        _name(check): partial(absence, check) for check in checks
    }
    for test in drawn:
        tests[test.__name__], absences[test.__name__] = test, _no_hypothesis
    cls.requirements, cls.absences = MappingProxyType(tests), MappingProxyType(absences)
    for name, test in tests.items():
        setattr(cls, name, test)


class SessionContract(Contract):
    """Every requirement of a session; give a `SessionHarness`, or what makes one."""

    @classmethod
    @override
    def look(cls) -> Harness:
        harness = session_harness(cls.harness, cls.__name__)
        findings = anyio.run(look, harness, SESSION_PROBES)
        return replace(harness, capabilities=found(findings))


class StoreContract(Contract):
    """Every requirement of a store; give a `StoreHarness`, or what makes stores."""

    @classmethod
    @override
    def look(cls) -> Harness:
        harness = store_harness(cls.harness, cls.__name__)
        findings = anyio.run(look, harness, STORE_PROBES)
        return replace(harness, capabilities=found(findings))


class JournalContract(Contract):
    """Every requirement of a journal; give a `JournalHarness`, or its class."""

    @classmethod
    @override
    def look(cls) -> Harness:
        harness = journal_harness(cls.harness, cls.__name__)
        findings = anyio.run(look, harness, JOURNAL_PROBES)
        return replace(harness, capabilities=found(findings))


_fill(
    SessionContract,
    "session",
    (*SESSION_CORE_CHECKS, *SESSION_CHECKS),
    run_session_check,
    session_absence,
)
_fill(StoreContract, "store", STORE_CHECKS, run_store_check, store_absence)
_fill(
    JournalContract,
    "journal",
    (*JOURNAL_CHECKS, *BACKDOOR_CHECKS),
    run_journal_check,
    journal_absence,
)
