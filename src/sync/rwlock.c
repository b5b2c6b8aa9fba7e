/* rwlock.c - all of a read-write lock in one word.
 *
 * Why no wake-up is lost. Who waits counts itself in the word that also says
 * who is inside, and looks after that. So whoever opens a way finds it counted
 * and wakes, or is seen. The ways, and who opens them:
 *
 *   for one writer   nobody is inside: the last to unlock
 *   for all readers  no writer inside or waiting: the writer that unlocks,
 *                    downgrades, or was the last to wait and gives up
 *
 * A writer that is woken and gives up tries once more after its deadline; if
 * it finds somebody inside, that one wakes the next.
 */
#include "sync/rwlock.h"

#include <assert.h>
#include <stddef.h>

#include "base/atomic.h"

#define READER_ONE (UINT64_C(1) << 0)
#define RWAIT_ONE  (UINT64_C(1) << 16)
#define WWAIT_ONE  (UINT64_C(1) << 32)
#define WRITER     (UINT64_C(1) << 48)
#define SHUT       (UINT64_C(1) << 49)

static uint32_t readers_of(uint64_t state)
{
    return (uint32_t)(state & 0xffff);
}

static uint32_t rwait_of(uint64_t state)
{
    return (uint32_t)(state / RWAIT_ONE & 0xffff);
}

static uint32_t wwait_of(uint64_t state)
{
    return (uint32_t)(state / WWAIT_ONE & 0xffff);
}

static bool is_open_to_read(uint64_t state)
{
    return !(state & WRITER) && wwait_of(state) == 0;
}

static bool is_open_to_write(uint64_t state)
{
    return !(state & WRITER) && readers_of(state) == 0;
}

/* Relaxed: the exchange that follows decides. */
static uint64_t look(const struct hf_rwlock *lock)
{
    return hf_u64_load(&lock->state, __ATOMIC_RELAXED);
}

enum hf_status hf_rwlock_init(struct hf_rwlock *lock,
                              const struct hf_clock *clock)
{
    if (lock == NULL)
        return HF_INVALID;
    *lock = (struct hf_rwlock){.clock = clock};
    return HF_OK;
}

void hf_rwlock_destroy(struct hf_rwlock *lock)
{
    if (lock == NULL)
        return;
    /* Nobody is inside, nobody waits. */
    assert((look(lock) & ~SHUT) == 0);
    (void)lock;
}

/* One try; `off` is what counts us as waiting, if we are. */
HF_INLINE enum hf_status try_read(struct hf_rwlock *lock, uint64_t off)
{
    uint64_t state = look(lock);

    do {
        if (state & SHUT)
            return HF_CLOSED;
        if (!is_open_to_read(state))
            return HF_PENDING;
        if (readers_of(state) == HF_RWLOCK_MAX)
            return HF_FULL;
        /* Acquire: what the last writer did. */
    } while (!hf_u64_cas(&lock->state, &state, state + READER_ONE - off,
                         __ATOMIC_ACQUIRE));
    return HF_OK;
}

HF_INLINE enum hf_status try_write(struct hf_rwlock *lock, uint64_t off)
{
    uint64_t state = look(lock);

    do {
        if (state & SHUT)
            return HF_CLOSED;
        if (!is_open_to_write(state))
            return HF_PENDING;
        /* Acquire: what the last writer did, and that readers are done. */
    } while (!hf_u64_cas(&lock->state, &state, state + WRITER - off,
                         __ATOMIC_ACQUIRE));
    return HF_OK;
}

static enum hf_status try_waiting_read(void *lock)
{
    return try_read(lock, RWAIT_ONE);
}

static enum hf_status try_waiting_write(void *lock)
{
    return try_write(lock, WWAIT_ONE);
}

/* Wakes whoever can go on in this state, which the caller has made. */
static void wake(struct hf_rwlock *lock, uint64_t state)
{
    if (wwait_of(state) > 0) {
        if (is_open_to_write(state))
            hf_event_wake(&lock->writers, 1);
    } else if (rwait_of(state) > 0 && is_open_to_read(state)) {
        hf_event_wake_all(&lock->readers);
    }
}

__attribute__((noinline)) static enum hf_status
wait_to(bool write, struct hf_rwlock *lock, uint64_t deadline_ns)
{
    uint64_t one = write ? WWAIT_ONE : RWAIT_ONE;
    uint64_t state = look(lock);
    enum hf_status status;

    do {
        if ((write ? wwait_of(state) : rwait_of(state)) == HF_RWLOCK_MAX)
            return HF_FULL;
        /* Relaxed, here and below: the count guards nothing. */
    } while (!hf_u64_cas(&lock->state, &state, state + one, __ATOMIC_RELAXED));
    status = hf_event_until(write ? &lock->writers : &lock->readers,
                            write ? try_waiting_write : try_waiting_read, lock,
                            lock->clock, deadline_ns);
    if (status != HF_OK) {
        state = hf_u64_sub(&lock->state, one, __ATOMIC_RELAXED);
        /* The readers whom a writer kept out can go in. */
        if (write)
            wake(lock, state - one);
    }
    return status;
}

enum hf_status hf_rwlock_lock_read(struct hf_rwlock *lock, uint64_t deadline_ns)
{
    if (lock == NULL)
        return HF_INVALID;
    enum hf_status status = try_read(lock, 0);

    if (status != HF_PENDING)
        return status;
    return deadline_ns == HF_NOW ? HF_TIMEOUT
                                 : wait_to(false, lock, deadline_ns);
}

enum hf_status hf_rwlock_lock_write(struct hf_rwlock *lock,
                                    uint64_t deadline_ns)
{
    if (lock == NULL)
        return HF_INVALID;
    enum hf_status status = try_write(lock, 0);

    if (status != HF_PENDING)
        return status;
    return deadline_ns == HF_NOW ? HF_TIMEOUT
                                 : wait_to(true, lock, deadline_ns);
}

enum hf_status hf_rwlock_unlock_read(struct hf_rwlock *lock)
{
    if (lock == NULL)
        return HF_INVALID;
    uint64_t state = look(lock);

    do {
        if (readers_of(state) == 0)
            return HF_INVALID;
        /* Release: our reads are done before the next writer writes. */
    } while (!hf_u64_cas(&lock->state, &state, state - READER_ONE,
                         __ATOMIC_RELEASE));
    if (wwait_of(state) > 0)
        wake(lock, state - READER_ONE);
    return HF_OK;
}

/* The writer goes; `stays` is 0, or a reader. */
static enum hf_status end_writing(struct hf_rwlock *lock, uint64_t stays)
{
    if (lock == NULL)
        return HF_INVALID;
    uint64_t state = look(lock);

    do {
        if (!(state & WRITER))
            return HF_INVALID;
        /* Release: what we wrote, for whoever comes next. */
    } while (!hf_u64_cas(&lock->state, &state, state - WRITER + stays,
                         __ATOMIC_RELEASE));
    wake(lock, state - WRITER + stays);
    return HF_OK;
}

enum hf_status hf_rwlock_unlock_write(struct hf_rwlock *lock)
{
    return end_writing(lock, 0);
}

enum hf_status hf_rwlock_downgrade(struct hf_rwlock *lock)
{
    return end_writing(lock, READER_ONE);
}

enum hf_status hf_rwlock_try_upgrade(struct hf_rwlock *lock)
{
    if (lock == NULL)
        return HF_INVALID;
    uint64_t state = look(lock);

    do {
        if (readers_of(state) == 0)
            return HF_INVALID;
        if (state & SHUT)
            return HF_CLOSED;
        if (readers_of(state) > 1)
            return HF_TIMEOUT;
        /* Acquire: the other readers are done. */
    } while (!hf_u64_cas(&lock->state, &state, state - READER_ONE + WRITER,
                         __ATOMIC_ACQUIRE));
    return HF_OK;
}

void hf_rwlock_shutdown(struct hf_rwlock *lock)
{
    if (lock == NULL)
        return;
    /* Release: for those who find it shut. */
    hf_u64_or(&lock->state, SHUT, __ATOMIC_RELEASE);
    hf_event_wake_all(&lock->writers);
    hf_event_wake_all(&lock->readers);
}

void hf_rwlock_stats(const struct hf_rwlock *lock, struct hf_rwlock_stats *out)
{
    if (lock == NULL || out == NULL)
        return;
    uint64_t state = look(lock);

    *out = (struct hf_rwlock_stats){.readers = readers_of(state),
                                    .readers_waiting = rwait_of(state),
                                    .writers_waiting = wwait_of(state),
                                    .writing = (state & WRITER) != 0,
                                    .shutdown = (state & SHUT) != 0};
}
