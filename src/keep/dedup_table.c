/* dedup_table.c - a shard's table in memory. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "keep/dedup_state.h"

#define SLOTS_FIRST    64u
#define SLOTS_PER_STEP 2u    /* looked at by the sweep for each new item */
#define SLOTS_SMALL    1024u /* swept as often as one likes */
#define SWEEPS         64u   /* of a larger table, in a window, at most */

struct dedup_entry *hf_dedup_table_at(const struct hf_dedup *dedup,
                                      const struct dedup_table *table,
                                      uint64_t index)
{
    assert(index < table->slot_count);
    return (struct dedup_entry *)(table->slots + index * dedup->stride);
}

struct dedup_entry *hf_dedup_table_find(const struct hf_dedup *dedup,
                                        const struct dedup_table *table,
                                        uint64_t high, uint64_t low)
{
    if (table->count == 0)
        return NULL;
    for (uint64_t i = low;; i++) {
        struct dedup_entry *entry =
            hf_dedup_table_at(dedup, table, i & (table->slot_count - 1));
        if (entry->until_ns == 0)
            return NULL;
        if (entry->high == high && entry->low == low)
            return entry;
    }
}

/* The first free place for `low`. There is one: tables are never full. */
static struct dedup_entry *free_place(const struct hf_dedup *dedup,
                                      const struct dedup_table *table,
                                      uint64_t low)
{
    for (uint64_t i = low;; i++) {
        struct dedup_entry *entry =
            hf_dedup_table_at(dedup, table, i & (table->slot_count - 1));
        if (entry->until_ns == 0)
            return entry;
    }
}

static bool grow(const struct hf_dedup *dedup, struct dedup_shard *shard)
{
    struct dedup_table *old = &shard->table;
    struct dedup_table next = *old;

    next.slot_count = old->slots == NULL ? SLOTS_FIRST : 2 * old->slot_count;
    next.slots = hf_alloc_zeroed(next.slot_count * dedup->stride);
    next.hand = 0;
    if (next.slots == NULL)
        return false;
    for (uint64_t i = 0; old->slots != NULL && i < old->slot_count; i++) {
        struct dedup_entry *entry = hf_dedup_table_at(dedup, old, i);
        if (entry->until_ns != 0)
            memcpy(free_place(dedup, &next, entry->low), entry, dedup->stride);
    }
    dedup_count(&shard->memory_bytes,
                (int64_t)((next.slot_count - old->slot_count) * dedup->stride));
    hf_free(old->slots);
    *old = next;
    return true;
}

enum hf_status hf_dedup_table_add(const struct hf_dedup *dedup,
                                  struct dedup_shard *shard, uint64_t high,
                                  uint64_t low, uint64_t until_ns,
                                  struct dedup_entry **out)
{
    struct dedup_table *table = &shard->table;

    assert(hf_mutex_held(&shard->mutex) && until_ns != 0);
    if (table->count >= dedup->shard_items)
        return HF_FULL;
    /* Three quarters full: a search then looks at two or three places. */
    if (4 * (table->count + 1) > 3 * table->slot_count && !grow(dedup, shard))
        return HF_NOMEM;
    struct dedup_entry *entry = free_place(dedup, table, low);
    entry->high = high;
    entry->low = low;
    entry->until_ns = until_ns;
    if (table->count++ == 0 || until_ns < table->earliest_ns)
        table->earliest_ns = until_ns;
    dedup_count(&shard->items, 1);
    *out = entry;
    return HF_OK;
}

/* The followers move up, each if it may stand at the gap: if its own first
 * choice is not behind the gap. */
void hf_dedup_table_remove(const struct hf_dedup *dedup,
                           struct dedup_shard *shard, struct dedup_entry *entry)
{
    struct dedup_table *table = &shard->table;
    uint64_t mask = table->slot_count - 1;
    uint64_t gap =
        (uint64_t)((unsigned char *)entry - table->slots) / dedup->stride;

    assert(hf_mutex_held(&shard->mutex) && entry->until_ns != 0);
    for (uint64_t i = (gap + 1) & mask;; i = (i + 1) & mask) {
        struct dedup_entry *next = hf_dedup_table_at(dedup, table, i);
        if (next->until_ns == 0)
            break;
        if (((i - next->low) & mask) < ((i - gap) & mask))
            continue;
        memcpy(hf_dedup_table_at(dedup, table, gap), next, dedup->stride);
        gap = i;
    }
    hf_dedup_table_at(dedup, table, gap)->until_ns = 0;
    table->count--;
    dedup_count(&shard->items, -1);
}

void hf_dedup_table_step(const struct hf_dedup *dedup,
                         struct dedup_shard *shard)
{
    struct dedup_table *table = &shard->table;

    if (table->count == 0 || shard->now_ns < table->earliest_ns)
        return;
    for (unsigned i = 0; i < SLOTS_PER_STEP && table->count > 0; i++) {
        uint64_t at = table->hand & (table->slot_count - 1);
        struct dedup_entry *entry = hf_dedup_table_at(dedup, table, at);
        if (entry->until_ns != 0 && entry->until_ns <= shard->now_ns)
            hf_dedup_table_remove(dedup, shard,
                                  entry); /* another may come here */
        else
            table->hand++;
    }
}

void hf_dedup_table_sweep(const struct hf_dedup *dedup,
                          struct dedup_shard *shard)
{
    struct dedup_table *table = &shard->table;
    uint64_t earliest_ns = UINT64_MAX;

    /* Otherwise a full table would be searched by each who is refused, or for
     * each one that gets the place of the one that has just expired. */
    if (table->count == 0 || shard->now_ns < table->earliest_ns)
        return;
    if (table->slot_count > SLOTS_SMALL && table->swept_ns != 0 &&
        shard->now_ns - table->swept_ns < dedup->window_ns / SWEEPS)
        return;
    table->swept_ns = shard->now_ns;
    for (uint64_t i = 0; i < table->slot_count;) {
        struct dedup_entry *entry = hf_dedup_table_at(dedup, table, i);
        if (entry->until_ns != 0 && entry->until_ns <= shard->now_ns) {
            hf_dedup_table_remove(dedup, shard, entry);
            continue;
        }
        if (entry->until_ns != 0 && entry->until_ns < earliest_ns)
            earliest_ns = entry->until_ns;
        i++;
    }
    table->earliest_ns = earliest_ns;
}

void hf_dedup_table_clear(const struct hf_dedup *dedup,
                          struct dedup_shard *shard)
{
    struct dedup_table *table = &shard->table;

    dedup_count(&shard->items, -(int64_t)table->count);
    memset(table->slots, 0, table->slot_count * dedup->stride);
    table->count = 0;
    table->hand = 0;
}
