"""`HistoryLog`: what a window has to know of each message, read once and in turn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from typing import Final

from raf_session.history.bundles import Bundle, BundleReader
from raf_session.history.costs import TokenCosts
from raf_session.history.policy import HistoryRule
from raf_session.history.stripping import without_calls, without_results
from raf_session.history.truncation import Truncation, shorten_results
from raf_session.messages import ChatMessage, MessageRole
from raf_session.tokens import TokenCounter
from raf_session.toolcalls import (
    CallShape,
    Mark,
    RepairRule,
    has_more_than,
    is_preamble,
    is_user_turn,
    results_in,
)
from raf_session.toolcalls.matching import CallSlot
from raf_session.toolcalls.reasoning import is_silent, with_thoughts
from raf_session.toolcalls.results import without_parts
from raf_session.toolcalls.tidying import tidy

__all__ = ("SUMMARY_TYPE", "HistoryLog", "Kind", "as_shown")

SUMMARY_TYPE: Final = "compaction_summary"
"""The ``type`` in the metadata of a message that is a summary."""


_UNSENT: Final = ("id", "created_at", "source")


class Kind(IntEnum):
    """What a message is for the order of a request."""

    INSTRUCTION = 0
    USER = 1
    """A user's turn, or a summary, which is shown as one."""
    SAID = 2
    """The assistant says something, and calls nothing."""
    CALL = 3
    RESULTS = 4
    """Nothing but results."""
    OTHER = 5
    """Results with something else, an event without a message."""
    SILENT = 6
    """The assistant only thinks; it is shown in the message that this led to."""


def as_shown(message: ChatMessage) -> ChatMessage:
    """Return a message by whom it is shown: a summary is the user's."""
    if message.metadata.get("type") != SUMMARY_TYPE or message.role is MessageRole.USER:
        return message
    return message.model_copy(update={"role": MessageRole.USER})


class HistoryLog:
    """The messages so far, in the forms in which they are shown, and their ties.

    Args:
        counter: what counts tokens.
        max_tool_result_size: characters of one result; `None`: any.
        long_running: the ids of calls whose tools answer later.
    """

    def __init__(
        self,
        counter: TokenCounter,
        max_tool_result_size: int | None,
        long_running: Collection[str],
    ) -> None:
        self.long_running: Final = frozenset(long_running)
        self.tokens: Final = TokenCosts(counter, self.long_running)
        self.messages: Final[list[ChatMessage | None]] = []
        self.forms: Final[list[ChatMessage | None]] = []
        """As they are shown; `None` for an event without a message, and for reasoning
        that is shown in what it led to."""
        self.costs: Final[list[int]] = []
        """The tokens of each form, and of a placeholder for each unanswered call."""
        self.kinds: Final[list[Kind]] = []
        self.bundles: Final[dict[int, Bundle]] = {}
        """By place; a message that is tied to none is in none."""
        self.irregular: Final[set[Bundle]] = set()
        """Of the bundles that are shown, those that are irregular."""
        self.always: Final[set[int]] = set()
        """Leading instructions, summaries, and what is pinned."""
        self.turn: int = -1
        """The last user's turn; -1: there is none yet."""
        self.tidied: Final[dict[int, tuple[RepairRule, ...]]] = {}
        """Why messages differ from what was given, whatever stands beside them."""
        self.truncated: Final[dict[int, Truncation]] = {}
        self.stripped: Final[set[int]] = set()
        """What is shown without its calls or results."""
        self.led_here: tuple[int, ...] = ()
        """The reasoning that the last message is shown with,"""
        self.led_nowhere: tuple[int, ...] = ()
        """and the reasoning in front of it that did not lead to it."""
        self.freed: int = 0
        """The tokens of placeholders that the last message made needless."""
        self.rewrites: int = 0
        """How many messages so far changed the order or the form of earlier ones."""
        self._max_size = max_tool_result_size
        self._reader = BundleReader(self.long_running)
        self._leading = True

    # Reading ----------------------------------------------------------------------

    def read(self, message: ChatMessage | None) -> HistoryRule | None:
        """Read the next message; return why it is not shown at all, if it is not."""
        place = len(self.messages)
        self.messages.append(message)
        self.freed = 0
        self.led_here = self.led_nowhere = ()
        if message is None:
            self._note(None, 0, Kind.OTHER)
            return None
        message, rules = tidy(as_shown(message))
        if rules:
            self.tidied[place] = rules
        step, thoughts = self._reader.step, self._reader.thoughts
        self._reader.read(place, message)
        marks = results_in(message)
        if message.role is not MessageRole.ASSISTANT and has_more_than(message, marks):
            self.led_nowhere = thoughts
        if marks:
            return self._read_results(place, message, marks, step)
        self._read_saying(place, message)
        return None

    def _read_saying(self, place: int, message: ChatMessage) -> None:
        """Read a message that is no result."""
        if message.metadata.get("type") == SUMMARY_TYPE:
            self._read_summary(place, message)
            return
        if message.metadata.get("pinned") is True:
            self.always.add(place)
        if is_preamble(message):
            self._note(message, self.tokens.of(message), Kind.INSTRUCTION)
            if self._leading:
                self.always.add(place)
            return
        self._leading = False
        if message.role is MessageRole.ASSISTANT:
            self._read_assistant(place, message)
        else:
            self._note(message, self.tokens.of(message), Kind.USER)
            self.turn = place

    def _note(self, form: ChatMessage | None, cost: int, kind: Kind) -> None:
        self.forms.append(form)
        self.costs.append(cost)
        self.kinds.append(kind)

    def _read_summary(self, place: int, message: ChatMessage) -> None:
        self._note(message, self.tokens.of(message), Kind.USER)
        self.always.add(place)

    def _read_assistant(self, place: int, message: ChatMessage) -> None:
        if is_silent(message):
            self._note(message, 0, Kind.SILENT)
            return
        slots = self._reader.calls_of(place)
        thoughts = self.led_here = self._reader.thoughts_of(place)
        form = self._joined(thoughts, message) if thoughts else message
        missing = sum(map(self.tokens.of_placeholder, slots))
        kind = Kind.CALL if slots else Kind.SAID
        self._note(form, self.tokens.of(form) + missing, kind)
        if not slots and not thoughts:
            return
        callers = [place] if slots else []
        bundle = Bundle([*thoughts, place], callers, list(slots))
        self.bundles.update(dict.fromkeys(bundle.places, bundle))
        self._judge(bundle)

    def _joined(self, thoughts: Sequence[int], message: ChatMessage) -> ChatMessage:
        """Return a message with the reasoning that led to it, shown nowhere else."""
        silent = [self.forms[place] for place in thoughts]
        for place in thoughts:
            self.forms[place] = None
        return with_thoughts([m for m in silent if m is not None], message)

    def _read_results(
        self, place: int, message: ChatMessage, marks: Sequence[Mark], step: int | None
    ) -> HistoryRule | None:
        slots = self._reader.answered
        live = [s for s in slots if s is not None and not self._is_gone(s)]
        more = has_more_than(message, marks)
        if not live and not more:
            self._note(message, 0, Kind.OTHER)
            lost = all(slot is None for slot in slots)
            return HistoryRule.ORPHAN if lost else HistoryRule.GROUP
        dead = {
            mark.part
            for mark, slot in zip(marks, slots, strict=True)
            if slot is not None and self._is_gone(slot)
        }
        form = message
        if dead:
            form = without_parts(message, dead)
            self.stripped.add(place)
        if self._max_size is not None:
            form = self._shortened(place, form, self._max_size)
        if message.metadata.get("pinned") is True:
            self.always.add(place)
        self._leading = False
        kind = Kind.OTHER if more else Kind.RESULTS
        if is_user_turn(form):
            kind = Kind.USER
        self._note(form, self.tokens.of(form), kind)
        if kind is Kind.USER:
            self.turn = place
        if not live:
            return None
        whole = len(live) == len(marks) and not more
        self._join(place, live, step, whole=whole)
        return None

    def _join(
        self, place: int, slots: Sequence[CallSlot], step: int | None, *, whole: bool
    ) -> None:
        """Tie a message to the calls that it answers.

        Args:
            place: where the message stands.
            slots: the calls, result by result.
            step: the message with calls behind which it stands, results between.
            whole: whether it is nothing but results of these.
        """
        bundle, *others = dict.fromkeys(self.bundles[s.index] for s in slots)
        for other in others:
            bundle.absorb(other)
            self.irregular.discard(other)
            self.bundles.update(dict.fromkeys(other.places, bundle))
        results = [result for slot in bundle.slots for result in slot.results]
        parted = {r.message_index for r in results if r.part is not None}
        shapes = {result.shape for result in results}
        of_gemini = CallShape.GEMINI in shapes
        shapes.update(slot.mark.shape for slot in bundle.slots if not slot.results)
        if (
            not whole
            or (of_gemini and (len(parted) > 1 or len(shapes) > 1))
            or any(s.index != step or len(s.results) > 1 for s in slots)
        ):
            bundle.tangled = True
        bundle.places.append(place)
        self.bundles[place] = bundle
        if bundle.tangled:
            self.rewrites += 1
        for slot in {id(slot): slot for slot in slots}.values():
            if slot.results[0].message_index == place:
                missing = self.tokens.of_placeholder(slot)
                self.costs[slot.index] -= missing
                self.freed += missing
        self._judge(bundle)

    def _is_gone(self, slot: CallSlot) -> bool:
        bundle = self.bundles.get(slot.index)
        return bundle is None or bundle.gone

    def _judge(self, bundle: Bundle) -> None:
        if bundle.is_irregular:
            self.irregular.add(bundle)
        else:
            self.irregular.discard(bundle)

    def _shortened(self, place: int, form: ChatMessage, size: int) -> ChatMessage:
        short, truncation = shorten_results(form, size)
        if truncation is not None:
            self.truncated[place] = truncation
        return short

    def is_answered(self, place: int) -> bool:
        """Tell whether each call of this message has a result."""
        bundle = self.bundles.get(place)
        return bundle is None or all(
            slot.results for slot in bundle.slots if slot.index == place
        )

    def restate(self, place: int, message: ChatMessage) -> None:
        """Take a message for one that it equals but for what is never sent."""
        former, shown = self.messages[place], self.forms[place]
        self.messages[place] = message
        if shown is None:
            return
        own = {name: getattr(message, name) for name in _UNSENT}
        form = message if shown is former else shown.model_copy(update=own)
        self.forms[place] = form
        self.tokens.restate(shown, form)

    # What stays together, and what leaves -------------------------------------------

    def unit(self, place: int) -> Sequence[int]:
        """Return the messages that stay or go with this one, ascending."""
        bundle = self.bundles.get(place)
        return (place,) if bundle is None else bundle.places

    @property
    def thoughts(self) -> tuple[int, ...]:
        """The reasoning at the end, of which it is open what it leads to."""
        return self._reader.thoughts

    def stays(self, place: int) -> bool:
        """Tell whether no limit takes this message.

        Leading instructions, summaries, what is pinned, calls that wait for results.
        """
        if place in self.always:
            return True
        bundle = self.bundles.get(place)
        return bundle is not None and (
            bundle.waits(self.turn, self.long_running)
            or not self.always.isdisjoint(bundle.places)
        )

    def leave(self, places: Iterable[int]) -> None:
        """Note that these messages are not shown any more; bundles leave whole."""
        for place in places:
            bundle = self.bundles.get(place)
            if bundle is not None and not bundle.gone:
                bundle.gone = True
                self.irregular.discard(bundle)

    def strip(self, bundle: Bundle, placeholder: str | None) -> list[int]:
        """Take calls, results and reasoning away; return what has nothing left to say.

        Args:
            bundle: what these are of.
            placeholder: text that stands for the calls of each message; `None`: none.
        """
        self.leave(bundle.places)
        empty: list[int] = []
        for place in bundle.places:
            message = self.forms[place]
            rest: ChatMessage | None
            if message is None:  # its thoughts are in another
                rest = None
            elif self.kinds[place] is Kind.CALL:
                rest = without_calls(message, placeholder)
            else:
                rest = without_results(message)
            if rest is None:
                empty.append(place)
                continue
            if rest is message:
                continue
            del self.bundles[place]
            self.stripped.add(place)
            self.forms[place] = rest
            self.costs[place] = self.tokens.of(rest)
            assistant = rest.role is MessageRole.ASSISTANT
            self.kinds[place] = Kind.SAID if assistant else Kind.USER
        return empty
