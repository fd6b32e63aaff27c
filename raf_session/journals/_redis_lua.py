"""What the scripts share: the functions that stand in front of each of them.

A script works on the keys of one session (`KEYS[1]` to `KEYS[5]`: session, entries,
archive, ids, digests) or of one scope, and further keys that its operations name by
number.  Bodies, names and values are bytes to it; numbers that matter to the byte are
compared as text.
"""

from __future__ import annotations

from typing import Final

__all__ = ("COMMANDS", "OPERATIONS", "SCOPES", "SESSIONS", "TIMES")

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

_FACTS: Final = " ".join(("(%d+)", "(%d+)", *["(%-?%d+)"] * 18))

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
""".replace("@FACTS@", f"^{_FACTS}$")
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

-- i: where in ARGV stand: number, touch, n, names and values, n, names
local function write_scope(k, owed, t, i)
  local key = KEYS[k]
  local m = read_scope(key)
  local number, touch = tonumber(ARGV[i]), ARGV[i + 1]
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

COMMANDS: Final = """
local results = {}
local operations = {}

-- Each operation: how many words, its name, the number of its key, its arguments.
local function operate(i)
  while ARGV[i] do
    local last = i + tonumber(ARGV[i])
    local special = operations[ARGV[i + 1]]
    if special then special(i + 2, last)
    else
      redis.call(ARGV[i + 1], KEYS[tonumber(ARGV[i + 2])], unpack(ARGV, i + 3, last))
    end
    i = last + 1
  end
end
"""
"""What Python wants to be written, in one list."""

OPERATIONS: Final = """

operations['@archive'] = function(i)
  archive(redis.call('ZRANGEBYSCORE', KEYS[2], ARGV[i + 1], ARGV[i + 2]), ARGV[i])
end

operations['@digests'] = function(i)
  write_digests(tonumber(ARGV[i]), tonumber(ARGV[i + 1]), ARGV[i + 2])
end

-- key, owed key or '', first index key or '', member, terms, what `write_scope` reads
operations['@scope'] = function(i)
  local owed = ARGV[i + 1]
  if owed ~= '' then owed = KEYS[tonumber(owed)] end
  local m = write_scope(tonumber(ARGV[i]), owed, terms(i + 4), i + 5)
  if ARGV[i + 2] ~= '' then index_scope(tonumber(ARGV[i + 2]), ARGV[i + 3], m) end
  results[#results + 1] = m and m[1] .. ' ' .. m[2] or ''
end

-- key, owed key, what stands for the session: draws the number of a write
operations['@draw'] = function(i)
  local m = read_scope(KEYS[tonumber(ARGV[i])])
  local owed = KEYS[tonumber(ARGV[i + 1])]
  local number = whole(math.max(m and tonumber(m[3]) or 0, highest(owed)) + 1)
  redis.call('ZADD', owed, number, number .. '\\0' .. ARGV[i + 2])
  results[#results + 1] = number
end

-- key, owed key, number: a write is applied and in no record any more
operations['@settle'] = function(i)
  local key, owed = KEYS[tonumber(ARGV[i])], KEYS[tonumber(ARGV[i + 1])]
  redis.call('ZREMRANGEBYSCORE', owed, ARGV[i + 2], ARGV[i + 2])
  local m = read_scope(key)
  if not m or m[4] == '0' or redis.call('EXISTS', owed) == 1 then return end
  local flat = redis.call('HGETALL', key)
  for n = 1, #flat, 2 do
    if flat[n] ~= '' and not string.find(flat[n + 1], ' ', 1, true) then
      redis.call('HDEL', key, flat[n])
    end
  end
  m[4] = '0'
  if redis.call('HLEN', key) == 1 then redis.call('DEL', key)
  else redis.call('HSET', key, '', table.concat(m, ' ')) end
end

-- owing key, member, its score: nothing is owed to a scope
operations['@unowe'] = function(i)
  local owing = KEYS[tonumber(ARGV[i])]
  local score = redis.call('ZSCORE', owing, ARGV[i + 1])
  if score and tonumber(score) == tonumber(ARGV[i + 2]) then
    redis.call('ZREM', owing, ARGV[i + 1])
  end
end

-- key, when it was created and active: deletes the state if it is still that old
operations['@drop'] = function(i)
  local key = KEYS[tonumber(ARGV[i])]
  local m = read_scope(key)
  if m and m[1] == ARGV[i + 1] and m[2] == ARGV[i + 2] then redis.call('DEL', key) end
end

-- first index key, member, its score: takes a scope out of its index
operations['@unscope'] = function(i)
  local k, member = tonumber(ARGV[i]), ARGV[i + 1]
  local score, gone = redis.call('ZSCORE', KEYS[k + 1], member), 0
  if not score or tonumber(score) == tonumber(ARGV[i + 2]) then
    gone = redis.call('ZREM', KEYS[k], member)
    redis.call('ZREM', KEYS[k + 1], member)
    redis.call('ZREM', KEYS[k + 2], member)
  end
  results[#results + 1] = whole(gone)
end

-- A token is an incarnation, then the labels under which the session is found.
-- tokens key, labels key, member, token, n, keys of n sorted sets that hold the member
operations['@forget'] = function(i)
  local tokens, labels = KEYS[tonumber(ARGV[i])], KEYS[tonumber(ARGV[i + 1])]
  local member, gone = ARGV[i + 2], 0
  local value = redis.call('HGET', tokens, member)
  local token = value and string.match(value, '^[^%z]*')
  if token == ARGV[i + 3] then
    gone = redis.call('HDEL', tokens, member)
    for n = i + 5, i + 4 + tonumber(ARGV[i + 4]) do
      redis.call('ZREM', KEYS[tonumber(ARGV[n])], member)
    end
    for label in string.gmatch(string.sub(value, #token + 2), '[^%z]+') do
      redis.call('ZREM', labels, label .. '\\0' .. member)
    end
  end
  results[#results + 1] = whole(gone)
end

-- tokens key, labels key, member, n, n labels to add, labels to remove
operations['@label'] = function(i, last)
  local tokens, labels = KEYS[tonumber(ARGV[i])], KEYS[tonumber(ARGV[i + 1])]
  local member, n = ARGV[i + 2], tonumber(ARGV[i + 3])
  local value = redis.call('HGET', tokens, member)
  if not value then return end
  local known, order = {}, {}
  for word in string.gmatch(value, '[^%z]+') do
    known[word] = true
    order[#order + 1] = word
  end
  for k = i + 4, i + 3 + n do
    redis.call('ZADD', labels, 0, ARGV[k] .. '\\0' .. member)
    if not known[ARGV[k]] then order[#order + 1] = ARGV[k] end
  end
  local removed = {}
  for k = i + 4 + n, last do
    redis.call('ZREM', labels, ARGV[k] .. '\\0' .. member)
    removed[ARGV[k]] = true
  end
  local kept = {order[1]}
  for k = 2, #order do
    if not removed[order[k]] then kept[#kept + 1] = order[k] end
  end
  redis.call('HSET', tokens, member, table.concat(kept, '\\0'))
end
"""
"""Operations that are more than a command."""
