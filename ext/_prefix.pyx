"""The prefix hash, compiled; the format is in ``docs/prefix-format.md``.

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

from raf_session.errors import InvalidValueError
from raf_session.frozen import MAX_DEPTH as _MAX_DEPTH, MAX_INT_BYTES as _MAX_INT_BYTES, FrozenDict, freeze
from raf_session.calls import ToolCall
from raf_session.messages import ChatMessage
from raf_session.parts import PART_TYPES, ContentPart, FrozenModel
from raf_session.prefix_evidence import Evidence, Header
from raf_session.prefix_explanation import explain
from raf_session.prefix_match import (
    FORMAT_VERSION,
    ROOT,
    ZERO_SUBSTITUTE,
    Cause,
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
    "encode_header",
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
    #define RAF_PREFETCH(p) __builtin_prefetch(p)
    #else
    #define RAF_UNLIKELY(x) (x)
    #define RAF_PREFETCH(p) ((void)(p))
    #endif

    #if PY_VERSION_HEX < 0x030C0000
    #define RAF_READY(o) PyUnicode_IS_READY(o)
    #else
    #define RAF_READY(o) 1
    #endif

    /* Where nearly every string that is ASCII keeps its characters. */
    #define RAF_COMPACT_DATA(o) ((const char *)((PyASCIIObject *)(o) + 1))

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
        for (Py_ssize_t i = 0; i < size; i++)
            PyTuple_SET_ITEM(match, i, Py_NewRef(Py_None));
        return match;
    }

    /* Whether nobody but a tracker holds this match, so that nobody sees it change. */
    static int raf_is_spare(PyObject *match) {
    #ifdef Py_GIL_DISABLED
        (void)match;
        return 0;
    #else
        return Py_REFCNT(match) == 1;
    #endif
    }

    /* Exchange what a match holds for other values. */
    static void raf_exchange(PyObject *match, PyObject **values, Py_ssize_t size) {
    #if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject *)match)->ob_hash = -1;
    #endif
        for (Py_ssize_t i = 0; i < size; i++) {
            PyObject *old = PyTuple_GET_ITEM(match, i);
            PyTuple_SET_ITEM(match, i, values[i]);
            values[i] = old;
        }
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
    void prefetch "RAF_PREFETCH" (const void *address) noexcept
    bint is_ready "RAF_READY" (PyObject *text) noexcept
    const char *compact_data "RAF_COMPACT_DATA" (PyObject *text) noexcept
    PyObject *load "RAF_LOAD" (PyObject **slot) noexcept
    void fill "raf_fill" (PyObject **slot, PyObject *value) noexcept
    Py_ssize_t offset_of "raf_offset" (PyObject *slot) noexcept
    Py_ssize_t int_room "raf_int_room" (PyObject *number) noexcept
    int int_bytes "raf_int_bytes" (PyObject *number, uint8_t *out, Py_ssize_t room)
    object new_match "raf_new_match" (PyObject *type, Py_ssize_t size)
    bint is_spare "raf_is_spare" (PyObject *match) noexcept
    void exchange "raf_exchange" (
        PyObject *match, PyObject **values, Py_ssize_t size) noexcept

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
    PyObject *new_reference "Py_NewRef" (PyObject *)
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
    bint is_compact "PyUnicode_IS_COMPACT_ASCII" (PyObject *)
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
    SHORT = 32  # bytes that are copied where they are written
    LARGE = 4096  # bytes of UTF-8 from which a string enters as its hash
    HUGE_TEXT = 65536  # from which that hash is made without the GIL
    STACK = 4096  # bytes that are encoded without asking for memory
    FEW = 16  # new messages of a request, likewise
    GUESS = 512  # bytes of a message, to ask for a request's memory at once
    FIELDS = 13  # of a match

cdef int MAX_DEPTH = _MAX_DEPTH
cdef Py_ssize_t MAX_INT_BYTES = _MAX_INT_BYTES
cdef uint64_t ROOT_LINK = ROOT
cdef uint64_t ZERO_LINK = ZERO_SUBSTITUTE
cdef uint8_t VERSION = FORMAT_VERSION

cdef object _chat_message = ChatMessage
cdef object _tool_call = ToolCall
cdef object _content_part = ContentPart
cdef object _frozen_dict = FrozenDict
cdef object _prefix_match = PrefixMatch
cdef object _no_cause = Cause.NONE
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

cdef tuple _message_fields = (
    "role", "content", "name", "tool_calls", "tool_call_id", "refusal", "extra",
)
cdef tuple _call_fields = ("id", "name", "arguments", "type", "extra", "function_extra")
cdef PyObject *MESSAGE_FIELDS[7]
cdef PyObject *CALL_FIELDS[6]
for _index in range(7):
    MESSAGE_FIELDS[_index] = <PyObject *>(<object>_message_fields[_index])
for _index in range(6):
    CALL_FIELDS[_index] = <PyObject *>(<object>_call_fields[_index])

cdef object _type = "type"
cdef object _extra = "extra"
cdef object _content = "content"

# The parts, each on top of those above it.

include "writer.pxi"
include "values.pxi"
include "names.pxi"
include "fields.pxi"
include "models.pxi"
include "digests.pxi"
include "requests.pxi"
include "tracker.pxi"
