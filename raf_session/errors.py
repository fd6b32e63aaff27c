"""Every error that the library raises on purpose.

::

    SessionError
    ├── InvalidValueError           (ValueError)    a value JSON or a key cannot hold
    ├── SessionNotFoundError        (LookupError)   missing, expired or re-created
    ├── SessionExistsError          (ValueError)    the key is taken
    ├── StaleSessionError           (RuntimeError)  somebody else wrote in between
    ├── EntryConflictError          (ValueError)    a known id with another body
    ├── EntryTooLargeError          (ValueError)    an encoded entry over the limit
    ├── SessionDamagedError         (RuntimeError)  stored bytes that cannot be read
    ├── SchemaVersionError          (RuntimeError)  written by a newer library
    ├── SnapshotUnavailableError    (RuntimeError)  a sync read of a session that waits
    ├── UnknownSessionTypeError     (TypeError)     a type that the store does not know
    ├── IsolationKeyError           (LookupError)   a scoped store without its key
    ├── StateKeyMissingError        (LookupError)   a template names a key that is not
    ├── CopyMismatchError           (RuntimeError)  a copy that is not what was copied
    ├── DumpDamagedError            (ValueError)    a dump that is torn or no dump
    ├── SummaryFailedError          (RuntimeError)  a summary that cannot be used
    ├── StorageError                (OSError)       the backend failed
    │   ├── StorageFullError                        no space left
    │   └── StorageBusyError        (TimeoutError)  a lock not had in time
    └── JournalClosedError          (RuntimeError)  used before open or after close

Each keeps its facts as attributes and builds its own message; the cause is chained.
Nothing is stored when one of them is raised, unless its docstring says otherwise.
Bad arguments of other kinds are plain `ValueError` and `TypeError`.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import override

__all__ = (
    "CopyMismatchError",
    "DumpDamagedError",
    "EntryConflictError",
    "EntryTooLargeError",
    "InvalidValueError",
    "IsolationKeyError",
    "JournalClosedError",
    "SchemaVersionError",
    "SessionDamagedError",
    "SessionError",
    "SessionExistsError",
    "SessionNotFoundError",
    "SnapshotUnavailableError",
    "StaleSessionError",
    "StateKeyMissingError",
    "StorageBusyError",
    "StorageError",
    "StorageFullError",
    "SummaryFailedError",
    "UnknownSessionTypeError",
)


class SessionError(Exception):
    """The base of every error in this module."""

    @override
    def __reduce__(self) -> tuple[object, ...]:
        # `args` is the message, not the facts, so the default would call
        # `__init__` with the wrong arguments.
        return (_restore, (type(self), self.args, self.__dict__.copy()))


def _restore(
    cls: type[SessionError], args: tuple[object, ...], facts: dict[str, object]
) -> SessionError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(facts)
    return error


# Values ------------------------------------------------------------------------


class InvalidValueError(SessionError, ValueError):
    """A value that cannot be part of a message, a state or a key.

    Attributes:
        path: where it stands, as ``content[0].image_url.url``; empty for the whole.
        reason: what is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}" if path else reason)

    def within(self, place: str) -> InvalidValueError:
        """Return the same error as seen from further out.

        Args:
            place: where the value stands that this path leads through.
        """
        link = "." if self.path and not self.path.startswith("[") else ""
        return InvalidValueError(f"{place}{link}{self.path}", self.reason)


# Sessions ----------------------------------------------------------------------


class SessionNotFoundError(SessionError, LookupError):
    """No live session answers to this key.

    Attributes:
        key: the key asked for, in its text form.
        reason: ``missing``, ``expired`` or ``replaced`` (another incarnation).
    """

    def __init__(self, key: object, reason: str = "missing") -> None:
        self.key: str = str(key)
        self.reason = reason
        super().__init__(f"session {self.key!r} not found ({reason})")


class SessionExistsError(SessionError, ValueError):
    """The key is taken by a live session, which is as it was.

    Attributes:
        key: the key, in its text form.
    """

    def __init__(self, key: object) -> None:
        self.key: str = str(key)
        super().__init__(f"session {self.key!r} already exists")


class StaleSessionError(SessionError, RuntimeError):
    """The session was written by somebody else since it was read.

    Attributes:
        key: the key, in its text form.
        expected: the revision that the caller knew, or ``None``.
        actual: the revision that is stored, or ``None`` where it is not known.
    """

    def __init__(
        self, key: object, expected: int | None, actual: int | None, hint: str = ""
    ) -> None:
        self.key: str = str(key)
        self.expected = expected
        self.actual = actual
        message = (
            f"session {self.key!r} changed: expected revision {expected}, "
            f"stored revision {actual}"
        )
        super().__init__(f"{message}; {hint}" if hint else message)


class SessionDamagedError(SessionError, RuntimeError):
    """Stored data of this session cannot be read; nothing was changed.

    Attributes:
        key: the key, in its text form.
        backend: the journal's scheme, as ``sqlite``.
        detail: what was found, and where.
    """

    def __init__(self, key: object, backend: str, detail: str) -> None:
        self.key: str = str(key)
        self.backend = backend
        self.detail = detail
        super().__init__(f"session {self.key!r} in {backend} is damaged: {detail}")


class SnapshotUnavailableError(SessionError, RuntimeError):
    """A sync member needs messages that only an awaiting read can give.

    Attributes:
        session_type: the class that needs the override.
        member: the method to override.
    """

    def __init__(self, session_type: str, member: str = "messages_now") -> None:
        self.session_type = session_type
        self.member = member
        super().__init__(
            f"{session_type}.get_messages suspends, so its sync members have no "
            f"messages to read: override {session_type}.{member}"
        )


class UnknownSessionTypeError(SessionError, TypeError):
    """The store was not told of this session type; nothing was written.

    Attributes:
        session_type: the name of the type.
        known: the names that the store knows.
    """

    def __init__(self, session_type: str, known: tuple[str, ...]) -> None:
        self.session_type = session_type
        self.known = known
        super().__init__(
            f"session type {session_type!r} is not known to this store "
            f"(known: {', '.join(known) or 'none'}); pass it in types="
        )


class IsolationKeyError(SessionError, LookupError):
    """A scoped store was used where its provider gave no isolation key."""

    def __init__(self) -> None:
        super().__init__("the isolation key provider gave no key")


class StateKeyMissingError(SessionError, LookupError):
    """An instruction names a key that the state does not have.

    Attributes:
        key: the key, with its prefix.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"the state has no key {key!r}; {{{key}?}} stands for nothing where it is "
            "missing"
        )


# Copies ------------------------------------------------------------------------


class CopyMismatchError(SessionError, RuntimeError):
    """A journal holds other counts than it was given by a copy; what it holds stays.

    Attributes:
        key: the session, in its text form; empty for all sessions together.
        expected: what was given to it.
        found: what it holds.
    """

    def __init__(self, key: object, expected: str, found: str) -> None:
        self.key: str = str(key)
        self.expected = expected
        self.found = found
        what = f"the copy of session {self.key!r}" if self.key else "the copy"
        super().__init__(f"{what} holds {found}, not {expected}")


class DumpDamagedError(SessionError, ValueError):
    """A dump that is torn, or is no dump; nothing of it was stored.

    Attributes:
        line: the number of the line, from 1.
        reason: what is wrong there.
    """

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        self.reason = reason
        super().__init__(f"line {line}: {reason}")


# Entries -----------------------------------------------------------------------


class EntryConflictError(SessionError, ValueError):
    """An entry id is stored already, with another body or without its companions.

    Attributes:
        key: the key, in its text form.
        entry_id: the id in question.
        reason: ``another body``, ``partly known`` or ``repeated``; where the id is that
            of a message of an agent's run, with the run's id behind it.
    """

    def __init__(self, key: object, entry_id: str, reason: str) -> None:
        self.key: str = str(key)
        self.entry_id = entry_id
        self.reason = reason
        super().__init__(
            f"entry {entry_id!r} conflicts in session {self.key!r}: {reason}"
        )


class EntryTooLargeError(SessionError, ValueError):
    """An encoded entry is over the journal's limit.

    Attributes:
        entry_id: the entry's id.
        size: its encoded size in bytes.
        limit: the limit in bytes.
    """

    def __init__(self, entry_id: str, size: int, limit: int) -> None:
        self.entry_id = entry_id
        self.size = size
        self.limit = limit
        super().__init__(f"entry {entry_id!r} is {size} bytes, over {limit}")


# Summaries ---------------------------------------------------------------------


class SummaryFailedError(SessionError, RuntimeError):
    """A summarizer has no text that can stand for the messages it was given.

    Attributes:
        reason: ``status`` (an HTTP error), ``connection``, ``timeout``, ``refused``,
            ``empty``, ``truncated`` (cut off at the token limit), ``malformed`` or
            ``raised`` (another error, which is the cause).
        detail: what was found, without secrets.
        attempts: how often the request that failed was sent; `None` where the time
            ran out and the client may have repeated it.
    """

    def __init__(
        self,
        reason: Literal[
            "status",
            "connection",
            "timeout",
            "refused",
            "empty",
            "truncated",
            "malformed",
            "raised",
        ],
        detail: str,
        attempts: int | None = 1,
    ) -> None:
        self.reason = reason
        self.detail = detail
        self.attempts = attempts
        super().__init__(f"no summary ({reason}): {detail}")


# Storage -----------------------------------------------------------------------


class StorageError(SessionError, OSError):
    """The backend failed; the driver's own error is the cause.

    Attributes:
        backend: the journal's scheme, as ``sqlite``.
        detail: what the backend said.
    """

    def __init__(self, backend: str, detail: str) -> None:
        self.backend = backend
        self.detail = detail
        super().__init__(f"{backend}: {detail}")


class StorageFullError(StorageError):
    """There is no space left; writing works again when there is."""


class StorageBusyError(StorageError, TimeoutError):
    """A lock was not had in time; the call may be repeated."""


class SchemaVersionError(SessionError, RuntimeError):
    """Stored data was written by a newer version of this library.

    Attributes:
        backend: the journal's scheme, as ``sqlite``.
        found: the version that is stored.
        supported: the newest version that this library reads.
    """

    def __init__(self, backend: str, found: int, supported: int) -> None:
        self.backend = backend
        self.found = found
        self.supported = supported
        super().__init__(
            f"{backend} holds schema version {found}, this library reads up to "
            f"{supported}: upgrade raf-session"
        )


class JournalClosedError(SessionError, RuntimeError):
    """A journal was used before it was opened or after it was closed.

    Attributes:
        backend: the journal's scheme, as ``sqlite``.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        super().__init__(f"the {backend} journal is not open")
