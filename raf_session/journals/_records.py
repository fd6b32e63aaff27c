"""What a journal has read of a session or a scope: texts, not yet values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from raf_session.changes import RequestRecord
from raf_session.clock import from_micros
from raf_session.encoding import BodyFormat, RawRow
from raf_session.entries import Record, SessionHead
from raf_session.frozen import EMPTY
from raf_session.journal import ScopedState
from raf_session.journals._texts import Pairs, Values
from raf_session.keys import ScopeKey

__all__ = ("NO_STATE", "Found", "Scoped", "record_of")

NO_STATE: Final = ScopedState(EMPTY, None, None)


class Scoped(NamedTuple):
    """The state of a scope."""

    pairs: Pairs
    created_at: int
    last_active_at: int

    def state(self, scope: ScopeKey, values: Values) -> ScopedState:
        """Decode the values."""
        return ScopedState(
            values.decode(scope, self.pairs),
            from_micros(self.created_at),
            from_micros(self.last_active_at),
        )


class Found(NamedTuple):
    """A session, as much of it as was asked for."""

    head: SessionHead
    active: Sequence[RawRow]
    archived: Sequence[RawRow]
    state: Pairs
    providers: Pairs
    digests: bytes
    user: Scoped | None
    app: Scoped | None


def record_of(found: Found, bodies: BodyFormat, values: Values) -> Record:
    """Decode what was read.

    Raises:
        SessionDamagedError: a part of it cannot be decoded; it names the part.
    """
    head = found.head
    key = head.key
    return Record(
        head=head,
        entries=bodies.decode(key, found.active),
        archived=bodies.decode(key, found.archived),
        state=values.decode(key, found.state),
        user_state=values.decode(key, found.user.pairs) if found.user else EMPTY,
        app_state=values.decode(key, found.app.pairs) if found.app else EMPTY,
        provider_states=values.decode(key, found.providers),
        request=None
        if head.request_hash is None
        else RequestRecord(
            found.digests,
            head.request_hash,
            head.request_header,
            head.request_format or 1,
        ),
    )
