/* skipmap_walk.c - how a call finds its place, and how nodes come and go.
 *
 * A walk goes along each level from the highest and steps down before what is
 * too far. It follows no marked link: a marked node is unlinked where it is
 * met, and when that fails, or the node that the walk stands on turns out to be
 * marked, it begins anew. It has then met a change by another call, so of all
 * calls some go on.
 *
 * Is what it steps down to there? A node is linked from level 0 upwards and
 * marked from the top downwards. One that was reached at level i was linked at
 * level i - 1 before, and is so as long as its link there has no mark.
 */
#include "sync/skipmap_state.h"

/* One level fewer of `node` is, or will be, linked; the last retires it. */
static void leave_levels(struct skipmap_call *call, struct skipmap_node *node,
                         uint32_t levels)
{
    if (levels == 0)
        return;
    /* Acquire and release: what others did with the node before they left
     * comes before its end. seq_cst: it is the last of the unlinkings. */
    uint32_t left = hf_u32_sub(&node->left, levels, __ATOMIC_SEQ_CST);
    assert(left >= levels);
    if (left == levels)
        hf_epoch_retire(call->reader, &node->epoch_node);
}

/* `node` is marked at the level and `next` is its frozen link. */
static inline bool unlink_at(struct skipmap_call *call, uint32_t level,
                             struct skipmap_node *before,
                             struct skipmap_node *node, void *next)
{
    void *expected = node; /* without a mark: `before` is linked */

    if (!hf_ptr_cas(&before->next[level], &expected, skipmap_clear(next),
                    __ATOMIC_SEQ_CST))
        return false;
    leave_levels(call, node, 1);
    return true;
}

/* How the node lies to where the walk stops: below 0: go on behind it. */
static inline int order_of(const struct skipmap_call *call,
                           const struct skipmap_node *node,
                           enum skipmap_stop stop)
{
    if (stop == SKIPMAP_AT_END)
        return -1;
    int order = skipmap_compare(node, call->prefix, call->key, call->key_len);
    return order == 0 && stop == SKIPMAP_BEHIND_KEY ? -1 : order;
}

/* One level, from `before` on. False: begin anew. `too_far` is a node known to
 * be above the key. */
static inline bool walk_level(struct skipmap_call *call, uint32_t level,
                              enum skipmap_stop stop,
                              struct skipmap_node *before,
                              const struct skipmap_node *too_far)
{
    struct hf_epoch_reader *reader = call->reader;
    void *link = epoch_load(reader, &before->next[level]);

    if (skipmap_marked(link))
        return false;
    struct skipmap_node *at = link;
    call->exact = false;
    while (at != NULL && at != too_far) {
        skipmap_fetch_below(before, level);
        int order = order_of(call, at, stop);
        if (order > 0)
            break;
        link = epoch_load(reader, &at->next[level]);
        if (skipmap_marked(link)) {
            /* What is behind was linked when we loaded it and is still, or the
             * swap fails: it may be followed. */
            if (!unlink_at(call, level, before, at, link))
                return false;
            at = skipmap_clear(link);
            continue;
        }
        if (order == 0) {
            call->exact = true;
            break;
        }
        before = at;
        at = link;
    }
    call->before[level] = before;
    call->after[level] = at;
    return true;
}

static void count_restart(struct skipmap_call *call)
{
    if (skipmap_local_of(call))
        skipmap_count(&call->local->restarts, 1);
}

/* If the key's node was met above and is gone below, it was removed meanwhile.
 * Then the levels do not fit together: a new node with the key would be linked
 * in front of the old one and hide it from the walk that is to unlink it. */
void hf_skipmap_walk(struct skipmap_call *call, enum skipmap_stop stop)
{
    const struct skipmap_node *too_far;
    const struct skipmap_node *met;
    struct skipmap_node *before;
    uint32_t level;

again:
    too_far = NULL;
    met = NULL;
    before = call->map->head;
    /* seq_cst: a level that is not seen here is linked after the marks that
     * came before this walk. */
    level = hf_u32_load(&call->map->levels, __ATOMIC_SEQ_CST);
    call->levels = level;
    while (level-- > 0) {
        if (!walk_level(call, level, stop, before, too_far)) {
            count_restart(call);
            goto again;
        }
        before = call->before[level];
        if (!call->exact)
            too_far = call->after[level];
        else if (met == NULL)
            met = call->after[level];
    }
    if (met != NULL && met != call->after[0]) {
        count_restart(call);
        goto again;
    }
}

static void mark(struct skipmap_node *node)
{
    for (uint32_t level = node->height; level-- > 0;) {
        void *next = hf_ptr_load(&node->next[level], __ATOMIC_SEQ_CST);
        while (!skipmap_marked(next) &&
               !hf_ptr_cas(&node->next[level], &next, skipmap_mark(next),
                           __ATOMIC_SEQ_CST))
            ;
    }
}

/* The walk tells where the node was: nearly always it still is, at all levels.
 * If not, another walk unlinks what is left, whoever linked it when. */
void hf_skipmap_unlink(struct skipmap_call *call, struct skipmap_node *node)
{
    uint32_t level = node->height;
    bool all = level <= call->levels;

    mark(node);
    while (all && level-- > 0) {
        /* Relaxed: marked, it does not change, and we have seen it so. */
        void *next = hf_ptr_load(&node->next[level], __ATOMIC_RELAXED);
        all = unlink_at(call, level, call->before[level], node, next);
    }
    if (!all)
        hf_skipmap_walk(call, SKIPMAP_AT_KEY);
}

void hf_skipmap_help(struct skipmap_call *call, struct skipmap_node *node)
{
    struct skipmap_call other = {
        .map = call->map,
        .reader = call->reader,
        .key = skipmap_key_of(node),
        .key_len = node->key_len,
        .prefix = node->prefix,
    };

    assert(hf_ptr_load(&node->value, __ATOMIC_RELAXED) == NULL);
    mark(node);
    hf_skipmap_walk(&other, SKIPMAP_AT_KEY);
}

/* Levels of which no walk knows yet are empty, or the swap will tell. */
static void raise_levels(struct skipmap_call *call, uint32_t height)
{
    struct hf_skipmap *map = call->map;
    uint32_t levels = hf_u32_load(&map->levels, __ATOMIC_RELAXED);

    for (uint32_t level = call->levels; level < height; level++) {
        call->before[level] = map->head;
        call->after[level] = NULL;
    }
    /* seq_cst: before the links there, see hf_skipmap_walk(). */
    while (levels < height &&
           !hf_u32_cas(&map->levels, &levels, height, __ATOMIC_SEQ_CST))
        ;
}

/* Links one more level. False: the node is on its way out, and is not linked
 * there. */
static bool link_level(struct skipmap_call *call, struct skipmap_node *node,
                       uint32_t level)
{
    for (;;) {
        void *after = call->after[level];
        void *next = hf_ptr_load(&node->next[level], __ATOMIC_SEQ_CST);
        /* A walk since the node was made has found another next. */
        while (next != after) {
            if (skipmap_marked(next))
                return false;
            if (hf_ptr_cas(&node->next[level], &next, after, __ATOMIC_SEQ_CST))
                break;
        }
        if (hf_ptr_cas(&call->before[level]->next[level], &after, node,
                       __ATOMIC_SEQ_CST))
            return true;
        hf_skipmap_walk(call, SKIPMAP_AT_KEY);
    }
}

/* From the moment that level 0 is linked the key is in, and others may remove
 * the node while we are still at its upper levels. */
static void link_upper(struct skipmap_call *call, struct skipmap_node *node)
{
    uint32_t level = 1;

    while (level < node->height && link_level(call, node, level)) {
        level++;
        /* seq_cst: after the link, see the head of skipmap_state.h. */
        if (skipmap_marked(
                hf_ptr_load(&node->next[level - 1], __ATOMIC_SEQ_CST))) {
            hf_skipmap_walk(call, SKIPMAP_AT_KEY);
            break;
        }
    }
    leave_levels(call, node, node->height - level);
}

enum hf_status hf_skipmap_link(struct skipmap_call *call,
                               struct skipmap_node *node)
{
    assert(!call->exact);
    raise_levels(call, node->height);
    /* Relaxed: nobody sees the node yet. */
    for (uint32_t level = 0; level < node->height; level++)
        hf_ptr_store(&node->next[level], call->after[level], __ATOMIC_RELAXED);
    /* The era in which the node (and its box) was born is now announced by us:
     * we go on using it after others may have removed it. */
    void *after = epoch_load(call->reader, &call->before[0]->next[0]);
    if (after != call->after[0] ||
        !hf_ptr_cas(&call->before[0]->next[0], &after, node, __ATOMIC_SEQ_CST))
        return HF_PENDING;
    skipmap_count(&call->local->more, 1);
    link_upper(call, node);
    return HF_OK;
}
