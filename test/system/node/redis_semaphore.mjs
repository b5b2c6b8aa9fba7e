// redis_semaphore.mjs - npm redis-semaphore: mutex, semaphore, several permits.
import { Mutex, MultiSemaphore, RedlockMutex, RedlockSemaphore, Semaphore }
  from "redis-semaphore";
import { LONG, connect, contend, expect, failure, until } from "./outcome.mjs";

const client = connect();
const once = { lockTimeout: LONG, acquireAttemptsLimit: 1, refreshInterval: 0 };
const patient = { lockTimeout: LONG, acquireTimeout: LONG, retryInterval: 1,
                  refreshInterval: 0 };

const mutex = new Mutex(client, "m", once);
expect("taken", await mutex.tryAcquire(), true);
expect("its key", await client.get("mutex:m"), mutex.identifier);
expect("another is refused", await new Mutex(client, "m", once).tryAcquire(),
       false);
expect("and told so", await failure(new Mutex(client, "m", once).acquire()),
       "Error");
await client.pexpire("mutex:m", LONG / 2);
expect("refreshed", [await mutex._refresh(), await client.pttl("mutex:m") >
                                             LONG / 2], [true, true]);
await mutex.release();
expect("released", await client.get("mutex:m"), null);
expect("lost: not refreshed", await mutex._refresh(), false);
expect("exact", await contend(6, 5, async (work) => {
  const own = new Mutex(client, "count", patient);
  await own.acquire();
  await work();
  await own.release();
}), 30);

const few = [1, 2, 3].map(() => new Semaphore(client, "s", 2, once));
expect("two of three", await Promise.all(few.slice(0, 2).map((one) =>
  one.tryAcquire())), [true, true]);
expect("not the third", await few[2].tryAcquire(), false);
expect("refreshed", await few[0]._refresh(), true);
await few[0].release();
expect("now it is", await few[2].tryAcquire(), true);
expect("its permit is gone", await few[0]._refresh(), false);
await few[1].release();
await few[2].release();
expect("none is left", await client.exists("semaphore:s"), 0);

let inside = 0, most = 0;
await Promise.all([1, 2, 3, 4, 5].map(async () => {
  const own = new Semaphore(client, "crowd", 2, patient);
  await own.acquire();
  most = Math.max(most, ++inside);
  await until(async () => await client.ping() && most > 1, true);
  inside--;
  await own.release();
}));
expect("never more than two", most, 2);

const large = new MultiSemaphore(client, "multi", 5, 3, once);
const small = new MultiSemaphore(client, "multi", 5, 2, once);
const more = new MultiSemaphore(client, "multi", 5, 1, once);
expect("three and two of five", [await large.tryAcquire(),
                                 await small.tryAcquire()], [true, true]);
expect("one more is refused", await more.tryAcquire(), false);
expect("refreshed", await large._refresh(), true);
await large.release();
expect("three are free", await more.tryAcquire(), true);
await small.release();
await more.release();

const short = new Semaphore(client, "short", 1, { ...once, lockTimeout: 20 });
expect("for 20 ms", await short.tryAcquire(), true);
const next = new Semaphore(client, "short", 1, patient);
await next.acquire();
expect("then another's", await next._refresh(), true);
await next.release();

const one = new Semaphore(client, "one", 1, once);
const two = new Semaphore(client, "two", 2, once);
expect("not twice, by the same", [await one.tryAcquire(), await one.tryAcquire()],
       [true, false]);
expect("but where one is free", [await two.tryAcquire(), await two.tryAcquire()],
       [true, true]);
await one.release();
await two.release();

const red = new RedlockMutex([client], "red", once);
expect("Redlock mutex", [await red.tryAcquire(), await new RedlockMutex(
  [client], "red", once).tryAcquire()], [true, false]);
await red.release();
const redS = new RedlockSemaphore([client], "red", 1, once);
expect("Redlock semaphore", [await redS.tryAcquire(), await
  new RedlockSemaphore([client], "red", 1, once).tryAcquire()], [true, false]);
await redS.release();
expect("nothing is left", await until(() => client.keys("*s*:*"), []), []);
await client.quit();
