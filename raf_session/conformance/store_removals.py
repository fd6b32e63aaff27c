"""Checks of deletion, and of which id names which session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import raises, same
from raf_session.conformance.session_values import PLAIN
from raf_session.conformance.store_harness import StoreCheck, StoreHarness
from raf_session.conformance.store_values import named, read, texts
from raf_session.errors import SessionNotFoundError

__all__ = ("CHECKS",)

_IDS: Final = (
    *("a_b", "a:b", "a/b", "a\\b", "a b", "A_b", "a_b ", " a_b", "a_b.", "a%b"),
    *("\u00e9", "e\u0301", "\u017f", "s", "S", "ß", "ss", "😀", "..", ".", "../a_b"),
    *("/etc/x", "C:x", "%2e%2e%2f", "%2f", "%", "*", "?", "[x]", "_", "'", '"', ";"),
    *("CON", "con", "nul.txt", "\uff5e", "~", "a\nb", "\n", " ", "::", "a::b", "0"),
    *("x" * 512, "y" * 511, "é" * 256, "null", "None", "true", "{}", "\x7f", "\ufeff"),
)
"""Ids that have been taken for one another, or for something else."""

_REFUSED: Final = ("", "\0", "a\0b", "\ud800", "x" * 513, "é" * 257)
"""What is no id."""


async def check_delete_removes_the_session(harness: StoreHarness) -> None:
    """A deleted session is gone; its id is free, and nothing of it comes back."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        session = await named("s", clock, "one")
        session.set_provider_state("p", 1)
        session.touch_request_hash(PLAIN)
        await store.save_session(session)
        await store.save_session(await named("t", clock, "other"))
        await store.delete_session("s")
        same(await store.get_session("s"), None, "a deleted session")
        await store.delete_session("s")
        same(await texts(store, "t"), ["other"], "another session")
        await store.save_session(await named("s", clock, "two"))
        again = await read(store, "s")
        same(await texts(store, "s"), ["two"], "a new session of that id")
        same(again.get_provider_state("p"), None, "its provider state")
        same(again.get_last_request_hash(), None, "its request hash")


async def check_a_late_save_revives_nothing(harness: StoreHarness) -> None:
    """A copy saved after its session was deleted raises, whatever it changed."""
    for change in ("message", "clear", "touch", "state", "request", "nothing"):
        clock = TickingClock()
        async with harness(clock=clock) as store:
            await store.save_session(await named("s", clock, "one"))
            handle = await read(store, "s")
            await store.delete_session("s")
            clock.tick()
            if change == "message":
                await handle.add_message(PLAIN[0])
            elif change == "clear":
                await handle.clear()
            elif change == "touch":
                await handle.touch_last_active()
            elif change == "state":
                handle.set_provider_state("p", 1)
            elif change == "request":
                handle.touch_request_hash(PLAIN)
            with raises(SessionNotFoundError, f"a late save of a {change}"):
                await store.save_session(handle)
            same(await store.get_session("s"), None, "the deleted session")


async def check_a_late_save_spares_the_new_session(harness: StoreHarness) -> None:
    """A copy of a deleted session does not write into a new one of that id."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        await store.save_session(await named("s", clock, "old"))
        handle = await read(store, "s")
        await store.delete_session("s")
        await store.save_session(await named("s", clock, "new"))
        await handle.add_message(PLAIN[0])
        with raises(SessionNotFoundError, "a save of the old one"):
            await store.save_session(handle)
        same(await texts(store, "s"), ["new"], "the new session")


async def check_ids_are_kept_apart(harness: StoreHarness) -> None:
    """Ids differ as exact bytes, whatever characters they hold."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        for name in _IDS:
            await store.save_session(await named(name, clock, name))
        for name in _IDS:
            same(await texts(store, name), [name], f"the session {name!r}")
        for n, name in enumerate(_IDS):
            if n % 2:
                await store.delete_session(name)
        for n, name in enumerate(_IDS):
            expected = None if n % 2 else [name]
            same(await texts(store, name), expected, f"{name!r} after deletions")


async def check_what_is_no_id_is_refused(harness: StoreHarness) -> None:
    """Empty, with NUL or a surrogate, over 512 bytes: a `ValueError`, nothing done."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        for name in _REFUSED:
            calls: tuple[Callable[[], Awaitable[object]], ...] = (
                partial(store.save_session, await named(name, clock, "one")),
                partial(store.get_session, name),
                partial(store.delete_session, name),
            )
            for call in calls:
                with raises(ValueError, f"{call} with {name[:20]!r}"):
                    await call()


CHECKS: Final[tuple[StoreCheck, ...]] = (
    check_delete_removes_the_session,
    check_a_late_save_revives_nothing,
    check_a_late_save_spares_the_new_session,
    check_ids_are_kept_apart,
    check_what_is_no_id_is_refused,
)
