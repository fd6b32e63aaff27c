"""What each cause of a break means, and what usually mends it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from raf_session.prefix_match import Cause

__all__ = ("ADVICE", "Advice")


class Advice(NamedTuple):
    """For whoever pays for the tokens."""

    meaning: str
    """One sentence: what happened."""
    remedy: str
    """One sentence: what to do; empty where there is nothing to mend."""


ADVICE: Final[Mapping[Cause, Advice]] = {
    Cause.NONE: Advice("The earlier request begins this one, byte for byte.", ""),
    Cause.MODEL: Advice(
        "Another model answers, and no model reads what another has cached.",
        "Stay with one model in a conversation, or change it where the history is "
        "short.",
    ),
    Cause.PARAMETERS: Advice(
        "A parameter that shapes the prompt changed, such as tool choice or thinking.",
        "Set such parameters once for the whole conversation.",
    ),
    Cause.TOOLS_ADDED: Advice(
        "Tools came in that were not offered before, and tools stand in front of all "
        "messages.",
        "Offer all tools from the first request on, or let the model look them up.",
    ),
    Cause.TOOLS_REMOVED: Advice(
        "Tools that were offered before are missing, and tools stand in front of all "
        "messages.",
        "Keep offering them, and forbid their use by a tool choice that your provider "
        "caches across.",
    ),
    Cause.TOOLS_ORDER: Advice(
        "The same tools stand in another order.",
        "Sort the tools by name before each request; servers list them in any order.",
    ),
    Cause.TOOLS_CHANGED: Advice(
        "A tool's name, description or schema is no longer what was sent.",
        "Keep session ids, dates and counts out of descriptions and schemas.",
    ),
    Cause.SYSTEM_CHANGED: Advice(
        "The system prompt is no longer what was sent, and it stands in front of all "
        "messages.",
        "Move what changes, such as the time or memories, into the latest user "
        "message.",
    ),
    Cause.MESSAGE_EDITED: Advice(
        "A message that was sent already was rewritten.",
        "Store each message as it was sent, decoration included, and send it so again.",
    ),
    Cause.MESSAGE_REMOVED: Advice(
        "Messages that were sent already are missing.",
        "Only append; where something has to go, drop much at once and seldom.",
    ),
    Cause.MESSAGE_REORDERED: Advice(
        "The same messages or parts stand in another order.",
        "Put results in the order of their calls, not in that in which they came.",
    ),
    Cause.KEY_ORDER: Advice(
        "Only the order of an object's keys differs; the provider sees other text.",
        "Write JSON with one fixed key order, and send arguments as they came.",
    ),
    Cause.WHITESPACE: Advice(
        "Only white space differs.",
        "Do not trim or format anew what was sent; send the very text again.",
    ),
    Cause.UNICODE: Advice(
        "Only the Unicode form or the escaping of text differs.",
        "Normalise and escape text once, before it is first sent.",
    ),
    Cause.NUMBER_FORM: Advice(
        "Only the way a number is written differs, such as 1 and 1.0.",
        "Do not parse and write numbers anew between requests.",
    ),
    Cause.CALL_ID: Advice(
        "Only the ids of tool calls and their results differ.",
        "Store the ids that the model gave, and do not make new ones for each request.",
    ),
    Cause.IMAGE_CHANGED: Advice(
        "An image was replaced, dropped or encoded anew.",
        "Send the same bytes or URL each time; signed URLs change with every request.",
    ),
    Cause.REASONING_DROPPED: Advice(
        "Reasoning that was sent before is missing.",
        "Send it back for as long as your provider wants it, or never send it at all.",
    ),
    Cause.TRUNCATED_HEAD: Advice(
        "The oldest messages were dropped, so that all others moved forward.",
        "Drop many at once and seldom, not a few with each request.",
    ),
    Cause.COMPACTED: Advice(
        "Earlier messages gave way to fewer others, as a summary does.",
        "Expect one full price for each summary: make them seldom, and keep their "
        "text fixed afterwards.",
    ),
    Cause.UNKNOWN: Advice(
        "The requests differ, and how is not known.",
        "Compare the two bodies themselves at the place that is named.",
    ),
}
