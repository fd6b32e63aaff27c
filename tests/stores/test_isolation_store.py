"""`IsolationScopedSessionStore`: no call reaches another tenant's sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import permutations
from typing import Any

import pytest
from typing_extensions import override

from raf_session.agent_session import AgentSession
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.store_values import named, read, same_session, texts
from raf_session.errors import IsolationKeyError
from raf_session.journals.memory import MemoryJournal
from raf_session.messages import ChatMessage
from raf_session.options import Limits, SessionTTLOptions
from raf_session.stores import (
    FixedIsolationKeyProvider,
    IsolationKeyProvider,
    IsolationScopedSessionStore,
    SessionStore,
)

pytestmark = pytest.mark.anyio

TENANTS = (
    *("a", "A", "a::b", "a", "a/b", "a%2fb", "a%", "%", "::", "/", "b::s", "a b", "a "),
    *("é", "e\u0301", "*", "_", "..", "\n", "a\\b", "😀", "x" * 512),
)


class Provider(IsolationKeyProvider):
    def __init__(self, tenant: str | None) -> None:
        self.tenant = tenant

    @override
    async def get_isolation_key(self) -> str | None:
        return self.tenant


def scoped(inner: SessionStore, tenant: str) -> IsolationScopedSessionStore:
    return IsolationScopedSessionStore(inner, FixedIsolationKeyProvider(tenant))


async def test_one_id_in_many_tenants() -> None:
    clock = TickingClock()
    inner = SessionStore(MemoryJournal.opened(clock=clock))
    tenants = list(dict.fromkeys(TENANTS))
    for tenant in tenants:
        session = await named("s", clock, tenant)
        await scoped(inner, tenant).save_session(session)
        assert session.session_id == "s"
    for tenant in tenants:
        store = scoped(inner, tenant)
        assert await texts(store, "s") == [tenant]
        assert (await read(store, "s")).session_id == "s"
        page = await store.list_sessions()
        assert [item.head.key.session for item in page.sessions] == ["s"]
        assert [item.head.key.user for item in page.sessions] == [tenant]
        live = await store.open_session("s")
        assert [m.text for m in await live.get_messages()] == [tenant]
    assert await texts(inner, "s") is None
    for tenant in tenants[::2]:
        await scoped(inner, tenant).delete_session("s")
    for n, tenant in enumerate(tenants):
        expected = [tenant] if n % 2 else None
        assert await texts(scoped(inner, tenant), "s") == expected


@pytest.mark.parametrize(
    ("one", "other"),
    list(permutations([("a", "b::c"), ("a::b", "c"), ("a/b", "c"), ("a", "b/c"),
                       ("a%2fb", "c"), ("a", "b%2fc"), ("a", "../a/c")], 2)),
    ids=str,
)  # fmt: skip
async def test_no_pair_of_tenant_and_id_meets_another(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    clock = TickingClock()
    inner = SessionStore(MemoryJournal.opened(clock=clock))
    await scoped(inner, one[0]).save_session(await named(one[1], clock, "mine"))
    assert await scoped(inner, other[0]).get_session(other[1]) is None
    await scoped(inner, other[0]).delete_session(other[1])
    assert await texts(scoped(inner, one[0]), one[1]) == ["mine"]


async def test_one_object_saved_by_two_tenants() -> None:
    clock = TickingClock()
    inner = SessionStore(MemoryJournal.opened(clock=clock))
    session = await named("s", clock, "one")
    one, other = scoped(inner, "one"), scoped(inner, "other")
    for n in range(3):
        for store in (one, other):
            await store.save_session(session)
            await same_session(await read(store, "s"), session, f"turn {n}")
        await session.add_message(ChatMessage.user(str(n)))


async def test_a_live_session_is_not_saved_into_another_tenant_by_name() -> None:
    inner = SessionStore(MemoryJournal.opened())
    one, other = scoped(inner, "one"), scoped(inner, "other")
    live = await one.open_session("s")
    await live.add_message(ChatMessage.user("mine"))
    await other.save_session(live)
    assert await texts(other, "s") == ["mine"]
    await live.add_message(ChatMessage.user("more"))
    assert await texts(other, "s") == ["mine"]


@pytest.mark.parametrize("tenant", [None, ""])
async def test_without_a_key_every_operation_is_refused(tenant: str | None) -> None:
    clock = TickingClock()
    journal = MemoryJournal.opened(clock=clock)
    inner = SessionStore(journal)
    await inner.save_session(await named("s", clock, "shared"))
    store = IsolationScopedSessionStore(inner, Provider(tenant))
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "save": lambda: store.save_session(AgentSession("s")),
        "overwrite": lambda: store.save_session(AgentSession("s"), overwrite=True),
        "get": lambda: store.get_session("s"),
        "open": lambda: store.open_session("s"),
        "list": store.list_sessions,
        "delete": lambda: store.delete_session("s"),
        "cleanup": store.cleanup_expired,
    }
    for call in calls.values():
        with pytest.raises(IsolationKeyError):
            await call()
    assert await texts(inner, "s") == ["shared"]
    page = await inner.list_sessions()
    assert len(page.sessions) == 1


@pytest.mark.parametrize("tenant", ["\0", "\ud800", "x" * 513])
async def test_a_key_that_is_none_is_refused(tenant: str) -> None:
    store = scoped(SessionStore(MemoryJournal.opened()), tenant)
    calls: tuple[Callable[[], Awaitable[Any]], ...] = (
        lambda: store.save_session(AgentSession("s")),
        lambda: store.get_session("s"),
        lambda: store.delete_session("s"),
    )
    for call in calls:
        with pytest.raises(ValueError, match="user"):
            await call()


async def test_the_tenant_is_asked_at_each_call() -> None:
    clock = TickingClock()
    provider = Provider("one")
    store = IsolationScopedSessionStore(
        SessionStore(MemoryJournal.opened(clock=clock)), provider
    )
    await store.save_session(await named("s", clock, "one"))
    provider.tenant = "other"
    assert await store.get_session("s") is None
    provider.tenant = "one"
    assert await texts(store, "s") == ["one"]


async def test_cleanup_counts_the_tenants_own() -> None:
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=60))
    inner = SessionStore(MemoryJournal.opened(clock=clock, limits=limits))
    for tenant, count in (("one", 2), ("other", 3)):
        for n in range(count):
            session = await named(f"s{n}", clock, "x")
            await scoped(inner, tenant).save_session(session)
    clock.tick(61)
    assert await scoped(inner, "one").cleanup_expired() == 2
