"""A session of a list and a dict, as simple as can be, for the machine to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from raf_session.conformance.session_values import shown
from raf_session.messages import ChatMessage

__all__ = ("ModelSession",)


@dataclass
class ModelSession:
    """What has to be known of a session to predict every answer."""

    session_id: str
    created_at: datetime
    messages: list[ChatMessage] = field(default_factory=list[ChatMessage])
    states: dict[str, str] = field(default_factory=dict[str, str])
    """Provider states, as JSON text."""
    last_hash: int | None = None
    """Of the last request; `None` before the first."""
    hash_known: bool = True
    tells_times: bool = True

    def __post_init__(self) -> None:
        self.active_at: datetime = self.created_at

    def _known(self) -> dict[str, ChatMessage]:
        return {m.id: m for m in self.messages if m.id is not None}

    def conflicts(self, messages: Sequence[ChatMessage]) -> bool:
        """Say whether ids are known with another message, in part, or come twice."""
        known = self._known()
        ids = [message.id for message in messages if message.id is not None]
        found = [known.get(message.id or "") for message in messages]
        return (
            len(set(ids)) != len(ids)
            or any(
                old is not None and shown(old) != shown(new)
                for old, new in zip(found, messages, strict=True)
            )
            or (any(found) and not all(found))
        )

    def add(
        self, messages: Sequence[ChatMessage], now: datetime, *, once: bool
    ) -> None:
        """Append messages; those whose ids are all known change nothing."""
        known = self._known()
        if not messages or (once and all((m.id or "") in known for m in messages)):
            return
        self.messages.extend(messages)
        self.touch(now)

    def clear(self, now: datetime) -> None:
        """Erase the history and the request record."""
        self.messages.clear()
        self.last_hash = None
        self.touch(now)

    def touch(self, now: datetime) -> None:
        """Record activity, never back."""
        self.active_at = max(self.active_at, now)
