/* load_old.c - locks and waiters of an image of format 1.
 *
 *   L  token expires acquired count; name owner
 *   W  token (of its lock) ticket deadline queued ttl; owner
 *
 * Each is written as the entry that stands for it now (see graph_image.c), and
 * read as that. Waiters follow their lock in the order of its queue: where a
 * request was asked again that is not the order of their tickets.
 */
#include "hold/image_parts.h"
#include "hold/part.h"

/* The most numbers of an entry, a name, an owner. */
#define ENTRY_BYTES (16 * 8 + 2 + HOLD_NAME_MAX + 2 + HOLD_OWNER_MAX + 2)

/* Without session and terms. */
static char *put_claim(char *at, struct hf_bytes owner)
{
    memset(at, 0, 4 * 8);
    at = hold_put_text(at + 4 * 8, owner);
    return hold_put_text(at, hf_bytes("", 0));
}

enum hf_status old_lock_load(struct hold_engine *e, struct reader *in)
{
    char entry[ENTRY_BYTES];
    char *at = entry;

    for (int i = 0; i < 4; i++)
        at = image_put(at, read_number(in));
    struct hf_bytes name = read_text(in);
    struct hf_bytes owner = read_text(in);
    if (in->bad || name.len > HOLD_NAME_MAX || owner.len > HOLD_OWNER_MAX)
        return HF_CORRUPT;
    memset(at, 0, 6 * 8); /* exclusive, and nothing else */
    at = put_claim(at + 6 * 8, owner);
    at = hold_put_text(at, name);
    struct reader grant = {hf_bytes(entry, (size_t)(at - entry)), 0, false};
    enum hf_status status = grant_load(e, &grant);
    if (status == HF_OK)
        e->load_lock = hf_index_find(&e->locks, name);
    return status;
}

enum hf_status old_waiter_load(struct hold_engine *e, struct reader *in)
{
    char entry[ENTRY_BYTES];
    char *at = entry;
    uint64_t token = read_number(in);
    uint64_t order = hf_index_count(&e->waiters) + 1;

    at = image_put(at, read_number(in)); /* ticket */
    at = image_put(at, order);           /* before all that come later */
    at = image_put(at, order);           /* as is its age */
    for (int i = 0; i < 3; i++)
        at = image_put(at, read_number(in));
    struct hf_bytes owner = read_text(in);
    if (in->bad || owner.len > HOLD_OWNER_MAX || e->load_lock == 0 ||
        grant_find(e, e->load_lock, token) == 0)
        return HF_CORRUPT;
    memset(at, 0, 4 * 8); /* exclusive, and nothing else */
    at = put_claim(at + 4 * 8, owner);
    at = image_put(at, 1);
    at = hold_put_text(at, lock_name(e, e->load_lock));
    at = image_put(at, MODE_EXCLUSIVE);
    struct reader waiter = {hf_bytes(entry, (size_t)(at - entry)), 0, false};
    return waiter_load(e, &waiter);
}
