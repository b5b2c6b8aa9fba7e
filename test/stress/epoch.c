/* epoch.c - real threads read and replace nodes, some stopped in the middle.
 *
 * tests: also under sanitizers
 *
 * A table of links; each thread follows links and puts new nodes in the place
 * of old ones. A node is checked while it is read: freed memory is marked
 * before it goes back to the allocator, and ASan sees what comes after.
 */
#include "holdfast/epoch.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/random.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define LINKS   64
#define ALIVE   0x600df00du
#define THREADS 32

struct node {
    struct hf_epoch_node epoch_node;
    struct hf_atomic_u32 state; /* (a) ALIVE until it is freed */
};

static struct {
    struct hf_epoch *epoch;
    struct hf_atomic_ptr links[LINKS];
    struct hf_atomic_u64 made;
    struct hf_atomic_u64 freed;
    struct hf_atomic_u64 late; /* reads of a node that was freed */
    struct hf_atomic_u32 stop;
} table;

static void node_free(void *context, struct hf_epoch_node *node)
{
    (void)context;
    hf_u32_store(&((struct node *)node)->state, 0, __ATOMIC_RELAXED);
    hf_u64_add(&table.freed, 1, __ATOMIC_RELAXED);
    hf_free(node);
}

static void step(struct hf_random *random)
{
    struct hf_atomic_ptr *link = &table.links[hf_random_below(random, LINKS)];
    struct hf_epoch_reader *reader = hf_epoch_enter(table.epoch);

    for (int i = 0; i < 3; i++) {
        struct node *node = hf_epoch_load(reader, link);
        if (node != NULL &&
            hf_u32_load(&node->state, __ATOMIC_RELAXED) != ALIVE)
            hf_u64_add(&table.late, 1, __ATOMIC_RELAXED);
    }
    struct node *fresh = hf_alloc(sizeof *fresh);
    hf_u64_add(&table.made, 1, __ATOMIC_RELAXED);
    hf_u32_store(&fresh->state, ALIVE, __ATOMIC_RELAXED);
    hf_epoch_born(reader, &fresh->epoch_node);
    struct node *old = hf_ptr_swap(link, fresh, __ATOMIC_SEQ_CST);
    if (old != NULL)
        hf_epoch_retire(reader, &old->epoch_node);
    hf_epoch_leave(reader);
}

static int steps(void)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0' ? 2000 : 20000;
}

static void work(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = steps(); i > 0; i--)
        step(&random);
}

static void open_table(void)
{
    const struct hf_epoch_opts opts = {.free = node_free};

    memset(&table, 0, sizeof table);
    CHECK_EQ(hf_epoch_open(&table.epoch, &opts), HF_OK);
}

/* Ends the table; every node was freed once, those still linked by us. */
static void close_table(void)
{
    for (int i = 0; i < LINKS; i++) {
        struct node *node = table.links[i].value;
        if (node != NULL)
            node_free(NULL, &node->epoch_node);
    }
    hf_epoch_close(table.epoch);
    CHECK_EQ(table.late.value, 0);
    CHECK_EQ(table.freed.value, table.made.value);
}

TEST(each_node_is_freed_once_with_more_threads_than_processors)
{
    open_table();
    test_threads(THREADS, work, NULL);
    close_table();
}

static void *work_until_stopped(void *context)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed());
    while (!hf_u32_load(&table.stop, __ATOMIC_RELAXED))
        step(&random);
    return NULL;
}

TEST(a_stopped_thread_stops_nobody_and_garbage_stays_bounded)
{
    struct hf_epoch_stats stats;
    pthread_t thread;

    open_table();
    stall_init();
    CHECK_EQ(pthread_create(&thread, NULL, work_until_stopped, NULL), 0);
    for (int i = 0; i < 20; i++) {
        struct stall *stall = stall_stop(thread);
        work(NULL, i);
        hf_epoch_stats(table.epoch, &stats);
        CHECK(stats.retired - stats.freed < 1000);
        stall_resume(stall);
    }
    hf_u32_store(&table.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    close_table();
}
