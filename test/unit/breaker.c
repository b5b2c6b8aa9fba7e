/* breaker.c - tests of the circuit breaker. */
#include "holdfast/breaker.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "holdfast/inspect.h"
#include "support/test.h"

#define CHANGES_MAX 64

static struct {
    struct hf_breaker *breaker;
    struct hf_breaker_change changes[CHANGES_MAX];
    unsigned count;
} test;

static void on_change(void *context, const struct hf_breaker_change *change)
{
    (void)context;
    if (test.count < CHANGES_MAX)
        test.changes[test.count] = *change;
    test.count++;
    /* outside the lock: the breaker may be asked */
    (void)hf_breaker_force(NULL, HF_BREAKER_OPEN, 0);
    struct hf_breaker_stats stats;
    hf_breaker_stats(test.breaker, &stats);
}

static void open_it(struct hf_breaker_opts opts)
{
    memset(&test, 0, sizeof test);
    opts.on_change = on_change;
    opts.name = "remote";
    CHECK_EQ(hf_breaker_new(&test.breaker, &opts), HF_OK);
}

static uint64_t ask(uint64_t now_ns)
{
    struct hf_breaker_call call;

    return hf_breaker_enter(test.breaker, now_ns, &call);
}

static void one(enum hf_breaker_outcome outcome, uint64_t now_ns,
                uint64_t took_ns)
{
    struct hf_breaker_call call;

    CHECK_EQ(hf_breaker_enter(test.breaker, now_ns, &call), 0);
    CHECK_EQ(hf_breaker_leave(test.breaker, &call, outcome, now_ns + took_ns),
             HF_OK);
}

static void many(unsigned count, enum hf_breaker_outcome outcome,
                 uint64_t now_ns)
{
    for (unsigned i = 0; i < count; i++)
        one(outcome, now_ns, 0);
}

static enum hf_breaker_state state(void)
{
    return hf_breaker_state(test.breaker);
}

static struct hf_breaker_stats stats(void)
{
    struct hf_breaker_stats out;

    hf_breaker_stats(test.breaker, &out);
    return out;
}

static void check_change(unsigned index, enum hf_breaker_state from,
                         enum hf_breaker_state to)
{
    CHECK(index < test.count);
    CHECK_EQ(test.changes[index].from, from);
    CHECK_EQ(test.changes[index].to, to);
    CHECK_EQ(test.changes[index].sequence, index + 1);
}

TEST(failures_in_a_row_trip_it_and_a_probe_closes_it)
{
    open_it((struct hf_breaker_opts){.failures_max = 3, .open_ns = 100});
    many(2, HF_BREAKER_FAILED, 1000);
    many(1, HF_BREAKER_WORKED, 1000); /* the row begins anew */
    many(2, HF_BREAKER_FAILED, 1000);
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    many(1, HF_BREAKER_IGNORED, 1000); /* nor does this end or lengthen it */
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    many(1, HF_BREAKER_FAILED, 1000);
    CHECK_EQ(state(), HF_BREAKER_OPEN);
    CHECK_EQ(ask(1000), 100);
    CHECK_EQ(ask(1099), 1);
    CHECK_EQ(stats().until_ns, 1100);
    one(HF_BREAKER_WORKED, 1100, 5);
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    CHECK_EQ(test.count, 3);
    check_change(0, HF_BREAKER_CLOSED, HF_BREAKER_OPEN);
    check_change(1, HF_BREAKER_OPEN, HF_BREAKER_HALF_OPEN);
    check_change(2, HF_BREAKER_HALF_OPEN, HF_BREAKER_CLOSED);
    CHECK_EQ(stats().refused, 2);
    CHECK_EQ(stats().trips, 1);
    CHECK_EQ(stats().failed, 5);
    CHECK_EQ(stats().worked, 2);
    CHECK_EQ(stats().ignored, 1);
    hf_breaker_free(test.breaker);
}

TEST(a_share_of_failures_trips_it_once_there_are_enough_calls)
{
    open_it((struct hf_breaker_opts){
        .failure_percent = 50, .window_calls = 10, .calls_min = 4});
    many(3, HF_BREAKER_FAILED, 0);
    CHECK_EQ(state(), HF_BREAKER_CLOSED); /* 3 calls are too few */
    many(1, HF_BREAKER_WORKED, 0);
    CHECK_EQ(state(), HF_BREAKER_OPEN); /* 3 of 4 */
    CHECK_EQ(hf_breaker_force(test.breaker, HF_BREAKER_CLOSED, 0), HF_OK);
    CHECK_EQ(stats().window_calls, 0);
    many(6, HF_BREAKER_WORKED, 0);
    many(4, HF_BREAKER_FAILED, 0);
    CHECK_EQ(state(), HF_BREAKER_CLOSED); /* 4 of 10 */
    CHECK_EQ(stats().window_failed, 4);
    many(1, HF_BREAKER_FAILED, 0); /* the oldest, which worked, goes */
    CHECK_EQ(state(), HF_BREAKER_OPEN);
    hf_breaker_free(test.breaker);
}

TEST(failures_in_a_row_alone_do_not_look_at_the_share)
{
    open_it((struct hf_breaker_opts){.failures_max = 1000});
    for (int i = 0; i < 300; i++) {
        many(9, HF_BREAKER_FAILED, 0);
        many(1, HF_BREAKER_WORKED, 0);
    }
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    hf_breaker_free(test.breaker);
}

TEST(slow_calls_count_if_asked)
{
    open_it((struct hf_breaker_opts){.slow_percent = 100,
                                     .slow_ns = 10,
                                     .window_calls = 4,
                                     .open_ns = 100,
                                     .failure_percent = 100});
    for (int i = 0; i < 3; i++)
        one(HF_BREAKER_WORKED, 0, 10);
    one(HF_BREAKER_WORKED, 0, 9);
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    for (int i = 0; i < 4; i++)
        one(HF_BREAKER_WORKED, 0, 10);
    CHECK_EQ(state(), HF_BREAKER_OPEN);
    CHECK_EQ(stats().slow, 7);
    one(HF_BREAKER_WORKED, 200, 10); /* a slow probe has failed */
    CHECK_EQ(state(), HF_BREAKER_OPEN);
    one(HF_BREAKER_WORKED, 400, 9);
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    hf_breaker_free(test.breaker);
}

TEST(a_window_of_time_forgets)
{
    open_it((struct hf_breaker_opts){
        .failure_percent = 50, .window_ns = 1000, .calls_min = 4});
    many(3, HF_BREAKER_FAILED, 5000);
    CHECK_EQ(stats().window_failed, 3);
    many(1, HF_BREAKER_WORKED, 6000); /* the three are a window old */
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    CHECK_EQ(stats().window_calls, 1);
    CHECK_EQ(stats().window_failed, 0);
    many(2, HF_BREAKER_FAILED, 6900);
    many(1, HF_BREAKER_FAILED, 6999); /* 3 of 4: the first is still inside */
    CHECK_EQ(state(), HF_BREAKER_OPEN);
    hf_breaker_free(test.breaker);
}

/* Both windows against a list of all calls. */
static void check_window(bool by_time, uint64_t seed)
{
    static struct {
        uint64_t index;
        bool failed;
    } calls[2000];
    struct hf_random random;
    uint64_t now_ns = 0;

    hf_random_init(&random, seed);
    open_it((struct hf_breaker_opts){.failures_max = 1000000,
                                     .window_calls = 17,
                                     .window_ns = by_time ? 1000 : 0,
                                     .calls_min = by_time ? 0 : 17});
    for (unsigned i = 0; i < 2000; i++) {
        now_ns += hf_random_below(&random, 60);
        uint64_t told_ns = now_ns - hf_random_below(&random, 2) * now_ns / 3;
        bool failed = hf_random_below(&random, 2) == 0;
        one(failed ? HF_BREAKER_FAILED : HF_BREAKER_WORKED, told_ns, 0);
        calls[i].index = told_ns / 100;
        if (i > 0 && calls[i - 1].index > calls[i].index)
            calls[i].index = calls[i - 1].index; /* time stands still */
        calls[i].failed = failed;
        uint32_t count = 0;
        uint32_t bad = 0;
        for (unsigned j = 0; j <= i; j++) {
            if (by_time ? calls[j].index + 10 <= calls[i].index : j + 17 <= i)
                continue;
            count++;
            bad += calls[j].failed;
        }
        CHECK_EQ(stats().window_calls, count);
        CHECK_EQ(stats().window_failed, bad);
    }
    hf_breaker_free(test.breaker);
}

TEST(the_sums_are_those_of_the_calls_in_the_window)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        check_window(false, test_seed() + seed);
        check_window(true, test_seed() + seed);
    }
}

TEST(half_open_lets_its_probes_through_and_no_more)
{
    struct hf_breaker_call calls[3];

    open_it((struct hf_breaker_opts){
        .failures_max = 1, .open_ns = 100, .probes = 3, .probe_ns = 50});
    many(1, HF_BREAKER_FAILED, 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_breaker_enter(test.breaker, 100, &calls[i]), 0);
    CHECK_EQ(state(), HF_BREAKER_HALF_OPEN);
    CHECK_EQ(stats().probes, 3);
    CHECK_EQ(ask(100), 50);
    CHECK_EQ(hf_breaker_leave(test.breaker, &calls[0], HF_BREAKER_WORKED, 101),
             HF_OK);
    CHECK_EQ(ask(101), 49); /* one came back, and still no fourth */
    CHECK_EQ(hf_breaker_leave(test.breaker, &calls[1], HF_BREAKER_IGNORED, 101),
             HF_OK);
    CHECK_EQ(hf_breaker_enter(test.breaker, 102, &calls[1]), 0); /* instead */
    CHECK_EQ(ask(102), 50);
    CHECK_EQ(hf_breaker_leave(test.breaker, &calls[1], HF_BREAKER_WORKED, 103),
             HF_OK);
    CHECK_EQ(state(), HF_BREAKER_HALF_OPEN);
    CHECK_EQ(hf_breaker_leave(test.breaker, &calls[2], HF_BREAKER_WORKED, 103),
             HF_OK);
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    hf_breaker_free(test.breaker);
}

TEST(a_failed_probe_opens_it_again_and_the_others_come_too_late)
{
    struct hf_breaker_call calls[2];

    open_it((struct hf_breaker_opts){
        .failures_max = 1, .open_ns = 100, .probes = 2});
    many(1, HF_BREAKER_FAILED, 0);
    CHECK_EQ(hf_breaker_enter(test.breaker, 100, &calls[0]), 0);
    CHECK_EQ(hf_breaker_enter(test.breaker, 100, &calls[1]), 0);
    CHECK_EQ(hf_breaker_leave(test.breaker, &calls[0], HF_BREAKER_FAILED, 110),
             HF_OK);
    CHECK_EQ(state(), HF_BREAKER_OPEN);
    CHECK_EQ(ask(110), 100);
    CHECK_EQ(hf_breaker_leave(test.breaker, &calls[1], HF_BREAKER_FAILED, 120),
             HF_OK);
    CHECK_EQ(ask(120), 90); /* not opened anew */
    CHECK_EQ(stats().late, 1);
    CHECK_EQ(stats().trips, 2);
    hf_breaker_free(test.breaker);
}

TEST(what_began_before_the_trip_neither_closes_nor_opens)
{
    struct hf_breaker_call old[3];

    open_it((struct hf_breaker_opts){.failures_max = 1, .open_ns = 100});
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_breaker_enter(test.breaker, 0, &old[i]), 0);
    many(1, HF_BREAKER_FAILED, 0);
    CHECK_EQ(hf_breaker_leave(test.breaker, &old[0], HF_BREAKER_WORKED, 50),
             HF_OK);
    CHECK_EQ(state(), HF_BREAKER_OPEN);
    struct hf_breaker_call probe;
    CHECK_EQ(hf_breaker_enter(test.breaker, 100, &probe), 0);
    CHECK_EQ(hf_breaker_leave(test.breaker, &old[1], HF_BREAKER_WORKED, 101),
             HF_OK);
    CHECK_EQ(state(), HF_BREAKER_HALF_OPEN);
    CHECK_EQ(hf_breaker_leave(test.breaker, &old[2], HF_BREAKER_FAILED, 101),
             HF_OK);
    CHECK_EQ(state(), HF_BREAKER_HALF_OPEN);
    CHECK_EQ(hf_breaker_leave(test.breaker, &probe, HF_BREAKER_WORKED, 102),
             HF_OK);
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    CHECK_EQ(stats().late, 3);
    CHECK_EQ(stats().window_calls, 0); /* nor are they in the window */
    hf_breaker_free(test.breaker);
}

TEST(a_probe_that_is_never_heard_of_opens_it_again)
{
    struct hf_breaker_call lost;

    open_it((struct hf_breaker_opts){
        .failures_max = 1, .open_ns = 100, .probe_ns = 30});
    many(1, HF_BREAKER_FAILED, 0);
    CHECK_EQ(hf_breaker_enter(test.breaker, 100, &lost), 0);
    CHECK_EQ(ask(129), 1);
    CHECK_EQ(ask(130), 100);
    CHECK_EQ(state(), HF_BREAKER_OPEN);
    CHECK_EQ(stats().lost, 1);
    CHECK_EQ(hf_breaker_leave(test.breaker, &lost, HF_BREAKER_WORKED, 131),
             HF_OK);
    CHECK_EQ(state(), HF_BREAKER_OPEN);
    one(HF_BREAKER_WORKED, 230, 0);
    CHECK_EQ(state(), HF_BREAKER_CLOSED);
    hf_breaker_free(test.breaker);
}

TEST(the_time_open_doubles_until_it_has_been_closed)
{
    open_it((struct hf_breaker_opts){
        .failures_max = 1, .open_ns = 100, .open_max_ns = 350});
    many(1, HF_BREAKER_FAILED, 0);
    CHECK_EQ(ask(0), 100);
    one(HF_BREAKER_FAILED, 100, 0);
    CHECK_EQ(ask(100), 200);
    one(HF_BREAKER_FAILED, 300, 0);
    CHECK_EQ(ask(300), 350);
    one(HF_BREAKER_FAILED, 650, 0);
    CHECK_EQ(ask(650), 350);
    one(HF_BREAKER_WORKED, 1000, 0);
    many(1, HF_BREAKER_FAILED, 1000);
    CHECK_EQ(ask(1000), 100);
    hf_breaker_free(test.breaker);
    bool less = false;
    for (uint64_t seed = 1; seed < 20; seed++) {
        open_it((struct hf_breaker_opts){
            .failures_max = 1, .open_ns = 100, .spread = true, .seed = seed});
        many(1, HF_BREAKER_FAILED, 0);
        uint64_t wait_ns = ask(0);
        CHECK(wait_ns >= 50 && wait_ns <= 100);
        less = less || wait_ns < 90;
        hf_breaker_free(test.breaker);
    }
    CHECK(less);
}

TEST(an_older_now_opens_nothing_sooner)
{
    struct hf_breaker_call late;

    open_it((struct hf_breaker_opts){.failures_max = 2, .open_ns = 100});
    CHECK_EQ(hf_breaker_enter(test.breaker, 10, &late), 0);
    many(1, HF_BREAKER_FAILED, 500);
    CHECK_EQ(hf_breaker_leave(test.breaker, &late, HF_BREAKER_FAILED, 20),
             HF_OK);
    CHECK_EQ(stats().until_ns, 600);
    CHECK_EQ(ask(20), 580);
    CHECK_EQ(ask(UINT64_MAX), 0);
    hf_breaker_free(test.breaker);
}

TEST(it_can_be_forced)
{
    open_it((struct hf_breaker_opts){.failures_max = 1, .open_ns = 100});
    CHECK_EQ(hf_breaker_force(test.breaker, HF_BREAKER_FORCED_OPEN, 5), HF_OK);
    CHECK(ask(1000000) == HF_BREAKER_NEVER);
    CHECK_EQ(hf_breaker_force(test.breaker, HF_BREAKER_FORCED_CLOSED, 5),
             HF_OK);
    many(10, HF_BREAKER_FAILED, 10);
    CHECK_EQ(state(), HF_BREAKER_FORCED_CLOSED);
    CHECK_EQ(stats().window_failed, 10);
    CHECK_EQ(hf_breaker_force(test.breaker, HF_BREAKER_OPEN, 20), HF_OK);
    CHECK_EQ(ask(20), 100);
    CHECK_EQ(hf_breaker_force(test.breaker, HF_BREAKER_CLOSED, 20), HF_OK);
    CHECK_EQ(ask(20), 0);
    CHECK_EQ(hf_breaker_force(test.breaker, HF_BREAKER_HALF_OPEN, 20),
             HF_INVALID);
    CHECK_EQ(hf_breaker_force(test.breaker, (enum hf_breaker_state)9, 20),
             HF_INVALID);
    CHECK_EQ(test.count, 4);
    hf_breaker_free(test.breaker);
}

static void find(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->kind, "breaker") == 0 && strcmp(row->name, "remote") == 0)
        *(struct hf_inspect_row *)context = *row;
}

TEST(it_is_listed)
{
    struct hf_inspect_row row = {.rejected = 77};

    open_it((struct hf_breaker_opts){.failures_max = 2, .open_ns = 100});
    many(2, HF_BREAKER_FAILED, 0);
    (void)ask(0);
    CHECK_EQ(hf_inspect(find, &row), HF_OK);
    CHECK_EQ(row.rejected, 1);
    CHECK_EQ(row.capacity, 0); /* open: nothing passes */
    CHECK_EQ(row.depth, 2);
    hf_breaker_free(test.breaker);
}

TEST(bad_arguments_are_refused)
{
    static const struct hf_breaker_opts bad[] = {
        {.failure_percent = 101},
        {.slow_percent = 101, .slow_ns = 1},
        {.slow_percent = 50},
        {.window_calls = HF_BREAKER_WINDOW_CALLS_MAX + 1},
        {.probes = HF_BREAKER_PROBES_MAX + 1},
        {.window_ns = 9},
        {.window_calls = 5, .calls_min = 6},
        {.open_ns = 10, .open_max_ns = 9},
    };
    struct hf_breaker *breaker = NULL;
    struct hf_breaker_call call;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(hf_breaker_new(&breaker, &bad[i]), HF_INVALID);
    CHECK(breaker == NULL);
    CHECK_EQ(hf_breaker_new(NULL, NULL), HF_INVALID);
    hf_memory_fail_after(0);
    enum hf_status status = hf_breaker_new(&breaker, NULL);
    hf_memory_fail_never();
    CHECK_EQ(status, HF_NOMEM);
    CHECK(breaker == NULL);
    CHECK_EQ(hf_breaker_new(&breaker, NULL), HF_OK);
    CHECK(hf_breaker_enter(NULL, 0, &call) == HF_BREAKER_NEVER);
    CHECK(hf_breaker_enter(breaker, 0, NULL) == HF_BREAKER_NEVER);
    CHECK_EQ(hf_breaker_enter(breaker, 0, &call), 0);
    CHECK_EQ(hf_breaker_leave(NULL, &call, HF_BREAKER_WORKED, 0), HF_INVALID);
    CHECK_EQ(hf_breaker_leave(breaker, NULL, HF_BREAKER_WORKED, 0), HF_INVALID);
    CHECK_EQ(hf_breaker_leave(breaker, &call, (enum hf_breaker_outcome)3, 0),
             HF_INVALID);
    CHECK_EQ(hf_breaker_force(NULL, HF_BREAKER_OPEN, 0), HF_INVALID);
    CHECK_EQ(hf_breaker_state(NULL), HF_BREAKER_CLOSED);
    hf_breaker_stats(NULL, NULL);
    hf_breaker_free(NULL);
    hf_breaker_free(breaker);
}
