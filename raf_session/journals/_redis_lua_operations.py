"""The operations that Python puts together, and scripts carry out."""

from __future__ import annotations

from typing import Final

__all__ = ("COMMANDS", "OPERATIONS")

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
  local m, settled = write_scope(tonumber(ARGV[i]), owed, terms(i + 4), i + 5)
  if settled then results[#results + 1] = 'settled' return end
  if ARGV[i + 2] ~= '' then index_scope(tonumber(ARGV[i + 2]), ARGV[i + 3], m) end
  results[#results + 1] = m and m[1] .. ' ' .. m[2] or ''
end

-- key, owed key, what stands for a write behind its number: draws the number, once
operations['@draw'] = function(i)
  local m = read_scope(KEYS[tonumber(ARGV[i])])
  local owed = KEYS[tonumber(ARGV[i + 1])]
  for _, drawn in ipairs(redis.call('ZRANGE', owed, 0, -1)) do
    local known = string.match(drawn, '^%d+')
    if string.sub(drawn, #known + 2) == ARGV[i + 2] then
      results[#results + 1] = known
      return
    end
  end
  local number = whole(math.max(m and tonumber(m[3]) or 0, highest(owed)) + 1)
  redis.call('ZADD', owed, number, number .. '\\0' .. ARGV[i + 2])
  results[#results + 1] = number
end

-- key, owed key, what is owed: a write is applied and in no record any more
operations['@settle'] = function(i)
  local key, owed = KEYS[tonumber(ARGV[i])], KEYS[tonumber(ARGV[i + 1])]
  redis.call('ZREM', owed, ARGV[i + 2])
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

-- tokens key, labels key, member: takes out the labels of a former incarnation
operations['@unlabel'] = function(i)
  local tokens, labels = KEYS[tonumber(ARGV[i])], KEYS[tonumber(ARGV[i + 1])]
  local member = ARGV[i + 2]
  local value = redis.call('HGET', tokens, member) or ''
  for label in string.gmatch(value, '%z([^%z]+)') do
    redis.call('ZREM', labels, label .. '\\0' .. member)
  end
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
