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
    """Copy at most `SHORT` bytes, without a call."""
    if size >= 16:
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


cdef inline uint8_t *put_length(uint8_t *to, uint8_t tag, size_t count) noexcept:
    """Write a tag and a length, and return the end.

    A byte may alias the writer itself, so what is written through one pointer is
    counted once, at the end.
    """
    to[0] = tag
    to += 1
    while count > 0x7F:
        to[0] = <uint8_t>(count | 0x80)
        to += 1
        count >>= 7
    to[0] = <uint8_t>count
    return to + 1


cdef inline void put_tag(Writer *w, uint8_t tag, size_t count) noexcept:
    """Write a tag and a length, for which room is reserved (11 bytes)."""
    cdef uint8_t *end = put_length(w.data + w.size, tag, count)
    w.size = <size_t>(end - w.data)


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
