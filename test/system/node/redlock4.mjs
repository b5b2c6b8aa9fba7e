// redlock4.mjs - npm redlock 4: one lock on one or several servers.
import Redlock from "redlock4";
import { LONG, addresses, connect, contend, expect, failure, until }
  from "./outcome.mjs";

const clients = addresses.map((address) => connect(address));
const once = new Redlock(clients, { retryCount: 0 });
const patient = new Redlock(clients, { retryCount: 100000, retryDelay: 1,
                                       retryJitter: 1 });

const lock = await once.lock("r4:a", LONG);
expect("the value is a random text", /^[0-9a-f]{32}$/.test(lock.value), true);
expect("it is the key's", await clients[0].get("r4:a"), lock.value);
expect("a second one is refused", await failure(once.lock("r4:a", LONG)),
       "LockError");
await lock.extend(2 * LONG);
expect("an extension is longer", await clients[0].pttl("r4:a") > LONG, true);
await lock.unlock();
expect("unlocked", await clients[0].get("r4:a"), null);
expect("twice is an error", await failure(once.unlock(lock)), "LockError");

const both = await once.lock(["r4:b", "r4:c"], LONG);
expect("two names", await clients[0].exists("r4:b", "r4:c"), 2);
expect("one of them is refused", await failure(once.lock(["r4:c", "r4:d"],
                                                         LONG)), "LockError");
expect("and the other not held", await clients[0].get("r4:d"), null);
for (const client of clients) await client.set("r4:c", "stolen");
expect("stolen: not extended", await failure(both.extend(LONG)), "LockError");
expect("stolen: not unlocked", await failure(both.unlock()), "LockError");
expect("what was not stolen is", await clients[0].get("r4:b"), null);
expect("what was stolen is not", await clients[0].get("r4:c"), "stolen");
for (const client of clients) await client.del("r4:c");

await patient.lock("r4:short", 50);
const next = await patient.lock("r4:short", LONG);
// The old one ends at its own time on each server: most of them are enough.
const short = await Promise.all(clients.map((each) => each.get("r4:short")));
expect("an end is waited for", short.filter((value) => value === next.value)
                                 .length > clients.length / 2, true);
await next.unlock();
expect("exact", await contend(8, 5, async (work) => {
  const held = await patient.lock("r4:count", LONG);
  await work();
  await held.unlock();
}), 40);
await failure(once.lock("r4:gone", 1)); // it may be over when it is told
expect("it expires", await until(() => clients[0].get("r4:gone"), null), null);
await once.quit();
