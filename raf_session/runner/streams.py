"""Streams that are closed as soon as nobody reads them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

__all__ = ("reading",)

_T = TypeVar("_T")


@asynccontextmanager
async def reading(stream: AsyncIterator[_T]) -> AsyncGenerator[AsyncIterator[_T]]:
    """Give the stream, and close it at the end of the block, if it can be closed."""
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
