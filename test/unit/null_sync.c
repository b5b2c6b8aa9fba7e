/* Tests that NULL is refused, or does nothing, in every call of the headers
 * for structures that threads share.
 *
 * Each pointer in turn is NULL and all else is good: a call that tells a status
 * says HF_INVALID, unless the header says that it may be NULL. What users pass
 * through (context, arg) is not looked at. test/system/null.sh knows which
 * calls there are. */
#include "holdfast/accumulator.h"
#include "holdfast/adder.h"
#include "holdfast/blocking.h"
#include "holdfast/deque.h"
#include "holdfast/map.h"
#include "holdfast/queue.h"
#include "holdfast/ring.h"
#include "holdfast/skipmap.h"
#include "holdfast/snapshot.h"
#include "holdfast/snapshot_list.h"
#include "holdfast/stack.h"
#include "support/test.h"

static char item[8]; /* something to point to */
static void *out;

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t accumulator_function(uint64_t a0, uint64_t a1)
{
    (void)a0;
    (void)a1;
    return 0;
}

static void map_read(void *a0, void *a1)
{
    (void)a0;
    (void)a1;
}

static enum hf_status map_make(void *a0, const void *a1, size_t a2, void **a3)
{
    (void)a0;
    (void)a1;
    (void)a2;
    (void)a3;
    return HF_OK;
}

static void *map_merge(void *a0, void *a1, void *a2)
{
    (void)a0;
    (void)a1;
    (void)a2;
    return NULL;
}

static bool map_visit(void *a0, const void *a1, size_t a2, void *a3)
{
    (void)a0;
    (void)a1;
    (void)a2;
    (void)a3;
    return false;
}

static enum hf_status snapshot_make(void *a0, const void *a1, void **a2)
{
    (void)a0;
    (void)a1;
    (void)a2;
    return HF_OK;
}

static void snapshot_changed(void *a0, const struct hf_snapshot_view *a1)
{
    (void)a0;
    (void)a1;
}

static bool snapshot_list_visit(void *a0, void *a1)
{
    (void)a0;
    (void)a1;
    return false;
}

TEST(accumulator)
{
    struct hf_accumulator accumulator;
    CHECK_EQ(hf_accumulator_init(&accumulator, larger, 0), HF_OK);

    CHECK_EQ(hf_accumulator_init(NULL, accumulator_function, 1), HF_INVALID);
    CHECK_EQ(hf_accumulator_init(&accumulator, NULL, 1), HF_INVALID);
    hf_accumulator_destroy(NULL);
    hf_accumulator_add(NULL, 1);
    CHECK_EQ(hf_accumulator_value(NULL), 0);
    CHECK_EQ(hf_accumulator_value_and_reset(NULL), 0);
    hf_accumulator_stats(NULL, &(struct hf_accumulator_stats){0});
    hf_accumulator_stats(&accumulator, NULL);
    hf_accumulator_destroy(&accumulator);
}

TEST(adder)
{
    struct hf_adder adder;
    CHECK_EQ(hf_adder_init(&adder), HF_OK);

    CHECK_EQ(hf_adder_init(NULL), HF_INVALID);
    hf_adder_destroy(NULL);
    hf_adder_add(NULL, 1);
    CHECK_EQ(hf_adder_sum(NULL), 0);
    CHECK_EQ(hf_adder_sum_and_reset(NULL), 0);
    hf_adder_stats(NULL, &(struct hf_adder_stats){0});
    hf_adder_stats(&adder, NULL);
    hf_adder_destroy(&adder);
}

TEST(blocking)
{
    struct hf_blocking *blocking;
    CHECK_EQ(hf_blocking_open(&blocking, NULL), HF_OK);

    CHECK_EQ(hf_blocking_open(NULL, &(struct hf_blocking_opts){0}), HF_INVALID);
    hf_blocking_shutdown(NULL);
    hf_blocking_close(NULL);
    CHECK_EQ(hf_blocking_put(NULL, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_put_ranked(NULL, &item, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_put_ranked(blocking, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_put_at(NULL, &item, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_put_at(blocking, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_transfer(NULL, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_transfer(blocking, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_take(NULL, &out, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_take(blocking, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_drain(NULL, &out, 1), 0);
    CHECK_EQ(hf_blocking_drain(blocking, NULL, 1), 0);
    CHECK_EQ(hf_blocking_size(NULL), 0);
    hf_blocking_stats(NULL, &(struct hf_blocking_stats){0});
    hf_blocking_stats(blocking, NULL);
    CHECK(hf_blocking_put(blocking, NULL, HF_NOW) != HF_INVALID);
    hf_blocking_close(blocking);
}

TEST(deque)
{
    struct hf_deque *deque;
    CHECK_EQ(hf_deque_open(&deque, NULL), HF_OK);

    CHECK_EQ(hf_deque_open(NULL, &(struct hf_deque_opts){0}), HF_INVALID);
    hf_deque_close(NULL);
    CHECK_EQ(hf_deque_push(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_deque_push(deque, NULL), HF_INVALID);
    CHECK_EQ(hf_deque_pop(NULL, &out), HF_INVALID);
    CHECK_EQ(hf_deque_pop(deque, NULL), HF_INVALID);
    CHECK_EQ(hf_deque_steal(NULL, &out), HF_INVALID);
    CHECK_EQ(hf_deque_steal(deque, NULL), HF_INVALID);
    CHECK_EQ(hf_deque_size(NULL), 0);
    hf_deque_stats(NULL, &(struct hf_deque_stats){0});
    hf_deque_stats(deque, NULL);
    hf_deque_close(deque);
}

TEST(map)
{
    struct hf_map *map;
    CHECK_EQ(hf_map_open(&map, NULL), HF_OK);
    CHECK_EQ(hf_map_enter(map), HF_OK);

    CHECK_EQ(hf_map_open(NULL, &(struct hf_map_opts){0}), HF_INVALID);
    hf_map_close(NULL);
    hf_map_shutdown(NULL);
    CHECK_EQ(hf_map_get(NULL, "k", 1, &out), HF_INVALID);
    CHECK_EQ(hf_map_get(map, NULL, 1, &out), HF_INVALID);
    CHECK_EQ(hf_map_read(NULL, "k", 1, map_read, &item), HF_INVALID);
    CHECK_EQ(hf_map_read(map, NULL, 1, map_read, &item), HF_INVALID);
    CHECK_EQ(hf_map_read(map, "k", 1, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_map_enter(NULL), HF_INVALID);
    hf_map_leave(NULL);
    CHECK_EQ(hf_map_put(NULL, "k", 1, &item, &out), HF_INVALID);
    CHECK_EQ(hf_map_put(map, NULL, 1, &item, &out), HF_INVALID);
    CHECK_EQ(hf_map_put(map, "k", 1, NULL, &out), HF_INVALID);
    CHECK_EQ(hf_map_put_if_absent(NULL, "k", 1, &item, &out), HF_INVALID);
    CHECK_EQ(hf_map_put_if_absent(map, NULL, 1, &item, &out), HF_INVALID);
    CHECK_EQ(hf_map_put_if_absent(map, "k", 1, NULL, &out), HF_INVALID);
    CHECK_EQ(hf_map_add(NULL, "k", 1), HF_INVALID);
    CHECK_EQ(hf_map_add(map, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_map_replace_if_equal(NULL, "k", 1, &item, &item), HF_INVALID);
    CHECK_EQ(hf_map_replace_if_equal(map, NULL, 1, &item, &item), HF_INVALID);
    CHECK_EQ(hf_map_replace_if_equal(map, "k", 1, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_map_replace_if_equal(map, "k", 1, &item, NULL), HF_INVALID);
    CHECK_EQ(hf_map_remove(NULL, "k", 1, &out), HF_INVALID);
    CHECK_EQ(hf_map_remove(map, NULL, 1, &out), HF_INVALID);
    CHECK_EQ(hf_map_remove_if_equal(NULL, "k", 1, &item), HF_INVALID);
    CHECK_EQ(hf_map_remove_if_equal(map, NULL, 1, &item), HF_INVALID);
    CHECK_EQ(hf_map_remove_if_equal(map, "k", 1, NULL), HF_INVALID);
    CHECK_EQ(
        hf_map_compute_if_absent(NULL, "k", 1, map_make, &item, HF_NOW, &out),
        HF_INVALID);
    CHECK_EQ(
        hf_map_compute_if_absent(map, NULL, 1, map_make, &item, HF_NOW, &out),
        HF_INVALID);
    CHECK_EQ(hf_map_compute_if_absent(map, "k", 1, NULL, &item, HF_NOW, &out),
             HF_INVALID);
    CHECK_EQ(hf_map_compute_if_present(NULL, "k", 1, map_make, &item, &out),
             HF_INVALID);
    CHECK_EQ(hf_map_compute_if_present(map, NULL, 1, map_make, &item, &out),
             HF_INVALID);
    CHECK_EQ(hf_map_compute_if_present(map, "k", 1, NULL, &item, &out),
             HF_INVALID);
    CHECK_EQ(hf_map_merge(NULL, "k", 1, &item, map_merge, &item, &out),
             HF_INVALID);
    CHECK_EQ(hf_map_merge(map, NULL, 1, &item, map_merge, &item, &out),
             HF_INVALID);
    CHECK_EQ(hf_map_merge(map, "k", 1, NULL, map_merge, &item, &out),
             HF_INVALID);
    CHECK_EQ(hf_map_merge(map, "k", 1, &item, NULL, &item, &out), HF_INVALID);
    CHECK_EQ(hf_map_visit(NULL, map_visit, &item), HF_INVALID);
    CHECK_EQ(hf_map_visit(map, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_map_size(NULL), 0);
    hf_map_stats(NULL, &(struct hf_map_stats){0});
    hf_map_stats(map, NULL);
    hf_map_leave(map);
    hf_map_close(map);
}

TEST(map_without_outputs)
{
    struct hf_map *map;
    CHECK_EQ(hf_map_open(&map, NULL), HF_OK);
    CHECK_EQ(hf_map_enter(map), HF_OK);

    CHECK(hf_map_get(map, "k", 1, NULL) != HF_INVALID);
    CHECK(hf_map_put(map, "k", 1, &item, NULL) != HF_INVALID);
    CHECK(hf_map_put_if_absent(map, "k", 1, &item, NULL) != HF_INVALID);
    CHECK(hf_map_remove(map, "k", 1, NULL) != HF_INVALID);
    CHECK(hf_map_compute_if_absent(map, "k", 1, map_make, &item, HF_NOW,
                                   NULL) != HF_INVALID);
    CHECK(hf_map_compute_if_present(map, "k", 1, map_make, &item, NULL) !=
          HF_INVALID);
    CHECK(hf_map_merge(map, "k", 1, &item, map_merge, &item, NULL) !=
          HF_INVALID);
    hf_map_leave(map);
    hf_map_close(map);
}

TEST(queue)
{
    struct hf_queue *queue;
    CHECK_EQ(hf_queue_open(&queue, NULL), HF_OK);
    CHECK_EQ(hf_queue_put(queue, &item), HF_OK);

    CHECK_EQ(hf_queue_open(NULL, &(struct hf_queue_opts){0}), HF_INVALID);
    hf_queue_close(NULL);
    CHECK_EQ(hf_queue_put(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_queue_put(queue, NULL), HF_INVALID);
    CHECK_EQ(hf_queue_take(NULL, &out), HF_INVALID);
    CHECK_EQ(hf_queue_take(queue, NULL), HF_INVALID);
    CHECK_EQ(hf_queue_size(NULL), 0);
    hf_queue_stats(NULL, &(struct hf_queue_stats){0});
    hf_queue_stats(queue, NULL);
    hf_queue_close(queue);
}

TEST(ring)
{
    struct hf_ring *ring;
    CHECK_EQ(hf_ring_open(&ring, NULL), HF_OK);
    CHECK_EQ(hf_ring_put(ring, &item), HF_OK);

    CHECK_EQ(hf_ring_open(NULL, &(struct hf_ring_opts){0}), HF_INVALID);
    hf_ring_close(NULL);
    CHECK_EQ(hf_ring_put(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_ring_put(ring, NULL), HF_INVALID);
    CHECK_EQ(hf_ring_take(NULL, &out), HF_INVALID);
    CHECK_EQ(hf_ring_take(ring, NULL), HF_INVALID);
    CHECK_EQ(hf_ring_put_many(NULL, &out, 1), 0);
    CHECK_EQ(hf_ring_put_many(ring, NULL, 1), 0);
    CHECK_EQ(hf_ring_take_many(NULL, &out, 1), 0);
    CHECK_EQ(hf_ring_take_many(ring, NULL, 1), 0);
    CHECK_EQ(hf_ring_size(NULL), 0);
    hf_ring_stats(NULL, &(struct hf_ring_stats){0});
    hf_ring_stats(ring, NULL);
    hf_ring_close(ring);
}

TEST(skipmap)
{
    struct hf_skipmap *skipmap;
    CHECK_EQ(hf_skipmap_open(&skipmap, NULL), HF_OK);
    CHECK_EQ(hf_skipmap_put(skipmap, "k", 1, &item, NULL), HF_OK);
    CHECK_EQ(hf_skipmap_enter(skipmap), HF_OK);

    CHECK_EQ(hf_skipmap_open(NULL, &(struct hf_skipmap_opts){0}), HF_INVALID);
    hf_skipmap_close(NULL);
    CHECK_EQ(hf_skipmap_get(NULL, "k", 1, &out), HF_INVALID);
    CHECK_EQ(hf_skipmap_get(skipmap, NULL, 1, &out), HF_INVALID);
    CHECK_EQ(hf_skipmap_read(NULL, "k", 1, map_read, &item), HF_INVALID);
    CHECK_EQ(hf_skipmap_read(skipmap, NULL, 1, map_read, &item), HF_INVALID);
    CHECK_EQ(hf_skipmap_read(skipmap, "k", 1, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_skipmap_enter(NULL), HF_INVALID);
    hf_skipmap_leave(NULL);
    CHECK_EQ(hf_skipmap_put(NULL, "k", 1, &item, &out), HF_INVALID);
    CHECK_EQ(hf_skipmap_put(skipmap, NULL, 1, &item, &out), HF_INVALID);
    CHECK_EQ(hf_skipmap_put(skipmap, "k", 1, NULL, &out), HF_INVALID);
    CHECK_EQ(hf_skipmap_put_if_absent(NULL, "k", 1, &item, &out), HF_INVALID);
    CHECK_EQ(hf_skipmap_put_if_absent(skipmap, NULL, 1, &item, &out),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_put_if_absent(skipmap, "k", 1, NULL, &out), HF_INVALID);
    CHECK_EQ(hf_skipmap_replace_if_equal(NULL, "k", 1, &item, &item),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_replace_if_equal(skipmap, NULL, 1, &item, &item),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_replace_if_equal(skipmap, "k", 1, &item, NULL),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_remove(NULL, "k", 1, &out), HF_INVALID);
    CHECK_EQ(hf_skipmap_remove(skipmap, NULL, 1, &out), HF_INVALID);
    CHECK_EQ(hf_skipmap_remove_if_equal(NULL, "k", 1, &item), HF_INVALID);
    CHECK_EQ(hf_skipmap_remove_if_equal(skipmap, NULL, 1, &item), HF_INVALID);
    hf_skipmap_leave(skipmap);
    hf_skipmap_close(skipmap);
}

TEST(skipmap_in_order)
{
    struct hf_skipmap *skipmap;
    struct hf_skipmap_entry entry;
    CHECK_EQ(hf_skipmap_open(&skipmap, NULL), HF_OK);
    CHECK_EQ(hf_skipmap_put(skipmap, "k", 1, &item, NULL), HF_OK);
    CHECK_EQ(hf_skipmap_enter(skipmap), HF_OK);

    CHECK_EQ(hf_skipmap_first(NULL, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_first(skipmap, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_last(NULL, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_last(skipmap, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_floor(NULL, "k", 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_floor(skipmap, NULL, 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_floor(skipmap, "k", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_lower(NULL, "k", 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_lower(skipmap, NULL, 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_lower(skipmap, "k", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_ceiling(NULL, "k", 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_ceiling(skipmap, NULL, 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_ceiling(skipmap, "k", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_higher(NULL, "k", 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_higher(skipmap, NULL, 1, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_higher(skipmap, "k", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_take_first(NULL, &entry), HF_INVALID);
    CHECK_EQ(hf_skipmap_take_first(skipmap, NULL), HF_INVALID);
    CHECK_EQ(hf_skipmap_visit(NULL, "k", 1, "k", 1, map_visit, &item),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_visit(skipmap, NULL, 1, "k", 1, map_visit, &item),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_visit(skipmap, "k", 1, NULL, 1, map_visit, &item),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_visit(skipmap, "k", 1, "k", 1, NULL, &item),
             HF_INVALID);
    CHECK_EQ(hf_skipmap_size(NULL), 0);
    hf_skipmap_stats(NULL, &(struct hf_skipmap_stats){0});
    hf_skipmap_stats(skipmap, NULL);
    hf_skipmap_key_u64(NULL, 1);
    CHECK_EQ(hf_skipmap_u64_of(NULL), 0);
    CHECK(hf_skipmap_get(skipmap, "k", 1, NULL) != HF_INVALID);
    CHECK(hf_skipmap_put(skipmap, "k", 1, &item, NULL) != HF_INVALID);
    CHECK(hf_skipmap_put_if_absent(skipmap, "k", 1, &item, NULL) != HF_INVALID);
    CHECK(hf_skipmap_replace_if_equal(skipmap, "k", 1, NULL, &item) !=
          HF_INVALID);
    CHECK(hf_skipmap_remove(skipmap, "k", 1, NULL) != HF_INVALID);
    CHECK(hf_skipmap_remove_if_equal(skipmap, "k", 1, NULL) != HF_INVALID);
    hf_skipmap_leave(skipmap);
    hf_skipmap_close(skipmap);
}

TEST(snapshot)
{
    struct hf_snapshot *snapshot;
    struct hf_snapshot_view view;
    CHECK_EQ(hf_snapshot_open(&snapshot, &item, NULL), HF_OK);

    CHECK_EQ(hf_snapshot_open(NULL, &item, &(struct hf_snapshot_opts){0}),
             HF_INVALID);
    hf_snapshot_close(NULL);
    CHECK_EQ(hf_snapshot_read(NULL, &view), HF_INVALID);
    CHECK_EQ(hf_snapshot_read(snapshot, NULL), HF_INVALID);
    hf_snapshot_leave(NULL);
    CHECK_EQ(hf_snapshot_set(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_snapshot_update(NULL, snapshot_make, &item), HF_INVALID);
    CHECK_EQ(hf_snapshot_update(snapshot, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_snapshot_listen(NULL, snapshot_changed, &item, &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_snapshot_listen(snapshot, NULL, &item, &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_snapshot_listen(snapshot, snapshot_changed, &item, NULL),
             HF_INVALID);
    CHECK_EQ(hf_snapshot_unlisten(NULL, 1), HF_INVALID);
    hf_snapshot_flush(NULL);
    hf_snapshot_stats(NULL, &(struct hf_snapshot_stats){0});
    hf_snapshot_stats(snapshot, NULL);
    CHECK(hf_snapshot_set(snapshot, NULL) != HF_INVALID);
    hf_snapshot_close(snapshot);
}

TEST(snapshot_list)
{
    struct hf_snapshot_list *snapshot_list;
    CHECK_EQ(hf_snapshot_list_open(&snapshot_list, NULL), HF_OK);

    CHECK_EQ(hf_snapshot_list_open(NULL, &(struct hf_snapshot_list_opts){0}),
             HF_INVALID);
    hf_snapshot_list_close(NULL);
    CHECK_EQ(hf_snapshot_list_add(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_add(snapshot_list, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_remove(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_remove(snapshot_list, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_visit(NULL, snapshot_list_visit, &item),
             HF_INVALID);
    CHECK_EQ(hf_snapshot_list_visit(snapshot_list, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_contains(NULL, "k"), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_contains(snapshot_list, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_count(NULL, &(size_t){0}), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_count(snapshot_list, NULL), HF_INVALID);
    hf_snapshot_list_flush(NULL);
    hf_snapshot_list_stats(NULL, &(struct hf_snapshot_list_stats){0});
    hf_snapshot_list_stats(snapshot_list, NULL);
    hf_snapshot_list_close(snapshot_list);
}

TEST(stack)
{
    struct hf_stack *stack;
    CHECK_EQ(hf_stack_open(&stack, NULL), HF_OK);
    CHECK_EQ(hf_stack_push(stack, &item), HF_OK);

    CHECK_EQ(hf_stack_open(NULL, &(struct hf_stack_opts){0}), HF_INVALID);
    hf_stack_close(NULL);
    CHECK_EQ(hf_stack_push(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_stack_push(stack, NULL), HF_INVALID);
    CHECK_EQ(hf_stack_pop(NULL, &out), HF_INVALID);
    CHECK_EQ(hf_stack_pop(stack, NULL), HF_INVALID);
    CHECK_EQ(hf_stack_size(NULL), 0);
    hf_stack_stats(NULL, &(struct hf_stack_stats){0});
    hf_stack_stats(stack, NULL);
    hf_stack_close(stack);
}
