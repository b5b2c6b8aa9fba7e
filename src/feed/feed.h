/* feed.h - every event, in order, kept in files of its own behind the journal.
 *
 *   loop     add, add, add ...            memory: the last few megabytes
 *              |                            |
 *              v                            +--> look: what is there now
 *   thread   blocks at the end of a file, the oldest files go
 *              |
 *              '--> read: what is only in files
 *
 * The journal is what is durable; the feed follows from it. So it is written
 * behind, without a sync. At a start a replay gives the events again that the
 * files do not have. A replay begins with a snapshot: therefore what is before
 * that has to be on disk before it counts (feed_settle).
 *
 * Numbers of events grow, with holes. What is kept has no gap but where
 * something was lost, and a gap is known: every block says behind which number
 * it goes on. A reader asks for what comes after a number, and is told up to
 * which number something is missing.
 *
 *   events-<number>.feed   blocks: the events above that number. What an older
 *                          file has above it does not count.
 *
 *   block at   0  8  HFEVNT01
 *              8  8  checksum (XXH3-64) of bytes 16 to the end
 *             16  8  before: the events are above this number
 *             24  8  up to: all events up to this number are here
 *             32  8  time of the last event, microseconds
 *             40  4  length of the events
 *             44  4  count of them, perhaps 0
 *             48     events, see event.h
 *
 * A block that is not whole ends its file.
 *
 * Files go when all of them together are larger than `keep_bytes`, or when the
 * last event of one is older than `keep_ms`, the oldest first, never the one
 * that is written to. Whoever adds waits for a disk that is slow
 * (feed_is_behind). One that fails or hangs loses nothing until FEED_CHUNKS_MAX
 * chunks wait for it; after that there is a gap.
 *
 * Threads: the loop's, but for feed_settle(), which is for any.
 */
#ifndef FEED_FEED_H
#define FEED_FEED_H

#include "feed/event.h"
#include "holdfast/clock.h"
#include "journal/disk.h"

struct feed;

#define FEED_ERROR_MAX 512

/* Events in memory and in one block; in memory at most. */
#define FEED_CHUNK_BYTES (256u * 1024)
#define FEED_CHUNKS_KEPT 16u
#define FEED_CHUNKS_MAX  64u
/* With more that are not written, nothing is to be added: the others are for
 * what one step of the engine may bring. */
#define FEED_CHUNKS_BEHIND 24u
/* A disk that has written nothing for so long hangs. */
#define FEED_PATIENCE_NS (5 * HF_NS_PER_S)

struct feed_opts {
    const char *dir;
    struct journal_io *io; /* NULL: the real disk */
    uint64_t keep_bytes;
    uint64_t keep_ms;
    /* Something was read, or written for who was behind: from the thread. */
    void (*wake)(void *context);
    void *context;
};

/* Opens what is there; nothing is written before feed_start(), except when a
 * replay has more events than memory may have. HF_IO, HF_NOMEM: `error` says
 * why. */
enum hf_status feed_open(struct feed **out, const struct feed_opts *opts,
                         char error[FEED_ERROR_MAX]);
/* Nothing is added any more, and nobody settles; what is left is written and
 * synced if `clean`. */
void feed_stop(struct feed *feed, bool clean);
/* After that; NULL is fine. */
void feed_close(struct feed *feed);

/* Adds what a step of the engine told: its events, and that these are all up to
 * its number. For a replay, too: see hold_replay(); the context is the feed.
 * NULL: there is none. */
hold_told_fn feed_take;
/* A replay begins, with the state up to that number. */
void feed_begin(struct feed *feed, uint64_t seq);
/* It has ended with that number: what the files have above it is gone. */
void feed_start(struct feed *feed, uint64_t seq);

/* True while the disk has to catch up before more is added: `wake` is called
 * when it has written some of it. Not if it fails or hangs. NULL: false. */
bool feed_is_behind(struct feed *feed, const struct hf_clock *clock);
/* Waits until it is not: for a replay. */
void feed_catch_up(struct feed *feed);
/* Has the thread write what is there, now and then. `now_us`: in the time of
 * events. */
void feed_tend(struct feed *feed, uint64_t now_ns, uint64_t now_us);

/* Waits until all events up to that number are on disk. HF_CANCELLED: the feed
 * was stopped. A disk that fails ends the wait, with HF_OK: the feed may get a
 * gap. */
enum hf_status feed_settle(struct feed *feed, uint64_t seq);

/* Events, one behind the other. */
struct feed_page {
    struct hf_bytes events; /* some of them may be below `after` */
    uint64_t after;         /* those above this number count, */
    uint64_t up_to;         /* up to this; there are no others between */
    uint64_t gap;           /* not 0: what was asked for is missing up to it */
};

/* What is there of the events above `after`. HF_OK: valid until the next call
 * of feed_take(); no events, and `up_to` not above `after`: there are none yet.
 * HF_PENDING: it is to be read. */
enum hf_status feed_look(const struct feed *feed, uint64_t after,
                         struct feed_page *page);

/* A read by the thread. */
struct feed_read {
    struct feed_read *next;
    uint64_t after;
    void *owner; /* the caller's; NULL: nobody wants it any more */
    struct feed_page page;
    struct hf_buf bytes; /* of the page */
    bool searches;       /* only for events about something: */
    struct event_about about;
    uint64_t searched; /* bytes of events that were looked at */
    char name[HOLD_NAME_MAX];
};
/* Begins one; NULL without memory. */
struct feed_read *feed_read_start(struct feed *feed, uint64_t after,
                                  void *owner);
/* The same, but the page has only those about that, perhaps none: there are no
 * others of them up to where it ends. It ends at the latest when so many bytes
 * of events were looked at. */
#define FEED_SEARCH_BYTES (2u * 1024 * 1024)
struct feed_read *feed_search_start(struct feed *feed, uint64_t after,
                                    const struct event_about *about,
                                    void *owner);
/* The next that is done, to be freed by the caller; NULL: none. */
struct feed_read *feed_read_next(struct feed *feed);
void feed_read_free(struct feed_read *read);

struct feed_stats {
    uint64_t first; /* events above this number are kept */
    uint64_t last;  /* up to this */
    uint64_t count; /* added since the start */
    uint64_t bytes; /* of the files */
    uint64_t files;
    uint64_t lost;     /* events that are not kept for want of memory */
    uint64_t failures; /* of the disk */
};
void feed_stats(const struct feed *feed, struct feed_stats *out);
/* Why the disk failed last; "" if it has not. */
void feed_error(const struct feed *feed, char out[FEED_ERROR_MAX]);

#endif
