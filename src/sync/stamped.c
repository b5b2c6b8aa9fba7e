/* stamped.c - a read-write lock and a version; see the drawings in stamped.h.
 *
 *     63                       2 1    0
 *     +-------------------------+------+
 *     |         version         | how  |    a stamp
 *     +-------------------------+------+
 *
 * The version is changed only by whoever holds the lock for writing: to odd
 * when it has the lock, to even before it lets go. It stands still while
 * anybody reads under the lock, so a stamp of a reader carries it too.
 */
#include "holdfast/stamped.h"

#include <assert.h>
#include <stddef.h>

#include "base/atomic.h"
#include "sync/rwlock.h"

#define VERSION_FIRST 2u /* even, and not 0: no stamp is 0 */

enum how { OPTIMISTIC, READING, WRITING, HOW_COUNT };

static uint64_t stamp_of(uint64_t version, enum how how)
{
    return version << 2 | how;
}

static enum how how_of(uint64_t stamp)
{
    return (enum how)(stamp & 3);
}

static uint64_t version_of(uint64_t stamp)
{
    return stamp >> 2;
}

/* Relaxed: whoever calls this holds the lock, or asks whether a stamp is still
 * good; then the acquire loads before it are what orders. */
static uint64_t version_now(const struct hf_stamped *lock)
{
    return hf_u64_load(&lock->version, __ATOMIC_RELAXED);
}

enum hf_status hf_stamped_init(struct hf_stamped *lock,
                               const struct hf_clock *clock)
{
    if (lock == NULL)
        return HF_INVALID;
    /* Relaxed: whoever shares the lock orders that. */
    hf_u64_store(&lock->version, VERSION_FIRST, __ATOMIC_RELAXED);
    return hf_rwlock_init(&lock->lock, clock);
}

void hf_stamped_destroy(struct hf_stamped *lock)
{
    if (lock == NULL)
        return;
    assert(version_now(lock) % 2 == 0);
    hf_rwlock_destroy(&lock->lock);
}

/* The lock has just become ours to write. */
static uint64_t begin_write(struct hf_stamped *lock)
{
    uint64_t version = version_now(lock);

    assert(version % 2 == 0);
    /* Relaxed: each store of guarded words that follows is a release. */
    hf_u64_store(&lock->version, version + 1, __ATOMIC_RELAXED);
    return stamp_of(version + 1, WRITING);
}

static void end_write(struct hf_stamped *lock)
{
    /* Release: what was written, for optimistic readers. */
    hf_u64_store(&lock->version, version_now(lock) + 1, __ATOMIC_RELEASE);
}

enum hf_status hf_stamped_lock_read(struct hf_stamped *lock,
                                    uint64_t deadline_ns, uint64_t *stamp)
{
    if (lock == NULL || stamp == NULL)
        return HF_INVALID;
    enum hf_status status = hf_rwlock_lock_read(&lock->lock, deadline_ns);
    if (status == HF_OK)
        *stamp = stamp_of(version_now(lock), READING);
    return status;
}

enum hf_status hf_stamped_lock_write(struct hf_stamped *lock,
                                     uint64_t deadline_ns, uint64_t *stamp)
{
    if (lock == NULL || stamp == NULL)
        return HF_INVALID;
    enum hf_status status = hf_rwlock_lock_write(&lock->lock, deadline_ns);
    if (status == HF_OK)
        *stamp = begin_write(lock);
    return status;
}

enum hf_status hf_stamped_unlock(struct hf_stamped *lock, uint64_t stamp)
{
    if (lock == NULL || version_of(stamp) != version_now(lock))
        return HF_INVALID;
    switch (how_of(stamp)) {
    case READING:
        return hf_rwlock_unlock_read(&lock->lock);
    case WRITING:
        if (version_of(stamp) % 2 == 0)
            return HF_INVALID;
        end_write(lock);
        return hf_rwlock_unlock_write(&lock->lock);
    default:
        return HF_INVALID;
    }
}

uint64_t hf_stamped_optimistic(const struct hf_stamped *lock)
{
    if (lock == NULL)
        return 0;
    /* Acquire: what was written before the version became this. */
    uint64_t version = hf_u64_load(&lock->version, __ATOMIC_ACQUIRE);

    return version % 2 == 0 ? stamp_of(version, OPTIMISTIC) : 0;
}

bool hf_stamped_validate(const struct hf_stamped *lock, uint64_t stamp)
{
    if (lock == NULL)
        return false;
    return stamp != 0 && version_now(lock) == version_of(stamp);
}

/* HF_OK: the stamp is of now, and so may become another. */
static enum hf_status may_change(const struct hf_stamped *lock,
                                 const uint64_t *stamp)
{
    if (lock == NULL || stamp == NULL || *stamp == 0)
        return HF_INVALID;
    if (version_now(lock) == version_of(*stamp))
        return HF_OK;
    return how_of(*stamp) == OPTIMISTIC ? HF_CANCELLED : HF_INVALID;
}

/* Nothing was held. What we have just got is given back if it comes too late
 * for the stamp. */
static enum hf_status
from_none(struct hf_stamped *lock, uint64_t stamp,
          enum hf_status (*take)(struct hf_rwlock *lock, uint64_t deadline_ns),
          enum hf_status (*give_back)(struct hf_rwlock *lock))
{
    enum hf_status status = take(&lock->lock, HF_NOW);

    if (status == HF_OK && version_now(lock) != version_of(stamp)) {
        (void)give_back(&lock->lock);
        return HF_CANCELLED;
    }
    return status;
}

enum hf_status hf_stamped_to_write(struct hf_stamped *lock, uint64_t *stamp)
{
    enum hf_status status = may_change(lock, stamp);

    if (status != HF_OK)
        return status;
    switch (how_of(*stamp)) {
    case OPTIMISTIC:
        status = from_none(lock, *stamp, hf_rwlock_lock_write,
                           hf_rwlock_unlock_write);
        break;
    case READING:
        status = hf_rwlock_try_upgrade(&lock->lock);
        break;
    case WRITING:
        return version_of(*stamp) % 2 == 1 ? HF_OK : HF_INVALID;
    default:
        return HF_INVALID;
    }
    if (status == HF_OK)
        *stamp = begin_write(lock);
    return status;
}

enum hf_status hf_stamped_to_read(struct hf_stamped *lock, uint64_t *stamp)
{
    enum hf_status status = may_change(lock, stamp);

    if (status != HF_OK)
        return status;
    switch (how_of(*stamp)) {
    case OPTIMISTIC:
        status =
            from_none(lock, *stamp, hf_rwlock_lock_read, hf_rwlock_unlock_read);
        break;
    case READING:
        return HF_OK;
    case WRITING:
        if (version_of(*stamp) % 2 == 0)
            return HF_INVALID;
        end_write(lock);
        status = hf_rwlock_downgrade(&lock->lock);
        break;
    default:
        return HF_INVALID;
    }
    if (status == HF_OK)
        *stamp = stamp_of(version_now(lock), READING);
    return status;
}

/* See the second drawing in stamped.h: a reader that sees a store sees the odd
 * version that came before it. */
uint64_t hf_stamped_load_u64(const struct hf_atomic_u64 *word)
{
    return word == NULL ? 0 : hf_u64_load(word, __ATOMIC_ACQUIRE);
}

uint32_t hf_stamped_load_u32(const struct hf_atomic_u32 *word)
{
    return word == NULL ? 0 : hf_u32_load(word, __ATOMIC_ACQUIRE);
}

void *hf_stamped_load_ptr(const struct hf_atomic_ptr *word)
{
    return word == NULL ? NULL : hf_ptr_load(word, __ATOMIC_ACQUIRE);
}

void hf_stamped_store_u64(struct hf_atomic_u64 *word, uint64_t value)
{
    if (word != NULL)
        hf_u64_store(word, value, __ATOMIC_RELEASE);
}

void hf_stamped_store_u32(struct hf_atomic_u32 *word, uint32_t value)
{
    if (word != NULL)
        hf_u32_store(word, value, __ATOMIC_RELEASE);
}

void hf_stamped_store_ptr(struct hf_atomic_ptr *word, void *value)
{
    if (word != NULL)
        hf_ptr_store(word, value, __ATOMIC_RELEASE);
}

void hf_stamped_shutdown(struct hf_stamped *lock)
{
    if (lock == NULL)
        return;
    hf_rwlock_shutdown(&lock->lock);
}

void hf_stamped_stats(const struct hf_stamped *lock,
                      struct hf_stamped_stats *out)
{
    if (lock == NULL || out == NULL)
        return;
    out->writes = (version_now(lock) - VERSION_FIRST) / 2;
    hf_rwlock_stats(&lock->lock, &out->lock);
}
