"""What is known of a session without its entries, and how lines change it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from raf_session.changes import RequestDelta, SessionStatus
from raf_session.clock import UNIX_EPOCH, from_micros, to_micros
from raf_session.encoding import BODY_VERSION
from raf_session.entries import Counts, SessionHead
from raf_session.errors import SchemaVersionError
from raf_session.journals._jsonl_files import BACKEND
from raf_session.journals._jsonl_index import Index
from raf_session.journals._jsonl_lines import (
    Line,
    Place,
    check_kinds,
    foreign_place,
    is_entry,
    place_of,
)
from raf_session.json_text import dump_json
from raf_session.key_paths import agent_parts, format_agent_key
from raf_session.keys import SessionKey
from raf_session.raf_json import format_time

__all__ = (
    "Pending",
    "View",
    "from_hex",
    "head_numbers",
    "meta_fields",
    "request_fields",
    "to_hex",
)


class Pending(NamedTuple):
    """A change of scoped state that stands in the session's record."""

    scope: str
    """``user`` or ``app``."""
    epoch: str
    number: int
    at: int
    set: Mapping[str, Any]
    deleted: list[str]


@dataclass(slots=True)
class View:
    """A session as its lines tell so far, entries left out.

    Attributes:
        key: the session.
        head: its head; `None` before the first line.
        tail_at: when the last active entry was stored.
        session: its state, as texts by name.
        providers: its provider states, as texts by name.
        digests: those of its last request.
        pending: changes of scoped state that may not have reached their scope.
        marred: whether counts may be wrong, because of damage.
    """

    key: SessionKey
    head: SessionHead | None = None
    tail_at: int = 0
    session: dict[str, str] = field(default_factory=dict[str, str])
    providers: dict[str, str] = field(default_factory=dict[str, str])
    digests: bytes = b""
    pending: list[Pending] = field(default_factory=list[Pending])
    marred: bool = False

    def apply(self, line: Line, index: Index | None) -> None:
        """Take a line into account.

        Raises:
            SchemaVersionError: a newer library wrote it.
            Exception: it is no line of a session; `KeyError`, `ValueError`, ….
        """
        ours = line.ours
        if is_entry(ours):
            place = self._entry(line, ours)
            if index is not None:
                index.add(place)
        else:
            self._other(line, ours, index)
        numbers = ours.get("head")
        if numbers is not None:
            self._number(line, numbers)

    def _entry(self, line: Line, ours: Mapping[str, Any]) -> Place:
        head = self.head or _first_head(self.key, line)
        if ours:
            place = place_of(line, ours)
            last_seq = max(head.last_seq, place.seq)
            self.head = head._replace(last_seq=last_seq)
        else:
            place = foreign_place(line, head.last_seq + 1, self.tail_at)
            moment = from_micros(place.stored_at)
            self.head = head._replace(
                revision=head.revision + 1,
                created_at=head.created_at if head.revision else moment,
                updated_at=max(head.updated_at, moment),
                last_active_at=max(head.last_active_at, moment),
                last_seq=place.seq,
                active=head.active.plus(place.counts),
                total=head.total.plus(place.counts),
            )
        self.tail_at = max(self.tail_at, place.stored_at)
        return place

    def _other(self, line: Line, ours: Mapping[str, Any], index: Index | None) -> None:
        kind = ours["kind"]
        if kind == "meta":
            self.head = _described(self.key, self.head, line.fields, ours)
        elif kind == "state":
            self._state(ours)
        elif kind == "request":
            kept = self.digests[: 8 * ours["keep"]]
            self.digests = kept + base64.b64decode(ours["digests"])
            assert self.head is not None  # noqa: S101  (a request is never first)
            self.head = self.head._replace(
                request_n=len(self.digests) // 8,
                request_hash=from_hex(ours["hash"]),
                request_header=from_hex(ours["header"]),
                request_format=ours["format"],
            )
        elif kind == "splice" and index is not None:
            index.archive(ours["removed"], ours["left"])

    def _state(self, ours: Mapping[str, Any]) -> None:
        for name, texts in (("session", self.session), ("providers", self.providers)):
            delta = ours.get(name)
            if delta is not None:
                for key in delta["deleted"]:
                    texts.pop(key, None)
                for key, value in delta["set"].items():
                    texts[key] = dump_json(value)
        for scope in ("user", "app"):
            delta = ours.get(scope)
            if delta is not None:
                self.pending.append(
                    Pending(
                        scope,
                        delta["epoch"],
                        delta["number"],
                        delta["at"],
                        delta["set"],
                        delta["deleted"],
                    )
                )

    def _number(self, line: Line, numbers: list[int]) -> None:
        revision, updated, active, last_seq, spliced_at, tail_at, *counts = numbers
        check_kinds(int, numbers)
        head = self.head or _first_head(self.key, line)
        self.head = SessionHead(
            head.key,
            head.incarnation,
            revision,
            head.created_at,
            from_micros(updated),
            from_micros(active),
            head.pinned,
            last_seq,
            spliced_at,
            Counts(*counts[:4]),
            Counts(*counts[4:]),
            *head[11:],
        )
        self.tail_at = tail_at


def _first_head(key: SessionKey, line: Line) -> SessionHead:
    """Return the head of a session of which no line of ours told one."""
    name = blake2b(dump_json(line.fields).encode(), digest_size=16).hexdigest()
    return SessionHead(
        key=key,
        incarnation=name,
        revision=0,
        created_at=UNIX_EPOCH,
        updated_at=UNIX_EPOCH,
        last_active_at=UNIX_EPOCH,
        pinned=False,
        last_seq=0,
        spliced_at=0,
        active=Counts(),
        total=Counts(),
        title="",
        model="",
        status=SessionStatus.ACTIVE,
        labels=frozenset(),
        session_type="",
        forked_from=None,
        schema=BODY_VERSION,
    )


# Lines ---------------------------------------------------------------------------


def head_numbers(head: SessionHead, tail_at: int) -> list[int]:
    """Return what the last line of each write says of the session after it."""
    return [
        head.revision,
        to_micros(head.updated_at),
        to_micros(head.last_active_at),
        head.last_seq,
        head.spliced_at,
        tail_at,
        *head.active,
        *head.total,
    ]


def meta_fields(head: SessionHead) -> dict[str, Any]:
    """Return the line that describes a session: TPCLAW's ``SessionMeta``, and ours."""
    parts = agent_parts(head.key)
    line: dict[str, Any] = {"key": str(head.key)}
    if parts is not None:
        line["key"] = format_agent_key(head.key)
        line["agentId"] = parts.agent
        line["channel"] = parts.channel
        line["scope"] = parts.scope.value
        line["scopeId"] = parts.scope_id
    line["title"] = head.title
    if head.model:
        line["model"] = head.model
    line["totalTokenCount"] = head.active.tokens
    line["messageCount"] = head.active.messages
    line["state"] = head.status.value
    line["createdAt"] = format_time(head.created_at)
    line["updatedAt"] = format_time(head.updated_at)
    line["raf"] = {
        "kind": "meta",
        "version": head.schema,
        "key": str(head.key),
        "incarnation": head.incarnation,
        "created": to_micros(head.created_at),
        "pinned": head.pinned,
        "labels": sorted(head.labels),
        "type": head.session_type,
        "forked_from": head.forked_from,
    }
    return line


def _described(
    key: SessionKey,
    head: SessionHead | None,
    fields: Mapping[str, Any],
    ours: Mapping[str, Any],
) -> SessionHead:
    if ours["version"] > BODY_VERSION:
        raise SchemaVersionError(BACKEND, ours["version"], BODY_VERSION)
    created = from_micros(ours["created"])
    forked_from = ours["forked_from"]
    texts = [ours["incarnation"], fields["title"], fields.get("model", "")]
    check_kinds(str, [*texts, ours["type"], forked_from or "", *ours["labels"]])
    check_kinds(bool, [ours["pinned"]])
    numbers = (
        (0, created, created, False, 0, 0, Counts(), Counts())
        if head is None
        else (head.revision, *head[4:11])
    )
    revision, updated, active, _, last_seq, spliced_at, counts, total = numbers
    return SessionHead(
        key,
        ours["incarnation"],
        revision,
        created,
        updated,
        active,
        ours["pinned"],
        last_seq,
        spliced_at,
        counts,
        total,
        fields["title"],
        fields.get("model", ""),
        SessionStatus(fields["state"]),
        frozenset(ours["labels"]),
        ours["type"],
        forked_from,
        ours["version"],
        *(_NO_REQUEST if head is None else head[18:]),
    )


_NO_REQUEST: Final = (None,) * 4


def request_fields(request: RequestDelta) -> dict[str, Any]:
    """Return the ``raf`` of the line that a request record is altered by."""
    return {
        "kind": "request",
        "keep": request.keep,
        "digests": base64.b64encode(request.digests).decode(),
        "hash": to_hex(request.hash),
        "header": to_hex(request.header),
        "format": request.format,
    }


def to_hex(value: int | None) -> str | None:
    """Return 64 bits as text: JSON's numbers hold 53 for most readers."""
    return None if value is None else f"{value:016x}"


def from_hex(text: str | None) -> int | None:
    """Return the 64 bits that `to_hex` made a text of."""
    return None if text is None else int(text, 16)
