"""Instructions with places for values of the state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from raf_session.errors import StateKeyMissingError
from raf_session.frozen import freeze
from raf_session.json_text import dump_json

__all__ = ("render_instruction",)

_PLACE: Final = re.compile(r"\{((?:app:|user:|temp:)?)(\w+)(\??)\}")


def render_instruction(template: str, state: Mapping[str, Any]) -> str:
    """Return an instruction with the values of a state in their places.

    ``{key}``, ``{user:key}``, ``{app:key}`` and ``{temp:key}`` stand for values, where
    the key is an identifier: strings as they are, others as compact JSON.  Of
    ``{key?}`` nothing is left where there is no such key.  Other braces stay, and what
    was put in is not looked at again.

    Raises:
        StateKeyMissingError: the state has no such key.
    """

    def value(place: re.Match[str]) -> str:
        prefix, name, optional = place.groups()
        key = prefix + name
        if not name.isidentifier():
            return place[0]
        if key in state:
            found = state[key]
            return found if isinstance(found, str) else dump_json(freeze(found, key))
        if optional:
            return ""
        raise StateKeyMissingError(key)

    return _PLACE.sub(value, template)
