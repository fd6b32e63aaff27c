"""Listings: the files of the base directory, and the head of each."""

# Paths are strings here: `Path` costs more than the calls.
# ruff: noqa: PTH123

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar
from urllib.parse import unquote_to_bytes

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.errors import SchemaVersionError, SessionDamagedError
from raf_session.expiry import ExpiryRule
from raf_session.journal import Listed, Order, Page
from raf_session.journals import _checks
from raf_session.journals._jsonl_batches import parse
from raf_session.journals._jsonl_catalog import Seen, key_of, rank_of
from raf_session.journals._jsonl_folder import Folder
from raf_session.journals._jsonl_sidecars import read_sidecar
from raf_session.journals._jsonl_slots import hold
from raf_session.journals._jsonl_tree import Tree
from raf_session.key_paths import SessionScope, agent_key, session_path
from raf_session.keys import SessionKey
from raf_session.options import Query

__all__ = ("Listing", "has_expired")

_TAIL_BYTES: Final = 4096
"""A sidecar so far behind is written anew by who reads what is missing in it."""
_FIRST_BYTES: Final = 64 * 1024
_HASHED: Final = re.compile("~[0-9a-f]{64}")
"""What a name ends in that was too long; the key cannot be told from it."""
_AGENT: Final = re.compile(f"({'|'.join(SessionScope)})_(.+)")


class Listing:
    """Finds sessions without reading their entries.

    Args:
        folder: the base directory.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._tree = Tree(folder, self._head)

    def sessions(self) -> Iterator[Seen]:
        """Return all sessions that have a file."""
        for branch in self._tree.look():
            yield from branch.active

    def close(self) -> None:
        """Write what is known, where that is much."""
        self._tree.close()

    def _head(self, path: str, status: os.stat_result) -> SessionHead | None:
        name = path.removeprefix(f"{self._folder.root}/")
        sidecar = read_sidecar(path)
        key: SessionKey | None
        if sidecar is not None and _name_of(sidecar.view.key) == name:
            key = sidecar.view.key
            if sidecar.end == status.st_size and sidecar.identity[:2] == (
                status.st_dev,
                status.st_ino,
            ):
                return sidecar.view.head
        else:
            key = _key_of(path, name)
        if key is None:
            if _HASHED.search(name):
                self._folder.report(name, "left out of a listing: no line has its key")
            return None
        try:
            with hold(self._folder, key, patient=True) as slot:
                log = slot.find()
                if log is None:
                    return None
                slot.save(log, least=_TAIL_BYTES)
                return log.view.head
        except (SessionDamagedError, SchemaVersionError) as error:
            self._folder.report(key, f"left out of a listing: {error}")
            return None

    # Pages -----------------------------------------------------------------------

    def scan(
        self,
        query: Query,
        after: tuple[int, SessionKey] | None,
        order: Order,
        limit: int,
        *,
        state: bool,
    ) -> Page:
        """Return a page of sessions."""
        now = self._folder.rules.now()
        rule = self._folder.rules.sessions
        found = self._behind(query.app, after, order)
        self._tree.save()
        if query != _ANY:
            found = (seen for seen in found if _matches(seen, query))
        if rule.enabled:
            found = (seen for seen in found if not has_expired(seen, rule, now))
        page = [seen.head for seen in islice(found, limit + 1)]
        more = len(page) > limit
        del page[limit:]
        cursor = _checks.write_cursor(order, page[-1]) if more else None
        listed = map(self._with_state, page) if state else map(Listed, page)
        return Page(tuple(x for x in listed if x is not None), cursor)

    def _behind(
        self, app: str | None, after: tuple[int, SessionKey] | None, order: Order
    ) -> Iterator[Seen]:
        """Return the sessions behind a cursor, in order."""
        branches = self._tree.look(app)
        if order == "key":
            last = None if after is None else tuple(after[1])
            return _merged([branch.by_key for branch in branches], key_of, last)
        mark = None if after is None else (-after[0], tuple(after[1]))
        return _merged([branch.active for branch in branches], rank_of, mark)

    def _with_state(self, head: SessionHead) -> Listed | None:
        with hold(self._folder, head.key, patient=True) as slot:
            log = slot.find()
            if log is None or log.view.head is None:
                return None  # it has gone meanwhile
            pairs = sorted(log.view.session.items())
            state = self._folder.values.decode(head.key, pairs)
            return Listed(log.view.head, state)


_ANY: Final = Query()
_M = TypeVar("_M", bound=tuple[Any, ...])


def _merged(
    parts: Sequence[Sequence[Seen]], mark: Callable[[Seen], _M], last: _M | None
) -> Iterator[Seen]:
    """Return what comes behind a mark in parts that are in order of their marks."""
    behind = [
        islice(part, 0 if last is None else bisect_right(part, last, key=mark), None)
        for part in parts
    ]
    return behind[0] if len(behind) == 1 else merge(*behind, key=mark)


def has_expired(seen: Seen, rule: ExpiryRule, now: int) -> bool:
    """Tell whether a session has expired; a pinned one never does."""
    return (
        rule.enabled
        and not seen.pinned
        and rule.expired(seen.created_at, -seen.rank[0], now)
    )


def _matches(seen: Seen, query: Query) -> bool:
    active, (app, user, scope, _) = seen.rank
    since, before = query.active_since, query.active_before
    return (
        query.app in {None, app}
        and query.user in {None, user}
        and query.scope in {None, scope}
        and all(f"\0{label}\0" in seen.labels for label in query.labels)
        and (since is None or -active >= to_micros(since))
        and (before is None or -active < to_micros(before))
    )


# Keys ------------------------------------------------------------------------------


def _name_of(key: SessionKey) -> str:
    return str(session_path(key))


def _key_of(path: str, name: str) -> SessionKey | None:
    """Return the key whose file this is; `None`: no key's."""
    for key in (*_keys_inside(path), *_key_in_name(name)):
        if _name_of(key) == name:
            return key
    return None


def _keys_inside(path: str) -> Iterator[SessionKey]:
    """Return the keys that its first lines tell: one, where all is well."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        for line in file.read(_FIRST_BYTES).split(b"\n"):
            with suppress(ValueError, KeyError, TypeError):
                yield SessionKey.parse(parse(line)["raf"]["key"])


def _key_in_name(name: str) -> Iterator[SessionKey]:
    *folders, stem = name.removesuffix(".jsonl").split("/")
    with suppress(ValueError):
        app, user, *scope = map(_decoded, folders)
        agents = _AGENT.fullmatch(stem)
        if agents is not None and not scope:
            yield agent_key(
                agents[1], agent=app, channel=user, scope_id=_decoded(agents[2])
            )
        else:
            yield SessionKey(app, user, "".join(scope), _decoded(stem))


def _decoded(name: str) -> str:
    return "" if name == "_" else unquote_to_bytes(name).decode()
