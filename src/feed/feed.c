/* feed.c - the loop's side: events into memory, and out of it. */
#include "feed/feed.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "feed/state.h"

/* How often what is there is written, and what failed is tried again. */
#define WRITE_EVERY_NS  HF_NS_PER_S
#define EXPIRE_EVERY_NS (10 * HF_NS_PER_S)

_Static_assert(EVENT_BYTES_MAX <= FEED_CHUNK_BYTES, "an event fits");

static enum hf_status open_folder(struct feed *feed, char *error)
{
    feed->dir = open(feed->opts.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (feed->dir >= 0 || errno == ENOENT)
        return HF_OK; /* the journal will make it, or say why not */
    snprintf(error, FEED_ERROR_MAX, "cannot open the folder %s: %s",
             feed->opts.dir, strerror(errno));
    return HF_IO;
}

enum hf_status feed_open(struct feed **out, const struct feed_opts *opts,
                         char error[FEED_ERROR_MAX])
{
    struct feed *feed = hf_alloc_zeroed(sizeof *feed);
    enum hf_status status = HF_NOMEM;

    *out = feed;
    snprintf(error, FEED_ERROR_MAX, "no memory for the feed of events");
    if (feed == NULL)
        return HF_NOMEM;
    feed->opts = *opts;
    feed->io = opts->io;
    feed->dir = -1;
    feed->fd = -1;
    feed->scratch = hf_alloc(BLOCK_HEAD_BYTES + FEED_CHUNK_BYTES);
    if (feed->scratch != NULL)
        status = HF_OK;
    if (status == HF_OK && feed->io == NULL) {
        status = journal_io_plain(&feed->io);
        feed->own_io = status == HF_OK;
    }
    if (status == HF_OK)
        status = open_folder(feed, error);
    if (status == HF_OK && feed->dir >= 0)
        status = files_open(feed, error);
    if (status == HF_OK)
        status = work_open(feed);
    if (status != HF_OK) {
        feed_close(feed);
        *out = NULL;
        return status;
    }
    feed->skip =
        feed->file_count > 0 ? feed->files[feed->file_count - 1].up_to : 0;
    return HF_OK;
}

static void free_reads(struct feed_read *read)
{
    while (read != NULL) {
        struct feed_read *next = read->next;
        feed_read_free(read);
        read = next;
    }
}

void feed_close(struct feed *feed)
{
    if (feed == NULL)
        return;
    work_close(feed);
    free_reads(feed->reads);
    free_reads(feed->read_done);
    files_close(feed);
    for (; feed->first < feed->next; feed->first++)
        hf_free(feed->chunks[feed->first % FEED_CHUNKS_MAX]);
    if (feed->own_io)
        feed->io->close(feed->io);
    if (feed->dir >= 0)
        close(feed->dir);
    hf_free(feed->scratch);
    hf_free(feed);
}

/* ---- In. ---- */

/* What was added may be written. */
static void publish(struct feed *feed)
{
    const struct feed_chunk *chunk = feed->building;

    hf_mutex_lock(&feed->mutex);
    if (chunk != NULL)
        feed->ready =
            (struct feed_ready){feed->next - 1, chunk->up_to, chunk->last_us,
                                chunk->count, chunk->len};
    hf_mutex_unlock(&feed->mutex);
    work_post(feed);
}

/* Those that are written go, but for the last few; true if there is room. */
static bool make_room(struct feed *feed)
{
    hf_mutex_lock(&feed->mutex);
    uint64_t written = feed->write_chunk;
    hf_mutex_unlock(&feed->mutex);
    while (feed->next - feed->first >= FEED_CHUNKS_KEPT &&
           feed->first < written) {
        hf_free(feed->chunks[feed->first % FEED_CHUNKS_MAX]);
        feed->first++;
    }
    return feed->next - feed->first < FEED_CHUNKS_MAX;
}

/* The next chunk, for events above `before`. Without room or memory there is
 * none, and events are lost. */
static void turn(struct feed *feed, uint64_t before)
{
    struct feed_chunk *chunk = NULL;

    if (feed->building != NULL) {
        feed->building->up_to = before;
        publish(feed);
    }
    if (make_room(feed))
        chunk = hf_alloc(sizeof *chunk);
    hf_mutex_lock(&feed->mutex);
    feed->losing = chunk == NULL;
    hf_mutex_unlock(&feed->mutex);
    if (chunk == NULL)
        hf_event_wake_all(&feed->done);
    feed->building = chunk;
    if (chunk == NULL)
        return;
    chunk->before = chunk->up_to = before;
    chunk->last_us = 0;
    chunk->count = 0;
    chunk->len = 0;
    feed->chunks[feed->next++ % FEED_CHUNKS_MAX] = chunk;
}

/* So that it can be written up to where all is known. */
static void need_chunk(struct feed *feed)
{
    if (feed->building != NULL)
        return;
    turn(feed, feed->lost > 0 ? feed->up_to : feed->base);
    if (feed->building != NULL)
        feed->building->up_to = feed->up_to;
}

/* There is no chunk, or no room in it; false: the event is lost. */
__attribute__((noinline)) static bool next_chunk(struct feed *feed,
                                                 uint64_t seq)
{
    bool begins = feed->building == NULL && feed->lost == 0;

    turn(feed, begins ? feed->base : seq - 1);
    feed->lost += feed->building == NULL;
    return feed->building != NULL;
}

static inline void add(struct feed *feed, const struct hold_event *event,
                       uint64_t now_us)
{
    const struct feed_chunk *last = feed->building;

    if (event->seq <= feed->skip)
        return;
    if ((last == NULL || FEED_CHUNK_BYTES - last->len < event_bytes(event)) &&
        !next_chunk(feed, event->seq))
        return;
    struct feed_chunk *chunk = feed->building;
    chunk->len += event_encode(event, now_us, chunk->data + chunk->len);
    chunk->count++;
    chunk->last_us = now_us;
    feed->count++;
}

/* All events up to that number were added. */
static void cover(struct feed *feed, uint64_t seq)
{
    if (seq <= feed->skip)
        return;
    feed->up_to = seq;
    if (feed->building != NULL)
        feed->building->up_to = seq;
}

/* Copies at most TEXTS_MAX bytes; the pieces may overlap. */
#define TEXTS_MAX 64u
static inline void copy_texts(char *to, const char *from, size_t len)
{
    struct piece {
        char bytes[16];
    } first, second, last, before;

    if (len < 16) {
        hf_copy_short(to, from, len);
        return;
    }
    memcpy(&first, from, 16);
    memcpy(&last, from + len - 16, 16);
    if (len > 32) {
        memcpy(&second, from + 16, 16);
        memcpy(&before, from + len - 32, 16);
        memcpy(to + 16, &second, 16);
        memcpy(to + len - 32, &before, 16);
    }
    memcpy(to, &first, 16);
    memcpy(to + len - 16, &last, 16);
}

/* The same as add() and cover() of what is most usual: one event with short
 * texts, to a chunk that has room. It calls nothing, which is half of what it
 * would take. False: it is not so. */
static inline bool add_one(struct feed *feed, const struct hold_out *out)
{
    const struct hold_event *event = out->events;
    struct feed_chunk *chunk = feed->building;

    if (out->event_count != 1 || chunk == NULL || feed->skip != 0)
        return false;
    size_t len = event_bytes(event);
    size_t texts = len - EVENT_HEAD_BYTES;
    size_t at = chunk->len;
    if (texts > TEXTS_MAX || FEED_CHUNK_BYTES - at < len)
        return false;
    chunk->len = at + len;
    chunk->count++;
    chunk->last_us = out->now_us;
    chunk->up_to = feed->up_to = out->seq;
    feed->count++;
    event_encode_head(event, len, out->now_us, chunk->data + at);
    copy_texts(chunk->data + at + EVENT_HEAD_BYTES, event->name.data, texts);
    return true;
}

__attribute__((noinline)) static void add_all(struct feed *feed,
                                              const struct hold_out *out)
{
    for (size_t i = 0; i < out->event_count; i++)
        add(feed, &out->events[i], out->now_us);
    cover(feed, out->seq);
}

void feed_take(void *context, const struct hold_out *out)
{
    struct feed *feed = context;

    if (feed != NULL && !add_one(feed, out))
        add_all(feed, out);
}

/* ---- Not too much. ---- */

/* Has the disk much to do? */
static bool is_far(struct feed *feed)
{
    hf_mutex_lock(&feed->mutex);
    bool far = feed->next - feed->write_chunk > FEED_CHUNKS_BEHIND &&
               !feed->failing && !feed->closing;
    uint64_t written = feed->written;
    feed->awaited = far;
    hf_mutex_unlock(&feed->mutex);
    if (!far || written != feed->seen)
        feed->seen_ns = 0;
    feed->seen = written;
    return far;
}

bool feed_is_behind(struct feed *feed, const struct hf_clock *clock)
{
    if (feed == NULL || feed->next - feed->first <= FEED_CHUNKS_BEHIND ||
        !is_far(feed))
        return false;
    uint64_t now_ns = hf_clock_now_ns(clock);
    if (feed->seen_ns == 0)
        feed->seen_ns = now_ns;
    return now_ns - feed->seen_ns < FEED_PATIENCE_NS;
}

static enum hf_status try_caught_up(void *context)
{
    return feed_is_behind(context, NULL) ? HF_PENDING : HF_OK;
}

void feed_catch_up(struct feed *feed)
{
    while (try_caught_up(feed) == HF_PENDING)
        (void)hf_event_until(&feed->done, try_caught_up, feed, NULL,
                             feed->seen_ns + FEED_PATIENCE_NS);
}

void feed_begin(struct feed *feed, uint64_t seq)
{
    feed->begun = true;
    feed->up_to = feed->base = seq > feed->skip ? seq : feed->skip;
    hf_mutex_lock(&feed->mutex);
    feed->written = feed->synced = feed->up_to;
    hf_mutex_unlock(&feed->mutex);
}

void feed_start(struct feed *feed, uint64_t seq)
{
    if (!feed->begun)
        feed_begin(feed, seq);
    if (feed->dir < 0)
        feed->dir = open(feed->opts.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (feed->skip > seq) { /* nothing was added, nor is the thread at work */
        files_cut(feed, seq);
        feed->up_to = feed->base = feed->written = feed->synced = seq;
    }
    feed->skip = 0;
}

void feed_tend(struct feed *feed, uint64_t now_ns, uint64_t now_us)
{
    hf_mutex_lock(&feed->mutex);
    feed->now_us = now_us;
    bool wanted = feed->wanted > feed->synced;
    bool left = feed->failing || feed->file_count > 1;
    hf_mutex_unlock(&feed->mutex);
    const struct feed_chunk *chunk = feed->building;
    bool news = chunk != NULL && (chunk->len != feed->ready.len ||
                                  feed->ready.chunk != feed->next - 1);
    uint64_t every_ns = news ? WRITE_EVERY_NS : EXPIRE_EVERY_NS;

    if (!wanted && (now_ns - feed->tended_ns < every_ns || !(news || left)))
        return;
    need_chunk(feed);
    feed->tended_ns = now_ns;
    publish(feed);
}

/* ---- Settling, from any thread. ---- */

struct settle {
    struct feed *feed;
    uint64_t seq;
};

static enum hf_status try_settled(void *context)
{
    struct settle *settle = context;
    struct feed *feed = settle->feed;
    enum hf_status status = HF_PENDING;

    hf_mutex_lock(&feed->mutex);
    if (feed->wanted < settle->seq)
        feed->wanted = settle->seq;
    if (feed->synced >= settle->seq || feed->failing || feed->losing)
        status = HF_OK;
    else if (feed->closing)
        status = HF_CANCELLED;
    hf_mutex_unlock(&feed->mutex);
    return status;
}

/* The loop sees in its next look that somebody waits. */
enum hf_status feed_settle(struct feed *feed, uint64_t seq)
{
    struct settle settle = {feed, seq};

    return hf_event_until(&feed->done, try_settled, &settle, NULL, HF_FOREVER);
}

void feed_stop(struct feed *feed, bool clean)
{
    if (clean) {
        need_chunk(feed);
        hf_mutex_lock(&feed->mutex);
        feed->wanted = feed->up_to;
        hf_mutex_unlock(&feed->mutex);
        publish(feed);
        (void)feed_settle(feed, feed->up_to);
    }
    hf_mutex_lock(&feed->mutex);
    feed->closing = true;
    hf_mutex_unlock(&feed->mutex);
    hf_event_wake_all(&feed->done);
}

/* ---- Out. ---- */

static const struct feed_chunk *chunk_at(const struct feed *feed,
                                         uint64_t number)
{
    return feed->chunks[number % FEED_CHUNKS_MAX];
}

/* Do files have something above that number that memory has not? What was
 * removed from them is not told from memory either, so that a restart changes
 * no answer: `*first` is the number above which they have events. */
static bool in_files(const struct feed *feed, uint64_t after, uint64_t *first)
{
    struct feed *f = (struct feed *)feed; /* for its mutex */
    uint64_t memory = feed->first < feed->next
                          ? chunk_at(feed, feed->first)->before
                          : UINT64_MAX;

    hf_mutex_lock(&f->mutex);
    size_t count = feed->file_count;
    *first = count > 0 ? feed->files[0].start : 0;
    bool has = count > 0 && feed->files[count - 1].up_to > after;
    hf_mutex_unlock(&f->mutex);
    return has && after < memory && *first < memory;
}

enum hf_status feed_look(const struct feed *feed, uint64_t after,
                         struct feed_page *page)
{
    uint64_t first;
    bool read = in_files(feed, after, &first);

    *page = (struct feed_page){.after = after, .up_to = after};
    if (read)
        return HF_PENDING;
    if (after < first)
        page->gap = page->after = page->up_to = after = first;
    if (feed->first == feed->next && after < feed->base) {
        /* nothing was added yet, and what was before is not kept */
        page->gap = page->after = feed->base;
        page->up_to = feed->up_to;
    }
    for (uint64_t i = feed->first; i < feed->next; i++) {
        const struct feed_chunk *chunk = chunk_at(feed, i);
        if (chunk->up_to <= after)
            continue;
        if (chunk->before > after)
            page->gap = page->after = chunk->before;
        page->events = hf_bytes(chunk->data, chunk->len);
        page->up_to = chunk->up_to;
        break;
    }
    return HF_OK;
}

static struct feed_read *start_read(struct feed *feed, struct feed_read *read)
{
    hf_mutex_lock(&feed->mutex);
    read->next = feed->reads;
    feed->reads = read;
    hf_mutex_unlock(&feed->mutex);
    enum hf_status status = hf_pool_post(&feed->read_work);
    assert(status == HF_OK || status == HF_EXISTS || status == HF_CLOSED);
    (void)status;
    return read;
}

struct feed_read *feed_read_start(struct feed *feed, uint64_t after,
                                  void *owner)
{
    struct feed_read *read = hf_alloc_zeroed(sizeof *read);

    if (read == NULL)
        return NULL;
    read->after = after;
    read->owner = owner;
    return start_read(feed, read);
}

struct feed_read *feed_search_start(struct feed *feed, uint64_t after,
                                    const struct event_about *about,
                                    void *owner)
{
    struct feed_read *read = hf_alloc_zeroed(sizeof *read);

    assert(about->name.len <= sizeof read->name);
    if (read == NULL)
        return NULL;
    read->after = after;
    read->owner = owner;
    read->searches = true;
    memcpy(read->name, about->name.data, about->name.len);
    read->about = (struct event_about){about->subject,
                                       hf_bytes(read->name, about->name.len)};
    return start_read(feed, read);
}

void feed_read_free(struct feed_read *read)
{
    hf_buf_destroy(&read->bytes);
    hf_free(read);
}

/* Nothing was found: what memory has comes next. */
static void skip_to_memory(const struct feed *feed, struct feed_read *read)
{
    uint64_t to = feed->first < feed->next ? chunk_at(feed, feed->first)->before
                                           : feed->up_to;

    if (read->page.up_to <= read->after && to > read->after)
        read->page = (struct feed_page){{NULL, 0}, to, to, to};
}

struct feed_read *feed_read_next(struct feed *feed)
{
    hf_mutex_lock(&feed->mutex);
    struct feed_read *read = feed->read_done;
    if (read != NULL)
        feed->read_done = read->next;
    hf_mutex_unlock(&feed->mutex);
    if (read != NULL)
        skip_to_memory(feed, read);
    return read;
}

void feed_stats(const struct feed *feed, struct feed_stats *out)
{
    struct feed *f = (struct feed *)feed; /* for its mutex */

    *out = (struct feed_stats){
        .first = feed->first < feed->next ? chunk_at(feed, feed->first)->before
                                          : feed->up_to,
        .last = feed->up_to,
        .count = feed->count,
        .lost = feed->lost};
    hf_mutex_lock(&f->mutex);
    for (size_t i = 0; i < feed->file_count; i++)
        out->bytes += feed->files[i].bytes;
    if (feed->file_count > 0)
        out->first = feed->files[0].start;
    out->files = feed->file_count;
    out->failures = feed->failures;
    hf_mutex_unlock(&f->mutex);
}

void feed_error(const struct feed *feed, char out[FEED_ERROR_MAX])
{
    struct feed *f = (struct feed *)feed; /* for its mutex */

    hf_mutex_lock(&f->mutex);
    memcpy(out, feed->error, FEED_ERROR_MAX);
    hf_mutex_unlock(&f->mutex);
}
