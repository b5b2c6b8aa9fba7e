/* ring.c - put and take in every order that a seed can give, every mode.
 *
 * "Empty" and "full" are answers like any other: the checker must find an
 * instant at which they were true.
 */
#include "holdfast/ring.h"

#include "support/calls.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX 16
#define CALLS_MAX  64

enum { PUT, TAKE };

struct config {
    enum hf_ring_mode mode;
    unsigned capacity;
    unsigned before; /* items that setup puts */
    unsigned calls;  /* of each fiber */
    unsigned bulk;   /* items of a call at most; 0: single calls */
    /* What fiber f does at call i; NULL: as the seed says. */
    int (*script)(unsigned fiber, unsigned call);
};

static struct {
    struct config config;
    struct hf_ring *ring;
    struct calls *history;
    struct linear *checker;
} rig;

static void call(unsigned thread, int what, uint64_t value)
{
    struct call *record =
        calls_begin(rig.history, thread,
                    what == PUT ? MODEL_PUT : MODEL_TAKE_FIRST, 0, value);
    void *item = NULL;

    if (what == PUT)
        calls_end(rig.history, record,
                  hf_ring_put(rig.ring, (void *)(uintptr_t)value), 0);
    else {
        enum hf_status status = hf_ring_take(rig.ring, &item);
        calls_end(rig.history, record, status, (uint64_t)(uintptr_t)item);
    }
}

/* As that many calls which all last as long as this one. If it does less than
 * was asked, one of the others was refused. */
static void call_many(unsigned thread, int what, uint64_t value, size_t count)
{
    struct call *records[8] = {NULL};
    void *items[8] = {NULL};
    size_t done;

    for (size_t i = 0; i < count; i++) {
        items[i] = (void *)(uintptr_t)(value + i);
        records[i] = calls_begin(rig.history, thread,
                                 what == PUT ? MODEL_PUT : MODEL_TAKE_FIRST, 0,
                                 what == PUT ? value + i : 0);
    }
    done = what == PUT ? hf_ring_put_many(rig.ring, items, count)
                       : hf_ring_take_many(rig.ring, items, count);
    if (done > count)
        schedule_wrong("%zu of %zu", done, count);
    for (size_t i = 0; i < count; i++) {
        enum hf_status refused = what == PUT ? HF_FULL : HF_EMPTY;
        calls_end(rig.history, records[i],
                  i < done    ? HF_OK
                  : i == done ? refused
                              : HF_CLOSED, /* not tried */
                  i < done && what == TAKE ? (uint64_t)(uintptr_t)items[i] : 0);
    }
    /* Items of one producer are numbered in its order. */
    for (size_t i = 1; i < done && what == TAKE; i++)
        for (size_t k = 0; k < i; k++)
            if ((uintptr_t)items[k] / 1000 == (uintptr_t)items[i] / 1000 &&
                items[k] > items[i])
                schedule_wrong("taken in the wrong order");
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    calls_clear(rig.history);
    struct hf_ring_opts opts = {.capacity = rig.config.capacity,
                                .mode = rig.config.mode};
    CHECK_EQ(hf_ring_open(&rig.ring, &opts), HF_OK);
    for (unsigned i = 0; i < rig.config.before; i++)
        call(FIBERS_MAX, PUT, i + 1);
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < rig.config.calls; i++) {
        int what = rig.config.script != NULL ? rig.config.script(fiber, i)
                                             : (int)schedule_random(2);
        uint64_t value = 1000 * (fiber + 1) + i * 8;
        if (rig.config.bulk != 0)
            call_many(fiber, what, value, 1 + schedule_random(rig.config.bulk));
        else
            call(fiber, what, value);
    }
}

/* All that is left comes out, and the whole history has an order. */
static bool check(void *context, FILE *explain)
{
    struct hf_ring_stats stats;
    uint64_t left = hf_ring_size(rig.ring);

    (void)context;
    if (left > rig.config.capacity) {
        fprintf(explain, "a size of %u", (unsigned)left);
        return false;
    }
    for (uint64_t i = 0; i <= left; i++)
        call(FIBERS_MAX, TAKE, 0);
    hf_ring_stats(rig.ring, &stats);
    if (stats.size != 0 || stats.puts != stats.takes) {
        fprintf(explain, "%u left, %u put, %u taken", (unsigned)stats.size,
                (unsigned)stats.puts, (unsigned)stats.takes);
        return false;
    }
    return linear_check(rig.checker, rig.history, explain) == LINEAR_YES;
}

static void teardown(void *context)
{
    (void)context;
    hf_ring_close(rig.ring);
}

static void run(const char *name, unsigned fibers, unsigned schedules,
                struct config config)
{
    struct schedule_case c = {.name = name,
                              .fibers = fibers,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .teardown = teardown,
                              .schedules = schedules};
    struct model_list list = {.room = config.capacity, .bounded = true};
    struct linear_model model = model_list(&list);

    rig.config = config;
    rig.history = calls_new(FIBERS_MAX + 1, CALLS_MAX);
    rig.checker = linear_new(&model, (FIBERS_MAX + 1) * CALLS_MAX);
    schedule_check(&c);
    linear_free(rig.checker);
    calls_free(rig.history);
}

#define RUN(name, fibers, schedules, ...) \
    run(name, fibers, schedules, (struct config){__VA_ARGS__})

TEST(any_calls_with_room_for_one)
{
    RUN("room for one", 3, 10000, .capacity = 1, .calls = 4);
}

TEST(any_calls_with_room_for_three)
{
    RUN("room for three", 3, 10000, .capacity = 3, .calls = 6);
    RUN("room for three, four fibers", 4, 5000, .before = 2, .capacity = 3,
        .calls = 4);
}

/* The classic bug: a put that has finished lies behind one that is stuck, and
 * a take that comes after it is told "empty". */
static int behind_script(unsigned fiber, unsigned i)
{
    static const int scripts[3][2] = {
        {PUT, PUT},
        {PUT, TAKE},
        {PUT, TAKE},
    };
    return scripts[fiber][i];
}

TEST(empty_is_never_said_because_of_a_put_that_is_stuck)
{
    RUN("stuck put", 3, 10000, .capacity = 4, .script = behind_script,
        .calls = 2);
}

/* And its mirror: a take that has finished behind one that is stuck, and a put
 * that is told "full". */
static int before_script(unsigned fiber, unsigned i)
{
    return 1 - behind_script(fiber, i);
}

TEST(full_is_never_said_because_of_a_take_that_is_stuck)
{
    RUN("stuck take", 3, 10000, .before = 4, .capacity = 4,
        .script = before_script, .calls = 2);
}

/* Many laps, so that one that was left behind finds all far ahead. */
TEST(laps_pass_those_who_are_slow)
{
    RUN("laps", 3, 4000, .capacity = 2, .calls = 14);
    RUN("longer laps", 3, 4000, .capacity = 5, .calls = 14);
}

TEST(many_at_once)
{
    RUN("bulk", 3, 5000, .capacity = 3, .calls = 3, .bulk = 3);
}

/* ---- The other modes: who puts and who takes is given. ---- */

static int first_puts(unsigned fiber, unsigned i)
{
    (void)i;
    return fiber == 0 ? PUT : TAKE;
}

static int first_takes(unsigned fiber, unsigned i)
{
    (void)i;
    return fiber == 0 ? TAKE : PUT;
}

static void run_mode(enum hf_ring_mode mode, const char *name,
                     int (*script)(unsigned, unsigned), unsigned fibers)
{
    for (unsigned capacity = 1; capacity <= 3; capacity += 2) {
        RUN(name, fibers, 5000, .mode = mode, .capacity = capacity,
            .script = script, .calls = 6);
        RUN(name, fibers, 2500, .mode = mode, .capacity = capacity,
            .script = script, .calls = 3, .bulk = 3);
    }
}

TEST(one_puts_and_one_takes)
{
    run_mode(HF_RING_SPSC, "spsc", first_puts, 2);
}

TEST(many_put_and_one_takes)
{
    run_mode(HF_RING_MPSC, "mpsc", first_takes, 3);
}

TEST(one_puts_and_many_take)
{
    run_mode(HF_RING_SPMC, "spmc", first_puts, 3);
}

/* The last of sixteen has a slot beyond the first chunk of records. */
TEST(a_thread_beyond_the_first_records)
{
    RUN("sixteen", 16, 500, .capacity = 2, .calls = 2);
}
