/* lender.h - the loop of whoever borrows: take one, use it, give it back.
 *
 *   NAME-THREADSofRESOURCES   all resources are made before the run, and none
 *                             ends during it
 *
 * To use it is to add to a plain counter in it: the sums agree only if nobody
 * had it at the same time. This is the connection cycle by which HikariCP
 * measures itself (get a connection, close it), with pools of its sizes too.
 *
 * One operation is a borrow and a return.
 */
#ifndef BENCH_KEEP_LENDER_H
#define BENCH_KEEP_LENDER_H

#include "../sync/contest.h"

enum lender_mode {
    LENDER_PLAIN,
    LENDER_TIMED, /* with the times of every loan: leaks, trust */
    LENDER_HELD,  /* whoever has one lets others run, who find none */
};

struct lender_thing {
    uint64_t uses; /* plain */
    char apart[CONTEST_LINE - sizeof(uint64_t)];
};

#define LENDER_THINGS_MAX 64

/* What a side's open() returns begins with this. */
struct lender_side {
    struct lender_thing things[LENDER_THINGS_MAX];
    unsigned made;
};

/* `*loan` is room for what a side must remember. */
typedef struct lender_thing *lender_borrow(struct lender_side *side,
                                           void *loan);
typedef void lender_return(struct lender_side *side, void *loan,
                           struct lender_thing *thing);

CONTEST_INLINE void lender_run(struct contest_thread *thread,
                               lender_borrow *borrow, lender_return *back)
{
    struct lender_side *side = (struct lender_side *)thread->self;
    bool held = thread->work->mode == LENDER_HELD;
    uint64_t loan[4];
    uint64_t from;
    uint64_t count;

    while (contest_chunk(thread, &from, &count))
        for (uint64_t i = 0; i < count; i++) {
            struct lender_thing *thing = borrow(side, loan);
            thing->uses++;
            if (held)
                sched_yield();
            back(side, loan, thing);
        }
    thread->put = thread->done;
}

/* For check(). */
CONTEST_INLINE void lender_check(struct contest_thread *thread)
{
    struct lender_side *side = (struct lender_side *)thread->self;

    for (int i = 0; i < LENDER_THINGS_MAX; i++) {
        thread->taken += side->things[i].uses;
        side->things[i].uses = 0;
    }
}

/* A new one; from one thread at a time. */
CONTEST_INLINE struct lender_thing *lender_make(struct lender_side *side)
{
    if (side->made == LENDER_THINGS_MAX)
        contest_fail("too many were made");
    return &side->things[side->made++];
}

#endif
