# The tracker -------------------------------------------------------------------

cdef class PrefixTracker:
    """Compares each request of a session with the one before.

    It holds the `ChatMessage` objects of the last request, and of dicts their encoding:
    a dict changed in place is noticed.
    A copy or a pickle knows the digests of the last request and not its messages.
    """

    cdef object __weakref__
    cdef Request *now
    cdef Request *past  # the end of the one before, where the last one left it
    cdef Py_ssize_t past_base  # the messages in front of that end, still in `now`
    cdef uint8_t *spare  # a buffer for encodings, used in turns with `now.data`
    cdef size_t spare_room
    cdef object match
    cdef bint has_header
    cdef uint64_t header
    cdef object header_data  # its encoding; None where only the digest is known
    cdef uint64_t touches

    def __cinit__(self, *args, **kwargs):
        if (args or kwargs) and type(self).__init__ is object.__init__:
            raise TypeError("PrefixTracker() takes no arguments")
        self.now = NULL
        self.past = NULL
        self.past_base = 0
        self.spare = NULL
        self.spare_room = 0
        self.has_header = False
        self.header = 0
        self.header_data = None
        self.touches = 0

    def __dealloc__(self):
        free_request(self.now)
        free_request(self.past)
        free(self.spare)

    @classmethod
    def restore(cls, digests, header_digest, hash):
        """Return a tracker as a former one stood, from what was stored of it.

        Args:
            digests: 8 bytes for each message of the last request, as in `digests`.
            header_digest: the digest of its header, or `None`.
            hash: its last link, which must follow from the digests.

        Raises:
            ValueError: the digests are not those of this hash.
        """
        cdef PrefixTracker tracker
        cdef Request *r
        cdef Request *now
        cdef Request *past
        cdef Py_ssize_t i, count
        cdef uint64_t wanted, header
        cdef uint64_t link = ROOT_LINK
        cdef const uint8_t *data
        if not isinstance(digests, bytes):
            raise TypeError(f"digests are bytes, not {type(digests).__name__}")
        if len(digests) % 8:
            raise ValueError(f"{len(digests)} bytes of digests, no multiple of 8")
        header = 0 if header_digest is None else as_hash(header_digest, "header_digest")
        wanted = as_hash(hash, "hash")
        data = digests
        count = len(digests) // 8
        tracker = cls()
        r = new_request(count)
        for i in range(count):
            r.digests[i] = read64(data + 8 * i)
            link = next_link(link, r.digests[i])
            r.links[i] = link
            r.objects[i] = NULL
            r.ends[i] = 0
            r.starts[i + 1] = 0
        r.count = count
        if link != wanted:
            free_request(r)
            raise ValueError(f"the digests chain to {link:#018x}, not to {wanted:#018x}")
        # A subclass may have touched it: nothing of that may stay, and what is freed
        # may run anything, so it is swapped out first.
        now, past = tracker.now, tracker.past
        tracker.now = r
        tracker.past = NULL
        tracker.past_base = 0
        tracker.match = None
        tracker.has_header = header_digest is not None
        tracker.header = header
        tracker.header_data = None
        free_request(now)
        free_request(past)
        return tracker

    @cython.critical_section
    def touch(self, messages, header=None):
        """Record a request, and return how much of it was the previous one.

        Args:
            messages: the whole request, in order.
            header: what is rendered before the messages, or changes how: tools, model,
                parameters; any JSON value, or `None` for none.

        Raises:
            InvalidValueError: one is no message, or the header is no JSON value; the
                tracker is as it was.
        """
        cdef uint8_t stack[STACK]
        cdef Item few[FEW]
        cdef Item *items = few
        cdef Py_ssize_t held = 0
        cdef Py_ssize_t base, count, i
        cdef Writer scratch, kept
        cdef Measure head
        cdef object header_data = None
        cdef object former_header
        cdef bint had_header
        cdef PyObject *values[FIELDS]
        cdef object match = None
        cdef object sequence = messages
        cdef Request *gone = NULL
        head.digest = head.size = 0
        if header is not None:
            header_data = any_encoding(header, True, &head)
        if type(messages) is not list and type(messages) is not tuple:
            sequence = as_sequence(messages)
        if FREE_THREADED:
            sequence = tuple(sequence)
        if not is_spare(<PyObject *>self.match):
            match = new_match(<PyObject *>_prefix_match, FIELDS)
        for i in range(FIELDS):
            values[i] = NULL
        open_writer(&scratch, stack, STACK)
        open_writer(&kept, self.spare, self.spare_room)
        kept.owned = True
        self.spare = NULL
        self.spare_room = 0
        try:
            base = same_objects(self.now, <PyObject *>sequence)
            while True:
                if base == 0 and match is None:
                    # What runs while these are read may ask for the last answer.
                    match = new_match(<PyObject *>_prefix_match, FIELDS)
                count = array_size(<PyObject *>sequence) - base
                if count > FEW and items is few:
                    items = <Item *>malloc(
                        array_size(<PyObject *>sequence) * sizeof(Item)
                    )
                    if items is NULL:
                        items = few
                        raise MemoryError
                for i in range(count):
                    items[i].message = array_item(<PyObject *>sequence, base + i)
                    items[i].old = NULL
                    Py_INCREF(items[i].message)
                held = count
                if kept.room == 0 and count and not is_model(items[0].message):
                    if grow(&kept, count * GUESS) != OK:
                        raise MemoryError
                if self._measure(items, count, base, &scratch, &kept):
                    break
                # Something will run Python code, which may touch this tracker: hold
                # every message, and compare with what is there afterwards.
                for i in range(held):
                    Py_DECREF(items[i].message)
                held = base = 0
                scratch.size = kept.size = 0
                scratch.saved = kept.saved = 0
                scratch.later_count = kept.later_count = 0
            had_header, former_header = self.has_header, self.header_data
            gone = self._settle(items, count, base, &kept, header_data, &head, values)
            if match is None:
                match = self.match
            exchange(<PyObject *>match, values, FIELDS)
            self.match = match
            if PyTuple_GET_ITEM(<PyObject *>match, 4) is Py_False:
                match = self._explained(match, had_header, former_header)
        finally:
            if self.spare is NULL:
                self.spare = kept.data
                self.spare_room = kept.room
            else:
                free(kept.data)
            free(kept.later)
            close_writer(&scratch)
            for i in range(held):
                Py_XDECREF(items[i].message)
                Py_XDECREF(items[i].old)
            if items is not few:
                free(items)
            for i in range(FIELDS):
                Py_XDECREF(values[i])
            free_request(gone)
        return match

    cdef bint _measure(
        self, Item *items, Py_ssize_t count, Py_ssize_t base, Writer *scratch, Writer *kept
    ) except -1:
        """Fill in digests and sizes; False where all messages should be held first."""
        cdef Item *item
        cdef Writer *w
        cdef Mark here
        cdef Measure out
        cdef Py_ssize_t i
        cdef int result
        for i in range(count):
            item = &items[i]
            item.start = kept.size
            item.model = is_model(item.message)
            if not item.model or not read_slot(item.message, &out):
                w = scratch if item.model else kept
                here = mark(w)
                result = walk(w, item.message)
                if result == NO_MEMORY:
                    raise MemoryError
                if result == FAULT or w.later_count:
                    if base:
                        return False
                    if result == OK:
                        finish(w)
                    else:
                        rewind(w, here)
                        walk_noted(w, <object>item.message, i)
                read_off(w, here, &out)
                if item.model:
                    rewind(w, here)
                    fill_slot(item.message, &out)
            item.digest = out.digest
            item.size = out.size
        return True

    cdef Request *_settle(
        self, Item *items, Py_ssize_t count, Py_ssize_t base, Writer *kept,
        object header_data, const Measure *head, PyObject **values,
    ) except? NULL:
        """Compare, make the values of the match and record; no Python code runs here.

        Returns:
            A request to be freed when all is done, or NULL.
        """
        cdef Request *now = self.now
        cdef Request *past = NULL
        cdef Request *gone
        cdef Py_ssize_t old_count = now.count if now is not NULL else 0
        cdef Py_ssize_t total = base + count
        cdef Py_ssize_t same = base
        cdef Py_ssize_t shared, i
        cdef uint64_t link = ROOT_LINK
        cdef uint64_t end = 0
        cdef uint64_t shared_bytes
        cdef bint appends, header_changed
        cdef bint has_header = header_data is not None
        cdef Item *item
        while same < old_count and same < total and (
            now.digests[same] == items[same - base].digest
        ):
            same += 1
        if same:
            link = now.links[same - 1]
        if base:
            end = now.ends[base - 1]
        shared_bytes = end
        for i in range(base, total):
            item = &items[i - base]
            end += item.size
            item.end = end
            if i < same:
                item.link = now.links[i]
                shared_bytes = end
            else:
                link = next_link(link, item.digest)
                item.link = link
        appends = same == old_count
        header_changed = now is not NULL and (
            has_header != self.has_header or head.digest != self.header
        )
        shared = 0 if header_changed else same
        if header_changed:
            shared_bytes = 0
        values[0] = PyLong_FromSsize_t(shared)
        values[1] = PyLong_FromUnsignedLongLong(shared_bytes)
        values[2] = PyLong_FromSsize_t(total)
        values[3] = PyLong_FromUnsignedLongLong(end)
        values[4] = PyBool_FromLong(appends and not header_changed)
        values[5] = (
            new_reference(Py_None) if appends or header_changed else PyLong_FromSsize_t(same)
        )
        values[6] = new_reference(Py_None) if now is NULL else PyLong_FromSsize_t(old_count)
        values[7] = PyBool_FromLong(header_changed)
        values[8] = PyLong_FromUnsignedLongLong(link)
        values[9] = PyLong_FromUnsignedLongLong(head.size)
        values[10] = new_reference(<PyObject *>_no_cause)
        values[11] = new_reference(Py_None)
        values[12] = new_reference(Py_None)
        for i in range(FIELDS):
            if values[i] is NULL:
                raise MemoryError
        if now is NULL:
            now = new_request(total)
        else:
            if make_room(now, total) != OK:
                raise MemoryError
            if not appends:
                past = new_request(old_count - base)
        # Nothing can fail from here on.
        if past is not NULL:
            past.count = old_count - base
            for i in range(base, old_count):
                past.objects[i - base] = now.objects[i]
                past.digests[i - base] = now.digests[i]
                past.starts[i - base] = now.starts[i]
            past.starts[past.count] = now.starts[old_count]
            past.data, now.data = now.data, NULL
            now.data_room = 0
            now.count = base
        for i in range(base, total):
            item = &items[i - base]
            if i < now.count:
                item.old = now.objects[i]
            now.objects[i] = NULL
            if item.model:
                now.objects[i] = item.message
                item.message = NULL
            now.digests[i] = item.digest
            now.links[i] = item.link
            now.ends[i] = item.end
            now.starts[i] = item.start
        now.starts[total] = kept.size
        now.count = total
        if kept.size:
            now.data, kept.data = kept.data, now.data
            now.data_room, kept.room = kept.room, now.data_room
        self.now = now
        gone = self.past
        self.past = past
        self.past_base = base
        self.has_header = has_header
        self.header = head.digest
        self.header_data = header_data
        self.touches += 1
        return gone

    cdef object _explained(self, object match, bint had_header, object former_header):
        """Return the match just made with its first difference and its cause.

        Should anything run in between that touches this tracker, the digests are what
        is left to explain it by.
        """
        cdef uint64_t touches = self.touches
        cdef bint has_header = self.has_header
        cdef object header = self.header_data
        cdef Py_ssize_t old_count = match.previous_messages
        cdef Py_ssize_t front = old_count if self.past is NULL else self.past_base
        cdef object old_digests = digests_of(self.now, front)
        cdef object new_digests = digests_of(self.now, self.now.count)
        cdef list before
        cdef list after
        if self.past is not NULL:
            old_digests += digests_of(self.past, self.past.count)
        before, after = [], []
        if touches == self.touches:
            list_kept(before, self.now, front)
            if self.past is not NULL:
                list_kept(before, self.past, self.past.count)
            list_kept(after, self.now, self.now.count)
        else:
            before = [None] * (len(old_digests) // 8)
            after = [None] * (len(new_digests) // 8)
        match = explain(
            match,
            Evidence.packed(old_digests, before, Header(had_header, former_header)),
            Evidence.packed(new_digests, after, Header(has_header, header)),
        )
        if touches == self.touches:
            self.match = match
        return match

    @property
    def last(self):
        """The answer of the last `touch`; `None` where there was none."""
        return self.match

    @property
    def hash(self):
        """The last link of the last request; `None` before the first."""
        with cython.critical_section(self):
            if self.now is NULL:
                return None
            if self.now.count == 0:
                return ROOT_LINK
            return self.now.links[self.now.count - 1]

    @property
    def count(self):
        """The messages of the last request; 0 before the first."""
        with cython.critical_section(self):
            return 0 if self.now is NULL else self.now.count

    @property
    def digests(self):
        """The digests of the last request's messages, 8 bytes each, little-endian."""
        with cython.critical_section(self):
            return b"" if self.now is NULL else digests_of(self.now, self.now.count)

    @property
    def header_digest(self):
        """The digest of the last request's header; `None` where it had none."""
        with cython.critical_section(self):
            return self.header if self.has_header else None

    @property
    def kept(self):
        """The messages of the last request: the object, or the encoding of a dict.

        `None` for a message that is known from a stored record alone.
        """
        cdef list kept = []
        with cython.critical_section(self):
            if self.now is not NULL:
                list_kept(kept, self.now, self.now.count)
        return tuple(kept)

    @property
    def former_kept(self):
        """As `kept`, of the request before the last, where the last one left it.

        `None` where the last one appended: then nothing of the former is lost.
        """
        cdef list kept = []
        with cython.critical_section(self):
            if self.past is NULL:
                return None
            list_kept(kept, self.now, self.past_base)
            list_kept(kept, self.past, self.past.count)
        return tuple(kept)

    @property
    def former_digests(self):
        """As `digests`, of the request before the last, where the last one left it."""
        with cython.critical_section(self):
            if self.past is NULL:
                return None
            front = digests_of(self.now, self.past_base)
            return front + digests_of(self.past, self.past.count)

    def __copy__(self):
        if self.now is NULL:
            return type(self)()
        return self.restore(self.digests, self.header_digest, self.hash)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce__(self):
        if self.now is NULL:
            return (revive, (None, None, ROOT))
        return (revive, (self.digests, self.header_digest, self.hash))


cdef int walk_noted(Writer *w, object message, Py_ssize_t index) except -1:
    try:
        walk_frozen(w, message)
    except InvalidValueError as error:
        raise error.within(f"messages[{index}]") from error
    return 0
