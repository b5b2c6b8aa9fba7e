/* work.c - the thread's side: memory to files, and files to readers. */
#include <assert.h>

#include "feed/state.h"

/* What is to be written next, with the mutex held. False: nothing. */
static bool find_next(struct feed *feed, uint64_t *before,
                      struct feed_ready *ready, struct hf_bytes *events)
{
    for (;; feed->write_chunk++, feed->write_len = feed->write_count = 0) {
        if (feed->write_chunk > feed->ready.chunk || feed->ready.up_to == 0)
            return false;
        const struct feed_chunk *chunk =
            feed->chunks[feed->write_chunk % FEED_CHUNKS_MAX];
        bool whole = feed->write_chunk < feed->ready.chunk;
        *ready = feed->ready;
        if (whole)
            *ready =
                (struct feed_ready){feed->write_chunk, chunk->up_to,
                                    chunk->last_us, chunk->count, chunk->len};
        bool all = feed->write_len == ready->len;
        if (whole && all && ready->up_to <= feed->written)
            continue;
        *before = chunk->before > feed->written ? chunk->before : feed->written;
        *events = hf_bytes(chunk->data + feed->write_len,
                           ready->len - feed->write_len);
        ready->count -= feed->write_count;
        /* That there was nothing is written if somebody waits for it, or
         * before the next chunk, which would seem to have a gap before it. */
        return !all || (ready->up_to > feed->written &&
                        (whole || feed->wanted > feed->written));
    }
}

/* False: the disk failed, or nothing is left. */
static bool write_next(struct feed *feed)
{
    struct feed_ready ready;
    struct hf_bytes events;
    uint64_t before;

    hf_mutex_lock(&feed->mutex);
    bool found = !feed->closing && find_next(feed, &before, &ready, &events);
    hf_mutex_unlock(&feed->mutex);
    if (!found || !files_append(feed, before, &ready, events))
        return false;
    hf_mutex_lock(&feed->mutex);
    feed->write_len += events.len;
    feed->write_count += ready.count;
    feed->written = ready.up_to;
    feed->failing = false;
    bool awaited = feed->awaited;
    feed->awaited = false;
    hf_mutex_unlock(&feed->mutex);
    if (awaited) {
        hf_event_wake_all(&feed->done);
        feed->opts.wake(feed->opts.context);
    }
    return true;
}

static int run_write(void *argument)
{
    struct feed *feed = argument;

    while (write_next(feed))
        ;
    hf_mutex_lock(&feed->mutex);
    bool sync = !feed->closing && !feed->failing &&
                feed->wanted > feed->synced && feed->written >= feed->wanted;
    uint64_t written = feed->written;
    hf_mutex_unlock(&feed->mutex);
    if (sync && files_sync(feed)) {
        hf_mutex_lock(&feed->mutex);
        feed->synced = written;
        hf_mutex_unlock(&feed->mutex);
    }
    files_expire(feed);
    hf_event_wake_all(&feed->done);
    return 0;
}

static int run_read(void *argument)
{
    struct feed *feed = argument;
    bool any = false;

    for (;; any = true) {
        hf_mutex_lock(&feed->mutex);
        struct feed_read *read = feed->closing ? NULL : feed->reads;
        if (read != NULL)
            feed->reads = read->next;
        hf_mutex_unlock(&feed->mutex);
        if (read == NULL)
            break;
        files_read(feed, read);
        hf_mutex_lock(&feed->mutex);
        read->next = feed->read_done;
        feed->read_done = read;
        hf_mutex_unlock(&feed->mutex);
    }
    if (any)
        feed->opts.wake(feed->opts.context);
    return 0;
}

static void init_work(struct feed *feed, struct hf_pool_work *work,
                      int (*run)(void *argument), uint32_t priority)
{
    const struct hf_task_opts opts = {.priority = priority};
    enum hf_status status =
        hf_pool_work_init(work, feed->pool, run, feed, &opts);

    assert(status == HF_OK);
    (void)status;
}

enum hf_status work_open(struct feed *feed)
{
    const struct hf_pool_opts opts = {.name = "feed", .kind = HF_POOL_SINGLE};

    if (hf_pool_open(&feed->pool, &opts) != HF_OK)
        return HF_NOMEM;
    init_work(feed, &feed->write_work, run_write, 1);
    init_work(feed, &feed->read_work, run_read, 2);
    return HF_OK;
}

void work_post(struct feed *feed)
{
    enum hf_status status = hf_pool_post(&feed->write_work);

    assert(status == HF_OK || status == HF_EXISTS || status == HF_CLOSED);
    (void)status;
}

void work_close(struct feed *feed)
{
    if (feed->pool == NULL)
        return;
    (void)hf_pool_shutdown_now(feed->pool, NULL, NULL);
    hf_pool_close(feed->pool);
}
