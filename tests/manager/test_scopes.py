"""Scopes: a request's session depends on the fields that its scope names alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from raf_session.errors import InvalidValueError
from raf_session.key_paths import format_agent_key, parse_agent_key, session_path
from raf_session.keys import SessionKey
from raf_session.manager import SessionRequest, SessionScope

FIELDS = ("account", "chat", "peer", "thread", "task")
NAMED = {
    SessionScope.MAIN: set[str](),
    SessionScope.PER_PEER: {"peer"},
    SessionScope.PER_CHANNEL_PEER: {"chat", "peer"},
    SessionScope.PER_ACCOUNT_CHANNEL: {"account", "chat", "peer"},
    SessionScope.THREAD: {"chat", "thread"},
    SessionScope.TASK: {"task"},
}
"""The fields beside agent and channel that each scope's sessions depend on."""
PRINTED = (
    "agent:main:channel:discord:scope:per_peer:user12345",
    "agent:assistant:channel:feishu:scope:per_channel_peer:oc_xxx_user123",
)
ALIKE = (
    *("a_b", "a:b", "a/b", "a b", "a\\b", "A_b", "a_b ", "\u00e9", "e\u0301"),
    *(
        "%",
        "%2f",
        "_",
        "*",
        "?",
        "[x]",
        "default",
        "main",
        "../../x",
        "..",
        "CON",
        "\uff5e",
    ),
)
"""Names that careless stores take for one another."""

values = st.one_of(st.sampled_from(ALIKE), st.text("aA%/:_é", min_size=1, max_size=5))
scopes = st.sampled_from(SessionScope)
whole_requests: st.SearchStrategy[SessionRequest] = st.builds(
    SessionRequest,
    values,
    values,
    scopes,
    **dict.fromkeys(FIELDS, values),
)


def key_of(request: SessionRequest) -> SessionKey:
    return request.key(SessionScope.PER_PEER)


def address(request: SessionRequest) -> tuple[object, ...]:
    """Return what a request's session is meant to depend on."""
    assert request.scope is not None
    scope = SessionScope(request.scope)
    named = (getattr(request, name) for name in FIELDS if name in NAMED[scope])
    channel = "default" if scope is SessionScope.MAIN else request.channel
    return (request.agent_id, channel, scope, *named)


@given(
    whole_requests,
    st.sampled_from(("agent_id", "channel", *FIELDS)),
    st.one_of(st.none(), values),
)
def test_a_session_changes_exactly_with_the_fields_that_its_scope_names(
    request_: SessionRequest, field: str, value: str | None
) -> None:
    assert request_.scope is not None
    scope = SessionScope(request_.scope)
    changed = replace(request_, **{field: value})
    if value is None and field in NAMED[scope] - {"chat"}:
        with pytest.raises(InvalidValueError, match=field):
            key_of(changed)
        return
    meant = "default" if value is None and field in {"agent_id", "channel"} else value
    named = field == "agent_id" or field in NAMED[scope]
    named = named or (field == "channel" and scope is not SessionScope.MAIN)
    differs = named and meant != getattr(request_, field)
    assert (key_of(changed) != key_of(request_)) == differs


@given(st.lists(whole_requests, min_size=2, max_size=6))
def test_two_requests_share_a_session_exactly_when_all_named_fields_agree(
    found: list[SessionRequest],
) -> None:
    for one, two in combinations(found, 2):
        same = address(one) == address(two)
        assert (key_of(one) == key_of(two)) == same
        texts = [format_agent_key(key_of(request)) for request in (one, two)]
        assert (texts[0] == texts[1]) == same
        files = [str(session_path(key_of(request))) for request in (one, two)]
        assert (files[0].casefold() == files[1].casefold()) == same


@given(whole_requests)
def test_the_printed_key_is_the_session(request_: SessionRequest) -> None:
    key = key_of(request_)
    text = format_agent_key(key)
    assert parse_agent_key(text) == key
    again = SessionRequest(
        request_.agent_id, request_.channel, request_.scope, key.session
    )
    assert key_of(again) == key


@given(whole_requests)
def test_a_person_is_known_by_key_where_the_scope_names_one(
    request_: SessionRequest,
) -> None:
    assert request_.scope is not None
    named = "peer" in NAMED[SessionScope(request_.scope)]
    assert key_of(request_).user == (request_.peer if named else "")


@pytest.mark.parametrize("printed", PRINTED)
def test_the_documents_keys_are_the_sessions_of_their_parts(printed: str) -> None:
    _, agent, _, channel, _, scope, scope_id = printed.split(":")
    request = SessionRequest(agent, channel, scope, scope_id)
    assert format_agent_key(key_of(request)) == printed
    assert key_of(request) == parse_agent_key(printed)
    folder, file = f"{agent}/{channel}", f"{scope}_{scope_id}.jsonl"
    assert str(session_path(key_of(request))) == f"{folder}/{file}"


@given(whole_requests, scopes)
def test_a_request_without_a_scope_takes_the_configured_one(
    request_: SessionRequest, scope: SessionScope
) -> None:
    unscoped = replace(request_, scope=None)
    assert unscoped.key(scope) == replace(request_, scope=scope).key("task")


@given(whole_requests, values)
def test_an_id_made_elsewhere_counts_alone(request_: SessionRequest, name: str) -> None:
    assume(request_.scope is not SessionScope.MAIN)
    given_id = replace(request_, scope_id=name)
    bare = SessionRequest(request_.agent_id, request_.channel, request_.scope, name)
    assert key_of(given_id) == key_of(bare)
    assert key_of(given_id).session == name


def test_main_is_one_session_of_its_agent_whoever_talks() -> None:
    keys = {
        key_of(SessionRequest("a", channel, "main", peer=peer, chat=peer))
        for channel in (None, "discord", "feishu")
        for peer in (None, "u1", "u2")
    }
    assert keys == {SessionKey("a", "", "default:main", "main")}


def test_members_of_a_group_share_no_session_of_theirs() -> None:
    for scope in ("per_peer", "per_channel_peer", "per_account_channel"):
        one, two = (
            SessionRequest("a", "c", scope, account="x", chat="group", peer=peer)
            for peer in ("u1", "u2")
        )
        assert key_of(one) != key_of(two)


def test_accounts_of_one_person_share_a_session_where_the_scope_says_so() -> None:
    for scope, shared in (("per_peer", True), ("per_account_channel", False)):
        keys = {
            key_of(SessionRequest("a", "c", scope, account=account, peer="u"))
            for account in ("bot1", "bot2")
        }
        assert (len(keys) == 1) == shared


@pytest.mark.parametrize("scope", SessionScope)
def test_names_that_look_alike_have_sessions_and_files_of_their_own(
    scope: SessionScope,
) -> None:
    for field in NAMED[scope]:
        rest: dict[str, Any] = {name: "x" for name in NAMED[scope] if name != field}
        keys = [
            key_of(SessionRequest("a", "c", scope, **rest, **{field: name}))
            for name in ALIKE
        ]
        assert len(set(keys)) == len(ALIKE)
        files = [session_path(key) for key in keys]
        assert len({str(file).casefold() for file in files}) == len(ALIKE)
        assert all(len(file.parts) == 3 and ".." not in file.parts for file in files)


@given(st.text("/%2f_", max_size=6), st.text("/%2f_", max_size=6))
@example("a/b", "c")
@example("a", "b/c")
def test_a_separator_in_a_field_moves_nothing_into_the_next(
    chat: str, peer: str
) -> None:
    assume(peer)
    request = SessionRequest("a", "c", "per_channel_peer", chat=chat, peer=peer)
    found, named = key_of(request).session.split("/")
    assert (found.count("/"), named.count("/")) == (0, 0)
    assert key_of(request).user == peer


@pytest.mark.parametrize("bad", ["\0", "a\0b", "\ud800", "x" * 513])
def test_a_name_that_no_backend_can_hold_is_refused(bad: Any) -> None:
    for scope in SessionScope:
        for field in NAMED[scope]:
            given_: dict[str, Any] = {**dict.fromkeys(NAMED[scope], "x"), field: bad}
            with pytest.raises(InvalidValueError, match=field):
                key_of(SessionRequest("a", "c", scope, **given_))
    for request in (
        SessionRequest(bad, "c", "task", "t"),
        SessionRequest("a", bad, "task", "t"),
        SessionRequest("a", "c", "task", bad),
    ):
        with pytest.raises(InvalidValueError, match=r"agent|channel|scope_id"):
            key_of(request)


@pytest.mark.parametrize("empty", [None, ""])
def test_a_missing_field_is_refused_and_a_missing_chat_is_none(
    empty: str | None,
) -> None:
    for scope in SessionScope:
        for field in NAMED[scope]:
            given_: dict[str, Any] = {**dict.fromkeys(NAMED[scope], "x"), field: empty}
            request = SessionRequest(empty, empty, scope, **given_)
            if field == "chat":
                assert key_of(request).session.split("/")[-2] == ""
                assert key_of(request).app == "default"
                continue
            with pytest.raises(InvalidValueError, match=field):
                key_of(request)
