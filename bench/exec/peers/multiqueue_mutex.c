/* multiqueue_mutex.c - by hand: whoever takes goes to the class that is
 * furthest behind its weight. */
#include <pthread.h>
#include <stdlib.h>

#include "bench/exec/multiqueue.h"

struct byhand {
    pthread_mutex_t mutex;
    pthread_cond_t work;
    pthread_cond_t room[MULTIQUEUE_CLASSES];
    unsigned waiting[MULTIQUEUE_CLASSES]; /* for room */
    unsigned takers;
    uint64_t size;
    uint64_t head[MULTIQUEUE_CLASSES];
    uint64_t tail[MULTIQUEUE_CLASSES];
    int64_t credit[MULTIQUEUE_CLASSES];
    void *items[MULTIQUEUE_CLASSES][MULTIQUEUE_ROOM];
};

CONTEST_INLINE void put(void *self, unsigned class_index, void *item)
{
    struct byhand *byhand = self;
    unsigned c = class_index;

    pthread_mutex_lock(&byhand->mutex);
    while (byhand->tail[c] - byhand->head[c] == MULTIQUEUE_ROOM) {
        byhand->waiting[c]++;
        pthread_cond_wait(&byhand->room[c], &byhand->mutex);
        byhand->waiting[c]--;
    }
    byhand->items[c][byhand->tail[c]++ % MULTIQUEUE_ROOM] = item;
    byhand->size++;
    if (byhand->takers > 0)
        pthread_cond_signal(&byhand->work);
    pthread_mutex_unlock(&byhand->mutex);
}

/* Each class with work earns its weight; the richest pays for all. */
static unsigned choose(struct byhand *byhand)
{
    static const int64_t weights[MULTIQUEUE_CLASSES] = {70, 20, 10};
    int64_t total = 0;
    int best = -1;

    for (int c = 0; c < MULTIQUEUE_CLASSES; c++) {
        if (byhand->tail[c] == byhand->head[c])
            continue;
        byhand->credit[c] += weights[c];
        total += weights[c];
        if (best < 0 || byhand->credit[c] > byhand->credit[best])
            best = c;
    }
    byhand->credit[best] -= total;
    return (unsigned)best;
}

CONTEST_INLINE void *take(void *self)
{
    struct byhand *byhand = self;

    pthread_mutex_lock(&byhand->mutex);
    while (byhand->size == 0) {
        byhand->takers++;
        pthread_cond_wait(&byhand->work, &byhand->mutex);
        byhand->takers--;
    }
    unsigned c = choose(byhand);
    void *item = byhand->items[c][byhand->head[c]++ % MULTIQUEUE_ROOM];
    byhand->size--;
    if (byhand->waiting[c] > 0)
        pthread_cond_signal(&byhand->room[c]);
    pthread_mutex_unlock(&byhand->mutex);
    return item;
}

static void *open_byhand(const struct contest_work *work)
{
    struct byhand *byhand = contest_alloc(sizeof *byhand);

    (void)work;
    pthread_mutex_init(&byhand->mutex, NULL);
    pthread_cond_init(&byhand->work, NULL);
    for (int c = 0; c < MULTIQUEUE_CLASSES; c++)
        pthread_cond_init(&byhand->room[c], NULL);
    return byhand;
}

static void run(struct contest_thread *thread)
{
    multiqueue_run(thread, put, take);
}

extern const struct contest_side multiqueue_mutex;
const struct contest_side multiqueue_mutex = {
    .name = "mutex", .open = open_byhand, .close = free, .run = run};
