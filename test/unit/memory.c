/* memory.c - tests of the allocator's door and its fault injection. */
#include "base/memory.h"

#include "support/test.h"
#include "support/threads.h"

TEST(what_is_allocated_can_be_written_and_freed)
{
    char *memory = hf_alloc(100);

    CHECK(memory != NULL);
    memset(memory, 1, 100);
    hf_free(memory);
    hf_free(NULL);
}

TEST(zeroed_memory_is_zero)
{
    char *dirty = hf_alloc(4096);

    CHECK(dirty != NULL);
    memset(dirty, 0xff, 4096);
    hf_free(dirty); /* so that the next one may well be this one */
    char *memory = hf_alloc_zeroed(4096);
    CHECK(memory != NULL);
    for (int i = 0; i < 4096; i++)
        CHECK_EQ(memory[i], 0);
    hf_free(memory);
}

TEST(realloc_keeps_the_content)
{
    char *memory = hf_realloc(NULL, 4);

    CHECK(memory != NULL);
    memcpy(memory, "abc", 4);
    memory = hf_realloc(memory, 1 << 20);
    CHECK(memory != NULL);
    CHECK_TEXT(memory, 4 - 1, "abc");
    hf_free(memory);
}

TEST(aligned_memory_is_aligned)
{
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        void *memory = hf_alloc_aligned(alignment, alignment * 3);
        CHECK(memory != NULL);
        CHECK_EQ((uintptr_t)memory % alignment, 0);
        memset(memory, 1, alignment * 3);
        hf_free(memory);
    }
}

static void *by_alloc(void)
{
    return hf_alloc(8);
}

static void *by_alloc_zeroed(void)
{
    return hf_alloc_zeroed(8);
}

static void *by_realloc(void)
{
    return hf_realloc(NULL, 8);
}

static void *by_alloc_aligned(void)
{
    return hf_alloc_aligned(64, 64);
}

static void *(*const doors[])(void) = {by_alloc, by_alloc_zeroed, by_realloc,
                                       by_alloc_aligned};
#define DOOR_COUNT (sizeof doors / sizeof doors[0])

TEST(every_door_is_counted_and_can_be_made_to_fail)
{
    for (size_t i = 0; i < DOOR_COUNT; i++) {
        uint64_t before = hf_memory_count();
        void *memory = doors[i]();
        CHECK(memory != NULL);
        hf_free(memory);
        CHECK_EQ(hf_memory_count(), before + 1);
        hf_memory_fail_after(0);
        memory = doors[i]();
        hf_memory_fail_never();
        CHECK(memory == NULL);
    }
}

TEST(failing_starts_after_the_given_count_and_goes_on)
{
    void *memory[6];

    hf_memory_fail_after(3);
    for (size_t i = 0; i < 6; i++)
        memory[i] = doors[i % DOOR_COUNT]();
    hf_memory_fail_never();
    for (size_t i = 0; i < 6; i++) {
        CHECK_EQ(memory[i] != NULL, i < 3);
        hf_free(memory[i]);
    }
    void *again = hf_alloc(1);
    CHECK(again != NULL);
    hf_free(again);
}

TEST(a_realloc_that_fails_leaves_the_old_memory)
{
    char *memory = hf_alloc(4);

    CHECK(memory != NULL);
    memcpy(memory, "abc", 4);
    hf_memory_fail_after(0);
    void *larger = hf_realloc(memory, 1000);
    hf_memory_fail_never();
    CHECK(larger == NULL);
    CHECK_TEXT(memory, 3, "abc");
    hf_free(memory);
}

#define THREADS    4
#define PER_THREAD 1000

static void allocate_many(void *context, int index)
{
    uint64_t *succeeded = context;

    for (int i = 0; i < PER_THREAD; i++) {
        void *memory = hf_alloc(16);
        succeeded[index] += memory != NULL;
        hf_free(memory);
    }
}

TEST(a_failure_is_of_the_thread_that_asked_for_it)
{
    uint64_t succeeded[THREADS] = {0};
    uint64_t before = hf_memory_count();

    hf_memory_fail_after(0);
    test_threads(THREADS, allocate_many, succeeded);
    void *own = hf_alloc(16);
    hf_memory_fail_never();
    CHECK(own == NULL);
    CHECK_EQ(hf_memory_count() - before, 1);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(succeeded[i], PER_THREAD);
}

TEST(one_allocation_fails_alone)
{
    for (uint64_t at = 0; at < 3; at++) {
        hf_memory_fail_once(at);
        for (uint64_t i = 0; i < 5; i++) {
            void *memory = hf_alloc(8);
            CHECK_EQ(memory == NULL, i == at);
            hf_free(memory);
        }
    }
    hf_memory_fail_once(0);
    hf_memory_fail_never();
    void *memory = hf_alloc(8);
    CHECK(memory != NULL);
    hf_free(memory);
    hf_memory_fail_once(0);
    hf_memory_fail_after(0); /* the last one counts */
    CHECK(hf_alloc(8) == NULL);
    CHECK(hf_alloc(8) == NULL);
    hf_memory_fail_never();
}
