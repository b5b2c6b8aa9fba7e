/* batcher.h - many small items, handled many at a time.
 *
 * Writing a thousand rows one by one costs a thousand trips; a hundred at a
 * time costs ten. Items are collected until there are `batch_max` of them or
 * the oldest has waited for `age_ns`, whichever comes first, and then handed to
 * one handler together:
 *
 *   add  add  add ...  --> [ a b c d e f g ] --> handle([a b c d], 4)
 *                             up to queue_max       one batch at a time
 *
 * Whoever adds does not wait for the handler, until `queue_max` items wait:
 * then it waits for room, or is refused, or does a batch itself, as `full`
 * says.
 *
 * A handler that fails is called again with the same batch, after a pause that
 * doubles each time; after `retries` of these the batch goes to `dead`. Other
 * shards go on meanwhile. Items keep the order in which they were added; with
 * several shards, each shard's do. A thread always adds to the same shard.
 *
 * The end: shutdown() takes nothing new and has what is inside handled at once,
 * retries without their pauses; close() waits for that and frees. So the end
 * comes after at most 1 + `retries` calls for each batch. Every item that was
 * accepted is handled or dead, once.
 *
 * Threads: every call but open and close from any thread. The handler runs in
 *          the batcher's thread, or in an adding one with HF_BATCHER_FLUSH; one
 *          call at a time, outside locks. What is called from it never waits:
 *          add and flush are then as with HF_NOW. It must not close.
 * Memory:  items are the user's. No allocation after open.
 * Time:    ages and pauses by `clock`.
 *
 *   exactly once  order      lock-free  allocates
 *   yes           per shard  no         open
 *
 * Example:
 *
 *   static int print(void *context, void *const *items, size_t count)
 *   {
 *       (void)context;
 *       printf("%zu items, first %s\n", count, (const char *)items[0]);
 *       return 0;
 *   }
 *   int main(void)
 *   {
 *       struct hf_batcher *batcher;
 *       struct hf_batcher_opts opts = {.handle = print, .batch_max = 2};
 *       static char a[] = "a", b[] = "b", c[] = "c";
 *       assert(hf_batcher_open(&batcher, &opts) == HF_OK);
 *       assert(hf_batcher_add(batcher, a, HF_FOREVER) == HF_OK);
 *       assert(hf_batcher_add(batcher, b, HF_FOREVER) == HF_OK);
 *       assert(hf_batcher_add(batcher, c, HF_FOREVER) == HF_OK);
 *       assert(hf_batcher_flush(batcher, HF_FOREVER) == HF_OK);
 *       hf_batcher_close(batcher);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_BATCHER_H
#define HOLDFAST_BATCHER_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_BATCHER_BATCH_DEFAULT   256u
#define HF_BATCHER_BATCH_MAX       (1u << 20)
#define HF_BATCHER_QUEUE_MAX       (1u << 24)
#define HF_BATCHER_SHARDS_MAX      64u
#define HF_BATCHER_RETRIES_DEFAULT 3u
#define HF_BATCHER_RETRIES_NONE    UINT32_MAX

struct hf_batcher;

enum hf_batcher_full {
    HF_BATCHER_BLOCK, /* add waits for room, until its deadline */
    HF_BATCHER_DROP,  /* add returns HF_FULL, counted */
    HF_BATCHER_FLUSH, /* add handles a batch itself, or waits for who does */
};

struct hf_batcher_opts {
    const char *name; /* for hf_inspect() and the thread's name */
    /* Called with 1 to batch_max items; 0 is success. */
    int (*handle)(void *context, void *const *items, size_t count);
    /* Told of every call that failed, and with what; NULL: nobody. */
    void (*failed)(void *context, int code, size_t count);
    /* Gets the items of a batch that failed for good; NULL: nobody. */
    void (*dead)(void *context, void *const *items, size_t count);
    void *context;
    uint32_t batch_max; /* 0: HF_BATCHER_BATCH_DEFAULT */
    uint64_t age_ns;    /* 0: 10 ms; HF_FOREVER: by size only */
    uint32_t queue_max; /* items of a shard that wait; 0: 16 batches */
    enum hf_batcher_full full;
    uint32_t retries;             /* 0: HF_BATCHER_RETRIES_DEFAULT; or _NONE */
    uint64_t pause_ns;            /* before the first retry; 0: 10 ms */
    uint64_t pause_max_ns;        /* 0: 1 s, or pause_ns if that is more */
    uint32_t shards;              /* 0: 1. For many adding threads */
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_batcher_stats {
    uint64_t added;       /* accepted since open */
    uint64_t handled;     /* items of batches that succeeded */
    uint64_t dead;        /* items of batches that failed for good */
    uint64_t refused;     /* not accepted: full, too late or shut down */
    uint64_t batches;     /* that succeeded */
    uint64_t by_size;     /* batches that were full */
    uint64_t by_age;      /* batches whose oldest item had waited long enough */
    uint64_t failures;    /* calls of the handler that failed */
    uint64_t depth;       /* items inside, those being handled too */
    uint64_t oldest_ns;   /* age of the oldest inside, or HF_INSPECT_NONE */
    uint64_t wait_p99_ns; /* from add to the first call; or HF_INSPECT_NONE */
};

/* HF_INVALID: batcher or handle is NULL, a field is out of its range, queue_max
 * is below batch_max, or pause_max_ns below pause_ns. HF_NOMEM: no memory, or
 * the system has no room for the thread. */
enum hf_status hf_batcher_open(struct hf_batcher **batcher,
                               const struct hf_batcher_opts *opts);
/* Nothing new; what is inside is handled at once. Again is harmless. */
void hf_batcher_shutdown(struct hf_batcher *batcher);
/* Shuts, waits until all is handled or dead, frees. Nobody may be inside a
 * call. NULL is allowed. */
void hf_batcher_close(struct hf_batcher *batcher);

/* HF_OK: accepted. HF_TIMEOUT, HF_FULL, HF_CLOSED: not. HF_INVALID: an argument
 * is NULL. */
enum hf_status hf_batcher_add(struct hf_batcher *batcher, void *item,
                              uint64_t deadline_ns);
/* Has what was added before handled now, and waits until it is handled or dead;
 * pauses before retries stay. HF_TIMEOUT: not in time, it goes on. */
enum hf_status hf_batcher_flush(struct hf_batcher *batcher,
                                uint64_t deadline_ns);

void hf_batcher_stats(struct hf_batcher *batcher, struct hf_batcher_stats *out);

#ifdef __cplusplus
}
#endif

#endif
