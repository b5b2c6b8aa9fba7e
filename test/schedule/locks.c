/* locks.c - the lock manager, step by step. */
#include "holdfast/locks.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4
#define MS     UINT64_C(1000000)

static const char *const names[] = {"Database", "FileSystem", "Network"};

static struct {
    struct hf_locks *locks;
    uint32_t plain;               /* guarded by a lock */
    uint32_t expected;            /* what it must come to */
    struct hf_atomic_u32 readers; /* inside */
    struct hf_atomic_u32 writers; /* inside */
    struct hf_atomic_u32 order;   /* of grants */
    uint32_t place[FIBERS];       /* in that order */
    enum hf_status seen[FIBERS];
    uint64_t deadlocks; /* of all schedules */
    uint64_t timeouts;
} test;

static void begin(const struct hf_locks_opts *opts)
{
    if (hf_locks_open(&test.locks, opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "no lock manager");
    test.plain = 0;
    test.expected = 0;
    test.readers.value = test.writers.value = test.order.value = 0;
    memset(test.place, 0, sizeof test.place);
    memset(test.seen, 0, sizeof test.seen);
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin(NULL);
}

/* Nothing is held, and nobody waits. */
static bool end(void *context, FILE *explain)
{
    struct hf_locks_stats stats;

    (void)context;
    (void)hf_locks_stats(test.locks, NULL, &stats);
    test.deadlocks += stats.deadlocks;
    test.timeouts += stats.timeouts;
    fprintf(explain, "held %u, waiting %u, %u of %u", stats.held, stats.waiting,
            test.plain, test.expected);
    hf_locks_close(test.locks);
    return stats.held == 0 && stats.waiting == 0 && test.plain == test.expected;
}

/* Uses the stack on which the last call stood, for a while: whoever still
 * writes to a waiter there is found. */
__attribute__((noinline)) static void use_the_stack(void)
{
    unsigned char bytes[1024];

    memset(bytes, 0x5a, sizeof bytes);
    for (int i = 0; i < 3; i++)
        hf_thread_pause();
    for (size_t i = 0; i < sizeof bytes; i++)
        if (((volatile unsigned char *)bytes)[i] != 0x5a)
            schedule_wrong("a waiter was written to after its wait");
}

static void must(enum hf_status status, const char *what)
{
    if (status != HF_OK)
        schedule_wrong("%s: %s", what, hf_status_text(status));
}

static uint32_t waiting(void)
{
    struct hf_locks_stats stats;

    (void)hf_locks_stats(test.locks, NULL, &stats);
    return stats.waiting;
}

/* ---- Exclusion. ---- */

static void exclusion_setup(void *context, uint64_t seed)
{
    setup(context, seed);
    test.expected = 9;
}

static void exclusion_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    for (int i = 0; i < 3; i++) {
        must(hf_locks_acquire(test.locks, "a", NULL, HF_FOREVER, NULL),
             "acquire");
        use_the_stack();
        test.plain++; /* a race would be reported */
        must(hf_locks_release(test.locks, "a", 0), "release");
    }
}

TEST(one_holds_and_nobody_is_forgotten)
{
    struct schedule_case c = {.name = "locks exclusion",
                              .fibers = 3,
                              .setup = exclusion_setup,
                              .body = exclusion_body,
                              .check = end};
    schedule_check(&c);
}

/* ---- Order. ---- */

/* Fiber 0 holds; 1, 2 and 3 come one after the other. */
static void order_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        must(hf_locks_acquire(test.locks, "a", NULL, HF_FOREVER, NULL),
             "acquire");
        hf_u32_store(&test.readers, 1, __ATOMIC_RELEASE);
        while (waiting() < 3)
            hf_thread_pause();
        must(hf_locks_release(test.locks, "a", 0), "release");
        return;
    }
    while (hf_u32_load(&test.readers, __ATOMIC_ACQUIRE) == 0 ||
           waiting() < fiber - 1)
        hf_thread_pause();
    must(hf_locks_acquire(test.locks, "a", NULL, HF_FOREVER, NULL), "acquire");
    use_the_stack();
    test.place[fiber] = hf_u32_add(&test.order, 1, __ATOMIC_RELAXED) + 1;
    must(hf_locks_release(test.locks, "a", 0), "release");
}

static bool order_check(void *context, FILE *explain)
{
    fprintf(explain, "places %u %u %u; ", test.place[1], test.place[2],
            test.place[3]);
    return end(context, explain) && test.place[1] == 1 && test.place[2] == 2 &&
           test.place[3] == 3;
}

TEST(first_come_first_served)
{
    struct schedule_case c = {.name = "locks order",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = order_body,
                              .check = order_check};
    schedule_check(&c);
}

/* ---- Readers and writers. ---- */

static void share_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    for (int i = 0; i < 2; i++) {
        bool writes = schedule_random(2) == 0;
        struct hf_locks_request request = {.mode = writes ? HF_LOCKS_EXCLUSIVE
                                                          : HF_LOCKS_SHARED};
        must(hf_locks_acquire(test.locks, "a", &request, HF_FOREVER, NULL),
             "acquire");
        hf_u32_add(writes ? &test.writers : &test.readers, 1, __ATOMIC_RELAXED);
        hf_thread_pause();
        uint32_t others =
            hf_u32_load(&test.writers, __ATOMIC_RELAXED) +
            (writes ? hf_u32_load(&test.readers, __ATOMIC_RELAXED) : 0);
        if (others != writes)
            schedule_wrong("a writer is not alone");
        hf_u32_sub(writes ? &test.writers : &test.readers, 1, __ATOMIC_RELAXED);
        if (writes && schedule_random(2) == 0)
            must(hf_locks_downgrade(test.locks, "a", 0), "downgrade");
        must(hf_locks_release(test.locks, "a", 0), "release");
    }
}

TEST(readers_share_and_writers_are_alone)
{
    struct schedule_case c = {.name = "locks share",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = share_body,
                              .check = end};
    schedule_check(&c);
}

/* ---- Deadlines. ---- */

static void late_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    for (int i = 0; i < 3; i++) {
        uint64_t deadline_ns = schedule_now_ns() + schedule_random(4000);
        struct hf_locks_answer answer;
        enum hf_status status =
            hf_locks_acquire(test.locks, "a", NULL, deadline_ns, &answer);
        use_the_stack();
        if (status == HF_OK) {
            uint32_t plain = test.plain;
            hf_thread_pause();
            test.plain = plain + 1;
            test.expected++;
            must(hf_locks_release(test.locks, "a", answer.token), "release");
        } else if (status != HF_TIMEOUT) {
            schedule_wrong("%s", hf_status_text(status));
        } else if (schedule_now_ns() < deadline_ns) {
            schedule_wrong("timed out early");
        }
    }
}

TEST(who_comes_too_late_holds_nothing)
{
    struct schedule_case c = {.name = "locks deadlines",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = late_body,
                              .check = end};
    test.timeouts = 0;
    schedule_check(&c);
    CHECK(test.timeouts > 0 || getenv("SCHEDULE_SEED") != NULL);
}

/* ---- Deadlocks. ---- */

/* Two names in an order of chance; who is refused gives back and tries again.
 */
static void cycle_body(void *context, unsigned fiber)
{
    unsigned first = (unsigned)schedule_random(3);
    unsigned second = (first + 1 + (unsigned)schedule_random(2)) % 3;

    (void)context;
    (void)fiber;
    for (;;) {
        must(hf_locks_acquire(test.locks, names[first], NULL, HF_FOREVER, NULL),
             "acquire");
        hf_thread_pause();
        struct hf_locks_answer answer;
        enum hf_status status = hf_locks_acquire(test.locks, names[second],
                                                 NULL, HF_FOREVER, &answer);
        if (status == HF_OK)
            break;
        if (status != HF_DEADLOCK || answer.link_count < 2 ||
            strcmp(answer.links[0].name, names[second]) != 0)
            schedule_wrong("%s", hf_status_text(status));
        hf_locks_answer_free(&answer);
        must(hf_locks_release(test.locks, names[first], 0), "release");
        hf_thread_pause();
    }
    must(hf_locks_release(test.locks, names[second], 0), "release");
    must(hf_locks_release(test.locks, names[first], 0), "release");
}

TEST(a_deadlock_is_refused_and_all_finish)
{
    struct schedule_case c = {.name = "locks deadlocks",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = cycle_body,
                              .check = end};
    test.deadlocks = 0;
    schedule_check(&c);
    CHECK(test.deadlocks > 0 || getenv("SCHEDULE_SEED") != NULL);
}

static void age_setup(void *context, uint64_t seed)
{
    struct hf_locks_opts opts = {.policy = seed % 2 == 0 ? HF_LOCKS_WAITDIE
                                                         : HF_LOCKS_WOUNDWAIT,
                                 .grace_ns = MS};
    (void)context;
    begin(&opts);
}

/* The same where ages decide. A wounded hold may be lost. */
static void age_body(void *context, unsigned fiber)
{
    unsigned first = (unsigned)schedule_random(3);
    unsigned second = (first + 1 + (unsigned)schedule_random(2)) % 3;

    (void)context;
    (void)fiber;
    for (unsigned held = 0; held < 2;) {
        const char *name = names[held == 0 ? first : second];
        enum hf_status status =
            hf_locks_acquire(test.locks, name, NULL, HF_FOREVER, NULL);
        use_the_stack();
        if (status == HF_OK) {
            held++;
        } else if (status == HF_DEADLOCK) {
            if (held > 0)
                (void)hf_locks_release(test.locks, names[first], 0);
            held = 0;
            hf_thread_pause();
        } else {
            schedule_wrong("%s", hf_status_text(status));
        }
    }
    (void)hf_locks_release(test.locks, names[second], 0);
    (void)hf_locks_release(test.locks, names[first], 0);
}

TEST(by_age_all_finish)
{
    struct schedule_case c = {.name = "locks by age",
                              .fibers = 3,
                              .setup = age_setup,
                              .body = age_body,
                              .check = end};
    schedule_check(&c);
}

/* ---- Sets. ---- */

/* Each takes two of three names at once. */
static void set_setup(void *context, uint64_t seed)
{
    setup(context, seed);
    test.expected = 2 * FIBERS;
}

static void set_body(void *context, unsigned fiber)
{
    (void)context;
    for (int i = 0; i < 2; i++) {
        const struct hf_locks_item items[] = {
            {.name = names[(fiber + 1) % 3], .shared = fiber == 3},
            {.name = names[fiber % 3]},
            {.name = "common"},
        };
        struct hf_locks_answer answer;
        must(hf_locks_acquire_set(test.locks, items, 3, NULL, HF_FOREVER,
                                  &answer),
             "acquire");
        use_the_stack();
        test.plain++; /* they have one name in common */
        must(hf_locks_release_set(test.locks, answer.token), "release");
    }
}

TEST(sets_never_deadlock)
{
    struct schedule_case c = {.name = "locks sets",
                              .fibers = FIBERS,
                              .setup = set_setup,
                              .body = set_body,
                              .check = end};
    test.deadlocks = 0;
    schedule_check(&c);
    CHECK_EQ(test.deadlocks, 0);
}

/* ---- Time. ---- */

/* Nobody releases: all go on by time alone. Fiber 0 waits without a TTL, so
 * that the time is kept also by those who came when nothing was due. */
static void expiry_body(void *context, unsigned fiber)
{
    struct hf_locks_request request = {
        .ttl_ns = fiber == 0 ? 0 : MS * (1 + schedule_random(3))};
    struct hf_locks_answer answer;

    (void)context;
    must(hf_locks_acquire(test.locks, "a", &request, HF_FOREVER, &answer),
         "acquire");
    use_the_stack();
    if (fiber == 0)
        must(hf_locks_renew(test.locks, "a", answer.token, MS), "renew");
}

static bool expiry_check(void *context, FILE *explain)
{
    (void)context;
    hf_locks_close(test.locks);
    fprintf(explain, "-");
    return true;
}

TEST(what_expires_is_handed_on_while_all_sleep)
{
    struct schedule_case c = {.name = "locks expiry",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = expiry_body,
                              .check = expiry_check};
    schedule_check(&c);
}

/* ---- The end. ---- */

static void shutdown_body(void *context, unsigned fiber)
{
    const struct hf_backoff_opts backoff = {.base_ns = MS, .seed = 1};
    struct hf_locks_request request = {.mode = fiber == 1 ? HF_LOCKS_SHARED
                                                          : HF_LOCKS_EXCLUSIVE,
                                       .retry = fiber == 3 ? &backoff : NULL};

    (void)context;
    if (fiber == 0) {
        hf_locks_shutdown(test.locks);
        return;
    }
    struct hf_locks_answer answer;
    test.seen[fiber] =
        hf_locks_acquire(test.locks, "a", &request, HF_FOREVER, &answer);
    use_the_stack();
    if (test.seen[fiber] != HF_OK && test.seen[fiber] != HF_CLOSED)
        schedule_wrong("%s", hf_status_text(test.seen[fiber]));
    if (test.seen[fiber] == HF_OK && schedule_random(2) == 0)
        must(hf_locks_release(test.locks, "a", answer.token), "release");
}

static bool shutdown_check(void *context, FILE *explain)
{
    struct hf_locks_stats stats;

    (void)context;
    (void)hf_locks_stats(test.locks, NULL, &stats);
    fprintf(explain, "waiting %u", stats.waiting);
    hf_locks_close(test.locks);
    return stats.waiting == 0;
}

TEST(shutdown_lets_all_leave)
{
    struct schedule_case c = {.name = "locks shutdown",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = shutdown_body,
                              .check = shutdown_check};
    schedule_check(&c);
}
