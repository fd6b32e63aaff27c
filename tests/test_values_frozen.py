"""Values cannot be changed: not through any public name, not through what made them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from raf_session.calls import ToolCall
from raf_session.changes import (
    Change,
    LabelDelta,
    RequestDelta,
    RequestRecord,
    SessionStatus,
    StateDelta,
)
from raf_session.entries import Counts, Entry, SessionHead
from raf_session.frozen import FrozenDict, freeze
from raf_session.json_text import dump_json
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage, MessageSource, Usage
from raf_session.metadata import ProviderStateStore, SessionMetadata, SessionSnapshot
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window
from raf_session.parts import AudioPart, ContentPart, FilePart, ImagePart, TextPart
from raf_session.prefix import message_digest
from raf_session.raf_json import snapshot_to_raf

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WIRE: dict[str, Any] = {
    "role": "assistant",
    "content": [{"type": "text", "text": "t"}, {"type": "x", "x": {"y": [1]}}],
    "tool_calls": [
        {"id": "c", "function": {"name": "f", "arguments": {"a": [1]}, "s": [1]}}
    ],
    "x": {"y": [1, {"z": 2}]},
}
MESSAGE = ChatMessage.from_openai(
    WIRE,
    id="m",
    created_at=NOW,
    metadata={"k": [1, {"l": 2}]},
    source=MessageSource.EXTERNAL,
)
SNAPSHOT = SessionSnapshot(
    session_id="s",
    metadata=SessionMetadata(created_at=NOW, extra={"x": [1]}),
    messages=[MESSAGE],
    provider_states=ProviderStateStore(states={"p": {"a": [1]}}),
    last_active_at=NOW,
    request=RequestRecord(b"12345678", 7),
    entry_ids=["e"],
    state={"s": [1]},
    extra={"x": [1]},
)
HEAD = SessionHead(
    SessionKey(session="s"), "i", 1, NOW, NOW, NOW, False, 1, 0, Counts(), Counts(),
    "", "", SessionStatus.ACTIVE, frozenset(("l",)), "T", None, 1,
)  # fmt: skip
MODELS: tuple[BaseModel, ...] = (
    MESSAGE,
    ChatMessage(
        role="user",  # type: ignore[arg-type]
        content=[TextPart(text="t", extra={"x": [1]})],
        tool_calls=[ToolCall(name="f", arguments={"a": [1]}, extra={"x": [1]})],
        extra={"x": [1]},
        metadata={"x": [1]},
    ),
    TextPart(text="t", extra={"x": [1]}),
    ImagePart(image_url={"url": "u", "x": [1]}),
    AudioPart(input_audio={"data": "d", "x": [1]}),
    FilePart(file={"x": [1]}),
    ContentPart(type="x", extra={"x": [1]}),
    ToolCall(id="c", name="f", arguments={"a": [1]}, function_extra={"x": [1]}),
    Usage(prompt_tokens=1),
    SNAPSHOT,
    SNAPSHOT.metadata,
    SNAPSHOT.provider_states,
    SessionTTLOptions(max_idle_secs=1),
)
RECORDS: tuple[Any, ...] = (
    StateDelta({"a": [1]}, ["b"]),
    LabelDelta(["a"], ["b"]),
    RequestRecord(b"12345678", 7),
    RequestDelta(0, b"12345678", 7),
    Change(session=StateDelta({"a": [1]}), title="t"),
    NewSession(key=SessionKey(session="s"), created_at=NOW),
    Window(last=1),
    Query(labels=("l",)),
    Limits(),
)
TUPLES: tuple[Any, ...] = (
    Entry("e", message=MESSAGE, metadata={"a": [1]}, extra={"b": [1]}, usage=Usage()),
    HEAD,
    SessionKey(session="s"),
)


def told(value: Any) -> tuple[object, ...]:
    """Show all that can be seen of a value."""
    text = repr(value)
    if isinstance(value, ChatMessage):
        shown = dump_json(value.to_openai())
        return text, shown, message_digest(value), message_digest(value.to_openai())
    if isinstance(value, SessionSnapshot):
        return text, dump_json(snapshot_to_raf(value))
    return (text,)


def tolerated(call: Callable[[], object]) -> object:
    """Return what a call gave, or nothing where it was refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except (TypeError, AttributeError, ValueError, LookupError, StopIteration):
        return None


def containers(value: object) -> list[Any]:
    """Find every container within a value."""
    found: list[Any] = []
    if isinstance(value, dict):
        found.append(value)
        for item in value.values():
            found += containers(item)
    elif isinstance(value, list | tuple | set | frozenset):
        found.append(value)
        for item in value:
            found += containers(item)
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            found += containers(getattr(value, name))
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            found += containers(getattr(value, field.name))
    return found


def call_method(target: Any, name: str, arguments: tuple[Any, ...]) -> object:
    return getattr(target, name)(*arguments)


def maul(container: Any) -> None:
    """Try every method that would change a container."""
    for name, arguments in (
        *(("clear", ()), ("pop", ()), ("pop", ("a",)), ("popitem", ())),
        *(("update", ({"new": 1},)), ("setdefault", ("new", 1)), ("append", (1,))),
        *(("add", ("new",)), ("sort", ()), ("__setitem__", ("new", 1))),
        *(("__setitem__", (0, 1)), ("__delitem__", ("x",)), ("__delitem__", (0,))),
        *(("__ior__", ({"new": 1},)), ("__iadd__", ([1],)), ("extend", ([1],))),
        *(("__init__", ({"new": 1},)), ("__setattr__", ("new", 1))),
    ):
        tolerated(partial(call_method, container, name, arguments))


VALUES = (*MODELS, *RECORDS, *TUPLES)
IDS = [f"{n}-{type(value).__name__}" for n, value in enumerate(VALUES)]


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_nothing_changes_a_value(value: Any) -> None:
    twin = pickle.loads(pickle.dumps(value))  # noqa: S301
    before, number = told(value), hash(value)
    for name in [n for n in dir(value) if not n.startswith("_")]:
        if not callable(tolerated(partial(getattr, value, name))):
            with pytest.raises((AttributeError, TypeError, ValueError)):
                setattr(value, name, None)
            with pytest.raises((AttributeError, TypeError, ValueError)):
                delattr(value, name)
    with pytest.raises((AttributeError, TypeError, ValueError)):
        value.never_heard_of = 1
    for container in containers(value):
        assert isinstance(container, tuple | frozenset | FrozenDict), container
        maul(container)
    assert told(value) == before
    assert hash(value) == number
    assert value == twin


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_copies_are_equal_and_as_frozen(value: Any) -> None:
    before = told(value)
    for make in (
        copy.copy,
        copy.deepcopy,
        *(
            lambda v, p=protocol: pickle.loads(pickle.dumps(v, p))  # noqa: S301
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
        ),
    ):
        again = make(value)
        assert type(again) is type(value)
        assert again == value
        assert told(again) == before
        for container in containers(again):
            assert isinstance(container, tuple | frozenset | FrozenDict)
            maul(container)
        assert told(again) == before
    assert told(value) == before


@pytest.mark.parametrize("model", MODELS, ids=IDS[: len(MODELS)])
def test_the_names_of_pydantic_change_nothing(model: Any) -> None:
    before = told(model)
    model.model_fields_set.add("new")
    model.model_fields_set.clear()
    for dump in (model.model_dump(), model.model_dump(exclude_unset=True)):
        for container in containers(dump):
            maul(container)
    tolerated(lambda: model.model_post_init(None))
    tolerated(lambda: model.model_copy(update={"new": 1}))
    assert told(model) == before
    again = model.model_copy()
    assert again == model
    assert told(again) == before
    deep = model.model_copy(deep=True)
    assert deep == model
    assert told(deep) == before


def test_a_second_init_of_a_frozen_dict_changes_nothing() -> None:
    frozen: FrozenDict[int] = FrozenDict({"a": 1})
    frozen.__init__({"b": 2})  # type: ignore[misc]
    assert frozen == {"a": 1}


@pytest.mark.parametrize("name", ["model_copy", "copy"])
def test_no_copy_lets_in_what_is_not_frozen(name: str) -> None:
    given: list[Any] = [1]
    made = tolerated(
        lambda: getattr(ChatMessage.user("x"), name)(update={"extra": {"x": given}})
    )
    if made is not None:
        before = dump_json(made.to_openai())  # type: ignore[attr-defined]
        given.append(2)
        assert dump_json(made.to_openai()) == before  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["model_construct", "construct", "model_validate"])
def test_no_constructor_lets_in_what_is_not_frozen(name: str) -> None:
    given: list[Any] = [1]
    values = {"role": "user", "content": "x", "extra": {"x": given}}
    call = getattr(ChatMessage, name)
    made: Any = tolerated(
        (lambda: call(values)) if name == "model_validate" else lambda: call(**values)
    )
    assert made is not None
    before = dump_json(made.to_openai())
    given.append(2)
    assert dump_json(made.to_openai()) == before
    for container in containers(made):
        assert isinstance(container, tuple | frozenset | FrozenDict)


@pytest.mark.parametrize(
    "make",
    [
        lambda g: ChatMessage.from_openai({"role": "user", "content": "x", "x": g}),
        lambda g: ChatMessage.from_openai({"role": "user", "content": [{"x": g}]}),
        lambda g: ChatMessage.from_openai({"role": "user"}, metadata=g),
        lambda g: ChatMessage(role="user", extra={"x": g}),  # type: ignore[arg-type]
        lambda g: ChatMessage(role="user", metadata=g),  # type: ignore[arg-type]
        lambda g: ChatMessage(role="user", content=[ContentPart(extra=g)]),  # type: ignore[arg-type]
        lambda g: ChatMessage(role="user", content=[g]),  # type: ignore[arg-type]
        lambda g: ToolCall(name="f", arguments=g),
        lambda g: ToolCall(name="f", extra=g, function_extra=g),
        lambda g: ImagePart(image_url=g),
        lambda g: ProviderStateStore(states=g),
        lambda g: ProviderStateStore().set("p", g),
        lambda g: SessionMetadata(extra=g),
        lambda g: SessionSnapshot(session_id="s", state=g, extra=g),
        StateDelta,
        lambda g: Entry("e", metadata=g, extra=g),
        freeze,
        lambda g: FrozenDict(x=freeze(g)),
    ],
)
def test_nothing_of_the_callers_is_kept(make: Callable[[Any], Any]) -> None:
    given: dict[str, Any] = {"a": [1, {"b": 2}]}
    made = make(given)
    before = repr(made)
    given["a"][1]["b"] = 3
    given["a"].append(4)
    given["c"] = 5
    assert repr(made) == before


def test_replaced_entries_are_checked() -> None:
    entry = Entry("e", message=MESSAGE)
    given: list[Any] = [1]
    again = entry._replace(metadata={"x": given})
    given.append(2)
    assert again.metadata == {"x": (1,)}
    with pytest.raises(ValueError, match="empty"):
        entry._replace(id="")


def test_the_stores_of_states_are_new_ones() -> None:
    store = ProviderStateStore()
    more = store.set("p", 1)
    assert (len(store), len(more)) == (0, 1)
    assert more.remove("p") == store
    assert more.get("p") == 1
    assert more.remove("missing") == more
