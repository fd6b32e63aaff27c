"""Sentences of English and Chinese text, and the words that carry their content."""
# ruff: noqa: RUF001  (Chinese punctuation is meant)

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from raf_session.graphemes import cut_place

__all__ = (
    "LONGEST_SENTENCE",
    "content_words",
    "numbers",
    "sentences",
    "substance",
)

LONGEST_SENTENCE: Final = 240
"""What is longer is taken clause by clause."""

_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKUP: Final = re.compile(r"^(?:[-*+•>#]+|\d{1,3}[.)、])\s+|\*\*")
_END: Final = re.compile(
    r"(?<![.!?])[.!?]++[…\"'”’)\]]*+(?=\s)|[。！？；…]++[”’」』）)\"']*+"
)
_CLAUSE_END: Final = re.compile(r"[,;:]\s|[，、：；]|\s[-–—]\s")
_ABBREVIATION: Final = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|e\.g|i\.e|etc|vs|cf|approx|no|nr|st|mr|mrs|ms|dr|prof"
    r"|jr|sr|inc|ltd|co|fig|vol|dept|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)$",
    re.IGNORECASE,
)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text in order, without markup and fenced code.

    A line's end ends a sentence.  What is longer than `LONGEST_SENTENCE` comes in
    parts that end with a clause where that is possible, and break no character.
    """
    for line in _FENCED.sub("\n", text).splitlines():
        rest = _MARKUP.sub("", line.strip())
        start = 0
        for end in _END.finditer(rest):
            stop = end.start()
            if end[0] == "." and _ABBREVIATION.search(rest, max(stop - 8, 0), stop):
                continue
            yield from _parts(rest[start : end.end()].strip())
            start = end.end()
        yield from _parts(rest[start:].strip())


def _parts(sentence: str) -> Iterator[str]:
    start = 0
    while len(sentence) - start > LONGEST_SENTENCE:
        end = start + LONGEST_SENTENCE
        places = [found.end() for found in _CLAUSE_END.finditer(sentence, start, end)]
        if not places or places[-1] - start < LONGEST_SENTENCE // 3:
            window = sentence[start : end + 1]
            places.append(start + cut_place(window, LONGEST_SENTENCE))
        yield sentence[start : places[-1]].rstrip()
        start = places[-1]
        while sentence[start].isspace():
            start += 1
    if len(sentence) > start:
        yield sentence[start:]


_HAN: Final = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[a-z][a-z'’-]*[a-z]|[{_HAN}]+")
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")

_PLAIN_ENGLISH: Final = """
    a about above across actually after again against ago all almost along already
    also although always am among an and another any anybody anyone anything are
    aren't around as at away back be because been before behind being below beside
    better between beyond both but by can can't cannot come comes coming could
    couldn't did didn't do does doesn't doing don't done down during each either else
    enough even ever every everybody everyone everything exactly example far feel few
    find first for from further get gets getting give given go goes going gone good
    got great guess had hardly has hasn't have haven't having he he'd he'll he's her
    here here's hers him his how however i'd i'll i'm i've idea if ignore in indeed
    inside instead into is isn't it it's its itself just keep kind know last later
    least less let let's like little long look looked looking looks lot lots made make
    makes many matter may maybe me mean means might mind mine moment more most much
    must my myself near need needs neither never next nice no nobody none nor not
    nothing now of off often oh ok okay on once one ones only onto or other others our
    ours out outside over own part past per perfect perhaps please point possible
    pretty probably put question quick quite rather read ready really right said same
    say says scroll second see seem seems seen sense several shall she she's should
    shouldn't side simple since so some somebody someone something sometimes soon
    sorry sort sounds still stuff such sure take taken taking talk talking tell than
    thank thanks that that's the their theirs them themselves then there there's these
    they they'd they'll they're they've thing things think thinking this those though
    thought through throughout thus time to today together too toward true try trying
    turn two type typed under until up upon us use used useful using usual usually
    very via want wants was wasn't way ways we we'd we'll we're we've well went were
    weren't what what's whatever when where whether which while who whoever whole whom
    whose why will with within without won't word words work worth would wouldn't
    write wrong yeah yes yet you you'd you'll you're you've your yours yourself
"""
_PLAIN_CHINESE: Final = """
    谢谢 感谢 多谢 不好意思 明白 清楚 懂 知道 好的 好主意 没问题 当然 可以 可能 应该
    有点 有些 一点 一些 一下 一会儿 一般 通常 大家 别人 自己 我们 你们 他们 她们 咱们
    咱 这个 那个 这些 那些 这种 那种 这样 那样 这么 那么 这边 那边 这里 那里 什么 怎么
    为什么 哪个 哪些 如何 因为 所以 如果 但是 不过 而且 或者 还是 就是 不是 没有 只是
    现在 刚才 以前 以后 时候 东西 事情 问题 意思 例子 方法 觉得 感觉 想 看 说 讲 听 吗
    呢 吧 啊 呀 哦 嗯 哈 嘛 呗 的 了 着 过 地 得 是 在 有 和 跟 与 及 或 就 都 也 还
    又 再 很 太 真 更 最 挺 比 把 被 给 让 对 从 到 向 往 为 以 于 我 你 您 他 她 它
    这 那 哪 谁 几 个 不 没 要 会 能 去 来 上 下 里 中 么
"""
"""Words that say nothing on what a sentence is about, longer ones first."""

_PLAIN: Final = frozenset(_PLAIN_ENGLISH.split())
_PLAIN_HAN: Final = re.compile("|".join(_PLAIN_CHINESE.split()))


_COMMON: Final = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于"
    "着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还"
    "进好小部其些主样理心她本前开但因只从想实日者意无力它与长把机十民第公此已工使情明"
    "性知全三又关点正业外将两高间由问很最重并物手应向头文体相见被利什二等产或新己制身"
    "果加月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处"
    "走义各入几口认条平系气题活更别打女变四总何电数少报才结反受目太量再感做接必场件计"
    "管期直指许至队形便空听却放像难且思完式色路记住类求据程边该交取望觉确传清今切院让"
    "识候带晚早您吧啊呢吗哦嗯哈呀嘛谢请懂跟往够挺啥谁每半块找写读字句词讲段聊慢快久累"
    "困坐站等错怪巧棒赞久忙喝吃玩"
)
"""The Chinese characters that any talk is full of."""


def content_words(text: str) -> set[str]:
    """Return the words that say what a text is about, small and without endings.

    English words lose their plural; a run of Chinese gives its pairs of characters,
    or the character that stands alone.  Numbers are not among them.
    """
    words: set[str] = set()
    for word in _WORD.findall(text.lower().replace("’", "'")):
        if word[0] <= "z":
            if word not in _PLAIN:
                words.add(_stem(word))
            continue
        for run in filter(None, _PLAIN_HAN.split(word)):
            words.update(run[i : i + 2] for i in range(max(len(run) - 1, 1)))
    return words


def substance(text: str) -> float:
    """Return how much a text is about, in words that are not plain.

    Of Chinese, where words are not told apart, an uncommon character counts as half a
    word and a common one as a fifth.
    """
    size = 0.0
    for word in _WORD.findall(text.lower().replace("’", "'")):
        if word[0] <= "z":
            size += word not in _PLAIN
        else:
            size += sum(
                0.2 if character in _COMMON else 0.5
                for run in _PLAIN_HAN.split(word)
                for character in run
            )
    return size


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending in ("ing", "ied", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def numbers(text: str) -> set[str]:
    """Return the numbers of a text, as they are written in digits."""
    return set(_NUMBER.findall(text))
