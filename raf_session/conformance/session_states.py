"""Checks of what a session keeps for others: provider states and the last request."""

from __future__ import annotations

from typing import Any, Final, cast

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import raises, same
from raf_session.conformance.session_harness import SessionCheck, SessionFactory
from raf_session.conformance.session_values import (
    PLAIN,
    REJECTED_VALUES,
    SHAPES,
    STATES,
    same_messages,
)
from raf_session.errors import InvalidValueError
from raf_session.frozen import thaw
from raf_session.json_text import dump_json
from raf_session.messages import ChatMessage
from raf_session.prefix import ROOT, prefix_hashes

__all__ = ("CHECKS",)

_NAMES: Final = ("p", "P", "p.q", "p/q", "p:q", "%2f", "é", "e\u0301", "😀", "n" * 512)


async def check_a_missing_state_is_none(make: SessionFactory) -> None:
    """The state of a provider that kept none is `None`."""
    session = await make("s", clock=TickingClock())
    same(session.get_provider_state("p"), None, "a state that nobody set")
    same(session.get_provider_state(""), None, "a state without a name")


async def check_states_come_back_exactly(make: SessionFactory) -> None:
    """Every JSON value comes back as it was, and the last one counts."""
    session = await make("s", clock=TickingClock())
    for state in STATES:
        session.set_provider_state("p", state)
        found = session.get_provider_state("p")
        same(dump_json(thaw(found)), dump_json(state), f"the state {state!r}")
    session.set_provider_state("p", None)
    same(session.get_provider_state("p"), None, "null")


async def check_a_state_is_bound_to_its_name(make: SessionFactory) -> None:
    """Names that look alike keep states of their own."""
    session = await make("s", clock=TickingClock())
    for n, name in enumerate(_NAMES):
        session.set_provider_state(name, n)
    for n, name in enumerate(_NAMES):
        same(session.get_provider_state(name), n, f"the state of {name!r}")


async def check_a_state_is_copied_in_and_out(make: SessionFactory) -> None:
    """Neither what was given nor what was read lets anybody change the state."""
    session = await make("s", clock=TickingClock())
    given: dict[str, Any] = {"a": [1, {"b": 2}]}
    session.set_provider_state("p", given)
    given["a"][1]["b"] = 3
    given["a"].append(4)
    given["c"] = 5
    expected = '{"a":[1,{"b":2}]}'
    found = cast("dict[str, Any]", session.get_provider_state("p"))
    same(dump_json(thaw(found)), expected, "after the caller's object changed")
    with raises(TypeError, "a change of what was read"):
        found["c"] = 1
    with raises(AttributeError, "a change of a list in what was read"):
        found["a"].append(1)
    same(dump_json(thaw(session.get_provider_state("p"))), expected, "the state")


async def check_a_value_that_is_no_json_is_refused(make: SessionFactory) -> None:
    """What JSON cannot hold is refused with the path to it, and nothing changes."""
    session = await make("s", clock=TickingClock())
    session.set_provider_state("p", {"kept": True})
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = 0
    for _ in range(201):
        deep = [deep]
    for state, path in (*REJECTED_VALUES, (cycle, "[0]"), (deep, "[0]")):
        with raises(InvalidValueError, f"the state {str(state)[:80]}") as caught:
            session.set_provider_state("p", state)
        seen = caught[0].path
        wanted = f"p{path}" if path.startswith("[") or not path else f"p.{path}"
        assert seen.startswith(wanted), f"the path is {seen[:80]!r}, not {wanted!r}"
        same(session.get_provider_state("p"), {"kept": True}, "the state")
    for name in ("", "\0", "\ud800", "n" * 513, cast("str", 1)):
        with raises(InvalidValueError, f"the name {name!r}"):
            session.set_provider_state(name, 1)


async def check_states_leave_the_rest_alone(make: SessionFactory) -> None:
    """Setting a state adds no message and is no activity; `clear` keeps states."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    await session.add_messages_batch(PLAIN)
    before = (session.created_at, session.last_active_at)
    clock.tick(60)
    session.set_provider_state("p", 1)
    same((session.created_at, session.last_active_at), before, "the times")
    same_messages(await session.get_messages(), PLAIN, "the messages")
    await session.clear()
    same(session.get_provider_state("p"), 1, "the state after clear")


# The request hash ----------------------------------------------------------------


async def check_there_is_no_hash_before_the_first(make: SessionFactory) -> None:
    """Before the first request the hash is `None`; messages alone make none."""
    session = await make("s", clock=TickingClock())
    same(session.get_last_request_hash(), None, "the hash of a new session")
    await session.add_messages_batch(PLAIN)
    same(session.get_last_request_hash(), None, "the hash after messages")


async def check_an_empty_request_is_the_root(make: SessionFactory) -> None:
    """A request without messages records the root of the chain."""
    session = await make("s", clock=TickingClock())
    session.touch_request_hash([])
    same(session.get_last_request_hash(), ROOT, "the hash of no messages")


async def check_the_hash_is_the_prefix_hash(make: SessionFactory) -> None:
    """The hash is the last link of the chain, unsigned 64 bits, the latest counts."""
    session = await make("s", clock=TickingClock())
    for messages in (PLAIN, SHAPES, PLAIN[:1], tuple(reversed(SHAPES))):
        session.touch_request_hash(messages)
        found = session.get_last_request_hash()
        same(found, prefix_hashes(messages)[-1], f"the hash of {len(messages)}")
        assert found is not None
        assert 0 < found < 1 << 64, f"{found} is no unsigned 64-bit integer"


async def check_equal_requests_have_equal_hashes(make: SessionFactory) -> None:
    """Equal lists hash alike in every session, as objects, copies or dicts."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    other = await make("other", clock=clock)
    session.touch_request_hash(list(SHAPES))
    dicts = [message.to_openai() for message in SHAPES]
    other.touch_request_hash(dicts)
    same(other.get_last_request_hash(), session.get_last_request_hash(), "of dicts")
    copies = [ChatMessage.from_openai(message) for message in dicts]
    other.touch_request_hash(tuple(copies))
    same(other.get_last_request_hash(), session.get_last_request_hash(), "of copies")


async def check_a_changed_request_has_another_hash(make: SessionFactory) -> None:
    """Another order, number of messages or field gives another hash."""
    session = await make("s", clock=TickingClock())
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "1"}}
    base: dict[str, Any] = {"role": "assistant", "content": "a", "tool_calls": [call]}
    requests: tuple[list[dict[str, Any]], ...] = (
        [base, {"role": "user", "content": "b"}],
        [{"role": "user", "content": "b"}, base],
        [base],
        [base, base],
        [{**base, "role": "user"}],
        [{**base, "content": "A"}],
        [{**base, "content": None}],
        [{**base, "name": "n"}],
        [{**base, "tool_calls": []}],
        [{**base, "tool_calls": [{**call, "id": "d"}]}],
        [{**base, "tool_calls": [{**call, "function": {"name": "f"}}]}],
        [
            {
                **base,
                "tool_calls": [{**call, "function": {"name": "f", "arguments": 1}}],
            }
        ],
        [{**base, "tool_call_id": "c"}],
        [{**base, "refusal": "no"}],
        [{**base, "unknown": 1}],
        [{**base, "unknown": 1.0}],
        [{**base, "unknown": True}],
    )
    hashes: list[int | None] = []
    for request in requests:
        session.touch_request_hash(request)
        hashes.append(session.get_last_request_hash())
    same(len(set(hashes)), len(requests), "the number of different hashes")


async def check_an_invalid_request_changes_nothing(make: SessionFactory) -> None:
    """A dict that is no message is refused with its path; the last request stays."""
    session = await make("s", clock=TickingClock())
    session.touch_request_hash(PLAIN)
    kept = session.get_last_request_hash()
    invalid: tuple[tuple[dict[str, Any], str], ...] = (
        ({"content": "no role"}, "role"),
        ({"role": "king", "content": "x"}, "role"),
        ({"role": "user", "content": "x", "extra": [float("nan")]}, "extra[0]"),
        ({"role": "user", "content": b"x"}, "content"),
    )
    for message, path in invalid:
        with raises(InvalidValueError, f"the message {message!r}") as caught:
            session.touch_request_hash([PLAIN[0], message])
        seen = caught[0].path
        assert seen.endswith(path), f"the path is {seen!r}, not {path!r}"
        same(session.get_last_request_hash(), kept, "the hash")


async def check_a_request_leaves_the_rest_alone(make: SessionFactory) -> None:
    """Recording a request adds no message and moves no time."""
    clock = TickingClock()
    session = await make("s", clock=clock)
    await session.add_messages_batch(PLAIN)
    before = (session.created_at, session.last_active_at)
    clock.tick(60)
    session.touch_request_hash(SHAPES)
    same((session.created_at, session.last_active_at), before, "the times")
    same_messages(await session.get_messages(), PLAIN, "the messages")


CHECKS: Final[tuple[SessionCheck, ...]] = (
    check_a_missing_state_is_none,
    check_states_come_back_exactly,
    check_a_state_is_bound_to_its_name,
    check_a_state_is_copied_in_and_out,
    check_a_value_that_is_no_json_is_refused,
    check_states_leave_the_rest_alone,
    check_there_is_no_hash_before_the_first,
    check_an_empty_request_is_the_root,
    check_the_hash_is_the_prefix_hash,
    check_equal_requests_have_equal_hashes,
    check_a_changed_request_has_another_hash,
    check_an_invalid_request_changes_nothing,
    check_a_request_leaves_the_rest_alone,
)
