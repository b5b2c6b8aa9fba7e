/* sleepers.h - who sleeps on which word, and until when.
 *
 * schedule.c alone uses it. Fibers are slots; sets of them are bits of a mask.
 */
#ifndef TEST_SUPPORT_SLEEPERS_H
#define TEST_SUPPORT_SLEEPERS_H

#include <stdint.h>

#include "holdfast/clock.h"

#define SLEEPERS_MAX 32

struct sleeper {
    const uint32_t *word;
    uint32_t expected;    /* what the word was */
    uint64_t deadline_ns; /* HF_FOREVER: only another can wake it */
    uint64_t stir_ns;     /* when it wakes for no reason */
    uint64_t since_step;
};

struct sleepers {
    uint32_t asleep; /* the others' entries below mean nothing */
    uint64_t due_ns; /* nobody is due before */
    struct sleeper by_slot[SLEEPERS_MAX];
};

static inline void sleepers_init(struct sleepers *sleepers)
{
    sleepers->asleep = 0;
    sleepers->due_ns = HF_FOREVER;
}

/* Puts `slot` to sleep; the caller fills in the rest of what it gets. */
static inline struct sleeper *sleepers_add(struct sleepers *sleepers,
                                           uint32_t slot)
{
    sleepers->asleep |= UINT32_C(1) << slot;
    sleepers->due_ns = 0; /* to be found anew by the next sleepers_due */
    return &sleepers->by_slot[slot];
}

static inline uint32_t sleepers_on(const struct sleepers *sleepers,
                                   const uint32_t *word)
{
    uint32_t found = 0;

    for (uint32_t left = sleepers->asleep; left != 0; left &= left - 1)
        if (sleepers->by_slot[__builtin_ctz(left)].word == word)
            found |= left & -left;
    return found;
}

/* The first deadline; HF_FOREVER if there is none. */
static inline uint64_t sleepers_deadline(const struct sleepers *sleepers)
{
    uint64_t first_ns = HF_FOREVER;

    for (uint32_t left = sleepers->asleep; left != 0; left &= left - 1) {
        uint64_t deadline_ns =
            sleepers->by_slot[__builtin_ctz(left)].deadline_ns;
        if (deadline_ns < first_ns)
            first_ns = deadline_ns;
    }
    return first_ns;
}

/* Those whose time has come. */
static inline uint32_t sleepers_due(struct sleepers *sleepers, uint64_t now_ns)
{
    uint32_t due = 0;

    if (now_ns < sleepers->due_ns)
        return 0;
    sleepers->due_ns = HF_FOREVER;
    for (uint32_t left = sleepers->asleep; left != 0; left &= left - 1) {
        const struct sleeper *s = &sleepers->by_slot[__builtin_ctz(left)];
        uint64_t due_ns =
            s->deadline_ns < s->stir_ns ? s->deadline_ns : s->stir_ns;
        if (due_ns <= now_ns)
            due |= left & -left;
        else if (due_ns < sleepers->due_ns)
            sleepers->due_ns = due_ns;
    }
    return due;
}

#endif
