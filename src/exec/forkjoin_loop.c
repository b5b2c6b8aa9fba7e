/* forkjoin_loop.c - loops and reductions by halving.
 *
 *   0........................100
 *   0...........50  50.......100   the upper half is forked, the lower one
 *   0....25  25.50                 halved on, until `grain` is reached
 *
 * A thief takes the oldest fork, which is the largest range that is left, and
 * halves it in its own deque.
 */
#include <string.h>

#include "exec/forkjoin_state.h"

/* Ranges for each thread if nothing is said: so many that a thread which is
 * ready early finds something to steal, so few that forks cost nothing. */
#define RANGES_PER_THREAD 8

static uint64_t grain_of(const struct hf_forkjoin *forkjoin, uint64_t numbers,
                         uint64_t grain)
{
    uint64_t ranges = (uint64_t)forkjoin->threads * RANGES_PER_THREAD;

    if (grain == 0)
        grain = numbers / ranges + (numbers % ranges != 0);
    return grain == 0 ? 1 : grain;
}

/* ---- For. ---- */

struct loop { /* (i) */
    void (*fn)(void *context, uint64_t from, uint64_t to);
    void *context;
    uint64_t grain;
};

struct range {
    const struct loop *loop;
    uint64_t from;
    uint64_t to;
};

static void run_range(struct hf_forkjoin_worker *worker, void *arg)
{
    const struct range *range = arg;
    const struct loop *loop = range->loop;

    if (range->to - range->from <= loop->grain) {
        loop->fn(loop->context, range->from, range->to);
        return;
    }
    uint64_t middle = range->from + (range->to - range->from) / 2;
    struct range lower = {loop, range->from, middle};
    struct range upper = {loop, middle, range->to};
    struct hf_fork fork;
    (void)hf_fork(worker, &fork, run_range, &upper);
    run_range(worker, &lower);
    (void)hf_join(worker, &fork);
}

enum hf_status hf_parallel_for(
    struct hf_forkjoin *forkjoin, uint64_t begin, uint64_t end, uint64_t grain,
    void (*fn)(void *context, uint64_t from, uint64_t to), void *context)
{
    if (forkjoin == NULL || fn == NULL || end < begin)
        return HF_INVALID;
    if (begin == end)
        return HF_OK;
    struct loop loop = {fn, context, grain_of(forkjoin, end - begin, grain)};
    struct range range = {&loop, begin, end};
    return hf_forkjoin_run(forkjoin, run_range, &range);
}

/* ---- Reduce. ---- */

struct reduce {
    const struct hf_reduction *reduction; /* (i) */
    uint64_t grain;                       /* (i) */
    uint64_t from;                        /* (i) */
    uint64_t to;                          /* (i) */
    void *value;                          /* where it goes */
};

static void run_reduce(struct hf_forkjoin_worker *worker, void *arg)
{
    const struct reduce *reduce = arg;
    const struct hf_reduction *how = reduce->reduction;

    if (reduce->to - reduce->from <= reduce->grain) {
        memcpy(reduce->value, how->identity, how->bytes);
        how->fn(how->context, reduce->from, reduce->to, reduce->value);
        return;
    }
    _Alignas(max_align_t) unsigned char value[HF_REDUCE_BYTES_MAX];
    struct reduce lower = *reduce;
    struct reduce upper = *reduce;
    struct hf_fork fork;
    lower.to = reduce->from + (reduce->to - reduce->from) / 2;
    upper.from = lower.to;
    upper.value = value;
    (void)hf_fork(worker, &fork, run_reduce, &upper);
    run_reduce(worker, &lower);
    (void)hf_join(worker, &fork);
    how->combine(how->context, reduce->value, value);
}

enum hf_status hf_parallel_reduce(struct hf_forkjoin *forkjoin, uint64_t begin,
                                  uint64_t end, uint64_t grain,
                                  const struct hf_reduction *reduction,
                                  void *result)
{
    if (forkjoin == NULL || reduction == NULL || result == NULL ||
        reduction->identity == NULL || reduction->fn == NULL ||
        reduction->combine == NULL || reduction->bytes == 0 ||
        reduction->bytes > HF_REDUCE_BYTES_MAX || end < begin)
        return HF_INVALID;
    if (begin == end) {
        memcpy(result, reduction->identity, reduction->bytes);
        return HF_OK;
    }
    /* The user's result may lie anywhere, and is not touched on failure. */
    _Alignas(max_align_t) unsigned char value[HF_REDUCE_BYTES_MAX];
    struct reduce reduce = {reduction, grain_of(forkjoin, end - begin, grain),
                            begin, end, value};
    enum hf_status status = hf_forkjoin_run(forkjoin, run_reduce, &reduce);
    if (status == HF_OK)
        memcpy(result, value, reduction->bytes);
    return status;
}
