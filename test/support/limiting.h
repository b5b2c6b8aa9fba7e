/* limiting.h - short words for the tests of hf_limiter. */
#ifndef TEST_SUPPORT_LIMITING_H
#define TEST_SUPPORT_LIMITING_H

#include <string.h>

#include "holdfast/limiter.h"
#include "support/test.h"

#define SECOND UINT64_C(1000000000)

static inline struct hf_limiter *open_small(void)
{
    struct hf_limiter *limiter;
    struct hf_limiter_opts opts = {.name = "small", .shards = 1, .seed = 7};

    CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_OK);
    return limiter;
}

static inline struct hf_limiter_rule bucket(uint32_t permits, uint64_t span_ns,
                                            uint32_t burst)
{
    return (struct hf_limiter_rule){
        .rate = {.permits = permits, .span_ns = span_ns, .burst = burst}};
}

static inline uint32_t define(struct hf_limiter *limiter, const char *name,
                              struct hf_limiter_rule rule)
{
    uint32_t number = 0;

    CHECK_EQ(hf_limiter_define(limiter, name, &rule, &number), HF_OK);
    return number;
}

static inline struct hf_limiter_ask ask(uint32_t rule, const char *key,
                                        uint64_t cost)
{
    return (struct hf_limiter_ask){
        .rule = rule, .key = key, .key_len = strlen(key), .cost = cost};
}

static inline struct hf_limiter_answer take(struct hf_limiter *limiter,
                                            uint32_t rule, const char *key,
                                            uint64_t cost, uint64_t now_ns)
{
    struct hf_limiter_ask one = ask(rule, key, cost);
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = now_ns};
    struct hf_limiter_answer answer;

    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    return answer;
}

static inline struct hf_limiter_answer peek(struct hf_limiter *limiter,
                                            uint32_t rule, const char *key,
                                            uint64_t cost, uint64_t now_ns)
{
    struct hf_limiter_ask one = ask(rule, key, cost);
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = now_ns};
    struct hf_limiter_answer answer;

    CHECK_EQ(hf_limiter_peek(limiter, &call, &answer), HF_OK);
    return answer;
}

static inline struct hf_limiter_stats stats_of(struct hf_limiter *limiter)
{
    struct hf_limiter_stats stats;

    hf_limiter_stats(limiter, &stats);
    return stats;
}

#endif
