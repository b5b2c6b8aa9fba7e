/* writebehind.c - those who put, flush and close, and the store, step by step.
 *
 * Keys are single bytes, values are numbers. Each fiber has a key of its own,
 * FIRST_OWN + fiber, whose numbers grow. Fiber 0 also puts groups of two of the
 * three keys below that, with growing numbers: so after every transaction of
 * the store, a group is there for both of its keys or for neither.
 */
#include <errno.h>
#include <unistd.h>

#include "base/thread.h"
#include "holdfast/writebehind.h"
#include "support/broken_disk.h"
#include "support/schedule.h"
#include "support/test.h"

#define KEYS      8
#define FIRST_OWN 3
#define GROUPS    4
#define EACH      3
#define FIBERS    4

static struct {
    struct hf_writebehind *behind;
    struct hf_writebehind_opts opts;
    struct hf_store store;
    struct hf_atomic_u32 open, left;
    struct hf_mutex mutex;   /* guards what the store and others use */
    bool inside;             /* the store is being written to */
    uint64_t there[KEYS];    /* in the store */
    unsigned fail_odds;      /* 1 of so many calls fails; 0: none */
    bool gone;               /* all calls fail */
    uint64_t dead[KEYS];     /* highest that was given up */
    uint64_t dead_count;     /* changes */
    uint64_t accepted[KEYS]; /* by the one fiber that puts this key */
    uint64_t unknown[KEYS];  /* the last that its log may have, or not */
    bool refused[GROUPS + 1];
    uint64_t applied; /* changes written with success */
    struct broken_disk disk;
    unsigned sync_odds; /* 1 of so many syncs fails; 0: none */
} test;

/* ---- The store. ---- */

/* The keys of group `number`. */
static unsigned group_key(uint64_t number, unsigned which)
{
    return (unsigned)((number + which) % FIRST_OWN);
}

static void check_groups(void)
{
    for (uint64_t n = 1; n <= GROUPS; n++)
        if (!test.refused[n] && (test.there[group_key(n, 0)] >= n) !=
                                    (test.there[group_key(n, 1)] >= n))
            schedule_wrong("half of group %u is in the store", (unsigned)n);
}

static uint64_t number_of(const void *value)
{
    uint64_t number;

    memcpy(&number, value, sizeof number);
    return number;
}

static enum hf_status apply(void *context,
                            const struct hf_store_change *changes, size_t count)
{
    (void)context;
    hf_mutex_lock(&test.mutex);
    if (test.inside)
        schedule_wrong("two write to the store");
    test.inside = true;
    bool fails = test.gone ||
                 (test.fail_odds > 0 && schedule_random(test.fail_odds) == 0);
    bool lies = fails && !test.gone && schedule_random(2) == 0;
    for (size_t i = 0; i < count && (!fails || lies); i++) {
        unsigned key = *(const unsigned char *)changes[i].key;
        uint64_t number = number_of(changes[i].value);
        if (number < test.there[key])
            schedule_wrong("key %u goes back from %u to %u", key,
                           (unsigned)test.there[key], (unsigned)number);
        test.there[key] = number;
    }
    check_groups();
    hf_mutex_unlock(&test.mutex);
    hf_thread_pause();
    hf_mutex_lock(&test.mutex);
    test.inside = false;
    hf_mutex_unlock(&test.mutex);
    return fails ? HF_IO : HF_OK;
}

static enum hf_status read_key(void *context, const void *key, size_t key_len,
                               void (*found)(void *arg, const void *value,
                                             size_t value_len),
                               void *arg)
{
    (void)context, (void)key_len;
    hf_mutex_lock(&test.mutex);
    uint64_t number = test.there[*(const unsigned char *)key];
    hf_mutex_unlock(&test.mutex);
    if (number == 0)
        return HF_NOTFOUND;
    found(arg, &number, sizeof number);
    return HF_OK;
}

static void dead(void *context, enum hf_status why,
                 const struct hf_store_change *group, size_t count)
{
    (void)context, (void)why;
    for (size_t i = 0; i < count; i++) {
        unsigned key = *(const unsigned char *)group[i].key;
        if (number_of(group[i].value) > test.dead[key])
            test.dead[key] = number_of(group[i].value);
    }
    test.dead_count += count;
}

/* ---- Those who call. ---- */

static void note(void *arg, const void *value, size_t len)
{
    (void)len;
    *(uint64_t *)arg = number_of(value);
}

static uint64_t get(unsigned key)
{
    unsigned char name = (unsigned char)key;
    uint64_t number = 0;
    enum hf_status status =
        hf_writebehind_get(test.behind, &name, 1, note, &number);

    if (status != HF_OK && status != HF_NOTFOUND)
        schedule_wrong("get: %s", hf_status_text(status));
    return number;
}

static enum hf_status put(unsigned key, uint64_t number, uint64_t deadline_ns)
{
    unsigned char name = (unsigned char)key;
    enum hf_status status = hf_writebehind_put(test.behind, &name, 1, &number,
                                               sizeof number, deadline_ns);

    if (status == HF_OK)
        test.accepted[key] = number;
    if (status == HF_IO)
        test.unknown[key] = number;
    return status;
}

static enum hf_status put_group(uint64_t number, uint64_t deadline_ns)
{
    unsigned char names[2];
    struct hf_store_change pair[2];

    for (unsigned i = 0; i < 2; i++) {
        names[i] = (unsigned char)group_key(number, i);
        pair[i] = (struct hf_store_change){.key = &names[i],
                                           .key_len = 1,
                                           .value = &number,
                                           .value_len = sizeof number};
    }
    enum hf_status status =
        hf_writebehind_put_all(test.behind, pair, 2, deadline_ns);
    for (unsigned i = 0; i < 2; i++) {
        if (status == HF_OK)
            test.accepted[names[i]] = number;
        else if (status == HF_IO)
            test.unknown[names[i]] = number;
    }
    hf_mutex_lock(&test.mutex);
    test.refused[number] = status != HF_OK;
    hf_mutex_unlock(&test.mutex);
    return status;
}

static void set_gone(bool gone)
{
    hf_mutex_lock(&test.mutex);
    test.gone = gone;
    hf_mutex_unlock(&test.mutex);
}

static uint64_t in_store(unsigned key)
{
    hf_mutex_lock(&test.mutex);
    uint64_t number = test.there[key];
    hf_mutex_unlock(&test.mutex);
    return number;
}

static uint64_t some_deadline(void)
{
    uint64_t draw = schedule_random(4);

    if (draw == 0)
        return HF_NOW;
    return draw == 1 ? HF_FOREVER : schedule_now_ns() + schedule_random(20000);
}

static void prepare(void)
{
    memset(&test, 0, sizeof test);
    test.store = (struct hf_store){.read = read_key, .apply = apply};
    test.opts = (struct hf_writebehind_opts){.store = &test.store,
                                             .dead = dead,
                                             .batch_max = 2,
                                             .dirty_max = 4,
                                             .age_ns = 3000,
                                             .pause_ns = 500,
                                             .pause_max_ns = 2000,
                                             .seed = 1};
}

/* Fiber 0 opens, the others wait for that. */
static void arrive(unsigned fiber)
{
    if (fiber == 0) {
        if (hf_writebehind_open(&test.behind, &test.opts) != HF_OK)
            schedule_wrong("open");
        hf_u32_store(&test.open, 1, __ATOMIC_RELEASE);
    }
    while (!hf_u32_load(&test.open, __ATOMIC_ACQUIRE))
        hf_thread_pause();
}

/* True: this is fiber 0, and the others have left. */
static bool depart(unsigned fiber, unsigned fibers)
{
    hf_u32_add(&test.left, 1, __ATOMIC_RELEASE);
    if (fiber > 0)
        return false;
    while (hf_u32_load(&test.left, __ATOMIC_ACQUIRE) < fibers)
        hf_thread_pause();
    return true;
}

static void check_sum(const struct hf_writebehind_stats *stats)
{
    if (stats->changes !=
        stats->coalesced + stats->flushed + stats->dead + stats->dirty)
        schedule_wrong("%u changes: %u %u %u %u", (unsigned)stats->changes,
                       (unsigned)stats->coalesced, (unsigned)stats->flushed,
                       (unsigned)stats->dead, (unsigned)stats->dirty);
}

static void close_well(void)
{
    struct hf_writebehind_stats stats;

    hf_writebehind_stats(test.behind, &stats);
    check_sum(&stats);
    if (hf_writebehind_close(test.behind, HF_FOREVER) != HF_OK)
        schedule_wrong("close");
}

static bool all_there(void *context, FILE *explain)
{
    (void)context;
    for (unsigned key = 0; key < KEYS; key++)
        if (test.there[key] != test.accepted[key]) {
            fprintf(explain, "key %u is %u, not %u", key,
                    (unsigned)test.there[key], (unsigned)test.accepted[key]);
            return false;
        }
    return true;
}

/* ---- Putting, getting, flushing. ---- */

static void begin_plain(void *context, uint64_t seed)
{
    (void)context, (void)seed;
    prepare();
    test.fail_odds = schedule_random(2) ? 3 : 0;
}

static void put_groups(uint64_t deadline_ns)
{
    for (uint64_t n = 1; n <= GROUPS; n++) {
        if (put_group(n, deadline_ns) != HF_OK)
            schedule_wrong("group");
        if (get(group_key(n, 0)) != n)
            schedule_wrong("group %u is not seen", (unsigned)n);
    }
}

static void put_own(unsigned fiber)
{
    for (uint64_t n = 1; n <= EACH; n++) {
        if (put(FIRST_OWN + fiber, n, HF_FOREVER) != HF_OK)
            schedule_wrong("put");
        if (get(FIRST_OWN + fiber) != n)
            schedule_wrong("%u is not seen", (unsigned)n);
    }
}

static void flush_some(unsigned fiber)
{
    for (uint64_t n = 1; n <= 2; n++) {
        if (put(FIRST_OWN + fiber, n, HF_FOREVER) != HF_OK)
            schedule_wrong("put");
        enum hf_status status =
            hf_writebehind_flush(test.behind, some_deadline());
        if (status == HF_OK && in_store(FIRST_OWN + fiber) != n)
            schedule_wrong("flushed, and not in the store");
        if (status != HF_OK && status != HF_TIMEOUT)
            schedule_wrong("flush: %s", hf_status_text(status));
    }
}

static void plain_body(void *context, unsigned fiber)
{
    (void)context;
    arrive(fiber);
    if (fiber == 0)
        put_groups(HF_FOREVER);
    else if (fiber == 1)
        put_own(fiber);
    else
        flush_some(fiber);
    if (depart(fiber, 3))
        close_well();
}

TEST(groups_are_whole_order_is_kept_and_a_put_is_seen)
{
    struct schedule_case c = {.name = "plain",
                              .fibers = 3,
                              .setup = begin_plain,
                              .body = plain_body,
                              .check = all_there};
    schedule_check(&c);
}

/* ---- No room. ---- */

static void begin_tight(void *context, uint64_t seed)
{
    (void)context, (void)seed;
    prepare();
    test.opts.dirty_max = 2;
    test.opts.age_ns = HF_FOREVER; /* only who waits makes it write */
    test.opts.refuse = schedule_random(4) == 0;
}

static void tight_body(void *context, unsigned fiber)
{
    struct hf_writebehind_stats stats;

    (void)context;
    arrive(fiber);
    for (uint64_t n = 1; n <= EACH; n++) {
        uint64_t deadline_ns = some_deadline();
        enum hf_status status = fiber == 0
                                    ? put_group(n, deadline_ns)
                                    : put(FIRST_OWN + fiber, n, deadline_ns);
        bool may_be_late = deadline_ns != HF_FOREVER && !test.opts.refuse;
        if (status != HF_OK && !(status == HF_TIMEOUT && may_be_late) &&
            !(status == HF_FULL && test.opts.refuse))
            schedule_wrong("put: %s", hf_status_text(status));
        hf_writebehind_stats(test.behind, &stats);
        if (stats.dirty > 2)
            schedule_wrong("%u are dirty", (unsigned)stats.dirty);
        check_sum(&stats);
    }
    if (depart(fiber, FIBERS))
        close_well();
}

TEST(without_room_putters_wait_their_turn_and_nothing_is_lost)
{
    struct schedule_case c = {.name = "tight",
                              .fibers = FIBERS,
                              .setup = begin_tight,
                              .body = tight_body,
                              .check = all_there};
    schedule_check(&c);
}

/* ---- The end. ---- */

static void shut_body(void *context, unsigned fiber)
{
    (void)context;
    arrive(fiber);
    if (fiber == 3) {
        hf_writebehind_shutdown(test.behind);
    } else {
        for (uint64_t n = 1; n <= EACH; n++) {
            enum hf_status status = fiber == 0
                                        ? put_group(n, HF_FOREVER)
                                        : put(FIRST_OWN + fiber, n, HF_FOREVER);
            if (status != HF_OK && status != HF_CLOSED &&
                !(status == HF_FULL && test.opts.refuse))
                schedule_wrong("put: %s", hf_status_text(status));
        }
    }
    if (depart(fiber, FIBERS))
        close_well();
}

TEST(what_was_accepted_before_shut_is_written)
{
    struct schedule_case c = {.name = "shut",
                              .fibers = FIBERS,
                              .setup = begin_tight,
                              .body = shut_body,
                              .check = all_there};
    schedule_check(&c);
}

static void begin_failing(void *context, uint64_t seed)
{
    (void)context, (void)seed;
    prepare();
    test.opts.batch_max = 1;
}

/* The store is lost at some moment; close comes at another. */
static void failing_body(void *context, unsigned fiber)
{
    (void)context;
    arrive(fiber);
    if (fiber == 1) {
        put_own(fiber);
        set_gone(true);
    } else if (fiber == 0) {
        for (uint64_t n = 1; n <= 2; n++)
            (void)put_group(n, schedule_now_ns() + 5000);
    }
    if (!depart(fiber, 2))
        return;
    uint64_t deadline_ns =
        schedule_random(2) ? HF_NOW : schedule_now_ns() + 3000;
    enum hf_status status = hf_writebehind_close(test.behind, deadline_ns);
    if (status != HF_OK && status != HF_TIMEOUT)
        schedule_wrong("close: %s", hf_status_text(status));
    if ((status == HF_OK) != (test.dead_count == 0))
        schedule_wrong("close: %s, %u are dead", hf_status_text(status),
                       (unsigned)test.dead_count);
}

static bool there_or_dead(void *context, FILE *explain)
{
    (void)context;
    for (unsigned key = 0; key < KEYS; key++)
        if (test.there[key] != test.accepted[key] &&
            test.dead[key] != test.accepted[key]) {
            fprintf(explain, "key %u: %u is in the store, %u dead, %u accepted",
                    key, (unsigned)test.there[key], (unsigned)test.dead[key],
                    (unsigned)test.accepted[key]);
            return false;
        }
    return true;
}

TEST(at_the_end_every_change_is_in_the_store_or_handed_back)
{
    struct schedule_case c = {.name = "failing",
                              .fibers = 2,
                              .setup = begin_failing,
                              .body = failing_body,
                              .check = there_or_dead};
    schedule_check(&c);
}

/* ---- The log. ---- */

static int paused_write(void *context, int fd, const void *data, size_t len,
                        uint64_t offset)
{
    hf_thread_pause();
    return broken_write(context, fd, data, len, offset);
}

static int paused_sync(void *context, int fd)
{
    hf_thread_pause();
    if (test.sync_odds > 0 && schedule_random(test.sync_odds) == 0)
        return EIO;
    return broken_sync(context, fd);
}

static char folder[512];

static void begin_log(void *context, uint64_t seed)
{
    (void)context, (void)seed;
    prepare();
    broken_disk_init(&test.disk);
    test.disk.disk.write = paused_write;
    test.disk.disk.sync = paused_sync;
    test.opts.log_dir = folder;
    test.opts.segment_bytes = 150;
    test.opts.log_bytes = 2000;
    test.opts.dirty_max = 6;
    test.sync_odds = schedule_random(2) ? 6 : 0;
}

static void open_log(void)
{
    if (hf_wb_open_on(&test.behind, &test.opts, &test.disk.disk) != HF_OK)
        schedule_wrong("open");
}

/* After a crash each key is what was accepted last, or what was being put
 * when a sync failed. */
static void check_recovered(void)
{
    for (unsigned key = 0; key < KEYS; key++) {
        uint64_t number = get(key);
        if (number < test.accepted[key] ||
            (number > test.accepted[key] && number > test.unknown[key]))
            schedule_wrong("key %u comes back as %u, not %u or %u", key,
                           (unsigned)number, (unsigned)test.accepted[key],
                           (unsigned)test.unknown[key]);
        test.accepted[key] = number;
    }
}

static void log_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        open_log();
        hf_u32_store(&test.open, 1, __ATOMIC_RELEASE);
    }
    arrive(fiber == 0 ? 1 : fiber);
    for (uint64_t n = 1; n <= EACH; n++) {
        enum hf_status status = fiber == 0
                                    ? put_group(n, HF_FOREVER)
                                    : put(FIRST_OWN + fiber, n, HF_FOREVER);
        if (status != HF_OK && status != HF_IO)
            schedule_wrong("put: %s", hf_status_text(status));
    }
    if (!depart(fiber, 3))
        return;
    set_gone(true); /* the process dies here, for the store */
    (void)hf_writebehind_close(test.behind, HF_NOW);
    if (test.dead_count > 0)
        schedule_wrong("dead, although there is a log");
    set_gone(false);
    test.sync_odds = 0;
    open_log();
    check_recovered();
    close_well();
}

TEST(what_the_log_acknowledged_comes_back)
{
    snprintf(folder, sizeof folder, "%s/log", test_folder());
    struct schedule_case c = {.name = "log",
                              .fibers = 3,
                              .setup = begin_log,
                              .body = log_body,
                              .check = all_there,
                              .schedules = 5000};
    schedule_check(&c);
}
