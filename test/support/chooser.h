/* chooser.h - whose turn it is: three manners, of which the seed picks one.
 *
 *   evenly        at each step any fiber, all alike
 *   sticky        seven times of eight the one that ran
 *   by priority   always the highest that can run; at one to three steps picked
 *                 beforehand the running one becomes the lowest. A bug that
 *                 needs so few switches is found with a fair chance however
 *                 long the schedule is.
 *
 * Nobody starves the others: not one that yields, and not one that looks at a
 * word for ever. schedule.c alone uses this; its slots are bits of a mask.
 */
#ifndef TEST_SUPPORT_CHOOSER_H
#define TEST_SUPPORT_CHOOSER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/random.h"

#define CHOOSER_SLOTS_MAX  32
#define CHOOSER_POINTS_MAX 3
#define CHOOSER_STREAK_MAX 500 /* steps on end while others could run */

struct chooser {
    enum { CHOOSE_EVENLY, CHOOSE_STICKY, CHOOSE_BY_PRIORITY } manner;
    unsigned streak;
    uint32_t streak_of;
    int64_t lowest;
    uint64_t points[CHOOSER_POINTS_MAX]; /* steps; 0: none */
    int64_t priority[CHOOSER_SLOTS_MAX];
};

static inline void chooser_init(struct chooser *chooser,
                                struct hf_random *random, unsigned slots)
{
    static const unsigned manners[3] = {CHOOSE_EVENLY, CHOOSE_STICKY,
                                        CHOOSE_BY_PRIORITY};

    memset(chooser, 0, sizeof *chooser);
    chooser->manner = manners[hf_random_below(random, 3)];
    if (chooser->manner != CHOOSE_BY_PRIORITY)
        return;
    /* How long the schedule will be is not known: any size may be right. */
    uint64_t span = UINT64_C(8) << hf_random_below(random, 8);
    uint64_t points = 1 + hf_random_below(random, CHOOSER_POINTS_MAX);
    for (uint64_t i = 0; i < points; i++)
        chooser->points[i] = 1 + hf_random_below(random, span);
    for (unsigned slot = 0; slot < slots; slot++)
        chooser->priority[slot] = (int64_t)(hf_random_next(random) >> 8);
}

/* One of the bits of `from`; the draw has 32 bits. */
static inline uint32_t chooser_pick(uint32_t from, uint64_t draw)
{
    uint64_t skip = draw * (uint64_t)__builtin_popcount(from) >> 32;

    while (skip-- > 0)
        from &= from - 1;
    return (uint32_t)__builtin_ctz(from);
}

static inline uint32_t chooser_highest(const struct chooser *chooser,
                                       uint32_t from)
{
    uint32_t best = (uint32_t)__builtin_ctz(from);

    for (; from != 0; from &= from - 1) {
        uint32_t slot = (uint32_t)__builtin_ctz(from);
        if (chooser->priority[slot] > chooser->priority[best])
            best = slot;
    }
    return best;
}

/* Who of `ready`, which is not empty, goes on after `running` at this step;
 * `draw` is random. */
static inline uint32_t chooser_next(struct chooser *chooser, uint32_t ready,
                                    uint32_t running, uint64_t step,
                                    uint64_t draw, bool yielding)
{
    uint32_t mine = UINT32_C(1) << running;
    uint32_t from = ready;

    chooser->streak = chooser->streak_of == running ? chooser->streak + 1 : 0;
    chooser->streak_of = running;
    bool demoted = yielding || chooser->streak > CHOOSER_STREAK_MAX;
    if (demoted && (from & ~mine) != 0)
        from &= ~mine;
    if (chooser->manner == CHOOSE_BY_PRIORITY) {
        for (int i = 0; i < CHOOSER_POINTS_MAX; i++)
            demoted |= chooser->points[i] == step;
        if (demoted)
            chooser->priority[running] = --chooser->lowest;
        return chooser_highest(chooser, from);
    }
    if (chooser->manner == CHOOSE_STICKY && (from & mine) != 0 &&
        (draw & 7) != 0)
        return running;
    return chooser_pick(from, draw >> 32);
}

#endif
