"""Random histories of a session, compared with a model of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, cast

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

from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.interruptions import TURNS, interrupted
from raf_session.conformance.journal_values import raises, same
from raf_session.conformance.profiles import histories
from raf_session.conformance.session_harness import (
    CoreFactory,
    SessionCapability,
    SessionHarness,
)
from raf_session.conformance.session_model import ModelSession
from raf_session.conformance.session_values import (
    HOSTILE_TEXTS,
    SHAPES,
    STATES,
    same_messages,
)
from raf_session.errors import EntryConflictError
from raf_session.frozen import thaw
from raf_session.json_text import dump_json
from raf_session.messages import ChatMessage
from raf_session.prefix import ROOT, prefix_hashes
from raf_session.session import ISession, SessionCore

__all__ = ("SessionMachine", "run_session_machine")

_T = TypeVar("_T")


def _named(name: str, text: str) -> ChatMessage:
    return ChatMessage.user(text).model_copy(update={"id": name})


SAID = st.sampled_from((*SHAPES, *(ChatMessage.user(t) for t in HOSTILE_TEXTS[:20])))
BATCHES = st.lists(SAID, max_size=4)
NAMED = st.lists(
    st.builds(
        _named,
        st.sampled_from("abc"),
        st.sampled_from(("one", "two")),
    ),
    min_size=1,
    max_size=3,
)
PICKS = st.integers(0, 1)
NAMES = st.sampled_from(("p", "P", "p.q", "é"))
WAITS = st.sampled_from((0, 0.000001, 1, 60, 3600, -5, -7200))


class SessionMachine(RuleBasedStateMachine):
    """Two sessions, which share nothing; every rule acts on one and on its model."""

    def __init__(self, harness: SessionHarness, portal: BlockingPortal) -> None:
        super().__init__()
        self.portal = portal
        self.claims: frozenset[SessionCapability] = harness.capabilities
        self.stack: ExitStack = ExitStack()
        self.clock: TickingClock = TickingClock()
        opened = portal.wrap_async_context_manager(harness.opened())
        self._make: CoreFactory = self.stack.enter_context(opened)
        ids = ("a", "a/b")
        self.sessions: list[SessionCore] = [
            self.do(self._make, name, clock=self.clock) for name in ids
        ]
        self.models: list[ModelSession] = [ModelSession(name, START) for name in ids]
        self.twins: list[SessionCore] = self._twins(ids)

    def _twins(self, ids: Sequence[str]) -> list[SessionCore]:
        """Return second handles of the sessions, where one id is one session."""
        probe, other = [self.do(self._make, "probe", clock=self.clock) for _ in "ab"]
        self.do(probe.add_message, SHAPES[0])
        if not self.do(other.get_messages):
            return []
        return [self.do(self._make, name, clock=self.clock) for name in ids]

    @override
    def teardown(self) -> None:
        """Close what the sessions needed."""
        self.stack.close()

    def do(self, call: Callable[..., Awaitable[_T]], *args: Any, **kwargs: Any) -> _T:
        """Await the call in the event loop of the portal."""
        return self.portal.call(partial(call, *args, **kwargs))

    def claimed(self, *names: SessionCapability) -> bool:
        """Say whether the session claims all of these."""
        return self.claims.issuperset(names)

    def trait(self, pick: int) -> ISession:
        """Return a session that claims the trait."""
        return cast("ISession", self.sessions[pick])

    # Rules -----------------------------------------------------------------------

    @rule(pick=PICKS, message=SAID)
    def add(self, pick: int, message: ChatMessage) -> None:
        """Add one message; one that carries an id may be known."""
        self._added(pick, [message], partial(self.sessions[pick].add_message, message))

    def _added(
        self,
        pick: int,
        messages: list[ChatMessage],
        call: Callable[[], Awaitable[None]],
    ) -> None:
        model = self.models[pick]
        if self.claimed(SessionCapability.MESSAGE_IDS) and model.conflicts(messages):
            with raises(EntryConflictError, "a known id"):
                self.do(call)
            return
        self.do(call)
        once = self.claimed(SessionCapability.MESSAGE_IDS)
        model.add(messages, self.clock(), once=once)

    @precondition(lambda self: self.claimed(SessionCapability.TRAIT))
    @rule(pick=PICKS, batch=BATCHES)
    def add_batch(self, pick: int, batch: list[ChatMessage]) -> None:
        """Add some messages at once, or none."""
        unnamed = [message for message in batch if message.id is None]
        call = partial(self.trait(pick).add_messages_batch, unnamed)
        self._added(pick, unnamed, call)

    @precondition(
        lambda self: self.claimed(
            SessionCapability.TRAIT, SessionCapability.MESSAGE_IDS
        )
    )
    @rule(pick=PICKS, batch=NAMED)
    def add_named(self, pick: int, batch: list[ChatMessage]) -> None:
        """Add messages whose ids may be known, with texts that may differ."""
        call = partial(self.trait(pick).add_messages_batch, batch)
        self._added(pick, batch, call)

    @rule(pick=PICKS, text=st.sampled_from(("x", "y")), turns=TURNS)
    def add_cancelled(self, pick: int, text: str, turns: int) -> None:
        """Cancel an addition: the message is there or it is not."""
        session, model = self.sessions[pick], self.models[pick]
        message = ChatMessage.user(text)
        self.do(interrupted, turns, partial(session.add_message, message))
        found = len(self.do(session.get_messages)) - len(model.messages)
        same(found in {0, 1}, True, f"{found} messages of a cancelled addition")
        if found:
            model.add([message], self.clock(), once=False)

    @rule(pick=PICKS)
    def clear(self, pick: int) -> None:
        """Erase the history."""
        self.do(self.sessions[pick].clear)
        model = self.models[pick]
        model.clear(self.clock())
        # A session that only has its own three methods cannot reach the record.
        model.hash_known = self.claimed(SessionCapability.TELLS_TIMES)

    @precondition(lambda self: self.twins)
    @rule(pick=PICKS, message=SAID)
    def add_by_another(self, pick: int, message: ChatMessage) -> None:
        """Add a message through another handle of the same session."""
        self._added(pick, [message], partial(self.twins[pick].add_message, message))

    @precondition(lambda self: self.twins)
    @rule(pick=PICKS)
    def clear_by_another(self, pick: int) -> None:
        """Erase the history through another handle of the same session."""
        self.do(self.twins[pick].clear)
        self.models[pick].clear(self.clock())
        self.models[pick].hash_known = False  # one that waits to be stored is kept

    @precondition(lambda self: self.claimed(SessionCapability.TRAIT))
    @rule(pick=PICKS, name=NAMES, state=st.sampled_from(STATES))
    def set_state(self, pick: int, name: str, state: Any) -> None:
        """Keep something for a provider."""
        self.trait(pick).set_provider_state(name, state)
        self.models[pick].states[name] = dump_json(state)

    @precondition(lambda self: self.claimed(SessionCapability.TRAIT))
    @rule(pick=PICKS, request=BATCHES)
    def touch_request(self, pick: int, request: list[ChatMessage]) -> None:
        """Record a request."""
        self.trait(pick).touch_request_hash(request)
        self.models[pick].last_hash = prefix_hashes(request)[-1] if request else ROOT
        self.models[pick].hash_known = True

    @precondition(lambda self: self.claimed(SessionCapability.TRAIT))
    @rule(pick=PICKS)
    def touch(self, pick: int) -> None:
        """Record activity."""
        self.do(self.trait(pick).touch_last_active)
        self.models[pick].touch(self.clock())

    @rule(wait=WAITS)
    def wait(self, wait: float) -> None:
        """Let time pass, or set the clock back."""
        self.clock.tick(wait)

    @precondition(
        lambda self: (
            not self.twins
            and self.claimed(
                SessionCapability.TRAIT,
                SessionCapability.SYNC_READS,
                SessionCapability.DESERIALIZES,
            )
        )
    )
    @rule(pick=PICKS)
    def restart(self, pick: int) -> None:
        """Write a session out, and go on with what is read back."""
        session = self.trait(pick)
        self.sessions[pick] = type(session).deserialize(session.serialize())
        use_clock = getattr(self.sessions[pick], "use_clock", None)
        if use_clock is None:
            self.models[pick].tells_times = False  # it goes on by a clock of its own
        else:
            use_clock(self.clock)

    # What holds throughout ---------------------------------------------------------

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        """Compare all that can be read."""
        for session, model in zip(self.sessions, self.models, strict=True):
            same(session.session_id, model.session_id, "the id")
            seen = self.do(session.get_messages)
            same_messages(seen, model.messages, "the messages")
            if self.claimed(SessionCapability.TRAIT):
                self._compare(cast("ISession", session), model)

    def _compare(self, session: ISession, model: ModelSession) -> None:
        for name in ("p", "P", "p.q", "é"):
            state = dump_json(thaw(session.get_provider_state(name)))
            same(state, model.states.get(name, "null"), f"the state of {name!r}")
        if model.hash_known:
            same(session.get_last_request_hash(), model.last_hash, "the request hash")
        if self.claimed(SessionCapability.SYNC_READS):
            same(session.get_message_count(), len(model.messages), "the count")
            snapshot = session.snapshot()
            same_messages(snapshot.messages, model.messages, "the snapshot")
        if self.claimed(SessionCapability.TELLS_TIMES) and model.tells_times:
            times: tuple[datetime, datetime] = (
                session.created_at,
                session.last_active_at,
            )
            same(times, (model.created_at, model.active_at), "the times")


def run_session_machine(
    harness: SessionHarness,
    settings: Settings | None = None,
    *,
    backend: str = "asyncio",
) -> None:
    """Drive two sessions through random histories; raise at the first difference.

    Args:
        harness: how to get at them.
        settings: how many histories, and how long; `None`: as the profile has it.
        backend: the event loop, as anyio names it.
    """
    with start_blocking_portal(backend) as portal:

        class Bound(SessionMachine):
            def __init__(self) -> None:
                super().__init__(harness, portal)

        run_state_machine_as_test(Bound, settings=settings or histories())
