from collections.abc import Callable, Iterable, Sequence

from raf_session._stored_py import RawRow, Row, WholeRow
from raf_session.entries import Entry

__all__ = ("plain_text", "read_entries", "row_of", "rows_of", "stored_entries")

def plain_text(entry: Entry) -> str | None: ...
def row_of(
    body: str, entry: Entry, seq: int, stored_at: int, left_at: int = 0
) -> Row: ...
def rows_of(
    bodies: Iterable[str],
    entries: Iterable[Entry],
    places: Iterable[int],
    stored_at: int,
) -> list[Row]: ...
def stored_entries(
    entries: Sequence[Entry], rows: Sequence[WholeRow]
) -> tuple[Entry, ...]: ...
def read_entries(
    rows: Iterable[RawRow], decode: Callable[[str], str] | None = None
) -> tuple[Entry, ...]: ...
