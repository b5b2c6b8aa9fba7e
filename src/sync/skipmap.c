/* skipmap.c - open, close, and the calls about one key.
 *
 * The instants at which these calls happen: a key comes in when it is linked at
 * level 0, its value changes by a swap of node->value, and it is out when that
 * swap leaves NULL. NULL stays: a key that comes back gets a new node, after
 * the old one was unlinked from level 0. So a node whose value is not NULL is
 * in the map, and of one key there is no second node at level 0.
 *
 * "Not found" is right in both its forms. A walk that finds no node passed from
 * a smaller key to a greater one by a link that had no mark: then there was
 * none between. A node that was found at level 0 and whose value is NULL either
 * had lost it when it was found, or lost it since: then there was none right
 * after.
 */
#include "sync/skipmap_state.h"

#include "base/memory.h"

#define SEED_DEFAULT UINT64_C(0x686f6c6466617374)

/* Figures. */

uint64_t hf_skipmap_size(struct hf_skipmap *map)
{
    const struct skipmap_local *local;
    uint32_t slot = 0;
    uint64_t sum = 0;

    if (map == NULL)
        return 0;
    while ((local = hf_locals_next(&map->locals, &slot)) != NULL)
        sum += hf_u64_load(&local->more, __ATOMIC_RELAXED);
    return sum > INT64_MAX ? 0 : sum; /* read while keys came and went */
}

void hf_skipmap_stats(struct hf_skipmap *map, struct hf_skipmap_stats *out)
{
    const struct skipmap_local *local;
    struct hf_epoch_stats epoch;
    uint32_t slot = 0;

    if (out == NULL)
        return;
    memset(out, 0, sizeof *out);
    if (map == NULL)
        return;
    /* Relaxed: figures, each for itself. */
    while ((local = hf_locals_next(&map->locals, &slot)) != NULL)
        out->restarts += hf_u64_load(&local->restarts, __ATOMIC_RELAXED);
    out->size = hf_skipmap_size(map);
    out->levels = hf_u32_load(&map->levels, __ATOMIC_RELAXED);
    hf_epoch_stats(map->epoch, &epoch);
    out->garbage = epoch.retired - epoch.freed;
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    /* `listed` is the first member of the map, which is no constant. */
    row->depth = hf_skipmap_size((struct hf_skipmap *)(uintptr_t)listed);
}

/* Open and close. */

static void free_part(void *context, struct hf_epoch_node *epoch_node)
{
    struct hf_skipmap *map = context;
    struct skipmap_part *part = (struct skipmap_part *)epoch_node;

    if (part->height == 0)
        map->opts.free_value(map->opts.context,
                             ((struct skipmap_box *)part)->value);
    hf_free(part);
}

static enum hf_status open_parts(struct hf_skipmap *map)
{
    const struct hf_epoch_opts opts = {
        .name = map->opts.name, .free = free_part, .context = map};
    size_t bytes = sizeof(struct skipmap_node) +
                   SKIPMAP_LEVELS * sizeof(struct hf_atomic_ptr);

    bytes = (bytes + HF_CACHE_LINE - 1) & ~(size_t)(HF_CACHE_LINE - 1);
    map->head = hf_alloc_lines(bytes);
    if (map->head == NULL)
        return HF_NOMEM;
    map->head->height = SKIPMAP_LEVELS;
    map->levels.value = 1;
    if (hf_locals_init(&map->locals, sizeof(struct skipmap_local)) != HF_OK)
        return HF_NOMEM;
    return hf_epoch_open(&map->epoch, &opts);
}

enum hf_status hf_skipmap_open(struct hf_skipmap **out,
                               const struct hf_skipmap_opts *opts)
{
    if (out == NULL)
        return HF_INVALID;
    struct hf_skipmap *map = hf_alloc_lines(sizeof *map);
    if (map == NULL)
        return HF_NOMEM;
    if (opts != NULL)
        map->opts = *opts;
    if (map->opts.seed == 0)
        map->opts.seed = SEED_DEFAULT;
    enum hf_status status = open_parts(map);
    if (status != HF_OK) {
        hf_locals_destroy(&map->locals);
        hf_free(map->head);
        hf_free(map);
        return status;
    }
    hf_listed_add(&map->listed, "skipmap", map->opts.name, fill);
    map->opts.name = map->listed.name;
    *out = map;
    return HF_OK;
}

/* Nobody is inside, so what left is unlinked from all levels, and what is
 * linked at level 0 is all there is. */
void hf_skipmap_close(struct hf_skipmap *map)
{
    if (map == NULL)
        return;
    hf_listed_remove(&map->listed);
    /* Acquire: what those who were inside wrote. */
    struct skipmap_node *node =
        hf_ptr_load(&map->head->next[0], __ATOMIC_ACQUIRE);
    while (node != NULL) {
        struct skipmap_node *next =
            hf_ptr_load(&node->next[0], __ATOMIC_ACQUIRE);
        void *held = hf_ptr_load(&node->value, __ATOMIC_ACQUIRE);
        assert(!skipmap_marked(next));
        if (map->opts.free_value != NULL && held != NULL)
            free_part(map, &((struct skipmap_box *)held)->epoch_node);
        hf_free(node);
        node = next;
    }
    hf_epoch_close(map->epoch);
    hf_locals_destroy(&map->locals);
    hf_free(map->head);
    hf_free(map);
}

/* The guard. */

enum hf_status hf_skipmap_enter(struct hf_skipmap *map)
{
    if (map == NULL)
        return HF_INVALID;
    return epoch_enter(map->epoch) == NULL ? HF_NOMEM : HF_OK;
}

void hf_skipmap_leave(struct hf_skipmap *map)
{
    if (map != NULL)
        epoch_leave(epoch_reader_mine(map->epoch));
}

/* New nodes and boxes. */

/* But never two levels more than there are: nothing would be skipped there. */
static uint32_t draw_height(struct skipmap_call *call)
{
    struct skipmap_local *local = call->local;

    if (local->random == 0)
        local->random =
            call->map->opts.seed + hf_thread_slot() * UINT64_C(0x9e3779b9);
    uint32_t height = skipmap_draw(&local->random);
    if (height > call->levels + 1)
        height = call->levels + 1;
    return height > SKIPMAP_LEVELS ? SKIPMAP_LEVELS : height;
}

static struct skipmap_node *make_node(struct skipmap_call *call)
{
    if (!skipmap_local_of(call))
        return NULL;
    uint32_t height = draw_height(call);
    size_t bytes = sizeof(struct skipmap_node) +
                   height * sizeof(struct hf_atomic_ptr) + call->key_len;
    struct skipmap_node *node = hf_alloc(bytes);
    if (node == NULL)
        return NULL;
    node->height = height & 31;
    node->key_len = (uint32_t)call->key_len & ((1u << 27) - 1);
    node->prefix = call->prefix;
    node->left.value = height;
    if (call->key_len > 0)
        memcpy(&node->next[height], call->key, call->key_len);
    hf_epoch_born(call->reader, &node->epoch_node);
    return node;
}

/* What node->value shall hold; NULL without memory. */
static void *make_held(struct skipmap_call *call, void *value)
{
    if (call->map->opts.free_value == NULL)
        return value;
    struct skipmap_box *box = hf_alloc(sizeof *box);
    if (box == NULL)
        return NULL;
    box->key_len = 0;
    box->height = 0;
    box->value = value;
    hf_epoch_born(call->reader, &box->epoch_node);
    return box;
}

/* One that nobody got to see. */
static void unmake_held(struct skipmap_call *call, void *held)
{
    if (call->map->opts.free_value != NULL)
        hf_free(held);
}

/* Puts. */

struct put {
    void *value;
    bool if_absent;
    void *held;                /* made from value; NULL: not yet */
    struct skipmap_node *node; /* made for it; NULL: not yet */
    void *old;                 /* the value that was there */
};

/* The key has a node. HF_PENDING: it is on its way out. */
static enum hf_status put_over(struct skipmap_call *call, struct put *put,
                               struct skipmap_node *node)
{
    void *held;

    if (!put->if_absent && put->held == NULL) {
        put->held = make_held(call, put->value);
        if (put->held == NULL)
            return HF_NOMEM;
    }
    while ((held = skipmap_held(call, node)) != NULL) {
        put->old = skipmap_value_of(call->map, held);
        if (put->if_absent)
            return HF_EXISTS;
        void *expected = held;
        if (hf_ptr_cas(&node->value, &expected, put->held, __ATOMIC_SEQ_CST)) {
            skipmap_drop(call, held);
            put->held = NULL;
            return HF_OK;
        }
    }
    put->old = NULL;
    hf_skipmap_unlink(call, node);
    return HF_PENDING;
}

static enum hf_status put_new(struct skipmap_call *call, struct put *put)
{
    if (put->held == NULL)
        put->held = make_held(call, put->value);
    if (put->node == NULL)
        put->node = make_node(call);
    if (put->held == NULL || put->node == NULL)
        return HF_NOMEM;
    /* Relaxed: the link that publishes the node comes after. */
    hf_ptr_store(&put->node->value, put->held, __ATOMIC_RELAXED);
    enum hf_status status = hf_skipmap_link(call, put->node);
    if (status == HF_OK) {
        put->held = NULL;
        put->node = NULL;
    }
    return status;
}

static enum hf_status put_value(struct hf_skipmap *map, const void *key,
                                size_t key_len, struct put *put)
{
    struct skipmap_call call;
    enum hf_status status;

    if (map == NULL || !skipmap_key_is_good(key, key_len) || put->value == NULL)
        return HF_INVALID;
    if (skipmap_enter(&call, map, key, key_len) != HF_OK)
        return HF_NOMEM;
    do {
        hf_skipmap_walk(&call, SKIPMAP_AT_KEY);
        status = call.exact ? put_over(&call, put, call.after[0])
                            : put_new(&call, put);
    } while (status == HF_PENDING);
    if (put->held != NULL)
        unmake_held(&call, put->held);
    hf_free(put->node);
    skipmap_leave(&call);
    return status;
}

enum hf_status hf_skipmap_put(struct hf_skipmap *map, const void *key,
                              size_t key_len, void *value, void **old)
{
    struct put put = {.value = value};
    enum hf_status status = put_value(map, key, key_len, &put);

    if (status == HF_OK && old != NULL)
        *old = put.old;
    return status;
}

enum hf_status hf_skipmap_put_if_absent(struct hf_skipmap *map, const void *key,
                                        size_t key_len, void *value,
                                        void **existing)
{
    struct put put = {.value = value, .if_absent = true};
    enum hf_status status = put_value(map, key, key_len, &put);

    if (status == HF_EXISTS && existing != NULL)
        *existing = put.old;
    return status;
}

/* Look-ups. */

/* The node of the key, or NULL. As a walk, but keeps no record, and where it
 * meets a marked node above level 0 just goes down before it. */
static struct skipmap_node *look(struct skipmap_call *call)
{
    struct hf_epoch_reader *reader = call->reader;
    const uint64_t prefix = call->prefix;
    struct skipmap_node *before = call->map->head;
    const struct skipmap_node *too_far = NULL;
    uint32_t level = hf_u32_load(&call->map->levels, __ATOMIC_SEQ_CST);

    while (level-- > 0) {
        void *link = epoch_load(reader, &before->next[level]);
        if (skipmap_marked(link))
            goto changed;
        struct skipmap_node *at = link;
        while (at != NULL && at != too_far) {
            skipmap_fetch_below(before, level);
            int order = skipmap_compare(at, prefix, call->key, call->key_len);
            if (order > 0) {
                too_far = at;
                break;
            }
            /* Above level 0 it may be the one before the one that is in. */
            if (order == 0 && (level == 0 || skipmap_held(call, at) != NULL))
                return at;
            if (order == 0)
                break;
            link = epoch_load(reader, &at->next[level]);
            if (skipmap_marked(link)) {
                if (level == 0)
                    goto changed;
                break;
            }
            before = at;
            at = link;
        }
    }
    return NULL;
changed:
    hf_skipmap_walk(call, SKIPMAP_AT_KEY);
    return call->exact ? call->after[0] : NULL;
}

enum hf_status hf_skipmap_get(struct hf_skipmap *map, const void *key,
                              size_t key_len, void **value)
{
    struct skipmap_call call;
    void *held = NULL;

    if (map == NULL || !skipmap_key_is_good(key, key_len))
        return HF_INVALID;
    if (skipmap_enter(&call, map, key, key_len) != HF_OK)
        return HF_NOMEM;
    struct skipmap_node *node = look(&call);
    if (node != NULL)
        held = skipmap_held(&call, node);
    if (held != NULL && value != NULL)
        *value = skipmap_value_of(map, held);
    skipmap_leave(&call);
    return held == NULL ? HF_NOTFOUND : HF_OK;
}

enum hf_status hf_skipmap_read(struct hf_skipmap *map, const void *key,
                               size_t key_len,
                               void (*read)(void *context, void *value),
                               void *context)
{
    void *value;

    if (read == NULL)
        return HF_INVALID;
    enum hf_status status = hf_skipmap_enter(map);
    if (status != HF_OK)
        return status;
    status = hf_skipmap_get(map, key, key_len, &value);
    if (status == HF_OK)
        read(context, value);
    hf_skipmap_leave(map);
    return status;
}

enum hf_status hf_skipmap_replace_if_equal(struct hf_skipmap *map,
                                           const void *key, size_t key_len,
                                           void *expected, void *value)
{
    struct skipmap_call call;
    enum hf_status status = HF_PENDING;

    if (map == NULL || !skipmap_key_is_good(key, key_len) || value == NULL)
        return HF_INVALID;
    if (skipmap_enter(&call, map, key, key_len) != HF_OK)
        return HF_NOMEM;
    struct skipmap_node *node = look(&call);
    void *fresh = node == NULL ? NULL : make_held(&call, value);
    if (node == NULL)
        status = HF_NOTFOUND;
    else if (fresh == NULL)
        status = HF_NOMEM;
    while (status == HF_PENDING) {
        void *held = skipmap_held(&call, node);
        void *swapped = held;
        if (held == NULL) {
            status = HF_NOTFOUND;
        } else if (skipmap_value_of(map, held) != expected) {
            status = HF_EXISTS;
        } else if (hf_ptr_cas(&node->value, &swapped, fresh,
                              __ATOMIC_SEQ_CST)) {
            skipmap_drop(&call, held);
            status = HF_OK;
        }
    }
    if (status != HF_OK && fresh != NULL)
        unmake_held(&call, fresh);
    skipmap_leave(&call);
    return status;
}

/* Removals. */

/* Removes the key if its value is `*expected`, or whatever it is if that is
 * NULL, and tells the value. */
static enum hf_status remove_key(struct hf_skipmap *map, const void *key,
                                 size_t key_len, void *const *expected,
                                 void **old)
{
    struct skipmap_call call;
    void *held;
    void *swapped;

    if (map == NULL || !skipmap_key_is_good(key, key_len))
        return HF_INVALID;
    if (skipmap_enter(&call, map, key, key_len) != HF_OK)
        return HF_NOMEM;
    enum hf_status status = HF_NOTFOUND;
    if (!skipmap_local_of(&call)) {
        status = HF_NOMEM;
        goto out;
    }
    hf_skipmap_walk(&call, SKIPMAP_AT_KEY);
    if (!call.exact)
        goto out;
    struct skipmap_node *node = call.after[0];
    do {
        held = skipmap_held(&call, node);
        if (held == NULL)
            goto out;
        *old = skipmap_value_of(map, held);
        if (expected != NULL && *old != *expected) {
            status = HF_EXISTS;
            goto out;
        }
        swapped = held;
    } while (!hf_ptr_cas(&node->value, &swapped, NULL, __ATOMIC_SEQ_CST));
    skipmap_count(&call.local->more, (uint64_t)-1);
    skipmap_drop(&call, held);
    hf_skipmap_unlink(&call, node);
    status = HF_OK;
out:
    skipmap_leave(&call);
    return status;
}

enum hf_status hf_skipmap_remove(struct hf_skipmap *map, const void *key,
                                 size_t key_len, void **old)
{
    void *value;
    enum hf_status status = remove_key(map, key, key_len, NULL, &value);

    if (status == HF_OK && old != NULL)
        *old = value;
    return status;
}

enum hf_status hf_skipmap_remove_if_equal(struct hf_skipmap *map,
                                          const void *key, size_t key_len,
                                          void *expected)
{
    void *value;

    return remove_key(map, key, key_len, &expected, &value);
}
