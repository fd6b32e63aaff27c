"""`CheckedModel`: a frozen pydantic model that refuses in the package's own terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from raf_session.errors import InvalidValueError
from raf_session.frozen import join_path
from raf_session.parts import FrozenModel

__all__ = ("CheckedModel",)


class CheckedModel(FrozenModel):
    """A frozen model whose constructor raises no error of pydantic's.

    Raises:
        InvalidValueError: a field is not known, is missing or does not fit; with the
            path to it.
    """

    if not TYPE_CHECKING:  # the constructor's types are those of the fields

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise _first_fault(error) from None


def _first_fault(error: ValidationError) -> InvalidValueError:
    fault = error.errors()[0]
    path = join_path("", *fault["loc"])
    cause = fault.get("ctx", {}).get("error")
    if isinstance(cause, InvalidValueError):
        return cause.within(path) if path else cause
    return InvalidValueError(path, fault["msg"] if cause is None else str(cause))
