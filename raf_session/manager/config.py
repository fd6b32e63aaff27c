"""`AgentsConfig`: the configuration of the TPCLAW face, and where it is read from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from raf_session.errors import InvalidValueError
from raf_session.frozen import join_path
from raf_session.history import HistoryPolicy
from raf_session.manager.config_sections import (
    CompactionConfig,
    CompactionMode,
    SessionConfig,
    ToolCallConfig,
)
from raf_session.manager.config_values import ALIKE, ConfigModel, closest
from raf_session.manager.environment import PREFIX, environment_values, variable_names
from raf_session.manager.yaml_values import yaml_values
from raf_session.tokens import Calibration

__all__ = (
    "AgentsConfig",
    "CompactionConfig",
    "CompactionMode",
    "SessionConfig",
    "ToolCallConfig",
)


AS_COUNTED: Final = Calibration()

_LONG_FORM: Final = "agents"
_DEFAULTS: Final = "defaults"


class AgentsConfig(ConfigModel):
    """The whole configuration; the document: ``agents.defaults``.

    Raises:
        InvalidValueError: an option is not known or does not fit, with its path.
    """

    session: SessionConfig = SessionConfig()
    compaction: CompactionConfig = CompactionConfig()
    tool_calls: ToolCallConfig = ToolCallConfig()

    @classmethod
    def from_mapping(
        cls, values: Mapping[str, Any] | None, *, base: AgentsConfig | None = None
    ) -> AgentsConfig:
        """Return the configuration of plain values, as YAML or JSON hold them.

        Args:
            values: ``{"agents": {"defaults": {"session": …}}}``, or the short form
                ``{"session": …, "compaction": …, "tool_calls": …}``; sections and
                options may be missing.  What else stands beside them is other
                programs', and left alone.
            base: what holds for those that are missing.

        Raises:
            InvalidValueError: an option is not known, is given twice or does not fit;
                a name beside the sections looks like a misspelt one, or nothing there
                is ours; the path leads to it, the reason says what was expected.
        """
        config = AgentsConfig() if base is None else base
        found, place = _unfolded(values)
        try:
            sections = cls.given(_sections(cls, found, place))
            return config.layered(
                {name: _layered(config, name, sections[name]) for name in sections}
            )
        except InvalidValueError as error:
            raise (error.within(place) if place else error) from None

    @classmethod
    def from_yaml(
        cls, source: str | os.PathLike[str], *, base: AgentsConfig | None = None
    ) -> AgentsConfig:
        """Return the configuration of a YAML text or file, as `from_mapping` reads it.

        Args:
            source: YAML text; or a file, by its path. A text of one word, as
                ``"agents.yaml"``, is a path.
            base: what holds for options that are missing.

        Raises:
            InvalidValueError: as `from_mapping`; it is no YAML, with the line; a key
                stands twice in one mapping.
            OSError: the file cannot be read.
            ModuleNotFoundError: the extra ``yaml`` is not installed.
        """
        return cls.from_mapping(yaml_values(source), base=base)

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        prefix: str = PREFIX,
        base: AgentsConfig | None = None,
    ) -> AgentsConfig:
        """Return the configuration of environment variables.

        Args:
            environ: the variables; `None`: those of the process.
            prefix: what their names begin with: ``RAF_SESSION_MAX_MESSAGES``,
                ``RAF_SESSION_COMPACTION_MODE``,
                ``RAF_SESSION_TOOL_CALLS_KEEP_TOOL_CALLS_COUNT``. An empty or blank
                variable says nothing; ``null`` is `None`.
            base: what holds for options without a variable.

        Raises:
            InvalidValueError: a value does not fit, or a name is a misspelt option's;
                the path is the variable's name.
        """
        config = AgentsConfig() if base is None else base
        options = variable_names(cls, prefix)
        found = environment_values(
            options, os.environ if environ is None else environ, prefix
        )
        sections: dict[str, dict[str, object]] = {}
        for variable, value in found.items():
            option = options[variable]
            sections.setdefault(option.section, {})[option.name] = value
        try:
            return cls.from_mapping(sections, base=config)
        except InvalidValueError as error:
            for variable, option in options.items():
                if error.path == f"{option.section}.{option.name}":
                    raise InvalidValueError(variable, error.reason) from None
            raise

    def history_policy(
        self, reserved_tokens: int = 0, calibration: Calibration = AS_COUNTED
    ) -> HistoryPolicy:
        """Return how history is cut for a request.

        Its tokens are those of `SessionConfig.request_tokens` without what is reserved,
        at least 1.

        Args:
            reserved_tokens: what else the request holds beside history: instructions,
                tools. `reserve_tokens` of the configuration is taken off too.
            calibration: what the provider counts for one of our tokens; where that is
                more than one, less history fits.
        """
        session, tool_calls = self.session, self.tool_calls
        room = session.request_tokens
        if room is not None:
            room = calibration.narrowed(room - session.reserve_tokens)
            room = max(room - reserved_tokens, 1)
        return HistoryPolicy(
            max_messages=session.max_messages,
            max_tokens=room,
            keep_tool_calls=tool_calls.keep_tool_calls_count,
            max_tool_result_size=tool_calls.max_tool_result_size,
            tool_call_placeholder=tool_calls.placeholder,
            mode=session.window,
        )


def _unfolded(values: object) -> tuple[object, str]:
    """Return what stands in ``agents.defaults``, or the short form as it is.

    Returns:
        The sections with what stands beside them, and the path to them.

    Raises:
        InvalidValueError: what is on the way is no mapping, or ``defaults`` looks
            misspelt.
    """
    if not isinstance(values, Mapping) or _LONG_FORM not in values:
        return values, ""  # pyright: ignore[reportUnknownVariableType]
    agents = cast("Mapping[object, object]", values)[_LONG_FORM]
    if agents is None:
        return None, _LONG_FORM
    if not isinstance(agents, Mapping):
        reason = f"expected a mapping, not {agents!r:.60}"
        raise InvalidValueError(_LONG_FORM, reason)
    fields = cast("Mapping[object, object]", agents)
    if _DEFAULTS not in fields:
        try:
            _refuse_misspelt(fields, (_DEFAULTS,))
        except InvalidValueError as error:
            raise error.within(_LONG_FORM) from None
    return fields.get(_DEFAULTS), join_path(_LONG_FORM, _DEFAULTS)


def _sections(config: type[ConfigModel], values: object, place: str) -> object:
    """Return the sections of a mapping without what stands beside them.

    Raises:
        InvalidValueError: a name looks like a misspelt one; in the short form, there
            is something and nothing of it is a section.
    """
    if not isinstance(values, Mapping):
        return values
    fields = cast("Mapping[object, object]", values)
    known = config.option_names()
    _refuse_misspelt(fields, known)
    found = {name: section for name, section in fields.items() if name in known}
    if fields and not found and not place:
        _refuse_misspelt(fields, (_LONG_FORM,))
        expected = f"{_LONG_FORM}, or {', '.join(config.model_fields)}"
        reason = f"is no option; expected {expected} beside it"
        raise InvalidValueError(f"{next(iter(fields))}", reason)
    return found


def _refuse_misspelt(fields: Mapping[object, object], known: Iterable[str]) -> None:
    for key in fields:
        if isinstance(key, str) and key not in known:
            hint = closest(key, known, ALIKE)
            if hint:
                raise InvalidValueError(key, f"is no option{hint}")


def _layered(config: AgentsConfig, name: str, values: object) -> ConfigModel:
    section: ConfigModel = getattr(config, name)
    try:
        return section.layered(values)
    except InvalidValueError as error:
        raise error.within(name) from None
