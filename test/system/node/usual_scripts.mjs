// usual_scripts.mjs - scripts of other clients, and usual ones: each is sent as
// text, with the same calls to each server. Windows are long, so that none ends
// meanwhile, and members of sets are different.
import { connect, expect, LONG } from "./outcome.mjs";

const client = connect();
const YEARS = 1000000000; // seconds
const now = Date.now();
const seconds = Math.floor(now / 1000);
let key = "";
const check = async (name, script, ...calls) => {
  key = `usual:${name}`;
  for (const [expected, ...args] of calls)
    expect(`${name} ${args}`, await client.eval(script, 1, key, ...args), expected);
};
// Of a list the second is what is left of a window.
const counted = async (name, script, most, ...calls) => {
  key = `usual:${name}`;
  for (const [expected, ...args] of calls) {
    const [count, rest] = await client.eval(script, 1, key, ...args);
    expect(`${name} ${args}`, [count, rest > 0 && rest <= most], [expected, true]);
  }
};

await check("RedLock.net", `local currentVal = redis.call('get', KEYS[1])
if (currentVal == false) then
\treturn redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1 or 0
elseif (currentVal == ARGV[1]) then
\treturn redis.call('pexpire', KEYS[1], ARGV[2])
else
\treturn -1
end`, [1, "me", LONG], [-1, "you", LONG], [1, "me", 2 * LONG]);
expect("for longer", await client.pttl(key) > LONG, true);

await check("redlock-rb", `      if (redis.call("exists", KEYS[1]) == 0 and ARGV[3] == "yes") or redis.call("get", KEYS[1]) == ARGV[1] then
        return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
      end
`, [null, "me", LONG, "no"], ["OK", "me", LONG, "yes"], [null, "you", LONG, "yes"],
            [null, "you", LONG, "no"], ["OK", "me", 2 * LONG, "no"]);
const look = `      return { redis.call("get", KEYS[1]), redis.call("pttl", KEYS[1]) }\n`;
const [value, rest] = await client.eval(look, 1, key);
expect("redlock-rb looks", [value, rest > LONG], ["me", true]);
await check("redlock-rb finds none", look, [[null, -2]]);

await check("Symfony before 5.2", `
            if redis.call("GET", KEYS[1]) == ARGV[1] then
                return redis.call("PEXPIRE", KEYS[1], ARGV[2])
            elseif redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then
                return 1
            else
                return 0
            end
        `, [1, "me", LONG], [0, "you", LONG], [1, "me", LONG]);

await check("limits", `local current
local amount = tonumber(ARGV[2])
current = redis.call("incrby", KEYS[1], amount)
if tonumber(current) == amount then
    redis.call("expire", KEYS[1], ARGV[1])
end
return current`, [2, YEARS, 2], [5, YEARS, 3]);

await counted("count and rest", `local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return {n, redis.call('TTL', KEYS[1])}`, YEARS, [1, YEARS], [2, YEARS]);
await counted("rate-limit-redis 6", `local windowMs = tonumber(ARGV[1])
local timeToExpire = redis.call("PTTL", KEYS[1])
if timeToExpire <= 0 then
redis.call("SET", KEYS[1], 1, "PX", windowMs)
return { 1, windowMs }
end
local totalHits = redis.call("INCR", KEYS[1])        
return { totalHits, timeToExpire }`, 1000 * YEARS, [1, 1000 * YEARS], [2, 1000 * YEARS]);
await counted("rate-limit-redis 4", `local totalHits = redis.call("INCR", KEYS[1])
local timeToExpire = redis.call("PTTL", KEYS[1])
if timeToExpire <= 0 or ARGV[1] == "1"
then
redis.call("PEXPIRE", KEYS[1], tonumber(ARGV[2]))
timeToExpire = tonumber(ARGV[2])
end
return { totalHits, timeToExpire }`, 1000 * YEARS, [1, 0, 1000 * YEARS], [2, 0, 1000 * YEARS]);
await counted("rate-limiter-flexible", `redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX') \
local consumed = redis.call('incrby', KEYS[1], ARGV[1]) \
local ttl = redis.call('pttl', KEYS[1]) \
if ttl == -1 then \
  redis.call('expire', KEYS[1], ARGV[2]) \
  ttl = 1000 * ARGV[2] \
end \
return {consumed, ttl} \
`, 1000 * YEARS, [2, 2, YEARS, 5, YEARS], [6, 4, YEARS, 5, YEARS], [7, 1, YEARS, 5, YEARS]);

await check("what is there, against a limit", `local key = KEYS[1]
local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local cost = tonumber(ARGV[3])
local current = tonumber(redis.call('GET', key) or '0')
if current + cost > limit then return 0 end
redis.call('INCRBY', key, cost)
if current == 0 then redis.call('EXPIRE', key, window) end
return 1`, [1, 10, YEARS, 6], [0, 10, YEARS, 5], [1, 10, YEARS, 4], [0, 10, YEARS, 1]);
await check("a limit of none", `local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) then return 0 end
return 1`, [0, 0, YEARS], [0, 0, YEARS], [1, 3, YEARS], [0, 0, YEARS]);
const window = `local key = KEYS[1]
local now = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local limit = tonumber(ARGV[3])
local member = ARGV[4]
redis.call('ZREMRANGEBYSCORE', key, 0, now - window)
local count = redis.call('ZCARD', key)
if count < limit then
  redis.call('ZADD', key, now, member)
  redis.call('PEXPIRE', key, window)
  return 1
end
return 0`;
await check("a window that slides", window, [1, now, LONG, 2, "a"],
            [1, now, LONG, 2, "b"], [0, now + 1, LONG, 2, "c"]);
await check("the same in seconds", window.replace("PEXPIRE", "EXPIRE"),
            [1, seconds, LONG, 1, "a"], [0, seconds, LONG, 1, "b"]);
await check("a window of none", window, [0, now, LONG, 0, "a"], [0, now, LONG, 0, "b"]);
const bucket = `local key = KEYS[1]
local capacity = tonumber(ARGV[1])
local rate = tonumber(ARGV[2])
local now = tonumber(ARGV[3])
local requested = tonumber(ARGV[4])
local bucket = redis.call('HMGET', key, 'tokens', 'timestamp')
local tokens = tonumber(bucket[1]) or capacity
local last = tonumber(bucket[2]) or now
local elapsed = math.max(0, now - last) / 1000
tokens = math.min(capacity, tokens + elapsed * rate)
local allowed = 0
if tokens >= requested then
  tokens = tokens - requested
  allowed = 1
end
redis.call('HSET', key, 'tokens', tokens, 'timestamp', now)
redis.call('EXPIRE', key, math.ceil(capacity / rate) * 2)
return allowed`;
await check("a bucket in a hash", bucket, [1, 1000000, 1, now, 400000],
            [0, 1000000, 1, now, 900000]);
await check("a bucket of none", bucket, [0, 0, 1, now, 1], [0, 0, 1, now, 1]);
await client.quit();
