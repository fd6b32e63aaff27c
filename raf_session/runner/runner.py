"""`Runner`: an agent in its sessions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any
from uuid import uuid4

import anyio

from raf_session.errors import SessionExistsError
from raf_session.keys import check_name
from raf_session.runner.agents import Agent
from raf_session.runner.invocation import InvocationContext
from raf_session.runner.streams import reading
from raf_session.service.base import BaseSessionService
from raf_session.service.contents import USER_AUTHOR, message_of
from raf_session.service.events import Event, EventActions
from raf_session.service.session_service import SessionService
from raf_session.service.sessions import Session

__all__ = ("Runner",)


class Runner:
    """Runs an agent, and keeps what happens in its session. tRPC-Agent: ``Runner``.

    Args:
        app_name: the app whose sessions are used.
        agent: the agent.
        session_service: what keeps the sessions.
        exclusive: store an event only where nobody else has written in the session
            since this run began, so that two runs cannot mix their calls and results;
            the later one fails with `StaleSessionError`.

    Raises:
        TypeError: what is no agent or no service; `exclusive` with a service that
            cannot tell.
        InvalidValueError: an app that cannot be one.
    """

    def __init__(
        self,
        *,
        app_name: str,
        agent: Agent,
        session_service: BaseSessionService,
        exclusive: bool = False,
    ) -> None:
        if not isinstance(session_service, BaseSessionService):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a session service is wanted, not {session_service!r}")
        if not hasattr(agent, "run_async"):
            raise TypeError(f"{agent!r} is no agent: it has no run_async")
        check_name(app_name, "app_name")
        if exclusive and not isinstance(session_service, SessionService):
            raise TypeError("exclusive runs need a SessionService")
        self.app_name = app_name
        self.agent = agent
        self.session_service = session_service
        self._exclusive = exclusive

    async def run_async(
        self,
        *,
        user_id: str,
        session_id: str | None = None,
        new_message: object = None,
        state_delta: Mapping[str, Any] | None = None,
        invocation_id: str | None = None,
    ) -> AsyncGenerator[Event]:
        """Run the agent once, and yield its events, each when it is stored.

        The user's message is stored first.  At the end, also of a run that fails or is
        left, keys that were set on the session's state are stored, and temporary ones
        are dropped.

        Args:
            user_id: the user.
            session_id: the session; it is made where it is missing. `None`: a new one.
            new_message: what the user says: text, a `ChatMessage`, or a content as
                `Event` reads it. `None`: nothing, the agent goes on.
            state_delta: keys of the state that are set with the user's message.
            invocation_id: the id of the run; `None`: a UUID.

        Raises:
            SessionNotFoundError: the session was deleted in the meantime, or expired.
            StaleSessionError: the run is exclusive, and somebody else has written.
            ValueError: `state_delta` without a message.
        """
        message = message_of(new_message, USER_AUTHOR)
        if message is None and state_delta:
            raise ValueError("state_delta comes with a message of the user's")
        session = await self._session(user_id, session_id)
        context = InvocationContext(
            invocation_id=invocation_id or str(uuid4()),
            session=session,
            session_service=self.session_service,
            agent_name=self.agent.name,
            user_content=message,
        )
        try:
            if message is not None:
                said = Event(
                    invocation_id=context.invocation_id,
                    author=USER_AUTHOR,
                    content=message,
                    actions=EventActions(state_delta=dict(state_delta or {})),
                )
                await self._append(session, said)
            async with reading(self.agent.run_async(context)) as events:
                async for event in events:
                    event.invocation_id = event.invocation_id or context.invocation_id
                    event.author = event.author or self.agent.name
                    if not event.partial:
                        await self._append(session, event)
                    yield event
        finally:
            with anyio.CancelScope(shield=True):
                session.drop_temporary()
                await self.session_service.update_session(session)

    async def _session(self, user_id: str, session_id: str | None) -> Session:
        service, app_name = self.session_service, self.app_name
        while session_id and session_id.strip():
            session = await service.get_session(
                app_name=app_name, user_id=user_id, session_id=session_id
            )
            if session is not None:
                return session
            try:
                return await service.create_session(
                    app_name=app_name, user_id=user_id, session_id=session_id
                )
            except SessionExistsError:
                continue  # somebody was faster
        return await service.create_session(app_name=app_name, user_id=user_id)

    async def _append(self, session: Session, event: Event) -> None:
        service = self.session_service
        if self._exclusive and isinstance(service, SessionService):
            await service.append_event(
                session, event, expected_revision=session.revision
            )
        else:
            await service.append_event(session, event)
