/* locking.h - a lock manager, and threads that wait for its locks.
 *
 *   struct locking_call call = {.locks = locks, .name = "a", ...};
 *   locking_start(&call);          a thread that acquires and keeps
 *   locking_await_waiting(locks, 1);
 *   ...
 *   locking_join(&call);           call.status, call.answer
 */
#ifndef TEST_SUPPORT_LOCKING_H
#define TEST_SUPPORT_LOCKING_H

#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "holdfast/locks.h"
#include "support/clock.h"
#include "support/test.h"

struct locking_call {
    struct hf_locks *locks;
    const char *name;
    const struct hf_locks_item *items; /* NULL: the name */
    size_t count;
    struct hf_locks_request request;
    uint64_t deadline_ns;
    enum hf_status status;
    struct hf_locks_answer answer;
    pthread_t thread;
    struct hf_atomic_u32 done;
};

static inline enum hf_status locking_acquire(struct locking_call *call)
{
    if (call->items != NULL)
        return hf_locks_acquire_set(call->locks, call->items, call->count,
                                    &call->request, call->deadline_ns,
                                    &call->answer);
    return hf_locks_acquire(call->locks, call->name, &call->request,
                            call->deadline_ns, &call->answer);
}

static inline void *locking_run(void *argument)
{
    struct locking_call *call = argument;

    call->status = locking_acquire(call);
    /* Release: the answer. */
    hf_u32_store(&call->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static inline void locking_start(struct locking_call *call)
{
    call->done.value = 0;
    CHECK_EQ(pthread_create(&call->thread, NULL, locking_run, call), 0);
}

static inline void locking_join(struct locking_call *call)
{
    CHECK_EQ(pthread_join(call->thread, NULL), 0);
}

/* Lets so much time pass, again and again, until the call has ended. */
static inline void locking_join_by(struct locking_call *call,
                                   struct test_clock *clock, uint64_t ns)
{
    while (hf_u32_load(&call->done, __ATOMIC_ACQUIRE) == 0) {
        test_clock_advance(clock, ns);
        sched_yield();
    }
    locking_join(call);
}

static inline struct hf_locks_stats locking_stats(struct hf_locks *locks,
                                                  const char *name)
{
    struct hf_locks_stats stats;

    CHECK_EQ(hf_locks_stats(locks, name, &stats), HF_OK);
    return stats;
}

/* Until so many wait; a slow machine does not fail. */
static inline void locking_await_waiting(struct hf_locks *locks, uint32_t count)
{
    uint64_t deadline_ns = hf_clock_after_ms(NULL, 60000);

    while (locking_stats(locks, NULL).waiting != count) {
        CHECK(hf_clock_now_ns(NULL) < deadline_ns);
        sched_yield();
    }
}

static inline struct hf_locks *locking_open(const struct hf_locks_opts *opts)
{
    struct hf_locks *locks = NULL;

    CHECK_EQ(hf_locks_open(&locks, opts), HF_OK);
    return locks;
}

/* A try by an owner of that name. */
static inline enum hf_status locking_try(struct hf_locks *locks,
                                         const char *owner, const char *name,
                                         enum hf_locks_mode mode)
{
    struct hf_locks_request request = {.mode = mode, .owner = owner};

    return hf_locks_acquire(locks, name, &request, HF_NOW, NULL);
}

/* A call for ever by an owner of that name, which waits: it is the `turn`th
 * that does. */
static inline void locking_wait_as(struct locking_call *call,
                                   struct hf_locks *locks, const char *owner,
                                   const char *name, enum hf_locks_mode mode,
                                   uint32_t turn)
{
    uint64_t session = call->request.session;

    *call = (struct locking_call){
        .locks = locks,
        .name = name,
        .request = {.owner = owner, .mode = mode, .session = session},
        .deadline_ns = HF_FOREVER};
    locking_start(call);
    locking_await_waiting(locks, turn);
}

static inline uint64_t locking_take(struct hf_locks *locks, const char *owner,
                                    const char *name)
{
    struct hf_locks_request request = {.owner = owner};
    struct hf_locks_answer answer;

    CHECK_EQ(hf_locks_acquire(locks, name, &request, HF_NOW, &answer), HF_OK);
    return answer.token;
}

/* It is granted, and given back. */
static inline void locking_pass_on(struct locking_call *call)
{
    locking_join(call);
    CHECK_EQ(call->status, HF_OK);
    CHECK_EQ(hf_locks_release(call->locks, call->name, call->answer.token),
             HF_OK);
}

#endif
