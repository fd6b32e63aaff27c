"""The command line, ``raf-session``; needs the extra ``cli``."""

from __future__ import annotations

import sys
from typing import Final

__all__ = ("main",)

_EXTRA: Final = frozenset(("click", "rich", "typer"))


def main() -> int:
    """Run the command of ``sys.argv`` and return or raise its exit status."""
    try:
        from raf_session.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(
            f"raf-session: the command line needs {error.name}: "
            "pip install 'raf-session[cli]'\n"
        )
        return 2
    app(prog_name="raf-session")
    return 0
