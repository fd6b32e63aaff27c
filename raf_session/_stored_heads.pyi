from collections.abc import Sequence
from datetime import datetime
from typing import Any

from raf_session.entries import Counts, SessionHead
from raf_session.keys import SessionKey

__all__ = ("grown_head", "read_head")

def grown_head(
    head: SessionHead,
    counts: Counts,
    now: int,
    updated_at: datetime | None = None,
    active_at: datetime | None = None,
) -> SessionHead: ...
def read_head(
    key: SessionKey, row: Sequence[Any], labels: frozenset[str]
) -> SessionHead: ...
