/* batcher.c - a batcher and those who add to it, step by step. */
#include "holdfast/batcher.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/event.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4
#define EACH   3 /* items of each fiber */

struct item {
    unsigned fiber;
    unsigned number;
    uint64_t began_ns;     /* add was called */
    enum hf_status status; /* what it returned */
    unsigned handled;      /* how often */
    unsigned dead;
};

static struct {
    struct hf_batcher *batcher;
    struct hf_batcher_opts opts;
    struct hf_atomic_u32 open; /* it is, so that others may begin */
    struct hf_atomic_u32 left; /* fibers that are done with it */
    struct hf_atomic_u32 shut; /* was asked for, or a flush */
    struct hf_event progress;  /* a batch was handled */
    struct hf_atomic_u32 handled;
    struct item items[FIBERS][EACH];
    /* By the handler, which must be one at a time: */
    bool inside;
    unsigned last[FIBERS]; /* 1 + number of the fiber's last item */
    unsigned fail_odds;    /* 1 in so many calls fails; 0: none */
    unsigned failures;     /* of the batch */
} test;

static void order(struct item *item)
{
    if (item->number < test.last[item->fiber])
        schedule_wrong("fiber %u: item %u came too late", item->fiber,
                       item->number);
    test.last[item->fiber] = item->number + 1;
}

/* A batch is made for a reason: it is full, old enough, or asked for. */
static void check_reason(void *const *items, size_t count)
{
    const struct item *oldest = items[0];

    if (count < test.opts.batch_max && test.failures == 0 &&
        hf_u32_load(&test.shut, __ATOMIC_RELAXED) == 0 &&
        (test.opts.age_ns == HF_FOREVER ||
         schedule_now_ns() < oldest->began_ns + test.opts.age_ns))
        schedule_wrong("a batch of %zu without a reason", count);
}

static int handle(void *context, void *const *items, size_t count)
{
    (void)context;
    if (test.inside)
        schedule_wrong("two are in the handler");
    test.inside = true;
    if (count == 0 || count > test.opts.batch_max)
        schedule_wrong("%zu items", count);
    if (test.opts.shards == 1)
        check_reason(items, count);
    hf_thread_pause();
    bool fails = test.fail_odds > 0 && schedule_random(test.fail_odds) == 0;
    test.failures = fails ? test.failures + 1 : 0;
    for (size_t i = 0; i < count && !fails; i++) {
        struct item *item = items[i];
        order(item);
        item->handled++;
    }
    test.inside = false;
    if (!fails) {
        hf_u32_add(&test.handled, (uint32_t)count, __ATOMIC_RELEASE);
        hf_event_wake_all(&test.progress);
    }
    return fails;
}

static void dead(void *context, void *const *items, size_t count)
{
    (void)context;
    if (test.inside)
        schedule_wrong("dead while somebody handles");
    for (size_t i = 0; i < count; i++) {
        struct item *item = items[i];
        order(item);
        item->dead++;
    }
    test.failures = 0;
}

static void prepare(void)
{
    memset(&test, 0, sizeof test);
    test.opts = (struct hf_batcher_opts){.handle = handle, .dead = dead};
}

/* Fiber 0 opens, the others wait for that. */
static void arrive(unsigned fiber)
{
    if (fiber == 0) {
        if (hf_batcher_open(&test.batcher, &test.opts) != HF_OK)
            schedule_wrong("open");
        hf_u32_store(&test.open, 1, __ATOMIC_RELEASE);
    }
    while (!hf_u32_load(&test.open, __ATOMIC_ACQUIRE))
        hf_thread_pause();
}

/* And closes when the others have left. */
static void depart(unsigned fiber, unsigned fibers)
{
    hf_u32_add(&test.left, 1, __ATOMIC_RELEASE);
    if (fiber > 0)
        return;
    while (hf_u32_load(&test.left, __ATOMIC_ACQUIRE) < fibers)
        hf_thread_pause();
    hf_u32_store(&test.shut, 1, __ATOMIC_RELAXED);
    hf_batcher_close(test.batcher);
}

static enum hf_status add(unsigned fiber, unsigned number, uint64_t deadline_ns)
{
    struct item *item = &test.items[fiber][number];

    item->fiber = fiber;
    item->number = number;
    item->began_ns = schedule_now_ns();
    item->status = hf_batcher_add(test.batcher, item, deadline_ns);
    return item->status;
}

static uint64_t some_deadline(void)
{
    uint64_t draw = schedule_random(4);

    return draw == 0   ? HF_NOW
           : draw == 1 ? schedule_now_ns() + schedule_random(4000)
                       : HF_FOREVER;
}

/* What was accepted was handled or is dead, once; what was not, never. */
static bool check(void *context, FILE *explain)
{
    (void)context;
    for (unsigned i = 0; i < FIBERS; i++) {
        for (unsigned j = 0; j < EACH; j++) {
            const struct item *item = &test.items[i][j];
            unsigned accepted = item->began_ns > 0 && item->status == HF_OK;
            fprintf(explain, "item %u of %u: %s, handled %u, dead %u; ", j, i,
                    hf_status_text(item->status), item->handled, item->dead);
            if (item->handled + item->dead != accepted)
                return false;
        }
    }
    return true;
}

/* ---- All at once. ---- */

static void any_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare();
    test.opts.full = (enum hf_batcher_full)(seed % 3);
    test.opts.batch_max = 1 + (uint32_t)(seed / 3 % 3);
    test.opts.queue_max = test.opts.batch_max + (uint32_t)(seed / 9 % 2);
    test.opts.shards = 1 + (uint32_t)(seed / 18 % 2);
    test.opts.age_ns = seed / 36 % 2 ? 1500 : HF_FOREVER;
    test.fail_odds = seed / 72 % 2 ? 2 : 0;
    test.opts.retries = 2;
    test.opts.pause_ns = 300;
}

/* By size only, nothing comes to help those who wait for room but the items of
 * the others: each adds whole batches, so that the last is full as well. */
static void any_body(void *context, unsigned fiber)
{
    (void)context;
    arrive(fiber);
    if (fiber == 3 && schedule_random(2)) {
        for (uint64_t i = schedule_random(30); i > 0; i--)
            hf_thread_pause();
        hf_u32_store(&test.shut, 1, __ATOMIC_SEQ_CST);
        hf_batcher_shutdown(test.batcher);
    }
    for (unsigned i = 0; i < EACH; i++) {
        enum hf_status status = add(fiber, i, some_deadline());
        if (status == HF_FULL && test.opts.full != HF_BATCHER_DROP)
            schedule_wrong("full");
        if (status == HF_CLOSED && !hf_u32_load(&test.shut, __ATOMIC_RELAXED))
            schedule_wrong("closed");
    }
    depart(fiber, FIBERS);
}

TEST(nothing_is_lost_or_doubled_in_any_mode)
{
    struct schedule_case c = {.name = "batcher any",
                              .fibers = FIBERS,
                              .setup = any_setup,
                              .body = any_body,
                              .check = check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- Waiting for room. ---- */

static void room_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare();
    test.opts.batch_max = 1;
    test.opts.queue_max = 1 + (uint32_t)(seed / 2 % 2);
    test.opts.full = seed % 2 ? HF_BATCHER_BLOCK : HF_BATCHER_FLUSH;
    test.opts.age_ns = HF_FOREVER;
}

/* Those who give up must not take the wake-up of those who do not. */
static void room_body(void *context, unsigned fiber)
{
    (void)context;
    arrive(fiber);
    for (unsigned i = 0; i < EACH; i++) {
        bool patient = fiber % 2 == 0;
        uint64_t deadline_ns =
            patient ? HF_FOREVER : schedule_now_ns() + schedule_random(1500);
        enum hf_status status = add(fiber, i, deadline_ns);
        if (status != HF_OK && (patient || status != HF_TIMEOUT))
            schedule_wrong("add: %s", hf_status_text(status));
    }
    depart(fiber, FIBERS);
}

TEST(who_waits_for_room_gets_it)
{
    struct schedule_case c = {.name = "batcher room",
                              .fibers = FIBERS,
                              .setup = room_setup,
                              .body = room_body,
                              .check = check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- The first item starts the time, the last one ends it. ---- */

static void alone_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare();
    /* By age alone, or by size alone. */
    test.opts.batch_max = seed % 2 ? 100 : 2;
    test.opts.age_ns = seed % 2 ? 2000 : HF_FOREVER;
    test.opts.full = seed / 2 % 2 ? HF_BATCHER_FLUSH : HF_BATCHER_BLOCK;
}

static enum hf_status all_handled(void *context)
{
    return hf_u32_load(&test.handled, __ATOMIC_ACQUIRE) >=
                   *(const uint32_t *)context
               ? HF_OK
               : HF_PENDING;
}

/* Nobody flushes, nobody shuts: a wake-up that is lost is a wait for ever. */
static void alone_body(void *context, unsigned fiber)
{
    static const uint32_t rounds[2] = {4, 8};

    (void)context;
    arrive(fiber);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 2; i++) {
            struct item *item = &test.items[fiber * 2 + round][i];
            item->began_ns = schedule_now_ns();
            item->fiber = fiber * 2 + round;
            item->number = i;
            item->status = hf_batcher_add(test.batcher, item, HF_FOREVER);
        }
        /* Every round makes whole batches, of both fibers together. */
        if (hf_event_until(&test.progress, all_handled,
                           (void *)(uintptr_t)&rounds[round], NULL,
                           HF_FOREVER) != HF_OK)
            schedule_wrong("wait");
    }
    depart(fiber, 2);
}

TEST(the_thread_hears_of_what_is_added)
{
    struct schedule_case c = {.name = "batcher alone",
                              .fibers = 2,
                              .setup = alone_setup,
                              .body = alone_body,
                              .check = check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- Flush. ---- */

static void flush_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare();
    test.opts.batch_max = 2;
    test.opts.queue_max = 4;
    test.opts.shards = 1 + (uint32_t)(seed % 2);
    test.opts.age_ns = HF_FOREVER;
    test.opts.full = seed / 2 % 2 ? HF_BATCHER_FLUSH : HF_BATCHER_BLOCK;
    test.fail_odds = seed / 4 % 2 ? 3 : 0;
    test.opts.pause_ns = 400;
    test.shut.value = 1; /* flushed batches need no reason */
}

/* After flush, what this fiber had added is over. */
static void flush_body(void *context, unsigned fiber)
{
    (void)context;
    arrive(fiber);
    for (unsigned i = 0; i < EACH; i++) {
        bool added = add(fiber, i, HF_FOREVER) == HF_OK;
        if (i == 1)
            continue;
        uint64_t deadline_ns = schedule_random(3) == 0
                                   ? schedule_now_ns() + schedule_random(2000)
                                   : HF_FOREVER;
        enum hf_status status = hf_batcher_flush(test.batcher, deadline_ns);
        const struct item *item = &test.items[fiber][i];
        if (status == HF_OK && added && item->handled + item->dead != 1)
            schedule_wrong("flushed before it was handled");
        if (status != HF_OK &&
            (status != HF_TIMEOUT || deadline_ns == HF_FOREVER))
            schedule_wrong("flush: %s", hf_status_text(status));
    }
    if (fiber == 2)
        hf_batcher_shutdown(test.batcher);
    depart(fiber, 3);
}

TEST(flush_returns_when_all_before_it_is_over)
{
    struct schedule_case c = {.name = "batcher flush",
                              .fibers = 3,
                              .setup = flush_setup,
                              .body = flush_body,
                              .check = check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- The end during a pause. ---- */

static void pause_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare();
    test.opts.batch_max = 1 + (uint32_t)(seed % 2);
    test.opts.pause_ns = HF_FOREVER;
    test.opts.retries = 2;
    test.opts.shards = 1 + (uint32_t)(seed / 2 % 2);
    test.opts.full = seed / 4 % 2 ? HF_BATCHER_FLUSH : HF_BATCHER_BLOCK;
    test.opts.queue_max = 2;
    test.fail_odds = 2;
}

/* The pause has no end of its own. */
static void pause_body(void *context, unsigned fiber)
{
    (void)context;
    arrive(fiber);
    for (unsigned i = 0; i < EACH; i++)
        (void)add(fiber, i, schedule_now_ns() + schedule_random(3000));
    depart(fiber, 3);
}

TEST(close_does_not_wait_for_a_pause)
{
    struct schedule_case c = {.name = "batcher pause",
                              .fibers = 3,
                              .setup = pause_setup,
                              .body = pause_body,
                              .check = check};
    schedule_check(&c);
}
