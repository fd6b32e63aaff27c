"""`ExtractiveSummarizer`: bounded, deterministic, and what goes and what stays."""
# ruff: noqa: RUF001  (Chinese punctuation is meant)

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.conformance.strategies import hostile_text, messages
from raf_session.messages import ChatMessage
from raf_session.summarizers import ExtractiveSummarizer, Summarizer

pytestmark = pytest.mark.anyio

USER = ChatMessage.user
ASSISTANT = ChatMessage.assistant


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def summary(
    *some: ChatMessage, previous: str | None = None, max_chars: int = 2000
) -> str:
    summarizer: Summarizer = ExtractiveSummarizer(max_chars)
    return await summarizer.summarize(some, previous)


@given(
    st.lists(messages(), min_size=1, max_size=2),
    st.one_of(st.none(), hostile_text()),
    st.integers(80, 400),
)
async def test_any_summary_is_bounded_and_not_blank(
    some: list[ChatMessage], previous: str | None, max_chars: int
) -> None:
    text = await summary(*some, previous=previous, max_chars=max_chars)
    assert 0 < len(text) <= max_chars
    assert text == text.strip()
    text.encode()


async def test_the_same_messages_give_the_same_summary() -> None:
    talk = [FACT, ASSISTANT("I have booked room 12."), USER("My budget is 900.")] * 3
    first = await summary(*talk, previous="- They like tea.")
    assert await summary(*talk, previous="- They like tea.") == first


SENTENCES = st.sampled_from(
    (
        "I never eat nuts, please remember that.",
        "We decided on the green tiles for bathroom 4.",
        "Sure, happy to help!",
        "In general, tiles are made of clay.",
        "我们决定用绿色的瓷砖。",
        "一般来说，瓷砖是黏土做的。",
        "word " * 100,
        "字" * 300,
    )
)


@given(st.lists(SENTENCES, min_size=1, max_size=4), st.sampled_from((100, 500, 5000)))
async def test_what_is_not_tiny_gets_shorter(texts: list[str], max_chars: int) -> None:
    former, length = None, 0
    for text in texts:
        length += len(text)
        now = await summary(USER(text), previous=former, max_chars=max_chars)
        if len(former or "") + len(text) >= 200:
            assert len(now) < len(former or "") + len(text)
        former = now
    if length >= 200:
        assert len(await summary(*map(USER, texts), max_chars=max_chars)) < length


async def test_statements_that_all_matter_get_shorter_too() -> None:
    rules = [f"Shop {number} must not spend over {number}00 euros." for number in "456"]
    towns = ("Ghent", "Turku", "Lyon", "Bari")
    rules += [f"We decided to open a branch in {town} in March." for town in towns]
    text = await summary(*map(USER, rules), max_chars=5000)
    assert 0 < len(text) < sum(map(len, rules))


async def test_without_new_messages_the_summary_is_carried_forward() -> None:
    former = "Prose that somebody wrote.\n\n  Two blanks  inside."
    assert await summary(previous=former) == former


async def test_messages_without_text_leave_the_summary_as_it_was() -> None:
    assert await summary(USER(""), previous="- tea at four") == "- tea at four"


@pytest.mark.parametrize("previous", [None, "", "  \n"])
async def test_nothing_at_all_is_refused(previous: str | None) -> None:
    with pytest.raises(ValueError, match="nothing to summarise"):
        await summary(previous=previous)


@pytest.mark.parametrize("max_chars", [79, 0, -1])
def test_a_limit_without_room_is_refused(max_chars: int) -> None:
    with pytest.raises(ValueError, match="at least 80"):
        ExtractiveSummarizer(max_chars)


async def test_the_roles_are_named_in_the_language_of_the_lines() -> None:
    english = await summary(
        USER("My budget is 900 euros."), ASSISTANT("I have booked room 12 for you.")
    )
    assert english.splitlines() == [
        "User:",
        "- My budget is 900 euros.",
        "Assistant:",
        "- I have booked room 12 for you.",
    ]
    chinese = await summary(
        USER("我的预算是900元。"), ASSISTANT("已为您订好12号房间。")
    )
    assert chinese.splitlines() == [
        "用户：",
        "- 我的预算是900元。",
        "助手：",
        "- 已为您订好12号房间。",
    ]


FACT = USER("We decided to paint the kitchen yellow.")


@pytest.mark.parametrize(
    "noise",
    [
        USER("Hello there, good morning!"),
        USER("谢谢，明白了。"),
        ASSISTANT("Sure, happy to help! Is there anything else you would like?"),
        ASSISTANT("In general, many people find that yellow is often a warm colour."),
        ASSISTANT("不客气！还有什么需要我帮忙的吗？"),
        ChatMessage.tool('{"kitchen": "yellow", "order": "A-77812"}', "c1"),
        ChatMessage.tool("We must order 40 litres of paint by Friday. " * 9, "c1"),
        USER("```\nmust_paint = True  # my budget is 900\n```"),
    ],
)
async def test_noise_goes(noise: ChatMessage) -> None:
    filler = ASSISTANT("Colours are perceived by three kinds of cells in the eye. " * 5)
    text = await summary(filler, FACT, noise, max_chars=120)
    assert text == "User:\n- We decided to paint the kitchen yellow."


async def test_a_question_stays_while_nobody_answers_it() -> None:
    asked = USER("Which of the two vans is insured for Norway?")
    for reply in (
        (),
        (ASSISTANT("I can't see that from here, I'll come back to it."),),
        (ASSISTANT("Fjords are valleys that were carved by glaciers."),),
    ):
        assert "Norway?" in await summary(asked, *reply)
    answered = await summary(asked, ASSISTANT("The white van is insured for Norway."))
    assert "Norway?" not in answered
    assert "white van" in answered


async def test_an_open_question_of_the_last_summary_goes_when_it_is_answered() -> None:
    asked = await summary(USER("Which of the two vans is insured for Norway?"))
    later = await summary(
        ASSISTANT("I don't know yet which van is insured for Norway."), previous=asked
    )
    assert "Norway?" in later
    later = await summary(
        ASSISTANT("Only the white van is insured for Norway."), previous=asked
    )
    assert "Norway?" not in later
    assert "white van" in later


async def test_a_question_of_the_assistant_is_closed_by_the_users_reply() -> None:
    asked = ASSISTANT("Which colour should the kitchen cupboards have?")
    assert "cupboards" in await summary(FACT, asked)
    assert "cupboards" not in await summary(FACT, asked, USER("Blue suits me best."))


async def test_a_newer_value_takes_the_place_of_the_older() -> None:
    old, new = USER("My budget is 900 euros."), USER("My budget is 1,200 euros.")
    for text in (
        await summary(old, FACT, new),
        await summary(new, previous=await summary(old, FACT)),
    ):
        assert "1,200" in text
        assert "900" not in text
        assert "yellow" in text


async def test_a_question_replaces_nothing() -> None:
    text = await summary(
        USER("The demo in Ghent is on the 4th."),
        USER("Could the demo in Ghent be on the 5th instead?"),
    )
    assert "4th" in text
    assert "5th" in text


async def test_what_is_said_twice_stands_once() -> None:
    text = await summary(FACT, ASSISTANT("Noted."), FACT, previous=await summary(FACT))
    assert text.count("kitchen") == 1


async def test_a_summary_written_elsewhere_is_kept_while_there_is_room() -> None:
    lines = "Assistant:\n- Tiles are made of clay."
    assert "clay" not in await summary(ASSISTANT("Tiles are made of clay."), FACT)
    assert "clay" in await summary(FACT, previous=lines)
    prose = "They spoke of clouds for a while. The user likes tea."
    text = await summary(FACT, previous=prose)
    assert text.splitlines() == [
        "- They spoke of clouds for a while.",
        "- The user likes tea.",
        "User:",
        "- We decided to paint the kitchen yellow.",
    ]


async def test_the_lightest_and_then_the_oldest_lines_go_first() -> None:
    rule = "Nothing may cost more than 90{} euros in shop {}."
    former = "User:\n- We went for a walk.\n" + "\n".join(
        f"- {rule.format(number, number)}" for number in range(6)
    )
    new = USER(rule.format(6, 6) + " " + rule.format(7, 7))
    text = await summary(new, previous=former, max_chars=276)
    assert "walk" not in text
    kept = [number for number in range(8) if rule.format(number, number) in text]
    assert kept == list(range(8))[-len(kept) :]
    assert len(kept) >= 5


async def test_without_a_sentence_worth_keeping_there_is_still_a_text() -> None:
    assert await summary(USER("Hi!"), ASSISTANT("Hello!")) == "User:\n- Hi!"
    call = ChatMessage.from_openai(
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
        }
    )
    assert await summary(call) == "- assistant: [call c] f({})"


async def test_a_line_that_does_not_fit_is_cut_between_characters() -> None:
    text = await summary(USER("👩\u200d👩\u200d👧" * 40), max_chars=80)
    assert text.endswith("👧…")
    assert len(text) <= 80
