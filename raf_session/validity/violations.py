"""What a provider refuses in a sequence of messages: `Rule` and `Violation`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ("Findings", "Provider", "Rule", "Violation")


class Provider(StrEnum):
    """Whose rules are meant."""

    OPENAI = "openai"
    """Chat Completions."""

    ANTHROPIC = "anthropic"
    """Messages."""

    GEMINI = "gemini"
    """``generateContent``."""


class Rule(StrEnum):
    """What a sequence has to hold; each cites where the provider says it.

    Sources: the API references (OpenAI "Create chat completion", Anthropic "Create a
    Message", Gemini "Content" and "FunctionCall"), the guides on function calling
    (OpenAI "Function calling", Anthropic "Handle tool calls", Gemini "Function
    calling"), and errors of status 400 as the APIs return them.
    """

    EMPTY_REQUEST = "empty_request"
    """There is a message.

    OpenAI: "Invalid 'messages': empty array"; Anthropic: "messages: at least one
    message is required"; Gemini: "contents is not specified".
    """

    FIRST_NOT_USER = "first_not_user"
    """The first turn is the user's.

    Anthropic: "messages: first message must use the "user" role"; Gemini: "First
    content should be with role 'user', got model".
    """

    WRONG_ROLE = "wrong_role"
    """The assistant calls, and does not answer its own calls.

    Anthropic: "`tool_use` blocks can only be in `assistant` messages", "`tool_result`
    blocks can only be in `user` messages"; OpenAI: ``tool_calls`` is a field of
    assistant messages in the reference; Gemini: ``functionCall`` is a part of the
    model's turn in the guide.
    """

    MALFORMED = "malformed"
    """Content is a text or a list of objects, ``tool_calls`` a list of objects.

    OpenAI: "Invalid type for 'messages[0].content': expected one of a string or array
    of objects"; the others have nothing that it could be translated to.
    """

    EMPTY_CONTENT = "empty_content"
    """A message says something.

    OpenAI: "Invalid value for 'content': expected a string, got null", and "empty
    array" for a list; Anthropic: "all messages must have non-empty content except for
    the optional final assistant message"; Gemini: "contents.parts must not be empty".
    """

    NO_CONTENT_OR_CALLS = "no_content_or_calls"
    """An assistant message has content or calls.

    OpenAI's reference: content is "required unless ``tool_calls`` or
    ``function_call`` is specified".
    """

    EMPTY_TEXT = "empty_text"
    """No text block is empty. Anthropic: "text content blocks must be non-empty"."""

    BLANK_TEXT = "blank_text"
    """A message is more than whitespace.

    Anthropic: "text content blocks must contain non-whitespace text".
    """

    TRAILING_WHITESPACE = "trailing_whitespace"
    """What the assistant is to go on from does not end in whitespace.

    Anthropic: "final assistant content cannot end with trailing whitespace".
    """

    EMPTY_CALLS = "empty_calls"
    """A list of calls has one.

    OpenAI: "Invalid 'messages[1].tool_calls': empty array".
    """

    MISSING_NAME = "missing_name"
    """A call names its function.

    OpenAI: "Invalid 'messages[1].tool_calls[0].function.name': empty string";
    Anthropic: "tool_use.name: Field required"; Gemini: "Name cannot be empty", of
    ``function_call`` and ``function_response``.
    """

    EMPTY_CALL_ID = "empty_call_id"
    """Call and result have an id.

    OpenAI: "messages with role 'tool' must have a 'tool_call_id'"; Anthropic:
    "tool_use.id: Field required"; Gemini needs none in its own parts, but the name
    that it requires of a translated result is found by the id.
    """

    INVALID_CALL_ID = "invalid_call_id"
    """The id has the form that the provider takes.

    OpenAI: "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string
    with maximum length 40"; Anthropic: "tool_use.id: String should match pattern
    '^[a-zA-Z0-9_-]+$'".
    """

    DUPLICATE_CALL_ID = "duplicate_call_id"
    """The calls of one turn have different ids.

    OpenAI: "Duplicate value for 'tool_call_id'", of the results that they need;
    Anthropic: "`tool_use` ids must be unique"; Gemini's reference: the id is "the
    unique id of the function call".
    """

    REPEATED_CALL_ID = "repeated_call_id"
    """No call has the id of one in an earlier turn.

    Anthropic: "`tool_use` ids must be unique", which is of the whole request.
    """

    CALL_PLACE = "call_place"
    """Calls stand directly behind a turn that is not the model's.

    Gemini: "Please ensure that function call turn comes immediately after a user turn
    or after a function response turn."
    """

    MISSING_RESULT = "missing_result"
    """Directly behind the message with a call stands its result.

    OpenAI: "An assistant message with 'tool_calls' must be followed by tool messages
    responding to each 'tool_call_id'"; Anthropic: "`tool_use` ids were found without
    `tool_result` blocks immediately after"; Gemini: as `RESULT_COUNT`.
    """

    RESULT_COUNT = "result_count"
    """A turn of results has as many as the turn of calls.

    Gemini: "Please ensure that the number of function response parts is equal to the
    number of function call parts of the function call turn."
    """

    RESULT_WITHOUT_CALL = "result_without_call"
    """No result answers what was not called.

    OpenAI: "messages with role 'tool' must be a response to a preceeding message with
    'tool_calls'"; Anthropic: "unexpected `tool_use_id` found in `tool_result` blocks";
    Gemini: "Please ensure that function response turn comes immediately after a
    function call turn."
    """

    MISPLACED_RESULT = "misplaced_result"
    """No result comes later than directly behind its call; errors as above."""

    DUPLICATE_RESULT = "duplicate_result"
    """A call is answered once.

    OpenAI: "Duplicate value for 'tool_call_id'"; Anthropic: "each tool_use must have a
    single result"; Gemini: as `RESULT_COUNT`.
    """

    RESULT_NOT_FIRST = "result_not_first"
    """In the user's turn results come before everything else.

    Anthropic's guide: "the tool_result blocks must come FIRST in the content array".
    """

    THINKING_AT_END = "thinking_at_end"
    """No turn ends with thinking.

    Anthropic: "The final block in an assistant message cannot be `thinking`".
    """

    UNSIGNED_THINKING = "unsigned_thinking"
    """Thinking keeps what proves it.

    Anthropic: "thinking.signature: Field required", "redacted_thinking.data: Field
    required".
    """

    SERVER_RESULT_WITHOUT_CALL = "server_result_without_call"
    """The result of a server's tool stands behind its call.

    Anthropic: "unexpected `tool_use_id` found in `web_search_tool_result` blocks. Each
    ... must have a corresponding `server_tool_use` block before it".
    """


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason for which a provider would refuse the request."""

    provider: Provider
    """Who would."""

    index: int | None
    """The message at fault; `None` where it is the sequence as a whole."""

    rule: Rule
    """What it does not hold."""

    reason: str
    """The reason in words; it names the index, and the call where there is one."""


class Findings:
    """Collects violations.

    Args:
        provider: whose rules are applied.
        reasons: the sentence of each rule, with fields in braces.
    """

    def __init__(self, provider: Provider, reasons: Mapping[Rule, str]) -> None:
        self._provider = provider
        self._reasons = reasons
        self._found: list[Violation] = []

    def add(self, rule: Rule, index: int | None, **facts: object) -> None:
        """Add a violation of `rule`; the facts fill in its sentence."""
        reason = self._reasons[rule].format(index=index, **facts)
        self._found.append(Violation(self._provider, index, rule, reason))

    def in_order(self) -> tuple[Violation, ...]:
        """Return all, in the order of the messages."""
        return tuple(
            sorted(self._found, key=lambda v: -1 if v.index is None else v.index)
        )
