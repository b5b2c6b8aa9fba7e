/* lender_apr.c - APR's resource list, which Apache's database pool stands on.
 * With `timed` works it gets a time to live, and so looks at the clock. */
#include <apr_general.h>
#include <apr_reslist.h>
#include <stdlib.h>

#include "bench/keep/lender.h"

struct apr_side {
    struct lender_side side; /* first */
    apr_pool_t *pool;
    apr_reslist_t *list;
};

static apr_status_t construct(void **resource, void *params, apr_pool_t *pool)
{
    (void)pool;
    *resource = lender_make(params);
    return APR_SUCCESS;
}

static apr_status_t destruct(void *resource, void *params, apr_pool_t *pool)
{
    (void)resource;
    (void)params;
    (void)pool;
    return APR_SUCCESS;
}

static void *apr_open(const struct contest_work *work)
{
    struct apr_side *side = contest_alloc(sizeof *side);
    int count = (int)work->size;
    apr_interval_time_t ttl =
        work->mode == LENDER_TIMED ? apr_time_from_sec(1800) : 0;

    if (apr_initialize() || apr_pool_create(&side->pool, NULL) ||
        apr_reslist_create(&side->list, count, count, count, ttl, construct,
                           destruct, side, side->pool))
        contest_fail("apr_reslist_create");
    return side;
}

static void apr_close(void *self)
{
    struct apr_side *side = self;

    apr_reslist_destroy(side->list);
    apr_pool_destroy(side->pool);
    apr_terminate();
    free(side);
}

CONTEST_INLINE struct lender_thing *acquire(struct lender_side *side,
                                            void *loan)
{
    void *thing;

    (void)loan;
    if (apr_reslist_acquire(((struct apr_side *)side)->list, &thing))
        contest_fail("apr_reslist_acquire");
    return thing;
}

CONTEST_INLINE void release(struct lender_side *side, void *loan,
                            struct lender_thing *thing)
{
    (void)loan;
    if (apr_reslist_release(((struct apr_side *)side)->list, thing))
        contest_fail("apr_reslist_release");
}

static void apr_run(struct contest_thread *thread)
{
    lender_run(thread, acquire, release);
}

const struct contest_side lender_apr = {
    .name = "apr",
    .open = apr_open,
    .close = apr_close,
    .run = apr_run,
    .check = lender_check,
};
