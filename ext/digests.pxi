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
    return put_message(w, slots, message, False)


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
                result = put_message(w, slots, <PyObject *>wire, False)
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
        return put_unmarked(w, HEADER, value, 1)
    return put_value(w, value, 1)


cdef int encode_any(Writer *w, object value, bint header) except -1:
    """Encode any JSON value, or a header."""
    cdef Mark here = mark(w)
    cdef object frozen
    cdef int result = put_byte(w, VERSION)
    if result == OK:
        result = FAULT if FREE_THREADED else put_any(w, <PyObject *>value, header)
    if result == FAULT:
        rewind(w, here)
        frozen = freeze(value)
        result = put_byte(w, VERSION)
        if result == OK:
            result = put_any(w, <PyObject *>frozen, header)
        if result == OK:
            finish(w)  # while `frozen` holds its strings
    if result == FAULT:
        raise TypeError(f"{type(value).__name__} has no encoding")
    if result == NO_MEMORY:
        raise MemoryError
    finish(w)
    return 0


cdef bytes any_encoding(object value, bint header, Measure *out):
    """Return the encoding of any JSON value, or of a header, and measure it."""
    cdef uint8_t stack[STACK]
    cdef Writer w
    cdef Mark here
    open_writer(&w, stack, STACK)
    here = mark(&w)
    try:
        encode_any(&w, value, header)
        read_off(&w, here, out)
        return w.data[: w.size]
    finally:
        close_writer(&w)


cdef inline int put_any(Writer *w, PyObject *value, bint header) noexcept:
    return put_header(w, value) if header else put_value(w, value, 1)


def value_digest(value):
    """Return the digest of any JSON value.

    Raises:
        InvalidValueError: it is no JSON value, with the path to what is wrong.
    """
    cdef Measure out
    any_encoding(value, False, &out)
    return out.digest


def encode_header(header):
    """Return the encoding of a request's header, version 1, without cache marks.

    Raises:
        InvalidValueError: it is no JSON value, with the path to what is wrong.
    """
    cdef Measure out
    return any_encoding(header, True, &out)


def header_digest(header):
    """Return the XXH64 of a header's encoding.

    Raises:
        InvalidValueError: it is no JSON value, with the path to what is wrong.
    """
    cdef Measure out
    any_encoding(header, True, &out)
    return out.digest


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
    except InvalidValueError as error:
        raise error.within(f"messages[{i}]") from error
    finally:
        close_writer(&w)
    return links
