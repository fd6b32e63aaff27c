"""Request bodies as logs hold them: bare, or wrapped together with their usage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeGuard

from typing_extensions import override

from raf_session.cli.faults import Place, unexpected

__all__ = ("Logged", "is_body", "is_list", "is_object", "logged", "wrapped")


class Logged(NamedTuple):
    """A request body, and where it stands."""

    place: Place
    path: str
    """From the value of its line, ``requests[2].body``; empty for the value itself."""
    body: dict[str, Any]
    usage: Any = None
    """What the provider reported, as the log has it; `None`: nothing."""

    @override
    def __str__(self) -> str:
        return f"{self.place} {self.path}" if self.path else str(self.place)


_HISTORIES: Final = ("messages", "input", "contents")
_BESIDE: Final = frozenset(("model", "modelId", "tools", "system", "instructions"))
_WRAPPERS: Final = ("request", "body")
_USAGES: Final = ("usage", "usageMetadata", "usage_metadata")


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether the value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a JSON list."""
    return isinstance(value, list)


def is_body(value: dict[str, Any]) -> bool:
    """Whether an object is a request body, bare or wrapped, and no conversation.

    A body has ``contents``; or it has ``messages`` or ``input``, and with them one of
    ``model``, ``modelId``, ``tools``, ``system`` and ``instructions``.  What has
    ``messages`` and an ``id`` is a conversation, whatever else it has.
    """
    if "messages" in value:
        return "id" not in value and not _BESIDE.isdisjoint(value)
    if "role" in value:
        return False
    if "contents" in value:
        return True
    if "input" in value:
        return not _BESIDE.isdisjoint(value)
    return wrapped(value) is not None


def wrapped(value: dict[str, Any]) -> str | None:
    """Return the name under which an object holds a request body, if it does."""
    if any(name in value for name in _HISTORIES):
        return None
    for name in _WRAPPERS:
        inner = value.get(name)
        if is_object(inner) and any(history in inner for history in _HISTORIES):
            return name
    return None


def logged(value: object, place: Place, path: str = "") -> Logged:
    """Return the body that a value is, or wraps, and its usage.

    Raises:
        Fault: the value is no object.
    """
    if not is_object(value):
        raise unexpected(place, path, value, "a request body")
    name = wrapped(value)
    if name is None:
        return Logged(place, path, value)
    inner = f"{path}.{name}" if path else name
    return Logged(place, inner, value[name], _usage(value))


def _usage(entry: dict[str, Any]) -> Any:
    for owner in _owners(entry):
        for name in _USAGES:
            usage = owner.get(name)
            if usage is not None and usage != {}:
                return usage
    return None


def _owners(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield where a usage report may stand: beside the body, or in the response."""
    yield entry
    response = entry.get("response")
    if is_object(response):
        yield response
        body = response.get("body")
        if is_object(body):
            yield body
