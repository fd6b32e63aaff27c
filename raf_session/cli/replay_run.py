"""``raf-session replay`` as one run over files: their sources, and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from time import perf_counter

from raf_session.cli.conversations import Conversation, read_sources, stem_of
from raf_session.cli.faults import Fault, Place
from raf_session.cli.json_values import JsonValues, open_values
from raf_session.cli.meter import Played
from raf_session.cli.progress import Show, show_progress
from raf_session.cli.replay import replay
from raf_session.cli.report import print_report, report_json
from raf_session.cli.request_logs import RequestLog
from raf_session.cli.store_url import opened, shown, store_of
from raf_session.cli.terminal import console, print_json

__all__ = ("replay_files",)


async def replay_files(paths: Sequence[str], url: str, *, as_json: bool) -> None:
    """Play files into a store, and print what that shows.

    Raises:
        Fault: a file cannot be read on, or the store fails; what was before is stored.
    """
    begun = perf_counter()
    store = store_of(url)
    played: list[Played] = []
    with show_progress(paths) as show:
        run = _Run(paths, show)
        with closing(run.sources()) as sources:
            first = next(sources, None)  # nothing is made for what cannot be read
            if first is not None:
                async with opened(store, url):
                    played = [
                        await replay(store, source, run.step)
                        for source in chain((first,), sources)
                    ]
    for path in run.empty:
        sys.stderr.write(f"raf-session: {Fault(Place(path), 'no conversations')}\n")
    seconds = perf_counter() - begun
    if as_json:
        print_json(report_json(played, store=shown(url), seconds=seconds))
    else:
        print_report(played, store=shown(url), seconds=seconds, console=console())


def _consumed(values: JsonValues, before: int) -> int:
    return before + values.consumed


class _Run:
    """The sources of a run, and how far it has come."""

    def __init__(self, paths: Sequence[str], show: Show) -> None:
        self.empty: list[str] = []
        """The files that hold no conversation."""
        self._paths = paths
        self._show = show
        self._places: dict[str, Place] = {}
        self._consumed: Callable[[], int] = int
        self._messages = 0

    def sources(self) -> Generator[Conversation | RequestLog]:
        """Yield what is to be played.

        Raises:
            Fault: a file cannot be read on, or an id comes twice.
        """
        before = 0
        for path in self._paths:
            count = len(self._places)
            with open_values(path) as values:
                self._consumed = partial(_consumed, values, before)
                for source in read_sources(values, stem_of(path)):
                    other = self._places.setdefault(source.id, source.place)
                    if other is not source.place:
                        reason = f"the id {source.id!r} was taken at {other}"
                        raise Fault(source.place, reason)
                    yield source
                before += values.consumed
            if len(self._places) == count:
                self.empty.append(path)

    def step(self) -> None:
        """Show that a message, or a request of a log, was played."""
        self._messages += 1
        self._show(self._consumed(), len(self._places), self._messages)
