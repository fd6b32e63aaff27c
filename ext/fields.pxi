# Objects with declared fields --------------------------------------------------

cdef inline int sort_fields(
    Writer *w, int kind, int payload, PyObject **slots, PyObject *fields, int depth,
    size_t *others,
) noexcept:
    """Put the declared fields of a dict in their slots, and count the others.

    Args:
        slots: the declared fields that are known already; the rest are NULL.
        fields: a dict, or NULL.
    """
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t left
    cdef int slot, result
    cdef Mark here
    if depth > MAX_DEPTH or (fields is not NULL and not is_plain(fields)):
        return FAULT
    left = 0 if fields is NULL else PyDict_GET_SIZE(fields)
    while left and PyDict_Next(fields, &place, &key, &value):
        left -= 1
        if not PyUnicode_CheckExact(key) or not is_ready(key):
            return FAULT
        slot = slot_of(kind, payload, key)
        if slot >= 0:
            slots[slot] = value
        elif slot == OTHER:
            others[0] += 1
        else:  # left out, and yet it has to be JSON
            here = mark(w)
            result = put_value(w, value, depth + 1)
            rewind(w, here)
            if result != OK:
                return result
    return OK


cdef inline int open_fields(
    Writer *w, PyObject **slots, int declared, size_t others
) noexcept:
    cdef int i
    for i in range(declared):
        others += slots[i] is not NULL
    if reserve(w, 11) != OK:
        return NO_MEMORY
    put_tag(w, c"m", others)
    return OK


cdef int put_others(
    Writer *w, int kind, int payload, PyObject *fields, int depth
) noexcept:
    """Write the fields that are not declared, as given."""
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t place = 0
    cdef int result
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


cdef int put_message(
    Writer *w, PyObject **slots, PyObject *fields, bint model
) noexcept:
    """Write a message.

    Args:
        slots: six, from `ROLE` on, as of `sort_fields`.
        fields: the other fields: a dict, or NULL.
        model: whether slots may hold our own objects, rather than JSON alone.
    """
    cdef size_t others = 0
    cdef int i
    cdef int result = sort_fields(w, MESSAGE, NO_NAME, slots, fields, 1, &others)
    if result != OK:
        return result
    if slots[ROLE] is NULL or not is_role(slots[ROLE]):
        return FAULT
    if open_fields(w, slots, 6, others) != OK:
        return NO_MEMORY
    for i in range(6):
        if slots[i] is NULL:
            continue
        if put_name(w, i) != OK:
            return NO_MEMORY
        if i == ROLE:
            result = put_text(w, slots[i])
        elif i == CONTENT:
            result = put_content(w, slots[i], 2, model)
        elif i == TOOL_CALLS:
            result = put_calls(w, slots[i], 2, model)
        else:
            result = put_value(w, slots[i], 2)
        if result != OK:
            return result
    return put_others(w, MESSAGE, NO_NAME, fields, 1) if others else OK


cdef inline int put_pair(
    Writer *w, int kind, int payload, int first, int second,
    PyObject **slots, PyObject *fields, int depth,
) noexcept:
    """Write what declares two fields, or none: a part, a function, a header."""
    cdef size_t others = 0
    cdef int result = sort_fields(w, kind, payload, slots, fields, depth, &others)
    if result != OK:
        return result
    if open_fields(w, slots, 2, others) != OK:
        return NO_MEMORY
    if slots[0] is not NULL:
        result = put_named(w, first, slots[0], depth + 1)
    if result == OK and slots[1] is not NULL:
        result = put_named(w, second, slots[1], depth + 1)
    if result == OK and others:
        result = put_others(w, kind, payload, fields, depth)
    return result


cdef int put_part(
    Writer *w, int payload, PyObject **slots, PyObject *fields, int depth
) noexcept:
    """Write a content part that carries the field `payload`."""
    return put_pair(w, PART, payload, TYPE, payload, slots, fields, depth)


cdef int put_function(
    Writer *w, PyObject **slots, PyObject *fields, int depth
) noexcept:
    return put_pair(w, FUNCTION, NO_NAME, NAME, ARGUMENTS, slots, fields, depth)


cdef int put_unmarked(Writer *w, int kind, PyObject *fields, int depth) noexcept:
    """Write a header, or an element of one of its lists, without its marks."""
    cdef PyObject *slots[2]
    slots[0] = slots[1] = NULL
    return put_pair(w, kind, NO_NAME, NO_NAME, NO_NAME, slots, fields, depth)


cdef int put_call(
    Writer *w, PyObject **slots, PyObject *fields, int depth,
    PyObject **function, PyObject *function_fields,
) noexcept:
    """Write a tool call.

    Args:
        slots: three, of which the third may be a `ToolCall`: the one that is written.
        function: the two slots of its function.
        function_fields: the other fields of that: a dict, or NULL.
    """
    cdef size_t others = 0
    cdef PyObject *pair[2]
    cdef int result = sort_fields(w, CALL, NO_NAME, slots, fields, depth, &others)
    if result != OK:
        return result
    if open_fields(w, slots, 3, others) != OK:
        return NO_MEMORY
    if slots[0] is not NULL:
        result = put_named(w, ID, slots[0], depth + 1)
    if result == OK and slots[1] is not NULL:
        result = put_named(w, TYPE, slots[1], depth + 1)
    if result == OK and slots[2] is not NULL:
        if put_name(w, FUNCTION_NAME) != OK:
            return NO_MEMORY
        if function is not NULL and Py_TYPE(slots[2]) is TOOL_CALL:
            result = put_function(w, function, function_fields, depth + 1)
        elif PyDict_Check(slots[2]):
            pair[0] = pair[1] = NULL
            result = put_function(w, pair, slots[2], depth + 1)
        else:
            result = put_value(w, slots[2], depth + 1)
    if result == OK and others:
        result = put_others(w, CALL, NO_NAME, fields, depth)
    return result


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
        if kind == PART:
            slots[0] = slots[1] = NULL
            result = put_part(w, payload_of(type_in(part)), slots, part, depth + 1)
        else:
            result = put_unmarked(w, kind, part, depth + 1)
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
        result = put_call(w, slots, array_item(value, i), depth + 1, NULL, NULL)
        if result != OK:
            return result
    return OK
