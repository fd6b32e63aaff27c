"""Names, and the keys made of them, each with one text form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, Final, NamedTuple, Self, final

from typing_extensions import override

from raf_session.errors import InvalidValueError

__all__ = (
    "MAX_NAME_BYTES",
    "ScopeKey",
    "SessionKey",
    "check_name",
    "check_names",
    "check_part",
    "escape",
    "text_of",
    "unescape",
)

MAX_NAME_BYTES: Final = 512
"""How long a name may be, in UTF-8."""


def check_name(value: str, field: str) -> str:
    """Return the name as a plain `str`: 1 to 512 bytes of UTF-8 without NUL.

    Args:
        value: a part of a key, an entry's id, a state key, a label.
        field: what it is, for errors.

    Raises:
        InvalidValueError: it is no string, empty, too long, or holds a NUL or a
            surrogate.
    """
    if type(value) is not str:
        value = text_of(value, field)
    if not value:
        raise InvalidValueError(field, "is empty")
    if "\0" in value:
        raise InvalidValueError(field, "holds a NUL")
    size = len(value)
    if size <= MAX_NAME_BYTES and not value.isascii():
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            raise InvalidValueError(field, "holds a surrogate") from None
    if size > MAX_NAME_BYTES:
        raise InvalidValueError(field, f"is longer than {MAX_NAME_BYTES} bytes")
    return value


def check_names(values: Iterable[str], field: str) -> frozenset[str]:
    """Return names, each as `check_name` has it; one string is not many names.

    Raises:
        InvalidValueError: one does not fit.
    """
    if isinstance(values, str):
        raise InvalidValueError(field, "is one string, not several names")
    return frozenset(check_name(value, field) for value in values)


def text_of(value: object, field: str) -> str:
    """Return the string as a plain `str`.

    Raises:
        InvalidValueError: it is no string.
    """
    if not isinstance(value, str):
        raise InvalidValueError(field, f"is {type(value).__name__}, not a string")
    return str.__str__(value)


def check_part(value: str, field: str) -> str:
    """Return the part as a plain `str`: a name, as `check_name` has it, or empty."""
    if type(value) is not str:
        value = text_of(value, field)
    return check_name(value, field) if value else ""


# Text --------------------------------------------------------------------------


def escape(part: str, separator: str = "/") -> str:
    """Return the part without the separator, so that parts can be joined by it."""
    if "%" in part:
        part = part.replace("%", "%25")
    if separator in part:
        part = part.replace(separator, f"%{ord(separator):02x}")
    return part


def unescape(part: str, separator: str = "/") -> str:
    """Return what `escape` was given; ``%`` not written by it stays as it is."""
    if "%" not in part:
        return part
    return part.replace(f"%{ord(separator):02x}", separator).replace("%25", "%")


class _Parts(NamedTuple):
    app: str
    user: str
    scope: str
    session: str


@final
class SessionKey(_Parts):
    """The address of one session: four strings, compared as exact UTF-8 bytes.

    RAF uses `session`; tRPC-Agent `app`, `user` and `session`; TPCLAW what
    `agent_key` makes. `session` is a name as `check_name` has it, each other part is
    one or empty.

    `str()` gives the text form: the parts joined by ``/``, ``%`` and ``/`` in them
    written ``%25`` and ``%2f``, leading empty parts left out.

    Raises:
        InvalidValueError: a part is no name, or `session` is empty.
    """

    __slots__ = ()

    def __new__(
        cls, app: str = "", user: str = "", scope: str = "", session: str = ""
    ) -> SessionKey:
        """Check the parts and make a key of them."""
        return super().__new__(
            cls,
            check_part(app, "app"),
            check_part(user, "user"),
            check_part(scope, "scope"),
            check_name(session, "session"),
        )

    @classmethod
    def raf(cls, session_id: str) -> SessionKey:
        """Return the key of a session that has nothing but an id."""
        return cls(session=session_id)

    @classmethod
    def parse(cls, text: str) -> SessionKey:
        """Return the key whose text form this is.

        Raises:
            InvalidValueError: no key has this text form.
        """
        text = text_of(text, "key")
        parts = [unescape(part) for part in text.split("/", len(cls._fields))]
        missing = len(cls._fields) - len(parts)
        if missing < 0:
            raise InvalidValueError("key", "has too many parts")
        key = cls(*[""] * missing, *parts)
        if str(key) != text:
            raise InvalidValueError("key", "is not the text form of a session key")
        return key

    @classmethod
    @override
    def _make(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        cls, iterable: Iterable[Any]
    ) -> Self:
        # `_replace` makes its key here too.
        return cls(*iterable)

    @override
    def __str__(self) -> str:
        return "/".join([escape(part) for part in self]).lstrip("/")


@final
@total_ordering
@dataclass(frozen=True, slots=True)
class ScopeKey:
    """The address of shared state: an app's where `user` is `None`, else a user's.

    Each part is a name as `check_name` has it, or empty; the empty user is not
    `None`. Ordered by exact bytes, an app before its users.

    `str()` gives the text form, ``app`` or ``app/user``, escaped as a session key's.

    Raises:
        InvalidValueError: a part is neither a name nor empty.
    """

    app: str
    user: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "app", check_part(self.app, "app"))
        if self.user is not None:
            object.__setattr__(self, "user", check_part(self.user, "user"))

    @classmethod
    def parse(cls, text: str) -> ScopeKey:
        """Return the key whose text form this is.

        Raises:
            InvalidValueError: no key has this text form.
        """
        text = text_of(text, "key")
        app, slash, user = text.partition("/")
        key = cls(unescape(app), unescape(user) if slash else None)
        if str(key) != text:
            raise InvalidValueError("key", "is not the text form of a scope key")
        return key

    @override
    def __str__(self) -> str:
        if self.user is None:
            return escape(self.app)
        return f"{escape(self.app)}/{escape(self.user)}"

    def __lt__(self, other: ScopeKey) -> bool:
        return self._rank() < other._rank()

    def _rank(self) -> tuple[str, bool, str]:
        return (self.app, self.user is not None, self.user or "")
