/* journal_ask.c - tests of how the journal waits for a write: whether it asks
 * again and again, for how long, and what it does then. */
#include <errno.h>

#include "base/memory.h"
#include "journal/state.h"
#include "support/clock.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

#define ASK_TOOK_NS 10000u
#define SLOW_NS     2000000u

/* A disk whose write has ended when it has been asked `needed` times. The
 * clock moves when the disk is asked, or waited for, and at no other time. */
struct asked {
    struct rig rig;
    struct test_disk disk;
    struct test_clock clock;
    uint64_t needed;
    uint64_t asks;
    uint64_t waits;
    uint64_t wait_ns;      /* how long the last wait was to be */
    uint64_t wait_took_ns; /* and how long it takes */
};
static struct asked asked;

static enum hf_status (*disk_wait)(struct journal_io *io, uint64_t timeout_ns,
                                   int *error);

static enum hf_status ask(struct journal_io *io, int *error)
{
    asked.clock.now_ns += ASK_TOOK_NS;
    return ++asked.asks < asked.needed ? HF_PENDING : disk_wait(io, 0, error);
}

static enum hf_status wait(struct journal_io *io, uint64_t timeout_ns,
                           int *error)
{
    asked.waits++;
    asked.wait_ns = timeout_ns;
    asked.clock.now_ns += asked.wait_took_ns;
    return disk_wait(io, timeout_ns, error);
}

static void set_up(uint64_t needed)
{
    asked = (struct asked){.clock.now_ns = 1};
    struct journal_io *io = test_disk_quick(&asked.disk);

    disk_wait = io->wait;
    io->ask = ask;
    io->wait = wait;
    rig_init(&asked.rig, "j", io);
    asked.rig.opts.clock = test_clock(&asked.clock);
    asked.rig.opts.slow_ns = SLOW_NS;
    CHECK_EQ(rig_open(&asked.rig), HF_OK);
    asked.needed = needed;
}

static void tear_down(void)
{
    asked.needed = 0;
    rig_reopen(&asked.rig);
    rig_close(&asked.rig);
    test_disk_destroy(&asked.disk);
}

static enum hf_status commit(uint32_t records)
{
    asked.asks = 0;
    asked.waits = 0;
    CHECK_EQ(rig_append(&asked.rig, (int)records, 20), HF_OK);
    return rig_start(&asked.rig);
}

TEST(a_large_batch_is_asked_for_until_it_has_ended)
{
    set_up(7);
    CHECK_EQ(commit(JOURNAL_ASK_RECORDS), HF_OK);
    CHECK_EQ(asked.asks, 7);
    CHECK_EQ(asked.waits, 0);
    CHECK_EQ(rig_stats(&asked.rig).sync_last_ns, 7 * ASK_TOOK_NS);
    tear_down();
}

TEST(a_small_batch_is_not_asked_for)
{
    set_up(7);
    CHECK_EQ(commit(JOURNAL_ASK_RECORDS - 1), HF_OK);
    CHECK_EQ(asked.asks, 0);
    CHECK_EQ(asked.waits, 1);
    CHECK_EQ(asked.wait_ns, SLOW_NS);
    tear_down();
}

TEST(without_always_nothing_is_asked_for)
{
    set_up(7);
    rig_close(&asked.rig);
    asked.rig.opts.sync = JOURNAL_NONE;
    CHECK_EQ(rig_open(&asked.rig), HF_OK);
    CHECK_EQ(commit(JOURNAL_ASK_RECORDS), HF_OK);
    CHECK_EQ(asked.asks + asked.waits, 0);
    tear_down();
}

/* The time spent by asking is part of the time that a commit may take. */
TEST(a_disk_that_hangs_is_asked_for_a_bounded_time_and_then_given_up)
{
    set_up(UINT64_MAX);
    test_disk_hold(&asked.disk, TEST_DISK_BATCH);
    CHECK_EQ(commit(JOURNAL_ASK_RECORDS), HF_PENDING);
    CHECK_EQ(asked.asks, JOURNAL_ASK_NS / ASK_TOOK_NS);
    CHECK_EQ(asked.waits, 1);
    CHECK_EQ(asked.wait_ns, SLOW_NS - JOURNAL_ASK_NS);
    CHECK_EQ(rig_poll(&asked.rig), HF_PENDING);
    CHECK_EQ(asked.asks, JOURNAL_ASK_NS / ASK_TOOK_NS);
    test_disk_let_go(&asked.disk);
    CHECK_EQ(rig_finish(&asked.rig), HF_OK);
    tear_down();
}

TEST(after_a_write_that_took_long_the_next_is_not_asked_for)
{
    set_up(UINT64_MAX);
    asked.wait_took_ns = 50000;
    CHECK_EQ(commit(JOURNAL_ASK_RECORDS), HF_OK);
    CHECK_EQ(asked.waits, 1);
    CHECK_EQ(rig_stats(&asked.rig).sync_last_ns, JOURNAL_ASK_NS + 50000);
    CHECK_EQ(commit(JOURNAL_ASK_RECORDS), HF_OK); /* a quick one */
    CHECK_EQ(asked.asks, 0);
    CHECK_EQ(asked.waits, 1);
    asked.needed = 3;
    CHECK_EQ(commit(JOURNAL_ASK_RECORDS), HF_OK);
    CHECK_EQ(asked.asks, 3);
    CHECK_EQ(asked.waits, 0);
    tear_down();
}

TEST(an_error_that_is_told_when_asked_makes_the_journal_refuse)
{
    set_up(3);
    test_disk_fail(&asked.disk, TEST_DISK_BATCH, 0, ENOSPC);
    CHECK_EQ(commit(JOURNAL_ASK_RECORDS), HF_IO);
    CHECK_EQ(asked.asks, 3);
    CHECK_EQ(asked.waits, 0);
    CHECK(strstr(log_error(asked.rig.journal), "No space left") != NULL);
    tear_down();
}
