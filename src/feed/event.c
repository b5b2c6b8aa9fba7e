/* event.c - events to bytes and back. */
#include "feed/event.h"

#include "base/little.h"
#include "hold/subject.h"

static struct hf_bytes take(const char **at, size_t len)
{
    struct hf_bytes text = hf_bytes(*at, len);

    *at += len;
    return text;
}

/* Are they as hold_next_item() takes them? */
static bool are_items(const char *items, size_t len)
{
    size_t at = 0;

    while (len - at >= 2) {
        size_t item = 2u + hf_get_u16(items + at) + 8u;
        if (item > len - at)
            return false;
        at += item;
    }
    return at == len;
}

size_t event_decode(struct hf_bytes bytes, struct hold_event *out,
                    uint64_t *now_us)
{
    const char *in = bytes.data;

    if (bytes.len < EVENT_HEAD_BYTES)
        return 0;
    size_t len = hf_get_u32(in);
    size_t name = hf_get_u16(in + 6);
    size_t owner = hf_get_u16(in + 8);
    size_t note = hf_get_u16(in + 10);
    size_t items = hf_get_u32(in + 12);
    uint64_t total = hf_get_u64(in + 48);
    size_t group = 0;
    if (len > bytes.len || (unsigned char)in[4] >= HOLD_EVENT_COUNT ||
        (unsigned char)in[5] > 2)
        return 0;
    if (hold_event_subject((enum hold_event_kind)(unsigned char)in[4]) ==
        SUBJECT_RESERVATION) {
        if (total > HOLD_ID_MAX)
            return 0;
        group = (size_t)total;
        total = 0;
    }
    if (len != EVENT_HEAD_BYTES + name + owner + note + items + group ||
        name > HOLD_NAME_MAX || !are_items(in + len - items - group, items))
        return 0;
    *out = (struct hold_event){
        .seq = hf_get_u64(in + 16),
        .kind = (enum hold_event_kind)(unsigned char)in[4],
        .mode = (uint8_t)in[5],
        .token = hf_get_u64(in + 32),
        .age_us = hf_get_u64(in + 40),
        .total = total,
        .available = hf_get_u64(in + 56),
    };
    *now_us = hf_get_u64(in + 24);
    const char *at = in + EVENT_HEAD_BYTES;
    out->name = take(&at, name);
    out->owner = take(&at, owner);
    out->note = take(&at, note);
    out->items = take(&at, items);
    out->group = take(&at, group);
    return len;
}

/* ---- Channels. ---- */

static struct hf_bytes channel(char *out, const char *family,
                               struct hf_bytes name)
{
    size_t len = strlen(family);

    memcpy(out, family, len);
    memcpy(out + len, name.data, name.len);
    return hf_bytes(out, len + name.len);
}

/* Does it say who leads? Who shares the lock leads no more. */
static bool is_about_leader(const struct hold_event *event)
{
    return hold_event_subject(event->kind) == SUBJECT_LOCK &&
           (event->mode == 0 || event->kind == EVENT_LOCK_DOWNGRADED);
}

static struct hf_bytes first_channel(const struct hold_event *event, char *out)
{
    enum hold_subject subject = hold_event_subject(event->kind);

    if (subject == SUBJECT_ALL)
        return channel(out, "hf:all", hf_bytes("", 0));
    return channel(out, hold_subjects[subject].channel, event->name);
}

struct hf_bytes event_channel(struct event_channels *channels,
                              char out[EVENT_CHANNEL_MAX])
{
    const struct hold_event *event = channels->event;
    uint32_t number = channels->next++;
    struct hold_item item;

    if (number == 0)
        return first_channel(event, out);
    if (number == 1 && is_about_leader(event))
        return channel(out, "hf:election:", event->name);
    if (hold_next_item(event->items, &channels->item, &item))
        return channel(out, hold_subjects[SUBJECT_PRODUCT].channel, item.sku);
    return hf_bytes("", 0);
}

bool event_matches(const struct hold_event *event, struct hf_bytes pattern,
                   uint64_t *steps)
{
    struct event_channels channels = {.event = event};
    char name[EVENT_CHANNEL_MAX];
    uint64_t most = *steps + EVENT_STEPS_MAX;
    struct hf_bytes one;

    do {
        one = event_channel(&channels, name);
        if (one.len > 0 && hf_bytes_match_within(pattern, one, most, steps))
            return true;
    } while (one.len > 0 && *steps <= most);
    return false;
}

bool event_is_about(const struct hold_event *event,
                    const struct event_about *about)
{
    enum hold_subject subject = hold_event_subject(event->kind);
    struct hold_item item;

    if (subject == SUBJECT_ALL)
        return true;
    if (subject == about->subject && hf_bytes_equal(event->name, about->name))
        return true;
    if (about->subject != SUBJECT_PRODUCT)
        return false;
    for (size_t at = 0; hold_next_item(event->items, &at, &item);) {
        if (hf_bytes_equal(item.sku, about->name))
            return true;
    }
    return false;
}
