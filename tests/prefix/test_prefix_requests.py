"""The published request vectors hold, and the document says what the code does."""

from __future__ import annotations

import functools
import json
import math
import re
import runpy
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from prefix_inputs import deep
from xxhash import xxh64_intdigest

from raf_session.errors import InvalidValueError
from raf_session.frozen import MAX_DEPTH, MAX_INT_BYTES
from raf_session.messages import MessageRole
from raf_session.parts import PART_TYPES
from raf_session.prefix_match import EXCLUDED, ROOT, ZERO_SUBSTITUTE
from raf_session.request_shapes import (
    RequestShape,
    anthropic,
    bedrock,
    fields,
    gemini,
    openai_chat,
    openai_responses,
    read_request,
)

HERE = Path(__file__).parent
PATH = HERE.parent / "vectors" / "prefix-requests-v1.json"
VECTORS: list[dict[str, Any]] = json.loads(PATH.read_text(encoding="ascii"))
MESSAGE_VECTORS: dict[str, Any] = json.loads(
    PATH.with_name("prefix-v1.json").read_text(encoding="ascii")
)
DOCUMENT = HERE.parents[1] / "docs" / "prefix-format.md"

READERS: Final[dict[RequestShape, ModuleType]] = {
    RequestShape.OPENAI_CHAT: openai_chat,
    RequestShape.OPENAI_RESPONSES: openai_responses,
    RequestShape.ANTHROPIC: anthropic,
    RequestShape.GEMINI: gemini,
    RequestShape.BEDROCK: bedrock,
}
OWN_MARKS: Final = {
    ("anthropic", "marks that are none"): 3,
    ("anthropic", "objects that are left empty"): 3,
    ("bedrock", "what is nearly a default"): 1,
}
"""How many names of marks stand where no API looks for one, and so are data."""

vectors = pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda vector: f"{vector['shape']}: {vector['name']}"
)
shapes = pytest.mark.parametrize("shape", RequestShape)


def encodings(vector: dict[str, Any]) -> list[bytes]:
    return [
        bytes.fromhex(text)
        for text in (
            vector["header_encoding"],
            *(message["encoding"] for message in vector["messages"]),
        )
    ]


# The vectors ---------------------------------------------------------------------


@vectors
def test_a_body(prefix_impl: ModuleType, vector: dict[str, Any]) -> None:
    request = read_request(vector["body"], vector["shape"])
    # As text: it has the order of keys, and tells 1, 1.0 and true apart.
    assert json.dumps(request.header) == json.dumps(vector["header"])
    for header in (request.header, vector["header"]):
        assert prefix_impl.encode_header(header).hex() == vector["header_encoding"]
        assert f"{prefix_impl.header_digest(header):016x}" == vector["header_digest"]
    for message, wanted in zip(request.messages, vector["messages"], strict=True):
        assert prefix_impl.encode_message(message).hex() == wanted["encoding"]
        assert f"{prefix_impl.message_digest(message):016x}" == wanted["digest"]
    tracker = prefix_impl.PrefixTracker()
    match = tracker.touch(request.messages, request.header)
    assert f"{match.hash:016x}" == vector["hash"]


@vectors
def test_a_body_by_xxhash_alone(vector: dict[str, Any]) -> None:
    header, *messages = encodings(vector)
    assert xxh64_intdigest(header) == int(vector["header_digest"], 16)
    link = xxh64_intdigest(b"raf_session prefix v1")
    for encoding, message in zip(messages, vector["messages"], strict=True):
        digest = xxh64_intdigest(encoding)
        assert digest == int(message["digest"], 16)
        link = xxh64_intdigest(struct.pack("<QQ", link, digest))
    assert link == int(vector["hash"], 16)


@vectors
def test_the_encodings_hold_no_mark(vector: dict[str, Any]) -> None:
    held = [
        mark
        for encoding in encodings(vector)
        for mark in EXCLUDED
        for _ in range(encoding.count(mark.encode()))
    ]
    assert len(held) == OWN_MARKS.get((vector["shape"], vector["name"]), 0)


def test_the_file_is_what_its_script_makes() -> None:
    script = runpy.run_path(str(PATH.with_name("make_requests.py")))
    assert script["lines"](script["vectors"]()) == PATH.read_text(encoding="ascii")


@shapes
def test_there_are_enough_bodies(shape: RequestShape) -> None:
    names = [vector["name"] for vector in VECTORS if vector["shape"] == shape]
    assert len(names) >= 5
    assert len(set(names)) == len(names)


@shapes
def test_a_body_has_every_field_that_is_left_out(shape: RequestShape) -> None:
    (vector,) = [
        vector
        for vector in VECTORS
        if vector["shape"] == shape and vector["name"] == "fields that are left out"
    ]
    body = vector["body"]
    given = {*body, *body.get("generationConfig", ())}
    dropped = {name for name, one in reducers(shape).items() if one is fields.drop}
    assert dropped - SECTIONS[shape] <= given
    assert vector["header"].keys() == {"model"}


# The document: lists -------------------------------------------------------------

SECTIONS: Final[dict[RequestShape, set[str]]] = {
    RequestShape.OPENAI_CHAT: {"model", "messages", "tools"},
    RequestShape.OPENAI_RESPONSES: {"model", "input", "tools", "instructions"},
    RequestShape.ANTHROPIC: {"model", "messages", "tools", "system"},
    RequestShape.GEMINI: {"contents"},
    RequestShape.BEDROCK: {"modelId", "messages", "system"},
}


def reducers(shape: RequestShape) -> Mapping[str, Any]:
    found: Mapping[str, Any] = READERS[shape]._FIELDS
    return found


def text_of_document() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


def part_of_document(heading: str) -> str:
    """Return what stands under a heading, up to the next one of its rank or above."""
    rank = heading.index(" ")
    found = text_of_document().partition(f"\n{heading}\n")[2]
    assert found, heading
    return re.split(rf"^#{{1,{rank}}} ", found, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str, *head: str) -> list[list[str]]:
    """Return the cells of the only table with these names of columns."""
    before, found, after = text.partition(
        f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n"
    )
    assert found, head
    assert found not in after, before
    table = re.match(r"(\|.*\|\n)*", after)
    assert table
    return [line[2:-2].split(" | ") for line in table[0].splitlines()]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def quoted(reduce: Callable[[Any], Any]) -> Iterator[str]:
    """Yield what a reducer looks for: names inside of its field, and defaults."""
    for cell in reduce.__closure__ or ():
        held = cell.cell_contents
        if isinstance(held, Mapping):
            for name, inner in held.items():
                yield name
                yield from quoted(inner)
        elif isinstance(held, tuple):
            yield from map(json.dumps, held)


@shapes
def test_the_document_names_each_field_that_is_left_out(shape: RequestShape) -> None:
    table = rows(part_of_document(f"### `{shape.value}`"), "fields", "why")
    named = [name for fields_cell, _ in table for name in names_in(fields_cell)]
    dropped = {name for name, one in reducers(shape).items() if one is fields.drop}
    assert sorted(named) == sorted(dropped - SECTIONS[shape])


@shapes
def test_the_document_names_each_field_that_is_reduced(shape: RequestShape) -> None:
    part = part_of_document(f"### `{shape.value}`")
    table = dict(rows(part, "field", "left out"))
    reduced = {k: one for k, one in reducers(shape).items() if one is not fields.drop}
    assert {name for cell in table for name in names_in(cell)} == reduced.keys()
    for name, reduce in reduced.items():
        assert set(quoted(reduce)) <= set(names_in(table[f"`{name}`"])), name


@shapes
def test_what_the_document_calls_a_default_is_left_out(shape: RequestShape) -> None:
    """A value that stands in the table for itself, and not for something inside."""
    table = rows(part_of_document(f"### `{shape.value}`"), "field", "left out")
    for field, cell in table:
        for value in names_in(re.split("in it|any object|see", cell)[0]):
            assert reducers(shape)[field.strip("`")](json.loads(value)) is None


def test_the_document_has_the_sections_in_the_body() -> None:
    for shape, sections in SECTIONS.items():
        table = rows(part_of_document(f"### `{shape.value}`"), "section", "in the body")
        named = {name.split(".")[0] for _, cell in table for name in names_in(cell)}
        assert sections <= named
        for header_name, cell in table:
            if header_name == "messages":
                assert len(names_in(cell)) == 1


def test_the_document_has_the_late_parameters() -> None:
    late = names_in(part_of_document("### `anthropic`").partition("The late")[2])[:2]
    assert set(late) == anthropic._LATE
    assert "The late parameter is `tool_choice`." in part_of_document("### `bedrock`")
    for shape in ("openai-chat", "openai-responses", "gemini"):
        assert "There are no late parameters." in part_of_document(f"### `{shape}`")


def test_the_document_has_what_is_in_some_fields() -> None:
    chat, responses = (
        part_of_document(f"### `{shape}`")
        for shape in ("openai-chat", "openai-responses")
    )
    for part in (chat, responses):
        assert '`type` is `"allowed_tools"`' in part
    container = dict(rows(part_of_document("### `anthropic`"), "field", "left out"))
    assert names_in(container["`container`"]) == ["id"]
    assert f"cleaned* on level {anthropic._DEPTH}" in part_of_document(
        "### `anthropic`"
    )
    roles = part_of_document("### `gemini`")
    for given, role in gemini._ROLES.items():
        assert f"`{given}` to `{role}`" in roles
    assert all(f"`{name}`" in roles for name in gemini._CONFIGS)


def test_the_document_has_the_lists_of_messages() -> None:
    part = part_of_document("## Messages")
    assert f"`role` is one of {', '.join(f'`{r.value}`' for r in MessageRole)}." in part
    payloads = {k: one.payload_name for k, one in PART_TYPES.items()}
    table = rows(part, "`type`", "payload")
    assert {a.strip("`"): b.strip("`") for a, b in table} == payloads
    marks = next(line for line in part.splitlines() if line.startswith("A *mark*"))
    assert set(names_in(marks)) == EXCLUDED


def test_the_document_has_the_limits_and_constants() -> None:
    text = text_of_document()
    assert f"At most {MAX_DEPTH} objects and lists" in text
    assert f"the limit is {MAX_INT_BYTES} bytes of two's complement" in text
    assert f"from -2^{8 * MAX_INT_BYTES - 1} to 2^{8 * MAX_INT_BYTES - 1} - 1" in text
    assert f"`{ROOT:016x}`" in text
    assert f"`{ZERO_SUBSTITUTE:016x}`" in text
    for shape in RequestShape:
        assert f"| `{shape.value}` |" in text


# The document: examples ----------------------------------------------------------


def test_the_check_values_of_the_document() -> None:
    table = rows(part_of_document("## The hash function"), "bytes", "XXH64")
    inputs = (b"", b"a", b"abc", bytes(range(32)), bytes(range(64)))
    for (_, cell), data in zip(table, inputs, strict=True):
        assert cell == f"`{xxh64_intdigest(data):016x}`"


def test_the_values_of_the_document(prefix_impl: ModuleType) -> None:
    part = part_of_document("## Values")
    examples = rows(part, "value", "encoding")
    assert len(examples) > 20
    for value, encoding in examples:
        encoded = prefix_impl.encode_header(json.loads(value.strip("`"))).hex()
        assert encoded == f"01{encoding.strip('`')}"
    large = names_in(part.partition("of 4,096 letters `a`")[2])[:2]
    assert prefix_impl.encode_header("a" * 4096).hex() == f"01{''.join(large)}"
    for _, tag, letter, _ in rows(part, "value", "tag", "letter", "after the tag"):
        assert bytes.fromhex(tag.strip("`")).decode() == letter


def test_the_worked_example_of_the_document() -> None:
    part = part_of_document("## A worked example")
    (vector,) = [v for v in VECTORS if v["name"] == "worked example"]
    body, header = re.findall(r"```json\n(.*?)```", part, re.DOTALL)
    assert json.dumps(json.loads(body)) == json.dumps(vector["body"])
    assert json.dumps(json.loads(header)) == json.dumps(vector["header"])
    blocks = re.findall(r"```text\n(.*?)```", part, re.DOTALL)
    pieces = ["".join(line.split()[0] for line in b.splitlines()) for b in blocks]
    assert pieces == [encoding.hex() for encoding in encodings(vector)]
    assert f"The header digest is `{vector['header_digest']}`." in part
    chain = rows(
        part, "`i`", "digest of message `i`", "the 16 bytes that are hashed", "link `i`"
    )
    link = chain[0][-1].strip("`")
    assert link == f"{ROOT:016x}"
    for cells, message in zip(chain[1:], vector["messages"], strict=True):
        digest, hashed, now = (cell.strip("`") for cell in cells[1:])
        assert digest == message["digest"]
        raw = struct.pack("<QQ", int(link, 16), int(digest, 16))
        assert hashed == raw.hex()
        assert now == f"{xxh64_intdigest(raw):016x}"
        link = now
    assert link == vector["hash"]


@functools.cache
def program_of_document(folder: Path) -> dict[str, Any]:
    """Run the encoder that is printed in the document."""
    source = text_of_document().partition("<!-- program: encoder -->\n```python\n")[2]
    path = folder / "encoder.py"
    path.write_text(source.partition("```")[0], encoding="utf-8")
    names = {"struct": struct, "xxh64": xxh64_intdigest}
    return runpy.run_path(str(path), init_globals=names)


def test_the_program_of_the_document(tmp_path: Path) -> None:
    program = program_of_document(tmp_path)
    for vector in MESSAGE_VECTORS["messages"]:
        encoding: bytes = program["encode_message"](vector["input"])
        assert encoding.hex() == vector["encoding"], vector["name"]
    digests = [int(vector["digest"], 16) for vector in MESSAGE_VECTORS["messages"]]
    links = [f"{link:016x}" for link in program["links"](digests)]
    assert links == [vector["chain"] for vector in MESSAGE_VECTORS["messages"]]
    for vector in MESSAGE_VECTORS["headers"]:
        encoding = program["encode_header"](vector["input"])
        assert encoding.hex() == vector["encoding"], vector["name"]
    for vector in VECTORS:
        request = read_request(vector["body"], vector["shape"])
        made = [program["encode_header"](vector["header"])]
        made += [program["encode_message"](dict(m)) for m in request.messages]
        assert made == encodings(vector), vector["name"]


BAD_BODIES: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("openai-chat", {}, "messages"),
    ("openai-chat", {"messages": {}}, "messages"),
    ("openai-chat", {"messages": [{}, 5]}, "messages[1]"),
    ("openai-chat", {"messages": [], "user_id": 5}, "user_id"),
    ("openai-responses", {"input": 5}, "input"),
    ("openai-responses", {"input": "", "cache_salt": {}}, "cache_salt"),
    ("openai-responses", {"input": "", "conversation": "c"}, "conversation"),
    ("anthropic", {"messages": None}, "messages"),
    ("gemini", {}, "contents"),
    ("gemini", {"contents": 5}, "contents"),
    ("gemini", {"contents": ["a", None]}, "contents[1]"),
    ("gemini", {"contents": ["a", ["b", 5]]}, "contents[1][1]"),
    ("gemini", {"contents": [], "config": []}, "config"),
    ("gemini", {"contents": [], "topP": 1, "config": {"top_p": 1}}, "config.top_p"),
    ("gemini", {"contents": [], "config": {"contents": []}}, "config.contents"),
    ("gemini", {"contents": "", "systemInstruction": "", "system": ""}, "system"),
    ("bedrock", {"messages": [], "toolConfig": []}, "toolConfig"),
    ("bedrock", {"messages": [], "modelId": "m", "model": "m"}, "model"),
]


@pytest.mark.parametrize(("shape", "body", "path"), BAD_BODIES)
def test_the_refusals_of_bodies(shape: str, body: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_request(body, shape)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ([], ""),
        ({}, "role"),
        ({"role": "human"}, "role"),
        ({"role": None, "x": [1, {"y": math.inf}]}, "x[1].y"),
        ({"role": "user", "x": 2**14279}, "x"),
        ({"role": "user", "x": -(2**14279) - 1}, "x"),
        ({"role": "user", "x": deep(200)}, "x" + "[0].k" * 99 + "[0]"),
        ({"role": "user", "x": {"y": {1: 2}}}, "x.y"),
        ({"role": "user", "x": b""}, "x"),
    ],
)
def test_the_refusals_of_messages(
    prefix_impl: ModuleType, message: Any, path: str
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        prefix_impl.encode_message(message)
    assert caught.value.path == path
    with pytest.raises(InvalidValueError) as caught:
        prefix_impl.prefix_hashes([{"role": "user"}, message])
    assert caught.value.path == (f"messages[1].{path}" if path else "messages[1]")


def test_the_document_stands_for_itself() -> None:
    text = text_of_document()
    assert "raf_session/" not in text
    for line in text.splitlines():
        assert line == line.rstrip()
