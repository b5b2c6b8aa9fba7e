/* phaser.h - a barrier whose parties come and go.
 *
 * Work goes in phases. Every registered party arrives once in each phase; when
 * the last one has, the phaser advances to the next phase. Unlike at a
 * barrier, a party may arrive and not wait, wait without being a party, join
 * in any phase and leave in any phase:
 *
 *   phase        0                  1                2 (ended)
 *   A   register, arrive_and_wait | arrive_and_wait |
 *   B   register, arrive ...work..| deregister      |
 *   C   await_phase(0) ...........| goes on         |
 *
 *        63            32 31          16 15          0
 *       +----------------+--------------+-------------+
 *       |     phase      |   parties    |  unarrived  |
 *       +----------------+--------------+-------------+
 *         unarrived 0: on_advance is running
 *         parties 0 and unarrived 1: nobody has registered; 2: ended
 *
 * The last to arrive runs on_advance(), if there is one, before the others are
 * let go. The phaser ends when on_advance says so, without on_advance when no
 * party is left, and by hf_phaser_shutdown().
 *
 * Phases are 32 bits and go from UINT32_MAX to 0.
 *
 * Threads: every call but init and destroy may overlap every other. A party
 *          is a number and not a thread: who registered need not be who
 *          arrives. To arrive more often than there are parties is refused if
 *          it is seen, and counts for another party if it is not.
 * Memory:  the caller owns `struct hf_phaser`; no call allocates. It may go
 *          when nobody is inside a call.
 * Time:    deadlines are absolute, by the clock given to init.
 * What was done before an arrival is seen by on_advance and by whoever has
 * waited for that phase.
 *
 *   linearizable  wakes  lock-free                          allocates
 *   yes           all    arrive, deregister, shutdown       no
 *
 * Example:
 *
 *   struct hf_phaser phaser;
 *   struct hf_phaser_opts opts = {.parties = 2};
 *   uint32_t phase;
 *   assert(hf_phaser_init(&phaser, &opts) == HF_OK);
 *   assert(hf_phaser_arrive(&phaser, &phase) == HF_OK); // another thread would
 *   assert(hf_phaser_arrive_and_wait(&phaser, HF_FOREVER, &phase) == HF_OK);
 *   assert(phase == 1);
 *   hf_phaser_shutdown(&phaser);
 *   hf_phaser_destroy(&phaser);
 */
#ifndef HOLDFAST_PHASER_H
#define HOLDFAST_PHASER_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/event.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_PHASER_PARTIES_MAX 65535u

struct hf_phaser {              /* (i) immutable after init  (a) atomic */
    struct hf_atomic_u64 state; /* (a) see the drawing above */
    struct hf_event event;      /* (a) those who wait */
    /* (i) these three: as in the options */
    bool (*on_advance)(void *context, uint32_t phase, uint32_t parties);
    void *context;
    const struct hf_clock *clock;
};

struct hf_phaser_opts {
    uint32_t parties; /* 0 .. HF_PHASER_PARTIES_MAX; 0: register later */
    /* Run by the last who arrives in `phase`, outside locks, before the phase
     * is over. `parties` are registered for the next one. true: the phaser
     * ends with this phase. It must not wait for the same phaser. NULL: it
     * ends when no party is left. */
    bool (*on_advance)(void *context, uint32_t phase, uint32_t parties);
    void *context;
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_phaser_stats {
    uint32_t phase;
    uint32_t parties; /* 0 once ended */
    uint32_t arrived; /* of those, in this phase */
    bool ended;
};

/* HF_INVALID: an argument is NULL, or parties is out of range. */
enum hf_status hf_phaser_init(struct hf_phaser *phaser,
                              const struct hf_phaser_opts *opts);
/* The memory may go. Nobody may be inside a call. */
void hf_phaser_destroy(struct hf_phaser *phaser);

/* `count` more parties, who have to arrive from phase `*phase` (may be NULL)
 * on. Waits only while on_advance is running. HF_INVALID: count is 0 or above
 * HF_PHASER_PARTIES_MAX; HF_FULL: all together would be; HF_TIMEOUT;
 * HF_CLOSED: it has ended. */
enum hf_status hf_phaser_register(struct hf_phaser *phaser, uint32_t count,
                                  uint64_t deadline_ns, uint32_t *phase);

/* One party arrives in `*phase` (may be NULL) and does not wait. HF_INVALID:
 * all have arrived or none is registered; HF_CLOSED: it has ended. */
enum hf_status hf_phaser_arrive(struct hf_phaser *phaser, uint32_t *phase);
/* The same, and the party is gone after this phase. */
enum hf_status hf_phaser_arrive_and_deregister(struct hf_phaser *phaser,
                                               uint32_t *phase);
/* Arrives and waits; HF_OK: the phase is over, and `*phase` (may be NULL) is
 * the one after it. HF_TIMEOUT: it is not by the deadline; the arrival
 * stands, and hf_phaser_await_phase() can go on waiting. HF_CLOSED: shut down.
 */
enum hf_status hf_phaser_arrive_and_wait(struct hf_phaser *phaser,
                                         uint64_t deadline_ns, uint32_t *phase);

/* Waits until `phase` is not the current one. HF_OK: it is not, which is
 * true at once of any other phase; HF_TIMEOUT; HF_CLOSED: it never will be
 * over, since the phaser has ended in it. */
enum hf_status hf_phaser_await_phase(struct hf_phaser *phaser, uint32_t phase,
                                     uint64_t deadline_ns);
/* The current phase. */
uint32_t hf_phaser_phase(const struct hf_phaser *phaser);

/* Ends the phaser in the phase it is in: waiters leave with HF_CLOSED. From any
 * thread, any number of times. */
void hf_phaser_shutdown(struct hf_phaser *phaser);

void hf_phaser_stats(const struct hf_phaser *phaser,
                     struct hf_phaser_stats *out);

#ifdef __cplusplus
}
#endif

#endif
