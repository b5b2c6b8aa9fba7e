/* group.c - several commands as one step: all of them, or none.
 *
 * The commands are carried out one after the other, each on what those before
 * it left. What they change is noted before it changes (base/undo.h); at the
 * first refusal all of it is taken back, to the byte, and the sequence too, so
 * that nothing shows that the group was tried:
 *
 *   note -> command 1 -> command 2 -> ... -> serve who waits
 *                            '-- refused: back to the note
 *
 * Memory for all of them was promised before. While changes may be taken back
 * none is given back to the system, tables do not grow, and nobody who waits
 * is served: that is done once, after the last command.
 */
#include "hold/group.h"

#include <assert.h>

#include "hold/locks.h"
#include "hold/waitlist.h"

/* What one command may come to note: a record and its places in lists, in the
 * heap and in tables; of a set or a reservation, so much for each item. More is
 * possible, for a path of hundreds of parts below as many TREEs; the log grows
 * then. Who ends all waits for a lock (DONE) notes each of them. */
#define UNDO_COMMAND_BYTES (8u * 1024)
#define UNDO_ITEM_BYTES    (2u * 1024)
#define UNDO_WAIT_BYTES    1024u
/* All groups of reservations that one step ends: each of a few items, as a
 * rule. */
#define UNDO_MEMBERS_BYTES (HOLD_MEMBERS_MAX * 2 * UNDO_COMMAND_BYTES)
#define UNDO_RESERVATION_BYTES                                              \
    (HOLD_ITEMS_MAX * (2 + HOLD_SKU_MAX + 8 + sizeof(struct product) + 16 + \
                       2 * HOLD_OWNER_MAX))

/* How a list begins, and a map of three numbers. */
#define LIST_HEAD_BYTES 5u
#define REPLY_MAP_BYTES (5u + 3 * 10)

bool hold_group_next(struct hf_bytes group, size_t *at, struct hf_bytes *out)
{
    if (*at >= group.len)
        return false;
    *out = hf_bytes(group.data + *at + HOLD_GROUP_HEAD,
                    hf_get_u32(group.data + *at));
    *at += HOLD_GROUP_HEAD + out->len;
    return true;
}

bool hold_may_group(enum hold_kind kind)
{
    const struct hold_operation *operation = &hold_operations[kind];

    return kind == HOLD_SAID || (!operation->alone && !operation->admin &&
                                 (operation->class == CLASS_READ ||
                                  operation->class == CLASS_WRITE));
}

void hold_group_plain(struct hold_command *command)
{
    command->now_us = 0;
    command->wait_ms = 0;
    command->flags &= ~(uint64_t)HOLD_FOREVER;
}

enum hf_status hold_group_check(struct hf_bytes group, uint64_t count)
{
    struct hold_command command;
    size_t at = 0;

    if (count == 0 || count > HOLD_GROUP_MAX || group.len > HOLD_GROUP_BYTES)
        return HF_CORRUPT;
    for (; at < group.len; count--) {
        struct hf_bytes record;
        if (count == 0 || group.len - at < HOLD_GROUP_HEAD ||
            hf_get_u32(group.data + at) > group.len - at - HOLD_GROUP_HEAD)
            return HF_CORRUPT;
        (void)hold_group_next(group, &at, &record);
        if (hold_decode(record, &command) != HF_OK ||
            !hold_may_group(command.kind) || command.request.len > 0 ||
            command.told || command.now_us != 0 || hold_may_wait(&command))
            return HF_CORRUPT;
    }
    return count == 0 ? HF_OK : HF_CORRUPT;
}

/* The next command of the group; false at the end. */
static bool next_command(struct hf_bytes group, size_t *at,
                         struct hold_command *out)
{
    struct hf_bytes record;

    if (!hold_group_next(group, at, &record))
        return false;
    enum hf_status status = hold_decode(record, out);
    assert(status == HF_OK); /* it was checked */
    (void)status;
    return true;
}

/* ---- Memory. ---- */

static size_t undo_bound(const struct hold_command *c)
{
    const struct hold_operation *operation = &hold_operations[c->kind];
    size_t items = operation->of_set         ? HOLD_SET_MAX
                   : c->kind == HOLD_RESERVE ? hold_most_items(c)
                                             : c->item_count;

    /* a reservation's items may be replaced, which are one text; or all of its
     * products are changed */
    size_t text =
        (operation->options & HOLD_BIT(ARG_PART)) != 0 || c->kind == HOLD_EXTEND
            ? UNDO_RESERVATION_BYTES
            : 0;

    return UNDO_COMMAND_BYTES + items * UNDO_ITEM_BYTES + text;
}

/* The same of all who wait, each of whom is ended, or listed to be served,
 * once: by a group of which a command frees something. */
static size_t undo_waits(const struct hold_engine *e)
{
    return (e->waited_parts + e->promised_parts) * UNDO_WAIT_BYTES;
}

static void forget_first(struct hold_engine *e, struct hf_bytes group,
                         size_t end)
{
    size_t at = 0;

    while (at < end && next_command(group, &at, &e->member))
        hold_forget(e, &e->member);
}

enum hf_status group_prepare(struct hold_engine *e, struct hf_bytes group)
{
    size_t undo_bytes = HOLD_STATE_BYTES;
    size_t at = 0;
    size_t before = 0;
    bool frees = false;
    bool members = false;

    if (out_reserve_group(e) != HF_OK)
        return HF_NOMEM;
    for (; next_command(group, &at, &e->member); before = at) {
        if (hold_prepare(e, &e->member) != HF_OK) {
            forget_first(e, group, before);
            return HF_NOMEM;
        }
        undo_bytes += undo_bound(&e->member);
        frees = frees || hold_operations[e->member.kind].frees;
        members = members || hold_operations[e->member.kind].ends_bundle;
    }
    if (frees)
        undo_bytes += undo_waits(e);
    if (members)
        undo_bytes += UNDO_MEMBERS_BYTES;
    if (hf_undo_reserve(&e->undo, undo_bytes) == HF_OK)
        return HF_OK;
    forget_first(e, group, at);
    return HF_NOMEM;
}

void group_spend(struct hold_engine *e, struct hf_bytes group)
{
    size_t at = 0;

    while (next_command(group, &at, &e->member))
        promise_spend(e, &e->member);
}

void group_trim(struct hold_engine *e, struct hf_bytes group)
{
    size_t at = 0;

    while (next_command(group, &at, &e->member)) {
        promise_expect(e, &e->member);
        promise_trim(e);
    }
}

void group_need(struct hold_engine *e, const struct hold_command *c,
                struct need *need)
{
    (void)e, (void)c;
    need->shows = true; /* how much is known only when it is prepared */
}

size_t group_reply_bound(struct hold_engine *e, struct hf_bytes group)
{
    size_t bytes = REPLY_MAP_BYTES;
    size_t at = 0;

    while (next_command(group, &at, &e->member)) {
        enum hold_kind kind = e->member.kind;
        bool bound = hold_kind_is_write(kind) ||
                     hold_operations[kind].need != NULL; /* short ones */
        bytes +=
            bound ? promise_reply_bound(e, &e->member) : HOLD_GROUP_READ_MAX;
    }
    return bytes;
}

/* ---- Doing it. ---- */

void run_said(struct hold_engine *e, const struct hold_command *c)
{
    if (c->note.len > 0)
        memcpy(e->body.data + e->body.len, c->note.data, c->note.len);
    e->body.len += c->note.len;
}

bool group_check(struct hold_engine *e, const struct hold_command *c,
                 struct target at)
{
    (void)e, (void)c, (void)at;
    return false;
}

static void run_member(struct hold_engine *e, const struct hold_command *c)
{
    const struct hold_operation *operation = &hold_operations[c->kind];

    if (e->serve_idle)
        serve_drop_idle(e);
    if (operation->class != CLASS_WRITE) {
        operation->run(e, c);
        return;
    }
    struct target at = find_target(e, c, operation->subject);
    if (!operation->check(e, c, at))
        operation->change(e, c, at);
    assert(e->out.code != HOLD_WAITING); /* it does not wait */
}

/* Carries it out; its reply is at the end of the body. False: refused. */
static bool try_member(struct hold_engine *e, const struct hold_command *c)
{
    size_t before = e->body.len;

    if (e->body.len > HOLD_GROUP_REPLIES_MAX)
        return !refuse_overload(e, "group-reply", HOLD_GROUP_REPLIES_MAX);
    promise_expect(e, c);
    run_member(e, c);
    if (e->out.code != HOLD_OK)
        return false;
    if (e->body.len == before)
        reply_ok(&e->body);
    if (!hold_kind_is_write(c->kind) &&
        e->body.len - before > HOLD_GROUP_READ_MAX) {
        e->body.len = before;
        return !refuse_overload(e, "group-read", HOLD_GROUP_READ_MAX);
    }
    return true;
}

/* The refusal of a command, whose facts are the body from `facts` on, becomes
 * that of the group: which one it was, and behind that its own. */
static void abort_group(struct hold_engine *e, size_t facts, uint32_t position,
                        uint64_t count)
{
    struct hf_buf *body = &e->body;
    enum hold_code code = e->out.code;
    size_t len = body->len - facts;

    memmove(body->data + REPLY_MAP_BYTES, body->data + facts, len);
    body->len = 0;
    reply_map(body, 3);
    reply_field_number(body, FIELD_POSITION, position);
    reply_field_number(body, FIELD_COUNT, (int64_t)count);
    reply_field_number(body, FIELD_STATUS, code);
    assert(body->len == REPLY_MAP_BYTES);
    body->len += len;
    e->out.code = HOLD_ABORTED;
}

void group_run(struct hold_engine *e, const struct hold_command *c,
               struct target target)
{
    struct hold_out before = e->out;
    size_t names_len = e->event_names.len;
    size_t bodies_len = e->answer_bodies.len;
    size_t facts = 0;
    size_t at = 0;
    uint32_t position = 0;
    bool done = true;

    (void)target;
    e->body.cap += HOLD_GROUP_REPLIES_MAX; /* as ever for each command */
    hf_undo_begin(&e->undo);
    hf_undo_note(&e->undo, &e->seq, HOLD_STATE_BYTES);
    reply_list(&e->body, (uint32_t)c->count);
    for (; done && next_command(c->group, &at, &e->member); position++) {
        facts = e->body.len;
        done = try_member(e, &e->member);
    }
    if (done) {
        hf_undo_end(&e->undo);
        for (size_t i = 0; i < SUBJECTS; i++)
            hf_index_catch_up(subject_index(e, &hold_subjects[i]));
        serve_all(e);
        waitlist_serve(e);
    } else {
        hf_undo_back(&e->undo);
        e->tree_changes++; /* what was found out meanwhile is not so any more */
        e->tree_stops++;
        e->serve_turns++;
        e->out.event_count = before.event_count;
        e->out.answer_count = before.answer_count;
        e->event_names.len = names_len;
        e->answer_bodies.len = bodies_len;
        abort_group(e, facts, position, c->count);
    }
    e->body.cap -= HOLD_GROUP_REPLIES_MAX;
    promise_expect(e, c); /* of the members something else was */
}

void group_retell(struct hold_engine *e, struct hf_bytes group,
                  uint64_t passed_ms)
{
    struct hf_buf all = e->body;
    size_t end = LIST_HEAD_BYTES;
    size_t at = 0;

    while (next_command(group, &at, &e->member)) {
        hold_run_fn *retell = hold_operations[e->member.kind].retell;
        size_t from = end;
        reply_skip(hf_buf_bytes(&all), &end);
        e->body = (struct hf_buf){all.data + from, end - from, end - from};
        reply_age(&e->body, passed_ms);
        if (retell != NULL)
            retell(e, &e->member);
    }
    e->body = all;
}
