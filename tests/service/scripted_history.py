"""A history of operations of every kind, drawn from a seed, and what comes of it.

Nothing in it is left to chance: ids, times and texts are given and the clock is the
test's, so that every backend has to give the same answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from copy import deepcopy
from itertools import cycle, islice
from random import Random
from typing import Any, Final

from service_values import (
    EPOCH,
    answered,
    called,
    canonical,
    forget,
    returned,
    said,
    shown,
    shown_event,
)

from raf_session.conformance import TickingClock
from raf_session.errors import SessionError
from raf_session.keys import SessionKey
from raf_session.options import Query
from raf_session.service import Event, Session, SessionService
from raf_session.service.event_entries import event_of

__all__ = ("OPERATIONS", "Player")

APPS: Final = ("shop", "a:b")
USERS: Final = ("ann", "b*b")
IDS: Final = ("s1", "S1", "s/2")
KEYS: Final = ("plain", "user:name", "app:theme", "temp:note", "user:ü", "app:n")
VALUES: Final[tuple[Any, ...]] = (
    *(0, 1, 1.0, True, None, "", "text", "é\u0000\u2028🦊", -0.0, 2**70, 1e-7),
    *([], {}, [1, [2, {"b": 1, "a": [None]}]], {"z": {"y": 1}, "a": 2}),
)
SECONDS: Final = (0, 0.000001, 1, 7.5, 30, 60, 200)
OPERATIONS: Final = {
    "create": 12,
    "get": 12,
    "append": 50,
    "call": 10,
    "repeat": 5,
    "batch": 12,
    "change": 15,
    "set_state": 8,
    "scoped": 12,
    "list": 8,
    "delete": 4,
    "summarize": 8,
    "tick": 14,
}
"""How often each kind of operation is drawn."""


class Player:
    """Plays one history on a service, and notes each answer, errors included.

    Args:
        service: the service.
        clock: of its journal.
        seed: what the history is drawn from.

    Attributes:
        answers: the canonical text of each answer.
        played: how often each operation was played.
        failed: how often each kind of error came.
    """

    def __init__(self, service: SessionService, clock: TickingClock, seed: int) -> None:
        self._service = service
        self._clock = clock
        self._chance = Random(seed)
        self._handles: list[Session] = []
        self._appended: list[Event] = []
        self._count = 0
        self.answers: list[str] = []
        self.played: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    async def play(self, operations: int) -> list[str]:
        """Play so many operations, then read everything, and return the answers."""
        deck = [name for name, weight in OPERATIONS.items() for _ in range(weight)]
        self._chance.shuffle(deck)
        kinds: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            name: getattr(self, f"_{name}") for name in OPERATIONS
        }
        await self._note("create", self._create)
        for name in islice(cycle(deck), operations - 1):
            await self._note(name, kinds[name])
        await self._note("everything", self._everything)
        for handle in self._handles:
            forget(handle)
        return self.answers

    async def _note(
        self, name: str, operation: Callable[[], Coroutine[Any, Any, Any]]
    ) -> None:
        self.played[name] += 1
        answer: Any
        try:
            answer = await operation()
        except (SessionError, ValueError, TypeError) as error:
            self.failed[type(error).__name__] += 1
            answer = f"{type(error).__name__}: {error}"
        self.answers.append(canonical([len(self.answers), name, answer]))

    # What is drawn -----------------------------------------------------------------

    def _name(self) -> str:
        self._count += 1
        return f"e{self._count}"

    def _names(self) -> dict[str, str]:
        return {
            "app_name": self._chance.choice(APPS),
            "user_id": self._chance.choice(USERS),
        }

    def _handle(self) -> Session:
        return self._chance.choice(self._handles[-6:])

    def _state(self) -> dict[str, Any]:
        names = self._chance.sample(KEYS, self._chance.randrange(4))
        return {name: deepcopy(self._chance.choice(VALUES)) for name in names}

    def _gone(self, state: dict[str, Any]) -> set[str]:
        names = self._chance.sample(KEYS, self._chance.choice((0, 0, 1, 2)))
        return {name for name in names if name not in state}

    def _event(self) -> Event:
        state = self._state()
        make = self._chance.choice((said, answered))
        fields: dict[str, Any] = self._chance.choice(
            (
                {},
                {"custom_metadata": {"a": [1.0, None]}, "branch": "a.b"},
                {"usage_metadata": {"prompt_tokens": 7, "completion_tokens": 5}},
                {"partial": True},
                {"error_code": "E", "error_message": "ü", "interrupted": True},
                {"content": None, "turn_complete": True, "visible": False},
            )
        )
        away = self._chance.choice((0, 0, 0, 1, -40, 18000, -EPOCH, 0.1234567))
        now = self._clock().timestamp()
        return make(
            self._name(),
            state=state,
            deleted=self._gone(state),
            timestamp=now + away,
            invocation_id=f"run{self._count}",
            **fields,
        )

    # Operations --------------------------------------------------------------------

    async def _create(self) -> Any:
        session = await self._service.create_session(
            **self._names(),
            state=self._state(),
            session_id=self._chance.choice(IDS),
        )
        self._handles.append(session)
        return shown(session)

    async def _get(self) -> Any:
        session = await self._service.get_session(
            **self._names(), session_id=self._chance.choice(IDS)
        )
        if session is None:
            return None
        self._handles.append(session)
        return shown(session)

    async def _append(self) -> Any:
        return await self._add(self._event())

    async def _add(self, event: Event) -> Any:
        handle = self._handle()
        known = handle.revision
        expected = self._chance.choice((None, None, None, known, (known or 1) + 1))
        await self._service.append_event(handle, event, expected_revision=expected)
        self._appended.append(event)
        return [shown_event(event), shown(handle)]

    async def _call(self) -> Any:
        name = self._name()
        if self._count % 3 == 0:
            return await self._add(called(name, f"c{self._count}", "c"))
        return await self._add(returned(name, f"c{self._count - 1}"))

    async def _repeat(self) -> Any:
        event = self._chance.choice(self._appended or [said("none")])
        if self._chance.random() < 0.3:
            event = event.model_copy(update={"author": "other"})
        return await self._add(event)

    async def _batch(self) -> Any:
        handle = self._handle()
        events = [self._event() for _ in range(self._chance.randrange(5))]
        if events and self._chance.random() < 0.1:
            events.append(events[0])
        await self._service.append_events(handle, events)
        return shown(handle)

    async def _change(self) -> Any:
        handle = self._handle()
        for name in self._gone({}):
            handle.state.pop(name, None)
        handle.state.update(self._state())
        for value in handle.state.values():
            if isinstance(value, list):
                value.append(self._count)
        before = shown(handle)
        await self._service.update_session(handle)
        return [before, shown(handle)]

    async def _set_state(self) -> Any:
        handle = self._handle()
        state = self._state()
        await self._service.update_session_state(
            handle, state, deleted=sorted(self._gone(state))
        )
        return shown(handle)

    async def _scoped(self) -> Any:
        names, value = self._names(), self._chance.choice(VALUES)
        app, user = names["app_name"], names["user_id"]
        service = self._service
        match self._chance.randrange(5):
            case 0:
                await service.update_app_state(app, {"n": value}, deleted=("theme",))
            case 1:
                await service.update_user_state(app, user, {"name": value, "ü": 1})
            case 2:
                await service.delete_app_state(app, "n")
            case 3:
                await service.delete_user_state(app, user, "ü")
            case _:
                return await service.list_user_states(app)
        return [
            await service.get_app_state(app),
            await service.get_user_state(app, user),
        ]

    async def _list(self) -> Any:
        names: dict[str, Any] = self._names()
        if self._chance.random() < 0.5:
            del names["user_id"]
        answer = await self._service.list_sessions(**names)
        pages, cursor = [], None
        while True:
            page = await self._service.list_sessions(**names, limit=2, cursor=cursor)
            pages += [shown(session) for session in page.sessions]
            cursor = page.cursor
            if cursor is None:
                return [[shown(session) for session in answer.sessions], pages]

    async def _delete(self) -> Any:
        await self._service.delete_session(
            **self._names(), session_id=self._chance.choice(IDS)
        )

    async def _summarize(self) -> Any:
        handle = self._handle()
        outcome = await self._service.create_session_summary(handle)
        return [
            outcome,
            shown(handle),
            await self._service.get_session_summary(handle),
        ]

    async def _tick(self) -> Any:
        self._clock.tick(self._chance.choice(SECONDS))

    async def _everything(self) -> Any:
        """Return all that is stored, archives included, and every handle."""
        journal = self._service.journal
        records: list[Any] = []
        for app in APPS:
            page = await journal.scan(Query(app=app), order="key", limit=100)
            records += [await self._record(listed.head.key) for listed in page.sessions]
            records.append(await self._service.list_user_states(app))
        return [records, [shown(handle) for handle in self._handles]]

    async def _record(self, key: SessionKey) -> Any:
        record = await self._service.journal.load(key, archived=True)
        head = record.head
        return [
            str(key),
            [shown_event(event_of(entry)) for entry in record.entries],
            [[e.left_at, shown_event(event_of(e))] for e in record.archived],
            [record.state, record.user_state, record.app_state],
            record.provider_states,
            [str(moment) for moment in head[3:6]],
            [head.revision, head.last_seq, head.spliced_at, head.active, head.total],
            head.status,
        ]
