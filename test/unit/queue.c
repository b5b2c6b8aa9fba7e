/* queue.c - tests of the unbounded queue in one thread, and of its memory. */
#include "holdfast/queue.h"

#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"
#include "support/test.h"
#include "support/threads.h"

static struct hf_queue *open_queue(uint32_t segment)
{
    struct hf_queue *queue = NULL;
    struct hf_queue_opts opts = {.name = "orders", .segment = segment};

    CHECK_EQ(hf_queue_open(&queue, &opts), HF_OK);
    return queue;
}

static void *item_of(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static void put(struct hf_queue *queue, uint64_t from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        CHECK_EQ(hf_queue_put(queue, item_of(from + i)), HF_OK);
}

static void take(struct hf_queue *queue, uint64_t from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *item = NULL;
        CHECK_EQ(hf_queue_take(queue, &item), HF_OK);
        CHECK(item == item_of(from + i));
    }
}

static void check_empty(struct hf_queue *queue)
{
    void *item = queue;

    CHECK_EQ(hf_queue_take(queue, &item), HF_EMPTY);
    CHECK(item == queue); /* as it was */
    CHECK_EQ(hf_queue_size(queue), 0);
}

TEST(items_come_out_in_the_order_in_which_they_went_in)
{
    static const uint32_t segments[] = {0, 2, 4, 64, HF_QUEUE_SEGMENT_MAX};

    for (size_t i = 0; i < sizeof segments / sizeof segments[0]; i++) {
        struct hf_queue *queue = open_queue(segments[i]);
        uint64_t in = 1;
        uint64_t out = 1;
        check_empty(queue);
        for (uint64_t round = 1; round <= 200; round++) {
            put(queue, in, round);
            in += round;
            CHECK_EQ(hf_queue_size(queue), in - out);
            take(queue, out, round / 2 + 1);
            out += round / 2 + 1;
            CHECK_EQ(hf_queue_size(queue), in - out);
        }
        take(queue, out, in - out);
        check_empty(queue);
        hf_queue_close(queue);
    }
}

TEST(empty_is_told_at_every_place_of_a_segment)
{
    struct hf_queue *queue = open_queue(4);

    for (uint64_t i = 1; i < 40; i++) {
        check_empty(queue);
        put(queue, i, 1);
        CHECK_EQ(hf_queue_size(queue), 1);
        take(queue, i, 1);
    }
    check_empty(queue);
    hf_queue_close(queue);
}

TEST(bad_input_is_refused)
{
    struct hf_queue *queue = NULL;
    struct hf_queue_stats stats;
    void *item = NULL;
    static const uint32_t bad[] = {1,   3,          6,
                                   100, UINT32_MAX, 2 * HF_QUEUE_SEGMENT_MAX};

    CHECK_EQ(hf_queue_open(NULL, NULL), HF_INVALID);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hf_queue_opts opts = {.segment = bad[i]};
        CHECK_EQ(hf_queue_open(&queue, &opts), HF_INVALID);
        CHECK(queue == NULL);
    }
    CHECK_EQ(hf_queue_put(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_queue_take(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_queue_size(NULL), 0);
    hf_queue_stats(NULL, &stats);
    CHECK_EQ(stats.segments, 0);
    hf_queue_close(NULL);

    queue = open_queue(0);
    CHECK_EQ(hf_queue_put(queue, NULL), HF_INVALID);
    CHECK_EQ(hf_queue_take(queue, NULL), HF_INVALID);
    hf_queue_stats(queue, NULL);
    check_empty(queue);
    hf_queue_close(queue);
}

TEST(what_cannot_be_had_changes_nothing)
{
    struct hf_queue *queue = NULL;
    uint64_t count = 0;

    for (;; count++) {
        hf_memory_fail_after(count);
        enum hf_status status = hf_queue_open(&queue, NULL);
        hf_memory_fail_never();
        if (status == HF_OK)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK(queue == NULL);
    }
    CHECK(count >= 2);
    hf_queue_close(queue);

    queue = open_queue(4);
    put(queue, 1, 4);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_queue_put(queue, item_of(5)), HF_NOMEM);
    CHECK_EQ(hf_queue_put(queue, item_of(5)), HF_NOMEM);
    CHECK_EQ(hf_queue_size(queue), 4);
    hf_memory_fail_never();
    put(queue, 5, 4);
    take(queue, 1, 8);
    check_empty(queue);
    hf_queue_close(queue);
}

/* More threads than the queue knows from the start. */
#define THREADS 20

struct first_calls {
    struct hf_queue *queue;
    pthread_barrier_t together;
    struct hf_atomic_u32 nomem;
    struct hf_atomic_u32 wrong;
};

static void first_call(void *context, int index)
{
    struct first_calls *calls = context;
    void *item = NULL;

    (void)index;
    (void)hf_thread_slot();
    pthread_barrier_wait(&calls->together); /* each has its slot */
    hf_memory_fail_after(0);
    enum hf_status taken = hf_queue_take(calls->queue, &item);
    enum hf_status put = hf_queue_put(calls->queue, calls);
    (void)hf_queue_size(calls->queue);
    hf_memory_fail_never();
    /* Relaxed: read after the join. */
    if (put == HF_NOMEM && taken == HF_NOMEM)
        hf_u32_add(&calls->nomem, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&calls->together);
    if (put != HF_OK && hf_queue_put(calls->queue, calls) != HF_OK)
        hf_u32_add(&calls->wrong, 1, __ATOMIC_RELAXED);
}

TEST(a_threads_first_call_may_lack_memory_and_the_next_one_not)
{
    struct first_calls calls = {.queue = open_queue(0)};

    CHECK_EQ(pthread_barrier_init(&calls.together, NULL, THREADS), 0);
    test_threads(THREADS, first_call, &calls);
    pthread_barrier_destroy(&calls.together);
    CHECK(hf_u32_load(&calls.nomem, __ATOMIC_RELAXED) > 0);
    CHECK_EQ(hf_u32_load(&calls.wrong, __ATOMIC_RELAXED), 0);
    hf_queue_close(calls.queue); /* items are inside */
}

TEST(after_a_burst_the_memory_goes_back)
{
    struct hf_queue *queue = open_queue(0);
    struct hf_queue_stats stats;
    const uint64_t items = 1000000;

    put(queue, 1, items);
    hf_queue_stats(queue, &stats);
    CHECK_EQ(stats.size, items);
    CHECK(stats.segments >= items / HF_QUEUE_SEGMENT);
    CHECK(stats.segments <= items / HF_QUEUE_SEGMENT + 2);
    CHECK_EQ(stats.spare, 0);
    take(queue, 1, items);
    check_empty(queue);
    hf_queue_stats(queue, &stats);
    CHECK_EQ(stats.size, 0);
    CHECK_EQ(stats.retired, 0);
    CHECK_EQ(stats.segments, stats.spare + 1);
    CHECK(stats.segments <= 20);
    hf_queue_close(queue);
}

TEST(a_steady_flow_allocates_nothing)
{
    struct hf_queue *queue = open_queue(64);

    put(queue, 1, 100);
    uint64_t in = 101;
    uint64_t out = 1;
    uint64_t before = 0;
    for (int i = 0; i < 100000; i++, in++, out++) {
        put(queue, in, 1);
        take(queue, out, 1);
        if (i == 1000)
            before = hf_memory_count();
    }
    CHECK_EQ(hf_memory_count(), before);
    CHECK_EQ(hf_queue_size(queue), 100);
    hf_queue_close(queue);
}

struct found {
    uint64_t depth;
    uint64_t capacity;
    unsigned rows;
};

static void look(void *context, const struct hf_inspect_row *row)
{
    struct found *found = context;

    if (strcmp(row->kind, "queue") != 0 || strcmp(row->name, "orders") != 0)
        return;
    found->rows++;
    found->depth = row->depth;
    found->capacity = row->capacity;
}

TEST(an_open_queue_is_listed)
{
    struct hf_queue *queue = open_queue(0);
    struct found found = {0};

    put(queue, 1, 3);
    CHECK_EQ(hf_inspect(look, &found), HF_OK);
    CHECK_EQ(found.rows, 1);
    CHECK_EQ(found.depth, 3);
    CHECK_EQ(found.capacity, HF_INSPECT_NONE);
    hf_queue_close(queue);
    CHECK_EQ(hf_inspect(look, &found), HF_OK);
    CHECK_EQ(found.rows, 1);
}
