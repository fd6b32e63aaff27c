"""`list` and `show`, and the command around them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from raf_session._version import __version__
from raf_session.changes import Change
from raf_session.cli import app as commands
from raf_session.cli.terminal import shorten
from raf_session.key_paths import parse_agent_key
from raf_session.keys import SessionKey
from raf_session.options import NewSession
from raf_session.stores import open_store

TALK = [
    {"role": "user", "content": [{"type": "text", "text": "Look:\nhere"},
        {"type": "image_url", "image_url": {"url": "data:" + "x" * 900}}]},
    {"role": "assistant", "content": None, "refusal": "No", "reasoning_content": "Hm",
        "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "look", "arguments": '{"at": 1}'}},
            {"type": "custom", "custom": {"x": 1}}]},
    {"role": "tool", "tool_call_id": "c1", "name": "look",
        "content": "\x1b[2J\r\u202e"},
]  # fmt: skip


def replayed(run: Any, *names: str) -> None:
    for name in names:
        text = json.dumps({"id": name, "messages": TALK})
        assert run("replay", "-", stdin=text.encode()).status == 0


def test_list(run: Any) -> None:
    replayed(run, "one", "two", "a/b")
    found = run("list", "--json").json
    assert [head["id"] for head in found["sessions"]] == ["a/b", "two", "one"]
    assert found["more"] is False
    assert (
        found["sessions"][0].items()
        >= {
            "key": "a%2fb",
            "message_count": 3,
            "status": "active",
            "last_request": {
                "messages": 1,
                "hash": found["sessions"][0]["last_request"]["hash"],
            },
        }.items()
    )
    short = run("list", "--json", "--limit", "2").json
    assert short == {"sessions": found["sessions"][:2], "more": True}
    rows = run("list", "--limit", "2").out.splitlines()
    assert [row.split()[0] for row in rows[2:4]] == ["a/b", "two"]
    assert rows[-1] == "there are more: --limit"
    assert run("list", "--limit", "0").status == 2


def test_show(run: Any) -> None:
    replayed(run, "a/b")
    shown = run("show", "a/b").out
    assert "\x1b" not in shown
    assert "\r" not in shown
    blocks = shown.split("\n\n")
    assert blocks[0].splitlines()[0] == "session  a/b"
    assert blocks[1].startswith("[0] user\nLook:\nhere\nimage_url: {")
    assert blocks[1].endswith(" characters)")
    assert blocks[2].splitlines() == [
        "[1] assistant",
        "refusal: No",
        'call look({"at": 1}) c1',
        'call: {"type":"custom","custom":{"x":1}}',
        "reasoning_content: Hm",
    ]
    assert blocks[3] == "[2] tool look c1\n\\x1b[2J\\x0d\\u202e\n"
    found = run("show", "a/b", "--json").json
    assert found["messages"] == TALK
    assert run("show", "a%2fb").out == shown
    assert run("show", "c").fault == "raf-sessions.db: no session 'c'"
    assert run("show", "").fault == "raf-sessions.db: no session ''"


def test_what_show_prints_can_be_replayed(
    run: Any, store: Callable[[], dict[str, Any]]
) -> None:
    replayed(run, "one")
    before = store()
    text = run("show", "one", "--json").out
    assert run("replay", "-", "--json", stdin=text.encode()).json["run"]["writes"] == 0
    assert store() == before


def test_sessions_of_other_faces(run: Any) -> None:
    key = SessionKey("shop", "ann", "", "s1")

    async def make() -> None:
        async with open_store("sqlite:///raf-sessions.db") as opened:
            change = Change(title="\x1b[1mLamps", model="m")
            await opened.journal.create(NewSession(key=key), change=change)

    anyio.run(make)
    name = run("list").out.splitlines()[2].split()[0]
    assert name == str(key) == "shop/ann//s1"
    shown = run("show", name).out
    assert "title    \\x1b[1mLamps" in shown
    assert "model    m" in shown


AGENT_KEY = "agent:assistant:channel:discord:scope:per_peer:user12345"


def stored_by_an_agent() -> None:
    async def make() -> None:
        async with open_store("sqlite:///raf-sessions.db") as opened:
            await opened.journal.create(NewSession(key=parse_agent_key(AGENT_KEY)))

    anyio.run(make)


def test_an_agents_session_is_listed_and_found_by_the_documents_key(run: Any) -> None:
    stored_by_an_agent()
    assert run("list").out.splitlines()[2].split()[0] == AGENT_KEY
    shown = run("show", AGENT_KEY)
    assert shown.out.splitlines()[0] == f"session  {AGENT_KEY}"
    assert run("show", str(parse_agent_key(AGENT_KEY))) == shown
    store = "sqlite:///raf-sessions.db"
    assert run("dump", store, AGENT_KEY, "-o", "one.jsonl").status == 0
    other = AGENT_KEY.replace("user12345", "ann")
    assert run("restore", store, "one.jsonl", "--key", other).status == 0
    keys = {head["key"] for head in run("list", "--json").json["sessions"]}
    assert keys == {str(parse_agent_key(AGENT_KEY)), str(parse_agent_key(other))}


def test_a_terminal_shows_long_keys_short_unless_it_is_asked(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_by_an_agent()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert AGENT_KEY not in run("list").out
    assert AGENT_KEY in run("list", "--full").out


def test_version(run: Any) -> None:
    assert run("--version") == (0, f"raf-session {__version__}\n", "")


def test_without_arguments_it_helps(run: Any) -> None:
    assert "replay" in "".join(run()[1:])
    assert "weighted by bytes" in " ".join(run("replay", "--help").out.split())


def test_an_interrupt(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "print_heads", interrupt)
    replayed(run, "one")
    assert run("list") == (130, "", "")


def test_what_nobody_expected_keeps_its_traceback(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(commands, "print_heads", fail)
    replayed(run, "one")
    with pytest.raises(ZeroDivisionError):
        run("list")


BLOCKED = """
import sys
sys.modules[sys.argv.pop(1)] = None
from raf_session.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_the_extra(module: str) -> None:
    ran = _python("-c", BLOCKED, module, "list")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert "pip install 'raf-session[cli]'" in ran.stderr


def test_a_module_that_is_really_missing_is_told() -> None:
    ran = _python("-c", BLOCKED, "raf_session.journal", "list")
    assert ran.returncode == 1
    assert "ModuleNotFoundError" in ran.stderr


def test_as_a_module_and_in_ascii(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "\u4e2d\U0001f600\ud800"}))
    store = ("--store", f"sqlite:///{tmp_path}/x.db")
    _python("-m", "raf_session.cli", "replay", str(path), *store)
    ran = _python("-m", "raf_session.cli", "show", "chat", "--json", *store)
    content = json.loads(ran.stdout)["messages"][0]["content"]
    assert content == "\u4e2d\U0001f600\ud800"
    ran = _python("-m", "raf_session.cli", "show", "chat", *store)
    assert ran.returncode == 0
    assert "\\u4e2d\\U0001f600\\ud800" in ran.stdout


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
    )


@pytest.mark.parametrize("width", range(1, 12))
def test_shortened_text_fits(width: int) -> None:
    assert len(shorten("abcdefghijklmnop", width)) <= width
    assert shorten("中文中文中文", width).count("文") <= width // 2
