"""`RunOutput`: what a run says, stored in one step or in several, each message once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from raf_session.errors import EntryConflictError
from raf_session.manager.managed_session import ManagedSession
from raf_session.manager.run_messages import numbered, other_prefix, unlike
from raf_session.manager.saved_messages import without_tool_calls
from raf_session.messages import ChatMessage, Usage

__all__ = ("RunOutput", "save_once")


class RunOutput:
    """Stores the output of one run in a session.

    A message is stored under its own id, or under ``{run_id}:out:{i}``, its place in
    the output.  Where another attempt of the run stored something else under these, it
    is stored behind that, under ids that depend on what it says.

    Args:
        session: where it is stored.
        run_id: the run.
        save_tool_calls: whether calls and results are stored.
    """

    def __init__(
        self, session: ManagedSession, run_id: str, *, save_tool_calls: bool
    ) -> None:
        self._session: Final = session
        self._first_prefix: Final = f"{run_id}:out"
        self._prefix = self._first_prefix
        self._save_tool_calls: Final = save_tool_calls
        self._stored: tuple[ChatMessage, ...] = ()
        self.lock: Final = anyio.Lock()
        """Held while it stores; hold it to see a session and `stored` of one moment."""

    @property
    def stored(self) -> tuple[ChatMessage, ...]:
        """The messages that were stored so far, with their ids."""
        return self._stored

    async def store(
        self,
        messages: Sequence[ChatMessage],
        *,
        usage: Usage | None = None,
        model: str | None = None,
    ) -> None:
        """Store those of the messages that are not stored yet, in one step.

        Args:
            messages: all of the output so far; it begins with what is stored.
            usage: what the provider reported of the last reply among them.
            model: the model that made them.

        Raises:
            EntryConflictError: an id of a message's own is stored with another message.
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        async with self.lock:
            number = len(self._stored)
            new = messages[number:]
            if not new:
                return
            try:
                planned = numbered(new, self._prefix, number)
                await self._save(planned, usage, model)
            except EntryConflictError:  # another attempt of the run said otherwise
                self._prefix = other_prefix(new, self._first_prefix)
                planned = numbered(new, self._prefix, number)
                await self._save(planned, usage, model)
            self._stored += planned

    async def _save(
        self, messages: Sequence[ChatMessage], usage: Usage | None, model: str | None
    ) -> None:
        if not self._save_tool_calls:
            messages = without_tool_calls(messages)
        await save_once(self._session, messages, usage=usage, model=model)


async def save_once(
    session: ManagedSession,
    messages: Sequence[ChatMessage],
    *,
    usage: Usage | None = None,
    model: str | None = None,
) -> None:
    """Store those of the messages that are not stored yet, in one step.

    The archive holds some of them where the session was compacted since.

    Raises:
        EntryConflictError: an id is stored with another message.
        SessionNotFoundError: the session was deleted, replaced or has expired.
    """
    new = unlike(messages, session.messages_now())
    if messages and not new:
        return
    try:
        await session.save(new, usage=usage, model=model, compact=False)
    except EntryConflictError:
        record = await session.journal.load(session.key, archived=True)
        entries = (*record.archived, *record.entries)
        new = unlike(new, [e.message for e in entries if e.message is not None])
        if new:
            await session.save(new, usage=usage, model=model, compact=False)
