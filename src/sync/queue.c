/* queue.c - linked segments whose slots fill and empty strictly in order.
 *
 * A slot goes through three states, never back: empty, an item, taken. A put
 * writes its item into the first empty slot of the last segment, a take marks
 * the first item of the first segment as taken, each by one compare-and-swap.
 * That swap is the instant at which the call happens, so the order is the
 * order of the slots, and a taker that finds the first slot that is not taken
 * empty has seen the whole queue empty. Who fails has met one who succeeded,
 * and goes to the next slot: somebody always goes on.
 *
 * put_at and take_at only say where to begin to look. They are written without
 * a read-modify-write, so a slow thread may set them back; that costs the next
 * one some steps and nothing else.
 *
 * When may a segment be freed? Each thread announces, for puts and for takes,
 * the segment that it works in, and the announcement stays after the call: so
 * it costs something once a segment, not once a call. A segment that is no
 * longer linked goes when nobody announces it. A thread that sleeps keeps
 * back two segments at most, however long the queue was.
 *
 * The announcement and the link are read and written in one order of all
 * (SEQ_CST): announce, then look whether the segment is still linked; unlink,
 * then look whether it is announced. One of the two sees the other.
 */
#include "holdfast/queue.h"

#include <assert.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"
#include "sync/listed.h"
#include "sync/locals.h"

#define SPARES 16 /* empty segments that are kept */

/* For how long a call that lost a slot lets the others go on; once, for the
 * next slots may be long used. Without this, two threads take the cache line
 * from each other at every call, and both are several times slower. For the
 * tests' scheduler a pause is a step, and one is enough. */
#ifdef HF_STEPPED
#define LOST_PAUSES 1
#else
#define LOST_PAUSES 64
#endif

/* No item has this address. */
static char taken_mark;
#define TAKEN ((void *)&taken_mark)

struct segment { /* (i) immutable while linked  (r) while retired */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 put_at; /* (a) all slots
                                                          * before are used */
    struct hf_atomic_ptr next;                           /* (a) */
    uint64_t number;         /* (i) how many segments came before */
    struct segment *retired; /* (r) the next one */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 take_at; /* (a) all slots
                                                           * before are taken */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr slots[]; /* (a) */
};

struct announcer {                                    /* one for each thread */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr put; /* (a) a segment */
    struct hf_atomic_ptr take;                        /* (a) */
};

struct hf_queue {
    struct hf_listed listed;
    uint64_t slots; /* (i) in a segment */
    struct hf_locals announcers;
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr head; /* (a) never NULL */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr tail; /* (a) head or later */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_ptr spares[SPARES]; /* (a) */
    struct hf_atomic_ptr retired;       /* (a) list of segments */
    struct hf_atomic_u64 retired_count; /* (a) */
    struct hf_atomic_u64 scan_at;       /* (a) retired that ask for a scan */
    struct hf_atomic_u64 segments;      /* (a) */
};

/* Segments: from the spares or the allocator, and back. */

static size_t segment_bytes(const struct hf_queue *queue)
{
    size_t bytes = sizeof(struct segment) + queue->slots * sizeof(void *);

    return (bytes + HF_CACHE_LINE - 1) & ~(size_t)(HF_CACHE_LINE - 1);
}

/* All zero. */
static struct segment *segment_new(struct hf_queue *queue)
{
    struct segment *segment = NULL;

    for (int i = 0; i < SPARES && segment == NULL; i++) {
        /* Relaxed: only a look. Acquire: it was emptied before. */
        if (hf_ptr_load(&queue->spares[i], __ATOMIC_RELAXED) != NULL)
            segment = hf_ptr_swap(&queue->spares[i], NULL, __ATOMIC_ACQUIRE);
    }
    if (segment != NULL)
        return segment;
    segment = hf_alloc_lines(segment_bytes(queue));
    if (segment == NULL)
        return NULL;
    hf_u64_add(&queue->segments, 1, __ATOMIC_RELAXED); /* a figure */
    return segment;
}

/* Emptied here and not when it is used again: whoever were to look at it still,
 * by a mistake, would put items where they are lost, and tests would tell. */
static void segment_free(struct hf_queue *queue, struct segment *segment)
{
    memset(segment, 0, segment_bytes(queue));
    for (int i = 0; i < SPARES; i++) {
        void *none = NULL;
        /* Relaxed: only a look. Release: the zeroes. */
        if (hf_ptr_load(&queue->spares[i], __ATOMIC_RELAXED) == NULL &&
            hf_ptr_cas(&queue->spares[i], &none, segment, __ATOMIC_RELEASE))
            return;
    }
    hf_u64_sub(&queue->segments, 1, __ATOMIC_RELAXED); /* a figure */
    hf_free(segment);
}

/* Announcements. */

/* This thread's; NULL at its first call. */
static inline struct announcer *announcer_find(const struct hf_queue *queue)
{
    return hf_locals_find(&queue->announcers, hf_thread_slot(),
                          sizeof(struct announcer));
}

/* This thread's; NULL without memory. */
static struct announcer *announcer_of(struct hf_queue *queue)
{
    return hf_locals_mine(&queue->announcers, sizeof(struct announcer));
}

static struct segment *announce(struct hf_atomic_ptr *mine,
                                const struct hf_atomic_ptr *link)
{
    void *segment = hf_ptr_load(link, __ATOMIC_ACQUIRE);
    void *announced;

    do { /* seq_cst: see the top. What was announced before is let go. */
        announced = segment;
        hf_ptr_store(mine, announced, __ATOMIC_SEQ_CST);
        segment = hf_ptr_load(link, __ATOMIC_SEQ_CST);
    } while (segment != announced);
    return segment;
}

/* The segment that `link` leads to, if `mine` announces it already. */
static inline struct segment *
protected_already(const struct hf_atomic_ptr *mine,
                  const struct hf_atomic_ptr *link)
{
    /* Acquire: the segment was made ready before it was linked. Relaxed: only
     * this thread writes it. Equal: it has been linked ever since it was
     * announced, for no segment returns while it is. */
    void *segment = hf_ptr_load(link, __ATOMIC_ACQUIRE);

    return segment == hf_ptr_load(mine, __ATOMIC_RELAXED) ? segment : NULL;
}

/* The segment that `link` leads to, safe from being freed until `mine`
 * announces another. */
static struct segment *protect(struct hf_atomic_ptr *mine,
                               const struct hf_atomic_ptr *link)
{
    struct segment *segment = protected_already(mine, link);

    return segment != NULL ? segment : announce(mine, link);
}

static bool is_announced(const struct hf_queue *queue, const void *segment)
{
    const struct announcer *at;
    uint32_t slot = 0;

    while ((at = hf_locals_next(&queue->announcers, &slot)) != NULL) {
        /* seq_cst: see the top. */
        if (hf_ptr_load(&at->put, __ATOMIC_SEQ_CST) == segment ||
            hf_ptr_load(&at->take, __ATOMIC_SEQ_CST) == segment)
            return true;
    }
    return false;
}

static void retired_push(struct hf_queue *queue, struct segment *segment)
{
    void *first = hf_ptr_load(&queue->retired, __ATOMIC_RELAXED);

    do { /* Release: `retired`, for whoever takes the list. It is only ever
          * taken whole, so that it cannot change unseen. */
        segment->retired = first;
    } while (!hf_ptr_cas(&queue->retired, &first, segment, __ATOMIC_RELEASE));
}

/* Frees what nobody announces. What stays makes the next scan come later in
 * proportion, so that sleeping threads do not cost a walk each time. */
static void scan(struct hf_queue *queue)
{
    uint64_t kept = 0;
    uint64_t freed = 0;
    /* Acquire: the segments in the list were unlinked before. */
    struct segment *list = hf_ptr_swap(&queue->retired, NULL, __ATOMIC_ACQUIRE);

    while (list != NULL) {
        struct segment *segment = list;
        list = segment->retired;
        if (is_announced(queue, segment)) {
            retired_push(queue, segment);
            kept++;
        } else {
            segment_free(queue, segment);
            freed++;
        }
    }
    /* Relaxed: figures. */
    hf_u64_sub(&queue->retired_count, freed, __ATOMIC_RELAXED);
    hf_u64_store(&queue->scan_at, 2 * kept, __ATOMIC_RELAXED);
}

/* The segment is empty and another follows: it is taken out. False: none
 * follows, so that the queue is empty. */
static bool pass_on(struct hf_queue *queue, struct announcer *mine,
                    struct segment *segment)
{
    /* Acquire: to hand it on as ready. */
    void *next = hf_ptr_load(&segment->next, __ATOMIC_ACQUIRE);
    void *tail = segment;
    void *head = segment;

    if (next == NULL)
        return false;
    /* The tail goes first: it must not lead to what is freed. It cannot come
     * back, since no segment returns while it is announced. */
    hf_ptr_cas(&queue->tail, &tail, next, __ATOMIC_SEQ_CST);
    if (!hf_ptr_cas(&queue->head, &head, next, __ATOMIC_SEQ_CST))
        return true;
    /* This thread has done with it, in both its roles. Relaxed: who frees it
     * has it from the list, and retired_push() releases. */
    hf_ptr_store(&mine->take, NULL, __ATOMIC_RELAXED);
    if (hf_ptr_load(&mine->put, __ATOMIC_RELAXED) == segment)
        hf_ptr_store(&mine->put, NULL, __ATOMIC_RELAXED);
    retired_push(queue, segment);
    /* Relaxed: figures; a scan more or less does no harm. */
    if (hf_u64_add(&queue->retired_count, 1, __ATOMIC_RELAXED) >=
        hf_u64_load(&queue->scan_at, __ATOMIC_RELAXED))
        scan(queue);
    return true;
}

static void let_others(void)
{
    for (int i = 0; i < LOST_PAUSES; i++)
        hf_thread_pause();
}

/* The segment is full: links one that holds the item. HF_PENDING: another was
 * linked first. */
static enum hf_status append(struct hf_queue *queue, struct segment *segment,
                             void *item)
{
    enum hf_status status = HF_PENDING;
    void *tail = segment;
    /* Acquire: to hand it on as ready. */
    void *next = hf_ptr_load(&segment->next, __ATOMIC_ACQUIRE);

    if (next == NULL) {
        struct segment *fresh = segment_new(queue);
        if (fresh == NULL)
            return HF_NOMEM;
        fresh->number = segment->number + 1;
        /* Relaxed: nobody sees it yet. */
        hf_ptr_store(&fresh->slots[0], item, __ATOMIC_RELAXED);
        hf_u64_store(&fresh->put_at, 1, __ATOMIC_RELAXED);
        /* Release: all of the segment and what the item leads to. */
        if (hf_ptr_cas(&segment->next, &next, fresh, __ATOMIC_ACQ_REL)) {
            next = fresh;
            status = HF_OK;
        } else {
            segment_free(queue, fresh);
        }
    }
    hf_ptr_cas(&queue->tail, &tail, next, __ATOMIC_SEQ_CST);
    return status;
}

/* Puts the item into slot `i`, if that is still free. */
static inline bool put_into(struct segment *segment, uint64_t i, void *item)
{
    /* Relaxed: a look that spares a swap. */
    void *found = hf_ptr_load(&segment->slots[i], __ATOMIC_RELAXED);

    /* Release: what the item leads to. seq_cst, here and in take_from(): two
     * queues' "empty" answers must fit into one order as well. */
    if (found != NULL ||
        !hf_ptr_cas(&segment->slots[i], &found, item, __ATOMIC_SEQ_CST))
        return false;
    /* Release: whoever begins there knows that the slots before were used. */
    hf_u64_store(&segment->put_at, i + 1, __ATOMIC_RELEASE);
    return true;
}

static __attribute__((noinline)) enum hf_status put_slow(struct hf_queue *queue,
                                                         void *item, bool lost)
{
    struct announcer *mine = announcer_of(queue);

    if (mine == NULL)
        return HF_NOMEM;
    if (lost)
        let_others();
    for (;;) {
        struct segment *segment = protect(&mine->put, &queue->tail);
        /* Acquire: see put_into(). */
        uint64_t i = hf_u64_load(&segment->put_at, __ATOMIC_ACQUIRE);
        for (; i < queue->slots; i++) {
            if (put_into(segment, i, item))
                return HF_OK;
        }
        enum hf_status status = append(queue, segment, item);
        if (status != HF_PENDING)
            return status;
    }
}

/* The common case is here: the segment is announced, the slot is free. */
enum hf_status hf_queue_put(struct hf_queue *queue, void *item)
{
    if (queue == NULL || item == NULL)
        return HF_INVALID;
    struct announcer *mine = announcer_find(queue);
    struct segment *segment =
        mine == NULL ? NULL : protected_already(&mine->put, &queue->tail);
    if (segment == NULL)
        return put_slow(queue, item, false);
    /* Acquire: see put_into(). */
    uint64_t i = hf_u64_load(&segment->put_at, __ATOMIC_ACQUIRE);
    if (i < queue->slots && put_into(segment, i, item))
        return HF_OK;
    return put_slow(queue, item, i < queue->slots);
}

/* Takes what is in slot `i`: HF_PENDING if that is another's, HF_EMPTY if
 * nothing is in it. Then the queue is empty: all before are taken, and no slot
 * is used before those that come before it. */
static inline enum hf_status take_from(struct segment *segment, uint64_t i,
                                       void **item)
{
    /* Acquire: what the item leads to. */
    void *found = hf_ptr_load(&segment->slots[i], __ATOMIC_SEQ_CST);

    if (found == NULL)
        return HF_EMPTY;
    if (found == TAKEN ||
        !hf_ptr_cas(&segment->slots[i], &found, TAKEN, __ATOMIC_SEQ_CST))
        return HF_PENDING;
    /* Release: whoever begins there knows that the slots before were taken. */
    hf_u64_store(&segment->take_at, i + 1, __ATOMIC_RELEASE);
    *item = found;
    return HF_OK;
}

static __attribute__((noinline)) enum hf_status
take_slow(struct hf_queue *queue, void **item, bool lost)
{
    struct announcer *mine = announcer_of(queue);

    if (mine == NULL)
        return HF_NOMEM;
    if (lost)
        let_others();
    for (;;) {
        struct segment *segment = protect(&mine->take, &queue->head);
        /* Acquire: see take_from(). */
        uint64_t i = hf_u64_load(&segment->take_at, __ATOMIC_ACQUIRE);
        for (; i < queue->slots; i++) {
            enum hf_status status = take_from(segment, i, item);
            if (status != HF_PENDING)
                return status;
        }
        if (!pass_on(queue, mine, segment))
            return HF_EMPTY;
    }
}

/* The common case is here: the segment is announced, the slot is nobody's. */
enum hf_status hf_queue_take(struct hf_queue *queue, void **item)
{
    if (queue == NULL || item == NULL)
        return HF_INVALID;
    struct announcer *mine = announcer_find(queue);
    struct segment *segment =
        mine == NULL ? NULL : protected_already(&mine->take, &queue->head);
    if (segment == NULL)
        return take_slow(queue, item, false);
    /* Acquire: see take_from(). */
    uint64_t i = hf_u64_load(&segment->take_at, __ATOMIC_ACQUIRE);
    if (i < queue->slots) {
        enum hf_status status = take_from(segment, i, item);
        if (status != HF_PENDING)
            return status;
    }
    return take_slow(queue, item, i < queue->slots);
}

/* How many slots of all segments have been taken, or used. The marks may lag
 * behind, by a few slots as a rule. */
static uint64_t position(const struct hf_queue *queue, struct segment *segment,
                         bool takes)
{
    /* Acquire, relaxed: as in put and take. */
    uint64_t i = hf_u64_load(takes ? &segment->take_at : &segment->put_at,
                             __ATOMIC_ACQUIRE);

    for (; i < queue->slots; i++) {
        void *found = hf_ptr_load(&segment->slots[i], __ATOMIC_RELAXED);
        if (takes ? found != TAKEN : found == NULL)
            break;
    }
    return segment->number * queue->slots + i;
}

uint64_t hf_queue_size(struct hf_queue *queue)
{
    struct announcer *mine = queue == NULL ? NULL : announcer_of(queue);

    if (mine == NULL)
        return 0;
    /* What is taken first: so the difference is never below zero. */
    uint64_t taken = position(queue, protect(&mine->take, &queue->head), true);
    uint64_t put = position(queue, protect(&mine->put, &queue->tail), false);
    assert(put >= taken);
    return put - taken;
}

void hf_queue_stats(struct hf_queue *queue, struct hf_queue_stats *out)
{
    if (out == NULL)
        return;
    *out = (struct hf_queue_stats){0};
    if (queue == NULL)
        return;
    out->size = hf_queue_size(queue);
    /* Relaxed: figures, each for itself. */
    out->segments = hf_u64_load(&queue->segments, __ATOMIC_RELAXED);
    out->retired = hf_u64_load(&queue->retired_count, __ATOMIC_RELAXED);
    for (int i = 0; i < SPARES; i++)
        out->spare += hf_ptr_load(&queue->spares[i], __ATOMIC_RELAXED) != NULL;
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    /* `listed` is the first member of the queue, which is no constant. */
    row->depth = hf_queue_size((struct hf_queue *)(uintptr_t)listed);
}

enum hf_status hf_queue_open(struct hf_queue **out,
                             const struct hf_queue_opts *opts)
{
    uint32_t slots =
        opts == NULL || opts->segment == 0 ? HF_QUEUE_SEGMENT : opts->segment;

    if (out == NULL || slots < 2 || slots > HF_QUEUE_SEGMENT_MAX ||
        (slots & (slots - 1)) != 0)
        return HF_INVALID;
    struct hf_queue *queue = hf_alloc_lines(sizeof *queue);
    if (queue == NULL)
        return HF_NOMEM;
    queue->slots = slots;
    struct segment *first = segment_new(queue);
    if (first == NULL ||
        hf_locals_init(&queue->announcers, sizeof(struct announcer))) {
        hf_free(first);
        hf_free(queue);
        return HF_NOMEM;
    }
    hf_ptr_store(&queue->head, first, __ATOMIC_RELAXED); /* nobody sees it */
    hf_ptr_store(&queue->tail, first, __ATOMIC_RELAXED);
    hf_listed_add(&queue->listed, "queue", opts ? opts->name : NULL, fill);
    *out = queue;
    return HF_OK;
}

void hf_queue_close(struct hf_queue *queue)
{
    if (queue == NULL)
        return;
    hf_listed_remove(&queue->listed);
    /* Nobody is inside; acquire: what those who were wrote. */
    struct segment *at = hf_ptr_load(&queue->head, __ATOMIC_ACQUIRE);
    while (at != NULL) {
        struct segment *next = hf_ptr_load(&at->next, __ATOMIC_ACQUIRE);
        hf_free(at);
        at = next;
    }
    at = hf_ptr_load(&queue->retired, __ATOMIC_ACQUIRE);
    while (at != NULL) {
        struct segment *next = at->retired;
        hf_free(at);
        at = next;
    }
    for (int i = 0; i < SPARES; i++)
        hf_free(hf_ptr_load(&queue->spares[i], __ATOMIC_ACQUIRE));
    hf_locals_destroy(&queue->announcers);
    hf_free(queue);
}
