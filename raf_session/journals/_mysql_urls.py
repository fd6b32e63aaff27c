"""URLs of MySQL and MariaDB, as SQLAlchemy and the drivers write them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

__all__ = ("SCHEMES", "connect_options")

SCHEMES: Final = tuple(
    f"{name}{driver}"
    for name in ("mysql", "mariadb")
    for driver in (
        "",
        "+asyncmy",
        "+aiomysql",
        "+pymysql",
        "+mysqldb",
        "+mysqlconnector",
        "+mariadbconnector",
        "+cymysql",
    )
)
"""What a URL may begin with; whichever driver it names, `asyncmy` is used."""

_CHARSETS: Final = {"utf8", "utf8mb3", "utf8mb4"}
_TRUE: Final = {"1", "true", "yes", "on"}
_FALSE: Final = {"0", "false", "no", "off"}


def connect_options(url: str, context: ssl.SSLContext | None = None) -> dict[str, Any]:
    """Return how to connect to what a URL names, as `asyncmy.connect` takes it.

    Args:
        url: ``mysql://user:password@host:port/database?parameters``.
        context: for TLS, in place of what the parameters say.

    Raises:
        ValueError: the URL is none of MySQL or names no database; a parameter is not
            known, or has a value that it cannot have.
    """
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ValueError(
            f"{parts.scheme}:// is no URL of MySQL: mysql:// or mariadb://"
        )
    database = unquote(parts.path[1:])
    if not database or "/" in database:
        raise ValueError("the URL names no database: mysql://host/database")
    options: dict[str, Any] = {
        "host": _host(parts),
        "port": _port(parts) or 3306,
        "database": database,
        "charset": "utf8mb4",
        "autocommit": True,
        "connect_timeout": 10,
    }
    if parts.username is not None:
        options["user"] = unquote(parts.username)
    if parts.password is not None:
        # The driver would write a text as Latin-1.
        options["password"] = unquote(parts.password).encode()
    tls = _Tls()
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if not tls.take(name, value):
            reader = _PARAMETERS.get(name)
            if reader is None:
                raise ValueError(f"{name!r} is no parameter of a {parts.scheme}:// URL")
            options |= reader(name, value)
    context = context or tls.context()
    if context is not None:
        options["ssl"] = context
    return options


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:  # its text may be of a password
        raise ValueError("the URL names a port that is none") from None


def _host(parts: SplitResult) -> str:
    return unquote(parts.hostname or "") or "127.0.0.1"


# Parameters ----------------------------------------------------------------------


def _charset(name: str, value: str) -> dict[str, Any]:
    if value.lower() not in _CHARSETS:
        raise ValueError(f"{name}={value!r} cannot hold every text: utf8mb4 can")
    return {}


def _seconds(name: str, value: str) -> dict[str, Any]:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0
    if not 0 < seconds < 31_536_000:
        raise ValueError(f"{name}={value!r} is no number of seconds")
    return {name: seconds}


def _socket(_: str, value: str) -> dict[str, Any]:
    return {"unix_socket": value}


def _text(name: str, value: str) -> dict[str, Any]:
    return {name: value}


def _on(name: str, value: str) -> dict[str, Any]:
    if not _flag(name, value):
        raise ValueError(f"{name}={value!r}: texts are always Unicode here")
    return {}


def _flag(name: str, value: str) -> bool:
    if value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise ValueError(f"{name}={value!r} is neither true nor false")


_PARAMETERS: Final[dict[str, Callable[[str, str], dict[str, Any]]]] = {
    "charset": _charset,
    "connect_timeout": _seconds,
    "read_timeout": _seconds,
    "unix_socket": _socket,
    "socket": _socket,
    "program_name": _text,
    "server_public_key": _text,
    "use_unicode": _on,
    "binary_prefix": _on,
}


class _Tls:
    """What the parameters say of TLS; the server's mode names are those of MySQL."""

    def __init__(self) -> None:
        self._mode = ""
        self._files: dict[str, str] = {}
        self._check_hostname: bool | None = None

    def take(self, name: str, value: str) -> bool:
        """Take note of a parameter, if it is one of TLS."""
        if name in {"ssl_mode", "ssl-mode", "sslmode"}:
            mode = value.upper().replace("-", "_")
            if mode not in _MODES:
                known = ", ".join(sorted(_MODES))
                raise ValueError(f"{name}={value!r} is none of {known}")
            self._mode = mode
        elif name == "ssl":
            self._mode = self._mode or (
                "REQUIRED" if _flag(name, value) else "DISABLED"
            )
        elif name == "ssl_disabled":
            self._mode = "DISABLED" if _flag(name, value) else self._mode
        elif name in {"ssl_verify_cert", "ssl_verify_identity"}:
            if _flag(name, value):
                self._mode = _MODES_OF[name]
        elif name == "ssl_check_hostname":
            self._check_hostname = _flag(name, value)
        elif name in {"ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_cipher"}:
            self._files[name[4:]] = value
        else:
            return False
        return True

    def context(self) -> ssl.SSLContext | None:
        """Return the context that was asked for, `None` for a plain connection."""
        files = self._files
        trusted = "ca" in files or "capath" in files
        mode = self._mode or ("VERIFY_IDENTITY" if trusted else "")
        if mode == "DISABLED" or not (mode or files):
            return None
        for name in ("ca", "capath", "cert", "key"):
            if name in files and not Path(files[name]).exists():
                raise ValueError(f"ssl_{name}={files[name]!r}: there is no such file")
        context = ssl.create_default_context(
            cafile=files.get("ca"), capath=files.get("capath")
        )
        verified = mode in {"VERIFY_CA", "VERIFY_IDENTITY"}
        named = mode == "VERIFY_IDENTITY" if verified else False
        if self._check_hostname is not None:
            named = verified and self._check_hostname
        context.check_hostname = named
        context.verify_mode = ssl.CERT_REQUIRED if verified else ssl.CERT_NONE
        if "cert" in files:
            context.load_cert_chain(files["cert"], files.get("key"))
        if "cipher" in files:
            context.set_ciphers(files["cipher"])
        return context


_MODES: Final = {"DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"}
_MODES_OF: Final = {
    "ssl_verify_cert": "VERIFY_CA",
    "ssl_verify_identity": "VERIFY_IDENTITY",
}
