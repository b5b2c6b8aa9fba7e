/* blocking_handoff.c - callers who meet: SYNCHRONOUS and TRANSFER.
 *
 *   offers   [item] -> [item, its putter waits] -> ...      oldest first
 *   takers   [taker waits] -> [taker waits] -> ...          one list is empty
 *
 * Whoever comes second serves the first of those who came before, under the
 * lock: a taker takes the oldest offer, a putter gives its item to the oldest
 * taker. So a try with HF_NOW succeeds exactly if somebody waits, and an item
 * is withdrawn or taken, never both. SYNCHRONOUS is a TRANSFER queue in which
 * each put waits to be met.
 *
 * A node of somebody who waits lies on its stack. It must not go while another
 * thread touches it: nodes are touched, and their threads woken, under the lock
 * only, and a thread that has waited takes the lock before it leaves.
 */
#include <assert.h>

#include "base/memory.h"
#include "base/thread.h"
#include "sync/blocking_state.h"

struct handoff_node { /* (a) atomic  (m) under the lock: the others */
    struct handoff_node *next;
    struct handoff_node *prev;
    void *item;
    uint64_t stamp_ns;
    bool waits;  /* false: a put that did not wait to be met */
    bool asleep; /* its thread must be woken */
    /* How the call ends; HF_PENDING: nobody has met it yet. Changed under the
     * lock, and relaxed: its thread takes the lock before it believes it. */
    struct hf_atomic_u32 status; /* (a) */
    struct hf_event event;       /* (a) its thread sleeps here */
};

static void append(struct handoff_list *list, struct handoff_node *node)
{
    node->next = NULL;
    node->prev = list->last;
    *(list->last == NULL ? &list->first : &list->last->next) = node;
    list->last = node;
}

static void unlink_node(struct handoff_list *list, struct handoff_node *node)
{
    *(node->prev == NULL ? &list->first : &node->prev->next) = node->next;
    *(node->next == NULL ? &list->last : &node->next->prev) = node->prev;
}

static bool is_pending(const struct handoff_node *node)
{
    return hf_u32_load(&node->status, __ATOMIC_RELAXED) == HF_PENDING;
}

/* Takes the node off its list and tells its thread how its call ends. */
static void end_wait(struct hf_blocking *queue, struct handoff_list *list,
                     struct handoff_node *node, enum hf_status status)
{
    assert(hf_mutex_held(&queue->mutex));
    assert(node->waits);
    assert(is_pending(node));
    unlink_node(list, node);
    hf_u32_store(&node->status, (uint32_t)status, __ATOMIC_RELAXED);
    if (node->asleep)
        hf_event_wake(&node->event, 1);
}

/* Waits a moment without sleep: whoever comes then need not wake anybody. */
static void look_around(struct hf_blocking *queue,
                        const struct handoff_node *node)
{
    int spins = hf_thread_spins(BLOCKING_SPINS);

    if (spins == 0)
        return;
    hf_mutex_unlock(&queue->mutex);
    for (; spins > 0 && is_pending(node); spins--)
        hf_thread_pause();
    hf_mutex_lock(&queue->mutex);
}

/* Sleeps until another has ended the wait, or the deadline. The queue is locked
 * before and after; the node is in the list before and not after. */
static enum hf_status wait_to_be_met(struct hf_blocking *queue,
                                     struct handoff_list *list,
                                     struct handoff_node *node,
                                     uint64_t deadline_ns)
{
    bool late = false;

    append(list, node);
    look_around(queue, node);
    while (is_pending(node) && !late) {
        node->asleep = true;
        uint32_t key = hf_event_prepare(&node->event);
        hf_mutex_unlock(&queue->mutex);
        late = hf_event_wait(&node->event, key, queue->opts.clock,
                             deadline_ns) == HF_TIMEOUT;
        hf_mutex_lock(&queue->mutex);
    }
    if (!is_pending(node))
        return (enum hf_status)hf_u32_load(&node->status, __ATOMIC_RELAXED);
    unlink_node(list, node);
    return HF_TIMEOUT;
}

/* Puts the item into the list and does not wait. */
static enum hf_status leave_offer(struct hf_blocking *queue,
                                  const struct blocking_new *what)
{
    struct handoff_node *node = hf_alloc(sizeof *node);

    if (node == NULL)
        return HF_NOMEM;
    *node =
        (struct handoff_node){.item = what->item, .stamp_ns = what->stamp_ns};
    append(&queue->in.handoff.offers, node);
    queue->put++;
    blocking_count_set(queue, blocking_count(queue) + 1);
    return HF_OK;
}

/* Waits with the item until a taker has it. */
static enum hf_status offer(struct hf_blocking *queue,
                            const struct blocking_new *what,
                            uint64_t deadline_ns, bool *slept)
{
    struct handoff_node node = {.item = what->item,
                                .stamp_ns = what->stamp_ns,
                                .waits = true,
                                .status = {HF_PENDING}};

    queue->putters++;
    blocking_count_set(queue, blocking_count(queue) + 1);
    enum hf_status status =
        wait_to_be_met(queue, &queue->in.handoff.offers, &node, deadline_ns);
    queue->putters--;
    if (status == HF_TIMEOUT)
        blocking_count_set(queue, blocking_count(queue) - 1);
    *slept = node.asleep;
    return status;
}

/* `meet`: the put ends when its item was taken. */
static enum hf_status put(struct hf_blocking *queue,
                          const struct blocking_new *what, bool meet,
                          uint64_t deadline_ns)
{
    bool slept = false;
    enum hf_status status = HF_OK;

    hf_mutex_lock(&queue->mutex);
    struct handoff_node *taker = queue->in.handoff.takers.first;
    if (queue->shut) {
        status = HF_CLOSED;
    } else if (taker != NULL) {
        taker->item = what->item;
        queue->put++;
        queue->taken++;
        end_wait(queue, &queue->in.handoff.takers, taker, HF_OK);
    } else if (!meet) {
        status = leave_offer(queue, what);
    } else if (deadline_ns == HF_NOW) {
        status = HF_TIMEOUT;
    } else {
        status = offer(queue, what, deadline_ns, &slept);
    }
    if (status == HF_TIMEOUT || status == HF_CLOSED)
        queue->rejected++;
    hf_mutex_unlock(&queue->mutex);
    if (slept)
        hf_waits_note(&queue->put_waits,
                      blocking_now_ns(queue) - what->stamp_ns);
    return status;
}

enum hf_status hf_handoff_transfer(struct hf_blocking *queue, void *item,
                                   uint64_t rank, uint64_t deadline_ns)
{
    struct blocking_new what = blocking_new(queue, item, rank);
    return put(queue, &what, true, deadline_ns);
}

static enum hf_status handoff_put(struct hf_blocking *queue, void *item,
                                  uint64_t rank, uint64_t deadline_ns)
{
    struct blocking_new what = blocking_new(queue, item, rank);
    return put(queue, &what, false, deadline_ns);
}

/* Takes the oldest offer; there is one. Returns what is to be freed when the
 * lock has been given back, or NULL. */
static struct handoff_node *accept(struct hf_blocking *queue, void **item)
{
    struct handoff_list *offers = &queue->in.handoff.offers;
    struct handoff_node *node = offers->first;

    *item = node->item;
    queue->taken++;
    blocking_count_set(queue, blocking_count(queue) - 1);
    if (node->waits) {
        queue->put++;
        end_wait(queue, offers, node, HF_OK);
        return NULL;
    }
    unlink_node(offers, node);
    return node;
}

static enum hf_status handoff_take(struct hf_blocking *queue, void **item,
                                   uint64_t deadline_ns)
{
    struct handoff_node me = {.waits = true, .status = {HF_PENDING}};
    struct handoff_node *taken = NULL;
    uint64_t started_ns = 0;
    enum hf_status status = HF_OK;

    hf_mutex_lock(&queue->mutex);
    if (queue->in.handoff.offers.first != NULL) {
        taken = accept(queue, item);
    } else if (queue->shut) {
        status = HF_CLOSED;
    } else if (deadline_ns == HF_NOW) {
        status = HF_TIMEOUT;
    } else {
        started_ns = blocking_now_ns(queue);
        queue->takers++;
        status =
            wait_to_be_met(queue, &queue->in.handoff.takers, &me, deadline_ns);
        queue->takers--;
        if (status == HF_OK)
            *item = me.item;
    }
    if (status == HF_TIMEOUT)
        queue->take_timeouts++;
    hf_mutex_unlock(&queue->mutex);
    hf_free(taken);
    if (me.asleep)
        hf_waits_note(&queue->take_waits, blocking_now_ns(queue) - started_ns);
    return status;
}

static size_t handoff_drain(struct hf_blocking *queue, void **items, size_t max)
{
    size_t count = 0;

    hf_mutex_lock(&queue->mutex);
    while (count < max && queue->in.handoff.offers.first != NULL)
        hf_free(accept(queue, &items[count++]));
    hf_mutex_unlock(&queue->mutex);
    return count;
}

void hf_handoff_shutdown(struct hf_blocking *queue)
{
    struct blocking_handoff_state *in = &queue->in.handoff;
    struct handoff_node *next;

    for (struct handoff_node *node = in->offers.first; node; node = next) {
        next = node->next;
        if (!node->waits)
            continue;
        blocking_count_set(queue, blocking_count(queue) - 1);
        end_wait(queue, &in->offers, node, HF_CLOSED);
    }
    while (in->takers.first != NULL)
        end_wait(queue, &in->takers, in->takers.first, HF_CLOSED);
}

uint64_t hf_handoff_oldest_ns(const struct hf_blocking *queue)
{
    return queue->in.handoff.offers.first->stamp_ns;
}

const struct blocking_kind hf_blocking_kind_synchronous = {
    .name = "synchronous-queue",
    .capacity_default = UINT64_MAX,
    .ages = true,
    .put = hf_handoff_transfer,
    .take = handoff_take,
    .drain = handoff_drain,
};

const struct blocking_kind hf_blocking_kind_transfer = {
    .name = "transfer-queue",
    .capacity_default = UINT64_MAX,
    .ages = true,
    .put = handoff_put,
    .take = handoff_take,
    .drain = handoff_drain,
};
