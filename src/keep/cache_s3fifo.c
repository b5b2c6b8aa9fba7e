/* cache_s3fifo.c - two queues and the names of what went: S3-FIFO.
 *
 * New entries enter a small queue, a tenth of the room. Who has been read twice
 * when its turn comes goes on to the main queue; the others go, and their names
 * are kept for a while. A key that comes back while its name is kept goes to
 * the main queue at once. There an entry that has been read gets another
 * round, up to three times. Readers only count, no queue moves with a read.
 *
 *   new --> [ small ] --read twice--> [ main ] --not read--> out
 *              |                        ^  `--read--'
 *              `--> out, name kept -----' (comes back)
 *
 * Names are kept in sets of four, each with the time when it was added, counted
 * in names: the oldest of a set makes room, and one that is older than the
 * main queue is long counts no more.
 */
#include "base/memory.h"
#include "keep/cache_state.h"

#define SMALL_SHARE 10u
#define SET         4u
#define NAMES_MIN   16u

enum hf_status hf_cache_s3fifo_init(struct cache_policy *policy, uint64_t keys)
{
    struct cache_ghosts *ghosts = &policy->ghosts;
    uint64_t names = NAMES_MIN;

    while (names < keys)
        names *= 2;
    ghosts->names = hf_alloc_zeroed(names * sizeof(uint64_t));
    if (ghosts->names == NULL)
        return HF_NOMEM;
    ghosts->mask = names / SET - 1;
    return HF_OK;
}

/* A name is never 0, which is an empty place. */
static uint32_t name_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32) | 1;
}

static uint64_t *set_of(const struct cache_ghosts *ghosts, uint64_t hash)
{
    return &ghosts->names[(hash & ghosts->mask) * SET];
}

static uint32_t age_of(const struct cache_ghosts *ghosts, uint64_t place)
{
    return ghosts->now - (uint32_t)place;
}

static void remember(struct cache_ghosts *ghosts, uint64_t hash)
{
    uint64_t *set = set_of(ghosts, hash);
    unsigned oldest = 0;

    ghosts->now++;
    for (unsigned i = 0; i < SET; i++) {
        if (set[i] == 0 || set[i] >> 32 == name_of(hash)) {
            oldest = i;
            break;
        }
        if (age_of(ghosts, set[i]) > age_of(ghosts, set[oldest]))
            oldest = i;
    }
    set[oldest] = (uint64_t)name_of(hash) << 32 | ghosts->now;
}

/* Is its name kept? It is taken out by that. */
static bool recall(struct cache_ghosts *ghosts, uint64_t hash, uint64_t kept)
{
    uint64_t *set = set_of(ghosts, hash);

    for (unsigned i = 0; i < SET; i++) {
        if (set[i] == 0 || set[i] >> 32 != name_of(hash))
            continue;
        bool young = age_of(ghosts, set[i]) <= kept;
        set[i] = 0;
        return young;
    }
    return false;
}

/* More entries than names: a larger table, if there is memory. What was kept
 * is forgotten. */
static void fit(struct cache_ghosts *ghosts, uint64_t keys)
{
    struct cache_policy larger = {0};

    if (keys <= (ghosts->mask + 1) * SET ||
        hf_cache_s3fifo_init(&larger, keys * 2) != HF_OK)
        return;
    hf_free(ghosts->names);
    ghosts->names = larger.ghosts.names;
    ghosts->mask = larger.ghosts.mask;
}

void hf_cache_s3fifo_added(struct cache_segment *segment,
                           struct cache_entry *entry)
{
    struct cache_policy *policy = &segment->policy;
    uint64_t count = cache_figure(&segment->count);

    fit(&policy->ghosts, count);
    bool known = recall(&policy->ghosts, entry->hash, count);
    hf_cache_queue_push(policy, known ? CACHE_MAIN : CACHE_SMALL, entry);
}

/* The small queue's oldest: on to the main queue, or out. */
static void settle_small(struct cache_segment *segment,
                         struct cache_batch *batch)
{
    struct cache_policy *policy = &segment->policy;
    struct cache_entry *entry = policy->queues[CACHE_SMALL].oldest;

    /* Relaxed: a hint. */
    if (entry->weight == 0 || hf_u32_load(&entry->used, __ATOMIC_RELAXED) > 1) {
        hf_u32_store(&entry->used, 0, __ATOMIC_RELAXED);
        hf_cache_queue_move(policy, CACHE_MAIN, entry);
        return;
    }
    remember(&policy->ghosts, entry->hash);
    hf_cache_evict(segment, entry, batch);
}

/* The main queue's oldest: another round, or out. */
static void settle_main(struct cache_segment *segment,
                        struct cache_batch *batch)
{
    struct cache_policy *policy = &segment->policy;
    struct cache_entry *entry = policy->queues[CACHE_MAIN].oldest;
    uint32_t used = hf_u32_load(&entry->used, __ATOMIC_RELAXED);

    if (used == 0 && entry->weight > 0) {
        hf_cache_evict(segment, entry, batch);
        return;
    }
    hf_u32_store(&entry->used, used == 0 ? 0 : used - 1, __ATOMIC_RELAXED);
    hf_cache_queue_move(policy, CACHE_MAIN, entry);
}

void hf_cache_s3fifo_settle(struct cache_segment *segment,
                            struct cache_batch *batch)
{
    struct cache_policy *policy = &segment->policy;
    struct cache_queue *small = &policy->queues[CACHE_SMALL];
    struct cache_queue *main = &policy->queues[CACHE_MAIN];
    uint64_t small_max = policy->max / SMALL_SHARE;

    while (small->weight + main->weight > policy->max) {
        if (small->weight > small_max || main->weight == 0)
            settle_small(segment, batch);
        else
            settle_main(segment, batch);
    }
}
