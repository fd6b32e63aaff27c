"""`AgentRun`: one run of an agent, its requests, and what it has said so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from raf_session.errors import InvalidValueError
from raf_session.history import HistoryPolicy, select_history
from raf_session.manager.managed_session import ManagedSession
from raf_session.manager.requests import AgentInput, messages_of
from raf_session.manager.run_messages import RunInput, spoken, without_open_thoughts
from raf_session.manager.run_output import RunOutput
from raf_session.manager.run_report import RunReport, report_of, report_of_all
from raf_session.manager.session_manager import SessionManager
from raf_session.manager.turn_request import TurnRequest
from raf_session.messages import ChatMessage, MessageRole, Usage
from raf_session.prefix import PrefixTracker
from raf_session.toolcalls import arrange, calls_in, results_in

__all__ = ("AgentRun", "PreparedInput", "not_stored", "request_of_run")


@dataclass(frozen=True, slots=True)
class PreparedInput(AgentInput):
    """What `SessionAspect.before` gives: an input whose `messages` are a request.

    `after` stores the output in the session that it holds, and in no other that took
    its key meanwhile.
    """

    given: AgentInput = field(kw_only=True)
    """The input that it was made of."""
    session: ManagedSession = field(kw_only=True, repr=False, compare=False)
    """Where the input is stored."""
    own: RunInput = field(kw_only=True, repr=False)
    """The messages of the input, by what becomes of them."""

    def output(self, manager: SessionManager) -> RunOutput:
        """Return what stores the output of the run."""
        save = manager.config.tool_calls.save_tool_calls
        assert self.run_id is not None  # noqa: S101  (`before` names every run)
        return RunOutput(self.session, self.run_id, save_tool_calls=save)


def not_stored(
    session: ManagedSession, messages: Sequence[ChatMessage]
) -> tuple[ChatMessage, ...]:
    """Return those that are not in the session's history, by their ids."""
    known = {message.id for message in session.messages_now()}
    return tuple(message for message in messages if message.id not in known)


async def request_of_run(
    manager: SessionManager,
    session: ManagedSession,
    own: RunInput,
    *,
    saved: Sequence[ChatMessage] = (),
    added: Sequence[ChatMessage] = (),
    header: Any = None,
    model: str | None = None,
) -> TurnRequest:
    """Return the next request of a run.

    What was said in the run stands in it, in order, also where another process archives
    some of it meanwhile.

    Args:
        manager: keeps the session.
        session: the session.
        own: the input of the run.
        saved: what the run said and stored.
        added: what it said since.
        header: see `AgentInput`.
        model: see `AgentPoint`.

    Raises:
        SessionNotFoundError: the session was deleted, replaced or has expired.
    """
    said = (*own.said, *saved)
    compaction = None
    while True:
        archived = not_stored(session, said)
        unsaved = (*said, *added) if archived else added
        turn = await manager.request(
            session, own.instructions, unsaved, header, model=model
        )
        compaction = turn.compaction or compaction
        if not_stored(session, said) == archived:
            return turn._replace(compaction=compaction)


class AgentRun:
    """One run of an agent; made by `SessionAspect.around`.

    The messages that the run adds are in its own requests at once, and stored in one
    step at its end, or by `save`.

    Args:
        manager: keeps the session.
        prepared: what `SessionAspect.before` gave.
        model: the model's name; `None`: not known.
    """

    def __init__(
        self, manager: SessionManager, prepared: AgentInput, model: str | None = None
    ) -> None:
        self.input = prepared
        """What `SessionAspect.before` gave."""
        self._manager = manager
        self._model = model
        self._messages = tuple(prepared.messages)
        self._added: list[ChatMessage] = []
        self._usages: dict[int, Usage] = {}
        """By the identity of the message in `_added` that a model call made."""
        self._asked = 0
        self._output: RunOutput | None = None
        self._ended = False
        if isinstance(prepared, PreparedInput):
            self._output = prepared.output(manager)
        first = prepared.report or _unkept_request(
            manager, self._messages, prepared.header
        )
        self._requests = [first]

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages of the last request; at first, those of `input`."""
        return self._messages

    @property
    def added(self) -> tuple[ChatMessage, ...]:
        """What the run has said so far: calls, results and replies."""
        return tuple(self._added)

    @property
    def reports(self) -> tuple[RunReport, ...]:
        """What stands in each request so far, and why; the first is that of `before`.

        With sessions disabled that is the input alone, compared with nothing.
        """
        return tuple(map(report_of, self._requests))

    @property
    def report(self) -> RunReport:
        """The report of all requests so far, as of one."""
        return report_of_all(self.reports)

    def add(self, *messages: ChatMessage, usage: Usage | None = None) -> None:
        """Add what was said: calls, results, a reply.

        A message that says nothing is left out, since providers refuse it.

        Args:
            messages: in order.
            usage: what the provider reported of the model call that made them.

        Raises:
            InvalidValueError: one is no message, or the result of a call whose id is
                neither in the history nor in the run; or `usage` is none.  Nothing is
                added.
            RuntimeError: the block of the run has ended.
        """
        self._check_open()
        found = spoken(messages_of(messages, "messages"))
        if usage is not None and not isinstance(cast("object", usage), Usage):
            kind = type(usage).__name__
            raise InvalidValueError("usage", f"expected Usage or None, not {kind}")
        self._check_results(found)
        self._added += found
        if usage is not None:
            self._usages.update((id(message), usage) for message in found)

    def _check_results(self, messages: Sequence[ChatMessage]) -> None:
        """Refuse results of calls that nobody made."""
        wanted = {mark.id: m for m in messages for mark in results_in(m) if mark.id}
        history = self._requests[-1].view.history
        for known in (messages, self._added, self._messages, history):
            if not wanted:
                return
            for message in known:
                for mark in () if message is None else calls_in(message):
                    wanted.pop(mark.id or "", None)
        if wanted:
            name, message = next(iter(wanted.items()))
            place = next(i for i, m in enumerate(messages) if m is message)
            reason = f"is the result of a call that nobody made: {name!r}"
            raise InvalidValueError(f"messages[{place}]", reason)

    async def save(self) -> None:
        """Store what was added so far, in one step; the end stores the rest.

        For a tool that acts, or takes long: what it did is known after a crash, too.
        Calls that still wait for results have a placeholder in requests of later runs.
        Where tool calls are not saved, everything waits for the end.

        Raises:
            EntryConflictError: an id of a message's own is stored with another message.
            RuntimeError: the block of the run has ended.
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        self._check_open()
        if self._manager.config.tool_calls.save_tool_calls:
            await self._store()

    async def finish(self) -> None:
        """End the run and store what is not stored yet; called at the block's end.

        Raises:
            EntryConflictError: as `save`.
            SessionNotFoundError: as `save`.
        """
        self._ended = True
        await self._store()

    async def _store(self) -> None:
        messages = without_open_thoughts(self._added)
        replies = (m for m in reversed(messages) if m.role is MessageRole.ASSISTANT)
        usage = self._usages.get(id(next(replies, None)))
        if self._output is not None:
            await self._output.store(messages, usage=usage, model=self._model)

    def _check_open(self) -> None:
        if self._ended:
            raise RuntimeError("the block of this run has ended: nothing is stored now")

    async def request(self) -> tuple[ChatMessage, ...]:
        """Return the messages of the next model call: history, input, what was added.

        It goes on from the run's request before, unless a limit moved the window;
        `report` tells.  Where nothing was added since, it is the same request.
        Thoughts at the end of what was added wait for what they lead to.

        Raises:
            RuntimeError: the block of the run has ended.
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        self._check_open()
        if self._asked < len(self._added):
            await self._ask()
            self._asked = len(self._added)
        return self._messages

    async def _ask(self) -> None:
        prepared, output = self.input, self._output
        if output is None or not isinstance(prepared, PreparedInput):
            said = (*prepared.messages, *self._added)
            self._messages = arrange(said, close_end=True).messages
            return
        async with output.lock:
            turn = await request_of_run(
                self._manager,
                prepared.session,
                prepared.own,
                saved=output.stored,
                added=without_open_thoughts(self._added)[len(output.stored) :],
                header=prepared.header,
                model=self._model,
            )
        self._messages = turn.messages
        self._requests.append(turn)


def _unkept_request(
    manager: SessionManager, messages: tuple[ChatMessage, ...], header: Any
) -> TurnRequest:
    """Return the request of a run whose session is not kept."""
    view = select_history(messages, HistoryPolicy(), manager.counter)
    return TurnRequest(messages, view, PrefixTracker().touch(messages, header), None)
