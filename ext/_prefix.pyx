"""The prefix hash, compiled; the format is in the docstring of ``_prefix_py``.

Walking a dict runs no Python code and never lets go of the GIL, so nobody can change
what is walked and no references need be held.  Where that cannot be kept, or something
is wrong, the walk gives up (`FAULT`) and `ChatMessage.from_openai` takes over: it makes
a frozen message, which is walked instead, or it raises.  Strings of 64 kB or more are
hashed after the walk, without the GIL.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove

from xxh64 cimport read64, write64, xxh64, xxh64_pair

from raf_session.frozen import MAX_DEPTH as _MAX_DEPTH, FrozenDict, freeze
from raf_session.messages import ChatMessage, ToolCall
from raf_session.parts import PART_TYPES, ContentPart, FrozenModel
from raf_session.prefix_match import (
    FORMAT_VERSION,
    ROOT,
    ZERO_SUBSTITUTE,
    PrefixMatch,
    as_hash,
    as_sequence,
    revive,
)

__all__ = (
    "FORMAT_VERSION",
    "ROOT",
    "ZERO_SUBSTITUTE",
    "PrefixTracker",
    "encode_message",
    "header_digest",
    "message_digest",
    "message_size",
    "prefix_hashes",
    "value_digest",
)


cdef extern from *:
    """
    #include <structmember.h>

    #ifdef Py_GIL_DISABLED
    #define RAF_FREE_THREADED 1
    #define RAF_LOAD(p) _Py_atomic_load_ptr_acquire(p)
    #else
    #define RAF_FREE_THREADED 0
    #define RAF_LOAD(p) (*(p))
    #endif

    #if defined(__GNUC__) || defined(__clang__)
    #define RAF_UNLIKELY(x) __builtin_expect(!!(x), 0)
    #else
    #define RAF_UNLIKELY(x) (x)
    #endif

    #if PY_VERSION_HEX < 0x030C0000
    #define RAF_READY(o) PyUnicode_IS_READY(o)
    #else
    #define RAF_READY(o) 1
    #endif

    /* Fill an empty slot; whoever comes second drops what it brought. */
    static void raf_fill(PyObject **slot, PyObject *value) {
    #ifdef Py_GIL_DISABLED
        PyObject *empty = NULL;
        if (!_Py_atomic_compare_exchange_ptr(slot, &empty, value)) Py_DECREF(value);
    #else
        PyObject *old = *slot;
        *slot = value;
        Py_XDECREF(old);
    #endif
    }

    /* The offset of a slot in its objects; -1 where this is no slot of objects. */
    static Py_ssize_t raf_offset(PyObject *slot) {
        if (!PyObject_TypeCheck(slot, &PyMemberDescr_Type)) return -1;
        return ((PyMemberDescrObject *)slot)->d_member->offset;
    }

    /* How many bytes certainly hold this integer, and those bytes. */
    static Py_ssize_t raf_int_room(PyObject *number) {
    #if PY_VERSION_HEX >= 0x030D0000
        return PyLong_AsNativeBytes(number, NULL, 0, -1);
    #else
        return (Py_ssize_t)(_PyLong_NumBits(number) / 8 + 1);
    #endif
    }

    static int raf_int_bytes(PyObject *number, unsigned char *out, Py_ssize_t room) {
    #if PY_VERSION_HEX >= 0x030D0000
        return PyLong_AsNativeBytes(
            number, out, room, Py_ASNATIVEBYTES_LITTLE_ENDIAN) < 0 ? -1 : 0;
    #else
        return _PyLong_AsByteArray((PyLongObject *)number, out, (size_t)room, 1, 1);
    #endif
    }

    /* An empty PrefixMatch: made before the work, for making one may run the
       garbage collector, and that may run anything. */
    static PyObject *raf_new_match(PyObject *type, Py_ssize_t size) {
        PyTypeObject *cls = (PyTypeObject *)type;
        PyObject *match = cls->tp_alloc(cls, size);
        if (match == NULL) return NULL;
    #if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject *)match)->ob_hash = -1;
    #endif
        for (Py_ssize_t i = 0; i < size; i++)
            PyTuple_SET_ITEM(match, i, Py_NewRef(Py_None));
        return match;
    }

    static int raf_set(PyObject *match, Py_ssize_t index, PyObject *value) {
        PyObject *old = PyTuple_GET_ITEM(match, index);
        if (value == NULL) return -1;
        PyTuple_SET_ITEM(match, index, value);
        Py_DECREF(old);
        return 0;
    }

    /* Names as they are encoded; all fit 16 bytes, which is what is copied. */
    typedef struct { char text[16]; unsigned char size; } raf_name;
    #define RAF_NAME(length, name) {"s" length name, sizeof(name) + 1}
    static const raf_name raf_names[] = {
        RAF_NAME("\\004", "role"), RAF_NAME("\\007", "content"),
        RAF_NAME("\\004", "name"), RAF_NAME("\\012", "tool_calls"),
        RAF_NAME("\\014", "tool_call_id"), RAF_NAME("\\007", "refusal"),
        RAF_NAME("\\002", "id"), RAF_NAME("\\004", "type"),
        RAF_NAME("\\010", "function"), RAF_NAME("\\011", "arguments"),
        RAF_NAME("\\004", "text"), RAF_NAME("\\011", "image_url"),
        RAF_NAME("\\013", "input_audio"), RAF_NAME("\\004", "file"),
    };
    """
    const bint FREE_THREADED "RAF_FREE_THREADED"
    bint unlikely "RAF_UNLIKELY" (bint condition) noexcept nogil
    bint is_ready "RAF_READY" (PyObject *text) noexcept
    PyObject *load "RAF_LOAD" (PyObject **slot) noexcept
    void fill "raf_fill" (PyObject **slot, PyObject *value) noexcept
    Py_ssize_t offset_of "raf_offset" (PyObject *slot) noexcept
    Py_ssize_t int_room "raf_int_room" (PyObject *number) noexcept
    int int_bytes "raf_int_bytes" (PyObject *number, uint8_t *out, Py_ssize_t room)
    object new_match "raf_new_match" (PyObject *type, Py_ssize_t size)
    int set_item "raf_set" (PyObject *match, Py_ssize_t index, PyObject *value) noexcept

    ctypedef struct Name "raf_name":
        char text[16]
        uint8_t size
    const Name NAMES "raf_names" []

cdef extern from "Python.h":
    ctypedef struct PyObject:
        pass
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject PyUnicode_Type, PyLong_Type, PyFloat_Type
    PyTypeObject PyDict_Type, PyList_Type, PyTuple_Type
    PyObject *Py_None
    PyObject *Py_True
    PyObject *Py_False
    PyTypeObject *Py_TYPE(PyObject *)
    void Py_INCREF(PyObject *)
    void Py_DECREF(PyObject *)
    void Py_XDECREF(PyObject *)
    bint PyObject_TypeCheck(PyObject *, PyTypeObject *)
    bint PyUnicode_Check(PyObject *)
    bint PyUnicode_CheckExact(PyObject *)
    bint PyLong_Check(PyObject *)
    bint PyDict_Check(PyObject *)
    bint PyList_CheckExact(PyObject *)
    bint PyTuple_CheckExact(PyObject *)
    bint PyBytes_CheckExact(PyObject *)
    bint PyAnySet_Check(PyObject *)
    bint PyUnicode_IS_ASCII(PyObject *)
    void *PyUnicode_DATA(PyObject *)
    int PyUnicode_KIND(PyObject *)
    uint32_t PyUnicode_READ(int kind, void *data, Py_ssize_t index) nogil
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject *)
    double PyFloat_AS_DOUBLE(PyObject *)
    long long PyLong_AsLongLongAndOverflow(PyObject *, int *)
    PyObject *PyLong_FromSsize_t(Py_ssize_t)
    PyObject *PyLong_FromUnsignedLongLong(unsigned long long)
    PyObject *PyBool_FromLong(long)
    Py_ssize_t PyDict_GET_SIZE(PyObject *)
    bint PyDict_Next(PyObject *, Py_ssize_t *, PyObject **, PyObject **)
    PyObject *PyDict_GetItemWithError(PyObject *, PyObject *)
    Py_ssize_t PyList_GET_SIZE(PyObject *)
    PyObject *PyList_GET_ITEM(PyObject *, Py_ssize_t)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *)
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t)
    PyObject **array_items "PySequence_Fast_ITEMS" (PyObject *)
    int PySet_Contains(PyObject *, PyObject *)
    PyObject *PyObject_GenericGetDict(PyObject *, void *)
    PyObject *PyBytes_FromStringAndSize(const char *, Py_ssize_t)
    char *PyBytes_AS_STRING(PyObject *)
    Py_ssize_t PyBytes_GET_SIZE(PyObject *)
    void PyErr_Clear()


# What a walk comes to ----------------------------------------------------------

cdef enum:
    OK = 0
    FAULT = -1  # not a message, or not one that can be walked like this
    NO_MEMORY = -2

cdef enum:
    LARGE = 4096  # bytes of UTF-8 from which a string enters as its hash
    HUGE_TEXT = 65536  # from which that hash is made without the GIL
    STACK = 4096  # bytes that are encoded without asking for memory
    FEW = 16  # new messages of a request, likewise
    GUESS = 512  # bytes of a message, to ask for a request's memory at once

cdef int MAX_DEPTH = _MAX_DEPTH
cdef uint64_t ROOT_LINK = ROOT
cdef uint64_t ZERO_LINK = ZERO_SUBSTITUTE
cdef uint8_t VERSION = FORMAT_VERSION

cdef object _chat_message = ChatMessage
cdef object _tool_call = ToolCall
cdef object _content_part = ContentPart
cdef object _frozen_dict = FrozenDict
cdef object _prefix_match = PrefixMatch
cdef PyTypeObject *CHAT_MESSAGE = <PyTypeObject *>_chat_message
cdef PyTypeObject *TOOL_CALL = <PyTypeObject *>_tool_call
cdef PyTypeObject *CONTENT_PART = <PyTypeObject *>_content_part
cdef PyTypeObject *FROZEN_DICT = <PyTypeObject *>_frozen_dict

cdef enum:
    TYPED = 6
cdef tuple _part_types = tuple(PART_TYPES.values())
cdef tuple _payload_names = tuple([cls.payload_name for cls in _part_types])
if len(_part_types) != TYPED:
    raise ImportError("the compiled prefix hash was built for other parts")
cdef PyTypeObject *PARTS[TYPED]
cdef PyObject *PAYLOADS[TYPED]
cdef int _index
for _index in range(TYPED):
    PARTS[_index] = <PyTypeObject *>(<object>_part_types[_index])
    PAYLOADS[_index] = <PyObject *>(<object>_payload_names[_index])

cdef object _digest_slot = ChatMessage.__dict__["_digest"]
cdef object _given_slot = FrozenModel.__mro__[1].__dict__["__pydantic_fields_set__"]
cdef Py_ssize_t DIGEST_OFFSET = offset_of(<PyObject *>_digest_slot)
cdef Py_ssize_t GIVEN_OFFSET = offset_of(<PyObject *>_given_slot)
if DIGEST_OFFSET <= 0 or GIVEN_OFFSET <= 0:
    raise ImportError("pydantic no longer keeps these attributes in slots")

cdef tuple _field_names = (
    "role", "content", "name", "tool_calls", "tool_call_id", "refusal", "extra",
)
cdef PyObject *FIELDS[7]
for _index in range(7):
    FIELDS[_index] = <PyObject *>(<object>_field_names[_index])

cdef object _id = "id"
cdef object _name = "name"
cdef object _type = "type"
cdef object _extra = "extra"
cdef object _content = "content"
cdef object _arguments = "arguments"
cdef object _function_extra = "function_extra"


# Bytes that grow ---------------------------------------------------------------

cdef struct Later:
    PyObject *text  # borrowed: the walked message holds it
    size_t size  # of its UTF-8
    size_t at  # where its hash belongs

cdef struct Writer:
    uint8_t *data
    size_t size
    size_t room
    bint owned  # whether `data` was asked for, rather than somebody's stack
    int64_t saved  # how much longer it would be with all strings in full
    Later *later
    Py_ssize_t later_count
    Py_ssize_t later_room

cdef struct Mark:
    size_t size
    int64_t saved
    Py_ssize_t later_count


cdef inline void open_writer(Writer *w, uint8_t *stack, size_t room) noexcept:
    w.data = stack
    w.size = 0
    w.room = room
    w.owned = False
    w.saved = 0
    w.later = NULL
    w.later_count = 0
    w.later_room = 0


cdef inline void close_writer(Writer *w) noexcept:
    if w.owned:
        free(w.data)
    free(w.later)


cdef inline Mark mark(const Writer *w) noexcept:
    cdef Mark here
    here.size = w.size
    here.saved = w.saved
    here.later_count = w.later_count
    return here


cdef inline void rewind(Writer *w, Mark here) noexcept:
    w.size = here.size
    w.saved = here.saved
    w.later_count = here.later_count


cdef int grow(Writer *w, size_t more) noexcept:
    cdef size_t room = w.room
    cdef uint8_t *data
    while room - w.size < more:
        if room > <size_t>-1 // 4:
            return NO_MEMORY
        room = 2 * room if room else STACK
    data = <uint8_t *>realloc(w.data if w.owned else NULL, room)
    if data is NULL:
        return NO_MEMORY
    if not w.owned and w.size:
        memcpy(data, w.data, w.size)
    w.data = data
    w.room = room
    w.owned = True
    return OK


cdef inline int reserve(Writer *w, size_t more) noexcept:
    if unlikely(w.room - w.size < more):
        return grow(w, more)
    return OK


cdef inline void put_copy(uint8_t *to, const uint8_t *data, size_t size) noexcept:
    """Copy a few bytes without a call."""
    if size > 32:
        memcpy(to, data, size)
    elif size >= 16:
        memcpy(to, data, 16)
        memcpy(to + size - 16, data + size - 16, 16)
    elif size >= 8:
        memcpy(to, data, 8)
        memcpy(to + size - 8, data + size - 8, 8)
    elif size >= 4:
        memcpy(to, data, 4)
        memcpy(to + size - 4, data + size - 4, 4)
    elif size:
        to[0] = data[0]
        to[size >> 1] = data[size >> 1]
        to[size - 1] = data[size - 1]


cdef inline void put_tag(Writer *w, uint8_t tag, size_t count) noexcept:
    """Write a tag and a length, for which room is reserved (11 bytes)."""
    w.data[w.size] = tag
    w.size += 1
    while count > 0x7F:
        w.data[w.size] = (count & 0x7F) | 0x80
        w.size += 1
        count >>= 7
    w.data[w.size] = <uint8_t>count
    w.size += 1


cdef inline int put_byte(Writer *w, uint8_t tag) noexcept:
    if reserve(w, 1) != OK:
        return NO_MEMORY
    w.data[w.size] = tag
    w.size += 1
    return OK


cdef inline int put_name(Writer *w, int name) noexcept:
    if reserve(w, 16) != OK:
        return NO_MEMORY
    memcpy(w.data + w.size, NAMES[name].text, 16)
    w.size += NAMES[name].size
    return OK


# Values ------------------------------------------------------------------------

ctypedef fused unit:
    uint8_t
    uint16_t
    uint32_t


cdef inline size_t units_size(const unit *text, Py_ssize_t count) noexcept nogil:
    cdef size_t size = count
    cdef Py_ssize_t i
    for i in range(count):
        size += text[i] >= 0x80
        if unit is not uint8_t:
            size += text[i] >= 0x800
        if unit is uint32_t:
            size += text[i] >= 0x10000
    return size


cdef inline void put_units(
    uint8_t *to, const unit *text, Py_ssize_t count
) noexcept nogil:
    """Write UTF-8; a lone surrogate becomes the three bytes of its number."""
    cdef uint32_t point
    cdef Py_ssize_t i
    for i in range(count):
        point = text[i]
        if point < 0x80:
            to[0] = <uint8_t>point
            to += 1
        elif point < 0x800:
            to[0] = <uint8_t>(0xC0 | (point >> 6))
            to[1] = <uint8_t>(0x80 | (point & 0x3F))
            to += 2
        elif point < 0x10000:
            to[0] = <uint8_t>(0xE0 | (point >> 12))
            to[1] = <uint8_t>(0x80 | ((point >> 6) & 0x3F))
            to[2] = <uint8_t>(0x80 | (point & 0x3F))
            to += 3
        else:
            to[0] = <uint8_t>(0xF0 | (point >> 18))
            to[1] = <uint8_t>(0x80 | ((point >> 12) & 0x3F))
            to[2] = <uint8_t>(0x80 | ((point >> 6) & 0x3F))
            to[3] = <uint8_t>(0x80 | (point & 0x3F))
            to += 4


cdef size_t utf8_size(int kind, const void *data, Py_ssize_t count) noexcept nogil:
    if kind == 1:
        return units_size(<const uint8_t *>data, count)
    if kind == 2:
        return units_size(<const uint16_t *>data, count)
    return units_size(<const uint32_t *>data, count)


cdef void put_utf8(
    uint8_t *to, int kind, const void *data, Py_ssize_t count
) noexcept nogil:
    if kind == 1:
        put_units(to, <const uint8_t *>data, count)
    elif kind == 2:
        put_units(to, <const uint16_t *>data, count)
    else:
        put_units(to, <const uint32_t *>data, count)


cdef int hash_utf8(
    const void *data, int kind, Py_ssize_t count, size_t size, bint ascii, uint64_t *hash
) noexcept nogil:
    """Hash a string's UTF-8, in place or by way of a copy that is not kept."""
    cdef uint8_t *copy
    if ascii:
        hash[0] = xxh64(<const uint8_t *>data, size, 0)
        return OK
    copy = <uint8_t *>malloc(size)
    if copy is NULL:
        return NO_MEMORY
    put_utf8(copy, kind, data, count)
    hash[0] = xxh64(copy, size, 0)
    free(copy)
    return OK


cdef int put_large(Writer *w, PyObject *text, size_t size) noexcept:
    cdef uint64_t hash = 0
    cdef Later *later
    cdef Py_ssize_t room
    if reserve(w, 20) != OK:
        return NO_MEMORY
    put_tag(w, c"S", size)
    if size < HUGE_TEXT:
        if hash_utf8(
            PyUnicode_DATA(text), PyUnicode_KIND(text), PyUnicode_GET_LENGTH(text),
            size, PyUnicode_IS_ASCII(text), &hash,
        ) != OK:
            return NO_MEMORY
    else:
        if w.later_count == w.later_room:
            room = 2 * w.later_room + 4
            later = <Later *>realloc(w.later, room * sizeof(Later))
            if later is NULL:
                return NO_MEMORY
            w.later = later
            w.later_room = room
        later = &w.later[w.later_count]
        later.text = text
        later.size = size
        later.at = w.size
        w.later_count += 1
    write64(w.data + w.size, hash)
    w.size += 8
    w.saved += <int64_t>size - 8
    return OK


cdef int put_wide(Writer *w, PyObject *text) noexcept:
    cdef Py_ssize_t count = PyUnicode_GET_LENGTH(text)
    cdef int kind = PyUnicode_KIND(text)
    cdef size_t size = utf8_size(kind, PyUnicode_DATA(text), count)
    if size >= LARGE:
        return put_large(w, text, size)
    if reserve(w, size + 3) != OK:
        return NO_MEMORY
    put_tag(w, c"s", size)
    put_utf8(w.data + w.size, kind, PyUnicode_DATA(text), count)
    w.size += size
    return OK


cdef inline int put_text(Writer *w, PyObject *text) noexcept:
    cdef size_t size
    if unlikely(not is_ready(text)):
        return FAULT
    if unlikely(not PyUnicode_IS_ASCII(text)):
        return put_wide(w, text)
    size = <size_t>PyUnicode_GET_LENGTH(text)
    if unlikely(size >= LARGE):
        return put_large(w, text, size)
    if reserve(w, size + 3) != OK:
        return NO_MEMORY
    put_tag(w, c"s", size)
    put_copy(w.data + w.size, <const uint8_t *>PyUnicode_DATA(text), size)
    w.size += size
    return OK


cdef int put_big_int(Writer *w, PyObject *number) noexcept:
    cdef Py_ssize_t size = int_room(number)
    cdef uint8_t *from_
    cdef uint8_t fill
    if size < 0 or reserve(w, <size_t>size + 32) != OK:
        PyErr_Clear()
        return NO_MEMORY
    from_ = w.data + w.size + 16
    if int_bytes(number, from_, size) < 0:
        PyErr_Clear()
        return NO_MEMORY
    while size > 1:
        fill = from_[size - 1]
        if not (fill == 0 and from_[size - 2] < 0x80) and not (
            fill == 0xFF and from_[size - 2] >= 0x80
        ):
            break
        size -= 1
    put_tag(w, c"i", size)
    memmove(w.data + w.size, from_, size)
    w.size += size
    return OK


cdef int put_int(Writer *w, PyObject *number) noexcept:
    cdef int overflow = 0
    cdef int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow)
    cdef uint64_t magnitude
    cdef int size = 1
    if overflow:
        return put_big_int(w, number)
    if reserve(w, 10) != OK:
        return NO_MEMORY
    magnitude = <uint64_t>(value if value >= 0 else ~value)
    while magnitude >= 0x80:
        magnitude >>= 8
        size += 1
    put_tag(w, c"i", size)
    write64(w.data + w.size, <uint64_t>value)
    w.size += size
    return OK


cdef int put_float(Writer *w, PyObject *number) noexcept:
    cdef double value = PyFloat_AS_DOUBLE(number)
    cdef uint64_t bits
    if value - value != 0.0:  # NaN or an infinity
        return FAULT
    if reserve(w, 9) != OK:
        return NO_MEMORY
    memcpy(&bits, &value, 8)
    w.data[w.size] = c"d"
    write64(w.data + w.size + 1, bits)
    w.size += 9
    return OK


cdef int put_value(Writer *w, PyObject *value, int depth) noexcept:
    """Write any JSON value; a container here stands on the level `depth`."""
    cdef PyTypeObject *kind = Py_TYPE(value)
    if kind is &PyUnicode_Type:
        return put_text(w, value)
    if value is Py_None:
        return put_byte(w, c"n")
    if value is Py_True:
        return put_byte(w, c"t")
    if value is Py_False:
        return put_byte(w, c"f")
    if kind is &PyLong_Type:
        return put_int(w, value)
    if PyDict_Check(value):
        return put_object(w, value, depth)
    if kind is &PyFloat_Type:
        return put_float(w, value)
    if kind is &PyList_Type or kind is &PyTuple_Type:
        return put_array(w, value, depth)
    if PyUnicode_Check(value):
        return put_text(w, value)
    if PyLong_Check(value):
        return put_int(w, value)
    return FAULT  # also subclasses of dict, float, list and tuple: they may run code


cdef inline bint is_plain(PyObject *fields) noexcept:
    """Whether this dict's items are what walking it shows: no code of a subclass."""
    cdef PyTypeObject *kind = Py_TYPE(fields)
    return kind is &PyDict_Type or kind is FROZEN_DICT


cdef int put_object(Writer *w, PyObject *value, int depth) noexcept:
    cdef PyObject *key
    cdef PyObject *item
    cdef Py_ssize_t place = 0
    cdef int result
    if depth > MAX_DEPTH or not is_plain(value):
        return FAULT
    if reserve(w, 11) != OK:
        return NO_MEMORY
    put_tag(w, c"m", <size_t>PyDict_GET_SIZE(value))
    while PyDict_Next(value, &place, &key, &item):
        if not PyUnicode_CheckExact(key):
            return FAULT
        result = put_text(w, key)
        if result == OK:
            result = put_value(w, item, depth + 1)
        if result != OK:
            return result
    return OK


cdef inline Py_ssize_t array_size(PyObject *array) noexcept:
    if PyList_CheckExact(array):
        return PyList_GET_SIZE(array)
    return PyTuple_GET_SIZE(array)


cdef inline PyObject *array_item(PyObject *array, Py_ssize_t index) noexcept:
    if PyList_CheckExact(array):
        return PyList_GET_ITEM(array, index)
    return PyTuple_GET_ITEM(array, index)


cdef int put_array(Writer *w, PyObject *value, int depth) noexcept:
    cdef Py_ssize_t count = array_size(value)
    cdef Py_ssize_t i
    cdef int result
    if depth > MAX_DEPTH:
        return FAULT
    if reserve(w, 11) != OK:
        return NO_MEMORY
    put_tag(w, c"l", <size_t>count)
    for i in range(count):
        result = put_value(w, array_item(value, i), depth + 1)
        if result != OK:
            return result
    return OK


# Objects with declared fields --------------------------------------------------

cdef enum:
    # The places in `NAMES`.
    ROLE = 0
    CONTENT = 1
    NAME = 2
    TOOL_CALLS = 3
    REFUSAL = 5
    ID = 6
    TYPE = 7
    FUNCTION_NAME = 8
    ARGUMENTS = 9
    TEXT = 10
    IMAGE_URL = 11
    INPUT_AUDIO = 12
    FILE = 13
    NO_NAME = -1

cdef enum:
    # What declares the fields of an object.
    MESSAGE
    PART
    CALL
    FUNCTION
    HEADER
    MARKED  # an element of a header's list: no declared fields, marks left out

cdef enum:
    OTHER = -1
    EXCLUDED = -2


cdef inline int declared(int kind) noexcept:
    if kind == MESSAGE:
        return 6
    if kind == CALL:
        return 3
    if kind == PART or kind == FUNCTION:
        return 2
    return 0


cdef inline int name_of(int kind, int slot, int payload) noexcept:
    if kind == MESSAGE:
        return slot
    if kind == PART:
        return TYPE if slot == 0 else payload
    if kind == CALL:
        return ID + slot
    return NAME if slot == 0 else ARGUMENTS


cdef inline bint is_mark(const char *key, Py_ssize_t size) noexcept:
    if size == 13:
        return memcmp(key, b"cache_control", 13) == 0
    if size == 10:
        return memcmp(key, b"cachePoint", 10) == 0
    return size == 23 and memcmp(key, b"prompt_cache_breakpoint", 23) == 0


cdef inline bint spells(const char *key, Py_ssize_t size, int name) noexcept:
    return (
        name != NO_NAME
        and NAMES[name].size - 2 == size
        and memcmp(key, NAMES[name].text + 2, size) == 0
    )


cdef inline int slot_of(int kind, int payload, PyObject *name) noexcept:
    """Return the slot of a field, `OTHER` or `EXCLUDED`."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(name)
    cdef const char *key = <const char *>PyUnicode_DATA(name)
    if not PyUnicode_IS_ASCII(name):
        return OTHER
    if kind == MESSAGE:
        if size == 4:
            if memcmp(key, b"role", 4) == 0:
                return 0
            if memcmp(key, b"name", 4) == 0:
                return 2
            return OTHER
        if size == 7:
            if memcmp(key, b"content", 7) == 0:
                return 1
            if memcmp(key, b"refusal", 7) == 0:
                return 5
            return OTHER
        if size == 10 and memcmp(key, b"tool_calls", 10) == 0:
            return 3
        if size == 12 and memcmp(key, b"tool_call_id", 12) == 0:
            return 4
    elif kind == PART:
        if size == 4 and memcmp(key, b"type", 4) == 0:
            return 0
        if spells(key, size, payload):
            return 1
    elif kind == CALL:
        if size == 2 and memcmp(key, b"id", 2) == 0:
            return 0
        if size == 4 and memcmp(key, b"type", 4) == 0:
            return 1
        if size == 8 and memcmp(key, b"function", 8) == 0:
            return 2
        return OTHER
    elif kind == FUNCTION:
        if size == 4 and memcmp(key, b"name", 4) == 0:
            return 0
        if size == 9 and memcmp(key, b"arguments", 9) == 0:
            return 1
        return OTHER
    return EXCLUDED if is_mark(key, size) else OTHER


cdef bint is_role(PyObject *role) noexcept:
    cdef Py_ssize_t size
    cdef const char *text
    if not PyUnicode_Check(role) or not is_ready(role) or not PyUnicode_IS_ASCII(role):
        return False
    size = PyUnicode_GET_LENGTH(role)
    text = <const char *>PyUnicode_DATA(role)
    if size == 4:
        return memcmp(text, b"user", 4) == 0 or memcmp(text, b"tool", 4) == 0
    if size == 9:
        return memcmp(text, b"assistant", 9) == 0 or memcmp(text, b"developer", 9) == 0
    if size == 6:
        return memcmp(text, b"system", 6) == 0
    return size == 8 and memcmp(text, b"function", 8) == 0


cdef int payload_of(PyObject *kind) noexcept:
    """Return the name of the field that a part of this type carries."""
    cdef Py_ssize_t size
    cdef const char *text
    if kind is NULL or not PyUnicode_Check(kind) or not is_ready(kind):
        return NO_NAME
    if not PyUnicode_IS_ASCII(kind):
        return NO_NAME
    size = PyUnicode_GET_LENGTH(kind)
    text = <const char *>PyUnicode_DATA(kind)
    if spells(text, size, TEXT):
        return TEXT
    if spells(text, size, IMAGE_URL):
        return IMAGE_URL
    if spells(text, size, FILE):
        return FILE
    if spells(text, size, INPUT_AUDIO):
        return INPUT_AUDIO
    if spells(text, size, REFUSAL):
        return REFUSAL
    if size == 9 and memcmp(text, b"reasoning", 9) == 0:
        return TEXT
    return NO_NAME


cdef int put_fields(
    Writer *w, int kind, int payload, PyObject **slots, PyObject *fields, int depth,
    bint model,
) noexcept:
    """Write a map: what stands in slots in front, then the other fields as given.

    Args:
        slots: the declared fields that are known already; the rest are NULL, and are
            looked for in `fields`.
        fields: a dict, or NULL.
        model: whether slots may hold our own objects, rather than JSON alone.
    """
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t place = 0
    cdef size_t others = 0
    cdef size_t count = 0
    cdef int slot, result, i
    cdef int limit = declared(kind)
    cdef Mark here
    if depth > MAX_DEPTH or (fields is not NULL and not is_plain(fields)):
        return FAULT
    if fields is not NULL:
        while PyDict_Next(fields, &place, &key, &value):
            if not PyUnicode_CheckExact(key) or not is_ready(key):
                return FAULT
            slot = slot_of(kind, payload, key)
            if slot >= 0:
                slots[slot] = value
            elif slot == OTHER:
                others += 1
            else:  # left out, and yet it has to be JSON
                here = mark(w)
                result = put_value(w, value, depth + 1)
                rewind(w, here)
                if result != OK:
                    return result
    if kind == MESSAGE and (slots[0] is NULL or not is_role(slots[0])):
        return FAULT
    for i in range(limit):
        count += slots[i] is not NULL
    if reserve(w, 11) != OK:
        return NO_MEMORY
    put_tag(w, c"m", count + others)
    for i in range(limit):
        if slots[i] is NULL:
            continue
        if put_name(w, name_of(kind, i, payload)) != OK:
            return NO_MEMORY
        if kind == MESSAGE and i == 1:
            result = put_content(w, slots[1], depth + 1, model)
        elif kind == MESSAGE and i == 3:
            result = put_calls(w, slots[3], depth + 1, model)
        elif kind == CALL and i == 2:
            result = put_function(w, slots[2], depth + 1, model)
        else:
            result = put_value(w, slots[i], depth + 1)
        if result != OK:
            return result
    if others == 0:
        return OK
    place = 0
    while PyDict_Next(fields, &place, &key, &value):
        if slot_of(kind, payload, key) != OTHER:
            continue
        result = put_text(w, key)
        if result == OK:
            if kind == HEADER and is_marked_list(key):
                result = put_marked(w, value, depth + 1)
            else:
                result = put_value(w, value, depth + 1)
        if result != OK:
            return result
    return OK


cdef bint all_objects(PyObject *value) noexcept:
    """Whether it is a list or a tuple of dicts only."""
    cdef Py_ssize_t i
    if not PyList_CheckExact(value) and not PyTuple_CheckExact(value):
        return False
    for i in range(array_size(value)):
        if not PyDict_Check(array_item(value, i)):
            return False
    return True


cdef bint only_marks(PyObject *fields) noexcept:
    """Whether a dict holds something, and all of it is left out."""
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t place = 0
    while PyDict_Next(fields, &place, &key, &value):
        if (
            not PyUnicode_CheckExact(key)
            or not is_ready(key)
            or slot_of(MARKED, NO_NAME, key) != EXCLUDED
        ):
            return False
    return place > 0 and PyDict_GET_SIZE(fields) > 0


cdef int put_parts(Writer *w, PyObject *parts, int kind, int depth) noexcept:
    """Write a list of dicts that are parts, or elements of a header's list."""
    cdef Py_ssize_t count = array_size(parts)
    cdef Py_ssize_t kept = 0
    cdef Py_ssize_t i
    cdef PyObject *part
    cdef PyObject *slots[2]
    cdef int payload = NO_NAME
    cdef int result
    cdef Mark here
    for i in range(count):
        kept += not only_marks(array_item(parts, i))
    if depth > MAX_DEPTH:
        return FAULT
    if reserve(w, 11) != OK:
        return NO_MEMORY
    put_tag(w, c"l", <size_t>kept)
    for i in range(count):
        part = array_item(parts, i)
        here = mark(w)
        slots[0] = slots[1] = NULL
        if kind == PART:
            payload = payload_of(type_in(part))
        result = put_fields(w, kind, payload, slots, part, depth + 1, False)
        if result != OK:
            return result
        if kept < count and only_marks(part):
            rewind(w, here)
    return OK


cdef PyObject *type_in(PyObject *fields) noexcept:
    """Return the value of ``type``, or NULL, without comparing to foreign keys."""
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t place = 0
    while PyDict_Next(fields, &place, &key, &value):
        if PyUnicode_CheckExact(key) and is_ready(key) and (
            slot_of(PART, NO_NAME, key) == 0
        ):
            return value
    return NULL


cdef bint is_marked_list(PyObject *key) noexcept:
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(key)
    cdef const char *text = <const char *>PyUnicode_DATA(key)
    if not PyUnicode_IS_ASCII(key):
        return False
    if size == 5:
        return memcmp(text, b"tools", 5) == 0
    return size == 6 and memcmp(text, b"system", 6) == 0


cdef int put_marked(Writer *w, PyObject *value, int depth) noexcept:
    if all_objects(value):
        return put_parts(w, value, MARKED, depth)
    return put_value(w, value, depth)


cdef int put_content(Writer *w, PyObject *value, int depth, bint model) noexcept:
    if PyUnicode_CheckExact(value):
        return put_text(w, value)
    if model and PyTuple_CheckExact(value) and PyTuple_GET_SIZE(value) and (
        PyObject_TypeCheck(PyTuple_GET_ITEM(value, 0), CONTENT_PART)
    ):
        return put_part_models(w, value, depth)
    if all_objects(value):
        return put_parts(w, value, PART, depth)
    return put_value(w, value, depth)


cdef int put_calls(Writer *w, PyObject *value, int depth, bint model) noexcept:
    cdef Py_ssize_t i
    cdef PyObject *slots[3]
    cdef int result
    if model and PyTuple_CheckExact(value) and PyTuple_GET_SIZE(value) and (
        PyObject_TypeCheck(PyTuple_GET_ITEM(value, 0), TOOL_CALL)
    ):
        return put_call_models(w, value, depth)
    if not all_objects(value):
        return put_value(w, value, depth)
    if reserve(w, 11) != OK:
        return NO_MEMORY
    put_tag(w, c"l", <size_t>array_size(value))
    for i in range(array_size(value)):
        slots[0] = slots[1] = slots[2] = NULL
        result = put_fields(
            w, CALL, NO_NAME, slots, array_item(value, i), depth + 1, False
        )
        if result != OK:
            return result
    return OK


cdef int put_function(Writer *w, PyObject *value, int depth, bint model) noexcept:
    cdef PyObject *slots[2]
    if model and Py_TYPE(value) is TOOL_CALL:
        return put_function_model(w, value, depth)
    if not PyDict_Check(value):
        return put_value(w, value, depth)
    slots[0] = slots[1] = NULL
    return put_fields(w, FUNCTION, NO_NAME, slots, value, depth, False)


# Our own objects ---------------------------------------------------------------

cdef inline PyObject *field(PyObject *fields, object name) noexcept:
    """Return a field's value, borrowed, or NULL where it is None or not there."""
    cdef PyObject *value = PyDict_GetItemWithError(fields, <PyObject *>name)
    if value is NULL:
        PyErr_Clear()
    return NULL if value is Py_None else value


cdef inline PyObject *extra_of(PyObject *fields, object name) noexcept:
    """Return a dict of further fields, or NULL where there are none."""
    cdef PyObject *value = field(fields, name)
    if value is NULL or not PyDict_Check(value) or PyDict_GET_SIZE(value) == 0:
        return NULL
    return value


cdef int put_part_models(Writer *w, PyObject *parts, int depth) noexcept:
    cdef Py_ssize_t count = PyTuple_GET_SIZE(parts)
    cdef Py_ssize_t kept = 0
    cdef Py_ssize_t i
    cdef int result
    for i in range(count):
        kept += not is_marks_model(PyTuple_GET_ITEM(parts, i))
    if reserve(w, 11) != OK:
        return NO_MEMORY
    put_tag(w, c"l", <size_t>kept)
    for i in range(count):
        if kept < count and is_marks_model(PyTuple_GET_ITEM(parts, i)):
            continue
        result = put_part_model(w, PyTuple_GET_ITEM(parts, i), depth + 1)
        if result != OK:
            return result
    return OK


cdef bint is_marks_model(PyObject *part) noexcept:
    cdef PyObject *fields
    cdef PyObject *extra
    cdef bint answer
    if Py_TYPE(part) is not CONTENT_PART:
        return False
    fields = PyObject_GenericGetDict(part, NULL)
    if fields is NULL:
        PyErr_Clear()
        return False
    extra = extra_of(fields, _extra)
    answer = field(fields, _type) is NULL and extra is not NULL and only_marks(extra)
    Py_DECREF(fields)  # the part holds it
    return answer


cdef int put_part_model(Writer *w, PyObject *part, int depth) noexcept:
    cdef PyTypeObject *kind = Py_TYPE(part)
    cdef PyObject *slots[2]
    cdef PyObject *fields
    cdef PyObject *extra
    cdef int payload, result
    cdef int typed = 0
    while typed < TYPED and kind is not PARTS[typed]:
        typed += 1
    if typed == TYPED and kind is not CONTENT_PART:
        return FAULT
    fields = PyObject_GenericGetDict(part, NULL)
    if fields is NULL:
        PyErr_Clear()
        return FAULT
    extra = extra_of(fields, _extra)
    slots[0] = field(fields, _type)
    slots[1] = NULL
    if slots[0] is NULL and extra is not NULL:
        payload = payload_of(type_in(extra))
    else:
        payload = payload_of(slots[0])
    result = OK
    if typed < TYPED:
        slots[1] = PyDict_GetItemWithError(fields, PAYLOADS[typed])
        if slots[1] is NULL or payload == NO_NAME:
            PyErr_Clear()
            result = FAULT
    if result == OK:
        result = put_fields(w, PART, payload, slots, extra, depth, True)
    Py_DECREF(fields)
    return result


cdef int put_call_models(Writer *w, PyObject *calls, int depth) noexcept:
    cdef Py_ssize_t count = PyTuple_GET_SIZE(calls)
    cdef Py_ssize_t i
    cdef PyObject *call
    cdef PyObject *fields
    cdef PyObject *slots[3]
    cdef int result
    if reserve(w, 11) != OK:
        return NO_MEMORY
    put_tag(w, c"l", <size_t>count)
    for i in range(count):
        call = PyTuple_GET_ITEM(calls, i)
        if Py_TYPE(call) is not TOOL_CALL:
            return FAULT
        fields = PyObject_GenericGetDict(call, NULL)
        if fields is NULL:
            PyErr_Clear()
            return FAULT
        slots[0] = field(fields, _id)
        slots[1] = field(fields, _type)
        slots[2] = NULL
        if (
            field(fields, _name) is not NULL
            or field(fields, _arguments) is not NULL
            or field(fields, _function_extra) is not NULL
        ):
            slots[2] = call
        result = put_fields(
            w, CALL, NO_NAME, slots, extra_of(fields, _extra), depth + 1, True
        )
        Py_DECREF(fields)
        if result != OK:
            return result
    return OK


cdef int put_function_model(Writer *w, PyObject *call, int depth) noexcept:
    cdef PyObject *slots[2]
    cdef PyObject *fields = PyObject_GenericGetDict(call, NULL)
    cdef int result
    if fields is NULL:
        PyErr_Clear()
        return FAULT
    slots[0] = field(fields, _name)
    slots[1] = field(fields, _arguments)
    result = put_fields(
        w, FUNCTION, NO_NAME, slots, extra_of(fields, _function_extra), depth, True
    )
    Py_DECREF(fields)
    return result


cdef int put_message_model(Writer *w, PyObject *message) noexcept:
    cdef PyObject *fields = PyObject_GenericGetDict(message, NULL)
    cdef PyObject *found[7]
    cdef int result
    if fields is NULL:
        PyErr_Clear()
        return FAULT
    result = take_fields(fields, found)
    if result == OK and found[1] is NULL and content_given(message):
        found[1] = Py_None
    if result == OK:
        result = put_fields(w, MESSAGE, NO_NAME, found, found[6], 1, True)
    Py_DECREF(fields)
    return result


cdef int take_fields(PyObject *fields, PyObject **found) noexcept:
    """Look up the seven fields; NULL stands for None, and for no `extra`."""
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t place = 0
    cdef int i
    for i in range(7):  # in a model's dict they stand in this order
        if not PyDict_Next(fields, &place, &key, &value) or key is not FIELDS[i]:
            break
        found[i] = NULL if value is Py_None else value
    else:
        if found[6] is NULL or not PyDict_Check(found[6]):
            return FAULT
        if PyDict_GET_SIZE(found[6]) == 0:
            found[6] = NULL
        return OK
    for i in range(6):
        found[i] = field(fields, _field_names[i])
    found[6] = extra_of(fields, _extra)
    return OK


cdef bint content_given(PyObject *message) noexcept:
    cdef PyObject *given = load(<PyObject **>(<char *>message + GIVEN_OFFSET))
    cdef int answer
    if given is NULL or not PyAnySet_Check(given):
        return False
    answer = PySet_Contains(given, <PyObject *>_content)
    if answer < 0:
        PyErr_Clear()
    return answer > 0


# Messages and their digests ----------------------------------------------------

cdef struct Measure:
    uint64_t digest
    uint64_t size


cdef inline bint is_model(PyObject *message) noexcept:
    cdef PyTypeObject *kind = Py_TYPE(message)
    if kind is CHAT_MESSAGE:
        return True
    return kind is not &PyDict_Type and PyObject_TypeCheck(message, CHAT_MESSAGE)


cdef inline bint read_slot(PyObject *message, Measure *out) noexcept:
    """Read what was kept with a message; never as an attribute, which is slow."""
    cdef PyObject *kept = load(<PyObject **>(<char *>message + DIGEST_OFFSET))
    cdef const uint8_t *data
    if kept is NULL or not PyBytes_CheckExact(kept) or PyBytes_GET_SIZE(kept) != 16:
        return False
    data = <const uint8_t *>PyBytes_AS_STRING(kept)
    out.digest = read64(data)
    out.size = read64(data + 8)
    return True


cdef int fill_slot(PyObject *message, const Measure *measure) except -1:
    cdef uint8_t data[16]
    cdef PyObject *kept
    write64(data, measure.digest)
    write64(data + 8, measure.size)
    kept = PyBytes_FromStringAndSize(<char *>data, 16)
    if kept is NULL:
        raise MemoryError
    fill(<PyObject **>(<char *>message + DIGEST_OFFSET), kept)
    return 0


cdef int walk(Writer *w, PyObject *message) noexcept:
    """Encode a message as far as that runs no Python code."""
    cdef PyTypeObject *kind = Py_TYPE(message)
    cdef PyObject *slots[6]
    if put_byte(w, VERSION) != OK:
        return NO_MEMORY
    if kind is CHAT_MESSAGE:
        return put_message_model(w, message)
    if FREE_THREADED or not is_plain(message):
        return FAULT
    slots[0] = slots[1] = slots[2] = slots[3] = slots[4] = slots[5] = NULL
    return put_fields(w, MESSAGE, NO_NAME, slots, message, 1, False)


cdef int walk_frozen(Writer *w, object message) except -1:
    """Encode by way of a frozen message, or raise what is wrong with this one."""
    cdef PyObject *slots[6]
    cdef Mark here = mark(w)
    cdef int result = FAULT
    cdef object wire = message
    cdef object made
    if isinstance(message, ChatMessage):
        wire = message.wire()
        if type(wire) is dict:
            slots[0] = slots[1] = slots[2] = slots[3] = slots[4] = slots[5] = NULL
            result = put_byte(w, VERSION)
            if result == OK:
                result = put_fields(
                    w, MESSAGE, NO_NAME, slots, <PyObject *>wire, 1, False
                )
    if result == FAULT:
        rewind(w, here)
        made = ChatMessage.from_openai(wire)
        result = walk(w, <PyObject *>made)
    if result == FAULT:
        raise TypeError(f"{type(message).__name__} has no encoding")
    if result == NO_MEMORY:
        raise MemoryError
    finish(w)  # while `wire` and `made` hold its strings
    return 0


cdef int finish(Writer *w) except -1:
    """Hash the strings that were put off, one at a time, without the GIL."""
    cdef Py_ssize_t i
    cdef Later later
    cdef uint64_t hash = 0
    cdef void *data
    cdef Py_ssize_t count
    cdef int kind
    cdef bint ascii
    cdef int result = OK
    for i in range(w.later_count):
        Py_INCREF(w.later[i].text)
    for i in range(w.later_count):
        later = w.later[i]
        data = PyUnicode_DATA(later.text)
        kind = PyUnicode_KIND(later.text)
        count = PyUnicode_GET_LENGTH(later.text)
        ascii = PyUnicode_IS_ASCII(later.text)
        if result == OK:
            with nogil:
                result = hash_utf8(data, kind, count, later.size, ascii, &hash)
            write64(w.data + later.at, hash)
    for i in range(w.later_count):
        Py_DECREF(w.later[i].text)
    w.later_count = 0
    if result != OK:
        raise MemoryError
    return 0


cdef int encode(Writer *w, object message) except -1:
    """Encode a message that the caller holds."""
    cdef Mark here = mark(w)
    cdef int result = walk(w, <PyObject *>message)
    if result == FAULT:
        rewind(w, here)
        walk_frozen(w, message)
    elif result == NO_MEMORY:
        raise MemoryError
    elif w.later_count:
        finish(w)
    return 0


cdef inline void read_off(const Writer *w, Mark here, Measure *out) noexcept:
    """Hash what was written since the mark."""
    out.size = w.size - here.size + <uint64_t>(w.saved - here.saved)
    out.digest = xxh64(w.data + here.size, w.size - here.size, 0)


cdef int measure(Writer *w, object message, Measure *out) except -1:
    """Return a message's digest and size; the writer is as it was afterwards."""
    cdef Mark here = mark(w)
    cdef bint model = is_model(<PyObject *>message)
    if model and read_slot(<PyObject *>message, out):
        return 0
    encode(w, message)
    read_off(w, here, out)
    rewind(w, here)
    if model:
        fill_slot(<PyObject *>message, out)
    return 0


def encode_message(message):
    """Return the encoding of a message, version 1.

    Raises:
        InvalidValueError: it is no message, with the path to what is wrong.
    """
    cdef uint8_t stack[STACK]
    cdef Writer w
    open_writer(&w, stack, STACK)
    try:
        encode(&w, message)
        return w.data[: w.size]
    finally:
        close_writer(&w)


cdef int measure_alone(object message, Measure *out) except -1:
    cdef uint8_t stack[STACK]
    cdef Writer w
    open_writer(&w, stack, STACK)
    try:
        measure(&w, message, out)
    finally:
        close_writer(&w)
    return 0


def message_digest(message):
    """Return the XXH64 of a message's encoding.

    Raises:
        InvalidValueError: it is no message, with the path to what is wrong.
    """
    cdef Measure out
    measure_alone(message, &out)
    return out.digest


def message_size(message):
    """Return the length of a message's encoding with large strings in full.

    Raises:
        InvalidValueError: it is no message, with the path to what is wrong.
    """
    cdef Measure out
    measure_alone(message, &out)
    return out.size


cdef int put_header(Writer *w, PyObject *value) noexcept:
    if PyDict_Check(value):
        return put_fields(w, HEADER, NO_NAME, NULL, value, 1, False)
    return put_value(w, value, 1)


cdef uint64_t any_digest(object value, bint header) except? 0:
    cdef uint8_t stack[STACK]
    cdef Writer w
    cdef object frozen
    cdef Measure out
    cdef Mark here
    cdef int result = FAULT
    open_writer(&w, stack, STACK)
    here = mark(&w)
    try:
        put_byte(&w, VERSION)
        if not FREE_THREADED:
            result = put_any(&w, <PyObject *>value, header)
        if result == FAULT:
            rewind(&w, here)
            put_byte(&w, VERSION)
            frozen = freeze(value)
            result = put_any(&w, <PyObject *>frozen, header)
            if result == OK:
                finish(&w)  # while `frozen` holds its strings
        if result == FAULT:
            raise TypeError(f"{type(value).__name__} has no encoding")
        if result == NO_MEMORY:
            raise MemoryError
        finish(&w)
        read_off(&w, here, &out)
    finally:
        close_writer(&w)
    return out.digest


cdef inline int put_any(Writer *w, PyObject *value, bint header) noexcept:
    return put_header(w, value) if header else put_value(w, value, 1)


def value_digest(value):
    """Return the digest of any JSON value.

    Raises:
        InvalidValueError: it is no JSON value, with the path to what is wrong.
    """
    return any_digest(value, False)


def header_digest(header):
    """Return the digest of a request's header: `value_digest` without cache marks.

    Raises:
        InvalidValueError: it is no JSON value, with the path to what is wrong.
    """
    return any_digest(header, True)


def _xxh64(const uint8_t[:] data, uint64_t seed=0):
    """Return the XXH64 of these bytes; for tests."""
    return xxh64(&data[0] if data.shape[0] else NULL, data.shape[0], seed)


# The chain ---------------------------------------------------------------------

cdef inline uint64_t next_link(uint64_t link, uint64_t digest) noexcept nogil:
    link = xxh64_pair(link, digest)
    return link if link else ZERO_LINK


def prefix_hashes(messages, seed=ROOT):
    """Return the chain: the hash of the first message, of the first two, and so on.

    Args:
        messages: a request, or what follows the messages that `seed` is the hash of.
        seed: the link to go on from.

    Raises:
        InvalidValueError: one is no message, with the path to what is wrong.
    """
    cdef uint8_t stack[STACK]
    cdef Writer w
    cdef Measure out
    cdef uint64_t link = as_hash(seed, "seed")
    cdef object sequence = as_sequence(messages)
    cdef list links = []
    cdef object message
    cdef Py_ssize_t i = 0
    if FREE_THREADED:
        sequence = tuple(sequence)
    open_writer(&w, stack, STACK)
    try:
        while i < array_size(<PyObject *>sequence):
            message = <object>array_item(<PyObject *>sequence, i)
            measure(&w, message, &out)
            link = next_link(link, out.digest)
            links.append(link)
            i += 1
    except ValueError as error:
        error.add_note(f"in messages[{i}]")
        raise
    finally:
        close_writer(&w)
    return links


# The tracker -------------------------------------------------------------------

cdef struct Request:
    Py_ssize_t count
    Py_ssize_t room
    PyObject **objects  # held; NULL for a dict, and for what was restored
    uint64_t *digests
    uint64_t *links
    uint64_t *ends  # the bytes up to and with each message
    size_t *starts  # of a dict's encoding in `data`; one more, for the last end
    uint8_t *data
    size_t data_room

cdef struct Item:
    PyObject *message  # held
    PyObject *old  # held: what it took the place of
    bint model
    size_t start
    uint64_t digest
    uint64_t size
    uint64_t link
    uint64_t end


cdef int widen(void **array, Py_ssize_t count, size_t unit_size) noexcept:
    cdef void *wider = realloc(array[0], <size_t>count * unit_size)
    if wider is NULL:
        return NO_MEMORY
    array[0] = wider
    return OK


cdef int make_room(Request *r, Py_ssize_t count) noexcept:
    cdef Py_ssize_t room
    if count <= r.room and r.starts is not NULL:
        return OK
    room = count + count // 4 + 16
    if (
        widen(<void **>&r.objects, room, sizeof(PyObject *)) != OK
        or widen(<void **>&r.digests, room, 8) != OK
        or widen(<void **>&r.links, room, 8) != OK
        or widen(<void **>&r.ends, room, 8) != OK
        or widen(<void **>&r.starts, room + 1, sizeof(size_t)) != OK
    ):
        return NO_MEMORY
    r.room = room
    return OK


cdef Request *new_request(Py_ssize_t count) except NULL:
    cdef Request *r = <Request *>malloc(sizeof(Request))
    if r is NULL:
        raise MemoryError
    r.count = r.room = 0
    r.objects = NULL
    r.digests = r.links = r.ends = NULL
    r.starts = NULL
    r.data = NULL
    r.data_room = 0
    if make_room(r, count) != OK:
        free_request(r)
        raise MemoryError
    r.starts[0] = 0
    return r


cdef void free_request(Request *r) noexcept:
    """Let go of a request that nothing refers to any more; may run Python code."""
    cdef Py_ssize_t i
    if r is NULL:
        return
    for i in range(r.count):
        Py_XDECREF(r.objects[i])
    free(r.objects)
    free(r.digests)
    free(r.links)
    free(r.ends)
    free(r.starts)
    free(r.data)
    free(r)


cdef int list_kept(list kept, const Request *r, Py_ssize_t count) except -1:
    """Append the messages; the list is made before, as that may run Python code."""
    cdef Py_ssize_t i
    for i in range(count):
        if r.objects[i] is not NULL:
            kept.append(<object>r.objects[i])
        elif r.starts[i] < r.starts[i + 1]:
            kept.append(r.data[r.starts[i] : r.starts[i + 1]])
        else:
            kept.append(None)
    return 0


cdef bytes digests_of(const Request *r, Py_ssize_t count):
    cdef bytearray packed = bytearray(8 * count)
    cdef uint8_t *data = packed
    cdef Py_ssize_t i
    for i in range(count):
        write64(data + 8 * i, r.digests[i])
    return bytes(packed)


cdef Py_ssize_t same_objects(const Request *r, PyObject *sequence) noexcept:
    """Count the objects that this sequence begins with, as the request did."""
    cdef Py_ssize_t limit = array_size(sequence)
    cdef PyObject **items = array_items(sequence)
    cdef Py_ssize_t i = 0
    if r is NULL:
        return 0
    if limit > r.count:
        limit = r.count
    if limit == 0:
        return 0
    # An item is never NULL, so a dict ends the run.
    if memcmp(items, r.objects, <size_t>limit * sizeof(PyObject *)) == 0:
        return limit
    while items[i] is r.objects[i]:
        i += 1
    return i


cdef class PrefixTracker:
    """Compares each request of a session with the one before.

    It holds the `ChatMessage` objects of the last request, and of dicts their encoding:
    a dict changed in place is noticed.
    A copy or a pickle knows the digests of the last request and not its messages.
    """

    cdef object __weakref__
    cdef Request *now
    cdef Request *past  # the end of the one before, where the last one left it
    cdef Py_ssize_t past_base  # the messages in front of that end, still in `now`
    cdef uint8_t *spare  # a buffer for encodings, used in turns with `now.data`
    cdef size_t spare_room
    cdef object match
    cdef bint has_header
    cdef uint64_t header

    def __cinit__(self, *args, **kwargs):
        if (args or kwargs) and type(self).__init__ is object.__init__:
            raise TypeError("PrefixTracker() takes no arguments")
        self.now = NULL
        self.past = NULL
        self.past_base = 0
        self.spare = NULL
        self.spare_room = 0
        self.has_header = False
        self.header = 0

    def __dealloc__(self):
        free_request(self.now)
        free_request(self.past)
        free(self.spare)

    @classmethod
    def restore(cls, digests, header_digest, hash):
        """Return a tracker as a former one stood, from what was stored of it.

        Args:
            digests: 8 bytes for each message of the last request, as in `digests`.
            header_digest: the digest of its header, or `None`.
            hash: its last link, which must follow from the digests.

        Raises:
            ValueError: the digests are not those of this hash.
        """
        cdef PrefixTracker tracker
        cdef Request *r
        cdef Py_ssize_t i, count
        cdef uint64_t wanted, header
        cdef uint64_t link = ROOT_LINK
        cdef const uint8_t *data
        if not isinstance(digests, bytes):
            raise TypeError(f"digests are bytes, not {type(digests).__name__}")
        if len(digests) % 8:
            raise ValueError(f"{len(digests)} bytes of digests, no multiple of 8")
        header = 0 if header_digest is None else as_hash(header_digest, "header_digest")
        wanted = as_hash(hash, "hash")
        data = digests
        count = len(digests) // 8
        tracker = cls()
        r = new_request(count)
        for i in range(count):
            r.digests[i] = read64(data + 8 * i)
            link = next_link(link, r.digests[i])
            r.links[i] = link
            r.objects[i] = NULL
            r.ends[i] = 0
            r.starts[i + 1] = 0
        r.count = count
        if link != wanted:
            free_request(r)
            raise ValueError(f"the digests chain to {link:#018x}, not to {wanted:#018x}")
        free_request(tracker.now)
        tracker.now = r
        tracker.has_header = header_digest is not None
        tracker.header = header
        return tracker

    @cython.critical_section
    def touch(self, messages, header=None):
        """Record a request, and return how much of it was the previous one.

        Args:
            messages: the whole request, in order.
            header: what is rendered before the messages, or changes how: tools, model,
                parameters; any JSON value, or `None` for none.

        Raises:
            InvalidValueError: one is no message, or the header is no JSON value; the
                tracker is as it was.
        """
        cdef uint8_t stack[STACK]
        cdef Item few[FEW]
        cdef Item *items = few
        cdef Py_ssize_t held = 0
        cdef Py_ssize_t base, count, i
        cdef Writer scratch, kept
        cdef bint has_header = header is not None
        cdef uint64_t header_hash = any_digest(header, True) if has_header else 0
        cdef object match = new_match(<PyObject *>_prefix_match, 9)
        cdef object sequence = messages
        cdef Request *gone = NULL
        if type(messages) is not list and type(messages) is not tuple:
            sequence = as_sequence(messages)
        if FREE_THREADED:
            sequence = tuple(sequence)
        open_writer(&scratch, stack, STACK)
        open_writer(&kept, self.spare, self.spare_room)
        kept.owned = True
        self.spare = NULL
        self.spare_room = 0
        try:
            base = same_objects(self.now, <PyObject *>sequence)
            while True:
                count = array_size(<PyObject *>sequence) - base
                if count > FEW and items is few:
                    items = <Item *>malloc(
                        array_size(<PyObject *>sequence) * sizeof(Item)
                    )
                    if items is NULL:
                        items = few
                        raise MemoryError
                for i in range(count):
                    items[i].message = array_item(<PyObject *>sequence, base + i)
                    items[i].old = NULL
                    Py_INCREF(items[i].message)
                held = count
                if kept.room == 0 and count and not is_model(items[0].message):
                    if grow(&kept, count * GUESS) != OK:
                        raise MemoryError
                if self._measure(items, count, base, &scratch, &kept):
                    break
                # Something will run Python code, which may touch this tracker: hold
                # every message, and compare with what is there afterwards.
                for i in range(held):
                    Py_DECREF(items[i].message)
                held = base = 0
                scratch.size = kept.size = 0
                scratch.saved = kept.saved = 0
                scratch.later_count = kept.later_count = 0
            gone = self._settle(
                items, count, base, &kept, has_header, header_hash, match
            )
            self.match = match
        finally:
            if self.spare is NULL:
                self.spare = kept.data
                self.spare_room = kept.room
            else:
                free(kept.data)
            free(kept.later)
            close_writer(&scratch)
            for i in range(held):
                Py_XDECREF(items[i].message)
                Py_XDECREF(items[i].old)
            if items is not few:
                free(items)
            free_request(gone)
        return match

    cdef bint _measure(
        self, Item *items, Py_ssize_t count, Py_ssize_t base, Writer *scratch, Writer *kept
    ) except -1:
        """Fill in digests and sizes; False where all messages should be held first."""
        cdef Item *item
        cdef Writer *w
        cdef Mark here
        cdef Measure out
        cdef Py_ssize_t i
        cdef int result
        for i in range(count):
            item = &items[i]
            item.start = kept.size
            item.model = is_model(item.message)
            if not item.model or not read_slot(item.message, &out):
                w = scratch if item.model else kept
                here = mark(w)
                result = walk(w, item.message)
                if result == NO_MEMORY:
                    raise MemoryError
                if result == FAULT or w.later_count:
                    if base:
                        return False
                    if result == OK:
                        finish(w)
                    else:
                        rewind(w, here)
                        walk_noted(w, <object>item.message, i)
                read_off(w, here, &out)
                if item.model:
                    rewind(w, here)
                    fill_slot(item.message, &out)
            item.digest = out.digest
            item.size = out.size
        return True

    cdef Request *_settle(
        self, Item *items, Py_ssize_t count, Py_ssize_t base, Writer *kept,
        bint has_header, uint64_t header, object match,
    ) except? NULL:
        """Compare, fill in the match and record; nothing here runs Python code.

        Returns:
            A request to be freed when all is done, or NULL.
        """
        cdef Request *now = self.now
        cdef Request *past = NULL
        cdef Request *gone
        cdef Py_ssize_t old_count = now.count if now is not NULL else 0
        cdef Py_ssize_t total = base + count
        cdef Py_ssize_t same = base
        cdef Py_ssize_t shared, i
        cdef uint64_t link = ROOT_LINK
        cdef uint64_t end = 0
        cdef uint64_t shared_bytes
        cdef bint appends, header_changed
        cdef Item *item
        cdef PyObject *into = <PyObject *>match
        while same < old_count and same < total and (
            now.digests[same] == items[same - base].digest
        ):
            same += 1
        if same:
            link = now.links[same - 1]
        if base:
            end = now.ends[base - 1]
        shared_bytes = end
        for i in range(base, total):
            item = &items[i - base]
            end += item.size
            item.end = end
            if i < same:
                item.link = now.links[i]
                shared_bytes = end
            else:
                link = next_link(link, item.digest)
                item.link = link
        appends = same == old_count
        header_changed = now is not NULL and (
            has_header != self.has_header or header != self.header
        )
        shared = 0 if header_changed else same
        if header_changed:
            shared_bytes = 0
        if (
            set_item(into, 0, PyLong_FromSsize_t(shared)) < 0
            or set_item(into, 1, PyLong_FromUnsignedLongLong(shared_bytes)) < 0
            or set_item(into, 2, PyLong_FromSsize_t(total)) < 0
            or set_item(into, 3, PyLong_FromUnsignedLongLong(end)) < 0
            or set_item(into, 4, PyBool_FromLong(appends and not header_changed)) < 0
            or set_item(into, 7, PyBool_FromLong(header_changed)) < 0
            or set_item(into, 8, PyLong_FromUnsignedLongLong(link)) < 0
        ):
            raise MemoryError
        if not appends and not header_changed:
            if set_item(into, 5, PyLong_FromSsize_t(same)) < 0:
                raise MemoryError
        if now is not NULL:
            if set_item(into, 6, PyLong_FromSsize_t(old_count)) < 0:
                raise MemoryError
        if now is NULL:
            now = new_request(total)
        else:
            if make_room(now, total) != OK:
                raise MemoryError
            if not appends:
                past = new_request(old_count - base)
        # Nothing can fail from here on.
        if past is not NULL:
            past.count = old_count - base
            for i in range(base, old_count):
                past.objects[i - base] = now.objects[i]
                past.digests[i - base] = now.digests[i]
                past.starts[i - base] = now.starts[i]
            past.starts[past.count] = now.starts[old_count]
            past.data, now.data = now.data, NULL
            now.data_room = 0
            now.count = base
        for i in range(base, total):
            item = &items[i - base]
            if i < now.count:
                item.old = now.objects[i]
            now.objects[i] = NULL
            if item.model:
                now.objects[i] = item.message
                item.message = NULL
            now.digests[i] = item.digest
            now.links[i] = item.link
            now.ends[i] = item.end
            now.starts[i] = item.start
        now.starts[total] = kept.size
        now.count = total
        if kept.size:
            now.data, kept.data = kept.data, now.data
            now.data_room, kept.room = kept.room, now.data_room
        self.now = now
        gone = self.past
        self.past = past
        self.past_base = base
        self.has_header = has_header
        self.header = header
        return gone

    @property
    def last(self):
        """The answer of the last `touch`; `None` where there was none."""
        return self.match

    @property
    def hash(self):
        """The last link of the last request; `None` before the first."""
        with cython.critical_section(self):
            if self.now is NULL:
                return None
            if self.now.count == 0:
                return ROOT_LINK
            return self.now.links[self.now.count - 1]

    @property
    def count(self):
        """The messages of the last request; 0 before the first."""
        with cython.critical_section(self):
            return 0 if self.now is NULL else self.now.count

    @property
    def digests(self):
        """The digests of the last request's messages, 8 bytes each, little-endian."""
        with cython.critical_section(self):
            return b"" if self.now is NULL else digests_of(self.now, self.now.count)

    @property
    def header_digest(self):
        """The digest of the last request's header; `None` where it had none."""
        with cython.critical_section(self):
            return self.header if self.has_header else None

    @property
    def kept(self):
        """The messages of the last request: the object, or the encoding of a dict.

        `None` for a message that is known from a stored record alone.
        """
        cdef list kept = []
        with cython.critical_section(self):
            if self.now is not NULL:
                list_kept(kept, self.now, self.now.count)
        return tuple(kept)

    @property
    def former_kept(self):
        """As `kept`, of the request before the last, where the last one left it.

        `None` where the last one appended: then nothing of the former is lost.
        """
        cdef list kept = []
        with cython.critical_section(self):
            if self.past is NULL:
                return None
            list_kept(kept, self.now, self.past_base)
            list_kept(kept, self.past, self.past.count)
        return tuple(kept)

    @property
    def former_digests(self):
        """As `digests`, of the request before the last, where the last one left it."""
        with cython.critical_section(self):
            if self.past is NULL:
                return None
            front = digests_of(self.now, self.past_base)
            return front + digests_of(self.past, self.past.count)

    def __copy__(self):
        if self.now is NULL:
            return type(self)()
        return self.restore(self.digests, self.header_digest, self.hash)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce__(self):
        if self.now is NULL:
            return (revive, (None, None, ROOT))
        return (revive, (self.digests, self.header_digest, self.hash))


cdef int walk_noted(Writer *w, object message, Py_ssize_t index) except -1:
    try:
        walk_frozen(w, message)
    except ValueError as error:
        error.add_note(f"in messages[{index}]")
        raise
    return 0
