/* mutex.c - one holder at a time, and nobody sleeps before a free lock. */
#include "sync/mutex.h"

#include "base/thread.h"
#include "support/schedule.h"
#include "support/test.h"

struct scene {
    struct hf_mutex mutex;
    unsigned sum; /* (m) plain: the thread sanitizer watches it */
};

static void setup(void *context, uint64_t seed)
{
    (void)seed;
    *(struct scene *)context = (struct scene){0};
}

static void body(void *context, unsigned fiber)
{
    struct scene *scene = context;

    (void)fiber;
    for (int i = 0; i < 3; i++) {
        hf_mutex_lock(&scene->mutex);
        unsigned before = scene->sum;
        hf_thread_pause(); /* let others try */
        scene->sum = before + 1;
        hf_mutex_unlock(&scene->mutex);
    }
}

static bool check(void *context, FILE *explain)
{
    struct scene *scene = context;
    fprintf(explain, "sum %u", scene->sum);
    return scene->sum == 9;
}

TEST(one_holder_at_a_time_and_no_sleep_for_ever)
{
    struct scene scene;
    struct schedule_case c = {.name = "mutex",
                              .fibers = 3,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .context = &scene};
    schedule_check(&c);
}
