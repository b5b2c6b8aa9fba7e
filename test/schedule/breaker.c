/* breaker.c - the circuit breaker, step by step. */
#include "holdfast/breaker.h"

#include "base/atomic.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS      4
#define CHANGES_MAX 64

static struct {
    struct hf_breaker *breaker;
    struct hf_breaker_change changes[CHANGES_MAX]; /* by sequence */
    struct hf_atomic_u64 told[CHANGES_MAX];
    struct hf_atomic_u64 inside;  /* probes that have not come back */
    struct hf_atomic_u64 through; /* calls let through while half-open */
    uint32_t probes;
} test;

static void on_change(void *context, const struct hf_breaker_change *change)
{
    (void)context;
    if (change->sequence >= CHANGES_MAX)
        schedule_wrong("too many changes");
    /* each is told once, so the place is ours */
    if (hf_u64_add(&test.told[change->sequence], 1, __ATOMIC_RELAXED) != 0)
        schedule_wrong("change %u told twice", (unsigned)change->sequence);
    test.changes[change->sequence] = *change;
}

static void begin(struct hf_breaker_opts opts)
{
    memset(&test, 0, sizeof test);
    opts.on_change = on_change;
    test.probes = opts.probes;
    if (hf_breaker_new(&test.breaker, &opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "no breaker");
}

static void end(void *context)
{
    (void)context;
    hf_breaker_free(test.breaker);
}

/* Every change was told, each starts where the one before ended, and no state
 * follows another that it must not follow. */
static bool changes_are_legal(FILE *explain)
{
    enum hf_breaker_state state = HF_BREAKER_CLOSED;
    unsigned count = 0;

    while (count + 1 < CHANGES_MAX && test.told[count + 1].value != 0) {
        const struct hf_breaker_change *change = &test.changes[++count];
        fprintf(explain, "%u-%u ", (unsigned)change->from,
                (unsigned)change->to);
        if (change->from != state || change->sequence != count)
            return false;
        if (change->to == HF_BREAKER_HALF_OPEN && state != HF_BREAKER_OPEN)
            return false;
        if (change->to == HF_BREAKER_CLOSED && state != HF_BREAKER_HALF_OPEN)
            return false;
        if (change->to == state)
            return false;
        state = change->to;
    }
    for (unsigned i = count + 1; i < CHANGES_MAX; i++)
        if (test.told[i].value != 0)
            return false; /* one was not told */
    return state == hf_breaker_state(test.breaker);
}

/* ---- Half-open: never more than the probes. ---- */

static void probes_setup(void *context, uint64_t seed)
{
    (void)context;
    begin((struct hf_breaker_opts){
        .failures_max = 1, .open_ns = 1, .probes = 1 + (uint32_t)(seed % 3)});
    (void)hf_breaker_force(test.breaker, HF_BREAKER_OPEN, 0);
}

/* All find it due at once. Nobody comes back before all have asked. */
static void probes_body(void *context, unsigned fiber)
{
    struct hf_breaker_call call;

    (void)context;
    (void)fiber;
    for (int i = 0; i < 2; i++)
        if (hf_breaker_enter(test.breaker, 10, &call) == 0 &&
            hf_u64_add(&test.through, 1, __ATOMIC_RELAXED) >= test.probes)
            schedule_wrong("one probe too many");
}

static bool probes_check(void *context, FILE *explain)
{
    struct hf_breaker_stats stats;

    (void)context;
    hf_breaker_stats(test.breaker, &stats);
    fprintf(explain, "%u probes, %u refused", stats.probes,
            (unsigned)stats.refused);
    return test.through.value == test.probes && stats.probes == test.probes &&
           stats.refused == 2 * FIBERS - test.probes;
}

TEST(half_open_lets_exactly_its_probes_through)
{
    struct schedule_case c = {.name = "breaker probes",
                              .fibers = FIBERS,
                              .setup = probes_setup,
                              .body = probes_body,
                              .check = probes_check,
                              .teardown = end,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- All together: calls come, fail, work, are ignored; time passes. ---- */

static void storm_setup(void *context, uint64_t seed)
{
    (void)context;
    begin((struct hf_breaker_opts){.failures_max = 2,
                                   .open_ns = 300,
                                   .probe_ns = 100000000,
                                   .probes = 1 + (uint32_t)(seed % 2)});
}

static bool half_open(const struct hf_breaker_call *call)
{
    return (call->state & 7) == HF_BREAKER_HALF_OPEN;
}

static void storm_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    for (int i = 0; i < 5; i++) {
        struct hf_breaker_call call;
        uint64_t now_ns = schedule_now_ns();
        if (hf_breaker_enter(test.breaker, now_ns, &call) != 0)
            continue;
        if (half_open(&call) &&
            hf_u64_add(&test.inside, 1, __ATOMIC_RELAXED) >= FIBERS)
            schedule_wrong("more probes than callers");
        (void)hf_breaker_state(test.breaker);
        if (half_open(&call))
            hf_u64_sub(&test.inside, 1, __ATOMIC_RELAXED);
        (void)hf_breaker_leave(
            test.breaker, &call,
            (enum hf_breaker_outcome)(schedule_random(4) % 3),
            schedule_now_ns());
    }
}

static bool storm_check(void *context, FILE *explain)
{
    (void)context;
    return changes_are_legal(explain);
}

TEST(every_change_is_told_once_and_follows_from_the_one_before)
{
    struct schedule_case c = {.name = "breaker changes",
                              .fibers = FIBERS,
                              .setup = storm_setup,
                              .body = storm_body,
                              .check = storm_check,
                              .teardown = end,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- What began before the trip. ---- */

static void late_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin((struct hf_breaker_opts){
        .failures_max = 1, .open_ns = 1, .probes = 1, .probe_ns = 100000000});
}

/* Fibers 0 and 1 began while it was closed. Fiber 2 trips it, lets a probe go
 * and holds it: until that comes back the breaker stays half-open, whatever
 * the others report. */
static void late_body(void *context, unsigned fiber)
{
    struct hf_breaker_call call;
    struct hf_breaker_call probe;

    (void)context;
    if (hf_breaker_enter(test.breaker, 5, &call) != 0)
        return; /* tripped before it began */
    if ((call.state >> 3) != 0)
        return; /* it is a probe, or later still */
    if (fiber < 2) {
        (void)hf_breaker_leave(
            test.breaker, &call,
            fiber == 0 ? HF_BREAKER_WORKED : HF_BREAKER_IGNORED, 6);
        return;
    }
    (void)hf_breaker_leave(test.breaker, &call, HF_BREAKER_FAILED, 6);
    if (hf_breaker_enter(test.breaker, 10, &probe) != 0)
        schedule_wrong("no probe when it is due");
    for (int i = 0; i < 6; i++)
        if (hf_breaker_state(test.breaker) != HF_BREAKER_HALF_OPEN)
            schedule_wrong("the state is %u", hf_breaker_state(test.breaker));
    (void)hf_breaker_leave(test.breaker, &probe, HF_BREAKER_WORKED, 11);
    if (hf_breaker_state(test.breaker) != HF_BREAKER_CLOSED)
        schedule_wrong("the probe did not close it");
}

TEST(what_began_before_the_trip_changes_nothing)
{
    struct schedule_case c = {.name = "breaker late calls",
                              .fibers = 3,
                              .setup = late_setup,
                              .body = late_body,
                              .check = storm_check,
                              .teardown = end,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- OPEN is believed with the time that belongs to it. ---- */

static void until_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin((struct hf_breaker_opts){.failures_max = 1, .open_ns = 100});
    /* an earlier time open, long over */
    (void)hf_breaker_force(test.breaker, HF_BREAKER_OPEN, 0);
    struct hf_breaker_call call;
    (void)hf_breaker_enter(test.breaker, 100, &call);
    (void)hf_breaker_leave(test.breaker, &call, HF_BREAKER_WORKED, 100);
}

static void until_body(void *context, unsigned fiber)
{
    struct hf_breaker_call call;

    (void)context;
    if (fiber == 0) {
        if (hf_breaker_enter(test.breaker, 1000, &call) == 0)
            (void)hf_breaker_leave(test.breaker, &call, HF_BREAKER_FAILED,
                                   1000);
        return;
    }
    for (int i = 0; i < 3; i++) {
        uint64_t wait_ns = hf_breaker_enter(test.breaker, 1000, &call);
        if (wait_ns != 0 && wait_ns != 100)
            schedule_wrong("a wait of %u", (unsigned)wait_ns);
        if (wait_ns == 0 && half_open(&call))
            schedule_wrong("a probe too early");
    }
}

TEST(open_is_never_seen_with_an_older_end)
{
    struct schedule_case c = {.name = "breaker until",
                              .fibers = FIBERS,
                              .setup = until_setup,
                              .body = until_body,
                              .check = storm_check,
                              .teardown = end,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- Due is looked at again under the lock. ---- */

static void due_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin((struct hf_breaker_opts){
        .failures_max = 1, .open_ns = 100, .probes = 1});
    (void)hf_breaker_force(test.breaker, HF_BREAKER_OPEN, 0);
}

/* Several find it due. The first probe fails at once, and that opens it for
 * another 100 ns: none of those who saw it due before may go. */
static void due_body(void *context, unsigned fiber)
{
    struct hf_breaker_call call;

    (void)context;
    (void)fiber;
    if (hf_breaker_enter(test.breaker, 1000, &call) != 0)
        return;
    hf_u64_add(&test.through, 1, __ATOMIC_RELAXED);
    (void)hf_breaker_leave(test.breaker, &call, HF_BREAKER_FAILED, 1000);
}

static bool due_check(void *context, FILE *explain)
{
    struct hf_breaker_stats stats;

    (void)context;
    hf_breaker_stats(test.breaker, &stats);
    fprintf(explain, "%u went, open until %u", (unsigned)test.through.value,
            (unsigned)stats.until_ns);
    return test.through.value == 1 && stats.until_ns == 1100;
}

TEST(who_saw_it_due_before_it_opened_again_does_not_go)
{
    struct schedule_case c = {.name = "breaker due",
                              .fibers = 3,
                              .setup = due_setup,
                              .body = due_body,
                              .check = due_check,
                              .teardown = end,
                              .schedules = 20000};
    schedule_check(&c);
}
