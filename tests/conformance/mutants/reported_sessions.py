"""Sessions that fail as those did of which users complain."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps, loads
from typing import Any, Self

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from raf_session.agent_session import AgentSession
from raf_session.clock import utc_now
from raf_session.frozen import FrozenDict
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionSnapshot
from raf_session.session_view import MessageLog


@fault("session", "parallel_writers_lose_nothing", reported=True)
class LosesParallelMessages(AgentSession):
    """Two messages that are added at once: one of them disappears."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        before = self._view
        await checkpoint()
        if self._view.length == before.length + 1:
            self._view = before._replace(log=MessageLog(), length=0)
            await super().add_messages_batch(before.messages())
        await super().add_message(message)


@fault(
    "session",
    "sessions_share_nothing",
    reported=True,
    wide="no session of the process begins empty",
)
class SharesHistory(AgentSession):
    """The list that a session begins with is the class's, and so everybody's."""

    _log = MessageLog()

    def __init__(self, session_id: str | None = None, **options: Any) -> None:
        super().__init__(session_id, **options)
        length = len(self._log.messages)
        self._view = self._view._replace(log=self._log, length=length)


@fault("session", "equal_messages_are_kept_apart", reported=True)
class DropsRepeatedTexts(AgentSession):
    """A message that says what was said before is taken for a repetition."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        if message not in self._view.messages():
            await super().add_message(message)


@fault("session", "a_known_message_is_kept_once", reported=True)
class StoresTwice(AgentSession):
    """A message that is sent again under its id is there twice."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        log = self._view.log
        if message.id in log.by_id:
            del log.by_id[message.id]
        await super().add_message(message)


@fault("session", "a_batch_is_all_or_none", reported=True)
class AddsWhatFits(AgentSession):
    """A batch in which one message is refused is there up to it."""

    @override
    async def add_messages_batch(self, messages: Sequence[ChatMessage], /) -> None:
        for message in messages:
            await self.add_message(message)


@fault("session", "members_do_not_mind_a_writer", reported=True)
class SerialisesEmpty(AgentSession):
    """While somebody writes, the session serialises as empty."""

    def __init__(self, session_id: str | None = None, **options: Any) -> None:
        super().__init__(session_id, **options)
        self._busy = False

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        self._busy = True
        await checkpoint()
        self._busy = False
        await super().add_message(message)

    @override
    def get_message_count(self) -> int:
        return 0 if self._busy else super().get_message_count()


@fault("session", "members_do_not_mind_a_writer", reported=True)
class DropsStateWhenBusy(AgentSession):
    """A provider's state that is set while somebody writes is dropped."""

    def __init__(self, session_id: str | None = None, **options: Any) -> None:
        super().__init__(session_id, **options)
        self._busy = False

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        self._busy = True
        await checkpoint()
        await super().add_message(message)
        self._busy = False

    @override
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        if not self._busy:
            super().set_provider_state(provider_name, state)


@fault("session", "the_count_is_the_number_of_messages", reported=True)
class ForgetsToCount(AgentSession):
    """The count is what was added, whatever was cleared since."""

    _added = 0

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        await super().add_message(message)
        self._added += 1

    @override
    def get_message_count(self) -> int:
        return max(self._added, super().get_message_count())


@fault("session", "every_shape_comes_back", reported=True)
class DropsEmptyMessages(AgentSession):
    """A message without text is not kept, though it calls a tool."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        if message.content:
            await super().add_message(message)


@fault("session", "hostile_text_comes_back", reported=True)
class ReplacesSurrogates(AgentSession):
    """A lone surrogate becomes a question mark."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        text = message.content
        if isinstance(text, str):
            clean = text.encode(errors="replace").decode()
            if clean != text:
                message = message.model_copy(update={"content": clean})
        await super().add_message(message)


@fault("session", "a_session_is_read_back", reported=True)
class FailsOnSurrogates(AgentSession):
    """A lone surrogate makes every later serialisation fail."""

    @override
    def serialize(self) -> str:
        return dumps(loads(super().serialize()), ensure_ascii=False).encode().decode()


@fault("session", "the_text_is_the_snapshot", reported=True)
class RoundsTheHash(AgentSession):
    """The request hash passes through a float."""

    @override
    def serialize(self) -> str:
        fields = loads(super().serialize())
        request_hash = fields["metadata"]["last_request_hash"]
        if request_hash is not None:
            fields["metadata"]["last_request_hash"] = int(float(request_hash))
        return dumps(fields)


@fault("session", "the_text_is_the_snapshot", reported=True)
class SortsKeys(AgentSession):
    """Objects come back with their keys in order."""

    @override
    def serialize(self) -> str:
        return dumps(loads(super().serialize()), sort_keys=True)


@fault("session", "a_state_is_copied_in_and_out", reported=True)
class SharesProviderState(AgentSession):
    """What is returned of a provider's state is what is kept."""

    _live: dict[str, Any]

    @override
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        super().set_provider_state(provider_name, state)
        self.__dict__.setdefault("_live", {})[provider_name] = state

    @override
    def get_provider_state(self, provider_name: str, /) -> Any:
        kept = super().get_provider_state(provider_name)
        return self.__dict__.get("_live", {}).get(provider_name, kept)


@fault("session", "reads_move_no_time", reported=True)
class ReadsAreActivity(AgentSession):
    """Whoever reads the history is active."""

    @override
    async def get_messages(self) -> list[ChatMessage]:
        await self.touch_last_active()
        return await super().get_messages()


@fault("session", "writes_are_activity", reported=True)
class AddsWithoutActivity(AgentSession):
    """A message does not count as activity."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        before = self._view.last_active_at
        await super().add_message(message)
        self._view = self._view._replace(last_active_at=before)


@fault("session", "old_and_short_texts_are_read", reported=True)
class RefusesOldText(AgentSession):
    """What was serialised before there were provider states cannot be read."""

    @classmethod
    @override
    def deserialize(cls, data: str, /) -> Self:
        loads(data)["provider_states"]["states"]
        return super().deserialize(data)


@fault("session", "the_count_told_is_not_believed", reported=True)
class BelievesTheCount(AgentSession):
    """The stored count is told, whatever messages there are."""

    @classmethod
    @override
    def deserialize(cls, data: str, /) -> Self:
        session = super().deserialize(data)
        count = loads(data)["metadata"].get("message_count", 0)
        session._view = session._view._replace(length=count)
        return session


@fault("session", "a_session_is_read_back", reported=True)
class BeginsAnew(AgentSession):
    """A session that is read back was created now."""

    @classmethod
    @override
    def from_snapshot(cls, snapshot: SessionSnapshot, **options: Any) -> Self:
        session = super().from_snapshot(snapshot, **options)
        session._view = session._view._replace(created_at=utc_now())
        return session


@fault("session", "messages_come_in_order", reported=True)
class KeepsTheLastTen(AgentSession):
    """The oldest messages go when there are many, without a word."""

    @override
    async def get_messages(self) -> list[ChatMessage]:
        return (await super().get_messages())[-10:]


@fault(
    "session",
    "states_leave_the_rest_alone",
    reported=True,
    machine=True,
)
class ClearsTooMuch(AgentSession):
    """To clear the history drops what providers keep."""

    @override
    async def clear(self) -> None:
        await super().clear()
        self._view = self._view._replace(providers=FrozenDict())
