"""Wrappers forward every member of their trait, with arguments, answer and errors."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from typing_extensions import get_protocol_members, override

from raf_session.messages import ChatMessage
from raf_session.session import ISession
from raf_session.store import ISessionStore
from raf_session.wrapper import SessionWrapper, StoreWrapper

pytestmark = pytest.mark.anyio

SAID = ChatMessage.user("x")
CALLS: dict[str, tuple[Any, ...]] = {
    "add_message": (SAID,),
    "add_messages_batch": ([SAID],),
    "get_provider_state": ("p",),
    "set_provider_state": ("p", {"a": 1}),
    "touch_request_hash": ([SAID],),
    "save_session": (object(),),
    "get_session": ("s",),
    "delete_session": ("s",),
}
PROPERTIES = {"session_id", "created_at", "last_active_at"}
NOT_FORWARDED = {"deserialize"}
ASYNC = {
    "add_message", "add_messages_batch", "get_messages", "clear", "touch_last_active",
    "save_session", "get_session", "delete_session", "cleanup_expired",
}  # fmt: skip


class Spy:
    """Notes every member that is used, and answers with an object of its own."""

    def __init__(self) -> None:
        self.used: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answers: dict[str, object] = {}
        self.error: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        answer = self.answers.setdefault(name, object())

        def note(*args: Any, **kwargs: Any) -> Any:
            self.used.append((name, args, kwargs))
            if self.error is not None:
                raise self.error
            return answer

        async def note_later(*args: Any, **kwargs: Any) -> Any:
            return note(*args, **kwargs)

        if name in PROPERTIES:
            return note()
        return note_later if name in ASYNC else note


async def use(target: object, name: str, **kwargs: Any) -> Any:
    value = getattr(target, name)
    if name in PROPERTIES:
        return value
    answer = value(*CALLS.get(name, ()), **kwargs)
    return await cast("Awaitable[Any]", answer) if name in ASYNC else answer


CASES = [
    *((SessionWrapper, name) for name in sorted(get_protocol_members(ISession))),
    *((StoreWrapper, name) for name in sorted(get_protocol_members(ISessionStore))),
]


@pytest.mark.parametrize(
    ("wrapper", "name"),
    [case for case in CASES if case[1] not in NOT_FORWARDED],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_each_member_reaches_the_inner_one(wrapper: Any, name: str) -> None:
    spy = Spy()
    outer = wrapper(spy)
    answer = await use(outer, name)
    assert spy.used == [(name, CALLS.get(name, ()), {})]
    quiet = {
        "add_message", "add_messages_batch", "clear", "touch_last_active",
        "set_provider_state", "touch_request_hash", "save_session", "delete_session",
    }  # fmt: skip
    assert answer is (None if name in quiet else spy.answers[name])
    spy.error = KeyError("theirs")
    with pytest.raises(KeyError, match="theirs"):
        await use(outer, name)
    assert name in vars(wrapper), "nothing is left to a default"


@pytest.mark.parametrize("wrapper", [SessionWrapper, StoreWrapper])
def test_a_wrapper_has_the_signatures_of_its_trait(wrapper: Any) -> None:
    trait: Any = ISession if wrapper is SessionWrapper else ISessionStore
    for name in get_protocol_members(trait):
        mine, theirs = inspect.getattr_static(wrapper, name), getattr(trait, name)
        if isinstance(mine, property):
            continue
        ours = list(inspect.signature(getattr(wrapper, name)).parameters)
        wanted = list(inspect.signature(theirs).parameters)
        assert ours[: len(wanted)] == wanted, name


async def test_a_header_is_passed_on() -> None:
    spy = Spy()
    SessionWrapper(cast("ISession", spy)).touch_request_hash([SAID], header={"m": 1})
    assert spy.used == [("touch_request_hash", ([SAID],), {"header": {"m": 1}})]


def test_deserialize_names_the_way() -> None:
    way = r"SessionWrapper\(Inner\.deserialize\(data\)\)"
    with pytest.raises(TypeError, match=way):
        SessionWrapper.deserialize("{}")


async def test_an_override_is_taken() -> None:
    class Late(SessionWrapper[ISession]):
        @property
        @override
        def created_at(self) -> datetime:
            return datetime(2030, 1, 1, tzinfo=UTC)

    assert Late(cast("ISession", Spy())).created_at.year == 2030
