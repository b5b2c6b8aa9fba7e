/* map_urcu.c - liburcu's rculfhash, with its general flavour of RCU.
 *
 * Its users bring node, key and value in one allocation, and free them when
 * no reader can see them any more (call_rcu). Hashed by XXH3.
 *
 * It can be told to grow by itself, in a thread of its own. That thread is at
 * times not woken (seen with 0.13.2) and the map then becomes a list. So it is
 * told the size where that is known, and doubled by whoever fills it where the
 * work is to grow.
 */
#define _LGPL_SOURCE /* its calls inline */
#define XXH_INLINE_ALL
#include <stdlib.h>
#include <urcu.h>
#include <urcu/rculfhash.h>
#include <xxhash.h>

#include "bench/sync/table.h"

struct node {
    struct cds_lfht_node link;
    struct rcu_head head;
    void *value;
    size_t key_bytes;
    char key[];
};

struct map {
    struct cds_lfht *table;
    unsigned long put; /* atomic: in steps of GROWTH_STEP */
};

#define GROWTH_STEP 256

static unsigned long hash(const struct table_key *key)
{
    return XXH3_64bits(key->bytes, sizeof key->bytes);
}

static struct node *node_of(struct cds_lfht_node *link)
{
    return caa_container_of(link, struct node, link);
}

static int match(struct cds_lfht_node *link, const void *key)
{
    const struct node *node = node_of(link);

    return node->key_bytes == TABLE_KEY_BYTES &&
           memcmp(node->key, key, TABLE_KEY_BYTES) == 0;
}

static void node_free(struct rcu_head *head)
{
    free(caa_container_of(head, struct node, head));
}

static struct cds_lfht *table(struct contest_thread *thread)
{
    return ((struct map *)thread->self)->table;
}

/* After each step of puts of a thread: doubles when there are as many nodes
 * as buckets. */
static void grow(struct contest_thread *thread)
{
    struct map *map = thread->self;
    unsigned long count =
        GROWTH_STEP +
        __atomic_fetch_add(&map->put, GROWTH_STEP, __ATOMIC_RELAXED);

    if ((count & (count - 1)) == 0)
        cds_lfht_resize(map->table, 2 * count);
}

CONTEST_INLINE bool map_get(struct contest_thread *thread,
                            const struct table_key *key, void **value)
{
    struct cds_lfht_iter iter;

    rcu_read_lock();
    cds_lfht_lookup(table(thread), hash(key), match, key, &iter);
    struct cds_lfht_node *link = cds_lfht_iter_get_node(&iter);
    if (link != NULL)
        *value = node_of(link)->value;
    rcu_read_unlock();
    return link != NULL;
}

CONTEST_INLINE void map_put(struct contest_thread *thread,
                            const struct table_key *key, void *value)
{
    struct node *node = malloc(sizeof *node + TABLE_KEY_BYTES);

    if (node == NULL)
        contest_fail("out of memory");
    cds_lfht_node_init(&node->link);
    node->value = value;
    node->key_bytes = TABLE_KEY_BYTES;
    memcpy(node->key, key->bytes, TABLE_KEY_BYTES);
    rcu_read_lock();
    struct cds_lfht_node *old = cds_lfht_add_replace(
        table(thread), hash(key), match, key->bytes, &node->link);
    rcu_read_unlock();
    if (old != NULL)
        call_rcu(&node_of(old)->head, node_free);
    if (thread->work->shape == TABLE_GROWTH &&
        ++*(unsigned long *)thread->own % GROWTH_STEP == 0)
        grow(thread);
}

CONTEST_INLINE void map_remove(struct contest_thread *thread,
                               const struct table_key *key)
{
    struct cds_lfht_iter iter;

    rcu_read_lock();
    cds_lfht_lookup(table(thread), hash(key), match, key->bytes, &iter);
    struct cds_lfht_node *link = cds_lfht_iter_get_node(&iter);
    bool removed = link != NULL && cds_lfht_del(table(thread), link) == 0;
    rcu_read_unlock();
    if (removed)
        call_rcu(&node_of(link)->head, node_free);
}

static void *map_open(const struct contest_work *work)
{
    struct map *map = contest_alloc(sizeof *map);
    unsigned long buckets = 1;

    while (work->shape != TABLE_GROWTH && buckets < work->size)
        buckets *= 2;
    /* Here and not in a thread of the contest: its helper would be bound to
     * that thread's core. */
    if (get_default_call_rcu_data() == NULL)
        contest_fail("get_default_call_rcu_data");
    map->table = cds_lfht_new(buckets, 1, 0, 0, NULL);
    if (map->table == NULL)
        contest_fail("cds_lfht_new");
    return map;
}

static void map_close(void *self)
{
    struct map *map = self;
    struct cds_lfht_iter iter;
    struct cds_lfht_node *link;

    rcu_register_thread();
    rcu_read_lock();
    cds_lfht_for_each(map->table, &iter, link)
    {
        if (cds_lfht_del(map->table, link) == 0)
            call_rcu(&node_of(link)->head, node_free);
    }
    rcu_read_unlock();
    rcu_barrier();
    rcu_unregister_thread();
    if (cds_lfht_destroy(map->table, NULL) != 0)
        contest_fail("cds_lfht_destroy");
    free(map);
}

static void map_enter(struct contest_thread *thread)
{
    thread->own = contest_alloc(sizeof(unsigned long));
    rcu_register_thread();
    table_fill(thread, map_get, map_put);
}

static void map_leave(struct contest_thread *thread)
{
    rcu_unregister_thread();
    free(thread->own);
}

static void map_run(struct contest_thread *thread)
{
    table_run(thread, map_get, map_put, map_remove);
}

static void map_check(struct contest_thread *thread)
{
    table_check(thread, map_get);
}

const struct contest_side map_rculfhash = {
    .name = "rculfhash",
    .open = map_open,
    .close = map_close,
    .run = map_run,
    .enter = map_enter,
    .leave = map_leave,
    .check = map_check,
};
