"""What is known of each provider's prompt cache, as data: `RULES` and `rules_for`.

Nothing here was measured by this project.  Each entry names what it rests on and when
that was read; where sources contradict one another, its notes say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from raf_session.frozen import EMPTY, FrozenDict

__all__ = ("RULES", "Kept", "ProviderRules", "WriteRule", "rules_for")


class WriteRule(StrEnum):
    """Where a request leaves prefixes that a later one can find."""

    MARKS = "marks"
    """At the caller's cache marks and nowhere else."""

    REQUEST_END = "request_end"
    """At the end of the latest message, and at the caller's marks."""

    BLOCKS = "blocks"
    """After every block of tokens: the longest common prefix counts."""

    UNITS = "units"
    """At the end of the input and of the output, each a unit that must fully match."""


class Kept(NamedTuple):
    """What a change leaves in the cache: sections, in reading order."""

    certain: tuple[str, ...]
    """Those that survive it."""

    possible: tuple[str, ...]
    """Those that may: these and the ones that depend on what is not documented."""


_TOOLS: Final = ("tools",)
_FRONT: Final = ("tools", "system")
_ALL: Final = ("tools", "system", "messages")

NOTHING: Final = Kept((), ())
"""Nothing survives."""

EVERYTHING: Final = Kept(_ALL, _ALL)
"""Everything survives that is not behind the change."""

UNDOCUMENTED: Final = Kept((), _ALL)
"""Nothing is documented: of a change that `ProviderRules.survives` does not name."""

_BY_MODEL: Final = Kept((), _FRONT)
_KEEPS_TOOLS: Final = Kept(_TOOLS, _TOOLS)
_KEEPS_FRONT: Final = Kept(_FRONT, _FRONT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRules:
    """The rules of one provider's prompt cache.

    Change them with ``dataclasses.replace(RULES["vllm"], block_tokens=32)``.
    """

    name: str
    """The name in `RULES`."""

    minimum_tokens: int
    """The shortest prefix that any model caches, in tokens; 0: none is known."""

    model_minimums: Mapping[str, int] = EMPTY
    """The same by a fragment of the model's name, in tokens; the longest one wins.

    Fragments are in lower case with ``-`` for a dot.  A model that matches none may
    have any of them.
    """

    block_tokens: int = 1
    """The step to which the reused tokens are rounded down; 1: not rounded."""

    model_block_tokens: Mapping[str, int] = EMPTY
    """The same by a fragment of the model's name, in tokens."""

    last_block_withheld: bool = False
    """Whether the last full block of the shared tokens is not reused."""

    writes: WriteRule
    """Where a request leaves prefixes."""

    look_back: int | None = None
    """How far in front of a place of reading a written prefix is still found.

    In positions as `CacheHints` counts them; in messages for `WriteRule.REQUEST_END`,
    from the request's end.  `None`: any distance.
    """

    ttl_seconds: int | None = None
    """How long a prefix is kept where the request does not say; `None`: not known."""

    order: tuple[str, ...] = _ALL
    """The sections in the order in which the provider reads them."""

    survives: Mapping[str, Kept] = EMPTY
    """What outlives a change of a section, of a parameter, or of ``images``."""

    text_forms_alike: bool | None = None
    """Whether a text is read alike as a string and as the only text part.

    `None`: not documented, or the chat template's business; see `notes`.
    """

    keys: frozenset[str] = frozenset()
    """The fields of a body that partition this cache."""

    key_loses_cache: bool | None = None
    """Whether another value of these finds nothing; `None`: not certain."""

    as_of: str
    """The month in which the source was read, as ``2026-11``."""

    source: str
    """What the rules rest on: documentation or a third party."""

    notes: str = ""
    """Contradictions between sources, and what was inferred."""

    def __post_init__(self) -> None:
        for name in ("model_minimums", "model_block_tokens", "survives"):
            object.__setattr__(self, name, FrozenDict(getattr(self, name)))
        steps = (self.block_tokens, *self.model_block_tokens.values())
        least = (self.minimum_tokens, *self.model_minimums.values())
        if min(steps) < 1 or min(least) < 0 or (self.look_back or 0) < 0:
            raise ValueError("blocks are at least 1 token, other numbers not negative")
        if self.ttl_seconds is not None and self.ttl_seconds < 0:
            raise ValueError(f"ttl_seconds={self.ttl_seconds} is negative")

    def minimum(self, model: str | None) -> tuple[int, int]:
        """Return the shortest prefix that this model caches: at least, at most.

        Two numbers, in tokens, which are equal where the model is known.
        """
        known = _by_model(self.model_minimums, model)
        if known is not None:
            return known, known
        least = self.minimum_tokens
        return least, max((least, *self.model_minimums.values()))

    def block(self, model: str | None) -> int:
        """Return the step to which this model's reused tokens are rounded down."""
        known = _by_model(self.model_block_tokens, model)
        return self.block_tokens if known is None else known


def rules_for(provider: str | ProviderRules) -> ProviderRules:
    """Return the rules of this name, or the given ones.

    Raises:
        ValueError: there are none of this name.
    """
    if isinstance(provider, ProviderRules):
        return provider
    rules = RULES.get(provider)
    if rules is None:
        raise ValueError(f"no rules for {provider!r} (known: {', '.join(RULES)})")
    return rules


def _by_model(table: Mapping[str, int], model: str | None) -> int | None:
    name = (model or "").lower().replace(".", "-")
    found = [fragment for fragment in table if fragment in name]
    return table[max(found, key=len)] if found else None


_FRONT_CHANGES: Final = FrozenDict[Kept](
    {"model": NOTHING, "tools": NOTHING, "system": _KEEPS_TOOLS}
)
_CLAUDE_MINIMUMS: Final = FrozenDict[int](
    {
        "opus-5": 512, "fable-5": 512, "mythos-5": 512,
        "opus-4-8": 1024, "sonnet-5": 1024, "sonnet-4": 1024,
        "opus-4-7": 2048, "haiku-3-5": 2048, "3-5-haiku": 2048,
        "opus-4-5": 4096, "opus-4-6": 4096, "haiku-4-5": 4096,
    }
)  # fmt: skip
_OPENAI_CHANGES: Final = FrozenDict[Kept](
    {
        **_FRONT_CHANGES,
        **dict.fromkeys(
            ("parallel_tool_calls", "response_format", "text", "reasoning",
             "reasoning_effort", "verbosity", "service_tier"), NOTHING
        ),
        "tool_choice": UNDOCUMENTED,
    }
)  # fmt: skip

_ENTRIES: Final = (
    ProviderRules(
        name="deepseek",
        minimum_tokens=64,
        block_tokens=128,
        last_block_withheld=True,
        writes=WriteRule.UNITS,
        survives=_FRONT_CHANGES,
        key_loses_cache=True,
        keys=frozenset(("user_id",)),
        as_of="2026-11",
        source="api-docs.deepseek.com, guides/kv_cache and news0802; blocks: 3rd party",
        notes=(
            "Blocks: 64 tokens as documented for V2 in 2024; a third party fitted 17 "
            "observations in 2026-09: 128 with the last withheld 17, 64 at most 3. "
            "Units also end where requests were seen to share a prefix, and at fixed "
            "token intervals of long inputs; the interval is not documented. The "
            "minimum is that of V2; kept for hours to days. `user_id` partitions the "
            "cache (third party). A text as string or as part: the model's chat "
            "template decides."
        ),
    ),
    ProviderRules(
        name="openai",
        minimum_tokens=1024,
        writes=WriteRule.REQUEST_END,
        look_back=20,
        ttl_seconds=1800,
        survives=_OPENAI_CHANGES,
        key_loses_cache=True,
        keys=frozenset(("prompt_cache_key",)),
        as_of="2026-11",
        source="OpenAI's prompt caching guide, GPT-5.6 and later; openai 3.57.0",
        notes=(
            "Lookup: the guide says the first 2 and latest 50 explicit breakpoints, "
            "the implicit one and up to 20 earlier message endings; the SDK says the "
            "latest 80 breakpoints and no limit of look-back. Another key: inferred "
            "from `prompt_cache_key_changed`, a reason of its prompt cache "
            "diagnostics. At most 4 writes a request, the implicit one among them; 12 "
            "h can be asked for in the newest SDK. In explicit mode only marks are "
            "written: the bodies must say so. Tool choice: `none` and `allowed_tools` "
            "lose nothing; others not said. A text as string or as part: not "
            "documented."
        ),
    ),
    ProviderRules(
        name="openai-5.5",
        minimum_tokens=1024,
        block_tokens=128,
        model_block_tokens={"gpt-5-5": 2048},
        writes=WriteRule.BLOCKS,
        ttl_seconds=86400,
        survives=_OPENAI_CHANGES,
        keys=frozenset(("prompt_cache_key",)),
        as_of="2026-11",
        source="OpenAI's prompt caching guide and cookbook, up to GPT-5.5",
        notes=(
            "GPT-5.5 has a breakpoint every 2,048 tokens; hidden system tokens are "
            "taken off before rounding to 128, and are not counted here. Kept 24 h by "
            "default, but in memory (5-10 min idle, 1 h at most) for organisations "
            "with zero data retention. `prompt_cache_key` and the first ~256 tokens "
            "choose the machine: another key may miss; over ~15 requests a minute "
            "overflow to another machine. Tool choice: `none` and `allowed_tools` "
            "lose nothing; others not said. A text as string or as part: not "
            "documented."
        ),
    ),
    ProviderRules(
        name="anthropic",
        minimum_tokens=512,
        model_minimums=_CLAUDE_MINIMUMS,
        writes=WriteRule.MARKS,
        look_back=20,
        ttl_seconds=300,
        survives={
            **_FRONT_CHANGES,
            "web_search": _KEEPS_TOOLS,
            "citations": _KEEPS_TOOLS,
            "speed": _KEEPS_TOOLS,
            "tool_choice": _KEEPS_FRONT,
            "images": _KEEPS_FRONT,
            "thinking": _BY_MODEL,
            "effort": _BY_MODEL,
            "output_config": _BY_MODEL,
        },
        text_forms_alike=True,
        as_of="2026-11",
        source="platform.claude.com, prompt caching guide",
        notes=(
            "5 minutes or 1 hour; that 5 minutes is the default is inferred. Adding "
            "or removing an image is documented; another image in its place is taken "
            "as both."
        ),
    ),
    ProviderRules(
        name="gemini",
        minimum_tokens=2048,
        model_minimums={"gemini-2-5": 2048, "gemini-3": 4096},
        writes=WriteRule.BLOCKS,
        survives=_FRONT_CHANGES,
        as_of="2026-11",
        source="Gemini API and Google Cloud, context caching (implicit)",
        notes=(
            "Implicit caching promises no saving; kept for a short time. Older "
            "versions of the page: a minimum of 1,024 and 4,096. Texts have one form "
            "only, a part."
        ),
    ),
    ProviderRules(
        name="bedrock",
        minimum_tokens=0,
        model_minimums=_CLAUDE_MINIMUMS,
        writes=WriteRule.MARKS,
        look_back=20,
        ttl_seconds=300,
        survives={
            **_FRONT_CHANGES,
            "tool_choice": _KEEPS_FRONT,
            **dict.fromkeys(
                ("thinking", "effort", "output_config", "reasoning_config"), NOTHING
            ),
        },
        as_of="2026-11",
        source="Amazon Bedrock, prompt caching; botocore 1.44.8; cachecanary (3rd)",
        notes=(
            "Look-back: ~20 blocks as documented; a third party, live in 2026-10: 21 "
            "added blocks hit, 22 miss. Thinking, effort and tool choice: third "
            "party. Converse and InvokeModel never share entries. Minimums are those "
            "of the Claude API; of other models none is known. 5 minutes or 1 hour; "
            "that 5 minutes is the default is inferred. Texts have one form only, a "
            "part."
        ),
    ),
    ProviderRules(
        name="vllm",
        minimum_tokens=0,
        block_tokens=16,
        writes=WriteRule.BLOCKS,
        survives=_FRONT_CHANGES,
        key_loses_cache=True,
        keys=frozenset(("cache_salt",)),
        as_of="2026-11",
        source="vLLM v1, hash_block_tokens, as read",
        notes=(
            "Full blocks only, the least recently used are evicted. `cache_salt` "
            "enters block 0 and so changes every block. A text as string or as part: "
            "the model's chat template decides."
        ),
    ),
    ProviderRules(
        name="sglang",
        minimum_tokens=0,
        writes=WriteRule.BLOCKS,
        survives=_FRONT_CHANGES,
        key_loses_cache=True,
        keys=frozenset(("cache_salt",)),
        as_of="2026-11",
        source="SGLang, RadixAttention, as read",
        notes=(
            "Compared by token, aligned to pages of 1 token by default; the least "
            "recently used leaves are evicted. `cache_salt` is a namespace of its "
            "own. A text as string or as part: the model's chat template decides."
        ),
    ),
)

RULES: Final[Mapping[str, ProviderRules]] = FrozenDict(
    {rules.name: rules for rules in _ENTRIES}
)
"""The rules by provider: what `rules_for` and `verdict` take by name."""
