"""Build the compiled hot paths; everything else is in pyproject.toml.

`RAF_SESSION_PURE=1` leaves the extension out, and the package answers in pure Python.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

PURE = os.environ.get("RAF_SESSION_PURE") == "1" or sys.implementation.name != "cpython"


def extensions() -> list[Extension]:
    """Return the extension modules to compile."""
    from Cython.Build import cythonize  # a pure build has no use for Cython

    windows = sys.platform == "win32"
    flags = [] if windows else ["-O3", "-g0", "-Wall", "-Wextra"]
    names = ["_prefix", "_stored", "_stored_heads"]
    if not windows:
        names.append("_file_stamps")  # calls POSIX
    modules = [
        Extension(
            f"raf_session.{name}",
            sources=[f"ext/{name}.pyx"],
            depends=sorted(map(str, Path("ext").glob("*.p*"))),  # the sdist carries it
            extra_compile_args=flags,
        )
        for name in names
    ]
    return cythonize(
        modules,
        build_dir="build",  # the generated C stays out of ext/
        include_path=["ext"],  # where cimport finds xxh64.pxd
        compiler_directives={
            "language_level": 3,
            "autotestdict": False,
            "freethreading_compatible": True,
        },
    )


setup(ext_modules=[] if PURE else extensions())
