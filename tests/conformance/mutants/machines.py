"""Runs the state machine of its kind on a mutant, and tells the steps that it took."""

from __future__ import annotations

from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from mutants.harnesses import journal_harness, session_harness, store_harness
from mutants.registry import Mutant
from raf_session.conformance.journal_machine import JournalMachine
from raf_session.conformance.session_machine import SessionMachine
from raf_session.conformance.store_machine import StoreMachine

__all__ = ("counter_example",)

_HARNESSES: dict[str, Any] = {
    "journal": journal_harness,
    "session": session_harness,
    "store": store_harness,
}
_MACHINES: dict[str, Any] = {
    "journal": JournalMachine,
    "session": SessionMachine,
    "store": StoreMachine,
}


def counter_example(
    mutant: Mutant, *, number: int, shrink: bool, histories: int, steps: int
) -> list[str] | None:
    """Return the steps at which a mutant differs from its model; `None`: it did not.

    Args:
        mutant: whose machine is run.
        number: the seed.
        shrink: whether to look for the shortest ones.
        histories: how many to try.
        steps: how long each may be.
    """
    tried = settings(
        max_examples=histories,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
    )
    with start_blocking_portal() as portal:
        machine = seed(number)(_bound(mutant, portal))
        try:
            run_state_machine_as_test(machine, settings=tried)
        except Exception as error:  # noqa: BLE001  (whatever the mutant raises)
            return _steps(error)
    return None


def _bound(mutant: Mutant, portal: BlockingPortal) -> type[RuleBasedStateMachine]:
    harness = _HARNESSES[mutant.kind](mutant.cls)
    base: type[RuleBasedStateMachine] = _MACHINES[mutant.kind]

    class Bound(base):  # type: ignore[valid-type, misc]
        def __init__(self) -> None:
            super().__init__(harness, portal)

    return Bound


def _steps(error: BaseException) -> list[str]:
    lines = [
        line for note in getattr(error, "__notes__", ()) for line in note.splitlines()
    ]
    calls = [line.split("state.", 1)[1] for line in lines if "state." in line]
    left_out = ("teardown(", "everything_is_as_in_the_model(")
    return [call for call in calls if not call.startswith(left_out)]
