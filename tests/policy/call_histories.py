"""Histories with calls and results in every shape, written as steps."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise, permutations
from typing import Any, Literal, NamedTuple, TypeAlias

from hypothesis import strategies as st

from raf_session.messages import ChatMessage

Wire: TypeAlias = dict[str, Any]


class Form(Enum):
    """How a history writes calls and results."""

    OPENAI = "openai"
    FUNCTION = "function"
    ANTHROPIC = "anthropic"
    BEDROCK = "bedrock"
    GEMINI = "gemini"
    GEMINI_SNAKE = "gemini_snake"
    GEMINI_NAMED = "gemini_named"
    GEMINI_PARTS = "gemini_parts"
    RESPONSES = "responses"


NAMED = frozenset((Form.FUNCTION, Form.GEMINI_NAMED))
"""They tie results to calls by name."""
ONE_BY_ONE = frozenset((Form.OPENAI, Form.FUNCTION))
"""Each result is a message of its own, and says nothing else."""


class Step(NamedTuple):
    """One event."""

    kind: Literal[
        "user", "assistant", "system", "thought", "silence", "call", "result", "state"
    ]
    ids: tuple[str, ...] = ()
    also_says: bool = False
    """Whether a message with results holds text behind them."""
    flawed: bool = False
    """Whether a user says nothing, or what the assistant thinks is not signed."""


def user() -> Step:
    return Step("user")


def assistant() -> Step:
    return Step("assistant")


def system() -> Step:
    return Step("system")


def call(*ids: str) -> Step:
    return Step("call", ids)


def result(*ids: str, also_says: bool = False) -> Step:
    return Step("result", ids, also_says)


THOUGHT = Step("thought")
SILENCE = Step("silence")
"""The assistant says nothing at all."""
STATE = Step("state")
BLANK_TURN = Step("user", flawed=True)
UNSIGNED = Step("thought", flawed=True)
SAID_UNSIGNED = Step("assistant", flawed=True)


# Steps as messages ----------------------------------------------------------------


def messages(
    steps: Sequence[Step], form: Form = Form.OPENAI
) -> list[ChatMessage | None]:
    """Return one message for each step; each says what no other does."""
    return [message(step, index, form) for index, step in enumerate(steps)]


def message(step: Step, index: int, form: Form = Form.OPENAI) -> ChatMessage | None:
    if step.kind == "state":
        return None
    if step.kind == "call":
        return ChatMessage.from_openai(_call(step.ids, form))
    if step.kind == "result":
        return ChatMessage.from_openai(_result(step, index, form))
    if step.flawed:
        return ChatMessage.from_openai(_flawed(step, index))
    if step.kind == "thought":
        return ChatMessage.from_openai(_thought(said(index), form))
    if step.kind == "silence":
        return ChatMessage.from_openai({"role": "assistant", "content": " "})
    return ChatMessage.from_openai({"role": step.kind, "content": said(index)})


def _flawed(step: Step, index: int) -> Wire:
    if step.kind == "user":
        return {"role": "user", "content": "\n" if index % 2 else []}
    parts: list[Wire] = [{"type": "thinking", "thinking": "so", "signature": ""}]
    if step.kind == "assistant":
        parts.append({"type": "text", "text": said(index)})
    return {"role": "assistant", "content": parts}


def said(index: int) -> str:
    return f"said at {index}"


def told(index: int, ident: str) -> str:
    """Return what the result of this call says there."""
    return f"{ident} gave {index}"


def _thought(text: str, form: Form) -> Wire:
    if form is Form.OPENAI:
        return {"role": "assistant", "content": None, "reasoning_content": text}
    if form is Form.RESPONSES:
        summary = [{"type": "summary_text", "text": text}]
        return {"role": "assistant", "type": "reasoning", "summary": summary}
    if form is Form.ANTHROPIC:
        part: Wire = {"type": "thinking", "thinking": text, "signature": "s"}
    elif form.value.startswith("gemini"):
        part = {"text": text, "thought": True}
    else:
        part = {"type": "reasoning", "text": text}
    return _with_parts("assistant", [part], form)


def _call(ids: Sequence[str], form: Form) -> Wire:
    if form is Form.OPENAI:
        calls = [
            {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}}
            for i in ids
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if form is Form.FUNCTION:
        function = {"name": ids[0], "arguments": "{}"}
        return {"role": "assistant", "content": None, "function_call": function}
    return _with_parts("assistant", [_call_part(i, form) for i in ids], form)


def _result(step: Step, index: int, form: Form) -> Wire:
    if form in ONE_BY_ONE:
        assert len(step.ids) == 1
        assert not step.also_says
        text = told(index, step.ids[0])
        if form is Form.OPENAI:
            return {"role": "tool", "tool_call_id": step.ids[0], "content": text}
        return {"role": "function", "name": step.ids[0], "content": text}
    parts = [_result_part(i, told(index, i), form) for i in step.ids]
    if step.also_says:
        gemini = form.value.startswith("gemini")
        kind = {} if gemini or form is Form.BEDROCK else {"type": "text"}
        parts.append({**kind, "text": said(index)})
    return _with_parts("user", parts, form)


def _with_parts(role: str, parts: list[Wire], form: Form) -> Wire:
    return {"role": role, "parts" if form is Form.GEMINI_PARTS else "content": parts}


def _call_part(ident: str, form: Form) -> Wire:
    if form is Form.ANTHROPIC:
        return {"type": "tool_use", "id": ident, "name": "f", "input": {}}
    if form is Form.BEDROCK:
        return {"toolUse": {"toolUseId": ident, "name": "f", "input": {}}}
    if form is Form.RESPONSES:
        return {"type": "function_call", "call_id": ident, "name": "f"}
    if form is Form.GEMINI_NAMED:
        return {"functionCall": {"name": ident, "args": {}}}
    name = "function_call" if form is Form.GEMINI_SNAKE else "functionCall"
    return {name: {"id": ident, "name": "f", "args": {}}}


def _result_part(ident: str, text: str, form: Form) -> Wire:
    if form is Form.ANTHROPIC:
        return {"type": "tool_result", "tool_use_id": ident, "content": text}
    if form is Form.BEDROCK:
        return {"toolResult": {"toolUseId": ident, "content": [{"text": text}]}}
    if form is Form.RESPONSES:
        return {"type": "function_call_output", "call_id": ident, "output": text}
    if form is Form.GEMINI_NAMED:
        return {"functionResponse": {"name": ident, "response": {"output": text}}}
    name = "function_response" if form is Form.GEMINI_SNAKE else "functionResponse"
    return {name: {"id": ident, "name": "f", "response": {"output": text}}}


# Strategies -----------------------------------------------------------------------

IDS = ("c0", "c1", "c2", "c3")


def steps(form: Form, *, max_size: int = 14) -> st.SearchStrategy[list[Step]]:
    """Draw any steps that this form can write, few ids in them again and again."""
    return st.lists(st.one_of(*map(st.sampled_from, _kinds(form))), max_size=max_size)


def _kinds(form: Form) -> list[list[Step]]:
    """Return the steps of each kind, results twice as likely as others."""
    plain = [user(), assistant(), system(), STATE, THOUGHT, THOUGHT, SILENCE]
    plain += [BLANK_TURN, UNSIGNED, SAID_UNSIGNED]
    several = [ids for n in (1, 2, 3) for ids in permutations(IDS, n)]
    one = several[: len(IDS)]
    calls = [call(*ids) for ids in (one if form is Form.FUNCTION else several)]
    results = [result(*ids) for ids in (one if form in ONE_BY_ONE else several)]
    if form not in ONE_BY_ONE:
        results += [step._replace(also_says=True) for step in results]
    return [plain, calls, results, results]


_STEPS = {form: steps(form) for form in Form}


class History(NamedTuple):
    """Steps, and how they are written."""

    form: Form
    steps: list[Step]
    long_running: frozenset[str] = frozenset()
    thinks: Form | None = None
    """How it writes thoughts, if not as the rest."""
    answers: Form | None = None
    """How it writes every other message with results, if not as the rest."""

    @property
    def named(self) -> bool:
        return self.form in NAMED

    @property
    def messages(self) -> list[ChatMessage | None]:
        return [
            message(step, index, self._form_of(step, index))
            for index, step in enumerate(self.steps)
        ]

    def _form_of(self, step: Step, index: int) -> Form:
        form = None
        if step.kind == "thought":
            form = self.thinks
        elif step.kind == "result" and index % 2:
            alone = len(step.ids) == 1 and not step.also_says
            form = self.answers if alone or self.answers not in ONE_BY_ONE else None
        return form or self.form


WITH_IDS = [form for form in Form if form not in NAMED]
LONG_RUNNING = st.frozensets(st.sampled_from(IDS), max_size=2)


@st.composite
def histories(draw: st.DrawFn, forms: Sequence[Form] = tuple(Form)) -> History:
    """Draw a history in one form; thoughts and results may have others."""
    form = draw(st.sampled_from(forms))
    thinks = draw(st.none() | st.sampled_from(Form))
    others = [] if form in NAMED else WITH_IDS
    answers = draw(st.sampled_from([None, *others]))
    return History(form, draw(_STEPS[form]), draw(LONG_RUNNING), thinks, answers)


# Which result belongs to which call, looked up one by one -------------------------


class Link(NamedTuple):
    """A result, the message with its call if any, and whether it is interim."""

    place: int
    ident: str
    call: int | None
    interim: bool


def links(history: History) -> list[Link]:
    """Return what `find_groups` is to find, by looking back from each result."""
    found: list[Link] = []
    for place, step in enumerate(history.steps):
        if step.kind == "result":
            found += [_link(history, found, place, ident) for ident in step.ids]
    return found


def _link(history: History, found: list[Link], place: int, ident: str) -> Link:
    same = [link for link in found if link.ident == ident]
    calls = [
        before
        for before, step in enumerate(history.steps[:place])
        if step.kind == "call" and ident in step.ids
    ]
    closed = {link.call for link in same if not link.interim}
    waiting = [before for before in calls if before not in closed]
    if not calls:
        return Link(place, ident, None, interim=False)
    call = (waiting or calls)[-1]
    interim = (
        not history.named
        and call in waiting
        and ident in history.long_running
        and all(link.call != call for link in same)
        and _directly_behind(history.steps[call + 1 : place])
    )
    return Link(place, ident, call, interim)


def _directly_behind(between: Sequence[Step]) -> bool:
    return all(step.kind == "state" or _only_results(step) for step in between)


def linked(history: History) -> list[set[int]]:
    """Return each message that says nothing with the assistant's next, if any."""
    spoken = [
        i
        for i, step in enumerate(history.steps)
        if step.kind != "state" and not _only_results(step)
    ]
    return [
        {one, other}
        for one, other in pairwise(spoken)
        if is_silent(history.steps[one]) and _assistants(history, other)
    ]


def _assistants(history: History, index: int) -> bool:
    rest = [
        step
        for step in history.steps[index:]
        if step.kind != "state" and not _only_results(step)
    ]
    kind = next((step.kind for step in rest if not is_silent(step)), "state")
    return kind in {"assistant", "call"}


def is_silent(step: Step) -> bool:
    return step.kind in {"thought", "silence"}


def led_to(history: History, index: int) -> int | None:
    """Return the message that a thought led to, results in other places aside."""
    for place in range(index + 1, len(history.steps)):
        step = history.steps[place]
        if step.kind in {"assistant", "call"}:
            return place
        if not (step.kind == "state" or is_silent(step) or _only_results(step)):
            return None
    return None


def _only_results(step: Step) -> bool:
    return step.kind == "result" and not step.also_says
