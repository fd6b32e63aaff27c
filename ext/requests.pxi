# Requests as the tracker keeps them ----------------------------------------------

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
    """Pack the digests; the garbage collector has no occasion to run here."""
    cdef PyObject *packed = PyBytes_FromStringAndSize(NULL, 8 * count)
    cdef uint8_t *data
    cdef Py_ssize_t i
    cdef object result
    if packed is NULL:
        raise MemoryError
    data = <uint8_t *>PyBytes_AS_STRING(packed)
    for i in range(count):
        write64(data + 8 * i, r.digests[i])
    result = <object>packed
    Py_DECREF(packed)
    return result


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
