"""Hypothesis strategies for what a journal is given."""

from __future__ import annotations

from datetime import UTC, datetime, timezone
from typing import Any

from hypothesis import strategies as st

from raf_session.changes import Change, LabelDelta, SessionStatus, StateDelta
from raf_session.entries import Entry, EntryKind
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage, MessageRole, MessageSource, Usage

__all__ = (
    "changes",
    "entries",
    "hostile_text",
    "json_values",
    "messages",
    "moments",
    "names",
    "session_keys",
    "state_deltas",
)

_NOTABLE = ("", "\0", "\ud83d", "\udcff", "😀", "e\u0301", "é", "%", "_", "*", "'", '"')


def hostile_text(max_size: int = 30) -> st.SearchStrategy[str]:
    """Text of any code points, NUL and lone surrogates among them.

    A high surrogate before a low one is their character: JSON cannot tell them apart.
    """
    any_text = st.text(
        st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None),
        max_size=max_size,
    )
    surrogates = st.text(st.characters(categories=["Cs"]), max_size=3)
    return st.one_of(any_text, surrogates, st.sampled_from(_NOTABLE)).map(_joined)


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode(
        "utf-16-le", "surrogatepass"
    )


def names(max_size: int = 12) -> st.SearchStrategy[str]:
    """Names: not empty, without NUL and surrogates, within their bytes."""
    return st.one_of(
        st.text(
            st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
            min_size=1,
            max_size=max_size,
        ),
        st.sampled_from(("a", "A", "a ", "%", "_", "*", "?", "[x]", "a/b", "é", "..")),
    )


def session_keys() -> st.SearchStrategy[SessionKey]:
    """Keys of sessions; parts other than the id may be empty."""
    part = st.one_of(st.just(""), names())
    return st.builds(SessionKey, part, part, part, names())


def json_values(max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """JSON values: hostile text, large integers, all finite floats, nested deeply."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from((2**53 + 1, 2**63, 2**64, -(2**64), 10**40)),
        st.floats(allow_nan=False, allow_infinity=False),
        hostile_text(),
    )
    return st.one_of(
        st.recursive(
            leaves,
            lambda inner: st.one_of(
                st.lists(inner, max_size=4),
                st.dictionaries(hostile_text(8), inner, max_size=4),
            ),
            max_leaves=max_leaves,
        ),
        st.builds(_nested, leaves, st.integers(0, 150)),
    )


def _nested(leaf: Any, depth: int) -> Any:
    for level in range(depth):
        leaf = {"k": leaf} if level % 2 else [leaf]
    return leaf


def _objects() -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(hostile_text(8), json_values(4), max_size=3)


def moments() -> st.SearchStrategy[datetime]:
    """Aware moments, in zones of any offset."""
    zones = st.one_of(
        st.just(UTC),
        st.timedeltas(
            min_value=-timezone.max.utcoffset(None),
            max_value=timezone.max.utcoffset(None),
        ).map(timezone),
    )
    return st.datetimes(
        min_value=datetime(1980, 1, 1),  # noqa: DTZ001  (the strategy adds the zone)
        max_value=datetime(2100, 1, 1),  # noqa: DTZ001
        timezones=zones,
    )


def _fields(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(fields)


def _parts() -> st.SearchStrategy[dict[str, Any]]:
    text = hostile_text()
    return st.one_of(
        _fields(type=st.just("text"), text=text),
        _fields(x=text, type=st.just("reasoning"), text=text),
        _fields(type=st.just("refusal"), refusal=text),
        _fields(type=st.just("image_url"), image_url=_objects()),
        _fields(input_audio=_objects(), type=st.just("input_audio")),
        _fields(type=st.just("file"), file=_objects()),
        _fields(y=json_values(4), type=text),
        _objects(),
    )


def _calls() -> st.SearchStrategy[dict[str, Any]]:
    arguments = st.one_of(hostile_text(), json_values(4))
    function = st.fixed_dictionaries({"name": hostile_text(), "arguments": arguments})
    return st.one_of(
        st.fixed_dictionaries(
            {"id": hostile_text(8), "type": st.just("function"), "function": function}
        ),
        _objects(),
    )


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
        metadata=st.one_of(st.none(), _objects()),
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


def _usages() -> st.SearchStrategy[Usage]:
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
        usage=st.one_of(st.none(), _usages()),
        metadata=_objects(),
        extra=_objects(),
    )


def changes() -> st.SearchStrategy[Change]:
    """Changes of state and description; times and request record are left out."""

    def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(st.none(), strategy)

    labels = st.sets(st.sampled_from(("x", "y", "é", "%")), max_size=2)
    text = st.one_of(st.just(""), names())
    return st.builds(
        Change,
        session=maybe(state_deltas()),
        user=maybe(state_deltas()),
        app=maybe(state_deltas()),
        providers=maybe(state_deltas()),
        title=maybe(text),
        model=maybe(text),
        labels=maybe(st.builds(LabelDelta, labels, labels)),
        pin=maybe(st.booleans()),
        status=maybe(st.sampled_from(SessionStatus)),
    )
