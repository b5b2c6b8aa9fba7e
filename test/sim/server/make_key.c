/* make_key.c - draws the requests of lock clients of Redis.
 *
 * Their names are their own: what LOCK says of a key is not judged.
 */
#include "sim/server/making.h"

/* Each letter of `args` is a word: `v` a value, `V` one for each key, `t` a
 * time, `l` and `p` permits that there are and that are wanted, `-` what nobody
 * looks at. */
static const struct {
    const char *sha1;
    bool many;
    const char *args;
} scripts[] = {
    /* of one key: compare and delete, compare and expire, set or expire */
    {"e950836ed1e694540c503ef9972b8de518044d3b", false, "v"},
    {"d75bb8b5bd13532ddedd17762e772346e39b321e", false, "vt"},
    {"b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79", false, "vt"},
    /* set all, expire all, delete those that are equal */
    {"96da70f7716f27d278a5218544df37fd8b0a5e4c", true, "vt"},
    {"aed6f382e410db8ba7926d4e5e9aab410bf2a78a", true, "vt"},
    {"e4612211c9f8f51c257e26e056b0a654b3187242", true, "v"},
    /* set each to a value of its own */
    {"514d8d1b08387624661da2a9098d3949b633eb3a", true, "Vt"},
    /* one permit, and to keep it; several, and to give them back */
    {"43ebdb49120d170e08af560cb4e46e36f8585936", false, "lvt-"},
    {"999a49a1d07671a8027165641001f5bad44608b3", false, "lvt-"},
    {"10c1c2e05e7c48aa5824d227b8c51abcde87b18e", false, "lpvt-"},
    {"0bd1010c98f1ddd70a6024fd374489a8ea3d2c12", false, "pv"},
    /* those below, once they were sent */
    {"b70c2384248f88e6b75b9f89241a180f856ad852", false, "v"},
    {"36e94d1c6e02fcefaa7ee5d79eee614dbac55f10", false, "vt"},
};
#define SCRIPTS (sizeof scripts / sizeof scripts[0])

/* Compare and delete, compare and expire. */
static const char *const texts[] = {
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
    "return redis.call(\"del\",KEYS[1]) else return 0 end",
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
    "return redis.call(\"pexpire\",KEYS[1],ARGV[2]) else return 0 end",
};

static void add_key(struct making *m)
{
    words_add(m->out, "key%llu", ULL(dice_below(m->dice, m->mix->names)));
}

/* As a rule the one that the client sets. */
static void add_value(struct making *m)
{
    uint64_t value =
        dice_hit(m->dice, 100) ? dice_below(m->dice, 3) : m->client;

    words_add(m->out, "v%llu", ULL(value));
}

static void add_arg(struct making *m, char letter, uint64_t keys)
{
    uint64_t values = letter == 'V' ? keys : letter == 'v';

    for (uint64_t i = 0; i < values; i++)
        add_value(m);
    if (letter == 't')
        words_add(m->out, "%llu", ULL(dice_scale(m->dice, 10, m->mix->ttl_ms)));
    else if (letter == 'l')
        words_add(m->out, "3");
    else if (letter == 'p')
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 1, 2)));
    else if (letter == '-')
        words_add(m->out, "0");
}

static void make_script(struct making *m)
{
    uint64_t script = dice_below(m->dice, SCRIPTS);
    uint64_t keys = scripts[script].many ? dice_between(m->dice, 1, 4) : 1;

    words_add(m->out, "EVALSHA");
    words_add(m->out, "%s", scripts[script].sha1);
    words_add(m->out, "%llu", ULL(keys));
    for (uint64_t i = 0; i < keys; i++)
        add_key(m);
    for (const char *arg = scripts[script].args; *arg != '\0'; arg++)
        add_arg(m, *arg, keys);
}

static void make_set(struct making *m)
{
    static const char *const conditions[] = {"NX", "NX", "NX", "XX", "GET"};
    uint64_t condition = dice_below(m->dice, 6);

    words_add(m->out, "SET");
    add_key(m);
    add_value(m);
    if (condition < 5)
        words_add(m->out, "%s", conditions[condition]);
    if (!dice_hit(m->dice, 100))
        add_ms(m, "PX", m->mix->ttl_ms);
}

/* One word and one key. */
static void make_plain(struct making *m)
{
    static const char *const verbs[] = {"DEL",     "GETDEL", "GET",   "PTTL",
                                        "EXISTS",  "TYPE",   "TTL",   "DEL",
                                        "PERSIST", "GET",    "UNLINK"};

    words_add(m->out, "%s", verbs[dice_below(m->dice, 11)]);
    add_key(m);
}

/* A key and what it is to be, or to have. */
static void make_pair(struct making *m)
{
    static const char *const verbs[] = {"SETNX", "DELIFEQ", "DELEX",
                                        "ZREM",  "PEXPIRE", "EXPIRE"};
    uint64_t verb = dice_below(m->dice, 6);

    words_add(m->out, "%s", verbs[verb]);
    add_key(m);
    if (verb == 2 && dice_hit(m->dice, 100))
        return;
    if (verb == 2)
        words_add(m->out, "IFEQ");
    if (verb < 4)
        add_value(m);
    else
        words_add(m->out, "%llu",
                  ULL(dice_below(m->dice, verb == 4 ? 5000 : 5)));
}

static void make_text(struct making *m)
{
    uint64_t kind = dice_below(m->dice, 10);
    uint64_t text = dice_below(m->dice, 2);

    words_add(m->out, kind < 6 ? "EVAL" : "SCRIPT");
    if (kind >= 6)
        words_add(m->out, kind < 8 ? "LOAD" : kind == 8 ? "EXISTS" : "FLUSH");
    if (kind == 8)
        words_add(m->out, "%s", scripts[SCRIPTS - 2 + text].sha1);
    else if (kind < 8)
        words_add(m->out, "%s", texts[text]);
    if (kind >= 6)
        return;
    words_add(m->out, "1");
    add_key(m);
    add_value(m);
    if (text == 1)
        words_add(m->out, "%llu", ULL(dice_scale(m->dice, 10, m->mix->ttl_ms)));
}

void make_key(struct making *m)
{
    switch (dice_below(m->dice, 12)) {
    case 0:
    case 1:
    case 2:
        make_set(m);
        break;
    case 3:
    case 4:
        make_script(m);
        break;
    case 5:
        words_add(m->out, dice_hit(m->dice, 500) ? "KEYS" : "SCAN");
        words_add(m->out, words_is(m->out, 0, "KEYS") ? "key*" : "0");
        break;
    case 6:
        words_add(m->out, "DBSIZE");
        break;
    case 7:
    case 8:
        make_pair(m);
        break;
    case 9:
        make_text(m);
        break;
    default:
        make_plain(m);
        break;
    }
}
