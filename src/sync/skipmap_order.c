/* skipmap_order.c - the calls that ask for what is next to a key, or first.
 *
 * Why these are linearizable. A walk ends between two neighbours at level 0:
 * `before`, the last that is in front of the place asked for, and `after`. As
 * long as before's link leads to `after` and has no mark, both are linked and
 * nothing is between them. The answer is one of the two (or "none", if that is
 * the head or the end; then it is right at the instant when the link was
 * loaded). Its value must be of the same instant:
 *
 *   load the value     v, not NULL
 *   load the link      still before -> after        <- at this instant
 *   load the value     still v, so it was v in between
 *
 * A neighbour without a value is out of the map already: it is unlinked, and
 * the walk is done again.
 */
#include "sync/skipmap_state.h"

static void entry_fill(const struct skipmap_node *node, void *value,
                       struct hf_skipmap_entry *entry)
{
    size_t fits = node->key_len;

    if (fits > entry->key_cap)
        fits = entry->key_cap;
    if (entry->key != NULL && fits > 0)
        memcpy(entry->key, skipmap_key_of(node), fits);
    entry->key_len = node->key_len;
    entry->value = value;
}

/* The value that `node` had while `before` and `after` were neighbours; NULL:
 * walk again. */
static void *value_between(struct skipmap_call *call, struct skipmap_node *node)
{
    void *held = skipmap_held(call, node);

    while (held != NULL) {
        void *link = hf_ptr_load(&call->before[0]->next[0], __ATOMIC_SEQ_CST);
        void *again = skipmap_held(call, node);
        if (link != call->after[0])
            return NULL;
        if (again == held)
            return skipmap_value_of(call->map, held);
        held = again;
    }
    hf_skipmap_help(call, node);
    return NULL;
}

enum side { BEFORE, AFTER };

static enum hf_status find_near(struct hf_skipmap *map, const void *key,
                                size_t key_len, enum skipmap_stop stop,
                                enum side side, struct hf_skipmap_entry *entry)
{
    struct skipmap_call call;
    void *value = NULL;

    if (map == NULL || !skipmap_key_is_good(key, key_len) || entry == NULL)
        return HF_INVALID;
    if (skipmap_enter(&call, map, key, key_len) != HF_OK)
        return HF_NOMEM;
    while (value == NULL) {
        hf_skipmap_walk(&call, stop);
        struct skipmap_node *node =
            side == AFTER ? call.after[0] : call.before[0];
        if (node == NULL || node == map->head)
            break;
        value = value_between(&call, node);
        if (value != NULL)
            entry_fill(node, value, entry);
    }
    skipmap_leave(&call);
    return value == NULL ? HF_NOTFOUND : HF_OK;
}

enum hf_status hf_skipmap_floor(struct hf_skipmap *map, const void *key,
                                size_t key_len, struct hf_skipmap_entry *entry)
{
    return find_near(map, key, key_len, SKIPMAP_BEHIND_KEY, BEFORE, entry);
}

enum hf_status hf_skipmap_lower(struct hf_skipmap *map, const void *key,
                                size_t key_len, struct hf_skipmap_entry *entry)
{
    return find_near(map, key, key_len, SKIPMAP_AT_KEY, BEFORE, entry);
}

enum hf_status hf_skipmap_ceiling(struct hf_skipmap *map, const void *key,
                                  size_t key_len,
                                  struct hf_skipmap_entry *entry)
{
    return find_near(map, key, key_len, SKIPMAP_AT_KEY, AFTER, entry);
}

enum hf_status hf_skipmap_higher(struct hf_skipmap *map, const void *key,
                                 size_t key_len, struct hf_skipmap_entry *entry)
{
    return find_near(map, key, key_len, SKIPMAP_BEHIND_KEY, AFTER, entry);
}

enum hf_status hf_skipmap_last(struct hf_skipmap *map,
                               struct hf_skipmap_entry *entry)
{
    enum hf_status status =
        find_near(map, NULL, 0, SKIPMAP_AT_END, BEFORE, entry);

    return status == HF_NOTFOUND ? HF_EMPTY : status;
}

/* What is between the head and the first key, without a walk: the place where
 * `before` is the head. NULL: there is none. */
static struct skipmap_node *look_first(struct skipmap_call *call)
{
    struct skipmap_node *head = call->map->head;

    call->before[0] = head;
    call->after[0] = epoch_load(call->reader, &head->next[0]);
    return call->after[0];
}

enum hf_status hf_skipmap_first(struct hf_skipmap *map,
                                struct hf_skipmap_entry *entry)
{
    struct skipmap_call call;
    struct skipmap_node *node;
    void *value = NULL;

    if (map == NULL || entry == NULL)
        return HF_INVALID;
    if (skipmap_enter(&call, map, NULL, 0) != HF_OK)
        return HF_NOMEM;
    while (value == NULL && (node = look_first(&call)) != NULL) {
        value = value_between(&call, node);
        if (value != NULL)
            entry_fill(node, value, entry);
    }
    skipmap_leave(&call);
    return value == NULL ? HF_EMPTY : HF_OK;
}

/* The first node is first at every level where it is: the head is before it,
 * or it is not the first any more, and then hf_skipmap_unlink() walks. */
static void unlink_first(struct skipmap_call *call, struct skipmap_node *node)
{
    call->key = skipmap_key_of(node);
    call->key_len = node->key_len;
    call->prefix = node->prefix;
    call->levels = node->height;
    for (uint32_t level = 0; level < node->height; level++)
        call->before[level] = call->map->head;
    hf_skipmap_unlink(call, node);
}

/* HF_PENDING: another took it, or changed it. */
static enum hf_status take_node(struct skipmap_call *call,
                                struct skipmap_node *node,
                                struct hf_skipmap_entry *entry)
{
    void *held = skipmap_held(call, node);
    void *swapped = held;

    if (held == NULL) {
        unlink_first(call, node);
        return HF_PENDING;
    }
    if (entry->key != NULL && node->key_len > entry->key_cap) {
        entry->key_len = node->key_len;
        return HF_FULL;
    }
    if (!hf_ptr_cas(&node->value, &swapped, NULL, __ATOMIC_SEQ_CST))
        return HF_PENDING;
    skipmap_count(&call->local->more, (uint64_t)-1);
    entry_fill(node, skipmap_value_of(call->map, held), entry);
    skipmap_drop(call, held);
    unlink_first(call, node);
    return HF_OK;
}

enum hf_status hf_skipmap_take_first(struct hf_skipmap *map,
                                     struct hf_skipmap_entry *entry)
{
    struct skipmap_call call;
    enum hf_status status = HF_PENDING;

    if (map == NULL || entry == NULL)
        return HF_INVALID;
    if (skipmap_enter(&call, map, NULL, 0) != HF_OK)
        return HF_NOMEM;
    if (!skipmap_local_of(&call))
        status = HF_NOMEM;
    while (status == HF_PENDING) {
        struct skipmap_node *node = look_first(&call);
        status = node == NULL ? HF_EMPTY : take_node(&call, node, entry);
    }
    skipmap_leave(&call);
    return status;
}

/* The node behind `node`. If that is on its way out its link cannot be followed
 * any more: then the first above its key is looked for. */
static struct skipmap_node *next_of(struct skipmap_call *call,
                                    struct skipmap_node *node)
{
    void *link = epoch_load(call->reader, &node->next[0]);

    if (!skipmap_marked(link))
        return link;
    call->key = skipmap_key_of(node);
    call->key_len = node->key_len;
    call->prefix = node->prefix;
    hf_skipmap_walk(call, SKIPMAP_BEHIND_KEY);
    return call->after[0];
}

enum hf_status hf_skipmap_visit(struct hf_skipmap *map, const void *from,
                                size_t from_len, const void *to, size_t to_len,
                                bool (*visit)(void *context, const void *key,
                                              size_t key_len, void *value),
                                void *context)
{
    struct skipmap_call call;

    if (map == NULL || visit == NULL || !skipmap_key_is_good(from, from_len) ||
        !skipmap_key_is_good(to, to_len))
        return HF_INVALID;
    if (skipmap_enter(&call, map, from, from_len) != HF_OK)
        return HF_NOMEM;
    uint64_t prefix = skipmap_prefix(to, to_len);
    /* Nothing is below the empty key, which NULL stands for here. */
    hf_skipmap_walk(&call, SKIPMAP_AT_KEY);
    struct skipmap_node *node = call.after[0];
    while (node != NULL &&
           (to == NULL || skipmap_compare(node, prefix, to, to_len) < 0)) {
        void *held = skipmap_held(&call, node);
        if (held != NULL && !visit(context, skipmap_key_of(node), node->key_len,
                                   skipmap_value_of(map, held)))
            break;
        node = next_of(&call, node);
    }
    skipmap_leave(&call);
    return HF_OK;
}
