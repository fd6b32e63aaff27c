"""The rules of the view as questions about one event, asked without making a view."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from call_histories import History, Link, Step, linked, links

from raf_session.filtering import DropRule


@dataclass(frozen=True)
class Judge:
    """Knows a history and its limits, and says of each event what becomes of it."""

    history: History
    times_us: Sequence[int]
    oldest: int | None
    max_events: int
    summaries: Collection[int]

    @property
    def steps(self) -> Sequence[Step]:
        return self.history.steps

    # What the events are --------------------------------------------------------------

    @cached_property
    def links(self) -> list[Link]:
        return links(self.history)

    @cached_property
    def turns(self) -> list[int]:
        return [i for i, step in enumerate(self.steps) if step.kind == "user"]

    @cached_property
    def orphans(self) -> set[int]:
        tied = {link.place for link in self.links if link.call is not None}
        return {
            i
            for i, step in enumerate(self.steps)
            if step.kind == "result" and not step.also_says and i not in tied
        }

    @cached_property
    def leading(self) -> set[int]:
        """The leading instructions."""
        return {
            i
            for i, step in enumerate(self.steps)
            if step.kind == "system"
            and all(
                before.kind in {"system", "state"} or place in self.orphans
                for place, before in enumerate(self.steps[:i])
            )
        }

    @cached_property
    def fixed(self) -> set[int]:
        """What counts within a limit of number, and is never taken by it."""
        spoken = [
            i
            for i, step in enumerate(self.steps)
            if step.kind != "state" and i not in self.orphans | self.leading
        ]
        first = {i for i in spoken[:1] if i in self.summaries and i in self.turns}
        return self.leading | {i for i in first if not self.aged(i)}

    @cached_property
    def bundles(self) -> list[set[int]]:
        bundles = [{i} for i, step in enumerate(self.steps) if step.kind == "call"]
        ties = [{k.place, k.call} for k in self.links if k.call is not None]
        for tied in ties + linked(self.history):
            touching = [bundle for bundle in bundles if bundle & tied]
            bundles = [bundle for bundle in bundles if not bundle & tied]
            bundles.append(tied.union(*touching))
        return bundles

    @cached_property
    def newest(self) -> set[int]:
        """The newest group, where no user's turn follows it."""
        bundle = max(self.bundles, key=max, default=set[int]())
        followed = bundle and self.turns and self.turns[-1] > max(bundle)
        return set() if followed else bundle

    @cached_property
    def waiting(self) -> set[int]:
        """Groups with an open long-running call that age takes nothing of."""
        closed = {(link.call, link.ident) for link in self.links if not link.interim}
        found: set[int] = set()
        for bundle in self.bundles:
            calls = {
                (i, ident)
                for i in bundle
                for ident in self.steps[i].ids
                if self.steps[i].kind == "call"
                and ident in self.history.long_running
                and not self.history.named
            }
            if calls - closed and not any(self.aged(i) for i in bundle):
                found |= bundle
        return found

    @cached_property
    def forced(self) -> set[int]:
        """The first turn of the session, where the limits take all."""
        if any(self.limit(i, set()) is None for i in self.turns):
            return set()
        return {*[i for i in self.turns if i not in self.summaries][:1]}

    # What becomes of them -------------------------------------------------------------

    def aged(self, index: int) -> bool:
        return self.oldest is not None and self.times_us[index] < self.oldest

    def taken_by_age(self, index: int, forced: set[int]) -> bool:
        return self.aged(index) and index not in self.leading | forced | self.orphans

    def taken_by_count(self, index: int, forced: set[int]) -> bool:
        """Whether as many newer ones are there as there is room for."""
        held = self.fixed | forced | self.orphans
        if not self.max_events or index in held | self.waiting:
            return False
        newer = [
            i
            for i in range(index + 1, len(self.steps))
            if i not in held and not self.taken_by_age(i, forced)
        ]
        return len(newer) >= max(1, self.max_events - len(self.fixed)) - len(forced)

    def limit(self, index: int, forced: set[int]) -> DropRule | None:
        """Return the limit that takes it; none takes a part of the newest group."""

        def taken(place: int) -> DropRule | None:
            if self.taken_by_age(place, forced):
                return DropRule.AGE
            return DropRule.COUNT if self.taken_by_count(place, forced) else None

        if index in self.newest and not all(taken(i) for i in self.newest):
            return None
        return taken(index)

    def severed(self, index: int) -> bool:
        """Whether it is left of a turn whose beginning a limit took."""
        forced = self.forced
        held = self.fixed | forced | self.waiting
        if index in held or (index in self.newest and not self.limit(index, forced)):
            return False
        start = max((i for i in self.turns if i <= index), default=0)
        end = min((i for i in self.turns if i > index), default=len(self.steps))
        begun = start in self.turns and start not in self.fixed | forced
        if begun and not self.limit(start, forced):
            return False
        cut = any(self.limit(i, forced) for i in range(start, end))
        return cut and any(not self.limit(i, forced) for i in self.turns if i >= end)

    def verdict(self, index: int) -> DropRule | None:
        """Return the rule that takes an event; `None`: it stays."""
        if index in self.orphans:
            return DropRule.ORPHAN
        limit = self.limit(index, self.forced)
        if limit is not None:
            return limit
        if self.severed(index):
            return DropRule.TURN
        (bundle,) = [b for b in self.bundles if index in b] or [set[int]()]
        if any(self.limit(i, self.forced) or self.severed(i) for i in bundle):
            return DropRule.GROUP
        return None
