# ruff: noqa: RUF001  (the document's own punctuation)
"""The document's YAML, in the indentation that its printed copy lost."""

from __future__ import annotations

from typing import Final

SESSION: Final = """\
agents:
  defaults:
    session:
      enabled: true
      storage_path: "sessions"   # 存储目录
      max_messages: 200          # 最大消息数量
      max_token_count: 128000    # 最大 Token 数
      default_scope: "per_peer"  # 默认作用域
      ttl: "24h"                 # 会话存活时间
      idle_timeout: "30m"        # 空闲超时时间
"""

COMPACTION: Final = """\
agents:
  defaults:
    compaction:
      mode: "safeguard"            # 压缩模式
      keep_recent_count: 10        # 保留最近 N 条消息
      target_tokens: 76800         # 目标 Token 数（固定阈值）
      target_tokens_percent: 60    # 目标 Token 百分比（基于模型上下文）
      min_messages_to_compact: 20  # 最小压缩消息数
      memory_flush: true           # 压缩后刷新内存
"""

RECOMMENDED_COMPACTION: Final = """\
# 推荐配置 - 平衡性能和上下文
compaction:
  mode: "safeguard"
  keep_recent_count: 10
  target_tokens_percent: 60
  min_messages_to_compact: 20
"""

RECOMMENDED_SESSION: Final = """\
session:
  ttl: "168h"          # 7 天
  idle_timeout: "24h"  # 24 小时无活动
"""

WHOLE: Final = f"""\
{SESSION}{COMPACTION.split("defaults:", maxsplit=1)[1].lstrip(chr(10))}\
    tool_calls:
      save_tool_calls: false
      keep_tool_calls_count: 7
      max_tool_result_size: 900
"""
"""All three sections in one, as a file has them."""
