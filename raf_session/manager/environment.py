"""Options of the configuration from environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType
from typing import Any, Final, NamedTuple, get_args

from raf_session.errors import InvalidValueError
from raf_session.manager.config_values import ALIKE, ConfigModel

__all__ = ("PREFIX", "Option", "environment_values", "variable_names")

PREFIX: Final = "RAF_SESSION_"
"""What the names of the variables begin with."""

_PLAIN_SECTION: Final = "session"
"""The section whose name no variable bears."""
_NULL: Final = frozenset(("null", "none"))
_FLAGS: Final = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
_INTEGER: Final = re.compile("[+-]?[0-9]{1,100}")


class Option(NamedTuple):
    """One option of one section."""

    section: str
    name: str
    kinds: tuple[Any, ...]
    """The types of its values."""


def variable_names(config: type[ConfigModel], prefix: str) -> dict[str, Option]:
    """Return the options of every section by the names of their variables."""
    found: dict[str, Option] = {}
    for section, field in config.model_fields.items():
        model: Any = field.annotation
        for name, option in model.model_fields.items():
            kinds = get_args(option.annotation) or (option.annotation,)
            variable = f"{prefix}{_place(section)}{name.upper()}"
            found[variable] = Option(section, name, kinds)
    return found


def _place(section: str) -> str:
    return "" if section == _PLAIN_SECTION else f"{section.upper()}_"


def environment_values(
    options: Mapping[str, Option], environ: Mapping[str, str], prefix: str
) -> dict[str, object]:
    """Return the values of the variables that say something, as YAML would give them.

    A text that does not fit its option stays a text, for the option to refuse.

    Args:
        options: the known variables.
        environ: all variables there are; empty and blank ones say nothing.
        prefix: what the names of the known ones begin with.  Others that begin so are
            another program's, unless they look like an option, also one of
            another section.

    Raises:
        InvalidValueError: a name looks like an option's and is none.
    """
    found: dict[str, object] = {}
    for variable, text in environ.items():
        option = options.get(variable)
        if option is None:
            _refuse_misspelt(variable, options, prefix)
        elif text.strip():
            found[variable] = _value(text, option.kinds)
    return found


def _refuse_misspelt(variable: str, options: Mapping[str, Option], prefix: str) -> None:
    if not prefix or not variable.startswith(prefix):
        return
    rest = variable.removeprefix(prefix)
    sections = sorted({option.section for option in options.values()})
    bare = rest
    for section in sections * 2:  # another one's, or named twice
        bare = bare.removeprefix(f"{section.upper()}_")
    right = [known for known, option in options.items() if option.name.upper() == bare]
    if right:
        raise InvalidValueError(variable, f"is no option; it is {' or '.join(right)}")
    names = [known.removeprefix(prefix) for known in options]
    near = get_close_matches(rest, names, n=1, cutoff=ALIKE)
    near = near or get_close_matches(bare, names, n=1, cutoff=ALIKE)
    if near or rest.startswith(tuple(filter(None, map(_place, sections)))):
        hint = f"; did you mean {prefix}{near[0]}?" if near else ""
        raise InvalidValueError(variable, f"is no option{hint}")


def _value(text: str, kinds: tuple[Any, ...]) -> object:
    word = text.strip().lower()
    if NoneType in kinds and word in _NULL:
        return None
    if bool in kinds:
        return _FLAGS.get(word, text)
    if (int in kinds or float in kinds) and _INTEGER.fullmatch(word):
        return int(word)
    if float in kinds:
        try:
            return float(word)
        except ValueError:  # refused by the option, with what it expected
            return text
    return text if str in kinds else text.strip()
