/* histogram.c - readings while others record: nothing lost, nothing twice, and
 * what one reading has fits together.
 *
 * Each record is announced before and after, so that a reading is known to lie
 * between the two.
 */
#include "holdfast/histogram.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "meter/spread.h"
#include "support/schedule.h"
#include "support/test.h"

static struct {
    unsigned recorders;
    unsigned rounds;
    struct hf_histogram *histogram;
    struct hf_atomic_u64 begun;
    struct hf_atomic_u64 ended;
    struct hf_atomic_u64 ended_sum;
    struct hf_atomic_u64 taken; /* by intervals */
    struct hf_atomic_u64 taken_sum;
} rig;

static void setup(void *context, uint64_t seed)
{
    struct hf_spread_opts spread = {.digits = 1, .highest = 1000};

    (void)context;
    (void)seed;
    CHECK_EQ(hf_histogram_open(&rig.histogram,
                               &(struct hf_histogram_opts){.spread = spread}),
             HF_OK);
    rig.begun.value = rig.ended.value = rig.ended_sum.value = 0;
    rig.taken.value = rig.taken_sum.value = 0;
}

static void record(void)
{
    uint64_t value = schedule_random(200);

    hf_u64_add(&rig.begun, 1, __ATOMIC_ACQ_REL);
    hf_histogram_record(rig.histogram, value);
    hf_u64_add(&rig.ended_sum, value, __ATOMIC_ACQ_REL);
    hf_u64_add(&rig.ended, 1, __ATOMIC_ACQ_REL);
}

static struct hf_spread *spread(void)
{
    struct hf_spread *made;

    if (hf_histogram_spread(rig.histogram, &made))
        schedule_wrong("no memory");
    return made;
}

static void read_into(struct hf_spread *seen)
{
    if (hf_histogram_read(rig.histogram, seen))
        schedule_wrong("no memory");
}

/* What one reading has fits together. */
static void check_inside(const struct hf_spread *seen)
{
    uint64_t count = 0;
    uint32_t places = hf_layout_places(&seen->layout);

    for (uint32_t p = 0; p < places; p++) {
        uint64_t there = hf_spread_at(seen, p);
        uint64_t low = hf_layout_low(&seen->layout, p);
        uint64_t high = low + hf_layout_width(&seen->layout, p) - 1;
        count += there;
        if (there > 0 && (high < seen->least || low > seen->most))
            schedule_wrong("a counted value lies outside min and max");
    }
    if (count != seen->count)
        schedule_wrong("the count is not the sum of the counts");
    if (seen->sum > seen->count * 200)
        schedule_wrong("the sum has what is not counted");
}

static void read_twice(void)
{
    struct hf_spread *before = spread();
    struct hf_spread *after = spread();

    uint64_t least = hf_u64_load(&rig.ended, __ATOMIC_ACQUIRE);
    uint64_t least_sum = hf_u64_load(&rig.ended_sum, __ATOMIC_ACQUIRE);
    read_into(before);
    read_into(after);
    uint64_t most = hf_u64_load(&rig.begun, __ATOMIC_ACQUIRE);
    check_inside(before);
    check_inside(after);
    if (before->count < least || after->count > most)
        schedule_wrong("count outside %llu .. %llu", (unsigned long long)least,
                       (unsigned long long)most);
    if (before->sum < least_sum || after->sum < before->sum)
        schedule_wrong("the sum misses what has ended");
    if (hf_spread_subtract(after, before))
        schedule_wrong("a count fell");
    hf_spread_close(before);
    hf_spread_close(after);
}

static void take_intervals(void)
{
    struct hf_spread *last = spread();
    struct hf_spread *since = spread();
    for (unsigned i = 0; i <= rig.rounds; i++) {
        if (i == rig.rounds) /* the last: all have ended */
            while (hf_u64_load(&rig.ended, __ATOMIC_ACQUIRE) <
                   rig.recorders * rig.rounds)
                hf_thread_yield();
        if (hf_histogram_interval(rig.histogram, last, since))
            schedule_wrong("no interval");
        hf_u64_add(&rig.taken, since->count, __ATOMIC_RELAXED);
        hf_u64_add(&rig.taken_sum, since->sum, __ATOMIC_RELAXED);
    }
    hf_spread_close(last);
    hf_spread_close(since);
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == rig.recorders) {
        take_intervals();
        return;
    }
    for (unsigned i = 0; i < rig.rounds; i++) {
        if (fiber < rig.recorders)
            record();
        else
            read_twice();
    }
}

static bool check(void *context, FILE *explain)
{
    struct hf_histogram_stats stats;

    (void)context;
    hf_histogram_stats(rig.histogram, &stats);
    hf_histogram_close(rig.histogram);
    fprintf(explain,
            "recorded %llu (%llu), intervals took %llu (%llu), there are %llu",
            (unsigned long long)rig.ended.value,
            (unsigned long long)rig.ended_sum.value,
            (unsigned long long)rig.taken.value,
            (unsigned long long)rig.taken_sum.value,
            (unsigned long long)stats.count);
    return rig.ended.value == rig.recorders * rig.rounds &&
           rig.taken.value == rig.ended.value &&
           rig.taken_sum.value == rig.ended_sum.value &&
           stats.count == rig.ended.value && stats.sum == rig.ended_sum.value;
}

static void run(const char *name, unsigned recorders, unsigned readers,
                unsigned rounds, unsigned schedules)
{
    struct schedule_case c = {.name = name,
                              .fibers = recorders + 1 + readers,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .schedules = schedules};
    rig.recorders = recorders;
    rig.rounds = rounds;
    schedule_check(&c);
}

TEST(every_record_is_in_exactly_one_interval)
{
    run("two record, one takes intervals", 2, 0, 3, 0);
}

TEST(a_reading_fits_together_and_readings_grow)
{
    run("two record, one takes, one reads", 2, 1, 3, 3000);
}
