// redsync.mjs - what redsync 4, which is Go, sends: its scripts by SHA1, as text
// if the server does not know them, and once more as text in any case.
import { createHash } from "node:crypto";
import { LONG, connect, expect } from "./outcome.mjs";

// As its source has them, by which the SHA1 comes out: lines behind a tab.
const MINE = `if redis.call("GET", KEYS[1]) == ARGV[1] then`;
const text = (...lines) => lines.map((line) => `\n\t${line}`).join("") + "\n";
const answer = (value) => `\treturn ${value}`;
const EXTENDED = answer(`redis.call("PEXPIRE", KEYS[1], ARGV[2])`);
const DELETE = text(`local val = redis.call("GET", KEYS[1])`,
                    "if val == ARGV[1] then",
                    answer(`redis.call("DEL", KEYS[1])`),
                    "elseif val == false then", answer(-1),
                    "else", answer(0), "end");
const TOUCH = text(MINE, EXTENDED, "else", answer(0), "end");
const TOUCH_SET = text(MINE, EXTENDED,
                       `elseif redis.call("SET", KEYS[1], ARGV[1], "PX", ` +
                       `ARGV[2], "NX") then`,
                       answer(1), "else", answer(0), "end");
const sha1Of = (script) => createHash("sha1").update(script).digest("hex");
const client = connect();

expect("its texts", [DELETE, TOUCH, TOUCH_SET].map(sha1Of),
       ["e950836ed1e694540c503ef9972b8de518044d3b",
        "d75bb8b5bd13532ddedd17762e772346e39b321e",
        "b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79"]);

async function outcomes(how, key, send) {
  const expected = (name, found, value) => expect(`${how}: ${name}`, found, value);
  const run = (script, ...args) => send(script, 1, key, ...args);
  const set = (value) => client.set(key, value, "PX", LONG, "NX");

  expected("taken", await set("me"), "OK");
  expected("not twice", await set("you"), null);
  expected("extended", await run(TOUCH, "me", LONG), 1);
  expected("not by another", await run(TOUCH, "you", LONG), 0);
  expected("not deleted by another", await run(DELETE, "you"), 0);
  expected("deleted", await run(DELETE, "me"), 1);
  expected("not there", await run(DELETE, "me"), -1);
  expected("nothing to extend", await run(TOUCH, "me", LONG), 0);
  expected("taken by an extension", await run(TOUCH_SET, "me", LONG), 1);
  expected("kept by the next", await run(TOUCH_SET, "me", 2 * LONG), 1);
  expected("for longer", await client.pttl(key) > LONG, true);
  expected("not by another", await run(TOUCH_SET, "you", LONG), 0);
  expected("valid", await client.get(key), "me");
  expected("deleted", await run(DELETE, "me"), 1);
}

await outcomes("as it does", "rs", async (script, ...args) => {
  try {
    return await client.evalsha(sha1Of(script), ...args);
  } catch (error) {
    if (!error.message.startsWith("NOSCRIPT")) throw error;
    return await client.eval(script, ...args);
  }
});
await outcomes("by text", "rt", (script, ...args) => client.eval(script, ...args));
await client.quit();
