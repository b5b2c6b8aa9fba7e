/* Tests of hf_epoch: exactly once, bounded garbage, a stalled reader named. */
#include "holdfast/epoch.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "support/clock.h"
#include "support/test.h"
#include "support/threads.h"

static unsigned freed;

static void count_free(void *context, struct hf_epoch_node *node)
{
    (void)context;
    __atomic_add_fetch(&freed, 1, __ATOMIC_RELAXED);
    hf_free(node);
}

static struct hf_epoch *open_counting(struct hf_epoch_opts opts)
{
    struct hf_epoch *epoch;

    freed = 0;
    opts.free = count_free;
    CHECK_EQ(hf_epoch_open(&epoch, &opts), HF_OK);
    return epoch;
}

/* Makes a node and retires it; the structure it would have been in is left
 * out. */
static void churn(struct hf_epoch *epoch, unsigned nodes)
{
    for (unsigned i = 0; i < nodes; i++) {
        struct hf_epoch_reader *reader = hf_epoch_enter(epoch);
        struct hf_epoch_node *node = hf_alloc(sizeof *node);
        hf_epoch_born(reader, node);
        hf_epoch_retire(reader, node);
        hf_epoch_leave(reader);
    }
}

TEST(bad_input_is_refused)
{
    CHECK_EQ(hf_epoch_open(NULL, NULL), HF_INVALID);
    hf_epoch_close(NULL);
}

TEST(close_frees_what_is_still_retired)
{
    struct hf_epoch *epoch = open_counting((struct hf_epoch_opts){0});

    churn(epoch, 10);
    hf_epoch_close(epoch);
    CHECK_EQ(freed, 10);
}

TEST(without_readers_garbage_stays_small)
{
    struct hf_epoch_stats stats;
    struct hf_epoch *epoch = open_counting((struct hf_epoch_opts){0});

    churn(epoch, 100000);
    hf_epoch_stats(epoch, &stats);
    CHECK_EQ(stats.retired, 100000);
    CHECK_EQ(stats.freed, freed);
    CHECK(stats.retired - stats.freed <= 192);
    hf_epoch_flush(epoch);
    CHECK_EQ(freed, 100000);
    hf_epoch_close(epoch);
    CHECK_EQ(freed, 100000);
}

TEST(nothing_that_a_reader_may_hold_is_freed)
{
    struct hf_epoch *epoch = open_counting((struct hf_epoch_opts){0});
    struct hf_epoch_reader *outer = hf_epoch_enter(epoch);
    struct hf_epoch_node *node = hf_alloc(sizeof *node);

    hf_epoch_born(outer, node);
    struct hf_epoch_reader *inner = hf_epoch_enter(epoch); /* enters nest */
    CHECK(inner == outer);
    hf_epoch_leave(inner);
    hf_epoch_retire(outer, node);
    hf_epoch_flush(epoch);
    CHECK_EQ(freed, 0);
    hf_epoch_leave(outer);
    hf_epoch_flush(epoch);
    CHECK_EQ(freed, 1);
    hf_epoch_close(epoch);
}

TEST(without_memory_nothing_opens)
{
    struct hf_epoch *epoch = NULL;

    for (uint64_t allowed = 0; allowed < 2; allowed++) {
        hf_memory_fail_after(allowed);
        CHECK_EQ(hf_epoch_open(&epoch, NULL), HF_NOMEM);
        hf_memory_fail_never();
        CHECK(epoch == NULL);
    }
    CHECK_EQ(hf_epoch_open(&epoch, NULL), HF_OK);
    hf_memory_fail_after(0);
    struct hf_epoch_reader *reader = hf_epoch_enter(epoch);
    hf_memory_fail_never();
    CHECK(reader != NULL); /* records for the first threads are there */
    hf_epoch_leave(reader);
    hf_epoch_close(epoch);
}

/* More threads than have their records from the start. */
#define MANY 40

struct crowd {
    struct hf_epoch *epoch;
    pthread_barrier_t all_have_slots;
    unsigned refused;
};

static void enter_without_memory(void *context, int index)
{
    struct crowd *crowd = context;

    (void)index;
    (void)hf_thread_slot();
    pthread_barrier_wait(&crowd->all_have_slots);
    hf_memory_fail_after(0);
    struct hf_epoch_reader *reader = hf_epoch_enter(crowd->epoch);
    hf_memory_fail_never();
    if (reader == NULL)
        __atomic_add_fetch(&crowd->refused, 1, __ATOMIC_RELAXED);
    else
        hf_epoch_leave(reader);
}

TEST(without_memory_a_late_thread_does_not_enter)
{
    struct crowd crowd = {.refused = 0};

    CHECK_EQ(hf_epoch_open(&crowd.epoch, NULL), HF_OK);
    pthread_barrier_init(&crowd.all_have_slots, NULL, MANY);
    test_threads(MANY, enter_without_memory, &crowd);
    pthread_barrier_destroy(&crowd.all_have_slots);
    hf_epoch_close(crowd.epoch);
    CHECK(crowd.refused >= MANY - 16);
}

/* A thread that enters and stays until it is told to go. */
struct sleeper {
    struct hf_epoch *epoch;
    pthread_t thread;
    pthread_barrier_t inside;
    pthread_barrier_t leave;
    int thread_id;
};

static void *sleep_inside(void *context)
{
    struct sleeper *sleeper = context;

    pthread_setname_np(pthread_self(), "slow-reader");
    sleeper->thread_id = (int)syscall(SYS_gettid);
    struct hf_epoch_reader *reader = hf_epoch_enter(sleeper->epoch);
    pthread_barrier_wait(&sleeper->inside);
    pthread_barrier_wait(&sleeper->leave);
    hf_epoch_leave(reader);
    return NULL;
}

static void sleeper_start(struct sleeper *sleeper, struct hf_epoch *epoch)
{
    sleeper->epoch = epoch;
    pthread_barrier_init(&sleeper->inside, NULL, 2);
    pthread_barrier_init(&sleeper->leave, NULL, 2);
    CHECK_EQ(pthread_create(&sleeper->thread, NULL, sleep_inside, sleeper), 0);
    pthread_barrier_wait(&sleeper->inside);
}

static void sleeper_end(struct sleeper *sleeper)
{
    pthread_barrier_wait(&sleeper->leave);
    pthread_join(sleeper->thread, NULL);
    pthread_barrier_destroy(&sleeper->inside);
    pthread_barrier_destroy(&sleeper->leave);
}

static unsigned told;

static void tell(void *context, const struct hf_epoch_stall *stall)
{
    (void)context;
    CHECK_TEXT(stall->thread, strlen(stall->thread), "slow-reader");
    told++;
}

TEST(a_reader_that_stalls_holds_back_only_what_it_could_have_seen)
{
    struct hf_epoch_stats stats;
    struct hf_epoch *epoch = open_counting((struct hf_epoch_opts){0});
    struct sleeper sleeper;

    sleeper_start(&sleeper, epoch);
    churn(epoch, 1000000);
    hf_epoch_stats(epoch, &stats);
    /* Born in the era in which it stalled, and between two scans. */
    CHECK(stats.retired - stats.freed <= 500);
    sleeper_end(&sleeper);
    hf_epoch_flush(epoch);
    CHECK_EQ(freed, 1000000);
    hf_epoch_close(epoch);
}

TEST(a_reader_that_stalls_is_named_once)
{
    struct hf_epoch_stats stats;
    struct test_clock hands = {.now_ns = 1000};
    struct sleeper sleeper;
    struct hf_epoch *epoch = open_counting((struct hf_epoch_opts){
        .clock = test_clock(&hands), .stalled_ns = 500, .stalled = tell});

    told = 0;
    sleeper_start(&sleeper, epoch);
    churn(epoch, 1000);
    CHECK_EQ(told, 0);
    hands.now_ns += 600;
    churn(epoch, 1000);
    churn(epoch, 1000);
    CHECK_EQ(told, 1);
    hf_epoch_stats(epoch, &stats);
    CHECK_EQ(stats.stalls, 1);
    CHECK_TEXT(stats.stall.thread, strlen(stats.stall.thread), "slow-reader");
    CHECK_EQ(stats.stall.thread_id, sleeper.thread_id);
    CHECK(stats.stall.seen_ns >= 500);
    CHECK(stats.stall.garbage > 0);
    sleeper_end(&sleeper);
    hf_epoch_stats(epoch, &stats);
    CHECK_EQ(stats.stall.thread_id, 0); /* it went on */
    hf_epoch_close(epoch);
    CHECK_EQ(freed, 3000);
}

static void churn_and_end(void *context, int index)
{
    (void)index;
    churn(context, 50); /* too few for a scan of its own */
}

TEST(what_a_thread_leaves_behind_is_freed_by_others)
{
    struct hf_epoch *epoch = open_counting((struct hf_epoch_opts){0});

    test_threads(8, churn_and_end, epoch);
    hf_epoch_flush(epoch);
    CHECK_EQ(freed, 400);
    hf_epoch_close(epoch);
}

TEST(more_threads_than_the_first_records_hold)
{
    struct hf_epoch *epoch = open_counting((struct hf_epoch_opts){0});

    test_threads(TEST_THREADS_MAX, churn_and_end, epoch);
    hf_epoch_close(epoch);
    CHECK_EQ(freed, 50 * TEST_THREADS_MAX);
}

static void look_for_epoch(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->kind, "epoch") == 0 && strcmp(row->name, "old") == 0)
        *(uint64_t *)context = row->depth;
}

TEST(inspect_shows_its_garbage)
{
    uint64_t depth = 0;
    struct hf_epoch *epoch =
        open_counting((struct hf_epoch_opts){.name = "old"});

    churn(epoch, 7);
    CHECK_EQ(hf_inspect(look_for_epoch, &depth), HF_OK);
    CHECK_EQ(depth, 7);
    hf_epoch_close(epoch);
}
