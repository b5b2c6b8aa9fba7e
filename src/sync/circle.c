/* circle.c - who would wait for itself. */
#include "sync/circle.h"

#include <stddef.h>

#include "base/thread.h"

bool hf_circle_enter(struct hf_circle *circle, struct circle_wait *self,
                     uint32_t (*maker)(void *context, const void *thing),
                     void *context, const void *thing)
{
    const struct circle_wait *wait = self;
    uint32_t slot = CIRCLE_NOBODY;

    *self = (struct circle_wait){.slot = hf_thread_slot(), .thing = thing};
    hf_mutex_lock(&circle->mutex);
    while (wait != NULL && slot != self->slot) {
        slot = maker(context, wait->thing);
        for (wait = circle->waits; wait != NULL && wait->slot != slot;)
            wait = wait->next;
    }
    if (slot != self->slot) {
        self->next = circle->waits;
        circle->waits = self;
    }
    hf_mutex_unlock(&circle->mutex);
    return slot != self->slot;
}

void hf_circle_leave(struct hf_circle *circle, struct circle_wait *self)
{
    struct circle_wait **link = &circle->waits;

    hf_mutex_lock(&circle->mutex);
    while (*link != self)
        link = &(*link)->next;
    *link = self->next;
    hf_mutex_unlock(&circle->mutex);
}
