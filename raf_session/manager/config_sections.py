"""The sections of the configuration: their options and the document's defaults."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import model_validator
from typing_extensions import override

from raf_session.errors import InvalidValueError
from raf_session.history import WindowMode
from raf_session.key_paths import SessionScope
from raf_session.manager.config_values import (
    SHOWN_AS_TEXT,
    ConfigModel,
    choice,
    duration,
    filled_text,
    flag,
    folder,
    percent,
    whole,
)
from raf_session.options import Limits, SessionTTLOptions

__all__ = (
    "CompactionConfig",
    "CompactionMode",
    "SessionConfig",
    "ToolCallConfig",
)

_Flag = Annotated[bool, flag()]
_Count = Annotated[int, whole(0)]
_Limit = Annotated[int | None, whole(1, null=True)]
_Duration = Annotated[timedelta | None, duration(), SHOWN_AS_TEXT]


class CompactionMode(StrEnum):
    """When a session's old messages are summarised."""

    SAFEGUARD = "safeguard"
    """Before a request that would not fit the window; recommended."""
    AUTO = "auto"
    """After a save that reached the target."""
    OFF = "off"
    """When it is asked for, and not otherwise."""


class SessionConfig(ConfigModel):
    """What is kept of sessions, for how long, and how much of it a request takes.

    `None` is no limit, everywhere.
    """

    enabled: _Flag = True
    """Whether sessions are kept; where not, nothing is opened or stored."""

    storage_path: Annotated[str, folder()] = "sessions"
    """The folder of the session files."""

    max_messages: _Limit = 200
    """The most messages of history in a request; nothing stored is removed by it."""

    max_token_count: _Limit = 128_000
    """The most tokens of a request."""

    default_scope: Annotated[SessionScope, choice(SessionScope)] = SessionScope.PER_PEER
    """The scope of a request that names none."""

    ttl: _Duration = timedelta(hours=24)
    """How long a session lives from its creation, whatever happens; 0: not at all."""

    idle_timeout: _Duration = timedelta(minutes=30)
    """How long a session lives without activity; 0: not at all."""

    model_context: _Limit = None
    """Ours: the context window of the model in tokens; `None`: `max_token_count`."""

    reserve_tokens: _Count = 0
    """Ours: tokens of the window that are left free for the answer."""

    window: Annotated[WindowMode, choice(WindowMode)] = WindowMode.STEPPED
    """Ours: how the window over a long history moves: in steps, which prompt caches
    follow, or by no more than it must."""

    @model_validator(mode="after")
    def _check_reserve(self) -> Self:
        budget = self.request_tokens
        if budget is not None and self.reserve_tokens >= budget:
            raise InvalidValueError(
                "reserve_tokens", f"expected less than the window of {budget} tokens"
            )
        return self

    @property
    def window_tokens(self) -> int | None:
        """The context window: the model's, else `max_token_count`; `None`: no limit."""
        return (
            self.max_token_count if self.model_context is None else self.model_context
        )

    @property
    def request_tokens(self) -> int | None:
        """The most that a request and its answer may have: the lower of both limits."""
        given = (self.max_token_count, self.model_context)
        return min((tokens for tokens in given if tokens is not None), default=None)

    @property
    def limits(self) -> Limits:
        """What a journal has to enforce: `ttl` as lifetime, `idle_timeout` as idle."""
        return Limits(
            sessions=SessionTTLOptions(
                max_idle_secs=_seconds(self.idle_timeout),
                max_lifetime_secs=_seconds(self.ttl),
            )
        )


def _seconds(found: timedelta | None) -> float | None:
    return None if found is None else found.total_seconds()


class CompactionConfig(ConfigModel):
    """When and how far the old messages of a session are summarised."""

    mode: Annotated[
        CompactionMode, choice(CompactionMode, {False: CompactionMode.OFF})
    ] = CompactionMode.SAFEGUARD
    """When; YAML reads a bare ``off`` as false, which is taken as `OFF`."""

    keep_recent_count: _Count = 10
    """How many of the last messages stay as they are."""

    target_tokens: Annotated[int, whole(1)] = 76_800
    """The target in tokens, where there is no percentage.

    Where this is given and `target_tokens_percent` is not, that is `None`.
    """

    target_tokens_percent: Annotated[float | None, percent()] = 60
    """The target as a share of the context window; wins over `target_tokens`."""

    min_messages_to_compact: _Count = 20
    """With fewer messages nothing is summarised, unless the window is exceeded."""

    memory_flush: _Flag = True
    """Whether every live handle of the session reads it anew after a compaction."""

    summary_timeout: Annotated[
        timedelta | None, duration(positive=True), SHOWN_AS_TEXT
    ] = timedelta(seconds=60)
    """Ours: how long a summary may take; `None`: as long as it takes."""

    @classmethod
    @override
    def given(cls, values: object) -> dict[str, Any]:
        found = super().given(values)
        if "target_tokens" in found:
            found.setdefault("target_tokens_percent", None)
        return found

    def target(self, window: int | None) -> int:
        """Return how many tokens are left by a compaction, at most, from 1.

        Args:
            window: the context window in tokens; `None`: not known.
        """
        share = self.target_tokens_percent
        if share is None or window is None:
            return self.target_tokens
        return max(int(window * share / 100), 1)


class ToolCallConfig(ConfigModel):
    """What is kept of tool calls and results. The document: ``ToolCallConfig``."""

    save_tool_calls: _Flag = True
    """Whether calls and results are stored."""

    keep_tool_calls_count: Annotated[int | None, whole(0, null=True)] = 5
    """How many groups of calls and results history shows; 0: none, `None`: all."""

    max_tool_result_size: _Limit = 2000
    """The most characters of a result in history; `None`: all."""

    placeholder: Annotated[str | None, filled_text()] = None
    """Ours: a text that stands for a group that is not shown; `None`: there is none."""
