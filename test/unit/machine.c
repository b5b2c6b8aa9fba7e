/* machine.c - tests of the engine as the journal drives it: events before a
 * snapshot are on disk first, and a replay waits for the disk. */
#include "server/machine.h"

#include <pthread.h>

#include "feed/state.h"
#include "support/engine.h"

static enum hf_status drop(void *context, const void *data, size_t len)
{
    (void)context;
    (void)data;
    (void)len;
    return HF_OK;
}

static void wake(void *context)
{
    (void)context;
}

/* Nobody writes them any more, so the snapshot must not be made. */
TEST(a_snapshot_waits_for_the_events_that_it_replaces)
{
    const struct feed_opts opts = {.dir = test_folder(),
                                   .keep_bytes = 1 << 20,
                                   .keep_ms = UINT64_MAX / 1000000,
                                   .wake = wake};
    const struct hf_hash_seed seed = {{1, 2}};
    char error[FEED_ERROR_MAX];
    char record[HOLD_RECORD_MAX];
    struct feed *feed;

    CHECK_EQ(feed_open(&feed, &opts, error), HF_OK);
    const struct journal_machine *machine = server_machine(seed, feed);
    void *own = machine->create(NULL);
    server_machine_opened();
    void *copy = machine->create(NULL);
    CHECK(own != NULL && copy != NULL);
    feed_start(feed, 0);
    CHECK_EQ(machine->save(copy, drop, NULL), HF_OK); /* of nothing */
    engine_start();
    engine_set("apple", 5);
    struct hf_bytes bytes =
        hf_bytes(record, hold_encode(engine_last(), record));
    CHECK_EQ(hold_replay(own, bytes, feed_take, feed), HF_OK);
    CHECK_EQ(machine->apply(copy, bytes), HF_OK);
    feed_stop(feed, false);
    CHECK_EQ(machine->save(copy, drop, NULL), HF_CANCELLED);
    feed_close(feed);
    machine->destroy(own);
    machine->destroy(copy);
}

static struct journal_io *plain;
static struct hf_atomic_u32 held;
static struct hf_atomic_u32 over;
static struct hf_event let_go;

static enum hf_status is_free(void *context)
{
    (void)context;
    return hf_u32_load(&held, __ATOMIC_SEQ_CST) == 0 ? HF_OK : HF_PENDING;
}

static int slow_write(void *context, int fd, const void *data, size_t len,
                      uint64_t offset)
{
    (void)context;
    (void)hf_event_until(&let_go, is_free, NULL, NULL, HF_FOREVER);
    return plain->write(plain, fd, data, len, offset);
}

/* Lets the disk go on when the replay waits for it, or is over. */
static void *let_go_when_awaited(void *context)
{
    struct feed *feed = context;
    bool awaited = false;

    while (!awaited && hf_u32_load(&over, __ATOMIC_SEQ_CST) == 0) {
        hf_mutex_lock(&feed->mutex);
        awaited = feed->awaited;
        hf_mutex_unlock(&feed->mutex);
    }
    hf_u32_store(&held, 0, __ATOMIC_SEQ_CST);
    hf_event_wake_all(&let_go);
    return NULL;
}

/* Takes a key over and over: two events each. */
static void replay_sets(const struct journal_machine *machine, void *own)
{
    static char text[HOLD_NAME_MAX];
    char record[HOLD_RECORD_MAX];
    const struct hold_command c = {
        .kind = HOLD_KEY_SET,
        .name = hf_bytes(text, sizeof text),
        .owner = hf_bytes(text, HOLD_OWNER_MAX),
        .now_us = 1,
    };
    struct hf_bytes bytes = hf_bytes(record, hold_encode(&c, record));

    for (int i = 0; i < 15000; i++) /* 25 MB */
        CHECK_EQ(machine->apply(own, bytes), HF_OK);
}

TEST(a_replay_that_is_faster_than_the_disk_loses_no_events)
{
    CHECK_EQ(journal_io_plain(&plain), HF_OK);
    struct journal_io slow = *plain;
    slow.write = slow_write;
    const struct feed_opts opts = {.dir = test_folder(),
                                   .io = &slow,
                                   .keep_bytes = 1u << 30,
                                   .keep_ms = UINT64_MAX / 1000000,
                                   .wake = wake};
    const struct hf_hash_seed seed = {{1, 2}};
    char error[FEED_ERROR_MAX];
    struct feed_stats stats;
    struct feed *feed;
    pthread_t thread;

    hf_u32_store(&held, 1, __ATOMIC_SEQ_CST);
    hf_u32_store(&over, 0, __ATOMIC_SEQ_CST);
    CHECK_EQ(feed_open(&feed, &opts, error), HF_OK);
    const struct journal_machine *machine = server_machine(seed, feed);
    void *own = machine->create(NULL);
    CHECK(own != NULL);
    CHECK_EQ(pthread_create(&thread, NULL, let_go_when_awaited, feed), 0);
    replay_sets(machine, own);
    feed_stats(feed, &stats);
    hf_u32_store(&over, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(stats.lost, 0);
    server_machine_opened();
    feed_stop(feed, false);
    feed_close(feed);
    machine->destroy(own);
    plain->close(plain);
}
