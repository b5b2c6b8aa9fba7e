// families.mjs - every command family through ioredis and node-redis.
//
//   node families.mjs PORT
//
// Each client connects with its defaults, and then once more for each protocol
// version that it can be told to speak. Prints a line per check and a count.
import { Redis } from "ioredis";
import { createClient } from "redis";

const port = Number(process.argv[2]);
let passed = 0;
let failed = 0;

function verdict(name, good, why) {
  if (good) passed++;
  else failed++;
  console.log(good ? `ok ${name}` : `FAIL ${name}: ${why}`);
}

// A map comes as a Map, an object or a flat list, as client and version will.
function plain(value) {
  if (value instanceof Map) value = Object.fromEntries(value);
  if (Array.isArray(value)) {
    const pairs = value.length % 2 === 0 && value.length > 0 &&
      value.every((v, i) => i % 2 === 1 || typeof v === "string");
    if (!pairs) return value.map(plain);
    value = Object.fromEntries(
      value.flatMap((v, i) => (i % 2 === 0 ? [[v, value[i + 1]]] : [])));
  }
  if (value !== null && typeof value === "object" && !Buffer.isBuffer(value))
    return Object.fromEntries(
      Object.entries(value).map(([k, v]) => [k, plain(v)]));
  return typeof value === "bigint" ? Number(value) : value;
}

// One way to talk: ask(words...) gives a plain value or throws.
async function withIoredis(options, body) {
  const client = new Redis({ port, host: "127.0.0.1", ...options });
  client.on("error", (error) => verdict("connection", false, error.message));
  await client.ping();
  try {
    await body(async (...words) =>
      plain(await client.call(...words.map(String))), client);
  } finally {
    await client.quit();
  }
}

async function withNodeRedis(options, body) {
  const client = createClient({ socket: { port, host: "127.0.0.1" },
                                ...options });
  client.on("error", (error) => verdict("connection", false, error.message));
  await client.connect();
  try {
    await body(async (...words) =>
      plain(await client.sendCommand(words.map(String))), client);
  } finally {
    await client.close();
  }
}

function same(found, expected) {
  return Object.entries(expected).every(([key, value]) =>
    typeof value === "function" ? value(found?.[key])
      : JSON.stringify(found?.[key]) === JSON.stringify(value));
}

const positive = (n) => Number.isInteger(n) && n > 0;
const natural = (n) => Number.isInteger(n) && n >= 0;

async function families(label, ask) {
  const tag = label.replace(/\W+/g, "-");
  const expect = async (name, words, expected) => {
    const title = `${label}: ${name}`;
    try {
      const found = await ask(...words);
      const good = typeof expected === "object" ? same(found, expected)
        : typeof expected === "function" ? expected(found)
          : found === expected;
      verdict(title, good, `${words.join(" ")} gave ${JSON.stringify(found)}`);
      return found;
    } catch (error) {
      verdict(title, false, `${words.join(" ")}: ${error.message}`);
      return {};
    }
  };
  const refuse = async (name, words, code) => {
    try {
      const found = await ask(...words);
      verdict(`${label}: ${name}`, false, `gave ${JSON.stringify(found)}`);
    } catch (error) {
      verdict(`${label}: ${name}`, error.message.startsWith(code + " "),
              `expected ${code}, got ${error.message}`);
    }
  };
  const lock = `lock-${tag}`;
  const held = await expect("lock",
    ["LOCK", lock, "OWNER", "me", "TTL", 60000],
    { token: positive, safe_ms: positive, count: 1, waited_ms: natural });
  await expect("lock again", ["LOCK", lock, "OWNER", "me", "REQ", `q-${tag}`],
               { token: held.token, count: 2 });
  await expect("the same request", ["LOCK", lock, "OWNER", "me", "REQ",
                                    `q-${tag}`], { count: 2 });
  await refuse("lock of another", ["LOCK", lock, "OWNER", "you"], "BUSY");
  await refuse("wait of another",
               ["LOCK", lock, "OWNER", "you", "WAIT", 20], "TIMEOUT");
  await expect("lockinfo", ["LOCKINFO", lock],
               { name: lock, owner: "me", token: held.token, count: 2 });
  await expect("locks", ["LOCKS", `${lock}*`],
               { locks: (l) => l?.length === 1, cursor: 0 });
  await expect("renew", ["RENEW", lock, held.token, "TTL", 90000],
               { safe_ms: positive });
  await expect("fence", ["FENCE", `db-${tag}`, held.token], "OK");
  await refuse("old fence", ["FENCE", `db-${tag}`, held.token - 1], "STALE");
  await expect("unlock", ["UNLOCK", lock, held.token], { remaining: 1 });
  await expect("last unlock", ["UNLOCK", lock, held.token], { remaining: 0 });
  await refuse("unlock too often", ["UNLOCK", lock, held.token], "NOTHELD");
  await refuse("renew too late", ["RENEW", lock, held.token, "TTL", 5],
               "LOST");
  await stock(tag, ask, expect, refuse);
  await service(tag, ask, expect, refuse);
}

async function stock(tag, ask, expect, refuse) {
  const bolt = `bolt-${tag}`;
  const nut = `nut-${tag}`;
  const id = `order-${tag}`;
  await expect("stock set", ["STOCK", "SET", bolt, 10], { total: 10 });
  await expect("stock add", ["STOCK", "ADD", bolt, 5, "REASON", "found"],
               { total: 15 });
  await expect("second product", ["STOCK", "SET", nut, 4], { available: 4 });
  await expect("stock get", ["STOCK", "GET", bolt],
               { sku: bolt, total: 15, available: 15, reserved: 0, sold: 0 });
  await expect("stock get of many", ["STOCK", "GET", bolt, nut, "no-such"],
               (list) => list?.length === 3 && list[1].sku === nut &&
                 list[2] === null);
  const listed = [];
  let cursor = 0;
  do { // a page may end early: go on while there is a cursor
    const page = await expect("a page of the stock",
                              ["STOCK", "LIST", `*-${tag}`, "CURSOR", cursor],
                              { products: Array.isArray });
    listed.push(...(page.products ?? []));
    cursor = Number(page.cursor ?? 0);
  } while (cursor !== 0);
  await expect("stock list", ["PING"], () => listed.length === 2);
  await expect("reserve", ["RESERVE", id, "ITEM", bolt, 2, "ITEM", nut, 1,
                           "TTL", 60000, "OWNER", "me"],
               { id, status: "PENDING", expires_ms: positive,
                 items: (i) => i?.length === 2 && i[0].quantity === 2 });
  await refuse("reserve too much", ["RESERVE", "*", "ITEM", nut, 4], "SHORT");
  await refuse("another order of that id", ["RESERVE", id, "ITEM", bolt, 3],
               "CONFLICT");
  await expect("extend", ["EXTEND", id, "TTL", 120000],
               { expires_ms: (ms) => ms > 60000 });
  await expect("reservation", ["RESERVATION", id], { status: "PENDING" });
  await expect("confirm", ["CONFIRM", id], { status: "CONFIRMED" });
  await refuse("confirm again", ["CANCEL", id], "STATE");
  const made = await expect("reserve with a made id",
    ["RESERVE", "*", "ITEM", bolt, 1], { id: (i) => i?.length > 8 });
  await expect("cancel", ["CANCEL", made.id, "REASON", "changed"],
               { status: "CANCELLED" });
  await refuse("no such reservation", ["RESERVATION", "no-such"], "NOTFOUND");
  await expect("sold", ["STOCK", "GET", bolt],
               { total: 15, available: 13, reserved: 0, sold: 2 });
  await expect("one more product", ["STOCK", "SET", `gone-${tag}`, 1],
               { total: 1 });
  await expect("stock del", ["STOCK", "DEL", `gone-${tag}`], "OK");
}

async function service(tag, ask, expect, refuse) {
  const key = `user-${tag}`;
  const limit = ["LIMIT", key, "RATE", 2, "PER", 60000];
  await expect("limit", limit,
               { allowed: 1, limit: 2, remaining: 1, retry_ms: 0,
                 reset_ms: natural });
  await expect("limit, the last", limit, { allowed: 1, remaining: 0 });
  await expect("limit, denied", limit, { allowed: 0, retry_ms: positive });
  await expect("ping", ["PING"], "PONG");
  await expect("info", ["INFO"], (text) => /(^|\n)loading:0\r?\n/.test(text));
  await expect("config get", ["CONFIG", "GET", "save"], { save: "" });
  await expect("client setname", ["CLIENT", "SETNAME", "tester"], "OK");
  await expect("client getname", ["CLIENT", "GETNAME"], "tester");
  await expect("client id", ["CLIENT", "ID"], positive);
  await expect("client setinfo", ["CLIENT", "SETINFO", "LIB-NAME", "x"], "OK");
  await expect("command count", ["COMMAND", "COUNT"], (n) => n > 15);
  await expect("command", ["COMMAND"], (list) => list?.length > 15);
  await expect("command docs", ["COMMAND", "DOCS", "LOCK"],
               (docs) => JSON.stringify(docs).toLowerCase().includes("lock"));
  await expect("select", ["SELECT", 0], "OK");
  await refuse("unknown command", ["NOSUCH", "x"], "ERR");
}

// A waiting connection and a pipeline, through the clients' own queues.
async function together(label, connect, options) {
  await connect(options, async (ask) => {
    const words = (owner) => ["LOCK", `pair-${label}`, "OWNER", owner,
                              "WAIT", 30000];
    const first = await ask(...words("first"));
    await connect(options, async (other) => {
      const waiting = other(...words("second"));
      while ((await ask("LOCKINFO", `pair-${label}`)).waiting !== 1);
      await ask("UNLOCK", `pair-${label}`, first.token);
      const second = await waiting;
      verdict(`${label}: the waiter is next`, second.token > first.token,
              JSON.stringify(second));
    });
    const replies = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => ask("PING", `n${i}`)));
    verdict(`${label}: a thousand at once, in order`,
            replies.every((reply, i) => reply === `n${i}`), replies[0]);
  });
}

// Groups, by each library's own multi().
const begin = {
  ioredis: (client) => {
    const multi = client.multi();
    return {
      add: (...words) => multi.call(...words.map(String)),
      exec: async () => (await multi.exec()).map(([error, value]) =>
        error ?? plain(value)),
    };
  },
  "node-redis": (client) => {
    const multi = client.multi();
    return {
      add: (...words) => multi.addCommand(words.map(String)),
      exec: async () => (await multi.exec()).map(plain),
    };
  },
};

async function groups(label, ask, client) {
  const tag = label.replace(/\W+/g, "-");
  const run = async (...commands) => {
    const multi = begin[label.split(" ")[0]](client);
    for (const words of commands) multi.add(...words);
    try {
      return await multi.exec();
    } catch (error) {
      return error.message;
    }
  };
  const limit = ["LIMIT", `multi-${tag}`, "RATE", 2, "PER", 60000];
  const reserve = (id, n) => ["RESERVE", `${id}-${tag}`, "ITEM", `cup-${tag}`, n];
  await ask("STOCK", "SET", `cup-${tag}`, 5);
  const all = await run(limit, ["LOCK", `multi-${tag}`, "OWNER", "me"],
                        reserve("one", 2), ["CONFIRM", `one-${tag}`]);
  verdict(`${label}: a group`,
          all.length === 4 && same(all[0], { allowed: 1, remaining: 1 }) &&
            same(all[1], { token: positive, count: 1 }) &&
            same(all[3], { status: "CONFIRMED" }), JSON.stringify(all));
  const refused = await run(limit, reserve("two", 3), reserve("three", 1));
  verdict(`${label}: a refused group`,
          String(refused).startsWith("EXECABORT command 3 of 3: SHORT "),
          JSON.stringify(refused));
  const spoiled = await run(reserve("two", 1), ["NOSUCH"]);
  verdict(`${label}: a spoiled group`,
          String(spoiled).includes("EXECABORT") ||
            String(spoiled).includes("unknown command"),
          JSON.stringify(spoiled));
  const left = await ask("STOCK", "GET", `cup-${tag}`);
  verdict(`${label}: nothing of a refused group`,
          same(left, { available: 3, reserved: 0, sold: 2 }),
          JSON.stringify(left));
  const last = await ask(...limit);
  verdict(`${label}: its limit cost nothing`,
          same(last, { allowed: 1, remaining: 0 }), JSON.stringify(last));
  const many = await Promise.all(Array.from({ length: 100 }, () =>
    run(["STOCK", "ADD", `cup-${tag}`, 1], ["STOCK", "ADD", `cup-${tag}`, 1])));
  verdict(`${label}: a hundred groups at once, in order`,
          many.every((one, i) => one[1].total === 5 + 2 * (i + 1)),
          JSON.stringify(many[0]));
}

// Subscribers, by each library's own calls.
const subscriber = {
  ioredis: async (client) => {
    const sub = client.duplicate();
    const heard = [];
    sub.on("message", (channel, text) => heard.push([channel, text]));
    sub.on("pmessage", (_, channel, text) => heard.push([channel, text]));
    return { heard,
             channel: (name) => sub.subscribe(name),
             pattern: (name) => sub.psubscribe(name),
             leave: async (names, patterns) => {
               await sub.unsubscribe(...names);
               await sub.punsubscribe(...patterns);
               await sub.quit();
             } };
  },
  "node-redis": async (client) => {
    const sub = client.duplicate();
    const heard = [];
    const take = (text, channel) => heard.push([channel, text]);
    sub.on("error", (error) => verdict("subscriber", false, error.message));
    await sub.connect();
    return { heard,
             channel: (name) => sub.subscribe(name, take),
             pattern: (name) => sub.pSubscribe(name, take),
             leave: async (names, patterns) => {
               await sub.unsubscribe(names);
               await sub.pUnsubscribe(patterns);
               await sub.close();
             } };
  },
};

async function events(label, ask, client) {
  const name = `heard-${label.replace(/\W+/g, "-")}`;
  const sub = await subscriber[label.split(" ")[0]](client);
  const hears = async (count) => {
    for (let i = 0; sub.heard.length < count && i < 100000; i++)
      await ask("PING");
    return sub.heard.splice(0);
  };
  await sub.channel(`hf:lock:${name}`);
  await sub.pattern(`hf:[se]*:${name}`);
  await sub.channel(name);
  const held = await ask("LOCK", name, "OWNER", "me");
  const granted = await hears(2);
  verdict(`${label}: a lock is heard on two channels`,
          granted.length === 2 && granted[0][0] === `hf:lock:${name}` &&
            granted[1][0] === `hf:election:${name}` &&
            granted.every(([, text]) => same(JSON.parse(text),
              { seq: held.token, kind: "lock_granted", owner: "me", name })),
          JSON.stringify(granted));
  await ask("STOCK", "SET", name, 5);
  const stocked = await hears(1);
  verdict(`${label}: stock is heard by a pattern`,
          stocked.length === 1 && stocked[0][0] === `hf:stock:${name}` &&
            same(JSON.parse(stocked[0][1]), { total: 5, available: 5 }),
          JSON.stringify(stocked));
  const told = await ask("PUBLISH", name, "words");
  const words = await hears(1);
  verdict(`${label}: what clients publish is heard`,
          told === 1 && same(words, [[name, "words"]]), JSON.stringify(words));
  await sub.leave([name, `hf:lock:${name}`], [`hf:[se]*:${name}`]);
  const page = await ask("EVENTS", "FROM", held.token, "MATCH", `*:${name}`);
  verdict(`${label}: the feed goes on from a number`,
          page.events?.length === 1 && page.gap === 0 &&
            same(page.events[0], { kind: "stock_changed", sku: name }),
          JSON.stringify(page));
}

const ways = [
  ["ioredis", withIoredis, {}],
  ["ioredis RESP2", withIoredis, { protocol: 2 }],
  ["ioredis RESP3", withIoredis, { protocol: 3, replyMapping: "resp3" }],
  ["node-redis", withNodeRedis, {}],
  ["node-redis RESP2", withNodeRedis, { RESP: 2 }],
  ["node-redis RESP3", withNodeRedis, { RESP: 3 }],
];
for (const [label, connect, options] of ways) {
  try {
    await connect(options, (ask) => families(label, ask));
    await connect(options, (ask, client) => groups(label, ask, client));
    await connect(options, (ask, client) => events(label, ask, client));
    await together(label.replace(/\W+/g, "-"), connect, options);
  } catch (error) {
    verdict(`${label}: to the end`, false, error.stack);
  }
}
console.log(`families: ${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
