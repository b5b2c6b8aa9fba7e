/* semaphore.c - both semaphores, step by step. */
#include "holdfast/semaphore.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4

static struct {
    struct hf_semaphore semaphore;
    struct hf_atomic_u32 given;
    struct hf_atomic_u32 gone; /* fibers that others wait for */
    uint32_t plain;            /* guarded by a semaphore of one permit */
    uint32_t small;            /* what a small request wants */
    enum hf_status seen[FIBERS];
    struct calls *history;
    struct linear *checker;
} test;

static void begin(uint32_t permits, bool fair)
{
    struct hf_semaphore_opts opts = {.permits = permits, .fair = fair};

    if (hf_semaphore_init(&test.semaphore, &opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "no semaphore");
    test.given.value = 0;
    test.gone.value = 0;
    test.plain = 0;
}

/* Uses the stack on which the last call stood, for a while: whoever still
 * writes to a waiter's place there is found. */
__attribute__((noinline)) static void use_the_stack(void)
{
    unsigned char bytes[512];

    memset(bytes, 0x5a, sizeof bytes);
    for (int i = 0; i < 3; i++)
        hf_thread_pause();
    for (size_t i = 0; i < sizeof bytes; i++)
        if (((volatile unsigned char *)bytes)[i] != 0x5a)
            schedule_wrong("a place was written to after its use");
}

/* ---- Results. ---- */

static const uint64_t start = 2;

static void results_setup(void *context, uint64_t seed)
{
    (void)context;
    begin((uint32_t)start, seed % 2 == 0);
    if (test.history == NULL) {
        struct linear_model model = model_counter(&start);
        test.history = calls_new(FIBERS, 4);
        test.checker = linear_new(&model, FIBERS * 4);
    }
    calls_clear(test.history);
}

static void results_call(unsigned fiber, uint32_t op, uint32_t count)
{
    struct call *call = calls_begin(test.history, fiber, op, 0, count);
    uint64_t result = HF_OK;
    uint64_t value = MODEL_ANY;

    if (op == MODEL_COUNT_ADD)
        result = hf_semaphore_release(&test.semaphore, count);
    if (op == MODEL_COUNT_TAKE)
        result = hf_semaphore_acquire(&test.semaphore, count, HF_NOW);
    if (op == MODEL_COUNT_READ)
        value = hf_semaphore_available(&test.semaphore);
    if (op == MODEL_COUNT_RESET)
        value = hf_semaphore_drain(&test.semaphore);
    calls_end(test.history, call, result == HF_TIMEOUT ? HF_EMPTY : result,
              value);
}

static void results_body(void *context, unsigned fiber)
{
    static const uint32_t ops[] = {MODEL_COUNT_ADD, MODEL_COUNT_TAKE,
                                   MODEL_COUNT_TAKE, MODEL_COUNT_READ,
                                   MODEL_COUNT_RESET};
    (void)context;
    for (int i = 0; i < 4; i++)
        results_call(fiber, ops[schedule_random(5)],
                     1 + (uint32_t)schedule_random(3));
}

static bool results_check(void *context, FILE *explain)
{
    (void)context;
    hf_semaphore_destroy(&test.semaphore);
    return linear_check(test.checker, test.history, explain) == LINEAR_YES;
}

TEST(results_are_linearizable)
{
    struct schedule_case c = {.name = "semaphore results",
                              .fibers = 3,
                              .setup = results_setup,
                              .body = results_body,
                              .check = results_check};
    schedule_check(&c);
}

/* The same with those that wait: whoever got permits got them at an instant
 * when there were as many. */
static void waits_body(void *context, unsigned fiber)
{
    (void)context;
    for (int i = 0; i < 2; i++) {
        uint32_t count = 1 + (uint32_t)schedule_random(2);
        uint64_t deadline_ns = schedule_random(2)
                                   ? HF_FOREVER
                                   : schedule_now_ns() + schedule_random(3000);
        struct call *call =
            calls_begin(test.history, fiber, MODEL_COUNT_TAKE, 0, count);
        enum hf_status status =
            hf_semaphore_acquire(&test.semaphore, count, deadline_ns);
        if (status != HF_OK) /* says nothing about permits */
            call->op = MODEL_COUNT_READ;
        calls_end(test.history, call, HF_OK, MODEL_ANY);
        use_the_stack();
        if (status == HF_OK)
            results_call(fiber, MODEL_COUNT_ADD, count);
    }
}

static bool waits_check(void *context, FILE *explain)
{
    (void)context;
    hf_semaphore_destroy(&test.semaphore);
    fprintf(explain, "state %llx; ",
            (unsigned long long)test.semaphore.state.value);
    return test.semaphore.state.value == start &&
           linear_check(test.checker, test.history, explain) == LINEAR_YES;
}

TEST(nobody_waits_for_ever_and_no_permit_is_lost)
{
    struct schedule_case c = {.name = "semaphore waits",
                              .fibers = FIBERS,
                              .setup = results_setup,
                              .body = waits_body,
                              .check = waits_check,
                              .schedules = 40000};
    schedule_check(&c);
}

/* ---- One permit is a lock. ---- */

static void lock_setup(void *context, uint64_t seed)
{
    (void)context;
    begin(1, seed % 2 == 0);
}

static void lock_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    for (int i = 0; i < 3; i++) {
        if (hf_semaphore_acquire(&test.semaphore, 1, HF_FOREVER) != HF_OK)
            schedule_wrong("acquire");
        test.plain++; /* a race would be reported */
        (void)hf_semaphore_release(&test.semaphore, 1);
    }
}

static bool lock_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u of 9", test.plain);
    return test.plain == 9;
}

TEST(what_was_done_before_give_is_seen_after_acquire)
{
    struct schedule_case c = {.name = "semaphore as a lock",
                              .fibers = 3,
                              .setup = lock_setup,
                              .body = lock_body,
                              .check = lock_check};
    schedule_check(&c);
}

/* ---- Unfair: who can go on is woken. ---- */

static void small_setup(void *context, uint64_t seed)
{
    (void)context;
    begin(0, false);
    test.small = 1 + (uint32_t)(seed % 2);
}

/* Permits come in portions of use to fibers 2 and 3 only, one after the other;
 * enough for fiber 1 come when those are done. */
static void small_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber > 0) {
        if (hf_semaphore_acquire(&test.semaphore,
                                 fiber == 1 ? test.small + 1 : test.small,
                                 HF_FOREVER) != HF_OK)
            schedule_wrong("acquire");
        hf_u32_add(&test.gone, 1, __ATOMIC_RELAXED);
        return;
    }
    for (uint32_t i = 1; i <= 2; i++) {
        (void)hf_semaphore_release(&test.semaphore, test.small);
        while (hf_u32_load(&test.gone, __ATOMIC_RELAXED) < i)
            hf_thread_pause();
    }
    (void)hf_semaphore_release(&test.semaphore, test.small + 1);
}

TEST(unfair_a_small_request_is_not_forgotten_for_a_large_one)
{
    struct schedule_case c = {.name = "semaphore small and large",
                              .fibers = FIBERS,
                              .setup = small_setup,
                              .body = small_body,
                              .schedules = 100000};
    schedule_check(&c);
}

/* ---- Fair: strict order. ---- */

static void order_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin(0, true);
    memset(test.seen, 0, sizeof test.seen);
}

static uint32_t waiting(void)
{
    struct hf_semaphore_stats stats;

    hf_semaphore_stats(&test.semaphore, &stats);
    return stats.waiting;
}

/* Fiber 1 wants 3, then fiber 2 wants 1, then fiber 3 wants 2; fiber 0 gives
 * one at a time, and tries to pass them. */
static void order_body(void *context, unsigned fiber)
{
    static const uint32_t wants[FIBERS] = {0, 3, 1, 2};
    static const uint32_t needs[FIBERS] = {0, 3, 4, 6};

    (void)context;
    if (fiber == 0) {
        while (waiting() < 3)
            hf_thread_pause();
        for (int i = 0; i < 6; i++) {
            if (hf_semaphore_acquire(&test.semaphore, 1, HF_NOW) != HF_TIMEOUT)
                schedule_wrong("passed the queue");
            hf_u32_add(&test.given, 1, __ATOMIC_RELAXED);
            (void)hf_semaphore_release(&test.semaphore, 1);
        }
        return;
    }
    while (waiting() < fiber - 1)
        hf_thread_pause();
    if (hf_semaphore_acquire(&test.semaphore, wants[fiber], HF_FOREVER) !=
        HF_OK)
        schedule_wrong("acquire");
    use_the_stack();
    if (hf_u32_load(&test.given, __ATOMIC_RELAXED) < needs[fiber])
        schedule_wrong("passed one who was there before");
}

static bool order_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "state %llx",
            (unsigned long long)test.semaphore.state.value);
    hf_semaphore_destroy(&test.semaphore);
    return test.semaphore.state.value == 0;
}

TEST(fair_nobody_passes)
{
    struct schedule_case c = {.name = "semaphore order",
                              .fibers = FIBERS,
                              .setup = order_setup,
                              .body = order_body,
                              .check = order_check};
    schedule_check(&c);
}

static void await_a_waiter(void)
{
    while (waiting() < 1 && hf_u32_load(&test.gone, __ATOMIC_RELAXED) == 0)
        hf_thread_pause();
}

/* Fiber 1 wants more than there will be and gives up; then there is enough for
 * those behind it. */
static void giving_up_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber != 1) /* behind fiber 1, if it is still there */
        await_a_waiter();
    if (fiber == 0) {
        (void)hf_semaphore_release(&test.semaphore, 3);
        return;
    }
    test.seen[fiber] = hf_semaphore_acquire(
        &test.semaphore, fiber == 1 ? 4 : fiber - 1,
        fiber == 1 ? SCHEDULE_START_NS + 1000 + schedule_random(5000)
                   : HF_FOREVER);
    use_the_stack();
    if (fiber == 1)
        hf_u32_store(&test.gone, 1, __ATOMIC_RELAXED);
}

static bool giving_up_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%s, %s, %s", hf_status_text(test.seen[1]),
            hf_status_text(test.seen[2]), hf_status_text(test.seen[3]));
    hf_semaphore_destroy(&test.semaphore);
    return test.seen[1] == HF_TIMEOUT && test.seen[2] == HF_OK &&
           test.seen[3] == HF_OK && test.semaphore.state.value == 0;
}

TEST(fair_who_gives_up_lets_the_next_be_served)
{
    struct schedule_case c = {.name = "semaphore giving up",
                              .fibers = FIBERS,
                              .setup = order_setup,
                              .body = giving_up_body,
                              .check = giving_up_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- Shut. ---- */

static void shut_setup(void *context, uint64_t seed)
{
    (void)context;
    begin(1, seed % 2 == 0);
    memset(test.seen, 0, sizeof test.seen);
}

static void shut_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        hf_semaphore_shutdown(&test.semaphore);
        (void)hf_semaphore_release(&test.semaphore, 1);
        return;
    }
    test.seen[fiber] = hf_semaphore_acquire(
        &test.semaphore, fiber == 1 ? 2 : 1,
        schedule_random(2) ? HF_FOREVER
                           : SCHEDULE_START_NS + schedule_random(3000));
    use_the_stack();
}

static bool shut_check(void *context, FILE *explain)
{
    uint32_t taken = 0;

    (void)context;
    for (unsigned i = 1; i < FIBERS; i++) {
        fprintf(explain, "%s, ", hf_status_text(test.seen[i]));
        if (test.seen[i] == HF_OK)
            taken += i == 1 ? 2 : 1;
        else if (test.seen[i] != HF_CLOSED && test.seen[i] != HF_TIMEOUT)
            return false;
    }
    hf_semaphore_destroy(&test.semaphore);
    /* What was given after shut is there. */
    return taken <= 1 && hf_semaphore_available(&test.semaphore) == 2 - taken;
}

TEST(shut_lets_all_leave)
{
    struct schedule_case c = {.name = "semaphore shut",
                              .fibers = FIBERS,
                              .setup = shut_setup,
                              .body = shut_body,
                              .check = shut_check,
                              .schedules = 20000};
    schedule_check(&c);
}
