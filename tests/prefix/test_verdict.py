"""The verdict: each layer, at each kind of provider, and what holds for all."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.messages import Usage
from raf_session.prefix_comparison import compare_requests
from raf_session.prefix_match import CacheHints, Cause, Difference, PrefixMatch
from raf_session.provider_rules import RULES, WriteRule
from raf_session.usage_reports import read_usage
from raf_session.verdicts import Outcome, Reason, Verdict, verdict

HIT, PARTIAL, MISS, UNKNOWN = Outcome
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "gemini": "gemini-2.5-pro",
}
BLOCKS = [name for name, rules in RULES.items() if rules.writes is WriteRule.BLOCKS]


def appended(*, before: int = 2, now: int = 4, **fields: Any) -> PrefixMatch:
    """A match of 1,000 bytes a message behind a header of 1,000."""
    values: dict[str, Any] = {
        "shared_messages": before,
        "shared_bytes": 1000 * before,
        "messages": now,
        "bytes": 1000 * now,
        "append_only": True,
        "first_different": None,
        "previous_messages": before,
        "header_changed": False,
        "hash": 1,
        "header_bytes": 1000,
    }
    return PrefixMatch(**(values | fields))


def diverged(
    shared: int, *, before: int = 6, now: int = 9, **fields: Any
) -> PrefixMatch:
    path = f"messages[{shared}].content"
    values: dict[str, Any] = {
        "shared_messages": shared,
        "shared_bytes": 1000 * shared,
        "append_only": False,
        "first_different": shared,
        "cause": Cause.MESSAGE_EDITED,
        "first_difference": Difference("messages", shared, path),
    }
    return appended(before=before, now=now, **(values | fields))


def header(section: str, path: str, **fields: Any) -> PrefixMatch:
    values: dict[str, Any] = {
        "shared_messages": 0,
        "shared_bytes": 0,
        "append_only": False,
        "header_changed": True,
        "cause": Cause.UNKNOWN,
        "first_difference": Difference(section, None, path),
    }
    return appended(before=6, now=9, **(values | fields))


def reordered(shared: int = 1, **fields: Any) -> PrefixMatch:
    """A text that became a part, and otherwise appended."""
    where = Difference(
        "messages", shared, f"messages[{shared}].content", only_form=True
    )
    return diverged(shared, before=2, now=4, first_difference=where, **fields)


def hints(shared: int, total: int, **fields: Any) -> CacheHints:
    values: dict[str, Any] = {
        "model": None,
        "written": None,
        "read": None,
        "tools_bytes": 9000,
        "keys": {},
        "ttl_seconds": None,
    }
    return CacheHints(shared=shared, total=total, **(values | fields))


def judge(
    match: PrefixMatch, provider: str, tokens: int = 10000, **more: Any
) -> Verdict:
    more.setdefault("model", MODELS.get(provider))
    return verdict(match, provider, tokens=tokens, **more)


def said(answer: Verdict) -> str:
    """The explanation without separators in its numbers."""
    return re.sub(r"(?<=\d),(?=\d)", "", answer.explanation)


def same(answer: Verdict, outcome: Outcome, reason: Reason, tokens: int | None) -> None:
    got = (answer.outcome, answer.reason, answer.reusable_tokens)
    assert got == (outcome, reason, tokens), answer.explanation
    assert answer.explanation.endswith(".")


# Each layer ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "tokens"),
    [
        ("deepseek", 5888),  # 6,000 in blocks of 128, the last of 46 withheld
        ("openai", 6000),
        ("openai-5.5", 5888),  # 46 steps of 128
        ("anthropic", 6000),
        ("gemini", 6000),
        ("bedrock", 6000),
        ("vllm", 6000),
        ("sglang", 6000),
    ],
)
def test_an_appended_request_hits(provider: str, tokens: int) -> None:
    if provider == "deepseek":
        tokens = (6000 // 128 - 1) * 128
    answer = judge(appended(before=5, now=9), provider)
    same(answer, HIT, Reason.APPENDED, tokens)
    assert answer.rules is RULES[provider]
    assert (answer.provider, answer.tokens) == (provider, 10000)
    assert str(tokens) in said(answer)


@pytest.mark.parametrize("provider", RULES)
def test_a_first_request_misses(provider: str) -> None:
    match = appended(previous_messages=None, shared_messages=0, shared_bytes=0)
    answer = judge(match, provider, elapsed_seconds=1)
    same(answer, MISS, Reason.FIRST_REQUEST, 0)
    assert answer.ttl_left_seconds is None


@pytest.mark.parametrize(
    ("provider", "outcome", "reason", "tokens"),
    [
        ("deepseek", UNKNOWN, Reason.UNIT_INCOMPLETE, None),
        ("openai", MISS, Reason.DIVERGED_BEFORE_MARK, 0),
        ("openai-5.5", PARTIAL, Reason.DIVERGED, 4992),
        ("anthropic", MISS, Reason.DIVERGED_BEFORE_MARK, 0),
        ("gemini", PARTIAL, Reason.DIVERGED, 5000),
        ("bedrock", MISS, Reason.DIVERGED_BEFORE_MARK, 0),
        ("vllm", PARTIAL, Reason.DIVERGED, 4992),
        ("sglang", PARTIAL, Reason.DIVERGED, 5000),
    ],
)
def test_an_edited_message(
    provider: str, outcome: Outcome, reason: Reason, tokens: int | None
) -> None:
    answer = judge(diverged(4), provider)
    same(answer, outcome, reason, tokens)
    assert "messages[4].content" in said(answer)


def test_a_prefix_cut_short_by_an_edit_is_no_matter_of_length() -> None:
    match = diverged(0, header_bytes=10)
    for provider in ("deepseek", "openai-5.5", "gemini"):
        same(judge(match, provider), MISS, Reason.DIVERGED, 0)
    same(judge(match, "vllm"), MISS, Reason.DIVERGED, 0)
    answer = judge(match, "vllm", tokens=15, shared_tokens=14)
    same(answer, MISS, Reason.ROUNDED_AWAY, 0)
    same(judge(match, "openai-5.5", tokens=1000), MISS, Reason.BELOW_MINIMUM, 0)


@pytest.mark.parametrize(
    ("provider", "model", "minimum"),
    [
        ("deepseek", None, 64),
        ("openai", None, 1024),
        ("openai-5.5", None, 1024),
        ("anthropic", "claude-opus-5", 512),
        ("anthropic", "claude-sonnet-4-5", 1024),
        ("anthropic", "claude-opus-4.7", 2048),
        ("anthropic", "claude-opus-4-5-20251101", 4096),
        ("gemini", "gemini-2.5-flash", 2048),
        ("gemini", "gemini-3-pro", 4096),
        ("bedrock", "us.anthropic.claude-haiku-4-5-v1:0", 4096),
    ],
)
def test_the_minimum(provider: str, model: str | None, minimum: int) -> None:
    def ask(shared: int) -> Verdict:
        return judge(appended(), provider, shared_tokens=shared, model=model)

    same(ask(minimum - 1), MISS, Reason.BELOW_MINIMUM, 0)
    assert str(minimum) in said(ask(minimum - 1))
    assert ask(minimum).reason is not Reason.BELOW_MINIMUM


def test_the_minimum_of_an_unknown_model() -> None:
    match = appended()
    answer = judge(match, "anthropic", shared_tokens=4095, model="m1")
    same(answer, UNKNOWN, Reason.BELOW_MINIMUM, None)
    assert "512 to 4096" in said(answer)
    for shared, outcome in ((511, MISS), (512, UNKNOWN), (4096, HIT)):
        answer = verdict(match, "anthropic", tokens=5000, shared_tokens=shared)
        assert answer.outcome is outcome
    caching = hints(2, 4, model="claude-opus-5")
    answer = verdict(
        match._replace(caching=caching), "anthropic", tokens=5000, shared_tokens=512
    )
    assert answer.outcome is HIT


def test_rounding() -> None:
    match = appended()
    same(judge(match, "vllm", shared_tokens=47), HIT, Reason.APPENDED, 32)
    same(judge(match, "vllm", shared_tokens=15), MISS, Reason.ROUNDED_AWAY, 0)
    same(judge(match, "sglang", shared_tokens=15), HIT, Reason.APPENDED, 15)
    same(judge(match, "deepseek", shared_tokens=255), MISS, Reason.ROUNDED_AWAY, 0)
    same(judge(match, "deepseek", shared_tokens=256), HIT, Reason.APPENDED, 128)
    answer = judge(match, "openai-5.5", shared_tokens=2047, model="gpt-5.5-2026")
    same(answer, MISS, Reason.ROUNDED_AWAY, 0)
    answer = judge(match, "vllm", shared_tokens=47, block_tokens=20)
    same(answer, HIT, Reason.APPENDED, 40)
    own = replace(RULES["vllm"], block_tokens=32)
    answer = verdict(match, own, tokens=100, shared_tokens=95)
    same(answer, HIT, Reason.APPENDED, 64)


@pytest.mark.parametrize(
    ("provider", "ttl"),
    [
        ("anthropic", 300),
        ("bedrock", 300),
        ("openai", 1800),
        ("openai-5.5", 86400),
        ("deepseek", None),
        ("gemini", None),
        ("vllm", None),
        ("sglang", None),
    ],
)
def test_the_time_to_live(provider: str, ttl: int | None) -> None:
    match = appended(before=5, now=9)
    if ttl is None:
        answer = judge(match, provider, elapsed_seconds=10**9)
        assert (answer.outcome, answer.ttl_left_seconds) == (HIT, None)
        ttl = 3600
    else:
        assert judge(match, provider, elapsed_seconds=ttl).outcome is HIT
        answer = judge(match, provider, elapsed_seconds=ttl + 0.5)
        same(answer, MISS, Reason.EXPIRED, 0)
        assert answer.ttl_left_seconds == 0
        assert judge(match, provider, elapsed_seconds=100).ttl_left_seconds == ttl - 100
    asked = match._replace(caching=hints(5, 9, ttl_seconds=60))
    assert judge(asked, provider, elapsed_seconds=61).reason is Reason.EXPIRED
    assert judge(asked, provider, elapsed_seconds=59.5).ttl_left_seconds == 0.5
    assert judge(asked, provider).ttl_left_seconds is None


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "openai"])
def test_the_look_back(provider: str) -> None:
    near, far = appended(before=2, now=22), appended(before=2, now=23)
    assert judge(near, provider, tokens=100000).outcome is HIT
    answer = judge(far, provider, tokens=100000)
    same(answer, MISS, Reason.LOOK_BACK_EXCEEDED, 0)
    assert "21 positions" in said(answer)
    for other in ("vllm", "sglang", "gemini", "openai-5.5", "deepseek"):
        assert judge(far, other, tokens=100000).outcome is HIT
    deep = replace(RULES[provider], look_back=None)
    answer = verdict(far, deep, tokens=100000, model="claude-opus-5")
    assert answer.outcome is HIT


def test_runs_of_calls_count_as_one_position() -> None:
    match = appended(before=2, now=40, caching=hints(2, 12, written=(2,), read=(12,)))
    assert judge(match, "anthropic", tokens=100000).outcome is HIT


def test_openai_looks_back_over_messages() -> None:
    match = appended(before=2, now=12, caching=hints(5, 90))
    assert judge(match, "openai").outcome is HIT


def test_an_earlier_mark_within_the_look_back() -> None:
    caching = hints(5, 40, written=(0, 5), read=(0, 40))
    match = appended(before=5, now=40, header_bytes=10000, caching=caching)
    answer = judge(match, "anthropic", tokens=50000)
    same(answer, PARTIAL, Reason.LOOK_BACK_EXCEEDED, 10000)
    small = judge(match._replace(header_bytes=100), "anthropic", tokens=50000)
    same(small, MISS, Reason.BELOW_MINIMUM, 0)


def test_marks() -> None:
    def ask(match: PrefixMatch, shared: int, total: int, **fields: Any) -> Verdict:
        caching = hints(shared, total, **fields)
        marked = match._replace(caching=caching)
        return verdict(marked, "anthropic", tokens=10000, model="claude-opus-5")

    more, edit = appended(before=5, now=9), diverged(4)
    answer = ask(more, 5, 9, written=(), read=(9,))
    same(answer, MISS, Reason.NO_MARK, 0)
    assert "former" in said(answer)
    answer = ask(more, 5, 9, written=(5,), read=())
    same(answer, MISS, Reason.NO_MARK, 0)
    assert "This" in said(answer)
    same(ask(more, 5, 9, written=(5,), read=(9,)), HIT, Reason.APPENDED, 6000)
    same(ask(more, 5, 9, written=(3,), read=(9,)), HIT, Reason.APPENDED, None)
    behind = Reason.DIVERGED_BEHIND_MARK
    same(ask(edit, 4, 9, written=(4,), read=(9,)), PARTIAL, behind, 5000)
    same(ask(edit, 4, 9, written=(0, 6), read=(0, 9)), PARTIAL, behind, 1000)
    small = ask(edit._replace(header_bytes=100), 4, 9, written=(0,), read=(0,))
    same(small, MISS, Reason.BELOW_MINIMUM, 0)
    answer = ask(edit, 4, 9, written=(5,), read=(9,))
    same(answer, MISS, Reason.DIVERGED_BEFORE_MARK, 0)
    short = ask(more._replace(header_bytes=100), 5, 9, written=(3,), read=(9,))
    same(short, UNKNOWN, Reason.BELOW_MINIMUM, None)
    # A mark that this request reads in front of the former one's finds nothing.
    answer = ask(more, 5, 9, written=(5,), read=(4,))
    same(answer, MISS, Reason.LOOK_BACK_EXCEEDED, 0)


def test_openai_finds_a_shared_prefix_at_a_mark_only() -> None:
    edit = diverged(4, caching=hints(4, 9, written=(4,), read=(4,)))
    same(judge(edit, "openai"), PARTIAL, Reason.DIVERGED_BEHIND_MARK, 5000)
    far = diverged(4, now=50, caching=hints(4, 50, written=(4,), read=(4,)))
    answer = judge(far, "openai", tokens=102000)
    same(answer, PARTIAL, Reason.DIVERGED_BEHIND_MARK, 10000)
    bare = diverged(4, now=50, caching=hints(4, 50, written=(4,)))
    same(judge(bare, "openai", tokens=102000), MISS, Reason.LOOK_BACK_EXCEEDED, 0)
    other = diverged(4, now=50, caching=hints(4, 50, written=(4,), read=(9,)))
    same(judge(other, "openai", tokens=102000), MISS, Reason.LOOK_BACK_EXCEEDED, 0)
    near = diverged(4, caching=hints(4, 9, written=(4,)))
    same(judge(near, "openai"), PARTIAL, Reason.DIVERGED_BEHIND_MARK, 5000)
    more = appended(before=5, now=9, caching=hints(5, 9, written=(2,), read=(2,)))
    same(judge(more, "openai"), HIT, Reason.APPENDED, 6000)


@pytest.mark.parametrize(
    ("provider", "outcome"),
    [
        ("openai", MISS),
        ("deepseek", MISS),
        ("vllm", MISS),
        ("sglang", MISS),
        ("openai-5.5", UNKNOWN),
    ],
)
def test_another_cache_key(provider: str, outcome: Outcome) -> None:
    (name,) = RULES[provider].keys
    others = {"prompt_cache_key", "cache_salt", "user_id"} - {name}
    foreign = hints(5, 9, keys=dict.fromkeys(others, ("a", "b")))
    assert judge(appended(before=5, now=9, caching=foreign), provider).outcome is HIT
    caching = hints(5, 9, keys={name: ("a", "b")})
    answer = judge(appended(before=5, now=9, caching=caching), provider)
    assert (answer.outcome, answer.reason) == (outcome, Reason.KEY_CHANGED)
    kept = appended(before=5, now=9, caching=hints(5, 9, keys={name: ("a", "a")}))
    assert judge(kept, provider).outcome is HIT


# Forms and headers ---------------------------------------------------------------


def test_a_form_that_is_rendered_alike() -> None:
    answer = judge(reordered(), "anthropic")
    same(answer, HIT, Reason.APPENDED, None)
    same(
        judge(reordered(), "anthropic", shared_tokens=6000), HIT, Reason.APPENDED, 6000
    )
    where = "nothing but a form differs"
    assert where in said(answer)
    long = diverged(1, before=6, now=24, first_difference=reordered().first_difference)
    same(judge(long, "anthropic", tokens=100000), HIT, Reason.APPENDED, None)
    long = long._replace(messages=27)
    same(judge(long, "anthropic"), MISS, Reason.LOOK_BACK_EXCEEDED, 0)
    again = reordered()._replace(messages=2, bytes=2000)
    same(judge(again, "anthropic"), HIT, Reason.APPENDED, 10000)


@pytest.mark.parametrize("provider", [name for name in RULES if name != "anthropic"])
def test_a_form_of_which_nothing_is_documented(provider: str) -> None:
    answer = judge(reordered(), provider, tokens=100000)
    same(answer, UNKNOWN, Reason.FORM_ONLY, None)
    assert "messages[1].content" in said(answer)
    assert judge(reordered(), provider, tokens=0).outcome is MISS
    rules = replace(RULES[provider], text_forms_alike=False)
    answer = verdict(reordered(), rules, tokens=10000, model="claude-opus-5")
    assert answer.reason is not Reason.FORM_ONLY
    assert answer.outcome is not HIT


def test_a_form_with_tokens_that_were_counted() -> None:
    answer = judge(reordered(), "openai", shared_tokens=6000)
    same(answer, UNKNOWN, Reason.FORM_ONLY, None)
    assert "0 to 6000" in said(answer)


def test_a_form_behind_the_mark_does_not_matter() -> None:
    caching = hints(1, 4, written=(0,), read=(0,))
    answer = judge(reordered(caching=caching), "bedrock")
    same(answer, PARTIAL, Reason.DIVERGED_BEHIND_MARK, 2000)


@pytest.mark.parametrize("provider", RULES)
@pytest.mark.parametrize("section", ["model", "tools"])
def test_another_model_or_tool_loses_everything(provider: str, section: str) -> None:
    answer = judge(header(section, f"{section}[0]"), provider)
    same(answer, MISS, Reason.DIVERGED, 0)
    assert f"{section}[0]" in said(answer)


def front(written: tuple[int, ...] | None) -> dict[str, Any]:
    return {"header_bytes": 11000, "caching": hints(0, 9, written=written, read=(0, 9))}


@pytest.mark.parametrize(
    ("provider", "section", "path", "written", "outcome", "tokens"),
    [
        ("anthropic", "parameters", "tool_choice.type", (0, 6), PARTIAL, 5500),
        ("anthropic", "parameters", "tool_choice", (6,), MISS, 0),
        ("anthropic", "parameters", "tool_choice", None, MISS, 0),
        ("anthropic", "system", "system[0].text", (0, 6), MISS, 0),
        ("anthropic", "system", "system[0].text", (-1, 0, 6), PARTIAL, 4500),
        ("anthropic", "system", "system[0].text", (6,), MISS, 0),
        ("anthropic", "parameters", "speed", (0,), MISS, 0),
        ("anthropic", "parameters", "speed", (-1,), PARTIAL, 4500),
        ("anthropic", "parameters", "thinking.type", (0,), UNKNOWN, None),
        ("anthropic", "parameters", "output_config.effort", (6,), MISS, 0),
        ("anthropic", "parameters", "novel", (6,), UNKNOWN, None),
        ("anthropic", "parameters", "novel.model", None, UNKNOWN, None),
        ("bedrock", "parameters", "a.b.c.thinking", (6,), UNKNOWN, None),
        ("anthropic", "parameters", "novel", None, UNKNOWN, None),
        ("bedrock", "parameters", "toolConfig.toolChoice.auto", (0,), PARTIAL, 5500),
        ("bedrock", "parameters", "x.thinking.budget", (0,), MISS, 0),
        ("openai", "parameters", "reasoning.effort", None, MISS, 0),
        ("openai", "parameters", "tool_choice", None, UNKNOWN, None),
        ("openai", "system", "instructions", None, MISS, 0),
        ("openai-5.5", "system", "instructions", None, PARTIAL, 4480),
        ("openai-5.5", "parameters", "text.format.name", None, MISS, 0),
        ("vllm", "parameters", "tool_choice", None, UNKNOWN, None),
        ("gemini", "system", "systemInstruction", None, PARTIAL, 4500),
        ("deepseek", "header", "header", None, UNKNOWN, None),
    ],
)
def test_another_header(  # noqa: PLR0917
    provider: str,
    section: str,
    path: str,
    written: tuple[int, ...] | None,
    outcome: Outcome,
    tokens: int | None,
) -> None:
    answer = judge(header(section, path, **front(written)), provider)
    assert (answer.outcome, answer.reusable_tokens) == (outcome, tokens), answer
    bare = judge(header(section, path, first_difference=None), provider)
    assert bare.outcome is UNKNOWN
    assert "header" in said(bare)


def test_tokens_that_were_counted_under_another_header() -> None:
    match = header("tools", "tools[3]")
    same(judge(match, "vllm", shared_tokens=650), PARTIAL, Reason.DIVERGED, 640)
    same(judge(match, "anthropic", shared_tokens=650), MISS, Reason.DIVERGED, 0)
    model = header("model", "model")
    same(judge(model, "vllm", shared_tokens=650), MISS, Reason.DIVERGED, 0)


def test_an_image_loses_every_message_at_anthropic() -> None:
    caching = hints(4, 9, written=(0, 2), read=(0, 2, 9))
    match = diverged(4, cause=Cause.IMAGE_CHANGED, header_bytes=11000, caching=caching)
    answer = judge(match, "anthropic")
    same(answer, PARTIAL, Reason.DIVERGED_BEHIND_MARK, 5500)
    assert "image" in said(answer)
    same(judge(match, "sglang"), PARTIAL, Reason.DIVERGED, 7500)


# What the provider reports -------------------------------------------------------


@pytest.mark.parametrize("provider", RULES)
def test_what_usage_reports(provider: str) -> None:
    match = appended(before=5, now=9)

    def ask(cached: int | None) -> Verdict:
        usage = Usage(prompt_tokens=10000, prompt_cache_hit_tokens=cached)
        return judge(match, provider, usage=usage)

    promised = ask(None)
    assert (promised.outcome, promised.reported_tokens) == (HIT, None)
    missed = ask(0)
    same(missed, MISS, Reason.PROVIDER_SIDE_MISS, promised.reusable_tokens)
    assert missed.reported_tokens == 0
    assert "not your bytes" in said(missed)
    more = ask(9000)
    assert (more.outcome, more.reported_tokens) == (HIT, 9000)
    assert "more than expected" in said(more)
    expected = promised.reusable_tokens
    assert expected is not None
    assert f"reports {expected} cached" in said(ask(expected))
    assert "more than" not in said(ask(expected))
    assert "more than" in said(ask(expected + 1))


def test_a_break_of_ours_stays_ours() -> None:
    usage = Usage(prompt_tokens=10000, prompt_cache_hit_tokens=0)
    answer = judge(diverged(4), "anthropic", usage=usage)
    same(answer, MISS, Reason.DIVERGED_BEFORE_MARK, 0)
    answer = judge(diverged(4), "sglang", usage=usage)
    same(answer, PARTIAL, Reason.DIVERGED, 5000)
    assert "reports 0" in said(answer)
    edit = diverged(4, caching=hints(4, 9, written=(4,), read=(9,)))
    answer = judge(edit, "anthropic", usage=usage)
    same(answer, MISS, Reason.PROVIDER_SIDE_MISS, 5000)


# Arguments -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"tokens": -1}, ValueError),
        ({"tokens": True}, TypeError),
        ({"tokens": 1.0}, TypeError),
        ({"tokens": float("nan")}, TypeError),
        ({"tokens": 5, "shared_tokens": 6}, ValueError),
        ({"tokens": 5, "shared_tokens": -1}, ValueError),
        ({"tokens": 5, "shared_tokens": False}, TypeError),
        ({"tokens": 5, "elapsed_seconds": -0.1}, ValueError),
        ({"tokens": 5, "elapsed_seconds": float("nan")}, ValueError),
        ({"tokens": 5, "elapsed_seconds": float("inf")}, ValueError),
        ({"tokens": 5, "elapsed_seconds": True}, TypeError),
        ({"tokens": 5, "elapsed_seconds": "5"}, TypeError),
        ({"tokens": 5, "block_tokens": 0}, ValueError),
        ({"tokens": 5, "block_tokens": 1.5}, TypeError),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        verdict(appended(), "vllm", **arguments)


def test_an_unknown_provider() -> None:
    with pytest.raises(ValueError, match="anthropic"):
        verdict(appended(), "nobody", tokens=1)


def test_a_verdict_is_a_value() -> None:
    answer = judge(appended(), "anthropic")
    assert pickle.loads(pickle.dumps(answer)) == answer  # noqa: S301
    assert hash(answer) == hash(judge(appended(), "anthropic"))


# What always holds ---------------------------------------------------------------


@st.composite
def matches(draw: st.DrawFn) -> PrefixMatch:
    before = draw(st.integers(0, 30))
    now = draw(st.integers(0, 60))
    shared = draw(st.integers(0, min(before, now)))
    kind = draw(st.sampled_from(("appended", "diverged", "form", "header", "first")))
    size = draw(st.integers(0, 5000))
    caching = draw(st.none() | layouts(shared, now))
    sizes = {"header_bytes": size, "caching": caching}
    if kind == "first":
        return appended(
            before=0, now=now, previous_messages=None, append_only=True, **sizes
        )
    if kind == "header":
        section = draw(st.sampled_from(("model", "tools", "parameters", "system")))
        path = draw(st.sampled_from(("tool_choice", "thinking", "x")))
        return header(section, path, messages=now, bytes=1000 * now, **sizes)
    if kind == "diverged":
        return diverged(shared, before=before, now=now, **sizes)
    now = max(now, before)
    if kind == "form":
        where = Difference("messages", shared, "messages[0].content", only_form=True)
        return diverged(shared, before=before, now=now, first_difference=where, **sizes)
    return appended(before=before, now=now, **sizes)


@st.composite
def layouts(draw: st.DrawFn, shared: int, now: int) -> CacheHints:
    total = draw(st.integers(now, 2 * now))
    marks = st.none() | st.lists(st.integers(0, total), max_size=4).map(
        lambda found: tuple(sorted(found))
    )
    key = st.sampled_from((None, "a", "b"))
    names = st.sampled_from(("prompt_cache_key", "cache_salt", "user_id"))
    ttls = st.lists(st.none() | st.integers(0, 900), max_size=4).map(tuple)
    toggles = st.frozensets(st.sampled_from(("images", "citations", "web_search")))
    return hints(
        min(shared, total),
        total,
        written=draw(marks),
        read=draw(marks),
        keys={draw(names): (draw(key), draw(key))},
        written_ttls=draw(ttls),
        explicit=(draw(st.booleans()), draw(st.booleans())),
        toggled=draw(toggles),
        ttl_seconds=draw(st.none() | st.integers(0, 1000)),
    )


asked = st.tuples(
    matches(), st.sampled_from(list(RULES)), st.integers(0, 200000), st.data()
)


@given(asked)
def test_no_more_is_reused_than_shared(given_values: Any) -> None:
    match, provider, tokens, data = given_values
    shared = data.draw(st.none() | st.integers(0, tokens))
    model = data.draw(st.sampled_from((None, "claude-opus-5", "gemini-3")))
    answer = verdict(match, provider, tokens=tokens, shared_tokens=shared, model=model)
    reuse = answer.reusable_tokens
    if reuse is not None:
        assert 0 <= reuse <= (tokens if shared is None else shared)
        assert reuse > 0 or answer.outcome is not HIT
    if answer.outcome is MISS:
        assert reuse == 0
    if answer.outcome is PARTIAL:
        assert reuse != 0
    if answer.outcome is UNKNOWN:
        assert reuse is None
    assert not match.first or answer.reason is Reason.FIRST_REQUEST


@given(asked)
def test_more_shared_is_never_less_reuse(given_values: Any) -> None:
    match, _, tokens, data = given_values
    provider = data.draw(st.sampled_from(BLOCKS))
    pair = sorted(data.draw(st.tuples(*[st.integers(0, tokens)] * 2)))
    less, more = (
        judge(match, provider, tokens=tokens, shared_tokens=shared).reusable_tokens
        for shared in pair
    )
    if less is not None and more is not None:
        assert less <= more


@given(asked)
def test_time_makes_nothing_a_hit(given_values: Any) -> None:
    match, provider, tokens, data = given_values
    early, late = sorted(data.draw(st.tuples(*[st.floats(0, 10**6)] * 2)))
    first = judge(match, provider, tokens=tokens, elapsed_seconds=early)
    second = judge(match, provider, tokens=tokens, elapsed_seconds=late)
    if first.outcome is MISS:
        assert second.outcome is MISS
    assert second.outcome in {MISS, first.outcome}


@given(asked)
def test_below_the_minimum_is_always_a_miss(given_values: Any) -> None:
    match, provider, _, data = given_values
    model = data.draw(st.sampled_from((MODELS.get(provider), None)))
    least = RULES[provider].minimum(model)[0]
    tokens = data.draw(st.integers(0, max(0, least - 1)))
    if least:
        assert verdict(match, provider, tokens=tokens, model=model).outcome is MISS


# Whole bodies --------------------------------------------------------------------

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
IMAGE = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}


def claude(*messages: Any, system: Any = MARK, **more: Any) -> dict[str, Any]:
    front = [{"type": "text", "text": "s" * 8000, **system}]
    body = {"model": "claude-opus-5", "max_tokens": 5, "system": front}
    return {**body, "messages": list(messages), **more}


def turn(role: str, text: str, *parts: Any, **more: Any) -> dict[str, Any]:
    return {
        "role": role,
        "content": [{"type": "text", "text": text, **more}, *parts],
    }


TALK = [turn("user", "p" * 4000), turn("assistant", "a" * 4000, **MARK)]


def told(before: Any, after: Any, provider: str = "anthropic", **more: Any) -> Verdict:
    match = compare_requests(before, after)
    return verdict(match, provider, tokens=10000, **more)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TALK, [*TALK, turn("user", "q", IMAGE)]),
        (
            [*TALK, turn("user", "q", IMAGE), turn("assistant", "b")],
            [*TALK, turn("assistant", "b")],
        ),
        ([*TALK, turn("user", "q", IMAGE)], [*TALK, turn("user", "other")]),
        (
            [*TALK, turn("user", "r")],
            [
                *TALK,
                turn("user", "r"),
                turn("user", "q", {"type": "tool_result", "content": [IMAGE]}),
            ],
        ),
    ],
)
def test_an_image_anywhere_leaves_tools_and_system(before: Any, after: Any) -> None:
    answer = told(claude(*before), claude(*after))
    assert answer.outcome is PARTIAL
    assert answer.reusable_tokens is not None
    assert 4000 < answer.reusable_tokens < 6000
    assert "images" in answer.explanation
    silent = told(claude(*before, system={}), claude(*after, system={}))
    assert silent.outcome is MISS
    usage = read_usage({"input_tokens": 10000, "cache_read_input_tokens": 5000})
    seen = told(claude(*before), claude(*after), usage=usage)
    assert seen.reason is not Reason.PROVIDER_SIDE_MISS


def test_citations_leave_the_tools() -> None:
    def body(*, on: bool) -> dict[str, Any]:
        document = {"type": "document", "source": {}, "citations": {"enabled": on}}
        return claude(*TALK, turn("user", "x", document))

    assert told(body(on=True), body(on=False)).outcome is MISS


def test_the_web_search_may_leave_the_tools() -> None:
    tools = [{"name": "f", "input_schema": {"x": "y" * 4000}, **MARK}]
    search = {"type": "web_search_20250305", "name": "web_search"}
    before, after = (claude(*TALK, tools=t) for t in (tools, [*tools, search]))
    assert told(before, after).outcome is UNKNOWN
    for body in (before, after):
        del body["system"]
    assert told(before, after).outcome is UNKNOWN
    other = {"name": "g", "input_schema": {}}
    assert told(before, claude(*TALK, tools=[*tools, other])).outcome is MISS


def test_a_prefix_lives_as_long_as_its_mark_asks() -> None:
    before = claude(*TALK, system=HOUR)
    after = claude(*TALK, turn("user", "n"), system=HOUR)
    assert told(before, after, elapsed_seconds=200).outcome is HIT
    answer = told(before, after, elapsed_seconds=600)
    assert (answer.outcome, answer.reason) == (PARTIAL, Reason.EXPIRED)
    assert answer.reusable_tokens is not None
    assert 4000 < answer.reusable_tokens < 6000
    assert answer.ttl_left_seconds == 3000
    gone = told(before, after, elapsed_seconds=4000)
    assert (gone.outcome, gone.reason) == (MISS, Reason.EXPIRED)


def test_explicit_caching_without_a_breakpoint_keeps_nothing() -> None:
    front = {"role": "system", "content": "s" * 9000}
    options = {"prompt_cache_options": {"mode": "explicit"}}
    talk: list[Any] = [front, {"role": "user", "content": "a"}]
    before = {"model": "gpt-5.6", "messages": talk, **options}
    after = {**before, "messages": [*talk, {"role": "user", "content": "b"}]}
    same(told(before, after, "openai"), MISS, Reason.NO_MARK, 0)
    text = {"type": "text", "text": "a", "prompt_cache_breakpoint": {}}
    talk[1] = {"role": "user", "content": [text]}
    after = {**before, "messages": [*talk, {"role": "user", "content": "b"}]}
    answer = told(before, after, "openai")
    assert (answer.outcome, answer.reason) == (HIT, Reason.APPENDED)


def test_keys_are_told_apart() -> None:
    talk = [{"role": "user", "content": "x" * 9000}]

    def body(**keys: str) -> dict[str, Any]:
        return {"model": "m", "messages": talk, "n": 1, **keys}

    salted = body(cache_salt="a", prompt_cache_key="k")
    other = body(cache_salt="b", prompt_cache_key="k")
    assert told(salted, other, "vllm").reason is Reason.KEY_CHANGED
    assert told(salted, other, "openai").outcome is HIT
    one, two = body(user_id="a"), body(user_id="b")
    assert told(one, two, "deepseek").reason is Reason.KEY_CHANGED
    assert told(one, two, "sglang").outcome is HIT


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"output_config": {"effort": "low"}}, {"output_config": {"effort": "max"}}),
        ({"output_config": {"effort": "low"}}, {}),
    ],
)
def test_effort_at_bedrock_loses_everything(before: Any, after: Any) -> None:
    point = {"cachePoint": {"type": "default"}}

    def body(fields: Any) -> dict[str, Any]:
        return {
            "modelId": "anthropic.claude-opus-5",
            "system": [{"text": "s" * 4000}, point],
            "messages": [{"role": "user", "content": [{"text": "p" * 4000}, point]}],
            "additionalModelRequestFields": {"x": 1, **fields},
        }

    assert told(body(before), body(after), "bedrock").outcome is MISS
