# Our own objects ---------------------------------------------------------------

cdef inline PyObject *field(PyObject *fields, object name) noexcept:
    """Return a field's value, borrowed, or NULL where it is None or not there."""
    cdef PyObject *value = PyDict_GetItemWithError(fields, <PyObject *>name)
    if value is NULL:
        PyErr_Clear()
    return NULL if value is Py_None else value


cdef inline bint is_extra(PyObject *value) noexcept:
    """Whether this is the dict that further fields are kept in."""
    return value is not NULL and PyDict_Check(value)


cdef inline PyObject *filled(PyObject *value) noexcept:
    """Return a dict of further fields, or NULL where there are none."""
    return value if is_extra(value) and PyDict_GET_SIZE(value) else NULL


cdef inline PyObject *extra_of(PyObject *fields) noexcept:
    return filled(field(fields, _extra))


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
    extra = extra_of(fields)
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
    extra = extra_of(fields)
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
        result = put_part(w, payload, slots, extra, depth)
    Py_DECREF(fields)
    return result


cdef int put_call_models(Writer *w, PyObject *calls, int depth) noexcept:
    cdef Py_ssize_t count = PyTuple_GET_SIZE(calls)
    cdef Py_ssize_t i
    cdef int result
    if reserve(w, 11) != OK:
        return NO_MEMORY
    put_tag(w, c"l", <size_t>count)
    for i in range(count):
        result = put_call_model(w, PyTuple_GET_ITEM(calls, i), depth + 1)
        if result != OK:
            return result
    return OK


cdef int put_call_model(Writer *w, PyObject *call, int depth) noexcept:
    cdef PyObject *fields
    cdef PyObject *found[6]
    cdef PyObject *slots[3]
    cdef int result
    if Py_TYPE(call) is not TOOL_CALL:
        return FAULT
    fields = PyObject_GenericGetDict(call, NULL)
    if fields is NULL:
        PyErr_Clear()
        return FAULT
    take_fields(fields, CALL_FIELDS, 6, found)
    slots[0] = found[0]
    slots[1] = found[3]
    slots[2] = NULL
    if found[1] is not NULL or found[2] is not NULL or found[5] is not NULL:
        slots[2] = call
    result = FAULT
    if is_extra(found[4]) and (found[5] is NULL or is_extra(found[5])):
        result = put_call(
            w, slots, filled(found[4]), depth, &found[1], filled(found[5])
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
    # Messages that lie in no cache any more are read sooner.
    prefetch(load(<PyObject **>(<char *>message + GIVEN_OFFSET)))
    take_fields(fields, MESSAGE_FIELDS, 7, found)
    prefetch(found[TOOL_CALLS])
    if found[CONTENT] is NULL and content_given(message):
        found[CONTENT] = Py_None
    result = FAULT
    if is_extra(found[6]):
        result = put_message(w, found, filled(found[6]), True)
    Py_DECREF(fields)
    return result


cdef inline void take_fields(
    PyObject *fields, PyObject **names, int count, PyObject **found
) noexcept:
    """Look up these fields; NULL stands for None, and for one that is not there."""
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t place = 0
    cdef int i
    for i in range(count):  # in a model's dict they stand in this order
        if not PyDict_Next(fields, &place, &key, &value) or key is not names[i]:
            break
        found[i] = NULL if value is Py_None else value
    else:
        return
    for i in range(count):
        found[i] = field(fields, <object>names[i])


cdef bint content_given(PyObject *message) noexcept:
    cdef PyObject *given = load(<PyObject **>(<char *>message + GIVEN_OFFSET))
    cdef int answer
    if given is NULL or not PyAnySet_Check(given):
        return False
    answer = PySet_Contains(given, <PyObject *>_content)
    if answer < 0:
        PyErr_Clear()
    return answer > 0
