// redlock5.mjs - npm redlock 5: one lock on one or several servers.
import Redlock from "redlock5";
import { LONG, addresses, connect, contend, expect, failure, until }
  from "./outcome.mjs";

const clients = addresses.map((address) => connect(address));
const once = new Redlock(clients, { retryCount: 0 });
const patient = new Redlock(clients, { retryCount: -1, retryDelay: 1,
                                       retryJitter: 1 });
once.on("error", () => {});
patient.on("error", () => {});

let lock = await once.acquire(["r5:a"], 900719925474099);
expect("it is the key's", await clients[0].get("r5:a"), lock.value);
expect("for as long as can be", await clients[0].pttl("r5:a") >
                                900719925474099 - LONG, true);
expect("a second one is refused", await failure(once.acquire(["r5:a"], LONG)),
       "ExecutionError");
lock = await lock.extend(LONG);
expect("an extension may be shorter", await clients[0].pttl("r5:a") <= LONG,
       true);
await lock.release();
expect("released", await clients[0].get("r5:a"), null);
expect("twice is an error", await failure(once.release(lock)),
       "ExecutionError");

const both = await once.acquire(["r5:b", "r5:c"], LONG);
expect("two names", (await clients[0].keys("r5:*")).sort(), ["r5:b", "r5:c"]);
expect("one of them is refused", await failure(once.acquire(["r5:c", "r5:d"],
                                                            LONG)),
       "ExecutionError");
expect("and the other not held", await clients[0].get("r5:d"), null);
for (const client of clients) await client.del("r5:b");
expect("deleted: not extended", await failure(both.extend(LONG)),
       "ExecutionError");
expect("deleted: not released", await failure(both.release()),
       "ExecutionError");
expect("but for the other", await clients[0].get("r5:c"), null);

await patient.acquire(["r5:short"], 50);
const next = await patient.acquire(["r5:short"], LONG);
// The old one ends at its own time on each server: most of them are enough.
const short = await Promise.all(clients.map((each) => each.get("r5:short")));
expect("an end is waited for", short.filter((value) => value === next.value)
                                 .length > clients.length / 2, true);
await next.release();
expect("using() counts exactly", await contend(8, 5, (work) =>
  patient.using(["r5:count"], LONG, work)), 40);
await once.acquire(["r5:gone"], 5);
expect("it expires", await until(() => clients[0].get("r5:gone"), null), null);
await once.quit();
