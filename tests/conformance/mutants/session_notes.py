"""Sessions that keep states, requests and times wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from json import dumps, loads
from typing import Any

from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import ListSession
from raf_session.agent_session import AgentSession
from raf_session.clock import utc_now
from raf_session.frozen import FrozenDict, FrozenJson
from raf_session.messages import ChatMessage

Messages = Sequence[ChatMessage | Mapping[str, Any]]


@fault("session", "a_missing_state_is_none")
class MissingIsEmpty(AgentSession):
    """A provider that kept nothing is told an empty object."""

    @override
    def get_provider_state(self, provider_name: str, /) -> FrozenJson:
        kept = super().get_provider_state(provider_name)
        return kept if provider_name in self._view.providers else FrozenDict()


@fault("session", "states_come_back_exactly")
class NumbersAreFloats(AgentSession):
    """Every number of a provider's state comes back with a fraction."""

    @override
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        state = float(state) if type(state) is int and state < 2**60 else state
        super().set_provider_state(provider_name, state)


@fault("session", "a_state_is_bound_to_its_name")
class FoldsProviders(AgentSession):
    """Names of providers are compared without case and blanks."""

    @override
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        super().set_provider_state(provider_name, state)
        folded = provider_name.strip().casefold()
        for name in self._view.providers:
            if name != provider_name and name.strip().casefold() == folded:
                super().set_provider_state(name, state)


@fault("session", "a_value_that_is_no_json_is_refused")
class NanIsNull(AgentSession):
    """NaN and infinities of a provider's state become null."""

    @override
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        if isinstance(state, float) and state * 0 != 0:
            state = None
        super().set_provider_state(provider_name, state)


@fault("session", "there_is_no_hash_before_the_first")
class HashOfNothingIsZero(AgentSession):
    """Before the first request its hash is 0."""

    @override
    def get_last_request_hash(self) -> int | None:
        return super().get_last_request_hash() or 0


@fault("session", "an_empty_request_is_the_root")
class IgnoresEmptyRequests(AgentSession):
    """A request without messages is not recorded."""

    @override
    def touch_request_hash(self, messages: Messages, /, *, header: Any = None) -> None:
        if messages:
            super().touch_request_hash(messages, header=header)


@fault("session", "the_hash_is_the_prefix_hash")
class HashesTheEnd(AgentSession):
    """Only the last messages of a request are hashed."""

    @override
    def touch_request_hash(self, messages: Messages, /, *, header: Any = None) -> None:
        super().touch_request_hash(messages[-2:], header=header)


@fault("session", "equal_requests_have_equal_hashes")
class HashesOrderOfKeys(AgentSession):
    """A request that is given as dicts is hashed as the text of these."""

    @override
    def touch_request_hash(self, messages: Messages, /, *, header: Any = None) -> None:
        if messages and all(isinstance(m, dict) for m in messages):
            text = dumps(list(messages), default=dict)
            messages = [*messages, ChatMessage.user(text)]
        super().touch_request_hash(messages, header=header)


@fault("session", "a_changed_request_has_another_hash")
class HashesTextArgumentsAlone(AgentSession):
    """Arguments that are no text are left out of the hash."""

    @override
    def touch_request_hash(self, messages: Messages, /, *, header: Any = None) -> None:
        told = [loads(dumps(m)) for m in messages if type(m) is dict]
        for call in (c for m in told for c in m.get("tool_calls") or []):
            if call["function"].get("arguments") == 1:
                del call["function"]["arguments"]
        super().touch_request_hash(told or messages, header=header)


@fault("session", "an_invalid_request_changes_nothing")
class ForgetsBeforeItHashes(AgentSession):
    """A request that is refused takes the former one with it."""

    @override
    def touch_request_hash(self, messages: Messages, /, *, header: Any = None) -> None:
        self.restore_request(None)
        super().touch_request_hash(messages, header=header)


@fault("session", "a_request_leaves_the_rest_alone", also=("notes_are_no_activity",))
class RequestsAreActivity(AgentSession):
    """To record a request keeps the session alive."""

    @override
    def touch_request_hash(self, messages: Messages, /, *, header: Any = None) -> None:
        super().touch_request_hash(messages, header=header)
        self._view = self._view._replace(last_active_at=self._clock())


@fault("session", "states_leave_the_rest_alone")
class StatesAreActivity(AgentSession):
    """To set a provider's state keeps the session alive."""

    @override
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        super().set_provider_state(provider_name, state)
        self._view = self._view._replace(last_active_at=self._clock())


@fault("session", "times_begin_with_the_session")
class BeginsByAnotherClock(AgentSession):
    """The time at which it began is told by the clock of the process."""

    @property
    @override
    def created_at(self) -> datetime:
        began: datetime = self.__dict__.setdefault("_began", utc_now())
        return began


@fault("session", "touch_moves_the_activity_alone")
class TouchesUpdate(AgentSession):
    """A touch is told as a change."""

    @override
    async def touch_last_active(self) -> None:
        await super().touch_last_active()
        latest = self._view.last_active_at
        self._view = self._view._replace(updated_at=latest)


@fault("session", "no_time_goes_back")
class TouchesBack(AgentSession):
    """A touch by a clock that was set back moves the activity back."""

    @override
    async def touch_last_active(self) -> None:
        self._view = self._view._replace(last_active_at=self._clock())


@fault("session", "times_never_told_are_the_sentinel")
class AlwaysNew(ListSession):
    """Where nobody tells when it began, it began when somebody asked."""

    @property
    @override
    def created_at(self) -> datetime:
        began: datetime = self.__dict__.setdefault("_began", utc_now())
        return began


@fault("session", "clear_forgets_the_request")
class ClearKeepsTheRequest(AgentSession):
    """A session that was cleared still tells the hash of its last request."""

    @override
    async def clear(self) -> None:
        kept = self.request_record
        await super().clear()
        self.restore_request(kept)
