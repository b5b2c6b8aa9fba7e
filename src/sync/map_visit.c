/* map_visit.c - all keys of the map, while others change it.
 *
 * The keys are visited in groups: those whose hash has the same low bits, as
 * many bits as the table had when the visit began. A group is the content of
 * one bucket then; later, of all buckets that this one was split into. A
 * bucket's nodes are noted down first and called after: if it was moved
 * meanwhile, the notes are thrown away and its two successors are read instead.
 * So no growth makes a key be missed or come twice.
 */
#include "base/memory.h"
#include "sync/map_state.h"

#define ROOM 64u /* nodes of a group, before memory is asked for */

struct notes {
    struct map_node *local[ROOM];
    struct map_node **nodes; /* local, or larger */
    size_t count;
    size_t room;
};

static bool note(struct notes *notes, struct map_node *node)
{
    if (notes->count == notes->room) {
        size_t room = notes->room * 2;
        struct map_node **nodes = hf_alloc(room * sizeof *nodes);
        if (nodes == NULL)
            return false;
        memcpy(nodes, notes->nodes, notes->count * sizeof *nodes);
        if (notes->nodes != notes->local)
            hf_free(notes->nodes);
        notes->nodes = nodes;
        notes->room = room;
    }
    notes->nodes[notes->count++] = node;
    return true;
}

/* Notes the nodes of one bucket. HF_PENDING: it is moved, nothing was noted.
 * HF_NOMEM. */
static enum hf_status note_bucket(struct hf_epoch_reader *reader,
                                  struct map_bucket *first, struct notes *notes)
{
    size_t before = notes->count;
    /* Acquire, here and below: as in map_find(). */
    uint64_t word = hf_u64_load(&first->word, __ATOMIC_ACQUIRE);

    for (struct map_bucket *bucket = first;
         bucket != NULL && !(word & WORD_MOVED);) {
        for (unsigned slot = 0; slot < MAP_SLOTS; slot++) {
            struct map_node *node = epoch_load(reader, &bucket->nodes[slot]);
            if (node != NULL && !note(notes, node))
                return HF_NOMEM;
        }
        bucket = epoch_load(reader, &bucket->more);
    }
    word = hf_u64_load(&first->word, __ATOMIC_ACQUIRE);
    if (!(word & WORD_MOVED))
        return HF_OK;
    notes->count = before;
    return HF_PENDING;
}

/* Notes the nodes of all keys whose hash is `low` modulo `size`. */
static enum hf_status note_group(struct hf_map *map,
                                 struct hf_epoch_reader *reader, uint64_t low,
                                 uint64_t size, struct notes *notes)
{
    struct map_table *table = epoch_load(reader, &map->table);
    enum hf_status status;

    /* The table is smaller if it was seen that this bucket has moved on. */
    while (table->mask + 1 < size)
        table = hf_map_next(map, reader, table);
    if (table->mask + 1 == size) {
        status = note_bucket(reader, &table->buckets[low], notes);
        if (status != HF_PENDING)
            return status;
    }
    status = note_group(map, reader, low, size * 2, notes);
    if (status == HF_OK)
        status = note_group(map, reader, low + size, size * 2, notes);
    return status;
}

enum hf_status hf_map_visit(struct hf_map *map,
                            bool (*visit)(void *context, const void *key,
                                          size_t key_len, void *value),
                            void *context)
{
    struct notes notes = {.nodes = notes.local, .room = ROOM};
    enum hf_status status = HF_OK;
    bool more = true;

    if (map == NULL || visit == NULL)
        return HF_INVALID;
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    if (reader == NULL)
        return HF_NOMEM;
    struct map_table *table = epoch_load(reader, &map->table);
    uint64_t size = table->mask + 1;
    epoch_leave(reader);

    for (uint64_t low = 0; low < size && status == HF_OK && more; low++) {
        reader = epoch_enter(map->epoch); /* each group for itself: nothing */
        assert(reader != NULL);           /* is held back for long */
        notes.count = 0;
        status = note_group(map, reader, low, size, &notes);
        for (size_t i = 0; i < notes.count && status == HF_OK && more; i++) {
            const struct map_node *node = notes.nodes[i];
            void *value = map_value(node);
            if (value != NULL)
                more = visit(context, node->key, node->retired.key_len, value);
        }
        epoch_leave(reader);
    }
    if (notes.nodes != notes.local)
        hf_free(notes.nodes);
    return status;
}
