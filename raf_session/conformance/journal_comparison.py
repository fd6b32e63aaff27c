"""A journal and a model of it side by side: calls, and what has to be equal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final, TypeVar

from anyio.from_thread import BlockingPortal
from hypothesis.stateful import RuleBasedStateMachine, invariant
from typing_extensions import override

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_harness import (
    Capability,
    JournalHarness,
    JournalOpener,
)
from raf_session.conformance.journal_model import (
    IDLE,
    LIFETIME,
    STATE_IDLE,
    JournalModel,
    Kept,
)
from raf_session.conformance.journal_values import same, varied
from raf_session.entries import Counts, Entry, Record
from raf_session.errors import SessionError, SessionNotFoundError
from raf_session.journal import Journal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, SessionTTLOptions

__all__ = ("KEYS", "LIMITS", "SCOPES", "ComparedMachine", "as_kept", "read_all")

_T = TypeVar("_T")

LIMITS: Final = Limits(
    sessions=SessionTTLOptions(
        max_idle_secs=IDLE.total_seconds(), max_lifetime_secs=LIFETIME.total_seconds()
    ),
    user_state=SessionTTLOptions(max_idle_secs=STATE_IDLE.total_seconds()),
)
KEYS: Final = (
    SessionKey("app", "u", "", "a"),
    SessionKey("app", "u", "s", "a"),
    SessionKey("app", "", "", "A"),
    SessionKey("app%", "u", "", "a "),
)
SCOPES: Final = tuple(
    dict.fromkeys(
        scope for k in KEYS for scope in (ScopeKey(k.app, k.user), ScopeKey(k.app))
    )
)


class ComparedMachine(RuleBasedStateMachine):
    """A machine without rules, that compares whatever it is."""

    def __init__(self, harness: JournalHarness, portal: BlockingPortal) -> None:
        super().__init__()
        self.portal = portal
        self.stack: ExitStack = ExitStack()
        self.clock: TickingClock = TickingClock()
        self.model: JournalModel = JournalModel(self.clock)
        self.drawn: int = 0
        self.former: dict[SessionKey, str] = {}
        self.capabilities: frozenset[Capability] = harness.capabilities
        self._opened: JournalOpener = self.stack.enter_context(
            portal.wrap_async_context_manager(harness.storage())
        )
        self._handles: ExitStack = ExitStack()
        self.journals: list[Journal] = []
        self.reopen()

    def reopen(self) -> None:
        """Close the journals that are open, and open the storage anew."""
        self._handles.close()
        wrap = self.portal.wrap_async_context_manager
        count = 2 if Capability.SHARED in self.capabilities else 1
        self.journals = [
            self._handles.enter_context(
                wrap(self._opened(limits=LIMITS, clock=self.clock))
            )
            for _ in range(count)
        ]

    @override
    def teardown(self) -> None:
        """Close the journals and remove their storage."""
        self._handles.close()
        self.stack.close()

    # Calls -----------------------------------------------------------------------

    def journal(self, handle: int) -> Journal:
        """Return one of the open journals: there are two where that can be."""
        return self.journals[handle % len(self.journals)]

    def do(self, call: Callable[..., Awaitable[_T]], *args: Any, **kwargs: Any) -> _T:
        """Await the call in the event loop of the portal."""
        return self.portal.call(partial(call, *args, **kwargs))

    def agree(
        self, real: Callable[[], _T], model: Callable[[], Any], what: str
    ) -> _T | None:
        """Do both; return the answer, or `None` where both raise the same error."""
        expected: Exception | None = None
        try:
            model()
        except (SessionError, ValueError) as error:
            expected = error
        try:
            answer = real()
        except (SessionError, ValueError) as error:
            same(type(error), type(expected), f"{what}: the error ({error!r})")
            return None
        same(None, expected, f"{what}: the error")
        return answer

    def with_ids(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the entries under ids that were never used."""
        named: list[Entry] = []
        for entry in entries:
            self.drawn += 1
            named.append(varied(entry, id=f"e{self.drawn}"))
        return named

    def pick(self, n: int) -> SessionKey:
        """Return a key: mostly of a session that is there."""
        live = [k for k, s in self.model.sessions.items() if self.model.alive(s)]
        return live[n % len(live)] if n % 6 and live else KEYS[n % len(KEYS)]

    # What holds throughout ---------------------------------------------------------

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        """Compare all that can be read."""
        records, states = self.do(read_all, self.journal(self.drawn))
        for key, record in records.items():
            self.compare(key, record)
        for scope, state in states.items():
            same(state, self.model.state(scope), f"the state of {scope}")

    def compare(self, key: SessionKey, record: Record | None) -> None:
        """Compare what was read of one session."""
        try:
            session = self.model.find(key)
        except SessionNotFoundError:
            same(record, None, f"{key!r} is not there")
            return
        assert record is not None, f"{key!r} is there"
        head = record.head
        seen = [as_kept(e).text for e in record.entries]
        same(seen, [kept.text for kept in session.active], "the active window")
        left = [as_kept(e) for e in record.archived]
        same(
            [(k.seq, k.text[2]) for k in left],
            [(k.seq, k.text[2]) for k in session.archived],
            "the archive",
        )
        same(head.active, Counts.of(record.entries), "the active counts")
        same(
            (head.revision, head.last_seq, head.spliced_at, head.incarnation),
            (
                session.revision,
                session.last_seq,
                session.spliced_at,
                session.incarnation,
            ),
            "the head",
        )
        same(
            (head.title, head.model, head.labels, head.pinned),
            (session.title, session.model, session.labels, session.pinned),
            "the description",
        )
        same(
            (head.created_at, head.last_active_at),
            (session.created, session.active_at),
            "the times",
        )
        same(
            (record.state, record.provider_states),
            (session.state, session.providers),
            "the states",
        )
        same(
            (record.user_state, record.app_state),
            (
                self.model.state(ScopeKey(key.app, key.user)),
                self.model.state(ScopeKey(key.app)),
            ),
            "the scoped states",
        )
        times = [e.stored_at for e in record.entries]
        same(times, sorted(filter(None, times)), "stored_at is in order")


async def read_all(
    journal: Journal,
) -> tuple[dict[SessionKey, Record | None], dict[ScopeKey, Mapping[str, Any]]]:
    """Read every session and every scope."""
    records: dict[SessionKey, Record | None] = {}
    for key in KEYS:
        try:
            records[key] = await journal.load(key, archived=True)
        except SessionNotFoundError:
            records[key] = None
    scopes = {scope: await journal.scoped_state(scope) for scope in SCOPES}
    return records, {scope: scoped.state for scope, scoped in scopes.items()}


def as_kept(entry: Entry) -> Kept:
    """Return a stored entry in the model's form."""
    return Kept(entry.seq, entry.plain, entry.left_at)
