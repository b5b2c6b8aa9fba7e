/* ring.c - the bounded queue, one thread: every mode answers alike. */
#include "holdfast/ring.h"

#include "base/memory.h"
#include "support/test.h"

static struct hf_ring *ring;

static void *item(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static void start(uint64_t capacity, enum hf_ring_mode mode)
{
    struct hf_ring_opts opts = {
        .name = "tested", .capacity = capacity, .mode = mode};
    CHECK_EQ(hf_ring_open(&ring, &opts), HF_OK);
}

static uint64_t take(void)
{
    void *taken = NULL;

    CHECK_EQ(hf_ring_take(ring, &taken), HF_OK);
    return (uint64_t)(uintptr_t)taken;
}

#define FOR_EACH_MODE(mode) \
    for (enum hf_ring_mode mode = HF_RING_MPMC; mode <= HF_RING_SPMC; mode++)

TEST(takes_in_the_order_of_puts_in_every_mode)
{
    FOR_EACH_MODE(mode)
    {
        start(8, mode);
        for (uint64_t i = 1; i <= 5; i++)
            CHECK_EQ(hf_ring_put(ring, item(i)), HF_OK);
        for (uint64_t i = 1; i <= 5; i++)
            CHECK_EQ(take(), i);
        hf_ring_close(ring);
    }
}

/* Capacities that are no power of two, and one; laps enough to wrap. */
TEST(is_full_at_its_capacity_exactly)
{
    static const uint64_t capacities[] = {1, 2, 3, 5, 8, 13, 100};

    FOR_EACH_MODE(mode)
    {
        for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
            uint64_t capacity = capacities[c];
            uint64_t next_put = 1;
            uint64_t next_take = 1;
            void *none = NULL;

            start(capacity, mode);
            for (int lap = 0; lap < 10; lap++) {
                CHECK_EQ(hf_ring_take(ring, &none), HF_EMPTY);
                CHECK(none == NULL);
                for (uint64_t i = 0; i < capacity; i++) {
                    CHECK_EQ(hf_ring_size(ring), i);
                    CHECK_EQ(hf_ring_put(ring, item(next_put++)), HF_OK);
                }
                CHECK_EQ(hf_ring_put(ring, item(9999)), HF_FULL);
                CHECK_EQ(hf_ring_size(ring), capacity);
                /* One out, one in: the laps shift against the array. */
                CHECK_EQ(take(), next_take++);
                CHECK_EQ(hf_ring_put(ring, item(next_put++)), HF_OK);
                CHECK_EQ(hf_ring_put(ring, item(9999)), HF_FULL);
                for (uint64_t i = 0; i < capacity; i++)
                    CHECK_EQ(take(), next_take++);
            }
            hf_ring_close(ring);
        }
    }
}

TEST(many_at_once_go_as_far_as_there_is_room)
{
    void *in[8];
    void *out[8];

    FOR_EACH_MODE(mode)
    {
        start(5, mode);
        for (uint64_t lap = 0; lap < 20; lap++) {
            for (uint64_t i = 0; i < 8; i++)
                in[i] = item(lap * 8 + i + 1);
            CHECK_EQ(hf_ring_put_many(ring, in, 3), 3);
            CHECK_EQ(hf_ring_put_many(ring, in + 3, 5), 2);
            CHECK_EQ(hf_ring_put_many(ring, in + 5, 3), 0);
            CHECK_EQ(hf_ring_take_many(ring, out, 2), 2);
            CHECK_EQ(hf_ring_take_many(ring, out + 2, 6), 3);
            CHECK_EQ(hf_ring_take_many(ring, out + 5, 3), 0);
            for (int i = 0; i < 5; i++)
                CHECK(out[i] == in[i]);
        }
        CHECK_EQ(hf_ring_put_many(ring, in, 0), 0);
        CHECK_EQ(hf_ring_take_many(ring, out, 0), 0);
        in[2] = NULL; /* ends the list */
        CHECK_EQ(hf_ring_put_many(ring, in, 8), 2);
        CHECK_EQ(hf_ring_size(ring), 2);
        hf_ring_close(ring);
    }
}

TEST(statistics_count_items_and_refusals)
{
    struct hf_ring_stats stats;
    void *items[4] = {item(1), item(2), item(3), item(4)};

    FOR_EACH_MODE(mode)
    {
        start(3, mode);
        CHECK_EQ(hf_ring_put_many(ring, items, 4), 3);
        CHECK_EQ(hf_ring_put(ring, item(9)), HF_FULL);
        take();
        hf_ring_stats(ring, &stats);
        CHECK_EQ(stats.capacity, 3);
        CHECK_EQ(stats.size, 2);
        CHECK_EQ(stats.puts, 3);
        CHECK_EQ(stats.takes, 1);
        CHECK_EQ(stats.refused, 2);
        hf_ring_stats(ring, NULL);
        hf_ring_stats(NULL, &stats);
        CHECK_EQ(stats.capacity, 0);
        CHECK_EQ(hf_ring_size(NULL), 0);
        hf_ring_close(ring);
    }
}

TEST(bad_input_is_refused_and_changes_nothing)
{
    struct hf_ring_opts opts = {.capacity = HF_RING_CAPACITY_MAX + 1};
    struct hf_ring *untouched = NULL;
    void *items[1] = {item(1)};
    void *taken;

    CHECK_EQ(hf_ring_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_ring_open(&untouched, &opts), HF_INVALID);
    opts.capacity = UINT64_MAX;
    CHECK_EQ(hf_ring_open(&untouched, &opts), HF_INVALID);
    opts.capacity = 4;
    opts.mode = (enum hf_ring_mode)4;
    CHECK_EQ(hf_ring_open(&untouched, &opts), HF_INVALID);
    CHECK(untouched == NULL);
    FOR_EACH_MODE(mode)
    {
        start(2, mode);
        CHECK_EQ(hf_ring_put(ring, NULL), HF_INVALID);
        CHECK_EQ(hf_ring_put(NULL, item(1)), HF_INVALID);
        CHECK_EQ(hf_ring_take(ring, NULL), HF_INVALID);
        CHECK_EQ(hf_ring_take(NULL, &taken), HF_INVALID);
        CHECK_EQ(hf_ring_put_many(NULL, items, 1), 0);
        CHECK_EQ(hf_ring_put_many(ring, NULL, 1), 0);
        CHECK_EQ(hf_ring_take_many(NULL, items, 1), 0);
        CHECK_EQ(hf_ring_take_many(ring, NULL, 1), 0);
        CHECK_EQ(hf_ring_size(ring), 0);
        hf_ring_close(ring);
    }
    hf_ring_close(NULL);
}

TEST(options_have_defaults)
{
    struct hf_ring_stats stats;

    CHECK_EQ(hf_ring_open(&ring, NULL), HF_OK);
    hf_ring_stats(ring, &stats);
    CHECK_EQ(stats.capacity, HF_RING_CAPACITY_DEFAULT);
    hf_ring_close(ring);
}

TEST(the_largest_ring_opens)
{
    start(HF_RING_CAPACITY_MAX, HF_RING_MPMC);
    CHECK_EQ(hf_ring_put(ring, item(1)), HF_OK);
    CHECK_EQ(take(), 1);
    hf_ring_close(ring);
}

TEST(open_without_memory_leaves_nothing)
{
    FOR_EACH_MODE(mode)
    {
        struct hf_ring_opts opts = {.capacity = 4, .mode = mode};
        enum hf_status status = HF_NOMEM;

        for (uint64_t allowed = 0; status != HF_OK; allowed++) {
            ring = NULL;
            hf_memory_fail_after(allowed);
            status = hf_ring_open(&ring, &opts);
            hf_memory_fail_never();
            CHECK(status == HF_OK || (status == HF_NOMEM && ring == NULL));
            CHECK(allowed < 10);
        }
        /* Thread slots are low here: the work itself needs no memory. */
        hf_memory_fail_after(0);
        enum hf_status put = hf_ring_put(ring, item(7));
        uint64_t taken = put == HF_OK ? take() : 0;
        hf_memory_fail_never();
        CHECK_EQ(put, HF_OK);
        CHECK_EQ(taken, 7);
        hf_ring_close(ring);
    }
}

static struct hf_inspect_row found;

static void find(void *context, const struct hf_inspect_row *row)
{
    (void)context;
    if (strcmp(row->kind, "ring") == 0 && strcmp(row->name, "tested") == 0)
        found = *row;
}

TEST(is_listed_while_it_is_open)
{
    memset(&found, 0, sizeof found);
    start(2, HF_RING_MPMC);
    for (uint64_t i = 1; i <= 3; i++)
        hf_ring_put(ring, item(i));
    CHECK_EQ(hf_inspect(find, NULL), HF_OK);
    CHECK_EQ(found.depth, 2);
    CHECK_EQ(found.capacity, 2);
    CHECK_EQ(found.rejected, 1);
    CHECK_EQ(found.oldest_ns, HF_INSPECT_NONE);
    hf_ring_close(ring);
    memset(&found, 0, sizeof found);
    CHECK_EQ(hf_inspect(find, NULL), HF_OK);
    CHECK_EQ(found.capacity, 0);
}
