/* lender.c - hf_lender beside apr_reslist and what people write themselves. Of
 * HikariCP the same is measured by peers/LenderHikari.java. */
#include "lender.h"

#include <stdlib.h>

#include "holdfast/lender.h"

extern const struct contest_side lender_apr;
extern const struct contest_side lender_condvar;
extern const struct contest_side lender_line;

static const struct contest_work works[] = {
    {.name = "cycle-1of8", .threads = 1, .size = 8},
    {.name = "cycle-2of8", .threads = 2, .size = 8},
    {.name = "cycle-8of32", .threads = 8, .size = 32},
    {.name = "cycle-8of2", .threads = 8, .size = 2},
    {.name = "held-8of2", .threads = 8, .size = 2, .mode = LENDER_HELD},
    {.name = "timed-1of8", .threads = 1, .size = 8, .mode = LENDER_TIMED},
    {.name = "timed-2of8", .threads = 2, .size = 8, .mode = LENDER_TIMED},
    {.name = NULL},
};

struct ours {
    struct lender_side side; /* first */
    struct hf_lender *lender;
};

static int create(void *context, void **resource)
{
    *resource = lender_make(context);
    return 0;
}

static void destroy(void *context, void *resource)
{
    (void)context;
    (void)resource;
}

static int validate(void *context, void *resource)
{
    (void)context;
    (void)resource;
    return 0;
}

static void *open_ours(const struct contest_work *work, bool unfair)
{
    struct ours *ours = contest_alloc(sizeof *ours);
    struct hf_lender_opts opts = {.create = create,
                                  .destroy = destroy,
                                  .context = ours,
                                  .min = (uint32_t)work->size,
                                  .max = (uint32_t)work->size,
                                  .unfair = unfair,
                                  .direct = true};

    if (work->mode == LENDER_TIMED) { /* as HikariCP: 500 ms, 30 minutes */
        opts.validate = validate;
        opts.trust_ns = 500000000;
        opts.leak_ns = UINT64_C(60000000000);
        opts.age_ns = UINT64_C(1800000000000);
    }
    if (hf_lender_open(&ours->lender, &opts))
        contest_fail("hf_lender_open");
    (void)hf_lender_tend(ours->lender); /* makes them all */
    return ours;
}

static void *ours_open(const struct contest_work *work)
{
    return open_ours(work, false);
}

static void *unfair_open(const struct contest_work *work)
{
    return open_ours(work, true);
}

static void ours_close(void *self)
{
    struct ours *ours = self;

    hf_lender_close(ours->lender);
    free(ours);
}

CONTEST_INLINE struct lender_thing *ours_borrow(struct lender_side *side,
                                                void *loan)
{
    if (hf_lender_borrow(((struct ours *)side)->lender, "bench", HF_FOREVER,
                         loan))
        contest_fail("hf_lender_borrow");
    return ((struct hf_loan *)loan)->resource;
}

CONTEST_INLINE void ours_return(struct lender_side *side, void *loan,
                                struct lender_thing *thing)
{
    (void)thing;
    if (hf_lender_return(((struct ours *)side)->lender, loan))
        contest_fail("hf_lender_return");
}

static void ours_run(struct contest_thread *thread)
{
    lender_run(thread, ours_borrow, ours_return);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .check = lender_check,
};

static const struct contest_side ours_unfair = {
    .name = "ours-unfair",
    .open = unfair_open,
    .close = ours_close,
    .run = ours_run,
    .check = lender_check,
};

static const struct contest_side *const sides[] = {
    &ours, &ours_unfair, &lender_apr, &lender_condvar, &lender_line, NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
