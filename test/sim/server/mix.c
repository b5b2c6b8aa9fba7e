/* mix.c - draws a seed's weights and faults. */
#include "sim/server/mix.h"

#include <string.h>

#include "server/config.h"

const char *const fault_names[FAULT_KINDS] = {
    [FAULT_KILL] = "kill",
    [FAULT_KILL_DISK] = "kill-disk",
    [FAULT_STOP] = "stop",
    [FAULT_STALL] = "stall",
    [FAULT_STALL_KILL] = "stall-kill",
    [FAULT_STALL_STOP] = "stall-stop",
    [FAULT_WRITE] = "write",
    [FAULT_SIDE] = "side",
    [FAULT_FULL] = "full",
    [FAULT_DATE] = "date",
    [FAULT_MEMORY] = "memory",
    [FAULT_PAUSE] = "pause",
    [FAULT_SALE] = "sale",
};

/* How often a kind is asked when nothing speaks against it. */
static const uint8_t usual[MAKE_KINDS] = {
    [MAKE_LOCK] = 60,         [MAKE_LOCK_WAIT] = 60,
    [MAKE_UNLOCK] = 70,       [MAKE_RENEW] = 30,
    [MAKE_LOCKINFO] = 40,     [MAKE_LOCKS] = 8,
    [MAKE_FENCE] = 12,        [MAKE_LOCKSET] = 30,
    [MAKE_UNLOCKSET] = 25,    [MAKE_RENEWSET] = 8,
    [MAKE_DOWNGRADE] = 10,    [MAKE_HELD] = 20,
    [MAKE_REVOKE] = 3,        [MAKE_SESSION_OPEN] = 20,
    [MAKE_SESSION_KEEP] = 20, [MAKE_SESSION_CLOSE] = 4,
    [MAKE_SESSION_INFO] = 8,  [MAKE_SESSION_LIST] = 2,
    [MAKE_STOCK_SET] = 12,    [MAKE_STOCK_ADD] = 20,
    [MAKE_STOCK_GET] = 40,    [MAKE_STOCK_LIST] = 8,
    [MAKE_STOCK_DEL] = 4,     [MAKE_RESERVE] = 80,
    [MAKE_CONFIRM] = 30,      [MAKE_CANCEL] = 20,
    [MAKE_EXTEND] = 20,       [MAKE_RESERVATION] = 40,
    [MAKE_LIMIT] = 40,        [MAKE_LIMIT_POLICY] = 20,
    [MAKE_LIMIT_ADMIN] = 10,  [MAKE_LIMIT_OTHER] = 8,
    [MAKE_PING] = 10,         [MAKE_INFO] = 2,
    [MAKE_CONFIG] = 4,        [MAKE_DESCRIBE] = 2,
    [MAKE_WRONG] = 6,         [MAKE_QUIT] = 2,
    [MAKE_FLUSH] = 1,
};

static void draw_weights(struct mix *mix, struct dice *dice)
{
    /* lock, stock and limit families: one of them, two, or all */
    uint64_t families = dice_below(dice, 8);

    for (int i = 0; i < MAKE_KINDS; i++) {
        uint64_t weight = usual[i] * dice_scale(dice, 1, 8);
        bool lock = i <= MAKE_LOCKS_LAST;
        bool stock = i > MAKE_LOCKS_LAST && i <= MAKE_RESERVATION;
        bool limit = i > MAKE_RESERVATION && i <= MAKE_LIMIT_OTHER;
        if ((families == 0 && !lock) || (families == 1 && !stock) ||
            (families == 2 && !lock && !stock) || (families == 3 && limit))
            weight = 0;
        if (dice_hit(dice, 100))
            weight = 0; /* now and then something is not asked at all */
        mix->weights[i] = weight;
    }
    if (dice_hit(dice, 700))
        mix->weights[MAKE_FLUSH] = 0;
    mix->weights[MAKE_PING]++; /* something is */
}

static uint64_t one_of(struct dice *dice, const uint64_t *values, size_t count)
{
    return values[dice_below(dice, count)];
}

#define ONE_OF(dice, ...)                         \
    one_of(dice, (const uint64_t[]){__VA_ARGS__}, \
           sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void draw_clients(struct mix *mix, struct dice *dice)
{
    mix->clients = ONE_OF(dice, 3, 6, 12, 20, 20);
    mix->names = ONE_OF(dice, 1, 2, 3, 5);
    mix->skus = ONE_OF(dice, 1, 2, 3);
    mix->ids = ONE_OF(dice, 2, 6, 20);
    mix->keys = ONE_OF(dice, 1, 3);
    mix->ttl_ms = ONE_OF(dice, 200, 1000, 5000, 30000);
    mix->wait_ms = ONE_OF(dice, 100, 1000, 5000, 20000);
    mix->think_ns = ONE_OF(dice, 1 * MS, 10 * MS, 100 * MS);
    mix->pace_ns = ONE_OF(dice, US, US, US, US, 10 * MS, 100 * MS, 1 * S);
    mix->patience_ns = ONE_OF(dice, 50 * MS, 1 * S, 30 * S);
    mix->stock = ONE_OF(dice, 3, 20, 300, 1000000);
    mix->request = ONE_OF(dice, 0, 200, 500, 900);
    mix->again = ONE_OF(dice, 0, 50, 200);
    mix->pipeline = ONE_OF(dice, 0, 100, 400);
    mix->bulk = ONE_OF(dice, 0, 0, 10, 30);
    mix->leave = ONE_OF(dice, 0, 20, 150);
    mix->flood = ONE_OF(dice, 0, 0, 0, 100);
    mix->half = ONE_OF(dice, 0, 0, 20);
    mix->slow = ONE_OF(dice, 0, 0, 100, 300);
    mix->deaf = mix->pace_ns >= 100 * MS ? 300 : 0;
    mix->inline_ = ONE_OF(dice, 0, 20, 200);
    mix->garbage = ONE_OF(dice, 0, 0, 20);
    mix->share = ONE_OF(dice, 0, 0, 100);
    mix->foreign = ONE_OF(dice, 0, 100);
}

static void draw_machine(struct mix *mix, struct dice *dice)
{
    mix->net.delay_ns = ONE_OF(dice, 5 * US, 50 * US, 1 * MS);
    mix->net.delay_max = ONE_OF(dice, 50 * US, 5 * MS, 200 * MS);
    if (mix->net.delay_max < mix->net.delay_ns)
        mix->net.delay_max = mix->net.delay_ns;
    mix->net.split = ONE_OF(dice, 0, 50, 400);
    mix->net.cut = ONE_OF(dice, 0, 0, 200, 700);
    mix->net.cut_bytes = ONE_OF(dice, 200, 4000, 60000);
    mix->net.vanish = ONE_OF(dice, 0, 0, 300);
    /* a reply about a lock fits in, or it would be older than its sending */
    mix->net.window_min = ONE_OF(dice, 600, 600, 4096, 65536);
    mix->net.window_max = ONE_OF(dice, 1000, 4096, 65536, 1u << 20);
    mix->net.refuse = ONE_OF(dice, 0, 0, 100);
    mix->disk.write_ns = ONE_OF(dice, 5 * US, 80 * US);
    mix->disk.write_max_ns =
        ONE_OF(dice, 100 * US, 100 * US, 5 * MS, 50 * MS, 2 * S);
    mix->disk.sync_max_ns = ONE_OF(dice, 1 * MS, 50 * MS, 1 * S);
    mix->sync = (enum journal_sync)ONE_OF(dice, JOURNAL_ALWAYS, JOURNAL_ALWAYS,
                                          JOURNAL_ALWAYS, JOURNAL_ALWAYS,
                                          JOURNAL_INTERVAL, JOURNAL_NONE);
    mix->segment_bytes = ONE_OF(dice, 65536, 131072, 262144);
    mix->snapshot_bytes = ONE_OF(dice, 65536, 200000, 1u << 20);
    mix->clients_max = dice_hit(dice, 100) ? mix->clients / 2 : 1000;
    mix->output_max = ONE_OF(dice, 2000, 65536, 1u << 20);
    mix->idle_ms = dice_hit(dice, mix->pace_ns > US ? 300 : 100) ? 2000 : 0;
    mix->memory_max = dice_hit(dice, 100) ? 1u << 20 : 0;
    mix->step_ns = ONE_OF(dice, 0, 0, 0, 1 * US, 10 * US);
    mix->requests_max = dice_hit(dice, 150) ? dice_between(dice, 4, 60) : 0;
    mix->request_keep_ms = dice_hit(dice, 200) ? 3000 : 0;
    mix->ended_keep_ms = dice_hit(dice, 200) ? 3000 : 0;
    mix->waiters_max = dice_hit(dice, 100) ? 2 : 0;
}

static void draw_fault(struct fault *fault, struct dice *dice,
                       enum fault_kind kind, uint64_t commands)
{
    *fault = (struct fault){
        .kind = kind,
        .at = dice_below(dice, commands * 9 / 10 + 1),
        .after_ns = dice_scale(dice, 1 * US, 100 * MS),
        .number = dice_scale(dice, 1, 200) - 1,
        .power = dice_hit(dice, 500),
    };
    switch (kind) {
    case FAULT_STALL:
    case FAULT_STALL_KILL:
    case FAULT_STALL_STOP:
        fault->size_ns = dice_scale(dice, 10 * MS, 70 * S);
        if (dice_hit(dice, 300))
            fault->size_ns = dice_between(dice, 1 * S, 10 * S);
        break;
    case FAULT_DATE:
        fault->size_ns = dice_scale(dice, 1 * MS, 900000 * S);
        break;
    case FAULT_SALE: /* it takes many commands */
        fault->at = dice_below(dice, commands / 2 + 1);
        break;
    default:
        fault->size_ns = dice_scale(dice, 1 * MS, 20 * S);
        break;
    }
}

/* A fifth of the seeds have no fault at all, another has one kind only. */
static void draw_faults(struct mix *mix, struct dice *dice, uint32_t off)
{
    uint64_t style = dice_below(dice, 10);
    uint64_t only = dice_below(dice, FAULT_KINDS);

    if (style < 2)
        return;
    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        struct dice own = dice_make(world_seed(), "fault", (uint64_t)kind, 0);
        uint64_t count = dice_hit(&own, 400) ? dice_scale(&own, 1, 6) : 0;
        if (style < 4)
            count = only == (uint64_t)kind ? dice_between(&own, 2, 8) : 0;
        if (kind == FAULT_SALE && count > 0)
            count = dice_hit(&own, 700);
        if ((off >> kind & 1) != 0)
            continue;
        while (count-- > 0 && mix->fault_count < FAULTS_MAX)
            draw_fault(&mix->faults[mix->fault_count++], &own,
                       (enum fault_kind)kind, mix->commands);
    }
}

/* A quarter of the seeds have a log that several machines keep; nothing of what
 * it has acknowledged is lost. */
static void draw_remote(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 1, 0);

    if (seed % 4 != 3)
        return;
    mix->sync = JOURNAL_ALWAYS;
    mix->remote.flights = dice_between(&dice, 1, REMOTE_FLIGHTS_MAX);
    mix->remote.lapse_ns = ONE_OF(&dice, 0, 200 * MS, 2 * S, 20 * S);
    mix->remote.taken = ONE_OF(&dice, 0, 100, 500);
}

/* In a quarter of the seeds a REQ is on its way on two connections at once. */
static void draw_twins(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 2, 0);

    if (dice_hit(&dice, 250))
        mix->twins = ONE_OF(&dice, 50, 300, 1000);
}

/* In a third of the seeds locks are plain. In the others each has something of
 * its own, and leaves something out. */
static void draw_locks(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 3, 0);
    bool sets = !dice_hit(&dice, 300);
    bool sessions = !dice_hit(&dice, 300);

    if (dice_hit(&dice, 333))
        sets = sessions = false;
    for (int i = MAKE_LOCKSET; i <= MAKE_LOCKS_LAST; i++) {
        if ((i <= MAKE_RENEWSET && !sets) ||
            (i >= MAKE_SESSION_OPEN && !sessions) || (!sets && !sessions))
            mix->weights[i] = 0;
    }
    if (!sets && !sessions)
        return;
    if (dice_hit(&dice, 500)) /* as a rule they are forced out by others */
        mix->weights[MAKE_REVOKE] = 0;
    if (sessions && mix->weights[MAKE_SESSION_OPEN] == 0)
        mix->weights[MAKE_SESSION_OPEN] = usual[MAKE_SESSION_OPEN];
    mix->shared = ONE_OF(&dice, 0, 300, 300, 700);
    mix->permits = ONE_OF(&dice, 0, 0, 300, 800);
    mix->sessions = sessions ? ONE_OF(&dice, 300, 600, 900) : 0;
    mix->bind = ONE_OF(&dice, 0, 500, 1000);
    mix->forever = ONE_OF(&dice, 0, 200, 700);
    mix->barge = ONE_OF(&dice, 0, 0, 200);
    mix->priority = ONE_OF(&dice, 0, 0, 300);
    mix->policy = ONE_OF(&dice, 0, 0, 300, 900);
    mix->terms = ONE_OF(&dice, 0, 100, 400);
    mix->done = ONE_OF(&dice, 0, 0, 100);
    mix->few = dice_hit(&dice, 100) ? 3 : 0;
    mix->wound_grace_ms = ONE_OF(&dice, 0, 100, 5000);
    mix->trees = ONE_OF(&dice, 0, 0, 200, 500);
}

/* Who leaves without waiting for its lock, and what comes behind it. In some
 * seeds with a log of several machines that is what they are about: commits are
 * slow, requests few, and nobody waits for a lock, so that batches follow each
 * other. */
static void draw_partings(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 5, 0);

    mix->followed = ONE_OF(&dice, 0, 300, 1000);
    if (mix->remote.flights == 0 || !dice_hit(&dice, 250))
        return;
    mix->weights[MAKE_LOCK_WAIT] = mix->weights[MAKE_LOCKSET] = 0;
    mix->remote.flights = REMOTE_FLIGHTS_MAX;
    mix->disk.write_max_ns = 2 * S;
    mix->pace_ns = 100 * MS;
    mix->leave = 150;
    mix->followed = 1000;
    mix->nowait = true;
}

/* In half of the seeds permits are held, too. */
static void draw_limits(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 4, 0);

    mix->held = ONE_OF(&dice, 0, 0, 300, 900);
    mix->held_per_ms = ONE_OF(&dice, 1000, 10000, 60000);
}

/* In a third of the seeds there are no groups, and some are mostly about them.
 */
static void draw_groups(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 6, 0);

    mix->groups = ONE_OF(&dice, 0, 0, 30, 100, 300, 800);
    if (mix->groups > 0)
        mix->loose = ONE_OF(&dice, 0, 0, 20, 100);
}

/* In half of the seeds some wait for stock, and there may be little of it. */
static void draw_queues(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 8, 0);

    mix->queue = mix->nowait ? 0 : ONE_OF(&dice, 0, 0, 100, 400, 900);
    mix->joins = ONE_OF(&dice, 0, 0, 100, 400);
    if (mix->queue > 100 && dice_hit(&dice, 700))
        mix->stock = ONE_OF(&dice, 3, 5, 20);
}

/* In half of the seeds reservations have classes. */
static void draw_classes(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 9, 0);

    mix->classes = ONE_OF(&dice, 0, 0, 60, 150);
}

/* In half of the seeds there are keys beside the locks. */
static void draw_keys(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 7, 0);

    mix->redis = ONE_OF(&dice, 0, 0, 50, 300);
}

/* In half of the seeds products are changed by their versions. */
static void draw_stock(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 8, 0);

    mix->versions = ONE_OF(&dice, 0, 0, 200, 700);
    mix->products = ONE_OF(&dice, 0, 0, 200, 500);
}

/* In a quarter of the seeds events are asked for. */
static void draw_events(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 23, 0);

    mix->events = ONE_OF(&dice, 0, 0, 0, 60);
}

/* In half of the seeds there are elections among the locks. */
static void draw_elections(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 24, 0);

    mix->elects = mix->nowait ? 0 : ONE_OF(&dice, 0, 0, 60, 300);
    mix->seldom = ONE_OF(&dice, 0, 10, 30);
}

/* In a third of the seeds somebody has subscribed. */
static void draw_hearers(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 25, 0);

    if (mix->clients >= 6)
        mix->hearers = ONE_OF(&dice, 0, 0, 1, 2);
}

/* In half of the seeds the past is asked for. */
static void draw_past(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 14, 0);

    mix->past = ONE_OF(&dice, 0, 0, 30, 150);
}

/* In a third of the seeds all products are one sku. */
static void draw_places(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 12, 0);

    mix->places = ONE_OF(&dice, 0, 0, 0, 0, 300, 800);
}

static void draw_quotas(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 21, 0);

    mix->quotas = ONE_OF(&dice, 0, 0, 300, 700);
}

static void draw_bundles(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 22, 0);

    mix->bundles = ONE_OF(&dice, 0, 0, 100, 300);
}

static void draw_books(struct mix *mix, uint64_t seed)
{
    struct dice dice = dice_make(seed, "mix", 15, 0);

    mix->books = ONE_OF(&dice, 0, 0, 0, 150, 600);
}

const char *mix_name(const struct mix *mix, uint64_t number)
{
    static const char *const apart[] = {"a", "b", "c", "d", "e"};
    static const char *const below[] = {"a", "a/b", "a/c", "a/c/d", "e"};

    return mix->trees > 0 ? below[number] : apart[number];
}

const char *mix_sku(const struct mix *mix, uint64_t number)
{
    static const char *const apart[] = {"s0", "s1", "s2"};
    static const char *const placed[] = {"s@p0", "s@p1", "s@p2"};

    return mix->places > 0 ? placed[number] : apart[number];
}

void mix_draw(struct mix *mix, uint64_t seed, uint64_t commands, uint32_t off)
{
    struct dice dice = dice_make(seed, "mix", 0, 0);

    memset(mix, 0, sizeof *mix);
    mix->commands = commands;
    draw_weights(mix, &dice);
    draw_clients(mix, &dice);
    draw_machine(mix, &dice);
    draw_faults(mix, &dice, off);
    mix->events_bytes = seed % 8 == 5 ? 0 : seed % 8 == 6 ? 65536 : 64u << 20;
    if (dice_hit(&dice, 200)) { /* peace on the wires */
        mix->net.cut = 0;
        mix->leave = mix->half = mix->slow = mix->garbage = 0;
        mix->net.refuse = 0;
    }
    draw_remote(mix, seed);
    draw_twins(mix, seed);
    draw_locks(mix, seed);
    draw_limits(mix, seed);
    draw_partings(mix, seed);
    draw_groups(mix, seed);
    draw_classes(mix, seed);
    draw_keys(mix, seed);
    draw_stock(mix, seed);
    draw_past(mix, seed);
    draw_events(mix, seed);
    draw_queues(mix, seed);
    draw_places(mix, seed);
    draw_quotas(mix, seed);
    draw_bundles(mix, seed);
    draw_books(mix, seed);
    draw_elections(mix, seed);
    draw_hearers(mix, seed);
}

void mix_bounds(const struct mix *mix, struct hold_bounds *bounds)
{
    if (mix->requests_max)
        bounds->requests_max = mix->requests_max;
    if (mix->request_keep_ms)
        bounds->request_keep_ms = mix->request_keep_ms;
    if (mix->ended_keep_ms)
        bounds->ended_keep_ms = mix->ended_keep_ms;
    if (mix->waiters_max)
        bounds->waiters_max = mix->waiters_max;
    if (mix->few)
        bounds->holders_max = bounds->sessions_max = mix->few;
    bounds->wound_grace_ms = mix->wound_grace_ms;
}

void mix_describe(const struct mix *mix, uint64_t seed, FILE *out)
{
    fprintf(out, "seed %llu: %llu clients, %s, %llu KiB segments",
            (unsigned long long)seed, (unsigned long long)mix->clients,
            config_durabilities[mix->sync],
            (unsigned long long)mix->segment_bytes / 1024);
    if (mix->remote.flights > 0)
        fprintf(out, ", a log elsewhere, %llu commits at once",
                (unsigned long long)mix->remote.flights);
    fprintf(out, ", faults:");
    for (size_t i = 0; i < mix->fault_count; i++)
        fprintf(out, " %s@%llu", fault_names[mix->faults[i].kind],
                (unsigned long long)mix->faults[i].at);
    fprintf(out, "\n");
}
