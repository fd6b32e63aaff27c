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
