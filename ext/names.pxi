# The names of declared fields ---------------------------------------------------

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
    cdef const char *key = ascii_of(name)
    if key is NULL:
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
