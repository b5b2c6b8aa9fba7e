// outcome.mjs - what the tests of lock clients share.
//
//   node NAME.mjs ADDRESS...     a port of this machine, or a socket's path
//
// Each test is run against Redis and against Holdfast and prints one line per
// outcome; the two lists must be the same. A line begins with FAIL if the
// outcome is not the one that the client promises.
import { isDeepStrictEqual } from "node:util";
import { Redis } from "ioredis";

export const addresses = process.argv.slice(2);

export function socketOf(address) {
  return /^\d+$/.test(address) ? { port: Number(address), host: "127.0.0.1" }
                               : { path: address };
}

export function connect(address = addresses[0], options = {}) {
  const client = new Redis({ ...socketOf(address), ...options });
  client.on("error", () => {}); // a server that was stopped, on purpose
  return client;
}

export function expect(name, found, expected) {
  const good = isDeepStrictEqual(found, expected);
  console.log(good ? `ok ${name}`
                   : `FAIL ${name}: ${JSON.stringify(found)} instead of ` +
                     JSON.stringify(expected));
}

// How a promise fails: the name of its error.
export async function failure(promise) {
  try {
    await promise;
    return "none";
  } catch (error) {
    return error.name;
  }
}

// Asks until the answer is as expected; gives up after a minute.
export async function until(ask, expected) {
  for (const end = Date.now() + 60000; Date.now() < end;) {
    const found = await ask();
    if (isDeepStrictEqual(found, expected)) return found;
  }
  return "not within a minute";
}

// So many at once, each `rounds` times: reads a number, gives others a chance,
// writes it back one higher. Exact only if they exclude each other.
export async function contend(count, rounds, locked) {
  let shared = 0;
  await Promise.all(Array.from({ length: count }, async () => {
    for (let i = 0; i < rounds; i++)
      await locked(async () => {
        const read = shared;
        await new Promise((resolve) => setImmediate(resolve));
        shared = read + 1;
      });
  }));
  return shared;
}

const LONG = 600000; // milliseconds: no test takes so long
export { LONG };
