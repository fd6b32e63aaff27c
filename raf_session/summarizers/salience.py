"""How much a sentence of a conversation matters to whoever goes on with it."""
# ruff: noqa: RUF001  (Chinese punctuation is meant)

from __future__ import annotations

import re
from typing import Final

from raf_session.summarizers.cues import (
    ACTED,
    ASKED_FOR,
    CONSTRAINT,
    DECISION,
    DEFERRAL,
    GENERIC,
    OPEN,
    OWN,
    PERSONAL,
    PLEASANTRY,
    PREFERENCE,
    REACTION,
)
from raf_session.summarizers.sentences import substance

__all__ = ("is_question", "puts_off", "salience")

_REACHABLE: Final = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?://\S+|(?<!\d)\d{1,3}(?:\.\d{1,3}){3}(?!\d)"
    r"|(?:^|\s)[~.]?/\w[\w./-]+|\+?\d[\d\s-]{7,}\d"
)
_IDENTIFIER: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z]{1,6}[- ]?\d[A-Z0-9-]*|\d+-?[A-Z]{1,6}|\d{5,})"
    r"(?![A-Za-z0-9])"
)
_QUANTITY: Final = re.compile(
    r"\d+(?:[.,]\d+)*|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|fifteen|twenty|thirty|forty|fifty|sixty|hundred|thousand)\b"
    r"|[一二两三四五六七八九十百千万]{1,6}"
    r"(?=[个块元岁号月点人年天次字斤公台辆楼桌成折分秒小周位])",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june"
    r"|july|august|september|october|november|december|tomorrow|tonight|spring|summer"
    r"|autumn|winter|christmas|easter|(?:next|this|last) (?:week|month|year))\b"
    r"|(?:周|星期|礼拜)[一二三四五六日天]|[一二三四五六七八九十\d]+(?:月|号)"
    r"|春节|国庆|元旦|端午|中秋|明年|今年|去年|下周|下个?月|月底|年底",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"(?<=[\w,;:'’\"&(-] )(?!I\b)[A-Z][\w'’&.-]+")
_CHINESE_NAME: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9.+-]+|[小老阿][\u4e00-\u9fff](?=[，。给说去来把是])"
    r"|[\u4e00-\u9fff](?:女士|先生|老师|经理|总|姐|哥|师傅|医生)|叫[\u4e00-\u9fff]{2,3}"
    r"|[\u4e00-\u9fff]{2}(?:路|街|市|区|县|省|镇|村|园|大学|中学|医院|公司|银行|机场)"
)
_LABELLED: Final = re.compile(r"[\w /-]{2,30}[:：]")
_HAN: Final = re.compile("[\u4e00-\u9fff]")
_LEAST_CONTENT: Final = 2
_LEAST_ASKED: Final = 2


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks."""
    return sentence.rstrip("\"'”’)） ").endswith(("?", "？"))


def puts_off(reply: str) -> bool:
    """Tell whether a reply says that the answer is not known, or comes later."""
    return DEFERRAL.within(reply.lower().replace("’", "'"))


def salience(sentence: str, speaker: str, *, open_question: bool = False) -> float:
    """Return the weight of a sentence; at 0 and below it is not worth keeping.

    Decisions, preferences, constraints, facts about the user and open tasks weigh by
    how they are worded, and by what is concrete in them: names, numbers, ids, dates and
    addresses.  Small talk, offers, explanations and answered questions count against.

    Args:
        sentence: one sentence of a message, or a line of a summary.
        speaker: its role; ``""``: not known.
        open_question: it is a question that nobody answered.
    """
    lowered = sentence.lower().replace("’", "'")
    concrete = _concreteness(sentence)
    words = substance(sentence) + (concrete > 0)
    said = sum(cue.within(lowered) for cue in (DECISION, PREFERENCE, CONSTRAINT, OPEN))
    weight = 1.2 * min(said, 3) + concrete
    weight += 0.25 * min(words, 6) - (1.5 if words < _LEAST_CONTENT else 0.0)
    told = speaker in {"user", "system", ""}
    if told:
        weight += 0.6 + 0.5 * PERSONAL.within(lowered)
        weight += 0.9 * OWN.within(lowered)
        weight += 0.8 * ASKED_FOR.within(lowered)
        weight -= 0.7 * REACTION.within(lowered)
    else:
        weight += 2.2 * ACTED.within(lowered) - 2.4
        weight -= 1.5 * DEFERRAL.within(lowered)
        weight -= 2.0 * bool(_LABELLED.match(sentence))
        weight -= 1.8 * GENERIC.count(lowered)
    weight -= 2.5 * PLEASANTRY.within(lowered)
    if is_question(sentence):
        if open_question and words >= _LEAST_ASKED:
            weight += 1.5 if told else 3.0
        else:
            weight -= 4.0 if told else 7.0
    return weight


def _concreteness(sentence: str) -> float:
    names = _NAME.findall(sentence)
    if _HAN.search(sentence):
        names = _CHINESE_NAME.findall(sentence)
    return (
        2.0 * bool(_REACHABLE.search(sentence))
        + 2.5 * bool(_IDENTIFIER.search(sentence))
        + 0.7 * min(len(_QUANTITY.findall(sentence)), 2)
        + 0.8 * bool(_DATE.search(sentence))
        + 0.7 * min(len(names), 2)
    )
