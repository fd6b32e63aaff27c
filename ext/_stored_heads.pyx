"""Heads of rows and of appends, compiled; `raf_session._stored_heads_py` has both."""

from cpython.datetime cimport datetime_new, import_datetime
from named_tuples cimport blank, fill

from raf_session.changes import SessionStatus
from raf_session.clock import UNIX_EPOCH, from_micros
from raf_session.entries import Counts, SessionHead

__all__ = ("grown_head", "read_head")

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int *) except? -1

import_datetime()

# No `dict` to Cython, whose own look-up leaves `None` out of its KeyError.
cdef object _status = {status.value: status for status in SessionStatus}
cdef object _head_type = SessionHead
cdef object _counts_type = Counts
cdef object _new = tuple.__new__
cdef object _utc = UNIX_EPOCH.tzinfo
cdef long long AFTER_9999 = 253_402_300_800_000_000
if len(SessionHead._fields) != 22 or len(Counts._fields) != 4:
    raise ImportError("the compiled reader was built for other heads")


def read_head(key, row, labels):
    """Return the head of a row: two columns that are not looked at, then its own."""
    cdef tuple r = row if type(row) is tuple else tuple(row)
    cdef object request_hash = r[25], header = r[26]
    return _new(_head_type, (
        key, r[2], r[3], moment(r[4]), moment(r[5]), moment(r[6]), r[7] != 0, r[8],
        r[9],
        _new(_counts_type, (r[10], r[11], r[12], r[13])),
        _new(_counts_type, (r[14], r[15], r[16], r[17])),
        r[18], r[19], _status[r[20]], labels, r[21], r[22], r[23], r[24],
        None if request_hash is None else int.from_bytes(request_hash, "big"),
        None if header is None else int.from_bytes(header, "big"),
        r[27],
    ))


def grown_head(head, counts, now, updated_at=None, active_at=None):
    """Return the head after an append; neither of its times goes back."""
    if type(head) is not _head_type:
        raise TypeError(f"{type(head).__name__} is not a SessionHead")
    cdef tuple h = <tuple>head
    cdef object at = moment(now)
    cdef object updated = at if updated_at is None else updated_at
    cdef object touched = at if active_at is None else active_at
    cdef object active = plus(h[9], counts)
    cdef object total = active if h[9] == h[10] else plus(h[10], counts)
    cdef object revision = h[2] + 1, last_seq = h[7] + counts[0]
    cdef Py_ssize_t i
    if not updated > h[4]:
        updated = h[4]
    if not touched > h[5]:
        touched = h[5]
    cdef object grown = blank(_head_type, 22)
    fill(grown, 0, h[0])
    fill(grown, 1, h[1])
    fill(grown, 2, revision)
    fill(grown, 3, h[3])
    fill(grown, 4, updated)
    fill(grown, 5, touched)
    fill(grown, 6, h[6])
    fill(grown, 7, last_seq)
    fill(grown, 8, h[8])
    fill(grown, 9, active)
    fill(grown, 10, total)
    for i in range(11, 22):
        fill(grown, i, h[i])
    return grown


cdef object plus(object counts, object others):
    if type(counts) is not _counts_type or type(others) is not _counts_type:
        raise TypeError(f"{type(others).__name__} is not Counts")
    cdef object both = blank(_counts_type, 4)
    cdef Py_ssize_t i
    for i in range(4):
        fill(both, i, (<tuple>counts)[i] + (<tuple>others)[i])
    return both


cdef object moment(object micros):
    """Return what `from_micros` does, by itself for the years 1970 to 9999."""
    cdef int overflow = 0
    cdef long long value = -1
    if type(micros) is int:
        value = PyLong_AsLongLongAndOverflow(micros, &overflow)
    if value < 0 or value >= AFTER_9999:
        return from_micros(micros)
    cdef int micro = <int>(value % 1_000_000)
    cdef long long seconds = value // 1_000_000
    cdef int second = <int>(seconds % 86_400)
    # The Gregorian calendar repeats after 146,097 days; a year that begins in March
    # has its leap day at the end. 1970 began 719,468 days after March of the year 0.
    cdef int day = <int>(seconds // 86_400) + 719_468
    cdef int era = day // 146_097
    day -= era * 146_097
    cdef int year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    cdef int month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    year += 400 * era
    if month < 10:
        month += 3
    else:
        month -= 9
        year += 1
    return datetime_new(
        year, month, day + 1, second // 3_600, second // 60 % 60, second % 60, micro,
        _utc,
    )
