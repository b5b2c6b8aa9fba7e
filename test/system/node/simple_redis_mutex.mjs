// simple_redis_mutex.mjs - npm simple-redis-mutex 1: a mutex by two scripts.
import mutex from "simple-redis-mutex";
import { LONG, connect, contend, expect, failure, until } from "./outcome.mjs";

const client = connect();
const key = "@simple-redis-mutex:lock-";
const { lock } = mutex;

const release = await lock(client, "a");
expect("without an end", await client.pttl(key + "a"), -1);
// If it gives up while a try is on its way, it goes on trying, without an end.
let over = false;
const impatient = { eval: (...words) => client.eval(...words).then((found) =>
  over ? new Promise(() => {}) : found) };
expect("a second one fails in time", await failure(
  lock(impatient, "a", { retryTimeMillis: 1, failAfterMillis: 50 })), "Error");
over = true;
await release();
expect("released", await client.get(key + "a"), null);
await (await lock(client, "a", { timeoutMillis: LONG }))();
await lock(client, "short", { timeoutMillis: 30 });
const next = await lock(client, "short", { retryTimeMillis: 1 });
expect("an end is waited for", await client.exists(key + "short"), 1);
await next();
expect("exact", await contend(6, 5, async (work) => {
  const give = await lock(client, "count", { retryTimeMillis: 1 });
  await work();
  await give();
}), 30);
expect("nothing is left", await until(() => client.keys(key + "*"), []), []);
await client.quit();
