/* batcher_mutex.c - a batcher by hand: one mutex, three conditions. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/exec/batcher.h"

struct byhand {
    struct batcher_board board; /* first */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    pthread_cond_t room;
    pthread_cond_t done;
    void *items[BATCHER_ROOM];
    uint64_t head; /* items taken */
    uint64_t tail; /* items added */
    uint64_t handled;
    uint64_t flush; /* up to this one at once */
    struct timespec oldest;
    bool stop;
};

static bool is_due(const struct byhand *byhand)
{
    return byhand->tail - byhand->head >= BATCHER_MOST ||
           byhand->flush > byhand->head ||
           (byhand->stop && byhand->tail > byhand->head);
}

static void *serve(void *context)
{
    struct byhand *byhand = context;
    void *batch[BATCHER_MOST];

    pthread_mutex_lock(&byhand->mutex);
    for (;;) {
        bool old = false;
        while (!is_due(byhand) && !old && !byhand->stop) {
            if (byhand->tail == byhand->head) {
                pthread_cond_wait(&byhand->work, &byhand->mutex);
                continue;
            }
            struct timespec until = byhand->oldest;
            until.tv_nsec += BATCHER_AGE_NS;
            if (until.tv_nsec >= 1000000000) {
                until.tv_nsec -= 1000000000;
                until.tv_sec++;
            }
            old = pthread_cond_timedwait(&byhand->work, &byhand->mutex,
                                         &until) != 0;
        }
        if (byhand->stop && byhand->tail == byhand->head)
            break;
        bool full = byhand->tail - byhand->head == BATCHER_ROOM;
        size_t count = 0;
        while (count < BATCHER_MOST && byhand->head < byhand->tail)
            batch[count++] = byhand->items[byhand->head++ % BATCHER_ROOM];
        clock_gettime(CLOCK_MONOTONIC, &byhand->oldest);
        if (full)
            pthread_cond_broadcast(&byhand->room);
        pthread_mutex_unlock(&byhand->mutex);
        batcher_handle(&byhand->board, batch, count);
        pthread_mutex_lock(&byhand->mutex);
        byhand->handled += count;
        if (byhand->flush > 0)
            pthread_cond_broadcast(&byhand->done);
    }
    pthread_mutex_unlock(&byhand->mutex);
    return NULL;
}

CONTEST_INLINE void add(void *self, void *item)
{
    struct byhand *byhand = self;

    pthread_mutex_lock(&byhand->mutex);
    while (byhand->tail - byhand->head == BATCHER_ROOM)
        pthread_cond_wait(&byhand->room, &byhand->mutex);
    uint64_t inside = byhand->tail - byhand->head;
    if (inside == 0)
        clock_gettime(CLOCK_MONOTONIC, &byhand->oldest);
    byhand->items[byhand->tail++ % BATCHER_ROOM] = item;
    if (inside == 0 || inside + 1 == BATCHER_MOST)
        pthread_cond_signal(&byhand->work);
    pthread_mutex_unlock(&byhand->mutex);
}

CONTEST_INLINE void flush(void *self)
{
    struct byhand *byhand = self;

    pthread_mutex_lock(&byhand->mutex);
    uint64_t until = byhand->tail;
    if (byhand->flush < until)
        byhand->flush = until;
    pthread_cond_signal(&byhand->work);
    while (byhand->handled < until)
        pthread_cond_wait(&byhand->done, &byhand->mutex);
    pthread_mutex_unlock(&byhand->mutex);
}

static void *open_byhand(const struct contest_work *work)
{
    struct byhand *byhand = contest_alloc(sizeof *byhand);
    pthread_condattr_t attr;

    (void)work;
    pthread_mutex_init(&byhand->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&byhand->work, &attr);
    pthread_cond_init(&byhand->room, &attr);
    pthread_cond_init(&byhand->done, &attr);
    if (pthread_create(&byhand->thread, NULL, serve, byhand) != 0)
        contest_fail("pthread_create");
    return byhand;
}

static void close_byhand(void *self)
{
    struct byhand *byhand = self;

    pthread_mutex_lock(&byhand->mutex);
    byhand->stop = true;
    pthread_cond_signal(&byhand->work);
    pthread_mutex_unlock(&byhand->mutex);
    pthread_join(byhand->thread, NULL);
    free(byhand);
}

static void run(struct contest_thread *thread)
{
    batcher_run(thread, add, flush);
}

extern const struct contest_side batcher_mutex;
const struct contest_side batcher_mutex = {.name = "mutex",
                                           .open = open_byhand,
                                           .close = close_byhand,
                                           .run = run,
                                           .check = batcher_check};
