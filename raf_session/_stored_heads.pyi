from collections.abc import Sequence
from typing import Any

from raf_session.entries import SessionHead
from raf_session.keys import SessionKey

__all__ = ("read_head",)

def read_head(
    key: SessionKey, row: Sequence[Any], labels: frozenset[str]
) -> SessionHead: ...
