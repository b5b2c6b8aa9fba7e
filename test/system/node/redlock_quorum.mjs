// redlock_quorum.mjs - five servers, of which a majority must agree.
import Redlock from "redlock5";
import { LONG, addresses, connect, expect, failure } from "./outcome.mjs";

const clients = addresses.map((address) =>
  connect(address, { maxRetriesPerRequest: 0, enableOfflineQueue: false,
                     retryStrategy: null, lazyConnect: true }));
await Promise.all(clients.map((client) => client.connect()));
const redlock = new Redlock(clients, { retryCount: 0 });
redlock.on("error", () => {});
const holders = (name) => Promise.all(clients.map((client) => client.get(name)));

let lock = await redlock.acquire(["q:a"], LONG);
await (await lock.attempts[0]);
expect("all five have it", new Set(await holders("q:a")).size, 1);
lock = await lock.extend(LONG);
await lock.release();
for (const client of clients) await client.del("q:a"); // the last ones, too

for (const client of clients.slice(0, 2)) await client.set("q:b", "another");
lock = await redlock.acquire(["q:b"], LONG);
await (await lock.attempts[0]);
expect("three are enough", (await holders("q:b")).filter(
  (value) => value === lock.value).length, 3);
await lock.release();
for (const client of clients) await client.del("q:b");

for (const client of clients.slice(0, 3)) await client.set("q:c", "another");
expect("two are not", await failure(redlock.acquire(["q:c"], LONG)),
       "ExecutionError");

clients[0].disconnect();
clients[1].disconnect();
lock = await redlock.acquire(["q:d"], LONG);
expect("two may be away", await failure(lock.release()), "none");
clients[2].disconnect();
expect("three may not", await failure(redlock.acquire(["q:e"], LONG)),
       "ExecutionError");
for (const client of clients) client.disconnect();
