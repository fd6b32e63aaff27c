"""The names of the package: what is imported, when, and as type checkers see it."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import raf_session

SOURCE = Path(raf_session.__file__)


def declared() -> dict[str, str]:
    """Return the module of each name as the imports for type checkers have it."""
    tree = ast.parse(SOURCE.read_text("utf-8"))
    return {
        alias.name: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in raf_session.__all__
    }


def test_each_public_name_is_declared_for_type_checkers() -> None:
    assert declared().keys() == set(raf_session.__all__)


@pytest.mark.parametrize("name", raf_session.__all__)
def test_a_public_name_is_what_its_module_has(name: str) -> None:
    assert getattr(raf_session, name) is getattr(import_module(declared()[name]), name)
    assert name in vars(raf_session), "it is looked up once"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Sessions'"):
        raf_session.Sessions  # type: ignore[attr-defined]  # noqa: B018
    assert set(raf_session.__all__) <= set(dir(raf_session))


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    return done.stdout


def test_the_package_alone_imports_nothing_of_weight() -> None:
    heavy = run(
        "import sys, raf_session\n"
        "print(*sorted({'pydantic', 'anyio', 'sqlite3'} & sys.modules.keys()))"
    )
    assert heavy.split() == []


def test_sessions_import_no_service_no_journal_and_no_command_line() -> None:
    loaded = run(
        "import sys\n"
        "from raf_session import *\n"
        "print(*(n for n in sys.modules if n.startswith('raf_session.')))"
    ).split()
    rooms = {"journals", "service", "runner", "manager", "cli", "conformance"}
    assert [name for name in loaded if name.split(".")[1] in rooms] == []


def test_a_message_read_without_validation_makes_no_validator() -> None:
    assert run(
        "from raf_session import ChatMessage\n"
        "message = ChatMessage.from_openai({'role': 'user', 'content': 'hello'})\n"
        "print(message.to_openai(), ChatMessage.__pydantic_complete__)\n"
        "print(ChatMessage.user('hello') == message)"
    ).splitlines() == ["{'role': 'user', 'content': 'hello'} False", "True"]
