"""MySQL over TLS, with a server that has a certificate of its own."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Generator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from mysql_databases import database
from servers.mariadb import MariadbServer

from raf_session.conformance.journal_values import KEY, NEW, ids, said
from raf_session.errors import StorageError
from raf_session.journals.mysql import MysqlJournal

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def certificate(folder: Path) -> None:
    """Write a certificate for 127.0.0.1 that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "server.pem").write_bytes(made.public_bytes(pem))
    (folder / "server.key").write_bytes(
        key.private_bytes(
            pem,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    certificate(folder)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Generator[MariadbServer]:
    options = (f"--ssl-cert={folder}/server.pem", f"--ssl-key={folder}/server.key")
    with MariadbServer(*options) as server:
        yield server


@pytest.mark.parametrize(
    "parameters", ["ssl_mode=REQUIRED", "ssl=true", "ssl_ca={ca}", "ssl_ca={ca}&ssl=1"]
)
async def test_everything_works_over_tls(
    server: MariadbServer, folder: Path, parameters: str
) -> None:
    asked = parameters.format(ca=f"{folder}/server.pem")
    async with (
        database(server.url) as url,
        MysqlJournal(f"{url}?{asked}") as journal,
    ):
        await journal.create(NEW, [said("a")])
        await journal.append(KEY, [said("b", "x" * 300_000)])
        assert ids((await journal.load(KEY)).entries) == ["a", "b"]
        runner = journal._runner
        assert runner is not None

        async def cipher(connection: object) -> str:
            _, found = (await connection.rows("SHOW STATUS LIKE 'Ssl_cipher'"))[0]  # type: ignore[attr-defined]
            return str(found)

        assert await runner.call(cipher)


@pytest.mark.parametrize(
    ("host", "parameters"),
    [
        ("127.0.0.1", "ssl_mode=VERIFY_IDENTITY"),
        ("127.0.0.1", "ssl_mode=VERIFY_CA"),
        ("localhost", "ssl_ca={ca}"),
    ],
)
async def test_a_server_that_is_not_known_is_refused(
    server: MariadbServer, folder: Path, host: str, parameters: str
) -> None:
    asked = parameters.format(ca=f"{folder}/server.pem")
    async with database(server.url) as url:
        other = url.replace("127.0.0.1", host)
        with pytest.raises(StorageError, match=r"(?i)certificate"):
            await MysqlJournal(f"{other}?{asked}", busy_timeout_secs=10).__aenter__()


async def test_a_server_without_tls_is_refused_where_it_was_wanted() -> None:
    async with database() as url:
        with pytest.raises(StorageError):
            await MysqlJournal(f"{url}?ssl=true", busy_timeout_secs=10).__aenter__()
