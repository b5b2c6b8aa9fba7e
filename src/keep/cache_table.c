/* cache_table.c - the buckets of a segment, and how they grow.
 *
 * An entry lies in the bucket that its hash names, or if that is full in the
 * next one that is not. A bucket counts those that went past it, so that a
 * look-up knows when to stop. The count stays at its maximum once it is there:
 * then too many buckets are looked at, never too few.
 *
 *   home                        full, 1 behind     has room
 *   +----+--+--+--+--+--+--+--+   +-----------+   +---------+
 *   | 0  |tags               |   | 1 | ......|-->| 0 | x ..|
 *   +----+-------------------+   +-----------+   +---------+
 *
 * Who writes holds the lock, so one thread at a time does. A new entry gets its
 * tag before its slot, an old one loses its slot before its tag: to readers the
 * slot is what counts.
 */
#include "base/memory.h"
#include "keep/cache_state.h"

#define LOAD        4u /* entries a bucket, on average, that ask for growth */
#define BUCKETS_MIN 2u
#define BEHIND_MAX  255u

static struct cache_table *table_of(const struct cache_segment *segment)
{
    /* Relaxed: only the lock's holder writes it. */
    return hf_ptr_load(&segment->table, __ATOMIC_RELAXED);
}

static struct cache_entry *entry_at(const struct cache_bucket *bucket,
                                    unsigned slot)
{
    return hf_ptr_load(&bucket->slots[slot], __ATOMIC_RELAXED);
}

static uint64_t word_of(const struct cache_bucket *bucket)
{
    return hf_u64_load(&bucket->word, __ATOMIC_RELAXED);
}

/* Relaxed: what readers need to see comes with the slot's release. */
static void word_set(struct cache_bucket *bucket, uint64_t word)
{
    hf_u64_store(&bucket->word, word, __ATOMIC_RELAXED);
}

struct cache_table *hf_cache_table_new(uint64_t entries)
{
    uint64_t buckets = BUCKETS_MIN;

    while (buckets * LOAD < entries)
        buckets *= 2;
    size_t bytes =
        sizeof(struct cache_table) + buckets * sizeof(struct cache_bucket);
    struct cache_table *table = hf_alloc_lines(bytes);
    if (table == NULL)
        return NULL;
    table->retired.kind = CACHE_TABLE;
    table->mask = buckets - 1;
    return table;
}

static void insert(struct cache_table *table, struct cache_entry *entry)
{
    uint64_t at = entry->hash;
    struct cache_bucket *bucket;
    uint64_t empty;

    for (;; at++) {
        bucket = &table->at[at & table->mask];
        empty = map_tag_hits(word_of(bucket), 0, CACHE_ONES);
        if (empty != 0)
            break;
        if (word_of(bucket) >> 56 < BEHIND_MAX)
            word_set(bucket, word_of(bucket) + CACHE_BEHIND);
    }
    unsigned slot = map_tag_slot(empty);
    word_set(bucket, word_of(bucket) | cache_tag(entry->hash) << slot * 8);
    /* Release: the entry, and the words before. */
    hf_ptr_store(&bucket->slots[slot], entry, __ATOMIC_RELEASE);
}

/* seq_cst: before whoever takes out one of these entries, which are then found
 * in the new table only, looks for readers. */
static void clear(struct cache_table *table)
{
    for (uint64_t i = 0; i <= table->mask; i++)
        for (unsigned slot = 0; slot < CACHE_SLOTS; slot++)
            if (entry_at(&table->at[i], slot) != NULL)
                hf_ptr_store(&table->at[i].slots[slot], NULL, __ATOMIC_SEQ_CST);
}

static bool grow(struct cache_segment *segment, struct hf_epoch_reader *reader,
                 struct cache_table *table, struct cache_batch *batch)
{
    struct cache_table *next =
        hf_cache_table_new((table->mask + 1) * 2 * (uint64_t)LOAD);

    if (next == NULL)
        return false;
    for (uint64_t i = 0; i <= table->mask; i++)
        for (unsigned slot = 0; slot < CACHE_SLOTS; slot++)
            if (entry_at(&table->at[i], slot) != NULL)
                insert(next, entry_at(&table->at[i], slot));
    hf_epoch_born(reader, &next->retired.epoch);
    /* seq_cst: published before the old slots are cleared, and unlinked before
     * readers are looked for. */
    hf_ptr_store(&segment->table, next, __ATOMIC_SEQ_CST);
    hf_u64_store(&segment->mask, next->mask, __ATOMIC_RELAXED); /* a hint */
    clear(table);
    assert(batch->table == NULL);
    batch->table = table;
    return true;
}

bool hf_cache_table_room(struct cache_segment *segment,
                         struct hf_epoch_reader *reader,
                         struct cache_batch *batch)
{
    struct cache_table *table = table_of(segment);
    uint64_t count = cache_figure(&segment->count);

    if (count < (table->mask + 1) * LOAD)
        return true;
    /* Without memory for a larger one this one will do while it can. */
    return grow(segment, reader, table, batch) ||
           count < (table->mask + 1) * CACHE_SLOTS;
}

void hf_cache_table_insert(struct cache_segment *segment,
                           struct cache_entry *entry)
{
    insert(table_of(segment), entry);
}

void hf_cache_table_replace(const struct cache_place *place,
                            struct cache_entry *entry)
{
    /* seq_cst: unlinked before readers are looked for; it also publishes the
     * new one. */
    struct cache_entry *old = hf_ptr_swap(&place->bucket->slots[place->slot],
                                          entry, __ATOMIC_SEQ_CST);
    assert(old != NULL && old->hash == entry->hash);
    (void)old;
}

void hf_cache_table_remove(struct cache_segment *segment,
                           const struct cache_place *place,
                           const struct cache_entry *entry)
{
    struct cache_table *table = table_of(segment);
    struct cache_bucket *bucket = place->bucket;
    /* seq_cst: as above. The tag goes after: a reader that still sees it finds
     * the slot empty, or another key. */
    const struct cache_entry *old =
        hf_ptr_swap(&bucket->slots[place->slot], NULL, __ATOMIC_SEQ_CST);

    assert(old == entry);
    (void)old;
    word_set(bucket, word_of(bucket) & ~(UINT64_C(0xff) << place->slot * 8));
    for (uint64_t at = entry->hash;; at++) {
        struct cache_bucket *passed = &table->at[at & table->mask];
        if (passed == bucket)
            break;
        if (word_of(passed) >> 56 < BEHIND_MAX)
            word_set(passed, word_of(passed) - CACHE_BEHIND);
    }
}

/* Looks for what `is` says; NULL for any with that hash. */
static struct cache_entry *find(const struct cache_segment *segment,
                                uint64_t hash, const struct cache_key *key,
                                const struct cache_entry *exact,
                                struct cache_place *place)
{
    struct cache_table *table = table_of(segment);

    for (uint64_t at = hash;; at++) {
        struct cache_bucket *bucket = &table->at[at & table->mask];
        uint64_t hits =
            map_tag_hits(word_of(bucket), cache_tag(hash), CACHE_ONES);
        for (; hits != 0; hits &= hits - 1) {
            struct cache_entry *entry = entry_at(bucket, map_tag_slot(hits));
            if (entry == NULL || entry->hash != hash ||
                (key != NULL && !cache_key_is(key, entry)) ||
                (exact != NULL && entry != exact))
                continue;
            place->bucket = bucket;
            place->slot = map_tag_slot(hits);
            return entry;
        }
        if (word_of(bucket) < CACHE_BEHIND)
            return NULL;
    }
}

struct cache_entry *hf_cache_table_find(const struct cache_segment *segment,
                                        const struct cache_key *key,
                                        struct cache_place *place)
{
    return find(segment, key->hash, key, NULL, place);
}

struct cache_entry *
hf_cache_table_find_hash(const struct cache_segment *segment, uint64_t hash)
{
    struct cache_place place;
    return find(segment, hash, NULL, NULL, &place);
}

bool hf_cache_table_place(const struct cache_segment *segment,
                          const struct cache_entry *entry,
                          struct cache_place *place)
{
    return find(segment, entry->hash, NULL, entry, place) != NULL;
}
