/* tiered_near.c - L1: what each thread keeps for itself.
 *
 * Sets of two entries, found by the key's hash. An entry is good while the
 * key's stamp in L2 is the one that it was kept with. Nobody but its thread
 * looks at it, so it takes no lock and writes to no shared memory. It may refer
 * to a block that all others have forgotten: until it is overwritten, or close.
 */
#include "base/memory.h"
#include "stores/tiered_state.h"

#define WAYS 2u

struct near_entry {
    struct tiered_block *block; /* NULL: free */
    uint64_t hash;
    uint64_t stamp;
    uint64_t until_ns;
};

static struct near_entry *set_of(const struct hf_tiered *tiered,
                                 const struct tiered_near *near, uint64_t hash)
{
    uint32_t sets = tiered->opts.l1_count / WAYS;

    return near->entries + (hash & (sets - 1)) * WAYS;
}

struct tiered_block *hf_tiered_near_find(struct hf_tiered *tiered,
                                         struct tiered_near *near,
                                         const void *key, size_t key_len,
                                         uint64_t stamp, uint64_t now_ns)
{
    if (near->entries == NULL)
        return NULL;
    uint64_t hash = hf_hash(tiered->seed, hf_bytes(key, key_len));
    struct near_entry *set = set_of(tiered, near, hash);
    for (unsigned i = 0; i < WAYS; i++) {
        struct tiered_block *block = set[i].block;
        if (block == NULL || set[i].hash != hash || block->key_len != key_len ||
            memcmp(block->bytes, key, key_len) != 0)
            continue;
        if (set[i].stamp == stamp && now_ns < set[i].until_ns)
            return block;
        return NULL;
    }
    return NULL;
}

static bool make_entries(struct hf_tiered *tiered, struct tiered_near *near)
{
    if (near->entries == NULL)
        near->entries =
            hf_alloc_zeroed(tiered->opts.l1_count * sizeof near->entries[0]);
    return near->entries != NULL;
}

/* A caller's function that reads from L1 may call us again: then nothing is
 * moved under it. */
void hf_tiered_near_keep(struct hf_tiered *tiered, struct tiered_near *near,
                         struct tiered_block *block, uint64_t stamp,
                         uint64_t until_ns)
{
    if (near->busy > 0 || !make_entries(tiered, near))
        return;
    uint64_t hash =
        hf_hash(tiered->seed, hf_bytes(block->bytes, block->key_len));
    struct near_entry *set = set_of(tiered, near, hash);
    /* Its own old entry, or the older one: the first is the younger. */
    if (set[0].block != NULL && set[0].hash != hash) {
        hf_tiered_block_drop(set[1].block);
        set[1] = set[0];
    } else {
        hf_tiered_block_drop(set[0].block);
    }
    if (set[1].block != NULL && set[1].hash == hash) {
        hf_tiered_block_drop(set[1].block);
        set[1].block = NULL;
    }
    hf_tiered_block_take(block);
    set[0] = (struct near_entry){
        .block = block, .hash = hash, .stamp = stamp, .until_ns = until_ns};
}

void hf_tiered_near_destroy(struct hf_tiered *tiered, struct tiered_near *near)
{
    for (uint32_t i = 0; near->entries != NULL && i < tiered->opts.l1_count;
         i++)
        hf_tiered_block_drop(near->entries[i].block);
    hf_free(near->entries);
}
