/* pool_records.c - a pool's records: each is in the queue or free, and none is
 * lost, whoever is quicker. Step by step. */
#include "base/atomic.h"
#include "base/thread.h"
#include "exec/pool_state.h"
#include "holdfast/pool.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 3
#define TASKS  4

static struct {
    struct hf_pool *pool;
    struct hf_atomic_u32 open;
    struct hf_atomic_u32 left; /* fibers that submit nothing more */
    struct hf_atomic_u32 accepted;
    struct hf_atomic_u32 ran;
    size_t records;
    size_t found;
} test;

static int run(void *arg)
{
    (void)arg;
    hf_u32_add(&test.ran, 1, __ATOMIC_RELEASE);
    return 0;
}

static void await(struct hf_atomic_u32 *word, uint32_t count)
{
    while (hf_u32_load(word, __ATOMIC_ACQUIRE) < count)
        hf_thread_pause();
}

static size_t length(const struct hf_pool_task *record)
{
    size_t count = 0;

    for (; record != NULL; record = record->next)
        count++;
    return count;
}

/* Nobody is inside, and nothing is queued. */
static void count_records(void)
{
    const struct pool_local *local;
    uint32_t slot = 0;

    hf_mutex_lock(&test.pool->mutex);
    for (struct pool_block *at = test.pool->blocks; at != NULL; at = at->next)
        test.records += sizeof at->tasks / sizeof *at->tasks;
    test.found = length(test.pool->free_tasks);
    while ((local = hf_locals_next(&test.pool->locals, &slot)) != NULL)
        test.found += length(local->free);
    hf_mutex_unlock(&test.pool->mutex);
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    memset(&test, 0, sizeof test);
}

static void body(void *context, unsigned fiber)
{
    const struct hf_pool_opts opts = {.max_threads = 1, .queue_max = 2};

    (void)context;
    if (fiber == 0) {
        if (hf_pool_open(&test.pool, &opts) != HF_OK)
            schedule_wrong("no pool");
        hf_u32_store(&test.open, 1, __ATOMIC_RELEASE);
    }
    await(&test.open, 1);
    for (unsigned i = 0; i < TASKS; i++) {
        enum hf_status status =
            hf_pool_submit(test.pool, run, NULL, NULL, NULL);
        if (status == HF_OK)
            hf_u32_add(&test.accepted, 1, __ATOMIC_RELAXED);
        else if (status != HF_FULL)
            schedule_wrong("submit: %s", hf_status_text(status));
    }
    hf_u32_add(&test.left, 1, __ATOMIC_RELEASE);
    if (fiber != 0)
        return;
    await(&test.left, FIBERS);
    await(&test.ran, hf_u32_load(&test.accepted, __ATOMIC_RELAXED));
    count_records();
    hf_pool_close(test.pool);
}

static bool check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%zu records, %zu of them free", test.records, test.found);
    return test.records > 0 && test.found == test.records;
}

TEST(no_record_is_lost)
{
    struct schedule_case c = {.name = "records",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = body,
                              .check = check};
    schedule_check(&c);
}
