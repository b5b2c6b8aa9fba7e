/* deque.c - the deque of Chase and Lev, with orders instead of fences.
 *
 * `bottom` is the owner's, `top` goes up by compare-and-swap. Both count for
 * ever, 64 bits wide, so that no number comes twice; a slot is found by the
 * number's lowest bits. Items are those from top up to bottom.
 *
 * The heart is pop against steal. The owner lowers bottom, then reads top; a
 * thief reads top, then bottom, then raises top. The owner's store and load,
 * the thief's loads and its swap are SEQ_CST: in one order of all, either the
 * thief sees that bottom was lowered, or the owner sees the top from which the
 * thief started or a later one. If the two then mean the same item, it is the
 * last one, and the owner too must raise top to have it. So no item goes twice.
 * If the owner knows beforehand that there is one item at most, raising top is
 * all that it does.
 *
 * The answer "empty" is right at one instant. To the owner, when it finds that
 * all is gone: nobody else pushes. To a thief, when it reads a bottom that is
 * not above top: then either nothing was there, or the owner is about to take
 * the last item or to lose it to a thief who has begun already.
 *
 * A thief may read a slot of an old array, or one that the owner is writing
 * anew: then top has moved on, and its swap fails.
 */
#include "holdfast/deque.h"

#include <assert.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"
#include "sync/listed.h"

struct array {
    uint64_t mask;                /* (i) slots - 1 */
    struct array *before;         /* (i) the one that was too small */
    struct hf_atomic_ptr slots[]; /* (a) */
};

struct hf_deque { /* (o) the owner's */
    struct hf_listed listed;
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 bottom; /* (a) owner writes */
    struct hf_atomic_ptr array; /* (a) owner writes; never NULL */
    uint64_t seen_top;          /* (o) top is this or higher */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 top; /* (a) */
};

static struct array *array_new(uint64_t slots, struct array *before)
{
    struct array *array =
        hf_alloc(sizeof *array + (size_t)slots * sizeof array->slots[0]);

    if (array == NULL)
        return NULL;
    array->mask = slots - 1;
    array->before = before;
    return array;
}

static inline struct hf_atomic_ptr *slot_of(struct array *array, uint64_t i)
{
    return &array->slots[i & array->mask];
}

/* Twice the room; the old array stays as it is, for thieves who look at it. */
static __attribute__((noinline)) struct array *
grow(struct hf_deque *deque, struct array *old, uint64_t bottom)
{
    uint64_t slots = 2 * (old->mask + 1);

    if (slots > HF_DEQUE_CAPACITY_MAX)
        return NULL;
    struct array *array = array_new(slots, old);
    if (array == NULL)
        return NULL;
    for (uint64_t i = deque->seen_top; i != bottom; i++) {
        /* Relaxed: the owner's own, and published below. */
        void *item = hf_ptr_load(slot_of(old, i), __ATOMIC_RELAXED);
        hf_ptr_store(slot_of(array, i), item, __ATOMIC_RELAXED);
    }
    /* Release: the slots. */
    hf_ptr_store(&deque->array, array, __ATOMIC_RELEASE);
    return array;
}

enum hf_status hf_deque_push(struct hf_deque *deque, void *item)
{
    if (deque == NULL || item == NULL)
        return HF_INVALID;
    /* Relaxed: only the owner writes them. */
    uint64_t bottom = hf_u64_load(&deque->bottom, __ATOMIC_RELAXED);
    struct array *array = hf_ptr_load(&deque->array, __ATOMIC_RELAXED);

    if (__builtin_expect(bottom - deque->seen_top > array->mask, 0)) {
        /* Acquire: thieves have read the slots that are used anew. */
        deque->seen_top = hf_u64_load(&deque->top, __ATOMIC_ACQUIRE);
        if (bottom - deque->seen_top > array->mask) {
            array = grow(deque, array, bottom);
            if (array == NULL)
                return HF_NOMEM;
        }
    }
    hf_ptr_store(slot_of(array, bottom), item, __ATOMIC_RELAXED);
    /* Release: the slot, the array and what the item leads to. */
    hf_u64_store(&deque->bottom, bottom + 1, __ATOMIC_RELEASE);
    return HF_OK;
}

/* The item at `last` is the only one, or gone: the owner races for it as
 * thieves do. Either way it is gone after. */
static inline bool race(struct hf_deque *deque, uint64_t last)
{
    uint64_t top = last;

    deque->seen_top = last + 1;
    /* seq_cst: in the one order with the thieves'. */
    return hf_u64_cas(&deque->top, &top, last + 1, __ATOMIC_SEQ_CST);
}

enum hf_status hf_deque_pop(struct hf_deque *deque, void **item)
{
    if (deque == NULL || item == NULL)
        return HF_INVALID;
    /* Relaxed: only the owner writes them. */
    uint64_t bottom = hf_u64_load(&deque->bottom, __ATOMIC_RELAXED);
    struct array *array = hf_ptr_load(&deque->array, __ATOMIC_RELAXED);
    uint64_t last = bottom - 1;
    bool won = true;

    if (bottom == deque->seen_top) /* top is not above bottom: all is gone */
        return HF_EMPTY;
    /* Relaxed: the owner wrote it. */
    void *found = hf_ptr_load(slot_of(array, last), __ATOMIC_RELAXED);
    if (last == deque->seen_top) {
        won = race(deque, last); /* it need not be kept from thieves first */
    } else {
        /* seq_cst: lowered before top is read; see the top of this file. */
        hf_u64_store(&deque->bottom, last, __ATOMIC_SEQ_CST);
        uint64_t top = hf_u64_load(&deque->top, __ATOMIC_SEQ_CST);
        assert(top <= bottom);
        deque->seen_top = top;
        if (top >= last) {
            won = top == last && race(deque, last);
            /* Empty: bottom is where top is. Release: as in push. */
            hf_u64_store(&deque->bottom, bottom, __ATOMIC_RELEASE);
        }
    }
    if (!won)
        return HF_EMPTY;
    *item = found;
    return HF_OK;
}

enum hf_status hf_deque_steal(struct hf_deque *deque, void **item)
{
    if (deque == NULL || item == NULL)
        return HF_INVALID;
    for (;;) {
        /* seq_cst: top before bottom; see the top of this file. Bottom also
         * acquires what push released. */
        uint64_t top = hf_u64_load(&deque->top, __ATOMIC_SEQ_CST);
        uint64_t bottom = hf_u64_load(&deque->bottom, __ATOMIC_SEQ_CST);
        if (top >= bottom)
            return HF_EMPTY;
        /* Acquire: its slots. It is the array in which the item was pushed or
         * a later one. */
        struct array *array = hf_ptr_load(&deque->array, __ATOMIC_ACQUIRE);
        /* Relaxed: if it is written meanwhile, the swap fails. */
        void *found = hf_ptr_load(slot_of(array, top), __ATOMIC_RELAXED);
        /* seq_cst: in the one order with the owner's. */
        if (hf_u64_cas(&deque->top, &top, top + 1, __ATOMIC_SEQ_CST)) {
            *item = found;
            return HF_OK;
        }
        hf_thread_pause(); /* another had it */
    }
}

uint64_t hf_deque_size(const struct hf_deque *deque)
{
    if (deque == NULL)
        return 0;
    /* Acquire: top first, so that a push is not missed that came before a
     * steal that was seen. Bottom may be lower for the moment of a pop. */
    uint64_t top = hf_u64_load(&deque->top, __ATOMIC_ACQUIRE);
    uint64_t bottom = hf_u64_load(&deque->bottom, __ATOMIC_ACQUIRE);
    return bottom > top ? bottom - top : 0;
}

void hf_deque_stats(const struct hf_deque *deque, struct hf_deque_stats *out)
{
    if (out == NULL)
        return;
    *out = (struct hf_deque_stats){0};
    if (deque == NULL)
        return;
    /* Acquire: arrays stay until close, and so does what leads to them. */
    struct array *array = hf_ptr_load(&deque->array, __ATOMIC_ACQUIRE);
    out->size = hf_deque_size(deque);
    out->capacity = array->mask + 1;
    while ((array = array->before) != NULL)
        out->grown++;
    /* Relaxed: a figure. */
    out->taken = hf_u64_load(&deque->top, __ATOMIC_RELAXED);
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    /* `listed` is the first member. */
    row->depth = hf_deque_size((const struct hf_deque *)(const void *)listed);
}

enum hf_status hf_deque_open(struct hf_deque **out,
                             const struct hf_deque_opts *opts)
{
    uint64_t least = opts == NULL || opts->capacity == 0 ? HF_DEQUE_CAPACITY
                                                         : opts->capacity;
    uint64_t slots = 1;

    if (out == NULL || least > HF_DEQUE_CAPACITY_MAX)
        return HF_INVALID;
    while (slots < least)
        slots *= 2;
    struct hf_deque *deque = hf_alloc_lines(sizeof *deque);
    if (deque == NULL)
        return HF_NOMEM;
    struct array *array = array_new(slots, NULL);
    if (array == NULL) {
        hf_free(deque);
        return HF_NOMEM;
    }
    hf_ptr_store(&deque->array, array, __ATOMIC_RELAXED); /* nobody sees it */
    hf_listed_add(&deque->listed, "deque", opts ? opts->name : NULL, fill);
    *out = deque;
    return HF_OK;
}

void hf_deque_close(struct hf_deque *deque)
{
    if (deque == NULL)
        return;
    hf_listed_remove(&deque->listed);
    /* Nobody is inside; acquire: what the owner wrote. */
    struct array *array = hf_ptr_load(&deque->array, __ATOMIC_ACQUIRE);
    while (array != NULL) {
        struct array *before = array->before;
        hf_free(array);
        array = before;
    }
    hf_free(deque);
}
