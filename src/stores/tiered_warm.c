/* tiered_warm.c - many keys read by several tasks, to have them in L2. */
#include "holdfast/gather.h"
#include "stores/tiered_state.h"

#define WARM_TASKS 8u

struct warm {
    struct hf_tiered *tiered;
    const struct hf_tiered_key *keys;
    size_t count;
    uint64_t deadline_ns;
    struct hf_atomic_u64 next;   /* (a) the next key to read */
    struct hf_atomic_u64 loaded; /* (a) */
    struct hf_atomic_u64 late;   /* (a) */
    struct hf_atomic_u64 closed; /* (a) */
};

static void ignore(void *arg, const void *value, size_t len)
{
    (void)arg, (void)value, (void)len;
}

static int warm_some(void *arg, void **result)
{
    struct warm *warm = arg;

    (void)result;
    for (;;) {
        /* Relaxed: shares out numbers; the end of the task orders the rest. */
        uint64_t i = hf_u64_add(&warm->next, 1, __ATOMIC_RELAXED);
        if (i >= warm->count)
            return 0;
        enum hf_status status = HF_TIMEOUT;
        if (hf_clock_now_ns(warm->tiered->clock) < warm->deadline_ns)
            status = hf_tiered_read(warm->tiered, warm->keys[i].key,
                                    warm->keys[i].key_len, warm->deadline_ns,
                                    ignore, NULL);
        if (status == HF_OK)
            hf_u64_add(&warm->loaded, 1, __ATOMIC_RELAXED);
        else if (status == HF_TIMEOUT)
            hf_u64_add(&warm->late, 1, __ATOMIC_RELAXED);
        else if (status == HF_CLOSED)
            hf_u64_add(&warm->closed, 1, __ATOMIC_RELAXED);
    }
}

enum hf_status hf_tiered_warm(struct hf_tiered *tiered,
                              const struct hf_tiered_key *keys, size_t count,
                              struct hf_pool *pool, uint64_t deadline_ns,
                              size_t *loaded)
{
    struct hf_gather_opts opts = {.name = "warm-up", .pool = pool};
    struct warm warm = {.tiered = tiered,
                        .keys = keys,
                        .count = count,
                        .deadline_ns = deadline_ns};
    struct hf_gather *gather;

    if (tiered == NULL || (keys == NULL && count > 0))
        return HF_INVALID;
    enum hf_status status = hf_gather_open(&gather, &opts);
    if (status != HF_OK)
        return status;
    /* What the pool does not take, this thread does. */
    for (unsigned i = 1; i < WARM_TASKS && i < count; i++)
        (void)hf_gather_add(gather, warm_some, &warm);
    warm_some(&warm, NULL);
    /* The tasks stop by themselves at the deadline; `warm` must outlive them.
     */
    (void)hf_gather_cancel(gather);
    (void)hf_gather_settle(gather, HF_FOREVER);
    hf_gather_close(gather);
    if (loaded != NULL)
        *loaded = hf_u64_load(&warm.loaded, __ATOMIC_RELAXED);
    if (hf_u64_load(&warm.closed, __ATOMIC_RELAXED) > 0)
        return HF_CLOSED;
    return hf_u64_load(&warm.late, __ATOMIC_RELAXED) > 0 ? HF_TIMEOUT : HF_OK;
}
