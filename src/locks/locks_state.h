/* locks_state.h - the inside of a lock manager, shared by its source files.
 *
 *   locks.c        open, the end, what is asked of a manager
 *   locks_wait.c   carrying out commands; those who wait
 *   locks_show.c   figures, holders, cycles, the graph
 *
 * The engine decides, under the mutex: a command goes in, and its answers come
 * out, to the caller and to those who waited:
 *
 *   acquire --> engine: granted                          --> returns
 *                  |    WAITING, ticket --> its bell ... --> rung, returns
 *                  |                          ^
 *   release --> engine: answers by ticket ----'
 *
 * A waiter lies on the stack of its thread. It is linked while the engine knows
 * its ticket. Whoever runs the command that answers it unlinks it, writes the
 * answer, and rings its bell after unlocking, as the last touch.
 *
 * What ends by time (TTL, grace) has to end while all sleep. One of those who
 * wait keeps the time: it sleeps until the engine's next due time at most.
 */
#ifndef LOCKS_LOCKS_STATE_H
#define LOCKS_LOCKS_STATE_H

#include "base/index.h"
#include "hold/engine.h"
#include "holdfast/locks.h"
#include "sync/bell.h"
#include "sync/listed.h"
#include "sync/locals.h"
#include "sync/mutex.h"
#include "sync/waits.h"

#define NS_PER_US 1000u
#define NS_PER_MS UINT64_C(1000000)

#define THREAD_OWNER_BYTES (7 + HF_DIGITS_MAX)

/* A request, looked through. */
struct locks_wanted {
    const struct hf_locks_request *request;
    const struct hf_locks_item *items;
    size_t count;
    bool is_set;
    struct hf_bytes owner;
    char thread_owner[THREAD_OWNER_BYTES];
};

#define LOCKS_BUCKETS 1024u

struct locks_waiter {
    const struct locks_wanted *wanted;
    struct locks_waiter *next_ticket; /* (m) in its bucket */
    struct locks_waiter *next;        /* (m) among all, oldest first */
    struct locks_waiter *prev;        /* (m) */
    struct locks_waiter *next_rung;   /* to be rung */
    uint64_t ticket;
    uint64_t since_ns;
    uint64_t deadline_ns;
    uint64_t until_ns; /* (m) sleeps until then at most */
    struct hf_event bell;
    bool rung;  /* (m) the bell is rung, will be, or need not be */
    bool poked; /* (m), and after the bell: it is to look at the time */
    enum hf_status status; /* (m), and after the bell; HF_PENDING */
    struct hf_locks_answer *answer;
};

/* Of one name. */
struct locks_figures {
    struct hf_named named;
    struct hf_locks_stats stats;
};

/* Of a thread, where ages count. */
struct locks_thread {
    uint64_t session; /* (m) 0: none yet */
    uint64_t number;  /* (m) of the thread whose session it is */
    char apart[HF_CACHE_LINE - 2 * sizeof(uint64_t)];
};

struct hf_locks { /* (i) immutable after open  (a) atomic  (m) under mutex */
    struct hf_listed listed;
    const struct hf_clock *clock;                                     /* (i) */
    enum hf_locks_policy policy;                                      /* (i) */
    uint32_t names_max;                                               /* (i) */
    uint32_t counted_names;                                           /* (i) */
    void (*observe)(void *context, const struct hf_locks_note *note); /* (i) */
    void *context;                                                    /* (i) */
    struct hf_locals threads;      /* (i) struct locks_thread */
    struct hf_atomic_u32 shutdown; /* (a) changes under mutex */
    struct hf_event closing;       /* (a) those who pause */
    struct hf_waits waits;         /* (a) */
    struct hf_mutex mutex;         /* (a) */
    uint64_t now_ns;               /* (m) of the command under way */
    struct hold_engine *engine;    /* (m) */
    struct hold_command command;   /* (m) */
    struct locks_waiter *first;    /* (m) those who wait */
    struct locks_waiter *last;     /* (m) */
    struct locks_waiter *keeper;   /* (m) of them, who keeps the time */
    struct locks_waiter *rung;     /* (m) to be rung after unlock */
    struct hf_texts texts;         /* (m) of the names below */
    size_t names_bytes;            /* (m) of the names, by the index */
    struct hf_index names;         /* (m) struct locks_figures */
    struct hf_locks_stats all;     /* (m) */
    struct locks_waiter *buckets[LOCKS_BUCKETS]; /* (m) by ticket */
};

/* locks_wait.c */

/* Locks, and looks at the clock. */
void hf_locks_lock(struct hf_locks *locks);
/* Unlocks, and rings whom it has to. */
void hf_locks_unlock(struct hf_locks *locks);
/* An empty command, to be filled in and run. */
struct hold_command *hf_locks_command(struct hf_locks *locks,
                                      enum hold_kind kind);
/* Carries it out. NULL: there is no memory, and nothing has changed. */
const struct hold_out *hf_locks_run(struct hf_locks *locks);
/* What is over ends: for questions. */
void hf_locks_pass_time(struct hf_locks *locks);
/* The command was answered WAITING. Unlocks, and returns the answer. */
enum hf_status hf_locks_wait(struct hf_locks *locks,
                             const struct locks_wanted *wanted, uint64_t ticket,
                             uint64_t deadline_ns,
                             struct hf_locks_answer *answer);
/* Unlinks a waiter, and has it rung with this answer. */
void hf_locks_end_wait(struct hf_locks *locks, struct locks_waiter *waiter,
                       enum hf_status status);

/* locks_show.c */

/* What the engine's answer means; writes what it tells. */
enum hf_status hf_locks_read_answer(enum hold_code code, struct hf_bytes body,
                                    struct hf_locks_answer *answer);
/* Counts how a request ended, of all its names. */
void hf_locks_count(struct hf_locks *locks, const struct locks_wanted *wanted,
                    enum hf_status status, bool waited, uint64_t waited_ns);

#endif
