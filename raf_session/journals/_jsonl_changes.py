"""What a `Change` alters, as lines of a session's file."""

from __future__ import annotations

from typing import Any, Final

from raf_session.changes import NO_CHANGE
from raf_session.entries import SessionHead
from raf_session.journals._jsonl_files import BACKEND, TooLong
from raf_session.journals._jsonl_scopes import Ticket
from raf_session.journals._jsonl_slots import Slot
from raf_session.journals._jsonl_views import Pending, meta_fields, request_fields
from raf_session.journals._texts import ChangeTexts, Texts, Values
from raf_session.json_text import load_written

__all__ = ("NO_ALTERATION", "Alteration", "head_fields")


class Alteration(ChangeTexts):
    """A `Change`, encoded before the file is locked."""

    __slots__ = ()

    @property
    def _own(self) -> dict[str, Texts]:
        return {"session": self.session, "providers": self.providers}

    @property
    def _scoped(self) -> dict[str, Texts]:
        return {"user": self.user, "app": self.app}

    def draw(self, slot: Slot) -> dict[str, Ticket]:
        """Draw a number from each scope that is changed.

        Raises:
            TooLong: there is one, and no patience.
        """
        if self.change is NO_CHANGE:
            return {}
        tickets: dict[str, Ticket] = {}
        for name, texts in self._scoped.items():
            if texts != _NOTHING:
                if not slot.patient:
                    raise TooLong
                tickets[name] = slot.folder.scopes.draw(
                    slot.scope(name), str(slot.key), patient=True
                )
        return tickets

    def lines(
        self,
        before: SessionHead | None,
        after: SessionHead,
        tickets: dict[str, Ticket],
        now: int,
    ) -> list[dict[str, Any]]:
        """Return the lines that the change adds.

        Args:
            before: the head before it; `None`: its description is written already.
            after: the head after it.
            tickets: the numbers that were drawn for it.
            now: the journal's time.
        """
        if self.change is NO_CHANGE:
            return []
        lines: list[dict[str, Any]] = []
        state: dict[str, Any] = {
            name: _delta(texts)
            for name, texts in self._own.items()
            if texts != _NOTHING
        }
        for name, (epoch, number) in tickets.items():
            ticket = {"epoch": epoch, "number": number, "at": now}
            state[name] = ticket | _delta(self._scoped[name])
        if state:
            lines.append({"raf": {"kind": "state"} | state})
        if before is not None and _description(before) != _description(after):
            lines.append(meta_fields(after))
        if self.change.request is not None:
            lines.append({"raf": request_fields(self.change.request)})
        return lines

    def pending(self, tickets: dict[str, Ticket], now: int) -> list[Pending]:
        """Return what the lines record for the scopes."""
        changes: list[Pending] = []
        for name, (epoch, number) in tickets.items():
            delta = _delta(self._scoped[name])
            changes.append(
                Pending(name, epoch, number, now, delta["set"], delta["deleted"])
            )
        return changes


_NOTHING: Final = Texts()
NO_ALTERATION: Final = Alteration(NO_CHANGE, Values(BACKEND, None))


def head_fields() -> dict[str, Any]:
    """Return the line of a write that changes numbers of the head alone."""
    return {"raf": {"kind": "head"}}


def _description(head: SessionHead) -> tuple[Any, ...]:
    return head.pinned, *head[11:15]


def _delta(texts: Texts) -> dict[str, Any]:
    return {
        "set": {name: load_written(text) for name, text in texts.set},
        "deleted": sorted(texts.deleted),
    }
