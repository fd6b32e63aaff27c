"""Listings: the files of the base directory, and the head of each."""

# Paths are strings here: `Path` costs more than the calls.
# ruff: noqa: PTH123

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from heapq import nsmallest
from typing import Final
from urllib.parse import unquote_to_bytes

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.errors import SchemaVersionError, SessionDamagedError
from raf_session.expiry import ExpiryRule
from raf_session.journal import Listed, Order, Page
from raf_session.journals import _checks
from raf_session.journals._jsonl_batches import parse
from raf_session.journals._jsonl_catalog import Seen, read_catalog, write_catalog
from raf_session.journals._jsonl_files import Busy
from raf_session.journals._jsonl_folder import OWN_FOLDER, Folder
from raf_session.journals._jsonl_locks import Mutex
from raf_session.journals._jsonl_sidecars import read_sidecar
from raf_session.journals._jsonl_slots import hold
from raf_session.key_paths import SessionScope, agent_key, safe_component, session_path
from raf_session.keys import SessionKey
from raf_session.options import Query

__all__ = ("Listing", "has_expired")

_MAX_HEADS: Final = 100_000
"""As many heads are kept."""
_SETTLED_NS: Final = 100_000_000
"""A file that changed so short ago may change again at the same time stamp."""
_NEWS: Final = 100
"""The catalog is written when it lacks so many heads."""
_TAIL_BYTES: Final = 4096
"""A sidecar so far behind is written anew by who reads what is missing in it."""
_FIRST_BYTES: Final = 64 * 1024
_AGENT: Final = re.compile(f"({'|'.join(SessionScope)})_(.+)")


class Listing:
    """Finds sessions without reading their entries.

    Args:
        folder: the base directory.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._path = f"{folder.root}/{OWN_FOLDER}/catalog.json"
        self._heads: dict[str, Seen] | None = None
        self._news = 0
        self._mutex = Mutex()

    # Heads -----------------------------------------------------------------------

    def sessions(self, app: str | None = None) -> list[Seen]:
        """Return the sessions that have a file: of an app, or all."""
        with self._mutex:
            kept = self._heads
            if kept is None:
                kept = self._heads = read_catalog(self._path, self._folder.root)
        seen: dict[str, Seen] = {}
        fleeting: list[Seen] = []
        news = 0
        for path, status in self._files(app):
            known = kept.get(path)
            if known is not None and known[:3] == (
                status.st_ino,
                status.st_size,
                status.st_mtime_ns,
            ):
                seen[path] = known
                continue
            settled = time.time_ns() - status.st_mtime_ns > _SETTLED_NS
            head = self._head(path, status) if status.st_size else None
            if head is None:
                continue
            news += 1
            if settled and len(seen) < _MAX_HEADS:
                seen[path] = Seen.of(status, head)
            else:
                fleeting.append(Seen.of(status, head))
        with self._mutex:
            self._heads = seen if app is None else kept | seen
            self._news += news
        return [*seen.values(), *fleeting]

    def _files(self, app: str | None) -> Iterator[tuple[str, os.stat_result]]:
        """Walk over the files of sessions: of an app, or all."""
        root = self._folder.root
        if app is not None:
            folders = [f"{root}/{safe_component(app)}"]
        else:
            with os.scandir(root) as found:
                names = [entry.name for entry in found if entry.is_dir()]
            folders = [f"{root}/{name}" for name in names if name != OWN_FOLDER]
        while folders:
            # What has gone meanwhile is passed over.
            with suppress(FileNotFoundError), os.scandir(folders.pop()) as found:
                for entry in found:
                    if entry.path.endswith(".jsonl"):
                        with suppress(FileNotFoundError):
                            yield entry.path, entry.stat()
                    elif "." not in entry.name and entry.is_dir():
                        folders.append(entry.path)

    def _head(self, path: str, status: os.stat_result) -> SessionHead | None:
        sidecar = read_sidecar(path)
        if (
            sidecar is not None
            and sidecar.end == status.st_size
            and sidecar.identity[:2] == (status.st_dev, status.st_ino)
        ):
            return sidecar.view.head
        key = _key_of(self._folder.root, path)
        if key is None:
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

    def close(self) -> None:
        """Write the catalog, where many sessions were made."""
        with suppress(OSError):  # a cache
            if self._folder.made >= _NEWS:
                self.sessions()
        self.save()

    def save(self) -> None:
        """Write the catalog, where it lacks much."""
        with self._mutex:
            heads, news = self._heads, self._news
            if heads is None or news < _NEWS:
                return
            self._news = 0
        # A catalog is only a cache: whoever misses it reads sidecars.
        with (
            suppress(OSError, Busy),
            self._folder.locks.hold("base", self._path, patient=False),
        ):
            write_catalog(self._path, self._folder.root, heads)

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
        found = self.sessions(query.app)
        self.save()
        if query != _ANY:
            found = [seen for seen in found if _matches(seen, query)]
        rule = self._folder.rules.sessions
        if rule.enabled:
            found = [seen for seen in found if not has_expired(seen, rule, now)]
        ranks = [
            ((0, seen[3][1]) if order == "key" else seen[3], i)
            for i, seen in enumerate(found)
        ]
        if after is not None:
            last = (-after[0], tuple(after[1]))
            ranks = [rank for rank in ranks if rank[0] > last]
        page = [found[i].head for _, i in nsmallest(limit + 1, ranks)]
        more = len(page) > limit
        del page[limit:]
        cursor = _checks.write_cursor(order, page[-1]) if more else None
        listed = map(self._with_state, page) if state else map(Listed, page)
        return Page(tuple(x for x in listed if x is not None), cursor)

    def _with_state(self, head: SessionHead) -> Listed | None:
        with hold(self._folder, head.key, patient=True) as slot:
            log = slot.find()
            if log is None or log.view.head is None:
                return None  # it has gone meanwhile
            pairs = sorted(log.view.session.items())
            state = self._folder.values.decode(head.key, pairs)
            return Listed(log.view.head, state)


_ANY: Final = Query()


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


def _key_of(root: str, path: str) -> SessionKey | None:
    """Return the key whose file this is; `None`: no key's."""
    name = path.removeprefix(f"{root}/")
    for make in (_key_inside, _key_in_name):
        try:
            key = make(path, name)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            continue
        if str(session_path(key)) == name:
            return key
    return None


def _key_inside(path: str, _: str) -> SessionKey:
    with open(path, "rb") as file:
        fields = parse(file.readline(_FIRST_BYTES))
    return SessionKey.parse(fields["raf"]["key"])


def _key_in_name(_: str, name: str) -> SessionKey:
    *folders, stem = name.removesuffix(".jsonl").split("/")
    app, user, *scope = map(_decoded, folders)
    agents = _AGENT.fullmatch(stem)
    if agents is not None and not scope:
        return agent_key(
            agents[1], agent=app, channel=user, scope_id=_decoded(agents[2])
        )
    return SessionKey(app, user, "".join(scope), _decoded(stem))


def _decoded(name: str) -> str:
    return "" if name == "_" else unquote_to_bytes(name).decode()
