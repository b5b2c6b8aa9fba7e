/* machine.c - tests of the engine as the journal drives it: events before a
 * snapshot are on disk first. */
#include "server/machine.h"

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
