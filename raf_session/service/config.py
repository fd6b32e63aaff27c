"""`SessionServiceConfig`: time to live, and what of its events a session shows."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ValidationInfo

from raf_session.options import Limits, SessionTTLOptions
from raf_session.parts import FrozenModel

__all__ = ("SessionServiceConfig", "Ttl", "config_of")

_DAY_SECS = 86400
_HOUR_SECS = 3600


def _check_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number is expected")  # noqa: TRY004  (pydantic wraps it)
    if not 0 <= value < float("inf"):
        raise ValueError("a finite number that is not negative is expected")
    return value


def _check_interval(value: float, info: ValidationInfo) -> float:
    if value == 0:
        raise ValueError(f"{info.field_name}=0 would never rest")
    return value


_Seconds = Annotated[float, BeforeValidator(_check_number)]
_Count = Annotated[int, BeforeValidator(_check_number)]


class Ttl(FrozenModel):
    """How long something lives without being read or written."""

    enable: bool = True
    """Whether anything expires."""

    ttl_seconds: _Seconds = _DAY_SECS
    """Seconds without activity; 0: no limit."""

    cleanup_interval_seconds: Annotated[_Seconds, AfterValidator(_check_interval)] = (
        _HOUR_SECS
    )
    """Seconds between two sweeps; ignored in Redis, whose keys expire by themselves."""

    @property
    def options(self) -> SessionTTLOptions:
        """The same as a journal takes it."""
        limit = self.ttl_seconds if self.enable and self.ttl_seconds else None
        return SessionTTLOptions(
            max_idle_secs=limit, cleanup_interval_secs=self.cleanup_interval_seconds
        )


_OFF = Ttl(enable=False)


class SessionServiceConfig(FrozenModel):
    """What a session service keeps, and for how long.

    tRPC-Agent: ``SessionServiceConfig``; there, one without ``ttl=`` expires sessions
    after a day, here nothing expires unless it is asked for.
    """

    max_events: _Count = 0
    """The most events that a session holds; 0: no limit."""

    event_ttl_seconds: _Seconds = 0.0
    """Seconds after which an event leaves its session; 0: no limit."""

    num_recent_events: _Count = 0
    """The most events that a read returns, whatever is stored; 0: no limit."""

    store_historical_events: bool = False
    """Whether events that leave their session stay in its archive, or are deleted."""

    ttl: Ttl = _OFF
    """How long sessions live."""

    user_state_ttl: Ttl | None = None
    """How long a user's state lives; `None`: as long as `ttl` says."""

    app_state_ttl: Ttl | None = None
    """How long an app's state lives; `None`: as long as `ttl` says."""

    @staticmethod
    def create_ttl_config(
        enable: bool = True,
        ttl_seconds: float = _DAY_SECS,
        cleanup_interval_seconds: float = _HOUR_SECS,
    ) -> Ttl:
        """Return a time to live.

        Args:
            enable: whether anything expires.
            ttl_seconds: seconds without activity; 0: no limit.
            cleanup_interval_seconds: seconds between two sweeps.

        Raises:
            ValidationError: a number is negative, NaN or infinite, or the interval 0.
        """
        return Ttl(
            enable=enable,
            ttl_seconds=ttl_seconds,
            cleanup_interval_seconds=cleanup_interval_seconds,
        )

    @property
    def limits(self) -> Limits:
        """What a journal has to enforce of it."""
        return Limits(
            sessions=self.ttl.options,
            user_state=(self.user_state_ttl or self.ttl).options,
            app_state=(self.app_state_ttl or self.ttl).options,
        )

    @property
    def expires(self) -> bool:
        """Whether anything expires."""
        limits = self.limits
        scopes = (limits.sessions, limits.user_state, limits.app_state)
        return any(options.enabled for options in scopes)


def config_of(given: SessionServiceConfig | None) -> SessionServiceConfig:
    """Return a configuration, that of no limits where none is given.

    Raises:
        TypeError: it is something else.
    """
    if given is None:
        return SessionServiceConfig()
    if not isinstance(given, SessionServiceConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"session_config is a SessionServiceConfig, not {given!r:.60}")
    return given
