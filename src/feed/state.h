/* state.h - struct feed: what is open. Private to the feed. */
#ifndef FEED_STATE_H
#define FEED_STATE_H

#include "feed/feed.h"
#include "holdfast/pool.h"
#include "sync/mutex.h"

#define FEED_NAME_MAX    40
#define BLOCK_HEAD_BYTES 48u

/* A file is read from the last of these places that is not too far: one every
 * so many bytes. */
#define MARK_BYTES (64u * 1024)
struct feed_mark {
    uint64_t offset;
    uint64_t before; /* of the block there */
};

struct feed_file {
    uint64_t start;   /* as in its name */
    uint64_t up_to;   /* of its last block */
    uint64_t last_us; /* of its last event; 0: it has none */
    uint64_t bytes;   /* of whole blocks */
    bool torn;        /* something else is behind them */
    struct feed_mark *marks;
    size_t mark_count;
};

/* Events in memory: the unit in which it is taken. */
struct feed_chunk {
    uint64_t before; /* they are above this number */
    uint64_t up_to;  /* all of them up to this are here */
    uint64_t last_us;
    uint32_t count;
    size_t len;
    char data[FEED_CHUNK_BYTES];
};

/* How far a chunk may be read by the thread. */
struct feed_ready {
    uint64_t chunk;
    uint64_t up_to;
    uint64_t last_us;
    uint32_t count;
    size_t len;
};

struct feed { /* (i) immutable  (l) the loop's  (m) under mutex  (t) the
                 thread's; (mt) changed by it under mutex */
    struct feed_opts opts; /* (m) what is kept, else (i) */
    struct journal_io *io; /* (i) */
    bool own_io;           /* (i) */
    int dir;               /* (i) */

    struct feed_chunk *chunks[FEED_CHUNKS_MAX]; /* (l) by number: a ring */
    uint64_t first;                             /* (l) the oldest */
    uint64_t next;                              /* (l) the next to be begun */
    struct feed_chunk *building;                /* (l) NULL: none */
    uint64_t base;      /* (l) where the first chunk begins */
    uint64_t up_to;     /* (l) all events up to this were given to add */
    uint64_t skip;      /* (l) events up to this are in files, before start */
    uint64_t count;     /* (l) */
    uint64_t lost;      /* (l) */
    uint64_t tended_ns; /* (l) */
    uint64_t seen;      /* (l) what was written when it was behind, */
    uint64_t seen_ns;   /* (l) and since when no more is */
    bool begun;         /* (l) a replay, or more */

    struct hf_mutex mutex;
    struct hf_event done;        /* for those who settle */
    struct feed_ready ready;     /* (m) */
    uint64_t write_chunk;        /* (mt) being written */
    size_t write_len;            /* (mt) of it, so much is */
    uint32_t write_count;        /* (t) */
    uint64_t written;            /* (mt) up to this number */
    uint64_t synced;             /* (mt) up to this on disk */
    uint64_t wanted;             /* (m) to be synced */
    uint64_t now_us;             /* (m) in the time of events */
    bool losing;                 /* (m) events are not kept */
    bool awaited;                /* (m) the loop is behind */
    bool failing;                /* (mt) the last disk call failed */
    bool closing;                /* (m) */
    uint64_t failures;           /* (mt) */
    char error[FEED_ERROR_MAX];  /* (mt) */
    struct feed_file *files;     /* (mt) the oldest first */
    size_t file_count;           /* (mt) */
    size_t file_cap;             /* (t) */
    struct feed_read *reads;     /* (m) asked for, the last first */
    struct feed_read *read_done; /* (m) */
    int fd;                      /* (t) of the last file; -1: not open */
    bool folder_dirty;           /* (t) a name is not on disk */
    char *scratch;               /* (t) a block */
    struct hf_pool *pool;        /* (i) */
    struct hf_pool_work write_work;
    struct hf_pool_work read_work;
};

/* file.c - all (t), or before the thread runs */

struct feed_block {
    uint64_t before;
    uint64_t up_to;
    uint64_t last_us;
    uint32_t len;
};

void files_name(char out[FEED_NAME_MAX], uint64_t start);
/* Reads the block at `offset` into the scratch. False: there is no whole one.
 */
bool files_block(struct feed *feed, int fd, uint64_t offset,
                 struct feed_block *out);
/* Looks at all files. */
enum hf_status files_open(struct feed *feed, char error[FEED_ERROR_MAX]);
void files_close(struct feed *feed);
/* Adds a block; with the mutex free. False: failed, as `error` says. */
bool files_append(struct feed *feed, uint64_t before,
                  const struct feed_ready *ready, struct hf_bytes events);
bool files_sync(struct feed *feed);
/* Removes what is not to be kept. */
void files_expire(struct feed *feed);
/* What files have above that number counts no more. */
void files_cut(struct feed *feed, uint64_t seq);
/* What they have above `read->after`. */
void files_read(struct feed *feed, struct feed_read *read);
/* The disk failed: notes why. */
void files_failed(struct feed *feed, const char *what, const char *name,
                  int cause);

/* work.c */
enum hf_status work_open(struct feed *feed);
void work_post(struct feed *feed);
void work_close(struct feed *feed);

#endif
