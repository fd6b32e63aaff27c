"""What ends a command: one line that says where and what."""

from __future__ import annotations

from typing import NamedTuple

from typing_extensions import override

from raf_session.cli.terminal import one_line
from raf_session.errors import InvalidValueError
from raf_session.request_shapes.fields import unexpected as unexpected_value

__all__ = ("Fault", "Place", "invalid", "unexpected", "unusable")


class Place(NamedTuple):
    """A file and, where there is one, a line in it."""

    file: str
    line: int | None = None

    @override
    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Fault(Exception):  # noqa: N818  (nobody's mistake but the input's)
    """Something that the user can see to; ends the command with exit status 2.

    Attributes:
        place: where it is: a file and a line, a store, an option.
        reason: what is wrong there.
    """

    def __init__(self, place: Place | str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(one_line(f"{place}: {reason}"))


def invalid(place: Place, path: str, error: InvalidValueError) -> Fault:
    """Return the fault of a value that is none, below a path within its line."""
    if path and error.path:
        return Fault(place, f"{path}.{error}")
    return Fault(place, f"{path}: {error}" if path else str(error))


def unusable(path: str, error: OSError | ValueError) -> Fault:
    """Return the fault of a file that cannot be opened or written."""
    return Fault(Place(path), getattr(error, "strerror", None) or str(error))


def unexpected(place: Place, path: str, value: object, wanted: str) -> Fault:
    """Return the fault of a JSON value that is of another kind than is wanted."""
    return Fault(place, str(unexpected_value(path, value, wanted)))
