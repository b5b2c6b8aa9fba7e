/* alone.c - what the parts of the library without a packaged peer cost.
 *
 * One thread, nobody contends: the least that a call costs. pthread's
 * read-write lock stands beside ours. Prints `PART FIGURE NANOSECONDS` lines,
 * the least of ROUNDS rounds each.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/accumulator.h"
#include "holdfast/batcher.h"
#include "holdfast/blocking.h"
#include "holdfast/deque.h"
#include "holdfast/epoch.h"
#include "holdfast/event.h"
#include "holdfast/gather.h"
#include "holdfast/multiqueue.h"
#include "holdfast/phaser.h"
#include "holdfast/pipeline.h"
#include "holdfast/rwlock.h"
#include "holdfast/snapshot.h"
#include "holdfast/snapshot_list.h"
#include "holdfast/stamped.h"

#define ROUNDS 5
#define CALLS  200000

/* A measurement of failures is of no use. */
static void must(enum hf_status status)
{
    if (status == HF_OK)
        return;
    fprintf(stderr, "alone: %s\n", hf_status_text(status));
    exit(1);
}

static int item; /* whose address goes round */

static void measure(const char *part, const char *figure, unsigned calls,
                    void (*work)(void *context, unsigned calls), void *context)
{
    const struct hf_clock *clock = hf_clock_system();
    double least = 0;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start_ns = hf_clock_now_ns(clock);
        work(context, calls);
        double ns = (double)(hf_clock_now_ns(clock) - start_ns) / calls;
        if (i == 0 || ns < least)
            least = ns;
    }
    printf("%s %s_ns %.2f\n", part, figure, least);
}

static void deque_pop(void *deque, unsigned calls)
{
    void *out;

    for (unsigned i = 0; i < calls; i++) {
        must(hf_deque_push(deque, &item));
        must(hf_deque_pop(deque, &out));
    }
}

static void deque_steal(void *deque, unsigned calls)
{
    void *out;

    for (unsigned i = 0; i < calls; i++) {
        must(hf_deque_push(deque, &item));
        must(hf_deque_steal(deque, &out));
    }
}

static void accumulate(void *accumulator, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        hf_accumulator_add(accumulator, i % 1000);
}

static void blocking(void *queue, unsigned calls)
{
    void *out;

    for (unsigned i = 0; i < calls; i++) {
        must(hf_blocking_put(queue, &item, HF_FOREVER));
        must(hf_blocking_take(queue, &out, HF_FOREVER));
    }
}

static void phase(void *phaser, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        must(hf_phaser_arrive_and_wait(phaser, HF_FOREVER, NULL));
}

static void read_lock(void *lock, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        must(hf_rwlock_lock_read(lock, HF_FOREVER));
        must(hf_rwlock_unlock_read(lock));
    }
}

static void write_lock(void *lock, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        must(hf_rwlock_lock_write(lock, HF_FOREVER));
        must(hf_rwlock_unlock_write(lock));
    }
}

static void pthread_read(void *lock, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        pthread_rwlock_rdlock(lock);
        pthread_rwlock_unlock(lock);
    }
}

static void pthread_write(void *lock, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        pthread_rwlock_wrlock(lock);
        pthread_rwlock_unlock(lock);
    }
}

static void optimistic(void *lock, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        uint64_t stamp = hf_stamped_optimistic(lock);
        if (!hf_stamped_validate(lock, stamp))
            must(HF_FAILED);
    }
}

static void stamped_write(void *lock, unsigned calls)
{
    uint64_t stamp;

    for (unsigned i = 0; i < calls; i++) {
        must(hf_stamped_lock_write(lock, HF_FOREVER, &stamp));
        must(hf_stamped_unlock(lock, stamp));
    }
}

static void snapshot_read(void *snapshot, unsigned calls)
{
    struct hf_snapshot_view view;

    for (unsigned i = 0; i < calls; i++) {
        must(hf_snapshot_read(snapshot, &view));
        hf_snapshot_leave(&view);
    }
}

static void snapshot_set(void *snapshot, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        must(hf_snapshot_set(snapshot, &item));
}

static bool visit_one(void *context, void *one)
{
    (void)context;
    return one != NULL;
}

static void list_visit(void *list, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        must(hf_snapshot_list_visit(list, visit_one, NULL));
}

static void epoch_enter_leave(void *epoch, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        hf_epoch_leave(hf_epoch_enter(epoch));
}

static void event_wake(void *event, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        hf_event_wake(event, 1);
}

static void multiqueue(void *queue, unsigned calls)
{
    void *out;

    for (unsigned i = 0; i < calls; i++) {
        must(hf_multiqueue_put(queue, i % 3, &item, HF_FOREVER, NULL));
        must(hf_multiqueue_take(queue, &out, HF_FOREVER));
    }
}

static int handle(void *context, void *const *items, size_t count)
{
    (void)context;
    (void)items;
    return count == 0;
}

static void batcher(void *context, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        must(hf_batcher_add(context, &item, HF_FOREVER));
    must(hf_batcher_flush(context, HF_FOREVER));
}

static int pass(void *context, void *in, void **out)
{
    (void)context;
    *out = in;
    return 0;
}

static void pipeline(void *context, unsigned calls)
{
    (void)context;
    struct hf_pipeline *line;
    struct hf_stage_opts opts = {.work = pass, .queue_max = 1024};
    uint32_t first;
    uint32_t second;

    must(hf_pipeline_open(&line, NULL));
    must(hf_pipeline_stage(line, &opts, &first));
    must(hf_pipeline_stage(line, &opts, &second));
    must(hf_pipeline_link(line, first, second));
    must(hf_pipeline_start(line));
    for (unsigned i = 0; i < calls; i++)
        must(hf_pipeline_put(line, first, &item, HF_FOREVER));
    hf_pipeline_close(line);
}

static int give_back(void *arg, void **result)
{
    *result = arg;
    return 0;
}

static void gather(void *context, unsigned calls)
{
    struct hf_gather *all;

    (void)context;
    must(hf_gather_open(&all, NULL));
    for (unsigned i = 0; i < calls; i++)
        must(hf_gather_add(all, give_back, &item));
    must(hf_gather_wait(all, HF_FOREVER));
    hf_gather_close(all);
}

static void measure_structures(void)
{
    struct hf_deque *deque;
    struct hf_accumulator accumulator;
    struct hf_snapshot *snapshot;
    struct hf_snapshot_list *list;
    struct hf_epoch *epoch;
    struct hf_event event;

    must(hf_deque_open(&deque, NULL));
    measure("deque", "push-pop", CALLS, deque_pop, deque);
    measure("deque", "push-steal", CALLS, deque_steal, deque);
    hf_deque_close(deque);
    must(hf_accumulator_init(&accumulator, hf_accumulate_max, 0));
    measure("accumulator", "add", CALLS, accumulate, &accumulator);
    hf_accumulator_destroy(&accumulator);
    must(hf_snapshot_open(&snapshot, &item, NULL));
    measure("snapshot", "read-leave", CALLS, snapshot_read, snapshot);
    measure("snapshot", "set", CALLS, snapshot_set, snapshot);
    hf_snapshot_close(snapshot);
    must(hf_snapshot_list_open(&list, NULL));
    must(hf_snapshot_list_add(list, &item));
    measure("snapshot_list", "visit", CALLS, list_visit, list);
    hf_snapshot_list_close(list);
    must(hf_epoch_open(&epoch, NULL));
    measure("epoch", "enter-leave", CALLS, epoch_enter_leave, epoch);
    hf_epoch_close(epoch);
    hf_event_init(&event);
    measure("event", "wake-nobody", CALLS, event_wake, &event);
}

static void measure_blocking(const char *part, enum hf_blocking_kind kind)
{
    struct hf_blocking *queue;

    must(hf_blocking_open(&queue, &(struct hf_blocking_opts){.kind = kind}));
    measure(part, "put-take", CALLS, blocking, queue);
    hf_blocking_close(queue);
}

static void measure_locks(void)
{
    pthread_rwlock_t theirs = PTHREAD_RWLOCK_INITIALIZER;
    struct hf_phaser phaser;
    struct hf_rwlock lock;
    struct hf_stamped stamped;

    must(hf_phaser_init(&phaser, &(struct hf_phaser_opts){.parties = 1}));
    measure("phaser", "phase", CALLS, phase, &phaser);
    must(hf_rwlock_init(&lock, NULL));
    measure("rwlock", "read", CALLS, read_lock, &lock);
    measure("rwlock", "write", CALLS, write_lock, &lock);
    measure("pthread_rwlock", "read", CALLS, pthread_read, &theirs);
    measure("pthread_rwlock", "write", CALLS, pthread_write, &theirs);
    must(hf_stamped_init(&stamped, NULL));
    measure("stamped", "optimistic", CALLS, optimistic, &stamped);
    measure("stamped", "write", CALLS, stamped_write, &stamped);
}

static void measure_work(void)
{
    struct hf_multiqueue *queue;
    struct hf_batcher *items;
    struct hf_batcher_opts opts = {.handle = handle};

    must(hf_multiqueue_open(&queue, NULL));
    measure("multiqueue", "put-take", CALLS, multiqueue, queue);
    hf_multiqueue_close(queue);
    must(hf_batcher_open(&items, &opts));
    measure("batcher", "item", CALLS, batcher, items);
    hf_batcher_close(items);
    measure("pipeline", "item-2-stages", CALLS / 4, pipeline, NULL);
    measure("gather", "task", CALLS / 10, gather, NULL);
}

int main(void)
{
    measure_structures();
    measure_blocking("blocking-priority", HF_BLOCKING_PRIORITY);
    measure_blocking("blocking-delay", HF_BLOCKING_DELAY);
    measure_blocking("blocking-transfer", HF_BLOCKING_TRANSFER);
    measure_locks();
    measure_work();
    return 0;
}
