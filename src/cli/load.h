/* load.h - a load generator: many connections, one thread.
 *
 * Each connection sends a batch of `pipeline` requests in one write, reads
 * all replies, and only then sends the next batch. What is in a batch and what
 * a reply means is a workload's business:
 *
 *        batch()           write           read          reply() x n
 *   work -------> conn.out -----> server -----> conn.in -----------> work
 *     ^                                                               |
 *     +---------------------- all replies are here <-----------------+
 *
 * Unless there is a pace, the loop is closed: a connection goes on as soon as
 * it has its replies. With a pace, batches fall due at even intervals, whatever
 * the server does. The connection that has rested longest takes the next one;
 * if all are busy, the first that is not. Time counts from when it was due, so
 * that the wait for a connection is a part of the latency.
 *
 * Nothing is allocated per request: buffers keep their size.
 *
 * Memory: struct load is the caller's; load_open allocates, load_close frees.
 */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include "base/random.h"
#include "cli/client.h"
#include "cli/record.h"
#include "holdfast/spread.h"

#define LOAD_CLIENTS_MAX  20000
#define LOAD_PIPELINE_MAX 1000

struct load_options {
    uint64_t clients;
    uint64_t pipeline;
    uint64_t seconds;  /* how long to measure, unless `requests` is set */
    uint64_t requests; /* how many operations to measure; 0: by time */
    uint64_t warmup;   /* seconds that are not counted */
    uint64_t keys;
    uint64_t rate; /* of LIMIT */
    uint64_t per_ms;
    uint64_t poll_ms; /* mean pause between two tries, where one must poll */
    uint64_t hold_us; /* how long a lock is kept before it is handed on */
    uint64_t pace;    /* operations a second; 0: as many as there can be */
    uint64_t ttl_ms;  /* of reservations that may expire */
    uint64_t confirm_percent; /* of them */
    bool redis;               /* speak to Redis, with its scripts */
    bool progress;            /* draw a bar on stderr */
};

struct load_conn {
    int fd;
    uint32_t index;      /* 0 .. clients - 1 */
    uint32_t pending;    /* replies that are still to come */
    uint32_t slot;       /* which of the batch the next reply answers */
    int phase;           /* the workload's */
    bool done;           /* sends nothing any more */
    bool blocked;        /* the socket did not take all of `out` */
    uint64_t started_ns; /* when the operation under way began */
    uint64_t wake_ns;    /* asleep until then; 0: not asleep */
    struct hf_buf out;
    size_t sent;
    struct hf_buf in;
    struct hf_buf first;  /* the workload's: requests built in advance */
    struct hf_buf second; /* as above */
    uint64_t *tokens;     /* the workload's: one per slot */
    uint64_t mark;        /* the workload's */
    uint64_t first_id;    /* of the batch, where it is recorded */
};

struct load_counts {
    uint64_t operations;
    uint64_t requests;
    uint64_t errors;
};

struct load {
    const struct load_options *options;
    const struct work *work;
    struct record *record;
    struct load_conn *conns;
    int epoll;
    uint32_t live;           /* connections that are not done */
    uint32_t sleepers;       /* connections with wake_ns */
    struct load_conn **idle; /* with a pace: those without a batch, in order */
    uint64_t idle_first;
    uint64_t idle_count;
    uint64_t paced_ns; /* when the pace began */
    uint64_t paced;    /* operations that fell due since, and were begun */
    bool measuring;    /* false while warming up */
    bool stopping;     /* operations under way are ended, none are begun */
    uint64_t now_ns;   /* of this turn */
    uint64_t began_ns; /* of the measurement */
    uint64_t ended_ns;
    uint64_t drawn_ns; /* when the bar was drawn last */
    struct load_counts counts;
    uint64_t accepted;       /* operations that succeeded, warm-up included */
    uint64_t sold;           /* confirmations that did, and */
    uint64_t late;           /* that came too late */
    struct hf_spread *times; /* ns that operations took */
    struct hf_random random;
    char first_error[160];

    struct hf_buf pattern; /* the workload's: a request with a key */
    size_t pattern_key;    /* where the key's digits are */
    size_t pattern_time;   /* where the time's digits are, if any */
    size_t pattern_id;     /* where those of an id are, if any */
    uint64_t last_id;
    char script[64];      /* SHA of the script, Redis only */
    uint32_t tag;         /* part of names that no other run may share */
    uint64_t released_ns; /* hand-off: when the lock was given back */
    uint32_t released_by; /* and by whom */
    uint64_t grants;      /* and how often it was granted */
};

/* A kind of work. */
struct work {
    const char *name;
    bool single;         /* pipeline is always 1 */
    bool ours;           /* not for Redis */
    const char *script;  /* to be loaded into Redis before; NULL: none */
    const char *excused; /* a refusal that `reply` judges; NULL: none */
    /* Before any connection is open: builds the pattern. May be NULL. */
    enum hf_status (*prepare)(struct load *load);
    /* For each connection: what it can build in advance. May be NULL. */
    enum hf_status (*open)(struct load *load, struct load_conn *conn);
    /* Appends the next batch to conn->out and sets `pending`, or leaves that
     * at 0 to sleep until wake_ns. */
    enum hf_status (*batch)(struct load *load, struct load_conn *conn);
    /* Judges one reply; errors are counted and not passed on. */
    void (*reply)(struct load *load, struct load_conn *conn,
                  struct hf_bytes reply);
};

/* NULL: there is none of that name in this dialect. */
const struct work *work_find(const char *name, bool redis);

/* HF_NOMEM, or as client_open. */
enum hf_status load_open(struct load *load, const struct work *work,
                         const struct load_options *options,
                         const struct client_address *address,
                         struct record *record);
/* HF_IO: a connection broke; HF_INVALID: a reply was not RESP; HF_TIMEOUT:
 * the server stopped answering. The counts are valid in each case. */
enum hf_status load_run(struct load *load);
void load_close(struct load *load);

/* For workloads: whether a batch is due now. Sets started_ns; or the connection
 * rests, and its work is asked for a batch again when one is due. */
bool load_due(struct load *load, struct load_conn *conn);
/* For workloads: an operation succeeded or failed. */
void load_done(struct load *load, uint64_t took_ns);
void load_failed(struct load *load, struct hf_bytes why);

#endif
