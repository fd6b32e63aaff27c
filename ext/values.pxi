# Values ------------------------------------------------------------------------

cdef inline const char *ascii_of(PyObject *text) noexcept:
    """Return the characters of a string, or NULL where some are not ASCII."""
    if is_compact(text):
        return compact_data(text)
    if is_ready(text) and PyUnicode_IS_ASCII(text):
        return <const char *>PyUnicode_DATA(text)
    return NULL


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


cdef int put_long(Writer *w, PyObject *text) noexcept:
    """Write any string: one that is not short, not ASCII, or that finds no room."""
    cdef size_t size
    cdef uint8_t *to
    cdef const char *data = ascii_of(text)
    if unlikely(data is NULL):
        return put_wide(w, text) if is_ready(text) else FAULT
    size = <size_t>PyUnicode_GET_LENGTH(text)
    if unlikely(size >= LARGE):
        return put_large(w, text, size)
    if reserve(w, size + 3) != OK:
        return NO_MEMORY
    to = put_length(w.data + w.size, c"s", size)
    memcpy(to, data, size)
    w.size = <size_t>(to - w.data) + size
    return OK


cdef inline int put_text(Writer *w, PyObject *text) noexcept:
    cdef const char *data = ascii_of(text)
    cdef size_t size
    cdef uint8_t *to
    if data is NULL:
        return put_long(w, text)
    size = <size_t>PyUnicode_GET_LENGTH(text)
    if size > SHORT or w.room - w.size < SHORT + 2:
        return put_long(w, text)
    to = w.data + w.size
    to[0] = c"s"
    to[1] = <uint8_t>size
    put_copy(to + 2, <const uint8_t *>data, size)
    w.size += size + 2
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
    if size > MAX_INT_BYTES:
        return FAULT
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


cdef inline int put_value(Writer *w, PyObject *value, int depth) noexcept:
    """Write any JSON value; a container here stands on the level `depth`."""
    if PyUnicode_CheckExact(value):
        return put_text(w, value)
    return put_no_text(w, value, depth)


cdef inline int put_named(Writer *w, int name, PyObject *value, int depth) noexcept:
    if put_name(w, name) != OK:
        return NO_MEMORY
    return put_value(w, value, depth)


cdef int put_no_text(Writer *w, PyObject *value, int depth) noexcept:
    """Write any JSON value that is most likely not text."""
    cdef PyTypeObject *kind = Py_TYPE(value)
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
