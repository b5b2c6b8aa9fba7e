/* limits.h - the loop for limits by key, the same for all sides.
 *
 *   UNIFORM  a million keys of 16 bytes, each as likely, one permit of a key
 *   ZIPF     the same, the k-th key 1/k^0.99 as likely as the first
 *   HOT      all threads want the same key
 *   DENIED   the same, and there is nothing to be had
 *
 * Every side decides by the same arithmetic (rate_line_take), and tells what
 * is left and when all is back (rate_state_tell).
 */
#ifndef BENCH_FLOW_LIMITS_H
#define BENCH_FLOW_LIMITS_H

#include "../sync/table.h"

#ifdef __cplusplus
extern "C" {
#endif

enum limits_shape {
    LIMITS_UNIFORM,
    LIMITS_ZIPF,
    LIMITS_HOT,
    LIMITS_DENIED,
};

/* What a key's word says; true if `count` permits were taken. The plan is that
 * of the work. */
struct limits_told {
    uint64_t limit;
    uint64_t remaining;
    uint64_t wait_ns;
    uint64_t reset_ns;
};

bool limits_decide(int shape, uint64_t *word, uint64_t now_ns,
                   struct limits_told *told);

/* A number of a key by the shape; `random` is any number. */
#define LIMITS_ZIPF_NUMBERS (1u << 20)
extern const uint32_t *limits_zipf;

typedef bool limits_take(struct contest_thread *thread,
                         const struct table_key *key, uint64_t now_ns);

CONTEST_INLINE void limits_run(struct contest_thread *thread, limits_take *take)
{
    const uint64_t keys = thread->work->size;
    const int shape = thread->work->shape;
    uint64_t allowed = 0;
    uint64_t from;
    uint64_t count;
    struct table_key key;

    table_key_make(&key, 0);
    while (contest_chunk(thread, &from, &count))
        for (uint64_t i = 0; i < count; i++) {
            if (shape == LIMITS_UNIFORM)
                table_key_make(&key, (contest_random(thread) >> 11) % keys);
            else if (shape == LIMITS_ZIPF)
                table_key_make(&key,
                               limits_zipf[(contest_random(thread) >> 11) %
                                           LIMITS_ZIPF_NUMBERS]);
            allowed += take(thread, &key, 1000000000 + from + i);
        }
    if (shape == LIMITS_DENIED ? allowed > 1 : allowed != thread->done)
        contest_fail("a decision is wrong");
}

/* For enter(): all keys are there. */
CONTEST_INLINE void limits_fill(struct contest_thread *thread,
                                limits_take *take)
{
    struct table_key key;

    if (thread->index != 0)
        return;
    for (uint64_t i = 0; i < thread->work->size; i++) {
        table_key_make(&key, i);
        (void)take(thread, &key, 1000000000);
    }
}

#ifdef __cplusplus
}
#endif

#endif
