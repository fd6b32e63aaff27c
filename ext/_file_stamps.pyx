"""Files that changed, compiled; `raf_session._file_stamps_py` finds the same."""

from cpython.tuple cimport PyTuple_GetItem
from libc.string cimport strrchr

__all__ = ("changed_files",)

cdef extern from "Python.h":
    bytes PyUnicode_EncodeFSDefault(object)
    unsigned long long PyLong_AsUnsignedLongLongMask(object) except? -1

cdef extern from *:
    """
    #include <fcntl.h>
    #include <sys/stat.h>
    #include <unistd.h>

    #ifdef __APPLE__
    #define raf_mtime st_mtimespec
    #else
    #define raf_mtime st_mtim
    #endif

    typedef struct {
        const char *name;
        unsigned long long inode, size, mtime_ns;  // modulo 2 ** 64
    } raf_stamp;

    static int raf_is_unchanged(int folder, const raf_stamp *seen) {
        struct stat now;
        return fstatat(folder, seen->name, &now, 0) == 0
            && now.raf_mtime.tv_sec * 1000000000ULL + now.raf_mtime.tv_nsec
                == seen->mtime_ns
            && (unsigned long long)now.st_size == seen->size
            && now.st_ino == seen->inode;
    }
    """
    ctypedef struct raf_stamp:
        const char *name
        unsigned long long inode, size, mtime_ns

    bint raf_is_unchanged(int folder, const raf_stamp *seen) nogil
    int open(const char *path, int flags) nogil
    int close(int fd) nogil
    const int O_RDONLY, O_DIRECTORY, O_CLOEXEC, AT_FDCWD

cdef enum:
    CHUNK = 512  # so many are looked at while others have the GIL
    FEW = 8  # for so few it does not pay to open their folder


def changed_files(folder, files):
    """Return the paths of the files that are not as they were seen, in any order."""
    cdef raf_stamp stamps[CHUNK]
    cdef raf_stamp *stamp = stamps
    cdef list paths = [], names = [], changed = []
    cdef bytes name
    cdef int fd = open_folder(folder) if len(files) > FEW else AT_FDCWD
    try:
        for path, seen in files.items():
            if seen is None:
                changed.append(path)
                continue
            name = PyUnicode_EncodeFSDefault(path)
            stamp.name = name
            if fd != AT_FDCWD:
                stamp.name = strrchr(stamp.name, b"/") + 1
            stamp.inode = number(seen, 0)
            stamp.size = number(seen, 1)
            stamp.mtime_ns = number(seen, 2)
            names.append(name)  # else it would not live until it is looked at
            paths.append(path)
            stamp += 1
            if len(paths) == CHUNK:
                look(fd, stamps, paths, changed)
                names.clear()
                paths.clear()
                stamp = stamps
        look(fd, stamps, paths, changed)
    finally:
        if fd != AT_FDCWD:
            close(fd)
    return changed


cdef int open_folder(path) except -1:
    """Open it, so that its own path is followed once and not for each file."""
    cdef bytes encoded = PyUnicode_EncodeFSDefault(path)
    cdef const char *name = encoded
    cdef int fd
    with nogil:
        fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    return AT_FDCWD if fd < 0 else fd


cdef unsigned long long number(seen, Py_ssize_t place) except? -1:
    return PyLong_AsUnsignedLongLongMask(<object>PyTuple_GetItem(seen, place))


cdef int look(int fd, const raf_stamp *stamps, list paths, list changed) except -1:
    """Add those of the paths whose files are not as they were seen."""
    cdef bint unchanged[CHUNK]
    cdef Py_ssize_t n = len(paths), i
    with nogil:
        for i in range(n):
            unchanged[i] = raf_is_unchanged(fd, &stamps[i])
    for i in range(n):
        if not unchanged[i]:
            changed.append(paths[i])
    return 0
