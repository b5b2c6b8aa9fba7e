/* snapshot.h - a value that is read all the time and replaced now and then.
 *
 * Configuration, routing tables, lists of peers: readers take the version that
 * is current and keep it for as long as they look, untouched; whoever changes
 * it makes a whole new version and puts it in the place of the old one.
 *
 *   readers A, B  --->  [ version 7 ]      freed when A and B have left
 *                            ^ was current
 *   reader C      --->  [ version 8 ] <--- current
 *
 * A reader takes no lock and counts nothing; it never waits. Values are never
 * changed once they are in.
 *
 * Listeners are told of changes, outside any lock, by a thread that changes:
 * never two calls at a time, never an older version after a newer one. If
 * changes come faster than they are told, versions in between are left out.
 * When every call that changed has returned, all listeners know the last one.
 *
 * Threads: any call but open and close may overlap any other. A view belongs
 *          to the thread that took it. Views nest.
 * Memory:  a value is the snapshot's once set is called, unless that fails; it
 *          is freed once. An old version goes when nobody reads it: with the
 *          next change by any thread, with flush, or with close.
 *
 *   call      lock-free     linearizable  allocates
 *   read      yes           yes           a record at a thread's first
 *   set       yes (1)       yes           yes
 *   update    yes (1)       yes           yes; `make` runs again if another
 *                                         change came first
 *   listen    no, a mutex   yes (2)       yes
 *   unlisten  no, a mutex   yes           no
 *
 * (1) until listeners are told, which is after the change can be read: one of
 *     those who change tells for all, as long as changes come.
 * (2) What a read after listen does not see is told, or a newer version in its
 *     place; what a read before listen has seen is not.
 *
 * Example:
 *
 *   struct hf_snapshot *limits;
 *   struct hf_snapshot_view view;
 *   static int small = 10, large = 99;
 *   assert(hf_snapshot_open(&limits, &small, NULL) == HF_OK);
 *   assert(hf_snapshot_set(limits, &large) == HF_OK);
 *   assert(hf_snapshot_read(limits, &view) == HF_OK);
 *   assert(*(const int *)view.value == 99 && view.version == 2);
 *   hf_snapshot_leave(&view);
 *   hf_snapshot_close(limits);
 */
#ifndef HOLDFAST_SNAPSHOT_H
#define HOLDFAST_SNAPSHOT_H

#include <stdint.h>

#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_snapshot;
struct hf_epoch_reader;

struct hf_snapshot_opts {
    const char *name; /* for hf_inspect() */
    /* Called once for each value that nobody can read any more, by whoever
     * changes, flushes or closes, outside locks; not for NULL. It must not use
     * the snapshot. NULL: values are the caller's and outlive it. */
    void (*free)(void *context, void *value);
    void *context;
};

/* What a reader sees, until it leaves. */
struct hf_snapshot_view {
    const void *value;
    uint64_t version;               /* 1 at open, one more with each change */
    struct hf_epoch_reader *reader; /* for leave */
};

struct hf_snapshot_stats {
    uint64_t version; /* changes so far, and 1 */
    uint64_t retries; /* updates whose `make` ran in vain */
    uint64_t kept;    /* old versions that are not freed yet */
    uint64_t told;    /* calls of listeners */
};

/* `value` may be NULL. HF_INVALID if snapshot is NULL; HF_NOMEM: the value
 * stays the caller's. */
enum hf_status hf_snapshot_open(struct hf_snapshot **snapshot, void *value,
                                const struct hf_snapshot_opts *opts);
/* Frees what is left. Nobody may be inside a call or hold a view. NULL is
 * allowed. */
void hf_snapshot_close(struct hf_snapshot *snapshot);

/* Takes the current version; leave must follow, in the same thread. HF_NOMEM
 * can happen at a thread's first read only. HF_INVALID: NULL. */
enum hf_status hf_snapshot_read(struct hf_snapshot *snapshot,
                                struct hf_snapshot_view *view);
/* A view that was left already is left alone. */
void hf_snapshot_leave(struct hf_snapshot_view *view);

/* Makes `value` current, which must be none that the snapshot has already.
 * HF_NOMEM: nothing changed, it stays the caller's. HF_INVALID: NULL. */
enum hf_status hf_snapshot_set(struct hf_snapshot *snapshot, void *value);

/* Makes current what make(context, old, &fresh) makes of the current value:
 * another value, never `old` itself. It runs without a lock; if another change
 * comes first, its result is freed and it runs again with the newer value. So
 * it may change this snapshot now and then, but not each time it runs.
 * Anything but HF_OK from it ends the update and is returned; nothing changed
 * then, and what it made is its own. HF_NOMEM; HF_INVALID: NULL. */
enum hf_status hf_snapshot_update(struct hf_snapshot *snapshot,
                                  enum hf_status (*make)(void *context,
                                                         const void *old,
                                                         void **fresh),
                                  void *context);

/* Calls `changed` after changes from now on; see (2) above. The view is good
 * until it returns and is not left by it. It may read, change, listen and
 * unlisten: what it changes is told after it has returned. `id` is for unlisten
 * and is written before the first call. HF_NOMEM; HF_INVALID: NULL. */
enum hf_status hf_snapshot_listen(
    struct hf_snapshot *snapshot,
    void (*changed)(void *context, const struct hf_snapshot_view *view),
    void *context, uint64_t *id);
/* When it returns, the listener does not run and will not: if it is running in
 * another thread, unlisten waits for that one call. A listener may unlisten
 * itself. HF_NOTFOUND, after the same wait; HF_INVALID: NULL. */
enum hf_status hf_snapshot_unlisten(struct hf_snapshot *snapshot, uint64_t id);

/* Frees the old versions that nobody reads, now rather than with the next
 * change. */
void hf_snapshot_flush(struct hf_snapshot *snapshot);

void hf_snapshot_stats(struct hf_snapshot *snapshot,
                       struct hf_snapshot_stats *out);

#ifdef __cplusplus
}
#endif

#endif
