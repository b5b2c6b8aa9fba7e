/* map_grow.c - the map gets a larger table while everybody goes on.
 *
 * Growth begins when a full bucket is to take one more and the table as a whole
 * holds more than MAP_LOAD keys a bucket. From then on each insertion and
 * removal moves the bucket that it needs and HELP others. These are taken in
 * turn, round and round until all are moved: one that could not be moved for
 * want of memory, or whose mover was stopped, is tried again.
 *
 *   old      | moved | moved |   2   | moved |         a bucket's keys go to
 *   next     | 0 | 1 |   | 3 | 4 | 5 |   | 7 |         the same place or to
 *                                                      that + old size
 *
 * A bucket of the next table is not seen by anybody before its keys came: all
 * come by the old bucket. So it is filled without a lock.
 */
#include "base/memory.h"
#include "sync/map_state.h"

#define HELP 8u

struct map_table *hf_map_next(struct hf_map *map,
                              struct hf_epoch_reader *reader,
                              struct map_table *table)
{
    struct map_table *next = epoch_load(reader, &table->next);
    /* The check that `next` leads to something alive; seq_cst, after the load
     * has announced itself to the epoch. */
    struct map_table *current = epoch_load(reader, &map->table);

    assert(current != table || next != NULL);
    return current == table ? next : current;
}

/* Puts the node into a bucket that nobody else can see. */
static bool append(struct hf_epoch_reader *reader, struct map_bucket *bucket,
                   struct map_node *node)
{
    uint64_t tag = node->hash >> 56;
    unsigned slot;

    while ((slot = map_empty_slot(map_word(bucket))) == MAP_SLOTS) {
        if (map_more_behind(bucket) == NULL) {
            struct map_more *more = hf_map_more_new();
            if (more == NULL)
                return false;
            hf_epoch_born(reader, &more->retired.epoch);
            /* Relaxed, as all here: published by WORD_MOVED. */
            hf_ptr_store(&bucket->more, &more->bucket, __ATOMIC_RELAXED);
        }
        bucket = map_more_behind(bucket);
    }
    hf_ptr_store(&bucket->nodes[slot], node, __ATOMIC_RELAXED);
    hf_u64_store(&bucket->word,
                 map_word(bucket) | map_tag_at(tag + (tag == 0), slot),
                 __ATOMIC_RELAXED);
    return true;
}

/* Takes back what append() did; nobody has seen it. */
static void empty_again(struct map_bucket *bucket)
{
    struct map_bucket *more = map_more_behind(bucket);

    while (more != NULL) {
        struct map_bucket *behind = map_more_behind(more);
        hf_free(map_more_of(more));
        more = behind;
    }
    for (unsigned slot = 0; slot < MAP_SLOTS; slot++)
        hf_ptr_store(&bucket->nodes[slot], NULL, __ATOMIC_RELAXED);
    hf_ptr_store(&bucket->more, NULL, __ATOMIC_RELAXED);
    hf_u64_store(&bucket->word, 0, __ATOMIC_RELAXED);
}

static bool copy_nodes(struct hf_epoch_reader *reader,
                       struct map_bucket *bucket, struct map_table *next)
{
    for (; bucket != NULL; bucket = map_more_behind(bucket)) {
        for (unsigned slot = 0; slot < MAP_SLOTS; slot++)
            __builtin_prefetch((char *)map_node_at(bucket, slot) +
                               offsetof(struct map_node, hash));
        for (unsigned slot = 0; slot < MAP_SLOTS; slot++) {
            struct map_node *node = map_node_at(bucket, slot);
            if (node != NULL &&
                !append(reader, &next->buckets[node->hash & next->mask], node))
                return false;
        }
    }
    return true;
}

/* Clears all that leads from a moved bucket to nodes and to the bucket behind
 * it, which is returned. seq_cst: before whoever removes one of these nodes,
 * which then are found in the next table only, looks for readers. */
static struct map_bucket *clear(struct map_bucket *bucket)
{
    struct map_bucket *more = map_more_behind(bucket);

    for (unsigned slot = 0; slot < MAP_SLOTS; slot++) {
        if (map_node_at(bucket, slot) != NULL)
            hf_ptr_store(&bucket->nodes[slot], NULL, __ATOMIC_SEQ_CST);
    }
    if (more != NULL)
        hf_ptr_store(&bucket->more, NULL, __ATOMIC_SEQ_CST);
    return more;
}

/* The same for the bucket and those behind it; returns these as a list. */
static struct hf_epoch_node *clear_all(struct map_bucket *bucket)
{
    struct hf_epoch_node *list = NULL;

    for (bucket = clear(bucket); bucket != NULL;) {
        struct hf_epoch_node *node = &map_more_of(bucket)->retired.epoch;
        bucket = clear(bucket);
        node->next = list; /* the epoch's, which has no use for it yet */
        list = node;
    }
    return list;
}

/* All buckets are moved: the next table is the one to begin with. */
static void finish(struct hf_map *map, struct hf_epoch_reader *reader,
                   struct map_table *table)
{
    /* seq_cst: unlinked before readers are looked for; and see hf_map_next().
     */
    hf_ptr_store(&map->table, hf_ptr_load(&table->next, __ATOMIC_RELAXED),
                 __ATOMIC_SEQ_CST);
    hf_epoch_retire(reader, &table->retired.epoch);
}

static void move(struct hf_map *map, struct hf_epoch_reader *reader,
                 struct map_table *table, uint64_t index)
{
    struct map_bucket *bucket = &table->buckets[index];

    /* Relaxed: a hint, the lock decides. */
    if ((map_word(bucket) & WORD_MOVED) || !hf_map_bucket_lock(map, bucket))
        return;
    /* Acquire: the empty table. It lives: this bucket is not moved. */
    struct map_table *next = hf_ptr_load(&table->next, __ATOMIC_ACQUIRE);
    if (!copy_nodes(reader, bucket, next)) {
        empty_again(&next->buckets[index]);
        empty_again(&next->buckets[index + table->mask + 1]);
        hf_map_bucket_unlock(map, bucket, map_word(bucket) & WORD_TAGS);
        return;
    }
    /* Release: the copies. From here on readers go to the next table. */
    hf_u64_store(&bucket->word, map_word(bucket) | WORD_MOVED,
                 __ATOMIC_RELEASE);
    struct hf_epoch_node *list = clear_all(bucket);
    hf_map_bucket_unlock(map, bucket, WORD_MOVED);
    while (list != NULL) { /* not under the lock: it may free others' values */
        struct hf_epoch_node *more = list;
        list = more->next;
        hf_epoch_retire(reader, more);
    }
    /* Acquire and release: who finishes comes after all who moved. */
    if (hf_u64_add(&table->moved, 1, __ATOMIC_ACQ_REL) == table->mask)
        finish(map, reader, table);
}

void hf_map_help(struct hf_map *map, struct hf_epoch_reader *reader,
                 struct map_table *table, const struct map_key *key)
{
    move(map, reader, table, key->hash & table->mask);
    /* Relaxed: only shares out the work. */
    uint64_t from = hf_u64_add(&table->cursor, HELP, __ATOMIC_RELAXED);
    for (uint64_t i = from; i < from + HELP && i - from <= table->mask; i++)
        move(map, reader, table, i & table->mask);
}

bool hf_map_grow(struct hf_map *map, struct hf_epoch_reader *reader,
                 struct map_table *table)
{
    uint64_t buckets = table->mask + 1;
    void *none = NULL;

    /* seq_cst: a table that is not the current one does not grow, see
     * hf_map_next(). */
    if (hf_map_size(map) <= buckets * MAP_LOAD ||
        hf_ptr_load(&table->next, __ATOMIC_RELAXED) != NULL ||
        hf_ptr_load(&map->table, __ATOMIC_SEQ_CST) != table)
        return false;
    struct map_table *next = hf_map_table_new(buckets * 2);
    if (next == NULL) {
        hf_u64_add(&map->growths_nomem, 1, __ATOMIC_RELAXED);
        return false;
    }
    hf_epoch_born(reader, &next->retired.epoch);
    /* Release: the empty table. */
    if (!hf_ptr_cas(&table->next, &none, next, __ATOMIC_ACQ_REL)) {
        hf_free(next->memory);
        return true; /* another was first */
    }
    hf_u64_add(&map->growths, 1, __ATOMIC_RELAXED);
    return true;
}
