// redsync.mjs - what redsync 4, which is Go, sends: by SHA1, without a text.
import { LONG, connect, expect } from "./outcome.mjs";

const DELETE = "e950836ed1e694540c503ef9972b8de518044d3b";
const TOUCH = "d75bb8b5bd13532ddedd17762e772346e39b321e";
const TOUCH_SET = "b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79";
const client = connect();
const run = (sha1, ...args) => client.evalsha(sha1, 1, "rs", ...args);

expect("taken", await client.set("rs", "me", "PX", LONG, "NX"), "OK");
expect("not twice", await client.set("rs", "you", "PX", LONG, "NX"), null);
expect("extended", await run(TOUCH, "me", LONG), 1);
expect("not by another", await run(TOUCH, "you", LONG), 0);
expect("not deleted by another", await run(DELETE, "you"), 0);
expect("deleted", await run(DELETE, "me"), 1);
expect("not there", await run(DELETE, "me"), -1);
expect("nothing to extend", await run(TOUCH, "me", LONG), 0);
expect("taken by an extension", await run(TOUCH_SET, "me", LONG), 1);
expect("kept by the next", await run(TOUCH_SET, "me", 2 * LONG), 1);
expect("for longer", await client.pttl("rs") > LONG, true);
expect("not by another", await run(TOUCH_SET, "you", LONG), 0);
expect("valid", await client.get("rs"), "me");
expect("deleted", await run(DELETE, "me"), 1);
await client.quit();
