"""Sessions whose messages are not what was said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import uuid4

from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import BareSession, ListSession
from raf_session.agent_session import AgentSession
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionMetadata, SessionSnapshot


@fault("session", "a_new_session_is_empty")
class CannotBeCleared(BareSession):
    """There is no `clear`."""

    clear = None  # type: ignore[assignment]


@fault("session", "each_read_is_a_list_of_its_own")
class ReturnsItsList(BareSession):
    """The list that is returned is the one that is kept."""

    @override
    async def get_messages(self) -> list[ChatMessage]:
        return self.said


@fault("session", "a_list_once_read_stays")
class ReturnsALiveList(ListSession):
    """The list that was read last is filled with what comes later."""

    _last: list[ChatMessage] | None = None

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        await super().add_message(message)
        if self._last is not None:
            self._last.append(message)

    @override
    async def get_messages(self) -> list[ChatMessage]:
        self._last = await super().get_messages()
        return self._last


@fault(
    "session",
    "messages_come_in_order",
    machine=True,
)
class SortsByText(BareSession):
    """Messages come in the order of what they say."""

    @override
    async def get_messages(self) -> list[ChatMessage]:
        return sorted(self.said, key=lambda message: message.text)


@fault("session", "ids_made_up_are_unique")
class OneIdForAll(BareSession):
    """The id of a session without one is made when the module is loaded."""

    def __init__(self, session_id: str = str(uuid4())) -> None:
        super().__init__(session_id or OneIdForAll.fallback)

    fallback = str(uuid4())


@fault(
    "session",
    "the_id_is_stable",
    machine=True,
)
class ClearBeginsAnotherSession(ListSession):
    """To clear the history is to begin a session of another id."""

    @override
    async def clear(self) -> None:
        await super().clear()
        self.session_id = str(uuid4())


@fault("session", "clear_empties_the_history")
class ClearKeepsTheFirst(ListSession):
    """The first message is taken for the system's, and survives a clear."""

    @override
    async def clear(self) -> None:
        self.said = self.said[:1]


@fault(
    "session",
    "every_shape_comes_back",
    machine=True,
)
class FlattensParts(ListSession):
    """Content of several parts becomes one text, and images are gone."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        if not isinstance(message.content, str | None):
            message = message.model_copy(update={"content": message.text})
        await super().add_message(message)


@fault("session", "a_large_message_comes_back")
class CutsLargeMessages(ListSession):
    """A message is cut at the width of a column."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        if isinstance(message.content, str) and len(message.content) > 65_535:
            short = message.content[:65_535]
            message = message.model_copy(update={"content": short})
        await super().add_message(message)


@fault("session", "hostile_text_comes_back")
class StripsControls(ListSession):
    """A NUL ends a text."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        if isinstance(message.content, str):
            short = message.content.split("\0")[0]
            message = message.model_copy(update={"content": short})
        await super().add_message(message)


@fault("session", "has_every_member")
class CannotBeTouched(AgentSession):
    """There is no `touch_last_active`."""

    touch_last_active = property(lambda self: self.touch)


@fault(
    "session",
    "a_batch_is_kept_in_order",
    machine=True,
)
class ReversesBatches(AgentSession):
    """A batch is stored from its end."""

    @override
    async def add_messages_batch(self, messages: Sequence[ChatMessage], /) -> None:
        await super().add_messages_batch(messages[::-1])


@fault("session", "an_empty_batch_changes_nothing")
class EmptyBatchesAreActivity(AgentSession):
    """A batch of nothing keeps the session alive."""

    @override
    async def add_messages_batch(self, messages: Sequence[ChatMessage], /) -> None:
        await super().add_messages_batch(messages)
        await self.touch_last_active()


@fault("session", "metadata_agrees_with_the_members")
class MetadataCountsUsers(AgentSession):
    """The metadata counts what the user said."""

    @override
    def metadata(self) -> SessionMetadata:
        said = sum(m.role == "user" for m in self._view.messages())
        return super().metadata().model_copy(update={"message_count": said})


@fault("session", "a_snapshot_is_the_whole_session")
class SnapshotsForget(AgentSession):
    """A snapshot holds the messages, and not what providers keep."""

    @override
    def snapshot(self) -> SessionSnapshot:
        empty = AgentSession("-").snapshot().provider_states
        return super().snapshot().model_copy(update={"provider_states": empty})


@fault("session", "a_snapshot_stays_as_it_was")
class SnapshotsAreLive(AgentSession):
    """To clear a session empties the first snapshot that was taken of it."""

    _first: SessionSnapshot | None = None

    @override
    def snapshot(self) -> SessionSnapshot:
        now = super().snapshot()
        self._first = self._first or now
        return now

    @override
    async def clear(self) -> None:
        await super().clear()
        if self._first is not None:
            self._first.__dict__["messages"] = ()


@fault("session", "an_id_names_one_message")
class KeepsTheFirstOfAnId(AgentSession):
    """A message under an id that is known is dropped, whatever it says."""

    @override
    async def add_messages_batch(self, messages: Sequence[ChatMessage], /) -> None:
        known = self._view.log.by_id
        await super().add_messages_batch([m for m in messages if m.id not in known])


@fault("session", "threads_may_share_a_session")
class TrustsItsThread(AgentSession):
    """What another thread adds between a read and a write is lost."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        before = self._view
        time.sleep(0.0005)  # noqa: ASYNC251  (so that another thread runs)
        self._view = before
        await super().add_message(message)


@fault("session", "reads_are_consistent_while_others_write")
class CountsLate(AgentSession):
    """A snapshot counts the messages that there were at the one before."""

    _counted = 0

    @override
    def snapshot(self) -> SessionSnapshot:
        now = super().snapshot()
        told = {"message_count": self._counted}
        self._counted = len(now.messages)
        return now.model_copy(update={"metadata": now.metadata.model_copy(update=told)})
