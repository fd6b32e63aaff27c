"""Random histories of a journal, with cancelled calls and restarts among them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from anyio.from_thread import start_blocking_portal
from hypothesis import settings as Settings  # noqa: N812  (a class with a small name)
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from raf_session.changes import Change
from raf_session.conformance.interruptions import TURNS, interrupted
from raf_session.conformance.journal_comparison import KEYS
from raf_session.conformance.journal_harness import Capability, JournalHarness
from raf_session.conformance.journal_inputs import (
    CHANGES,
    FRESH,
    HANDLES,
    PICKS,
    PLACES,
)
from raf_session.conformance.journal_machine import JournalMachine
from raf_session.conformance.profiles import histories
from raf_session.entries import Entry
from raf_session.errors import SessionNotFoundError
from raf_session.keys import SessionKey
from raf_session.options import HEAD_ONLY, NewSession

__all__ = ("JournalHistories", "run_journal_machine")


class JournalHistories(JournalMachine):
    """Adds what breaks off: calls that are cancelled, and journals that are opened."""

    def _revision(self, key: SessionKey, on: int) -> tuple[str, int] | None:
        try:
            head = self.do(self.journal(on).load, key, HEAD_ONLY).head
        except SessionNotFoundError:
            return None
        return head.incarnation, head.revision

    def _cancelled(
        self,
        key: SessionKey,
        on: int,
        turns: int,
        real: Callable[[], Awaitable[object]],
        model: Callable[[], object],
    ) -> None:
        """Cancel a call that succeeds if it may end; it was done whole or not at all.

        Which of the two, the revision tells; that it was whole, the comparison.
        """
        before = self._revision(key, on)
        self.do(interrupted, turns, real)
        if self._revision(key, on) != before:
            model()

    @rule(
        pick=PICKS,
        on=HANDLES,
        entries=FRESH,
        change=CHANGES,
        trim=st.one_of(st.none(), st.integers(0, 3)),
        turns=TURNS,
    )
    def append_cancelled(
        self,
        *,
        pick: int,
        on: int,
        entries: list[Entry],
        change: Change,
        trim: int | None,
        turns: int,
    ) -> None:
        """Cancel an append with its change and its trim."""
        key = self.pick(pick)
        if key not in self.model.sessions or self._revision(key, on) is None:
            return
        named = self.with_ids(entries)
        real = partial(self.journal(on).append, key, named, change=change, trim=trim)
        self._cancelled(
            key,
            on,
            turns,
            real,
            lambda: self.model.append(key, named, change, trim=trim),
        )

    @rule(
        pick=PICKS,
        on=HANDLES,
        ends=st.tuples(PLACES, PLACES),
        tail=FRESH,
        archive=st.booleans(),
        turns=TURNS,
    )
    def splice_cancelled(
        self,
        *,
        pick: int,
        on: int,
        ends: tuple[int, int],
        tail: list[Entry],
        archive: bool,
        turns: int,
    ) -> None:
        """Cancel a splice that removes a run and appends behind."""
        key = self.pick(pick)
        if key not in self.model.sessions or self._revision(key, on) is None:
            return
        first, last = sorted(ends)
        named = self.with_ids(tail)
        real = partial(
            self.journal(on).splice, key, first, last, tail=named, archive=archive
        )

        def model() -> None:
            self.model.splice(key, first, last, [], tail=named, archive=archive)
            head = self.do(self.journal(on).load, key, HEAD_ONLY).head
            self.model.sessions[key].active_at = head.last_active_at

        self._cancelled(key, on, turns, real, model)

    @rule(pick=PICKS, on=HANDLES, turns=TURNS)
    def delete_cancelled(self, *, pick: int, on: int, turns: int) -> None:
        """Cancel a deletion."""
        key = self.pick(pick)
        session = self.model.sessions.get(key)
        if session is None or self._revision(key, on) is None:
            return

        def model() -> None:
            self.former[key] = session.incarnation
            self.model.delete(key, None)

        real = partial(self.journal(on).delete, key)
        self._cancelled(key, on, turns, real, model)

    @rule(key=st.sampled_from(KEYS), on=HANDLES, entries=FRESH, turns=TURNS)
    def create_cancelled(
        self, *, key: SessionKey, on: int, entries: list[Entry], turns: int
    ) -> None:
        """Cancel the creation of a session, of an expired one's key at times."""
        if self._revision(key, on) is not None:
            return
        named = self.with_ids(entries)

        def model() -> None:
            session = self.model.create(key, named, [], Change())
            head = self.do(self.journal(on).load, key, HEAD_ONLY).head
            session.incarnation = head.incarnation

        real = partial(self.journal(on).create, NewSession(key=key), named)
        self._cancelled(key, on, turns, real, model)

    @precondition(lambda self: Capability.DURABLE in self.capabilities)
    @rule()
    def restart(self) -> None:
        """Close every journal and open the storage again."""
        self.reopen()


def run_journal_machine(
    harness: JournalHarness,
    settings: Settings | None = None,
    *,
    backend: str = "asyncio",
) -> None:
    """Drive a journal through random histories; raise at the first difference.

    Args:
        harness: how to get at it.
        settings: how many histories, and how long; `None`: as the profile has it.
        backend: the event loop, as anyio names it.
    """
    with start_blocking_portal(backend) as portal:

        class Bound(JournalHistories):
            def __init__(self) -> None:
                super().__init__(harness, portal)

        run_state_machine_as_test(Bound, settings=settings or histories())
