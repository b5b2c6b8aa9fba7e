/* map.c - open and close, and what is done to one key.
 *
 * The key's node is found without a lock. If it is there, its value is changed
 * in place by a compare-and-swap: a node that is being removed is marked before
 * it is unlinked, so the swap fails and the change goes the long way. Only
 * what adds or takes out a node needs the bucket's lock.
 *
 * If the map owns the values, a value must last as long as those who found it
 * read it, just as its node must. So they live and die together: a new value
 * comes with a new node, which takes the slot of the old one.
 */
#include "sync/map_state.h"

#include "base/memory.h"

#define CAPACITY_DEFAULT 64

char hf_map_member;
char hf_map_dead;
char hf_map_any;

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    /* The list is the first field. */
    row->depth = hf_map_size((struct hf_map *)(uintptr_t)listed);
}

static uint64_t buckets_for(uint64_t capacity)
{
    uint64_t buckets = 1;

    while (buckets * MAP_LOAD < capacity)
        buckets *= 2;
    return buckets;
}

enum hf_status hf_map_open(struct hf_map **out, const struct hf_map_opts *opts)
{
    static const struct hf_map_opts none;

    opts = opts == NULL ? &none : opts;
    if (out == NULL || opts->capacity > HF_MAP_CAPACITY_MAX)
        return HF_INVALID;

    struct hf_map *map = hf_alloc_lines(sizeof *map);
    if (map == NULL)
        return HF_NOMEM;
    map->opts = *opts;
    map->opts.clock = opts->clock == NULL ? hf_clock_system() : opts->clock;
    map->owns = opts->free_value != NULL;
    hf_hasher_init(&map->hash, hf_hash_seed((struct hf_hash_seed){
                                   {opts->seed[0], opts->seed[1]}}));
    struct map_table *table = hf_map_table_new(
        buckets_for(opts->capacity == 0 ? CAPACITY_DEFAULT : opts->capacity));
    struct hf_epoch_opts epoch_opts = {.name = opts->name,
                                       .free = hf_map_reclaim,
                                       .context = map,
                                       .clock = opts->clock};
    if (table == NULL || hf_epoch_open(&map->epoch, &epoch_opts) != HF_OK) {
        if (table != NULL)
            hf_map_table_free(map, table);
        hf_free(map);
        return HF_NOMEM;
    }
    /* Relaxed: nobody else has the map yet. */
    hf_ptr_store(&map->table, table, __ATOMIC_RELAXED);
    hf_listed_add(&map->listed, "map", opts->name, fill);
    map->opts.name = map->listed.name;
    *out = map;
    return HF_OK;
}

void hf_map_close(struct hf_map *map)
{
    if (map == NULL)
        return;
    hf_listed_remove(&map->listed);
    assert(map->circle.waits == NULL);
    /* Acquire: what others wrote, who are gone. */
    struct map_table *table = hf_ptr_load(&map->table, __ATOMIC_ACQUIRE);
    while (table != NULL) {
        struct map_table *next = hf_ptr_load(&table->next, __ATOMIC_ACQUIRE);
        hf_map_table_free(map, table);
        table = next;
    }
    hf_epoch_close(map->epoch);
    hf_free(map);
}

/* Inline, so that get does not pay for a call. */
static inline bool key_init(const struct hf_map *map, const void *data,
                            size_t len, struct map_key *key)
{
    if (map == NULL || len > HF_MAP_KEY_MAX || (data == NULL && len > 0))
        return false;
    key->data = data;
    key->len = len;
    key->hash = map->opts.hash != NULL
                    ? map->opts.hash(map->opts.context, data, len)
                    : hf_hasher_hash(&map->hash, data, len);
    key->tag = key->hash >> 56;
    key->tag += key->tag == 0;
    return true;
}

bool hf_map_key_init(const struct hf_map *map, const void *data, size_t len,
                     struct map_key *key)
{
    return key_init(map, data, len, key);
}

struct map_node *hf_map_node_new(const struct map_key *key, void *value)
{
    struct map_node *node = hf_alloc(sizeof *node + key->len);

    if (node == NULL)
        return NULL;
    node->retired.kind = MAP_NODE;
    node->retired.maker = 0;
    node->retired.key_len = (uint32_t)key->len;
    node->hash = key->hash;
    /* Relaxed: published later, with the node. */
    hf_ptr_store(&node->value, value, __ATOMIC_RELAXED);
    if (key->len > 0)
        memcpy(node->key, key->data, key->len);
    return node;
}

enum hf_status hf_map_get(struct hf_map *map, const void *data, size_t len,
                          void **value)
{
    struct map_key key;

    if (!key_init(map, data, len, &key))
        return HF_INVALID;
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    if (reader == NULL)
        return HF_NOMEM;
    void *found = map_value(map_find(map, reader, &key));
    epoch_leave(reader);
    if (found == NULL)
        return HF_NOTFOUND;
    if (value != NULL)
        *value = found;
    return HF_OK;
}

enum hf_status hf_map_read(struct hf_map *map, const void *data, size_t len,
                           void (*read)(void *context, void *value),
                           void *context)
{
    struct map_key key;

    if (read == NULL || !key_init(map, data, len, &key))
        return HF_INVALID;
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    if (reader == NULL)
        return HF_NOMEM;
    void *found = map_value(map_find(map, reader, &key));
    if (found != NULL)
        read(context, found);
    epoch_leave(reader);
    return found == NULL ? HF_NOTFOUND : HF_OK;
}

enum hf_status hf_map_enter(struct hf_map *map)
{
    if (map == NULL)
        return HF_INVALID;
    return epoch_enter(map->epoch) == NULL ? HF_NOMEM : HF_OK;
}

void hf_map_leave(struct hf_map *map)
{
    if (map != NULL)
        epoch_leave(epoch_reader_mine(map->epoch));
}

/* Gives a node that is being made its value. */
static bool fill_made(struct hf_map *map, struct map_node *node,
                      const struct map_key *key, void *value)
{
    void *none = NULL;

    /* Release: what the value points to. */
    if (!hf_ptr_cas(&node->value, &none, value, __ATOMIC_ACQ_REL))
        return false;
    map_count(map, 1);
    hf_event_wake_all(map_made(map, key));
    return true;
}

/* Puts a value in the place of `old`; false: the node has it no more. `*spare`
 * is a node with the new value if the map owns the values, and is used up. */
static bool replace(struct hf_map *map, struct hf_epoch_reader *reader,
                    const struct map_key *key, struct map_node *node, void *old,
                    void *value, struct map_node **spare)
{
    struct map_place place;

    if (!map->owns) /* Acquire: what old points to; release: what value does */
        return hf_ptr_cas(&node->value, &old, value, __ATOMIC_ACQ_REL);
    if (old == value)
        return true;
    if (hf_map_lock(map, reader, key, &place) != node) {
        hf_map_unlock(map, &place);
        return false;
    }
    hf_map_swap(map, reader, &place, *spare);
    *spare = NULL;
    return true;
}

/* One try; HF_PENDING: look again. */
static enum hf_status change_once(struct hf_map *map,
                                  struct hf_epoch_reader *reader,
                                  const struct map_key *key, void *expect,
                                  void *value, void **old,
                                  struct map_node **spare)
{
    struct map_node *node = map_find(map, reader, key);
    void *found = map_value(node);
    enum hf_status status;

    *old = found;
    if (found == NULL && expect != MAP_ANY && expect != MAP_ABSENT)
        return HF_NOTFOUND;
    if (found != NULL && expect != MAP_ANY && expect != found)
        return HF_EXISTS;
    /* Acquire: not needed; a dead node never changes. */
    if (found == NULL && node != NULL &&
        hf_ptr_load(&node->value, __ATOMIC_RELAXED) != MAP_DEAD)
        return fill_made(map, node, key, value) ? HF_OK : HF_PENDING;
    if (*spare == NULL && (found == NULL || map->owns)) {
        *spare = hf_map_node_new(key, value);
        if (*spare == NULL)
            return HF_NOMEM;
    }
    if (found != NULL)
        return replace(map, reader, key, node, found, value, spare)
                   ? HF_OK
                   : HF_PENDING;
    status = hf_map_insert(map, reader, key, *spare);
    if (status == HF_OK) {
        *spare = NULL;
        map_count(map, 1);
    }
    return status == HF_EXISTS ? HF_PENDING : status;
}

enum hf_status hf_map_change(struct hf_map *map, struct hf_epoch_reader *reader,
                             const struct map_key *key, void *expect,
                             void *value, void **old)
{
    struct map_node *spare = NULL;
    enum hf_status status;

    do
        status = change_once(map, reader, key, expect, value, old, &spare);
    while (status == HF_PENDING);
    if (spare != NULL)
        hf_free(spare);
    return status;
}

enum hf_status hf_map_take(struct hf_map *map, struct hf_epoch_reader *reader,
                           const struct map_key *key, void *expect, void **old)
{
    struct map_place place;
    struct map_node *node = map_find(map, reader, key);

    if (map_value(node) == NULL) /* without a lock */
        return HF_NOTFOUND;
    node = hf_map_lock(map, reader, key, &place);
    do {
        *old = map_value(node);
        if (*old == NULL || (expect != MAP_ANY && *old != expect)) {
            hf_map_unlock(map, &place);
            return *old == NULL ? HF_NOTFOUND : HF_EXISTS;
        }
        /* Marked before it is unlinked, for those who change values without
         * the lock. If the map owns them nobody does, and the node keeps the
         * value to be freed with it. Acquire: what the old value points to. */
    } while (!map->owns &&
             !hf_ptr_cas(&node->value, old, MAP_DEAD, __ATOMIC_ACQ_REL));
    hf_map_unlink(map, reader, &place);
    map_count(map, UINT64_MAX);
    return HF_OK;
}

/* What the calls below have in common. */
static enum hf_status change(struct hf_map *map, const void *data, size_t len,
                             void *expect, void *value, void **old)
{
    struct map_key key;

    if (!map_value_ok(value) || !key_init(map, data, len, &key))
        return HF_INVALID;
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    if (reader == NULL)
        return HF_NOMEM;
    enum hf_status status =
        hf_map_change(map, reader, &key, expect, value, old);
    epoch_leave(reader);
    return status;
}

static enum hf_status take(struct hf_map *map, const void *data, size_t len,
                           void *expect, void **old)
{
    struct map_key key;

    if (!key_init(map, data, len, &key))
        return HF_INVALID;
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    if (reader == NULL)
        return HF_NOMEM;
    enum hf_status status = hf_map_take(map, reader, &key, expect, old);
    epoch_leave(reader);
    return status;
}

enum hf_status hf_map_put(struct hf_map *map, const void *key, size_t key_len,
                          void *value, void **old)
{
    void *before;
    enum hf_status status = change(map, key, key_len, MAP_ANY, value, &before);

    if (status == HF_OK && old != NULL)
        *old = before;
    return status;
}

enum hf_status hf_map_put_if_absent(struct hf_map *map, const void *key,
                                    size_t key_len, void *value,
                                    void **existing)
{
    void *before;
    enum hf_status status =
        change(map, key, key_len, MAP_ABSENT, value, &before);

    if (status == HF_EXISTS && existing != NULL)
        *existing = before;
    return status;
}

enum hf_status hf_map_add(struct hf_map *map, const void *key, size_t key_len)
{
    void *before;
    return change(map, key, key_len, MAP_ABSENT, HF_MAP_MEMBER, &before);
}

enum hf_status hf_map_replace_if_equal(struct hf_map *map, const void *key,
                                       size_t key_len, void *expected,
                                       void *value)
{
    void *before;

    if (!map_value_ok(expected))
        return HF_INVALID;
    return change(map, key, key_len, expected, value, &before);
}

enum hf_status hf_map_remove(struct hf_map *map, const void *key,
                             size_t key_len, void **old)
{
    void *before;
    enum hf_status status = take(map, key, key_len, MAP_ANY, &before);

    if (status == HF_OK && old != NULL)
        *old = before;
    return status;
}

enum hf_status hf_map_remove_if_equal(struct hf_map *map, const void *key,
                                      size_t key_len, void *expected)
{
    void *before;

    if (!map_value_ok(expected))
        return HF_INVALID;
    return take(map, key, key_len, expected, &before);
}

uint64_t hf_map_size(struct hf_map *map)
{
    uint64_t sum = 0;

    /* Relaxed: a figure. Wraps around on the way, not at the end; a removal
     * that is counted before its insertion would show as less than nothing. */
    for (unsigned i = 0; map != NULL && i < MAP_STRIPES; i++)
        sum += hf_u64_load(&map->stripes[i].count, __ATOMIC_RELAXED);
    return sum > INT64_MAX ? 0 : sum;
}

void hf_map_stats(struct hf_map *map, struct hf_map_stats *out)
{
    struct hf_epoch_stats epoch;

    if (map == NULL || out == NULL)
        return;
    *out = (struct hf_map_stats){.size = hf_map_size(map)};
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    if (reader != NULL) {
        struct map_table *table = epoch_load(reader, &map->table);
        out->bucket_count = table->mask + 1;
        if (hf_ptr_load(&table->next, __ATOMIC_RELAXED) != NULL)
            out->moving_count =
                table->mask + 1 - hf_u64_load(&table->moved, __ATOMIC_RELAXED);
        epoch_leave(reader);
    }
    /* Relaxed: figures, each for itself. */
    out->growths = hf_u64_load(&map->growths, __ATOMIC_RELAXED);
    out->growths_nomem = hf_u64_load(&map->growths_nomem, __ATOMIC_RELAXED);
    out->made = hf_u64_load(&map->made, __ATOMIC_RELAXED);
    out->made_failed = hf_u64_load(&map->made_failed, __ATOMIC_RELAXED);
    out->made_waits = hf_u64_load(&map->made_waits, __ATOMIC_RELAXED);
    hf_epoch_stats(map->epoch, &epoch);
    out->garbage = epoch.retired - epoch.freed;
}
