/* Tests that memory of the limiter's buckets and cells is used again. */
#include "flow/limiter_state.h"
#include "support/limiting.h"

#define COUNT 5

/* All that was given back is given out again before anything new is. */
TEST(chained_buckets_are_used_again)
{
    struct hf_limiter *limiter = open_small();
    struct limiter_shard *shard = &limiter->shards[0];
    uint32_t numbers[COUNT];
    uint32_t found = 0;

    hf_mutex_lock(&shard->mutex);
    for (uint32_t i = 0; i < COUNT; i++) {
        numbers[i] = hf_limiter_more_take(limiter, shard);
        CHECK(numbers[i] != 0);
        for (uint32_t j = 0; j < i; j++)
            CHECK(numbers[j] != numbers[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        hf_limiter_more_give(limiter, shard, numbers[i]);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t number = hf_limiter_more_take(limiter, shard);
        for (uint32_t j = 0; j < COUNT; j++) {
            if (numbers[j] == number) {
                found++;
                numbers[j] = 0;
            }
        }
        const struct limiter_bucket *bucket =
            limiter_memory_at(limiter, number);
        CHECK_EQ(bucket->more.value, 0); /* it leads nowhere */
    }
    CHECK_EQ(found, COUNT);
    for (uint32_t j = 0; j < COUNT; j++)
        CHECK(hf_limiter_more_take(limiter, shard) != numbers[j]);
    hf_mutex_unlock(&shard->mutex);
    hf_limiter_close(limiter);
}

TEST(cells_are_used_again_by_size)
{
    struct hf_limiter *limiter = open_small();
    struct limiter_shard *shard = &limiter->shards[0];

    hf_mutex_lock(&shard->mutex);
    uint32_t small = hf_limiter_cell_take(limiter, shard, 3);
    uint32_t large = hf_limiter_cell_take(limiter, shard, 300);
    uint32_t other = hf_limiter_cell_take(limiter, shard, 3);
    CHECK(small != 0 && large != 0 && other != 0);
    hf_limiter_cell_give(limiter, shard, small, 3);
    hf_limiter_cell_give(limiter, shard, large, 300);
    hf_limiter_cell_give(limiter, shard, other, 3);
    CHECK_EQ(hf_limiter_cell_take(limiter, shard, 300), large);
    CHECK_EQ(hf_limiter_cell_take(limiter, shard, 3), other);
    CHECK_EQ(hf_limiter_cell_take(limiter, shard, 3), small);
    hf_mutex_unlock(&shard->mutex);
    hf_limiter_close(limiter);
}

TEST(expecting_a_key_changes_nothing)
{
    struct hf_limiter *limiter = open_small();
    char key[HF_LIMITER_KEY_MAX + 1] = "k";
    struct hf_limiter_ask one = {.key = key, .key_len = 1, .cost = 1};
    struct hf_limiter_ask wrong[] = {{.key = key, .key_len = sizeof key},
                                     {.key = NULL, .key_len = 1}};

    for (int known = 0; known < 2; known++) {
        struct hf_limiter_stats before = stats_of(limiter);
        for (int found = 0; found < 2; found++) {
            hf_limiter_expect(limiter, &one, found);
            hf_limiter_expect(limiter, &wrong[0], found);
            hf_limiter_expect(limiter, &wrong[1], found);
        }
        struct hf_limiter_stats after = stats_of(limiter);
        CHECK_EQ(memcmp(&before, &after, sizeof before), 0);
        CHECK(hf_limiter_allow(limiter, key));
    }
    hf_limiter_close(limiter);
}
