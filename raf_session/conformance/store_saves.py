"""Checks of what `save_session` makes of what is stored, and who wins."""

from __future__ import annotations

from typing import Any, Final, cast

from raf_session.agent_session import AgentSession
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import raises, same
from raf_session.conformance.session_values import PLAIN, SHAPES, same_messages
from raf_session.conformance.store_harness import (
    StoreCapability,
    StoreCheck,
    StoreHarness,
)
from raf_session.conformance.store_values import (
    ForeignSession,
    WaitingSession,
    named,
    read,
    same_session,
    texts,
)
from raf_session.errors import StaleSessionError
from raf_session.messages import ChatMessage

__all__ = ("CHECKS", "NEEDS")


async def check_saves_are_incremental(harness: StoreHarness) -> None:
    """Turn after turn, saved by the same object or by a copy, all is there once."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock)
        said: list[str] = []
        for n in range(12):
            clock.tick()
            for text in (f"{n}", "ok"):
                await session.add_message(ChatMessage.user(text))
                said.append(text)
            session.set_provider_state("turn", n)
            await store.save_session(session)
            await same_session(await read(store, "s"), session, f"turn {n}")
            if n % 3 == 0:
                session = await read(store, "s")
        same(await texts(store, "s"), said, "all turns")


async def check_two_handles_lose_nothing(harness: StoreHarness) -> None:
    """Two copies that each add their own "ok" both end up in what is stored."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        await store.save_session(await named("s", clock, "one"))
        first, second = await read(store, "s"), await read(store, "s")
        for handle in (first, second, first):
            clock.tick()
            await handle.add_message(ChatMessage.user("ok"))
            await store.save_session(handle)
        same(await texts(store, "s"), ["one", "ok", "ok", "ok"], "what is stored")


async def check_states_of_two_handles_are_merged(harness: StoreHarness) -> None:
    """Two copies that set states of different providers lose neither."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        await store.save_session(await named("s", clock, "one"))
        first, second = await read(store, "s"), await read(store, "s")
        first.set_provider_state("p", 1)
        second.set_provider_state("q", 2)
        await store.save_session(first)
        await store.save_session(second)
        stored = await read(store, "s")
        same(stored.get_provider_state("p"), 1, "the first one's state")
        same(stored.get_provider_state("q"), 2, "the second one's state")


async def check_the_last_request_wins(harness: StoreHarness) -> None:
    """Of requests recorded by two copies the one saved last is stored, whole."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        begun = await named("s", clock, "one")
        begun.touch_request_hash(PLAIN[:1])
        await store.save_session(begun)
        first, second = await read(store, "s"), await read(store, "s")
        first.touch_request_hash([PLAIN[2]])
        second.touch_request_hash(PLAIN)
        await store.save_session(first)
        await store.save_session(second)
        await same_session(await read(store, "s"), second, "the second one")
        first.touch_request_hash([PLAIN[2], PLAIN[1]])
        await first.add_message(PLAIN[0])
        await store.save_session(first)
        stored = await read(store, "s")
        same(stored.request_record, first.request_record, "the first one's record")


async def check_a_stale_edit_is_refused(harness: StoreHarness) -> None:
    """A copy that removed messages cannot overwrite what it never saw."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        await store.save_session(await named("s", clock, "one"))
        first, second = await read(store, "s"), await read(store, "s")
        await first.add_message(ChatMessage.user("two"))
        await store.save_session(first)
        await second.clear()
        await second.add_message(ChatMessage.user("anew"))
        with raises(StaleSessionError, "a stale clear") as caught:
            await store.save_session(second)
        assert "s" in caught[0].key, f"the key in the error is {caught[0].key!r}"
        same(await texts(store, "s"), ["one", "two"], "what is stored")
        with raises(StaleSessionError, "the same again"):
            await store.save_session(second)
        same(await texts(store, "s"), ["one", "two"], "what is stored")


async def check_a_note_makes_no_stale_copy_fresh(harness: StoreHarness) -> None:
    """A copy that only saved a touch, request or state in between is still stale."""
    for note in ("touch", "request", "state", "message"):
        clock = TickingClock()
        async with harness(clock=clock) as store:
            await store.save_session(await named("s", clock, "one"))
            first, second = await read(store, "s"), await read(store, "s")
            await first.add_message(ChatMessage.user("two"))
            await store.save_session(first)
            clock.tick(60)
            if note == "touch":
                await second.touch_last_active()
            elif note == "request":
                second.touch_request_hash(PLAIN)
            elif note == "state":
                second.set_provider_state("p", 1)
            else:
                await second.add_message(ChatMessage.user("three"))
            await store.save_session(second)
            stored = await texts(store, "s")
            await second.clear()
            with raises(StaleSessionError, f"a clear after a {note}"):
                await store.save_session(second)
            same(await texts(store, "s"), stored, f"what is stored, after a {note}")


async def check_clear_is_stored(harness: StoreHarness) -> None:
    """A session that was cleared is stored empty, or with what came after."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, "one", "two")
        session.set_provider_state("p", 1)
        session.touch_request_hash(PLAIN)
        await store.save_session(session)
        clock.tick()
        await session.clear()
        await store.save_session(session)
        await same_session(await read(store, "s"), session, "cleared")
        for count in (1, 2, 3):
            await session.add_messages_batch(PLAIN[:count])
            await store.save_session(session)
            await same_session(await read(store, "s"), session, "after the clear")
            session = await read(store, "s")
            await session.clear()
            clock.tick()
        await session.add_messages_batch([ChatMessage.user("one")] * 3)
        await store.save_session(session)
        await same_session(await read(store, "s"), session, "cleared and longer")


async def check_edited_histories_are_stored(harness: StoreHarness) -> None:
    """A history that was shortened, edited, reordered or replaced is stored so."""
    text = [ChatMessage.user(str(n)) for n in range(5)]
    noted = text[0].model_copy(update={"metadata": {"n": 1}})
    extra = ChatMessage.from_openai({"role": "user", "content": "0", "x": {"a": 1}})
    histories: tuple[list[ChatMessage], ...] = (
        text,
        text[:3],
        text[1:3],
        [text[2], text[1]],
        [text[2], text[3], text[1]],
        [*text, *text],
        [],
        [noted],
        [noted.model_copy(update={"metadata": {"n": 1.0}})],
        [noted.model_copy(update={"metadata": {"n": True}})],
        [noted.model_copy(update={"metadata": {"n": True, "m": 0}})],
        [noted.model_copy(update={"metadata": {"m": 0, "n": True}})],
        [extra],
        [ChatMessage.from_openai({"role": "user", "content": "0", "x": {"a": 1.0}})],
        list(SHAPES),
        list(reversed(SHAPES)),
    )
    async with harness(clock=TickingClock(), types=(ForeignSession,)) as store:
        session = ForeignSession("s")
        for n, history in enumerate(histories):
            session.said = list(history)
            await store.save_session(session)
            stored = await read(store, "s", ForeignSession)
            same_messages(await stored.get_messages(), history, f"history {n}")


async def check_what_is_not_known_is_not_overwritten(harness: StoreHarness) -> None:
    """A session that was not read from the store does not replace what is there.

    Not even where it begins with messages that say the same.
    """
    clock = TickingClock()
    async with harness(clock=clock) as store:
        await store.save_session(await named("s", clock, "ok"))
        for messages in (["other"], ["ok"], ["ok", "more"], []):
            with raises(StaleSessionError, f"a new session that holds {messages}"):
                await store.save_session(await named("s", clock, *messages))
            same(await texts(store, "s"), ["ok"], "what is stored")


async def check_overwriting_replaces_what_is_stored(harness: StoreHarness) -> None:
    """With ``overwrite=True`` the stored session becomes this one."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        await store.save_session(await named("s", clock, "one", "two"))
        stale = await read(store, "s")
        for messages in (["a", "b", "c"], ["a"], [], ["two"]):
            clock.tick()
            other = await named("s", clock, *messages)
            await cast("Any", store).save_session(other, overwrite=True)
            same(await texts(store, "s"), messages, "what is stored")
        await stale.clear()
        await cast("Any", store).save_session(stale, overwrite=True)
        same(await texts(store, "s"), [], "a stale one")
        await store.delete_session("s")
        await cast("Any", store).save_session(stale, overwrite=True)
        same(await texts(store, "s"), [], "a deleted one")


async def check_a_written_out_copy_goes_on(harness: StoreHarness) -> None:
    """A session that was serialised and read elsewhere is known by its messages."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, "one", "ok", "ok")
        await store.save_session(session)
        text = (await read(store, "s")).serialize()
        again = AgentSession.deserialize(text)
        again.use_clock(clock)
        await again.add_message(ChatMessage.user("ok"))
        await store.save_session(again)
        same(await texts(store, "s"), ["one", "ok", "ok", "ok"], "what is stored")
        late = AgentSession.deserialize(text)
        with raises(StaleSessionError, "a copy that lacks what is stored"):
            await store.save_session(late)


async def check_a_foreign_object_may_be_saved_again(harness: StoreHarness) -> None:
    """Saving one object of a foreign type again and again keeps each message once."""
    types = (ForeignSession, WaitingSession)
    async with harness(clock=TickingClock(), types=types) as store:
        for cls in types:
            session = cls("s")
            for n in range(5):
                await session.add_message(ChatMessage.user("ok"))
                await store.save_session(session)
                await store.save_session(session)
                same(await texts(store, "s"), ["ok"] * (n + 1), cls.__name__)
            await store.delete_session("s")


async def check_two_stores_share_what_is_stored(harness: StoreHarness) -> None:
    """Two stores over one storage see and keep each other's sessions."""
    clock = TickingClock()
    async with (
        harness.storage() as opened,
        opened(clock=clock) as one,
        opened(clock=clock) as other,
    ):
        await one.save_session(await named("s", clock, "one"))
        handle = await read(other, "s")
        await handle.add_message(ChatMessage.user("two"))
        await other.save_session(handle)
        same(await texts(one, "s"), ["one", "two"], "what the first store sees")
        moved = await read(one, "s")
        await moved.add_message(ChatMessage.user("three"))
        await other.save_session(moved)  # read from the one, saved to the other
        same(await texts(one, "s"), ["one", "two", "three"], "what is stored")


CHECKS: Final[tuple[StoreCheck, ...]] = (
    check_saves_are_incremental,
    check_two_handles_lose_nothing,
    check_states_of_two_handles_are_merged,
    check_the_last_request_wins,
    check_a_stale_edit_is_refused,
    check_a_note_makes_no_stale_copy_fresh,
    check_clear_is_stored,
    check_edited_histories_are_stored,
    check_what_is_not_known_is_not_overwritten,
    check_overwriting_replaces_what_is_stored,
    check_a_written_out_copy_goes_on,
    check_a_foreign_object_may_be_saved_again,
    check_two_stores_share_what_is_stored,
)

_TYPES: Final = frozenset((StoreCapability.TYPES,))

NEEDS: Final[dict[StoreCheck, frozenset[StoreCapability]]] = {
    check_edited_histories_are_stored: _TYPES,
    check_a_foreign_object_may_be_saved_again: _TYPES,
    check_overwriting_replaces_what_is_stored: frozenset((StoreCapability.OVERWRITE,)),
    check_two_stores_share_what_is_stored: frozenset((StoreCapability.SHARED,)),
}
"""What a store must claim for a check to apply to it."""
