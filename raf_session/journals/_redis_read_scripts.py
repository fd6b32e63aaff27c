"""The scripts that read a session or a state as it is at one moment."""

from __future__ import annotations

from typing import Final

from raf_session.journals._redis_lua import SCOPES, SESSIONS, TIMES
from raf_session.journals._redis_scripts import Script

__all__ = ("HEADS", "LOAD", "LOOK", "PAGE", "READ_SCOPE")

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
reply[12] = whole(redis.call('EXISTS', unpack(KEYS, 1, 5)))
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
if rows == '' then return {'moved'} end
return {'', rows, rank <= last and whole(rank) .. ' ' .. ARGV[5] or ''}
""",
)
"""More rows of a load, if nothing moved since."""

HEADS: Final = Script(
    """
-- KEYS: sessions.  Returns one text of four for each, joined by NUL: whether it is
-- there and its incarnation, facts, about, request.
local all = {}
for i, key in ipairs(KEYS) do
  local h = redis.call('HMGET', key, 'incarnation', 'facts', 'about', 'request')
  all[4 * i - 3] = (h[2] and '1' or '0') .. (h[1] or '')
  all[4 * i - 2], all[4 * i - 1] = h[2] or '', h[3] or ''
  all[4 * i] = h[4] or ''
end
return table.concat(all, '\\0')
"""
)
"""The heads of sessions, as one text: a client takes long to read many small ones."""

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
