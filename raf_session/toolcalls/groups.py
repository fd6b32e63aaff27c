"""`CallGroups`: calls and the results that belong to them."""

from __future__ import annotations

from typing import NamedTuple

from raf_session.toolcalls.shapes import CallShape

__all__ = ("Call", "CallGroup", "CallGroups", "Result")


class Result(NamedTuple):
    """A result of a call, or one that answers none."""

    message_index: int
    """The message that carries it."""
    part: int | None
    """Its place among the parts of that message; `None`: it is the message."""
    id: str | None
    name: str | None
    shape: CallShape
    interim: bool = False
    """Whether the final one is still to come."""


class Call(NamedTuple):
    """One call of an assistant message."""

    message_index: int
    """The message that asks for it."""
    number: int
    """Its place among the calls of that message."""
    part: int | None
    """Its place among the parts of that message; `None`: it is no part."""
    id: str | None
    name: str | None
    shape: CallShape
    kind: str
    """As `Mark.kind`."""
    results: tuple[Result, ...]
    """In the order in which they came."""
    is_open: bool
    """Whether it has no final result yet."""
    long_running: bool
    """Whether it was named so, or has an interim result."""


class CallGroup(NamedTuple):
    """A message with calls, and the results of these calls."""

    message_index: int
    """The message that asks for the calls."""
    calls: tuple[Call, ...]

    @property
    def results(self) -> tuple[int, ...]:
        """The messages that carry its results, ascending."""
        return tuple(
            sorted({r.message_index for call in self.calls for r in call.results})
        )

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """Those without a final result."""
        return tuple(call for call in self.calls if call.is_open)

    @property
    def interim_results(self) -> tuple[Result, ...]:
        """Those that are not final."""
        return tuple(r for call in self.calls for r in call.results if r.interim)


class CallGroups(NamedTuple):
    """The groups of a history, and the results that belong to none."""

    groups: tuple[CallGroup, ...]
    """In the order of their calls."""
    orphans: tuple[Result, ...]
    """In the order of the history."""

    linked: tuple[tuple[int, ...], ...]
    """Messages in which the assistant says nothing, and reasons at most, with its next
    one, results at most in between: providers refuse one without the other."""

    def bundles(self) -> tuple[tuple[int, ...], ...]:
        """Return the messages that can only stay or go together, ascending.

        A bundle is a group, or linked messages, or several of these that share a
        message.  Bundles have no message in common, and come in the order of their
        first messages.
        """
        ties = [(group.message_index, *group.results) for group in self.groups]
        at: dict[int, set[int]] = {}
        for tie in (*ties, *self.linked):
            bundle = set(tie)
            for other in [at[index] for index in tie if index in at]:
                small, bundle = sorted((bundle, other), key=len)
                bundle |= small
                at.update(dict.fromkeys(small, bundle))
            at.update(dict.fromkeys(tie, bundle))
        bundles = {id(bundle): bundle for bundle in at.values()}.values()
        return tuple(sorted(tuple(sorted(bundle)) for bundle in bundles))
