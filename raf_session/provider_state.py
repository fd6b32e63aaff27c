"""`ProviderState`, a typed accessor for what a provider keeps in a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from pydantic import TypeAdapter

from raf_session.errors import InvalidValueError
from raf_session.frozen import thaw
from raf_session.session import ISession

__all__ = ("ProviderState",)

_T = TypeVar("_T")

PREFIX: Final = "provider_state::"


class ProviderState(Generic[_T]):
    """One provider's state as a value of type ``T``. RAF: ``ProviderState<T>``.

    ::

        counter = ProviderState("progress", int, default=int)
        counter.save(session, counter.get_or_init(session) + 1)

    Args:
        provider_name: whose state; the session keeps it under ``provider_state::`` and
            this name, as RAF does.
        type_: any type that pydantic can read and write as JSON.
        default: makes the value where none is stored.
    """

    def __init__(
        self, provider_name: str, type_: type[_T], *, default: Callable[[], _T]
    ) -> None:
        self.key: Final = PREFIX + provider_name
        self._adapter: TypeAdapter[_T] = TypeAdapter(type_)
        self._default = default

    def get_or_init(self, session: ISession) -> _T:
        """Return the stored value, or a new default where there is none.

        Nothing is written.

        Raises:
            InvalidValueError: what is stored is no such value; RAF would silently
                start anew.
        """
        stored = session.get_provider_state(self.key)
        if stored is None:
            return self._default()
        try:
            return self._adapter.validate_python(thaw(stored))
        except ValueError as error:
            raise InvalidValueError(self.key, str(error)) from error

    def save(self, session: ISession, value: _T) -> None:
        """Keep a value; it is stored as the session stores provider state.

        Raises:
            InvalidValueError: it has no JSON form.
        """
        json: Any = self._adapter.dump_python(value, mode="json")
        session.set_provider_state(self.key, json)
