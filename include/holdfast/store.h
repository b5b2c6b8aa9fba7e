/* store.h - where values live in the end: a table of keys and values.
 *
 * Caches and write-behind stand on any store that can do two things: read one
 * key, and apply a batch of puts and deletes as one transaction. A user writes
 * the two functions; two stores are ready made.
 *
 *   writebehind, tiered --> struct hf_store --> SQLite file
 *                                           --> PostgreSQL table
 *                                           --> the user's functions
 *
 * What a store owes:
 *   read    HF_OK: `found` was called once, before read returned, with bytes
 *           that live until it returns. HF_NOTFOUND: there is no such key.
 *   apply   HF_OK: every change is there and will survive what the store says
 *           that it survives. Anything else: not one of them is there, or (if
 *           the end of the transaction could not be learnt) all of them.
 *           A batch that may or may not have been applied is applied again as
 *           it is, before any later batch: so that must end the same.
 *   both    a status that tells whether trying again makes sense:
 *
 *   HF_IO HF_TIMEOUT HF_FULL HF_NOMEM   try again: no connection, disk full,
 *                                       locked, a deadlock, out of memory
 *   any other                           do not: this batch will always fail
 *
 * What a caller owes apply: a key comes once in a batch; lengths are at most
 * HF_STORE_KEY_MAX and HF_STORE_VALUE_MAX; a key has a byte at least.
 *
 * Threads: every function from any thread, also at once. Whoever must keep an
 *          order of batches calls apply again only after it has returned.
 * Memory:  the bytes of keys and values are the caller's, for the call. The
 *          caller owns `struct hf_store`; close frees what stands behind it.
 * Time:    a call may take as long as the store's own time-outs let it.
 *
 *              linearizable  atomic  durable            allocates
 *   SQLite     yes           yes     unless `relaxed`   in SQLite
 *   PostgreSQL yes           yes     as the server says in libpq
 *
 * Example:
 *
 *   static void print(void *arg, const void *value, size_t len)
 *   {
 *       (void)arg;
 *       printf("%.*s\n", (int)len, (const char *)value);
 *   }
 *   int main(void)
 *   {
 *       struct hf_store store;
 *       struct hf_store_sqlite_opts opts = {.path = ":memory:"};
 *       struct hf_store_change changes[] = {
 *           {.key = "a", .key_len = 1, .value = "apple", .value_len = 5},
 *           {.key = "b", .key_len = 1, .remove = true},
 *       };
 *       assert(hf_store_sqlite_open(&store, &opts) == HF_OK);
 *       assert(store.apply(store.context, changes, 2) == HF_OK);
 *       assert(store.read(store.context, "a", 1, print, NULL) == HF_OK);
 *       assert(store.read(store.context, "b", 1, print, NULL) == HF_NOTFOUND);
 *       hf_store_close(&store);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_STORE_H
#define HOLDFAST_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_STORE_KEY_MAX   (1u << 16)
#define HF_STORE_VALUE_MAX (1u << 28)

/* A put, or a delete of what may or may not be there. */
struct hf_store_change {
    const void *key;
    size_t key_len;
    const void *value; /* of a put; may be NULL if value_len is 0 */
    size_t value_len;
    bool remove; /* a delete */
};

struct hf_store_stats {
    uint64_t reads;      /* calls of read */
    uint64_t found;      /* of these, with a value */
    uint64_t applies;    /* calls of apply that succeeded */
    uint64_t changes;    /* in these */
    uint64_t failures;   /* calls of either that failed */
    uint64_t reconnects; /* connections that were made anew */
};

/* The user fills it in, or one of the opens below does. */
struct hf_store {
    enum hf_status (*read)(void *context, const void *key, size_t key_len,
                           void (*found)(void *arg, const void *value,
                                         size_t value_len),
                           void *arg);
    enum hf_status (*apply)(void *context,
                            const struct hf_store_change *changes,
                            size_t count);
    void (*stats)(void *context, struct hf_store_stats *out); /* or NULL */
    void (*close)(void *context);                             /* or NULL */
    void *context;
};

/* Does it make sense to try again after this? */
bool hf_store_may_retry(enum hf_status status);
/* What it has done since it was opened; zeros if it does not tell. */
void hf_store_stats(const struct hf_store *store, struct hf_store_stats *out);
/* Closes what stands behind and zeroes it. Nobody may be inside a call. NULL
 * and a zeroed store are allowed. */
void hf_store_close(struct hf_store *store);

#define HF_STORE_TABLE_BYTES 64 /* of a table's name, with the final zero */

/* A table (key BLOB PRIMARY KEY, value BLOB) in a SQLite file, in its
 * write-ahead mode: readers and the one who writes do not stop each other. */
struct hf_store_sqlite_opts {
    const char *name;  /* for hf_inspect() */
    const char *path;  /* required; made if missing; ":memory:" for none */
    const char *table; /* letters, digits, _; NULL: "holdfast" */
    /* false: what was applied survives a crash of the machine. true: one of
     * the process only, and the last batches may be gone after the former;
     * much faster, and no store to put behind a write-ahead log. */
    bool relaxed;
    uint32_t readers; /* connections that read; 0: 2; 64 at most */
    uint32_t busy_ms; /* wait for another process's lock; 0: 5,000 */
    /* Told of every error, in the thread that met it; NULL: nobody. */
    void (*failed)(void *context, enum hf_status status, const char *text);
    void *context;
};

/* HF_INVALID: an argument is out of its range. HF_NOMEM. HF_IO: the file cannot
 * be opened. HF_FAILED: it is no database, or the table is of another shape. */
enum hf_status hf_store_sqlite_open(struct hf_store *out,
                                    const struct hf_store_sqlite_opts *opts);

/* A table (key bytea PRIMARY KEY, value bytea) in a PostgreSQL database, of
 * version 14 or later. One statement and one trip for a batch. A connection
 * that broke is made anew by the next call.
 *
 * A statement that nobody waits for any more may still be at work in the
 * server, and would end after a later one. So before a new connection writes,
 * what earlier ones of the same `writer` left behind is ended. */
struct hf_store_postgres_opts {
    const char *name;     /* for hf_inspect() */
    const char *conninfo; /* required: as libpq takes it; copied */
    const char *table;    /* letters, digits, _; NULL: "holdfast" */
    /* Who writes: HF_STORE_TABLE_BYTES - 1 bytes at most; given as the
     * connection's application_name. One store at a time with this name in
     * the database: a new one ends the older. Needed where another process
     * goes on after a crash, as with a write-ahead log. NULL: one of its own.
     */
    const char *writer;
    uint32_t readers;    /* connections that read; 0: 2; 64 at most */
    uint32_t timeout_ms; /* for connecting (2 s at least) and for each call;
                          * 0: 10,000 */
    void (*failed)(void *context, enum hf_status status, const char *text);
    void *context;
};

/* As above; HF_IO: the server cannot be reached. */
enum hf_status
hf_store_postgres_open(struct hf_store *out,
                       const struct hf_store_postgres_opts *opts);

#ifdef __cplusplus
}
#endif

#endif
