/* stamped.h - read without locking, then ask whether that was right.
 *
 * A read-write lock (rwlock.h) with a version beside it. A writer makes the
 * version odd while it writes. An optimistic reader notes the version, reads,
 * and asks whether the version is still the same: it writes nothing that is
 * shared, so readers do not slow each other down. If not, it reads again, or
 * takes the lock.
 *
 *   version    4       5 (odd: being written)      6
 *   writer     |.......lock ... store store ... unlock.....
 *   reader 1   stamp 4, load, load, validate: yes
 *   reader 2       stamp 4, load ..... load, validate: no, again
 *
 * What is read so may be half old and half new until it is validated: use it
 * for nothing before. And since reader and writer touch the same words at the
 * same time, these must be atomic, and their order is what makes validate
 * right:
 *
 *   writer                           optimistic reader
 *   lock: version = 5                stamp = version (acquire)
 *   store x (release) ---seen by---> load x (acquire)
 *   store y (release)                load y (acquire)
 *   unlock: version = 6 (release)    validate: version == stamp?
 *
 * If a load of x sees what the writer stored, the reader sees version 5 too
 * and the validation fails. So guarded words are read and written by
 * hf_stamped_load/store_*(), by those who hold the lock as well.
 *
 * A stamp is the version and the manner in which it is held. It is given
 * back to unlock, which refuses a wrong one. 0 is never a stamp.
 *
 * Threads: every call but init and destroy may overlap every other. Not
 *          reentrant. Writers come first, as in rwlock.h.
 * Memory:  the caller owns `struct hf_stamped`; no call allocates. It may go
 *          when nobody is inside a call.
 * Time:    deadlines are absolute, by the clock given to init.
 *
 *   linearizable  lock-free                     wakes      allocates
 *   yes           optimistic, validate, unlock, as rwlock  no
 *                 to_read, to_write, shutdown
 *
 * Example:
 *
 *   struct hf_stamped lock;
 *   struct hf_atomic_u64 x = {0};
 *   uint64_t stamp;
 *   assert(hf_stamped_init(&lock, NULL) == HF_OK);
 *   assert(hf_stamped_lock_write(&lock, HF_FOREVER, &stamp) == HF_OK);
 *   hf_stamped_store_u64(&x, 7);
 *   assert(hf_stamped_unlock(&lock, stamp) == HF_OK);
 *
 *   stamp = hf_stamped_optimistic(&lock);
 *   uint64_t seen = hf_stamped_load_u64(&x);
 *   assert(hf_stamped_validate(&lock, stamp) && seen == 7);
 *   hf_stamped_destroy(&lock);
 */
#ifndef HOLDFAST_STAMPED_H
#define HOLDFAST_STAMPED_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/rwlock.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_stamped {               /* (a) atomic */
    struct hf_atomic_u64 version; /* (a) odd: being written */
    struct hf_rwlock lock;        /* who is inside and who waits */
};

struct hf_stamped_stats {
    uint64_t writes; /* that have ended since init */
    struct hf_rwlock_stats lock;
};

/* `clock` may be NULL: the system's. HF_INVALID: lock is NULL. */
enum hf_status hf_stamped_init(struct hf_stamped *lock,
                               const struct hf_clock *clock);
/* The memory may go. Nobody may be inside a call or hold the lock. */
void hf_stamped_destroy(struct hf_stamped *lock);

/* As hf_rwlock_lock_*(). HF_INVALID: stamp is NULL. */
enum hf_status hf_stamped_lock_read(struct hf_stamped *lock,
                                    uint64_t deadline_ns, uint64_t *stamp);
enum hf_status hf_stamped_lock_write(struct hf_stamped *lock,
                                     uint64_t deadline_ns, uint64_t *stamp);
/* HF_INVALID: the lock is not held by this stamp; nothing changed. All readers
 * of one version have the same stamp: a reader that unlocks twice is refused
 * only if no other reads. */
enum hf_status hf_stamped_unlock(struct hf_stamped *lock, uint64_t stamp);

/* A stamp to validate, or 0 while a writer is inside. Never waits, holds
 * nothing, and goes on after shutdown. */
uint64_t hf_stamped_optimistic(const struct hf_stamped *lock);
/* True if nobody has written since the stamp was given; false for 0. */
bool hf_stamped_validate(const struct hf_stamped *lock, uint64_t stamp);

/* Turns any stamp into one for writing, or reading, without waiting. HF_OK:
 * what was read under the old stamp is still true, the old stamp is replaced.
 * Otherwise nothing changed and what was held is held:
 * HF_TIMEOUT: others are inside (or, to read, a writer waits); HF_CANCELLED:
 * somebody has written since; HF_INVALID: no stamp, or not held by it;
 * HF_CLOSED; HF_FULL as hf_rwlock_lock_read(). */
enum hf_status hf_stamped_to_write(struct hf_stamped *lock, uint64_t *stamp);
enum hf_status hf_stamped_to_read(struct hf_stamped *lock, uint64_t *stamp);

/* Guarded words: see the drawing above. */
uint64_t hf_stamped_load_u64(const struct hf_atomic_u64 *word);
uint32_t hf_stamped_load_u32(const struct hf_atomic_u32 *word);
void *hf_stamped_load_ptr(const struct hf_atomic_ptr *word);
void hf_stamped_store_u64(struct hf_atomic_u64 *word, uint64_t value);
void hf_stamped_store_u32(struct hf_atomic_u32 *word, uint32_t value);
void hf_stamped_store_ptr(struct hf_atomic_ptr *word, void *value);

/* Nobody gets the lock any more: waiters leave with HF_CLOSED. */
void hf_stamped_shutdown(struct hf_stamped *lock);

void hf_stamped_stats(const struct hf_stamped *lock,
                      struct hf_stamped_stats *out);

#ifdef __cplusplus
}
#endif

#endif
