"""Attempts to summarise a session: what both faces do alike.

A summary is asked for by one caller at a time, within a time limit.  It takes the
place of what it covers only where that is unchanged.  An attempt is counted in a
provider state of the session before it begins, so that one that fails, is cancelled or
dies with its process is remembered, and the next one that nobody calls for waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio

from raf_session.changes import Change, StateDelta
from raf_session.entries import Entry, Record, SessionHead
from raf_session.errors import StaleSessionError, SummaryFailedError
from raf_session.frozen import EMPTY
from raf_session.journal import Commit, Journal
from raf_session.messages import ChatMessage
from raf_session.options import HEAD_ONLY
from raf_session.summarizers.protocol import Summarizer

__all__ = (
    "INTERRUPTED",
    "AttemptTurns",
    "Hold",
    "ask_summarizer",
    "count_attempt",
    "is_shorter",
    "is_waiting",
    "replace_covered",
)

INTERRUPTED: Final = "interrupted"
"""Why an attempt failed that neither succeeded nor said why not."""

_FIRST_WAIT_SECS: Final = 60
_LONGEST_WAIT_SECS: Final = 3600
_MOST_FAILURES: Final = 12
"""So many attempts in a row may fail for the same history."""
_FRESH_MESSAGES: Final = 32
"""So many messages make a history another one."""
_RACES: Final = 20
"""How many appends may slip in between a look at a session and its splice."""

_PAUSE_SECS: Final = 0.005


class Hold:
    """The right to the one attempt on a session that is under way.

    It is lost when the event loop that it was taken on is closed, and nothing goes on.
    """

    __slots__ = ("_loop",)

    def __init__(self) -> None:
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:  # trio, which closes no loop with tasks in it
            self._loop = None

    @property
    def is_lost(self) -> bool:
        """Whether the attempt can never end."""
        return self._loop is not None and self._loop.is_closed()


class AttemptTurns:
    """Which sessions are being summarised: one attempt at a time for each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holds: dict[Hashable, Hold] = {}

    def begin(self, session: Hashable) -> Hold | None:
        """Take the turn, until `end`; `None`: an attempt is under way."""
        with self._lock:
            former = self._holds.get(session)
            if former is not None and not former.is_lost:
                return None
            hold = self._holds[session] = Hold()
            return hold

    def is_taken(self, session: Hashable) -> bool:
        """Tell whether an attempt is under way."""
        with self._lock:
            hold = self._holds.get(session)
            return hold is not None and not hold.is_lost

    def end(self, session: Hashable, hold: Hold) -> None:
        """Let the next one begin, unless the hold was lost and another is taken."""
        with self._lock:
            if self._holds.get(session) is hold:
                del self._holds[session]

    @asynccontextmanager
    async def taken(self, session: Hashable) -> AsyncGenerator[None]:
        """Wait until no attempt is under way, and hold the next one."""
        while True:
            hold = self.begin(session)
            if hold is not None:
                break
            await anyio.sleep(_PAUSE_SECS)
        try:
            yield
        finally:
            self.end(session, hold)

    async def wait(self) -> None:
        """Wait until no attempt is under way, on whichever event loop."""
        while True:
            with self._lock:
                if all(hold.is_lost for hold in self._holds.values()):
                    return
            await anyio.sleep(_PAUSE_SECS)


async def ask_summarizer(
    summarizer: Summarizer,
    messages: Sequence[ChatMessage],
    previous: str | None,
    *,
    timeout_secs: float | None,
) -> str:
    """Return the text of a summary, without blanks around it.

    Args:
        summarizer: writes it.
        messages: what is new since `previous`.
        previous: the summary that the new one takes the place of.
        timeout_secs: how long it may take; `None`: as long as it wants.

    Raises:
        SummaryFailedError: there is none: an error, an empty text, no answer in time.
    """
    try:
        with anyio.fail_after(timeout_secs):
            text: Any = await summarizer.summarize(messages, previous)
    except SummaryFailedError:
        raise
    except TimeoutError as error:
        within = "" if timeout_secs is None else f" within {timeout_secs:g} seconds"
        raise SummaryFailedError("timeout", f"nothing{within}") from error
    except Exception as error:
        raise SummaryFailedError("raised", repr(error)) from error
    if not isinstance(text, str):
        kind = type(text).__name__
        raise SummaryFailedError("malformed", f"{kind} is no text")
    if not text.strip():
        raise SummaryFailedError("empty", "the text is blank")
    return text.strip()


def is_shorter(
    text: str, messages: Sequence[ChatMessage], previous: str | None
) -> bool:
    """Tell whether a summary has fewer characters than what it would stand for."""
    return len(text) < sum(map(_length, messages)) + len(previous or "")


def _length(message: ChatMessage) -> int:
    return len(message.text) + sum(
        len(str(call.arguments)) for call in message.tool_calls or ()
    )


async def count_attempt(
    journal: Journal, record: Record, name: str, reason: str = INTERRUPTED
) -> Mapping[str, Any] | None:
    """Store that one more attempt on a session has failed.

    Called before the attempt begins, and again where it ends with a better reason; both
    count from what the record says, so that they are one.  Its ``failures`` count those
    in a row, ``reason`` says why the last one failed, ``retry_at`` when the next may
    come, in seconds since the epoch: after 60 seconds, and twice as long after each
    further one, up to an hour.  ``messages`` are those that were ever stored.

    Args:
        journal: where the session is.
        record: the session as the attempt found it.
        name: of the provider state; its other fields stay.
        reason: why.

    Returns:
        What is stored; `None`, and nothing changed, where another incarnation is there,
        entries were moved or replaced, or others wrote all the time.

    Raises:
        SessionNotFoundError: the session was deleted, or has expired.
    """
    former = record.provider_states.get(name) or EMPTY
    count = int(former.get("failures", 0)) + 1
    wait = min(_FIRST_WAIT_SECS * 2 ** min(count - 1, 16), _LONGEST_WAIT_SECS)
    head = record.head
    for _ in range(_RACES):
        latest = await _unspliced(journal, head)
        if latest is None:
            return None
        state = {
            **former,
            "failures": count,
            "reason": reason,
            "retry_at": journal.clock().timestamp() + wait,
            "messages": latest.total.messages,
        }
        try:
            await journal.update(
                head.key,
                Change(providers=StateDelta(set={name: state})),
                expected_revision=latest.revision,
                incarnation=head.incarnation,
            )
        except StaleSessionError:
            continue
        return state
    return None


def is_waiting(state: Mapping[str, Any], now: float, messages: int) -> bool:
    """Tell whether attempts that nobody calls for have to wait still.

    That is until ``retry_at``; and after twelve failures in a row, until there are
    32 messages more.  A time further off than any wait was set by a clock that has
    gone back since, and does not count.

    Args:
        state: as `count_attempt` stores it.
        now: the journal's time, in seconds since the epoch.
        messages: those that were ever stored in the session.
    """
    if 0 < state.get("retry_at", 0) - now <= _LONGEST_WAIT_SECS:
        return True
    fresh = abs(messages - state.get("messages", 0))
    exhausted: bool = state.get("failures", 0) >= _MOST_FAILURES
    return exhausted and fresh < _FRESH_MESSAGES


async def _unspliced(journal: Journal, head: SessionHead) -> SessionHead | None:
    """Return the session as it is, if nothing but appends have changed its entries."""
    latest = (await journal.load(head.key, HEAD_ONLY)).head
    known = head.incarnation, head.spliced_at
    return latest if (latest.incarnation, latest.spliced_at) == known else None


async def replace_covered(
    journal: Journal,
    head: SessionHead,
    covered: Sequence[Entry],
    *,
    keep: Sequence[int],
    summary: Callable[[SessionHead], Entry],
    change: Callable[[SessionHead], Change],
) -> Commit | None:
    """Put a summary in the place of what it stands for, which goes to the archive.

    What was appended meanwhile stays as it is.

    Args:
        journal: where the session is.
        head: the session as the summary was written of it.
        covered: the entries that the summary stands for, ascending.
        keep: the places in between that stay.
        summary: makes the entry, of the session as it is right before.
        change: what is committed with it, likewise.

    Returns:
        The splice; `None`, and nothing changed, where another incarnation is there,
        entries were moved or replaced, or others wrote all the time.

    Raises:
        SessionNotFoundError: the session was deleted, or has expired.
    """
    for _ in range(_RACES):
        latest = await _unspliced(journal, head)
        if latest is None:
            return None
        try:
            return await journal.splice(
                head.key,
                covered[0].seq,
                covered[-1].seq,
                [summary(latest)],
                keep=keep,
                archive=True,
                change=change(latest),
                expected_revision=latest.revision,
                incarnation=head.incarnation,
            )
        except StaleSessionError:
            continue
    return None
