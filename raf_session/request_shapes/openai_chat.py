"""Chat Completions, as OpenAI, DeepSeek, vLLM, SGLang and many others take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from raf_session.request_shapes.fields import (
    Reducer,
    build_header,
    dropping,
    is_blank,
    read_messages,
    reduce_fields,
    unless,
)
from raf_session.request_shapes.marks import header_marks, last_mark, message_marks
from raf_session.request_shapes.openai_fields import (
    OPENAI_FIELDS,
    is_explicit,
    read_cache_keys,
    read_ttl,
)
from raf_session.request_shapes.prompt import PromptRequest, RequestShape

__all__ = ("read_openai_chat",)


def _functions(value: Any) -> Any:
    return None if is_blank(value) else value


def _output_modalities(value: Any) -> Any:
    return None if value == ["text"] else value


_FIELDS: Final[Mapping[str, Reducer]] = {
    **OPENAI_FIELDS,
    **dropping("model", "messages", "tools"),
    "functions": _functions,
    **dropping("max_tokens", "max_completion_tokens", "stop", "n", "seed", "logprobs"),
    **dropping("presence_penalty", "frequency_penalty", "logit_bias", "prediction"),
    # vLLM and SGLang: sampling, constraints on the output, and its form.
    **dropping("top_k", "min_p", "repetition_penalty", "length_penalty", "best_of"),
    **dropping("use_beam_search", "min_tokens", "ignore_eos", "stop_token_ids"),
    **dropping("stop_regex", "include_stop_str_in_output", "no_stop_trim", "bad_words"),
    **dropping("allowed_token_ids", "logits_processors", "custom_logit_processor"),
    **dropping("skip_special_tokens", "spaces_between_special_tokens"),
    **dropping("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    **dropping("guided_decoding_backend", "guided_whitespace_pattern", "regex", "ebnf"),
    **dropping("structured_outputs", "prompt_logprobs", "echo", "return_token_ids"),
    **dropping("return_tokens_as_token_ids", "return_hidden_states"),
    **dropping("include_reasoning", "separate_reasoning", "stream_reasoning"),
    **dropping("priority", "request_id", "rid", "kv_transfer_params"),
    "function_call": unless("auto", "none"),
    # The defaults that the API reference gives; that of `reasoning_effort` depends on
    # the model.
    "modalities": _output_modalities,
    "response_format": unless({"type": "text"}),
    "verbosity": unless("medium"),
}


def read_openai_chat(body: Mapping[str, Any]) -> PromptRequest:
    """Return the prompt of a body; its messages are the body's own list.

    Raises:
        InvalidValueError: a field is missing or of the wrong type, with its path.
    """
    messages = read_messages(body, "messages")
    parameters = reduce_fields(body, _FIELDS)
    tools = body.get("tools")
    names: dict[str, str] = {}
    if is_blank(tools) and "functions" in parameters:
        tools = parameters.pop("functions")
        names["tools"] = "functions"
    marks = header_marks(tools)
    marks += message_marks(messages)
    marks += last_mark(body, len(messages))
    explicit = is_explicit(body)
    return PromptRequest(
        shape=RequestShape.OPENAI_CHAT,
        header=build_header(parameters, model=body.get("model"), tools=tools),
        messages=messages,
        names=names,
        marks=tuple(marks) if marks or explicit else None,
        cache_keys=read_cache_keys(body),
        explicit=explicit,
        ttl_seconds=read_ttl(body),
    )
