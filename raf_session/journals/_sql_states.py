"""What stands beside a head: states, and the digests of the last request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from raf_session.changes import RequestDelta
from raf_session.errors import SessionDamagedError
from raf_session.journals._sql_dialect import Dialect, Transaction, lists
from raf_session.journals._texts import Texts
from raf_session.keys import SessionKey

__all__ = ("Digests", "StateTable", "join_digests")

_CHUNK: Final = 64
"""How many digests stand in one row."""
_CHUNK_BYTES: Final = 8 * _CHUNK


class StateTable:
    """A table of names and values, told apart by the number of their owner.

    Args:
        dialect: of the server.
        table: its name, as ``~session_state``.
        owner: the column of that number.
    """

    def __init__(self, dialect: Dialect, table: str, owner: str) -> None:
        self._delete = f"DELETE FROM {table} WHERE {owner} = ? AND name IN ??"  # noqa: S608
        self._put = dialect.upsert(table, (owner, "name"), ("value",))
        self._any = f"SELECT 1 FROM {table} WHERE {owner} = ? LIMIT 1"  # noqa: S608

    async def write(self, tx: Transaction, owner: int, texts: Texts) -> None:
        """Delete and set what the delta names."""
        for some in lists(sorted(texts.deleted)):
            await tx.execute(self._delete, owner, some)
        if texts.set:
            await tx.execute_many(self._put, [(owner, *pair) for pair in texts.set])

    async def empty(self, tx: Transaction, owner: int) -> bool:
        """Tell whether the owner has nothing."""
        return not await tx.rows(self._any, owner)


class Digests:
    """The digests of the last request of each session, in chunks.

    Args:
        dialect: of the server.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._backend = dialect.backend
        self._put = dialect.upsert(
            "~request_digests", ("session", "chunk"), ("digests",)
        )

    async def write(
        self,
        tx: Transaction,
        key: SessionKey,
        number: int,
        former_n: int,
        request: RequestDelta,
    ) -> None:
        """Keep the first digests, as many as the request says, and put its own behind.

        Args:
            tx: the transaction.
            key: the session.
            number: its number.
            former_n: how many there are.
            request: the new request.

        Raises:
            SessionDamagedError: digests that are to be kept are not there.
        """
        first, inside = divmod(request.keep, _CHUNK)
        digests = request.digests
        if inside:
            found = await tx.rows(
                "SELECT digests FROM ~request_digests WHERE session = ? AND chunk = ?",
                number,
                first,
            )
            kept = bytes(found[0][0][: 8 * inside]) if found else b""
            if len(kept) != 8 * inside:
                raise SessionDamagedError(
                    key, self._backend, "digests of its request are gone"
                )
            digests = kept + digests
        chunks = [
            (
                number,
                first + place // _CHUNK_BYTES,
                digests[place : place + _CHUNK_BYTES],
            )
            for place in range(0, len(digests), _CHUNK_BYTES)
        ]
        if chunks:
            await tx.execute_many(self._put, chunks)
        if former_n > (first + len(chunks)) * _CHUNK:
            await self.drop(tx, number, first + len(chunks))

    @staticmethod
    async def drop(tx: Transaction, number: int, first: int = 0) -> None:
        """Delete the digests of a request from this chunk on."""
        await tx.execute(
            "DELETE FROM ~request_digests WHERE session = ? AND chunk >= ?",
            number,
            first,
        )


def join_digests(
    backend: str, key: SessionKey, n: int | None, chunks: Iterable[bytes]
) -> bytes:
    """Return the digests of a request of so many messages, of its chunks in order.

    Raises:
        SessionDamagedError: there are fewer, or more.
    """
    if not n:
        return b""
    digests = b"".join(chunks)
    if len(digests) != 8 * n:
        detail = f"its request has {n} messages, {len(digests)} bytes of digests"
        raise SessionDamagedError(key, backend, detail)
    return digests
