"""URLs of MySQL, as people bring them from other programs."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from raf_session.journals._mysql_urls import SCHEMES, connect_options
from raf_session.journals.mysql import MysqlJournal

PLAIN = {
    "host": "db.example",
    "port": 3307,
    "database": "agents",
    "user": "me",
    "password": b"secret",
    "charset": "utf8mb4",
    "autocommit": True,
    "connect_timeout": 10,
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_form_names_the_same_server(scheme: str) -> None:
    url = f"{scheme}://me:secret@db.example:3307/agents"
    assert connect_options(url) == PLAIN


@pytest.mark.parametrize(
    "parameters",
    ["charset=utf8mb4", "charset=utf8", "use_unicode=1", "binary_prefix=true"],
)
def test_parameters_that_hold_anyway_change_nothing(parameters: str) -> None:
    url = f"mysql+pymysql://me:secret@db.example:3307/agents?{parameters}"
    assert connect_options(url) == PLAIN


def test_what_is_missing_has_its_usual_value() -> None:
    options = connect_options("mysql:///agents")
    assert (options["host"], options["port"]) == ("127.0.0.1", 3306)
    assert "user" not in options


def test_names_and_passwords_are_unescaped() -> None:
    options = connect_options("mysql://m%40e:s%2F%C3%A9@[::1]/my%20agents")
    assert options["user"] == "m@e"
    assert options["password"] == "s/é".encode()
    assert options["host"] == "::1"
    assert options["database"] == "my agents"


def test_times_and_sockets_reach_the_driver() -> None:
    options = connect_options(
        "mariadb://me@localhost/agents?connect_timeout=3&read_timeout=2.5"
        "&unix_socket=%2Frun%2Fs&program_name=bot"
    )
    assert (options["connect_timeout"], options["read_timeout"]) == (3, 2.5)
    assert (options["unix_socket"], options["program_name"]) == ("/run/s", "bot")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://h/d", "postgresql"),
        ("mysql+odbc://h/d", "odbc"),
        ("mysql://h", "database"),
        ("mysql://h/", "database"),
        ("mysql://h/a/b", "database"),
        ("mysql://h/d?colour=red", "colour"),
        ("mysql://h/d?autocommit=true", "autocommit"),
        ("mysql://h/d?charset=latin1", "latin1"),
        ("mysql://h/d?use_unicode=0", "use_unicode"),
        ("mysql://h/d?connect_timeout=soon", "connect_timeout"),
        ("mysql://h/d?read_timeout=-1", "read_timeout"),
        ("mysql://h/d?ssl=perhaps", "ssl"),
        ("mysql://h/d?ssl_mode=PREFERRED", "PREFERRED"),
        ("mysql://h/d?ssl_ca=%2Fno%2Fsuch", "/no/such"),
        ("mysql://h:port/d", "port"),
    ],
)
def test_what_cannot_be_is_refused_by_name(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MysqlJournal(url)


@pytest.mark.parametrize("host", ["h:soon", "h:99999"])
def test_a_port_that_is_none_is_refused_without_telling(host: str) -> None:
    with pytest.raises(ValueError, match="port") as caught:
        MysqlJournal(f"mysql://{host}/d")
    assert "soon" not in str(caught.value)


@pytest.mark.parametrize(
    "form", ["mysql+cymysql", "mariadb+cymysql", "mariadb+mariadbconnector"]
)
def test_forms_of_further_drivers(form: str) -> None:
    assert connect_options(f"{form}://me:secret@db.example:3307/agents") == PLAIN


# TLS -----------------------------------------------------------------------------


def context(parameters: str) -> ssl.SSLContext:
    found = connect_options(f"mysql://h/d?{parameters}")["ssl"]
    assert isinstance(found, ssl.SSLContext)
    return found


@pytest.mark.parametrize("parameters", ["", "ssl=false", "ssl_mode=DISABLED"])
def test_without_tls(parameters: str) -> None:
    assert "ssl" not in connect_options(f"mysql://h/d?{parameters}")


@pytest.mark.parametrize(
    ("parameters", "verified", "named"),
    [
        ("ssl=true", False, False),
        ("ssl_mode=REQUIRED", False, False),
        ("ssl-mode=verify-ca", True, False),
        ("ssl_verify_cert=true", True, False),
        ("ssl_mode=VERIFY_IDENTITY", True, True),
        ("ssl_verify_identity=1", True, True),
        ("ssl_verify_identity=1&ssl_check_hostname=false", True, False),
    ],
)
def test_tls_verifies_what_was_asked(
    parameters: str, *, verified: bool, named: bool
) -> None:
    made = context(parameters)
    assert (made.verify_mode is ssl.CERT_REQUIRED, made.check_hostname) == (
        verified,
        named,
    )


def test_a_certificate_of_an_authority_makes_it_verified(tmp_path: Path) -> None:
    folder = tmp_path / "authorities"
    folder.mkdir()
    made = context(f"ssl_capath={folder}")
    assert made.verify_mode is ssl.CERT_REQUIRED
    assert made.check_hostname


def test_a_context_that_is_given_wins() -> None:
    given = ssl.create_default_context()
    assert connect_options("mysql://h/d?ssl=false", given)["ssl"] is given


@pytest.mark.parametrize(
    "options",
    [
        {"durability": "never"},
        {"busy_timeout_secs": -1},
        {"pool_size": 0},
        {"pool_recycle_secs": 0},
        {"pool_recycle_secs": float("nan")},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        MysqlJournal("mysql://h/d", **options)  # type: ignore[arg-type]
