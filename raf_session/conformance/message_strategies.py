"""Hypothesis strategies for messages, what they hold, and entries around them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from raf_session.calls import ToolCall
from raf_session.changes import StateDelta
from raf_session.conformance.text_strategies import (
    hostile_text,
    json_values,
    moments,
    names,
    objects,
)
from raf_session.entries import Entry, EntryKind
from raf_session.messages import ChatMessage, MessageRole, MessageSource, Usage
from raf_session.parts import ContentPart

__all__ = ("entries", "messages", "parts", "state_deltas", "tool_calls", "usages")


def _fields(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(fields)


def _parts() -> st.SearchStrategy[dict[str, Any]]:
    text = hostile_text()
    return st.one_of(
        _fields(type=st.just("text"), text=text),
        _fields(x=text, type=st.just("reasoning"), text=text),
        _fields(type=st.just("refusal"), refusal=text),
        _fields(type=st.just("image_url"), image_url=objects()),
        _fields(input_audio=objects(), type=st.just("input_audio")),
        _fields(type=st.just("file"), file=objects()),
        _fields(y=json_values(4), type=text),
        objects(),
    )


def _calls() -> st.SearchStrategy[dict[str, Any]]:
    arguments = st.one_of(hostile_text(), json_values(4))
    function = st.fixed_dictionaries({"name": hostile_text(), "arguments": arguments})
    return st.one_of(
        st.fixed_dictionaries(
            {"id": hostile_text(8), "type": st.just("function"), "function": function}
        ),
        objects(),
    )


def parts() -> st.SearchStrategy[ContentPart]:
    """Parts of every type, and of types that nobody knows."""
    return _parts().map(lambda part: _only_part({"role": "user", "content": [part]}))


def _only_part(wire: dict[str, Any]) -> ContentPart:
    content = ChatMessage.from_openai(wire).content
    assert isinstance(content, tuple)
    part: ContentPart = content[0]
    return part


def tool_calls() -> st.SearchStrategy[ToolCall]:
    """Calls, with arguments as text and as objects."""
    return _calls().map(lambda call: _only_call({"role": "user", "tool_calls": [call]}))


def _only_call(wire: dict[str, Any]) -> ToolCall:
    calls = ChatMessage.from_openai(wire).tool_calls
    assert calls is not None
    return calls[0]


def messages() -> st.SearchStrategy[ChatMessage]:
    """Messages of every role and shape of content, with what is ours beside it."""
    text = hostile_text()
    content = st.one_of(st.none(), text, st.lists(_parts(), max_size=3), json_values(4))
    wire = st.fixed_dictionaries(
        {"role": st.sampled_from([role.value for role in MessageRole])},
        optional={
            "content": content,
            "name": st.one_of(st.none(), text),
            "tool_calls": st.one_of(st.none(), st.lists(_calls(), max_size=2)),
            "tool_call_id": text,
            "refusal": st.one_of(st.none(), text),
            "x-extra": json_values(4),
        },
    )
    return st.builds(
        ChatMessage.from_openai,
        wire,
        id=st.one_of(st.none(), names()),
        created_at=st.one_of(st.none(), moments()),
        metadata=st.one_of(st.none(), objects()),
        source=st.one_of(st.none(), st.sampled_from(MessageSource)),
    )


def _delta(values: dict[str, Any], gone: set[str]) -> StateDelta:
    return StateDelta(values, gone - values.keys())


def state_deltas() -> st.SearchStrategy[StateDelta]:
    """Deltas that set and delete keys."""
    keys = names(6)
    return st.builds(
        _delta,
        st.dictionaries(keys, json_values(4), max_size=3),
        st.sets(keys, max_size=2),
    )


def usages() -> st.SearchStrategy[Usage]:
    """Tokens of model calls, with and without what the cache held."""
    number = st.integers(0, 10**6)
    return st.builds(
        Usage,
        prompt_tokens=number,
        total_tokens=number,
        prompt_cache_hit_tokens=st.one_of(st.none(), number),
    )


def _entry(*fields: Any, **more: Any) -> Entry:
    return Entry(*fields, **more)  # `builds` reads the fields of a tuple otherwise


def entries(
    entry_ids: st.SearchStrategy[str] | None = None,
) -> st.SearchStrategy[Entry]:
    """Entries of every kind, each field given or not."""
    maybe = st.one_of(st.none(), hostile_text())
    return st.builds(
        _entry,
        names() if entry_ids is None else entry_ids,
        st.sampled_from(EntryKind),
        st.one_of(st.none(), messages()),
        author=maybe,
        invocation_id=maybe,
        branch=maybe,
        timestamp=st.one_of(
            st.none(), st.floats(allow_nan=False, allow_infinity=False)
        ),
        state_delta=st.one_of(st.none(), state_deltas()),
        usage=st.one_of(st.none(), usages()),
        metadata=objects(),
        extra=objects(),
    )
