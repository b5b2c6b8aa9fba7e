/* circle.h - threads that wait for what others make, but not in a circle.
 *
 * A thread that waits is in a list, with the thing that it waits for. Before
 * one waits, it follows: who makes this, what does that one wait for, who makes
 * that ... If it leads back, all of them would wait for ever, and this one is
 * refused.
 *
 * Threads: any.
 * Memory:  zeros are an empty list; a wait is on the stack of who waits.
 */
#ifndef SYNC_CIRCLE_H
#define SYNC_CIRCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "sync/mutex.h"

struct hf_circle {
    struct hf_mutex mutex;
    struct circle_wait *waits; /* under mutex */
};

struct circle_wait {
    struct circle_wait *next;
    uint32_t slot;
    const void *thing;
};

#define CIRCLE_NOBODY UINT32_MAX

/* Lists this thread as one who waits for `thing`. False: it would wait for
 * itself. `maker` tells the slot of the thread that makes a thing. */
bool hf_circle_enter(struct hf_circle *circle, struct circle_wait *self,
                     uint32_t (*maker)(void *context, const void *thing),
                     void *context, const void *thing);
/* It waits no more. */
void hf_circle_leave(struct hf_circle *circle, struct circle_wait *self);

#endif
