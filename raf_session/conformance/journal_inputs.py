"""What the state machine hands to a journal: few values, so that they meet again."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.journal_values import said, varied
from raf_session.entries import Entry, EntryKind
from raf_session.messages import ChatMessage, MessageRole, Usage

__all__ = (
    "CHANGES",
    "DELTAS",
    "EVENTS",
    "FRESH",
    "HANDLES",
    "KNOWN",
    "PICKS",
    "PLACES",
    "WAITS",
)

WAITS: Final = (
    *((0, 0), (0, 1), (1, 0), (1, 0), (5, 0), (5, 0), (20, 0), (50, 0)),
    *((100, 0), (100, 1), (150, 1), (900, 0)),
)

PICKS: Final = st.integers(0, 23)
HANDLES: Final = st.integers(0, 1)
PLACES: Final = st.integers(0, 12)
EVENTS: Final = (
    said("x"),
    said("x", "\0\ud83d😀", MessageRole.ASSISTANT),
    varied(said("x"), usage=Usage(total_tokens=7), metadata={"n": 1.0, "m": 2**64}),
    Entry("x", EntryKind.EVENT, author="tool", extra={"z": 1, "a": [None, -0.0]}),
    Entry("x", EntryKind.SUMMARY, ChatMessage.assistant(""), timestamp=0.0),
)
FRESH: Final = st.lists(st.sampled_from(EVENTS), min_size=1, max_size=4)
KNOWN: Final = st.lists(
    st.builds(said, st.sampled_from("abcde"), st.sampled_from(("one", "two"))),
    min_size=1,
    max_size=3,
)


def _delta(values: dict[str, Any], gone: set[str]) -> StateDelta:
    return StateDelta(values, gone - values.keys())


DELTAS: Final = st.builds(
    _delta,
    st.dictionaries(
        st.sampled_from(("k", "K", "k ", "é")),
        st.sampled_from((None, 1, "x", {"z": [1], "a": {}})),
        max_size=2,
    ),
    st.sets(st.sampled_from(("k", "K", "no")), max_size=1),
)
_labels: Final = st.sets(st.sampled_from(("x", "%")), max_size=1)
_texts: Final = st.sampled_from((None, None, "", "t", "é"))
CHANGES: Final = st.one_of(
    st.just(Change()),
    st.builds(
        Change,
        session=st.none() | DELTAS,
        user=st.none() | DELTAS,
        app=st.none() | DELTAS,
        providers=st.none() | DELTAS,
        title=_texts,
        model=_texts,
        labels=st.none() | st.builds(LabelDelta, _labels, _labels),
        pin=st.sampled_from((None, None, None, True, False)),
    ),
)
