"""The journal in PostgreSQL behind PgBouncer, which shares sessions of the server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator, Sequence
from urllib.parse import urlsplit

import pytest
from journal_bindings import postgres_storage
from servers import postgres
from servers.private import PrivateServer
from servers.programs import find
from typing_extensions import override

from raf_session.changes import Change, StateDelta
from raf_session.conformance import (
    JOURNAL_CHECKS,
    Capability,
    JournalCheck,
    JournalHarness,
    needs,
)
from raf_session.conformance.journal_values import KEY, NEW, batch, ids, said
from raf_session.journals.postgres import PostgresJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession, Query

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class PgBouncer(PrivateServer):
    """A pooler in transaction mode with two sessions of the server for everybody."""

    def __init__(self, url: str) -> None:
        self._program = find("pgbouncer", "pgbouncer")
        self._target = urlsplit(url)
        super().__init__("postgres")

    @property
    @override
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @override
    def _command(self) -> Sequence[str]:
        target = self._target
        (self.folder / "users").write_text('"postgres" ""\n')
        (self.folder / "ini").write_text(
            "[databases]\n"
            f"* = host={target.hostname} port={target.port}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\n"
            f"unix_socket_dir =\nauth_type = trust\nauth_file = {self.folder}/users\n"
            "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 200\n"
        )
        return [self._program, str(self.folder / "ini")]

    @override
    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="module")
def pooler() -> Generator[PgBouncer]:
    with PgBouncer(postgres.url()) as server:
        yield server


@pytest.fixture
async def journals(
    pooler: PgBouncer,
) -> AsyncGenerator[tuple[PostgresJournal, PostgresJournal]]:
    """Two journals over one storage, behind the pooler."""
    async with (
        postgres_storage(pooler.url) as opener,
        opener() as one,
        opener() as two,
    ):
        assert isinstance(one, PostgresJournal)
        assert isinstance(two, PostgresJournal)
        yield one, two


async def test_many_share_two_sessions_of_the_server(
    journals: tuple[PostgresJournal, PostgresJournal],
) -> None:
    for journal in journals:
        assert journal._postgres.settings.pooled
        await journal.create(
            NewSession(key=SessionKey("app", "user", "", f"{id(journal)}"))
        )
    await journals[0].create(NEW)

    async def write(writer: int) -> None:
        journal = journals[writer % 2]
        for n in range(15):
            change = Change(session=StateDelta({f"{writer}": n})) if n % 3 else None
            await journal.append(KEY, [said(f"{writer}-{n}")], change=change)
            await journal.load(KEY)
            await journal.scan(Query(), state=True)

    await asyncio.gather(*map(write, range(12)))
    record = await journals[1].load(KEY)
    assert len(record.entries) == 180
    assert record.head.revision == 181
    for writer in range(12):
        mine = [e for e in ids(record.entries) if e.startswith(f"{writer}-")]
        assert mine == [f"{writer}-{n}" for n in range(15)]
    assert record.state == {f"{writer}": 14 for writer in range(12)}


async def test_a_lost_session_of_the_server_is_made_good(
    journals: tuple[PostgresJournal, PostgresJournal],
) -> None:
    import asyncpg

    journal = journals[0]
    await journal.create(NEW)
    other = await asyncpg.connect(postgres.url())
    for n in range(5):
        await journal.append(KEY, batch(f"a{n}"))
        await other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        await journal.append(KEY, batch(f"b{n}"))
    await other.close()
    found = ids((await journal.load(KEY)).entries)
    assert found == [f"{letter}{n}" for n in range(5) for letter in "ab"]


KEPT = [
    pytest.param(check, id=check.__name__)
    for check in JOURNAL_CHECKS
    if needs(check) <= {Capability.DURABLE, Capability.SHARED, Capability.CODEC}
    and any(
        word in check.__module__
        for word in ("append", "cancellation", "storage", "content", "sweep")
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("check", KEPT)
async def test_the_contract_holds(pooler: PgBouncer, check: JournalCheck) -> None:
    harness = JournalHarness(
        "pooler", lambda: postgres_storage(pooler.url), frozenset(Capability)
    )
    await check(harness)
