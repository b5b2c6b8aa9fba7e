/* tiered.h - a cache in levels, each further away and larger, over a store.
 *
 *            this thread   this process    all processes
 *   read --> L1 ---------> L2 -----------> L3 (Redis) ----> store
 *            256 entries   hf_cache        optional         the truth
 *            no lock, no   64 MiB          one process
 *            shared write                  loads a key
 *
 * What is found further away is kept on the way back. A key that is in no level
 * is read from the store once, however many threads of however many processes
 * ask for it.
 *
 * The promise: when a put, delete or invalidate has returned HF_OK, no thread
 * of any process reads what was there before. (A read that began earlier may.)
 *
 *   in the process   every entry of L1 carries the stamp that L2 had for its
 *                    key; a change moves the stamp. A load that began before
 *                    the change is not kept, and nobody new waits for it.
 *   in Redis         a change gives the key a new token; only a load that began
 *                    under the present token may fill L3. What a run of the
 *                    server kept is not looked at in its next.
 *   between them     a change is published, and each process that is listening
 *                    says that it has heard. A process may serve L1 and L2 only
 *                    for `lease_ms` after it last heard itself on the channel;
 *                    one that hangs or is cut off stops by itself, and whoever
 *                    changes waits for that if it must.
 *
 *   writer            Redis                other process
 *     | store: new      |                        |
 *     | token, delete,  |                        |
 *     |---- publish --->|------- changed ------->| drops it from L1, L2
 *     |<--------------- heard -------------------|
 *   returns
 *
 * A process whose lease has ended reads L3, or the store if Redis does not
 * answer: slower, and right.
 *
 * Write-behind: put an hf_writebehind over hf_tiered_as_store() and use its put
 * and get. Other processes see a value when it has been written to the store.
 *
 * It rests on one Redis (two that both answer at one address are two truths),
 * on its wall clock not being set forward by a lease or more, and on clocks
 * that go on: a machine that was put to sleep with its clock may read what is
 * old for the rest of its lease.
 *
 * Threads: every call but open and close from any thread. With Redis there is
 *          one thread of its own, which listens.
 * Memory:  values are copied. L1 costs each thread what its entries refer to.
 * Time:    by `clock`; with Redis that must be a real one.
 *
 *   linearizable (see above)  lock-free     allocates    loads once
 *   yes, per key; the store   L1, and L2    an entry on  yes, unless Redis is
 *   must be                   but to miss   a miss       out of reach
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
 *       struct hf_store_sqlite_opts in = {.path = ":memory:"};
 *       assert(hf_store_sqlite_open(&store, &in) == HF_OK);
 *       struct hf_tiered *tiered;
 *       struct hf_tiered_opts opts = {.store = &store};
 *       assert(hf_tiered_open(&tiered, &opts) == HF_OK);
 *       uint64_t deadline_ns = hf_clock_after_ms(NULL, 5000);
 *       assert(hf_tiered_put(tiered, "k", 1, "v", 1, deadline_ns) == HF_OK);
 *       assert(hf_tiered_read(tiered, "k", 1, deadline_ns, print, NULL) ==
 *              HF_OK);
 *       hf_tiered_close(tiered);
 *       hf_store_close(&store);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_TIERED_H
#define HOLDFAST_TIERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/pool.h"
#include "holdfast/status.h"
#include "holdfast/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_TIERED_L1_MAX     (1u << 20)
#define HF_TIERED_PREFIX_MAX 64u
#define HF_TIERED_LEASE_MIN  50u    /* ms */
#define HF_TIERED_LEASE_MAX  60000u /* ms */

struct hf_tiered;

struct hf_tiered_opts {           /* all of it is copied */
    const char *name;             /* for hf_inspect() */
    const struct hf_store *store; /* required */
    uint32_t l1_count;            /* entries of a thread, a power of two from
                                   * 2 on; 0: 256 */
    bool no_l1;                   /* where threads are many and keys cold */
    uint32_t promote;             /* one of so many hits of L2 goes to L1, of
                                   * each thread and of all together; 0: each */
    uint64_t l2_bytes;            /* 0: 64 MiB */
    uint64_t ttl_ns;              /* in L2 and L3; 0: 5 minutes */
    uint64_t negative_ttl_ns;     /* how long "there is none" is kept in L2;
                                   * 0: it is not */
    const char *redis_host;       /* NULL: no L3, and no other process */
    uint16_t redis_port;          /* 0: 6379 */
    const char *prefix;           /* of keys and channels in Redis; processes
                                   * with one prefix share; NULL: "hf" */
    uint32_t connections;         /* to Redis, beside two; 0: 8 */
    uint32_t timeout_ms;          /* for a command; 0: 1,000 */
    uint32_t lease_ms;            /* the same in all processes; 0: 2,000 */
    uint32_t load_ms;             /* so long a load by another process is waited
                                   * for; 0: 5,000 */
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_tiered_stats {
    uint64_t l1_hits;
    uint64_t l2_hits;       /* "there is none" included */
    uint64_t l3_hits;       /* reads of Redis that found it */
    uint64_t store_reads;   /* that the store was asked for */
    uint64_t direct_reads;  /* made without L1 and L2: no lease */
    uint64_t load_waits;    /* for a load by another process */
    uint64_t fills;         /* of L3 */
    uint64_t fills_refused; /* because the key was changed meanwhile */
    uint64_t changes;       /* told to others: keys */
    uint64_t heard;         /* changes told by others */
    uint64_t leases_lost;   /* connection lost, or not heard in time */
    uint64_t redis_errors;
    uint64_t l2_count;
    uint64_t l2_bytes;
    bool leased; /* L1 and L2 are served now */
};

/* HF_INVALID: a field is out of its range; HF_NOMEM. With Redis it waits up to
 * `timeout_ms` for the first lease, and goes on without if there is none: it is
 * asked for again and again. */
enum hf_status hf_tiered_open(struct hf_tiered **tiered,
                              const struct hf_tiered_opts *opts);
/* From now on every call says HF_CLOSED, and those who wait for a load or for
 * other processes leave with it. From any thread; once is enough. */
void hf_tiered_shutdown(struct hf_tiered *tiered);
/* Shuts, and frees. Nobody may be inside a call. NULL is allowed. */
void hf_tiered_close(struct hf_tiered *tiered);

/* All calls: HF_INVALID if an argument is NULL or outside the range of
 * holdfast/store.h; HF_CLOSED after shutdown; HF_NOMEM; or what the store says.
 * A deadline is for waiting. A command that Redis does not answer takes
 * `timeout_ms`, and the store takes what it takes. */

/* `found` is called once, in this thread and outside locks, with bytes that
 * live until it returns. HF_NOTFOUND: there is no such key. HF_TIMEOUT: another
 * thread's load was not ready in time. */
enum hf_status hf_tiered_read(struct hf_tiered *tiered, const void *key,
                              size_t key_len, uint64_t deadline_ns,
                              void (*found)(void *arg, const void *value,
                                            size_t value_len),
                              void *arg);
/* The same into the caller's memory. HF_MORE: it is longer than `cap`; nothing
 * was copied. `*len` is its length in both cases. */
enum hf_status hf_tiered_get(struct hf_tiered *tiered, const void *key,
                             size_t key_len, uint64_t deadline_ns, void *out,
                             size_t cap, size_t *len);

/* Writes to the store, then invalidates. HF_OK: see the promise. HF_PENDING: it
 * is in the store, and by the deadline not all other processes were known to
 * have heard; none reads the old value for longer than its lease. HF_IO: it is
 * in the store, and Redis could not be told: others may read the old value
 * until it has lived its time; invalidate again. HF_CLOSED: it was shut down,
 * before anything was done or while others had not heard. (If the store has
 * failed with HF_IO nothing was written; hf_tiered_apply() tells these apart.)
 */
enum hf_status hf_tiered_put(struct hf_tiered *tiered, const void *key,
                             size_t key_len, const void *value,
                             size_t value_len, uint64_t deadline_ns);
enum hf_status hf_tiered_delete(struct hf_tiered *tiered, const void *key,
                                size_t key_len, uint64_t deadline_ns);
/* Several in one transaction of the store. `*written`, unless NULL, tells
 * whether they are in the store. */
enum hf_status hf_tiered_apply(struct hf_tiered *tiered,
                               const struct hf_store_change *changes,
                               size_t count, uint64_t deadline_ns,
                               bool *written);
/* The store was changed by somebody else: forget the key everywhere. */
enum hf_status hf_tiered_invalidate(struct hf_tiered *tiered, const void *key,
                                    size_t key_len, uint64_t deadline_ns);

/* Reads the keys by tasks of `pool` (NULL: the default pool), to have them in
 * L2 (without a lease they are only read). `*loaded`, unless
 * NULL, counts those that were found. HF_OK; HF_TIMEOUT: some were not read in
 * time; HF_CLOSED. */
struct hf_tiered_key {
    const void *key;
    size_t key_len;
};
enum hf_status hf_tiered_warm(struct hf_tiered *tiered,
                              const struct hf_tiered_key *keys, size_t count,
                              struct hf_pool *pool, uint64_t deadline_ns,
                              size_t *loaded);

/* It as a store: read is hf_tiered_read(), apply is hf_tiered_apply() that
 * waits for others up to two leases and is done when the store has it: if Redis
 * cannot be told for so long, others may read the old value until it has lived
 * its time (`redis_errors` counts). Valid until close. */
enum hf_status hf_tiered_as_store(struct hf_tiered *tiered,
                                  struct hf_store *out);

void hf_tiered_stats(struct hf_tiered *tiered, struct hf_tiered_stats *out);

#ifdef __cplusplus
}
#endif

#endif
