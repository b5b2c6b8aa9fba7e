/* bell.c - the waiting side of a bell. */
#include "sync/bell.h"

static enum hf_status look(void *context)
{
    const struct hf_event *bell = context;

    return hf_bell_rung(bell) ? HF_OK : HF_PENDING;
}

enum hf_status hf_bell_wait(struct hf_event *bell, const struct hf_clock *clock,
                            uint64_t deadline_ns)
{
    return hf_event_until(bell, look, bell, clock, deadline_ns);
}
