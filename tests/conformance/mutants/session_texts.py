"""Sessions that are written out and read back wrongly."""

from __future__ import annotations

import re
from json import dumps, loads
from typing import Any, ClassVar, Self

from typing_extensions import override

from mutants.registry import fault
from raf_session.agent_session import AgentSession
from raf_session.clock import UNIX_EPOCH
from raf_session.metadata import SessionSnapshot
from raf_session.session_view import MessageLog


@fault("session", "rafs_own_text_is_read")
class ForgetsActivity(AgentSession):
    """A session that is read back was last active when it began."""

    @classmethod
    @override
    def from_snapshot(cls, snapshot: SessionSnapshot, **options: Any) -> Self:
        session = super().from_snapshot(snapshot, **options)
        session._view = session._view._replace(last_active_at=session.created_at)
        return session


@fault("session", "a_session_read_back_is_independent")
class ReadsIntoOneLog(AgentSession):
    """A session that is read back shares its list with the one that was written."""

    _written: ClassVar[dict[str, MessageLog]] = {}

    @override
    def serialize(self) -> str:
        text = super().serialize()
        self._written[text] = self._view.log
        return text

    @classmethod
    @override
    def deserialize(cls, data: str, /) -> Self:
        session = super().deserialize(data)
        log = cls._written.get(data, session._view.log)
        session._view = session._view._replace(log=log)
        return session


@fault("session", "the_text_is_rafs")
class WritesNull(AgentSession):
    """Content that is null is written so, which RAF cannot read."""

    @override
    def serialize(self) -> str:
        fields = loads(super().serialize())
        for message in fields["messages"]:
            message["content"] = message["content"] or None
        return dumps(fields)


@fault("session", "unknown_fields_are_kept")
class DropsUnknownFields(AgentSession):
    """What a newer writer added is gone when the session is written again."""

    @classmethod
    @override
    def deserialize(cls, data: str, /) -> Self:
        session = super().deserialize(data)
        session._extra = session._metadata_extra = {}
        return session


@fault("session", "rafs_own_text_is_read")
class ReadsSixDigits(AgentSession):
    """Times with nine digits cannot be read."""

    @classmethod
    @override
    def deserialize(cls, data: str, /) -> Self:
        if re.search(r"\.\d{7}", data):
            raise ValueError("a time has six digits")
        return super().deserialize(data)


@fault("session", "what_is_no_session_is_refused")
class ReadsAnything(AgentSession):
    """Text that is no session is read as an empty one."""

    @classmethod
    @override
    def deserialize(cls, data: str, /) -> Self:
        try:
            return super().deserialize(data)
        except ValueError:
            return cls("lost")


@fault("session", "activity_never_told_is_the_beginning")
class NeverActiveIsNever(AgentSession):
    """Where an old writer kept no activity, there was none since the epoch."""

    @classmethod
    @override
    def from_snapshot(cls, snapshot: SessionSnapshot, **options: Any) -> Self:
        session = super().from_snapshot(snapshot, **options)
        if snapshot.last_active_at is None:
            session._view = session._view._replace(last_active_at=UNIX_EPOCH)
        return session


@fault("session", "a_session_is_read_back")
class ForgetsTheRequest(AgentSession):
    """A session that is read back never sent a request."""

    @classmethod
    @override
    def from_snapshot(cls, snapshot: SessionSnapshot, **options: Any) -> Self:
        session = super().from_snapshot(snapshot, **options)
        session.restore_request(None)
        return session
