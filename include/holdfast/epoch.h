/* epoch.h - when may memory that others may still be reading be freed?
 *
 * A node that was taken out of a shared structure may be in the hands of
 * readers who found it before. It is retired instead of freed, and freed when
 * nobody can hold it any more. A counter, the era, goes up every few
 * operations. A node knows the era of its birth and of its retirement; a
 * reader announces the eras in which it has been reading. A node goes when its
 * life touches no reader's span:
 *
 *   era        3      4      5      6      7      8      9
 *   node A     |born.......retired|                            may go
 *   node B                 |born..........retired|             must stay
 *   reader                        |enter...last load|
 *   node C                                           |born...  may go when
 *                                                               retired
 *
 * So a reader that stalls (stopped, swapped out, stuck in a callback) holds
 * back only nodes that lived while it read: what others make later is freed as
 * ever, garbage stays bounded by what was alive then, and nobody waits. The
 * reader is named by hf_epoch_stats() and to the `stalled` callback.
 *
 * How a structure uses it:
 *   read    reader = hf_epoch_enter(e); node = hf_epoch_load(reader, &link);
 *           ...; hf_epoch_leave(reader). Every link that leads to a node is
 *           read by hf_epoch_load(); what it returned is good until leave,
 *           provided that the link was still part of the structure. The link
 *           of a node that has been removed may lead to one that is gone: look
 *           after the load whether its node was marked, and start again if so.
 *   make    hf_epoch_born(reader, &node->epoch_node), then publish it, by
 *           hf_epoch_change().
 *   remove  unlink it for good by hf_epoch_change(), then
 *           hf_epoch_retire(reader, &node->epoch_node), once.
 *
 * Threads: any. Enter and leave nest. A reader is the thread's own: it is not
 *          handed to another thread.
 * Memory:  the node is the user's and holds a struct hf_epoch_node; `free` is
 *          called once for each retired node, by some thread that retires
 *          another or by close, outside locks. It must not enter.
 * Time:    only to say for how long a reader has stalled.
 *
 *   lock-free            allocates                     frees exactly once
 *   enter, load, leave,  a record at a thread's first  yes
 *   change, born,        enter
 *   retire
 *
 * Example:
 *
 *   struct hf_epoch *epoch;
 *   assert(hf_epoch_open(&epoch, NULL) == HF_OK);
 *   struct hf_epoch_node *node = malloc(sizeof *node);
 *   struct hf_epoch_reader *reader = hf_epoch_enter(epoch);
 *   struct hf_atomic_ptr link = {NULL}; // others look at it
 *   void *found = NULL;
 *   assert(node != NULL && reader != NULL);
 *   hf_epoch_born(reader, node);
 *   assert(hf_epoch_change(&link, &found, node)); // now it is to be found
 *   found = hf_epoch_load(reader, &link);
 *   assert(hf_epoch_change(&link, &found, NULL)); // and now no longer
 *   hf_epoch_retire(reader, node); // by default freed by free()
 *   hf_epoch_leave(reader);
 *   hf_epoch_close(epoch);
 */
#ifndef HOLDFAST_EPOCH_H
#define HOLDFAST_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_epoch;
struct hf_epoch_reader;

struct hf_epoch_node {
    struct hf_epoch_node *next;
    uint64_t born;
    uint64_t retired;
};

/* A reader that is in the way and for how long that has been seen. */
struct hf_epoch_stall {
    char thread[16];   /* its name, as pthread_setname_np() gave it */
    int32_t thread_id; /* as ps -L and gdb show it */
    uint32_t slot;     /* its number in this library */
    uint64_t seen_ns;  /* since it was first found in the way */
    uint64_t garbage;  /* nodes kept back in the thread that looked */
};

struct hf_epoch_opts {
    const char *name; /* for hf_inspect() */
    /* Frees a node; NULL: free(node). */
    void (*free)(void *context, struct hf_epoch_node *node);
    void *context;
    const struct hf_clock *clock; /* NULL: the system's */
    uint64_t stalled_ns;          /* in the way for longer: 0 means 1 s */
    /* Told once of each reader that is in the way for that long. */
    void (*stalled)(void *context, const struct hf_epoch_stall *stall);
};

struct hf_epoch_stats {
    uint64_t era;
    uint64_t retired; /* nodes since open */
    uint64_t freed;   /* nodes since open; the difference is garbage */
    uint64_t stalls;  /* readers that stalled since open */
    /* The reader that has been in the way longest; thread_id 0: none. */
    struct hf_epoch_stall stall;
};

/* HF_INVALID: epoch is NULL. HF_NOMEM. */
enum hf_status hf_epoch_open(struct hf_epoch **epoch,
                             const struct hf_epoch_opts *opts);
/* Frees every node that is still retired. Nobody may be inside a call or
 * between enter and leave. NULL is allowed. */
void hf_epoch_close(struct hf_epoch *epoch);

/* NULL without memory: at a thread's first enter only, and only if 16 others
 * or more had records already. The calls below do nothing with a NULL reader.
 */
struct hf_epoch_reader *hf_epoch_enter(struct hf_epoch *epoch);
void hf_epoch_leave(struct hf_epoch_reader *reader);
/* What the link holds; as a node it may be read until leave. */
void *hf_epoch_load(struct hf_epoch_reader *reader,
                    const struct hf_atomic_ptr *link);

/* Puts `value` into the link if `*expected` is there; else `*expected` becomes
 * what is. A sequentially consistent compare-and-swap: publishes a node, and
 * orders its removal before its retirement. */
bool hf_epoch_change(struct hf_atomic_ptr *link, void **expected, void *value);

/* To be called before the node is published. */
void hf_epoch_born(struct hf_epoch_reader *reader, struct hf_epoch_node *node);
/* To be called once, when no new reader can find the node. */
void hf_epoch_retire(struct hf_epoch_reader *reader,
                     struct hf_epoch_node *node);

/* Frees what can be freed of what this thread retired, now. */
void hf_epoch_flush(struct hf_epoch *epoch);

void hf_epoch_stats(struct hf_epoch *epoch, struct hf_epoch_stats *out);

#ifdef __cplusplus
}
#endif

#endif
