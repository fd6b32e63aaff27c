"""Stored rows as entries, and back: what is compiled and its twin in Python are one."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import copy, deepcopy
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_values_messages import JSON, TEXT, WIRE
from test_values_rules import ENTRIES, KEY, PLAIN

from raf_session import _stored_py
from raf_session.encoding import Row, _event_to_json
from raf_session.entries import Counts, Entry, EntryKind
from raf_session.errors import SessionDamagedError
from raf_session.json_text import dump_json
from raf_session.messages import ChatMessage, MessageRole

EXTENSION = "raf_session._stored"
KINDS = st.sampled_from([kind.value for kind in EntryKind])
SPOILED = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {},
        optional={
            "message": WIRE | JSON,
            "author": TEXT | JSON,
            "invocation_id": TEXT | JSON,
            "branch": TEXT | JSON,
            "timestamp": st.floats(allow_nan=False) | JSON,
            "own": JSON,
            "extra": JSON,
            "": JSON,
        },
    ),
)


@pytest.fixture(scope="module")
def compiled(request: pytest.FixtureRequest) -> ModuleType:
    if find_spec(EXTENSION) is None:
        if request.config.getoption("--require-ext"):
            pytest.fail(f"{EXTENSION} was not built")
        pytest.skip(f"{EXTENSION} was not built")
    return import_module(EXTENSION)


def outcome(module: ModuleType, rows: Any, *decode: Callable[[str], str]) -> Any:
    """Return the entries, all of each, or the error and its text."""
    try:
        entries = module.read_entries(rows, *decode)
    except Exception as error:  # noqa: BLE001  (any, as long as both raise it)
        return type(error), str(error)
    return [(entry, shown(entry.message)) for entry in entries]


def shown(message: ChatMessage | None) -> object:
    if not isinstance(message, ChatMessage):
        return message
    return (
        list(message.__dict__.items()),
        message.__pydantic_fields_set__,
        message.__pydantic_extra__,
        message.__pydantic_private__,
        repr(message),
        _dumped(message),
    )


def _dumped(message: ChatMessage) -> object:
    try:
        return message.model_dump()
    except UnicodeEncodeError as error:  # pydantic takes no half of a pair as a key
        return str(error)


@given(ENTRIES, KINDS, st.integers(0, 1 << 62), st.integers(0, 9))
def test_twins_read_what_was_written(
    compiled: ModuleType, entry: Entry, kind: str, seq: int, left_at: int
) -> None:
    body = PLAIN.encode(entry)
    row = Row(seq, left_at, entry.id, kind, 5, body, Counts())
    found = outcome(compiled, [row])
    assert found == outcome(_stored_py, [row])
    assert found[0][0].message == entry.message


@given(st.lists(ENTRIES, max_size=4), KINDS | st.none() | TEXT, st.booleans())
def test_short_rows_are_those_of_active_entries(
    compiled: ModuleType,
    entries: list[Entry],
    kind: str | None,
    coded: bool,
) -> None:
    short: list[Any] = []
    whole: list[Any] = []
    for seq, entry in enumerate(entries, 1):
        body = PLAIN.encode(entry)
        body = body[::-1] if coded else body
        short.append((seq, entry.id, kind, 5, body))
        whole.append((seq, 0, entry.id, kind or "message", 5, body, None))
    if kind == "":
        whole = [(*row[:3], kind, *row[4:]) for row in whole]

    def decode(text: str) -> str:
        return text[::-1]

    assert [_stored_py.whole_row(row) for row in (*short, *whole)] == 2 * whole
    how = (decode,) if coded else ()
    found = outcome(_stored_py, whole, *how)
    assert outcome(_stored_py, short, *how) == found
    for rows in (short, whole, short[:1] + whole[1:], iter(short)):
        assert outcome(compiled, rows, *how) == found


@given(st.lists(SPOILED, max_size=3), KINDS | TEXT)
def test_twins_agree_on_what_nobody_wrote(
    compiled: ModuleType, events: list[Any], kind: str
) -> None:
    rows = [
        (n, 0, f"e{n}", kind, 5, json.dumps(event, separators=(",", ":")), None)
        for n, event in enumerate(events)
    ]
    assert outcome(compiled, rows) == outcome(_stored_py, rows)


@given(
    st.sampled_from(["user", "assistant", "tool", "", "nobody", "us\\u0065r"]),
    st.text(st.sampled_from('an\\"/ \n\x00\x1f\x7fé漢😀\ud800}{u0') | st.characters()),
    st.sampled_from(["", " ", "}", "{", '"', "\\", ',"content":"b"']),
)
def test_twins_read_the_same_text_where_it_is_not_quite_json(
    compiled: ModuleType, role: str, text: str, behind: str
) -> None:
    body = f'{{"message":{{"role":"{role}","content":"{text}"{behind}}}}}'
    for size in (len(body), len(body) - 1, len(body) // 2):
        row = (1, 0, "e", "message", 5, body[:size], None)
        assert outcome(compiled, [row]) == outcome(_stored_py, [row])


@given(st.text(), st.booleans())
def test_twins_read_every_text_however_it_is_escaped(
    compiled: ModuleType, text: str, ascii_only: bool
) -> None:
    written = json.dumps(text, ensure_ascii=ascii_only)
    body = f'{{"message":{{"role":"user","content":{written}}}}}'
    row = (1, 0, "e", "message", 5, body, None)
    found = outcome(compiled, [row])
    assert found == outcome(_stored_py, [row])
    assert found[0][0].message.content == text


@pytest.mark.parametrize("mark", [*map(chr, range(128)), "\u20ac", "\U0001f600"])
@pytest.mark.parametrize("front", ["", "\\", "\u00e9\\", "\u6f22"])
def test_twins_read_or_refuse_every_character(
    compiled: ModuleType, mark: str, front: str
) -> None:
    body = f'{{"message":{{"role":"user","content":"a{front}{mark}b"}}}}'
    row = (1, 0, "e", "message", 5, body, None)
    assert outcome(compiled, [row]) == outcome(_stored_py, [row])


@pytest.mark.parametrize("name", ["id", "type", "name", "arguments", "strict", None])
@pytest.mark.parametrize("value", ["text", 1, None, {}])
@pytest.mark.parametrize("inside", [True, False])
def test_twins_read_the_same_call_whatever_it_lacks_or_adds(
    compiled: ModuleType, name: str | None, value: Any, inside: bool
) -> None:
    function: dict[str, Any] = {"name": "f", "arguments": "{}"}
    call: dict[str, Any] = {"id": "c", "function": function}
    if name is None:
        (function if inside else call).clear()
    else:
        (function if inside else call)[name] = value
    message = {"role": "assistant", "tool_calls": [call, {**call, "type": "function"}]}
    row = (1, 0, "e", "message", 5, json.dumps({"message": message}), None)
    found = outcome(compiled, [row])
    assert found == outcome(_stored_py, [row])
    fields_set = [
        [
            c.__pydantic_fields_set__
            for c in module.read_entries([row])[0].message.tool_calls or ()
        ]
        for module in (compiled, _stored_py)
    ]
    assert fields_set[0] == fields_set[1]


CALL_PARTS = st.dictionaries(
    st.sampled_from(["id", "type", "function", "index"]),
    st.dictionaries(st.sampled_from(["name", "arguments", "strict"]), TEXT | JSON)
    | TEXT
    | JSON,
)


@given(
    st.dictionaries(
        st.sampled_from(["name", "tool_call_id", "refusal", "other"]), TEXT | JSON
    ),
    st.lists(CALL_PARTS | JSON, max_size=3) | JSON,
)
def test_twins_read_the_same_calls(
    compiled: ModuleType, fields: dict[str, Any], calls: Any
) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": calls, **fields}
    row = (1, 0, "e", "message", 5, json.dumps({"message": message}), None)
    assert outcome(compiled, [row]) == outcome(_stored_py, [row])


@given(ENTRIES)
def test_twins_write_plain_messages_as_the_encoder_does(
    compiled: ModuleType, entry: Entry
) -> None:
    text = dump_json(_event_to_json(entry))
    assert PLAIN.encode(entry) == text
    for module in (compiled, _stored_py):
        assert module.plain_text(entry) in {None, text}


@given(
    st.sampled_from(MessageRole),
    st.text(st.sampled_from('an\\"/ \n\x00\x1f\x7fé漢😀\ud800') | st.characters()),
)
def test_twins_write_every_text(
    compiled: ModuleType, role: MessageRole, text: str
) -> None:
    entry = Entry("e", message=ChatMessage(role=role, content=text))
    body = dump_json({"message": {"role": role.value, "content": text}})
    assert compiled.plain_text(entry) == body
    assert _stored_py.plain_text(entry) == body
    assert type(body) is type(compiled.plain_text(entry)) is str


@given(ENTRIES, st.integers(1, 1 << 62), st.integers(0, 9))
def test_twins_make_the_same_rows_and_entries_of_them(
    compiled: ModuleType, entry: Entry, seq: int, left_at: int
) -> None:
    rows = [
        module.row_of("{}", entry, seq, 5, left_at) for module in (compiled, _stored_py)
    ]
    assert rows[0] == rows[1]
    assert rows[0] == (
        *(seq, left_at, entry.id, entry.kind.value, 5, "{}"),
        Counts.of([entry]),
    )
    assert {type(row) for row in rows} == {Row}
    assert {type(row.kind) for row in rows} == {str}
    for module in (compiled, _stored_py):
        assert module.rows_of(["{}"], (entry,), iter([seq]), 5) == [
            rows[0]._replace(left_at=0)
        ]
        assert module.rows_of(["{}", "[]"], [entry, entry], [seq], 5)[1:] == []
        (stored,) = module.stored_entries([entry], rows[:1])
        assert type(stored) is Entry
        assert stored == entry.stored(seq, 5, left_at)
        assert module.stored_entries((entry,), [tuple(rows[0])]) == (stored,)
        with pytest.raises(ValueError, match="2 entries for 1 rows"):
            module.stored_entries([entry, entry], rows[:1])


def test_what_was_read_lives_and_dies_like_what_was_made(compiled: ModuleType) -> None:
    body = '{"message":{"role":"user","content":"hello"}}'
    (entry,) = compiled.read_entries([(1, 0, "e", "message", 5, body, None)])
    assert deepcopy(entry) == entry
    message = entry.message
    message.model_fields_set.clear()
    message.copy().__pydantic_fields_set__.clear()
    copy(message).__pydantic_fields_set__.clear()
    deepcopy(message).__pydantic_fields_set__.clear()
    (again,) = compiled.read_entries([(1, "e", None, 5, body)])
    assert again == entry
    assert again.message.model_fields_set == {"role", "content"}
    assert message.model_copy(update={"content": "bye"}).text == "bye"
    assert message.text == "hello"
    with pytest.raises(ValueError, match="frozen"):
        message.content = "changed"
    assert ChatMessage.user("hello") == message
    assert hash(ChatMessage.user("hello")) == hash(message)


@pytest.mark.parametrize("body", ['{"message":{}}', '{"author":"a","message":{}}'])
def test_a_message_without_fields_is_damage(body: str) -> None:
    row = Row(1, 0, "e", "message", 5, body, Counts())
    with pytest.raises(SessionDamagedError, match="'e' at 1"):
        PLAIN.decode(KEY, [row])
