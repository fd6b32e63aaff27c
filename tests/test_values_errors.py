"""Every error is drawn in the tree, keeps its facts, and survives copy and pickle."""

from __future__ import annotations

import copy
import pickle
import re
from inspect import isclass

import pytest

from raf_session import errors
from raf_session.errors import (
    CopyMismatchError,
    DumpDamagedError,
    EntryConflictError,
    EntryTooLargeError,
    InvalidValueError,
    IsolationKeyError,
    JournalClosedError,
    SchemaVersionError,
    SessionDamagedError,
    SessionError,
    SessionExistsError,
    SessionNotFoundError,
    SnapshotUnavailableError,
    StaleSessionError,
    StateKeyMissingError,
    StorageBusyError,
    StorageError,
    StorageFullError,
    SummaryFailedError,
    UnknownSessionTypeError,
)

MADE: tuple[SessionError, ...] = (
    SessionError("plain"),
    InvalidValueError("a.b[0]", "is wrong"),
    InvalidValueError("", "is wrong"),
    SessionNotFoundError("u/s", "replaced"),
    SessionExistsError("u/s"),
    StaleSessionError("u/s", 1, 2, "a hint"),
    StaleSessionError("u/s", None, None),
    EntryConflictError("u/s", "e", "another body"),
    EntryTooLargeError("e", 10, 5),
    SessionDamagedError("u/s", "sqlite", "torn"),
    SchemaVersionError("sqlite", 2, 1),
    SnapshotUnavailableError("Mine"),
    UnknownSessionTypeError("Mine", ("AgentSession",)),
    IsolationKeyError(),
    CopyMismatchError("u/s", "2 entries", "1 entry"),
    CopyMismatchError("", "2 sessions", "1 session"),
    DumpDamagedError(3, "is not JSON"),
    StateKeyMissingError("user:name"),
    SummaryFailedError("timeout", "no answer within 5 seconds", None),
    StorageError("sqlite", "broken"),
    StorageFullError("sqlite", "full"),
    StorageBusyError("sqlite", "locked"),
    JournalClosedError("sqlite"),
)
LINE = re.compile(
    r"^(?P<bars>[│ ]*(?:[├└]── )?)(?P<name>\w+Error)\b(?: +\((?P<base>\w+)\))?"
)


def drawn() -> dict[str, set[str]]:
    """Read the tree of the module's docstring: name → names of the bases."""
    found: dict[str, set[str]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = LINE.match(line.removeprefix("    "))
        if match is None or not (match["bars"] or match["name"] == "SessionError"):
            continue
        depth = len(match["bars"]) // 4
        path[depth:] = [match["name"]]
        bases = {path[depth - 1]} if depth else {"Exception"}
        found[match["name"]] = bases | ({match["base"]} if match["base"] else set())
    return found


def test_the_tree_is_the_one_that_is_drawn() -> None:
    real = {
        cls.__name__: {base.__name__ for base in cls.__bases__}
        for cls in vars(errors).values()
        if isclass(cls) and issubclass(cls, Exception)
    }
    assert drawn() == real
    assert sorted(real) == sorted(errors.__all__)


def test_every_class_is_made_here() -> None:
    assert {type(error).__name__ for error in MADE} == set(errors.__all__)


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_an_error_survives_copy_and_pickle(error: SessionError) -> None:
    for again in (
        copy.copy(error),
        copy.deepcopy(error),
        *(
            pickle.loads(pickle.dumps(error, protocol))  # noqa: S301
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
        ),
    ):
        assert type(again) is type(error)
        assert vars(again) == vars(error)
        assert str(again) == str(error)
        assert repr(again) == repr(error)
        assert again.args == error.args


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_an_error_tells_its_facts(error: SessionError) -> None:
    text = type(error).__doc__ or ""
    documented = re.findall(r"^        (\w+): ", text, re.MULTILINE)
    for name in documented:
        assert hasattr(error, name), name
    text = str(error)
    assert text
    for name, fact in vars(error).items():
        if isinstance(fact, str) and fact and name != "member":
            assert fact in text, name


def test_each_refines_a_builtin() -> None:
    for error in MADE[1:]:
        builtin = [c for c in type(error).__mro__ if c.__module__ == "builtins"]
        assert builtin[0] is not Exception, error
