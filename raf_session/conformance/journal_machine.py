"""A state machine that drives a journal and a model side by side, and compares."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_comparison import (
    KEYS,
    SCOPES,
    ComparedMachine,
    as_kept,
    read_all,
)
from raf_session.conformance.journal_inputs import (
    CHANGES,
    DELTAS,
    EVENTS,
    FRESH,
    HANDLES,
    KNOWN,
    PICKS,
    PLACES,
    WAITS,
)
from raf_session.conformance.journal_model import Kept, ModelSession
from raf_session.conformance.journal_values import every, same
from raf_session.entries import Counts, Entry
from raf_session.journal import Commit, Order
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import NewSession, Query, Window

__all__ = ("JournalMachine",)


class JournalMachine(ComparedMachine):
    """Every rule acts on the journal and on the model, and their answers agree."""

    # Rules -----------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        """Begin with a session."""
        self.create(key=KEYS[0], on=0, entries=list(EVENTS), n=2, change=Change())

    @rule(
        key=st.sampled_from(KEYS),
        on=HANDLES,
        entries=FRESH,
        n=PLACES,
        change=CHANGES,
    )
    def create(
        self, *, key: SessionKey, on: int, entries: list[Entry], n: int, change: Change
    ) -> None:
        """Create a session, with an archive at times."""
        named = self.with_ids(entries)
        archived, active = named[:n], named[n:]
        answer = self.agree(
            lambda: self.do(
                self.journal(on).create,
                NewSession(key=key),
                active,
                archived=archived,
                change=change,
            ),
            lambda: self.model.create(key, active, archived, change),
            "create",
        )
        if answer is not None:
            session = self.model.sessions[key]
            session.incarnation = answer.head.incarnation
            session.spliced_at = answer.head.spliced_at

    def _append(self, key: SessionKey, on: int, entries: list[Entry], **o: Any) -> None:
        change = o.pop("change", Change())
        revision, incarnation = o.pop("revision", None), o.pop("incarnation", None)
        stored: list[list[Kept] | None] = []
        answer = self.agree(
            lambda: self.do(
                self.journal(on).append,
                key,
                entries,
                change=change,
                expected_revision=revision,
                incarnation=incarnation,
                **o,
            ),
            lambda: stored.append(
                self.model.append(
                    key,
                    entries,
                    change,
                    revision=revision,
                    incarnation=incarnation,
                    **o,
                )
            ),
            "append",
        )
        if answer is not None:
            same(answer.repeated, stored[0] is None, "append: repeated")
            by_id = self.model.sessions[key].known()
            expected = [by_id[entry.id].text for entry in entries]
            same([as_kept(e).text for e in answer.entries], expected, "append: entries")

    @rule(
        pick=PICKS,
        on=HANDLES,
        entries=FRESH,
        change=CHANGES,
        trim=st.one_of(st.none(), st.integers(0, 5)),
    )
    def append(
        self,
        pick: int,
        on: int,
        entries: list[Entry],
        change: Change,
        trim: int | None,
    ) -> None:
        """Append entries with new ids."""
        key = self.pick(pick)
        self._append(key, on, self.with_ids(entries), change=change, trim=trim)

    @rule(pick=PICKS, on=HANDLES, entries=KNOWN, off=st.sampled_from((None, 0, -1, 1)))
    def append_again(
        self, *, pick: int, on: int, entries: list[Entry], off: int | None
    ) -> None:
        """Append ids that may be known, with bodies that may differ, at a revision."""
        key = self.pick(pick)
        session = self.model.sessions.get(key)
        revision = None if off is None or session is None else session.revision + off
        self._append(key, on, entries, revision=revision)

    @rule(pick=PICKS, on=HANDLES, entries=FRESH, late=st.booleans())
    def append_late(
        self, *, pick: int, on: int, entries: list[Entry], late: bool
    ) -> None:
        """Append under an incarnation: that of now, or a former one."""
        key = self.pick(pick)
        session = self.model.sessions.get(key)
        now = None if session is None else session.incarnation
        named = self.former.get(key, "none") if late else now
        self._append(key, on, self.with_ids(entries), incarnation=named)

    @rule(
        pick=PICKS,
        on=HANDLES,
        ends=st.tuples(PLACES, PLACES),
        entries=st.one_of(st.just([]), FRESH),
        tail=st.one_of(st.just([]), st.just([]), FRESH),
        keep=st.sets(PLACES, max_size=3),
        how=st.sampled_from(("archive", "remove", "purge")),
        off=st.sampled_from((None, None, 0, -1)),
    )
    def splice(
        self,
        *,
        pick: int,
        on: int,
        ends: tuple[int, int],
        entries: list[Entry],
        tail: list[Entry],
        keep: Collection[int],
        how: str,
        off: int | None,
    ) -> None:
        """Replace a run, archived, removed or purged, and retry it."""
        key = self.pick(pick)
        session = self.model.sessions.get(key)
        revision = None if off is None or session is None else session.revision + off
        first, last = sorted(ends)
        options: dict[str, Any] = {
            "tail": self.with_ids(tail),
            "keep": keep,
            "archive": how == "archive",
            "purge": how == "purge",
        }
        named = self.with_ids(entries)
        call = partial(self.journal(on).splice, key, first, last, named, **options)
        answer = self.agree(
            lambda: self.do(call, expected_revision=revision),
            lambda: self.model.splice(
                key, first, last, named, revision=revision, **options
            ),
            "splice",
        )
        if answer is not None:
            self._adopt(self.model.sessions[key], answer, clearing=how == "purge")
            if named and not tail and how != "purge":
                again = self.do(call)
                same(again.head, answer.head, "a splice done again")

    def _adopt(self, session: ModelSession, answer: Commit, *, clearing: bool) -> None:
        """Take from the answer what the contract leaves to the journal."""
        head = answer.head
        same(
            head.last_active_at in {session.active_at, self.clock()},
            True,
            "splice: activity is as it was, or now",
        )
        session.active_at = head.last_active_at
        if clearing and not session.active and not session.archived:
            same(head.total, Counts(), "clear: counts")
            session.revision, session.spliced_at = head.revision, head.spliced_at

    @rule(
        pick=PICKS,
        on=HANDLES,
        change=CHANGES,
        off=st.sampled_from((None, None, 0, -1)),
    )
    def update(self, *, pick: int, on: int, change: Change, off: int | None) -> None:
        """Change state and description."""
        key = self.pick(pick)
        session = self.model.sessions.get(key)
        revision = None if off is None or session is None else session.revision + off
        self.agree(
            lambda: self.do(
                self.journal(on).update, key, change, expected_revision=revision
            ),
            lambda: self.model.update(key, change, revision=revision),
            "update",
        )

    @rule(pick=PICKS, on=HANDLES, late=st.sampled_from((None, False, True)))
    def delete(self, *, pick: int, on: int, late: bool | None) -> None:
        """Delete a session: whatever it is, that of now, or a former one."""
        key = self.pick(pick)
        session = self.model.sessions.get(key)
        named = None
        if late is not None and session is not None:
            named = self.former.get(key, "none") if late else session.incarnation
        answer = self.do(self.journal(on).delete, key, incarnation=named)
        same(answer, self.model.delete(key, named), "delete")
        if answer and session is not None:
            self.former[key] = session.incarnation

    @rule(scope=st.sampled_from(SCOPES), on=HANDLES, delta=DELTAS)
    def write_state(self, *, scope: ScopeKey, on: int, delta: StateDelta) -> None:
        """Write the state of a user or an app."""
        self.do(self.journal(on).update_scoped_state, scope, delta)
        self.model.write_state(scope, delta)

    @rule(pick=PICKS, on=HANDLES)
    def refresh(self, *, pick: int, on: int) -> None:
        """Read with a refresh."""
        key = self.pick(pick)
        self.agree(
            lambda: self.do(self.journal(on).load, key, refresh=True),
            lambda: self.model.refresh(key),
            "refresh",
        )

    @rule(wait=st.sampled_from(WAITS))
    def wait(self, *, wait: tuple[int, int]) -> None:
        """Let time pass."""
        self.clock.tick(wait[0], microseconds=wait[1])

    @rule(seconds=st.sampled_from((1, 60, 2000)), on=HANDLES)
    def set_back(self, *, seconds: int, on: int) -> None:
        """Set the clock back, once nothing is expired and not swept."""
        self._sweep(on, 1000)
        self.clock.tick(-seconds)

    @rule(on=HANDLES, limit=st.sampled_from((1, 2, 1000)), dry=st.booleans())
    def expire(self, *, on: int, limit: int, dry: bool) -> None:
        """Sweep, a part or all, or only ask."""
        if dry:
            found = set(self.do(self.journal(on).expire, dry_run=True))
            same(found - self.model.doubtful, self._expected(), "a dry expire")
        else:
            self._sweep(on, limit)

    def _expected(self) -> set[SessionKey | ScopeKey]:
        return self.model.expired() - self.model.doubtful

    def _sweep(self, on: int, limit: int) -> None:
        found = self.do(self.journal(on).expire, limit)
        same(len(found), len(set(found)), "expire: each once")
        same(len(found) <= limit, True, "expire: the limit")
        allowed = self.model.expired() | self.model.doubtful
        same(set(found) - allowed, set(), "expire: what may go")
        if len(found) < limit:
            same(self._expected() - set(found), set(), "expire: what has to go")
        self.model.forget(found)

    @rule(
        pick=PICKS,
        on=HANDLES,
        last=st.one_of(st.none(), st.integers(0, 5)),
        after=st.one_of(st.none(), PLACES),
        before=st.one_of(st.none(), PLACES),
    )
    def window(
        self,
        pick: int,
        on: int,
        last: int | None,
        after: int | None,
        before: int | None,
    ) -> None:
        """Read a part of the active window."""
        key = self.pick(pick)
        window = Window(last=last, after_seq=after, before_seq=before)
        answer = self.agree(
            lambda: self.do(self.journal(on).load, key, window),
            lambda: self.model.find(key),
            "load",
        )
        if answer is not None:
            expected = [
                kept.text
                for kept in self.model.find(key).active
                if (after is None or kept.seq > after)
                and (before is None or kept.seq < before)
            ]
            if last is not None:
                expected = expected[max(0, len(expected) - last) :]
            same([as_kept(e).text for e in answer.entries], expected, f"{window}")

    @rule(
        on=HANDLES,
        order=st.sampled_from(("key", "activity")),
        limit=st.integers(1, 5),
        app=st.sampled_from((None, "app", "a%")),
        user=st.sampled_from((None, "", "u")),
        label=st.sampled_from((None, "x", "%")),
    )
    def scan(
        self,
        *,
        on: int,
        order: Order,
        limit: int,
        app: str | None,
        user: str | None,
        label: str | None,
    ) -> None:
        """List to the end, filtered, in both orders."""
        query = Query(app=app, user=user, labels=() if label is None else (label,))
        journal = self.journal(on)
        listed = self.do(every, journal, query, order=order, limit=limit, state=True)
        found = sorted(
            key
            for key, session in self.model.sessions.items()
            if self.model.alive(session)
            and app in {None, key.app}
            and user in {None, key.user}
            and (label is None or label in session.labels)
        )
        if order == "activity":
            ranks = {key: self.model.sessions[key].active_at for key in found}
            found.sort(key=lambda key: ranks[key], reverse=True)
        same([x.head.key for x in listed], found, f"{query} by {order}")
        records, _ = self.do(read_all, journal)
        for head, state in listed:
            same(state, self.model.sessions[head.key].state, "the listed state")
            record = records[head.key]
            same(head, record and record.head, "the listed head")
