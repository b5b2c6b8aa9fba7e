/* explain.c - what happened to locks of late: a ring, and a look back at it.
 *
 * It is no state: nothing depends on it, images do not have it, and an engine
 * has one only if it was asked to (hold_keep_past). It is one for all locks.
 * Names and owners are kept up to their first bytes, with a hash of the whole
 * name. Few entries name another holder: that is in the entry behind them,
 * which has nothing else and is about no name.
 */
#include "base/memory.h"
#include "hold/part.h"

#define PAST_NAME_MAX  48u
#define PAST_OWNER_MAX 45u

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
    uint8_t why; /* enum past_why */
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

static struct past_entry *entry_at(const struct hold_engine *e, uint64_t at)
{
    return &e->past[at & (e->past_count - 1)];
}

static void keep_owner(struct past_entry *entry, struct hf_bytes owner)
{
    entry->owner_len = (uint8_t)least(owner.len, PAST_OWNER_MAX);
    memcpy(entry->owner, owner.data, entry->owner_len);
}

void past_add(struct hold_engine *e, unsigned what, uint32_t hash,
              struct hf_bytes name, struct hf_bytes owner, uint64_t token,
              enum lock_mode mode, bool tree)
{
    if (e->past == NULL)
        return;
    struct past_entry *entry =
        hf_undo_keep(&e->undo, entry_at(e, e->past_next++), sizeof *entry);
    entry->seq = e->seq;
    entry->now_us = e->now_us;
    entry->token = token;
    entry->hash = hash;
    entry->name_len = (uint16_t)name.len;
    entry->what = (uint8_t)what;
    entry->mode = (uint8_t)mode;
    entry->tree = tree;
    entry->why = WHY_PLAIN;
    keep_owner(entry, owner);
    memcpy(entry->name, name.data, least(name.len, PAST_NAME_MAX));
}

void past_say(struct hold_engine *e, enum past_why why, struct hf_bytes by)
{
    if (e->past == NULL)
        return;
    entry_at(e, e->past_next - 1)->why = (uint8_t)why; /* kept by past_add() */
    if (by.len == 0)
        return;
    struct past_entry *entry =
        hf_undo_keep(&e->undo, entry_at(e, e->past_next++), sizeof *entry);
    entry->what = PAST_BY;
    entry->name_len = 0;
    keep_owner(entry, by);
}

const char *why_name(enum past_why why)
{
    static const char *const names[] = {
        [WHY_PLAIN] = "",
        [WHY_STILL_HELD] = "still_held",
        [WHY_DONE] = "done",
        [WHY_DELETED] = "deleted",
        [WHY_REPLACED] = "replaced",
        [WHY_MAXHOLD] = "maxhold",
        [WHY_WOUNDED] = "wounded",
        [WHY_REVOKED] = "revoked",
        [WHY_SESSION] = "session",
        [WHY_GONE] = "gone",
        [WHY_CYCLE] = "cycle",
        [WHY_YOUNGER] = "younger",
    };

    return names[why];
}

/* Also of what needs no other reason than what it is. */
static const char *reason_of(const struct past_entry *entry)
{
    if (entry->why != WHY_PLAIN)
        return why_name((enum past_why)entry->why);
    switch (entry->what) {
    case EVENT_LOCK_RELEASED:
        return "released";
    case EVENT_LOCK_EXPIRED:
        return "ttl";
    default:
        return "";
    }
}

/* The other holder whom the entry names; "": none. */
static struct hf_bytes other_of(const struct hold_engine *e, uint64_t at)
{
    const struct past_entry *next = entry_at(e, at + 1);

    if (at + 1 == e->past_next || next->what != PAST_BY)
        return hf_bytes("", 0);
    return hf_bytes(next->owner, next->owner_len);
}

static const char *what_name(unsigned what)
{
    static const char *const others[] = {"queued", "timeout", "left",
                                         "wait_lost", "deadlock"};

    return what < HOLD_EVENT_COUNT ? hold_event_name((enum hold_event_kind)what)
                                   : others[what - HOLD_EVENT_COUNT];
}

static void show(struct hold_engine *e, uint64_t at)
{
    const struct past_entry *entry = entry_at(e, at);
    struct hf_buf *body = &e->body;
    uint64_t passed_us =
        e->now_us > entry->now_us ? e->now_us - entry->now_us : 0;

    reply_map(body, 9);
    reply_field_text(body, FIELD_WHAT, hf_bytes_text(what_name(entry->what)));
    reply_field_number(body, FIELD_SEQ, (int64_t)entry->seq);
    reply_field_number(body, FIELD_AGE_MS, (int64_t)(passed_us / US_PER_MS));
    reply_field_text(body, FIELD_OWNER,
                     hf_bytes(entry->owner, entry->owner_len));
    reply_field_number(body, FIELD_TOKEN, (int64_t)entry->token);
    reply_field_text(body, FIELD_MODE,
                     hf_bytes_text(mode_name((enum lock_mode)entry->mode)));
    reply_field_number(body, FIELD_TREE, entry->tree);
    reply_field_text(body, FIELD_WHY, hf_bytes_text(reason_of(entry)));
    reply_field_text(body, FIELD_BY, other_of(e, at));
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
        e->out.work++;
        if (!is_about(entry_at(e, i), hash, c->name))
            continue;
        show(e, i);
        e->out.work += SHOW_STEPS;
        count++;
    }
    hf_put_u32(e->body.data + count_at, count);
}
