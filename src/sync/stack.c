/* stack.c - both kinds: a list of numbered nodes, and an array under a lock.
 *
 * The list. `first` is swung by one compare-and-swap. Every pop adds 1 to the
 * tag. So if `first` is found unchanged, there was no pop in between, hence no
 * node has left and come back: what was read from the first node (its next and
 * its depth) was right all the time. Only a thread that sleeps through an exact
 * multiple of 2^32 pops could be deceived.
 *
 * The depth is written by the push that puts a node on top: one more than that
 * of the node below, which is right if its swap succeeds. So the first node
 * knows the size of the stack: "full" needs no counter, and is exact although
 * threads keep free nodes of their own. A stack without bound does not look
 * at the node below, which another processor may just have written; its size
 * is what the threads have counted.
 *
 * Free nodes. A thread has up to CACHE_MAX of them; when it has none it takes a
 * batch from the common list, or new ones; when it has too many it gives
 * a batch back. A batch is a chain of nodes, and the common list is a stack of
 * chains with a tag of its own:
 *
 *   batches -> node -next-> node -next-> node      a batch
 *                | (in the place of the depth)
 *                v
 *              node -next-> node ...               the batch below
 *
 * Threads that push and pop about as much never see that list.
 *
 * Orders. `first` is SEQ_CST: "empty" and "full" count as of the instant of the
 * load also beside what other objects told (on x86 this costs nothing). Links
 * are stored with release and loaded with acquire: who reads a link that was
 * written after the node was popped and pushed again comes after that pop, and
 * then finds `first` changed. Items are plain: only the thread that has a node
 * for itself touches its item.
 */
#include "holdfast/stack.h"

#include <assert.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "sync/listed.h"
#include "sync/locals.h"
#include "sync/mutex.h"

#ifdef HF_STEPPED /* small, so that short tests meet their ends */
#define BATCH       2u
#define CHUNK_SHIFT 2
#else
#define BATCH       16u
#define CHUNK_SHIFT 6
#endif
#define CACHE_MAX (2 * BATCH)

#define PATIENCE_MAX 32u /* pauses */

/* Chunks of nodes double: 64, 64, 128, 256 ... */
#define CHUNK_FIRST (1u << CHUNK_SHIFT)
#define CHUNKS      (33u - CHUNK_SHIFT)

struct node { /* its number is its place + 1; 0 is none */
    /* (a) Inside: depth and next. Free: the batch below and next. */
    struct hf_atomic_u64 link;
    void *item; /* (o) */
};

struct local { /* (o) its thread's own */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 pushes; /* (a) owner writes */
    struct hf_atomic_u64 pops;                           /* (a) owner writes */
    struct hf_atomic_u64 refused;                        /* (a) owner writes */
    uint32_t count;                                      /* (o) */
    uint32_t nodes[CACHE_MAX]; /* (o) free ones, newest last */
};

struct hf_stack {
    struct hf_listed listed;
    enum hf_stack_kind kind; /* (i) */
    uint64_t capacity;       /* (i) */
    bool bounded;            /* (i) capacity is below the maximum */
    struct hf_locals locals;
    struct hf_atomic_ptr chunks[CHUNKS];                  /* (a) set once */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 first;   /* (a) tag, node */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 batches; /* (a) tag, node */
    struct hf_atomic_u64 stray_pops; /* (a) by threads without a record */
    struct hf_atomic_u64 made;       /* (a) nodes that were given out new */
    /* The locked kind. */
    struct hf_mutex mutex;
    void **items;              /* (m) */
    uint64_t room;             /* (m) */
    struct hf_atomic_u64 size; /* (m) to write, (a) to read */
    uint64_t pushes;           /* (m) */
    uint64_t refused;          /* (m) */
};

/* Of `first` and `batches`: (tag, node). Of a link: (depth or batch, next). */
HF_INLINE uint32_t low(uint64_t word)
{
    return (uint32_t)word;
}

HF_INLINE uint32_t high(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

HF_INLINE uint64_t pack(uint32_t upper, uint32_t lower)
{
    return (uint64_t)upper << 32 | lower;
}

/* Only its owner changes it: no read-modify-write is needed. */
HF_INLINE void count_one(struct hf_atomic_u64 *counter)
{
    hf_u64_store(counter, 1 + hf_u64_load(counter, __ATOMIC_RELAXED),
                 __ATOMIC_RELAXED);
}

/* ---- Nodes. ---- */

HF_INLINE uint32_t chunk_of(uint32_t place)
{
    return place < CHUNK_FIRST
               ? 0
               : 32 - CHUNK_SHIFT - (uint32_t)__builtin_clz(place);
}

HF_INLINE uint32_t chunk_start(uint32_t chunk)
{
    return chunk == 0 ? 0 : CHUNK_FIRST << (chunk - 1);
}

HF_INLINE struct node *node_at(const struct hf_stack *stack, uint32_t number)
{
    uint32_t place = number - 1;
    uint32_t chunk = chunk_of(place);
    /* Acquire: the chunk was zeroed before it was published. */
    struct node *nodes =
        (struct node *)hf_ptr_load(&stack->chunks[chunk], __ATOMIC_ACQUIRE);

    assert(number != 0);
    return &nodes[place - chunk_start(chunk)];
}

static bool chunk_make(struct hf_stack *stack, uint32_t chunk)
{
    size_t count = chunk == 0 ? CHUNK_FIRST : chunk_start(chunk);
    void *none = NULL;

    if (hf_ptr_load(&stack->chunks[chunk], __ATOMIC_ACQUIRE) != NULL)
        return true;
    struct node *nodes = hf_alloc_zeroed(count * sizeof *nodes);
    if (nodes == NULL)
        return false;
    /* Release: the zeroes. Another thread may have been first. */
    if (!hf_ptr_cas(&stack->chunks[chunk], &none, nodes, __ATOMIC_ACQ_REL))
        hf_free(nodes);
    return true;
}

/* A batch of nodes that were never used; false without memory. */
static bool nodes_new(struct hf_stack *stack, struct local *local)
{
    uint64_t made = hf_u64_load(&stack->made, __ATOMIC_RELAXED);

    do { /* a batch lies in one chunk */
        if (made + BATCH > UINT32_MAX ||
            !chunk_make(stack, chunk_of((uint32_t)made)))
            return false;
        /* Relaxed: a number only; the chunk is read with acquire. */
    } while (!hf_u64_cas(&stack->made, &made, made + BATCH, __ATOMIC_RELAXED));
    for (uint32_t i = BATCH; i > 0; i--)
        local->nodes[local->count++] = (uint32_t)made + i;
    return true;
}

/* Gives `count` of the oldest free nodes to all. */
static void batch_give(struct hf_stack *stack, const uint32_t *nodes,
                       uint32_t count)
{
    uint64_t top = hf_u64_load(&stack->batches, __ATOMIC_RELAXED);
    struct node *first = node_at(stack, nodes[0]);

    for (uint32_t i = 1; i < count; i++)
        hf_u64_store(&node_at(stack, nodes[i])->link,
                     i + 1 < count ? nodes[i + 1] : 0, __ATOMIC_RELEASE);
    do
        hf_u64_store(&first->link, pack(low(top), count > 1 ? nodes[1] : 0),
                     __ATOMIC_RELEASE);
    while (!hf_u64_cas(&stack->batches, &top, pack(high(top), nodes[0]),
                       __ATOMIC_ACQ_REL)); /* the links, and the items read */
}

/* Takes a batch of what others gave; false if there is none. */
static bool batch_take(struct hf_stack *stack, struct local *local)
{
    uint64_t top = hf_u64_load(&stack->batches, __ATOMIC_ACQUIRE);
    uint64_t link;

    do {
        if (low(top) == 0)
            return false;
        link = hf_u64_load(&node_at(stack, low(top))->link, __ATOMIC_ACQUIRE);
    } while (!hf_u64_cas(&stack->batches, &top, pack(high(top) + 1, high(link)),
                         __ATOMIC_ACQ_REL));
    uint32_t number = low(top);
    for (;;) { /* ours alone: relaxed */
        assert(local->count < CACHE_MAX);
        local->nodes[local->count++] = number;
        number = low(link);
        if (number == 0)
            return true;
        link = hf_u64_load(&node_at(stack, number)->link, __ATOMIC_RELAXED);
    }
}

/* ---- The lock-free kind. ---- */

/* How many items are inside if `first` is still the first word. */
HF_INLINE uint32_t depth_of(const struct hf_stack *stack, uint64_t first)
{
    if (low(first) == 0)
        return 0;
    return high(
        hf_u64_load(&node_at(stack, low(first))->link, __ATOMIC_ACQUIRE));
}

/* The depth may have been that of a node that is somewhere else by now. */
static bool is_unchanged(const struct hf_stack *stack, uint64_t *first)
{
    uint64_t before = *first;

    *first = hf_u64_load(&stack->first, __ATOMIC_SEQ_CST);
    return *first == before;
}

/* After a swap that failed: lets the one who was faster finish a few calls,
 * instead of taking the line from it. Longer each time, but never long. */
__attribute__((noinline, cold)) static void back_off(uint32_t *patience)
{
    for (uint32_t i = 0; i < *patience; i++)
        hf_thread_pause();
    if (*patience < PATIENCE_MAX)
        *patience *= 2;
}

HF_INLINE enum hf_status list_push(struct hf_stack *stack, void *item)
{
    struct local *local = hf_locals_mine(&stack->locals, sizeof *local);
    uint64_t first = hf_u64_load(&stack->first, __ATOMIC_SEQ_CST);
    uint32_t patience = 1;

    if (__builtin_expect(local == NULL, 0))
        return HF_NOMEM;
    for (;;) {
        uint32_t depth = stack->bounded ? depth_of(stack, first) : 0;
        if (__builtin_expect(depth >= stack->capacity, 0)) {
            if (!is_unchanged(stack, &first))
                continue;
            count_one(&local->refused);
            return HF_FULL;
        }
        if (__builtin_expect(local->count == 0, 0) &&
            !batch_take(stack, local) && !nodes_new(stack, local))
            return HF_NOMEM;
        uint32_t number = local->nodes[local->count - 1];
        struct node *node = node_at(stack, number);
        node->item = item;
        hf_u64_store(&node->link, pack(depth + 1, low(first)),
                     __ATOMIC_RELEASE);
        if (__builtin_expect(hf_u64_cas(&stack->first, &first,
                                        pack(high(first), number),
                                        __ATOMIC_SEQ_CST),
                             1))
            break;
        back_off(&patience);
        first = hf_u64_load(&stack->first, __ATOMIC_SEQ_CST);
    }
    local->count--;
    count_one(&local->pushes);
    return HF_OK;
}

/* Keeps the node, or gives it away if there is no place for it. */
HF_INLINE void node_keep(struct hf_stack *stack, uint32_t number)
{
    struct local *local = hf_locals_mine(&stack->locals, sizeof *local);

    if (__builtin_expect(local == NULL, 0)) {
        /* Relaxed: a count, of threads without a record. */
        hf_u64_add(&stack->stray_pops, 1, __ATOMIC_RELAXED);
        batch_give(stack, &number, 1);
        return;
    }
    count_one(&local->pops);
    if (__builtin_expect(local->count == CACHE_MAX, 0)) {
        batch_give(stack, local->nodes, BATCH);
        local->count -= BATCH;
        memmove(local->nodes, local->nodes + BATCH,
                local->count * sizeof local->nodes[0]);
    }
    local->nodes[local->count++] = number;
}

HF_INLINE enum hf_status list_pop(struct hf_stack *stack, void **item)
{
    uint64_t first = hf_u64_load(&stack->first, __ATOMIC_SEQ_CST);
    uint32_t patience = 1;

    for (;;) {
        if (low(first) == 0)
            return HF_EMPTY;
        struct node *node = node_at(stack, low(first));
        uint64_t link = hf_u64_load(&node->link, __ATOMIC_ACQUIRE);
        if (__builtin_expect(hf_u64_cas(&stack->first, &first,
                                        pack(high(first) + 1, low(link)),
                                        __ATOMIC_SEQ_CST),
                             1)) {
            *item = node->item;
            node_keep(stack, low(first));
            return HF_OK;
        }
        back_off(&patience);
        first = hf_u64_load(&stack->first, __ATOMIC_SEQ_CST);
    }
}

/* ---- The locked kind. ---- */

static bool array_grow(struct hf_stack *stack)
{
    uint64_t room = stack->room == 0 ? CHUNK_FIRST : stack->room * 2;

    assert(hf_mutex_held(&stack->mutex));
    void **items = hf_realloc(stack->items, room * sizeof *items);
    if (items == NULL)
        return false;
    stack->items = items;
    stack->room = room;
    return true;
}

static enum hf_status array_push(struct hf_stack *stack, void *item)
{
    enum hf_status status = HF_OK;

    hf_mutex_lock(&stack->mutex);
    /* Relaxed: written under the lock only. */
    uint64_t size = hf_u64_load(&stack->size, __ATOMIC_RELAXED);
    if (size == stack->capacity) {
        stack->refused++;
        status = HF_FULL;
    } else if (size == stack->room && !array_grow(stack)) {
        status = HF_NOMEM;
    } else {
        stack->items[size] = item;
        stack->pushes++;
        hf_u64_store(&stack->size, size + 1, __ATOMIC_RELAXED);
    }
    hf_mutex_unlock(&stack->mutex);
    return status;
}

static enum hf_status array_pop(struct hf_stack *stack, void **item)
{
    hf_mutex_lock(&stack->mutex);
    uint64_t size = hf_u64_load(&stack->size, __ATOMIC_RELAXED);
    if (size > 0) {
        *item = stack->items[size - 1];
        hf_u64_store(&stack->size, size - 1, __ATOMIC_RELAXED);
    }
    hf_mutex_unlock(&stack->mutex);
    return size > 0 ? HF_OK : HF_EMPTY;
}

/* ---- The calls. ---- */

enum hf_status hf_stack_push(struct hf_stack *stack, void *item)
{
    if (stack == NULL || item == NULL)
        return HF_INVALID;
    return __builtin_expect(stack->kind == HF_STACK_LOCK_FREE, 1)
               ? list_push(stack, item)
               : array_push(stack, item);
}

enum hf_status hf_stack_pop(struct hf_stack *stack, void **item)
{
    if (stack == NULL || item == NULL)
        return HF_INVALID;
    return __builtin_expect(stack->kind == HF_STACK_LOCK_FREE, 1)
               ? list_pop(stack, item)
               : array_pop(stack, item);
}

/* What the threads have counted; `size` is what that leaves. */
static void add_counts(const struct hf_stack *stack, struct hf_stack_stats *out)
{
    const struct local *local;
    uint32_t slot = 0;

    /* Relaxed: counts. Those of a call under way may be missing. */
    out->pops = hf_u64_load(&stack->stray_pops, __ATOMIC_RELAXED);
    while ((local = hf_locals_next(&stack->locals, &slot)) != NULL) {
        out->pops += hf_u64_load(&local->pops, __ATOMIC_RELAXED);
        out->pushes += hf_u64_load(&local->pushes, __ATOMIC_RELAXED);
        out->refused += hf_u64_load(&local->refused, __ATOMIC_RELAXED);
    }
    if (out->pushes > out->pops)
        out->size = out->pushes - out->pops;
}

static uint64_t depth_now(const struct hf_stack *stack)
{
    uint64_t first = hf_u64_load(&stack->first, __ATOMIC_SEQ_CST);
    uint32_t depth;

    do
        depth = depth_of(stack, first);
    while (!is_unchanged(stack, &first));
    return depth;
}

uint64_t hf_stack_size(const struct hf_stack *stack)
{
    struct hf_stack_stats stats = {0};

    if (stack == NULL)
        return 0;
    if (stack->kind == HF_STACK_LOCKED)
        /* Relaxed: the lock orders the writes, the reader wants a number. */
        return hf_u64_load(&stack->size, __ATOMIC_RELAXED);
    if (stack->bounded)
        return depth_now(stack);
    add_counts(stack, &stats);
    return stats.size;
}

static void stats_locked(struct hf_stack *stack, struct hf_stack_stats *out)
{
    hf_mutex_lock(&stack->mutex);
    out->size = hf_u64_load(&stack->size, __ATOMIC_RELAXED);
    out->pushes = stack->pushes;
    out->pops = stack->pushes - out->size;
    out->refused = stack->refused;
    out->nodes = stack->room;
    hf_mutex_unlock(&stack->mutex);
}

void hf_stack_stats(const struct hf_stack *stack, struct hf_stack_stats *out)
{
    if (out == NULL)
        return;
    memset(out, 0, sizeof *out);
    if (stack == NULL)
        return;
    out->capacity = stack->capacity;
    if (stack->kind == HF_STACK_LOCKED) {
        /* The lock inside is no constant. */
        stats_locked((struct hf_stack *)(uintptr_t)stack, out);
        return;
    }
    add_counts(stack, out);
    if (stack->bounded)
        out->size = depth_now(stack);
    /* Relaxed: a count. */
    out->nodes = hf_u64_load(&stack->made, __ATOMIC_RELAXED);
}

static void stack_fill(const struct hf_listed *listed,
                       struct hf_inspect_row *row)
{
    struct hf_stack_stats stats;

    /* `listed` is the first member of the stack. */
    hf_stack_stats((const struct hf_stack *)listed, &stats);
    row->depth = stats.size;
    if (stats.capacity < HF_STACK_CAPACITY_MAX)
        row->capacity = stats.capacity;
    row->rejected = stats.refused;
}

/* ---- Open and close. ---- */

enum hf_status hf_stack_open(struct hf_stack **out,
                             const struct hf_stack_opts *opts)
{
    struct hf_stack_opts all = {0};

    if (opts != NULL)
        all = *opts;
    if (all.capacity == 0)
        all.capacity = HF_STACK_CAPACITY_MAX;
    if (out == NULL || all.capacity > HF_STACK_CAPACITY_MAX ||
        (unsigned)all.kind > HF_STACK_LOCKED)
        return HF_INVALID;
    struct hf_stack *stack = hf_alloc_lines(sizeof *stack);
    if (stack == NULL)
        return HF_NOMEM;
    stack->kind = all.kind;
    stack->capacity = all.capacity;
    stack->bounded = all.capacity < HF_STACK_CAPACITY_MAX;
    if (all.kind == HF_STACK_LOCK_FREE &&
        hf_locals_init(&stack->locals, sizeof(struct local)) != HF_OK) {
        hf_free(stack);
        return HF_NOMEM;
    }
    hf_listed_add(&stack->listed, "stack", all.name, stack_fill);
    *out = stack;
    return HF_OK;
}

void hf_stack_close(struct hf_stack *stack)
{
    if (stack == NULL)
        return;
    hf_listed_remove(&stack->listed);
    hf_locals_destroy(&stack->locals);
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk++)
        /* Relaxed: nobody else is there any more. */
        hf_free(hf_ptr_load(&stack->chunks[chunk], __ATOMIC_RELAXED));
    hf_free(stack->items);
    hf_free(stack);
}
