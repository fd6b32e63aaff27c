"""What the driver raises, understood."""

from __future__ import annotations

import re
from typing import Final

from asyncmy.errors import MySQLError

from raf_session.errors import SessionError
from raf_session.journals._sql_dialect import Fault, FaultKind

__all__ = ("BACKEND", "PacketTooLargeError", "code_of", "fault", "is_complete")

BACKEND: Final = "mysql"


class PacketTooLargeError(Exception):
    """A statement over ``max_allowed_packet``; it was not sent."""


_CLIENT: Final = range(2000, 2100)
"""Codes that the driver makes itself."""

_KINDS: Final = {
    # Deadlock, lock not had in time, row or table changed, certification failed.
    **dict.fromkeys((1020, 1205, 1213, 1412, 1615, 3101), FaultKind.CONFLICT),
    # No connection to be had, gone before this was sent.
    **dict.fromkeys((0, 2001, 2002, 2003, 2005, 2006), FaultKind.REFUSED),
    # Server stops, connection killed, packets that do not come or make no sense; or a
    # statement that was killed or took too long, of which nobody knows how far it got.
    **dict.fromkeys(
        (1053, 1077, 1079, 1080, 1152, *range(1154, 1162), 1184, 1317, 1927, 1969),
        FaultKind.LOST,
    ),
    **dict.fromkeys((2013, 2014, 2027, 2055, 3024, 4031), FaultKind.LOST),
    1062: FaultKind.DUPLICATE,
    1586: FaultKind.DUPLICATE,
    1021: FaultKind.FULL,
    1114: FaultKind.FULL,
    # Connections of the server, of a user, transactions, prepared statements.
    **dict.fromkeys((1040, 1203, 1226, 1461, 1637), FaultKind.BUSY),
    1153: FaultKind.TOO_LARGE,
}
_NO_SPACE: Final = re.compile(r"\b(?:error|errno|errcode):? 28\b", re.IGNORECASE)
_INDEX: Final = re.compile(r"for key '(?:[^']*\.)?([^'.]+)'\s*$")


def code_of(error: BaseException) -> int | None:
    """Return the number of an error of the driver, `None` where it has none."""
    if isinstance(error, MySQLError) and error.args:
        code: object = error.args[0]
        return code if isinstance(code, int) else None
    return None


def is_complete(error: BaseException) -> bool:
    """Tell whether the server answered with this error, and listens again."""
    code = code_of(error)
    return (
        code is not None
        and code > 0
        and code not in _CLIENT
        and _KINDS.get(code) is not FaultKind.LOST
    )


def fault(error: BaseException) -> Fault | None:
    """Tell what an error means, `None` for one that is not of the driver."""
    if isinstance(error, PacketTooLargeError):
        return Fault(FaultKind.TOO_LARGE, str(error))
    if isinstance(error, SessionError):  # some are an `OSError`
        return None
    if isinstance(error, OSError | EOFError):
        return Fault(FaultKind.LOST, f"{error} ({type(error).__name__})")
    if not isinstance(error, MySQLError):
        return None
    code = code_of(error)
    said = str(error.args[-1]) if error.args else type(error).__name__
    detail = said if code is None else f"{said} ({code})"
    if code is None:
        return Fault(FaultKind.LOST, detail)
    kind = _KINDS.get(code, FaultKind.OTHER)
    if kind is FaultKind.OTHER:
        if code in _CLIENT:
            kind = FaultKind.LOST
        elif _NO_SPACE.search(said):
            kind = FaultKind.FULL
    found = _INDEX.search(said) if kind is FaultKind.DUPLICATE else None
    return Fault(kind, detail, found[1] if found else "")
