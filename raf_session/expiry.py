"""The one rule of expiry: strict, in whole microseconds, with RAF's sentinels."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.options import SessionTTLOptions, micros

__all__ = ("ExpiryRule", "Lifecycle", "lifecycle")


class Lifecycle(StrEnum):
    """Where a session stands in RAF's state diagram."""

    ACTIVE = "active"
    IDLE = "idle"
    EXPIRED = "expired"


class ExpiryRule:
    """`SessionTTLOptions` as a predicate over microseconds since the epoch.

    Expired iff ``now - last_active_at > max_idle`` or ``now - created_at >
    max_lifetime``.  A time of 0, RAF's `UNIX_EPOCH` for "never told", exempts from the
    rule that needs it.

    Attributes:
        max_idle: microseconds, or `None` for off.
        max_lifetime: microseconds, or `None` for off.
    """

    __slots__ = ("enabled", "max_idle", "max_lifetime")

    def __init__(self, options: SessionTTLOptions) -> None:
        self.max_idle: Final = micros(options.max_idle_secs)
        self.max_lifetime: Final = micros(options.max_lifetime_secs)
        self.enabled: Final = options.enabled

    def expired(self, created_at: int, last_active_at: int, now: int) -> bool:
        """Tell whether something with these times has expired."""
        idle, lifetime = self.max_idle, self.max_lifetime
        return (
            idle is not None and last_active_at != 0 and now - last_active_at > idle
        ) or (lifetime is not None and created_at != 0 and now - created_at > lifetime)

    def cutoffs(self, now: int) -> tuple[int | None, int | None]:
        """Return the last_active_at and created_at before which things have expired."""
        idle, lifetime = self.max_idle, self.max_lifetime
        return (
            None if idle is None else now - idle,
            None if lifetime is None else now - lifetime,
        )

    def head_expired(self, head: SessionHead, now: int) -> bool:
        """Tell whether a session has expired; a pinned one never does."""
        return (
            self.enabled
            and not head.pinned
            and self.expired(
                to_micros(head.created_at), to_micros(head.last_active_at), now
            )
        )


def lifecycle(
    head: SessionHead,
    options: SessionTTLOptions,
    now: datetime,
    *,
    idle_after_secs: float = 300.0,
) -> Lifecycle:
    """Tell where a session stands.

    Args:
        head: the session.
        options: the limits of its journal.
        now: the journal's time.
        idle_after_secs: without activity for longer than this it is idle.
    """
    moment = to_micros(now)
    if ExpiryRule(options).head_expired(head, moment):
        return Lifecycle.EXPIRED
    quiet = moment - to_micros(head.last_active_at)
    return (
        Lifecycle.IDLE if quiet > (micros(idle_after_secs) or 0) else Lifecycle.ACTIVE
    )
