"""What a window in steps is worth: prompt reuse beside a sliding one, same limit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from benches.corpus import conversation
from raf_session.history import HistoryPolicy, HistoryWindow, WindowMode
from raf_session.messages import ChatMessage, MessageRole
from raf_session.prefix_history import PrefixHistory
from raf_session.tokens import EstimatingTokenCounter, TiktokenCounter, TokenCounter

__all__ = ("Table", "WindowRow", "print_windows", "report")

MESSAGES: Final = 2000
MAX_TOKENS: Final = 8000
_LEAST_REUSE: Final = 0.85
_TIMES_SLIDING: Final = 1.8
_LEAST_HISTORY: Final = 0.75


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One policy over the whole session.

    A request is all in front of a model's answer, the system message included.
    """

    counter: str
    mode: WindowMode
    keep_tool_calls: int | None
    requests: int
    moved: int
    """Requests in front of which something left."""
    broken: int
    """Of the others, those that did not only append."""
    mean_reuse: float
    """Of the bytes of a request that it shares with the one before, the mean over all
    but the first."""
    total_reuse: float
    """Of the bytes of all requests but the first together."""
    mean_tokens: float
    most_tokens: int


class Table(NamedTuple):
    """The rows, and what they are of."""

    corpus: str
    messages: int
    rows: Sequence[WindowRow]

    def findings(self) -> list[tuple[str, bool]]:
        """Return what the rows that keep all calls have to reach, and if they do."""
        found: list[tuple[str, bool]] = []
        for counter in dict.fromkeys(row.counter for row in self.rows):
            both = [
                row
                for row in self.rows
                if row.counter == counter and row.keep_tool_calls is None
            ]
            found += _findings(counter, *both)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON."""
        return {
            "corpus": self.corpus,
            "messages": self.messages,
            "rows": [asdict(row) for row in self.rows],
            "findings": dict(self.findings()),
        }


def _findings(
    counter: str, stepped: WindowRow, sliding: WindowRow
) -> list[tuple[str, bool]]:
    ratio = stepped.mean_reuse / sliding.mean_reuse
    of_all = f"(of all bytes {stepped.total_reuse / sliding.total_reuse:.2f} x)"
    history = stepped.mean_tokens / sliding.mean_tokens
    most = max(stepped.most_tokens, sliding.most_tokens)
    return [
        (f"{counter}: each request within {MAX_TOKENS:,} tokens", most <= MAX_TOKENS),
        (f"{counter}: append_only wherever nothing left", stepped.broken == 0),
        (
            f"{counter}: mean reuse {stepped.mean_reuse:.1%} >= {_LEAST_REUSE:.0%}",
            stepped.mean_reuse >= _LEAST_REUSE,
        ),
        (
            f"{counter}: {ratio:.2f} x sliding >= {_TIMES_SLIDING} {of_all}",
            ratio >= _TIMES_SLIDING,
        ),
        (
            f"{counter}: history {history:.1%} of sliding >= {_LEAST_HISTORY:.0%}",
            history >= _LEAST_HISTORY,
        ),
    ]


_CJK: Final = re.compile("[\u4e00-\u9fff]")


class QuarterCounter:
    """TPCLAW's own rule: two thirds of a token for a CJK character, else a quarter."""

    def count(self, message: ChatMessage, /) -> int:
        """Return the tokens of its text and of the arguments of its calls."""
        calls = message.tool_calls or ()
        arguments = "".join(f"{call.name}{call.arguments}" for call in calls)
        text = message.text + arguments
        wide = len(_CJK.findall(text))
        return max(1, wide * 2 // 3 + (len(text) - wide) // 4)


COUNTERS: Final[dict[str, TokenCounter]] = {
    "estimate": EstimatingTokenCounter(),
    "quarter": QuarterCounter(),
}


def report(
    path: Path | None = None, *, count: int = MESSAGES, encoding: str | None = None
) -> Table:
    """Walk one long session under each policy, and return the table.

    Args:
        path: conversations, a JSON object with ``messages`` in each line, joined in
            their order: the first system message stays, the others are left out; by
            default made-up ones.
        count: how many messages the session has at most.
        encoding: an encoding of tiktoken, whose count is one more counter.
    """
    messages = _session(path, count)
    counters = dict(COUNTERS)
    if encoding is not None:
        counters[encoding] = TiktokenCounter(encoding)
    rows = [
        _walk(messages, name, counter, mode, keep)
        for name, counter in counters.items()
        for keep in (None, 5)
        for mode in WindowMode
    ]
    corpus = "made up" if path is None else path.name
    return Table(corpus, len(messages), rows)


def _session(path: Path | None, count: int) -> list[ChatMessage]:
    if path is None:
        return [*map(ChatMessage.from_openai, conversation(count, size=400))]
    joined: list[ChatMessage] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        for fields in json.loads(line)["messages"]:
            message = ChatMessage.from_openai(fields)
            if message.role is not MessageRole.SYSTEM or not joined:
                joined.append(message)
    return joined[:count]


def _walk(
    messages: Sequence[ChatMessage],
    name: str,
    counter: TokenCounter,
    mode: WindowMode,
    keep: int | None,
) -> WindowRow:
    policy = HistoryPolicy(max_tokens=MAX_TOKENS, keep_tool_calls=keep, mode=mode)
    window = HistoryWindow(policy, counter)
    history = PrefixHistory()
    tokens: list[int] = []
    reuse: list[float] = []
    moves = moved = broken = 0
    for message in messages:
        if message.role is MessageRole.ASSISTANT:
            view = window.view()
            match = history.touch(view.messages)
            tokens.append(view.tokens)
            if not match.first:
                reuse.append(match.shared_bytes / match.bytes)
                if view.moves > moves:
                    moved += 1
                elif not match.append_only:
                    broken += 1
            moves = view.moves
        window.extend([message])
    return WindowRow(
        name,
        mode,
        keep,
        history.requests,
        moved,
        broken,
        sum(reuse) / len(reuse),
        history.reuse or 0.0,
        sum(tokens) / len(tokens),
        max(tokens),
    )


def print_windows(table: Table) -> None:
    """Print the table, and what it has to show."""
    print(
        f"{table.messages:,} messages ({table.corpus}), a window of {MAX_TOKENS:,} "
        "tokens, a request in front of each answer of the model"
    )
    print(
        f"{'counter':11} {'mode':8} {'calls':>5} {'requests':>8} {'moved':>6} "
        f"{'broken':>6} {'mean reuse':>10} {'of all':>7} {'tokens':>7} {'most':>6}"
    )
    for row in table.rows:
        keep = "all" if row.keep_tool_calls is None else str(row.keep_tool_calls)
        print(
            f"{row.counter:11} {row.mode:8} {keep:>5} {row.requests:8,} "
            f"{row.moved:6,} {row.broken:6,} {row.mean_reuse:10.1%} "
            f"{row.total_reuse:7.1%} {row.mean_tokens:7,.0f} {row.most_tokens:6,}"
        )
    for finding, reached in table.findings():
        print(f"    {finding}: {'reached' if reached else 'NOT REACHED'}")
