"""`SessionAspect`: sessions kept around the runs of an agent. TPCLAW's aspect."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any
from uuid import uuid4

import anyio

from raf_session.errors import (
    EntryConflictError,
    InvalidValueError,
    SessionNotFoundError,
)
from raf_session.manager.agent_run import (
    AgentRun,
    PreparedInput,
    not_stored,
    request_of_run,
)
from raf_session.manager.managed_session import ManagedSession
from raf_session.manager.requests import (
    AgentInput,
    AgentOutput,
    AgentPoint,
    SessionRequest,
)
from raf_session.manager.run_messages import (
    RunInput,
    read_input,
    spoken,
    without_open_thoughts,
)
from raf_session.manager.run_output import RunOutput, save_once
from raf_session.manager.saved_messages import without_tool_calls
from raf_session.manager.session_manager import SessionManager
from raf_session.messages import ChatMessage
from raf_session.tokens import count_tokens

__all__ = ("SessionAspect",)


class SessionAspect:
    """Stores what is said around an agent's runs, and gives each run its history.

    Around a run as a whole::

        async with aspect.around(point, given) as run:
            while True:
                answer = await model(await run.request())
                run.add(answer)
                if not answer.tool_calls:
                    break
                run.add(*[await call_tool(call) for call in answer.tool_calls])

    or in two steps, `before` and `after`, where something else stands between.  What
    the user said is stored before anything else, so whatever ends a run in between,
    the next one has it in its history.

    What is stored of a run has ids made of the run's id.  Each `before` or `around`
    draws one, unless the point names it: so an `AgentPoint` without a `run_id` may be
    kept and used for every run.  Whoever repeats a run from outside, after a crash or
    for a message that is delivered again, gives it the same `run_id`, or its messages
    ids of their own; otherwise it is another run and stores its input again.

    Runs of one session may overlap, nested or in parallel; nothing makes one wait for
    another.  Each stores its input when it begins and its output when it ends, so what
    they say stands in that order, and each request of one shows what others have stored
    by then.  Let a session's runs follow one another where that matters.

    Errors of the session layer are raised, never swallowed.

    Args:
        manager: keeps the sessions.

    Raises:
        TypeError: the manager is no `SessionManager`.
    """

    def __init__(self, manager: SessionManager) -> None:
        _expect(manager, SessionManager, "manager")
        self._manager = manager

    @property
    def manager(self) -> SessionManager:
        """What keeps the sessions."""
        return self._manager

    async def before(self, point: AgentPoint, input: AgentInput) -> AgentInput:  # noqa: A002  (the document's name)
        """Store the input, then return it with its history in front.

        A message is stored under its own id, or under ``{run_id}:in:{i}``, its place
        among those that are no instructions: so the same run again stores nothing.  The
        run's id is that of the point, or else of the input, or else a new one.  The
        session is made if missing; in mode ``safeguard`` it is compacted where the
        request would not fit.

        Args:
            point: the run.
            input: what is said now; its instructions are sent in front of the history
                and not stored.

        Returns:
            An input whose `messages` are instructions, history and input, within the
            window and as any provider accepts them, whose `history` is what stands
            between, and whose `report` says what was left out and what a prompt cache
            reuses.  Its `run_id` is the run's: given to `after`, or to this again, it
            is the same run.  Where an earlier attempt of the run got further, what it
            stored stands behind the input.  With sessions disabled: what was given.

        Raises:
            InvalidValueError: a message says nothing, or a field that the scope names
                is missing; nothing is stored.
            EntryConflictError: an id is stored with another message; the reason names
                the `run_id` where the id is made of it.
            SessionNotFoundError: the session was deleted while this ran.
            TypeError: point or input are of another kind.
        """
        _expect_both(point, input)
        if not self._manager.config.session.enabled:
            return input
        given = input.given if isinstance(input, PreparedInput) else input
        run_id = point.run_id or input.run_id or str(uuid4())
        own = read_input(given.messages, run_id)
        request = given.request(point.agent_id)
        try:
            session = await self._begin(request, own, point.model, run_id)
        except SessionNotFoundError:  # deleted, or expired, when it had just been had
            session = await self._begin(request, own, point.model, run_id)
        beside = (*own.instructions, *not_stored(session, own.said))
        tokens = count_tokens(beside, self._manager.counter)
        await self._manager.compact_if_due(session, tokens)
        turn = await request_of_run(
            self._manager, session, own, header=given.header, model=point.model
        )
        first = len(own.instructions)
        said = {message.id for message in own.said}
        end = next(
            (i for i, m in enumerate(turn.messages) if m.id in said), len(turn.messages)
        )
        values: dict[str, Any] = {f.name: getattr(given, f.name) for f in fields(given)}
        values.update(
            messages=turn.messages,
            history=turn.messages[first:end],
            report=turn,
            run_id=run_id,
        )
        return PreparedInput(**values, given=given, session=session, own=own)

    async def _begin(
        self, request: SessionRequest, own: RunInput, model: str | None, run_id: str
    ) -> ManagedSession:
        """Return the session, with the run's input in it."""
        session = await self._manager.get_or_create(request)
        messages = self._saved_of(own.said)
        if not messages:
            return session
        try:
            await save_once(session, messages, model=model)
        except EntryConflictError as error:
            if not error.entry_id.startswith(f"{run_id}:"):
                raise
            reason = f"{error.reason}; run_id {run_id!r} is that of another input"
            raise EntryConflictError(error.key, error.entry_id, reason) from error
        await session.compact_if_due()
        return session

    def _saved_of(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """Return what a session stores of these messages."""
        if self._manager.config.tool_calls.save_tool_calls:
            return messages
        return without_tool_calls(messages)

    async def after(
        self,
        point: AgentPoint,
        input: AgentInput,  # noqa: A002  (the document's name)
        output: AgentOutput,
    ) -> None:
        """Store calls, results and reply in one step.

        A message is stored under its own id, or under ``{run_id}:out:{i}``: so the same
        call again stores nothing.  Where an earlier attempt of the run stored something
        else, this is stored behind it.  Calls without results are stored too, since
        their tools may have acted: requests show a placeholder for the result.
        Messages that say nothing, and answers to commands, are not stored.

        Args:
            point: the run.
            input: what `before` returned; or what it was given, with the run's id.
            output: what the run produced.

        Raises:
            EntryConflictError: an id of its messages' own is stored with another
                message.
            InvalidValueError: neither point nor input name the run.
            SessionNotFoundError: the session was deleted, replaced or has expired since
                `before`; nothing is stored.
            TypeError: point, input or output are of another kind.
        """
        _expect_both(point, input)
        _expect(output, AgentOutput, "output")
        if not self._manager.config.session.enabled or output.is_command:
            return
        messages = without_open_thoughts(spoken(output.messages))
        if not messages:
            return
        run_id = point.run_id or input.run_id
        if run_id is None:
            reason = "names no run: give `after` what `before` returned"
            raise InvalidValueError("run_id", reason)
        session = await self._session_of(point, input)
        save_tool_calls = self._manager.config.tool_calls.save_tool_calls
        stored = RunOutput(session, run_id, save_tool_calls=save_tool_calls)
        model = output.model or point.model
        await stored.store(messages, usage=output.usage, model=model)
        await session.compact_if_due()

    async def _session_of(self, point: AgentPoint, given: AgentInput) -> ManagedSession:
        if isinstance(given, PreparedInput):
            return given.session
        scope = self._manager.config.session.default_scope
        key = given.request(point.agent_id).key(scope)
        session = await self._manager.get(key)
        if session is None:
            raise SessionNotFoundError(key)
        return session

    @asynccontextmanager
    async def around(
        self,
        point: AgentPoint,
        input: AgentInput,  # noqa: A002  (the document's name)
    ) -> AsyncGenerator[AgentRun]:
        """Hold a run: `before` at its beginning, and `after` at its end.

        What the run adds is stored in one step when the block ends, also where that
        raises or is cancelled, with calls that have no results yet; `AgentRun.save`
        stores it earlier.  Afterwards the run takes nothing more.

        Raises:
            EntryConflictError: as `before` and `after`.
            InvalidValueError: as `before`.
            SessionNotFoundError: as `before` and `after`.
            TypeError: as `before`.
        """
        prepared = await self.before(point, input)
        run = AgentRun(self._manager, prepared, point.model)
        session = prepared.session if isinstance(prepared, PreparedInput) else None
        try:
            yield run
        except BaseException as error:
            await _finish_shielded(run)
            if session is not None and isinstance(error, Exception):
                await session.compact_if_due()
            raise
        try:
            await run.finish()
            if session is not None:
                await session.compact_if_due()
        except anyio.get_cancelled_exc_class():
            await _finish_shielded(run)
            raise


async def _finish_shielded(run: AgentRun) -> None:
    """Store the output of a run that was interrupted, in a cancelled task too.

    It waits for storage and for nothing else: no summary is written meanwhile.
    """
    with anyio.CancelScope(shield=True):
        await run.finish()


def _expect_both(point: object, given: object) -> None:
    _expect(point, AgentPoint, "point")
    _expect(given, AgentInput, "input")


def _expect(value: object, kind: type, name: str) -> None:
    if not isinstance(value, kind):
        found = type(value).__name__
        raise TypeError(f"{name}: expected {kind.__name__}, not {found}")
