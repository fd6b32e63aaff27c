"""The kit can fail: each mutant is caught by its check, and each check by a mutant.

Under the nightly profile each is tried with 20 seeds, and every check is run on it.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from mutants import MUTANTS, Mutant
from mutants.harnesses import journal_harness, session_harness, store_harness
from mutants.machines import counter_example
from mutants.registry import Kind
from mutants.runs import CHECK_NAMES, tripped
from mutants.scaffolds import BareSession, Bodied, Colliding, ListSession, Ruled, Skewed

from raf_session.agent_session import AgentSession
from raf_session.conformance.any_values import (
    run_journal_values,
    run_session_values,
    run_store_values,
)
from raf_session.journals.memory import MemoryJournal
from raf_session.stores import SessionStore

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
SEEDS = range(20) if NIGHTLY else range(2)
BACKENDS = ("asyncio", "trio")
FEW = 8
LINES = 15
LEAST: dict[Kind, int] = {"journal": 40, "store": 13, "session": 13}
WITHOUT_MUTANT: dict[str, str] = {}
"""Checks that need none, with the reason."""
CLUMSY = (AttributeError, NameError, TypeError)
"""Errors that tell of a mutant that was written badly, not of its fault."""


def _id(value: object) -> str:
    return f"{value.kind}-{value.name}" if isinstance(value, Mutant) else str(value)


each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=_id)


@each_mutant
def test_its_check_catches_it(mutant: Mutant) -> None:
    names = [mutant.check, *mutant.also]
    for seed in SEEDS:
        found = tripped(
            mutant.kind, mutant.cls, names, backend=BACKENDS[seed % 2], seed=seed
        )
        assert sorted(found) == sorted(names), f"with seed {seed}"
        clumsy = [error for error in found.values() if isinstance(error, CLUMSY)]
        assert not clumsy


def test_each_is_one_fault_in_few_lines() -> None:
    long = [m.name for m in MUTANTS if m.changed_lines > LINES]
    unnamed = [m.name for m in MUTANTS if not m.fault or "\n" in m.fault]
    names = {kind: {*checks} for kind, checks in CHECK_NAMES.items()}
    unknown = [m.name for m in MUTANTS if not {m.check, *m.also} <= names[m.kind]]
    assert (long, unnamed, unknown) == ([], [], [])


@pytest.mark.slow
@each_mutant
def test_few_other_checks_trip(mutant: Mutant) -> None:
    others = tripped(mutant.kind, mutant.cls).keys() - {mutant.check, *mutant.also}
    assert len(others) <= FEW or mutant.wide, sorted(others)


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.machine], ids=_id)
def test_the_machine_catches_it(mutant: Mutant) -> None:
    for number in SEEDS if NIGHTLY else range(1):
        found = counter_example(
            mutant, number=number, shrink=False, histories=75, steps=25
        )
        assert found is not None, f"with seed {number}"


def test_the_properties_catch_what_does_not_come_back() -> None:
    cut: dict[tuple[str, str], Any] = {(m.kind, m.name): m.cls for m in MUTANTS}
    tried = settings(
        max_examples=300,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError):
        run_journal_values(journal_harness(cut["journal", "SortsKeys"]), tried)
    with pytest.raises(AssertionError):
        run_session_values(session_harness(cut["session", "FlattensParts"]), tried)
    with pytest.raises(AssertionError):
        run_store_values(store_harness(cut["store", "DropsProviderStates"]), tried)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("kind", "cls"),
    [
        *(
            ("journal", cls)
            for cls in (MemoryJournal, Bodied, Colliding, Ruled, Skewed)
        ),
        ("store", SessionStore),
        *(("session", cls) for cls in (AgentSession, BareSession, ListSession)),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_they_are_made_of_passes(kind: Kind, cls: type, backend: str) -> None:
    assert tripped(kind, cls, backend=backend) == {}


@pytest.mark.parametrize("kind", CHECK_NAMES)
def test_every_check_has_a_mutant(kind: Kind) -> None:
    caught = {
        name for m in MUTANTS if m.kind == kind for name in (m.check, *m.also)
    } | WITHOUT_MUTANT.keys()
    assert set(CHECK_NAMES[kind]) - caught == set()


def test_there_are_enough() -> None:
    counts = Counter(mutant.kind for mutant in MUTANTS)
    assert all(counts[kind] >= least for kind, least in LEAST.items())
    assert 3 * sum(mutant.reported for mutant in MUTANTS) >= len(MUTANTS)
    names = Counter((mutant.kind, mutant.name) for mutant in MUTANTS)
    assert max(names.values()) == 1
