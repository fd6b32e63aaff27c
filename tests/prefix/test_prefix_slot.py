"""The digest kept with a message: shared by the twins, seen by nothing else."""

from __future__ import annotations

import copy
import pickle
import struct
import threading
from types import ModuleType
from typing import Any

import pytest

from raf_session.messages import ChatMessage

Twins = tuple[ModuleType, ModuleType]

SLOT = ChatMessage.__dict__["_digest"]


def kept(message: ChatMessage) -> bytes | None:
    try:
        value: bytes = SLOT.__get__(message)
    except AttributeError:
        return None
    return value


@pytest.fixture
def message() -> ChatMessage:
    return ChatMessage.from_openai(
        {"role": "user", "content": [{"type": "text", "text": "x" * 5000}], "a": [1]},
        id="m1",
        metadata={"k": 1},
    )


@pytest.mark.parametrize(
    "fill", ["message_digest", "message_size", "prefix_hashes", "touch"]
)
def test_what_is_kept(prefix_impl: ModuleType, message: ChatMessage, fill: str) -> None:
    prefix_impl.encode_message(message)
    assert kept(message) is None
    if fill == "touch":
        prefix_impl.PrefixTracker().touch([message])
    elif fill == "prefix_hashes":
        prefix_impl.prefix_hashes([message])
    else:
        getattr(prefix_impl, fill)(message)
    wire = message.to_openai()
    assert kept(message) == struct.pack(
        "<QQ", prefix_impl.message_digest(wire), prefix_impl.message_size(wire)
    )


class Own(ChatMessage):
    """A subclass, which has the slot as well."""

    mood: str = ""


def test_subclasses_keep_it_too(prefix_impl: ModuleType) -> None:
    message = Own.from_openai({"role": "user", "content": "x"})
    tracker = prefix_impl.PrefixTracker()
    tracker.touch([message])
    assert len(kept(message) or b"") == 16
    assert tracker.kept == (message,)
    SLOT.__set__(message, struct.pack("<QQ", 12, 34))
    assert prefix_impl.message_digest(message) == 12


def test_the_twins_read_what_the_other_kept(prefix_twins: Twins) -> None:
    for first, second in (prefix_twins, prefix_twins[::-1]):
        message = ChatMessage.user("x")
        first.message_digest(message)
        # A number that nobody would compute shows that it was read.
        SLOT.__set__(message, struct.pack("<QQ", 12, 34))
        assert second.message_digest(message) == 12
        assert second.message_size(message) == 34
        match = second.PrefixTracker().touch([message])
        assert match.bytes == 34


def test_no_copy_takes_it_and_nothing_sees_it(
    prefix_impl: ModuleType, message: ChatMessage
) -> None:
    clean = pickle.loads(pickle.dumps(message))  # noqa: S301
    before = (
        repr(message),
        hash(message),
        message.model_dump(),
        message.model_dump_json(),
    )
    prefix_impl.message_digest(message)
    assert kept(message) is not None
    after = (
        repr(message),
        hash(message),
        message.model_dump(),
        message.model_dump_json(),
    )
    assert after == before
    assert message == clean
    assert clean == message
    copies: list[Any] = [
        copy.copy(message),
        copy.deepcopy(message),
        message.model_copy(),
        message.model_copy(deep=True),
        ChatMessage.from_openai(message.to_openai()),
        *(
            pickle.loads(pickle.dumps(message, protocol))  # noqa: S301
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
        ),
    ]
    for other in copies:
        assert other is not message
        assert kept(other) is None
        assert prefix_impl.message_digest(other) == prefix_impl.message_digest(message)


def test_a_changed_copy_has_a_digest_of_its_own(
    prefix_impl: ModuleType, message: ChatMessage
) -> None:
    digest = prefix_impl.message_digest(message)
    other = message.model_copy(update={"content": "other"})
    assert prefix_impl.message_digest(other) != digest
    ours = message.model_copy(update={"id": "m2", "metadata": {}})
    assert prefix_impl.message_digest(ours) == digest


@pytest.mark.parametrize("broken", [b"", b"short", 5, None, bytearray(16)])
def test_an_unreadable_slot_is_an_empty_one(
    prefix_impl: ModuleType, message: ChatMessage, broken: Any
) -> None:
    SLOT.__set__(message, broken)
    wire = message.to_openai()
    assert prefix_impl.message_digest(message) == prefix_impl.message_digest(wire)
    assert len(kept(message) or b"") == 16


def test_threads_fill_it_alike(prefix_impl: ModuleType) -> None:
    big = {"role": "user", "content": "x" * 100_000}
    expected = prefix_impl.message_digest(big)
    messages = [ChatMessage.from_openai(big) for _ in range(20)]
    results: list[list[int]] = []

    def work() -> None:
        results.append([prefix_impl.message_digest(message) for message in messages])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[expected] * 20] * 4
