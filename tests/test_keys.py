"""Keys: one text and one file each, whatever people put into them."""

from __future__ import annotations

import copy
import pickle
import re
import unicodedata
from itertools import combinations, product
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typing_extensions import override

from raf_session.errors import InvalidValueError
from raf_session.key_paths import (
    AgentParts,
    SessionScope,
    agent_key,
    agent_parts,
    format_agent_key,
    join_scope_id,
    parse_agent_key,
    safe_component,
    session_path,
)
from raf_session.keys import MAX_NAME_BYTES, ScopeKey, SessionKey, check_name

PRINTED = (
    "agent:main:channel:discord:scope:per_peer:user12345",
    "agent:assistant:channel:feishu:scope:per_channel_peer:oc_xxx_user123",
)
HOSTILE = (
    *("../../x", "/etc/x", "..", ".", "...", "a/b", "a\\b", "C:x", "C%3ax", "a\nb"),
    *("%2e%2e%2f", "%", "%25", "%2f", "%5f", "_", "__", "\uff5e", "~", "a%", "a", "A"),
    *(
        "a_b",
        "a:b",
        "a b",
        "A_b",
        "a_b ",
        " a_b",
        "a_b.",
        "a-b",
        "\u00e9",
        "e\u0301",
        "É",
    ),
    *("CON", "con", "Con", "con.txt", "NUL", "nul", "com1", "COM1.jsonl", "lpt9"),
    *(
        "com¹",
        "aux",
        "prn",
        "*",
        "?",
        "[x]",
        "-rf",
        "\u017f",
        "s",
        "\u212a",
        "K",
        "k",
        "ß",
    ),
    *(
        "ss",
        "\u0131",
        "i",
        "İ",
        "\ufb01",
        "fi",
        "x" * 300,
        "x" * 301,
        "X" * 300,
        "é" * 256,
    ),
    *("x" * 512, "x" * 200, "x" * 201, "main", "default", "main_main", "task_1"),
    *("task%5f1", "thread_x", "per_peer_user12345", "per_peer", "discord:per_peer"),
    *("default:main", "x.jsonl", ".jsonl", "oc/x", "/", "//", "🙂", "\u202e", "\x7f"),
)
BAD = ("\0", "a\0b", "\ud800", "a\udfff", "x" * 513, "é" * 257, "x" * 512 + "\ud800")
DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9])(\..*)?", re.IGNORECASE)

# Values ------------------------------------------------------------------------

plain_names = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1
).filter(lambda text: len(text.encode()) <= MAX_NAME_BYTES)
tricky_names = st.text("aAbé\u0301%/:_.2f5~ \\", min_size=1, max_size=6)
names = st.one_of(st.sampled_from(HOSTILE), tricky_names, plain_names)
parts = st.one_of(st.just(""), names)
scopes = st.sampled_from(SessionScope)
FIELDS = ("account", "chat", "peer", "thread", "task")
NAMED = {
    SessionScope.MAIN: set[str](),
    SessionScope.PER_PEER: {"peer"},
    SessionScope.PER_CHANNEL_PEER: {"chat", "peer"},
    SessionScope.PER_ACCOUNT_CHANNEL: {"account", "chat", "peer"},
    SessionScope.THREAD: {"chat", "thread"},
    SessionScope.TASK: {"task"},
}
short = st.text("aA%/:_é", min_size=1, max_size=5)
fields = st.fixed_dictionaries(dict.fromkeys(FIELDS, short))


def opaque_key(scope: SessionScope, agent: str, channel: str, name: str) -> SessionKey:
    scope_id = "main" if scope is SessionScope.MAIN else name
    return agent_key(scope, agent=agent, channel=channel, scope_id=scope_id)


channels = names.filter(lambda text: len(text.encode()) <= 490)
agent_keys = st.builds(opaque_key, scopes, names, channels, names)
loose_keys = st.builds(SessionKey, parts, parts, parts, names)
near_keys = st.builds(
    SessionKey,
    st.sampled_from(["", "a", "default"]),
    st.sampled_from(["", "a", "discord", "default"]),
    st.sampled_from(["", "x:per_peer", "default:main", "discord:per_peer", ":task"]),
    st.sampled_from(["main", "main_main", "a", "per_peer_a", "task_1", "x.jsonl"]),
)
keys = st.one_of(agent_keys, loose_keys, near_keys)


def folded(path: PurePosixPath) -> set[str]:
    """Return what file systems may make of a path."""
    texts = {str(path)}
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        texts |= {unicodedata.normalize(form, text) for text in texts}
    return {text.casefold() for text in texts} | {text.upper() for text in texts}


def hostile_keys() -> set[SessionKey]:
    """Return every hostile name in every place, in both faces."""
    found = {SessionKey.raf(name) for name in HOSTILE}
    found |= {SessionKey("a", name, "", "s") for name in HOSTILE}
    found |= {SessionKey(name, "u", "", "s") for name in HOSTILE}
    found |= {SessionKey("a", "u", name, "s") for name in HOSTILE}
    found |= {SessionKey("main", "discord", "", name) for name in HOSTILE}
    for scope, name in product(SessionScope, HOSTILE):
        found.add(opaque_key(scope, "main", "discord", name))
        found.add(opaque_key(scope, name, "discord", "u"))
        if len(name.encode()) <= 490:
            found.add(opaque_key(scope, "main", name, "u"))
    return found


# Names -------------------------------------------------------------------------


@given(names)
def test_a_name_is_returned_as_it_is(name: str) -> None:
    assert check_name(name, "id") == name


@given(st.text(st.characters(), max_size=600))
@example("é" * 256)
@example("é" * 257)
@example("🙂" * 128)
@example("🙂" * 129)
def test_a_name_is_refused_exactly_when_it_breaks_a_rule(text: str) -> None:
    try:
        fine = 1 <= len(text.encode()) <= MAX_NAME_BYTES and "\0" not in text
    except UnicodeEncodeError:
        fine = False
    if fine:
        assert check_name(text, "id") == text
    else:
        with pytest.raises(InvalidValueError) as caught:
            check_name(text, "the id")
        assert caught.value.path == "the id"


def test_a_subclass_becomes_a_plain_string() -> None:
    class Name(str):
        __slots__ = ()

        @override
        def __str__(self) -> str:
            return "another"

    key = SessionKey(Name("a"), Name(""), Name("c"), Name("d"))
    assert tuple(key) == ("a", "", "c", "d")
    assert {type(part) for part in key} == {str}
    scope = ScopeKey(Name("a"), Name("b"))
    assert (type(scope.app), type(scope.user)) == (str, str)
    assert type(join_scope_id("task", task=Name("t"))) is str


@pytest.mark.parametrize("bad", [*BAD, b"x", 1, 0, False, ["x"]])
def test_bad_parts_are_refused_everywhere(bad: str) -> None:
    for field in ("app", "user", "scope", "session"):
        with pytest.raises(InvalidValueError):
            SessionKey(**{"session": "s", field: bad})
        with pytest.raises(InvalidValueError):
            SessionKey.raf("s")._replace(**{field: bad})
    for key in ({"app": bad}, {"app": "a", "user": bad}):
        with pytest.raises(InvalidValueError):
            ScopeKey(**key)
    for parse in (SessionKey.parse, ScopeKey.parse, parse_agent_key):
        with pytest.raises(InvalidValueError):
            parse(bad)
    for field in ("agent", "channel", "peer", "scope_id"):
        with pytest.raises(InvalidValueError):
            agent_key("per_peer", **{"peer": "p", field: bad})
    for field in FIELDS:
        scope = next(scope for scope in SessionScope if field in NAMED[scope])
        with pytest.raises(InvalidValueError):
            join_scope_id(scope, **{**dict.fromkeys(FIELDS, "x"), field: bad})


def test_none_is_no_part_of_a_session_key() -> None:
    with pytest.raises(InvalidValueError):
        SessionKey(None, session="s")  # type: ignore[arg-type]


@pytest.mark.parametrize("app", ["", "a"])
@pytest.mark.parametrize("user", ["", "u"])
def test_a_key_without_a_session_is_refused(app: str, user: str) -> None:
    with pytest.raises(InvalidValueError, match="session"):
        SessionKey(app, user)
    with pytest.raises(ValueError, match="session"):
        SessionKey.raf("")


# Session and scope keys --------------------------------------------------------


@given(keys)
def test_a_key_survives_its_text_its_pickle_and_its_copies(key: SessionKey) -> None:
    assert SessionKey.parse(str(key)) == key
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(key, protocol))  # noqa: S301
        assert (type(again), again) == (SessionKey, key)
    for again in (copy.copy(key), copy.deepcopy(key), key._replace()):
        assert (type(again), again, hash(again)) == (SessionKey, key, hash(key))


@given(st.lists(keys, unique=True, min_size=2))
def test_no_two_keys_share_a_text(found: list[SessionKey]) -> None:
    assert len({str(key) for key in found}) == len(found)


@given(st.text("aé%/25fF", max_size=12))
@example("")
@example("/")
@example("/a")
@example("a/")
@example("a//b")
@example("a/b/c/d/e")
@example("%2F")
@example("%41")
def test_a_text_is_refused_or_is_what_its_key_prints(text: str) -> None:
    for parse in (SessionKey.parse, ScopeKey.parse):
        try:
            key = parse(text)
        except InvalidValueError:
            continue
        assert str(key) == text


def test_the_text_form() -> None:
    assert str(SessionKey.raf("s1")) == "s1"
    assert str(SessionKey("app", "u/1", "", "100%")) == "app/u%2f1//100%25"
    assert str(SessionKey(user="u", session="s")) == "u//s"
    assert f"{SessionKey('a', 'b', 'c', 'd')}" == "a/b/c/d"
    for text in ("", "/s", "//s", "a/", "a/b/c/d/e", "a%", "%2F", "/a/b/c"):
        with pytest.raises(InvalidValueError):
            SessionKey.parse(text)


@given(keys, keys)
@example(SessionKey.raf("\uffff"), SessionKey.raf("\U00010000"))
@example(SessionKey.raf("a "), SessionKey.raf("a"))
def test_keys_are_ordered_by_their_bytes(one: SessionKey, two: SessionKey) -> None:
    first = [part.encode() for part in one]
    second = [part.encode() for part in two]
    assert (one < two, one == two, one > two) == (
        first < second,
        first == second,
        first > second,
    )


def test_a_key_cannot_be_changed() -> None:
    key, scope = SessionKey.raf("s"), ScopeKey("a")
    for changed in (key, scope):
        with pytest.raises(AttributeError):
            changed.app = "b"  # type: ignore[misc]
        with pytest.raises((AttributeError, TypeError)):
            changed.other = "b"  # type: ignore[union-attr]


scope_keys = st.builds(ScopeKey, parts, st.one_of(st.none(), parts))


@given(scope_keys)
def test_a_scope_key_survives_its_text_its_pickle_and_copies(key: ScopeKey) -> None:
    assert ScopeKey.parse(str(key)) == key
    assert pickle.loads(pickle.dumps(key)) == key  # noqa: S301
    assert copy.deepcopy(key) == copy.copy(key) == key
    assert hash(copy.copy(key)) == hash(key)


@given(st.lists(scope_keys, unique=True, min_size=2))
def test_scope_keys_have_texts_and_an_order(found: list[ScopeKey]) -> None:
    assert len({str(key) for key in found}) == len(found)
    assert sorted(found) == sorted(
        found,
        key=lambda key: (
            key.app.encode(),
            b"" if key.user is None else b"\1" + key.user.encode(),
        ),
    )
    assert ScopeKey("a") != ScopeKey("a", "")
    assert ScopeKey("a") < ScopeKey("a", "") <= ScopeKey("a", "b")


# TPCLAW ------------------------------------------------------------------------


@pytest.mark.parametrize("text", PRINTED)
def test_the_documents_keys_parse_and_print_unchanged(text: str) -> None:
    assert format_agent_key(parse_agent_key(text)) == text


def test_the_documents_keys_mean_what_the_document_says() -> None:
    first, second = map(parse_agent_key, PRINTED)
    assert first == SessionKey("main", "user12345", "discord:per_peer", "user12345")
    assert first == agent_key(
        "per_peer", agent="main", channel="discord", peer="user12345"
    )
    assert agent_parts(second) == AgentParts(
        "assistant", "feishu", SessionScope.PER_CHANNEL_PEER, "oc_xxx_user123"
    )
    assert second.user == ""
    assert [str(session_path(key)) for key in (first, second)] == [
        "main/discord/per_peer_user12345.jsonl",
        "assistant/feishu/per_channel_peer_oc_xxx_user123.jsonl",
    ]


@given(scopes, fields, st.sampled_from(FIELDS), short)
def test_an_id_changes_exactly_with_the_fields_that_its_scope_names(
    scope: SessionScope, given_fields: dict[str, str], field: str, value: str
) -> None:
    changed = {**given_fields, field: value}
    differs = join_scope_id(scope, **changed) != join_scope_id(scope, **given_fields)
    assert differs == (field in NAMED[scope] and value != given_fields[field])


@given(scopes, fields, fields)
def test_ids_are_equal_exactly_when_the_named_fields_are(
    scope: SessionScope, one: dict[str, str], two: dict[str, str]
) -> None:
    same = all(one[field] == two[field] for field in NAMED[scope])
    assert (join_scope_id(scope, **one) == join_scope_id(scope, **two)) == same


@given(scopes, fields, short, short)
def test_a_built_key_and_its_printed_form_are_one_session_key(
    scope: SessionScope, given_fields: dict[str, str], agent: str, channel: str
) -> None:
    key = agent_key(scope, agent=agent, channel=channel, **given_fields)
    assert parse_agent_key(format_agent_key(key)) == key
    assert key.user == (given_fields["peer"] if "peer" in NAMED[scope] else "")
    assert agent_parts(key) == (
        agent,
        "default" if scope is SessionScope.MAIN else channel,
        scope,
        join_scope_id(scope, **given_fields),
    )


@given(agent_keys)
@example(agent_key("task", agent="a\nb", channel="\n", scope_id="\na:b\n"))
def test_an_opaque_id_prints_and_parses(key: SessionKey) -> None:
    text = format_agent_key(key)
    assert parse_agent_key(text) == key
    assert text.endswith(f":{key.session}")


@given(st.lists(agent_keys, unique=True, min_size=2))
def test_no_two_agent_keys_share_a_text(found: list[SessionKey]) -> None:
    assert len({format_agent_key(key) for key in found}) == len(found)


@given(
    st.one_of(
        st.text(max_size=20),
        st.builds(
            "agent:{}:channel:{}:scope:{}:{}".format,
            st.text("a%:325", max_size=6),
            st.one_of(st.just("default"), st.text("a%:325", max_size=6)),
            st.one_of(scopes, st.just("main"), st.just("other")),
            st.one_of(st.just("main"), st.text(max_size=6)),
        ),
    )
)
@example("agent:a:channel:x:scope:main:main")
@example("agent:a:channel:default:scope:main:other")
@example("agent:a:channel:x:scope:task:")
@example("agent:a:channel:x:scope:task:\n\n")
@example("agent:a%3A:channel:x:scope:task:t")
@example("agent:%:channel:x:scope:task:t")
def test_an_agent_text_is_refused_or_is_what_its_key_prints(text: str) -> None:
    try:
        key = parse_agent_key(text)
    except InvalidValueError:
        return
    assert format_agent_key(key) == text


def test_main_is_one_session_of_its_agent() -> None:
    key = agent_key("main", agent="a", channel="discord", peer="p", task="t")
    assert key == agent_key(SessionScope.MAIN, agent="a", scope_id="main")
    assert format_agent_key(key) == "agent:a:channel:default:scope:main:main"
    with pytest.raises(InvalidValueError):
        agent_key("main", scope_id="other")
    for text in (
        "agent:a:channel:discord:scope:main:main",
        "agent:a:channel:default:scope:main:other",
    ):
        with pytest.raises(InvalidValueError):
            parse_agent_key(text)


@pytest.mark.parametrize("empty", [None, ""])
def test_missing_fields(empty: str | None) -> None:
    for scope, names_of_scope in NAMED.items():
        for field in names_of_scope - {"chat"}:
            rest = {name: "x" for name in names_of_scope if name != field}
            with pytest.raises(InvalidValueError, match=field):
                join_scope_id(scope, **rest, **{field: empty})
    assert join_scope_id("per_channel_peer", chat=empty, peer="p") == "/p"
    assert join_scope_id("thread", chat=empty, thread="t") == "/t"
    key = agent_key("task", agent=empty, channel=empty, task="t")
    assert key == SessionKey("default", "", "default:task", "t")
    with pytest.raises(ValueError, match="scope"):
        agent_key("task", scope_id="")


def test_an_unknown_scope_is_refused() -> None:
    for make in (agent_key, join_scope_id):
        with pytest.raises(ValueError, match="SessionScope"):
            make("per_planet", peer="p")


@pytest.mark.parametrize(
    ("scope", "scope_id", "user"),
    [
        ("per_peer", "p", "p"),
        ("per_peer", "a%2fb", "a/b"),
        ("per_peer", "100%", "100%"),
        ("per_peer", "%252f", "%2f"),
        ("per_peer", "a/b", ""),
        ("per_channel_peer", "c/p", "p"),
        ("per_channel_peer", "/p", "p"),
        ("per_channel_peer", "c/", ""),
        ("per_channel_peer", "c_p", ""),
        ("per_account_channel", "a/c/p", "p"),
        ("per_account_channel", "c/p", ""),
        ("thread", "c/t", ""),
        ("task", "t", ""),
    ],
)
def test_the_user_follows_from_scope_and_id(
    scope: str, scope_id: str, user: str
) -> None:
    assert agent_key(scope, scope_id=scope_id).user == user


def test_a_given_id_counts_alone() -> None:
    assert agent_key("per_peer", scope_id="x", peer="y").session == "x"


@pytest.mark.parametrize(
    "key",
    [
        SessionKey.raf("agent:a:channel:c:scope:task:t"),
        SessionKey("a", "p", "c", "p"),
        SessionKey("a", "other", "c:per_peer", "p"),
        SessionKey("a", "", "c:per_peer", "p"),
        SessionKey("", "p", "c:per_peer", "p"),
        SessionKey("a", "p", ":per_peer", "p"),
        SessionKey("a", "p", "per_peer", "p"),
        SessionKey("a", "", "c:main", "main"),
        SessionKey("a", "", "default:main", "x"),
        SessionKey("a", "", "c:TASK", "t"),
    ],
)
def test_keys_that_no_agent_has(key: SessionKey) -> None:
    assert agent_parts(key) is None
    with pytest.raises(InvalidValueError):
        format_agent_key(key)


def test_channel_and_scope_share_one_name() -> None:
    assert agent_key("task", channel="c" * 507, task="t").scope.endswith(":task")
    with pytest.raises(InvalidValueError, match="channel"):
        agent_key("task", channel="c" * 508, task="t")
    with pytest.raises(InvalidValueError, match="scope_id"):
        agent_key("thread", chat="c" * 300, thread="t" * 300)


# Files -------------------------------------------------------------------------


def assert_safe(path: PurePosixPath, root: Path) -> None:
    assert not path.is_absolute()
    assert (root / path).resolve().is_relative_to(root)
    assert len(path.parts) in {3, 4}
    assert path.name.endswith(".jsonl")
    assert str(path) == "/".join(path.parts)
    for part in (*path.parts[:-1], path.name.removesuffix(".jsonl")):
        assert re.fullmatch(r"[a-z0-9_@+%~-]{1,200}", part)
        assert not DEVICE.fullmatch(part)
    assert folded(path) == {str(path), str(path).upper()}


@given(keys)
def test_a_file_is_inside_the_base_and_safe_everywhere(key: SessionKey) -> None:
    assert_safe(session_path(key), Path("/base/sessions"))


@given(st.lists(keys, unique=True, min_size=2))
def test_no_two_keys_share_a_file(found: list[SessionKey]) -> None:
    paths = [folded(session_path(key)) for key in found]
    for one, two in combinations(paths, 2):
        assert not one & two


@given(keys, keys)
def test_no_file_is_the_folder_of_another(one: SessionKey, two: SessionKey) -> None:
    assert session_path(one) not in session_path(two).parents


@given(names, names)
@example("_", "")
@example("con", "%63on")
@example("x" * 201, "x" * 202)
def test_components_are_injective(one: str, two: str) -> None:
    assert (safe_component(one) == safe_component(two)) == (one == two)


def test_hostile_keys_have_safe_files_of_their_own(tmp_path: Path) -> None:
    found = hostile_keys()
    root = tmp_path.resolve()
    paths = {key: session_path(key) for key in found}
    for path in paths.values():
        assert_safe(path, root)
    assert len({str(path).casefold() for path in paths.values()}) == len(found)
    assert len({str(key) for key in found}) == len(found)


def test_hostile_ids_keep_their_own_marker_on_disk(tmp_path: Path) -> None:
    files = {name: tmp_path / session_path(SessionKey.raf(name)) for name in HOSTILE}
    for name, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name, encoding="utf-8", newline="")
    for name, file in files.items():
        assert file.read_bytes() == name.encode()
    assert len(list(tmp_path.rglob("*.jsonl"))) == len(HOSTILE)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (SessionKey.raf("s1"), "_/_/s1.jsonl"),
        (SessionKey.raf("_"), "_/_/%5f.jsonl"),
        (SessionKey("_", "", "", "s"), "%5f/_/s.jsonl"),
        (SessionKey("app", "bob@x.de", "", "S 1"), "app/bob@x%2ede/%53%201.jsonl"),
        (SessionKey("a", "u", "x", "s"), "a/u/x/s.jsonl"),
        (SessionKey("a", "con", "", "nul"), "a/%63on/%6eul.jsonl"),
        (SessionKey("a", "u", "", "thread_9"), "a/u/thread%5f9.jsonl"),
        (SessionKey("a", "u", "", "threads_9"), "a/u/threads_9.jsonl"),
        (SessionKey("a", "u", "", "é"), "a/u/%c3%a9.jsonl"),
        (
            agent_key("thread", chat="c", thread="_"),
            "default/default/thread_c%2f_.jsonl",
        ),
        (agent_key("main"), "default/default/main_main.jsonl"),
    ],
)
def test_file_names(key: SessionKey, path: str) -> None:
    assert session_path(key) == PurePosixPath(path)


def test_a_long_name_keeps_a_readable_head() -> None:
    assert safe_component("x" * 200) == "x" * 200
    assert re.fullmatch("x{135}~[0-9a-f]{64}", safe_component("x" * 201))
    assert re.fullmatch("x(%c3%a9){22}~[0-9a-f]{64}", safe_component("x" + "é" * 99))
    long = session_path(agent_key("task", task="t" * 500)).name
    assert re.fullmatch(r"task_t{130}~[0-9a-f]{64}\.jsonl", long)


def test_nobody_can_take_the_name_that_a_long_one_was_given() -> None:
    for name in ("x" * 201, "é" * 100):
        short = safe_component(name)
        assert safe_component(short) != short
