/* feeding.c - what was told, beside what the files have. */
#include "sim/server/feeding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/event.h"
#include "sim/server/disk.h"
#include "sim/server/world.h"

struct told {
    uint64_t seq;
    uint64_t hash;
    char *bytes; /* the event */
    size_t len;
};

static struct {
    struct told *told; /* in order */
    size_t count;
    size_t cap;
    uint64_t up_to; /* all of them up to this */
    bool lossy;
    bool gaps; /* may be there */
    uint64_t events;
    char wrong[300];
} all;

void feeding_begin(void)
{
    for (size_t i = 0; i < all.count; i++)
        free(all.told[i].bytes);
    free(all.told);
    memset(&all, 0, sizeof all);
}

void feeding_end(void)
{
    feeding_begin();
}

void feeding_lose(void)
{
    all.lossy = true;
}

static void wrong(const char *format, ...)
{
    va_list args;

    if (all.wrong[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(all.wrong, sizeof all.wrong, format, args);
    va_end(args);
}

static uint64_t hash_bytes(const char *data, size_t len)
{
    uint64_t hash = 1469598103934665603u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)data[i]) * 1099511628211u;
    return hash;
}

/* The first that is not below that number. */
static size_t find(uint64_t seq)
{
    size_t low = 0;
    size_t high = all.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all.told[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void note(uint64_t seq, const char *bytes, size_t len)
{
    uint64_t hash = hash_bytes(bytes, len);
    size_t at = find(seq);

    if (at < all.count) {
        if (all.told[at].seq != seq || all.told[at].hash != hash)
            wrong("a replay tells %llu otherwise", (unsigned long long)seq);
        return;
    }
    if (seq <= all.up_to) {
        wrong("a replay tells %llu, which was not told before",
              (unsigned long long)seq);
        return;
    }
    if (all.count == all.cap) {
        all.cap = all.cap == 0 ? 1024 : 2 * all.cap;
        all.told = realloc(all.told, all.cap * sizeof *all.told);
        if (all.told == NULL)
            abort();
    }
    char *copy = malloc(len);
    if (copy == NULL)
        abort();
    memcpy(copy, bytes, len);
    all.told[all.count++] = (struct told){seq, hash, copy, len};
}

uint64_t feeding_up_to(void)
{
    return all.up_to;
}

bool feeding_find(uint64_t seq, struct hold_event *out)
{
    size_t at = find(seq);
    uint64_t now_us;

    return at < all.count &&
           event_decode(hf_bytes(all.told[at].bytes, all.told[at].len), out,
                        &now_us) > 0;
}

bool feeding_is_sure(void)
{
    return !all.lossy;
}

static bool is_asked_for(const struct hold_event *event,
                         const struct feeding_ask *ask)
{
    uint64_t steps = 0;

    return ask->about.name.len > 0 ? event_is_about(event, &ask->about)
           : ask->match.len > 0    ? event_matches(event, ask->match, &steps)
                                   : true;
}

uint64_t feeding_next(uint64_t after, const struct feeding_ask *ask)
{
    struct hold_event event;
    uint64_t now_us;

    for (size_t i = find(after + 1); i < all.count; i++) {
        const struct told *told = &all.told[i];
        if (event_decode(hf_bytes(told->bytes, told->len), &event, &now_us) >
                0 &&
            is_asked_for(&event, ask))
            return told->seq;
    }
    return UINT64_MAX;
}

void __wrap_feed_take(void *context, const struct hold_out *out);
void __real_feed_take(void *context, const struct hold_out *out);

void __wrap_feed_take(void *context, const struct hold_out *out)
{
    static char bytes[EVENT_BYTES_MAX];

    for (size_t i = 0; context != NULL && i < out->event_count; i++)
        note(out->events[i].seq, bytes,
             event_encode(&out->events[i], out->now_us, bytes));
    if (context != NULL && out->seq > all.up_to)
        all.up_to = out->seq;
    __real_feed_take(context, out);
}

void __wrap_feed_start(struct feed *feed, uint64_t seq);
void __real_feed_start(struct feed *feed, uint64_t seq);

/* The journal ends there: what was told above it never happened. */
void __wrap_feed_start(struct feed *feed, uint64_t seq)
{
    if (all.up_to > seq && !all.lossy)
        wrong("the journal ends at %llu, and %llu was told",
              (unsigned long long)seq, (unsigned long long)all.up_to);
    if (all.up_to > seq) {
        size_t count = find(seq + 1);
        while (all.count > count)
            free(all.told[--all.count].bytes);
        all.up_to = seq;
    }
    __real_feed_start(feed, seq);
}

void __wrap_feed_close(struct feed *feed);
void __real_feed_close(struct feed *feed);

/* Was there a cause for gaps? */
void __wrap_feed_close(struct feed *feed)
{
    struct feed_stats stats = {0};

    if (feed != NULL)
        feed_stats(feed, &stats);
    if (stats.failures > 0 || stats.lost > 0)
        all.gaps = true;
    __real_feed_close(feed);
}

/* ---- Reading. ---- */

static struct hf_event read_event;

static void wake(void *context)
{
    (void)context;
}

static struct feed_read *done;

static enum hf_status try_read(void *context)
{
    done = feed_read_next(context);
    return done != NULL || world_is_dead() ? HF_OK : HF_PENDING;
}

/* Compares a page; `*at` is the next that is expected. */
static void check_page(const struct feed_page *page, size_t *at)
{
    if (page->gap != 0) {
        if (!all.gaps)
            wrong("a gap up to %llu without a cause",
                  (unsigned long long)page->gap);
        *at = find(page->gap + 1);
    }
    for (size_t next = 0; next < page->events.len && all.wrong[0] == '\0';) {
        const char *event = page->events.data + next;
        size_t len = hf_get_u32(event);
        uint64_t seq = event_seq(event);
        next += len;
        if (seq <= page->after || seq > page->up_to)
            continue;
        if (*at >= all.count || all.told[*at].seq != seq)
            wrong(
                "event %llu is in the feed, expected was %llu",
                (unsigned long long)seq,
                (unsigned long long)(*at < all.count ? all.told[*at].seq : 0));
        else if (all.told[*at].hash != hash_bytes(event, len))
            wrong("event %llu is another one", (unsigned long long)seq);
        ++*at;
        all.events++;
    }
}

static void read_all(struct feed *feed)
{
    uint64_t after = 0;
    size_t at = 0;

    while (all.wrong[0] == '\0' && !world_is_dead()) {
        struct feed_page page;
        done = NULL;
        if (feed_look(feed, after, &page) == HF_PENDING) {
            if (feed_read_start(feed, after, &all) == NULL)
                abort();
            (void)hf_event_until(&read_event, try_read, feed, NULL, HF_FOREVER);
            if (done == NULL)
                return;
            page = done->page;
        }
        if (!world_is_dead()) /* else a read ends anyhow */
            check_page(&page, &at);
        bool more = page.up_to > after;
        after = page.up_to;
        if (done != NULL)
            feed_read_free(done);
        if (!more)
            break;
    }
    /* Else the next start has to tell it. */
    if (at < all.count && !all.gaps && !world_is_dead())
        wrong("event %llu is not in the feed",
              (unsigned long long)all.told[at].seq);
}

/* The files as the server would open them. */
static void check_files(const char *dir, uint64_t keep_bytes)
{
    const struct feed_opts opts = {.dir = dir,
                                   .io = disk_io(),
                                   .keep_bytes = keep_bytes,
                                   .keep_ms = HOLD_TTL_MAX_MS,
                                   .wake = wake};
    char error[FEED_ERROR_MAX];
    struct feed *feed;

    all.gaps = all.gaps || keep_bytes < 1u << 20; /* files go */
    if (feed_open(&feed, &opts, error) != HF_OK) {
        wrong("%.250s", error);
        return;
    }
    __real_feed_start(feed, all.up_to);
    read_all(feed);
    feed_stop(feed, false);
    feed_close(feed);
}

const char *feeding_check(const char *dir, uint64_t keep_bytes)
{
    if (keep_bytes > 0)
        check_files(dir, keep_bytes);
    return all.wrong[0] == '\0' ? NULL : all.wrong;
}
