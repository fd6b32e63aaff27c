"""What a manager does not take: refused at once, and with what was expected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import anyio
import pytest
from manager_values import ANN, KEY, Scribe, turns, user

from raf_session.errors import InvalidValueError, SessionNotFoundError
from raf_session.journals.memory import MemoryJournal
from raf_session.key_paths import agent_key, join_scope_id, parse_agent_key
from raf_session.keys import SessionKey
from raf_session.manager import AgentsConfig, SessionManager, SessionRequest
from raf_session.stores import InMemorySessionStore
from raf_session.summarizers import ExtractiveSummarizer
from raf_session.tokens import EstimatingTokenCounter

pytestmark = pytest.mark.anyio


class Sync:
    """A summarizer whose method is not async."""

    def summarize(self, _messages: Any, _previous: Any = None) -> str:
        return "#1"


@pytest.mark.parametrize(
    "summarizer",
    [len, ExtractiveSummarizer, Sync(), "extractive", ANN],
    ids=["function", "class", "sync", "name", "other"],
)
async def test_a_summarizer_is_an_object_with_an_async_method(summarizer: Any) -> None:
    with pytest.raises(TypeError, match=r"async summarize\(messages, previous\)"):
        SessionManager(MemoryJournal.opened(), summarizer=summarizer)
    with pytest.raises(TypeError, match="a summarizer is"):
        SessionManager.from_config(AgentsConfig(), summarizer=summarizer)


def wrapped(method: Any) -> Any:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return call


class Wrapped(ExtractiveSummarizer):
    """A summarizer whose method is async behind a wrapper."""

    summarize = wrapped(ExtractiveSummarizer.summarize)


async def test_a_wrapped_summarizer_is_one() -> None:
    SessionManager(MemoryJournal.opened(), summarizer=Wrapped())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"config": {"session": {}}}, "AgentsConfig.from_mapping"),
        ({"config": {}}, "AgentsConfig.from_mapping"),
        ({"config": AgentsConfig}, "config is an AgentsConfig"),
        ({"counter": "o200k_base"}, r"count\(message\)"),
        ({"counter": EstimatingTokenCounter}, r"count\(message\)"),
        ({"counter": len}, r"count\(message\)"),
        ({"journal": AgentsConfig()}, "SessionManager.from_config opens one"),
        ({"journal": "sqlite:///x.db"}, "SessionManager.from_config opens one"),
        ({"journal": MemoryJournal}, "journal is a Journal"),
        ({"journal": InMemorySessionStore()}, "a store has one as `journal`"),
    ],
)
async def test_a_manager_is_made_of_what_it_names(
    options: dict[str, Any], named: str
) -> None:
    made_of: dict[str, Any] = {"journal": MemoryJournal.opened(), **options}
    with pytest.raises(TypeError, match=named):
        SessionManager(**made_of)


async def test_a_mapping_is_no_configuration(tmp_path: Path) -> None:
    values: Any = {"session": {"storage_path": str(tmp_path / "none")}}
    with pytest.raises(TypeError, match="AgentsConfig"):
        SessionManager.from_config(values)
    assert not await anyio.Path(tmp_path / "none").exists()


NO_KEYS: list[Any] = [None, 7, b"agent", user("hello"), ANN]


@pytest.mark.parametrize("ref", NO_KEYS, ids=lambda ref: type(ref).__name__)
async def test_what_is_no_key_is_refused_by_every_call(ref: Any) -> None:
    manager = SessionManager(MemoryJournal.opened(), summarizer=Scribe())
    calls: list[Callable[[Any], Awaitable[Any]]] = [
        *(manager.get, manager.meta, manager.delete, manager.statistics),
        *(manager.update, manager.compact, manager.load_history, manager.messages),
        partial(manager.add_message, message=user("hello")),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="expected a session, its key or the key's"):
            await call(ref)
    with pytest.raises(TypeError, match="expected a session"):
        manager.reuse(ref)


async def test_arguments_in_the_wrong_order_or_of_another_kind() -> None:
    manager = SessionManager(MemoryJournal.opened())
    await manager.get_or_create(ANN)
    for wrong in (KEY, parse_agent_key(KEY), None, {"agent_id": "main"}):
        with pytest.raises(TypeError, match="expected a SessionRequest, not"):
            await manager.get_or_create(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not ChatMessage"):
        await manager.add_message(user("hello"), KEY)  # type: ignore[arg-type]
    for message in ("hello", None, turns(1)):
        with pytest.raises(TypeError, match="is not a ChatMessage"):
            await manager.add_message(KEY, message)  # type: ignore[arg-type]
    assert (await manager.statistics(KEY)).total.messages == 0


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("s1", "'agent:{agent}:channel:{channel}:scope:{scope}:{scope id}', not 's1'"),
        ("agent:a:channel:b:scope:peer:c", "one of main, per_peer, "),
        ("agent:a:channel:b:scope:peer:c", "(SessionScope), not 'peer'"),
        ("agent:a:channel:b:scope:main:main", "is written 'agent:a:channel:default:"),
        (SessionKey("shop", "ann", "", "s1"), "'shop/ann//s1' is not the key of an"),
    ],
)
async def test_a_key_that_is_none_is_told_with_what_was_expected(
    key: Any, told: str
) -> None:
    manager = SessionManager(MemoryJournal.opened())
    for call in (manager.get, manager.load_history, manager.messages):
        with pytest.raises(InvalidValueError) as caught:
            await call(key)
        assert told in str(caught.value)


async def test_a_session_that_is_missing_is_named_as_the_document_does() -> None:
    manager = SessionManager(MemoryJournal.opened(), summarizer=Scribe())
    for ref in (KEY, parse_agent_key(KEY)):
        for call in (
            *(manager.statistics, manager.update, manager.compact),
            *(manager.load_history, manager.messages),
        ):
            with pytest.raises(SessionNotFoundError) as caught:
                await call(ref)
            assert caught.value.key == KEY


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"state": "idle"}, "'idle' is computed, not set; expected one of active, "),
        ({"state": "x"}, "one of active, idle, compacted, archived (SessionState), "),
    ],
)
async def test_a_wrong_state_is_told_with_those_there_are(
    options: dict[str, Any], told: str
) -> None:
    manager = SessionManager(MemoryJournal.opened())
    await manager.get_or_create(ANN)
    with pytest.raises(InvalidValueError) as caught:
        await manager.update(KEY, **options)
    assert told in str(caught.value)
    assert caught.value.path == "state"


async def test_a_listing_by_what_is_none_is_refused() -> None:
    manager = SessionManager(MemoryJournal.opened())
    with pytest.raises(InvalidValueError, match=r"\(SessionState\), not 'x'"):
        await manager.list(state="x")
    with pytest.raises(InvalidValueError, match=r"\(SessionScope\), not 'peer'"):
        await manager.list(scope="peer")
    for wrong in (lambda: agent_key("peer"), lambda: join_scope_id("peer")):
        with pytest.raises(InvalidValueError, match=r"main, per_peer, .*, not 'peer'"):
            wrong()


@pytest.mark.parametrize("scope", ["peer", 3])
def test_a_request_names_the_scopes_there_are(scope: Any) -> None:
    with pytest.raises(InvalidValueError, match="one of main, per_peer"):
        SessionRequest("a", "c", scope)
