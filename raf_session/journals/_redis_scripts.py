"""The scripts that run inside the server, each all or nothing."""

from __future__ import annotations

import hashlib
from typing import Final

from raf_session.journals._redis_lua import (
    COMMANDS,
    OPERATIONS,
    SCOPES,
    SESSIONS,
    TIMES,
)

__all__ = (
    "APPEND",
    "APPEND_MORE",
    "CLEAR",
    "COMMIT",
    "LOAD",
    "LOOK",
    "OPERATE",
    "PAGE",
    "READ_SCOPE",
    "Script",
)


class Script:
    """A script, and the digest under which a server knows it."""

    __slots__ = ("sha", "text")

    def __init__(self, *parts: str) -> None:
        self.text: Final = "\n".join(parts)
        self.sha: Final = hashlib.sha1(
            self.text.encode(), usedforsecurity=False
        ).hexdigest()


_SCOPE_REPLY: Final = """
-- Returns "created active", then names and values; empty where there is no live state.
local function scope_reply(k, t, refresh, index, member)
  local key = KEYS[k]
  local m = read_scope(key)
  if not m or live_keys(key, m) == 0 or expired(m[1], m[2], t) then return '', '' end
  if refresh == '1' then
    m[2] = later(m[2], t[1])
    redis.call('HSET', key, '', table.concat(m, ' '))
    arm(remaining(m[1], m[2], t), k, k)
    if index ~= '' then index_scope(tonumber(index), member, m) end
  end
  local flat = redis.call('HGETALL', key)
  local found = {}
  for i = 1, #flat, 2 do
    local space = string.find(flat[i + 1], ' ', 1, true)
    if flat[i] ~= '' and space then
      found[#found + 1] = flat[i]
      found[#found + 1] = string.sub(flat[i + 1], space + 1)
    end
  end
  return m[1] .. ' ' .. m[2], table.concat(found, '\\0')
end
"""

_ROWS: Final = """
-- Returns the rows of these ranks, and the rank behind the last of them.
local function read_rows(key, rank, last, most, bytes)
  local found, size = {}, 0
  while rank <= last do
    local chunk = redis.call('ZRANGE', key, rank, math.min(last, rank + 99))
    if #chunk == 0 then break end
    for _, row in ipairs(chunk) do
      found[#found + 1] = row
      size, rank = size + #row, rank + 1
      if #found >= most or size >= bytes then
        return table.concat(found, '\\0\\0'), rank
      end
    end
  end
  return table.concat(found, '\\0\\0'), rank
end

local function stored_at(row) return string.match(row, '^%d+%z%d+%z(%-?%d+)%z') end
"""

_APPEND: Final = """
-- One text of parts joined by NUL, so that few arguments are sent: words (schema,
-- expected, trim, touch, updated, messages, conversations, tokens, n, keep, base, owed,
-- confirm, key of the index by activity, terms); incarnation; request record;
-- digests; incarnation and version that were read; pinned as a digit, about; member.
-- '-' or '' where there is none.  Then n rows from their counts on; operations.
-- Returns texts joined by NUL.
local function answer(reply) return table.concat(reply, '\\0') end

local numbers, incarnation, record, digests, seen, about, member =
  string.match(ARGV[1], '@PARTS@')
local a = {string.match(numbers, '@WORDS@')}
local t = {unpack(a, 15)}
local n = tonumber(a[9])
local hasty = a[3] == '-' and a[10] == '-'
local wrong, h, f = live(t, incarnation, a[1], hasty)
if wrong then return answer(wrong) end

local all = {}
for i = 1, n do all[i] = string.match(ARGV[i + 1], '^[^%z]*%z([^%z]+)%z') end
local known = {}
for from = 1, n, 500 do
  local upto = math.min(n, from + 499)
  for _, place in ipairs(redis.call('HMGET', KEYS[4], unpack(all, from, upto))) do
    if place then
      local row = row_at(place)
      if not row then
        return answer({'damaged', 'an entry is gone from ' .. place})
      end
      known[#known + 1] = row
    end
  end
end
if #known > 0 then
  if a[13] == '1' then redis.call('HSET', KEYS[1], 'facts', h[2]) end
  local reply = reply_head('known', h, f)
  reply[6] = table.concat(known, '\\0\\0')
  return answer(reply)
end
if a[2] ~= '-' and tonumber(a[2]) ~= tonumber(f[2]) then
  return answer(reply_head('stale', h, f))
end
local former = h[4] and words(h[4]) or {'0', '-'}
if a[10] ~= '-' then
  local keep = tonumber(a[10])
  if keep > 0 and (keep > tonumber(former[1]) or a[11] ~= former[2]) then
    return answer(reply_head('request', h, f))
  end
end
if seen ~= '' then
  if seen ~= h[1] .. ' ' .. f[1] then return answer({'moved'}) end
  f[6], h[3] = string.sub(about, 1, 1), string.sub(about, 2)
  redis.call('HSET', KEYS[1], 'about', h[3])
end

if a[14] ~= '-' then
  redis.call('ZADD', KEYS[tonumber(a[14])], 'LT', negated(a[4]), member)
end
operate(n + 2)
local seq, revision = tonumber(f[7]), whole(tonumber(f[2]) + 1)
local moment = later(t[1], f[17])
for from = 1, n, 500 do
  local rows, places = {}, {}
  for i = from, math.min(n, from + 499) do
    local place = whole(seq + i)
    rows[#rows + 1] = place
    rows[#rows + 1] = place .. '\\0000\\0' .. moment .. '\\0' .. ARGV[i + 1]
    places[#places + 1] = all[i]
    places[#places + 1] = place .. ' 0'
  end
  redis.call('ZADD', KEYS[2], unpack(rows))
  redis.call('HSET', KEYS[4], unpack(places))
end
local sums = {n, tonumber(a[6]), tonumber(a[7]), tonumber(a[8])}
local left = {0, 0, 0, 0}
f[17] = moment
if a[3] ~= '-' then
  local excess = tonumber(f[9]) + n - tonumber(a[3])
  if excess > 0 then
    left = archive(redis.call('ZRANGE', KEYS[2], 0, excess - 1), revision)
    f[8] = revision
    f[18] = whole(tonumber(f[18]) + excess)
    if a[3] == '0' then f[17] = '0' end
  end
end
for i = 1, 4 do
  if sums[i] ~= left[i] then
    f[8 + i] = whole(tonumber(f[8 + i]) + sums[i] - left[i])
  end
  if sums[i] ~= 0 then f[12 + i] = whole(tonumber(f[12 + i]) + sums[i]) end
end
f[1], f[2] = whole(tonumber(f[1]) + 1), revision
f[4], f[5] = later(f[4], a[5]), later(f[5], a[4])
f[7] = whole(seq + n)
if a[12] ~= '0' then f[19] = whole(tonumber(f[19]) + tonumber(a[12])) end
if a[10] ~= '-' then
  write_digests(tonumber(former[1]), tonumber(a[10]), digests)
  h[4] = record
  redis.call('HSET', KEYS[1], 'request', h[4])
end
local facts = table.concat(f, ' ')
redis.call('HSET', KEYS[1], 'facts', facts)
arm_session(f, t)
return answer({'', h[1], facts, h[3], h[4] or '', moment, results[1] or ''})
""".replace("@PARTS@", f"^{'%z'.join(['([^%z]*)'] * 6)}%z(.*)$").replace(
    "@WORDS@", f"^{' '.join(['(%S+)'] * 20)}$"
)

APPEND: Final = Script(TIMES, SESSIONS, COMMANDS, _APPEND)
"""`Journal.append`: looks, draws the places and writes."""

APPEND_MORE: Final = Script(TIMES, SESSIONS, SCOPES, COMMANDS, OPERATIONS, _APPEND)
"""The same, with operations that are more than commands."""

LOOK: Final = Script(
    TIMES,
    SESSIONS,
    _ROWS,
    """
-- first or '', last, most rows with bodies, purge, ids
local h, f = read_head()
local detail = f and fault(h, f) or ''
local held = redis.call('EXISTS', KEYS[2], KEYS[3])
local reply = {h[1] or '', h[2] or '', h[3] or '', h[4] or '', detail, whole(held)}
reply[7], reply[8], reply[9], reply[10], reply[11] = '', '', '', '', ''
local HEADER = '^(%d+%z%d+%z%-?%d+%z[^%z]+%z[^%z]+%z[^%z]+%z)'
local function headers(rows)
  for i, row in ipairs(rows) do rows[i] = string.match(row, HEADER) .. '-' end
  return table.concat(rows, '\\0\\0')
end
if ARGV[1] ~= '' then
  local first, last = ARGV[1], ARGV[2]
  local run = redis.call('ZRANGEBYSCORE', KEYS[2], first, last)
  if #run > tonumber(ARGV[3]) then reply[7] = headers(run)
  else reply[7] = table.concat(run, '\\0\\0') end
  local front = redis.call(
    'ZREVRANGEBYSCORE', KEYS[2], '(' .. first, '-inf', 'LIMIT', 0, 1)
  local behind = redis.call(
    'ZRANGEBYSCORE', KEYS[2], '(' .. last, '+inf', 'LIMIT', 0, 1)
  if front[1] then reply[8] = stored_at(front[1]) end
  if behind[1] then reply[9] = stored_at(behind[1]) end
  if ARGV[4] == '1' then
    reply[10] = headers(redis.call('ZRANGEBYSCORE', KEYS[3], first, last))
  end
  local known = {}
  for i = 5, #ARGV do
    if redis.call('HEXISTS', KEYS[4], ARGV[i]) == 1 then
      known[#known + 1] = ARGV[i]
    end
  end
  reply[11] = table.concat(known, '\\0')
end
return reply
""",
)
"""What Python needs in order to decide on a write; changes nothing."""

COMMIT: Final = Script(
    TIMES,
    SESSIONS,
    SCOPES,
    COMMANDS,
    OPERATIONS,
    """
-- incarnation and version that were read or 'none', who writes, expiry or '',
-- operations
local h = redis.call('HMGET', KEYS[1], 'incarnation', 'facts', 'by')
if h[3] == ARGV[2] then return {'done'} end
local seen = 'none'
if h[2] then seen = (h[1] or '') .. ' ' .. (string.match(h[2], '^%d+') or '') end
if seen ~= ARGV[1] then return {'moved'} end
operate(4)
local ttl = nil
if ARGV[3] ~= '' then ttl = ARGV[3] end
arm(ttl, 1, 5)
return {'done', unpack(results)}
""",
)
"""Writes what Python decided, if the session is still as Python saw it."""

OPERATE: Final = Script(
    TIMES, SESSIONS, SCOPES, COMMANDS, OPERATIONS, "operate(1)\nreturn results"
)
"""Operations on keys that belong to no session: indexes and scopes."""

CLEAR: Final = Script(
    TIMES,
    SESSIONS,
    """
-- terms, then fields of deltas that were applied
local t = terms(1)
local h, f = read_head()
if not f or #f ~= 20 then return 0 end
local gone = redis.call('HDEL', KEYS[1], unpack(ARGV, 2))
if gone > 0 then
  f[1] = whole(tonumber(f[1]) + 1)
  f[19] = whole(tonumber(f[19]) - gone)
  redis.call('HSET', KEYS[1], 'facts', table.concat(f, ' '))
  arm_session(f, t)
end
return gone
""",
)
"""Takes deltas out of a session's record, once they were applied elsewhere."""

LOAD: Final = Script(
    TIMES,
    SESSIONS,
    SCOPES,
    _ROWS,
    _SCOPE_REPLY,
    """
-- terms, schema, refresh, last, after seq, before seq, after time, most rows,
-- most bytes, archived, user's state key or '', its terms, its index or '', member,
-- activity index or '', member; '' where there is none
local t = terms(1)
local wrong, h, f = live(t, '', ARGV[2])
if wrong then return wrong end
if ARGV[3] == '1' then
  f[1], f[5] = whole(tonumber(f[1]) + 1), later(f[5], t[1])
  redis.call('HSET', KEYS[1], 'facts', table.concat(f, ' '))
  arm_session(f, t)
  if ARGV[15] ~= '' then
    redis.call('ZADD', KEYS[tonumber(ARGV[15])], negated(f[5]), ARGV[16])
  end
end
local reply = reply_head('', h, f)
local most, bytes = tonumber(ARGV[8]), tonumber(ARGV[9])

local low, high = 0, tonumber(f[9]) - 1
if ARGV[5] ~= '' then low = redis.call('ZCOUNT', KEYS[2], '-inf', ARGV[5]) end
if ARGV[6] ~= '' then
  high = redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. ARGV[6]) - 1
end
if ARGV[7] ~= '' then
  local stop = high + 1
  while low < stop do
    local middle = math.floor((low + stop) / 2)
    local row = redis.call('ZRANGE', KEYS[2], middle, middle)[1]
    if less(ARGV[7], stored_at(row)) then stop = middle else low = middle + 1 end
  end
end
if ARGV[4] ~= '' then low = math.max(low, high + 1 - tonumber(ARGV[4])) end
local rank
reply[6], rank = read_rows(KEYS[2], low, high, most, bytes)
reply[7] = rank <= high and whole(rank) .. ' ' .. whole(high) or ''
reply[8], reply[9] = '', ''
if ARGV[10] == '1' then
  high = tonumber(f[18]) - 1
  reply[8], rank = read_rows(KEYS[3], 0, high, most, bytes)
  reply[9] = rank <= high and whole(rank) .. ' ' .. whole(high) or ''
end
local own = {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
  if string.find(flat[i], ':', 1, true) then
    own[#own + 1] = flat[i]
    own[#own + 1] = flat[i + 1]
  end
end
reply[10] = table.concat(own, '\\0')
reply[11] = redis.call('GET', KEYS[5]) or ''
reply[12], reply[13] = '', ''
if ARGV[11] ~= '' then
  reply[12], reply[13] = scope_reply(
    tonumber(ARGV[11]), terms(12), ARGV[3], ARGV[13], ARGV[14])
end
return reply
""",
)
"""`Journal.load`: everything of one moment, and where the next page begins."""

PAGE: Final = Script(
    TIMES,
    SESSIONS,
    _ROWS,
    """
-- incarnation, spliced_at, number of the key, rank, last rank, most rows, most bytes
local h, f = read_head()
if not f or h[1] ~= ARGV[1] or f[8] ~= ARGV[2] then return {'moved'} end
local last = tonumber(ARGV[5])
local rows, rank = read_rows(KEYS[tonumber(ARGV[3])], tonumber(ARGV[4]), last,
  tonumber(ARGV[6]), tonumber(ARGV[7]))
return {'', rows, rank <= last and whole(rank) .. ' ' .. ARGV[5] or ''}
""",
)
"""More rows of a load, if nothing moved since."""

READ_SCOPE: Final = Script(
    TIMES,
    SCOPES,
    _SCOPE_REPLY,
    """
-- KEYS: state, what is owed.  ARGV: terms, refresh, index or '', member
local meta, pairs = scope_reply(1, terms(1), ARGV[2], ARGV[3], ARGV[4])
return {meta, pairs, unpack(redis.call('ZRANGE', KEYS[2], 0, 99))}
""",
)
"""`Journal.scoped_state`."""
