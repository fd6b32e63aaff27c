"""JSON text: every way to write it is the standard library's."""

from __future__ import annotations

import importlib.util
import json
import json.encoder
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_values_messages import JSON, TEXT
from typing_extensions import override

from raf_session import json_text
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry
from raf_session.frozen import freeze
from raf_session.messages import ChatMessage

BODIES = BodyFormat("memory", None, 1 << 30)


def standard(value: object) -> str:
    """Return the text as the standard library writes it, escaped where it must be."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


@given(JSON)
def test_a_value_is_written_as_the_standard_library_writes_it(value: Any) -> None:
    assert json_text.dump_json(value) == standard(value)
    assert json_text.dump_json(freeze(value)) == standard(value)


@given(TEXT)
def test_a_string_is_written_as_the_standard_library_writes_it(text: str) -> None:
    assert json_text.dump_text(text) == standard(text)


def test_each_code_point_is_written_as_the_standard_library_writes_it() -> None:
    for start in range(0, 0x110000, 0x80):
        for text in ("".join(map(chr, range(start, start + 0x80))), chr(start)):
            assert json_text.dump_text(text) == standard(text)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_json_number_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_text.dump_json({"a": [number]})


@given(JSON)
def test_an_interpreter_without_the_encoder_in_c_writes_the_same(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json.encoder, "c_make_encoder", None)
        spec = importlib.util.find_spec("raf_session.json_text")
        assert spec is not None
        assert spec.loader is not None
        plain = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plain)
        assert plain.dump_json(value) == json_text.dump_json(value)


@given(st.sampled_from(("user", "assistant", "tool")), TEXT, TEXT | st.none())
def test_the_body_of_a_message_is_its_json(
    role: str, content: str, call: str | None
) -> None:
    fields: dict[str, Any] = {"role": role, "content": content}
    if call is not None:
        fields["tool_call_id"] = call
    entry = Entry("e", message=ChatMessage.from_openai(fields))
    assert BODIES.encode(entry) == standard({"message": fields})


class Marked(ChatMessage):
    """A message of a subclass, which sends what it likes."""

    @override
    def wire(self) -> dict[str, Any]:
        return super().wire() | {"mark": True}


def test_the_body_of_a_subclass_is_what_it_sends() -> None:
    message = Marked.from_openai({"role": "user", "content": "hello"})
    text = '{"message":{"role":"user","content":"hello","mark":true}}'
    assert BODIES.encode(Entry("e", message=message)) == text
