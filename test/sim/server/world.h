/* world.h - one seed, one clock, one queue of what happens next.
 *
 * Everything around the server's code lives on one line of simulated time:
 *
 *   now ----+-------+----------+------------+----> time
 *           |       |          |            |
 *        a byte   a disk     a client    a fault
 *        arrives  write ends thinks      strikes
 *
 * Time moves only when somebody waits: the loop for its next event, a call of
 * the journal for the disk. Work that the server gives to threads runs on
 * stacks of its own ("fibers"), one at a time, and sleeps by the same queue.
 *
 * Draws: each actor has a stream of random numbers of its own, made from the
 * seed and what it is, so that leaving one actor out disturbs the others as
 * little as can be. That is what makes a run smaller in steps.
 */
#ifndef SIM_SERVER_WORLD_H
#define SIM_SERVER_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

/* ---- Random numbers. ---- */

struct dice {
    struct hf_random random;
};

/* A stream for the actor `what`, its number `a` and its turn `b`. */
struct dice dice_make(uint64_t seed, const char *what, uint64_t a, uint64_t b);
/* 0 .. bound - 1; 0 if bound is 0. */
uint64_t dice_below(struct dice *dice, uint64_t bound);
uint64_t dice_between(struct dice *dice, uint64_t low, uint64_t high);
/* True in `part` of 1000 cases. */
bool dice_hit(struct dice *dice, uint64_t part);
/* Mostly near `low`, seldom near `high`, each scale as often. */
uint64_t dice_scale(struct dice *dice, uint64_t low, uint64_t high);

/* ---- Time and events. ---- */

typedef void world_call(void *context, uint64_t number);

/* Empties everything; the clock starts anew. */
void world_begin(uint64_t seed);
void world_end(void);
uint64_t world_seed(void);

uint64_t world_now_ns(void);
uint64_t world_now_us(void);
uint64_t world_wall_us(void);
/* Somebody sets the date. */
void world_set_date(int64_t by_us);
/* The server's code takes its time, too. */
void world_spend(uint64_t ns);

/* Calls `call` at that time; at the same time in the order of these calls. */
void world_at(uint64_t time_ns, world_call *call, void *context,
              uint64_t number);
void world_after(uint64_t ns, world_call *call, void *context, uint64_t number);
/* When the next thing happens; UINT64_MAX: nothing will. */
uint64_t world_next_ns(void);
/* Lets the next thing happen, at its time. */
void world_step(void);
/* Lets everything happen that is due by then; the clock is there after. */
void world_run_until(uint64_t time_ns);

/* ---- Fibers. ---- */

/* Runs run(context) on a stack of its own, from now on. */
void world_fiber(void (*run)(void *context), void *context);
bool world_in_fiber(void);
/* Lets time pass for whoever calls: a fiber sleeps meanwhile, outside of
 * fibers the world goes on. */
void world_pass(uint64_t ns);
/* Fibers that have not come to their end. */
size_t world_fibers(void);

/* ---- Death. ---- */

/* From here on the server's machine is off: its disk has no effect, nothing
 * leaves it. Its code runs on only to be cleaned up. */
void world_kill(void);
/* Called by world_kill(), before anything else happens. */
extern void (*world_killed)(void);
bool world_is_dead(void);
void world_revive(void);

/* ---- What happened, as a number: equal runs have equal ones. ---- */

void world_note(const void *data, size_t len);
uint64_t world_digest(void);

#endif
