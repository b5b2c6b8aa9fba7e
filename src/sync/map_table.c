/* map_table.c - buckets of the map: lock, insert, unlink.
 *
 * The lock of a bucket is a bit of its first word, which whoever takes it
 * writes anyway. Sections are short (a few lines of memory, no call to the
 * outside), so that who finds it taken spins for a moment; then it sleeps on
 * one of a few events. These are shared by many buckets: all who sleep on one
 * are woken, and each looks at its own bucket.
 */
#include <sys/mman.h>

#include "base/memory.h"
#include "base/thread.h"
#include "sync/map_state.h"

#define HUGE_FROM ((size_t)4 << 20) /* bytes of a table */

/* Looks at a taken lock before sleeping. */
#ifdef HF_STEPPED
#define SPINS 2 /* so that the tests' scheduler comes to the sleeping */
#else
#define SPINS 100
#endif

struct map_table *hf_map_table_new(uint64_t buckets)
{
    size_t bytes = sizeof(struct map_table) + HF_CACHE_LINE +
                   (size_t)buckets * sizeof(struct map_bucket);

    assert(buckets > 0 && (buckets & (buckets - 1)) == 0);
    if (buckets > MAP_BUCKETS_MAX)
        return NULL;
    void *memory = hf_alloc_zeroed(bytes);
    if (memory == NULL)
        return NULL;
    if (bytes >= HUGE_FROM) { /* spares address look-ups that would miss */
        uintptr_t page = HF_HUGE_BYTES;
        uintptr_t from = ((uintptr_t)memory + page - 1) & ~(page - 1);
        uintptr_t to = ((uintptr_t)memory + bytes) & ~(page - 1);
        if (from < to) /* a wish */
            (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
    }
    uintptr_t at = ((uintptr_t)memory + HF_CACHE_LINE - 1) &
                   ~(uintptr_t)(HF_CACHE_LINE - 1);
    struct map_table *table = (struct map_table *)at;
    table->retired.kind = MAP_TABLE;
    table->mask = buckets - 1;
    table->memory = memory;
    return table;
}

struct map_more *hf_map_more_new(void)
{
    struct map_more *more = hf_alloc_lines(sizeof *more);

    _Static_assert(sizeof *more <= HF_CACHE_LINE, "fits");
    if (more == NULL)
        return NULL;
    more->retired.kind = MAP_MORE;
    return more;
}

static void node_free(struct hf_map *map, struct map_node *node)
{
    void *value = map_value(node);

    if (map->owns && value != NULL && value != HF_MAP_MEMBER)
        map->opts.free_value(map->opts.context, value);
    hf_free(node);
}

void hf_map_reclaim(void *context, struct hf_epoch_node *epoch_node)
{
    struct map_retired *retired = (struct map_retired *)epoch_node;

    switch ((enum map_kind)retired->kind) {
    case MAP_NODE:
        node_free(context, (struct map_node *)retired);
        break;
    case MAP_MORE:
        hf_free((char *)retired - offsetof(struct map_more, retired));
        break;
    case MAP_TABLE:
        hf_free(((struct map_table *)retired)->memory);
        break;
    }
}

void hf_map_table_free(struct hf_map *map, struct map_table *table)
{
    for (uint64_t i = 0; i <= table->mask; i++) {
        struct map_bucket *bucket = &table->buckets[i];
        while (bucket != NULL) {
            struct map_bucket *more = map_more_behind(bucket);
            for (unsigned slot = 0; slot < MAP_SLOTS; slot++) {
                if (map_node_at(bucket, slot) != NULL)
                    node_free(map, map_node_at(bucket, slot));
            }
            if (bucket != &table->buckets[i])
                hf_free(map_more_of(bucket));
            bucket = more;
        }
    }
    hf_free(table->memory);
}

/* The lock. */

static struct map_park *park_of(struct hf_map *map,
                                const struct map_bucket *bucket)
{
    return &map->parks[(uintptr_t)bucket / sizeof *bucket % MAP_STRIPES];
}

/* seq_cst, here and in hf_map_bucket_unlock(): one announces itself and looks
 * at the bucket, the other unlocks it and looks who is announced; one of the
 * two sees the other. */
static void park(struct hf_map *map, struct map_bucket *bucket)
{
    struct map_park *park = park_of(map, bucket);

    hf_u32_add(&park->parked, 1, __ATOMIC_SEQ_CST);
    uint32_t key = hf_event_prepare(&park->unlocked);
    if (hf_u64_load(&bucket->word, __ATOMIC_SEQ_CST) & WORD_LOCKED)
        (void)hf_event_wait(&park->unlocked, key, NULL, HF_FOREVER);
    else
        hf_event_cancel(&park->unlocked, key);
    hf_u32_sub(&park->parked, 1, __ATOMIC_SEQ_CST);
}

bool hf_map_bucket_lock(struct hf_map *map, struct map_bucket *bucket)
{
    for (unsigned spins = 0;; spins++) {
        /* Acquire, both: what the last holder wrote, here or, if it moved the
         * bucket, in the next table. */
        uint64_t word = hf_u64_load(&bucket->word, __ATOMIC_ACQUIRE);

        if (word & WORD_LOCKED) {
            if (spins % SPINS == SPINS - 1)
                park(map, bucket);
            else
                hf_thread_pause();
            continue;
        }
        if (word & WORD_MOVED)
            return false;
        if (hf_u64_cas(&bucket->word, &word, word | WORD_LOCKED,
                       __ATOMIC_ACQUIRE))
            return true;
    }
}

void hf_map_bucket_unlock(struct hf_map *map, struct map_bucket *bucket,
                          uint64_t word)
{
    struct map_park *park = park_of(map, bucket);

    assert(!(word & WORD_LOCKED));
    assert(map_word(bucket) & WORD_LOCKED);
    /* Also a release: for the next holder. */
    (void)hf_u64_swap(&bucket->word, word, __ATOMIC_SEQ_CST);
    if (__builtin_expect(hf_u32_load(&park->parked, __ATOMIC_SEQ_CST) != 0, 0))
        hf_event_wake_all(&park->unlocked);
}

/* Of a bucket whose lock the caller holds. */
static uint64_t tags_of(const struct map_bucket *bucket)
{
    return map_word(bucket) & WORD_TAGS;
}

struct map_node *hf_map_lock(struct hf_map *map, struct hf_epoch_reader *reader,
                             const struct map_key *key, struct map_place *place)
{
    struct map_table *table = epoch_load(reader, &map->table);

    for (;;) {
        place->table = table;
        place->first = &table->buckets[key->hash & table->mask];
        /* Relaxed: who misses the beginning of a growth does not help yet. */
        if (hf_ptr_load(&table->next, __ATOMIC_RELAXED) != NULL)
            hf_map_help(map, reader, table, key);
        if (hf_map_bucket_lock(map, place->first))
            break;
        table = hf_map_next(map, reader, table);
    }
    place->bucket = place->first;
    while (place->bucket != NULL) {
        struct map_node *node = map_look(
            reader, place->bucket, map_word(place->bucket), key, &place->slot);
        if (node != NULL)
            return node;
        place->bucket = map_more_behind(place->bucket);
    }
    return NULL;
}

void hf_map_unlock(struct hf_map *map, const struct map_place *place)
{
    hf_map_bucket_unlock(map, place->first, tags_of(place->first));
}

void hf_map_unlink(struct hf_map *map, struct hf_epoch_reader *reader,
                   const struct map_place *place)
{
    struct map_bucket *bucket = place->bucket;
    uint64_t tags = tags_of(bucket) & ~map_tag_at(0xff, place->slot);
    /* seq_cst: unlinked before readers are looked for. The tag goes after: a
     * reader that still sees it finds the slot empty, or another key. */
    struct map_node *node =
        hf_ptr_swap(&bucket->nodes[place->slot], NULL, __ATOMIC_SEQ_CST);

    assert(node != NULL);
    if (bucket != place->first) {
        /* Relaxed: the slot is empty whether the tag is seen or not. */
        hf_u64_store(&bucket->word, tags, __ATOMIC_RELAXED);
        tags = tags_of(place->first);
    }
    hf_map_bucket_unlock(map, place->first, tags);
    hf_epoch_retire(reader, &node->retired.epoch);
}

void hf_map_swap(struct hf_map *map, struct hf_epoch_reader *reader,
                 const struct map_place *place, struct map_node *node)
{
    hf_epoch_born(reader, &node->retired.epoch);
    /* seq_cst: as in hf_map_unlink(); it also publishes the new node. */
    struct map_node *old =
        hf_ptr_swap(&place->bucket->nodes[place->slot], node, __ATOMIC_SEQ_CST);

    assert(old != NULL && old->hash == node->hash);
    hf_map_unlock(map, place);
    hf_epoch_retire(reader, &old->retired.epoch);
}

/* Puts the node into an empty slot of the bucket or one behind it; if there is
 * none, into `*spare`, which is appended. False: that is NULL. */
static bool put_node(const struct map_place *place, struct map_node *node,
                     uint64_t tag, struct map_more **spare)
{
    struct map_bucket *bucket = place->first;
    struct map_bucket *behind;
    unsigned slot;

    while ((slot = map_empty_slot(map_word(bucket))) == MAP_SLOTS) {
        behind = map_more_behind(bucket);
        if (behind == NULL)
            break;
        bucket = behind;
    }
    if (slot < MAP_SLOTS) {
        /* The tag first, see map_state.h. Relaxed: the node's release brings
         * it along. Nobody else writes a locked word. */
        hf_u64_store(&bucket->word, map_word(bucket) | map_tag_at(tag, slot),
                     __ATOMIC_RELAXED);
        hf_ptr_store(&bucket->nodes[slot], node, __ATOMIC_RELEASE);
        return true;
    }
    if (*spare == NULL)
        return false;
    /* Filled first, then linked: release. */
    hf_ptr_store(&(*spare)->bucket.nodes[0], node, __ATOMIC_RELAXED);
    hf_u64_store(&(*spare)->bucket.word, tag, __ATOMIC_RELAXED);
    hf_ptr_store(&bucket->more, &(*spare)->bucket, __ATOMIC_RELEASE);
    *spare = NULL;
    return true;
}

enum hf_status hf_map_insert(struct hf_map *map, struct hf_epoch_reader *reader,
                             const struct map_key *key, struct map_node *node)
{
    struct map_more *spare = NULL;
    enum hf_status status = HF_PENDING;
    struct map_place place;

    hf_epoch_born(reader, &node->retired.epoch);
    while (status == HF_PENDING) {
        if (hf_map_lock(map, reader, key, &place) != NULL) {
            hf_map_unlock(map, &place);
            status = HF_EXISTS;
        } else if (put_node(&place, node, key->tag, &spare)) {
            hf_map_unlock(map, &place);
            status = HF_OK;
        } else { /* full: a larger table, or one more bucket behind it */
            hf_map_unlock(map, &place);
            if (hf_map_grow(map, reader, place.table))
                continue;
            spare = hf_map_more_new();
            if (spare == NULL)
                return HF_NOMEM;
            hf_epoch_born(reader, &spare->retired.epoch);
        }
    }
    if (spare != NULL)
        hf_free(spare);
    return status;
}
