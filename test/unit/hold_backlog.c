/* hold_backlog.c - random commands about stock, given to two engines: one that
 * sweeps as it does, and one for which all that is due is swept before each
 * command. Both tell the same, but for numbers and the time of changes.
 *
 *   lazy    ...256 ended | RESERVE pear | 256 ended | STOCK GET pear | ...
 *   eager   all ended    | RESERVE pear |           | STOCK GET pear | ...
 *
 * While others wait time stands still until all is swept: when exactly somebody
 * is served may differ. TEST_SEED gives other commands, and a HOLD_STEP_MAX of
 * 4 many more of them while something is due.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/random.h"
#include "support/engine.h"

TEST_ONE_THREAD;

enum {
    SEEDS = 24,
    STEPS = 400,
    PRODUCTS = 6,
    PLACES = 3,
    IDS = 60,
    GROUPS = 4,
    TTL_MS = 10,
    LINE = 4096,
    TEXT = 1 << 18
};

static struct hf_random chance;
static struct hold_engine *lazy, *eager;
static bool waits;         /* there are some who wait */
static unsigned mass;      /* reservations that only fall due */
static unsigned early;     /* questions */
static unsigned settled;   /* commands that did not wait */
static char told[2][TEXT]; /* by each of the two */

static unsigned below(unsigned count)
{
    return (unsigned)hf_random_below(&chance, count);
}

/* ---- Commands. ---- */

__attribute__((format(printf, 2, 3))) static void add(char *line,
                                                      const char *format, ...)
{
    size_t len = strlen(line);
    va_list args;

    va_start(args, format);
    CHECK(vsnprintf(line + len, LINE - len, format, args) < (int)(LINE - len));
    va_end(args);
}

static void add_sku(char *line)
{
    if (below(8) == 0)
        add(line, " q@%u", below(PLACES));
    else
        add(line, " p%u", below(PRODUCTS));
}

/* As a rule that of all the others. */
static unsigned pick_ttl(void)
{
    unsigned kind = below(10);

    return kind < 6 ? TTL_MS : kind < 8 ? 1 + below(2 * TTL_MS) : 5 * TTL_MS;
}

static void add_items(char *line, unsigned count, bool some)
{
    for (unsigned i = 0; i < count; i++) {
        add(line, " ITEM");
        add_sku(line);
        add(line, " %u%s", 1 + below(5), some && below(8) == 0 ? " MIN 1" : "");
    }
}

static void reserve(char *line, bool alone)
{
    unsigned kind = below(14);

    add(line, "RESERVE r%u", below(IDS));
    if (kind == 0)
        add(line, " ITEM q %u PLACE 0 PLACE 1 PLACE 2 SPLIT FEWEST",
            1 + below(4));
    else
        add_items(line, kind == 1 ? 1 : 1 + below(2) * below(3), kind == 2);
    if (kind == 1)
        add(line, " PREORDER");
    if (kind == 3)
        add(line, " BEST");
    if (below(8) > 0)
        add(line, " TTL %u", pick_ttl());
    if (below(6) == 0)
        add(line, " CLASS c%u", below(2));
    if (below(2) == 0)
        add(line, " OWNER o%u", below(3));
    if (kind > 10 && alone && waits)
        add(line, " WAIT %u PRIORITY %u", 1 + below(8) * TTL_MS, below(4));
    else if (kind > 3 && below(6) == 0)
        add(line, " GROUP g%u", below(GROUPS));
}

static void change(char *line)
{
    static const char *const kinds[] = {"STOCK SET",    "STOCK ADD",
                                        "STOCK LIMIT",  "STOCK LOW",
                                        "STOCK ARRIVE", "STOCK DEL"};
    unsigned kind = below(6);

    if (kind == 5 && below(3) > 0)
        kind = 0;
    add(line, "%s", kinds[kind]);
    add_sku(line);
    if (kind == 0)
        add(line, " %u", below(40));
    else if (kind < 5)
        add(line, " %s%u", kind == 1 && below(2) > 0 ? "-" : "", 1 + below(9));
}

static void ask(char *line)
{
    unsigned kind = below(4);

    if (kind == 0) {
        add(line, "RESERVATION r%u", below(IDS));
        return;
    }
    add(line, kind == 1 ? "STOCK PLACES q" : "STOCK GET");
    for (unsigned i = 1; i < kind; i++)
        add_sku(line);
}

static void wait_list(char *line)
{
    bool join = below(3) > 0;

    add(line, join ? "WAITLIST JOIN" : "WAITLIST LEAVE");
    add_sku(line);
    if (join)
        add(line, " %u OWNER o%u ID", 1 + below(5), below(3));
    add(line, " r%u", below(IDS));
    if (join)
        add(line, " TTL %u WAIT %u PRIORITY %u", pick_ttl(),
            1 + below(8) * TTL_MS, below(3));
}

/* CONFIRM, CANCEL, EXTEND. */
static void end(char *line)
{
    unsigned kind = below(4);

    add(line, "%s r%u",
        kind == 0   ? "CANCEL"
        : kind == 1 ? "EXTEND"
                    : "CONFIRM",
        below(IDS));
    if (kind == 1)
        add(line, " TTL %u", pick_ttl());
    else if (below(4) == 0)
        add_items(line, 1, false);
}

/* One that may be of several in a group of commands, or stands alone. */
static void make(char *line, bool alone)
{
    switch (below(24)) {
    case 0:
    case 1:
    case 2:
        change(line);
        break;
    case 3:
    case 4:
    case 5:
        ask(line);
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        end(line);
        break;
    case 10:
        add(line, "GROUP %s g%u", below(2) > 0 ? "CONFIRM" : "CANCEL",
            below(GROUPS));
        break;
    case 11:
        add(line, "STOCK EXPECT p%u %u AT %llu REF x", below(PRODUCTS),
            below(9), (unsigned long long)(engine_now_us / MS + TTL_MS));
        break;
    case 12:
        add(line, "CLASS SET c%u TTL %u GRACE %u", below(2), pick_ttl(),
            below(3) * TTL_MS);
        break;
    case 13:
        if (alone && waits)
            wait_list(line);
        else
            end(line);
        break;
    default:
        reserve(line, alone);
        break;
    }
}

/* ---- Both engines. ---- */

/* What is told, without what may differ. */
static void keep(const struct hold_out *out, char *text)
{
    static const char *const left_out[] = {
        "version=", "updated_ms=", "ended_ms=", "ticket="};
    const char *from = engine_reply_text(out);
    size_t len = 0;

    while (*from != '\0') {
        const char *before = from;
        for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
            size_t name = strlen(left_out[i]);
            if (strncmp(from, left_out[i], name) == 0)
                from += name + strspn(from + name, "0123456789");
        }
        CHECK(len + 1 < TEXT);
        if (from == before)
            text[len++] = *from++;
    }
    text[len] = '\0';
}

static const struct hold_out *apply(const struct hold_command *c)
{
    const struct hold_out *out = engine_apply(c);

    while (out->code == HOLD_AGAIN)
        out = engine_again();
    return out;
}

static void sweep(void)
{
    static struct hold_command c;

    c = (struct hold_command){
        .kind = HOLD_TICK, .now_us = engine_now_us, .amount = 1};
    (void)apply(&c);
}

/* Parsed anew for each: its texts last until the next one. */
static const struct hold_command *parse(const char *line)
{
    return strchr(line, ';') != NULL ? engine_group_of(NULL, line)
                                     : engine_parse("%s", line);
}

static void tell(const char *line, bool swept, char *text)
{
    const struct hold_command *c = parse(line);

    if (hold_kind_is_write(c->kind)) {
        settled += hold_due_us(engine) <= engine_now_us &&
                   hold_kind_is_exact(c->kind) && !hold_is_exact(engine, c);
        keep(apply(c), text);
        return;
    }
    const struct hold_out *out = hold_ask(engine, c);
    if (out == NULL) {
        CHECK(!swept && hold_due_us(engine) <= engine_now_us);
        early++;
        sweep();
        out = hold_ask(engine, parse(line));
    }
    keep(out, text);
}

static void both(const char *line)
{
    engine = lazy;
    tell(line, false, told[0]);
    engine = eager;
    sweep();
    tell(line, true, told[1]);
    engine = lazy;
    if (strcmp(told[0], told[1]) != 0)
        test_fail(__FILE__, __LINE__,
                  "at %llu: %s\n  as it is:   %.400s\n  all swept:  %.400s",
                  (unsigned long long)engine_now_us, line, told[0], told[1]);
}

__attribute__((format(printf, 1, 2))) static void both_of(const char *format,
                                                          ...)
{
    char line[LINE];
    va_list args;

    va_start(args, format);
    CHECK(vsnprintf(line, sizeof line, format, args) < LINE);
    va_end(args);
    both(line);
}

/* Everything, when all is swept. */
static void compare(void)
{
    CHECK_ENGINE();
    sweep();
    for (unsigned i = 0; i < PRODUCTS; i++) {
        both_of("STOCK GET p%u", i);
        both_of("WAITLIST LIST p%u", i);
        both_of("STOCK EXPECTED p%u", i);
    }
    both_of("STOCK PLACES q");
    for (unsigned i = 0; i < IDS; i++)
        both_of("RESERVATION r%u", i);
    for (unsigned i = 0; i < GROUPS; i++)
        both_of("GROUP SHOW g%u", i);
}

/* ---- Runs. ---- */

static void begin(unsigned seed)
{
    hf_random_init(&chance, test_seed() + seed);
    waits = seed % 2 == 0;
    mass = 0;
    for (unsigned i = 0; i < 2; i++) {
        engine = NULL;
        engine_start();
        engine_bound("ended_keep_ms", 1000000000);
        if (seed % 3 == 0)
            engine_bound("grace_ms", 3 * TTL_MS / 2);
        *(i == 0 ? &lazy : &eager) = engine;
    }
    both_of("STOCK SET mass 1000000");
    both_of("CLASS SET c0 TTL %u GRACE %u", TTL_MS, 2 * TTL_MS);
    for (unsigned i = 0; i < PRODUCTS; i++)
        both_of("STOCK SET p%u %u", i, 5 + below(30));
    for (unsigned i = 0; i < PLACES; i++)
        both_of("STOCK SET q@%u %u", i, below(30));
}

/* More is to fall due at once than a few steps sweep. */
static void add_mass(void)
{
    char id[16];

    for (unsigned left = HOLD_STEP_MAX * (1 + below(6)); left > 0; left--) {
        snprintf(id, sizeof id, "m%u", mass++);
        for (unsigned i = 0; i < 2; i++) {
            engine = i == 0 ? eager : lazy;
            CHECK_EQ(engine_reserve(id, "mass 1", TTL_MS)->code, HOLD_OK);
        }
    }
}

static void pass_time(void)
{
    bool due = hold_due_us(lazy) <= engine_now_us;

    if (due && (waits || below(8) > 0))
        return;
    if (!due && below(10) == 0)
        add_mass();
    if (below(4) > 0)
        return;
    if (!due && below(2) == 0 && hold_due_us(lazy) != UINT64_MAX)
        engine_now_us = hold_due_us(lazy) - below(2);
    else
        engine_now_us += below(3) == 0 ? 1 : MS * below(2 * TTL_MS);
}

static void run(unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        char line[LINE] = "";
        pass_time();
        if (below(15) == 0) {
            make(line, false);
            for (unsigned more = 1 + below(3); more > 0; more--) {
                add(line, "; ");
                make(line, false);
            }
        } else {
            make(line, true);
        }
        both(line);
        if (below(60) == 0) {
            engine_reload(); /* in the middle, too */
            lazy = engine;
        }
    }
}

TEST(what_is_told_of_stock_is_as_if_all_that_is_due_were_swept)
{
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        begin(seed);
        for (unsigned i = 0; i < 2; i++) {
            run(STEPS / 2);
            compare();
        }
        hold_free(eager);
        engine = lazy;
        engine_stop();
    }
    CHECK(early > 0);
    CHECK(settled > 0);
}
