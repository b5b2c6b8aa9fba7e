/* snapshot.c - real threads read, change and listen, some stopped meanwhile.
 *
 * tests: also under sanitizers
 *
 * Values are marked when they are freed, before their memory goes: a late
 * reader is caught, and by ASan for sure.
 */
#include "holdfast/snapshot.h"

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

struct value {
    uint64_t number;
    struct hf_atomic_u32 state; /* (a) ALIVE until it is freed */
};

static struct {
    struct hf_snapshot *snapshot;
    struct calls *history;
    struct hf_atomic_u64 made;
    struct hf_atomic_u64 freed;
    struct hf_atomic_u64 wrong; /* late or disordered, as it was seen */
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

static struct value *value_new(uint64_t number)
{
    struct value *value = hf_alloc(sizeof *value);

    value->number = number;
    hf_u32_store(&value->state, ALIVE, __ATOMIC_RELAXED);
    hf_u64_add(&rig.made, 1, __ATOMIC_RELAXED);
    return value;
}

static void value_free(void *context, void *value)
{
    (void)context;
    hf_u32_store(&((struct value *)value)->state, 0, __ATOMIC_RELAXED);
    hf_u64_add(&rig.freed, 1, __ATOMIC_RELAXED);
    hf_free(value);
}

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&rig.wrong, 1, __ATOMIC_RELAXED);
}

static bool alive(const struct value *value)
{
    return hf_u32_load(&value->state, __ATOMIC_RELAXED) == ALIVE;
}

static void start(void)
{
    const struct hf_snapshot_opts opts = {.free = value_free};

    memset(&rig, 0, sizeof rig);
    CHECK_EQ(hf_snapshot_open(&rig.snapshot, value_new(1), &opts), HF_OK);
}

static void end(void)
{
    hf_snapshot_close(rig.snapshot);
    CHECK_EQ(rig.wrong.value, 0);
    CHECK_EQ(rig.freed.value, rig.made.value);
}

static enum hf_status make_next(void *context, const void *old, void **fresh)
{
    uint64_t *number = context;
    const struct value *value = old;

    expect(alive(value));
    *number = value->number + 1;
    *fresh = value_new(*number);
    return HF_OK;
}

static void read_one(void)
{
    struct hf_snapshot_view view;

    expect(hf_snapshot_read(rig.snapshot, &view) == HF_OK);
    const struct value *value = view.value;
    expect(alive(value));
    expect(value->number == view.version);
    expect(alive(value));
    hf_snapshot_leave(&view);
}

/* Each change adds 1: the number is the version. */
static void read_and_update(void *context, int index)
{
    struct hf_random random;
    uint64_t number;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = work(100000); i > 0; i--) {
        if (hf_random_below(&random, 16) != 0)
            read_one();
        else
            expect(hf_snapshot_update(rig.snapshot, make_next, &number) ==
                   HF_OK);
    }
}

TEST(each_value_is_freed_once_and_no_update_lost_with_32_threads)
{
    struct hf_snapshot_stats stats;
    struct hf_snapshot_view view;

    start();
    test_threads(THREADS, read_and_update, NULL);
    hf_snapshot_stats(rig.snapshot, &stats);
    CHECK_EQ(hf_snapshot_read(rig.snapshot, &view), HF_OK);
    CHECK_EQ(view.version, stats.version);
    CHECK_EQ(((const struct value *)view.value)->number, stats.version);
    hf_snapshot_leave(&view);
    hf_snapshot_flush(rig.snapshot);
    CHECK_EQ(rig.made.value - rig.freed.value, 1);
    end();
}

/* ---- Histories. ---- */

#define RECORDERS 3
#define CALLS     6

static void record(void *context, int index)
{
    struct hf_random random;
    struct hf_snapshot_view view;

    hf_random_init(&random, *(uint64_t *)context + (uint64_t)index);
    for (int i = 0; i < CALLS; i++) {
        uint64_t number = 1 + hf_random_below(&random, 1000000);
        uint64_t what = hf_random_below(&random, 3);
        struct call *call = calls_begin(rig.history, (unsigned)index,
                                        what == 0   ? MODEL_GET
                                        : what == 1 ? MODEL_SET
                                                    : MODEL_ADD,
                                        0, what == 2 ? 1 : number);
        if (what == 0) {
            enum hf_status status = hf_snapshot_read(rig.snapshot, &view);
            number = ((const struct value *)view.value)->number;
            calls_end(rig.history, call, status, number);
            hf_snapshot_leave(&view);
        } else if (what == 1) {
            enum hf_status status =
                hf_snapshot_set(rig.snapshot, value_new(number));
            calls_end(rig.history, call, status, 0);
        } else {
            enum hf_status status =
                hf_snapshot_update(rig.snapshot, make_next, &number);
            calls_end(rig.history, call, status, number);
        }
    }
}

TEST(reads_sets_and_updates_have_one_order)
{
    struct linear_model model = model_map();
    struct linear *checker = linear_new(&model, RECORDERS * CALLS + 1);

    start();
    rig.history = calls_new(RECORDERS + 1, CALLS);
    for (int round = work(3000); round > 0; round--) {
        uint64_t seed = test_seed() + (uint64_t)round * 100;
        calls_clear(rig.history);
        struct call *call =
            calls_begin(rig.history, RECORDERS, MODEL_SET, 0, 7);
        calls_end(rig.history, call,
                  hf_snapshot_set(rig.snapshot, value_new(7)), 0);
        test_threads(RECORDERS, record, &seed);
        CHECK_EQ(linear_check(checker, rig.history, stdout), LINEAR_YES);
    }
    linear_free(checker);
    calls_free(rig.history);
    end();
}

/* ---- Listeners. ---- */

struct ear {
    uint64_t id;
    uint64_t told; /* calls come one after the other */
    struct hf_atomic_u32 listens;
};

static void hear(void *context, const struct hf_snapshot_view *view)
{
    struct ear *ear = context;

    expect(hf_u32_load(&ear->listens, __ATOMIC_ACQUIRE) == 1);
    expect(alive(view->value));
    expect(view->version > ear->told);
    ear->told = view->version;
}

static void change_and_listen(void *context, int index)
{
    struct ear *heap = NULL;
    uint64_t number;

    (void)context;
    for (int i = work(10000); i > 0; i--) {
        if (index % 2 == 0) {
            expect(hf_snapshot_update(rig.snapshot, make_next, &number) ==
                   HF_OK);
            continue;
        }
        heap = hf_alloc_zeroed(sizeof *heap);
        hf_u32_store(&heap->listens, 1, __ATOMIC_RELEASE);
        expect(hf_snapshot_listen(rig.snapshot, hear, heap, &heap->id) ==
               HF_OK);
        expect(hf_snapshot_unlisten(rig.snapshot, heap->id) == HF_OK);
        hf_u32_store(&heap->listens, 0, __ATOMIC_RELEASE);
        hf_free(heap); /* nobody uses it any more */
    }
}

TEST(listeners_know_the_last_version_and_may_go_when_they_have_unlistened)
{
    static struct ear ears[3];
    struct hf_snapshot_stats stats;

    start();
    memset(ears, 0, sizeof ears);
    for (int i = 0; i < 3; i++) {
        hf_u32_store(&ears[i].listens, 1, __ATOMIC_RELAXED);
        CHECK_EQ(hf_snapshot_listen(rig.snapshot, hear, &ears[i], &ears[i].id),
                 HF_OK);
    }
    test_threads(8, change_and_listen, NULL);
    hf_snapshot_flush(rig.snapshot);
    hf_snapshot_stats(rig.snapshot, &stats);
    CHECK_EQ(stats.kept, 0);
    CHECK_EQ(stats.version, 1 + 4 * work(10000));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(ears[i].told, stats.version);
    end();
}

/* ---- A stopped thread. ---- */

/* Under a sanitizer it only reads: stopped inside of the sanitizer's malloc it
 * would stop all. */
static void *work_until_stopped(void *context)
{
    uint64_t number;

    (void)context;
    while (!hf_u32_load(&rig.stop, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 8; i++)
            read_one();
        if (!under_sanitizer())
            expect(hf_snapshot_update(rig.snapshot, make_next, &number) ==
                   HF_OK);
    }
    return NULL;
}

TEST(a_stopped_thread_stops_nobody_and_keeps_few_versions)
{
    struct hf_snapshot_stats stats;
    pthread_t thread;

    start();
    stall_init();
    CHECK_EQ(pthread_create(&thread, NULL, work_until_stopped, NULL), 0);
    for (int i = 0; i < 50; i++) {
        struct stall *stall = stall_stop(thread);
        read_and_update(NULL, i);
        hf_snapshot_stats(rig.snapshot, &stats);
        stall_resume(stall);
        CHECK(stats.kept <= 16);
    }
    hf_u32_store(&rig.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    end();
}
