"""The file beside a session's file that says what its lines say, up to an offset.

It is a cache: what is missing, torn, of another file or of another version is as if
it were not there.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from raf_session.changes import SessionStatus
from raf_session.clock import from_micros, to_micros
from raf_session.entries import Counts, SessionHead
from raf_session.journals._jsonl_batches import Damage, parse
from raf_session.journals._jsonl_files import read_file, replace_file, sealed, unsealed
from raf_session.journals._jsonl_views import View, from_hex, to_hex
from raf_session.json_text import dump_json
from raf_session.keys import SessionKey

__all__ = (
    "TAIL_BYTES",
    "Identity",
    "Sidecar",
    "head_of",
    "head_values",
    "identify",
    "read_sidecar",
    "same_file",
    "sidecar_path",
    "tail_of",
    "write_sidecar",
)

_VERSION: Final = 2
_START_BYTES: Final = 256
TAIL_BYTES: Final = 64


class Identity(NamedTuple):
    """What tells a file from another that has or had its name."""

    device: int
    inode: int
    start: str
    """Its first bytes: a file of ours begins with its incarnation and revision."""


def identify(fd: int) -> Identity:
    """Return the identity of an open file."""
    status = os.fstat(fd)
    start = os.pread(fd, _START_BYTES, 0).decode("latin-1")
    return Identity(status.st_dev, status.st_ino, start)


def same_file(earlier: Identity, later: Identity) -> bool:
    """Tell whether a file is the one that it was, lines added or not."""
    return earlier[:2] == later[:2] and later.start.startswith(earlier.start)


def tail_of(fd: int, end: int) -> bytes:
    """Return the last bytes in front of an offset.

    They are others where somebody has rewritten the file in its place.
    """
    start = max(0, end - TAIL_BYTES)
    return os.pread(fd, end - start, start)


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What is known of a session at an offset of its file."""

    identity: Identity
    end: int
    tail: bytes
    """What `tail_of` gives there."""
    lines: int
    damage: tuple[Damage, ...]
    view: View


def sidecar_path(path: str) -> str:
    """Return where the sidecar of a session's file is."""
    return f"{path.removesuffix('.jsonl')}.head"


def write_sidecar(path: str, sidecar: Sidecar) -> int:
    """Write it in one step; return how many bytes it has."""
    view = sidecar.view
    assert view.head is not None  # noqa: S101  (only then there is a session)
    text = dump_json(
        {
            "version": _VERSION,
            "identity": sidecar.identity,
            "end": sidecar.end,
            "tail": sidecar.tail.decode("latin-1"),
            "lines": sidecar.lines,
            "damage": sidecar.damage,
            "head": head_values(view.head),
            "tail_at": view.tail_at,
            "marred": view.marred,
            "session": view.session,
            "providers": view.providers,
            "digests": base64.b64encode(view.digests).decode(),
        }
    )
    data = sealed(text.encode())
    replace_file(sidecar_path(path), data, synced=False)
    return len(data)


def read_sidecar(path: str) -> Sidecar | None:
    """Return the sidecar of a session's file, `None` where none can be used."""
    try:
        data = unsealed(read_file(sidecar_path(path)))
    except OSError:
        return None  # the session's file tells whether it can be read at all
    if not data:
        return None
    try:
        found = parse(data)
        if found["version"] != _VERSION:
            return None
        head = head_of(found["head"])
        view = View(
            head.key,
            head,
            found["tail_at"],
            found["session"],
            found["providers"],
            base64.b64decode(found["digests"]),
            [],
            found["marred"],
        )
        return Sidecar(
            Identity(*found["identity"]),
            found["end"],
            found["tail"].encode("latin-1"),
            found["lines"],
            tuple(Damage(*damage) for damage in found["damage"]),
            view,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def head_values(head: SessionHead) -> list[Any]:
    """Return a head as JSON values."""
    return [
        list(head.key),
        head.incarnation,
        head.revision,
        to_micros(head.created_at),
        to_micros(head.updated_at),
        to_micros(head.last_active_at),
        *head[6:13],
        head.status.value,
        sorted(head.labels),
        *head[15:18],
        head.request_n,
        to_hex(head.request_hash),
        to_hex(head.request_header),
        head.request_format,
    ]


def head_of(values: list[Any]) -> SessionHead:
    """Return the head that `head_values` was given; any error may come of damage."""
    fields: list[Any] = list(values)
    fields[0] = SessionKey(*values[0])
    fields[3:6] = map(from_micros, values[3:6])
    fields[9:11] = Counts(*values[9]), Counts(*values[10])
    fields[13:15] = SessionStatus(values[13]), frozenset(values[14])
    fields[19:21] = map(from_hex, values[19:21])
    return SessionHead(*fields)
