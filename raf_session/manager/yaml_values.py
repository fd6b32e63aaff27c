"""Plain values of a YAML text or file, no key twice."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from raf_session.errors import InvalidValueError
from raf_session.frozen import join_path
from raf_session.stores.urls import naming_extras

if TYPE_CHECKING:
    from yaml import Node, ScalarNode

__all__ = ("yaml_values",)

_TWO_NUMBERS: Final = re.compile("[-+]?0[0-7_]*[0-7]|.*:.*")
"""Numbers to the base 8 or 60 in YAML 1.1, and decimal or texts in YAML 1.2."""


def yaml_values(source: str | os.PathLike[str]) -> Any:
    """Return the value of the one document of a YAML text or file.

    Args:
        source: YAML text; or a file, by its path. A text of one word is a path.

    Raises:
        InvalidValueError: it is no YAML, with the line; or a key stands twice in a
            mapping, or a number is another one in YAML 1.1 than in YAML 1.2, with its
            path.
        OSError: the file cannot be read.
        ModuleNotFoundError: the extra ``yaml`` is not installed.
    """
    if not isinstance(source, str):
        return _load(Path(source).read_bytes())
    found = _load(source)
    return _load(Path(found).read_bytes()) if isinstance(found, str) else found


def _load(text: str | bytes) -> Any:
    with naming_extras("YAML"):
        import yaml
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _refuse_doubt(node, "", set())
            return loader.construct_document(node)  # pyright: ignore[reportUnknownMemberType]
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = "" if mark is None else f" (line {mark.line + 1})"
        raise InvalidValueError("", f"is no YAML{line}: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidValueError):
            raise
        raise InvalidValueError("", f"is no YAML: {error}") from error


def _refuse_doubt(node: Node, path: str, seen: set[int]) -> None:
    """Refuse keys that stand twice, and numbers that are read in two ways."""
    from yaml import MappingNode, ScalarNode, SequenceNode

    if id(node) in seen:  # an anchor that stands for itself, or twice
        return
    seen.add(id(node))
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            _refuse_doubt(item, join_path(path, index), seen)
    if isinstance(node, ScalarNode) and _is_in_doubt(node):
        line = node.start_mark.line + 1
        reason = f"{node.value} is another number in YAML 1.1 than in YAML 1.2"
        raise InvalidValueError(path, f"{reason} (line {line})")
    if not isinstance(node, MappingNode):
        return
    keys: set[tuple[str, str]] = set()
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            continue  # a key that is no text is refused where its meaning is known
        place = join_path(path, key.value)
        if (key.tag, key.value) in keys:
            line = key.start_mark.line + 1
            raise InvalidValueError(place, f"stands twice (line {line})")
        keys.add((key.tag, key.value))
        _refuse_doubt(value, place, seen)


def _is_in_doubt(node: ScalarNode) -> bool:
    number = node.tag.endswith((":int", ":float"))
    return number and _TWO_NUMBERS.fullmatch(node.value) is not None
