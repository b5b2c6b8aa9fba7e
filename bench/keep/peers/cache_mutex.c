/* cache_mutex.c - what one writes in an afternoon: a hash table and a list, in
 * the order of use, under one lock. */
#include <pthread.h>

#include "bench/keep/cache.h"

struct node {
    struct node *chain;
    struct node *newer;
    struct node *older;
    struct table_key key;
    void *value;
};

struct lru {
    pthread_mutex_t mutex;
    struct node **heads;
    uint64_t mask;
    struct node ends; /* its `older` is the newest, its `newer` the oldest */
    uint64_t count;
    uint64_t room;
};

static struct node **head_of(struct lru *lru, const struct table_key *key)
{
    uint64_t a, b;

    memcpy(&a, key->bytes, 8);
    memcpy(&b, key->bytes + 8, 8);
    a = (a ^ b * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    return &lru->heads[(a ^ a >> 32) & lru->mask];
}

static void unlink_node(struct node *node)
{
    node->newer->older = node->older;
    node->older->newer = node->newer;
}

static void push(struct lru *lru, struct node *node)
{
    node->newer = &lru->ends;
    node->older = lru->ends.older;
    node->older->newer = node;
    lru->ends.older = node;
}

static struct node *find(struct lru *lru, const struct table_key *key)
{
    struct node *node = *head_of(lru, key);

    while (node != NULL && memcmp(&node->key, key, sizeof *key) != 0)
        node = node->chain;
    return node;
}

/* The oldest, out of table and list. */
static struct node *take_oldest(struct lru *lru)
{
    struct node *node = lru->ends.newer;
    struct node **link = head_of(lru, &node->key);

    while (*link != node)
        link = &(*link)->chain;
    *link = node->chain;
    unlink_node(node);
    return node;
}

static bool get_locked(struct lru *lru, const struct table_key *key,
                       void **value)
{
    struct node *node = find(lru, key);

    if (node == NULL)
        return false;
    *value = node->value;
    unlink_node(node);
    push(lru, node);
    return true;
}

static void put_locked(struct lru *lru, const struct table_key *key,
                       void *value)
{
    struct node *node = find(lru, key);

    if (node != NULL) {
        node->value = value;
        unlink_node(node);
        push(lru, node);
        return;
    }
    if (lru->count < lru->room) {
        node = contest_alloc(sizeof *node);
        lru->count++;
    } else {
        node = take_oldest(lru);
    }
    struct node **head = head_of(lru, key);
    node->key = *key;
    node->value = value;
    node->chain = *head;
    *head = node;
    push(lru, node);
}

CONTEST_INLINE bool get(struct contest_thread *thread,
                        const struct table_key *key, void **value)
{
    struct lru *lru = thread->self;

    pthread_mutex_lock(&lru->mutex);
    bool found = get_locked(lru, key, value);
    pthread_mutex_unlock(&lru->mutex);
    return found;
}

CONTEST_INLINE void put(struct contest_thread *thread,
                        const struct table_key *key, void *value)
{
    struct lru *lru = thread->self;

    pthread_mutex_lock(&lru->mutex);
    put_locked(lru, key, value);
    pthread_mutex_unlock(&lru->mutex);
}

/* Loads under the lock: one load for a key, and for all others too. */
CONTEST_INLINE void *load(struct contest_thread *thread,
                          const struct table_key *key)
{
    struct lru *lru = thread->self;
    void *value;

    pthread_mutex_lock(&lru->mutex);
    if (!get_locked(lru, key, &value)) {
        value = cache_loaded(key);
        put_locked(lru, key, value);
    }
    pthread_mutex_unlock(&lru->mutex);
    return value;
}

static void *open_lru(const struct contest_work *work)
{
    struct lru *lru = contest_alloc(sizeof *lru);
    uint64_t heads = 1;

    while (heads < work->size)
        heads *= 2;
    lru->heads = contest_alloc(heads * sizeof *lru->heads);
    lru->mask = heads - 1;
    lru->room = work->size;
    lru->ends.newer = lru->ends.older = &lru->ends;
    pthread_mutex_init(&lru->mutex, NULL);
    return lru;
}

static void close_lru(void *self)
{
    struct lru *lru = self;

    while (lru->ends.newer != &lru->ends)
        free(take_oldest(lru));
    pthread_mutex_destroy(&lru->mutex);
    free(lru->heads);
    free(lru);
}

static void run(struct contest_thread *thread)
{
    cache_run(thread, get, put, load);
}

const struct contest_side cache_mutex = {
    .name = "mutex-lru",
    .open = open_lru,
    .close = close_lru,
    .run = run,
    .enter = cache_enter,
};
