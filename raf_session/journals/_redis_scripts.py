"""The scripts that write, each all or nothing inside the server."""

from __future__ import annotations

import hashlib
from typing import Final

from raf_session.encoding import BODY_VERSION
from raf_session.journals._redis_lua import FACTS, SCOPES, SESSIONS, TIMES
from raf_session.journals._redis_lua_operations import COMMANDS, OPERATIONS

__all__ = ("APPEND", "APPEND_MORE", "CLEAR", "COMMIT", "OPERATE", "USUAL", "Script")


class Script:
    """A script, and the digest under which a server knows it."""

    __slots__ = ("sha", "text")

    def __init__(self, *parts: str) -> None:
        self.text: Final = "\n".join(parts)
        self.sha: Final = hashlib.sha1(
            self.text.encode(), usedforsecurity=False
        ).hexdigest()


_WORDS: Final = f"^{'(%-?%d+) ' * 7}([%d%-]+)%z{'([^%z]*)%z' * 3}(.*)$"
_DESCRIPTION: Final = "^" + r"([^\1]*)\1" * 3 + "(.*)$"

USUAL: Final = (
    """
-- One entry and nothing else, behind all that is stored: what an append mostly is, and
-- done without the functions that the rest needs.  Whatever else there is to say about
-- it is left to what follows: nothing was written then.
local function usual()
  local call, find = redis.call, string.match
  local now, touch, updated, messages, conversations, tokens, activity, incarnation,
    member = find(ARGV[1], '@USUAL@')
  if not member or ARGV[3] then return nil end
  local h = call('HMGET', KEYS[1], 'incarnation', 'facts', 'about', 'request')
  if not (h[1] and h[2] and h[3]) or incarnation ~= '' and incarnation ~= h[1] then
    return nil
  end
  local version, revision, made, updated_at, active_at, pinned, seq, spliced, entries,
    a_messages, a_conversations, a_tokens, total, t_messages, t_conversations, t_tokens,
    tail_at, archived, owed, schema = find(h[2], '@FACTS@')
  local id = find(ARGV[2], '^[^%z]*%z([^%z]+)%z')
  if not schema or tonumber(schema) > @SCHEMA@
    or tonumber(now) <= tonumber(tail_at)
    or tonumber(updated) <= tonumber(updated_at)
    or tonumber(touch) <= tonumber(active_at)
    or call('ZCARD', KEYS[2]) ~= tonumber(entries)
    or call('HLEN', KEYS[4]) ~= entries + archived
    or call('HEXISTS', KEYS[4], id) == 1
    or call('PTTL', KEYS[1]) ~= -1
  then return nil end
  local place = string.format('%d', seq + 1)
  local facts = string.format(
    '%d %d %s %s %s %s %s %s %d %d %d %d %d %d %d %d %s %s %s %s',
    version + 1, revision + 1, made, updated, touch, pinned, place, spliced,
    entries + 1, a_messages + messages, a_conversations + conversations,
    a_tokens + tokens, total + 1, t_messages + messages,
    t_conversations + conversations, t_tokens + tokens, now, archived, owed, schema)
  if activity ~= '-' then
    call('ZADD', KEYS[tonumber(activity)], 'LT', '-' .. touch, member)
  end
  call('ZADD', KEYS[2], place, place .. '\\0000\\0' .. now .. '\\0' .. ARGV[2])
  call('HSET', KEYS[4], id, place .. ' 0')
  call('HSET', KEYS[1], 'facts', facts)
  return table.concat({'', h[1], facts, h[3], h[4] or '', now, ''}, '\\0')
end
local done = usual()
if done then return done end
""".replace(
        "@USUAL@", f"^(%d+) ([1-9]%d*) {r'(%d+) ' * 4}1 ([%d%-]+)%z([^%z]*)%z%z%z(.*)$"
    )
    .replace("@FACTS@", FACTS)
    .replace("@SCHEMA@", str(BODY_VERSION))
)

_APPEND: Final = (
    """
-- One text of parts joined by NUL, so that few arguments are sent: words (now, touch,
-- updated, messages, conversations, tokens, n, key of the index by activity);
-- incarnation; options; description; member.  Options are words: expected, trim, keep,
-- base, owed, confirm, terms.  A description is, joined by 1: request record; digests;
-- incarnation and version that were read; pinned as a digit, about.  '-' or '' where
-- there is none.  Then n rows from their counts on; operations.  Returns such a text.
local function answer(reply) return table.concat(reply, '\\0') end

local now, touch, updated, messages, conversations, tokens, n, activity, incarnation,
  options, description, member = string.match(ARGV[1], '@WORDS@')
n = tonumber(n)
local a = {'-', '-', '-', '-', '0', '0', now, '-', '-'}
if options ~= '' then a = words(options) end
local expected, trim, keep, base, owed, confirm = unpack(a, 1, 6)
local t = {unpack(a, 7)}
local record, digests, seen, about = '', '', '', ''
if description ~= '' then
  record, digests, seen, about = string.match(description, '@DESCRIPTION@')
end
local hasty = trim == '-' and keep == '-'
local wrong, h, f = live(t, incarnation, '@SCHEMA@', hasty)
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
  if confirm == '1' then redis.call('HSET', KEYS[1], 'facts', h[2]) end
  local reply = reply_head('known', h, f)
  reply[6] = table.concat(known, '\\0\\0')
  return answer(reply)
end
if expected ~= '-' and tonumber(expected) ~= tonumber(f[2]) then
  return answer(reply_head('stale', h, f))
end
local former = h[4] and words(h[4]) or {'0', '-'}
if keep ~= '-' then
  keep = tonumber(keep)
  if keep > 0 and (keep > tonumber(former[1]) or base ~= former[2]) then
    return answer(reply_head('request', h, f))
  end
end
if seen ~= '' then
  if seen ~= h[1] .. ' ' .. f[1] then return answer({'moved'}) end
  f[6], h[3] = string.sub(about, 1, 1), string.sub(about, 2)
  redis.call('HSET', KEYS[1], 'about', h[3])
end

if activity ~= '-' then
  redis.call('ZADD', KEYS[tonumber(activity)], 'LT', negated(touch), member)
end
operate(n + 2)
local seq, revision = tonumber(f[7]), whole(tonumber(f[2]) + 1)
local moment = later(now, f[17])
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
local sums = {n, tonumber(messages), tonumber(conversations), tonumber(tokens)}
local left = {0, 0, 0, 0}
f[17] = moment
if trim ~= '-' then
  local excess = tonumber(f[9]) + n - tonumber(trim)
  if excess > 0 then
    left = archive(redis.call('ZRANGE', KEYS[2], 0, excess - 1), revision)
    f[8] = revision
    f[18] = whole(tonumber(f[18]) + excess)
    if trim == '0' then f[17] = '0' end
  end
end
for i = 1, 4 do
  if sums[i] ~= left[i] then
    f[8 + i] = whole(tonumber(f[8 + i]) + sums[i] - left[i])
  end
  if sums[i] ~= 0 then f[12 + i] = whole(tonumber(f[12 + i]) + sums[i]) end
end
f[1], f[2] = whole(tonumber(f[1]) + 1), revision
f[4], f[5] = later(f[4], updated), later(f[5], touch)
f[7] = whole(seq + n)
if owed ~= '0' then f[19] = whole(tonumber(f[19]) + tonumber(owed)) end
if keep ~= '-' then
  write_digests(tonumber(former[1]), keep, digests)
  h[4] = record
  redis.call('HSET', KEYS[1], 'request', h[4])
end
local facts = table.concat(f, ' ')
redis.call('HSET', KEYS[1], 'facts', facts)
arm_session(f, t)
return answer({'', h[1], facts, h[3], h[4] or '', moment, results[1] or ''})
""".replace("@WORDS@", _WORDS)
    .replace("@DESCRIPTION@", _DESCRIPTION)
    .replace("@SCHEMA@", str(BODY_VERSION))
)

APPEND: Final = Script(USUAL, TIMES, SESSIONS, COMMANDS, _APPEND)
"""`Journal.append`: looks, draws the places and writes."""

APPEND_MORE: Final = Script(TIMES, SESSIONS, SCOPES, COMMANDS, OPERATIONS, _APPEND)
"""The same, with operations that are more than commands."""

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
if h[3] == ARGV[2] then
  -- Written again: for what is only read, nobody waits until replicas have it.
  redis.call('HSET', KEYS[1], 'by', h[3])
  return {'done'}
end
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
-- terms, then fields of deltas that were applied, each with what stands there
local t = terms(1)
local h, f = read_head()
if not f or #f ~= 20 then return 0 end
local gone = 0
for i = 2, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    gone = gone + redis.call('HDEL', KEYS[1], ARGV[i])
  end
end
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
