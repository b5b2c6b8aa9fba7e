/* snapshot_list.c - real threads add, remove and visit, one stopped meanwhile.
 *
 * tests: also under sanitizers
 *
 * Items are marked when they are freed, before their memory goes: a late
 * visitor is caught, and by ASan for sure.
 */
#include "holdfast/snapshot_list.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/random.h"
#include "support/calls.h"
#include "support/models.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define ALIVE   0x600df00du

struct item {
    struct hf_atomic_u32 state; /* (a) ALIVE until it is freed */
};

static struct {
    struct hf_snapshot_list *list;
    struct calls *history;
    struct hf_atomic_u64 made;
    struct hf_atomic_u64 freed;
    struct hf_atomic_u64 wrong;
    struct hf_atomic_u32 stop;
} rig;

static bool under_sanitizer(void)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0';
}

static int work(int plain)
{
    return under_sanitizer() ? plain / 20 : plain;
}

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&rig.wrong, 1, __ATOMIC_RELAXED);
}

static void item_free(void *context, void *item)
{
    (void)context;
    hf_u32_store(&((struct item *)item)->state, 0, __ATOMIC_RELAXED);
    hf_u64_add(&rig.freed, 1, __ATOMIC_RELAXED);
    hf_free(item);
}

static struct item *item_new(void)
{
    struct item *item = hf_alloc(sizeof *item);

    hf_u32_store(&item->state, ALIVE, __ATOMIC_RELAXED);
    hf_u64_add(&rig.made, 1, __ATOMIC_RELAXED);
    return item;
}

static bool look(void *context, void *item)
{
    size_t *count = context;

    expect(hf_u32_load(&((struct item *)item)->state, __ATOMIC_RELAXED) ==
           ALIVE);
    ++*count;
    return true;
}

static void visit(void)
{
    size_t count = 0;

    expect(hf_snapshot_list_visit(rig.list, look, &count) == HF_OK);
    expect(count <= THREADS + 2);
}

/* Each thread has at most one item in the list. */
static void come_and_go(void *context, int index)
{
    struct item *item = NULL;
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = work(20000); i > 0; i--) {
        if (hf_random_below(&random, 4) != 0) {
            visit();
        } else if (item == NULL) {
            item = item_new();
            expect(hf_snapshot_list_add(rig.list, item) == HF_OK);
            expect(hf_snapshot_list_add(rig.list, item) == HF_EXISTS);
        } else {
            expect(hf_snapshot_list_remove(rig.list, item) == HF_OK);
            item = NULL;
        }
    }
    if (item != NULL && index % 2 == 0)
        expect(hf_snapshot_list_remove(rig.list, item) == HF_OK);
}

static void start(void)
{
    const struct hf_snapshot_list_opts opts = {.free = item_free};

    memset(&rig, 0, sizeof rig);
    CHECK_EQ(hf_snapshot_list_open(&rig.list, &opts), HF_OK);
}

/* Before close only what is in the list is not freed. */
static void end(void)
{
    size_t count;

    hf_snapshot_list_flush(rig.list);
    CHECK_EQ(hf_snapshot_list_count(rig.list, &count), HF_OK);
    CHECK_EQ(rig.made.value - rig.freed.value, count);
    hf_snapshot_list_close(rig.list);
    CHECK_EQ(rig.freed.value, rig.made.value);
    CHECK_EQ(rig.wrong.value, 0);
}

TEST(each_item_is_freed_once_with_32_threads)
{
    start();
    test_threads(THREADS, come_and_go, NULL);
    end();
}

#define RECORDERS 3
#define CALLS     6

static int known[2];

static void record(void *context, int index)
{
    static const uint32_t ops[3] = {MODEL_SET_IF_ABSENT, MODEL_REMOVE,
                                    MODEL_GET};
    struct hf_random random;

    hf_random_init(&random, *(uint64_t *)context + (uint64_t)index);
    for (int i = 0; i < CALLS; i++) {
        uint64_t key = hf_random_below(&random, 2);
        uint64_t what = hf_random_below(&random, 3);
        struct call *call =
            calls_begin(rig.history, (unsigned)index, ops[what], key, key);
        enum hf_status status =
            what == 0   ? hf_snapshot_list_add(rig.list, &known[key])
            : what == 1 ? hf_snapshot_list_remove(rig.list, &known[key])
                        : hf_snapshot_list_contains(rig.list, &known[key]);
        calls_end(rig.history, call, status, key);
    }
}

TEST(adds_removes_and_looks_have_one_order)
{
    struct linear_model model = model_map();
    struct linear *checker = linear_new(&model, RECORDERS * CALLS);

    memset(&rig, 0, sizeof rig);
    rig.history = calls_new(RECORDERS, CALLS);
    for (int round = work(3000); round > 0; round--) {
        uint64_t seed = test_seed() + (uint64_t)round * 100;
        calls_clear(rig.history);
        CHECK_EQ(hf_snapshot_list_open(&rig.list, NULL), HF_OK);
        test_threads(RECORDERS, record, &seed);
        CHECK_EQ(linear_check(checker, rig.history, stdout), LINEAR_YES);
        hf_snapshot_list_close(rig.list);
    }
    linear_free(checker);
    calls_free(rig.history);
}

static void *visit_until_stopped(void *context)
{
    (void)context;
    while (!hf_u32_load(&rig.stop, __ATOMIC_RELAXED))
        visit();
    return NULL;
}

TEST(a_stopped_visitor_stops_nobody_and_keeps_few_versions)
{
    struct hf_snapshot_list_stats stats;
    pthread_t thread;

    start();
    stall_init();
    CHECK_EQ(pthread_create(&thread, NULL, visit_until_stopped, NULL), 0);
    for (int i = 0; i < 100; i++) {
        struct stall *stall = stall_stop(thread);
        come_and_go(NULL, 2 * i);
        hf_snapshot_list_stats(rig.list, &stats);
        stall_resume(stall);
        CHECK(stats.kept <= 16);
    }
    hf_u32_store(&rig.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    end();
}
