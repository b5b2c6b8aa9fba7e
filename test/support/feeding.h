/* feeding.h - a feed in the test's folder, on a disk that fails when told. */
#ifndef TEST_SUPPORT_FEEDING_H
#define TEST_SUPPORT_FEEDING_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "feed/feed.h"
#include "feed/state.h"
#include "holdfast/clock.h"
#include "support/test.h"

/* A disk that fails when told. */
static struct journal_io *real;
static struct journal_io disk;
static struct hf_atomic_u32 fails; /* bits: writes, syncs, opens */
enum { FAIL_WRITE = 1, FAIL_SYNC = 2, FAIL_OPEN = 4, FAIL_CREATE = 8 };
static struct hf_atomic_u32 syncs;

static inline bool failing(uint32_t what)
{
    return (hf_u32_load(&fails, __ATOMIC_SEQ_CST) & what) != 0;
}

static inline void fail(uint32_t what)
{
    hf_u32_store(&fails, what, __ATOMIC_SEQ_CST);
}

static inline int do_open(void *context, int dir, const char *name, int flags,
                          int *fd)
{
    (void)context;
    if (failing(FAIL_CREATE) && (flags & O_CREAT) != 0)
        return ENOSPC;
    return failing(FAIL_OPEN) ? EMFILE : real->open(real, dir, name, flags, fd);
}

/* One that fails has written a part. */
static inline int do_write(void *context, int fd, const void *data, size_t len,
                           uint64_t offset)
{
    (void)context;
    if (!failing(FAIL_WRITE))
        return real->write(real, fd, data, len, offset);
    (void)real->write(real, fd, data, len / 2, offset);
    return ENOSPC;
}

static inline int do_sync(void *context, int fd)
{
    (void)context;
    (void)hf_u32_add(&syncs, 1, __ATOMIC_SEQ_CST);
    return failing(FAIL_SYNC) ? EIO : real->sync(real, fd);
}

static struct feed *feed;
static uint64_t keep_bytes = 1u << 30;
static uint64_t keep_ms = 100000000;
static struct hf_event woken;
static uint64_t now_ns;

static inline void wake(void *context)
{
    (void)context;
    hf_event_wake_all(&woken);
}

static inline void open_feed(uint64_t seq)
{
    char error[FEED_ERROR_MAX];
    const struct feed_opts opts = {.dir = test_folder(),
                                   .io = &disk,
                                   .keep_bytes = keep_bytes,
                                   .keep_ms = keep_ms,
                                   .wake = wake};

    CHECK_EQ(feed_open(&feed, &opts, error), HF_OK);
    feed_start(feed, seq);
}

static inline void start(void)
{
    fail(0);
    keep_bytes = 1u << 30;
    keep_ms = 100000000;
    if (real == NULL)
        CHECK_EQ(journal_io_plain(&real), HF_OK);
    disk = *real;
    disk.open = do_open;
    disk.write = do_write;
    disk.sync = do_sync;
    open_feed(0);
}

static inline void stop(bool clean)
{
    feed_stop(feed, clean);
    feed_close(feed);
    feed = NULL;
}

/* A step of the engine up to that number, which is its time, too, with that
 * event; NULL: without any. */
static inline void take(const struct hold_event *event, uint64_t seq)
{
    struct hold_out out = {.events = event,
                           .event_count = event != NULL,
                           .seq = seq,
                           .now_us = seq * 1000000};

    feed_take(feed, &out);
}

/* An event of that number, with a note so long; its time is its number. */
static inline void add(uint64_t seq, size_t len)
{
    static char texts[HOLD_NAME_MAX + 30000];
    struct hold_event event = {
        .seq = seq, .kind = EVENT_LOCK_GRANTED, .age_us = HOLD_NO_AGE};
    size_t name = (size_t)snprintf(texts, HOLD_NAME_MAX, "n%llu",
                                   (unsigned long long)seq);

    memset(texts + name, 'x', len);
    event.name = hf_bytes(texts, name);
    event.owner = hf_bytes(texts + name, 0);
    event.note = hf_bytes(texts + name, len);
    event.items = hf_bytes(texts + name + len, 0);
    take(&event, seq);
}

/* The thread has written all, or failed. */
static inline void write_all(void)
{
    uint64_t up_to = feed->up_to;

    hf_mutex_lock(&feed->mutex);
    feed->wanted = up_to;
    hf_mutex_unlock(&feed->mutex);
    now_ns += HF_NS_PER_S;
    feed_tend(feed, now_ns, up_to * 1000000);
    CHECK_EQ(feed_settle(feed, up_to), HF_OK);
}

static inline enum hf_status try_read(void *context)
{
    struct feed_read **read = context;

    *read = feed_read_next(feed);
    return *read != NULL ? HF_OK : HF_PENDING;
}

struct found {
    uint64_t count;
    uint64_t gap; /* the last that was told */
    uint64_t gaps;
    uint64_t reads; /* by the thread */
    uint64_t last;
};

/* The numbers from `first` up to `next` have no events. */
static struct {
    uint64_t first;
    uint64_t next;
} hole;

/* All above `after`: they grow by 1 from the first on, but for gaps and the
 * hole. */
static inline struct found read_all(uint64_t after)
{
    struct found found = {.last = after};

    for (int i = 0; i < 100000; i++) {
        struct feed_read *read = NULL;
        struct feed_page page;
        struct hold_event event;
        uint64_t now_us;
        if (feed_look(feed, after, &page) == HF_PENDING) {
            CHECK(feed_read_start(feed, after, &found) != NULL);
            CHECK_EQ(hf_event_until(&woken, try_read, &read, NULL, HF_FOREVER),
                     HF_OK);
            page = read->page;
            found.reads++;
        }
        if (page.gap != 0) {
            found.gap = found.last = page.gap;
            found.gaps++;
        }
        for (size_t at = 0; at < page.events.len;) {
            size_t len = event_decode(
                hf_bytes(page.events.data + at, page.events.len - at), &event,
                &now_us);
            CHECK(len > 0);
            at += len;
            if (event.seq <= page.after || event.seq > page.up_to)
                continue;
            CHECK_EQ(event.seq,
                     found.last + 1 == hole.first ? hole.next : found.last + 1);
            CHECK_EQ(now_us, event.seq * 1000000);
            found.last = event.seq;
            found.count++;
        }
        bool more = page.up_to > after;
        after = page.up_to;
        if (read != NULL)
            feed_read_free(read);
        if (!more)
            break;
    }
    return found;
}

static inline int count_files(uint64_t *bytes)
{
    char path[512];
    struct stat info;
    int count = 0;

    *bytes = 0;
    for (size_t i = 0; i < feed->file_count; i++) {
        snprintf(path, sizeof path, "%s/events-%016llx.feed", test_folder(),
                 (unsigned long long)feed->files[i].start);
        if (stat(path, &info) == 0) {
            count++;
            *bytes += (uint64_t)info.st_size;
        }
    }
    return count;
}

#endif
