"""What is asked of a server when a journal is opened."""

from __future__ import annotations

import warnings
from typing import Any, Final, NamedTuple

from redis.exceptions import RedisError, ResponseError

from raf_session.errors import SchemaVersionError, StorageError
from raf_session.journal import Durability
from raf_session.journals._redis_clients import Client
from raf_session.journals._redis_core import Core, text
from raf_session.journals._redis_faults import BACKEND
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_repair import Repair

__all__ = ("Opening",)

_SCHEMA: Final = 1
_OLDEST: Final = (7, 0)


class Opening(NamedTuple):
    """Looks at the server before the first call.

    Args:
        core: what the journal is made of.
        repair: what mends the index.
        durability: the level that it has to keep.
    """

    core: Core
    repair: Repair
    durability: Durability

    async def run(self, link: Link) -> bool:
        """Check the server; tell whether its scripts may touch keys of all slots.

        Raises:
            StorageError: it is too old, a node of a cluster that is used as a server
                alone, or cannot keep the durability.
            SchemaVersionError: a newer library wrote what is stored.
        """
        for node in await link.nodes():
            await self._check_version(link, node)
            await self._check_durability(link, node)
        link.one_slot = await self._one_slot(link)
        await self._check_schema(link)
        return link.one_slot

    async def _check_version(self, link: Link, node: Client) -> None:
        info: dict[str, Any] = await link.on_node(node, "INFO", "server")
        version = str(info.get("redis_version", ""))
        found = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
        if found < _OLDEST:
            raise StorageError(
                BACKEND,
                f"the server is {version or 'of no known version'}; "
                "7.0 is the oldest that works",
            )
        if info.get("redis_mode") == "cluster" and not link.holder.clustered:
            raise StorageError(
                BACKEND, "the server is a node of a cluster: use redis+cluster://"
            )

    async def _check_durability(self, link: Link, node: Client) -> None:
        try:
            reply = await link.on_node(
                node, "CONFIG", "GET", "append*", "maxmemory-policy"
            )
        except StorageError as error:
            if not isinstance(error.__cause__, ResponseError):
                raise
            await self._ask_otherwise(link, node)
            return
        config = _pairs(reply)
        if config.get("appendonly") != "yes":
            self._refuse("appendonly yes")
        if self.durability == "power" and config.get("appendfsync") != "always":
            self._refuse("appendfsync always")
        policy = config.get("maxmemory-policy", "")
        if policy.startswith("allkeys"):
            warnings.warn(
                "the server evicts any key when it is full (maxmemory-policy "
                f"{policy}): sessions will be lost; noeviction keeps them",
                RuntimeWarning,
                stacklevel=2,
            )

    def _refuse(self, setting: str) -> None:
        raise StorageError(
            BACKEND,
            f"the server cannot keep durability={self.durability!r}: set {setting}",
        )

    async def _ask_otherwise(self, link: Link, node: Client) -> None:
        info: dict[str, Any] = await link.on_node(node, "INFO", "persistence")
        if info.get("aof_enabled") == 0:
            self._refuse("appendonly yes")
        if self.durability == "power" or "aof_enabled" not in info:
            warnings.warn(
                "the server does not tell its configuration: whether it keeps "
                f"durability={self.durability!r} is not known",
                RuntimeWarning,
                stacklevel=2,
            )

    async def _one_slot(self, link: Link) -> bool:
        if link.holder.clustered:
            return False
        keys = [self.core.names.schema, self.core.index.keys.keys]
        try:
            await link.client.execute_command("EVAL", "return 1", 2, *keys)
        except ResponseError:
            return False  # a proxy in front of several servers
        except RedisError as error:
            raise StorageError(BACKEND, str(error)) from error
        return True

    async def _check_schema(self, link: Link) -> None:
        name = self.core.names.schema
        (found,) = await link.commands([("GET", name)])
        if found is None:
            await self.repair.rebuild(link)
            await link.commands([("SET", name, _SCHEMA, "NX")])
            (found,) = await link.commands([("GET", name)])
        version = text(found or b"")
        if not version.isdecimal():
            prefix = self.core.names.prefix
            raise StorageError(BACKEND, f"{prefix!r} is not a journal's: {version!r}")
        if int(version) > _SCHEMA:
            raise SchemaVersionError(BACKEND, int(version), _SCHEMA)


def _pairs(reply: dict[Any, Any] | list[Any]) -> dict[str, str]:
    if isinstance(reply, dict):
        return {text(name): text(value) for name, value in reply.items()}
    return {
        text(name): text(value)
        for name, value in zip(reply[::2], reply[1::2], strict=True)
    }
