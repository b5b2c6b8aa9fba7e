/* stamped.c - tests of the stamped lock: what one thread can see. */
#include "holdfast/stamped.h"

#include "support/test.h"

TEST(bad_arguments_are_refused)
{
    struct hf_stamped lock;
    uint64_t none = 0;

    CHECK_EQ(hf_stamped_init(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_stamped_init(&lock, NULL), HF_OK);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_stamped_lock_write(&lock, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_stamped_to_read(&lock, NULL), HF_INVALID);
    CHECK_EQ(hf_stamped_to_write(&lock, NULL), HF_INVALID);
    CHECK_EQ(hf_stamped_to_read(&lock, &none), HF_INVALID);
    CHECK_EQ(hf_stamped_to_write(&lock, &none), HF_INVALID);
    CHECK_EQ(hf_stamped_unlock(&lock, 0), HF_INVALID);
    CHECK(!hf_stamped_validate(&lock, 0));
    hf_stamped_destroy(&lock);
}

TEST(a_stamp_is_good_until_somebody_writes)
{
    struct hf_stamped lock;
    struct hf_stamped_stats stats;
    uint64_t seen;
    uint64_t held;

    CHECK_EQ(hf_stamped_init(&lock, NULL), HF_OK);
    seen = hf_stamped_optimistic(&lock);
    CHECK(seen != 0);
    CHECK(hf_stamped_validate(&lock, seen));
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &held), HF_OK);
    CHECK(hf_stamped_validate(&lock, seen));
    CHECK(hf_stamped_validate(&lock, held));
    CHECK_EQ(hf_stamped_unlock(&lock, held), HF_OK);
    CHECK(hf_stamped_validate(&lock, seen));
    CHECK_EQ(hf_stamped_lock_write(&lock, HF_NOW, &held), HF_OK);
    CHECK(!hf_stamped_validate(&lock, seen));
    CHECK(hf_stamped_validate(&lock, held));
    CHECK_EQ(hf_stamped_optimistic(&lock), 0);
    CHECK_EQ(hf_stamped_unlock(&lock, held), HF_OK);
    CHECK(!hf_stamped_validate(&lock, seen));
    CHECK(hf_stamped_validate(&lock, hf_stamped_optimistic(&lock)));
    hf_stamped_stats(&lock, &stats);
    CHECK_EQ(stats.writes, 1);
    CHECK_EQ(stats.lock.readers, 0);
    hf_stamped_destroy(&lock);
}

TEST(unlock_checks_the_stamp)
{
    struct hf_stamped lock;
    uint64_t seen;
    uint64_t old;
    uint64_t held;

    CHECK_EQ(hf_stamped_init(&lock, NULL), HF_OK);
    seen = hf_stamped_optimistic(&lock);
    CHECK_EQ(hf_stamped_unlock(&lock, seen), HF_INVALID);
    CHECK_EQ(hf_stamped_lock_write(&lock, HF_NOW, &old), HF_OK);
    CHECK_EQ(hf_stamped_unlock(&lock, old), HF_OK);
    CHECK_EQ(hf_stamped_unlock(&lock, old), HF_INVALID);
    CHECK_EQ(hf_stamped_lock_write(&lock, HF_NOW, &held), HF_OK);
    CHECK(held != old);
    CHECK_EQ(hf_stamped_unlock(&lock, old), HF_INVALID);
    CHECK_EQ(hf_stamped_unlock(&lock, held ^ 3), HF_INVALID);
    CHECK_EQ(hf_stamped_unlock(&lock, held | 3), HF_INVALID);
    CHECK_EQ(hf_stamped_unlock(&lock, held + 4), HF_INVALID);
    CHECK_EQ(hf_stamped_unlock(&lock, held), HF_OK);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &old), HF_OK);
    CHECK_EQ(hf_stamped_unlock(&lock, old ^ 3), HF_INVALID);
    CHECK_EQ(hf_stamped_unlock(&lock, old), HF_OK);
    CHECK_EQ(hf_stamped_unlock(&lock, old), HF_INVALID);
    hf_stamped_destroy(&lock);
}

TEST(many_read_or_one_writes)
{
    struct hf_stamped lock;
    uint64_t a;
    uint64_t b;
    uint64_t c;

    CHECK_EQ(hf_stamped_init(&lock, NULL), HF_OK);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &a), HF_OK);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &b), HF_OK);
    CHECK_EQ(hf_stamped_lock_write(&lock, HF_NOW, &c), HF_TIMEOUT);
    CHECK_EQ(hf_stamped_unlock(&lock, a), HF_OK);
    CHECK_EQ(hf_stamped_unlock(&lock, b), HF_OK);
    CHECK_EQ(hf_stamped_lock_write(&lock, HF_NOW, &c), HF_OK);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &a), HF_TIMEOUT);
    CHECK_EQ(hf_stamped_unlock(&lock, c), HF_OK);
    hf_stamped_destroy(&lock);
}

TEST(to_write_needs_a_good_stamp_and_nobody_else)
{
    struct hf_stamped lock;
    uint64_t seen;
    uint64_t stale;
    uint64_t mine;
    uint64_t other;

    CHECK_EQ(hf_stamped_init(&lock, NULL), HF_OK);
    /* From an optimistic stamp. */
    stale = seen = hf_stamped_optimistic(&lock);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &other), HF_OK);
    CHECK_EQ(hf_stamped_to_write(&lock, &seen), HF_TIMEOUT);
    CHECK(hf_stamped_validate(&lock, seen));
    CHECK_EQ(hf_stamped_unlock(&lock, other), HF_OK);
    CHECK_EQ(hf_stamped_to_write(&lock, &seen), HF_OK);
    CHECK_EQ(hf_stamped_to_write(&lock, &seen), HF_OK);
    CHECK_EQ(hf_stamped_optimistic(&lock), 0);
    CHECK_EQ(hf_stamped_to_write(&lock, &stale), HF_CANCELLED);
    CHECK_EQ(hf_stamped_unlock(&lock, seen), HF_OK);
    CHECK_EQ(hf_stamped_to_write(&lock, &stale), HF_CANCELLED);
    CHECK_EQ(hf_stamped_to_write(&lock, &seen), HF_INVALID);
    /* From a reader. */
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &mine), HF_OK);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &other), HF_OK);
    CHECK_EQ(hf_stamped_to_write(&lock, &mine), HF_TIMEOUT);
    CHECK_EQ(hf_stamped_unlock(&lock, other), HF_OK);
    CHECK_EQ(hf_stamped_to_write(&lock, &mine), HF_OK);
    CHECK_EQ(hf_stamped_unlock(&lock, other), HF_INVALID);
    CHECK_EQ(hf_stamped_unlock(&lock, mine), HF_OK);
    CHECK_EQ(hf_stamped_to_write(&lock, &other), HF_INVALID);
    CHECK_EQ(lock.lock.state.value, 0);
    hf_stamped_destroy(&lock);
}

TEST(to_read_keeps_what_was_seen)
{
    struct hf_stamped lock;
    uint64_t seen;
    uint64_t stale;
    uint64_t mine;

    CHECK_EQ(hf_stamped_init(&lock, NULL), HF_OK);
    stale = seen = hf_stamped_optimistic(&lock);
    CHECK_EQ(hf_stamped_to_read(&lock, &seen), HF_OK);
    CHECK_EQ(hf_stamped_to_read(&lock, &seen), HF_OK);
    CHECK_EQ(hf_stamped_unlock(&lock, seen), HF_OK);
    /* From a writer: others may read, the version has gone on. */
    CHECK_EQ(hf_stamped_lock_write(&lock, HF_NOW, &mine), HF_OK);
    CHECK_EQ(hf_stamped_to_read(&lock, &stale), HF_CANCELLED);
    CHECK_EQ(hf_stamped_to_read(&lock, &mine), HF_OK);
    CHECK(hf_stamped_optimistic(&lock) != 0);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &seen), HF_OK);
    CHECK_EQ(hf_stamped_to_read(&lock, &stale), HF_CANCELLED);
    CHECK_EQ(hf_stamped_unlock(&lock, seen), HF_OK);
    CHECK_EQ(hf_stamped_unlock(&lock, mine), HF_OK);
    CHECK_EQ(lock.lock.state.value, 0);
    hf_stamped_destroy(&lock);
}

TEST(shut_stops_locking_and_not_looking)
{
    struct hf_stamped lock;
    struct hf_stamped_stats stats;
    uint64_t seen;
    uint64_t mine;
    uint64_t held;

    CHECK_EQ(hf_stamped_init(&lock, NULL), HF_OK);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_NOW, &held), HF_OK);
    hf_stamped_shutdown(&lock);
    CHECK_EQ(hf_stamped_lock_read(&lock, HF_FOREVER, &mine), HF_CLOSED);
    CHECK_EQ(hf_stamped_lock_write(&lock, HF_FOREVER, &mine), HF_CLOSED);
    seen = hf_stamped_optimistic(&lock);
    CHECK(hf_stamped_validate(&lock, seen));
    CHECK_EQ(hf_stamped_to_write(&lock, &seen), HF_CLOSED);
    CHECK_EQ(hf_stamped_to_read(&lock, &seen), HF_CLOSED);
    CHECK_EQ(hf_stamped_to_write(&lock, &held), HF_CLOSED);
    CHECK_EQ(hf_stamped_unlock(&lock, held), HF_OK);
    hf_stamped_stats(&lock, &stats);
    CHECK(stats.lock.shutdown);
    CHECK_EQ(stats.writes, 0);
    hf_stamped_destroy(&lock);
}

TEST(guarded_words_are_read_and_written)
{
    struct hf_atomic_u64 wide = {0};
    struct hf_atomic_u32 narrow = {0};
    struct hf_atomic_ptr pointer = {NULL};

    hf_stamped_store_u64(&wide, UINT64_MAX - 1);
    hf_stamped_store_u32(&narrow, UINT32_MAX - 1);
    hf_stamped_store_ptr(&pointer, &wide);
    CHECK(hf_stamped_load_u64(&wide) == UINT64_MAX - 1);
    CHECK_EQ(hf_stamped_load_u32(&narrow), UINT32_MAX - 1);
    CHECK(hf_stamped_load_ptr(&pointer) == &wide);
}
