/* window.c - edges of slices pass while threads record and others look.
 *
 * Time is what the fibers say it is: a shared clock that they move on. Nothing
 * may be lost: what a window that spans everything has at the end is all. A
 * view never has more than was begun, nor less than had ended since its start.
 */
#include "holdfast/window.h"

#include "base/atomic.h"
#include "support/schedule.h"
#include "support/test.h"

#define SLICE 10u

static struct {
    bool count_only;
    uint32_t slices;
    struct hf_window *window;
    struct hf_atomic_u64 now;
    struct hf_atomic_u64 begun;
    struct hf_atomic_u64 ended;
} rig;

static void setup(void *context, uint64_t seed)
{
    struct hf_window_opts opts = {.span_ns = SLICE * rig.slices,
                                  .slices = rig.slices,
                                  .count_only = rig.count_only,
                                  .spread = {.digits = 1, .highest = 1000}};

    (void)context;
    (void)seed;
    CHECK_EQ(hf_window_open(&rig.window, &opts, 100), HF_OK);
    rig.now.value = 100;
    rig.begun.value = rig.ended.value = 0;
}

static uint64_t pass_time(void)
{
    return hf_u64_add(&rig.now, schedule_random(2 * SLICE), __ATOMIC_ACQ_REL);
}

static void record(void)
{
    hf_u64_add(&rig.begun, 1, __ATOMIC_ACQ_REL);
    hf_window_record(rig.window, schedule_random(1000), pass_time());
    hf_u64_add(&rig.ended, 1, __ATOMIC_ACQ_REL);
}

static void look(void)
{
    struct hf_window_view view;
    uint64_t least = hf_u64_load(&rig.ended, __ATOMIC_ACQUIRE);

    if (hf_window_view(rig.window, pass_time(), &view))
        schedule_wrong("no memory");
    uint64_t most = hf_u64_load(&rig.begun, __ATOMIC_ACQUIRE);
    if (view.count > most)
        schedule_wrong("more than were begun");
    if (rig.slices > 50 && view.count < least)
        schedule_wrong("less than had ended");
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    for (int i = 0; i < 4; i++) {
        if (fiber < 2)
            record();
        else
            look();
    }
}

static bool check(void *context, FILE *explain)
{
    struct hf_window_view view;
    struct hf_window_stats stats;

    (void)context;
    enum hf_status status = hf_window_view(
        rig.window, hf_u64_load(&rig.now, __ATOMIC_RELAXED), &view);
    hf_window_stats(rig.window, &stats);
    hf_window_close(rig.window);
    fprintf(explain, "in view %llu, counted %llu",
            (unsigned long long)view.count, (unsigned long long)stats.count);
    return status == HF_OK && stats.count == 8 && stats.late == 0 &&
           (rig.slices > 50 ? view.count == 8 : view.count <= 8);
}

static void run(const char *name, uint32_t slices, bool count_only)
{
    struct schedule_case c = {.name = name,
                              .fibers = 3,
                              .setup = setup,
                              .body = body,
                              .check = check};
    rig.slices = slices;
    rig.count_only = count_only;
    schedule_check(&c);
}

TEST(a_window_over_everything_has_everything)
{
    run("all, counted", 60, true);
}

TEST(a_window_of_values_over_everything_has_everything)
{
    run("all, values", 60, false);
}

TEST(a_short_window_never_has_too_much)
{
    run("short, counted", 2, true);
}
