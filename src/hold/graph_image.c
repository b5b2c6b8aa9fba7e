/* graph_image.c - locks, sets and waiters as entries of an image.
 *
 *   G  token expires acquired count mode permits max priority sealed fence
 *      claim; name                                          a single grant
 *   T  token expires acquired count sealed priority claim; names of the set,
 *      and a fence for each
 *   W  ticket order age deadline queued ttl max flags priority permits mode
 *      claim; names
 *   M  order closed done below; name result                 a mark
 *
 *   claim: session (its id, 0: none) has_terms maxhold delay; owner note
 *   names: how many; name and mode of each (and 4: with TREE)
 *   mode: also 8: of a key
 *
 * What belongs to a session comes first, session by session, in the order of
 * its list. For the rest order is in the numbers: grants are listed by token,
 * queues by priority, age and order, the parts of a session by token or order.
 */
#include "hold/image_parts.h"
#include "hold/tree.h"

static char *put_claim(char *at, const struct hold_engine *e,
                       const struct claim *claim)
{
    static const struct terms none = {0, 0, 0, {0, 0, 0}};
    const struct terms *terms =
        claim->terms == 0 ? &none : terms_at(e, claim->terms);

    at = image_put(at,
                   claim->session == 0 ? 0 : session_at(e, claim->session)->id);
    at = image_put(at, terms->is_used);
    at = image_put(at, terms->maxhold_us);
    at = image_put(at, terms->delay_ms);
    at = hold_put_text(at, hf_text_bytes(&e->texts, claim->owner));
    return hold_put_text(at, hf_text_bytes(&e->texts, terms->note));
}

/* With TREE, and that it is a key, as bits. */
static uint64_t mode_number(const struct part *part)
{
    return part->mode | (uint64_t)part->tree << 2 | (uint64_t)part->key << 3;
}

static bool read_mode(uint64_t number, struct wanted *wanted)
{
    wanted->mode = (enum lock_mode)(number & 3);
    wanted->tree = (number & 4) != 0;
    wanted->key = (number & 8) != 0;
    return number < 16 && wanted->mode <= MODE_COUNTING &&
           (!wanted->tree || wanted->mode != MODE_COUNTING) &&
           (!wanted->key || (!wanted->tree && wanted->mode != MODE_SHARED));
}

static char *put_names(char *at, const struct hold_engine *e, uint32_t first,
                       uint32_t count)
{
    at = image_put(at, count);
    for (uint32_t n = first; n != 0; n = part_at(e, n)->more) {
        at = hold_put_text(at, lock_name(e, part_at(e, n)->lock));
        at = image_put(at, mode_number(part_at(e, n)));
    }
    return at;
}

static enum hf_status walk_grant(struct walk *walk, const struct part *part)
{
    const struct hold_engine *e = walk->e;
    const struct lock *lock = lock_at(e, part->lock);
    bool counting = part->mode == MODE_COUNTING;
    char *at = e->body.data;

    *at++ = 'G';
    at = image_put(at, part->token);
    at = image_put(at, part_expires_us(e, part));
    at = image_put(at, part->acquired_us);
    at = image_put(at, part->count);
    at = image_put(at, mode_number(part));
    at = image_put(at, part->permits);
    at = image_put(at, counting ? lock->max : 0);
    at = image_put(at, part->priority);
    at = image_put(at, part->sealed != SEAL_NONE);
    at = image_put(at, part->mode == MODE_SHARED ? lock->fence : 0);
    at = put_claim(at, e, &part->claim);
    at = hold_put_text(at, lock_name(e, part->lock));
    return walk_give(walk, at, 0);
}

static enum hf_status walk_mark(struct walk *walk, const struct mark *mark)
{
    const struct hold_engine *e = walk->e;
    char *at = e->body.data;

    *at++ = 'M';
    at = image_put(at, mark->order);
    at = image_put(at, mark->closed_us);
    at = image_put(at, mark->done_us);
    at = image_put(at, mark->below_us);
    at = hold_put_text(at, lock_name(e, mark->lock));
    at = hold_put_text(at, hf_text_bytes(&e->texts, mark->result));
    return walk_give(walk, at, 0);
}

/* Of the shared phase that each name is in. */
static char *put_fences(char *at, const struct hold_engine *e, uint32_t first)
{
    for (uint32_t n = first; n != 0; n = part_at(e, n)->more) {
        const struct part *part = part_at(e, n);
        bool shared = part->mode == MODE_SHARED;
        at = image_put(at, shared ? lock_at(e, part->lock)->fence : 0);
    }
    return at;
}

static enum hf_status walk_set(struct walk *walk, const struct set *set)
{
    const struct hold_engine *e = walk->e;
    char *at = e->body.data;

    *at++ = 'T';
    at = image_put(at, set->token);
    at = image_put(at, set->expires_us);
    at = image_put(at, set->acquired_us);
    at = image_put(at, set->count);
    at = image_put(at, set->sealed != SEAL_NONE);
    at = image_put(at, part_at(e, set->first)->priority);
    at = put_claim(at, e, &set->claim);
    at = put_names(at, e, set->first, set->names);
    at = put_fences(at, e, set->first);
    return walk_give(walk, at, 0);
}

enum hf_status sets_walk(struct walk *walk)
{
    const struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->sets); i++) {
        const struct set *set = hf_index_used(&e->sets, i);
        if (set != NULL && set->claim.session == 0)
            status = walk_set(walk, set);
    }
    return status;
}

static enum hf_status walk_waiter(struct walk *walk,
                                  const struct waiter *waiter)
{
    const struct hold_engine *e = walk->e;
    char *at = e->body.data;

    *at++ = 'W';
    at = image_put(at, waiter->ticket);
    at = image_put(at, waiter->order);
    at = image_put(at, waiter->age);
    at = image_put(at, waiter->deadline_us);
    at = image_put(at, waiter->queued_us);
    at = image_put(at, waiter->ttl_ms);
    at = image_put(at, waiter->max);
    at = image_put(at, waiter->flags);
    at = image_put(at, part_at(e, waiter->first)->priority);
    at = image_put(at, part_at(e, waiter->first)->permits);
    at = put_claim(at, e, &waiter->claim);
    at = put_names(at, e, waiter->first, waiter->names);
    return walk_give(walk, at, 0);
}

enum hf_status waiters_walk(struct walk *walk)
{
    const struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->waiters);
         i++) {
        const struct waiter *waiter = hf_index_used(&e->waiters, i);
        if (waiter != NULL && waiter->claim.session == 0)
            status = walk_waiter(walk, waiter);
    }
    return status;
}

/* What a session has, in the order of its list, in which it is loaded. */
static enum hf_status walk_parts(struct walk *walk,
                                 const struct session *session)
{
    const struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;

    for (uint32_t n = session->parts.first; status == HF_OK && n != 0;
         n = part_at(e, n)->kin.next) {
        const struct part *part = part_at(e, n);
        if (part->waits)
            status = walk_waiter(walk, waiter_at(e, part->group));
        else if (part->group != 0)
            status = walk_set(walk, set_at(e, part->group));
        else
            status = walk_grant(walk, part);
    }
    return status;
}

static enum hf_status walk_sessions(struct walk *walk)
{
    const struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->sessions);
         i++) {
        const struct session *session = hf_index_used(&e->sessions, i);
        if (session != NULL)
            status = walk_parts(walk, session);
    }
    return status;
}

enum hf_status locks_walk(struct walk *walk)
{
    const struct hold_engine *e = walk->e;
    enum hf_status status = walk_sessions(walk);

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->locks); i++) {
        const struct lock *lock = hf_index_used(&e->locks, i);
        if (lock == NULL)
            continue;
        for (uint32_t n = lock->grants.first; status == HF_OK && n != 0;
             n = part_at(e, n)->place.next) {
            if (part_at(e, n)->group == 0 && part_at(e, n)->claim.session == 0)
                status = walk_grant(walk, part_at(e, n));
        }
        if (status == HF_OK && lock->mark != 0)
            status = walk_mark(walk, mark_at(e, lock->mark));
    }
    return status;
}

/* ---- Loading. ---- */

/* The lock of that name, made if it is not there; 0 without memory. */
static uint32_t load_lock(struct hold_engine *e, struct hf_bytes name)
{
    uint32_t number = hf_index_find(&e->locks, name);

    return number != 0 ? number
                       : lock_add(e, hf_index_hash(&e->locks, name), name,
                                  name_is_path(name));
}

static enum hf_status load_claim(struct hold_engine *e, struct reader *in,
                                 struct claim *claim)
{
    uint64_t session = read_number(in);
    struct terms terms = {.is_used = read_number(in)};

    terms.maxhold_us = read_number(in);
    terms.delay_ms = read_number(in);
    struct hf_bytes owner = read_text(in);
    struct hf_bytes note = read_text(in);
    claim->session = session == 0 ? 0 : session_find(e, session);
    claim->terms = 0;
    if (in->bad || (session != 0 && claim->session == 0))
        return HF_CORRUPT;
    if (hf_texts_put(&e->texts, owner, owner.len, &claim->owner) != HF_OK)
        return HF_NOMEM;
    if (terms.is_used == 0)
        return HF_OK;
    if (hf_texts_put(&e->texts, note, note.len, &terms.note) != HF_OK)
        return HF_NOMEM;
    claim->terms = hf_slab_take(&e->terms);
    if (claim->terms == 0)
        return HF_NOMEM;
    *terms_edit(e, claim->terms) = terms;
    return HF_OK;
}

/* Are there more grants or waits than a lock can have? */
static bool is_full(const struct hold_engine *e, uint32_t lock)
{
    return lock_at(e, lock)->granted > HOLD_QUEUE_MAX ||
           lock_at(e, lock)->waiting > HOLD_QUEUE_MAX;
}

/* The parts of a set or a waiter, linked. */
static enum hf_status load_names(struct hold_engine *e, struct reader *in,
                                 struct wanted *wanted, uint32_t *first)
{
    uint64_t count = read_number(in);
    uint32_t last = 0;

    *first = 0;
    if (in->bad || count == 0 || count > HOLD_SET_MAX)
        return HF_CORRUPT;
    for (uint64_t i = 0; i < count; i++) {
        struct hf_bytes name = read_text(in);
        bool right = read_mode(read_number(in), wanted);
        if (in->bad || !right || wanted->key || name.len == 0 ||
            name.len > HOLD_NAME_MAX)
            return HF_CORRUPT;
        if (hf_slab_promise(&e->parts, 1) != HF_OK)
            return HF_NOMEM;
        hf_slab_unpromise(&e->parts, 1);
        uint32_t lock = load_lock(e, name);
        if (lock == 0 || (wanted->tree && !tree_use(e, lock)))
            return HF_NOMEM;
        if (is_full(e, lock))
            return HF_CORRUPT;
        uint32_t number = part_new(e, lock, wanted);
        *(last == 0 ? first : &part_edit(e, last)->more) = number;
        last = number;
    }
    return HF_OK;
}

/* Grants are loaded in any order and listed by token. HF_CORRUPT if it cannot
 * be granted beside the others. */
static enum hf_status sort_in(struct hold_engine *e, uint32_t number)
{
    enum lock_mode mode = (enum lock_mode)part_at(e, number)->mode;
    struct list *grants = &lock_edit(e, part_at(e, number)->lock)->grants;
    uint64_t token = part_token(e, part_at(e, number));
    uint32_t behind = part_at(e, number)->place.prev;

    list_remove(GRANTS(e), grants, number);
    while (behind != 0 && part_token(e, part_at(e, behind)) > token)
        behind = part_at(e, behind)->place.prev;
    list_insert(GRANTS(e), grants, number, behind);
    uint32_t next = part_at(e, number)->place.next;
    if ((behind | next) == 0)
        return HF_OK;
    const struct part *other = part_at(e, behind != 0 ? behind : next);
    return other->mode == mode && mode != MODE_EXCLUSIVE &&
                   part_token(e, other) != token
               ? HF_OK
               : HF_CORRUPT;
}

enum hf_status grant_load(struct hold_engine *e, struct reader *in)
{
    uint64_t numbers[10];
    struct claim claim;

    for (int i = 0; i < 10; i++)
        numbers[i] = read_number(in);
    enum hf_status status = load_claim(e, in, &claim);
    if (status != HF_OK)
        return status;
    struct hf_bytes name = read_text(in);
    struct wanted wanted = {.permits = (uint32_t)numbers[5],
                            .priority = (uint32_t)numbers[7]};
    if (in->bad || name.len == 0 || name.len > HOLD_NAME_MAX ||
        numbers[0] == 0 || !read_mode(numbers[4], &wanted))
        return HF_CORRUPT;
    uint32_t lock = load_lock(e, name);
    if (lock == 0 || (wanted.tree && !tree_use(e, lock)) ||
        hf_slab_promise(&e->parts, 1) != HF_OK)
        return HF_NOMEM;
    hf_slab_unpromise(&e->parts, 1);
    if (is_full(e, lock))
        return HF_CORRUPT;
    uint32_t number = part_new(e, lock, &wanted);
    struct part *part = part_edit(e, number);
    part->claim = claim;
    part->token = numbers[0];
    part->acquired_us = numbers[2];
    part->count = (uint32_t)numbers[3];
    part->sealed = numbers[8] != 0 ? SEAL_LOADED : SEAL_NONE;
    grants_join(e, number, part->token, (uint32_t)numbers[6]);
    if (sort_in(e, number) != HF_OK)
        return HF_CORRUPT;
    if (part->mode == MODE_SHARED)
        lock_edit(e, lock)->fence = numbers[9];
    if (claim.session != 0)
        session_join(e, claim.session, number);
    if (claim_promise(e, &claim, 1) != HF_OK)
        return HF_NOMEM;
    return due_load(e, DUE_GRANT, number, numbers[1], part->token);
}

enum hf_status set_load(struct hold_engine *e, struct reader *in)
{
    uint64_t numbers[6];
    struct claim claim;
    uint32_t first;

    for (int i = 0; i < 6; i++)
        numbers[i] = read_number(in);
    struct wanted wanted = {.priority = (uint32_t)numbers[5]};
    enum hf_status status = load_claim(e, in, &claim);
    if (status == HF_OK)
        status = load_names(e, in, &wanted, &first);
    if (status != HF_OK)
        return status;
    if (set_find(e, numbers[0]) != 0)
        return HF_CORRUPT;
    uint32_t number = set_add(e, &claim, first, numbers[0]);
    if (number == 0)
        return HF_NOMEM;
    for (uint32_t n = first; n != 0; n = part_at(e, n)->more) {
        uint64_t fence = read_number(in);
        if (sort_in(e, n) != HF_OK)
            return HF_CORRUPT;
        if (part_at(e, n)->mode == MODE_SHARED)
            lock_edit(e, part_at(e, n)->lock)->fence = fence;
    }
    struct set *set = set_edit(e, number);
    set->expires_us = numbers[1];
    set->acquired_us = numbers[2];
    set->count = (uint32_t)numbers[3];
    set->sealed = numbers[4] != 0 ? SEAL_LOADED : SEAL_NONE;
    if (claim_promise(e, &claim, set->names) != HF_OK)
        return HF_NOMEM;
    return due_load(e, DUE_SET, number, set->expires_us, set->token);
}

/* What preparing its command would have reserved. */
static enum hf_status reserve_waiter(struct hold_engine *e, size_t owner_len)
{
    if (out_reserve(
            e, hf_index_count(&e->waiters) + hf_index_count(&e->buyers) + 2,
            e->waited_answers) != HF_OK ||
        out_reserve_events(e, e->waited_parts + HOLD_SET_MAX,
                           e->waited_bytes + HOLD_SET_MAX * HOLD_NAME_MAX) !=
            HF_OK ||
        hf_index_promise(&e->holders, 8 + owner_len) != HF_OK)
        return HF_NOMEM;
    hf_index_unpromise(&e->holders, 8 + owner_len);
    return HF_OK;
}

enum hf_status waiter_load(struct hold_engine *e, struct reader *in)
{
    uint64_t numbers[10];
    char ticket[8];
    struct claim claim;
    uint32_t first;

    for (int i = 0; i < 10; i++)
        numbers[i] = read_number(in);
    struct wanted wanted = {.priority = (uint32_t)numbers[8],
                            .permits = (uint32_t)numbers[9]};
    enum hf_status status = load_claim(e, in, &claim);
    if (status == HF_OK)
        status = load_names(e, in, &wanted, &first);
    if (status != HF_OK)
        return status;
    hf_put_u64(ticket, numbers[0]);
    if (waiter_find(e, numbers[0]) != 0)
        return HF_CORRUPT;
    uint32_t number = hf_index_add(&e->waiters, hf_bytes(ticket, 8));
    if (number == 0)
        return HF_NOMEM;
    struct waiter *waiter = waiter_edit(e, number);
    waiter->ticket = numbers[0];
    waiter->order = numbers[1];
    waiter->age = numbers[2];
    waiter->deadline_us = numbers[3];
    waiter->queued_us = numbers[4];
    waiter->ttl_ms = numbers[5];
    waiter->max = (uint32_t)numbers[6];
    waiter->flags = numbers[7];
    waiter->claim = claim;
    waiter->first = first;
    if (reserve_waiter(e, claim.owner.len) != HF_OK)
        return HF_NOMEM;
    waiter_enter(e, number);
    if (waiter_promise(e, waiter) != HF_OK)
        return HF_NOMEM;
    return due_load(e, DUE_WAITER, number, waiter->deadline_us, waiter->ticket);
}

enum hf_status mark_load(struct hold_engine *e, struct reader *in)
{
    struct mark mark = {.order = read_number(in)};

    mark.closed_us = read_number(in);
    mark.done_us = read_number(in);
    mark.below_us = read_number(in);
    struct hf_bytes name = read_text(in);
    struct hf_bytes result = read_text(in);
    if (in->bad || name.len == 0 || name.len > HOLD_NAME_MAX)
        return HF_CORRUPT;
    mark.lock = load_lock(e, name);
    if (mark.lock == 0 || (mark.below_us != 0 && !tree_use(e, mark.lock)))
        return HF_NOMEM;
    struct lock *lock = lock_edit(e, mark.lock);
    if (lock->mark != 0)
        return HF_CORRUPT;
    lock->mark = hf_slab_take(&e->marks);
    if (lock->mark == 0 ||
        hf_texts_put(&e->texts, result, result.len, &mark.result) != HF_OK)
        return HF_NOMEM;
    *mark_edit(e, lock->mark) = mark;
    return due_load(e, DUE_MARK, lock->mark, mark_due_us(&mark), mark.order);
}
