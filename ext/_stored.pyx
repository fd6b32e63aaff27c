"""Stored rows as entries, and back, compiled; `raf_session._stored_py` does the same.

Messages of text and of calls, as nearly all are, are made here; of everything else the
twin in Python makes the entry.
"""

from cpython.dict cimport PyDict_Copy
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_New
from cpython.unicode cimport PyUnicode_Substring
from libc.string cimport memcpy
from named_tuples cimport PyTypeObject, blank, fill

from raf_session._stored_py import ASKED, EVENT_FIELDS, NO_EVENT, SAID, Row, entry_of
from raf_session.calls import ToolCall
from raf_session.entries import Counts, Entry, EntryKind
from raf_session.frozen import EMPTY
from raf_session.json_text import dump_text, load_written
from raf_session.messages import DEFAULTS, TEXT_FIELDS, ChatMessage, MessageRole
from raf_session.parts import FrozenModel

__all__ = ("plain_text", "read_entries", "row_of", "rows_of", "stored_entries")

cdef extern from "Python.h":
    PyTypeObject *Py_TYPE(object)
    void PyObject_GC_UnTrack(PyObject *)
    object PyObject_GenericGetDict(object, void *)
    int PyUnicode_KIND(object)
    void *PyUnicode_DATA(object)
    Py_UCS4 PyUnicode_MAX_CHAR_VALUE(object)
    object PyUnicode_New(Py_ssize_t, Py_UCS4)
    void PyUnicode_WRITE(int, void *, Py_ssize_t, Py_UCS4)
    Py_UCS4 PyUnicode_READ(int, void *, Py_ssize_t)
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    bint PyUnicode_IS_ASCII(object)


class _Template:
    """Its instances share the keys of their dicts, and so do copies of these."""


cdef dict template(dict fields):
    made = _Template()
    for name, value in fields.items():
        setattr(made, name, value)
    return made.__dict__


cdef Py_ssize_t SHORT = 5  # the width of a row of an active entry alone
cdef object _message = EntryKind.MESSAGE
cdef dict _kinds = {kind.value: kind for kind in EntryKind}
cdef dict _roles = {role.value: role for role in MessageRole}
cdef dict _kind_names = {kind: kind.value for kind in EntryKind}
cdef object _row_type = Row
cdef object _said = SAID
cdef object _asked = ASKED
cdef object _user = MessageRole.USER
cdef dict _beginnings = {
    role: f'{{"message":{{"role":"{role.value}","content":' for role in MessageRole
}
cdef dict _defaults = template(DEFAULTS)
cdef dict _call_defaults = template(
    dict.fromkeys(ToolCall.model_fields) | {"extra": EMPTY}
)
cdef object _texts = frozenset(TEXT_FIELDS)
cdef set _text_alone = {"role", "content"}  # shared: nobody gets at it to change it
cdef object _message_type = ChatMessage
cdef object _call_type = ToolCall
cdef object _entry_type = Entry

cdef tuple _event_fields = EVENT_FIELDS
cdef tuple _no_event = NO_EVENT
cdef Py_ssize_t WIDTH = len(Entry._fields)
if len(_event_fields) != 4 or len(_no_event) != 8 or WIDTH != 14:
    raise ImportError("the compiled reader was built for other entries")

# Where pydantic keeps what it knows of a model.
cdef object _model = FrozenModel.__mro__[1].__dict__
cdef object _fields_slot = _model["__dict__"]
cdef object _given_slot = _model["__pydantic_fields_set__"]
cdef object _extra_slot = _model["__pydantic_extra__"]
cdef object _private_slot = _model["__pydantic_private__"]


def read_entries(rows, decode=None):
    """Return the entries of these rows; what `decode` makes of a body is JSON text."""
    cdef list entries = []
    cdef object message, entry, event, body
    for row in rows:
        body = body_of(row)
        if decode is not None:
            body = decode(body)
        message = text_alone(body)
        if message is not None:
            entries.append(plain_entry(row, message, _no_event))
            continue
        event = load_written(body)
        entry = known_entry(row, <dict>event) if type(event) is dict else None
        entries.append(entry_of(row, event) if entry is None else entry)
    return tuple(entries)


cdef inline object body_of(object row):
    return row[4] if len(row) == SHORT else row[5]


def plain_text(entry):
    """Return the body of an entry that is a message of role and text alone.

    `None`: there is more to it.
    """
    if type(entry) is not _entry_type:
        return None
    cdef tuple values = <tuple>entry
    cdef object message = values[2]
    cdef Py_ssize_t i
    if type(message) is not _message_type:
        return None
    for i in range(8):
        if values[3 + i] is not _no_event[i]:
            return None
    cdef dict fields = fields_of(message)
    cdef object text = fields["content"]
    if type(text) is not str or get(_given_slot, message) != _text_alone:
        return None
    cdef object beginning = _beginnings.get(fields["role"])
    if beginning is None:
        return None
    if not PyUnicode_IS_ASCII(text) or not readable(text):
        return f"{beginning}{dump_text(text)}}}}}"
    cdef Py_ssize_t first = PyUnicode_GET_LENGTH(beginning)
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text)
    cdef object body = PyUnicode_New(first + size + 4, 127)
    cdef char *target = <char *>PyUnicode_DATA(body)
    memcpy(target, PyUnicode_DATA(beginning), first)
    target[first] = c'"'
    memcpy(target + first + 1, PyUnicode_DATA(text), size)
    memcpy(target + first + 1 + size, <char *>b'"}}', 3)
    return body


cdef bint readable(object text) noexcept:
    """Tell whether ASCII text stands in JSON as it is."""
    cdef unsigned char *data = <unsigned char *>PyUnicode_DATA(text)
    cdef unsigned char odd = 0, c
    cdef Py_ssize_t i
    for i in range(PyUnicode_GET_LENGTH(text)):
        c = data[i]
        odd |= (c < 0x20) | (c == c'"') | (c == c'\\')
    return not odd


def row_of(str body, entry, seq, stored_at, left_at=0):
    """Return the row of an entry at its place; its counts are the entry's own."""
    return made_row(body, entry, seq, stored_at, left_at)


def rows_of(bodies, entries, places, stored_at):
    """Return the rows of entries that are active at these places since that moment."""
    cdef list rows = []
    for body, entry, seq in zip(bodies, entries, places):
        rows.append(made_row(body, entry, seq, stored_at, 0))
    return rows


cdef object made_row(str body, object entry, object seq, object stored_at, object left_at):
    if not isinstance(entry, _entry_type):
        raise TypeError(f"{type(entry).__name__} is not an Entry")
    cdef object message = (<tuple>entry)[2], counts
    if message is None or (<tuple>entry)[8] is not None:
        counts = Counts.of((entry,))
    else:
        counts = _asked if fields_of(message)["role"] is _user else _said
    cdef object row = blank(_row_type, 7)
    fill(row, 0, seq)
    fill(row, 1, left_at)
    fill(row, 2, (<tuple>entry)[0])
    fill(row, 3, _kind_names[(<tuple>entry)[1]])
    fill(row, 4, stored_at)
    fill(row, 5, body)
    fill(row, 6, counts)
    return row


def stored_entries(entries, rows):
    """Return the entries with the places and times of their rows."""
    cdef list theirs = list(entries), found = list(rows)
    cdef Py_ssize_t n
    if len(theirs) != len(found):
        raise ValueError(f"{len(theirs)} entries for {len(found)} rows")
    for n in range(len(found)):
        found[n] = placed(theirs[n], found[n])
    return tuple(found)


cdef object placed(object entry, object row):
    if type(entry) is not _entry_type or type(row) is not _row_type:
        return entry.stored(row[0], row[4], row[1])
    cdef tuple fields = <tuple>entry, place = <tuple>row
    cdef object made = blank(_entry_type, WIDTH)
    cdef Py_ssize_t i
    for i in range(11):
        fill(made, i, fields[i])
    fill(made, 11, place[0])
    fill(made, 12, place[4])
    fill(made, 13, place[1])
    return made


# Entries ----------------------------------------------------------------------------


cdef object known_entry(object row, dict event):
    """Return an entry whose message holds text and calls alone, else `None`."""
    cdef object message = event.get("message")
    if type(message) is not dict:
        return None
    cdef tuple plain = _no_event
    cdef Py_ssize_t known = 1, i
    if len(event) > 1:
        plain = PyTuple_New(8)
        for i in range(4):
            value = event.get(_event_fields[i])
            known += value is not None
            fill(plain, i, value)
        for i in range(4, 8):
            fill(plain, i, _no_event[i])
        if len(event) != known:
            return None
    message = known_message(<dict>message)
    return None if message is None else plain_entry(row, message, plain)


cdef object plain_entry(object row, object message, tuple plain):
    cdef object seq, left_at, entry_id, kind, stored_us
    if len(row) == SHORT:
        seq, entry_id, kind, stored_us, _ = row
        left_at = 0
    else:
        seq, left_at, entry_id, kind, stored_us, _, _ = row
    kind = _message if kind is None else _kinds[kind]
    cdef object entry = blank(_entry_type, WIDTH)
    cdef Py_ssize_t i
    fill(entry, 0, entry_id)
    fill(entry, 1, kind)
    fill(entry, 2, message)
    for i in range(8):
        fill(entry, 3 + i, plain[i])
    fill(entry, 11, seq)
    fill(entry, 12, stored_us)
    fill(entry, 13, left_at)
    PyObject_GC_UnTrack(<PyObject *>entry)  # of no cycle: all in it is frozen
    return entry


# Messages ---------------------------------------------------------------------------


cdef str HEAD = '{"message":{"role":"'
cdef str TAIL = '"}}'
cdef list _begun = [(f'{role.value}","content":"', role) for role in MessageRole]


cdef object text_alone(object body):
    """Return the message of a body as the encoder writes one of role and text.

    `None`: it is of another form, or no JSON.
    """
    if type(body) is not str:
        return None
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(body)
    cdef Py_ssize_t at = PyUnicode_GET_LENGTH(HEAD)
    cdef Py_ssize_t end = size - PyUnicode_GET_LENGTH(TAIL)
    cdef int kind = PyUnicode_KIND(body)
    cdef void *data = PyUnicode_DATA(body)
    if not has(kind, data, 0, end, HEAD):
        return None
    cdef object role = None, text
    cdef str begun
    for begun, role in _begun:
        if has(kind, data, at, end, begun):
            break
    else:
        return None
    if not has(kind, data, end, size, TAIL):
        return None
    text = read_text(body, at + PyUnicode_GET_LENGTH(begun), end)
    if text is None:
        return None
    cdef dict values = PyDict_Copy(_defaults)
    values["role"] = role
    values["content"] = text
    return model(_message_type, values, _text_alone)


cdef bint has(int kind, void *data, Py_ssize_t at, Py_ssize_t end, str text) noexcept:
    """Tell whether this text stands there, all of it before the end."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text), i
    cdef unsigned char *wanted = <unsigned char *>PyUnicode_DATA(text)
    if size > end - at:
        return False
    for i in range(size):
        if PyUnicode_READ(kind, data, at + i) != wanted[i]:
            return False
    return True


cdef object read_text(object body, Py_ssize_t at, Py_ssize_t end):
    """Return the text of JSON between quotes, `None` where it is something else.

    A character given by its number is left to the JSON reader.
    """
    cdef int kind = PyUnicode_KIND(body)
    cdef void *data = PyUnicode_DATA(body)
    cdef Py_ssize_t escapes = 0, i = at
    cdef unsigned char odd = 0, c
    cdef Py_UCS4 wide
    if kind == 1:
        for i in range(at, end):  # without a branch, so that it is done 16 at once
            c = (<unsigned char *>data)[i]
            odd |= (c < 0x20) | (c == c'"') | (c == c'\\')
        if not odd:
            return PyUnicode_Substring(body, at, end)
    i = at
    while i < end:
        wide = PyUnicode_READ(kind, data, i)
        if wide < 0x20 or wide == c'"':
            return None
        if wide == c'\\':
            i += 1
            if i == end or meant(PyUnicode_READ(kind, data, i)) == 0:
                return None
            escapes += 1
        i += 1
    if escapes == 0:
        return PyUnicode_Substring(body, at, end)
    # What is escaped is ASCII, so that the text is as wide as the body.
    cdef object text = PyUnicode_New(end - at - escapes, PyUnicode_MAX_CHAR_VALUE(body))
    cdef void *target = PyUnicode_DATA(text)
    cdef Py_ssize_t place = 0
    i = at
    while i < end:
        wide = PyUnicode_READ(kind, data, i)
        if wide == c'\\':
            i += 1
            wide = meant(PyUnicode_READ(kind, data, i))
        PyUnicode_WRITE(kind, target, place, wide)
        place += 1
        i += 1
    return text


cdef inline Py_UCS4 meant(Py_UCS4 escaped) noexcept:
    """Return the character for the one behind a backslash, 0 for another."""
    if escaped == c'n':
        return 10
    if escaped == c'"' or escaped == c'\\' or escaped == c'/':
        return escaped
    if escaped == c't':
        return 9
    if escaped == c'r':
        return 13
    if escaped == c'b':
        return 8
    if escaped == c'f':
        return 12
    return 0


cdef object known_message(dict fields):
    """Return the message of fields that hold text and calls alone, else `None`."""
    cdef dict values = PyDict_Copy(_defaults)
    cdef object role = None
    for name, value in fields.items():
        if name == "role":
            role = _roles.get(value) if type(value) is str else None
        elif name == "tool_calls":
            if type(value) is not list:
                return None
            calls = known_calls(<list>value)
            if calls is None:
                return None
            values[name] = calls
        elif type(value) is str:
            if name != "content" and name not in _texts:
                return None
            values[name] = value
        elif value is not None or name != "content":
            return None
    if role is None:
        return None
    values["role"] = role
    return model(_message_type, values, set(fields))


cdef tuple known_calls(list items):
    """Return the calls of a list, `None` where one holds anything unusual."""
    cdef list calls = []
    for item in items:
        call = known_call(<dict>item) if type(item) is dict else None
        if call is None:
            return None
        calls.append(call)
    return tuple(calls)


cdef object known_call(dict fields):
    cdef object function = fields.get("function")
    if type(function) is not dict or not function:
        return None
    cdef dict values = PyDict_Copy(_call_defaults)
    cdef set given = {"type"}
    for name, value in fields.items():
        if name == "function":
            continue
        if type(value) is not str or (name != "id" and name != "type"):
            return None
        values[name] = value
        given.add(name)
    for name, value in (<dict>function).items():
        if type(value) is not str or (name != "name" and name != "arguments"):
            return None
        values[name] = value
        given.add(name)
    return model(_call_type, values, given)


cdef object model(object cls, dict values, set given):
    cdef object made = blank(cls, 0)
    put(_fields_slot, made, values)
    put(_given_slot, made, given)
    put(_extra_slot, made, None)
    put(_private_slot, made, None)
    # Of no cycle: what stands in a message is frozen, and no collection walks it.
    PyObject_GC_UnTrack(<PyObject *>made)
    PyObject_GC_UnTrack(<PyObject *>values)
    PyObject_GC_UnTrack(<PyObject *>given)
    return made


cdef inline dict fields_of(object model):
    return <dict>PyObject_GenericGetDict(model, NULL)


cdef inline object get(object slot, object model):
    return Py_TYPE(slot).tp_descr_get(slot, model, type(model))


cdef inline int put(object slot, object model, object value) except -1:
    return Py_TYPE(slot).tp_descr_set(slot, model, value)
