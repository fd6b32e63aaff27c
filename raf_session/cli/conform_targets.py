"""What ``raf-session conform`` checks: where it is, what it is, what became of it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import anyio
import typer
from typing_extensions import get_protocol_members

from raf_session.cli.faults import Fault
from raf_session.conformance import (
    CheckOutcome,
    ConformanceReport,
    JournalHarness,
    SessionHarness,
    StoreHarness,
    report_journal,
    report_session,
    report_store,
)
from raf_session.conformance.binding import (
    journal_harness,
    session_harness,
    store_harness,
)
from raf_session.conformance.report import Kind
from raf_session.journal import Journal
from raf_session.session import SessionCore
from raf_session.store import ISessionStore

__all__ = ("conform", "find_target", "kind_of")

_HARNESSES: dict[Kind, type[Any]] = {
    "journal": JournalHarness,
    "store": StoreHarness,
    "session": SessionHarness,
}
_TRAITS: dict[Kind, type[Any]] = {
    "journal": Journal,
    "store": ISessionStore,
    "session": SessionCore,
}
_REPORTS: dict[Kind, Callable[..., Any]] = {
    "journal": report_journal,
    "store": report_store,
    "session": report_session,
}
_BINDINGS: dict[Kind, Callable[..., Any]] = {
    "journal": journal_harness,
    "store": store_harness,
    "session": session_harness,
}
_LOOPS = ("asyncio", "trio")
_HISTORIES = "random_histories"
_DEMANDED = "After any history all that can be read is as in a model."
_MACHINES: dict[Kind, tuple[str, str]] = {
    "journal": ("journal_histories", "run_journal_machine"),
    "store": ("store_machine", "run_store_machine"),
    "session": ("session_machine", "run_session_machine"),
}


def find_target(place: str) -> Any:
    """Return what ``module:name`` names; the working directory is looked into first.

    Raises:
        Fault: there is no such module or name, or importing it fails.
    """
    module_name, _, name = place.partition(":")
    if not module_name or not name:
        raise Fault(place, "write module:name")
    sys.path.insert(0, str(Path.cwd()))
    try:
        target: Any = import_module(module_name)
        for part in name.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise Fault(place, str(error)) from error
    finally:
        sys.path.pop(0)
    return target


def kind_of(target: Any, place: str) -> tuple[Kind, Any]:
    """Tell what a target is, and return it or the harness that it makes.

    A harness; a class, by its members; a function, by what it returns without
    arguments: a harness, or a session, store or journal.

    Raises:
        Fault: it is none of these.
    """
    for kind, harness in _HARNESSES.items():
        if isinstance(target, harness):
            return kind, target
    if isinstance(target, type):
        for kind, trait in _TRAITS.items():
            if all(hasattr(target, n) for n in _callables(trait)):
                return kind, target
        raise Fault(place, "the class is no session, store or journal")
    if inspect.iscoroutinefunction(target):
        return "session", target
    if not callable(target):
        raise Fault(place, f"{type(target).__name__} makes nothing")
    try:
        made: Any = target()
    except TypeError as error:
        raise Fault(place, f"called without arguments: {error}") from error
    for kind, harness in _HARNESSES.items():
        if isinstance(made, harness):
            return kind, made
        if isinstance(made, _TRAITS[kind]):
            return kind, target
    raise Fault(place, f"it makes {type(made).__name__}, no session, store or journal")


def _callables(trait: type[Any]) -> list[str]:
    """Return the members of a trait that its classes have: attributes may come late."""
    return [
        name
        for name in get_protocol_members(trait)
        if callable(getattr(trait, name, None))
    ]


def _histories(kind: Kind, harness: Any, loop: str) -> CheckOutcome:
    """Drive it through random histories, where hypothesis is there to draw them."""
    if find_spec("hypothesis") is None:
        reason = "needs hypothesis, not installed"
        return CheckOutcome(_HISTORIES, _DEMANDED, "absent", reason=reason)
    module, function = _MACHINES[kind]
    run = getattr(import_module(f"raf_session.conformance.{module}"), function)
    try:
        run(harness, backend=loop)
    except Exception as error:  # noqa: BLE001  (whatever it is, it is reported)
        return CheckOutcome(_HISTORIES, _DEMANDED, "broken", error)
    return CheckOutcome(_HISTORIES, _DEMANDED, "kept")


def conform(place: str, *, name: str | None, loop: str) -> bool:
    """Check what the place names, print the report, and tell whether all is kept.

    Args:
        place: ``module:name``.
        name: what the report calls it; `None`: as its harness does.
        loop: the event loop to run on.

    Raises:
        Fault: there is nothing to check, or no such event loop.
    """
    kind, target = kind_of(find_target(place), place)
    if loop not in _LOOPS or find_spec(loop) is None:
        raise Fault("--loop", f"{loop!r} is not one of those installed")
    run = partial(_REPORTS[kind], target, name=name)
    report = cast("ConformanceReport", anyio.run(run, backend=loop))
    bound = _BINDINGS[kind](target, name)
    harness = replace(bound, capabilities=frozenset(report.claims))
    report = report.plus([_histories(kind, harness, loop)])
    typer.echo(report.markdown(), nl=False)
    return report.ok
