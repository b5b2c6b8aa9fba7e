/* limiter_many.c - several pairs at one instant, and all that is not quick.
 *
 * The cells of a call are found or made, then locked in the order of their
 * numbers, so that two calls never wait for each other. With the locks it is
 * certain whether a cell still has its key: one may have been forgotten
 * between finding and locking, and then all begins again (a key that was just
 * made is passed over once by those who forget keys).
 *
 * All pairs are decided at one instant: if one of the states has seen a later
 * time than the call brings, all are decided at that.
 */
#include <string.h>

#include "flow/limiter_bucket.h"
#include "flow/limiter_hold.h"

static bool same_key(const struct limiter_key *a, const struct limiter_key *b)
{
    return a->hash == b->hash && a->identity == b->identity &&
           (a->len == 0 || memcmp(a->bytes, b->bytes, a->len) == 0);
}

static bool same_rule(const struct hf_limiter_rule *a,
                      const struct hf_limiter_rule *b)
{
    return a->rate.kind == b->rate.kind && a->rate.permits == b->rate.permits &&
           a->rate.burst == b->rate.burst &&
           a->rate.span_ns == b->rate.span_ns && a->shadow == b->shadow &&
           memcmp(a->keep_back, b->keep_back, sizeof a->keep_back) == 0;
}

/* Pairs with the same cell become one part that costs their sum. */
static enum hf_status parts_collect(struct hf_limiter *limiter,
                                    const struct hf_limiter_call *call,
                                    struct limiter_parts *parts)
{
    parts->count = 0;
    for (uint32_t i = 0; i < call->count; i++) {
        const struct hf_limiter_ask *ask = &call->asks[i];
        struct limiter_part *part = &parts->part[parts->count];
        enum hf_status status = limiter_key_make(limiter, ask, &part->key);
        if (status != HF_OK)
            return status;
        uint32_t j = 0;
        while (j < parts->count && !same_key(&parts->part[j].key, &part->key))
            j++;
        if (j == parts->count) {
            part->ask = i;
            part->cost = ask->cost;
            parts->count++;
            continue;
        }
        const struct hf_limiter_ask *first = &call->asks[parts->part[j].ask];
        if (ask->own != NULL && !same_rule(ask->own, first->own))
            return HF_INVALID;
        if (__builtin_add_overflow(parts->part[j].cost, ask->cost,
                                   &parts->part[j].cost))
            parts->part[j].cost = UINT64_MAX;
    }
    return HF_OK;
}

/* Finds the cell; if there is none, and `make`, one with nothing spent. */
static enum hf_status part_find(struct hf_limiter *limiter,
                                struct limiter_local *local,
                                const struct hf_limiter_ask *ask, bool make,
                                struct limiter_part *part, uint64_t *now_ns)
{
    static const struct rate_state empty;
    struct limiter_shard *shard = limiter_shard_of(limiter, part->key.hash);
    uint32_t version, word;

    part->open.number = limiter_find(limiter, &part->key, &word);
    if (part->open.number != 0)
        return HF_OK;
    enum hf_status status =
        hf_limiter_version_use(limiter, local, ask, &version);
    if (status != HF_OK)
        return status;
    hf_mutex_lock(&shard->mutex);
    part->open.number = hf_limiter_find_locked(limiter, shard, &part->key);
    bool found = part->open.number != 0;
    if (!found && make) {
        /* Relaxed: written under this lock. */
        uint64_t evicted = hf_u64_load(&shard->evicted_ns, __ATOMIC_RELAXED);
        status = hf_limiter_add(limiter, shard, &part->key, version, &empty,
                                IDENTITY_FRESH, *now_ns, &part->open.number);
        if (*now_ns < evicted)
            *now_ns = evicted;
    }
    hf_mutex_unlock(&shard->mutex);
    if (found || !make || status != HF_OK)
        hf_limiter_version_drop(limiter, version);
    return status;
}

/* Parts without a cell are left out. */
static void parts_skip(struct limiter_parts *parts)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < parts->count; i++)
        if (parts->part[i].open.number != 0)
            parts->part[kept++] = parts->part[i];
    parts->count = kept;
}

/* By cell number: the order in which they are locked. */
static void parts_sort(struct limiter_parts *parts)
{
    for (uint32_t i = 1; i < parts->count; i++) {
        struct limiter_part part = parts->part[i];
        uint32_t j = i;
        for (; j > 0 && parts->part[j - 1].open.number > part.open.number; j--)
            parts->part[j] = parts->part[j - 1];
        parts->part[j] = part;
    }
}

static void unlock_first(struct hf_limiter *limiter,
                         struct limiter_parts *parts, uint32_t count)
{
    for (uint32_t i = count; i > 0; i--)
        limiter_unlock(limiter, parts->part[i - 1].open.cell);
}

void hf_limiter_parts_unlock(struct hf_limiter *limiter,
                             struct limiter_parts *parts)
{
    unlock_first(limiter, parts, parts->count);
}

/* Locks them all; false and none if one has lost its key. (It may even have
 * become the cell of another part.) */
static bool parts_lock_all(struct hf_limiter *limiter,
                           struct limiter_parts *parts)
{
    for (uint32_t i = 1; i < parts->count; i++)
        if (parts->part[i].open.number == parts->part[i - 1].open.number)
            return false;
    for (uint32_t i = 0; i < parts->count; i++) {
        struct limiter_part *part = &parts->part[i];
        struct limiter_cell *cell = limiter_cell_at(limiter, part->open.number);
        hf_limiter_lock(limiter, cell);
        part->open.cell = cell;
        if (!limiter_cell_is(cell, &part->key)) {
            unlock_first(limiter, parts, i + 1);
            return false;
        }
        /* Relaxed: under the cell's lock. It is in use, no longer fresh. */
        uint32_t identity = hf_u32_load(&cell->identity, __ATOMIC_RELAXED);
        if (identity & IDENTITY_FRESH)
            hf_u32_store(&cell->identity, identity & ~IDENTITY_FRESH,
                         __ATOMIC_RELAXED);
        hf_limiter_cell_open(limiter, cell, part->open.number, &part->open);
    }
    return true;
}

/* Brings all to their rules as they are at one instant: what is found up to
 * date twice was so in between. */
static enum hf_status parts_refresh(struct hf_limiter *limiter,
                                    struct limiter_local *local,
                                    const struct hf_limiter_call *call,
                                    struct limiter_parts *parts)
{
    bool same;

    do {
        for (uint32_t i = 0; i < parts->count; i++) {
            enum hf_status status = hf_limiter_cell_refresh(
                limiter, local, &parts->part[i].open,
                &call->asks[parts->part[i].ask], parts->now_ns);
            if (status != HF_OK)
                return status;
        }
        same = true;
        for (uint32_t i = 0; i < parts->count && parts->count > 1; i++)
            same &= hf_limiter_up_to_date(limiter, &parts->part[i].open,
                                          &call->asks[parts->part[i].ask]);
    } while (!same);
    return HF_OK;
}

enum hf_status hf_limiter_parts_lock(struct hf_limiter *limiter,
                                     struct limiter_local *local,
                                     const struct hf_limiter_call *call,
                                     bool make, uint64_t now_ns,
                                     struct limiter_parts *parts)
{
    enum hf_status status = parts_collect(limiter, call, parts);

    parts->now_ns = now_ns;
    do {
        for (uint32_t i = 0; i < parts->count && status == HF_OK; i++)
            status = part_find(limiter, local, &call->asks[parts->part[i].ask],
                               make, &parts->part[i], &parts->now_ns);
        if (status != HF_OK)
            return status;
        parts_skip(parts);
        parts_sort(parts);
    } while (!parts_lock_all(limiter, parts));
    status = parts_refresh(limiter, local, call, parts);
    if (status != HF_OK)
        hf_limiter_parts_unlock(limiter, parts);
    return status;
}

/* The latest time that a state has seen. */
static uint64_t parts_time(const struct limiter_parts *parts)
{
    uint64_t now_ns = parts->now_ns;

    for (uint32_t i = 0; i < parts->count; i++) {
        const struct limiter_open *open = &parts->part[i].open;
        struct hf_rate_answer told;
        hf_words_tell(&open->plan, &open->words, now_ns, &told);
        if (told.taken_ns > now_ns)
            now_ns = told.taken_ns;
    }
    return now_ns;
}

/* Holds that are over by the time that parts_time() has found. */
static void parts_expire(struct hf_limiter *limiter,
                         struct limiter_parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        struct limiter_open *open = &parts->part[i].open;
        if (open->holds != NULL &&
            hf_limiter_holds_expire(limiter, open, parts->now_ns))
            hf_limiter_cell_store(open);
    }
}

bool hf_limiter_parts_ask(struct hf_limiter *limiter,
                          struct limiter_parts *parts, uint32_t priority)
{
    bool allowed = true;

    if (parts->count > 1) {
        parts->now_ns = parts_time(parts);
        parts_expire(limiter, parts);
    }
    for (uint32_t i = 0; i < parts->count; i++) {
        struct limiter_part *part = &parts->part[i];
        const struct limiter_version *version =
            limiter_version_at(limiter, part->open.version);
        /* Relaxed: the version has a user, the cell. */
        part->shadow = hf_u32_load(&version->shadow, __ATOMIC_RELAXED) != 0;
        part->keep_back =
            hf_u64_load(&version->keep_back[priority], __ATOMIC_RELAXED);
        part->wait_ns = hf_limiter_holds_wait(&part->open, part->cost,
                                              part->keep_back, parts->now_ns);
        allowed &= part->wait_ns == 0 || part->shadow;
    }
    return allowed;
}

enum hf_status hf_limiter_parts_take(struct hf_limiter *limiter,
                                     struct limiter_parts *parts, bool hold)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        struct limiter_open *open = &parts->part[i].open;
        uint64_t bytes = hf_words_bytes(&open->plan, &open->words);
        bool spends = parts->part[i].cost > 0 || hold;
        if (spends &&
            !hf_words_fit(&open->plan, &open->words, &limiter->array_bytes,
                          limiter->log_bytes_max))
            return HF_FULL;
        if (spends && hf_words_ready(&open->plan, &open->words) != HF_OK)
            return HF_NOMEM;
        hf_u64_add(&limiter->array_bytes,
                   hf_words_bytes(&open->plan, &open->words) - bytes,
                   __ATOMIC_RELAXED); /* a figure */
        hf_limiter_cell_store(open);
    }
    for (uint32_t i = 0; i < parts->count; i++) {
        struct limiter_part *part = &parts->part[i];
        if (part->wait_ns != 0) /* a shadow that would deny */
            continue;
        (void)hf_words_take(&part->open.plan, &part->open.words, part->cost,
                            part->keep_back, parts->now_ns);
        hf_limiter_cell_store(&part->open);
    }
    return HF_OK;
}

/* The part whose figures are told: of those that deny the one that is longest
 * in the way, else the one with least left. Earlier asks win. */
static const struct limiter_part *parts_pick(const struct limiter_parts *parts,
                                             bool denied,
                                             struct hf_rate_answer *told)
{
    const struct limiter_part *pick = NULL;
    struct hf_rate_answer each;

    for (uint32_t i = 0; i < parts->count; i++) {
        const struct limiter_part *part = &parts->part[i];
        bool better;
        if (denied && (part->shadow || part->wait_ns == 0))
            continue;
        hf_words_tell(&part->open.plan, &part->open.words, parts->now_ns,
                      &each);
        each.remaining -=
            each.remaining < part->keep_back ? each.remaining : part->keep_back;
        if (pick == NULL)
            better = true;
        else if (denied ? part->wait_ns != pick->wait_ns
                        : each.remaining != told->remaining)
            better = denied ? part->wait_ns > pick->wait_ns
                            : each.remaining < told->remaining;
        else
            better = part->ask < pick->ask;
        if (better) {
            pick = part;
            *told = each;
        }
    }
    return pick;
}

void hf_limiter_parts_answer(struct hf_limiter *limiter,
                             const struct hf_limiter_call *call,
                             const struct limiter_parts *parts,
                             uint64_t given_ns,
                             struct hf_limiter_answer *answer)
{
    struct hf_rate_answer told = {.limit = 0};
    uint64_t late_ns = parts->now_ns - given_ns;
    bool denied = false;

    memset(answer, 0, sizeof *answer);
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct limiter_part *part = &parts->part[i];
        if (part->wait_ns == 0)
            continue;
        denied |= !part->shadow;
        for (uint32_t j = part->ask; part->shadow && j < call->count; j++) {
            struct limiter_key key;
            if (limiter_key_make(limiter, &call->asks[j], &key) == HF_OK &&
                same_key(&key, &part->key))
                answer->shadow |= 1u << j;
        }
    }
    const struct limiter_part *pick = parts_pick(parts, denied, &told);
    answer->allowed = !denied;
    answer->denied_by = denied ? pick->ask : HF_LIMITER_NOBODY;
    answer->limit = told.limit;
    answer->remaining = told.remaining;
    answer->reset_after_ns = told.reset_ns == 0 ? 0 : told.reset_ns + late_ns;
    answer->taken_ns = told.taken_ns;
    if (!denied)
        return;
    answer->retry_after_ns = pick->wait_ns == HF_RATE_NEVER
                                 ? HF_LIMITER_NEVER
                                 : pick->wait_ns + late_ns;
    hf_limiter_version_name(limiter_version_at(limiter, pick->open.version),
                            answer->rule);
}

/* The shard's lock is held and the key is not there: takes, and adds the key
 * with what is spent then. A refusal adds nothing. */
static enum hf_status absent_take(struct hf_limiter *limiter,
                                  struct limiter_shard *shard,
                                  struct limiter_parts *parts, bool peek,
                                  uint64_t now_ns)
{
    struct limiter_part *part = &parts->part[0];
    struct limiter_open *open = &part->open;

    if (part->wait_ns != 0 || peek || part->cost == 0)
        return HF_OK;
    if (!hf_words_fit(&open->plan, &open->words, &limiter->array_bytes,
                      limiter->log_bytes_max))
        hf_limiter_evict_some(limiter, shard, now_ns);
    if (!hf_words_fit(&open->plan, &open->words, &limiter->array_bytes,
                      limiter->log_bytes_max))
        return HF_FULL;
    if (hf_words_take(&open->plan, &open->words, part->cost, part->keep_back,
                      parts->now_ns) != HF_OK)
        return HF_NOMEM;
    enum hf_status status =
        hf_limiter_add(limiter, shard, &part->key, open->version, &open->words,
                       0, now_ns, &open->number);
    if (status == HF_OK)
        hf_u64_add(&limiter->array_bytes,
                   hf_words_bytes(&open->plan, &open->words),
                   __ATOMIC_RELAXED); /* a figure */
    else
        hf_words_clear(&open->plan, &open->words);
    return status;
}

/* One pair whose key is not there. HF_PENDING: it is. */
static enum hf_status absent(struct hf_limiter *limiter,
                             struct limiter_local *local,
                             const struct hf_limiter_call *call, bool peek,
                             uint64_t now_ns, struct hf_limiter_answer *answer)
{
    struct limiter_parts parts;
    struct limiter_open *open = &parts.part[0].open;
    enum hf_status status = parts_collect(limiter, call, &parts);

    if (status == HF_OK)
        status = hf_limiter_version_use(limiter, local, &call->asks[0],
                                        &open->version);
    if (status != HF_OK)
        return status;
    struct limiter_shard *shard =
        limiter_shard_of(limiter, parts.part[0].key.hash);
    limiter_version_plan(limiter_version_at(limiter, open->version),
                         &open->plan);
    open->words = (struct rate_state){{0, 0}};
    open->holds = NULL;
    open->number = 0;
    hf_mutex_lock(&shard->mutex);
    /* Relaxed: written under this lock. */
    uint64_t evicted_ns = hf_u64_load(&shard->evicted_ns, __ATOMIC_RELAXED);
    parts.now_ns = now_ns > evicted_ns ? now_ns : evicted_ns;
    if (hf_limiter_find_locked(limiter, shard, &parts.part[0].key) != 0 ||
        !hf_limiter_up_to_date(limiter, open, &call->asks[0])) {
        /* The rule is looked at with the lock that every other call for this
         * key needs: nobody can have seen a newer one before us. */
        status = HF_PENDING;
    } else {
        (void)hf_limiter_parts_ask(limiter, &parts, call->priority);
        status = absent_take(limiter, shard, &parts, peek, now_ns);
    }
    if (status == HF_OK)
        hf_limiter_parts_answer(limiter, call, &parts, now_ns, answer);
    hf_mutex_unlock(&shard->mutex);
    if (open->number == 0)
        hf_limiter_version_drop(limiter, open->version);
    return status;
}

enum hf_status hf_limiter_many(struct hf_limiter *limiter,
                               struct limiter_local *local,
                               const struct hf_limiter_call *call, bool peek,
                               uint64_t now_ns,
                               struct hf_limiter_answer *answer)
{
    struct limiter_parts parts;
    enum hf_status status;

    if (call->count == 1) {
        struct limiter_key key;
        uint32_t word;
        status = limiter_key_make(limiter, &call->asks[0], &key);
        if (status != HF_OK)
            return status;
        while (limiter_find(limiter, &key, &word) == 0) {
            status = absent(limiter, local, call, peek, now_ns, answer);
            if (status != HF_PENDING)
                return status;
        }
    }
    status = hf_limiter_parts_lock(limiter, local, call, true, now_ns, &parts);
    if (status != HF_OK)
        return status;
    bool allowed = hf_limiter_parts_ask(limiter, &parts, call->priority);
    if (allowed && !peek)
        status = hf_limiter_parts_take(limiter, &parts, false);
    if (status == HF_OK)
        hf_limiter_parts_answer(limiter, call, &parts, now_ns, answer);
    hf_limiter_parts_unlock(limiter, &parts);
    return status;
}

/* Keys that have nothing spent are not made for it. */
enum hf_status hf_limiter_give_back(struct hf_limiter *limiter,
                                    struct limiter_local *local,
                                    const struct hf_limiter_call *call,
                                    uint64_t taken_ns)
{
    struct limiter_parts parts;
    enum hf_status status =
        hf_limiter_parts_lock(limiter, local, call, false, taken_ns, &parts);

    if (status != HF_OK)
        return status;
    for (uint32_t i = 0; i < parts.count; i++) {
        struct limiter_open *open = &parts.part[i].open;
        hf_words_refund(&open->plan, &open->words, parts.part[i].cost,
                        taken_ns);
        hf_limiter_cell_store(open);
    }
    hf_limiter_parts_unlock(limiter, &parts);
    for (uint32_t i = 0; i < parts.count; i++)
        hf_limiter_wait_call(
            limiter, hf_limiter_wait_id((uint32_t)parts.part[i].key.hash,
                                        parts.part[i].key.identity));
    return HF_OK;
}
