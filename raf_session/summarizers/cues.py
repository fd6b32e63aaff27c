"""The words by which English and Chinese tell what a sentence is for."""

from __future__ import annotations

import re
from typing import Final

__all__ = (
    "ACTED",
    "ASKED_FOR",
    "CONSTRAINT",
    "DECISION",
    "DEFERRAL",
    "GENERIC",
    "OPEN",
    "OWN",
    "PERSONAL",
    "PLEASANTRY",
    "PREFERENCE",
    "REACTION",
    "Cue",
)


class Cue:
    """Alternatives that a semicolon separates: English words, and runs of Chinese.

    Both are patterns, matched against text in small letters.
    """

    __slots__ = ("_chinese", "_english")

    def __init__(self, english: str, chinese: str) -> None:
        self._english: Final = re.compile(rf"\b(?:{_alternatives(english)})\b")
        self._chinese: Final = re.compile(_alternatives(chinese))

    def count(self, text: str) -> int:
        """Return how many different words of it a text in small letters holds."""
        words = set(self._english.findall(text))
        return len(
            words if text.isascii() else words.union(self._chinese.findall(text))
        )

    def within(self, text: str) -> bool:
        """Tell whether a text in small letters holds any."""
        return self._english.search(text) is not None or (
            not text.isascii() and self._chinese.search(text) is not None
        )


def _alternatives(listed: str) -> str:
    parts = " ".join(listed.split()).lower().split(";")
    return "|".join(part.strip() for part in parts)


DECISION: Final = Cue(
    r"""
    decid\w+; decision; agree[ds]?; settle[sd]?; chosen?; choos\w+; pick(?:ed|ing)?;
    opt(?:ed)?; vote[ds]?; sign(?:ed)?; approv\w+; confirm\w+;
    final(?:ly|ise|ize)?\w*; go(?:ing)? (?:with|for|ahead); went (?:with|for|ahead);
    stick(?:ing)? (?:with|to); switch\w*; moved?; moves; postpon\w+; cancel\w*;
    scrap\w*; drop(?:ped)?; instead; made up; no longer; any ?more; wins?; won;
    (?:re)?(?:book|schedul|assign)(?:e|ed|ing)?; it'?ll be; takes? over; replac\w+;
    start(?:s|ed)? (?:with|from|on); ditch\w*; skip\w*; abandon\w*; accept\w*;
    reject\w*; turned down; bought; order(?:ed); hired?; from now on; set to;
    the plan is; we'?re (?:doing|using|taking|keeping); I'?ll take; keep(?:ing)? the;
    renam\w+; merg\w+; committed?; green light; end(?:ed)? up; leave it at; called off
    """,
    """
    决定; 定了; 定在; 定下; 敲定; 说好; 说定; 商量; 就用; 就上; 就按; 就选; 选; 改成;
    改为; 改签; 改到; 改在; 换成; 换到; 确定; 确认; 同意; 通过; 批准; 取消; 不做;
    不搞; 停掉; 推迟; 提前到; 挪到; 投票; 签; 采用; 放弃; 已经?为; 办好; 负责; 还是用;
    以后; 今后; 算了; 录用; 买了; 订了; 接受; 拒绝; 赢; 归; 拍板; 拿定; 选定; 换掉;
    保留; 退掉; 搁置; 暂缓; 延到; 延期; 合并; 报名; 下单; 交给; 不.{1,3}了
    """,
)
"""Something was decided, or changed."""

PREFERENCE: Final = Cue(
    r"""
    prefer\w*; rather; sooner; lik(?:e|es|ed); lov(?:e|es|ed); ador\w+;
    hat(?:e|es|ed); dislike\w*; can'?t (?:stand|bear); fan of; favou?rite; enjoy\w*;
    suits?; easier (?:on|for); happiest; happier; allergic; vegan; vegetarian; always;
    never; don'?t (?:like|want|eat|drink|use); (?:please|kindly) \w+; call me;
    comfortable; keen; fond; into; the \w+er the; address me; instead of;
    at (?:my|our) best; drives? me; taste; allerg\w+; cannot (?:stand|bear);
    (?:mad|crazy) about; big on; annoy\w*; irritat\w*; bother\w*;
    better for (?:me|us); my thing; soft spot; ideal\w*; wish\w*; as \w+ as possible;
    avoid\w*; (?:sick|tired) of; weakness
    """,
    """
    喜欢; 爱; 讨厌; 偏好; 更愿意; 宁可; 宁愿; 习惯; 受不了; 怕; 希望; 最好; 请; 叫我;
    不碰; 不吃; 不喝; 不爱; 迷; 舒服; 自在; 合适; 一律; 不要; 别给; 别用; 越.{1,3}越;
    比起; 倾向; 钟意; 反感; 口味; 不习惯; 忌口; 偏爱; 最爱; 烦; 嫌; 情愿; 尽量;
    离不开; 看不惯; 吃不惯; 用惯; 顺手; 首选; 优先
    """,
)
"""How somebody likes things to be."""

CONSTRAINT: Final = Cue(
    r"""
    must(?:n'?t)?; ha(?:s|ve|d) to; need(?:s|ed)? to; cannot; can'?t; may not; won'?t;
    only; at most; at least; no more; not (?:more|over|above);
    nothing (?:above|over|below); under; limit\w*; budget; deadline; until; before;
    by (?:mon|tues|wednes|thurs|fri|satur|sun)day; allow\w*; permit\w*; forbid\w*;
    forbidden; require\w*; max(?:imum)?; min(?:imum)?; within; without; unless;
    except; refus\w+; out of the question; no later; frozen; doctor; lawyers?;
    landlord; ban(?:ned|s)?; prohibit\w*; strictly; capped?; exceed\w*; ceiling;
    no way; not allowed; impossible; has got to; mandatory; compulsory; at the latest;
    by (?:noon|midnight|end|the end); expir\w+; close[sd]?; only if; otherwise;
    policy; regulat\w+; compl(?:y|iance); off limits; no room
    """,
    """
    必须; 一定; 不能; 不得; 不许; 不准; 不让; 不可; 最多; 至少; 不超过; 超过; 以内;
    之前; 前要; 预算; 截止; 只能; 只有; 限; 务必; 禁止; 都得; 得能; 才能; 不管;
    没有.{1,6}(?:不|就); 不行; 过敏; 医生; 房东; 法务; 规定; 要求; 为止; 上限; 不报;
    封顶; 不收; 不接; 到期; 过期; 之内; 起码; 顶多; 凡是; 否则; 除非; 保密; 合规;
    上不了; 进不了; 用不了; 赶在; 前得; 不给; 才行; 不够; 来不及
    """,
)
"""What has to be, or must not."""

OPEN: Final = Cue(
    r"""
    to-?do; remind\w*; still; pending; follow(?:ing)? up; outstanding;
    not (?:\w+ )?yet; yet; haven'?t; hasn'?t; never got; remain\w*; next (?:step|on);
    waiting; await\w*; to be \w+ed; tbd; later; missing; unfinished; unresolved;
    unanswered; open (?:point|question|issue); find out; needs? \w+ing; I'll; I will;
    tomorrow; don'?t forget; remember to; owes?; overdue; left to; look into; chase;
    get back; heard back; unclear; undecided; unsure; not sure;
    no (?:answer|reply|word|news); on hold; up in the air; half-?(?:done|finished);
    should (?:check|ask|call); (?:somebody|someone) (?:should|has|needs); whether;
    once (?:he|she|they|it)
    """,
    """
    待; 还没; 没.{0,3}完; 尚未; 还未; 提醒; 回头; 稍后; 跟进; 等; 下一步; 接下来;
    记得; 别忘; 还得; 还要; 还差; 剩下; 差; 没.{0,4}(?:回|到|开始); 再定; 再说; 再议;
    明天; 后天; 一直没; 打听; 到账; 未; 欠; 没着落; 没结果; 没定; 未定; 悬着; 搁着;
    没消息; 没下文; 没收到; 没确认; 催; 落实; 抽空; 改天; 是否; 什么时候; 没想好;
    没解决; 还缺
    """,
)
"""Something is still to be done or to be told."""

PERSONAL: Final = Cue(
    r"""
    I; I'?m; I'?ve; I'?d; I'?ll; my; mine; we; we'?re; we'?ve; we'?ll; our; ours; us;
    me
    """,
    """
    我; 咱; 俺
    """,
)
"""The speaker is in the sentence."""

OWN: Final = Cue(
    r"""
    my; mine; our; ours; wife; husband; daughters?; sons?; kids?; mother; father; mum;
    dad; brother; sister; gran\w+; boss; colleagues?; client; customers?;
    (?:the|this) (?:team|company|office); surgery; diabet\w+; pregnan\w+;
    (?:I|we) (?:live|work|teach|study|drive|own|run|have|moved);
    (?:I|we) (?:was|were|am|are|grew|play|speak|use);
    I'?m (?:a|an|the|from|based|allergic|\d+); I'?ve had; reach me; call me; name is;
    belongs? to; send (?:it|the|them); born; partner; uncle; aunt; niece; nephew;
    cousins?; in-laws?; neighbou?rs?; friends?; dog; cat; flat; apartment; grew up;
    retired; pension
    """,
    """
    我(?:是|叫|在|住|家|们|的|女儿|儿子|爸|妈|老公|老婆|爱人|有|开|教|学|对|九|今年|用);
    家里; 公司; 房东; 外婆; 奶奶; 爷爷; 哥哥; 姐姐; 弟弟; 妹妹; 父亲; 母亲; 丈夫;
    妻子; 同事; 领导; 老板; 团队; 客户; 寄到; 地址; 电话; 邮箱; 单号; 账号; 编号;
    工号; 生日; 怀孕; 手术; 舅舅; 姑姑; 叔叔; 邻居; 朋友; 狗; 房子; 退休; 毕业; 出生;
    老家; 身份证; 医院; 婆婆; 岳母
    """,
)
"""The speaker's people, things and circumstances."""

ACTED: Final = Cue(
    r"""
    I; I(?:'ve|'ll); you(?:r|'re| are| have); done; noted; registered;
    under (?:reference|number); so it'?s agreed; what remains; recorded; created;
    sent; updated; refunded; issued; reserved; as you (?:asked|wanted)
    """,
    """
    已; 您的; 给您; 为您; 发给; 办好; 登记; 说好; 剩下; 受理; 我(?!们); 替您; 帮您;
    改签; 预订; 下单; 退款
    """,
)
"""An assistant did something for the user, or promises it."""

GENERIC: Final = Cue(
    r"""
    usually; typical(?:ly)?; general(?:ly)?; often; in general; many;
    some (?:people|of); most; people; others?; for (?:instance|example); an example;
    tends?; depends?; can be; rule of thumb; worth; useful; helps?; imagine; suppose;
    which is why; that is why; whereas; somewhat; (?:is|are|was|were) said; called;
    modern; common; each; every; either way; one hand; other hand; in most; such as;
    the (?:first|second|short); here is; let me rephrase; historically
    """,
    """
    每; 就会; 会让; 通常; 一般; 往往; 很多; 大多; 有的; 有些; 人们; 大家; 例如; 比如;
    举例; 举个; 取决于; 要看; 据说; 想象; 假如; 假设; 简单(?:来说|介绍); 换个说法;
    用大白话; 经验是; 一方面; 另一方面; 这是; 所以; 如果您; 都; 具体; 叫作; 不管怎样;
    主要; 反而; 越来越
    """,
)
"""Something is explained that holds for everybody."""

PLEASANTRY: Final = Cue(
    r"""
    let me know; feel free; would you like; do you want me; anything else;
    happy to help; glad; you'?re (?:very )?welcome; no problem; no worries;
    take your time; just (?:ask|shout); I hope; great question; good thinking;
    fair enough; thanks?; thank you; sorry; hello; hi; hey;
    good (?:morning|evening|afternoon); how (?:is|are) (?:it|you);
    sounds (?:good|reasonable); that makes sense; I see; good point; got it;
    whenever you; whichever you; I can (?:keep|also); explain\w*; an example;
    (?:simpler|another) way; plain words; usual approach; say that; haha; ignore me;
    (?:what|where) were we; talking about; you (?:said|mean|mentioned); go on;
    one moment; let me (?:think|scroll|read|see); I'?m (?:back|curious);
    I'?m just curious; that reminds me; I guess; interesting; a look
    """,
    """
    不客气; 随时; 很高兴; 还有什么; 需要.{0,6}吗; 您慢慢; 慢慢来; 谢谢; 感谢; 多谢;
    不好意思; 抱歉; 您好; 你好; 早上好; 晚上好; 哈哈; 别理我; 没关系; 看您方便;
    好问题; 很有意思; 有道理; 稍等; 等下; 原来如此; 长知识; 大白话; 举个例子; 举例;
    细一点; 简单点; 为什么叫; 怎么弄; 讲讲; 说一遍; 聊聊天; 够累; 回来了; 翻翻;
    一会儿看; 你继续; 想一想; 让我想; 讲得; 好奇; 跟得上; 跟不上; 说到哪; 刚说到;
    你说的; 你刚才
    """,
)
"""Manners, and talk about the talk."""

REACTION: Final = Cue(
    r"""
    ^(?:that|this|it|so|but|and|ah|aha|ha|hm+|wow|oh|well|right|wait|brilliant|great);
    you; your; weather; raining; pouring; opposite; same thing; follow
    """,
    """
    ^(?:这|那|太|真|哈|嗯|行|好|啊|哦|是|对|所以|原来|居然|难怪|怪不得|等我|话说); 你;
    天气; 下雨; 晚点; 堵车; 正好; 接着; 继续; 不就是; 一回事
    """,
)
"""An answer to what was said rather than something new, or talk of the day."""

DEFERRAL: Final = Cue(
    r"""
    can'?t (?:see|answer|tell|say|check); cannot (?:see|answer|tell|say|check);
    don'?t (?:have|know); do not (?:have|know); not sure; unable;
    no (?:information|idea|record); nothing on; need to (?:look|check|ask);
    will (?:look|check|ask|find); I'll (?:look|check|ask|find|come back|get back);
    come back to; get back to; leave it aside; for now; not yet; later
    """,
    """
    看不到; 没有.{0,6}信息; 没有提到; 不清楚; 不知道; 不确定; 答不上; 得.{0,3}查;
    再查; 查一下; 放一放; 之后再; 稍后; 回头; 暂时
    """,
)
"""An answer that is not known, or comes later."""

ASKED_FOR: Final = Cue(
    r"""
    ^(?:please |and |but |just )*(?:use|write|send|put|keep|book|call|make|add|remove);
    ^(?:please |and |but |just )*(?:avoid|leave|include|format|answer|reply|address);
    ^(?:please |and |but |just )*(?:set|check|ask|order|cancel|change|move);
    ^(?:and |but |just )*(?:don'?t|do not|never|always|no|nothing|only|not|everything);
    ^(?:anything|nobody)
    """,
    """
    ^(?:请|麻烦|帮我|帮忙|给我|别|不要|不用|把|用|记得|先|都|全部|所有|凡是|只)
    """,
)
"""A sentence that begins as a request or a rule does."""
