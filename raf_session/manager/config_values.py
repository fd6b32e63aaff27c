"""What an option of the configuration may be, and how a wrong one is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, model_validator
from pydantic.alias_generators import to_camel, to_pascal

from raf_session.errors import InvalidValueError
from raf_session.manager.checked_model import CheckedModel
from raf_session.manager.durations import format_duration, parse_duration

__all__ = (
    "ALIKE",
    "SHOWN_AS_TEXT",
    "ConfigModel",
    "choice",
    "closest",
    "duration",
    "filled_text",
    "flag",
    "folder",
    "percent",
    "whole",
)

ALIKE: Final = 0.8
"""From which likeness on a name among other programs' is a misspelt one of ours."""

_FARTHEST: Final = 1 << 40
"""No number of messages, tokens or characters reaches it."""

_E = TypeVar("_E", bound=StrEnum)


class ConfigModel(CheckedModel):
    """A section of the configuration: frozen, and strict about names and types.

    A name may also be written as Go writes it: ``maxMessages``, ``MaxMessages``.

    Raises:
        InvalidValueError: an option is not known, is given twice or does not fit; the
            path names it, the reason says what was expected.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, values: Any) -> Any:
        return values if isinstance(values, cls) else cls.given(values)

    @classmethod
    def option_names(cls) -> dict[str, str]:
        """Return the names in Python by all names that an option may have."""
        return {
            alias: name
            for name in cls.model_fields
            for alias in (name, to_camel(name), to_pascal(name))
        }

    def layered(self, values: object) -> Self:
        """Return a copy with the options of a mapping replaced.

        Raises:
            InvalidValueError: as for the class.
        """
        return self.model_copy(update=self.given(values))

    @classmethod
    def given(cls, values: object) -> dict[str, Any]:
        """Return the options of an object by their names in Python, unchecked.

        Args:
            values: a mapping; `None` is an empty one.

        Raises:
            InvalidValueError: it is no mapping, or a name is not known or comes twice.
        """
        if values is None:
            return {}
        if not isinstance(values, Mapping):
            raise InvalidValueError("", f"expected a mapping, not {values!r:.60}")
        names = cls.option_names()
        found: dict[str, Any] = {}
        for key, value in values.items():  # pyright: ignore[reportUnknownVariableType]
            path = f"{key}"
            name = names.get(path) if isinstance(key, str) else None
            if name is None:
                raise InvalidValueError(path, f"is no option{closest(path, names)}")
            if name in found:
                raise InvalidValueError(path, f"is the second value of {name}")
            found[name] = value
        return found


def closest(name: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return the end of a message that proposes the known name most like this one.

    Args:
        name: the unknown one.
        known: what it could have been.
        alike: from which likeness on, 0 to 1; with less, nothing is proposed.
    """
    near = get_close_matches(name, list(known), n=1, cutoff=alike)
    return f"; did you mean {near[0]}?" if near else ""


# Kinds of options ----------------------------------------------------------------


def _checked(
    expected: str, convert: Callable[[Any], Any], *, null: bool = False
) -> BeforeValidator:
    """Return the validator of one kind.

    Args:
        expected: what the option may be, for the message.
        convert: gives the value, or `None` where it does not fit.
        null: whether `None` may stand for "off".
    """
    wanted = f"{expected}, or null" if null else expected

    def check(value: object) -> object:
        if value is None and null:
            return None
        found = convert(value)
        if found is None:
            raise ValueError(f"expected {wanted}, not {value!r:.60}")
        return found

    return BeforeValidator(check)


def whole(minimum: int, *, null: bool = False) -> BeforeValidator:
    """Return the validator of whole numbers from a minimum."""

    def convert(value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return int(value) if minimum <= value < _FARTHEST else None

    return _checked(f"a whole number from {minimum}", convert, null=null)


def flag() -> BeforeValidator:
    """Return the validator of true and false."""
    return _checked("true or false", lambda v: v if isinstance(v, bool) else None)


def percent() -> BeforeValidator:
    """Return the validator of percentages from 1 to 100, or null.

    A smaller one would be a share, as 0.6 for 60 %.
    """

    def convert(value: object) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if 1 <= value <= 100 else None

    return _checked("a percentage from 1 to 100", convert, null=True)


def duration(*, positive: bool = False) -> BeforeValidator:
    """Return the validator of durations as `parse_duration` reads them, or null."""

    def check(value: object) -> timedelta | None:
        found = None if value is None else parse_duration(value)
        if positive and found is not None and not found:
            raise ValueError(f"expected a duration above 0, or null, not {value!r:.60}")
        return found

    return BeforeValidator(check)


SHOWN_AS_TEXT: Final = PlainSerializer(
    lambda value: None if value is None else format_duration(value), when_used="json"
)
"""Writes a duration to JSON as it is read."""


def choice(kind: type[_E], other: Mapping[object, _E] | None = None) -> BeforeValidator:
    """Return the validator of one of a few words.

    Args:
        kind: the words.
        other: what else stands for one of them.
    """
    words: Mapping[object, _E] = {member.value: member for member in kind}

    def convert(value: object) -> _E | None:
        if isinstance(value, str):
            return words.get(str.__str__(value))
        for stand_in, member in (other or {}).items():
            if value is stand_in:
                return member
        return None

    return _checked(f"one of {', '.join(kind)}", convert)


def folder() -> BeforeValidator:
    """Return the validator of paths: a text or a path object, not empty."""

    def convert(value: object) -> str | None:
        if not isinstance(value, str | os.PathLike):
            return None
        path: object = os.fspath(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if not isinstance(path, str) or not path.strip() or "\0" in path:
            return None
        return path

    return _checked("the path of a folder", convert)


def filled_text() -> BeforeValidator:
    """Return the validator of texts that say something, or null."""
    return _checked(
        "a text that is not empty",
        lambda v: str.__str__(v) if isinstance(v, str) and v.strip() else None,
        null=True,
    )
