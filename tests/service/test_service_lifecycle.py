"""Services and their journals: opened when they are used, on whichever loop."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from anyio.from_thread import start_blocking_portal
from journal_bindings import BY_NAME as JOURNALS
from service_bindings import HARNESSES, ServiceHarness, on_every_service, with_claims
from service_values import (
    APP,
    USER,
    Scribe,
    answered,
    found,
    got,
    ids,
    made,
    managed,
    said,
)

from raf_session.conformance import Capability
from raf_session.errors import JournalClosedError, SessionExistsError
from raf_session.journals.memory import MemoryJournal
from raf_session.journals.sqlite import SqliteJournal
from raf_session.service import (
    InMemorySessionService,
    SessionService,
    SessionServiceConfig,
    SqlSessionService,
    open_service,
)

TTL = SessionServiceConfig.create_ttl_config


@pytest.mark.anyio
@on_every_service
async def test_a_service_works_without_a_block_and_after_its_end(
    bound: ServiceHarness,
) -> None:
    async with bound.storage() as opener:
        service = opener(SessionServiceConfig(ttl=TTL()))
        session = await made(service)
        await service.append_event(session, said("e0"))
        await service.close()
        await service.close()
        await service.append_event(session, said("e1"))
        assert ids(await got(service)) == ["e0", "e1"]
        async with service as same:
            assert same is service
            await service.append_event(session, said("e2"))
            await service.close()
        assert ids(await got(service)) == ["e0", "e1", "e2"]
        await service.close()


@pytest.mark.parametrize("bound", HARNESSES, ids=lambda bound: bound.name)
def test_a_service_serves_one_event_loop_after_another(bound: ServiceHarness) -> None:
    # The storage is held by a loop of its own, in another thread.
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(bound.storage()) as opener,
    ):
        service = opener(SessionServiceConfig(ttl=TTL()))

        async def use(name: str) -> list[str]:
            session = await found(service) or await made(service)
            await service.append_event(session, said(name))
            return ids(await got(service))

        assert asyncio.run(use("e0")) == ["e0"]
        assert asyncio.run(use("e1")) == ["e0", "e1"]
        if Capability.TRIO in bound.capabilities:
            assert anyio.run(use, "e2", backend="trio") == ["e0", "e1", "e2"]

        async def whole_block() -> None:
            async with service:
                await use("last")

        asyncio.run(whole_block())
        assert asyncio.run(use("after"))[-2:] == ["last", "after"]
        asyncio.run(service.close())


@pytest.mark.anyio
async def test_a_journal_of_the_callers_is_not_closed() -> None:
    async with MemoryJournal() as journal:
        service = SessionService(journal)
        async with service:
            await made(service)
        await service.close()
        assert await found(service) is not None
    with pytest.raises(JournalClosedError):
        await found(service)


@pytest.mark.anyio
async def test_services_over_one_journal_share_its_sessions(tmp_path: Path) -> None:
    async with SqliteJournal(tmp_path / "s.db") as journal:
        one, two = SessionService(journal), SessionService(journal)
        await made(one)
        with pytest.raises(SessionExistsError):
            await made(two)
        await one.append_event(await got(one), said("e"))
        assert ids(await got(two)) == ["e"]


@pytest.mark.anyio
@with_claims(Capability.DURABLE)
async def test_what_is_stored_is_there_after_a_restart(bound: ServiceHarness) -> None:
    async with bound.storage() as opener:
        async with opener() as service:
            session = await made(service, state={"k": [1], "user:u": 2, "app:a": 3})
            await service.append_event(session, said("e0", state={"n": 1}))
        async with opener() as service:
            assert await found(service) == session


@pytest.mark.anyio
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
async def test_a_service_is_not_copied_by_mistake(way: object, tmp_path: Path) -> None:
    assert callable(way)
    async with open_service(f"sqlite:///{tmp_path}/s.db") as service:
        await made(service)
        if way is copy.copy:
            assert await found(way(service)) is not None
        else:
            with pytest.raises(TypeError):
                way(service)
        assert await found(service) is not None


def test_nothing_is_opened_by_making_a_service(tmp_path: Path) -> None:
    config = SessionServiceConfig(ttl=TTL())
    SqlSessionService(f"sqlite:///{tmp_path}/never.db", session_config=config)
    InMemorySessionService(session_config=config)
    open_service(f"file://{tmp_path}/folder", session_config=config)
    assert list(tmp_path.iterdir()) == []
    gc.collect()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_a_block_may_end_with_an_error_of_its_own() -> None:
    class OwnError(Exception):
        pass

    config = SessionServiceConfig(ttl=TTL())
    service = InMemorySessionService(session_config=config)

    async def fail() -> None:
        async with service:
            await made(service)
            raise OwnError

    with pytest.raises(OwnError):
        await fail()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_blocks_may_be_nested_and_repeated() -> None:
    config = SessionServiceConfig(ttl=TTL())
    service = InMemorySessionService(session_config=config)
    tasks = len(asyncio.all_tasks())
    async with service:
        async with service:
            await made(service)
            assert len(asyncio.all_tasks()) == tasks + 1  # one sweep
        assert await found(service) is not None
    async with service:
        assert await found(service) is not None
    assert len(asyncio.all_tasks()) == tasks


def test_a_summary_whose_loop_has_ended_holds_nothing_up() -> None:
    scribe = Scribe(anyio.sleep_forever)
    manager = managed(scribe, auto_summarize=True)
    manager.add_check_function(lambda _: True)
    service = InMemorySessionService(manager)

    async def begin() -> None:
        session = await made(service)
        for n in range(4):
            await service.append_event(session, said(f"u{n}", text="a question"))
        await service.append_event(session, answered("a"))
        await asyncio.sleep(0.01)

    async def go_on() -> str:
        with anyio.fail_after(5):
            outcome = await service.create_session_summary(await got(service))
            await service.close()
        return outcome

    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin())
    assert len(scribe.inputs) == 1
    pending = asyncio.all_tasks(loop)
    loop.close()
    scribe.act = None
    assert asyncio.run(go_on()) == "compacted"
    for task in pending:  # asyncio would complain of a task that is lost
        task._log_destroy_pending = False  # type: ignore[attr-defined]


SCRIPT = """
    import asyncio, sys
    from raf_session.service import *

    config = SessionServiceConfig(ttl=SessionServiceConfig.create_ttl_config())
    service = {service}

    async def use():
        session = await service.get_session(
            app_name="a", user_id="u", session_id="s"
        ) or await service.create_session(app_name="a", user_id="u", session_id="s")
        await service.append_event(session, Event(author="user", content="hi"))
        session.state["k"] = 1
        await service.update_session(session)
        return len(session.events)

    assert asyncio.run(use()) == 1
    assert asyncio.run(use()) == 2
"""

SERVICES = {
    "memory": "InMemorySessionService(session_config=config)",
    "jsonl": "open_service('file://{path}/f', session_config=config)",
    "sqlite": "SqlSessionService('sqlite:///{path}/s.db', session_config=config)",
    "redis": "RedisSessionService('{url}', session_config=config, prefix='{name}')",
    "postgresql": "SqlSessionService('{url}', session_config=config, schema='{name}')",
    "mariadb": "SqlSessionService('{url}', session_config=config)",
}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("name", SERVICES)
async def test_a_process_that_closes_nothing_ends_quietly(
    name: str, tmp_path: Path
) -> None:
    async with JOURNALS[name].storage() as opener:
        arguments = getattr(opener, "args", ())
        keywords = getattr(opener, "keywords", {})
        text = SERVICES[name].format(
            path=tmp_path,
            url=arguments[0] if arguments else "",
            name=keywords.get("prefix") or keywords.get("schema"),
        )
        script = textwrap.dedent(SCRIPT).format(service=text)
        done = await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                [sys.executable, "-W", "error", "-c", script],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.anyio
@on_every_service
async def test_names_are_told_apart_and_checked(bound: ServiceHarness) -> None:
    async with bound() as service:
        names = ["a_b", "a:b", "a/b", "a b", "A_b", "a_b ", "*", "%", "é", "e\u0301"]
        for name in names:
            await service.create_session(
                app_name=APP, user_id=name, session_id=name, state={"user:who": name}
            )
        for name in names:
            listed = await service.list_sessions(app_name=APP, user_id=name)
            assert [s.id for s in listed.sessions] == [name]
            assert listed.sessions[0].state == {"user:who": name}
            other = await service.get_session(
                app_name=APP, user_id=USER, session_id=name
            )
            assert other is None
        everybody = await service.list_sessions(app_name=APP)
        assert sorted(s.id for s in everybody.sessions) == sorted(names)
        with pytest.raises(ValueError, match="user_id"):
            await service.list_sessions(app_name=APP, user_id="")
        with pytest.raises(ValueError, match="limit"):
            await service.list_sessions(app_name=APP, limit=0)
        for name in ("x\0", "x" * 513, "\ud83d"):
            with pytest.raises(ValueError, match="session_id"):
                await made(service, name)
        for blank in (None, "", "  \t"):
            fields = {"app_name": APP, "user_id": USER, "session_id": blank}
            session = await service.create_session(**fields)  # type: ignore[arg-type]
            assert len(session.id) == 36
