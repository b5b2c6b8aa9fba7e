/* mutex.c - what a thread does when the lock is held by another. */
#include "sync/mutex.h"

#include "base/thread.h"

#define SPINS 100

void hf_mutex_lock_slow(struct hf_mutex *mutex)
{
    for (int i = hf_thread_spins(SPINS); i > 0; i--) {
        hf_thread_pause();
        /* Relaxed: only whether a try is worth its write. */
        if (hf_u32_load(&mutex->state, __ATOMIC_RELAXED) == 0 &&
            hf_mutex_try(mutex))
            return;
    }
    for (;;) {
        uint32_t key = hf_event_prepare(&mutex->event);
        /* Leaves 2: whoever unlocks next wakes. Release: that we are counted;
         * acquire: what the last holder wrote, if it was free. */
        if (hf_u32_swap(&mutex->state, 2, __ATOMIC_ACQ_REL) == 0) {
            hf_event_cancel(&mutex->event, key);
            return;
        }
        (void)hf_event_wait(&mutex->event, key, NULL, HF_FOREVER);
    }
}

void hf_mutex_wake(struct hf_mutex *mutex)
{
    hf_event_wake(&mutex->event, 1);
}
