"""Checks of what is stored: keys, text, numbers and sizes come back as given."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    body,
    every,
    ids,
    raises,
    said,
    same,
    unchanged,
    whole,
)
from raf_session.entries import Entry
from raf_session.errors import EntryTooLargeError
from raf_session.json_text import dump_json
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import ChatMessage, MessageSource, Usage
from raf_session.options import Limits, NewSession

HOSTILE: Final = (
    "", " ", "\0", "a\0b", "\ud83d", "\udcff", "x\ud83dy\ude00", "😀", "👨‍👩‍👧",
    "\U00020bb7", "汉字かな한글", "\u202e", "\ufeff", "é", "e\u0301", "\r\n\t\x1b[0m",
    "\u2028\u2029", "\\u0000", "\\ud83d", '"\\', "'; DROP TABLE sessions; --", "NaN",
    "\x7f\x80\x9f", "\ufffd\uffff", "[[1]]", "{}", "null",
)  # fmt: skip
"""Text that people and tools send, and that storage has been seen to lose."""

NUMBERS: Final = (
    0, -0.0, 0.0, 1, 1.0, True, False, None, -1, 2**53 + 1, 2**63, 2**64, -(2**63) - 1,
    10**400, 0.1, 1e300, 5e-324, 1e16, 123456789.123456789, 1.7976931348623157e308,
)  # fmt: skip
"""Numbers that a detour over floats, or over another JSON type, would alter."""

NAMES: Final = (
    "a", "A", "a ", " a", "a_", "a%", "a*", "a?", "a:b", "a/b", "a\\b", "a b", "a.b",
    "é", "e\u0301", "ß", "ss", "\u0131", "i", "I", "\ufb01", "fi", "\uff41", "😀",
    "%", "%2f", "%25", "..", ".", "../../x", "/etc/x", "CON", "nul.txt", "C:x", "a\nb",
    "\uff5e", "{a}", "[a]", "'", '"', "a" * 512, "a" * 511 + "b", "字" * 170,
)  # fmt: skip
"""Names that a file system, a collation or a pattern would confuse."""


async def check_text_comes_back_exactly(make: JournalFactory) -> None:
    """NUL, lone surrogates, emoji and the like come back from every field of text."""
    entries = [
        Entry(
            f"e{n}",
            message=ChatMessage.from_openai(
                {"role": "user", "content": text, "name": text, "x": {text: text}},
                metadata={text: text},
            ),
            author=text,
            invocation_id=text,
            branch=text,
            metadata={text: [text]},
            extra={text: text},
        )
        for n, text in enumerate(HOSTILE)
    ]
    async with make() as journal:
        await journal.create(NEW, entries[::2])
        await journal.append(KEY, entries[1::2])
        stored = {e.id: body(e) for e in (await journal.load(KEY)).entries}
        for entry in entries:
            same(stored[entry.id], body(entry), f"{entry.author!r}")
        again = await journal.append(KEY, entries)
        same(again.repeated, True, "each is known as the same body")


async def check_values_come_back_exactly(make: JournalFactory) -> None:
    """Large integers, 1 beside 1.0 and true, -0.0 and key order are kept everywhere."""
    values: dict[str, Any] = {f"n{i}": value for i, value in enumerate(NUMBERS)}
    deep: Any = "end"
    for level in range(150):
        deep = {"k": deep} if level % 2 else [deep]
    values |= {
        "order": {"z": 1, "a": {"y": 1, "b": 2, "10": 3, "9": 4}, "m": []},
        "deep": deep,
        "empty": [[], {}, "", [None]],
        "text": list(HOSTILE),
    }
    delta = StateDelta(values)
    change = Change(session=delta, user=delta, app=delta, providers=delta)
    expected = dump_json(dict(sorted(delta.set.items())))
    entry = Entry(
        "a",
        message=ChatMessage.from_openai(
            {
                "x": values,
                "role": "assistant",
                "tool_calls": [
                    {"type": "function", "function": {"name": "f", "arguments": values}}
                ],
            }
        ),
        metadata=values,
        extra=values,
        state_delta=StateDelta(values, ["gone"]),
        timestamp=1767225600.123456,
        usage=Usage(total_tokens=3, prompt_cache_hit_tokens=0),
    )
    async with make() as journal:
        await journal.create(NEW)
        await journal.append(KEY, [entry], change=change)
        record = await journal.load(KEY)
        listed = await every(journal, state=True)
        states = {
            "session": record.state,
            "user": record.user_state,
            "app": record.app_state,
            "providers": record.provider_states,
            "listed": listed[0].state or {},
            "scope": (await journal.scoped_state(ScopeKey("app", "user"))).state,
        }
        for name, state in states.items():
            same(dump_json(dict(sorted(state.items()))), expected, f"{name} state")
        same(body(record.entries[0]), body(entry), "the entry")


async def check_messages_come_back_exactly(make: JournalFactory) -> None:
    """Every shape of message, with what is ours beside it, comes back as it was."""
    image = {"type": "image_url", "image_url": {"url": "data:,x", "detail": "low"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}
    wires: list[dict[str, Any]] = [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": ""},
        {"role": "user", "content": None},
        {"role": "user"},
        {"role": "user", "content": []},
        {"content": [{"type": "text", "text": "t", "cache_control": {}}, image],
         "role": "user"},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"x": 1}}]},
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}, {}]},
        {"role": "user", "content": [{"type": "new", "payload": [1]}, {"type": None}]},
        {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": 1}]},
        {"role": "assistant", "tool_calls": []},
        {"role": "assistant", "tool_calls": [{"id": "c", "custom": {"x": None}}]},
        {"role": "assistant", "content": "", "refusal": "no", "annotations": []},
        {"role": "assistant", "content": [{"type": "reasoning", "text": "r", "s": 1}]},
        {"role": "tool", "tool_call_id": "c", "content": "r", "name": "f"},
        {"role": "function", "name": "f", "content": "r"},
        {"role": "user", "content": "x", "name": None, "tool_calls": None},
        {"role": "user", "content": {"not": "a list"}},
    ]  # fmt: skip
    moment = datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
    async with make() as journal:
        entries = [
            Entry(
                f"e{n}",
                message=ChatMessage.from_openai(
                    wire,
                    id=f"m{n}" if n % 2 else None,
                    created_at=moment if n % 3 else None,
                    metadata={"n": n} if n % 4 else None,
                    source=MessageSource.CHAT_HISTORY if n % 5 else None,
                ),
            )
            for n, wire in enumerate(wires)
        ]
        await journal.create(NEW, entries)
        stored = (await journal.load(KEY)).entries
        for given, seen in zip(entries, stored, strict=True):
            same(body(seen), body(given), "the entry")
            same(seen.message, given.message, "the message")


async def check_equal_looking_keys_are_distinct(make: JournalFactory) -> None:
    """Keys are exact bytes: case, accents, spaces, wildcards and separators count."""
    keys = [SessionKey("app", "u", "", name) for name in NAMES]
    keys += [SessionKey(name, "u", "", "s") for name in NAMES]
    keys += [SessionKey("app", name, "s", "s") for name in NAMES]
    keys += [SessionKey("app", "u", name, "s") for name in NAMES]
    keys += [
        SessionKey("a/b", "c", "", "d"),
        SessionKey("a", "b/c", "", "d"),
        SessionKey("a:b", "c", "", "d"),
        SessionKey("a", "b:c", "", "d"),
        SessionKey("", "a", "b", "c"),
        SessionKey("a", "", "b", "c"),
        SessionKey("a", "b", "", "c"),
        SessionKey.raf("a/b/c"),
    ]
    keys = list(dict.fromkeys(keys))
    async with make() as journal:
        for n, key in enumerate(keys):
            delta = StateDelta({"n": n})
            await journal.create(
                NewSession(key=key), [said("a", str(n))], change=Change(session=delta)
            )
        for n, key in enumerate(keys):
            record = await journal.load(key)
            same((record.head.key, record.state), (key, {"n": n}), f"{key!r}")
            same(body(record.entries[0]), body(said("a", str(n))), f"{key!r}")
        same(len(await every(journal)), len(keys), "how many are listed")
        for key in keys[::2]:
            same(await journal.delete(key), True, f"delete {key!r}")
        for key in keys[1::2]:
            same(await alive(journal, key), True, f"{key!r} stays")
        same(len(await every(journal)), len(keys) // 2, "the others stay")


async def check_equal_looking_names_are_distinct(make: JournalFactory) -> None:
    """Entry ids, state keys, provider names, labels and scopes are exact bytes too."""
    async with make() as journal:
        delta = StateDelta({name: n for n, name in enumerate(NAMES)})
        change = Change(session=delta, user=delta, app=delta, providers=delta)
        await journal.create(NEW, batch(*NAMES), change=change)
        record = await whole(journal)
        same(ids(record.entries), list(NAMES), "the ids")
        for state in (record.state, record.user_state, record.app_state):
            same(state, delta.set, "a state")
        same(record.provider_states, delta.set, "provider states")
        again = await journal.append(KEY, [record.entries[3].plain])
        same(again.entries, (record.entries[3],), "an id is found exactly")
        for n, name in enumerate(NAMES):
            await journal.update_scoped_state(ScopeKey("x", name), StateDelta({"n": n}))
        for n, name in enumerate(NAMES):
            scoped = await journal.scoped_state(ScopeKey("x", name))
            same(scoped.state, {"n": n}, f"the state of {name!r}")
        title = NAMES[-1]
        await journal.update(KEY, Change(title=title, model=NAMES[-2]))
        head = (await journal.load(KEY)).head
        same((head.title, head.model), (title, NAMES[-2]), "title and model")


async def check_a_large_entry_comes_back(make: JournalFactory) -> None:
    """An entry of some megabytes is stored and read like any other."""
    text = "0123456789abcdéf" * 150_000
    async with make() as journal:
        await journal.create(NEW, [said("a", text)])
        await journal.append(KEY, [said("b", "x" * (1 << 20) + "\ud83d"), said("c")])
        stored = (await journal.load(KEY)).entries
        same(ids(stored), ["a", "b", "c"], "the entries")
        for entry, expected in zip(
            stored, (text, "x" * (1 << 20) + "\ud83d"), strict=False
        ):
            assert entry.message is not None, "the message is there"
            assert entry.message.text == expected, "the text is as it was"


async def check_too_large_is_refused_before_storing(make: JournalFactory) -> None:
    """One entry over the limit refuses the call; nothing of it is stored."""
    limits = Limits(max_entry_bytes=4000)
    large = said("large", "x" * 4001)
    wide = said("wide", "é" * 2001)
    change = Change(session=StateDelta({"k": 1}), user=StateDelta({"u": 1}), title="t")
    async with make(limits=limits) as journal:
        with raises(EntryTooLargeError, "create") as caught:
            await journal.create(NEW, [said("a"), large], change=change)
        same((caught[0].entry_id, caught[0].limit), ("large", 4000), "the error")
        assert caught[0].size > 4000, "the error names the size"
        with raises(EntryTooLargeError, "create with an archive"):
            await journal.create(NEW, archived=[large])
        same(await alive(journal), False, "nothing was created")
        await journal.create(NEW, [*batch("a", "b"), said("fits", "x" * 3000)])
        async with unchanged(journal, "too large an entry"):
            for entry in (large, wide):
                calls = (
                    partial(journal.append, KEY, [said("c"), entry], change=change),
                    partial(
                        journal.splice, KEY, 1, 2, [entry], archive=True, change=change
                    ),
                )
                for call in calls:
                    with raises(EntryTooLargeError, f"{call}"):
                        await call()


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_text_comes_back_exactly,
    check_values_come_back_exactly,
    check_messages_come_back_exactly,
    check_equal_looking_keys_are_distinct,
    check_equal_looking_names_are_distinct,
    check_a_large_entry_comes_back,
    check_too_large_is_refused_before_storing,
)
