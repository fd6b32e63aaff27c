"""``raf-session migrate``: the tables of a store, brought to this version."""

from __future__ import annotations

import sys
from abc import abstractmethod

from typing_extensions import Protocol, runtime_checkable

from raf_session.cli.running import UrlArgument, run
from raf_session.cli.store_url import explained, opened_existing, shown, store_of

__all__ = ("migrate_command",)


@runtime_checkable
class _Migrating(Protocol):
    """A journal whose tables may have to be made by a role that may."""

    @abstractmethod
    async def migrate(self) -> None: ...


def migrate_command(url: UrlArgument) -> None:
    """Make the tables of a store, or bring them to this version.

    For servers where the role that the application uses may not: run it as one that
    may. Other stores are brought to this version when they are opened, which it does.
    """
    run(lambda: _migrate(url))


async def _migrate(url: str) -> None:
    journal = store_of(url, "URL").journal
    if isinstance(journal, _Migrating):
        with explained(shown(url)):
            await journal.migrate()
        sys.stdout.write(f"{shown(url)} is of this version\n")
        return
    async with opened_existing(url, "URL"):
        pass
    sys.stdout.write(f"{shown(url)}: nothing to do\n")
