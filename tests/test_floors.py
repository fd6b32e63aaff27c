"""The package's layout: who may import whom."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import raf_session

ROOT = Path(raf_session.__file__).parent

FLOORS = [
    "errors clock _version",
    (
        "frozen json_text keys key_paths parts calls messages changes entries metadata "
        "options raf_json"
    ),
    (
        "prefix_match prefix_decoding _prefix_encoding prefix_evidence prefix_forms "
        "message_cause prefix_cause tools_cause prefix_explanation _prefix_py _prefix "
        "prefix request_shapes body_paths cache_positions prefix_comparison "
        "prefix_history provider_rules "
        "usage_reports diagnosis verdicts"
    ),
    "session defaults base_session store journal provider_state wrapper",
    (
        "_stored_py _stored _stored_heads_py _stored_heads _file_stamps_py "
        "_file_stamps encoding codecs expiry turns session_view agent_session "
        "session_replica journaled_session journals stores transfer"
    ),
    "graphemes state toolcalls validity filtering compaction tokens history",
    "summarizers attempts manager service runner",
    "conformance cli",
]
"""Floor by floor; a module imports from floors below and from its left on its own."""

RANK = {
    name: (floor, place)
    for floor, names in enumerate(FLOORS)
    for place, name in enumerate(names.split())
}


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room(parts: tuple[str, ...]) -> str:
    return parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The rooms of the package that this module imports from."""
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the floor"
            assert node.module is not None
            names = [node.module]
            if node.module == "raf_session":
                names = [f"raf_session.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        rooms.update(
            name.split(".")[1] for name in names if name.startswith("raf_session.")
        )
    return rooms


@pytest.mark.parametrize(
    "path", modules(), ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_module_imports_from_below_and_from_its_left(path: Path) -> None:
    here = room(path.relative_to(ROOT).parts)
    assert here in RANK, f"{here} has no place in FLOORS"
    for there in imported(path) - {here}:
        if here == "cli" and there not in RANK:
            continue  # public names of the package root
        if (here, there) == ("prefix_match", "prefix"):
            continue  # a pickled tracker revives as whichever twin answers then
        assert RANK[there] < RANK[here], f"{here} imports {there}"


def test_every_room_is_there() -> None:
    rooms = {room(path.relative_to(ROOT).parts) for path in modules()} | {
        "_prefix",
        "_stored",
        "_stored_heads",
        "_file_stamps",
    }
    assert rooms == set(RANK)


def test_journals_import_only_helpers_of_one_another() -> None:
    for path in (ROOT / "journals").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            module = node.module
            if module == "raf_session.journals":
                names = [alias.name for alias in node.names]
            elif module.startswith("raf_session.journals."):
                names = [module.removeprefix("raf_session.journals.")]
            else:
                continue
            assert all(name.startswith("_") for name in names), f"{path}: {names}"


def test_the_conformance_kit_imports_no_driver() -> None:
    for path in (ROOT / "conformance").glob("*.py"):
        rooms = imported(path)
        assert not rooms & {"journals", "stores"}, f"{path}: {rooms}"


IMPORT_EACH_FIRST = """
import importlib, os, sys
exec(sys.argv[1])
failed = []
for name in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(name, repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
sys.exit(bool(failed))
"""
"""A fork for each module, behind what the first argument imports."""

OTHERS = "import anyio, pydantic; pydantic.create_model('Any', field=(int, 0))"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("whole", [False, True], ids=["rooms", "modules"])
def test_each_module_can_be_imported_first(whole: bool) -> None:
    names = [
        f"raf_session.{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}"
        for path in modules()
        if "conformance" not in path.parts and "cli" not in path.parts
    ]
    before = "from raf_session import *"
    if not whole:
        before, names = OTHERS, sorted({".".join(n.split(".")[:2]) for n in names})
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EACH_FIRST, before, *names],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_public_names_are_sorted_and_real() -> None:
    names = raf_session.__all__
    assert list(names) == sorted(
        names, key=lambda n: (not n.isupper(), not n[0].isupper(), n)
    )
    assert all(hasattr(raf_session, name) for name in names)


def test_importing_the_package_loads_no_journal_and_no_command_line() -> None:
    script = (
        "import sys, raf_session; "
        "print([m for m in sys.modules if m.startswith('raf_session.') "
        "and ('journals.' in m or '.cli' in m or 'conformance' in m)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
