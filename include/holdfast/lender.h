/* lender.h - lends out connections, or whatever is dear to make, and takes
 * them back.
 *
 *                       borrow                     return
 *   [idle][idle][idle] --------> somebody has it ---------> [idle]
 *      ^                              | discard: it broke
 *      | create                       v
 *   (room, up to max) <---------- destroy <--- too old, idle for too long,
 *                                              validate said no
 *
 * Resources are made when they are needed, up to `max`, by the lender's own
 * thread or on a pool. Meanwhile whoever waits can be served by a return,
 * however long a create takes or however often it fails. A create that failed
 * is tried again after a pause that doubles. One whose resource fails its first
 * validate has failed as well. Why it failed is told to `observe`, to whoever
 * waits in vain (`code` of its loan), and in the figures.
 *
 * Order: strict. Whoever comes when others wait goes behind them, also if
 * something is free just then; a returned resource is handed to the first. One
 * whose resource turned out to be broken keeps its place. With `unfair` whoever
 * comes by when something is free may take it first: no thread need be woken
 * for that, and much more is lent in the same time. A try (HF_NOW) may then
 * miss one that comes back just now.
 *
 * A loan is a resource with a number that is used once. So a loan that is
 * returned twice, or to the wrong lender, is refused and changes nothing, also
 * if its resource is lent to somebody else by now.
 *
 * Upkeep (min, retiring, leaks) is done by the lender's thread at the time when
 * it is due. With `direct` there is no thread: borrowers create for themselves,
 * and hf_lender_tend() does the upkeep, from a job of an hf_scheduler or from
 * the user's own loop.
 *
 * Deadlines: a borrower that waits leaves when its time has come. With a pool
 * validate runs there if the borrower has a deadline, and it leaves validate as
 * well: the resource goes back, or is destroyed, when validate has returned.
 * (So a task is handed to the pool for each validate; where the pool refuses
 * it, has the submitter run it, or is the borrower's own, it is as without.)
 * Without a pool a borrower cannot leave a callback that it is inside of:
 * validate, destroy of what validate refused and, with `direct`, create. If its
 * resource is refused after the deadline it tries no other; so it is late by
 * one call of each at most, and what turns out to be fit is lent even then. A
 * try (HF_NOW) validates what is idle until one is fit.
 *
 * The end: shutdown() lends nothing more: who waits leaves with HF_CLOSED, what
 * is idle is destroyed, and so is what comes back. await() waits until all is
 * back, out() tells what is not. close() is shutdown, await for ever, and
 * frees.
 *
 * Threads: every call but open and close from any thread. Callbacks run outside
 *          locks, in any thread of those who call, or in the lender's; they may
 *          call the lender, but not close it. While close waits, others may
 *          still be inside return, discard, or a borrow that waits.
 * Memory:  128 bytes for each of `room`; nothing is allocated after open, but
 *          where more than 16 threads call, and by the pool.
 * Time:    by `clock`. It is looked at when a borrower has to wait, and for
 *          each loan only where a setting needs it: see `times`.
 *
 *   linearizable  order   lock-free                        allocates
 *   yes           strict  borrow when one is idle and      open
 *                         nobody waits; return when
 *                         nobody waits and no `reset`
 *
 * Example:
 *
 *   static int make(void *context, void **resource)
 *   {
 *       (void)context;
 *       *resource = malloc(100);
 *       return *resource == NULL;
 *   }
 *   static void end(void *context, void *resource)
 *   {
 *       (void)context;
 *       free(resource);
 *   }
 *   int main(void)
 *   {
 *       struct hf_lender *lender;
 *       struct hf_lender_opts opts = {.create = make, .destroy = end,
 *                                     .max = 4};
 *       struct hf_loan loan;
 *       assert(hf_lender_open(&lender, &opts) == HF_OK);
 *       assert(hf_lender_borrow(lender, "main", hf_clock_after_ms(NULL, 5000),
 *                               &loan) == HF_OK);
 *       memset(loan.resource, 0, 100);
 *       assert(hf_lender_return(lender, &loan) == HF_OK);
 *       assert(hf_lender_return(lender, &loan) == HF_INVALID); // twice
 *       hf_lender_close(lender);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_LENDER_H
#define HOLDFAST_LENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/pool.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_LENDER_MAX_DEFAULT 10u
#define HF_LENDER_MAX         65535u

struct hf_lender;

/* What borrow gives, and return takes back. */
struct hf_loan {
    void *resource;
    const struct hf_lender *lender; /* private, as is the next */
    uint64_t id;
    /* Set if borrow fails with HF_TIMEOUT or HF_FAILED: what the last create
     * said, or the first validate of what it made. 0: nothing is wrong, all
     * were out. */
    int code;
};

enum hf_lender_event {
    HF_LENDER_CREATED,
    HF_LENDER_FAILED,  /* create failed, with `code` */
    HF_LENDER_BROKEN,  /* validate or reset said no, with `code`, or it was
                        * discarded */
    HF_LENDER_RETIRED, /* too old, idle for too long, or too many */
    HF_LENDER_LEAKED,  /* held for longer than leak_ns; told once a loan */
};

/* What an observer is told, and out() tells; valid during the call. */
struct hf_lender_note {
    enum hf_lender_event event; /* of out(): LEAKED if that was told of it */
    void *resource;             /* of FAILED: NULL */
    const char *who;            /* the borrower; "" if it gave no name */
    uint64_t since_ns;          /* when it was lent; HF_INSPECT_NONE: not known,
                                 * see `times` */
    uint64_t held_ns;           /* until now, or HF_INSPECT_NONE */
    int code;
};

struct hf_lender_opts {
    const char *name; /* for hf_inspect() and the thread's name */
    /* Makes one; 0 is success. It may take its time. */
    int (*create)(void *context, void **resource);
    /* Its end, also of one that broke. */
    void (*destroy)(void *context, void *resource);
    /* Is it fit to be lent? 0: yes. By the borrower, or on the pool. NULL: all
     * are. */
    int (*validate)(void *context, void *resource);
    /* Makes it fit for the next; 0 is success. By whoever returns. NULL: all
     * are as they come back. */
    int (*reset)(void *context, void *resource);
    /* Told of every event, outside locks, where it happens. NULL: nobody. */
    void (*observe)(void *context, const struct hf_lender_note *note);
    void *context;
    uint32_t min;  /* so many are kept, also if nobody needs them */
    uint32_t max;  /* 0: HF_LENDER_MAX_DEFAULT, or min if that is more */
    uint32_t room; /* what max can be raised to later; 0: max */
    bool unfair;   /* see above */
    bool direct;   /* see above */
    /* Open makes `min` of them, or one, before it returns, and fails if create
     * does. Else it is open before there is anything, and tries for ever. */
    bool eager;
    /* Where create runs, and validate for borrowers with a deadline; outlives
     * the lender. NULL: creates run in its own thread, one after the other, and
     * upkeep waits meanwhile. */
    struct hf_pool *pool;
    /* One that came back less than this ago is lent without validate. 0: each
     * is validated; HF_FOREVER: none. */
    uint64_t trust_ns;
    uint64_t age_ns;  /* retired at this age; 0: at none */
    unsigned spread;  /* up to so many percent earlier, at random, so that not
                       * all go at once; 0: 10; at most 100 */
    uint64_t idle_ns; /* retired when idle for so long, down to min; 0: never */
    uint64_t leak_ns; /* a loan that lasts longer is told; 0: none is */
    /* Of the pause after a create that failed, or a first validate. */
    uint64_t pause_ns;     /* the first; 0: 10 ms */
    uint64_t pause_max_ns; /* 0: 1 s, or pause_ns if that is more */
    /* Notes when each loan began, for out(); leak_ns does so as well. That is
     * a look at the clock for each borrow. trust_ns needs one for each borrow
     * and each return, idle_ns for each return. */
    bool times;
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_lender_stats {
    uint32_t idle;
    uint32_t out;
    uint32_t making;  /* creates under way */
    uint32_t waiting; /* borrowers that wait */
    uint32_t min;     /* as they are now */
    uint32_t max;
    uint64_t borrows;  /* loans since open */
    uint64_t returns;  /* of them, returned or discarded */
    uint64_t timeouts; /* borrowers whose deadline came */
    uint64_t waits;    /* loans that had to be waited for */
    uint64_t created;
    uint64_t failed;      /* creates that failed */
    int code;             /* as in hf_loan, now */
    uint64_t destroyed;   /* of the created; for these reasons: */
    uint64_t broken;      /*   validate or reset said no, or discarded */
    uint64_t retired;     /*   by age, idle time, or a smaller max */
    uint64_t validated;   /* calls of validate */
    uint64_t leaked;      /* loans told as such */
    uint64_t refused;     /* returns of what was not lent */
    uint64_t wait_p50_ns; /* of the waits; HF_INSPECT_NONE without any */
    uint64_t wait_p99_ns;
};

/* HF_INVALID: lender, create or destroy is NULL, min is above max, max above
 * room or HF_LENDER_MAX, spread above 100, pause_max_ns below pause_ns, or
 * `direct` and a pool. HF_NOMEM: no memory, or no room for the thread.
 * HF_FAILED: `eager`, and a create failed; `observe` was told its code, and
 * what was made before is destroyed. */
enum hf_status hf_lender_open(struct hf_lender **lender,
                              const struct hf_lender_opts *opts);
/* Lends nothing more. Again is harmless. */
void hf_lender_shutdown(struct hf_lender *lender);
/* HF_OK: it was shut down, and the last resource has been destroyed.
 * HF_TIMEOUT: something is still out. HF_INVALID: it was not shut down. */
enum hf_status hf_lender_await(struct hf_lender *lender, uint64_t deadline_ns);
/* Shuts, waits for all that is out, frees. NULL is allowed. */
void hf_lender_close(struct hf_lender *lender);

/* Gets a resource. `who` names the borrower to whoever looks for it: it is kept
 * by pointer, and must last as long as the lender; NULL: nobody. HF_NOW takes
 * an idle one if nobody waits; with `direct` it may create one. Whoever gives
 * up while there is room leaves the wish to create one behind. HF_TIMEOUT and,
 * with `direct`, HF_FAILED: `loan->code` says what create said; HF_CLOSED. Of
 * the loan nothing else is written then. */
enum hf_status hf_lender_borrow(struct hf_lender *lender, const char *who,
                                uint64_t deadline_ns, struct hf_loan *loan);
/* Gives it back, from any thread, also after shutdown. HF_INVALID: this loan is
 * not out of this lender (returned before, or never lent); nothing is changed.
 */
enum hf_status hf_lender_return(struct hf_lender *lender,
                                const struct hf_loan *loan);
/* The same for one that broke: it is destroyed, and another made if needed. */
enum hf_status hf_lender_discard(struct hf_lender *lender,
                                 const struct hf_loan *loan);

/* Does all upkeep that is due: makes up to min, retires, tells of leaks, tries
 * creates again. Returns when to call next; HF_FOREVER: when something has
 * changed. Needed with `direct` only; harmless else. */
uint64_t hf_lender_tend(struct hf_lender *lender);
/* Other bounds. What is too many goes at once if it is idle, else when it comes
 * back. HF_INVALID: min above max, max 0 or above `room`. */
enum hf_status hf_lender_resize(struct hf_lender *lender, uint32_t min,
                                uint32_t max);
/* Retires all that there is now: what is out, when it comes back. For servers
 * that have moved. */
void hf_lender_renew(struct hf_lender *lender);

/* Calls `visit` for each loan that is out; returns how many there were. */
uint32_t hf_lender_out(struct hf_lender *lender,
                       void (*visit)(void *context,
                                     const struct hf_lender_note *note),
                       void *context);
void hf_lender_stats(struct hf_lender *lender, struct hf_lender_stats *out);

#ifdef __cplusplus
}
#endif

#endif
