"""What is read of request bodies: of each shape, and of bodies that have none."""

from __future__ import annotations

import contextlib
import copy
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shape_inputs import (
    ANTHROPIC,
    BEDROCK,
    EXAMPLES,
    GEMINI,
    MARKED,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    Example,
    changed,
    hostile_bodies,
    marked_bodies,
)

from raf_session.errors import InvalidValueError
from raf_session.prefix import PrefixTracker, header_digest, message_digest
from raf_session.request_shapes import (
    CacheMark,
    PromptRequest,
    RequestShape,
    read_request,
    shape_of,
)

examples = pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.shape.value)


def digests(request: PromptRequest) -> tuple[int, list[int]]:
    return header_digest(request.header), [message_digest(m) for m in request.messages]


def read(example: Example, body: dict[str, Any]) -> PromptRequest:
    return read_request(body, example.shape)


# Every shape ---------------------------------------------------------------------


@examples
def test_every_message_of_a_real_conversation_can_be_hashed(example: Example) -> None:
    request = read(example, example.body)
    assert request.shape is example.shape
    assert len(digests(request)[1]) == len(example.body[example.history])
    assert shape_of(example.body) == (example.shape, True)
    assert read_request(example.body) == request


@examples
def test_a_body_is_not_changed(example: Example) -> None:
    body = copy.deepcopy(example.body)
    read(example, body)
    assert body == example.body


@examples
def test_what_is_not_rendered_changes_nothing(example: Example) -> None:
    plain = read(example, example.body)
    for path, value in example.excluded.items():
        request = read(example, changed(example.body, path, value))
        assert digests(request) == digests(plain), path
        assert list(request.header) == list(plain.header), path


@examples
def test_what_is_rendered_changes_the_header_and_no_message(example: Example) -> None:
    header, messages = digests(read(example, example.body))
    for path, value in example.included.items():
        request = read(example, changed(example.body, path, value))
        assert header_digest(request.header) != header, path
        assert digests(request)[1] == messages, path


@examples
def test_a_default_is_the_same_as_nothing(example: Example) -> None:
    plain = digests(read(example, example.body))
    for path, value in example.defaults.items():
        assert digests(read(example, changed(example.body, path, value))) == plain, path


@examples
def test_the_order_of_top_level_fields_does_not_matter(example: Example) -> None:
    body = example.body
    for path, value in example.included.items():
        body = changed(body, path, value)
    request = read(example, body)
    other = read(example, dict(reversed(body.items())))
    assert digests(other) == digests(request)
    assert list(other.header) == list(request.header)


@examples
def test_one_message_more_appends(example: Example) -> None:
    tracker = PrefixTracker()
    request = read(example, example.body)
    tracker.touch(request.messages, request.header)
    longer = [*example.body[example.history], example.more]
    request = read(example, {**example.body, example.history: longer})
    match = tracker.touch(request.messages, request.header)
    assert match.append_only
    assert match.shared_messages == len(longer) - 1


@examples
def test_names_lead_to_what_is_in_the_body(example: Example) -> None:
    request = read(example, example.body)
    for name in (*request.header, "messages"):
        value: Any = example.body
        for step in request.names.get(name, name).split("."):
            value = value[step]
        assert value is not None
    assert request.names.keys() <= {*request.header, "messages"}


@examples
def test_no_history_is_an_error(example: Example) -> None:
    for value in (None, 5, {"a": 1} if example.shape is not RequestShape.GEMINI else 5):
        with pytest.raises(InvalidValueError) as caught:
            read(example, {**example.body, example.history: value})
        assert caught.value.path == example.history


@examples
def test_what_is_no_message_is_an_error(example: Example) -> None:
    wrong = [*example.body[example.history][:2], 5]
    with pytest.raises(InvalidValueError) as caught:
        read(example, {**example.body, example.history: wrong})
    assert caught.value.path == f"{example.history}[2]"


# The header ------------------------------------------------------------------------


def test_the_header_is_in_reading_order() -> None:
    body = {
        **ANTHROPIC,
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": []},
        "speed": "fast",
    }
    assert list(read_request(body).header) == [
        "model",
        "tools",
        "speed",
        "thinking",
        "system",
        "context_management",
        "tool_choice",
    ]


def test_values_are_the_bodys_own() -> None:
    request = read_request(OPENAI_CHAT)
    assert request.messages is OPENAI_CHAT["messages"]
    assert request.header["tools"] is OPENAI_CHAT["tools"]
    kept = read_request(BEDROCK)
    assert kept.messages is BEDROCK["messages"]
    assert kept.header["tools"] is BEDROCK["toolConfig"]["tools"]
    config = {"effort": "low", "format": {}}
    body = {**ANTHROPIC, "output_config": config}
    assert read_request(body).header["output_config"] is config


def test_one_is_not_true() -> None:
    assert read_request({**OPENAI_CHAT, "parallel_tool_calls": 1}).header[
        "parallel_tool_calls"
    ]


def test_functions_stand_for_tools_where_there_are_none() -> None:
    body = {"model": "m", "functions": [{"name": "f"}], "messages": []}
    request = read_request(body, "openai")
    assert request.header == {"model": "m", "tools": [{"name": "f"}]}
    assert request.names == {"tools": "functions"}
    both = read_request({**body, "tools": [{"function": {}}]}, "openai")
    assert both.header["functions"] == [{"name": "f"}]


def test_secrets_of_mcp_servers_are_not_rendered() -> None:
    tools = [
        {**OPENAI_RESPONSES["tools"][1], "authorization": "another", "headers": {}}
    ]
    body = {**OPENAI_RESPONSES, "tools": OPENAI_RESPONSES["tools"][:1] + tools}
    assert digests(read_request(body)) == digests(read_request(OPENAI_RESPONSES))


def test_variables_of_a_stored_prompt_are_rendered() -> None:
    arn = "arn:aws:bedrock:eu-west-1:1:prompt/P:1"
    body = {"modelId": arn, "messages": [], "promptVariables": {"a": {"text": "b"}}}
    assert list(read_request(body).header) == ["model", "promptVariables"]
    assert list(read_request({"modelId": arn, "messages": []}).header) == ["model"]


@pytest.mark.parametrize(
    ("body", "shape", "path"),
    [
        ({"messages": [], 5: 1}, "openai", ""),
        ({"messages": [], "prompt_cache_key": 5}, "openai", "prompt_cache_key"),
        ({"input": "q", "previous_response_id": "r"}, None, "previous_response_id"),
        ({"input": "q", "conversation": "c"}, None, "conversation"),
        (
            {"input": "q", "instructions": "x", "system": "y"},
            "openai-responses",
            "system",
        ),
        ({"contents": "q", "config": 5}, None, "config"),
        ({"contents": "q", "config": {5: 1}}, None, ""),
        ({"contents": [["a", 5]]}, None, "contents[0][1]"),
        ({"contents": 5}, None, "contents"),
        (
            {"contents": "q", "tools": [{}], "config": {"tools": [{}]}},
            None,
            "config.tools",
        ),
        ({"messages": [], "toolConfig": 5}, None, "toolConfig"),
        ({"messages": [None]}, None, "messages[0]"),
        ({}, None, "messages"),
    ],
)
def test_an_error_has_its_path(body: Any, shape: str | None, path: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_request(body, shape)
    assert caught.value.path == path


def test_what_is_no_body_or_no_shape_is_an_error() -> None:
    values: tuple[Any, ...] = (None, [], "x")
    for value in values:
        with pytest.raises(TypeError):
            read_request(value)
        with pytest.raises(TypeError):
            shape_of(value)
    with pytest.raises(ValueError, match="openai-responses, anthropic"):
        read_request({}, "cohere")
    body = types.MappingProxyType(OPENAI_CHAT)
    assert read_request(body) == read_request(OPENAI_CHAT)


# Messages --------------------------------------------------------------------------


def test_a_text_is_the_same_as_the_only_text_block_at_anthropic() -> None:
    result = {"type": "tool_result", "tool_use_id": "c"}

    def body(block: Any) -> dict[str, Any]:
        inner = {**result, "content": block}
        messages = [
            {"role": "user", "content": block},
            {"role": "user", "content": [inner]},
        ]
        return {"system": block, "messages": messages}

    text = read_request(body("x"), "anthropic")
    same: list[Any] = [
        [{"type": "text", "text": "x"}],
        [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
        ({"type": "text", "text": "x"}, {"cache_control": {}}),
    ]
    for blocks in same:
        assert digests(read_request(body(blocks), "anthropic")) == digests(text)
    for other in (
        [{"type": "text", "text": "x", "citations": []}],
        [{"type": "text", "text": "x"}, {"type": "text", "text": "x"}],
        [{"type": "text", "text": "x"}, {"type": "text", "text": ""}],
    ):
        request = read_request(body(other), "anthropic")
        assert digests(request)[0] != digests(text)[0]
        assert not set(digests(request)[1]) & set(digests(text)[1])


def test_a_tools_input_is_the_models_own() -> None:
    body = copy.deepcopy(ANTHROPIC)
    body["messages"][1]["content"][1]["input"] = {"cache_control": "another"}
    one, other = read_request(ANTHROPIC), read_request(body)
    assert digests(one)[1][1] != digests(other)[1][1]


def test_items_of_responses_get_a_role() -> None:
    request = read_request(OPENAI_RESPONSES)
    assert [message["role"] for message in request.messages] == [
        "user",
        "assistant",
        "assistant",
        "tool",
        "assistant",
    ]
    string = read_request({"model": "m", "input": "q"})
    listed = read_request({"model": "m", "input": [{"role": "user", "content": "q"}]})
    assert string == listed
    approval = {"type": "mcp_approval_response", "approve": True}
    assert read_request({"input": [approval]}).messages[0]["role"] == "tool"
    assert not read_request({"prompt": {"id": "p"}}, "openai-responses").messages


def test_contents_of_gemini_get_the_roles_of_the_others() -> None:
    roles = [message["role"] for message in read_request(GEMINI).messages]
    assert roles == ["user", "assistant", "tool", "assistant"]
    call = {"function_call": {"name": "f"}}
    turn = {"parts": [{"text": "c"}]}
    request = read_request({"contents": ["a", {"text": "b"}, call, turn, ["d", "e"]]})
    assert request.messages == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "assistant", "parts": [call]},
        {"role": "user", "parts": [{"text": "c"}]},
        {"role": "user", "parts": [{"text": "d"}, {"text": "e"}]},
    ]
    for alone in (
        "a",
        {"text": "a"},
        ["a"],
        {"role": "user", "parts": [{"text": "a"}]},
    ):
        assert read_request({"contents": alone}).messages == [
            {"role": "user", "parts": [{"text": "a"}]}
        ]


def test_gemini_reads_the_arguments_of_the_sdk() -> None:
    config = {
        "system_instruction": "Be brief.",
        "tools": [{}],
        "tool_config": {"function_calling_config": {"mode": "ANY"}},
        "response_schema": {},
        "top_k": 5,
    }
    request = read_request({"model": "m", "contents": "q", "config": config})
    assert list(request.header) == [
        "model",
        "tools",
        "response_schema",
        "tool_config",
        "system",
    ]
    assert request.names == {
        "messages": "contents",
        "tools": "config.tools",
        "system": "config.system_instruction",
        "tool_config": "config.tool_config",
        "response_schema": "config.response_schema",
    }


# Marks -----------------------------------------------------------------------------


@pytest.mark.parametrize("example", MARKED, ids=lambda e: e.shape.value)
@given(data=st.data())
def test_marks_change_no_digest(example: Example, data: st.DataObject) -> None:
    body = data.draw(marked_bodies(example))
    assert digests(read(example, body)) == digests(read(example, example.body))


def test_marks_are_found_where_they_stand() -> None:
    mark, hour = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
    text = {"type": "text", "text": "x"}
    body = {
        "tools": [{"name": "a"}, {"name": "b", "cache_control": hour}],
        "system": [text, {**text, "cache_control": {**mark, "ttl": "5m"}}],
        "messages": [
            {"role": "user", "content": [{**text, "cache_control": mark}, text]},
            {"role": "user", "content": "x", "cache_control": mark},
            {
                "role": "user",
                "content": [
                    text,
                    {
                        "type": "tool_result",
                        "content": [{**text, "cache_control": hour}],
                    },
                    {"cache_control": mark},
                    {**text, "cache_control": {"ttl": "soon"}},
                    {**text, "cache_control": None},
                ],
            },
        ],
        "cache_control": hour,
    }
    assert read_request(body, "anthropic").marks == (
        CacheMark(None, None, 3600, in_tools=True),
        CacheMark(None, None, 300),
        CacheMark(0, 1, None),
        CacheMark(1, None, None),
        CacheMark(2, 2, 3600),
        CacheMark(2, 2, None),
        CacheMark(2, 3, None),
        CacheMark(2, None, 3600),
    )


def test_marks_of_the_other_shapes() -> None:
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    body = {
        "modelId": "m",
        "toolConfig": {"tools": [{"toolSpec": {}}, point]},
        "system": [{"text": "x"}, point],
        "messages": [
            {"role": "user", "content": [{"text": "x"}, point, {"text": "y"}]}
        ],
    }
    assert read_request(body).marks == (
        CacheMark(None, None, 3600, in_tools=True),
        CacheMark(None, None, 3600),
        CacheMark(0, 1, 3600),
    )
    chat = copy.deepcopy(OPENAI_CHAT)
    chat["messages"][1]["content"][0]["prompt_cache_breakpoint"] = {}
    assert read_request(chat).marks == (CacheMark(1, 1, None),)
    items = copy.deepcopy(OPENAI_RESPONSES)
    items["input"][0]["content"][1]["prompt_cache_breakpoint"] = {}
    items["input"][3]["output"][0]["prompt_cache_breakpoint"] = {}
    items["input"][4]["content"][0]["prompt_cache_breakpoint"] = {}
    assert read_request(items).marks == (
        CacheMark(0, 2, None),
        CacheMark(3, None, None),
        CacheMark(4, 1, None),
    )


def test_without_marks() -> None:
    marks = [read(example, example.body).marks for example in EXAMPLES]
    assert marks == [None, None, (), None, ()]
    top = {"messages": [], "cache_control": {"ttl": "1h"}}
    assert read_request(top, "anthropic").marks == (CacheMark(None, None, 3600),)


def test_lists_of_nothing_but_marks_are_empty() -> None:
    body = {
        "modelId": "m",
        "messages": [],
        "system": [{"cachePoint": {}}],
        "toolConfig": {"tools": [{"cachePoint": {}}]},
    }
    request = read_request(body)
    assert request.header == {"model": "m"}
    assert request.names == {"model": "modelId"}


KEYS = {"prompt_cache_key": "k", "cache_salt": "s", "user_id": "u"}


@pytest.mark.parametrize(
    ("fields", "keys", "seconds"),
    [
        ({}, {}, None),
        (KEYS, KEYS, None),
        ({"user_id": "u"}, {"user_id": "u"}, None),
        ({"prompt_cache_retention": "24h"}, {}, 86400),
        ({"prompt_cache_retention": "in_memory"}, {}, None),
        ({"prompt_cache_retention": "in-memory"}, {}, None),
        ({"prompt_cache_options": {"ttl": "30m"}}, {}, 1800),
        (
            {"prompt_cache_options": {"ttl": "12h"}, "prompt_cache_retention": "24h"},
            {},
            43200,
        ),
        ({"prompt_cache_options": {"ttl": 5}}, {}, None),
    ],
)
def test_cache_keys_and_retention(
    fields: dict[str, Any], keys: dict[str, str], seconds: int | None
) -> None:
    for body in (OPENAI_CHAT, OPENAI_RESPONSES):
        request = read_request({**body, **fields})
        assert (request.cache_keys, request.ttl_seconds) == (keys, seconds)
        assert digests(request) == digests(read_request(body))


# Detection -------------------------------------------------------------------------

_Q = {"role": "user", "content": "q"}
_CHAT, _ANTHROPIC = RequestShape.OPENAI_CHAT, RequestShape.ANTHROPIC
_BEDROCK, _GEMINI = RequestShape.BEDROCK, RequestShape.GEMINI


@pytest.mark.parametrize(
    ("body", "shape", "certain"),
    [
        ({"model": "m", "messages": [_Q]}, _CHAT, False),
        ({"model": "claude-opus-5", "messages": [_Q]}, _ANTHROPIC, False),
        ({"model": "us.anthropic.Claude-5", "messages": [_Q]}, _ANTHROPIC, False),
        ({"messages": [_Q, {"role": "system", "content": "x"}]}, _CHAT, False),
        ({"messages": [{"role": "system", "content": "x"}, _Q]}, _CHAT, True),
        ({"messages": [_Q, {"role": "tool", "content": "x"}]}, _CHAT, True),
        ({"messages": [_Q], "max_completion_tokens": 5}, _CHAT, True),
        ({"messages": [_Q], "tools": [{"function": {}}]}, _CHAT, True),
        ({"messages": [_Q], "tool_choice": "auto"}, _CHAT, True),
        (
            {
                "model": "anthropic/claude-opus-5",
                "messages": [{"role": "assistant", "tool_calls": []}],
            },
            _CHAT,
            True,
        ),
        ({"messages": [_Q], "system": "x"}, _ANTHROPIC, True),
        ({"messages": [_Q], "tools": [{"input_schema": {}}]}, _ANTHROPIC, True),
        ({"messages": [_Q], "tool_choice": {"type": "auto"}}, _ANTHROPIC, True),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
            _ANTHROPIC,
            True,
        ),
        ({"messages": [_Q], "system": "x", "seed": 5}, _CHAT, False),
        (
            {"messages": [{"role": "tool", "content": "x"}], "system": "x"},
            _CHAT,
            False,
        ),
        ({"messages": [_Q], "inferenceConfig": {}}, _BEDROCK, True),
        ({"messages": [{"content": [{"text": "q"}]}]}, _BEDROCK, True),
        ({"messages": [_Q], "system": [{"text": "q"}]}, _BEDROCK, True),
        ({"contents": "q"}, _GEMINI, True),
        ({"contents": "q", "toolConfig": {}}, _GEMINI, True),
        ({"input": "q"}, RequestShape.OPENAI_RESPONSES, True),
        ({"instructions": "x"}, RequestShape.OPENAI_RESPONSES, True),
        ({}, _CHAT, False),
    ],
)
def test_shapes_are_told_by_their_fields(
    body: dict[str, Any], shape: RequestShape, certain: bool
) -> None:
    assert shape_of(body) == (shape, certain)


@pytest.mark.parametrize("name", ["openai", "deepseek", "vllm", "sglang"])
def test_names_of_the_chat_api(name: str) -> None:
    assert read_request({"messages": []}, name).shape is RequestShape.OPENAI_CHAT


# Hostile bodies --------------------------------------------------------------------


@given(hostile_bodies(), st.sampled_from([None, *RequestShape]))
def test_any_object_is_read_or_refused(
    body: dict[str, Any], shape: RequestShape | None
) -> None:
    before = copy.deepcopy(body)
    with contextlib.suppress(InvalidValueError):
        digests(read_request(body, shape))
    assert repr(body) == repr(before)


def test_nesting_is_refused_when_hashed() -> None:
    block: dict[str, Any] = {"type": "text", "text": "x"}
    for _ in range(5000):
        block = {"type": "tool_result", "content": [block], "source": {"content": []}}
    body = {"messages": [{"role": "user", "content": [block, block]}], "system": "x"}
    request = read_request(body)
    with pytest.raises(InvalidValueError):
        digests(request)
