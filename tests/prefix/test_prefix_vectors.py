"""The published vectors hold, for both twins and for `xxhash` alone."""

from __future__ import annotations

import json
import runpy
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from xxhash import xxh64_intdigest

from raf_session.messages import ChatMessage

PATH = Path(__file__).parents[1] / "vectors" / "prefix-v1.json"
VECTORS: dict[str, Any] = json.loads(PATH.read_text(encoding="ascii"))
MESSAGES: list[dict[str, Any]] = VECTORS["messages"]
HEADERS: list[dict[str, Any]] = VECTORS["headers"]
MARKS = frozenset(("cache_control", "cachePoint", "prompt_cache_breakpoint"))


@pytest.mark.parametrize("vector", MESSAGES, ids=lambda vector: vector["name"])
def test_messages(prefix_impl: ModuleType, vector: dict[str, Any]) -> None:
    for message in (vector["input"], ChatMessage.from_openai(vector["input"])):
        assert prefix_impl.encode_message(message).hex() == vector["encoding"]
        assert f"{prefix_impl.message_digest(message):016x}" == vector["digest"]
        assert prefix_impl.message_size(message) == vector["size"]


def test_the_chain(prefix_impl: ModuleType) -> None:
    links = prefix_impl.prefix_hashes([vector["input"] for vector in MESSAGES])
    assert [f"{link:016x}" for link in links] == [v["chain"] for v in MESSAGES]
    assert f"{prefix_impl.ROOT:016x}" == VECTORS["root"]
    assert f"{prefix_impl.ZERO_SUBSTITUTE:016x}" == VECTORS["zero_substitute"]
    assert VECTORS["format"] == prefix_impl.FORMAT_VERSION


@pytest.mark.parametrize("vector", HEADERS, ids=lambda vector: vector["name"])
def test_headers(prefix_impl: ModuleType, vector: dict[str, Any]) -> None:
    assert prefix_impl.encode_header(vector["input"]).hex() == vector["encoding"]
    assert f"{prefix_impl.header_digest(vector['input']):016x}" == vector["digest"]


def test_the_file_is_what_its_script_makes() -> None:
    script = runpy.run_path(str(PATH.with_name("make.py")))
    assert script["vectors"]() == VECTORS


def test_by_xxhash_alone() -> None:
    """The numbers follow from the encodings, which can be read back."""
    link = xxh64_intdigest(b"raf_session prefix v1")
    assert link == int(VECTORS["root"], 16)
    for vector in MESSAGES:
        encoding = bytes.fromhex(vector["encoding"])
        digest = xxh64_intdigest(encoding)
        assert digest == int(vector["digest"], 16)
        link = xxh64_intdigest(struct.pack("<QQ", link, digest))
        assert link == int(vector["chain"], 16)
        reader = Reader(encoding)
        assert reader.byte() == VECTORS["format"]
        value = reader.value()
        assert reader.at == len(encoding)
        assert len(encoding) + reader.saved == vector["size"]
        assert _without_marks(vector["input"]) == value
        assert type(value) is dict


@pytest.mark.parametrize("vector", HEADERS, ids=lambda vector: vector["name"])
def test_headers_by_xxhash_alone(vector: dict[str, Any]) -> None:
    encoding = bytes.fromhex(vector["encoding"])
    assert xxh64_intdigest(encoding) == int(vector["digest"], 16)
    reader = Reader(encoding)
    assert reader.byte() == VECTORS["format"]
    value = reader.value()
    assert reader.at == len(encoding)
    # As text: it tells 1, 1.0 and true apart, and has the order of keys.
    assert json.dumps(value) == json.dumps(_hashed(_header_without_marks(vector)))


def test_header_names_are_distinct_and_digests_too() -> None:
    names = [vector["name"] for vector in HEADERS]
    assert len(set(names)) == len(names)
    alike = {"fields in an order": "tools", "marked tools": "tools"}
    alike |= {"marked system": "system as a list"}
    digests = {vector["name"]: vector["digest"] for vector in HEADERS}
    for name, other in alike.items():
        assert digests.pop(name) == digests[other]
    assert len(set(digests.values())) == len(digests)


def test_names_are_distinct_and_digests_too() -> None:
    names = [vector["name"] for vector in MESSAGES]
    assert len(set(names)) == len(names)
    same = {"fields in another order"}
    digests = [v["digest"] for v in MESSAGES if v["name"] not in same]
    assert len(set(digests)) == len(digests) - 2  # a mark, a part's order


class Reader:
    """Reads an encoding back into a value, written from the format's text."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.saved = 0

    def take(self, count: int) -> bytes:
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    def count(self) -> int:
        total = shift = 0
        while True:
            byte = self.byte()
            total |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return total

    def value(self) -> Any:
        tag = chr(self.byte())
        if tag in "nft":
            return {"n": None, "f": False, "t": True}[tag]
        if tag == "d":
            return struct.unpack("<d", self.take(8))[0]
        count = self.count()
        if tag == "i":
            return int.from_bytes(self.take(count), "little", signed=True)
        if tag == "s":
            return self.take(count).decode("utf-8", "surrogatepass")
        if tag == "S":
            self.saved += count - 8
            return f"{count}:{self.take(8)[::-1].hex()}"
        if tag == "l":
            return [self.value() for _ in range(count)]
        assert tag == "m"
        return {self.value(): self.value() for _ in range(count)}


def _without_marks(message: dict[str, Any]) -> Any:
    """Return what an encoding reads back as, but for the order of keys."""
    bare = _bare(message)
    if "content" in bare:
        bare["content"] = _without_marked(bare["content"])
    return _hashed(bare)


def _header_without_marks(vector: dict[str, Any]) -> Any:
    if not isinstance(vector["input"], dict):
        return vector["input"]
    header = _bare(vector["input"])
    for name in {"tools", "system"} & header.keys():
        header[name] = _without_marked(header[name])
    return header


def _bare(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in MARKS}


def _without_marked(value: Any) -> Any:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return value
    return [_bare(one) for one in value if not one or not MARKS.issuperset(one)]


def _hashed(value: Any) -> Any:
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogatepass")
        return value if len(raw) < 4096 else f"{len(raw)}:{xxh64_intdigest(raw):016x}"
    if isinstance(value, list):
        return [_hashed(item) for item in value]
    if isinstance(value, dict):
        return {_hashed(key): _hashed(item) for key, item in value.items()}
    return value
