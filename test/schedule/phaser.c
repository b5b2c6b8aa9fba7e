/* phaser.c - the phaser, step by step. */
#include "holdfast/phaser.h"

#include "support/schedule.h"
#include "support/test.h"

#define PHASES 3

static struct {
    struct hf_phaser phaser;
    uint32_t first;       /* phase */
    uint32_t advances;    /* calls of on_advance */
    uint32_t plain[2][4]; /* of this phase and of the one before */
    uint32_t registered;  /* successes */
    uint32_t deregistered;
    enum hf_status seen[4];
    bool wrong;
} test;

static void begin(struct hf_phaser_opts opts, uint32_t first)
{
    memset(&test, 0, sizeof test);
    if (hf_phaser_init(&test.phaser, &opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "no phaser");
    test.first = first;
    test.phaser.state.value += (uint64_t)first << 32;
}

static bool no_sleeper_is_left(void)
{
    hf_phaser_destroy(&test.phaser);
    return true;
}

/* ---- The same parties in every phase. ---- */

static bool sum_up(void *context, uint32_t phase, uint32_t parties)
{
    const uint32_t *plain = test.plain[(phase - test.first) % 2];

    (void)context;
    test.wrong |= phase != test.first + test.advances || parties != 3;
    test.advances++;
    test.wrong |= plain[0] + plain[1] + plain[2] != 3 * test.advances;
    return test.advances == PHASES;
}

/* Begins close to where phases wrap. */
static void rounds_setup(void *context, uint64_t seed)
{
    struct hf_phaser_opts opts = {.parties = 3,
                                  .on_advance = seed % 2 ? sum_up : NULL};
    (void)context;
    begin(opts, UINT32_MAX - 1);
}

/* Fibers 0 to 2 are the parties, one of them arrives first and waits later;
 * fiber 3 is none and waits. All is plain: a thread sanitizer sees who does
 * not come before whom. */
static void rounds_body(void *context, unsigned fiber)
{
    (void)context;
    for (uint32_t i = 0; i < PHASES; i++) {
        uint32_t *plain = test.plain[i % 2];
        uint32_t phase = test.first + i;
        enum hf_status status = HF_OK;
        if (fiber < 3)
            plain[fiber] = i + 1;
        if (fiber == 0) {
            uint32_t at = 0;
            status = hf_phaser_arrive(&test.phaser, &at);
            if (status != HF_OK || at != phase)
                schedule_wrong("arrived in %u", at);
        }
        if (fiber == 1 || fiber == 2) {
            uint32_t next = 0;
            status = hf_phaser_arrive_and_wait(&test.phaser, HF_FOREVER, &next);
            if (next != phase + 1)
                schedule_wrong("next is %u", next);
        } else {
            status = hf_phaser_await_phase(&test.phaser, phase, HF_FOREVER);
        }
        if (status != HF_OK)
            schedule_wrong("%s in %u", hf_status_text(status), phase);
        if (fiber < 3 && plain[0] + plain[1] + plain[2] != 3 * (i + 1))
            schedule_wrong("the others had not arrived");
    }
}

static bool rounds_check(void *context, FILE *explain)
{
    struct hf_phaser_stats stats;

    (void)context;
    hf_phaser_stats(&test.phaser, &stats);
    fprintf(explain, "phase %u, %u advances%s", stats.phase, test.advances,
            test.wrong ? ", wrong ones" : "");
    return !test.wrong && stats.phase == test.first + PHASES &&
           (test.phaser.on_advance == NULL) == !stats.ended &&
           no_sleeper_is_left();
}

TEST(all_arrive_in_each_phase)
{
    struct schedule_case c = {.name = "phaser rounds",
                              .fibers = 4,
                              .setup = rounds_setup,
                              .body = rounds_body,
                              .check = rounds_check};
    schedule_check(&c);
}

/* ---- Parties come and go. ---- */

static bool count_advance(void *context, uint32_t phase, uint32_t parties)
{
    (void)context;
    test.wrong |= phase != test.advances;
    test.advances++;
    return parties == 0;
}

static void guests_setup(void *context, uint64_t seed)
{
    struct hf_phaser_opts opts = {
        .parties = 1, .on_advance = seed % 2 ? count_advance : NULL};
    (void)context;
    begin(opts, 0);
    test.registered = 1;
}

/* Fiber 0 is a party from the beginning. The others register if they can, take
 * part for some phases and leave; the last who leaves ends it. */
static void guests_body(void *context, unsigned fiber)
{
    uint32_t phase = 0;
    uint32_t next = 0;
    enum hf_status status = HF_OK;

    (void)context;
    if (fiber > 0)
        status = hf_phaser_register(&test.phaser, 1, HF_FOREVER, &phase);
    if (status == HF_CLOSED)
        return;
    if (status != HF_OK)
        schedule_wrong("register: %s", hf_status_text(status));
    if (fiber > 0)
        __atomic_fetch_add(&test.registered, 1, __ATOMIC_RELAXED);
    for (uint64_t i = schedule_random(3); i > 0; i--, phase++) {
        status = hf_phaser_arrive_and_wait(&test.phaser, HF_FOREVER, &next);
        if (status != HF_OK || next != phase + 1)
            schedule_wrong("arrive: %s, %u after %u", hf_status_text(status),
                           next, phase);
    }
    status = hf_phaser_arrive_and_deregister(&test.phaser, &next);
    if (status != HF_OK || next != phase)
        schedule_wrong("leave: %s in %u not %u", hf_status_text(status), next,
                       phase);
    __atomic_fetch_add(&test.deregistered, 1, __ATOMIC_RELAXED);
}

static bool guests_check(void *context, FILE *explain)
{
    struct hf_phaser_stats stats;

    (void)context;
    hf_phaser_stats(&test.phaser, &stats);
    fprintf(explain, "%u came, %u went, phase %u, %u advances%s",
            test.registered, test.deregistered, stats.phase, test.advances,
            stats.ended ? ", ended" : "");
    return !test.wrong && test.registered == test.deregistered && stats.ended &&
           no_sleeper_is_left() &&
           (test.phaser.on_advance == NULL || test.advances == stats.phase);
}

TEST(parties_come_and_go)
{
    struct schedule_case c = {.name = "phaser guests",
                              .fibers = 4,
                              .setup = guests_setup,
                              .body = guests_body,
                              .check = guests_check,
                              .schedules = 30000};
    schedule_check(&c);
}

/* ---- Time-outs and shut. ---- */

static bool go_on(void *context, uint32_t phase, uint32_t parties)
{
    (void)context;
    (void)phase;
    (void)parties;
    test.advances++;
    return false;
}

static void shut_setup(void *context, uint64_t seed)
{
    struct hf_phaser_opts opts = {.parties = 2,
                                  .on_advance = seed % 2 ? go_on : NULL};
    (void)context;
    begin(opts, 0);
}

static void shut_body(void *context, unsigned fiber)
{
    uint64_t deadline_ns = schedule_random(2)
                               ? HF_FOREVER
                               : SCHEDULE_START_NS + schedule_random(3000);

    (void)context;
    if (fiber < 2)
        test.seen[fiber] =
            hf_phaser_arrive_and_wait(&test.phaser, deadline_ns, NULL);
    if (fiber == 2)
        test.seen[fiber] = hf_phaser_await_phase(&test.phaser, 0, deadline_ns);
    if (fiber == 3)
        hf_phaser_shutdown(&test.phaser);
}

/* Both arrived before it was shut, and phase 0 is over; or it is not, and
 * nobody was told that it is. */
static bool shut_check(void *context, FILE *explain)
{
    struct hf_phaser_stats stats;

    (void)context;
    hf_phaser_stats(&test.phaser, &stats);
    fprintf(explain, "phase %u: %s, %s, %s", stats.phase,
            hf_status_text(test.seen[0]), hf_status_text(test.seen[1]),
            hf_status_text(test.seen[2]));
    for (int i = 0; i < 3; i++) {
        bool fits = test.seen[i] == HF_TIMEOUT ||
                    test.seen[i] == (stats.phase == 1 ? HF_OK : HF_CLOSED);
        if (!fits)
            return false;
    }
    return stats.ended && no_sleeper_is_left();
}

TEST(shut_ends_a_phase_that_is_not_over)
{
    struct schedule_case c = {.name = "phaser shut",
                              .fibers = 4,
                              .setup = shut_setup,
                              .body = shut_body,
                              .check = shut_check,
                              .schedules = 20000};
    schedule_check(&c);
}
