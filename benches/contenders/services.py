"""What the session services of Google's ADK and of tRPC-Agent have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from benches.contenders.contender import Contender

__all__ = ("ServiceContender",)


class ServiceContender(Contender):
    """A session service: a session of events, of one app and one user."""

    lacks: ClassVar = {"batch append": "one event a call"}
    service: Any

    @override
    def text(self, message: Any) -> str:
        return str(message.content.parts[0].text)

    @override
    async def create(self, name: str) -> Any:
        return await self.service.create_session(
            app_name="a", user_id="u", session_id=name
        )

    @override
    async def append(self, session: Any, message: Any) -> None:
        await self.service.append_event(session, message)

    @override
    async def load(self, name: str) -> Sequence[Any]:
        session = await self.service.get_session(
            app_name="a", user_id="u", session_id=name
        )
        found: list[Any] = session.events
        return found

    @override
    async def listed(self, count: int) -> Sequence[str]:
        found = await self.service.list_sessions(app_name="a", user_id="u")
        return [session.id for session in found.sessions]
