/* writebehind_dirty.c - what is dirty: the table, groups, the queue by age.
 *
 * The table does not grow: it is made for `dirty_max` changes. Groups that meet
 * become one by moving the smaller's members into the larger, so that a change
 * moves at most log2(n) times.
 */
#include <assert.h>

#include "base/memory.h"
#include "keep/writebehind_state.h"

_Static_assert(sizeof(struct wb_change) <= HF_WRITEBEHIND_OVERHEAD,
               "a change takes no more than it is counted for");

/* ---- Changes. ---- */

struct wb_change *hf_wb_change_new(const struct hf_writebehind *behind,
                                   const struct hf_store_change *from)
{
    size_t value_len = from->remove ? 0 : from->value_len;
    struct wb_change *change =
        hf_alloc(sizeof *change + from->key_len + value_len);

    if (change == NULL)
        return NULL;
    memset(change, 0, sizeof *change);
    change->refs.value = 1;
    change->key_len = (uint32_t)from->key_len;
    change->value_len = (uint32_t)value_len;
    change->remove = from->remove;
    memcpy(change->bytes, from->key, from->key_len);
    if (value_len > 0)
        memcpy(change->bytes + from->key_len, from->value, value_len);
    change->hash =
        hf_hash(behind->seed, hf_bytes(change->bytes, change->key_len));
    return change;
}

void hf_wb_change_release(struct wb_change *change)
{
    /* Release: what we read comes before the end; acquire: so did the others'.
     */
    if (hf_u32_sub(&change->refs, 1, __ATOMIC_ACQ_REL) == 1)
        hf_free(change);
}

void hf_wb_discard(struct wb_change *changes, struct wb_group *groups)
{
    while (changes != NULL) {
        struct wb_change *next = changes->next;
        hf_wb_change_release(changes);
        changes = next;
    }
    while (groups != NULL) {
        struct wb_group *next = groups->next;
        hf_free(groups);
        groups = next;
    }
}

/* ---- The table. ---- */

static struct wb_change **bucket_of(const struct hf_writebehind *behind,
                                    uint64_t hash)
{
    return &behind->table[hash & (behind->buckets - 1)];
}

struct wb_change *hf_wb_find(const struct hf_writebehind *behind, uint64_t hash,
                             const void *key, size_t key_len)
{
    struct wb_change *change = *bucket_of(behind, hash);

    assert(hf_mutex_held(&behind->mutex));
    while (change != NULL &&
           (change->hash != hash || change->key_len != key_len ||
            memcmp(change->bytes, key, key_len) != 0))
        change = change->chain;
    return change;
}

static void chain_in(struct wb_change **at, struct wb_change *change)
{
    change->chain = *at;
    change->chained = at;
    if (*at != NULL)
        (*at)->chained = &change->chain;
    *at = change;
}

static void chain_out(struct wb_change *change)
{
    *change->chained = change->chain;
    if (change->chain != NULL)
        change->chain->chained = change->chained;
    change->chained = NULL;
}

/* `by` is found instead of `change`. */
static void chain_swap(struct wb_change *change, struct wb_change *by)
{
    struct wb_change **at = change->chained;

    chain_out(change);
    chain_in(at, by);
}

/* ---- The queue. ---- */

static void queue_append(struct wb_queue *queue, struct wb_change *change)
{
    change->prev = queue->tail;
    change->next = NULL;
    *(queue->tail == NULL ? &queue->head : &queue->tail->next) = change;
    queue->tail = change;
}

static void queue_remove(struct wb_queue *queue, struct wb_change *change)
{
    *(change->prev == NULL ? &queue->head : &change->prev->next) = change->next;
    *(change->next == NULL ? &queue->tail : &change->next->prev) = change->prev;
}

static void queue_swap(struct wb_queue *queue, struct wb_change *change,
                       struct wb_change *by)
{
    by->prev = change->prev;
    by->next = change->next;
    *(by->prev == NULL ? &queue->head : &by->prev->next) = by;
    *(by->next == NULL ? &queue->tail : &by->next->prev) = by;
}

/* ---- Groups. ---- */

static void group_add(struct wb_group *group, struct wb_change *change)
{
    assert(change->group == NULL);
    change->group = group;
    change->peer_prev = group->peers_last;
    change->peer_next = NULL;
    *(group->peers_last == NULL ? &group->peers
                                : &group->peers_last->peer_next) = change;
    group->peers_last = change;
    group->count++;
}

static void group_remove(struct wb_change *change)
{
    struct wb_group *group = change->group;

    *(change->peer_prev == NULL ? &group->peers
                                : &change->peer_prev->peer_next) =
        change->peer_next;
    *(change->peer_next == NULL ? &group->peers_last
                                : &change->peer_next->peer_prev) =
        change->peer_prev;
    group->count--;
    change->group = NULL;
}

/* `by` takes the place of `change`. */
static void group_swap(struct wb_change *change, struct wb_change *by)
{
    struct wb_group *group = change->group;

    by->group = group;
    by->peer_prev = change->peer_prev;
    by->peer_next = change->peer_next;
    *(by->peer_prev == NULL ? &group->peers : &by->peer_prev->peer_next) = by;
    *(by->peer_next == NULL ? &group->peers_last : &by->peer_next->peer_prev) =
        by;
    change->group = NULL;
}

/* `change` joins the group of `op`; if it is in another, the two become one. */
static void group_join(struct hf_writebehind *behind, struct wb_op *op,
                       struct wb_change *change)
{
    struct wb_group *into = op->group;
    struct wb_group *from = change->group;

    if (from == into)
        return;
    if (from == NULL) {
        group_add(into, change);
        return;
    }
    behind->merged++;
    if (from->count > into->count) {
        op->group = from;
        from = into;
        into = op->group;
    }
    while (from->peers != NULL) {
        struct wb_change *peer = from->peers;
        group_remove(peer);
        group_add(into, peer);
    }
    from->next = op->empty;
    op->empty = from;
}

/* ---- Putting. ---- */

/* Takes the place of `old`, which was not on its way yet. */
static void overwrite(struct hf_writebehind *behind, struct wb_op *op,
                      struct wb_change *old, struct wb_change *change)
{
    uint64_t bytes = wb_change_bytes(old);

    assert(!old->flying);
    change->first = old->first;
    change->since_ns = old->since_ns;
    chain_swap(old, change);
    queue_swap(&behind->queue, old, change);
    change->twin = old->twin;
    if (change->twin != NULL)
        change->twin->twin = change;
    if (old->group != NULL)
        group_swap(old, change);
    behind->pending_bytes += wb_change_bytes(change) - bytes;
    behind->used_bytes -= bytes;
    behind->used_count--;
    behind->coalesced++;
    old->next = op->old;
    op->old = old;
}

static void add(struct hf_writebehind *behind, struct wb_change *flying,
                struct wb_change *change)
{
    if (flying != NULL) {
        assert(flying->flying && flying->twin == NULL);
        chain_swap(flying, change);
        flying->twin = change;
        change->twin = flying;
    } else {
        chain_in(bucket_of(behind, change->hash), change);
    }
    queue_append(&behind->queue, change);
    behind->pending_count++;
    behind->pending_bytes += wb_change_bytes(change);
    behind->dirty++;
}

void hf_wb_apply(struct hf_writebehind *behind, struct wb_op *op,
                 uint64_t now_ns)
{
    struct wb_change *next = op->changes;

    assert(hf_mutex_held(&behind->mutex));
    assert(op->number > 0 && (op->count == 1 || op->group != NULL));
    op->changes = NULL;
    behind->groups += op->group != NULL;
    behind->changes += op->count;
    while (next != NULL) {
        struct wb_change *change = next;
        next = change->next;
        struct wb_change *old =
            hf_wb_find(behind, change->hash, change->bytes, change->key_len);
        change->first = op->number;
        change->since_ns = now_ns;
        if (old != NULL && !old->flying)
            overwrite(behind, op, old, change);
        else
            add(behind, old, change);
        if (op->group != NULL)
            group_join(behind, op, change);
    }
}

/* ---- Writing. ---- */

uint64_t hf_wb_floor(const struct hf_writebehind *behind)
{
    assert(hf_mutex_held(&behind->mutex));
    if (behind->flying_first != 0)
        return behind->flying_first;
    return behind->queue.head == NULL ? behind->last + 1
                                      : behind->queue.head->first;
}

size_t hf_wb_oldest_count(const struct hf_writebehind *behind)
{
    const struct wb_change *oldest = behind->queue.head;

    if (oldest == NULL)
        return 0;
    return oldest->group == NULL ? 1 : oldest->group->count;
}

void hf_wb_split(struct hf_writebehind *behind, size_t keep)
{
    struct wb_group *group = behind->queue.head->group;

    assert(hf_mutex_held(&behind->mutex) && group != NULL && keep > 0);
    while (group->count > keep) {
        struct wb_change *peer = group->peers;
        group_remove(peer == behind->queue.head ? peer->peer_next : peer);
    }
}

static void take_one(struct hf_writebehind *behind, struct wb_change *change)
{
    size_t at = behind->flight_count++;

    queue_remove(&behind->queue, change);
    change->flying = true;
    behind->pending_count--;
    behind->pending_bytes -= wb_change_bytes(change);
    behind->flight[at] = change;
    behind->batch[at] = (struct hf_store_change){
        .key = change->bytes,
        .key_len = change->key_len,
        .value = change->remove ? NULL : wb_value(change),
        .value_len = change->value_len,
        .remove = change->remove,
    };
}

void hf_wb_take(struct hf_writebehind *behind)
{
    const struct hf_writebehind_opts *opts = &behind->opts;
    uint64_t bytes = behind->pending_bytes;

    assert(hf_mutex_held(&behind->mutex) && behind->flight_count == 0);
    assert(hf_wb_oldest_count(behind) <= behind->flight_cap);
    behind->flying_first = behind->queue.head->first;
    behind->flying_since_ns = behind->queue.head->since_ns;
    do {
        struct wb_change *oldest = behind->queue.head;
        if (oldest->group == NULL) {
            take_one(behind, oldest);
            continue;
        }
        for (struct wb_change *peer = oldest->group->peers; peer != NULL;
             peer = peer->peer_next)
            take_one(behind, peer);
    } while (behind->queue.head != NULL &&
             behind->flight_count + hf_wb_oldest_count(behind) <=
                 opts->batch_max &&
             bytes - behind->pending_bytes < opts->batch_bytes);
}

struct wb_change *hf_wb_land(struct hf_writebehind *behind, size_t from,
                             size_t to, struct wb_group **groups)
{
    struct wb_change *landed = NULL;

    assert(hf_mutex_held(&behind->mutex));
    for (size_t i = from; i < to; i++) {
        struct wb_change *change = behind->flight[i];
        assert(change->flying);
        if (change->twin != NULL)
            change->twin->twin = NULL;
        else
            chain_out(change);
        behind->used_count--;
        behind->used_bytes -= wb_change_bytes(change);
        behind->dirty--;
        struct wb_group *group = change->group;
        if (group != NULL) {
            group_remove(change);
            if (group->count == 0) {
                group->next = *groups;
                *groups = group;
            }
        }
        change->next = landed;
        landed = change;
    }
    if (to == behind->flight_count)
        behind->flying_first = 0;
    return landed;
}
