"""XXH64, written from its specification (xxHash fast digest algorithm, version 0.1.1).

Checked against the `xxhash` package by the tests; nothing is linked or vendored.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #define RAF_P1 0x9E3779B185EBCA87ULL
    #define RAF_P2 0xC2B2AE3D27D4EB4FULL
    #define RAF_P3 0x165667B19E3779F9ULL
    #define RAF_P4 0x85EBCA77C2B2AE63ULL
    #define RAF_P5 0x27D4EB2F165667C5ULL

    /* A number to little-endian memory and back: nothing to do on most machines. */
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define RAF_LE32(x) __builtin_bswap32(x)
    #define RAF_LE64(x) __builtin_bswap64(x)
    #else
    #define RAF_LE32(x) (x)
    #define RAF_LE64(x) (x)
    #endif

    /* Keeps the rounds of the four lanes apart: the multiplications that wait for
       nothing, put in front of those that others wait for, took a third longer. */
    #if defined(__GNUC__) || defined(__clang__)
    #define RAF_APART(x) __asm__("" : "+r"(x))
    #else
    #define RAF_APART(x) ((void)(x))
    #endif
    """
    const uint64_t P1 "RAF_P1"
    const uint64_t P2 "RAF_P2"
    const uint64_t P3 "RAF_P3"
    const uint64_t P4 "RAF_P4"
    const uint64_t P5 "RAF_P5"
    uint32_t le32 "RAF_LE32" (uint32_t value) noexcept nogil
    uint64_t le64 "RAF_LE64" (uint64_t value) noexcept nogil
    void apart "RAF_APART" (uint64_t value) noexcept nogil


cdef inline uint64_t read64(const uint8_t *data) noexcept nogil:
    """Return the little-endian number at any address."""
    cdef uint64_t value
    memcpy(&value, data, 8)
    return le64(value)


cdef inline void write64(uint8_t *data, uint64_t value) noexcept nogil:
    """Put a number at any address, little-endian."""
    value = le64(value)
    memcpy(data, &value, 8)


cdef inline uint64_t _rotl(uint64_t value, int bits) noexcept nogil:
    return (value << bits) | (value >> (64 - bits))


cdef inline uint64_t _round(uint64_t acc, uint64_t lane) noexcept nogil:
    acc = _rotl(acc + lane * P2, 31) * P1
    apart(acc)
    return acc


cdef inline uint64_t _merge(uint64_t acc, uint64_t lanes) noexcept nogil:
    return (acc ^ _round(0, lanes)) * P1 + P4


cdef inline uint64_t _tail64(uint64_t acc, uint64_t lane) noexcept nogil:
    return _rotl(acc ^ _round(0, lane), 27) * P1 + P4


cdef inline uint64_t _avalanche(uint64_t acc) noexcept nogil:
    acc = (acc ^ (acc >> 33)) * P2
    acc = (acc ^ (acc >> 29)) * P3
    return acc ^ (acc >> 32)


cdef inline uint64_t xxh64(
    const uint8_t *data, size_t size, uint64_t seed
) noexcept nogil:
    """Return the XXH64 of these bytes."""
    cdef const uint8_t *end = data + size
    cdef uint64_t a, b, c, d, acc
    cdef uint32_t word
    if size >= 32:
        a = seed + P1 + P2
        b = seed + P2
        c = seed
        d = seed - P1
        while end - data >= 32:
            a = _round(a, read64(data))
            b = _round(b, read64(data + 8))
            c = _round(c, read64(data + 16))
            d = _round(d, read64(data + 24))
            data += 32
        acc = _rotl(a, 1) + _rotl(b, 7) + _rotl(c, 12) + _rotl(d, 18)
        acc = _merge(_merge(_merge(_merge(acc, a), b), c), d)
    else:
        acc = seed + P5
    acc += size
    while end - data >= 8:
        acc = _tail64(acc, read64(data))
        data += 8
    if end - data >= 4:
        memcpy(&word, data, 4)
        acc = _rotl(acc ^ (<uint64_t>le32(word) * P1), 23) * P2 + P3
        data += 4
    while data < end:
        acc = _rotl(acc ^ (data[0] * P5), 11) * P1
        data += 1
    return _avalanche(acc)


cdef inline uint64_t xxh64_pair(uint64_t first, uint64_t second) noexcept nogil:
    """Return the XXH64, seed 0, of two numbers as 16 little-endian bytes."""
    return _avalanche(_tail64(_tail64(P5 + 16, first), second))
