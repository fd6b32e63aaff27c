"""Random histories of a store, compared with a model of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import settings as Settings  # noqa: N812  (a class with a small name)
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from raf_session.agent_session import AgentSession
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.interruptions import TURNS, interrupted
from raf_session.conformance.journal_values import same
from raf_session.conformance.profiles import histories
from raf_session.conformance.store_harness import (
    StoreCapability,
    StoreHarness,
    StoreOpener,
)
from raf_session.conformance.store_model import IDLE, LIFETIME, ModelHandle, StoreModel
from raf_session.conformance.store_values import named, read
from raf_session.errors import SessionNotFoundError, StaleSessionError
from raf_session.messages import ChatMessage
from raf_session.options import SessionTTLOptions
from raf_session.store import ISessionStore

__all__ = ("StoreMachine", "run_store_machine")

_T = TypeVar("_T")

TTL = SessionTTLOptions(
    max_idle_secs=IDLE.total_seconds(), max_lifetime_secs=LIFETIME.total_seconds()
)
NAMES = ("a", "A", "a/b")
IDS = st.sampled_from(NAMES)
PICKS = st.integers(0, 11)
STORES = st.integers(0, 1)
SOME = st.lists(st.sampled_from(("ok", "\0\ud83d😀")), min_size=1, max_size=3)
WAITS = st.sampled_from((0, 0.000001, 1, 1, 5, 20, 50, 100, 100.000001, 900))


class StoreMachine(RuleBasedStateMachine):
    """Session objects are read, changed and saved; the model says what is stored."""

    def __init__(self, harness: StoreHarness, portal: BlockingPortal) -> None:
        super().__init__()
        self.portal = portal
        self.claims: frozenset[StoreCapability] = harness.capabilities
        self.stack: ExitStack = ExitStack()
        self.clock: TickingClock = TickingClock()
        self.model: StoreModel = StoreModel(self.clock)
        self.drawn: int = 0
        self._opened: StoreOpener = self.stack.enter_context(
            portal.wrap_async_context_manager(harness.storage())
        )
        self._open: ExitStack = ExitStack()
        self.stores: list[ISessionStore] = []
        self._reopen()

    def _reopen(self) -> None:
        self._open.close()
        wrap = self.portal.wrap_async_context_manager
        count = 2 if StoreCapability.SHARED in self.claims else 1
        self.stores = [
            self._open.enter_context(wrap(self._opened(ttl=TTL, clock=self.clock)))
            for _ in range(count)
        ]

    @override
    def teardown(self) -> None:
        """Close the stores and remove their storage."""
        self._open.close()
        self.stack.close()

    def do(self, call: Callable[..., Awaitable[_T]], *args: Any, **kwargs: Any) -> _T:
        """Await the call in the event loop of the portal."""
        return self.portal.call(partial(call, *args, **kwargs))

    def store(self, on: int) -> ISessionStore:
        """Return one of the open stores: there are two where that can be."""
        return self.stores[on % len(self.stores)]

    def handle(self, pick: int) -> ModelHandle:
        """Return one of the session objects that are in somebody's hands."""
        return self.model.handles[pick % len(self.model.handles)]

    def _take(self, handle: ModelHandle) -> None:
        self.model.handles = [*self.model.handles[-3:], handle]

    # Rules -----------------------------------------------------------------------

    @rule(session_id=IDS, on=STORES, texts=SOME)
    def make(self, session_id: str, on: int, texts: list[str]) -> None:
        """Make a session in memory, whose id may be taken."""
        session = self.do(named, session_id, self.clock, *texts)
        self._take(ModelHandle(session, list(texts), 0, on))

    @rule(session_id=IDS, on=STORES)
    def take(self, session_id: str, on: int) -> None:
        """Read a session."""
        kept = self.model.alive(session_id)
        if kept is None:
            same(self.do(self.store(on).get_session, session_id), None, session_id)
            return
        session = self.do(read, self.store(on), session_id)
        said = list(kept.texts)
        self._take(ModelHandle(session, said, len(said), on, kept.incarnation))

    @precondition(lambda self: self.model.handles)
    @rule(pick=PICKS, texts=SOME)
    def say(self, pick: int, texts: list[str]) -> None:
        """Add messages to a session object."""
        handle = self.handle(pick)
        said = [ChatMessage.user(text) for text in texts]
        self.do(handle.session.add_messages_batch, said)
        handle.said = handle.said + texts

    @precondition(lambda self: self.model.handles)
    @rule(pick=PICKS)
    def clear(self, pick: int) -> None:
        """Erase what a session object holds, where it holds what is stored."""
        handle = self.handle(pick)
        if handle.seen:
            self.do(handle.session.clear)
            handle.said, handle.cleared = [], True

    @precondition(lambda self: self.model.handles)
    @rule(pick=PICKS, name=st.sampled_from(("p", "q.r")))
    def set_state(self, pick: int, name: str) -> None:
        """Keep something new for a provider."""
        handle = self.handle(pick)
        self.drawn += 1
        handle.session.set_provider_state(name, {"n": self.drawn})
        handle.states[name] = {"n": self.drawn}

    @precondition(lambda self: self.model.handles)
    @rule(pick=PICKS)
    def touch(self, pick: int) -> None:
        """Record activity of a session object."""
        self.do(self.handle(pick).session.touch_last_active)

    @precondition(lambda self: self.model.handles)
    @rule(pick=PICKS, again=st.booleans())
    def save(self, pick: int, *, again: bool) -> None:
        """Save a session object, twice at times; one that is refused is dropped."""
        handle = self.handle(pick)
        if self.model.may_go_either_way(handle):
            return
        for _ in range(1 + again):
            expected: type[Exception] | None = None
            try:
                self.model.save(handle)
            except (StaleSessionError, SessionNotFoundError) as error:
                expected = type(error)
            seen: type[Exception] | None = None
            try:
                self.do(self.store(handle.on).save_session, handle.session)
            except (StaleSessionError, SessionNotFoundError) as error:
                seen = type(error)
            same(seen, expected, "the error of a save")
            if expected is not None:
                self.model.handles.remove(handle)
                return

    @precondition(lambda self: self.model.handles)
    @rule(pick=PICKS, turns=TURNS)
    def save_cancelled(self, pick: int, turns: int) -> None:
        """Cancel a save that would succeed: what is stored is all of it or nothing."""
        handle = self.handle(pick)
        if self.model.may_go_either_way(handle):
            return
        session_id = handle.session.session_id
        before = deepcopy(self.model.stored.get(session_id))
        doubtful = set(self.model.doubtful)
        fresh = [other.fresh for other in self.model.handles]
        try:
            self.model.save(handle)
        except (StaleSessionError, SessionNotFoundError):
            return
        save = partial(self.store(handle.on).save_session, handle.session)
        self.do(interrupted, turns, save)
        if self.model.alive(session_id) is None:
            # It has expired as it is stored: only a sweep could tell that it was.
            if before is None or session_id in doubtful:
                self.model.doubtful.add(session_id)
        elif not self._is_stored(session_id, handle.on):
            self.model.doubtful = doubtful
            for other, was in zip(self.model.handles, fresh, strict=True):
                other.fresh = was
            self.model.stored.pop(session_id, None)
            if before is not None:
                self.model.stored[session_id] = before
        self.model.handles.remove(handle)

    def _is_stored(self, session_id: str, on: int) -> bool:
        try:
            self._compare(session_id, on)
        except AssertionError:
            return False
        return True

    @rule(session_id=IDS, on=STORES)
    def delete(self, session_id: str, on: int) -> None:
        """Delete a session, which may be missing."""
        self.do(self.store(on).delete_session, session_id)
        self.model.delete(session_id)

    @rule(wait=WAITS)
    def wait(self, wait: float) -> None:
        """Let time pass."""
        self.clock.tick(wait)

    @rule(seconds=st.sampled_from((1, 60, 2000)), on=STORES)
    def set_back(self, seconds: int, on: int) -> None:
        """Set the clock back, once nothing is expired and not swept."""
        self.sweep(on)
        self.clock.tick(-seconds)

    @rule(on=STORES)
    def sweep(self, on: int) -> None:
        """Remove what has expired."""
        least, most = self.model.sweep()
        removed = self.do(self.store(on).cleanup_expired)
        same(least <= removed <= most, True, f"{removed} removed, of {least} to {most}")

    @precondition(lambda self: StoreCapability.DURABLE in self.claims)
    @rule()
    def restart(self) -> None:
        """Close every store and open the storage again; nobody holds a session."""
        self.model.handles.clear()
        self._reopen()

    # What holds throughout ---------------------------------------------------------

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        """Compare all that can be read."""
        for session_id in NAMES:
            self._compare(session_id, self.drawn)

    def _compare(self, session_id: str, on: int) -> None:
        kept = self.model.alive(session_id)
        store = self.store(on)
        if kept is None:
            same(self.do(store.get_session, session_id), None, f"{session_id!r}")
            return
        session: AgentSession = self.do(read, store, session_id)
        said = [message.text for message in self.do(session.get_messages)]
        same(said, kept.texts, f"the messages of {session_id!r}")
        for name in ("p", "q.r"):
            state = session.get_provider_state(name)
            same(state, kept.states.get(name), f"the state {name!r} of {session_id!r}")
        same(
            (session.created_at, session.last_active_at),
            (kept.created_at, kept.active_at),
            f"the times of {session_id!r}",
        )


def run_store_machine(
    harness: StoreHarness,
    settings: Settings | None = None,
    *,
    backend: str = "asyncio",
) -> None:
    """Drive a store through random histories; raise at the first difference.

    Args:
        harness: how to get at it.
        settings: how many histories, and how long; `None`: as the profile has it.
        backend: the event loop, as anyio names it.
    """
    with start_blocking_portal(backend) as portal:

        class Bound(StoreMachine):
            def __init__(self) -> None:
                super().__init__(harness, portal)

        run_state_machine_as_test(Bound, settings=settings or histories())
