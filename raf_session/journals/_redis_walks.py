"""The scripts that read the index: all of its keys share a slot.

`KEYS`: members by key (scores 0), by activity (scores negated, so that the last active
stand first and equal times stand by key), by creation, tokens by member, labels in
front of members (scores 0), and a name that a script may use while it runs.
"""

from __future__ import annotations

from typing import Final

from raf_session.journals._redis_lua import TIMES
from raf_session.journals._redis_scripts import Script

__all__ = ("FIND", "WALK")

_MATCH: Final = """
local ANY = '\\0'

local function matches(member)
  if ARGV[3] ~= ANY or ARGV[4] ~= ANY or ARGV[5] ~= ANY then
    local app, user, scope = string.match(member, '^([^%z]*)%z([^%z]*)%z([^%z]*)%z')
    if (ARGV[3] ~= ANY and app ~= ARGV[3]) or (ARGV[4] ~= ANY and user ~= ARGV[4])
      or (ARGV[5] ~= ANY and scope ~= ARGV[5]) then return false end
  end
  for i = 13, #ARGV do
    if not redis.call('ZSCORE', KEYS[5], ARGV[i] .. '\\0' .. member) then
      return false
    end
  end
  return true
end

-- Whether one text stands behind another, by bytes: Lua's own order is the locale's.
local function behind(a, b)
  local n = math.min(#a, #b)
  for i = 1, n do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end
"""

_RANGE: Final = """
-- The smallest range of members in order of key that holds all that match.
local function source()
  local best, key, front = nil, KEYS[1], ''
  for i = 13, #ARGV do
    local start = ARGV[i] .. '\\0' .. ARGV[2]
    local stop = string.sub(start, 1, -2) .. '\\1'
    local n = redis.call('ZLEXCOUNT', KEYS[5], '[' .. start, '(' .. stop)
    if not best or n < best then best, key, front = n, KEYS[5], ARGV[i] .. '\\0' end
  end
  local lower, upper = '[' .. front .. ARGV[2], '+'
  if #front + #ARGV[2] > 0 then
    upper = '(' .. string.sub(front .. ARGV[2], 1, -2) .. '\\1'
  else lower = '(' end
  if not best then best = redis.call('ZLEXCOUNT', key, lower, upper) end
  return key, front, lower, upper, best
end
"""

_BY_KEY: Final = """
local function by_key(limit, most)
  local key, front, lower, upper = source()
  if ARGV[9] ~= '' and behind(ARGV[9], ARGV[2]) then
    lower = '(' .. front .. ARGV[9]
  end
  local examined, last, size = 0, '', math.min(limit, 200)
  while true do
    local chunk = redis.call('ZRANGEBYLEX', key, lower, upper, 'LIMIT', 0, size)
    for _, item in ipairs(chunk) do
      last = string.sub(item, #front + 1)
      examined = examined + 1
      if matches(last) then
        reply[#reply + 1] = last
        reply[#reply + 1] = redis.call('ZSCORE', KEYS[2], last) or '0'
      end
      if #reply >= 4 + 2 * limit or examined >= most then
        reply[2], reply[3] = '1', last
        return
      end
    end
    if #chunk < size then return end
    lower, size = '(' .. chunk[#chunk], math.min(2 * size, 200)
  end
end
"""

_BY_ACTIVITY: Final = """
-- The first rank behind the cursor.
local function begin(key)
  local score = negated(ARGV[8])
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. score)
  local high = redis.call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if behind(redis.call('ZRANGE', key, middle, middle)[1], ARGV[9]) then
      high = middle
    else low = middle + 1 end
  end
  return low
end

local function walk(key, limit, most)
  local rank, stop = 0, redis.call('ZCARD', key)
  if ARGV[9] ~= '' then rank = begin(key) end
  if ARGV[7] ~= '' then
    rank = math.max(rank, redis.call('ZCOUNT', key, '-inf', negated(ARGV[7])))
  end
  if ARGV[6] ~= '' then
    stop = redis.call('ZCOUNT', key, '-inf', negated(ARGV[6]))
  end
  local examined, chunk = 0, math.min(limit, 200)
  while rank < stop do
    local flat = redis.call('ZRANGE', key, rank, math.min(stop, rank + chunk) - 1,
      'WITHSCORES')
    chunk = math.min(2 * chunk, 200)
    for i = 1, #flat, 2 do
      rank, examined = rank + 1, examined + 1
      if flat[i] ~= '' and matches(flat[i]) then
        reply[#reply + 1] = flat[i]
        reply[#reply + 1] = flat[i + 1]
      end
      if #reply >= 4 + 2 * limit or examined >= most then
        reply[2], reply[3], reply[4] = '1', flat[i], flat[i + 1]
        return
      end
    end
  end
end

-- Copies those of a range, with their times, to a set in order of activity.
local function sort(key, front, lower, upper)
  redis.set_repl(redis.REPL_NONE)
  redis.call('DEL', KEYS[6])
  local found = redis.call('ZRANGEBYLEX', key, lower, upper)
  for from = 1, #found, 250 do
    local members, flat = {}, {}
    for i = from, math.min(#found, from + 249) do
      members[#members + 1] = string.sub(found[i], #front + 1)
    end
    for i, score in ipairs(redis.call('ZMSCORE', KEYS[2], unpack(members))) do
      flat[2 * i - 1], flat[2 * i] = score or '0', members[i]
    end
    redis.call('ZADD', KEYS[6], unpack(flat))
  end
end

local function by_activity(limit, most, few)
  local key, front, lower, upper, n = source()
  if n > few or #front + #ARGV[2] == 0 then walk(KEYS[2], limit, most) return end
  -- Where so many match that a page is likely to stand in front of the n-th, it is
  -- looked for first: to look at one costs a part of what it costs to sort one.
  if limit * redis.call('ZCARD', KEYS[2]) <= n * n then
    walk(KEYS[2], limit, n)
    if reply[2] == '' or #reply >= 4 + 2 * limit then return end
    reply = {'', '', '', ''}
  end
  sort(key, front, lower, upper)
  walk(KEYS[6], limit, most)
  redis.call('DEL', KEYS[6])
end
"""

WALK: Final = Script(
    TIMES,
    """
-- order, prefix, app, user, scope, since, before, cursor's time, cursor's member,
-- limit, most to examine, how many are few, labels.
-- Returns state, whether there is more, the last one examined, its score, then members
-- and scores.
local reply = {"", "", "", ""}
""",
    _MATCH,
    _RANGE,
    _BY_KEY,
    _BY_ACTIVITY,
    """
for _, key in ipairs({KEYS[1], KEYS[2], KEYS[3], KEYS[5]}) do
  if not redis.call('ZSCORE', key, '') then return {'lost'} end
end
if redis.call('HEXISTS', KEYS[4], '') == 0 then return {'lost'} end
if ARGV[1] == 'key' then by_key(tonumber(ARGV[10]), tonumber(ARGV[11]))
else by_activity(tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])) end
return reply
""",
)
"""A part of a listing: which sessions may match, in order."""

FIND: Final = Script(
    """
-- KEYS: a sorted set, tokens.  ARGV: lowest, highest, offset, how many.
-- Returns members and tokens.
local reply = {}
local found = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2],
  'LIMIT', ARGV[3], ARGV[4])
for _, member in ipairs(found) do
  reply[#reply + 1] = member
  reply[#reply + 1] = KEYS[2] and redis.call('HGET', KEYS[2], member) or ''
end
return reply
"""
)
"""Members of an index by their times."""
