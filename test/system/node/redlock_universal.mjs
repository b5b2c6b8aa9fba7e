// redlock_universal.mjs - npm redlock-universal: one name, and several at once,
// each with a value of its own.
import { createClient } from "redis";
import { IoredisAdapter, LockManager, NodeRedisAdapter, createLock }
  from "redlock-universal";
import { LONG, addresses, connect, contend, expect, failure, socketOf, until }
  from "./outcome.mjs";

const redis = connect();
const other = createClient({ socket: socketOf(addresses[0]), RESP: 3 });
other.on("error", () => {});
await other.connect();

const held = (...keys) => Promise.all(keys.map((key) => redis.get(key)));

async function outcomes(adapter, at) {
  const one = createLock({ adapter, key: `${at}:one`, ttl: LONG,
                           retryAttempts: 0 });
  const handle = await one.acquire();
  expect(`${at}: it is the key's`, await redis.get(`${at}:one`), handle.value);
  expect(`${at}: a second one is refused`, await failure(one.acquire()),
         "LockAcquisitionError");
  expect(`${at}: extended`, await one.extend(handle, LONG * 2), true);
  expect(`${at}: looked at`, (await adapter.inspect(`${at}:one`)).value,
         handle.value);
  expect(`${at}: released`, [await one.release(handle),
                             await redis.get(`${at}:one`)], [true, null]);

  const manager = new LockManager({ nodes: [adapter], defaultTTL: LONG,
                                    defaultRetryAttempts: 0 });
  const keys = ["c", "a", "b"].map((key) => `${at}:${key}`);
  const handles = await manager.acquireBatch(keys);
  expect(`${at}: all, sorted`, handles.map((each) => each.key),
         [...keys].sort());
  expect(`${at}: each has its value`, await held(...handles.map((h) => h.key)),
         handles.map((each) => each.value));
  expect(`${at}: which differ`, new Set(handles.map((h) => h.value)).size, 3);
  const left = await Promise.all(keys.map((key) => redis.pttl(key)));
  expect(`${at}: and a time`, left.every((ms) => ms > 0 && ms <= LONG), true);
  expect(`${at}: one of them is refused`,
         await failure(manager.acquireBatch([`${at}:0`, keys[2]])),
         "LockAcquisitionError");
  expect(`${at}: and the other not held`, await redis.get(`${at}:0`), null);
  expect(`${at}: released, each`, await manager.releaseBatch(handles.slice(1)),
         [true, true]);
  expect(`${at}: and no other`, await held(...keys),
         [null, handles[0].value, null]);
  expect(`${at}: released already`, await manager.releaseBatch(handles),
         [true, false, false]);

  // What the script returns.
  const set = (names, values, ms = LONG) =>
    adapter.batchSetNX(names.map((name) => `${at}:${name}`), values, ms);
  expect(`${at}: how many`, await set(["z", "x"], ["1", "2"]),
         { success: true, acquiredCount: 2 });
  expect(`${at}: the first that is taken`,
         await set(["w", "z", "x"], ["1", "2", "3"]),
         { success: false, acquiredCount: 0, failedIndex: 2,
           failedKey: `${at}:z` });
  expect(`${at}: also with its own value`, await set(["x"], ["2"]),
         { success: false, acquiredCount: 0, failedIndex: 1,
           failedKey: `${at}:x` });
  expect(`${at}: a name twice`, await set(["v", "u", "v"], ["1", "2", "3"]),
         { success: true, acquiredCount: 3 });
  expect(`${at}: has the last value`, await redis.get(`${at}:v`), "3");
  await set(["s", "t"], ["1", "2"], 5);
  expect(`${at}: they expire`, await until(
    () => held(`${at}:s`, `${at}:t`), [null, null]), [null, null]);

  const patient = new LockManager({ nodes: [adapter], defaultTTL: LONG,
                                    defaultRetryAttempts: 100000,
                                    defaultRetryDelay: 1 });
  expect(`${at}: usingBatch() counts exactly`, await contend(6, 4, (work) =>
    patient.usingBatch([`${at}:m`, `${at}:n`], work)), 24);
}

const adapter = new IoredisAdapter(redis);
await outcomes(adapter, "ru");
await outcomes(new NodeRedisAdapter(other), "rn");

// Among other commands: what is refused there refuses nothing else.
const batch = ["evalsha", adapter.scriptSHAs.get("BATCH_ACQUIRE")];
const group = await redis.multi([
  ["set", "rm:a", "me"], [...batch, 2, "rm:b", "rm:a", "1", "2", LONG],
  ["del", "rm:a"], [...batch, 2, "rm:b", "rm:a", "1", "2", LONG],
  ["get", "rm:a"]]).exec();
expect("in MULTI", group.map(([, reply]) => reply),
       ["OK", [0, 2, "rm:a"], 1, [1, 2], "2"]);
expect("a value too few", await failure(redis.call(...batch, 3, "rm:c", "rm:d",
                                                   "rm:e", "1", LONG)),
       "ReplyError");
expect("a time that is none", await failure(redis.call(...batch, 2, "rm:f",
                                                       "rm:g", "1", "2", "0")),
       "ReplyError");
expect("and nothing is held", await held("rm:f", "rm:g"), [null, null]);
expect("the time may be a value", await redis.call(...batch, 2, "rm:h", "rm:i",
                                                   "1", LONG), [1, 2]);
expect("of the last", await held("rm:h", "rm:i"), ["1", String(LONG)]);
redis.disconnect();
other.destroy();
