"""Where the servers' programs are, and how they are got where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from glob import glob
from pathlib import Path
from tempfile import gettempdir
from typing import Final, NoReturn

import pytest
from filelock import FileLock

__all__ = ("find", "unavailable")

_FOLDERS: Final = ("/usr/sbin", "/usr/local/sbin", "/usr/lib/postgresql/*/bin")
"""Where Debian keeps servers, off the PATH of most people."""

_FAILED: set[str] = set()


def unavailable(reason: str) -> NoReturn:
    """End the test: a failure in CI, a visible skip elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def find(program: str, package: str) -> str:
    """Return the path of a program, installing its Debian package where we may.

    Args:
        program: its name.
        package: the package that brings it.
    """
    if path := _look(program):
        return path
    if package not in _FAILED and _may_install():
        with FileLock(Path(gettempdir()) / "raf-test-install.lock"):
            path = _look(program) or _install(program, package)
        if path:
            return path
        _FAILED.add(package)
    unavailable(f"there is no {program} here, nor could {package!r} be installed")


def _look(program: str) -> str | None:
    folders = [folder for pattern in _FOLDERS for folder in sorted(glob(pattern))]  # noqa: PTH207
    path = os.pathsep.join([os.environ.get("PATH", ""), *reversed(folders)])
    return shutil.which(program, path=path)


def _may_install() -> bool:
    return (
        shutil.which("apt-get") is not None
        and Path("/etc/debian_version").exists()
        and os.geteuid() == 0
    )


def _install(program: str, package: str) -> str | None:
    _keep_services_down()
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (
        ["update", "-qq"],
        ["install", "-qq", "-y", "--no-install-recommends", package],
    ):
        subprocess.run(
            ["apt-get", *arguments],  # noqa: S607
            env=environment,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
        )
    return _look(program)


def _keep_services_down() -> None:
    """Let the packages start nothing by themselves."""
    policy = Path("/usr/sbin/policy-rc.d")
    if not policy.exists():
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    clusters = Path("/etc/postgresql-common/createcluster.conf")
    if not clusters.exists():
        clusters.parent.mkdir(parents=True, exist_ok=True)
        clusters.write_text("create_main_cluster = false\n")
