"""Statements of the document that no other test shows on their own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from aspect_values import (
    BRIEF,
    KEY,
    Aspects,
    asks,
    config,
    given,
    gives,
    outline,
    reply,
    run,
    violations,
)
from typing_extensions import override

from raf_session.conformance.clock import TickingClock
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.manager import (
    AgentOutput,
    SessionManager,
    SessionRequest,
    SessionScope,
)
from raf_session.manager.aspect import SessionAspect
from raf_session.messages import ChatMessage, Usage
from raf_session.options import Limits, SessionTTLOptions
from raf_session.parts import ImagePart, TextPart
from raf_session.toolcalls import calls_in

pytestmark = pytest.mark.anyio


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


def test_the_scopes_are_the_documents() -> None:
    assert {scope.name: scope.value for scope in SessionScope} == {
        "MAIN": "main",
        "PER_PEER": "per_peer",
        "PER_CHANNEL_PEER": "per_channel_peer",
        "PER_ACCOUNT_CHANNEL": "per_account_channel",
        "THREAD": "thread",
        "TASK": "task",
    }


async def looked(aspect: SessionAspect, n: int) -> tuple[ChatMessage, ...]:
    """Do a run with a call of a tool; return the request that it began with."""
    async with aspect.around(run(f"{n}"), given(BRIEF, f"question {n}")) as one:
        one.add(asks(f"c{n}"), gives(f"c{n}", "x" * 300), reply(f"answer {n}"))
        return one.messages


@pytest.mark.parametrize("keep", [1, 2, 5])
async def test_the_newest_groups_are_shown_up_to_the_number(
    keep: int, aspects: Aspects
) -> None:
    aspect = aspects.new(config(tool_calls={"keep_tool_calls_count": keep}))
    counts: set[int] = set()
    for n in range(13):
        request = await looked(aspect, n)
        assert violations(request) == []
        shown = [call.id for message in request for call in calls_in(message)]
        assert shown == [f"c{k}" for k in range(n - len(shown), n)]
        counts.add(len(shown))
        assert len(shown) >= min(n, keep // 2, 1)
    assert max(counts) == keep
    assert len(await aspects.stored()) == 13 * 4


async def test_a_request_is_the_history_that_loading_gives(aspects: Aspects) -> None:
    aspect = aspects.new(
        config(
            session={"max_messages": 20, "max_token_count": 1500},
            tool_calls={"keep_tool_calls_count": 3, "max_tool_result_size": 100},
        )
    )
    for n in range(12):
        request = await looked(aspect, n)
        prepared = await aspect.before(run(f"{n} again"), given(BRIEF, "so?"))
        view = await aspect.manager.load_history(KEY, 0)
        assert tuple(prepared.messages) == (BRIEF, *view.messages)
        assert outline(prepared.messages)[-1] == "user: so?"
        assert request[0] == BRIEF


async def test_after_stores_what_was_said_in_the_documents_order(
    aspects: Aspects,
) -> None:
    image = ImagePart(type="image_url", image_url={"url": "data:image/png;base64,aa"})
    photo = ChatMessage.user([TextPart(text="what is it?"), image])
    aspect = aspects.new()
    prepared = await aspect.before(run("1"), given(BRIEF, photo))
    usage = Usage(prompt_tokens=50, completion_tokens=7, total_tokens=57)
    output = [asks("a", "b"), gives("a"), gives("b"), reply("a cat")]
    before = (await aspects.journal.load(KEY)).head
    await aspect.after(run("1"), prepared, AgentOutput(output, usage, "m-1"))
    record = await aspects.journal.load(KEY)
    stored = [entry.message.to_openai() for entry in record.entries if entry.message]
    assert stored == [message.to_openai() for message in (photo, *output)]
    counter = aspect.manager.counter
    session = await aspect.manager.get(KEY)
    assert session is not None
    assert session.meta.message_count == before.active.messages + 4 == 5
    assert session.meta.total_token_count == (
        sum(counter.count(message) for message in (photo, *output[:3])) + 7
    )
    assert session.meta.model == "m-1"
    assert session.meta.updated_at >= before.updated_at


class WatchedJournal(MemoryJournal):
    """Tells when something expired."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.removed = anyio.Event()

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        gone = await super().expire(limit, dry_run=dry_run)
        if gone:
            self.removed.set()
        return gone


async def test_what_has_expired_is_removed_while_a_manager_is_open() -> None:
    clock = TickingClock()
    mortal = config(session={"idle_timeout": "30m"})
    sessions = SessionTTLOptions(max_idle_secs=1800, cleanup_interval_secs=0.001)
    journal = WatchedJournal(limits=Limits(sessions=sessions), clock=clock)
    async with SessionManager(journal, mortal, owns_journal=True) as manager:
        await manager.get_or_create(SessionRequest(channel="chat", peer="ann"))
        clock.tick(1801)
        with anyio.fail_after(5):
            await journal.removed.wait()
        assert await manager.cleanup_expired() == 0
