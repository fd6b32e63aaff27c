"""One raw write with the backend's own driver: what no library can be faster than."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from benches.contenders.contender import Contender
from benches.places import SERVERS, KeyedWrite, RawWrite
from raf_session.entries import new_id
from raf_session.json_text import dump_json

__all__ = ("RAW",)

_NOTHING_BUT_APPEND: Mapping[str, str] = dict.fromkeys(
    ("batch append", "load", "load last 20", "list", "bytes", "writers"), "one write"
)


class Raw(Contender):
    """A body and nothing else: no head, no id, no order, no session."""

    label = "raw write"
    distribution = "raf-session"
    lacks = _NOTHING_BUT_APPEND

    @override
    async def open(self) -> None:
        assert self.place.raw is not None
        self._write: RawWrite = self.place.raw

    @override
    def message(self, message: dict[str, Any]) -> str:
        return dump_json({"message": message})

    @override
    def text(self, message: Any) -> str:
        raise NotImplementedError(self.lacks["load"])

    @override
    async def create(self, name: str) -> None:
        pass

    @override
    async def append(self, session: None, message: str) -> None:
        await self._write(message)

    @override
    async def fill(self, session: None, messages: Sequence[str]) -> None:
        pass

    @override
    async def load(self, name: str) -> Sequence[Any]:
        raise NotImplementedError(self.lacks["load"])


class RawPower(Raw):
    """The same, on the disk before it is acknowledged."""

    label = "raw write (power)"

    @override
    async def open(self) -> None:
        assert self.place.raw_power is not None
        self._write = self.place.raw_power


class RawKeyed(Raw):
    """A body under its id, in the order of a session: the least that holds messages."""

    label = "raw write (keyed)"

    @override
    async def open(self) -> None:
        assert self.place.keyed is not None
        self._keyed: KeyedWrite = self.place.keyed

    @override
    def message(self, message: dict[str, Any]) -> Any:
        return new_id(), super().message(message)

    @override
    async def append(self, session: None, message: Any) -> None:
        await self._keyed(*message)


def _on(backend: str, how: str, base: type[Raw] = Raw) -> type[Raw]:
    return type(base.__name__, (base,), {"backend": backend, "how": how})


_SERVER = "one row through the driver, no fsync: as `tests/servers` starts it"

RAW: tuple[type[Contender], ...] = (
    _on("memory", "one list append"),
    _on("SQLite", "one insert and commit; WAL, synchronous=NORMAL"),
    _on("SQLite", "one insert and commit; WAL, synchronous=FULL", RawPower),
    _on("JSONL", "one write to a file open for appending"),
    _on("JSONL", "the same and fdatasync", RawPower),
    *(_on(backend, _SERVER) for backend in SERVERS),
    *(
        _on(backend, f"{_SERVER}; an id that is unique", RawKeyed)
        for backend in SERVERS
    ),
)
