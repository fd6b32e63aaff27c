"""`Journal.append`: one round trip where only entries and session state are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from raf_session.changes import NO_CHANGE, Change
from raf_session.clock import to_micros
from raf_session.entries import Counts, Entry
from raf_session.errors import (
    SessionDamagedError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.journal import Commit
from raf_session.journals import _checks, _rows, _rules
from raf_session.journals._redis_changes import (
    add_labels,
    add_states,
    add_user,
    request_texts,
)
from raf_session.journals._redis_core import Core, operate, protected, text
from raf_session.journals._redis_debts import Debt, Debts
from raf_session.journals._redis_faults import BACKEND
from raf_session.journals._redis_heads import (
    Stored,
    about_text,
    parse_head,
    parse_rows,
    rest_of_row,
)
from raf_session.journals._redis_keys import member_of
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_operations import Operations
from raf_session.journals._redis_scripts import APPEND, APPEND_MORE
from raf_session.journals._redis_writes import look, pause
from raf_session.journals._texts import ChangeTexts
from raf_session.keys import SessionKey

__all__ = ("Append", "refusal")


def refusal(core: Core, key: SessionKey, reply: Sequence[Any], now: int) -> Exception:
    """Return what a script's refusal means to the caller."""
    status = text(reply[0])
    if status == "damaged":
        return SessionDamagedError(key, BACKEND, text(reply[1]))
    if status in {"missing", "expired", "replaced"}:
        return SessionNotFoundError(key, status)
    head = parse_head(key, reply[1:5]).head
    core.rules.live(key, head, now)
    return SessionDamagedError(key, BACKEND, f"the server said {status!r}")


def _told(incarnation: str | None) -> str:
    """Return an incarnation as the script compares it; some can be none."""
    if incarnation is None:
        return ""
    return incarnation if incarnation.isascii() and incarnation.isalnum() else "?"


def _describes(change: Change) -> bool:
    """Tell whether Python has to read the head before it can say what becomes of it."""
    return (
        bool(change.labels)
        or change.title is not None
        or change.model is not None
        or change.pin is not None
        or change.status is not None
    )


class Append(NamedTuple):
    """The arguments of `Journal.append`, and how to do it."""

    core: Core
    debts: Debts
    key: SessionKey
    entries: Sequence[Entry]
    bodies: Sequence[str]
    texts: ChangeTexts
    trim: int | None
    expected_revision: int | None
    incarnation: str | None

    async def run(self, link: Link, *, confirm: bool) -> Commit:
        """Add entries at the end."""
        change = self.texts.change
        if link.one_slot and (
            change is NO_CHANGE or not (change.app or change.user or _describes(change))
        ):
            written = await self._try(link, (), None, confirm=confirm)
            assert written is not None  # noqa: S101  (it had no condition)
            return written[0]
        return await protected(self._steps(link, confirm=confirm))

    async def _steps(self, link: Link, *, confirm: bool) -> Commit:
        core, key, texts = self.core, self.key, self.texts
        now = core.rules.now()
        debts = await self.debts.draw(link, key, texts, now)
        user = _rules.user_scope(key)
        apart = not link.one_slot
        if apart and texts.change.user and user.user:
            ops = Operations()
            core.index.announce_scope(ops, user, now)
            await operate(link, ops)
        try:
            commit, times = await self._write(link, debts, confirm=confirm)
        except (LookupError, ValueError, RuntimeError):
            await self.debts.settle(link, debts)
            raise
        if commit.repeated:
            await self.debts.settle(link, debts)
            return commit
        if apart:
            ops = Operations()
            active = to_micros(commit.head.last_active_at)
            core.index.move(ops, member_of(key), active)
            await operate(link, ops)
            await self.debts.index(link, user, times)
        await self.debts.pay(link, key, debts)
        return commit

    async def _write(
        self, link: Link, debts: Sequence[Debt], *, confirm: bool
    ) -> tuple[Commit, str]:
        if not _describes(self.texts.change):
            written = await self._try(link, debts, None, confirm=confirm)
            assert written is not None  # noqa: S101  (it had no condition)
            return written
        turn = 0
        while True:
            seen = await look(link, self.core, self.key)
            if seen.stored is None:
                raise SessionNotFoundError(self.key, "missing")
            written = await self._try(link, debts, seen.stored, confirm=confirm)
            if written is not None:
                return written
            await pause(turn := turn + 1)

    async def _try(
        self,
        link: Link,
        debts: Sequence[Debt],
        before: Stored | None,
        *,
        confirm: bool,
    ) -> tuple[Commit, str] | None:
        core, key, entries = self.core, self.key, self.entries
        change = self.texts.change
        now = core.rules.now()
        counts = [Counts.of((entry,)) for entry in entries]
        ops = Operations(core.names.session(key))
        activity = ops.number(core.index.keys.activity) if link.one_slot else "-"
        described = ("", "")
        labelled: Operations | None = None
        if before is not None:
            after = _rules.described(before.head, replace(change, request=None))
            described = before.seen, f"{int(after.pinned)}{about_text(after)}"
            labelled = ops if link.one_slot else Operations()
            add_labels(core, labelled, before.head, after, one_slot=link.one_slot)
            if labelled is not ops:
                await operate(link, labelled)
        if change is not NO_CHANGE:
            add_states(ops, ops.keys[0], self.texts, debts)
            add_user(core, ops, key, self.texts, now, one_slot=link.one_slot)
        rows = [
            rest_of_row(entry.kind.value, entry.id, count, body)
            for entry, body, count in zip(entries, self.bodies, counts, strict=True)
        ]
        script = APPEND if ops.plain else APPEND_MORE
        description = ""
        if change.request is not None or before is not None:
            description = "\1".join((*request_texts(change.request), *described))
        header = "\0".join(
            (
                f"{self._words(counts, now)} {activity}",
                _told(self.incarnation),
                self._options(len(debts), now, confirm=confirm),
                description,
                *key,
            )
        )
        args = (header.encode(), *rows, *ops.words)
        answer = await link.run(script, ops.keys, args)
        reply = answer.split(b"\0", 5)
        if text(reply[0]) == "moved":
            return None
        if labelled is not None and labelled is not ops:
            await operate(link, labelled)
        return await self._commit(link, reply, now, len(debts))

    def _words(self, counts: Sequence[Counts], now: int) -> str:
        change = self.texts.change
        touch = updated = now
        if change is not NO_CHANGE:
            touch = now if change.touch is None else to_micros(change.touch)
            moment = change.updated_at
            updated = now if moment is None else to_micros(moment)
        messages = conversations = tokens = 0
        for count in counts:
            messages += count.messages
            conversations += count.conversations
            tokens += count.tokens
        return (
            f"{now} {touch} {updated} {messages} {conversations} {tokens} {len(counts)}"
        )

    def _options(self, owed: int, now: int, *, confirm: bool) -> str:
        """Return what few appends have; one text, so that the others are not read."""
        expected, trim = self.expected_revision, self.trim
        request, rules = self.texts.change.request, self.core.rules
        usual = expected is None and trim is None and request is None
        if usual and not (owed or confirm or rules.sessions.enabled):
            return ""
        keep = base = "-"
        if request is not None:
            keep = str(request.keep)
            base = "-" if request.base is None else str(request.base)
        return (
            f"{'-' if expected is None else expected} "
            f"{'-' if trim is None else trim} {keep} {base} {owed} {int(confirm)} "
            f"{self.core.terms(now)}"
        )

    async def _commit(
        self, link: Link, reply: Sequence[Any], now: int, own: int
    ) -> tuple[Commit, str]:
        key, entries = self.key, self.entries
        status = text(reply[0])
        if status not in {"", "known", "stale", "request"}:
            raise refusal(self.core, key, reply, now)
        stored = parse_head(key, reply[1:5])
        head = stored.head
        if stored.owed > (own if not status else 0):
            await self.debts.finish(link, key)
        if status == "request":
            raise StaleSessionError(
                key, None, head.revision, "the request record is another one"
            )
        if status == "known":
            known = {row.id: row for row in parse_rows(key, reply[5])}
            _checks.check_ids(key, entries, known, self.core.bodies)
            rows = [known[entry.id] for entry in entries]
            return Commit(head, _rows.stored(entries, rows), repeated=True), ""
        _checks.check_revision(head, self.expected_revision if status else None)
        moment, _, times = text(reply[5]).partition("\0")
        return Commit(head, self._stored(stored, int(moment))), times

    def _stored(self, stored: Stored, moment: int) -> tuple[Entry, ...]:
        head, n = stored.head, len(self.entries)
        first = head.last_seq - n + 1
        # The oldest leave first: these only where there was room for none.
        gone = max(0, n - head.active.entries)
        return tuple(
            [
                entry.stored(first + i, moment, head.revision if i < gone else 0)
                for i, entry in enumerate(self.entries)
            ]
        )
