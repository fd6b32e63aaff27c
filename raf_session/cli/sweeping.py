"""``raf-session sweep``: what is older than given limits goes, or is only shown."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Final

import typer

from raf_session.cli.faults import Fault
from raf_session.cli.running import JsonOption, UrlArgument, run
from raf_session.cli.store_url import opened_existing
from raf_session.cli.terminal import one_line, print_json, shorten
from raf_session.journal import Journal
from raf_session.keys import SessionKey
from raf_session.options import SessionTTLOptions

__all__ = ("sweep_command",)

_BATCH: Final = 1000
_ALL: Final = (1 << 31) - 1
_LONGEST: Final = 365_000 * 86400
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)", re.ASCII)


def sweep_command(
    url: UrlArgument,
    *,
    max_idle: Annotated[
        str | None,
        typer.Option(
            "--max-idle",
            metavar="TIME",
            help="Since the last activity: seconds, or as 30m, 24h, 7d.",
        ),
    ] = None,
    max_lifetime: Annotated[
        str | None,
        typer.Option("--max-lifetime", metavar="TIME", help="Since the creation."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Remove nothing, show what would go.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove the sessions that are older than one of the limits; pinned ones stay.

    The key of each is printed on a line of its own. The limits hold for this run alone,
    and states of users and apps stay.
    """
    run(lambda: _sweep(url, max_idle, max_lifetime, dry_run=dry_run, as_json=as_json))


async def _sweep(
    url: str,
    max_idle: str | None,
    max_lifetime: str | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    ttl = SessionTTLOptions(
        max_idle_secs=_seconds(max_idle, "--max-idle"),
        max_lifetime_secs=_seconds(max_lifetime, "--max-lifetime"),
    )
    if not ttl.enabled:
        raise Fault("sweep", "without --max-idle and --max-lifetime nothing is old")
    async with opened_existing(url, "URL", ttl=ttl) as store:
        gone = await _expired(store.journal, dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, "sessions": [str(key) for key in gone]})
        return
    for key in gone:
        sys.stdout.write(f"{one_line(str(key))}\n")
    verb = "would be removed" if dry_run else "removed"
    sys.stderr.write(f"{len(gone):,} sessions {verb}\n")


async def _expired(journal: Journal, *, dry_run: bool) -> list[SessionKey]:
    if dry_run:
        found = await journal.expire(_ALL, dry_run=True)
        return [key for key in found if isinstance(key, SessionKey)]
    gone: list[SessionKey] = []
    while True:
        batch = await journal.expire(_BATCH)
        gone.extend(key for key in batch if isinstance(key, SessionKey))
        if len(batch) < _BATCH:
            return gone


def _seconds(text: str | None, option: str) -> float | None:
    """Return the seconds of a duration as ``30m``.

    Raises:
        Fault: it is none, or longer than 1000 years.
    """
    if text is None:
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        raise Fault(option, f"{text!r} is no time: seconds, or as 30m, 24h, 7d")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST:
        raise Fault(option, f"{shorten(text, 40)!r} is over 365000d")
    return seconds
