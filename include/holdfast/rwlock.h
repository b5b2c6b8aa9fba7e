/* rwlock.h - many readers or one writer; writers first.
 *
 * Readers share the lock. A writer has it alone. While a writer waits, no new
 * reader is let in, so a writer waits only for the readers that are inside
 * and for other writers:
 *
 *   R1  |read ......|
 *   R2     |read .......|
 *   W         waits .....|write ....|
 *   R3          waits ..............|read ...
 *
 *        63   50 49 48 47          32 31          16 15           0
 *       +-------+--+--+--------------+--------------+--------------+
 *       |   -   | s| w| writers wait | readers wait |   readers    |
 *       +-------+--+--+--------------+--------------+--------------+
 *        w: a writer is inside; s: shut down
 *
 * The price: as long as writers follow each other without a gap, readers
 * wait. Among writers there is no order. A thread that reads must not read
 * again inside (a writer may wait in between: deadlock). There is no way from
 * reading to writing: two readers who both want that wait for each other for
 * ever. From writing to reading there is one, hf_rwlock_downgrade(), with no
 * other writer in between. (stamped.h has an upgrade that can fail.)
 *
 * Threads: every call but init and destroy may overlap every other. A reader's
 *          lock may be unlocked by another thread, a writer's too.
 * Memory:  the caller owns `struct hf_rwlock`; no call allocates. It may go
 *          when nobody is inside a call, unlock included.
 * Time:    deadlines are absolute, by the clock given to init. A writer that
 *          gives up lets waiting readers in at once.
 *
 *   linearizable  lock-free                  wakes               allocates
 *   yes           lock when free, unlock,    one writer or all   no
 *                 downgrade, shutdown        readers
 *
 * Example:
 *
 *   struct hf_rwlock lock;
 *   assert(hf_rwlock_init(&lock, NULL) == HF_OK);
 *   assert(hf_rwlock_lock_write(&lock, HF_FOREVER) == HF_OK);
 *   assert(hf_rwlock_downgrade(&lock) == HF_OK);
 *   assert(hf_rwlock_lock_read(&lock, HF_NOW) == HF_OK); // another reader
 *   assert(hf_rwlock_lock_write(&lock, HF_NOW) == HF_TIMEOUT);
 *   assert(hf_rwlock_unlock_read(&lock) == HF_OK);
 *   assert(hf_rwlock_unlock_read(&lock) == HF_OK);
 *   hf_rwlock_destroy(&lock);
 */
#ifndef HOLDFAST_RWLOCK_H
#define HOLDFAST_RWLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/event.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_RWLOCK_MAX 65535u /* readers; and readers, writers who wait */

struct hf_rwlock {                /* (i) immutable after init  (a) atomic */
    struct hf_atomic_u64 state;   /* (a) see the drawing above */
    struct hf_event readers;      /* (a) those who wait to read */
    struct hf_event writers;      /* (a) those who wait to write */
    const struct hf_clock *clock; /* (i) */
};

struct hf_rwlock_stats {
    uint32_t readers; /* inside */
    uint32_t readers_waiting;
    uint32_t writers_waiting;
    bool writing; /* a writer is inside */
    bool shutdown;
};

/* `clock` may be NULL: the system's. HF_INVALID: lock is NULL. */
enum hf_status hf_rwlock_init(struct hf_rwlock *lock,
                              const struct hf_clock *clock);
/* The memory may go. Nobody may be inside a call or hold the lock. */
void hf_rwlock_destroy(struct hf_rwlock *lock);

/* HF_OK: reads. HF_TIMEOUT; HF_CLOSED; HF_FULL: HF_RWLOCK_MAX others do, or
 * wait for it. */
enum hf_status hf_rwlock_lock_read(struct hf_rwlock *lock,
                                   uint64_t deadline_ns);
/* HF_OK: writes. HF_TIMEOUT; HF_CLOSED; HF_FULL: HF_RWLOCK_MAX wait for it. */
enum hf_status hf_rwlock_lock_write(struct hf_rwlock *lock,
                                    uint64_t deadline_ns);

/* HF_INVALID: nobody reads, or nobody writes; nothing changed. */
enum hf_status hf_rwlock_unlock_read(struct hf_rwlock *lock);
enum hf_status hf_rwlock_unlock_write(struct hf_rwlock *lock);
/* The writer goes on as a reader. HF_INVALID: nobody writes. */
enum hf_status hf_rwlock_downgrade(struct hf_rwlock *lock);

/* Nobody gets the lock any more: waiters leave with HF_CLOSED, those inside
 * unlock as ever. From any thread, any number of times. */
void hf_rwlock_shutdown(struct hf_rwlock *lock);

void hf_rwlock_stats(const struct hf_rwlock *lock, struct hf_rwlock_stats *out);

#ifdef __cplusplus
}
#endif

#endif
