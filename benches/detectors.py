"""What tells whether a request body begins with the one before it: ours and the peers.

Each peer is asked as its own documentation has it, and in its favour where the two
bodies alone would not do: no body is too short, none comes too late, the cache was
read.  The peers read Anthropic's bodies and those of OpenAI's Chat Completions.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from typing_extensions import override

from benches.machine import version
from raf_session import PrefixHistory, compare_requests
from raf_session.request_shapes import RequestShape, shape_of

__all__ = ("DETECTORS", "Detector", "Pair", "read_pairs")

SHAPES = (RequestShape.ANTHROPIC, RequestShape.OPENAI_CHAT)


@dataclass(frozen=True)
class Pair:
    """Two bodies of one session, one right after the other."""

    name: str
    shape: RequestShape
    previous: dict[str, Any]
    current: dict[str, Any]
    breaks: bool | None
    """Whether the second breaks the prefix; `None`: that depends on the provider."""


def _ours(entry: Mapping[str, Any]) -> Pair:
    verdicts = entry.get("verdicts", {}).values()
    form = any(verdict["reason"] == "form_only" for verdict in verdicts)
    return Pair(
        entry["name"],
        RequestShape(entry["shape"]),
        entry["previous"],
        entry["current"],
        None if form else not entry["append_only"],
    )


def _of_requests(entry: Mapping[str, Any]) -> Pair:
    told = entry["expect"]["verdict"]
    appended = told.startswith("prefix_ok")
    return Pair(
        entry["id"],
        shape_of(entry["request_n1"])[0],
        entry["request_n"],
        entry["request_n1"],
        False if appended else True if told == "break" else None,
    )


def read_pairs(path: Path) -> list[Pair]:
    """Return the pairs of a file that the peers can be asked about.

    An entry holds `previous` and `current`, as `prefix-breaks-v1.json` has them, or
    `request_n`, `request_n1` and `expect`.
    """
    entries = json.loads(path.read_text(encoding="utf-8"))
    pairs = [_of_requests(e) if "request_n" in e else _ours(e) for e in entries]
    return [pair for pair in pairs if pair.shape in SHAPES]


class Detector(ABC):
    """One way to ask."""

    name: ClassVar[str]
    asked: ClassVar[str]
    distribution: ClassVar[str | None] = None

    @abstractmethod
    def breaks(self, pair: Pair) -> bool:
        """Return whether the second body is reported as a break."""

    @abstractmethod
    def turn(self, pair: Pair) -> float:
        """Return the seconds that the second body takes, the first one known."""


class CompareRequests(Detector):
    """`compare_requests`: both bodies are read each time."""

    name = "compare_requests"
    asked = "compare_requests(previous, current, provider=...)"

    @override
    def breaks(self, pair: Pair) -> bool:
        match = compare_requests(pair.previous, pair.current, provider=pair.shape)
        return not match.append_only

    @override
    def turn(self, pair: Pair) -> float:
        started = time.perf_counter()
        match = compare_requests(pair.previous, pair.current)
        seconds = time.perf_counter() - started
        assert match.append_only
        return seconds


class History(Detector):
    """`PrefixHistory`, which keeps what it needs of the former body."""

    name = "PrefixHistory"
    asked = "PrefixHistory(provider=...).touch_request(body) for both"

    @override
    def breaks(self, pair: Pair) -> bool:
        history = PrefixHistory(provider=pair.shape)
        history.touch_request(pair.previous)
        return not history.touch_request(pair.current).append_only

    @override
    def turn(self, pair: Pair) -> float:
        history = PrefixHistory()
        history.touch_request(pair.previous)
        started = time.perf_counter()
        match = history.touch_request(pair.current)
        seconds = time.perf_counter() - started
        assert match.append_only
        return seconds


class Hearth(Detector):
    """`PrefixGuard`, which `hearth.wrap` asks before each call.

    It gets what the wrapper hands it, and all the parameters that it looks at.  No
    prefix is below its minimum, and the provider is said to have read its cache:
    without the first it looks no further, without the second any append is a
    "provider_miss".  Timed is the guard alone, without what the wrapper adds: a copy of
    the request, its tokens, a ledger and a trace.
    """

    name = distribution = "hearth-ai"
    asked = "PrefixGuard(min_prefix_tokens=0).evaluate_call(...) for both"

    parameters: ClassVar = (
        "model",
        "tool_choice",
        "temperature",
        "parallel_tool_calls",
    )

    def _guard(self) -> Any:
        from hearth.guard import PrefixGuard

        return PrefixGuard(min_prefix_tokens=0)

    def _evaluate(self, guard: Any, body: dict[str, Any], now: float) -> Any:
        return guard.evaluate_call(
            curr_params={k: body[k] for k in self.parameters if k in body},
            curr_tools=body.get("tools", []),
            curr_system=str(body.get("system", "")),
            curr_messages=body["messages"],
            total_tokens=1,
            ts=now,
            provider_read_tokens=1,
        )

    @override
    def breaks(self, pair: Pair) -> bool:
        guard = self._guard()
        self._evaluate(guard, pair.previous, 1.0)
        return self._evaluate(guard, pair.current, 2.0) is not None

    @override
    def turn(self, pair: Pair) -> float:
        guard = self._guard()
        self._evaluate(guard, pair.previous, 1.0)
        started = time.perf_counter()
        event = self._evaluate(guard, pair.current, 2.0)
        seconds = time.perf_counter() - started
        assert event is None
        return seconds


class _StandIn(ABC):
    """A client that answers at once, and nothing; its class says whose it would be."""

    def __init__(self) -> None:
        endpoint = SimpleNamespace(create=lambda **_: SimpleNamespace(usage=None))
        self.messages = endpoint
        self.chat = SimpleNamespace(completions=endpoint)

    @abstractmethod
    def send(self, body: dict[str, Any]) -> None:
        """Call it as its users do."""


class AnthropicStandIn(_StandIn):
    """In the place of `anthropic.Anthropic`."""

    @override
    def send(self, body: dict[str, Any]) -> None:
        self.messages.create(**body)


class OpenAIStandIn(_StandIn):
    """In the place of `openai.OpenAI`."""

    @override
    def send(self, body: dict[str, Any]) -> None:
        self.chat.completions.create(**body)


class CacheGuardian(Detector):
    """`cacheguardian.dry_run` on a wrapped client that has sent the former body.

    A request that "would hit the cache" is no break; the warnings beside it name every
    append.  `auto_fix` is off: with it, the wrapper sends other bodies, of which tools
    are sorted by name and, to Anthropic, the keys of tools as well.  Timed is a call of
    the wrapped client, which compares once where `dry_run` does so twice; its console
    is quiet.
    """

    name = distribution = "cacheguardian"
    asked = "wrap(client, auto_fix=False), a call, dry_run(...).would_hit_cache"

    def _client(self, pair: Pair) -> Any:
        import cacheguardian
        from cacheguardian.core.logger import console

        console.quiet = True
        anthropic = pair.shape is RequestShape.ANTHROPIC
        client = AnthropicStandIn() if anthropic else OpenAIStandIn()
        wrapped = cacheguardian.wrap(
            client, auto_fix=False, log_level="ERROR", model_recommendations=False
        )
        wrapped.send(pair.previous)
        return wrapped

    def _hits(self, client: Any, body: dict[str, Any]) -> bool:
        import cacheguardian

        return bool(cacheguardian.dry_run(client, **body).would_hit_cache)

    @override
    def breaks(self, pair: Pair) -> bool:
        return not self._hits(self._client(pair), pair.current)

    @override
    def turn(self, pair: Pair) -> float:
        client = self._client(pair)
        started = time.perf_counter()
        client.send(pair.current)
        seconds = time.perf_counter() - started
        assert self._hits(client, pair.current)
        return seconds


class CacheBench(Detector):
    """`cachebench.fingerprint`, one value for everything but the last message.

    It is asked for the messages that the former body has, of either body and with one
    more behind them: where both values are equal, there is no break.  Timed is a call
    that its tracker wraps, which makes one of them.
    """

    name = distribution = "cachebench"
    asked = "fingerprint(...) of what the former body has, of both"

    def _value(self, body: dict[str, Any], count: int) -> str:
        from cachebench import fingerprint

        return str(
            fingerprint(
                messages=[*body["messages"][:count], {}],
                system=body.get("system"),
                tools=body.get("tools"),
                model=body.get("model"),
            )
        )

    @override
    def breaks(self, pair: Pair) -> bool:
        count = len(pair.previous["messages"])
        return self._value(pair.previous, count) != self._value(pair.current, count)

    @override
    def turn(self, pair: Pair) -> float:
        from cachebench import CacheTracker, Provider

        tracker = CacheTracker(provider=Provider.OPENAI)
        create = tracker.wrap(OpenAIStandIn().chat.completions.create)
        started = time.perf_counter()
        create(**pair.current)
        seconds = time.perf_counter() - started
        count = len(pair.current["messages"]) - 1
        assert tracker.calls()[0].prefix_id == self._value(pair.current, count)
        return seconds


_PEERS: tuple[type[Detector], ...] = (Hearth, CacheGuardian, CacheBench)

DETECTORS: tuple[Detector, ...] = (
    CompareRequests(),
    History(),
    *(cls() for cls in _PEERS if cls.distribution and version(cls.distribution)),
)
