/* story.h - what happened to one product or one reservation, as lines. */
#ifndef CLI_STORY_H
#define CLI_STORY_H

#include "cli/proof.h"
#include "feed/event.h"

struct story {
    struct event_about about;
    bool json;
    uint64_t count; /* lines so far */
};

/* Prints the event if it is about that; `context` is a struct story. With a
 * book the numbers of the product after it follow. */
proof_watch_fn story_event;

#endif
