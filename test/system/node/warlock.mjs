// warlock.mjs - npm node-redis-warlock, on node-redis 3.
import { promisify } from "node:util";
import redis3 from "redis3";
import Warlock from "node-redis-warlock";
import { LONG, addresses, expect, socketOf, until } from "./outcome.mjs";

const client = redis3.createClient(socketOf(addresses[0]));
const warlock = Warlock(client);
const ask = (command, ...words) => promisify(client[command]).call(client,
                                                                   ...words);
// Its callbacks have several values.
const lock = (key, ttl) => new Promise((resolve, reject) =>
  warlock.lock(key, ttl, (error, unlock, id) =>
    error ? reject(error) : resolve({ unlock, id })));
const unlock = promisify(warlock.unlock);
const touch = (key, id, ttl) => warlock.touch(key, id, ttl);

const { id } = await lock("a", LONG);
expect("its id", await ask("get", "a:lock"), id);
expect("a second one is refused", (await lock("a", LONG)).unlock, false);
expect("a wrong id does not unlock", await unlock("a", "wrong"), 0);
expect("touched", [await touch("a", id, 2 * LONG),
                   await ask("pttl", "a:lock") > LONG], ["OK", true]);
expect("not by a wrong id", await touch("a", "wrong", LONG), 0);
expect("unlocked", await unlock("a", id), 1);
expect("not twice", await unlock("a", id), 0);
expect("nothing to touch", await touch("a", id, LONG), 0);
const held = await lock("b", 30);
const second = await new Promise((resolve, reject) =>
  warlock.optimistic("b", LONG, 100000, 1, (error, give) =>
    error ? reject(error) : resolve(give)));
expect("an end is waited for", typeof second, "function");
expect("the old one has nothing", await unlock("b", held.id), 0);
await promisify(second)();
expect("nothing is left", await until(() => ask("keys", "*:lock"), []), []);
await ask("quit");
