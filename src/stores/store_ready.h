/* store_ready.h - what the ready made stores share: arguments are checked,
 * figures counted and errors told here; a kind talks to its database.
 *
 * Threads: any call but open and close, at any time.
 */
#ifndef STORES_STORE_READY_H
#define STORES_STORE_READY_H

#include "base/atomic.h"
#include "keep/store_state.h"
#include "sync/listed.h"

/* Of what a store has to say about an error. */
#define STORE_TEXT_BYTES 512

/* A value that was read, until its owner is forgotten. */
struct store_value {
    const void *data;
    size_t len;
    void *owner; /* NULL: there is no value */
};

/* `store` is the struct that begins with a `struct store_ready`. A failure
 * leaves its reason in `text`; HF_NOTFOUND: the table is not there. */
struct store_kind {
    enum hf_status (*apply)(void *store, const struct hf_store_change *changes,
                            size_t count, char text[STORE_TEXT_BYTES]);
    enum hf_status (*read)(void *store, const void *key, size_t key_len,
                           struct store_value *value,
                           char text[STORE_TEXT_BYTES]);
    void (*forget)(void *owner);
    /* Also of a store that could not be opened. */
    void (*close)(void *store);
};

struct store_ready { /* (i) immutable after open  (a) atomic */
    struct hf_listed listed;
    const struct store_kind *kind;    /* (i) */
    char table[HF_STORE_TABLE_BYTES]; /* (i) */
    uint32_t readers;                 /* (i) */
    void (*failed)(void *context, enum hf_status status,
                   const char *text); /* (i) the user's, or NULL */
    void *context;                    /* (i) */
    /* (a) relaxed: figures */
    struct hf_atomic_u64 reads, found, applies, changes, failures, reconnects;
};

/* `table` and `readers` as in the options; false: out of its range. kind,
 * failed and context are the caller's to fill in. */
bool hf_store_ready_init(struct store_ready *ready, const char *table,
                         uint32_t readers);
/* Counts and tells of a failure; returns what the user is told. */
enum hf_status hf_store_ready_fail(struct store_ready *ready,
                                   enum hf_status status, const char *text);
/* Opens it by the kind's `connect` and fills in `out`, or closes it. */
enum hf_status hf_store_ready_open(struct store_ready *ready, const char *name,
                                   enum hf_status (*connect)(void *store),
                                   struct hf_store *out);

static inline void store_count(struct hf_atomic_u64 *figure, uint64_t more)
{
    (void)hf_u64_add(figure, more, __ATOMIC_RELAXED);
}

#endif
