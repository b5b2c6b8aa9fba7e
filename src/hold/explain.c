/* explain.c - what happened to locks of late: a ring, and a look back at it.
 *
 * It is no state: nothing depends on it, images do not have it, and an engine
 * has one only if it was asked to (hold_keep_past). Names and owners are kept
 * up to their first bytes, with a hash of the whole name.
 */
#include "base/memory.h"
#include "hold/part.h"

#define PAST_NAME_MAX  48u
#define PAST_OWNER_MAX 43u

/* The longest answer. */
#define PAST_SHOW_MAX 32u

struct past_entry {
    uint64_t seq; /* at that time */
    uint64_t now_us;
    uint64_t token;
    uint32_t hash;
    uint16_t name_len; /* of the whole name */
    uint8_t what;
    uint8_t mode;
    uint8_t owner_len;
    bool tree;
    char owner[PAST_OWNER_MAX];
    char name[PAST_NAME_MAX];
};

enum hf_status hold_keep_past(struct hold_engine *e, uint32_t count)
{
    assert(e->past == NULL && (count & (count - 1)) == 0);
    if (count == 0)
        return HF_OK;
    e->past = hf_alloc_zeroed(count * sizeof *e->past);
    if (e->past == NULL)
        return HF_NOMEM;
    e->past_count = count;
    return HF_OK;
}

void past_free(struct hold_engine *e)
{
    hf_free(e->past);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void past_add(struct hold_engine *e, unsigned what, uint32_t hash,
              struct hf_bytes name, struct hf_bytes owner, uint64_t token,
              enum lock_mode mode, bool tree)
{
    if (e->past == NULL)
        return;
    struct past_entry *entry =
        hf_undo_keep(&e->undo, &e->past[e->past_next++ & (e->past_count - 1)],
                     sizeof *entry);
    entry->seq = e->seq;
    entry->now_us = e->now_us;
    entry->token = token;
    entry->hash = hash;
    entry->name_len = (uint16_t)name.len;
    entry->what = (uint8_t)what;
    entry->mode = (uint8_t)mode;
    entry->tree = tree;
    entry->owner_len = (uint8_t)least(owner.len, PAST_OWNER_MAX);
    memcpy(entry->owner, owner.data, entry->owner_len);
    memcpy(entry->name, name.data, least(name.len, PAST_NAME_MAX));
}

static const char *what_name(unsigned what)
{
    static const char *const others[] = {"queued", "timeout", "left",
                                         "wait_lost", "deadlock"};

    return what < HOLD_EVENT_COUNT ? hold_event_name((enum hold_event_kind)what)
                                   : others[what - HOLD_EVENT_COUNT];
}

static void show(struct hold_engine *e, const struct past_entry *entry)
{
    struct hf_buf *body = &e->body;
    uint64_t passed_us =
        e->now_us > entry->now_us ? e->now_us - entry->now_us : 0;

    reply_map(body, 7);
    reply_field_text(body, FIELD_WHAT, hf_bytes_text(what_name(entry->what)));
    reply_field_number(body, FIELD_SEQ, (int64_t)entry->seq);
    reply_field_number(body, FIELD_AGE_MS, (int64_t)(passed_us / US_PER_MS));
    reply_field_text(body, FIELD_OWNER,
                     hf_bytes(entry->owner, entry->owner_len));
    reply_field_number(body, FIELD_TOKEN, (int64_t)entry->token);
    reply_field_text(body, FIELD_MODE,
                     hf_bytes_text(mode_name((enum lock_mode)entry->mode)));
    reply_field_number(body, FIELD_TREE, entry->tree);
}

/* The highest bit of a record's hash only marks it as used. */
static bool is_about(const struct past_entry *entry, uint32_t hash,
                     struct hf_bytes name)
{
    return (entry->hash ^ hash) << 1 == 0 && entry->name_len == name.len &&
           memcmp(entry->name, name.data, least(name.len, PAST_NAME_MAX)) == 0;
}

void lock_explain(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t hash = hf_index_hash(&e->locks, c->name);
    uint64_t oldest =
        e->past_next > e->past_count ? e->past_next - e->past_count : 0;
    size_t count_at = e->body.len + 1;
    uint32_t count = 0;

    reply_list(&e->body, 0);
    for (uint64_t i = e->past_next; i-- > oldest && count < PAST_SHOW_MAX;) {
        const struct past_entry *entry = &e->past[i & (e->past_count - 1)];
        e->out.work++;
        if (!is_about(entry, hash, c->name))
            continue;
        show(e, entry);
        e->out.work += SHOW_STEPS;
        count++;
    }
    hf_put_u32(e->body.data + count_at, count);
}
