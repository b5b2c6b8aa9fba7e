/* journal_replay.c - tests of a reading of all that an open journal keeps. */
#include <errno.h>

#include "base/memory.h"
#include "holdfast/event.h"
#include "journal/state.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

static struct {
    struct hf_event event;
    struct hf_atomic_u32 count;
    struct tally *state;
    enum hf_status status;
    char error[JOURNAL_ERROR_MAX];
} ended;

static void done(void *context, void *state, enum hf_status status,
                 const char *error)
{
    (void)context;
    ended.state = state;
    ended.status = status;
    memcpy(ended.error, error, sizeof ended.error);
    hf_u32_add(&ended.count, 1, __ATOMIC_RELEASE);
    hf_event_wake_all(&ended.event);
}

static enum hf_status try_ended(void *context)
{
    uint32_t wanted = *(const uint32_t *)context;

    return hf_u32_load(&ended.count, __ATOMIC_ACQUIRE) >= wanted ? HF_OK
                                                                 : HF_PENDING;
}

/* Waits for that many to have ended. */
static void await_ended(uint32_t count)
{
    CHECK_EQ(hf_event_until(&ended.event, try_ended, &count, NULL, HF_FOREVER),
             HF_OK);
}

static const struct log_replay *replay(void)
{
    static struct log_replay wanted;

    ended.count.value = 0;
    wanted = (struct log_replay){.machine = tally_machine(), .done = done};
    return &wanted;
}

/* The maker may not have noted yet that it has ended. */
static enum hf_status replay_when_idle(struct rig *rig)
{
    enum hf_status status;

    do
        status = log_replay(rig->journal, replay());
    while (status == HF_PENDING);
    return status;
}

static void expect_all(struct rig *rig)
{
    CHECK_EQ(replay_when_idle(rig), HF_OK);
    await_ended(1);
    CHECK_EQ(ended.status, HF_OK);
    CHECK_EQ(ended.state->count, rig->acked.count);
    CHECK(ended.state->hash == rig->acked.hash);
    hf_free(ended.state);
}

TEST(a_reading_has_all_that_was_acknowledged)
{
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_NONE; mode++) {
        struct rig rig;

        rig_init(&rig, mode == 0 ? "a" : mode == 1 ? "b" : "c", NULL);
        rig.opts.sync = (enum journal_sync)mode;
        CHECK_EQ(rig_open(&rig), HF_OK);
        CHECK_EQ(rig_write(&rig, 1), HF_OK);
        expect_all(&rig);
        for (int i = 0; i < 40; i++) { /* over several segments */
            CHECK_EQ(rig_write(&rig, 3), HF_OK);
            expect_all(&rig);
        }
        CHECK_EQ(log_snapshot(rig.journal), HF_OK);
        rig_await_snapshot(&rig);
        expect_all(&rig); /* all of it is in the snapshot */
        CHECK_EQ(rig_write(&rig, 3), HF_OK);
        expect_all(&rig);
        CHECK_EQ(rig_stats(&rig).snapshot_starts, 1);
        CHECK_EQ(rig_stats(&rig).snapshot_failures, 0);
        rig_reopen(&rig);
        expect_all(&rig);
        rig_close(&rig);
    }
}

/* What it reads is not removed meanwhile. */
TEST(a_snapshot_waits_for_a_reading_and_a_reading_for_a_snapshot)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 50), HF_OK);
    struct tally then = rig.acked;
    test_disk_hold(&disk, TEST_DISK_READ);
    CHECK_EQ(log_replay(rig.journal, replay()), HF_OK);
    test_disk_await_held(&disk);
    CHECK(!log_snapshot_running(rig.journal));
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(rig_write(&rig, 2), HF_OK);
        log_tend(rig.journal, (uint64_t)i * 2000000000);
    }
    CHECK(log_snapshot_running(rig.journal));
    CHECK_EQ(rig_stats(&rig).snapshot_starts, 0);
    CHECK_EQ(log_replay(rig.journal, replay()), HF_PENDING);
    test_disk_let_go(&disk);
    await_ended(1);
    CHECK_EQ(ended.status, HF_OK);
    CHECK_EQ(ended.state->count, then.count); /* up to where it began */
    CHECK(ended.state->hash == then.hash);
    hf_free(ended.state);
    rig_await_snapshot(&rig);
    CHECK_EQ(rig_stats(&rig).snapshot_count, 1);
    test_disk_hold(&disk, TEST_DISK_READ);
    CHECK_EQ(rig_write(&rig, 5), HF_OK);
    CHECK_EQ(log_snapshot(rig.journal), HF_OK);
    CHECK_EQ(rig_write(&rig, 1), HF_OK);
    test_disk_await_held(&disk);
    CHECK_EQ(log_replay(rig.journal, replay()), HF_PENDING);
    test_disk_let_go(&disk);
    rig_await_snapshot(&rig);
    expect_all(&rig);
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(a_reading_that_fails_says_why)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 30), HF_OK);
    test_disk_fail(&disk, TEST_DISK_READ, 0, EIO);
    CHECK_EQ(log_replay(rig.journal, replay()), HF_OK);
    await_ended(1);
    CHECK_EQ(ended.status, HF_IO);
    CHECK(strstr(ended.error, "Input/output error") != NULL);
    hf_free(ended.state);
    CHECK_EQ(rig_stats(&rig).snapshot_failures, 0);
    expect_all(&rig); /* the next one may succeed */
    rig_close(&rig);
    test_disk_destroy(&disk);
}

TEST(a_close_ends_a_reading)
{
    struct test_disk disk;
    struct rig rig;

    rig_init(&rig, "j", test_disk_quick(&disk));
    CHECK_EQ(rig_open(&rig), HF_OK);
    CHECK_EQ(rig_write(&rig, 50), HF_OK);
    test_disk_hold(&disk, TEST_DISK_READ);
    CHECK_EQ(log_replay(rig.journal, replay()), HF_OK);
    test_disk_await_held(&disk);
    hf_u32_store(&journal_of(rig.journal)->maker.unwanted, 1, __ATOMIC_RELAXED);
    test_disk_let_go(&disk);
    rig_close(&rig);
    CHECK_EQ(ended.count.value, 1);
    CHECK_EQ(ended.status, HF_CANCELLED);
    hf_free(ended.state);
    test_disk_destroy(&disk);
}
