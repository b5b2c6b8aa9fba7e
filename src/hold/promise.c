/* promise.c - memory is promised before a record is journaled.
 *
 * What a record may need follows from the record alone, but for one thing:
 * CONFIRM, CANCEL and EXTEND show a reservation, and with a REQ that is kept.
 * How long it is depends on what happens before the record is applied. The
 * reservation is known by now, or it is made by a RESERVE that was prepared
 * and not applied yet (`reserving` counts these by size). So the longest of
 * them is promised, and counted in `showing`. Whoever is applied takes the
 * smallest promise that suffices, and whoever is not, the smallest: what
 * another was promised was then at least as much.
 */
#include <assert.h>

#include "hold/tree.h"

/* Numbers, and texts that the engine itself has chosen. */
#define PLAIN_REPLY_BYTES 128u

/* Per item of a reservation, or of one that is short: map, four fields, three
 * numbers, head of the text; some of it counts as a part of the items. */
#define ITEM_REPLY_BYTES 32u

size_t promise_reservation(size_t items_len, size_t count)
{
    return PLAIN_REPLY_BYTES + HOLD_ID_MAX + items_len +
           count * ITEM_REPLY_BYTES;
}

/* The longest reservation that the command may come to show. */
static size_t shown_bound(const struct hold_engine *e,
                          const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->reservations, c->name);
    struct hf_bytes items = {"", 0};
    struct hold_item item;
    size_t count = 0;

    if (number != 0)
        items = hf_text_bytes(&e->texts, reservation_at(e, number)->items);
    for (size_t at = 0; hold_next_item(items, &at, &item);)
        count++;
    size_t bound = promise_reservation(items.len, count);
    for (uint32_t i = HF_TEXT_CLASSES; i-- > 0;) {
        if (e->reserving[i] > 0)
            return hf_texts_class_max(i) > bound ? hf_texts_class_max(i)
                                                 : bound;
    }
    return bound;
}

/* What is told instead may be longer, since it names products. A CONFIRM that
 * comes late may be SHORT, which names one twice; so may a command of a group,
 * or QUOTA, which names the owner, too. A CONFIRM or CANCEL of some items names
 * one that the reservation does not have. */
static size_t with_refusal(const struct hold_command *c, size_t bound)
{
    bool parts = (hold_operations[c->kind].options & HOLD_BIT(ARG_PART)) != 0;
    bool ends = parts && (c->kind == HOLD_CONFIRM || c->item_count > 0);
    bool may =
        c->kind == HOLD_GROUP || (ends && bound > promise_reservation(0, 0));

    if (!may)
        return bound;
    size_t more = HOLD_SKU_MAX + HOLD_OWNER_MAX;
    return bound < HF_TEXT_MAX - more ? bound + more : HF_TEXT_MAX;
}

/* What most are: a LOCK that neither waits nor is kept for a REQ, without
 * terms and TREE. */
static inline bool is_plain_lock(const struct hold_command *c)
{
    return c->kind == HOLD_LOCK && !c->told && c->request.len == 0 &&
           c->owner.len > 0 && !has_terms(c) && c->wait_ms == 0 &&
           (c->flags & (HOLD_FOREVER | HOLD_TREE)) == 0;
}

/* Does it take what grant_need() says, at most? A SET of one key does, too. */
static inline bool is_plain(const struct hold_command *c)
{
    return is_plain_lock(c) || (c->kind == HOLD_KEY_SET && c->item_count == 0 &&
                                c->request.len == 0 && c->owner.len > 0);
}

static void find_other_need(struct hold_engine *e, const struct hold_command *c,
                            struct need *need)
{
    const struct hold_operation *operation = &hold_operations[c->kind];
    bool keep = c->request.len > 0 && operation->class == CLASS_WRITE;

    if (!c->told) { /* else it is not carried out */
        need->reply_len = PLAIN_REPLY_BYTES + c->name.len;
        if (operation->need != NULL)
            operation->need(e, c, need);
    }
    need->shows = need->shows && keep;
    if (!keep || need->shows)
        need->reply_len = 0;
    if (!keep)
        return;
    need_text(e, need, need->reply_len);
    need_record(e, need, &e->requests, c->request.len);
}

/* `path`: its name has a '/'. */
static inline void find_need(struct hold_engine *e,
                             const struct hold_command *c, struct need *need,
                             bool path)
{
    need->count = need->reserves = need->due = 0;
    need->waiter = need->shows = false;
    need->answer_bytes = 0;
    need->path = path;
    need->reply_len = 0;
    if (!is_plain_lock(c)) {
        find_other_need(e, c, need);
        return;
    }
    grant_need(e, c, need);
    if (path)
        need_item(need, &e->paths);
}

static void give_back(struct hold_engine *e, const struct need *need)
{
    for (uint32_t i = 0; i < need->count; i++)
        hf_slab_unpromise(need->slabs[i], 1);
    for (uint32_t i = 0; i < need->due; i++)
        hf_agenda_unpromise(&e->due);
}

/* All of it, or nothing. */
static enum hf_status promise(struct hold_engine *e, const struct need *need)
{
    uint32_t got = 0;
    uint32_t due = 0;

    while (got < need->count && hf_slab_promise(need->slabs[got], 1) == HF_OK)
        got++;
    while (got == need->count && due < need->due &&
           hf_agenda_promise(&e->due) == HF_OK)
        due++;
    if (got == need->count && due == need->due)
        return HF_OK;
    while (got-- > 0)
        hf_slab_unpromise(need->slabs[got], 1);
    while (due-- > 0)
        hf_agenda_unpromise(&e->due);
    return HF_NOMEM;
}

/* True if the need can be met from memory that is there already. */
static bool fits(const struct hold_engine *e, const struct need *need)
{
    for (uint32_t i = 0; i < need->count; i++) {
        if (!hf_slab_has_room(need->slabs[i], 1))
            return false;
    }
    return need->due == 0 || hf_agenda_has_room(&e->due, need->due);
}

/* True if applying it takes no memory. */
static bool needs_nothing(const struct hold_command *c)
{
    hold_need_fn *need = hold_operations[c->kind].need;

    return c->request.len == 0 && (need == NULL || need == key_need ||
                                   (c->kind == HOLD_UNLOCK && c->done_ms == 0));
}

/* What grant_need() says of a plain one whose name is no path, without a list:
 * promised if memory is there for all of it. */
static inline bool promise_plain(struct hold_engine *e,
                                 const struct hold_command *c)
{
    struct hf_slab *name = hf_texts_slab(&e->texts, c->name.len);
    struct hf_slab *owner = hf_texts_slab(&e->texts, c->owner.len);

    /* name and owner may be of one size */
    if (!hf_slab_has_room(&e->locks.slab, 1) ||
        !hf_slab_has_room(&e->parts, 1) || !hf_slab_has_room(name, 2) ||
        !hf_slab_has_room(owner, 2) || !hf_agenda_has_room(&e->due, 1))
        return false;
    e->locks.slab.promised++;
    e->parts.promised++;
    name->promised++;
    owner->promised++;
    e->due.heap.promised++;
    return true;
}

static inline void spend_plain(struct hold_engine *e,
                               const struct hold_command *c)
{
    hf_slab_unpromise(&e->locks.slab, 1);
    hf_slab_unpromise(&e->parts, 1);
    hf_slab_unpromise(hf_texts_slab(&e->texts, c->name.len), 1);
    hf_slab_unpromise(hf_texts_slab(&e->texts, c->owner.len), 1);
    hf_agenda_unpromise(&e->due);
    e->spent.count = 0;
    e->spent.shows = e->spent.path = false;
}

__attribute__((noinline)) static enum hf_status
prepare_other(struct hold_engine *e, const struct hold_command *c)
{
    struct need need;

    if (hold_operations[c->kind].ends_bundle &&
        out_reserve_group(e) != HF_OK) /* it tells as much */
        return HF_NOMEM;
    find_need(e, c, &need, hf_bytes_have(c->name, '/'));
    if (need.shows) {
        need.reply_len = c->kind == HOLD_GROUP ? group_reply_bound(e, c->group)
                                               : shown_bound(e, c);
        if (need.reply_len > HF_TEXT_MAX)
            return HF_INVALID;
        need.reply_len = with_refusal(c, need.reply_len);
        need_text(e, &need, need.reply_len);
    }
    if (e->memory_max > 0 && e->memory_bytes >= e->memory_max &&
        !fits(e, &need))
        return HF_NOMEM;
    size_t waiters = (size_t)e->waiters.slab.used + e->waiters.slab.promised +
                     e->buyers.slab.used + e->buyers.slab.promised;
    if (need.waiter &&
        (out_reserve(e, waiters + 2,
                     e->waited_answers + e->promised_answers +
                         need.answer_bytes) != HF_OK ||
         out_reserve_events(e, e->waited_parts + e->promised_parts + need.names,
                            e->waited_bytes + e->promised_bytes +
                                need.name_bytes) != HF_OK))
        return HF_NOMEM;
    size_t before = e->memory_bytes;
    if (promise(e, &need) != HF_OK)
        return HF_NOMEM;
    e->grown = e->grown || e->memory_bytes > before;
    e->prepared++;
    if (need.waiter) {
        e->promised_parts += need.names;
        e->promised_bytes += need.name_bytes;
        e->promised_answers += need.answer_bytes;
    }
    if (need.shows)
        e->showing[hf_texts_class(need.reply_len)]++;
    if (need.reserves > 0)
        e->reserving[need.reserves - 1]++;
    return HF_OK;
}

/* Not inlined, nor is spend(): who needs nothing saves no registers. */
__attribute__((noinline)) static enum hf_status
prepare(struct hold_engine *e, const struct hold_command *c)
{
    if (!is_plain(c) || hf_bytes_have(c->name, '/') || !promise_plain(e, c))
        return prepare_other(e, c);
    e->prepared++;
    return HF_OK;
}

__attribute__((noinline)) static enum hf_status
prepare_group(struct hold_engine *e, const struct hold_command *c)
{
    if (group_prepare(e, c->group) != HF_OK)
        return HF_NOMEM;
    enum hf_status status = prepare_other(e, c);
    if (status != HF_OK) {
        group_spend(e, c->group);
        group_trim(e, c->group);
    }
    return status;
}

enum hf_status hold_prepare(struct hold_engine *e, const struct hold_command *c)
{
    if (c->kind == HOLD_GROUP)
        return prepare_group(e, c);
    if (!needs_nothing(c))
        return prepare(e, c);
    e->prepared++;
    return HF_OK;
}

/* Spends the smallest promise of at least this length. */
static size_t take_shown(struct hold_engine *e, size_t len)
{
    uint32_t i = hf_texts_class(len);

    while (e->showing[i] == 0) {
        i++;
        assert(i < HF_TEXT_CLASSES); /* it was prepared */
    }
    e->showing[i]--;
    e->spent.shows = false;
    e->spent.reply_len = hf_texts_class_max(i);
    need_text(e, &e->spent, e->spent.reply_len);
    hf_slab_unpromise(&e->texts.slabs[i], 1);
    return e->spent.reply_len;
}

size_t promise_take_reply(struct hold_engine *e, size_t len)
{
    return e->spent.shows ? take_shown(e, len) : e->spent.reply_len;
}

__attribute__((noinline)) static void
spend_other(struct hold_engine *e, const struct hold_command *c, bool path)
{
    find_need(e, c, &e->spent, path);
    give_back(e, &e->spent);
    if (e->spent.waiter) {
        e->promised_parts -= e->spent.names;
        e->promised_bytes -= e->spent.name_bytes;
        e->promised_answers -= e->spent.answer_bytes;
    }
    if (e->spent.reserves > 0) {
        assert(e->reserving[e->spent.reserves - 1] > 0); /* it was prepared */
        e->reserving[e->spent.reserves - 1]--;
    }
}

__attribute__((noinline)) static void spend(struct hold_engine *e,
                                            const struct hold_command *c)
{
    /* if no path is promised to anybody, it has none */
    bool path = e->paths.promised > 0 && hf_bytes_have_far(c->name, '/');

    if (path || e->grown || !is_plain(c))
        spend_other(e, c, path);
    else
        spend_plain(e, c);
}

void promise_spend(struct hold_engine *e, const struct hold_command *c)
{
    if (c->kind == HOLD_GROUP)
        group_spend(e, c->group);
    assert(e->prepared > 0);
    e->prepared--;
    if (!needs_nothing(c)) {
        spend(e, c);
        return;
    }
    e->spent.count = 0;
    e->spent.shows = false;
}

/* Gives back memory that was made for promises and is not needed. */
static void trim(struct hold_engine *e, const struct need *need)
{
    for (uint32_t i = 0; i < need->count; i++)
        hf_slab_trim(need->slabs[i]);
    e->grown = e->prepared > 0; /* else the last one came back */
}

void promise_trim(struct hold_engine *e)
{
    trim(e, &e->spent);
}

void promise_expect(struct hold_engine *e, const struct hold_command *c)
{
    find_need(e, c, &e->spent, hf_bytes_have(c->name, '/'));
}

size_t promise_reply_bound(struct hold_engine *e, const struct hold_command *c)
{
    const struct hold_operation *operation = &hold_operations[c->kind];
    struct need need;

    need.count = need.reserves = need.due = 0;
    need.waiter = need.shows = false;
    need.path = hf_bytes_have(c->name, '/');
    need.reply_len = PLAIN_REPLY_BYTES + c->name.len;
    if (c->kind == HOLD_SAID)
        return c->note.len;
    if (operation->need != NULL)
        operation->need(e, c, &need);
    return need.shows ? shown_bound(e, c) : need.reply_len;
}

void promise_end(struct hold_engine *e)
{
    if (e->spent.shows)
        (void)take_shown(e, 1);
    if (e->grown)
        trim(e, &e->spent);
}

void hold_forget(struct hold_engine *e, const struct hold_command *c)
{
    promise_spend(e, c);
    promise_end(e);
}
