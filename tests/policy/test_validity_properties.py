"""The three validators agree on conversations that are valid by construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from validity_inputs import (
    Validator,
    Wire,
    asks,
    assistant,
    broken,
    call,
    function_call,
    function_response,
    gives,
    parts,
    sequence,
    system,
    text,
    thinks,
    tool,
    user,
    uses,
)

from raf_session.messages import ChatMessage, MessageRole
from raf_session.validity import (
    Rule,
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

VALIDATORS: list[Validator] = [
    openai_violations,
    anthropic_violations,
    gemini_violations,
]
WORDS = st.text(max_size=12).map(str.strip).filter(bool)


TYPED: dict[str, tuple[Callable[[str], Wire], Callable[[str], Wire]]] = {
    "anthropic": (uses, gives),
    "bedrock": (
        lambda i: {"toolUse": {"toolUseId": i, "name": "look", "input": {}}},
        lambda i: {"toolResult": {"toolUseId": i, "content": [{"text": "done"}]}},
    ),
    "responses": (
        lambda i: {"type": "function_call", "call_id": i, "name": "look"},
        lambda i: {"type": "function_call_output", "call_id": i, "output": "done"},
    ),
}
"""How calls and results that are parts with ids are written."""
SHAPES = ("openai", "gemini", "gemini parts", *TYPED)


class Step(NamedTuple):
    """An assistant's calls and their results, by number."""

    shape: str
    words: str | None
    calls: tuple[int, ...]
    results: tuple[int, ...]

    def asking(self) -> list[Wire]:
        words = [] if self.words is None else [self.words]
        if not self.calls:
            return [assistant(word) for word in words]
        if self.shape == "openai":
            return [asks(*map(named, self.calls), content=self.words)]
        if self.shape in TYPED:
            asking, _ = TYPED[self.shape]
            blocks = [asking(named(number)) for number in self.calls]
            return [parts("assistant", *map(text, words), *blocks)]
        blocks = [function_call(**of_gemini(number)) for number in self.calls]
        made = [*({"text": word} for word in words), *blocks]
        return [{"role": "assistant", self.container: made}]

    def answering(self, results: Sequence[int]) -> list[Wire]:
        if self.shape == "openai" or not results:
            return [tool(named(number)) for number in results]
        if self.shape in TYPED:
            _, giving = TYPED[self.shape]
            return [parts("user", *(giving(named(number)) for number in results))]
        blocks = [function_response(**of_gemini(number)) for number in results]
        return [{"role": "user", self.container: blocks}]

    @property
    def container(self) -> str:
        return "parts" if self.shape == "gemini parts" else "content"


class Turn(NamedTuple):
    """What the user says, what the assistant does, and its answer if it has one."""

    words: str
    steps: tuple[Step, ...]
    answer: str | None

    def messages(self, behind_user: Sequence[Wire] = ()) -> list[Wire]:
        made = [user(self.words), *behind_user]
        for step in self.steps:
            made += [*step.asking(), *step.answering(step.results)]
        return made if self.answer is None else [*made, assistant(self.answer)]


def named(number: int) -> str:
    return f"call_{number}"


def of_gemini(number: int) -> dict[str, Any]:
    """Every third call has no id, and two functions share the others."""
    fields = {"name": f"look_{number % 2}"}
    return fields if number % 3 == 0 else fields | {"id": named(number)}


@st.composite
def turns(draw: st.DrawFn, *, least: int = 1, steps: int = 0) -> list[Turn]:
    numbers = count()
    made = []
    for _ in range(draw(st.integers(least, least + 3))):
        done = []
        for _ in range(draw(st.integers(steps, 2))):
            calls = tuple(next(numbers) for _ in range(draw(st.integers(1, 3))))
            results = tuple(draw(st.permutations(calls)))
            shape = draw(st.sampled_from(SHAPES))
            words = draw(st.none() | WORDS)
            done.append(Step(shape, words, calls, results))
        made.append(Turn(draw(WORDS), tuple(done), draw(st.none() | WORDS)))
    return made


def rendered(conversation: Sequence[Turn], *, headed: bool = False) -> list[Wire]:
    made = [message for turn in conversation for message in turn.messages()]
    return [system(), *made] if headed else made


def with_step(
    conversation: Sequence[Turn], at: int, step: int, changed: Step
) -> list[Turn]:
    turn = conversation[at]
    steps = (*turn.steps[:step], changed, *turn.steps[step + 1 :])
    return [*conversation[:at], turn._replace(steps=steps), *conversation[at + 1 :]]


def without(numbers: tuple[int, ...], place: int) -> tuple[int, ...]:
    return numbers[:place] + numbers[place + 1 :]


@given(turns(), st.booleans())
def test_a_valid_conversation_is_taken(
    conversation: list[Turn],
    headed: bool,
) -> None:
    messages = sequence(rendered(conversation, headed=headed))
    for violations in VALIDATORS:
        assert violations(messages) == ()
        assert violations(messages, pending=True) == ()


@given(turns(least=2))
def test_a_valid_turn_behind_a_valid_conversation_leaves_it_valid(
    conversation: list[Turn],
) -> None:
    for size in range(1, len(conversation) + 1):
        messages = sequence(rendered(conversation[:size]))
        assert all(violations(messages) == () for violations in VALIDATORS)


@given(turns(steps=1), st.data())
def test_a_deleted_result_is_missed_where_its_call_stands(
    conversation: list[Turn],
    data: st.DataObject,
) -> None:
    at = data.draw(st.integers(0, len(conversation) - 1))
    number = data.draw(st.integers(0, len(conversation[at].steps) - 1))
    step = conversation[at].steps[number]
    place = data.draw(st.integers(0, len(step.results) - 1))
    changed = step._replace(results=without(step.results, place))
    messages = sequence(rendered(with_step(conversation, at, number, changed)))
    front = [*conversation[:at]]
    front.append(conversation[at]._replace(steps=conversation[at].steps[:number]))
    asked = len(rendered(front)) - (conversation[at].answer is not None)
    for violations in VALIDATORS:
        assert (Rule.MISSING_RESULT, asked) in broken(violations(messages))


@given(turns(steps=1), st.data())
def test_a_deleted_call_leaves_its_result_refused(
    conversation: list[Turn],
    data: st.DataObject,
) -> None:
    at = data.draw(st.integers(0, len(conversation) - 1))
    number = data.draw(st.integers(0, len(conversation[at].steps) - 1))
    step = conversation[at].steps[number]
    place = data.draw(st.integers(0, len(step.calls) - 1))
    changed = step._replace(calls=without(step.calls, place))
    messages = sequence(rendered(with_step(conversation, at, number, changed)))
    for violations in VALIDATORS:
        found = {rule for rule, _ in broken(violations(messages))}
        # A response without an id may take the call of another that has one.
        assert found & {Rule.RESULT_WITHOUT_CALL, Rule.DUPLICATE_RESULT}


@given(turns(least=2, steps=1), st.data())
def test_a_result_behind_a_later_user_turn_is_refused(
    conversation: list[Turn],
    data: st.DataObject,
) -> None:
    at = data.draw(st.integers(0, len(conversation) - 2))
    later = data.draw(st.integers(at + 1, len(conversation) - 1))
    number = data.draw(st.integers(0, len(conversation[at].steps) - 1))
    step = conversation[at].steps[number]
    place = data.draw(st.integers(0, len(step.results) - 1))
    changed = step._replace(results=without(step.results, place))
    messages: list[Wire] = []
    for index, turn in enumerate(with_step(conversation, at, number, changed)):
        moved = step.answering(step.results[place : place + 1])
        messages += turn.messages(moved if index == later else ())
    assert all(violations(sequence(messages)) for violations in VALIDATORS)


@given(turns(steps=1), st.data())
def test_calls_at_the_end_may_wait_only_where_they_are_pending(
    conversation: list[Turn],
    data: st.DataObject,
) -> None:
    last = conversation[-1]
    step = last.steps[-1]
    kept = data.draw(st.integers(0, len(step.results) - 1))
    waiting = step._replace(results=step.results[:kept])
    cut = last._replace(steps=(*last.steps[:-1], waiting), answer=None)
    messages = sequence(rendered([*conversation[:-1], cut]))
    over = sequence([*rendered([*conversation[:-1], cut]), user("never mind")])
    for violations in VALIDATORS:
        assert violations(messages, pending=True) == ()
        assert Rule.MISSING_RESULT in {v.rule for v in violations(messages)}
        assert violations(over, pending=True)


IDS = st.sampled_from(["a", "b", "", None, 7, "no such form"])
BLOCKS = st.one_of(
    st.builds(text, st.sampled_from(["", " ", "a", "a "])),
    st.builds(uses, IDS),
    st.builds(gives, IDS),
    st.sampled_from(
        [
            thinks(),
            thinks(signature=""),
            {"type": "redacted_thinking"},
            {"type": "reasoning", "text": "so"},
            {"type": "server_tool_use", "id": "s"},
            {"type": "web_search_tool_result", "tool_use_id": "s"},
            {"type": ["no", {"text": 1}]},
            {},
            {"text": "a", "thought": True},
            {"functionCall": None},
            function_call(),
            function_call(id="a"),
            function_response(),
            function_response(id="a"),
        ]
    ),
)
CONTENTS: st.SearchStrategy[Any] = st.sampled_from(
    ["", " ", "a ", "a", None, 7, ["a"], [], {}]
) | st.lists(BLOCKS, max_size=3)
ANY_MESSAGE: st.SearchStrategy[Wire] = st.fixed_dictionaries(
    {"role": st.sampled_from([role.value for role in MessageRole])},
    optional={
        "content": CONTENTS,
        "tool_calls": st.lists(st.builds(call, IDS), max_size=3)
        | st.sampled_from([None, 7, [{}], [{"function": {}}]]),
        "tool_call_id": IDS,
        "function_call": st.sampled_from([None, {"name": "look"}, {}]),
        "name": st.sampled_from(["look", None]),
        "refusal": st.sampled_from(["no", None]),
    },
)


@given(st.lists(ANY_MESSAGE, max_size=8), st.booleans())
def test_any_sequence_is_judged_and_each_fault_has_its_place(
    messages: list[Wire],
    pending: bool,
) -> None:
    for violations in VALIDATORS:
        found = violations(sequence(messages), pending=pending)
        places = [v.index for v in found if v.index is not None]
        assert places == sorted(places)
        assert all(0 <= place < len(messages) for place in places)
        whole = [v.index is None for v in found]
        assert whole == [v.rule is Rule.EMPTY_REQUEST for v in found]


@given(st.lists(ANY_MESSAGE, max_size=6), turns())
def test_no_later_turn_makes_up_for_a_fault(
    messages: list[Wire],
    conversation: list[Turn],
) -> None:
    of_the_end = {Rule.TRAILING_WHITESPACE, Rule.EMPTY_REQUEST}
    longer = sequence([*messages, *rendered(conversation)])
    for violations in VALIDATORS:
        before = {v for v in violations(sequence(messages)) if v.rule not in of_the_end}
        assert before <= set(violations(longer))


def test_messages_are_read_once_and_from_any_iterable() -> None:
    messages: list[ChatMessage] = sequence([user(), asks("c1"), tool("c1")])
    for violations in VALIDATORS:
        assert violations(iter(messages)) == ()
