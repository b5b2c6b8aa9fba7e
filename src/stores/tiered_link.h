/* tiered_link.h - what the files that talk to Redis share.
 *
 * In Redis, under the prefix P and the id R of this run of the server:
 *
 *   P:R:v:KEY   the value
 *   P:R:t:N     the token of the keys of stripe N: changes with each of them
 *   P:R:l:KEY   who loads it; goes by itself if that one dies
 *   P:R:m       who listens: a sorted set of ids by the end of their leases, in
 *               Redis's milliseconds; and "s" (no digit of an id) + the time
 *               since when the set is there, with the score +inf
 *
 *   channel P:c   C id seq key   changed        channel P:a:ID   seq id
 *                 H id seq       a heartbeat                     heard it
 *                 L              a load has ended
 *
 * Ids and numbers are 16 hexadecimal digits.
 *
 * A heartbeat asks Redis to note a lease and to publish it. When the listener
 * hears its own, it has dealt with all that was published before, and may serve
 * what is near for a lease from the moment the heartbeat was sent; nine tenths
 * of it, for clocks differ. Redis noted the lease later than that, so whoever
 * reads P:R:m knows of an end that is not before the true one. If the set is
 * young, there may be listeners that an older one knew of: a lease is waited
 * for.
 *
 * A Redis that starts again may come back with what it had some time ago: old
 * values, and fewer listeners than there are. So each run has names of its own,
 * and what an earlier one left is not looked at and goes by its time.
 */
#ifndef STORES_TIERED_LINK_H
#define STORES_TIERED_LINK_H

#include <hiredis/hiredis.h>

#include "base/bytes.h"
#include "holdfast/breaker.h"
#include "holdfast/lender.h"
#include "stores/tiered_state.h"

#define LINK_HEX      16u /* digits of an id or a number */
#define LINK_RUN      16u /* digits of a run's id that are used */
#define LINK_NAME_MAX (HF_TIERED_PREFIX_MAX + 24u)

enum link_script {
    LINK_CLAIM,
    LINK_FILL,
    LINK_CHANGE,
    LINK_BEAT,
    LINK_SCRIPTS,
};

/* A connection that knows the scripts and whom it leads to. */
struct link_wire {
    redisContext *redis;
    char sha[LINK_SCRIPTS][41];
    char base[LINK_NAME_MAX]; /* P:R */
};

/* A change that others are to hear of; on its caller's stack. */
struct link_change {
    struct link_change *next;
    uint64_t seq;
    size_t left;                 /* (m) of those who have not answered */
    char (*names)[LINK_HEX + 1]; /* (m) their ids */
    char (*early)[LINK_HEX + 1]; /* (m) who answered before these were known */
    size_t early_count;          /* (m) */
    bool known;                  /* (m) */
};

struct tiered_remote {
    struct hf_tiered *tiered;            /* (i) */
    const struct hf_clock *clock;        /* (i) */
    char id[LINK_HEX + 1];               /* (i) of this process */
    char channel[LINK_NAME_MAX];         /* (i) P:c */
    char answers[LINK_NAME_MAX];         /* (i) P:a:ID */
    struct hf_lender *lender;            /* (i) of link_wire */
    struct hf_breaker *breaker;          /* (i) */
    struct hf_atomic_u64 lease_until_ns; /* (a) 0: none */
    struct hf_atomic_u64 numbers;        /* (a) given out so far */
    struct hf_atomic_u32 heard;          /* (a) messages that end waits */
    struct hf_event heard_event;         /* ... for a load */
    struct hf_event leased;              /* the first lease has come */
    struct hf_mutex mutex;               /* guards `changes` */
    struct link_change *changes;         /* (m) */
    struct hf_event answered;            /* a change has nobody left; shut */
    struct hf_thread thread;             /* (i) the listener */
    int wake_fd;                         /* (i) stop was set */
    bool listening;                      /* (i) the thread was started */
    struct hf_atomic_u32 stop;           /* (a) */
    struct hf_atomic_u64 l3_hits;        /* (a) figures, relaxed */
    struct hf_atomic_u64 load_waits;
    struct hf_atomic_u64 fills;
    struct hf_atomic_u64 fills_refused;
    struct hf_atomic_u64 changes_heard;
    struct hf_atomic_u64 leases_lost;
    struct hf_atomic_u64 errors;
};

/* A new connection with the scripts in it; NULL: there is none to be had. */
struct link_wire *hf_link_wire_open(struct tiered_remote *remote);
void hf_link_wire_close(struct link_wire *wire);
/* A connection without them; NULL as above. */
redisContext *hf_link_connect(const struct tiered_remote *remote);
/* NULL: the connection is broken. */
redisReply *hf_link_command(redisContext *redis, const struct hf_bytes *words,
                            unsigned count);
/* Runs a script on a wire, with the names of a key (LINK_BEAT: of none). HF_IO:
 * the wire is broken; HF_FAILED: Redis refuses; HF_NOMEM. `*out` is NULL unless
 * HF_OK. */
enum hf_status hf_link_run(struct link_wire *wire, enum link_script script,
                           struct hf_bytes key, const struct hf_bytes *args,
                           unsigned count, redisReply **out);
/* The same on one that is lent for it. HF_IO: Redis does not answer, or
 * refuses; HF_NOMEM. */
enum hf_status hf_link_call(struct tiered_remote *remote,
                            enum link_script script, struct hf_bytes key,
                            const struct hf_bytes *args, unsigned count,
                            redisReply **out);

/* A text that no other process and no other call makes. */
void hf_link_unique(struct tiered_remote *remote, char out[TIERED_TOKEN_MAX]);
uint64_t hf_link_number(struct tiered_remote *remote);
/* The process `id` has dealt with change `seq` of this one. */
void hf_link_answer(struct tiered_remote *remote, uint64_t seq, const char *id);

/* tiered_listen.c */
enum hf_status hf_link_listen(struct tiered_remote *remote);
void hf_link_stop(struct tiered_remote *remote);

#endif
