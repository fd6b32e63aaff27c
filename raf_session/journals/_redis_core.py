"""What all parts of the Redis journal share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from raf_session.encoding import BodyFormat
from raf_session.journals._redis_keys import Names, is_remote, scope_member
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_operations import Index, Operations, Timing
from raf_session.journals._redis_scripts import OPERATE
from raf_session.journals._rules import Rules
from raf_session.journals._texts import Texts, Values
from raf_session.keys import ScopeKey

__all__ = ("Core", "operate", "protected", "text")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Core:
    """The limits, the encodings and the names of one journal."""

    rules: Rules
    bodies: BodyFormat
    values: Values
    names: Names
    index: Index
    timing: Timing

    def terms(self, now: int) -> str:
        """Return what the scripts are told of the rule of sessions."""
        return self.timing.terms(self.rules.sessions, now)

    def write_scope(
        self,
        ops: Operations,
        scope: ScopeKey,
        texts: Texts,
        now: int,
        *,
        touch: int,
        owed: bytes = b"",
        one_slot: bool,
    ) -> None:
        """Add the operation that writes a scope's state.

        Args:
            ops: the list to add to.
            scope: whose state.
            texts: what to set and to delete.
            now: the journal's time.
            touch: when it was written.
            owed: what stands for the write among what is owed; empty: it has no
                number yet, and takes the next.
            one_slot: whether the index is kept in the same step.
        """
        keys = self.names.scope(scope)
        ops.special(
            "@scope",
            ops.number(keys.state),
            ops.number(keys.owed) if is_remote(scope) else "",
            ops.number(*self.index.keys.of_scope(scope)) if one_slot else "",
            scope_member(scope),
            self.timing.terms(self.rules.scope_rule(scope), now),
            owed,
            touch,
            len(texts.set),
            *[word.encode() for pair in texts.set for word in pair],
            len(texts.deleted),
            *[name.encode() for name in texts.deleted],
        )


async def operate(link: Link, ops: Operations, *, again: bool = True) -> list[str]:
    """Carry out operations on keys that belong to no session.

    Args:
        link: where.
        ops: the operations.
        again: whether they do no harm, and say the same, where they are sent again.
    """
    if not ops.words:
        return []
    reply = await link.run(OPERATE, ops.keys, ops.words, again=again)
    return [text(item) for item in reply]


def text(reply: bytes | str) -> str:
    """Return a reply as text."""
    return reply if isinstance(reply, str) else reply.decode()


async def protected(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end what must not be left between two steps.

    A caller that is cancelled meanwhile is told so afterwards.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001  (the task keeps it, and gives it below)
            break
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
