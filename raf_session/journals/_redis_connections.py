"""Connections of redis-py that send a script at once, without a task for it."""

from __future__ import annotations

from asyncio import StreamWriter
from typing import TYPE_CHECKING, Any, Final

from redis.asyncio.connection import (
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.sentinel import (
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from typing_extensions import override

__all__ = ("direct",)

_SCRIPT: Final = "EVALSHA"
_AT_ONCE: Final = 32 * 1024
"""Bytes that a transport takes, where it holds none, without asking to wait."""


def _packed(args: tuple[object, ...]) -> bytes | None:
    """Return the call of a script as it travels, `None`: it has other arguments."""
    parts = [b"*%d\r\n$7\r\nEVALSHA\r\n" % len(args)]
    for arg in args[1:]:
        if type(arg) is bytes:
            word = arg
        elif type(arg) is str or type(arg) is int:
            word = str(arg).encode()
        else:
            return None
        parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
    return b"".join(parts)


if TYPE_CHECKING:
    _Base = Connection
else:
    _Base = object


class _Direct(_Base):
    """Packs a script's call in one go, and writes a small one in its own turn.

    The driver waits for each write under its time limit in a task; where the transport
    holds nothing and the command is small, there is nothing to wait for. A connection
    that is lost is noticed as the reply is read. A driver that names its writer in
    another way than redis-py 5 to 8 do writes as ever.
    """

    @override
    async def send_command(self, *args: Any, **kwargs: Any) -> None:
        packed = _packed(args) if args[0] == _SCRIPT else None
        if packed is None:
            await super().send_command(*args, **kwargs)
            return
        check_health = bool(kwargs.get("check_health", True))
        writer: StreamWriter | None = getattr(self, "_writer", None)
        if (
            writer is None
            or len(packed) > _AT_ONCE
            or (check_health and self.health_check_interval)
            or writer.transport.is_closing()
            or writer.transport.get_write_buffer_size()
        ):
            await self.send_packed_command(packed, check_health)
        else:
            writer.write(packed)


class _DirectTCP(_Direct, Connection): ...


class _DirectTLS(_Direct, SSLConnection): ...


class _DirectUnix(_Direct, UnixDomainSocketConnection): ...


class _DirectSentinel(_Direct, SentinelManagedConnection): ...


class _DirectSentinelTLS(_Direct, SentinelManagedSSLConnection): ...


_DIRECT: Final[dict[type[Any], type[Any]]] = {
    cls.__mro__[2]: cls
    for cls in (
        _DirectTCP,
        _DirectTLS,
        _DirectUnix,
        _DirectSentinel,
        _DirectSentinelTLS,
    )
}


def direct(kind: type[Any]) -> type[Any]:
    """Return the kind of connection that sends at once, in place of redis-py's."""
    return _DIRECT[kind]
