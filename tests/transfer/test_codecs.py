"""Codecs: what they are given comes back, and what was altered never does."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_bindings import HARNESSES

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.codecs import AesGcmCodec, ChainCodec, ZlibCodec
from raf_session.conformance import Capability, JournalHarness, TickingClock
from raf_session.conformance.journal_values import batch, said
from raf_session.errors import SessionDamagedError
from raf_session.journal import Codec, Journal
from raf_session.journals.memory import MemoryJournal
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import ScopeKey
from raf_session.options import NewSession
from raf_session.transfer import copy
from transfer.transfer_values import ANN, fill, fill_scopes, kept

pytestmark = pytest.mark.anyio

OLD, NEW, OTHER = bytes(range(32)), bytes(range(1, 17)), bytes(24)
CODECS: dict[str, Codec] = {
    "zlib": ZlibCodec(),
    "zlib 0": ZlibCodec(0),
    "zlib 9": ZlibCodec(9),
    "aes 128": AesGcmCodec({"new": NEW}),
    "aes 192": AesGcmCodec({"other": OTHER}),
    "aes 256": AesGcmCodec({"ключ": OLD, "new": NEW}),
    "chain": ChainCodec(ZlibCodec(), AesGcmCodec({"k": OLD})),
    "chain backwards": ChainCodec(AesGcmCodec({"k": OLD}), ZlibCodec()),
    "chain of chains": ChainCodec(ChainCodec(ZlibCodec(), ZlibCodec(1)), ZlibCodec()),
}

DATA = st.one_of(
    st.binary(max_size=300),
    st.binary(min_size=1, max_size=40).map(lambda data: data * 50),
)


@pytest.mark.parametrize("name", CODECS)
@given(data=DATA)
def test_what_is_encoded_comes_back(name: str, data: bytes) -> None:
    codec = CODECS[name]
    assert codec.decode(codec.encode(data)) == data


@given(data=DATA)
def test_compression_never_adds_more_than_a_byte(data: bytes) -> None:
    size = len(ZlibCodec().encode(data))
    assert size <= len(data) + 1
    assert size <= len(zlib.compress(data)) + 1


def test_text_becomes_smaller() -> None:
    text = b'{"role":"user","content":"the same again"}' * 30
    assert len(ZlibCodec().encode(text)) < len(text) / 10
    assert len(ZlibCodec(9).encode(text)) <= len(ZlibCodec(1).encode(text))


@given(data=DATA, place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_one_altered_bit_is_refused(data: bytes, place: int, bit: int) -> None:
    codec = AesGcmCodec({"k": OLD})
    coded = bytearray(codec.encode(data))
    coded[place % len(coded)] ^= 1 << bit
    with pytest.raises(ValueError, match=r"encrypted|altered"):
        codec.decode(bytes(coded))


@pytest.mark.parametrize("codec", [ZlibCodec(), AesGcmCodec({"k": OLD})])
@given(data=DATA, size=st.integers(0, 10**6))
def test_what_is_torn_is_refused(codec: Codec, data: bytes, size: int) -> None:
    coded = codec.encode(data * 2)
    torn = coded[: size % len(coded)]
    if isinstance(codec, ZlibCodec) and coded[:1] == b"\0":
        return  # stored as it was: nothing tells where it ended
    with pytest.raises(ValueError):  # noqa: PT011  (each codec has its own words)
        codec.decode(torn)


@given(data=DATA)
def test_what_is_none_of_theirs_is_refused_or_was_never_coded(data: bytes) -> None:
    with pytest.raises(ValueError, match="encrypted"):
        AesGcmCodec({"k": OLD}).decode(data)
    if data[:1] not in {b"\0", b"\1"}:
        with pytest.raises(ValueError, match="not compressed"):
            ZlibCodec().decode(data)


def test_more_behind_what_was_compressed_is_refused() -> None:
    with pytest.raises(ValueError, match="torn"):
        ZlibCodec().decode(ZlibCodec().encode(b"a" * 100) + b"x")


def test_the_same_is_never_encrypted_alike() -> None:
    codec = AesGcmCodec({"k": OLD})
    coded = {codec.encode(b"the same") for _ in range(1000)}
    assert len({value[3:15] for value in coded}) == 1000, "a nonce came twice"
    assert not any(b"the same" in value for value in coded)


def test_keys_can_be_rotated() -> None:
    before = AesGcmCodec({"old": OLD})
    both = AesGcmCodec({"new": NEW, "old": OLD})
    after = AesGcmCodec({"new": NEW})
    old, new = before.encode(b"x"), both.encode(b"x")
    assert both.decode(old) == both.decode(new) == after.decode(new) == b"x"
    with pytest.raises(ValueError, match="'old', which is not given"):
        after.decode(old)
    with pytest.raises(ValueError, match="another key, or altered"):
        AesGcmCodec({"old": NEW}).decode(old)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AesGcmCodec({}), "no key"),
        (lambda: AesGcmCodec({"k": b"short"}), "5 bytes"),
        (lambda: AesGcmCodec({"": OLD}), "empty"),
        (lambda: AesGcmCodec({"é" * 128: OLD}), "255 bytes"),
        (ChainCodec, "no codecs"),
        (lambda: ZlibCodec(10), "level"),
        (lambda: ZlibCodec(-2), "level"),
    ],
)
def test_bad_arguments(make: Callable[[], Codec], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_without_the_package_it_says_which_extra() -> None:
    program = (
        "import sys\n"
        "sys.modules['cryptography.hazmat.primitives.ciphers.aead'] = None\n"
        "from raf_session import AesGcmCodec\n"
        "try: AesGcmCodec({'k': bytes(16)})\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "pip install 'raf-session[crypto]'" in done.stdout


def test_importing_the_package_loads_no_cryptography() -> None:
    program = "import raf_session, sys; sys.exit('cryptography' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


# In a journal -------------------------------------------------------------------------

CODED = [bound for bound in HARNESSES if Capability.CODEC in bound.capabilities]
DURABLE = [bound for bound in CODED if Capability.DURABLE in bound.capabilities]
on_each = pytest.mark.parametrize("harness", CODED, ids=lambda bound: bound.name)
on_each_durable = pytest.mark.parametrize(
    "harness", DURABLE, ids=lambda bound: bound.name
)


@on_each
@pytest.mark.parametrize("name", ["zlib", "aes 256", "chain"])
async def test_a_journal_keeps_everything_under_it(
    harness: JournalHarness, name: str
) -> None:
    clock = TickingClock()
    plain = MemoryJournal.opened(clock=clock)
    await fill(plain, ANN, clock)
    await fill_scopes(plain)
    async with (
        harness.storage() as opened,
        opened(clock=clock, codec=CODECS[name]) as journal,
    ):
        assert (await copy(plain, journal)).complete
        assert await kept(journal, ANN) == await kept(plain, ANN)
        commit = await journal.append(ANN, [said("twice")])
        assert (await journal.append(ANN, [said("twice")])).repeated
        assert not commit.repeated


@on_each_durable
async def test_keys_are_rotated_under_a_journal(harness: JournalHarness) -> None:
    async with harness.storage() as opened:
        async with opened(codec=AesGcmCodec({"old": OLD})) as journal:
            await journal.create(NewSession(key=ANN), batch("a"))
        async with opened(codec=AesGcmCodec({"new": NEW, "old": OLD})) as journal:
            await journal.append(ANN, batch("b"))
            assert len((await journal.load(ANN)).entries) == 2
            assert (await journal.append(ANN, batch("a"))).repeated


READS: dict[str, Callable[[Journal], Awaitable[Any]]] = {
    "load": lambda journal: journal.load(ANN),
    "append": lambda journal: journal.append(ANN, batch("a")),
    "splice": lambda journal: journal.splice(ANN, 1, 1, batch("a"), archive=False),
    "scope": lambda journal: journal.scoped_state(ScopeKey("shop", "ann")),
}


@on_each_durable
@pytest.mark.parametrize("read", READS)
async def test_a_wrong_key_is_damage_with_its_cause(
    harness: JournalHarness, read: str
) -> None:
    async with harness.storage() as opened:
        async with opened(codec=AesGcmCodec({"k": OLD})) as journal:
            await journal.create(NewSession(key=ANN), batch("a"))
            await journal.update_scoped_state(
                ScopeKey("shop", "ann"), StateDelta({"s": 1})
            )
        for codec, words in (
            (AesGcmCodec({"k": NEW}), "another key, or altered"),
            (AesGcmCodec({"n": NEW}), "'k', which is not given"),
        ):
            async with opened(codec=codec) as journal:
                with pytest.raises(SessionDamagedError) as caught:
                    await READS[read](journal)
            assert words in caught.value.detail
            assert ("'s'" if read == "scope" else "entry 'a'") in caught.value.detail
            cause = caught.value.__cause__
            assert isinstance(cause, ValueError)
            assert words in str(cause)
        async with opened(codec=AesGcmCodec({"k": OLD})) as journal:
            assert len((await journal.load(ANN)).entries) == 1


def stored(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_no_plain_text_reaches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    codec = ChainCodec(ZlibCodec(), AesGcmCodec({"k1": OLD}))
    hidden = ("entry-text", "state-value", "provider-value", "user-value", "app-value")
    plain = ("the-id", "state-name", "the-label", "the-title", "the-model", "ann")
    async with SqliteJournal(path, codec=codec) as journal:
        await journal.create(
            NewSession(key=ANN),
            [said("the-id", "entry-text"), said("archived", "entry-text")],
            change=Change(
                session=StateDelta({"state-name": "state-value"}),
                providers=StateDelta({"p": {"k": "provider-value"}}),
                user=StateDelta({"u": "user-value"}),
                app=StateDelta({"a": ["app-value"]}),
                labels=LabelDelta({"the-label"}),
                title="the-title",
                model="the-model",
            ),
        )
        await journal.splice(ANN, 2, 2, [said("s", "entry-text")], archive=True)
        files = stored(tmp_path)
        assert files["sessions.db-wal"]
    data = b"".join((*files.values(), *stored(tmp_path).values()))
    for text in hidden:
        assert text.encode() not in data, text
    for text in plain:  # as the documentation says
        assert text.encode() in data, text
