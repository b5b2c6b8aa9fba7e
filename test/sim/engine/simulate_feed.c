/* simulate_feed.c - every event of the model is in the feed, once, in order.
 *
 * What the engine gives goes into a feed on disk, which is closed and opened
 * again now and then, as after a stop or a crash. At the end all of it is read,
 * from memory and from files, and compared with the events of the model by a
 * hash over all of them.
 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "feed/feed.h"
#include "holdfast/event.h"
#include "sim/engine/simulate_parts.h"

struct sim_feed {
    struct feed *feed;
    char dir[256];
    uint64_t expected; /* hash of the model's events */
    uint64_t count;
    uint64_t opened;
    uint64_t takes;
    struct hf_event read; /* something was */
};

/* After so many steps it is closed and opened. */
#define REOPEN 19997u

static struct sim_feed feed;

static uint64_t add_hash(uint64_t hash, uint64_t number)
{
    return model_hash(hash, &number, sizeof number);
}

static uint64_t add_text(uint64_t hash, const char *data, size_t len)
{
    return model_hash(add_hash(hash, len), data, len);
}

static void wake(void *context)
{
    (void)context;
    hf_event_wake_all(&feed.read);
}

static enum hf_status try_read(void *context)
{
    struct feed_read **read = context;

    *read = feed_read_next(feed.feed);
    return *read != NULL ? HF_OK : HF_PENDING;
}

static void open_feed(uint64_t seq)
{
    const struct feed_opts opts = {.dir = feed.dir,
                                   .keep_bytes = INT64_MAX,
                                   .keep_ms = HOLD_TTL_MAX_MS,
                                   .wake = wake};
    char error[FEED_ERROR_MAX];

    if (feed_open(&feed.feed, &opts, error) != HF_OK) {
        fprintf(stderr, "%s\n", error);
        abort();
    }
    feed_start(feed.feed, seq);
    feed.opened++;
}

void sim_feed_open(struct sim *sim)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(feed.dir, sizeof feed.dir, "%s/feed-XXXXXX",
             tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(feed.dir) == NULL)
        abort();
    open_feed(hold_seq(sim->engine));
}

void sim_feed_take(struct sim *sim, const struct hold_out *out)
{
    const struct model *model = sim->model;

    feed_take(feed.feed, out);
    for (size_t i = 0; i < model->event_count; i++) {
        const struct model_event *event = &model->events[i];
        feed.expected = add_hash(feed.expected, event->seq);
        feed.expected = add_hash(feed.expected, event->kind);
        feed.expected = add_hash(feed.expected, event->token);
        feed.expected = add_hash(feed.expected, event->facts);
        feed.expected = add_hash(feed.expected, event->mode);
        feed.expected = add_hash(feed.expected, event->age_us);
        feed.expected = add_hash(feed.expected, model->now_us);
        feed.expected =
            add_text(feed.expected, event->name.data, event->name.len);
        feed.count++;
    }
    if (++feed.takes % REOPEN == 0) {
        feed_stop(feed.feed, true);
        feed_close(feed.feed);
        open_feed(hold_seq(sim->engine));
    }
    feed_tend(feed.feed, sim->step * 10000000, model->now_us);
}

/* The page's events, and which was the last. */
static void hash_page(const struct feed_page *page, uint64_t *hash,
                      uint64_t *count)
{
    struct hold_event event;
    uint64_t now_us;

    for (size_t at = 0; at < page->events.len;) {
        size_t len = event_decode(
            hf_bytes(page->events.data + at, page->events.len - at), &event,
            &now_us);
        if (len == 0)
            abort();
        at += len;
        if (event.seq <= page->after || event.seq > page->up_to)
            continue;
        *hash = add_hash(*hash, event.seq);
        *hash = add_hash(*hash, event.kind);
        *hash = add_hash(*hash, event.token);
        *hash = add_hash(*hash, sim_event_facts(&event));
        *hash = add_hash(*hash, event.mode);
        *hash = add_hash(*hash, event.age_us);
        *hash = add_hash(*hash, now_us);
        *hash = add_text(*hash, event.name.data, event.name.len);
        ++*count;
    }
}

/* The next page, wherever it is; false at the end. */
static bool read_page(struct sim *sim, uint64_t *after, uint64_t *hash,
                      uint64_t *count)
{
    struct feed_page page;
    struct feed_read *read = NULL;

    if (feed_look(feed.feed, *after, &page) == HF_PENDING) {
        if (feed_read_start(feed.feed, *after, &feed) == NULL)
            abort();
        (void)hf_event_until(&feed.read, try_read, &read, NULL, HF_FOREVER);
        page = read->page;
    }
    bool more = page.up_to > *after;
    if (page.gap != 0)
        sim_fail(sim, "feed", "found: a gap up to %llu",
                 (unsigned long long)page.gap);
    hash_page(&page, hash, count);
    *after = page.up_to;
    if (read != NULL)
        feed_read_free(read);
    return more;
}

static void remove_files(void)
{
    DIR *dir = opendir(feed.dir);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(feed.dir);
}

void sim_feed_check(struct sim *sim)
{
    uint64_t hash = 0;
    uint64_t count = 0;
    uint64_t after = 0;

    while (!sim->failed && read_page(sim, &after, &hash, &count))
        ;
    if (!sim->failed && (count != feed.count || hash != feed.expected))
        sim_fail(sim, "feed", "expected: %llu events\nfound:    %llu%s",
                 (unsigned long long)feed.count, (unsigned long long)count,
                 count == feed.count ? ", others" : "");
}

void sim_feed_close(void)
{
    feed_stop(feed.feed, false);
    feed_close(feed.feed);
    remove_files();
    feed = (struct sim_feed){0};
}
