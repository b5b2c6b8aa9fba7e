/* event.h - an event as bytes, and the channels that it names.
 *
 *    0  4  length of the whole            32  8  token
 *    4  1  kind       5  1  mode          40  8  age, microseconds
 *    6  2  length of the name             48  8  total
 *    8  2  of the owner                   56  8  available
 *   10  2  of the note                    64     name, owner, note, items,
 *                                               group
 *   12  4  of the items
 *   16  8  number    24  8  time, microseconds
 *
 * A reservation has no total: there it is the length of the group's name.
 *
 * Numbers are little endian. The texts of an event that is encoded follow each
 * other in memory already (engine.h). A change is one event, however many
 * channels it names: a reservation of three products names four.
 *
 *   of a lock         hf:lock:NAME, and hf:election:NAME if it is exclusive, or
 *                     was it until now
 *   of a reservation  hf:reservation:ID, and hf:stock:SKU for each product
 *   of a product      hf:stock:SKU
 *   of a session      hf:session:ID
 *   of a fence        hf:fence:RESOURCE
 *   of all            hf:all
 *
 * Threads: pure functions.
 */
#ifndef FEED_EVENT_H
#define FEED_EVENT_H

#include "base/little.h"
#include "hold/engine.h"

#define EVENT_HEAD_BYTES 64u
/* The longest: with the items of a reservation. */
#define EVENT_BYTES_MAX                                                    \
    (EVENT_HEAD_BYTES + HOLD_NAME_MAX + HOLD_OWNER_MAX + HOLD_REASON_MAX + \
     HOLD_ID_MAX + HOLD_ITEMS_MAX * (2 + HOLD_SKU_MAX + 8))

/* The longest name of a channel. */
#define EVENT_CHANNEL_MAX    (16u + HOLD_NAME_MAX)
#define EVENT_CHANNEL_PREFIX "hf:"

static inline size_t event_bytes(const struct hold_event *event)
{
    return EVENT_HEAD_BYTES + event->name.len + event->owner.len +
           event->note.len + event->items.len + event->group.len;
}

/* Writes all but its texts; `len` is that of the whole. */
static inline void event_encode_head(const struct hold_event *event, size_t len,
                                     uint64_t now_us, char *out)
{
    /* Two words of lengths, then the numbers: see event.h. */
    hf_put_u64(out, len | (uint64_t)event->kind << 32 |
                        (uint64_t)event->mode << 40 |
                        (uint64_t)event->name.len << 48);
    hf_put_u64(out + 8, event->owner.len | (uint64_t)event->note.len << 16 |
                            (uint64_t)event->items.len << 32);
    hf_put_u64(out + 16, event->seq);
    hf_put_u64(out + 24, now_us);
    hf_put_u64(out + 32, event->token);
    hf_put_u64(out + 40, event->age_us);
    hf_put_u64(out + 48, event->total + event->group.len); /* one is 0 */
    hf_put_u64(out + 56, event->available);
}

/* Writes it; returns its length. */
static inline size_t event_encode(const struct hold_event *event,
                                  uint64_t now_us, char *out)
{
    size_t len = event_bytes(event);

    event_encode_head(event, len, now_us, out);
    memcpy(out + EVENT_HEAD_BYTES, event->name.data, len - EVENT_HEAD_BYTES);
    return len;
}

/* The event at the start of `bytes`, which it borrows; returns its length, or 0
 * if it is none. */
size_t event_decode(struct hf_bytes bytes, struct hold_event *out,
                    uint64_t *now_us);
static inline uint64_t event_seq(const char *bytes)
{
    return hf_get_u64(bytes + 16);
}

/* The channels of an event, one after the other. */
struct event_channels {
    const struct hold_event *event;
    uint32_t next; /* 0: from the first */
    size_t item;   /* where the next item is */
};
/* The next, written to `out`; an empty one at the end. */
struct hf_bytes event_channel(struct event_channels *channels,
                              char out[EVENT_CHANNEL_MAX]);
/* Does one of its channels match? Adds to `*steps` what that took. After more
 * than EVENT_STEPS_MAX it gives up and says no. */
#define EVENT_STEPS_MAX 100000u
bool event_matches(const struct hold_event *event, struct hf_bytes pattern,
                   uint64_t *steps);

/* One product or one reservation, whose history is asked for. */
struct event_about {
    enum hold_subject subject; /* SUBJECT_PRODUCT or SUBJECT_RESERVATION */
    struct hf_bytes name;
};
/* Does the event belong to that history? A flush belongs to all. */
bool event_is_about(const struct hold_event *event,
                    const struct event_about *about);

#endif
