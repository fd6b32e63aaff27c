"""``raf-session conform``: the checks on an implementation of somebody's own."""

from __future__ import annotations

from typing import Annotated

import typer

from raf_session.cli.running import faults

__all__ = ("conform_command",)


def conform_command(
    place: Annotated[
        str, typer.Argument(metavar="MODULE:NAME", help="What is to be checked.")
    ],
    *,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="What the report calls it."),
    ] = None,
    loop: Annotated[
        str,
        typer.Option("--loop", metavar="NAME", help="The event loop: asyncio or trio."),
    ] = "asyncio",
) -> None:
    """Check a session, a store or a journal, and print a report for its README.

    NAME is a harness of raf_session.conformance, or a function that returns one; or a
    class: a session of an id, a store of ttl=, clock= and types=, a journal of limits=,
    clock= and codec=; or a function that makes one of these. MODULE is looked for in
    the working directory first.

    A harness declares what it can do, and is held to it. Of anything else the
    capabilities that looking finds are counted as declared.

    The random histories at the end are more with HYPOTHESIS_PROFILE=ci, and ten times
    as many again with HYPOTHESIS_PROFILE=nightly.

    Exit status: 0 where all that applies is kept, 1 where something is broken, 2 for a
    fault.
    """
    with faults():
        # The kit is imported for this command alone.
        from raf_session.cli.conform_targets import conform

        kept = conform(place, name=name, loop=loop)
    if not kept:
        raise typer.Exit(1)
