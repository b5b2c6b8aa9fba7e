/* gather.h - the results of many tasks, as far as they come in time.
 *
 * Ask five mirrors and take the first that answers; ask twenty shards and make
 * do with what is there after 50 ms:
 *
 *   add(ask, a)  add(ask, b)  add(ask, c)      on a pool
 *        |            |            |
 *      result       failed      (still busy)    need 2: wait on; need 1: enough
 *
 *   need   wait() is for          ends with HF_FAILED
 *   0      all                    when one has failed
 *   1      the first              when all have failed
 *   k      any k                  when so many have failed that k cannot be
 *
 * or it ends at the deadline. settle() waits until every task has ended. What
 * each has come to can be asked at any time; merge() folds the results that are
 * there. A task may wait for a gather on its own pool: it runs items that
 * nobody has begun meanwhile.
 *
 * Threads: every call but open and close from any thread; close when nobody
 *          is inside a call. merge and drop run outside locks; drop in the
 *          thread that closes, or in which the task ends.
 * Memory:  a gather lives until the last of its tasks has ended, also after
 *          close. Results are the user's: a result that neither item() nor
 *          merge() has shown goes to `drop`, at close or when it comes.
 * Time:    deadlines by the pool's clock.
 *
 *   exactly once  lock-free  allocates
 *   yes           no         open, add
 *
 * Every task is counted once: succeeded, failed (or refused), cancelled. Every
 * result is shown or dropped.
 *
 * Example:
 *
 *   static int square(void *arg, void **result)
 *   {
 *       *(int *)arg *= *(int *)arg;
 *       *result = arg;
 *       return 0;
 *   }
 *   static void *sum(void *context, void *so_far, void *result)
 *   {
 *       *(int *)context += *(int *)result;
 *       return so_far;
 *   }
 *   int main(void)
 *   {
 *       int numbers[3] = {1, 2, 3}, total = 0;
 *       struct hf_gather *gather;
 *       assert(hf_gather_open(&gather, NULL) == HF_OK);
 *       for (int i = 0; i < 3; i++)
 *           assert(hf_gather_add(gather, square, &numbers[i]) == HF_OK);
 *       assert(hf_gather_wait(gather, HF_FOREVER) == HF_OK);
 *       hf_gather_merge(gather, sum, &total, NULL);
 *       assert(total == 14);
 *       hf_gather_close(gather);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_GATHER_H
#define HOLDFAST_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/pool.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_gather;

struct hf_gather_opts {
    const char *name;     /* for hf_inspect(), and of the tasks: it must last
                           * as long as these */
    struct hf_pool *pool; /* NULL: hf_pool_default(). Outlives the adding and
                           * the tasks */
    size_t need;          /* successes that are enough; 0: all that are added */
    /* Gets results that nobody has seen; NULL: nobody. */
    void (*drop)(void *context, void *result);
    void *context;
};

/* What a task has come to. */
struct hf_gather_item {
    enum hf_status status; /* HF_PENDING, HF_OK, HF_FAILED, HF_CANCELLED, or
                            * why the pool refused it */
    int code;              /* what the task returned */
    void *result;          /* what it left, or NULL */
};

struct hf_gather_stats {
    size_t added;
    size_t pending;
    size_t succeeded;
    size_t failed; /* refused ones too */
    size_t cancelled;
};

/* HF_INVALID: gather is NULL. HF_NOMEM: also if there is no default pool. */
enum hf_status hf_gather_open(struct hf_gather **gather,
                              const struct hf_gather_opts *opts);
/* Cancels what has not begun and lets go; does not wait for what runs. NULL is
 * allowed. */
void hf_gather_close(struct hf_gather *gather);

/* Runs fn(arg, &result) on the pool. What the pool refuses (HF_FULL, HF_CLOSED,
 * HF_TIMEOUT) is an item too, which has failed; its status is returned.
 * HF_NOMEM, HF_INVALID: there is no item. */
enum hf_status hf_gather_add(struct hf_gather *gather,
                             int (*fn)(void *arg, void **result), void *arg);

/* HF_OK: enough have succeeded. HF_FAILED: of those that were added, they never
 * will. HF_TIMEOUT. After another add the answer may be another. */
enum hf_status hf_gather_wait(struct hf_gather *gather, uint64_t deadline_ns);
/* Waits until every task has ended, however it did. HF_OK, HF_TIMEOUT. */
enum hf_status hf_gather_settle(struct hf_gather *gather, uint64_t deadline_ns);
/* Cancels what has not begun; returns how many. */
size_t hf_gather_cancel(struct hf_gather *gather);

/* By order of add, from 0. HF_NOTFOUND: there are not so many. */
enum hf_status hf_gather_item(struct hf_gather *gather, size_t index,
                              struct hf_gather_item *item);
/* Calls so_far = merge(context, so_far, result) for each success that is there,
 * in order of add, outside locks; returns the last. */
void *hf_gather_merge(struct hf_gather *gather,
                      void *(*merge)(void *context, void *so_far, void *result),
                      void *context, void *so_far);

void hf_gather_stats(struct hf_gather *gather, struct hf_gather_stats *out);

#ifdef __cplusplus
}
#endif

#endif
