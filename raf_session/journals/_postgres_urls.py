"""URLs of PostgreSQL, as people have them, in the form that the driver takes."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

__all__ = ("SCHEMES", "driver_url")

_DRIVERS: Final = (
    "asyncpg",
    "psycopg",
    "psycopg2",
    "psycopg2cffi",
    "psycopg_async",
    "pg8000",
)
SCHEMES: Final = (
    "postgresql",
    "postgres",
    *(f"{name}+{driver}" for name in ("postgresql", "postgres") for driver in _DRIVERS),
)
"""What a URL may begin with."""

_IGNORED: Final = {
    "async_fallback",
    "channel_binding",
    "client_encoding",
    "gssencmode",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "prepared_statement_cache_size",
    "prepared_statement_name_func",
    "prepare_threshold",
    "statement_cache_size",
    "tcp_user_timeout",
}
"""What other drivers take, and a server would refuse as a setting."""
_SSL: Final = {"true": "require", "1": "require", "false": "disable", "0": "disable"}


def driver_url(url: str) -> tuple[str, float | None]:
    """Return the URL for the driver, and how long connecting may take in seconds.

    Raises:
        ValueError: it is no URL of PostgreSQL, or an option of it cannot be read.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        raise ValueError(f"{scheme!r} is no scheme of PostgreSQL")
    parts = urlsplit(f"//{rest}")
    _check_ports(parts.netloc)
    timeout: float | None = None
    options: list[tuple[str, str]] = []
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "connect_timeout":
            timeout = _seconds(value)
        elif name == "ssl":
            options.append(("sslmode", _SSL.get(value.lower(), value)))
        elif name not in _IGNORED:
            options.append((name, value))
    query = urlencode(options, quote_via=quote, safe="/")
    return (
        f"postgresql://{parts.netloc}{parts.path}{'?' if query else ''}{query}",
        timeout,
    )


def _check_ports(netloc: str) -> None:
    """Check the port of each host; what is wrong is not told, as it may be secret."""
    for host in netloc.rpartition("@")[2].split(","):
        try:
            urlsplit(f"//{host}").port  # noqa: B018  (reading it checks it)
        except ValueError:
            raise ValueError("the URL names a port that is none") from None


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError as error:
        raise ValueError(f"connect_timeout={value!r} is no number") from error
    return seconds if seconds > 0 else None
