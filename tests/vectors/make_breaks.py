"""Write `prefix-breaks-v1.json`: pairs of request bodies, and why the second breaks.

Run as ``python tests/vectors/make_breaks.py``; nothing but the standard library is
needed.  What is expected was written by hand, from the rules and from the public
reports, and not taken from an implementation.  It is for whoever detects breaks in
another language.

A pair holds:

``name``, ``shape``
    What changes, and the API of both bodies.
``report``
    The kind of public report that it repeats, 1 to 23, or null.
``previous``, ``current``
    Two bodies of one session as sent, one right after the other.
``append_only``, ``cause``, ``path``
    Whether the former prompt begins this one; if not, why and where.  The path leads
    through the current body to the first place that differs, in reading order; to an
    object where the order of its keys differs; to the whole message or tool where the
    history or the list of tools differs, at the place where that begins.  Where two
    objects have different keys at one place, the key is the current one.
``keys``
    Where it matters: the cache keys of both bodies.
``verdicts``
    Where it matters: what to expect of a provider's cache, for a prompt of ``tokens``
    of which ``shared_tokens`` begin the former one as well, where that was counted, and
    of which the provider reported ``usage``, where it was sent; ``reusable_tokens``
    where the rules give one number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

PATH = Path(__file__).with_name("prefix-breaks-v1.json")

Json: TypeAlias = dict[str, Any]

SYSTEM = "You plan train journeys in Europe."
ASK = "How do I get from Turin to Graz?"
ANSWER = "By way of Venice and Villach, in about eleven hours."
THEN = "And with a night train?"
NIGHT = "There is one from Venice at 21:05."
LAST = "Please book a couchette."
THOUGHT = "Turin to Graz has no direct train, so look for two legs."
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
OTHER_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91Jpz"
MARK: Json = {"cache_control": {"type": "ephemeral"}}
POINT: Json = {"cachePoint": {"type": "default"}}
BREAKPOINT: Json = {"prompt_cache_breakpoint": {"mode": "explicit"}}


class Tool(NamedTuple):
    """A tool, before it takes the form of an API."""

    name: str
    about: str
    schema: Json


def schema(*names: str, **fields: Any) -> Json:
    """Return the schema of an object of strings, all of them required."""
    properties = {name: {"type": "string"} for name in names}
    return {
        "type": "object",
        "properties": properties,
        "required": list(names),
        **fields,
    }


FIND = Tool("find_trains", "Find trains between two stations.", schema("from", "to"))
BOOK = Tool("book_seat", "Book a seat on a train.", schema("train", "class"))
WEATHER = Tool("weather", "Tell the weather of a place.", schema("place"))
TURNED_SCHEMA = {
    "type": "object",
    "required": ["from", "to"],
    "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
}
"""The schema of `FIND` with its keys in another order."""

ROUTE: Json = {"from": "Turin", "to": "Graz"}
TURNED_ROUTE: Json = {"to": "Graz", "from": "Turin"}

Tools: TypeAlias = Sequence[Tool | Json] | None


# The APIs -----------------------------------------------------------------------------


class Chat:
    """OpenAI's Chat Completions."""

    shape: ClassVar = "openai-chat"

    @staticmethod
    def system(text: str, role: str = "system") -> Json:
        return {"role": role, "content": text}

    @staticmethod
    def user(content: str | list[Json]) -> Json:
        return {"role": "user", "content": content}

    @staticmethod
    def said(content: str | None, **fields: Any) -> Json:
        return {"role": "assistant", "content": content, **fields}

    @staticmethod
    def tool_call(call: str, arguments: Any, name: str = "find_trains") -> Json:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": name, "arguments": text}
        return {"id": call, "type": "function", "function": function}

    @classmethod
    def call(cls, call: str, arguments: Any) -> Json:
        return cls.said(None, tool_calls=[cls.tool_call(call, arguments)])

    @staticmethod
    def result(call: str, content: str) -> Json:
        return {"role": "tool", "tool_call_id": call, "content": content}

    @staticmethod
    def tool(tool: Tool) -> Json:
        function = {
            "name": tool.name,
            "description": tool.about,
            "parameters": tool.schema,
        }
        return {"type": "function", "function": function}

    @classmethod
    def body(
        cls,
        *messages: Json,
        system: str | None = SYSTEM,
        tools: Tools = (FIND, BOOK),
        **fields: Any,
    ) -> Json:
        front = [] if system is None else [cls.system(system)]
        made: Json = {"model": "gpt-5.6", "messages": [*front, *messages]}
        if tools is not None:
            made["tools"] = [cls.tool(t) if isinstance(t, Tool) else t for t in tools]
        return {**made, **fields}


class Responses:
    """OpenAI's Responses."""

    shape: ClassVar = "openai-responses"

    @staticmethod
    def user(content: str | list[Json], role: str = "user") -> Json:
        return {"role": role, "content": content}

    @staticmethod
    def said(text: str, item: str = "msg_1") -> Json:
        part = {"type": "output_text", "text": text, "annotations": []}
        return {"type": "message", "id": item, "role": "assistant", "content": [part]}

    @staticmethod
    def call(call: str, arguments: Any, item: str = "fc_1") -> Json:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return {
            "type": "function_call",
            "id": item,
            "call_id": call,
            "name": "find_trains",
            "arguments": text,
        }

    @staticmethod
    def result(call: str, output: str) -> Json:
        return {"type": "function_call_output", "call_id": call, "output": output}

    @staticmethod
    def reasoning(item: str = "rs_1", thought: str = "gAAAAABo4c") -> Json:
        return {
            "type": "reasoning",
            "id": item,
            "summary": [],
            "encrypted_content": thought,
        }

    @staticmethod
    def tool(tool: Tool) -> Json:
        return {
            "type": "function",
            "name": tool.name,
            "description": tool.about,
            "parameters": tool.schema,
            "strict": True,
        }

    @classmethod
    def body(
        cls,
        *items: Json,
        system: str | None = SYSTEM,
        tools: Tools = (FIND, BOOK),
        **fields: Any,
    ) -> Json:
        made: Json = {"model": "gpt-5.6", "input": list(items), "store": False}
        if system is not None:
            made["instructions"] = system
        if tools is not None:
            made["tools"] = [cls.tool(t) if isinstance(t, Tool) else t for t in tools]
        return {**made, **fields}


class Claude:
    """Anthropic's Messages."""

    shape: ClassVar = "anthropic"

    @staticmethod
    def text(text: str, **fields: Any) -> Json:
        return {"type": "text", "text": text, **fields}

    @staticmethod
    def thinking(text: str = THOUGHT, signature: str = "EqQBCkYIBx") -> Json:
        return {"type": "thinking", "thinking": text, "signature": signature}

    @staticmethod
    def image(data: str) -> Json:
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return {"type": "image", "source": source}

    @staticmethod
    def user(*content: str | Json) -> Json:
        (first, *rest) = content
        only = first if isinstance(first, str) and not rest else list(content)
        return {"role": "user", "content": only}

    @staticmethod
    def said(*content: str | Json) -> Json:
        (first, *rest) = content
        only = first if isinstance(first, str) and not rest else list(content)
        return {"role": "assistant", "content": only}

    @staticmethod
    def use(call: str, arguments: Json, name: str = "find_trains") -> Json:
        return {"type": "tool_use", "id": call, "name": name, "input": arguments}

    @staticmethod
    def found(call: str, content: str, **fields: Any) -> Json:
        result = {"type": "tool_result", "tool_use_id": call, "content": content}
        return {**result, **fields}

    @classmethod
    def call(cls, call: str, arguments: Json) -> Json:
        return cls.said(cls.use(call, arguments))

    @classmethod
    def result(cls, call: str, content: str, **fields: Any) -> Json:
        return cls.user(cls.found(call, content, **fields))

    @staticmethod
    def tool(tool: Tool) -> Json:
        return {
            "name": tool.name,
            "description": tool.about,
            "input_schema": tool.schema,
        }

    @classmethod
    def body(
        cls,
        *messages: Json,
        system: str | list[Json] | None = SYSTEM,
        tools: Tools = (FIND, BOOK),
        **fields: Any,
    ) -> Json:
        made: Json = {"model": "claude-opus-5", "max_tokens": 2048}
        if system is not None:
            made["system"] = system
        if tools is not None:
            made["tools"] = [cls.tool(t) if isinstance(t, Tool) else t for t in tools]
        return {**made, "messages": list(messages), **fields}


class Gemini:
    """Gemini's generateContent, as REST takes it."""

    shape: ClassVar = "gemini"

    @staticmethod
    def user(*parts: str | Json) -> Json:
        listed = [{"text": part} if isinstance(part, str) else part for part in parts]
        return {"role": "user", "parts": listed}

    @staticmethod
    def said(*parts: str | Json) -> Json:
        listed = [{"text": part} if isinstance(part, str) else part for part in parts]
        return {"role": "model", "parts": listed}

    @staticmethod
    def use(arguments: Json, name: str = "find_trains", **fields: Any) -> Json:
        return {"functionCall": {**fields, "name": name, "args": arguments}}

    @staticmethod
    def found(response: Json, name: str = "find_trains", **fields: Any) -> Json:
        return {"functionResponse": {**fields, "name": name, "response": response}}

    @staticmethod
    def image(data: str) -> Json:
        return {"inlineData": {"mimeType": "image/png", "data": data}}

    @staticmethod
    def tool(tool: Tool) -> Json:
        return {
            "name": tool.name,
            "description": tool.about,
            "parameters": tool.schema,
        }

    @classmethod
    def body(
        cls,
        *contents: Json,
        system: str | list[str] | None = SYSTEM,
        tools: Sequence[Tool] | None = (FIND, BOOK),
        **fields: Any,
    ) -> Json:
        made: Json = {"contents": list(contents)}
        if system is not None:
            texts = [system] if isinstance(system, str) else system
            made["systemInstruction"] = {"parts": [{"text": text} for text in texts]}
        if tools is not None:
            made["tools"] = [{"functionDeclarations": [cls.tool(t) for t in tools]}]
        return {**made, "generationConfig": {"maxOutputTokens": 2048}, **fields}

    @classmethod
    def sdk(
        cls, *contents: Json, model: str, tools: Sequence[Tool], **more: Any
    ) -> Json:
        """Return the arguments of google-genai."""
        declared = [{"function_declarations": [cls.tool(tool) for tool in tools]}]
        config = {"system_instruction": SYSTEM, "tools": declared, **more}
        return {"model": model, "contents": list(contents), "config": config}


class Bedrock:
    """Amazon Bedrock's Converse."""

    shape: ClassVar = "bedrock"

    @staticmethod
    def user(*content: str | Json) -> Json:
        listed = [{"text": part} if isinstance(part, str) else part for part in content]
        return {"role": "user", "content": listed}

    @staticmethod
    def said(*content: str | Json) -> Json:
        listed = [{"text": part} if isinstance(part, str) else part for part in content]
        return {"role": "assistant", "content": listed}

    @staticmethod
    def use(call: str, arguments: Json, name: str = "find_trains") -> Json:
        return {"toolUse": {"toolUseId": call, "name": name, "input": arguments}}

    @staticmethod
    def found(call: str, text: str) -> Json:
        content = [{"text": text}]
        return {
            "toolResult": {"toolUseId": call, "content": content, "status": "success"}
        }

    @staticmethod
    def image(data: str) -> Json:
        return {"image": {"format": "png", "source": {"bytes": data}}}

    @staticmethod
    def thinking(text: str = THOUGHT) -> Json:
        return {
            "reasoningContent": {
                "reasoningText": {"text": text, "signature": "EqQBCkYIBx"}
            }
        }

    @staticmethod
    def tool(tool: Tool) -> Json:
        return {
            "toolSpec": {
                "name": tool.name,
                "description": tool.about,
                "inputSchema": {"json": tool.schema},
            }
        }

    @classmethod
    def body(
        cls,
        *messages: Json,
        system: str | list[Json] = SYSTEM,
        tools: Tools = (FIND, BOOK),
        choice: Json | None = None,
        **fields: Any,
    ) -> Json:
        made: Json = {
            "modelId": "eu.anthropic.claude-sonnet-5-20260301-v1:0",
            "system": [{"text": system}] if isinstance(system, str) else system,
            "messages": list(messages),
            "inferenceConfig": {"maxTokens": 2048},
        }
        if tools is not None:
            listed = [cls.tool(t) if isinstance(t, Tool) else t for t in tools]
            made["toolConfig"] = {"tools": listed}
            if choice is not None:
                made["toolConfig"]["toolChoice"] = choice
        return {**made, **fields}


Api: TypeAlias = type[Chat | Responses | Claude | Gemini | Bedrock]


def pair(  # noqa: PLR0917  (as they stand in the file)
    api: Api,
    name: str,
    previous: Json,
    current: Json,
    cause: str = "none",
    path: str | None = None,
    **more: Any,
) -> Json:
    """Return a pair; without a cause, one that is no break."""
    return {
        "name": f"{api.shape}: {name}",
        "report": more.pop("report", None),
        "shape": api.shape,
        "previous": previous,
        "current": current,
        "append_only": cause == "none",
        "cause": cause,
        "path": path,
        **more,
    }


def expect(outcome: str, reason: str, **more: Any) -> Json:
    """Return a verdict on 9,000 tokens, of which 6,000 were in the request before."""
    numbers = {"tokens": 9000, "shared_tokens": 6000}
    return {**numbers, **more, "outcome": outcome, "reason": reason}


def expect_form(outcome: str, reason: str) -> Json:
    """Return a verdict on 100,000 tokens; how many are shared depends on the form."""
    return {"tokens": 100000, "outcome": outcome, "reason": reason}


# The 23 kinds of report ---------------------------------------------------------------


def reports_1_to_6() -> list[Json]:
    """Return clocks, nonces, and what moves in tools and arguments."""
    chat_call = [Chat.user(ASK), Chat.call("call_1", ROUTE), Chat.result("call_1", "2")]
    claude_call = [
        Claude.user(ASK),
        Claude.call("toolu_1", ROUTE),
        Claude.result("toolu_1", "2 trains"),
    ]
    return [
        pair(
            Chat,
            "clock in the system prompt",
            Chat.body(Chat.user(ASK), system=f"{SYSTEM} It is 09:14:05."),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                system=f"{SYSTEM} It is 09:15:41.",
            ),
            "system_changed",
            "messages[0].content",
            report=1,
        ),
        pair(
            Claude,
            "clock in the first of two system blocks",
            Claude.body(
                Claude.user(ASK),
                system=[Claude.text("Now: 2026-11-03T09:14Z"), Claude.text(SYSTEM)],
            ),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                system=[Claude.text("Now: 2026-11-03T09:15Z"), Claude.text(SYSTEM)],
            ),
            "system_changed",
            "system[0].text",
            report=1,
        ),
        pair(
            Gemini,
            "clock in the system instruction",
            Gemini.body(Gemini.user(ASK), system=[SYSTEM, "Today is a Monday."]),
            Gemini.body(
                *(Gemini.user(ASK), Gemini.said(ANSWER), Gemini.user(THEN)),
                system=[SYSTEM, "Today is a Tuesday."],
            ),
            "system_changed",
            "systemInstruction.parts[1].text",
            report=1,
        ),
        pair(
            Claude,
            "nonce of the client in the first system block",
            Claude.body(
                Claude.user(ASK),
                system=[
                    Claude.text("x-billing: client=4.2; nonce=c0f1e;"),
                    Claude.text(SYSTEM, **MARK),
                ],
            ),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                system=[
                    Claude.text("x-billing: client=4.2; nonce=77a3b;"),
                    Claude.text(SYSTEM, **MARK),
                ],
            ),
            "system_changed",
            "system[0].text",
            report=2,
        ),
        pair(
            Bedrock,
            "request number in the first system block",
            Bedrock.body(Bedrock.user(ASK), system=[{"text": "r-1"}, {"text": SYSTEM}]),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
                system=[{"text": "r-2"}, {"text": SYSTEM}],
            ),
            "system_changed",
            "system[0].text",
            report=2,
        ),
        pair(
            Responses,
            "nonce in the instructions",
            Responses.body(Responses.user(ASK), system=f"[5fd0] {SYSTEM}"),
            Responses.body(
                *(Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)),
                system=f"[a91c] {SYSTEM}",
            ),
            "system_changed",
            "instructions",
            report=2,
        ),
        pair(
            Gemini,
            "two declarations change places",
            Gemini.body(Gemini.user(ASK), tools=(FIND, BOOK)),
            Gemini.body(
                *(Gemini.user(ASK), Gemini.said(ANSWER), Gemini.user(THEN)),
                tools=(BOOK, FIND),
            ),
            "tools_order",
            "tools[0].functionDeclarations[0]",
            report=3,
        ),
        pair(
            Bedrock,
            "two tools change places",
            Bedrock.body(Bedrock.user(ASK), tools=(FIND, BOOK)),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
                tools=(BOOK, FIND),
            ),
            "tools_order",
            "toolConfig.tools[0]",
            report=3,
        ),
        pair(
            Chat,
            "the first of three tools comes last",
            Chat.body(Chat.user(ASK), tools=(WEATHER, FIND, BOOK)),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                tools=(FIND, BOOK, WEATHER),
            ),
            "tools_order",
            "tools[0]",
            report=3,
        ),
        pair(
            Chat,
            "a schema with its keys in another order",
            Chat.body(Chat.user(ASK)),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                tools=(FIND._replace(schema=TURNED_SCHEMA), BOOK),
            ),
            "key_order",
            "tools[0].function.parameters",
            report=4,
        ),
        pair(
            Bedrock,
            "the properties of a schema in another order",
            Bedrock.body(Bedrock.user(ASK)),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
                tools=(
                    FIND,
                    BOOK._replace(
                        schema={
                            "type": "object",
                            "properties": {
                                "class": {"type": "string"},
                                "train": {"type": "string"},
                            },
                            "required": ["train", "class"],
                        }
                    ),
                ),
            ),
            "key_order",
            "toolConfig.tools[1].toolSpec.inputSchema.json.properties",
            report=4,
        ),
        pair(
            Claude,
            "a schema with its keys in another order",
            Claude.body(Claude.user(ASK)),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                tools=(FIND._replace(schema=TURNED_SCHEMA), BOOK),
            ),
            "key_order",
            "tools[0].input_schema",
            report=4,
        ),
        pair(
            Chat,
            "arguments, a string of JSON, with their keys in another order",
            Chat.body(*chat_call),
            Chat.body(
                Chat.user(ASK),
                Chat.call("call_1", TURNED_ROUTE),
                Chat.result("call_1", "2"),
                Chat.said(ANSWER),
                Chat.user(THEN),
            ),
            "key_order",
            "messages[2].tool_calls[0].function.arguments",
            report=5,
        ),
        pair(
            Claude,
            "input of a call with its keys in another order",
            Claude.body(*claude_call),
            Claude.body(
                Claude.user(ASK),
                Claude.call("toolu_1", TURNED_ROUTE),
                Claude.result("toolu_1", "2 trains"),
                Claude.said(ANSWER),
                Claude.user(THEN),
            ),
            "key_order",
            "messages[1].content[0].input",
            report=5,
        ),
        pair(
            Gemini,
            "arguments with their keys in another order",
            Gemini.body(
                Gemini.user(ASK),
                Gemini.said(Gemini.use(ROUTE)),
                Gemini.user(Gemini.found({"trains": 2})),
            ),
            Gemini.body(
                Gemini.user(ASK),
                Gemini.said(Gemini.use(TURNED_ROUTE)),
                Gemini.user(Gemini.found({"trains": 2})),
                Gemini.said(ANSWER),
                Gemini.user(THEN),
            ),
            "key_order",
            "contents[1].parts[0].functionCall.args",
            report=5,
        ),
        pair(
            Responses,
            "one tool more, at the end",
            Responses.body(Responses.user(ASK)),
            Responses.body(
                *(Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)),
                tools=(FIND, BOOK, WEATHER),
            ),
            "tools_added",
            "tools[2]",
            report=6,
        ),
        pair(
            Bedrock,
            "one tool more, in the middle",
            Bedrock.body(Bedrock.user(ASK)),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
                tools=(FIND, WEATHER, BOOK),
            ),
            "tools_added",
            "toolConfig.tools[1]",
            report=6,
        ),
        pair(
            Claude,
            "one tool less",
            Claude.body(Claude.user(ASK), tools=(FIND, WEATHER, BOOK)),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                tools=(FIND, BOOK),
            ),
            "tools_removed",
            "tools[1]",
            report=6,
        ),
    ]


def reports_7_to_11() -> list[Json]:
    """Return what rewrites a description or the history."""
    chat_calls = Chat.said(
        None,
        tool_calls=[
            Chat.tool_call("call_1", ROUTE),
            Chat.tool_call("call_2", {"place": "Graz"}, "weather"),
        ],
    )
    claude_calls = Claude.said(
        Claude.text("I look both up."),
        Claude.use("toolu_1", ROUTE),
        Claude.use("toolu_2", {"place": "Graz"}, "weather"),
    )
    bedrock_calls = Bedrock.said(
        Bedrock.use("tooluse_1", ROUTE),
        Bedrock.use("tooluse_2", {"place": "Graz"}, "weather"),
    )
    return [
        pair(
            Claude,
            "session id in the description of a tool",
            Claude.body(
                Claude.user(ASK),
                tools=(FIND._replace(about="Find trains. Session s-4711."), BOOK),
            ),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                tools=(FIND._replace(about="Find trains. Session s-0815."), BOOK),
            ),
            "tools_changed",
            "tools[0].description",
            report=7,
        ),
        pair(
            Responses,
            "port of a local server in the description of a tool",
            Responses.body(
                Responses.user(ASK),
                tools=(FIND, BOOK._replace(about="Books at http://localhost:40111/.")),
            ),
            Responses.body(
                *(Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)),
                tools=(FIND, BOOK._replace(about="Books at http://localhost:52873/.")),
            ),
            "tools_changed",
            "tools[1].description",
            report=7,
        ),
        pair(
            Chat,
            "session id in the description of a parameter",
            Chat.body(
                Chat.user(ASK),
                tools=(
                    FIND._replace(
                        schema={
                            "type": "object",
                            "properties": {
                                "to": {"type": "string", "description": "See /s/17."}
                            },
                        }
                    ),
                ),
            ),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                tools=(
                    FIND._replace(
                        schema={
                            "type": "object",
                            "properties": {
                                "to": {"type": "string", "description": "See /s/18."}
                            },
                        }
                    ),
                ),
            ),
            "tools_changed",
            "tools[0].function.parameters.properties.to.description",
            report=7,
        ),
        pair(
            Chat,
            "a window slides and drops the first turn",
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                *(Chat.said(NIGHT), Chat.user(LAST)),
            ),
            Chat.body(
                *(Chat.user(THEN), Chat.said(NIGHT), Chat.user(LAST)),
                *(Chat.said("Done."), Chat.user("Thanks.")),
            ),
            "truncated_head",
            "messages[1]",
            report=8,
        ),
        pair(
            Gemini,
            "a window slides and drops the first turn",
            Gemini.body(
                *(Gemini.user(ASK), Gemini.said(ANSWER), Gemini.user(THEN)),
                *(Gemini.said(NIGHT), Gemini.user(LAST)),
            ),
            Gemini.body(
                *(Gemini.user(THEN), Gemini.said(NIGHT), Gemini.user(LAST)),
                *(Gemini.said("Done."), Gemini.user("Thanks.")),
            ),
            "truncated_head",
            "contents[0]",
            report=8,
        ),
        pair(
            Claude,
            "a summary takes the place of two turns",
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                *(Claude.said(NIGHT), Claude.user(LAST)),
            ),
            Claude.body(
                Claude.user("So far: Turin to Graz, a night train from Venice."),
                Claude.said("Understood."),
                Claude.user(LAST),
                Claude.said("Done."),
                Claude.user("Thanks."),
            ),
            "compacted",
            "messages[0]",
            report=9,
        ),
        pair(
            Responses,
            "a summary takes the place of all but the last turn",
            Responses.body(
                *(Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)),
                *(Responses.said(NIGHT, "msg_2"), Responses.user(LAST)),
            ),
            Responses.body(
                Responses.user("Summary: the night train leaves Venice at 21:05."),
                *(Responses.user(LAST), Responses.said("Done.", "msg_3")),
                Responses.user("Thanks."),
            ),
            "compacted",
            "input[0]",
            report=9,
        ),
        pair(
            Chat,
            "the request for a summary is sent without tools",
            Chat.body(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                *(Chat.said(NIGHT), Chat.user("Summarise this conversation.")),
                tools=(),
            ),
            "tools_removed",
            "tools[0]",
            report=9,
        ),
        pair(
            Claude,
            "an old result is cleared in place",
            Claude.body(
                Claude.user(ASK),
                Claude.call("toolu_1", ROUTE),
                Claude.result("toolu_1", "IC 512 at 08:10; EC 37 at 10:32"),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            Claude.body(
                Claude.user(ASK),
                Claude.call("toolu_1", ROUTE),
                Claude.result("toolu_1", "[old result cleared]"),
                *(Claude.said(ANSWER), Claude.user(THEN)),
                *(Claude.said(NIGHT), Claude.user(LAST)),
            ),
            "message_edited",
            "messages[2].content[0].content",
            report=10,
        ),
        pair(
            Chat,
            "an old result is cut shorter in place",
            Chat.body(
                Chat.user(ASK),
                Chat.call("call_1", ROUTE),
                Chat.result("call_1", "IC 512 at 08:10; EC 37 at 10:32"),
                *(Chat.said(ANSWER), Chat.user(THEN)),
            ),
            Chat.body(
                Chat.user(ASK),
                Chat.call("call_1", ROUTE),
                Chat.result("call_1", "IC 512 at 08:10; (cut)"),
                *(Chat.said(ANSWER), Chat.user(THEN)),
                *(Chat.said(NIGHT), Chat.user(LAST)),
            ),
            "message_edited",
            "messages[3].content",
            report=10,
        ),
        pair(
            Gemini,
            "an old response is cleared in place",
            Gemini.body(
                Gemini.user(ASK),
                Gemini.said(Gemini.use(ROUTE)),
                Gemini.user(Gemini.found({"output": "IC 512 at 08:10"})),
            ),
            Gemini.body(
                Gemini.user(ASK),
                Gemini.said(Gemini.use(ROUTE)),
                Gemini.user(Gemini.found({"output": "(cleared)"})),
                *(Gemini.said(ANSWER), Gemini.user(THEN)),
            ),
            "message_edited",
            "contents[2].parts[0].functionResponse.response.output",
            report=10,
        ),
        pair(
            Chat,
            "two results in the order in which they came",
            Chat.body(
                *(Chat.user(ASK), chat_calls),
                *(Chat.result("call_1", "2 trains"), Chat.result("call_2", "snow")),
            ),
            Chat.body(
                *(Chat.user(ASK), chat_calls),
                *(Chat.result("call_2", "snow"), Chat.result("call_1", "2 trains")),
                *(Chat.said(ANSWER), Chat.user(THEN)),
            ),
            "message_reordered",
            "messages[3]",
            report=11,
        ),
        pair(
            Claude,
            "two results of one message in the order in which they came",
            Claude.body(
                *(Claude.user(ASK), claude_calls),
                Claude.user(
                    Claude.found("toolu_1", "2 trains"), Claude.found("toolu_2", "snow")
                ),
            ),
            Claude.body(
                *(Claude.user(ASK), claude_calls),
                Claude.user(
                    Claude.found("toolu_2", "snow"), Claude.found("toolu_1", "2 trains")
                ),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            "message_reordered",
            "messages[2].content[0].tool_use_id",
            report=11,
        ),
        pair(
            Bedrock,
            "two results of one message in the order in which they came",
            Bedrock.body(
                *(Bedrock.user(ASK), bedrock_calls),
                Bedrock.user(
                    Bedrock.found("tooluse_1", "2 trains"),
                    Bedrock.found("tooluse_2", "snow"),
                ),
            ),
            Bedrock.body(
                *(Bedrock.user(ASK), bedrock_calls),
                Bedrock.user(
                    Bedrock.found("tooluse_2", "snow"),
                    Bedrock.found("tooluse_1", "2 trains"),
                ),
                *(Bedrock.said(ANSWER), Bedrock.user(THEN)),
            ),
            "message_reordered",
            "messages[2].content[0].toolResult.toolUseId",
            report=11,
        ),
    ]


def reports_12_to_18() -> list[Json]:
    """Return what changes inside of messages, the system prompt and the parameters."""
    return [
        pair(
            Chat,
            "the ids of a call are made up anew",
            Chat.body(
                Chat.user(ASK),
                Chat.call("call_1f", ROUTE),
                Chat.result("call_1f", "2 trains"),
            ),
            Chat.body(
                Chat.user(ASK),
                Chat.call("call_9a", ROUTE),
                Chat.result("call_9a", "2 trains"),
                *(Chat.said(ANSWER), Chat.user(THEN)),
            ),
            "call_id",
            "messages[2].tool_calls[0].id",
            report=12,
        ),
        pair(
            Bedrock,
            "the ids of a call are made up anew",
            Bedrock.body(
                Bedrock.user(ASK),
                Bedrock.said("I look it up.", Bedrock.use("tooluse_1f", ROUTE)),
                Bedrock.user(Bedrock.found("tooluse_1f", "2 trains")),
            ),
            Bedrock.body(
                Bedrock.user(ASK),
                Bedrock.said("I look it up.", Bedrock.use("tooluse_9a", ROUTE)),
                Bedrock.user(Bedrock.found("tooluse_9a", "2 trains")),
                *(Bedrock.said(ANSWER), Bedrock.user(THEN)),
            ),
            "call_id",
            "messages[1].content[1].toolUse.toolUseId",
            report=12,
        ),
        pair(
            Responses,
            "the id that ties a call to its output is made up anew",
            Responses.body(
                Responses.user(ASK),
                Responses.call("call_1f", ROUTE),
                Responses.result("call_1f", "2 trains"),
            ),
            Responses.body(
                Responses.user(ASK),
                Responses.call("call_9a", ROUTE),
                Responses.result("call_9a", "2 trains"),
                *(Responses.said(ANSWER), Responses.user(THEN)),
            ),
            "call_id",
            "input[1].call_id",
            report=12,
        ),
        pair(
            Claude,
            "a text takes the place of an image",
            Claude.body(Claude.user(Claude.text(ASK), Claude.image(PIXEL))),
            Claude.body(
                Claude.user(Claude.text(ASK), Claude.text("[image removed]")),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            "image_changed",
            "messages[0].content[1].type",
            report=13,
        ),
        pair(
            Chat,
            "an image is rendered once more",
            Chat.body(
                Chat.user(
                    [
                        {"type": "text", "text": ASK},
                        {
                            "type": "image_url",
                            "image_url": {"url": f"data:image/png;base64,{PIXEL}"},
                        },
                    ]
                )
            ),
            Chat.body(
                Chat.user(
                    [
                        {"type": "text", "text": ASK},
                        {
                            "type": "image_url",
                            "image_url": {
                                "url": f"data:image/png;base64,{OTHER_PIXEL}"
                            },
                        },
                    ]
                ),
                *(Chat.said(ANSWER), Chat.user(THEN)),
            ),
            "image_changed",
            "messages[1].content[1].image_url.url",
            report=13,
        ),
        pair(
            Gemini,
            "an image is scaled down",
            Gemini.body(Gemini.user(ASK, Gemini.image(PIXEL))),
            Gemini.body(
                Gemini.user(ASK, Gemini.image(OTHER_PIXEL)),
                *(Gemini.said(ANSWER), Gemini.user(THEN)),
            ),
            "image_changed",
            "contents[0].parts[1].inlineData.data",
            report=13,
        ),
        pair(
            Claude,
            "thinking is not sent back",
            Claude.body(
                Claude.user(ASK),
                Claude.said(
                    Claude.thinking(),
                    Claude.text("I look it up."),
                    Claude.use("toolu_1", ROUTE),
                ),
                Claude.result("toolu_1", "2 trains"),
            ),
            Claude.body(
                Claude.user(ASK),
                Claude.said(Claude.text("I look it up."), Claude.use("toolu_1", ROUTE)),
                Claude.result("toolu_1", "2 trains"),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            "reasoning_dropped",
            "messages[1].content[0].type",
            report=14,
        ),
        pair(
            Chat,
            "reasoning is not sent back",
            Chat.body(
                Chat.user(ASK),
                Chat.said(ANSWER, reasoning_content=THOUGHT),
                Chat.user(THEN),
            ),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                *(Chat.said(NIGHT), Chat.user(LAST)),
            ),
            "reasoning_dropped",
            "messages[2].reasoning_content",
            report=14,
        ),
        pair(
            Responses,
            "a reasoning item is not sent back",
            Responses.body(
                Responses.user(ASK),
                Responses.reasoning(),
                Responses.call("call_1", ROUTE),
                Responses.result("call_1", "2 trains"),
            ),
            Responses.body(
                Responses.user(ASK),
                Responses.call("call_1", ROUTE),
                Responses.result("call_1", "2 trains"),
                *(Responses.said(ANSWER), Responses.user(THEN)),
            ),
            "reasoning_dropped",
            "input[1]",
            report=14,
        ),
        pair(
            Chat,
            "a live turn bears the time, and the history does not",
            Chat.body(Chat.user(f"[Tue 09:14] {ASK}")),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(f"[Tue 09:15] {THEN}"))
            ),
            "message_edited",
            "messages[1].content",
            report=15,
        ),
        pair(
            Gemini,
            "a live turn bears a sender, and the history does not",
            Gemini.body(Gemini.user(f"From Ada: {ASK}")),
            Gemini.body(
                Gemini.user(ASK),
                *(Gemini.said(ANSWER), Gemini.user(f"From Ada: {THEN}")),
            ),
            "message_edited",
            "contents[0].parts[0].text",
            report=15,
        ),
        pair(
            Bedrock,
            "a live turn bears a reminder, and the history does not",
            Bedrock.body(Bedrock.user(ASK, "Reminder: the cart is empty.")),
            Bedrock.body(
                Bedrock.user(ASK),
                *(Bedrock.said(ANSWER), Bedrock.user(THEN, "Reminder: 1 item.")),
            ),
            "message_edited",
            "messages[0].content[1]",
            report=15,
        ),
        pair(
            Responses,
            "other memories in the instructions",
            Responses.body(
                Responses.user(ASK), system=f"{SYSTEM}\nMemory: likes window seats."
            ),
            Responses.body(
                *(Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)),
                system=f"{SYSTEM}\nMemory: travels with a dog.",
            ),
            "system_changed",
            "instructions",
            report=16,
        ),
        pair(
            Chat,
            "memories come as a second system message",
            Chat.body(Chat.user(ASK)),
            Chat.body(
                Chat.system("Memory: likes window seats."),
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
            ),
            "system_changed",
            "messages[1]",
            report=16,
        ),
        pair(
            Bedrock,
            "passages that were found, behind the cached part of the system prompt",
            Bedrock.body(
                Bedrock.user(ASK),
                system=[{"text": SYSTEM}, POINT, {"text": "Passage: fares 2025"}],
            ),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
                system=[{"text": SYSTEM}, POINT, {"text": "Passage: fares 2026"}],
            ),
            "system_changed",
            "system[2].text",
            report=16,
        ),
        pair(
            Claude,
            "a space at the end of an answer",
            Claude.body(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
            Claude.body(
                *(Claude.user(ASK), Claude.said(f"{ANSWER} "), Claude.user(THEN)),
                *(Claude.said(NIGHT), Claude.user(LAST)),
            ),
            "whitespace",
            "messages[1].content",
            report=17,
        ),
        pair(
            Chat,
            "an empty text becomes a space",
            Chat.body(
                Chat.user(ASK),
                Chat.said("", tool_calls=[Chat.tool_call("call_1", ROUTE)]),
                Chat.result("call_1", "2 trains"),
            ),
            Chat.body(
                Chat.user(ASK),
                Chat.said(" ", tool_calls=[Chat.tool_call("call_1", ROUTE)]),
                Chat.result("call_1", "2 trains"),
                *(Chat.said(ANSWER), Chat.user(THEN)),
            ),
            "whitespace",
            "messages[2].content",
            report=17,
        ),
        pair(
            Bedrock,
            "a line break at the end of the system prompt",
            Bedrock.body(Bedrock.user(ASK)),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
                system=f"{SYSTEM}\n",
            ),
            "whitespace",
            "system[0].text",
            report=17,
        ),
        pair(
            Chat,
            "another model",
            Chat.body(Chat.user(ASK)),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                model="gpt-5.6-mini",
            ),
            "model",
            "model",
            report=18,
        ),
        pair(
            Responses,
            "another effort",
            Responses.body(Responses.user(ASK), reasoning={"effort": "low"}),
            Responses.body(
                *(Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)),
                reasoning={"effort": "high"},
            ),
            "parameters",
            "reasoning.effort",
            report=18,
        ),
        pair(
            Claude,
            "another effort",
            Claude.body(Claude.user(ASK), output_config={"effort": "low"}),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                output_config={"effort": "max"},
            ),
            "parameters",
            "output_config.effort",
            report=18,
        ),
        pair(
            Bedrock,
            "another model",
            Bedrock.body(Bedrock.user(ASK)),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
                modelId="eu.anthropic.claude-haiku-4-5-20251001-v1:0",
            ),
            "model",
            "modelId",
            report=18,
        ),
    ]


def _claude_rounds(count: int) -> list[Json]:
    """Return rounds of one call and one result each, the last of them marked."""
    rounds: list[Json] = []
    for number in range(count):
        call = f"toolu_{number}"
        mark = MARK if number == count - 1 else {}
        rounds += [
            Claude.call(call, {**ROUTE, "page": number}),
            Claude.result(call, f"page {number}", **mark),
        ]
    return rounds


def report_19() -> list[Json]:
    """Return pairs that grow by many blocks, which is no break of the prompt."""
    asked = Claude.user(Claude.text(ASK, **MARK))
    excerpts = [f"Timetable, page {number}." for number in range(22)]
    bedrock_rounds: list[Json] = []
    chat_rounds: list[Json] = []
    for number in range(11):
        call, page = f"call_{number}", {**ROUTE, "page": number}
        bedrock_rounds += [
            Bedrock.said(Bedrock.use(call, page)),
            Bedrock.user(Bedrock.found(call, f"page {number}")),
        ]
        chat_rounds += [Chat.call(call, page), Chat.result(call, f"page {number}")]
    bedrock_rounds[-1]["content"].append(POINT)
    hit = expect("hit", "appended", reusable_tokens=6000)
    exceeded = expect("miss", "look_back_exceeded", reusable_tokens=0)
    return [
        pair(
            Claude,
            "22 new blocks, in 11 rounds of a call and its result",
            Claude.body(asked),
            Claude.body(Claude.user(ASK), *_claude_rounds(11)),
            report=19,
            verdicts={"anthropic": exceeded},
        ),
        pair(
            Claude,
            "20 new blocks, in 10 rounds",
            Claude.body(asked),
            Claude.body(Claude.user(ASK), *_claude_rounds(10)),
            report=19,
            verdicts={"anthropic": hit},
        ),
        pair(
            Claude,
            "22 new blocks in one message",
            Claude.body(asked),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER)),
                Claude.user(
                    *(Claude.text(text) for text in excerpts[:-1]),
                    Claude.text(excerpts[-1], **MARK),
                ),
            ),
            report=19,
            verdicts={"anthropic": exceeded},
        ),
        pair(
            Claude,
            "24 calls at once and their results count as two blocks",
            Claude.body(asked),
            Claude.body(
                Claude.user(ASK),
                Claude.said(*(Claude.use(f"toolu_{n}", ROUTE) for n in range(24))),
                Claude.user(
                    *(Claude.found(f"toolu_{n}", "none") for n in range(23)),
                    Claude.found("toolu_23", "none", **MARK),
                ),
            ),
            report=19,
            verdicts={"anthropic": hit},
        ),
        pair(
            Claude,
            "22 new blocks behind a marked system prompt, which is still found",
            Claude.body(asked, system=[Claude.text(SYSTEM, **MARK)]),
            Claude.body(
                Claude.user(ASK),
                *_claude_rounds(11),
                system=[Claude.text(SYSTEM, **MARK)],
            ),
            report=19,
            verdicts={
                "anthropic": expect(
                    "partial",
                    "look_back_exceeded",
                    tokens=90000,
                    shared_tokens=60000,
                )
            },
        ),
        pair(
            Bedrock,
            "22 new blocks, in 11 rounds of a call and its result",
            Bedrock.body(Bedrock.user(ASK, POINT)),
            Bedrock.body(Bedrock.user(ASK), *bedrock_rounds),
            report=19,
            verdicts={"bedrock": exceeded},
        ),
        pair(
            Chat,
            "22 new parts in one message",
            Chat.body(Chat.user(ASK)),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER)),
                Chat.user([{"type": "text", "text": text} for text in excerpts]),
            ),
            report=19,
            verdicts={
                "openai": hit,
                "openai-5.5": expect("hit", "appended", reusable_tokens=5888),
            },
        ),
        pair(
            Chat,
            "22 new messages",
            Chat.body(Chat.user(ASK)),
            Chat.body(Chat.user(ASK), *chat_rounds),
            report=19,
            verdicts={
                "openai": exceeded,
                "openai-5.5": expect("hit", "appended", reusable_tokens=5888),
                "deepseek": expect("hit", "appended", reusable_tokens=5760),
                "vllm": expect("hit", "appended", reusable_tokens=6000),
            },
        ),
    ]


def reports_20_to_22() -> list[Json]:
    """Return a history made anew, random cache keys, and a counter at the front."""
    form = {
        name: expect_form("unknown", "form_only")
        for name in ("openai", "openai-5.5", "deepseek", "vllm", "sglang")
    }
    lost = expect("miss", "key_changed", reusable_tokens=0)
    first, second = "0f8c1d7e-6a55", "b2e94c10-93fd"
    return [
        pair(
            Chat,
            "a null content is left out when the session is loaded again",
            Chat.body(
                Chat.user(ASK),
                Chat.call("call_1", ROUTE),
                Chat.result("call_1", "2 trains"),
            ),
            Chat.body(
                Chat.user(ASK),
                {"role": "assistant", "tool_calls": [Chat.tool_call("call_1", ROUTE)]},
                Chat.result("call_1", "2 trains"),
                *(Chat.said(ANSWER), Chat.user(THEN)),
            ),
            "message_edited",
            "messages[2].content",
            report=20,
            verdicts=form,
        ),
        pair(
            Claude,
            "a list of files is left out when the session is loaded again",
            Claude.body(
                Claude.user(
                    Claude.text(ASK),
                    Claude.text("Open tabs: fares.pdf"),
                    Claude.text("Files: map.png, fares.pdf"),
                )
            ),
            Claude.body(
                Claude.user(Claude.text(ASK), Claude.text("Open tabs: fares.pdf")),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            "message_edited",
            "messages[0].content[2]",
            report=20,
        ),
        pair(
            Gemini,
            "empty arguments are left out when the session is loaded again",
            Gemini.body(
                Gemini.user(ASK),
                Gemini.said(Gemini.use({}, "list_stations")),
                Gemini.user(Gemini.found({"stations": 3}, "list_stations")),
            ),
            Gemini.body(
                Gemini.user(ASK),
                Gemini.said({"functionCall": {"name": "list_stations"}}),
                Gemini.user(Gemini.found({"stations": 3}, "list_stations")),
                *(Gemini.said(ANSWER), Gemini.user(THEN)),
            ),
            "message_edited",
            "contents[1].parts[0].functionCall.args",
            report=20,
        ),
        pair(
            Chat,
            "a random cache key for each request",
            Chat.body(Chat.user(ASK), prompt_cache_key=first),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                prompt_cache_key=second,
            ),
            report=21,
            keys=[first, second],
            verdicts={"openai": lost, "openai-5.5": expect("unknown", "key_changed")},
        ),
        pair(
            Responses,
            "a random cache key for each request",
            Responses.body(Responses.user(ASK), prompt_cache_key=first),
            Responses.body(
                *(Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)),
                prompt_cache_key=second,
            ),
            report=21,
            keys=[first, second],
            verdicts={"openai": lost, "openai-5.5": expect("unknown", "key_changed")},
        ),
        pair(
            Chat,
            "another salt",
            Chat.body(Chat.user(ASK), model="qwen3", cache_salt="tenant-a"),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                model="qwen3",
                cache_salt="tenant-b",
            ),
            report=21,
            keys=["tenant-a", "tenant-b"],
            verdicts={"vllm": lost, "sglang": lost},
        ),
        pair(
            Responses,
            "a counter in the first message",
            Responses.body(Responses.user(f"32 notes are stored. {ASK}")),
            Responses.body(
                Responses.user(f"33 notes are stored. {ASK}"),
                *(Responses.said(ANSWER), Responses.user(THEN)),
            ),
            "message_edited",
            "input[0].content",
            report=22,
        ),
        pair(
            Claude,
            "a counter in the first message",
            Claude.body(
                Claude.user(f"32 notes are stored. {ASK}"),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            Claude.body(
                Claude.user(f"33 notes are stored. {ASK}"),
                *(Claude.said(ANSWER), Claude.user(THEN)),
                *(Claude.said(NIGHT), Claude.user(LAST)),
            ),
            "message_edited",
            "messages[0].content",
            report=22,
        ),
        pair(
            Bedrock,
            "a counter in a tool's first result",
            Bedrock.body(
                Bedrock.user(ASK),
                Bedrock.said(Bedrock.use("tooluse_1", ROUTE)),
                Bedrock.user(Bedrock.found("tooluse_1", "2 trains, 117 seen")),
            ),
            Bedrock.body(
                Bedrock.user(ASK),
                Bedrock.said(Bedrock.use("tooluse_1", ROUTE)),
                Bedrock.user(Bedrock.found("tooluse_1", "2 trains, 118 seen")),
                *(Bedrock.said(ANSWER), Bedrock.user(THEN)),
            ),
            "message_edited",
            "messages[2].content[0].toolResult.content[0].text",
            report=22,
        ),
    ]


def report_23() -> list[Json]:
    """Return prompts that go on, of which the provider reports nothing cached."""

    def missed(usage: Json) -> Json:
        return expect("miss", "provider_side_miss", usage=usage)

    marked = Claude.user(Claude.text(ASK, **MARK))
    claude_usage = {
        "input_tokens": 40,
        "cache_creation_input_tokens": 8960,
        "cache_read_input_tokens": 0,
        "output_tokens": 120,
    }
    chat_usage = {
        "prompt_tokens": 9000,
        "completion_tokens": 120,
        "total_tokens": 9120,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    return [
        pair(
            Claude,
            "the same marked request once more, and nothing was read",
            Claude.body(marked),
            Claude.body(marked),
            report=23,
            verdicts={"anthropic": missed(claude_usage)},
        ),
        pair(
            Claude,
            "a marked request goes on, and its prefix was read",
            Claude.body(marked),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER)),
                Claude.user(Claude.text(THEN, **MARK)),
            ),
            report=23,
            verdicts={
                "anthropic": expect(
                    "hit",
                    "appended",
                    reusable_tokens=6000,
                    usage={
                        "input_tokens": 0,
                        "cache_creation_input_tokens": 3000,
                        "cache_read_input_tokens": 6000,
                        "output_tokens": 120,
                    },
                )
            },
        ),
        pair(
            Chat,
            "a request goes on, and nothing was cached",
            Chat.body(Chat.user(ASK)),
            Chat.body(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
            report=23,
            verdicts={
                "openai": missed(chat_usage),
                "openai-5.5": missed(chat_usage),
                "deepseek": missed(
                    {
                        "prompt_tokens": 9000,
                        "completion_tokens": 120,
                        "total_tokens": 9120,
                        "prompt_cache_hit_tokens": 0,
                        "prompt_cache_miss_tokens": 9000,
                    }
                ),
            },
        ),
        pair(
            Responses,
            "the same request once more, and nothing was cached",
            Responses.body(Responses.user(ASK)),
            Responses.body(Responses.user(ASK)),
            report=23,
            verdicts={
                "openai": missed(
                    {
                        "input_tokens": 9000,
                        "input_tokens_details": {"cached_tokens": 0},
                        "output_tokens": 120,
                        "output_tokens_details": {"reasoning_tokens": 64},
                        "total_tokens": 9120,
                    }
                )
            },
        ),
        pair(
            Gemini,
            "a request goes on, and nothing was cached",
            Gemini.sdk(Gemini.user(ASK), model="gemini-2.5-pro", tools=(FIND,)),
            Gemini.sdk(
                *(Gemini.user(ASK), Gemini.said(ANSWER), Gemini.user(THEN)),
                model="gemini-2.5-pro",
                tools=(FIND,),
            ),
            report=23,
            verdicts={
                "gemini": missed(
                    {
                        "promptTokenCount": 9000,
                        "candidatesTokenCount": 120,
                        "totalTokenCount": 9120,
                        "cachedContentTokenCount": 0,
                    }
                )
            },
        ),
        pair(
            Bedrock,
            "a marked request goes on, and nothing was read",
            Bedrock.body(Bedrock.user(ASK, POINT)),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN, POINT))
            ),
            report=23,
            verdicts={
                "bedrock": missed(
                    {
                        "inputTokens": 0,
                        "outputTokens": 120,
                        "totalTokens": 9120,
                        "cacheReadInputTokens": 0,
                        "cacheWriteInputTokens": 9000,
                    }
                )
            },
        ),
    ]


# Causes, two shapes each, and what looks like them ------------------------------------


def of_header() -> list[Json]:
    """Return pairs whose model, parameters or system prompt differ."""
    chat = [Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)]
    claude = [Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)]
    gemini = [Gemini.user(ASK), Gemini.said(ANSWER), Gemini.user(THEN)]
    bedrock = [Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)]
    items = [Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)]

    def thinking(tokens: int) -> Json:
        return {"thinking": {"type": "enabled", "budget_tokens": tokens}}

    def level(name: str) -> Json:
        config = {"maxOutputTokens": 2048, "thinkingConfig": {"thinkingLevel": name}}
        return {"generationConfig": config}

    answer_format = {
        "type": "json_schema",
        "name": "legs",
        "schema": schema("first", "second"),
    }
    return [
        pair(
            Claude,
            "another model",
            Claude.body(*claude[:1]),
            Claude.body(*claude, model="claude-sonnet-5"),
            "model",
            "model",
        ),
        pair(
            Gemini,
            "another model, in the arguments of google-genai",
            Gemini.sdk(*gemini[:1], model="gemini-2.5-pro", tools=(FIND,)),
            Gemini.sdk(*gemini, model="gemini-2.5-flash", tools=(FIND,)),
            "model",
            "model",
        ),
        pair(
            Chat,
            "another model and other tools: the model comes first",
            Chat.body(*chat[:1]),
            Chat.body(*chat, model="gpt-5.5", tools=(FIND,)),
            "model",
            "model",
        ),
        pair(
            Chat,
            "a tool must be called from now on",
            Chat.body(*chat[:1]),
            Chat.body(*chat, tool_choice="required"),
            "parameters",
            "tool_choice",
        ),
        pair(
            Responses,
            "a format of the answer comes in",
            Responses.body(*items[:1], text={"verbosity": "low"}),
            Responses.body(
                *items, text={"verbosity": "low", "format": {**answer_format}}
            ),
            "parameters",
            "text.format",
        ),
        pair(
            Claude,
            "another budget of thinking",
            Claude.body(*claude[:1], **thinking(1024)),
            Claude.body(*claude, **thinking(4096)),
            "parameters",
            "thinking.budget_tokens",
        ),
        pair(
            Gemini,
            "another level of thinking",
            Gemini.body(*gemini[:1], **level("LOW")),
            Gemini.body(*gemini, **level("HIGH")),
            "parameters",
            "generationConfig.thinkingConfig.thinkingLevel",
        ),
        pair(
            Bedrock,
            "another budget of thinking, in the model's own fields",
            Bedrock.body(*bedrock[:1], additionalModelRequestFields=thinking(1024)),
            Bedrock.body(*bedrock, additionalModelRequestFields=thinking(4096)),
            "parameters",
            "additionalModelRequestFields.thinking.budget_tokens",
        ),
        pair(
            Bedrock,
            "some tool must be called from now on",
            Bedrock.body(*bedrock[:1]),
            Bedrock.body(*bedrock, choice={"any": {}}),
            "parameters",
            "toolConfig.toolChoice",
        ),
        pair(
            Bedrock,
            "a second block in the system prompt",
            Bedrock.body(*bedrock[:1]),
            Bedrock.body(*bedrock, system=[{"text": SYSTEM}, {"text": "Be brief."}]),
            "system_changed",
            "system[1]",
        ),
        pair(
            Claude,
            "a system prompt where there was none",
            Claude.body(*claude[:1], system=None),
            Claude.body(*claude),
            "system_changed",
            "system",
        ),
        pair(
            Claude,
            "the system prompt as a string",
            Claude.body(*claude[:1]),
            Claude.body(*claude, system=f"{SYSTEM} Be brief."),
            "system_changed",
            "system",
        ),
        pair(
            Responses,
            "a developer item that is edited is the system prompt",
            Responses.body(
                Responses.user(SYSTEM, "developer"), *items[:1], system=None
            ),
            Responses.body(
                Responses.user(f"{SYSTEM} Be brief.", "developer"), *items, system=None
            ),
            "system_changed",
            "input[0].content",
        ),
        pair(
            Chat,
            "the system message is gone",
            Chat.body(*chat[:1]),
            Chat.body(*chat, system=None),
            "system_changed",
            "messages[0]",
        ),
        pair(
            Chat,
            "another system prompt and a shorter history: the prompt comes first",
            Chat.body(*chat, Chat.said(NIGHT), Chat.user(LAST)),
            Chat.body(Chat.user(LAST), Chat.said("Done."), system="Be brief."),
            "system_changed",
            "messages[0].content",
        ),
        pair(
            Chat,
            "a system message further down is an insertion",
            Chat.body(*chat),
            Chat.body(*chat[:2], Chat.system("Be brief."), *chat[2:], Chat.said(NIGHT)),
            "message_edited",
            "messages[3]",
        ),
    ]


def of_tools() -> list[Json]:
    """Return pairs whose tools differ."""
    chat = [Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)]
    claude = [Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)]
    gemini = [Gemini.user(ASK), Gemini.said(ANSWER), Gemini.user(THEN)]
    bedrock = [Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)]
    items = [Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)]

    def seats(least: float) -> Tool:
        properties = {"seats": {"type": "integer", "minimum": least}}
        return BOOK._replace(schema={"type": "object", "properties": properties})

    two_lists = [{"functionDeclarations": [Gemini.tool(t)]} for t in (FIND, BOOK)]
    return [
        pair(
            Chat,
            "one tool more, at the end",
            Chat.body(*chat[:1]),
            Chat.body(*chat, tools=(FIND, BOOK, WEATHER)),
            "tools_added",
            "tools[2]",
        ),
        pair(
            Gemini,
            "one declaration more, at the end",
            Gemini.body(*gemini[:1]),
            Gemini.body(*gemini, tools=(FIND, BOOK, WEATHER)),
            "tools_added",
            "tools[0].functionDeclarations[2]",
        ),
        pair(
            Gemini,
            "one declaration more, in the arguments of google-genai",
            Gemini.sdk(*gemini[:1], model="gemini-2.5-pro", tools=(FIND,)),
            Gemini.sdk(*gemini, model="gemini-2.5-pro", tools=(WEATHER, FIND)),
            "tools_added",
            "config.tools[0].function_declarations[0]",
        ),
        pair(
            Chat,
            "the first tool is gone",
            Chat.body(*chat[:1]),
            Chat.body(*chat, tools=(BOOK,)),
            "tools_removed",
            "tools[0]",
        ),
        pair(
            Bedrock,
            "the last tool is gone",
            Bedrock.body(*bedrock[:1]),
            Bedrock.body(*bedrock, tools=(FIND,)),
            "tools_removed",
            "toolConfig.tools[1]",
        ),
        pair(
            Responses,
            "two tools change places",
            Responses.body(*items[:1]),
            Responses.body(*items, tools=(BOOK, FIND)),
            "tools_order",
            "tools[0]",
        ),
        pair(
            Claude,
            "the last two of three tools change places",
            Claude.body(*claude[:1], tools=(WEATHER, FIND, BOOK)),
            Claude.body(*claude, tools=(WEATHER, BOOK, FIND)),
            "tools_order",
            "tools[1]",
        ),
        pair(
            Chat,
            "one tool more and two change places: neither added nor order",
            Chat.body(*chat[:1]),
            Chat.body(*chat, tools=(BOOK, FIND, WEATHER)),
            "tools_changed",
            "tools[0].function.name",
        ),
        pair(
            Claude,
            "one tool less and the other edited: not removed",
            Claude.body(*claude[:1]),
            Claude.body(*claude, tools=(BOOK._replace(about="Book a berth."),)),
            "tools_changed",
            "tools[0].name",
        ),
        pair(
            Chat,
            "a tool gets another name",
            Chat.body(*chat[:1]),
            Chat.body(*chat, tools=(FIND, BOOK._replace(name="reserve_seat"))),
            "tools_changed",
            "tools[1].function.name",
        ),
        pair(
            Gemini,
            "one parameter more is required",
            Gemini.body(
                *gemini[:1],
                tools=(FIND._replace(schema={**FIND.schema, "required": ["from"]}),),
            ),
            Gemini.body(*gemini, tools=(FIND,)),
            "tools_changed",
            "tools[0].functionDeclarations[0].parameters.required[1]",
        ),
        pair(
            Gemini,
            "two lists of declarations become one",
            {**Gemini.body(*gemini[:1]), "tools": two_lists},
            Gemini.body(*gemini),
            "tools_changed",
            "tools[0].functionDeclarations[1]",
        ),
        pair(
            Bedrock,
            "a tool has a property more",
            Bedrock.body(*bedrock[:1], tools=(BOOK._replace(schema=schema("train")),)),
            Bedrock.body(*bedrock, tools=(BOOK,)),
            "tools_changed",
            "toolConfig.tools[0].toolSpec.inputSchema.json.properties.class",
        ),
        pair(
            Bedrock,
            "a tool behind a cache mark is edited",
            Bedrock.body(
                *bedrock[:1], tools=(FIND, POINT, BOOK._replace(about="Book."))
            ),
            Bedrock.body(*bedrock, tools=(FIND, POINT, BOOK)),
            "tools_changed",
            "toolConfig.tools[2].toolSpec.description",
        ),
        pair(
            Responses,
            "a line break in the description of a tool is white space",
            Responses.body(*items[:1]),
            Responses.body(
                *items, tools=(FIND._replace(about=f"{FIND.about}\n"), BOOK)
            ),
            "whitespace",
            "tools[0].description",
        ),
        pair(
            Claude,
            "the description of a tool in another Unicode form",
            Claude.body(*claude[:1], tools=(FIND._replace(about="Z\u00fcge"),)),
            Claude.body(*claude, tools=(FIND._replace(about="Zu\u0308ge"),)),
            "unicode",
            "tools[0].description",
        ),
        pair(
            Bedrock,
            "a minimum in a schema, 1 and then 1.0",
            Bedrock.body(*bedrock[:1], tools=(seats(1),)),
            Bedrock.body(*bedrock, tools=(seats(1.0),)),
            "number_form",
            "toolConfig.tools[0].toolSpec.inputSchema.json.properties.seats.minimum",
        ),
        pair(
            Chat,
            "a schema in another key order and another tool edited: not key order",
            Chat.body(*chat[:1]),
            Chat.body(
                *chat,
                tools=(
                    FIND._replace(schema=TURNED_SCHEMA),
                    BOOK._replace(about="Book."),
                ),
            ),
            "tools_changed",
            "tools[0].function.parameters",
        ),
    ]


def of_history() -> list[Json]:
    """Return pairs in which whole messages go, come or change places."""
    chat = [
        *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
        *(Chat.said(NIGHT), Chat.user(LAST)),
    ]
    claude = [
        *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
        *(Claude.said(NIGHT), Claude.user(LAST)),
    ]
    gemini = [
        *(Gemini.user(ASK), Gemini.said(ANSWER), Gemini.user(THEN)),
        *(Gemini.said(NIGHT), Gemini.user(LAST)),
    ]
    bedrock = [
        *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
        *(Bedrock.said(NIGHT), Bedrock.user(LAST)),
    ]
    items = [
        *(Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)),
        *(Responses.said(NIGHT, "msg_2"), Responses.user(LAST)),
    ]
    developer = Responses.user(SYSTEM, "developer")
    results = [Responses.result("call_1", "2"), Responses.result("call_2", "3")]
    calls = [Chat.tool_call("call_1", ROUTE), Chat.tool_call("call_2", TURNED_ROUTE)]
    responses = [Gemini.found({"trains": 2}), Gemini.found({"sky": "snow"}, "weather")]
    questions = [
        Gemini.use(ROUTE),
        Gemini.use({"place": "Graz"}, "weather"),
    ]
    return [
        pair(
            Chat,
            "a turn in the middle is gone",
            Chat.body(*chat),
            Chat.body(*chat[:1], *chat[3:], Chat.said("Done."), Chat.user("Thanks.")),
            "message_removed",
            "messages[2]",
        ),
        pair(
            Gemini,
            "the request ends sooner",
            Gemini.body(*gemini),
            Gemini.body(*gemini[:3]),
            "message_removed",
            "contents[3]",
        ),
        pair(
            Responses,
            "a call and its output are gone",
            Responses.body(
                Responses.user(ASK),
                Responses.call("call_1", ROUTE),
                Responses.result("call_1", "2 trains"),
                *(Responses.said(ANSWER), Responses.user(THEN)),
            ),
            Responses.body(*items),
            "message_removed",
            "input[1]",
        ),
        pair(
            Responses,
            "two outputs change places",
            Responses.body(
                Responses.user(ASK),
                Responses.call("call_1", ROUTE),
                Responses.call("call_2", TURNED_ROUTE, "fc_2"),
                *results,
            ),
            Responses.body(
                Responses.user(ASK),
                Responses.call("call_1", ROUTE),
                Responses.call("call_2", TURNED_ROUTE, "fc_2"),
                *results[::-1],
                Responses.said(ANSWER),
            ),
            "message_reordered",
            "input[3]",
        ),
        pair(
            Chat,
            "two calls of one message change places",
            Chat.body(
                Chat.user(ASK),
                Chat.said(None, tool_calls=calls),
                *(Chat.result("call_1", "2"), Chat.result("call_2", "3")),
            ),
            Chat.body(
                Chat.user(ASK),
                Chat.said(None, tool_calls=calls[::-1]),
                *(Chat.result("call_1", "2"), Chat.result("call_2", "3")),
                *(Chat.said(ANSWER), Chat.user(THEN)),
            ),
            "message_reordered",
            "messages[2].tool_calls[0].id",
        ),
        pair(
            Gemini,
            "two responses of one content change places",
            Gemini.body(
                Gemini.user(ASK), Gemini.said(*questions), Gemini.user(*responses)
            ),
            Gemini.body(
                Gemini.user(ASK),
                Gemini.said(*questions),
                Gemini.user(*responses[::-1]),
                Gemini.said(ANSWER),
            ),
            "message_reordered",
            "contents[2].parts[0].functionResponse.name",
        ),
        pair(
            Chat,
            "two results change places and one is edited: not reordered",
            Chat.body(
                Chat.user(ASK),
                Chat.said(None, tool_calls=calls),
                *(Chat.result("call_1", "2"), Chat.result("call_2", "3")),
            ),
            Chat.body(
                Chat.user(ASK),
                Chat.said(None, tool_calls=calls),
                *(Chat.result("call_2", "4"), Chat.result("call_1", "2")),
                Chat.said(ANSWER),
            ),
            "message_edited",
            "messages[3].content",
        ),
        pair(
            Claude,
            "a window slides and drops the first turn",
            Claude.body(*claude),
            Claude.body(*claude[2:], Claude.said("Done."), Claude.user("Thanks.")),
            "truncated_head",
            "messages[0]",
        ),
        pair(
            Responses,
            "a window slides behind the developer's item",
            Responses.body(developer, *items, system=None),
            Responses.body(
                developer, *items[1:], Responses.said("Done.", "msg_3"), system=None
            ),
            "truncated_head",
            "input[1]",
        ),
        pair(
            Bedrock,
            "a window slides and keeps the last message alone",
            Bedrock.body(*bedrock),
            Bedrock.body(*bedrock[4:], Bedrock.said("Done.")),
            "truncated_head",
            "messages[0]",
        ),
        pair(
            Chat,
            "a summary takes the place of two turns",
            Chat.body(*chat),
            Chat.body(
                Chat.user("So far: a night train from Venice at 21:05."),
                *(chat[4], Chat.said("Done."), Chat.user("Thanks.")),
            ),
            "compacted",
            "messages[1]",
        ),
        pair(
            Chat,
            "a summary as a system message takes the place of two turns",
            Chat.body(*chat),
            Chat.body(
                Chat.system("So far: a night train from Venice at 21:05."),
                *(chat[4], Chat.said("Done."), Chat.user("Thanks.")),
            ),
            "compacted",
            "messages[1]",
        ),
        pair(
            Bedrock,
            "a summary in the middle of the history",
            Bedrock.body(*bedrock),
            Bedrock.body(
                bedrock[0],
                Bedrock.said("A night train from Venice at 21:05."),
                *(bedrock[4], Bedrock.said("Done."), Bedrock.user("Thanks.")),
            ),
            "compacted",
            "messages[1]",
        ),
        pair(
            Chat,
            "a summary of which nothing of the history is left: not compacted",
            Chat.body(*chat),
            Chat.body(Chat.user("So far: a night train at 21:05."), Chat.said("Fine.")),
            "message_edited",
            "messages[1].content",
        ),
        pair(
            Chat,
            "the user goes back and asks otherwise: not compacted",
            Chat.body(*chat),
            Chat.body(*chat[:2], Chat.user("And by coach?")),
            "message_edited",
            "messages[3].content",
        ),
        pair(
            Claude,
            "the user goes back and asks otherwise: not removed",
            Claude.body(*claude),
            Claude.body(
                *claude[:2], Claude.user("And by coach?"), Claude.said("In 14 hours.")
            ),
            "message_edited",
            "messages[2].content",
        ),
        pair(
            Bedrock,
            "an answer is given once more",
            Bedrock.body(*bedrock[:3]),
            Bedrock.body(
                *(bedrock[0], Bedrock.said("Through Munich."), bedrock[2]),
                Bedrock.said(NIGHT),
            ),
            "message_edited",
            "messages[1].content[0].text",
        ),
        pair(
            Bedrock,
            "a text behind a cache mark is edited",
            Bedrock.body(Bedrock.user(ASK, POINT, "It is 09:14.")),
            Bedrock.body(
                Bedrock.user(ASK, POINT, "It is 09:15."), Bedrock.said(ANSWER)
            ),
            "message_edited",
            "messages[0].content[2].text",
        ),
        pair(
            Claude,
            "a message comes between two former ones",
            Claude.body(*claude[:3]),
            Claude.body(*claude[:2], Claude.user("Note: rail pass."), *claude[2:]),
            "message_edited",
            "messages[2]",
        ),
    ]


def of_forms() -> list[Json]:
    """Return pairs in which a message differs in its written form alone, or nearly."""

    def chat(before: str, after: str, cause: str, name: str) -> Json:
        return pair(
            Chat,
            name,
            Chat.body(
                *(Chat.user(ASK), Chat.call("call_1", before)),
                Chat.result("call_1", "2"),
            ),
            Chat.body(
                *(Chat.user(ASK), Chat.call("call_1", after)),
                *(Chat.result("call_1", "2"), Chat.said(ANSWER), Chat.user(THEN)),
            ),
            cause,
            "messages[2].tool_calls[0].function.arguments",
        )

    def claude(before: Any, after: Any, cause: str, name: str) -> Json:
        return pair(
            Claude,
            name,
            Claude.body(
                *(Claude.user(ASK), Claude.call("toolu_1", {**ROUTE, "limit": before})),
                Claude.result("toolu_1", "2 trains"),
            ),
            Claude.body(
                *(Claude.user(ASK), Claude.call("toolu_1", {**ROUTE, "limit": after})),
                *(Claude.result("toolu_1", "2 trains"), Claude.said(ANSWER)),
            ),
            cause,
            "messages[1].content[0].input.limit",
        )

    def gemini(before: str, after: str, cause: str, name: str) -> Json:
        return pair(
            Gemini,
            name,
            Gemini.body(Gemini.user(before)),
            Gemini.body(Gemini.user(after), Gemini.said(ANSWER), Gemini.user(THEN)),
            cause,
            "contents[0].parts[0].text",
        )

    def items(before: str, after: str, cause: str, name: str) -> Json:
        return pair(
            Responses,
            name,
            Responses.body(
                *(Responses.user(ASK), Responses.reasoning()),
                *(Responses.call("call_1", before), Responses.result("call_1", "2")),
            ),
            Responses.body(
                *(Responses.user(ASK), Responses.reasoning()),
                *(Responses.call("call_1", after), Responses.result("call_1", "2")),
                *(Responses.said(ANSWER), Responses.user(THEN)),
            ),
            cause,
            "input[2].arguments",
        )

    def bedrock(before: Json, after: Json, cause: str, path: str, name: str) -> Json:
        return pair(
            Bedrock,
            name,
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(Bedrock.use("tooluse_1", before))),
                Bedrock.user(Bedrock.found("tooluse_1", "2 trains")),
            ),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(Bedrock.use("tooluse_1", after))),
                Bedrock.user(Bedrock.found("tooluse_1", "2 trains")),
                *(Bedrock.said(ANSWER), Bedrock.user(THEN)),
            ),
            cause,
            f"messages[1].content[0].toolUse.input{path}",
        )

    return [
        *_key_orders(items, bedrock),
        chat(
            '{"to": "Graz"}',
            '{"to":"Graz"}',
            "whitespace",
            "arguments without the space between tokens",
        ),
        gemini(
            f"{ASK}\r\n{THEN}", f"{ASK}\n{THEN}", "whitespace", "another line break"
        ),
        items(
            '{"to": "Graz"}',
            '{\n  "to": "Graz"\n}',
            "whitespace",
            "arguments laid out over several lines",
        ),
        gemini(
            ASK,
            f"  {ASK.replace('Graz', 'Linz')}",
            "message_edited",
            "white space and a word: not white space",
        ),
        chat(
            '{"to": "Graz"}',
            '{"to":"Linz"}',
            "message_edited",
            "arguments without spaces and to another place: not white space",
        ),
        gemini(
            ASK,
            ASK.replace(" ", "\u200b", 1),
            "message_edited",
            "a space becomes a zero-width space, which is no white space",
        ),
        gemini(
            "Z\u00fcrich",
            "Zu\u0308rich",
            "unicode",
            "a composed letter becomes a decomposed one",
        ),
        pair(
            Claude,
            "a decomposed letter becomes a composed one",
            Claude.body(Claude.user("To Besanc\u0327on, please.")),
            Claude.body(Claude.user("To Besan\u00e7on, please."), Claude.said(ANSWER)),
            "unicode",
            "messages[0].content",
        ),
        chat(
            '{"to": "K\\u00f6ln"}',
            '{"to": "K\u00f6ln"}',
            "unicode",
            "arguments without escapes",
        ),
        gemini(
            "the \ufb01rst train",
            "the first train",
            "message_edited",
            "a ligature and its letters: not one Unicode form",
        ),
        gemini(
            "Z\u00fcrich",
            "Zurich",
            "message_edited",
            "an accent is left out: not one Unicode form",
        ),
        claude(5, 5.0, "number_form", "5 becomes 5.0"),
        claude(0.0, -0.0, "number_form", "0.0 becomes -0.0"),
        claude(1, True, "message_edited", "1 becomes true: not the form of a number"),
        claude(5, "5", "message_edited", "5 becomes a string"),
        claude(5, 6, "message_edited", "5 becomes 6"),
        claude(5, None, "message_edited", "5 becomes null"),
        chat('{"n": 5}', '{"n": 5.0}', "number_form", "5 becomes 5.0 in arguments"),
        chat('{"n": 100.0}', '{"n": 1e2}', "number_form", "100.0 becomes 1e2"),
        chat(
            '{"n": 1}', '{"n": true}', "message_edited", "1 becomes true in arguments"
        ),
        chat(
            '{"n": 5, "to": "Graz"}',
            '{"to":"Graz","n":5.0}',
            "key_order",
            "key order, white space and a number: the first of the forms",
        ),
        bedrock(
            {**ROUTE, "limit": 5.0},
            {**ROUTE, "limit": 5},
            "number_form",
            ".limit",
            "5.0 becomes 5 on its way through a database",
        ),
        bedrock(
            {**ROUTE, "limit": 5},
            {**TURNED_ROUTE, "limit": 6},
            "message_edited",
            "",
            "key order and a number: not key order",
        ),
    ]


def _key_orders(items: Any, bedrock: Any) -> list[Json]:
    nested: Json = {"legs": [{"from": "Turin", "to": "Venice"}]}
    turned: Json = {"legs": [{"to": "Venice", "from": "Turin"}]}
    return [
        items(
            json.dumps(ROUTE),
            json.dumps(TURNED_ROUTE),
            "key_order",
            "arguments, a string of JSON, with their keys in another order",
        ),
        bedrock(nested, turned, "key_order", ".legs[0]", "keys in an object in a list"),
        bedrock(
            {"stops": ["Venice", "Villach"]},
            {"stops": ["Villach", "Venice"]},
            "message_edited",
            ".stops[0]",
            "the order of a list: not key order",
        ),
        pair(
            Gemini,
            "a response with its keys in another order",
            Gemini.body(
                *(Gemini.user(ASK), Gemini.said(Gemini.use(ROUTE))),
                Gemini.user(Gemini.found({"trains": 2, "seats": 7})),
            ),
            Gemini.body(
                *(Gemini.user(ASK), Gemini.said(Gemini.use(ROUTE))),
                Gemini.user(Gemini.found({"seats": 7, "trains": 2})),
                *(Gemini.said(ANSWER), Gemini.user(THEN)),
            ),
            "key_order",
            "contents[2].parts[0].functionResponse.response",
        ),
    ]


def of_ids() -> list[Json]:
    """Return pairs with other ids of calls, and other things named ``id``."""

    def order(number: str) -> Json:
        return {"id": number, "call_id": "c", "tool_use_id": "t"}

    def stored(number: str) -> list[Json]:
        return [
            Gemini.user(ASK),
            Gemini.said(Gemini.use(ROUTE, id=number)),
            Gemini.user(Gemini.found({"trains": 2}, id=number)),
        ]

    def asked(number: str) -> list[Json]:
        return [
            Gemini.user(ASK),
            Gemini.said(Gemini.use(order(number), "show_order")),
            Gemini.user(Gemini.found({"state": "paid"}, "show_order")),
        ]

    chat = [Chat.user(ASK), Chat.call("call_1", ROUTE)]
    claude = [Claude.user(ASK), Claude.call("toolu_1", ROUTE)]
    return [
        pair(
            Claude,
            "the ids of two calls are made up anew",
            Claude.body(
                Claude.user(ASK),
                Claude.said(Claude.use("toolu_a", ROUTE), Claude.use("toolu_b", ROUTE)),
                Claude.user(Claude.found("toolu_a", "2"), Claude.found("toolu_b", "2")),
            ),
            Claude.body(
                Claude.user(ASK),
                Claude.said(Claude.use("toolu_a", ROUTE), Claude.use("toolu_c", ROUTE)),
                Claude.user(Claude.found("toolu_a", "2"), Claude.found("toolu_c", "2")),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            "call_id",
            "messages[1].content[1].id",
        ),
        pair(
            Gemini,
            "the id of a call is made up anew",
            Gemini.body(*stored("7f")),
            Gemini.body(*stored("b0"), Gemini.said(ANSWER), Gemini.user(THEN)),
            "call_id",
            "contents[1].parts[0].functionCall.id",
        ),
        pair(
            Responses,
            "the id of a call's item is made up anew",
            Responses.body(
                Responses.user(ASK),
                Responses.call("call_1", ROUTE, "fc_1"),
                Responses.result("call_1", "2"),
            ),
            Responses.body(
                Responses.user(ASK),
                Responses.call("call_1", ROUTE, "fc_2"),
                Responses.result("call_1", "2"),
                *(Responses.said(ANSWER), Responses.user(THEN)),
            ),
            "call_id",
            "input[1].id",
        ),
        pair(
            Chat,
            "the id on a result alone",
            Chat.body(*chat, Chat.result("call_1", "2 trains")),
            Chat.body(*chat, Chat.result("call_01", "2 trains"), Chat.said(ANSWER)),
            "call_id",
            "messages[3].tool_call_id",
        ),
        pair(
            Claude,
            "the id on a result and its text: not the id alone",
            Claude.body(*claude, Claude.result("toolu_1", "2 trains")),
            Claude.body(
                *claude, Claude.result("toolu_9", "3 trains"), Claude.said(ANSWER)
            ),
            "message_edited",
            "messages[2].content[0].tool_use_id",
        ),
        pair(
            Claude,
            "an id in the input of a call is no call's id",
            Claude.body(
                Claude.user(ASK),
                Claude.call("toolu_1", order("4711")),
                Claude.result("toolu_1", "paid"),
            ),
            Claude.body(
                Claude.user(ASK),
                Claude.call("toolu_1", order("4712")),
                Claude.result("toolu_1", "paid"),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            "message_edited",
            "messages[1].content[0].input.id",
        ),
        pair(
            Gemini,
            "an id in the arguments of a call is no call's id",
            Gemini.body(*asked("4711")),
            Gemini.body(*asked("4712"), Gemini.said(ANSWER), Gemini.user(THEN)),
            "message_edited",
            "contents[1].parts[0].functionCall.args.id",
        ),
        pair(
            Bedrock,
            "an id in the input of a call is no call's id",
            Bedrock.body(
                Bedrock.user(ASK),
                Bedrock.said(Bedrock.use("tooluse_1", {"toolUseId": "4711"})),
                Bedrock.user(Bedrock.found("tooluse_1", "paid")),
            ),
            Bedrock.body(
                Bedrock.user(ASK),
                Bedrock.said(Bedrock.use("tooluse_1", {"toolUseId": "4712"})),
                Bedrock.user(Bedrock.found("tooluse_1", "paid")),
                *(Bedrock.said(ANSWER), Bedrock.user(THEN)),
            ),
            "message_edited",
            "messages[1].content[0].toolUse.input.toolUseId",
        ),
        pair(
            Chat,
            "an id in the arguments of a call is no call's id",
            Chat.body(
                Chat.user(ASK),
                Chat.call("call_1", order("4711")),
                Chat.result("call_1", "paid"),
            ),
            Chat.body(
                Chat.user(ASK),
                Chat.call("call_1", order("4712")),
                Chat.result("call_1", "paid"),
                *(Chat.said(ANSWER), Chat.user(THEN)),
            ),
            "message_edited",
            "messages[2].tool_calls[0].function.arguments",
        ),
    ]


def of_images() -> list[Json]:
    """Return pairs with other images."""

    def picture(detail: str) -> list[Json]:
        url = "https://example.org/map.png"
        return [
            {"type": "text", "text": ASK},
            {"type": "image_url", "image_url": {"url": url, "detail": detail}},
        ]

    def item(data: str) -> list[Json]:
        return [
            {"type": "input_text", "text": ASK},
            {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
        ]

    audio = {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}
    other_audio = {"inlineData": {"mimeType": "audio/wav", "data": "UklGRi=="}}
    return [
        pair(
            Chat,
            "another detail of the same image",
            Chat.body(Chat.user(picture("high"))),
            Chat.body(Chat.user(picture("low")), Chat.said(ANSWER), Chat.user(THEN)),
            "image_changed",
            "messages[1].content[1].image_url.detail",
        ),
        pair(
            Responses,
            "an image is rendered once more",
            Responses.body(Responses.user(item(PIXEL))),
            Responses.body(Responses.user(item(OTHER_PIXEL)), Responses.said(ANSWER)),
            "image_changed",
            "input[0].content[1].image_url",
        ),
        pair(
            Bedrock,
            "an image is rendered once more",
            Bedrock.body(Bedrock.user(ASK, Bedrock.image(PIXEL))),
            Bedrock.body(
                Bedrock.user(ASK, Bedrock.image(OTHER_PIXEL)), Bedrock.said(ANSWER)
            ),
            "image_changed",
            "messages[0].content[1].image.source.bytes",
        ),
        pair(
            Bedrock,
            "an image is left out",
            Bedrock.body(Bedrock.user(ASK, Bedrock.image(PIXEL))),
            Bedrock.body(Bedrock.user(ASK), Bedrock.said(ANSWER)),
            "image_changed",
            "messages[0].content[1]",
        ),
        pair(
            Claude,
            "an image behind the only text is left out",
            Claude.body(Claude.user(Claude.text(ASK), Claude.image(PIXEL))),
            Claude.body(Claude.user(Claude.text(ASK)), Claude.said(ANSWER)),
            "image_changed",
            "messages[0].content[1]",
        ),
        pair(
            Claude,
            "an image comes behind the only text",
            Claude.body(Claude.user(Claude.text(ASK))),
            Claude.body(
                Claude.user(Claude.text(ASK), Claude.image(PIXEL)), Claude.said(ANSWER)
            ),
            "image_changed",
            "messages[0].content[1]",
        ),
        pair(
            Claude,
            "an image in a result is rendered once more",
            Claude.body(
                Claude.user(ASK),
                Claude.call("toolu_1", ROUTE),
                Claude.user(
                    {
                        **Claude.found("toolu_1", ""),
                        "content": [Claude.text("map"), Claude.image(PIXEL)],
                    }
                ),
            ),
            Claude.body(
                Claude.user(ASK),
                Claude.call("toolu_1", ROUTE),
                Claude.user(
                    {
                        **Claude.found("toolu_1", ""),
                        "content": [Claude.text("map"), Claude.image(OTHER_PIXEL)],
                    }
                ),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            "image_changed",
            "messages[2].content[0].content[1].source.data",
        ),
        pair(
            Gemini,
            "another recording: no image",
            Gemini.body(Gemini.user(ASK, audio)),
            Gemini.body(Gemini.user(ASK, other_audio), Gemini.said(ANSWER)),
            "message_edited",
            "contents[0].parts[1].inlineData.data",
        ),
        pair(
            Chat,
            "the text in front of an image is edited: the text comes first",
            Chat.body(Chat.user(picture("high"))),
            Chat.body(
                Chat.user([{"type": "text", "text": THEN}, *picture("low")[1:]]),
                Chat.said(ANSWER),
            ),
            "message_edited",
            "messages[1].content[0].text",
        ),
    ]


def of_reasoning() -> list[Json]:
    """Return pairs in which reasoning goes, or changes."""

    def signed(**fields: str) -> list[Json]:
        return [
            Gemini.user(ASK),
            Gemini.said({**Gemini.use(ROUTE), **fields}),
            Gemini.user(Gemini.found({"trains": 2})),
        ]

    def thought(*parts: Json) -> list[Json]:
        return [
            Claude.user(ASK),
            Claude.said(*parts, Claude.use("toolu_1", ROUTE)),
            Claude.result("toolu_1", "2 trains"),
        ]

    looked = Claude.text("I look it up.")
    return [
        pair(
            Gemini,
            "the signature of a thought is not sent back",
            Gemini.body(*signed(thoughtSignature="CsYBAXLI2n")),
            Gemini.body(*signed(), Gemini.said(ANSWER), Gemini.user(THEN)),
            "reasoning_dropped",
            "contents[1].parts[0].thoughtSignature",
        ),
        pair(
            Bedrock,
            "reasoning at the end of an answer is not sent back",
            Bedrock.body(
                Bedrock.user(ASK),
                Bedrock.said(ANSWER, Bedrock.thinking()),
                Bedrock.user(THEN),
            ),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
                *(Bedrock.said(NIGHT), Bedrock.user(LAST)),
            ),
            "reasoning_dropped",
            "messages[1].content[1]",
        ),
        pair(
            Bedrock,
            "reasoning in front of a call is not sent back",
            Bedrock.body(
                Bedrock.user(ASK),
                Bedrock.said(Bedrock.thinking(), Bedrock.use("tooluse_1", ROUTE)),
                Bedrock.user(Bedrock.found("tooluse_1", "2 trains")),
            ),
            Bedrock.body(
                Bedrock.user(ASK),
                Bedrock.said(Bedrock.use("tooluse_1", ROUTE)),
                Bedrock.user(Bedrock.found("tooluse_1", "2 trains")),
                *(Bedrock.said(ANSWER), Bedrock.user(THEN)),
            ),
            "reasoning_dropped",
            "messages[1].content[0].toolUse",
        ),
        pair(
            Claude,
            "redacted thinking is not sent back",
            Claude.body(
                *thought({"type": "redacted_thinking", "data": "EmwKAhgB"}, looked)
            ),
            Claude.body(*thought(looked), Claude.said(ANSWER), Claude.user(THEN)),
            "reasoning_dropped",
            "messages[1].content[0].type",
        ),
        pair(
            Claude,
            "thinking in front of the only text is not sent back",
            Claude.body(
                Claude.user(ASK),
                Claude.said(Claude.thinking(), Claude.text(ANSWER)),
                Claude.user(THEN),
            ),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                *(Claude.said(NIGHT), Claude.user(LAST)),
            ),
            "reasoning_dropped",
            "messages[1].content",
        ),
        pair(
            Claude,
            "other thinking: not dropped",
            Claude.body(*thought(Claude.thinking(), looked)),
            Claude.body(
                *thought(Claude.thinking("Look at night trains.", "EpIBCkYI"), looked),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
            "message_edited",
            "messages[1].content[0].thinking",
        ),
        pair(
            Claude,
            "thinking is dropped and the text edited: not dropped alone",
            Claude.body(*thought(Claude.thinking(), looked)),
            Claude.body(*thought(Claude.text("One moment.")), Claude.said(ANSWER)),
            "message_edited",
            "messages[1].content[0].type",
        ),
        pair(
            Chat,
            "reasoning comes where there was none: not dropped",
            Chat.body(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
            Chat.body(
                Chat.user(ASK),
                Chat.said(ANSWER, reasoning_content=THOUGHT),
                *(Chat.user(THEN), Chat.said(NIGHT), Chat.user(LAST)),
            ),
            "message_edited",
            "messages[2].reasoning_content",
        ),
        pair(
            Responses,
            "a reasoning item and a call are gone: not reasoning alone",
            Responses.body(
                *(Responses.user(ASK), Responses.reasoning()),
                Responses.call("call_1", ROUTE),
                *(Responses.result("call_1", "2"), Responses.user(THEN)),
            ),
            Responses.body(
                Responses.user(ASK), Responses.user(THEN), Responses.said(NIGHT)
            ),
            "message_removed",
            "input[1]",
        ),
    ]


# No difference ------------------------------------------------------------------------


def of_marks() -> list[Json]:
    """Return pairs in which nothing but cache marks moves, comes or goes."""

    def part(text: str, **mark: Any) -> Json:
        return Chat.user([{"type": "text", "text": text, **mark}])

    def item(text: str, **mark: Any) -> Json:
        return Responses.user([{"type": "input_text", "text": text, **mark}])

    marked_book = {**Claude.tool(BOOK), **MARK}
    return [
        pair(
            Claude,
            "the mark moves on, and a string takes the place of a marked block",
            Claude.body(Claude.user(Claude.text(ASK, **MARK))),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER)),
                Claude.user(Claude.text(THEN, **MARK)),
            ),
        ),
        pair(
            Claude,
            "a marked block takes the place of a string",
            Claude.body(Claude.user(ASK)),
            Claude.body(
                Claude.user(Claude.text(ASK, **MARK)),
                *(Claude.said(ANSWER), Claude.user(THEN)),
            ),
        ),
        pair(
            Claude,
            "the system prompt and the last tool are marked from now on",
            Claude.body(Claude.user(ASK)),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                system=[Claude.text(SYSTEM, **MARK)],
                tools=(FIND, marked_book),
            ),
        ),
        pair(
            Claude,
            "the mark on a result moves on",
            Claude.body(
                Claude.user(ASK),
                Claude.call("toolu_1", ROUTE),
                Claude.result("toolu_1", "2 trains", **MARK),
            ),
            Claude.body(
                Claude.user(ASK),
                Claude.call("toolu_1", ROUTE),
                Claude.result("toolu_1", "2 trains"),
                *(Claude.said(ANSWER), Claude.user(Claude.text(THEN, **MARK))),
            ),
        ),
        pair(
            Claude,
            "the API sets the marks from now on, for one hour",
            Claude.body(Claude.user(ASK)),
            Claude.body(
                *(Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)),
                cache_control={"type": "ephemeral", "ttl": "1h"},
            ),
        ),
        pair(
            Bedrock,
            "the mark behind the last message moves on",
            Bedrock.body(Bedrock.user(ASK, POINT)),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN, POINT))
            ),
        ),
        pair(
            Bedrock,
            "marks behind the system prompt and the tools",
            Bedrock.body(Bedrock.user(ASK)),
            Bedrock.body(
                *(Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)),
                system=[{"text": SYSTEM}, POINT],
                tools=(FIND, BOOK, POINT),
            ),
        ),
        pair(
            Chat,
            "an explicit breakpoint moves on",
            Chat.body(part(ASK, **BREAKPOINT)),
            Chat.body(part(ASK), Chat.said(ANSWER), part(THEN, **BREAKPOINT)),
        ),
        pair(
            Chat,
            "a mark of Anthropic's, through a gateway, moves on",
            Chat.body(part(ASK, **MARK), model="anthropic/claude-opus-5"),
            Chat.body(
                *(part(ASK), Chat.said(ANSWER), part(THEN, **MARK)),
                model="anthropic/claude-opus-5",
            ),
        ),
        pair(
            Responses,
            "an explicit breakpoint moves on",
            Responses.body(item(ASK, **BREAKPOINT)),
            Responses.body(item(ASK), Responses.said(ANSWER), item(THEN, **BREAKPOINT)),
        ),
    ]


def of_what_is_not_rendered() -> list[Json]:
    """Return pairs with other metadata, limits, sampling, and defaults written out."""
    chat = [Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)]
    claude = [Claude.user(ASK), Claude.said(ANSWER), Claude.user(THEN)]
    gemini = [Gemini.user(ASK), Gemini.said(ANSWER), Gemini.user(THEN)]
    bedrock = [Bedrock.user(ASK), Bedrock.said(ANSWER), Bedrock.user(THEN)]
    items = [Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)]
    turned_chat = Chat.body(*chat)
    turned_claude = Claude.body(*claude)
    turned_bedrock = Bedrock.body(*bedrock)
    return [
        pair(
            Chat,
            "the same request once more",
            Chat.body(*chat),
            Chat.body(*chat),
        ),
        pair(
            Chat,
            "another limit, sampling and way of sending",
            Chat.body(*chat[:1], max_completion_tokens=512, temperature=0.2, seed=1),
            Chat.body(
                *chat,
                max_completion_tokens=4096,
                temperature=1,
                top_p=0.9,
                stream=True,
                stream_options={"include_usage": True},
            ),
        ),
        pair(
            Chat,
            "other metadata",
            Chat.body(*chat[:1], metadata={"turn": "1"}, user="u-1", store=False),
            Chat.body(*chat, metadata={"turn": "2"}, user="u-2", store=True),
        ),
        pair(
            Chat,
            "top-level fields in another order",
            Chat.body(*chat[:1]),
            dict([*turned_chat.items()][::-1]),
        ),
        pair(
            Chat,
            "the fields of a message in another order",
            Chat.body(*chat[:1]),
            Chat.body({"content": ASK, "role": "user"}, *chat[1:]),
        ),
        pair(
            Chat,
            "tools are held back",
            Chat.body(*chat[:1], tool_choice="auto"),
            Chat.body(*chat, tool_choice="none"),
        ),
        pair(
            Responses,
            "some tools are held back",
            Responses.body(*items[:1]),
            Responses.body(
                *items,
                tool_choice={
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "find_trains"}],
                },
            ),
        ),
        pair(
            Chat,
            "defaults are written out",
            Chat.body(*chat[:1]),
            Chat.body(
                *chat,
                tool_choice="auto",
                parallel_tool_calls=True,
                response_format={"type": "text"},
                verbosity="medium",
            ),
        ),
        pair(
            Responses,
            "defaults are written out",
            Responses.body(*items[:1]),
            Responses.body(
                *items,
                tool_choice="auto",
                parallel_tool_calls=True,
                truncation="disabled",
                text={"format": {"type": "text"}, "verbosity": "medium"},
            ),
        ),
        pair(
            Responses,
            "another limit, metadata and kind of summary",
            Responses.body(
                *items[:1],
                max_output_tokens=512,
                reasoning={"effort": "low", "summary": "auto"},
            ),
            Responses.body(
                *items,
                max_output_tokens=4096,
                metadata={"turn": "2"},
                reasoning={"effort": "low", "summary": "detailed"},
            ),
        ),
        pair(
            Responses,
            "a text is the user's only message",
            {**Responses.body(), "input": ASK},
            Responses.body(*items),
        ),
        pair(
            Claude,
            "another limit, sampling, metadata and way of sending",
            Claude.body(*claude[:1], temperature=0.5, metadata={"user_id": "a"}),
            Claude.body(
                *claude,
                max_tokens=8192,
                temperature=1.0,
                stop_sequences=["###"],
                stream=True,
                metadata={"user_id": "b"},
            ),
        ),
        pair(
            Claude,
            "top-level fields in another order",
            Claude.body(*claude[:1]),
            dict([*turned_claude.items()][::-1]),
        ),
        pair(
            Claude,
            "defaults are written out",
            Claude.body(*claude[:1]),
            Claude.body(
                *claude,
                tool_choice={"type": "auto"},
                output_config={"effort": "high"},
                speed="standard",
            ),
        ),
        pair(
            Claude,
            "a text as a string and as the only block are one",
            Claude.body(*claude[:1]),
            Claude.body(Claude.user(Claude.text(ASK)), *claude[1:]),
        ),
        pair(
            Gemini,
            "another limit, sampling, labels and settings of safety",
            Gemini.body(*gemini[:1]),
            Gemini.body(
                *gemini,
                generationConfig={"maxOutputTokens": 8192, "temperature": 0.1},
                labels={"turn": "2"},
                safetySettings=[
                    {
                        "category": "HARM_CATEGORY_HARASSMENT",
                        "threshold": "BLOCK_ONLY_HIGH",
                    }
                ],
            ),
        ),
        pair(
            Gemini,
            "defaults are written out",
            Gemini.body(*gemini[:1]),
            Gemini.body(
                *gemini,
                generationConfig={
                    "maxOutputTokens": 2048,
                    "responseMimeType": "text/plain",
                    "responseModalities": ["TEXT"],
                },
                toolConfig={"functionCallingConfig": {"mode": "AUTO"}},
            ),
        ),
        pair(
            Gemini,
            "a content without a role is the user's",
            Gemini.body({"parts": [{"text": ASK}]}),
            Gemini.body(*gemini),
        ),
        pair(
            Bedrock,
            "another limit, sampling and metadata",
            Bedrock.body(*bedrock[:1]),
            Bedrock.body(
                *bedrock,
                inferenceConfig={"maxTokens": 8192, "temperature": 0.1},
                requestMetadata={"turn": "2"},
                performanceConfig={"latency": "optimized"},
            ),
        ),
        pair(
            Bedrock,
            "top-level fields in another order, and a default written out",
            Bedrock.body(*bedrock[:1], choice={"auto": {}}),
            dict([*turned_bedrock.items()][::-1]),
        ),
    ]


# Forms that some providers read alike -------------------------------------------------


def of_alike_forms() -> list[Json]:
    """Return pairs that are a break or none, depending on the provider."""
    as_part = Chat.user([{"type": "text", "text": ASK}])
    verdicts = {
        "anthropic": expect_form("hit", "appended"),
        "openai": expect_form("unknown", "form_only"),
        "openai-5.5": expect_form("unknown", "form_only"),
        "deepseek": expect_form("unknown", "form_only"),
        "vllm": expect_form("unknown", "form_only"),
        "sglang": expect_form("unknown", "form_only"),
    }
    items = [Responses.user(ASK), Responses.said(ANSWER), Responses.user(THEN)]
    return [
        pair(
            Chat,
            "the only text part takes the place of a string",
            Chat.body(Chat.user(ASK), model="anthropic/claude-opus-5"),
            Chat.body(
                *(as_part, Chat.said(ANSWER), Chat.user(THEN)),
                model="anthropic/claude-opus-5",
            ),
            "message_edited",
            "messages[1].content",
            verdicts=verdicts,
        ),
        pair(
            Chat,
            "a string takes the place of the only text part",
            Chat.body(as_part, model="anthropic/claude-opus-5"),
            Chat.body(
                *(Chat.user(ASK), Chat.said(ANSWER), Chat.user(THEN)),
                model="anthropic/claude-opus-5",
            ),
            "message_edited",
            "messages[1].content",
            verdicts=verdicts,
        ),
        pair(
            Responses,
            "the only text part takes the place of a string",
            Responses.body(*items[:1]),
            Responses.body(
                Responses.user([{"type": "input_text", "text": ASK}]), *items[1:]
            ),
            "message_edited",
            "input[0].content",
            verdicts={
                "openai": expect_form("unknown", "form_only"),
                "openai-5.5": expect_form("unknown", "form_only"),
            },
        ),
        pair(
            Chat,
            "the only text part takes the place of a string, and another word in it",
            Chat.body(Chat.user(ASK)),
            Chat.body(
                Chat.user([{"type": "text", "text": ASK.replace("Graz", "Linz")}]),
                Chat.said(ANSWER),
            ),
            "message_edited",
            "messages[1].content",
            verdicts={"deepseek": expect("unknown", "unit_incomplete")},
        ),
    ]


def pairs() -> list[Json]:
    """Return everything that the file holds."""
    return [
        *reports_1_to_6(),
        *reports_7_to_11(),
        *reports_12_to_18(),
        *report_19(),
        *reports_20_to_22(),
        *report_23(),
        *of_header(),
        *of_tools(),
        *of_history(),
        *of_forms(),
        *of_ids(),
        *of_images(),
        *of_reasoning(),
        *of_marks(),
        *of_what_is_not_rendered(),
        *of_alike_forms(),
    ]


def text(made: Sequence[Json]) -> str:
    """Return the file: JSON with a line for each field of a pair."""
    blocks = [
        ",\n".join(f"  {json.dumps(name)}: {json.dumps(one[name])}" for name in one)
        for one in made
    ]
    return "[\n" + ",\n".join(f" {{\n{block}\n }}" for block in blocks) + "\n]\n"


if __name__ == "__main__":
    PATH.write_text(text(pairs()), encoding="ascii")
