/* lending.h - resources that cost nothing, for tests of hf_lender.
 *
 * A thing is a struct that knows whether it is alive, and how often it was
 * handed out at the same time: a lender that lends it twice is caught by it.
 */
#ifndef TEST_SUPPORT_LENDING_H
#define TEST_SUPPORT_LENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "holdfast/lender.h"
#include "support/clock.h"
#include "support/test.h"

#define THINGS_MAX 4096

struct thing {
    struct hf_atomic_u32 alive;
    struct hf_atomic_u32 users;
    struct hf_atomic_u32 bad; /* validate says no */
    uint32_t number;
};

/* Zeroed is a beginning. */
struct things {
    struct hf_atomic_u32 made; /* also the number of the next one */
    struct hf_atomic_u32 alive;
    struct hf_atomic_u32 alive_most;
    struct hf_atomic_u32 fail;  /* so many creates fail */
    struct hf_atomic_u32 spoil; /* so many creates make one that is bad */
    struct hf_atomic_u32 wrong; /* things that went wrong */
    struct hf_atomic_u32 resets;
    struct hf_atomic_u32 events[5]; /* by enum hf_lender_event */
    struct hf_atomic_ptr leak_who;  /* of the last leak: a name that lasts */
    struct hf_atomic_u64 leak_held_ns;
    struct thing all[THINGS_MAX];
};

/* All but the things themselves, which are as they were left: dead. */
static inline void things_begin(struct things *things)
{
    memset(things, 0, offsetof(struct things, all));
    for (uint32_t i = 0; i < 64; i++)
        things->all[i] = (struct thing){.number = 0};
}

static inline uint32_t things_read(const struct hf_atomic_u32 *word)
{
    return hf_u32_load(word, __ATOMIC_SEQ_CST);
}

/* One less, if there is one. */
static inline bool things_use(struct hf_atomic_u32 *word)
{
    uint32_t count = things_read(word);

    while (count > 0)
        if (hf_u32_cas(word, &count, count - 1, __ATOMIC_SEQ_CST))
            return true;
    return false;
}

static inline int thing_create(void *context, void **resource)
{
    struct things *things = context;

    if (things_use(&things->fail))
        return 7;
    uint32_t number = hf_u32_add(&things->made, 1, __ATOMIC_SEQ_CST);
    struct thing *thing = &things->all[number % THINGS_MAX];
    uint32_t alive = hf_u32_add(&things->alive, 1, __ATOMIC_SEQ_CST) + 1;
    uint32_t most = things_read(&things->alive_most);
    while (most < alive &&
           !hf_u32_cas(&things->alive_most, &most, alive, __ATOMIC_SEQ_CST))
        ;
    thing->number = number;
    hf_u32_store(&thing->bad, things_use(&things->spoil), __ATOMIC_SEQ_CST);
    if (hf_u32_swap(&thing->alive, 1, __ATOMIC_SEQ_CST) != 0)
        hf_u32_add(&things->wrong, 1, __ATOMIC_SEQ_CST);
    *resource = thing;
    return 0;
}

static inline void thing_destroy(void *context, void *resource)
{
    struct things *things = context;
    struct thing *thing = resource;

    hf_u32_sub(&things->alive, 1, __ATOMIC_SEQ_CST);
    if (hf_u32_swap(&thing->alive, 0, __ATOMIC_SEQ_CST) != 1 ||
        things_read(&thing->users) != 0)
        hf_u32_add(&things->wrong, 1, __ATOMIC_SEQ_CST);
}

static inline int thing_validate(void *context, void *resource)
{
    struct things *things = context;
    struct thing *thing = resource;

    if (things_read(&thing->alive) != 1)
        hf_u32_add(&things->wrong, 1, __ATOMIC_SEQ_CST);
    return things_read(&thing->bad) != 0;
}

static inline int thing_reset(void *context, void *resource)
{
    struct things *things = context;
    struct thing *thing = resource;

    hf_u32_add(&things->resets, 1, __ATOMIC_SEQ_CST);
    return things_read(&thing->bad) != 0;
}

static inline void thing_observe(void *context,
                                 const struct hf_lender_note *note)
{
    struct things *things = context;

    hf_u32_add(&things->events[note->event], 1, __ATOMIC_SEQ_CST);
    if (note->event == HF_LENDER_LEAKED) {
        hf_ptr_store(&things->leak_who, (void *)(uintptr_t)note->who,
                     __ATOMIC_SEQ_CST);
        hf_u64_store(&things->leak_held_ns, note->held_ns, __ATOMIC_SEQ_CST);
    }
}

/* The borrower has it, and nobody else has; and then no longer. */
static inline void thing_begin(struct things *things, void *resource)
{
    struct thing *thing = resource;

    if (hf_u32_add(&thing->users, 1, __ATOMIC_SEQ_CST) != 0 ||
        things_read(&thing->alive) != 1)
        hf_u32_add(&things->wrong, 1, __ATOMIC_SEQ_CST);
}

static inline void thing_end(void *resource)
{
    hf_u32_sub(&((struct thing *)resource)->users, 1, __ATOMIC_SEQ_CST);
}

static inline struct hf_lender_opts things_opts(struct things *things,
                                                uint32_t min, uint32_t max)
{
    return (struct hf_lender_opts){.create = thing_create,
                                   .destroy = thing_destroy,
                                   .observe = thing_observe,
                                   .context = things,
                                   .min = min,
                                   .max = max};
}

/* Who was told last as one that leaks. */
static inline const char *things_leak(const struct things *things)
{
    const char *who = hf_ptr_load(&things->leak_who, __ATOMIC_SEQ_CST);

    return who != NULL ? who : "";
}

/* ---- For unit tests: one lot of things, and a clock that the test moves. ----
 */

static struct things things __attribute__((unused));
static struct test_clock hands __attribute__((unused));

static inline void begin(void)
{
    things = (struct things){.made = {0}};
    hands = (struct test_clock){.now_ns = 1000000};
}

/* Direct, with a clock that the test moves. */
static inline struct hf_lender_opts opts_of(uint32_t min, uint32_t max)
{
    begin();
    struct hf_lender_opts opts = things_opts(&things, min, max);
    opts.direct = true;
    opts.clock = test_clock(&hands);
    return opts;
}

static inline struct hf_lender *open_with(const struct hf_lender_opts *opts)
{
    struct hf_lender *lender;

    CHECK_EQ(hf_lender_open(&lender, opts), HF_OK);
    return lender;
}

static inline struct hf_loan borrow(struct hf_lender *lender, const char *who)
{
    struct hf_loan loan = {.resource = NULL};

    CHECK_EQ(hf_lender_borrow(lender, who, HF_NOW, &loan), HF_OK);
    thing_begin(&things, loan.resource);
    return loan;
}

static inline void give_back(struct hf_lender *lender,
                             const struct hf_loan *loan)
{
    thing_end(loan->resource);
    CHECK_EQ(hf_lender_return(lender, loan), HF_OK);
}

static inline uint32_t number_of(const struct hf_loan *loan)
{
    return ((struct thing *)loan->resource)->number;
}

static inline struct hf_lender_stats stats_of(struct hf_lender *lender)
{
    struct hf_lender_stats stats;

    hf_lender_stats(lender, &stats);
    return stats;
}

/* One that borrows in a thread of its own. */
struct borrower {
    struct hf_lender *lender;
    uint64_t deadline_ns;
    enum hf_status status;
    struct hf_loan loan;
};

static inline void borrower_run(void *argument)
{
    struct borrower *borrower = argument;

    borrower->status = hf_lender_borrow(borrower->lender, "b",
                                        borrower->deadline_ns, &borrower->loan);
}

static inline void end(struct hf_lender *lender)
{
    hf_lender_close(lender);
    CHECK_EQ(things_read(&things.alive), 0);
    CHECK_EQ(things_read(&things.wrong), 0);
}

#endif
