"""Files that changed: what is compiled and what is in Python find the same ones."""

# `os.stat` is what the stamps are by.
# ruff: noqa: PTH116

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session import _file_stamps_py

EXTENSION = "raf_session._file_stamps"
Stamp = tuple[int, int, int, str]
Act = Callable[[Path], None]


@pytest.fixture(scope="module")
def twins(request: pytest.FixtureRequest) -> tuple[ModuleType, ...]:
    if find_spec(EXTENSION) is None:
        if request.config.getoption("--require-ext"):
            pytest.fail(f"{EXTENSION} was not built")
        return (_file_stamps_py,)
    return _file_stamps_py, import_module(EXTENSION)


def stamp_of(path: str) -> Stamp:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns, "and more"


def fill(folder: Path, names: list[str]) -> dict[str, Stamp | None]:
    seen: dict[str, Stamp | None] = {}
    for name in names:
        path = f"{folder}/{name}"
        Path(path).write_text(name, errors="surrogateescape")
        seen[path] = stamp_of(path)
    return seen


# What happens to a file --------------------------------------------------------------


def dated(path: Path, changed_ns: int) -> None:
    os.utime(path, ns=(changed_ns, changed_ns))


def read(path: Path) -> None:
    path.read_bytes()


def put_behind_a_link(path: Path) -> None:
    there = path.with_suffix(".there")
    path.replace(there)
    path.symlink_to(there.name)


def grow(path: Path) -> None:
    """Add to it, and date it as before."""
    changed_ns = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes() + b"x")
    dated(path, changed_ns)


def touch_by(nanoseconds: int) -> Act:
    return lambda path: dated(path, path.stat().st_mtime_ns + nanoseconds)


def replace(path: Path) -> None:
    """Put another file of the same size and date in its place."""
    other = path.with_suffix(".other")
    other.write_bytes(path.read_bytes())
    dated(other, path.stat().st_mtime_ns)
    other.replace(path)


def remove(path: Path) -> None:
    path.unlink()


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


SAME: Final[tuple[Act, ...]] = (read, put_behind_a_link)
OTHER: Final[tuple[Act, ...]] = (
    *(grow, replace, remove, link_to_itself),
    *(touch_by(1), touch_by(-1), touch_by(1_000_000_000)),
)


@given(
    st.integers(1, 12),
    st.dictionaries(st.integers(0, 1 << 16), st.sampled_from(SAME + OTHER), max_size=9),
    st.sets(st.integers(0, 1 << 16), max_size=3),
    st.sampled_from(["", "täglich"]),
)
def test_twins_find_the_files_that_changed(
    twins: tuple[ModuleType, ...],
    count: int,
    acts: dict[int, Act],
    unknown: set[int],
    inner: str,
) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, inner)
        folder.mkdir(exist_ok=True)
        seen = fill(folder, [f"{n}.jsonl" for n in range(count)])
        paths = list(seen)
        changed: set[str] = set()
        for place, act in {n % count: act for n, act in acts.items()}.items():
            act(Path(paths[place]))
            if act in OTHER:
                changed.add(paths[place])
        for place in unknown:
            seen[paths[place % count]] = None
            changed.add(paths[place % count])
        for twin in twins:
            assert sorted(twin.changed_files(str(folder), seen)) == sorted(changed)


@pytest.mark.parametrize("count", [511, 512, 513, 1030])
def test_twins_find_them_among_many(
    twins: tuple[ModuleType, ...], tmp_path: Path, count: int
) -> None:
    seen = fill(tmp_path, [f"{n}.jsonl" for n in range(count)])
    changed = {list(seen)[place] for place in (0, 510, count // 2, count - 1)}
    for path in changed:
        grow(Path(path))
    for twin in twins:
        assert sorted(twin.changed_files(str(tmp_path), seen)) == sorted(changed)


@pytest.mark.parametrize("count", [0, 1, 20])
def test_of_a_folder_that_has_gone_all_files_changed(
    twins: tuple[ModuleType, ...], tmp_path: Path, count: int
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    seen = fill(folder, [f"{n}.jsonl" for n in range(count)])
    folder.rename(tmp_path / "other")
    for twin in twins:
        assert sorted(twin.changed_files(str(folder), seen)) == sorted(seen)


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("changed_ns", [-1, 0, 1, -(10**18), 9_300_000_000 * 10**9])
def test_any_date_is_compared(
    twins: tuple[ModuleType, ...], tmp_path: Path, changed_ns: int, count: int
) -> None:
    paths = list(fill(tmp_path, [f"{n}.jsonl" for n in range(count)]))
    for path in paths:
        dated(Path(path), changed_ns)
    seen = {path: stamp_of(path) for path in paths}
    off = {path: (*s[:2], s[2] - 1, "") for path, s in seen.items()}
    for twin in twins:
        assert twin.changed_files(str(tmp_path), seen) == []
        assert sorted(twin.changed_files(str(tmp_path), off)) == sorted(paths)


@pytest.mark.skipif(sys.platform != "linux", reason="its file names are any bytes")
@pytest.mark.parametrize("count", [1, 20])
def test_names_may_be_any_bytes(
    twins: tuple[ModuleType, ...], tmp_path: Path, count: int
) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    seen = fill(folder, [f"{n}\udcfe.jsonl" for n in range(count)])
    for twin in twins:
        assert twin.changed_files(str(folder), seen) == []


def test_without_a_descriptor_to_spare_all_is_found(
    twins: tuple[ModuleType, ...], tmp_path: Path
) -> None:
    resource = pytest.importorskip("resource")
    seen = fill(tmp_path, [f"{n}.jsonl" for n in range(20)])
    grown = next(iter(seen))
    grow(Path(grown))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        found = [twin.changed_files(str(tmp_path), seen) for twin in twins]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found == [[grown]] * len(twins)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")
def test_no_folder_stays_open(twins: tuple[ModuleType, ...], tmp_path: Path) -> None:
    seen = fill(tmp_path, [f"{n}.jsonl" for n in range(20)])
    broken = {**seen, f"{tmp_path}/broken": ("1", 2, 3)}
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for twin in twins:
        twin.changed_files(str(tmp_path), seen)
        with suppress(TypeError):
            twin.changed_files(str(tmp_path), broken)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
