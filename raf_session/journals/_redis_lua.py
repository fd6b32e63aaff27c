"""What the scripts share: the functions that stand in front of each of them.

A script works on the keys of one session (`KEYS[1]` to `KEYS[5]`: session, entries,
archive, ids, digests) or of one scope, and further keys that its operations name by
number.  Bodies, names and values are bytes to it; numbers that matter to the byte are
compared as text.
"""

from __future__ import annotations

from typing import Final

__all__ = ("FACTS", "SCOPES", "SESSIONS", "TIMES")

TIMES: Final = """
local function whole(x) return string.format('%d', x) end

local function words(text)
  local found = {}
  for word in string.gmatch(text, '%S+') do found[#found + 1] = word end
  return found
end

local function less(a, b)
  local x, y = tonumber(a), tonumber(b)
  if x ~= y then return x < y end
  if a == b then return false end
  if #a ~= #b then return (#a < #b) == (x > 0) end
  return (a < b) == (x > 0)
end

local function negated(a)
  if a == '0' then return a end
  if string.sub(a, 1, 1) == '-' then return string.sub(a, 2) end
  return '-' .. a
end

local function later(a, b) if less(a, b) then return b end return a end

-- Words of one argument: now, idle cutoff, lifetime cutoff, idle, lifetime, grace;
-- '-' where a rule is off.
local function terms(i) return words(ARGV[i]) end

local function expired(created, active, t)
  return (t[2] ~= '-' and active ~= '0' and less(active, t[2]))
    or (t[3] ~= '-' and created ~= '0' and less(created, t[3]))
end

local function remaining(created, active, t)
  local left
  if t[2] ~= '-' and active ~= '0' then
    left = tonumber(active) + tonumber(t[4]) - tonumber(t[1])
  end
  if t[3] ~= '-' and created ~= '0' then
    local other = tonumber(created) + tonumber(t[5]) - tonumber(t[1])
    if not left or other < left then left = other end
  end
  if not left then return nil end
  left = math.floor(left / 1000) + tonumber(t[6])
  return whole(math.max(1, math.min(left, 1e14)))
end

-- A collector that fails must not undo the write, so its errors end here.
local function arm(ttl, first, last)
  if not ttl and redis.call('PTTL', KEYS[first]) == -1 then return end
  for i = first, last do
    if ttl then redis.pcall('PEXPIRE', KEYS[i], ttl)
    else redis.pcall('PERSIST', KEYS[i]) end
  end
end
"""
"""Text, time and native expiry."""

FACTS: Final = f"^{' '.join(('(%d+)', '(%d+)', *['(%-?%d+)'] * 18))}$"
"""The pattern of a head's numbers."""

SESSIONS: Final = """
-- f: version revision created updated active pinned last_seq spliced_at
--    active*4 total*4 tail_at archived owed schema
local FACTS = '@FACTS@'

local function read_head()
  local h = redis.call('HMGET', KEYS[1], 'incarnation', 'facts', 'about', 'request')
  if not h[2] then return h, nil end
  return h, {string.match(h[2], FACTS)}
end

local function fault(h, f, hasty)
  if #f ~= 20 or not h[1] or not h[3] then return 'its head cannot be read' end
  local active, archived = tonumber(f[9]), tonumber(f[18])
  local n = redis.call('ZCARD', KEYS[2])
  if n ~= active then return n .. ' active entries, not ' .. f[9] end
  n = not hasty and redis.call('ZCARD', KEYS[3]) or archived
  if n ~= archived then return n .. ' archived entries, not ' .. f[18] end
  n = redis.call('HLEN', KEYS[4])
  if n ~= active + archived then
    return n .. ' ids of ' .. whole(active + archived) .. ' entries'
  end
  if hasty then return nil end
  n = redis.call('STRLEN', KEYS[5])
  local digests = h[4] and tonumber(string.match(h[4], '^%d+')) or 0
  if n ~= 16 * digests then return n .. ' characters of digests' end
  return nil
end

-- Returns what is wrong, or nil, then the head.
local function live(t, incarnation, schema, hasty)
  local h, f = read_head()
  if not f then return {'missing'}, h, f end
  local reply = {'', h[1] or '', h[2], h[3] or '', h[4] or ''}
  if #f == 20 then
    if f[6] == '0' and expired(f[3], f[5], t) then reply[1] = 'expired' return reply end
    if incarnation ~= '' and h[1] ~= incarnation then
      reply[1] = 'replaced' return reply
    end
    if tonumber(f[20]) > tonumber(schema) then reply[1] = 'newer' return reply end
  end
  local detail = fault(h, f, hasty)
  if detail then return {'damaged', detail} end
  return nil, h, f
end

local function arm_session(f, t)
  local ttl
  if f[6] == '0' and f[19] == '0' then ttl = remaining(f[3], f[5], t) end
  arm(ttl, 1, 5)
end

local function reply_head(status, h, f)
  return {status, h[1], table.concat(f, ' '), h[3], h[4] or ''}
end

local function row_at(place)
  local seq, left = string.match(place, '^(%d+) (%d+)$')
  if left == '0' then return redis.call('ZRANGEBYSCORE', KEYS[2], seq, seq)[1] end
  for _, row in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], seq, seq)) do
    if string.match(row, '^%d+%z(%d+)%z') == left then return row end
  end
  return nil
end

local ROW = '^(%d+)%z%d+%z%-?%d+%z(%-?%d+) (%-?%d+) (%-?%d+)%z([^%z]+)%z'

-- Moves active rows to the archive; returns what they counted.
local function archive(rows, revision)
  local n, messages, conversations, tokens = 0, 0, 0, 0
  for _, row in ipairs(rows) do
    local seq, m, c, k, id = string.match(row, ROW)
    redis.call('ZREMRANGEBYSCORE', KEYS[2], seq, seq)
    redis.call('ZADD', KEYS[3], seq,
      seq .. '\\0' .. revision .. string.sub(row, #seq + 3))
    redis.call('HSET', KEYS[4], id, seq .. ' ' .. revision)
    n, messages = n + 1, messages + tonumber(m)
    conversations, tokens = conversations + tonumber(c), tokens + tonumber(k)
  end
  return {n, messages, conversations, tokens}
end

local function write_digests(former, keep, digests)
  if keep == former then
    if digests ~= '' then redis.call('APPEND', KEYS[5], digests) end
    return
  end
  local kept = ''
  if keep > 0 then kept = redis.call('GETRANGE', KEYS[5], 0, 16 * keep - 1) end
  if kept .. digests == '' then redis.call('DEL', KEYS[5])
  else redis.call('SET', KEYS[5], kept .. digests) end
end
""".replace("@FACTS@", FACTS)
"""Heads, rows and digests of one session."""

SCOPES: Final = """
-- The field without a name holds: created active number tombs; every other field
-- "number value", or "number" alone where a deletion must outlive an older write.
local function read_scope(key)
  local meta = redis.call('HGET', key, '')
  if not meta then return nil end
  return words(meta)
end

local function live_keys(key, m) return redis.call('HLEN', key) - 1 - tonumber(m[4]) end

-- The scope's own index: KEYS[i], KEYS[i + 1], KEYS[i + 2].
local function index_scope(i, member, m)
  if m then
    redis.call('ZADD', KEYS[i], 0, member)
    redis.call('ZADD', KEYS[i + 1], 'GT', m[2], member)
    redis.call('ZADD', KEYS[i + 2], m[1], member)
  else
    for n = i, i + 2 do redis.call('ZREM', KEYS[n], member) end
  end
end

local function highest(owed)
  if owed == '' then return 0 end
  local last = redis.call('ZRANGE', owed, -1, -1, 'WITHSCORES')
  return last[2] and tonumber(last[2]) or 0
end

local function set_name(key, m, number, name, value)
  local former = redis.call('HGET', key, name)
  if former and tonumber(string.match(former, '^%d+')) >= number then return end
  if former and not string.find(former, ' ', 1, true) then m[4] = m[4] - 1 end
  redis.call('HSET', key, name, whole(number) .. ' ' .. value)
end

local function delete_name(key, owed, m, number, name)
  local former = redis.call('HGET', key, name)
  if former and tonumber(string.match(former, '^%d+')) >= number then return end
  local buried = former and not string.find(former, ' ', 1, true)
  local below = '(' .. whole(number)
  if owed ~= '' and redis.call('ZCOUNT', owed, '-inf', below) > 0 then
    redis.call('HSET', key, name, whole(number))
    if not buried then m[4] = m[4] + 1 end
  elseif former then
    redis.call('HDEL', key, name)
    if buried then m[4] = m[4] - 1 end
  end
end

-- i: where in ARGV stand: what is owed or '', touch, n, names and values, n, names.
-- Returns what was read and written, and whether it is owed no longer: it was applied.
local function write_scope(k, owed, t, i)
  local key = KEYS[k]
  if ARGV[i] ~= '' and not redis.call('ZSCORE', owed, ARGV[i]) then
    return nil, true
  end
  local m = read_scope(key)
  local number, touch = tonumber(string.match(ARGV[i], '^%d+')), ARGV[i + 1]
  local top = math.max(m and tonumber(m[3]) or 0, highest(owed))
  number = number or top + 1
  if m and live_keys(key, m) > 0 and expired(m[1], m[2], t) then
    redis.call('DEL', key)
    m = nil
  end
  if not m then m = {touch, touch, 0, 0}
  elseif live_keys(key, m) == 0 then m[1], m[2] = touch, touch end
  m = {m[1], later(m[2], touch), math.max(top, number), tonumber(m[4])}
  redis.call('HSET', key, '', '')
  i = i + 2
  for n = 1, tonumber(ARGV[i]) do
    set_name(key, m, number, ARGV[i + 2 * n - 1], ARGV[i + 2 * n])
  end
  i = i + 1 + 2 * tonumber(ARGV[i])
  for n = 1, tonumber(ARGV[i]) do
    delete_name(key, owed, m, number, ARGV[i + n])
  end
  if redis.call('HLEN', key) == 1 then redis.call('DEL', key) return nil end
  redis.call('HSET', key, '',
    m[1] .. ' ' .. m[2] .. ' ' .. whole(m[3]) .. ' ' .. whole(m[4]))
  arm(remaining(m[1], m[2], t), k, k)
  if live_keys(key, m) == 0 then return nil end
  return m
end
"""
"""The state of an app or a user: one hash, each key under the number of its write."""
