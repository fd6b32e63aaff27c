"""The requests of one conversation, of whichever API, as they were sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from raf_session.body_paths import in_body
from raf_session.changes import RequestRecord
from raf_session.cli.bodies import logged
from raf_session.cli.faults import Place, invalid
from raf_session.cli.meter import Meter
from raf_session.errors import InvalidValueError
from raf_session.messages import ChatMessage
from raf_session.request_shapes import RequestShape, read_request, shape_of

__all__ = ("Request", "RequestLog", "RequestReader")


class Request(NamedTuple):
    """One call of the model."""

    messages: Sequence[ChatMessage]
    record: RequestRecord | None
    """What a store keeps of it."""


@dataclass(frozen=True, slots=True)
class RequestLog:
    """The requests of one conversation, each whole, as they were sent."""

    id: str
    place: Place
    requests: Sequence[Request]
    meter: Meter
    """Has measured them all."""


class RequestReader:
    """Reads bodies in order; a message that stays where it was stays the same object.

    A body that could be of several APIs is of that of the one before.  Each is measured
    as it is read, so that none has to be kept.

    Args:
        session: the conversation; its messages have the ids ``{session}/{index}``.
    """

    def __init__(self, session: str) -> None:
        self.meter: Meter = Meter()
        self._session = session
        self._former: list[tuple[Any, ChatMessage]] = []
        self._shape: RequestShape | None = None

    def read(self, value: object, place: Place, path: str = "") -> Request:
        """Return the request that a value of a file is, or wraps.

        Raises:
            Fault: it is no request body; its path leads from the value.
        """
        entry = logged(value, place, path)
        shape, certain = shape_of(entry.body)
        if not certain and self._shape is not None:
            shape = self._shape
        try:
            request = read_request(entry.body, shape)
        except InvalidValueError as error:
            raise invalid(place, entry.path, error) from error
        where = f"{entry.path}." if entry.path else ""
        where += request.names.get("messages", "messages")
        messages = self._messages(request.messages, place, where)
        try:
            self.meter.measure(
                messages,
                request.header or None,
                partial(in_body, request=request, body=entry.body),
            )
        except InvalidValueError as error:
            raise invalid(place, entry.path, error) from error
        self._shape = shape
        return Request(messages, self.meter.record)

    def _messages(
        self, items: Iterable[Any], place: Place, path: str
    ) -> list[ChatMessage]:
        now: list[tuple[Any, ChatMessage]] = []
        for index, item in enumerate(items):
            if index < len(self._former) and _identical(self._former[index][0], item):
                now.append(self._former[index])
                continue
            try:
                message = ChatMessage.from_openai(item, id=f"{self._session}/{index}")
            except InvalidValueError as error:
                raise invalid(place, f"{path}[{index}]", error) from error
            now.append((item, message))
        self._former = now
        return [message for _, message in now]


def _identical(one: Any, other: Any) -> bool:
    # Python says 1 == 1.0 == True, and that the order of keys is nothing.
    return one == other and repr(one) == repr(other)
