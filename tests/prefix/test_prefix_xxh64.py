"""The compiled XXH64 is that of the `xxhash` package."""

from __future__ import annotations

import random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh64_intdigest

TABLE = [
    (b"", 0xEF46DB3751D8E999, 0xD5AFBA1336A3BE4B),
    (b"a", 0xD24EC4F1A98C6E5B, 0xDEC2BC81C3CD46C6),
    (b"abc", 0x44BC2CF5AD770999, 0xBEA9CA8199328908),
    (b"message digest", 0x066ED728FCEEB3BE, 0xCBA434B6417DD0FD),
    (b"\x00", 0xE934A84ADB052768, 0x771917C7F6EE2451),
    (bytes(range(32)), 0xCBF59C5116FF32B4, 0xD74E6766CE9DBA94),
    (bytes(range(64)), 0xF7C67301DB6713F0, 0x3CE5BDF7575926C0),
]


@pytest.fixture(scope="session")
def compiled(prefix_twins: tuple[ModuleType, ModuleType]) -> ModuleType:
    return prefix_twins[0]


@pytest.mark.parametrize(("data", "zero", "one"), TABLE, ids=repr)
def test_published_values(
    compiled: ModuleType, data: bytes, zero: int, one: int
) -> None:
    assert compiled._xxh64(data) == zero
    assert compiled._xxh64(data, 1) == one


def test_every_length(compiled: ModuleType) -> None:
    data = random.Random(64).randbytes(300)
    for size in range(301):
        piece = data[:size]
        assert compiled._xxh64(piece) == xxh64_intdigest(piece)
        assert compiled._xxh64(piece, 2**64 - 1) == xxh64_intdigest(piece, 2**64 - 1)


@given(
    data=st.binary(max_size=2000),
    start=st.integers(0, 8),
    seed=st.integers(0, 2**64 - 1),
)
def test_any_bytes_at_any_address(
    compiled: ModuleType, data: bytes, start: int, seed: int
) -> None:
    piece = memoryview(data)[start:]
    assert compiled._xxh64(piece, seed) == xxh64_intdigest(bytes(piece), seed)
