/* future.c - completed once, waited for by any number. */
#include "exec/future.h"

#include <assert.h>

#include "base/memory.h"

/* A call that waits for the outcome. */
struct future_then {
    struct future_then *next;
    void (*call)(void *context, const struct hf_outcome *outcome);
    void *context;
};

struct hf_future *hf_future_new(const struct hf_clock *clock,
                                struct hf_pool *owner)
{
    struct hf_future *future = hf_alloc_zeroed(sizeof *future);

    if (future == NULL)
        return NULL;
    future->clock = clock == NULL ? hf_clock_system() : clock;
    future->owner = owner;
    future->thens_end = &future->thens;
    /* Relaxed: nobody else has it yet. */
    hf_u32_store(&future->references, 1, __ATOMIC_RELAXED);
    return future;
}

enum hf_status hf_future_open(struct hf_future **out,
                              const struct hf_clock *clock)
{
    if (out == NULL)
        return HF_INVALID;
    struct hf_future *future = hf_future_new(clock, NULL);
    if (future == NULL)
        return HF_NOMEM;
    *out = future;
    return HF_OK;
}

void hf_future_retain(struct hf_future *future)
{
    if (future == NULL)
        return;
    /* Relaxed: whoever keeps has a reference, so it cannot go meanwhile. */
    hf_u32_add(&future->references, 1, __ATOMIC_RELAXED);
}

static void call_all(struct future_then *then, const struct hf_outcome *outcome)
{
    while (then != NULL) {
        struct future_then *next = then->next;
        then->call(then->context, outcome);
        hf_free(then);
        then = next;
    }
}

void hf_future_release(struct hf_future *future)
{
    if (future == NULL)
        return;
    /* Release: what we did with it. Acquire: what the others did. */
    if (hf_u32_sub(&future->references, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    if (future->thens != NULL) { /* and nobody can complete it any more */
        const struct hf_outcome cancelled = {HF_CANCELLED, 0, NULL};
        call_all(future->thens, &cancelled);
    }
    hf_free(future);
}

static bool change(struct hf_future *future, uint32_t from, uint32_t to)
{
    /* Relaxed: finish publishes the outcome. */
    return hf_u32_cas(&future->state, &from, to, __ATOMIC_RELAXED);
}

bool hf_future_begin(struct hf_future *future)
{
    return change(future, FUTURE_PENDING, FUTURE_RUNNING);
}

void hf_future_finish(struct hf_future *future,
                      const struct hf_outcome *outcome)
{
    future->outcome = *outcome;
    hf_mutex_lock(&future->mutex);
    /* Release: the outcome. Under the lock: then() looks under it too. */
    hf_u32_store(&future->state, FUTURE_DONE, __ATOMIC_RELEASE);
    struct future_then *then = future->thens;
    future->thens = NULL;
    hf_mutex_unlock(&future->mutex);
    hf_event_wake_all(&future->event);
    call_all(then, &future->outcome);
}

enum hf_status hf_future_complete(struct hf_future *future,
                                  const struct hf_outcome *outcome)
{
    if (future == NULL || outcome == NULL ||
        (outcome->status != HF_OK && outcome->status != HF_FAILED &&
         outcome->status != HF_CANCELLED))
        return HF_INVALID;
    if (future->owner != NULL) /* it is its worker's to complete */
        return HF_INVALID;
    if (!hf_future_begin(future))
        return HF_EXISTS;
    hf_future_finish(future, outcome);
    return HF_OK;
}

enum hf_status hf_future_cancel(struct hf_future *future)
{
    const struct hf_outcome cancelled = {HF_CANCELLED, 0, NULL};

    if (future == NULL)
        return HF_INVALID;
    if (!hf_future_begin(future))
        return HF_NOTFOUND;
    hf_future_finish(future, &cancelled);
    return HF_OK;
}

enum hf_status hf_future_then(struct hf_future *future,
                              void (*call)(void *context,
                                           const struct hf_outcome *outcome),
                              void *context)
{
    if (future == NULL || call == NULL)
        return HF_INVALID;
    if (!future_is_done(future)) {
        struct future_then *then = hf_alloc(sizeof *then);
        if (then == NULL)
            return HF_NOMEM;
        *then = (struct future_then){NULL, call, context};
        hf_mutex_lock(&future->mutex);
        if (!future_is_done(future)) {
            *future->thens_end = then;
            future->thens_end = &then->next;
            hf_mutex_unlock(&future->mutex);
            return HF_OK;
        }
        hf_mutex_unlock(&future->mutex);
        hf_free(then);
    }
    call(context, &future->outcome);
    return HF_OK;
}

/* ---- Waiting. ---- */

static enum hf_status try_one(void *context)
{
    return future_is_done(context) ? HF_OK : HF_PENDING;
}

enum hf_status hf_future_get(struct hf_future *future, uint64_t deadline_ns,
                             struct hf_outcome *outcome)
{
    if (future == NULL)
        return HF_INVALID;
    if (!future_is_done(future) && deadline_ns != HF_NOW)
        hf_pool_help(future);
    enum hf_status status = hf_event_until(&future->event, try_one, future,
                                           future->clock, deadline_ns);
    if (status == HF_OK && outcome != NULL)
        *outcome = future->outcome;
    return status;
}

enum hf_status hf_future_all(struct hf_future *const *futures, size_t count,
                             uint64_t deadline_ns)
{
    enum hf_status status = HF_OK;

    if (futures == NULL && count > 0)
        return HF_INVALID;
    for (size_t i = 0; i < count && status == HF_OK; i++)
        status = hf_future_get(futures[i], deadline_ns, NULL);
    return status;
}

/* Those who wait for any of several futures. It outlives the wait, since
 * futures that complete later still call. */
struct any {
    struct hf_atomic_u32 references; /* (a) */
    struct hf_atomic_u32 done;       /* (a) one is completed */
    struct hf_event event;
};

static void any_release(struct any *any, uint32_t count)
{
    if (hf_u32_sub(&any->references, count, __ATOMIC_ACQ_REL) == count)
        hf_free(any);
}

static void any_completed(void *context, const struct hf_outcome *outcome)
{
    struct any *any = context;

    (void)outcome;
    hf_u32_store(&any->done, 1, __ATOMIC_RELEASE);
    hf_event_wake(&any->event, 1);
    any_release(any, 1);
}

static enum hf_status any_try(void *context)
{
    struct any *any = context;
    /* Acquire: the future whose call set it is done. */
    return hf_u32_load(&any->done, __ATOMIC_ACQUIRE) ? HF_OK : HF_PENDING;
}

/* The first that is done; `count` if none is. */
static size_t first_done(struct hf_future *const *futures, size_t count)
{
    size_t i = 0;

    while (i < count && !future_is_done(futures[i]))
        i++;
    return i;
}

static enum hf_status any_wait(struct hf_future *const *futures, size_t count,
                               uint64_t deadline_ns)
{
    struct any *any = hf_alloc_zeroed(sizeof *any);
    enum hf_status status = HF_OK;
    size_t asked = 0;

    if (any == NULL)
        return HF_NOMEM;
    /* One for each future and one for us; relaxed: nobody has it yet. */
    hf_u32_store(&any->references, (uint32_t)count + 1, __ATOMIC_RELAXED);
    while (asked < count && status == HF_OK) {
        status = hf_future_then(futures[asked], any_completed, any);
        asked += status == HF_OK;
    }
    if (status == HF_OK)
        status = hf_event_until(&any->event, any_try, any, futures[0]->clock,
                                deadline_ns);
    any_release(any, 1 + (uint32_t)(count - asked));
    return status;
}

enum hf_status hf_future_any(struct hf_future *const *futures, size_t count,
                             uint64_t deadline_ns, size_t *index)
{
    if (futures == NULL || count == 0 || count >= UINT32_MAX || index == NULL)
        return HF_INVALID;
    for (size_t i = 0; i < count; i++) {
        if (futures[i] == NULL)
            return HF_INVALID;
    }
    size_t done = first_done(futures, count);
    if (done == count && deadline_ns != HF_NOW) {
        for (size_t i = 0; i < count; i++) {
            hf_pool_help(futures[i]);
            if (future_is_done(futures[i]))
                break;
        }
        done = first_done(futures, count);
    }
    if (done == count && deadline_ns == HF_NOW)
        return HF_TIMEOUT;
    if (done == count) {
        enum hf_status status = any_wait(futures, count, deadline_ns);
        if (status != HF_OK)
            return status;
        done = first_done(futures, count);
        assert(done < count);
    }
    *index = done;
    return HF_OK;
}
