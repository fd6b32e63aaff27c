"""What the Redis driver raises, told in the library's own errors."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from redis import exceptions

from raf_session.errors import StorageBusyError, StorageError, StorageFullError

__all__ = ("BACKEND", "FAULTS", "LOST", "faults", "storage_error")

BACKEND: Final = "redis"

FAULTS: Final = (
    exceptions.RedisError,
    OSError,
    asyncio.TimeoutError,
    UnicodeDecodeError,
)
"""What may come of a call to the driver."""

LOST: Final = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ClusterError,
    OSError,
)
"""After which a command may or may not have been run, or might run elsewhere."""

_BUSY: Final = (
    exceptions.BusyLoadingError,
    exceptions.MaxConnectionsError,
    exceptions.TimeoutError,
    exceptions.TryAgainError,
    asyncio.TimeoutError,
)
_FULL: Final = ("OOM ", "No space left")


def storage_error(error: BaseException) -> StorageError:
    """Return the `StorageError` for an error of the driver, the cause not yet set."""
    text = str(error) or type(error).__name__
    if isinstance(error, exceptions.OutOfMemoryError) or any(
        words in text for words in _FULL
    ):
        return StorageFullError(BACKEND, text)
    if isinstance(error, _BUSY):
        return StorageBusyError(BACKEND, text)
    return StorageError(BACKEND, text)


@contextmanager
def faults() -> Generator[None]:
    """Turn what the driver raises inside into `StorageError`."""
    try:
        yield
    except StorageError:
        raise
    except FAULTS as error:
        raise storage_error(error) from error
