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
