"""Named tuples that are filled field by field, with no other tuple on the way."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        object (*tp_alloc)(PyTypeObject *, Py_ssize_t)
        object (*tp_descr_get)(object, object, object)
        int (*tp_descr_set)(object, object, object) except -1


cdef inline object blank(object cls, Py_ssize_t width):
    """Return a new one, whose fields are still to be filled, each of them once."""
    return (<PyTypeObject *>cls).tp_alloc(<PyTypeObject *>cls, width)


cdef inline void fill(object fields, Py_ssize_t place, object value) noexcept:
    Py_INCREF(value)
    PyTuple_SET_ITEM(fields, place, value)
