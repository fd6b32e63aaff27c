from collections.abc import Callable, Iterable

from raf_session._stored_py import RawRow
from raf_session.entries import Entry

__all__ = ("read_entries",)

def read_entries(
    rows: Iterable[RawRow], decode: Callable[[str], str] | None = None
) -> tuple[Entry, ...]: ...
