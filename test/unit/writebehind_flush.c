/* Tests of flush with a log: it waits until what it flushed is out of the log,
 * for nothing that came later, and for no disk that fails. */
#include <errno.h>

#include "support/broken_disk.h"
#include "support/threads.h"
#include "support/writebehind.h"

static char folder[512];
static struct broken_disk disk;

/* A segment for each record, and a batch. */
static void begin_log(void)
{
    struct hf_writebehind_opts opts =
        completed((struct hf_writebehind_opts){.segment_bytes = 80,
                                               .log_bytes = 100000,
                                               .batch_max = 1,
                                               .age_ns = HF_FOREVER});

    snprintf(folder, sizeof folder, "%s/log", test_folder());
    opts.log_dir = folder;
    CHECK_EQ(hf_wb_open_on(&test.behind, &opts, &disk.disk), HF_OK);
}

static void prepare_log(void)
{
    prepare();
    broken_disk_init(&disk);
}

static struct hf_atomic_u32 flusher_waits; /* it sleeps in its flush */
static struct hf_atomic_u32 released;      /* the store goes on */
static struct hf_atomic_u32 hangs;         /* a later trim is under way */
static struct hf_atomic_u32 waits_again;   /* for that */
static struct hf_atomic_u32 removes;
static _Thread_local bool is_flusher;

static uint32_t load(struct hf_atomic_u32 *flag)
{
    return hf_u32_load(flag, __ATOMIC_SEQ_CST);
}

static void set(struct hf_atomic_u32 *flag)
{
    hf_u32_store(flag, 1, __ATOMIC_SEQ_CST);
}

static void await_flag(struct hf_atomic_u32 *flag)
{
    while (load(flag) == 0)
        sched_yield();
}

/* The flusher, once it is woken, goes on when the second trim has begun. */
static void wait_slowly(void *context, const uint32_t *word, uint32_t expected,
                        uint64_t deadline_ns)
{
    if (is_flusher && load(&hangs))
        set(&waits_again);
    if (is_flusher)
        set(&flusher_waits);
    note_wait(context, word, expected, deadline_ns);
    if (is_flusher && load(&released))
        await_flag(&hangs);
}

static struct hf_atomic_u32 flushed;

/* The second does not end before the flush, or before that waits for it. */
static int remove_slowly(void *context, int dir, const char *name)
{
    if (hf_u32_add(&removes, 1, __ATOMIC_SEQ_CST) == 1) {
        set(&hangs);
        while (load(&flushed) == 0 && load(&waits_again) == 0)
            sched_yield();
    }
    return broken_remove(context, dir, name);
}

static enum hf_status status_of_flush;
static enum hf_status status_of_puts;

static void flush_the_first(void *context, int index)
{
    (void)context;
    if (index == 0) {
        is_flusher = true;
        status_of_flush = hf_writebehind_flush(test.behind, HF_FOREVER);
        set(&flushed);
        return;
    }
    await_flag(&flusher_waits);
    status_of_puts = try_put("b", "1", HF_NOW);
    if (status_of_puts == HF_OK)
        status_of_puts = try_put("c", "1", HF_NOW);
    set(&released);
    memory_hold(&test.memory, false);
}

TEST(flush_does_not_wait_for_the_trim_of_what_came_later)
{
    prepare_log();
    test.clock.wait = wait_slowly;
    disk.disk.remove = remove_slowly;
    begin_log();
    memory_hold(&test.memory, true);
    put("a", "1");
    test_threads(2, flush_the_first, NULL);
    CHECK_EQ(status_of_flush, HF_OK);
    CHECK_EQ(status_of_puts, HF_OK);
    CHECK_EQ(load(&waits_again), 0);
    end();
}

TEST(flush_waits_until_its_own_segments_are_gone)
{
    prepare_log();
    begin_log();
    for (int i = 0; i < 200; i++) {
        put("a", "1");
        put("b", "1");
        flush();
        CHECK_EQ(figures().log_segments, 1);
    }
    end();
}

TEST(a_disk_that_cannot_trim_holds_up_no_flush_and_no_close)
{
    static const unsigned kinds[] = {BROKEN_REMOVE, BROKEN_FOLDER};

    for (int i = 0; i < 2; i++) {
        prepare_log();
        begin_log();
        memory_hold(&test.memory, true); /* so that nothing is trimmed yet */
        put("a", "1");
        put("b", "1");
        disk.watched = kinds[i];
        disk.fail_count = 1000;
        disk.error = EIO;
        memory_hold(&test.memory, false);
        flush();
        CHECK_EQ(figures().dirty, 0);
        CHECK(figures().log_segments > 1);
        CHECK_EQ(hf_writebehind_close(test.behind, HF_FOREVER), HF_OK);
        disk.watched = 0;
        begin_log(); /* what was not removed is read in vain */
        flush();
        check_get("a", "1");
        check_get("b", "1");
        end();
    }
}

static void flush_often(void *context, int index)
{
    char key[2] = {(char)('a' + index), 0};

    for (int i = 0; i < 50; i++)
        if (try_put(key, "1", HF_FOREVER) != HF_OK ||
            hf_writebehind_flush(test.behind, HF_FOREVER) != HF_OK)
            hf_u32_add(context, 1, __ATOMIC_SEQ_CST);
}

TEST(several_threads_put_and_flush)
{
    struct hf_atomic_u32 failed = {0};

    prepare_log();
    begin_log();
    test_threads(4, flush_often, &failed);
    CHECK_EQ(load(&failed), 0);
    CHECK_EQ(figures().dirty, 0);
    end();
}
