"""`TurnRequest`: what one model call of a turn is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from raf_session.history import HistoryView
from raf_session.manager.compaction_report import CompactionReport
from raf_session.messages import ChatMessage
from raf_session.prefix_match import PrefixMatch

__all__ = ("TurnRequest", "with_model")


class TurnRequest(NamedTuple):
    """The messages of a model call, and how they compare with the call before."""

    messages: tuple[ChatMessage, ...]
    """The instructions, then the view's messages."""
    view: HistoryView
    """What of the history is shown; `view.overrun`: it does not fit."""
    match: PrefixMatch
    """How much of it the session's request before began with, and what broke it."""
    compaction: CompactionReport | None
    """The compaction since this manager's request before; `None`: there was none."""


def with_model(header: Any, model: str | None) -> Any:
    """Return a request's header with the model in it, if one is given.

    A model that the header names itself stays.  A header that is no object is the field
    ``header`` beside it.
    """
    if model is None:
        return header
    if header is None:
        return {"model": model}
    if isinstance(header, Mapping):
        return {"model": model, **cast("Mapping[str, Any]", header)}
    return {"model": model, "header": header}
