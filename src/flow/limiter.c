/* limiter.c - open and close, and a decision about one pair.
 *
 * The quick way reads the cell and the rule without a lock, decides, and then
 * either finds the lock word unchanged, and what it read was one state (a
 * refusal is done), or takes the lock by a compare-and-swap of that same word,
 * which says the same, and stores the new state. All that is not quick goes
 * the general way: a key that is not there, a rule that was changed, holds,
 * states that are not one word, several pairs.
 */
#include "holdfast/limiter.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "flow/limiter_hold.h"
#include "flow/limiter_state.h"

#define KEYS_MAX_DEFAULT UINT64_C(1000000000)
#define SHARDS_DEFAULT   64u
#define SHARDS_MAX       256u

/* ---- Open and close. ---- */

static void limiter_fill(const struct hf_listed *listed,
                         struct hf_inspect_row *row)
{
    const struct hf_limiter *limiter = (const struct hf_limiter *)listed;
    struct hf_limiter_stats stats;

    hf_limiter_stats(limiter, &stats);
    row->depth = stats.keys;
    row->capacity = stats.keys_max;
    row->rejected = stats.denied + stats.refused;
}

static void limiter_free(struct hf_limiter *limiter)
{
    if (limiter->shards != NULL)
        limiter_shards_release(limiter);
    limiter_holds_release(limiter);
    limiter_rules_release(limiter);
    limiter_arena_release(&limiter->arena);
    hf_locals_release(&limiter->locals);
    hf_free(limiter);
}

static struct hf_hash_seed seed_make(const struct hf_limiter *limiter,
                                     uint64_t seed)
{
    struct hf_random random;

    if (seed == 0)
        seed = hf_clock_now_ns(hf_clock_system()) ^
               (uint64_t)(uintptr_t)limiter << 20 ^
               (uint64_t)(uintptr_t)&random;
    hf_random_init(&random, seed);
    return (struct hf_hash_seed){
        {hf_random_next(&random), hf_random_next(&random)}};
}

static bool opts_valid(const struct hf_limiter_opts *opts)
{
    return (opts->shards & (opts->shards - 1)) == 0 &&
           opts->shards <= SHARDS_MAX;
}

enum hf_status hf_limiter_open(struct hf_limiter **out,
                               const struct hf_limiter_opts *opts)
{
    static const struct hf_limiter_opts defaults;
    enum hf_status status;

    if (opts == NULL)
        opts = &defaults;
    if (out == NULL || !opts_valid(opts))
        return HF_INVALID;
    struct hf_limiter *limiter =
        hf_alloc_aligned(_Alignof(struct hf_limiter), sizeof *limiter);
    if (limiter == NULL)
        return HF_NOMEM;
    memset(limiter, 0, sizeof *limiter);
    limiter->clock = opts->clock != NULL ? opts->clock : hf_clock_system();
    limiter->keys_max = opts->keys_max != 0 ? opts->keys_max : KEYS_MAX_DEFAULT;
    map_hash_init(&limiter->hash, seed_make(limiter, opts->seed));
    status = hf_locals_init(&limiter->locals, sizeof(struct limiter_local));
    if (status == HF_OK)
        status = limiter_arena_init(&limiter->arena);
    if (status == HF_OK)
        status = limiter_rules_init(limiter, opts->rule);
    if (status == HF_OK)
        status = limiter_shards_init(
            limiter, opts->shards != 0 ? opts->shards : SHARDS_DEFAULT);
    if (status != HF_OK) {
        limiter_free(limiter);
        return status;
    }
    hf_listed_add(&limiter->listed, "limiter", opts->name, limiter_fill);
    *out = limiter;
    return HF_OK;
}

void hf_limiter_shut(struct hf_limiter *limiter)
{
    if (limiter == NULL)
        return;
    /* Release: what was done before it was shut. */
    hf_u32_store(&limiter->closed, 1, __ATOMIC_RELEASE);
}

void hf_limiter_close(struct hf_limiter *limiter)
{
    if (limiter == NULL)
        return;
    hf_limiter_shut(limiter);
    hf_listed_remove(&limiter->listed);
    limiter_free(limiter);
}

/* ---- What every call begins with. ---- */

struct limiter_local *limiter_local_mine(struct hf_limiter *limiter)
{
    struct limiter_local *local =
        hf_locals_quick(&limiter->locals, sizeof *local);

    if (local == NULL)
        local = hf_locals_mine(&limiter->locals, sizeof *local);
    return local != NULL ? local : &limiter->spare;
}

enum hf_status limiter_key_make(const struct hf_limiter *limiter,
                                const struct hf_limiter_ask *ask,
                                struct limiter_key *key)
{
    uint32_t family = ask->own != NULL ? FAMILY_OWN : ask->rule & 0xffff;

    if (ask->key_len > HF_LIMITER_KEY_MAX ||
        (ask->key == NULL && ask->key_len > 0))
        return HF_INVALID;
    key->bytes = ask->key;
    key->len = (uint32_t)ask->key_len;
    key->identity = family << 16 | IDENTITY_LIVE | key->len;
    key->hash = map_hash(&limiter->hash, ask->key, ask->key_len) +
                family * UINT64_C(0x9e3779b97f4a7c15);
    return HF_OK;
}

static bool call_valid(const struct hf_limiter *limiter,
                       const struct hf_limiter_call *call)
{
    return limiter != NULL && call != NULL && call->asks != NULL &&
           call->count >= 1 && call->count <= HF_LIMITER_ASKS_MAX &&
           call->priority < HF_LIMITER_CLASSES;
}

static bool shut(const struct hf_limiter *limiter)
{
    /* Relaxed: a call that overlaps with shut may come before or after. */
    return hf_u32_load(&limiter->closed, __ATOMIC_RELAXED) != 0;
}

static uint64_t now_of(const struct hf_limiter *limiter, uint64_t now_ns)
{
    return now_ns != 0 ? now_ns : hf_clock_now_ns(limiter->clock);
}

/* ---- The quick way. ---- */

/* What was read of a cell, if `sure`. */
struct quick {
    uint32_t number;
    uint32_t word; /* the lock, when it was read */
    bool sure;
    bool shadow;
    struct limiter_cell *cell;
    uint64_t state;
    uint64_t keep_back;
    struct hf_rate_plan plan;
};

/* Reads the cell of a key. Not sure: the general way is to be gone. */
static inline void quick_read(struct hf_limiter *limiter,
                              const struct limiter_key *key,
                              const struct hf_limiter_ask *ask,
                              uint32_t priority, struct quick *quick)
{
    quick->sure = false;
    quick->number = limiter_find(limiter, key, &quick->word);
    if (quick->number == 0)
        return;
    struct limiter_cell *cell = limiter_cell_at(limiter, quick->number);
    quick->cell = cell;
    /* Acquire, here and below: the look at the lock at the end comes last. */
    uint32_t number = hf_u32_load(&cell->version, __ATOMIC_ACQUIRE);
    uint32_t identity = hf_u32_load(&cell->identity, __ATOMIC_ACQUIRE);
    const struct limiter_version *version = limiter_version_at(limiter, number);
    bool fits = !(identity & IDENTITY_HOLDS);

    if (ask->own != NULL) {
        fits &= limiter_version_is(version, ask->own);
    } else {
        const struct limiter_policy *policy =
            limiter_policy_of(limiter, ask->rule);
        fits &= policy != NULL &&
                hf_u32_load(&policy->current, __ATOMIC_ACQUIRE) == number;
    }
    quick->state = hf_u64_load(&cell->words[0], __ATOMIC_ACQUIRE);
    quick->keep_back =
        hf_u64_load(&version->keep_back[priority], __ATOMIC_ACQUIRE);
    quick->shadow = hf_u32_load(&version->shadow, __ATOMIC_ACQUIRE) != 0;
    limiter_version_plan(version, &quick->plan);
    quick->sure = fits && rate_on_line(&quick->plan) &&
                  quick->plan.words == 1 &&
                  hf_u32_load(&cell->lock, __ATOMIC_ACQUIRE) == quick->word;
}

static void quick_answer(struct hf_limiter *limiter,
                         const struct limiter_key *key,
                         const struct quick *quick, uint64_t state,
                         uint64_t wait_ns, uint64_t now_ns,
                         struct hf_limiter_answer *answer)
{
    struct rate_state words = {{state, 0}};
    struct hf_rate_answer told;
    bool denied = wait_ns != 0 && !quick->shadow;

    rate_state_tell(&quick->plan, &words, now_ns, &told);
    answer->allowed = !denied;
    answer->denied_by = denied ? 0 : HF_LIMITER_NOBODY;
    answer->shadow = wait_ns != 0 && quick->shadow;
    answer->limit = told.limit;
    answer->remaining =
        told.remaining -
        (told.remaining < quick->keep_back ? told.remaining : quick->keep_back);
    answer->retry_after_ns = denied ? wait_ns : 0;
    answer->reset_after_ns = told.reset_ns;
    answer->taken_ns = told.taken_ns;
    answer->rule[0] = 0;
    if (denied)
        limiter_rule_name(limiter, key->identity >> 16, answer->rule);
}

/* HF_PENDING: the general way is to be gone. `answer` may be NULL; the wait is
 * what is returned by `wait_ns` in any case. */
static inline enum hf_status
quick_take(struct hf_limiter *limiter, const struct hf_limiter_ask *ask,
           uint32_t priority, bool peek, uint64_t now_ns, uint64_t *wait_ns,
           bool *shadow, struct hf_limiter_answer *answer)
{
    struct limiter_key key;
    struct quick quick;
    uint64_t next = 0;
    enum hf_status status = limiter_key_make(limiter, ask, &key);

    if (status != HF_OK)
        return status;
    do {
        quick_read(limiter, &key, ask, priority, &quick);
        if (!quick.sure)
            return HF_PENDING;
        *wait_ns = rate_line_take(&quick.plan, quick.state, ask->cost,
                                  quick.keep_back, now_ns, &next);
        *shadow = quick.shadow;
        if (*wait_ns != 0 || peek || ask->cost == 0)
            next = quick.state;
        if (next == quick.state)
            break;
    } while (!limiter_lock_seen(quick.cell, quick.word));
    if (next != quick.state) {
        /* Relaxed: unlock releases. */
        hf_u64_store(&quick.cell->words[0], next, __ATOMIC_RELAXED);
        limiter_unlock(limiter, quick.cell, quick.number);
    }
    if (answer != NULL)
        quick_answer(limiter, &key, &quick, next, *wait_ns, now_ns, answer);
    return HF_OK;
}

static uint32_t bits_of(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

static void count_answer(struct limiter_local *local,
                         const struct hf_limiter_answer *answer)
{
    limiter_count(answer->allowed ? &local->allowed : &local->denied, 1);
    if (answer->shadow != 0)
        limiter_count(&local->shadow_denied, bits_of(answer->shadow));
}

static enum hf_status decide(struct hf_limiter *limiter,
                             const struct hf_limiter_call *call, bool peek,
                             struct hf_limiter_answer *answer)
{
    if (!call_valid(limiter, call) || answer == NULL)
        return HF_INVALID;
    if (shut(limiter))
        return HF_CLOSED;
    struct limiter_local *local = limiter_local_mine(limiter);
    uint64_t now_ns = now_of(limiter, call->now_ns);
    enum hf_status status = HF_PENDING;
    uint64_t wait_ns;
    bool shadow;
    if (call->count == 1)
        status = quick_take(limiter, &call->asks[0], call->priority, peek,
                            now_ns, &wait_ns, &shadow, answer);
    if (status == HF_PENDING)
        status = limiter_many(limiter, local, call, peek, now_ns, answer);
    if (peek)
        return status;
    if (status == HF_OK)
        count_answer(local, answer);
    else if (status == HF_FULL || status == HF_NOMEM)
        limiter_count(&local->refused, 1);
    return status;
}

enum hf_status hf_limiter_take(struct hf_limiter *limiter,
                               const struct hf_limiter_call *call,
                               struct hf_limiter_answer *answer)
{
    return decide(limiter, call, false, answer);
}

enum hf_status hf_limiter_peek(struct hf_limiter *limiter,
                               const struct hf_limiter_call *call,
                               struct hf_limiter_answer *answer)
{
    return decide(limiter, call, true, answer);
}

bool hf_limiter_allow(struct hf_limiter *limiter, const char *key)
{
    struct hf_limiter_answer answer;
    uint64_t wait_ns;
    bool shadow;

    if (limiter == NULL || key == NULL || shut(limiter))
        return false;
    struct hf_limiter_ask ask = {.key = key, .key_len = strlen(key), .cost = 1};
    uint64_t now_ns = hf_clock_now_ns(limiter->clock);
    if (quick_take(limiter, &ask, 0, false, now_ns, &wait_ns, &shadow, NULL) ==
        HF_OK) {
        struct limiter_local *local = limiter_local_mine(limiter);
        bool allowed = wait_ns == 0 || shadow;
        limiter_count(allowed ? &local->allowed : &local->denied, 1);
        if (wait_ns != 0 && shadow)
            limiter_count(&local->shadow_denied, 1);
        return allowed;
    }
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = now_ns};
    return decide(limiter, &call, false, &answer) == HF_OK && answer.allowed;
}

enum hf_status hf_limiter_refund(struct hf_limiter *limiter,
                                 const struct hf_limiter_call *call,
                                 uint64_t taken_ns)
{
    if (!call_valid(limiter, call))
        return HF_INVALID;
    return limiter_refund(limiter, limiter_local_mine(limiter), call, taken_ns);
}

enum hf_status hf_limiter_hold(struct hf_limiter *limiter,
                               const struct hf_limiter_call *call,
                               uint64_t hold_ns,
                               struct hf_limiter_answer *answer, uint64_t *hold)
{
    if (!call_valid(limiter, call) || answer == NULL || hold == NULL ||
        hold_ns == 0)
        return HF_INVALID;
    if (shut(limiter))
        return HF_CLOSED;
    struct limiter_local *local = limiter_local_mine(limiter);
    enum hf_status status =
        limiter_hold(limiter, local, call, hold_ns,
                     now_of(limiter, call->now_ns), answer, hold);
    if (status == HF_OK)
        count_answer(local, answer);
    else if (status == HF_FULL || status == HF_NOMEM)
        limiter_count(&local->refused, 1);
    return status;
}

enum hf_status hf_limiter_settle(struct hf_limiter *limiter, uint64_t hold,
                                 uint64_t cost, uint64_t now_ns)
{
    if (limiter == NULL)
        return HF_INVALID;
    return limiter_settle(limiter, hold, cost, now_of(limiter, now_ns));
}

/* ---- What happened. ---- */

uint64_t hf_limiter_sweep(struct hf_limiter *limiter, uint64_t count,
                          uint64_t now_ns)
{
    uint64_t evicted = 0;

    if (limiter == NULL)
        return 0;
    now_ns = now_of(limiter, now_ns);
    for (uint32_t i = 0; i < limiter->shard_count && count > 0; i++) {
        /* Relaxed: where to look. */
        uint32_t turn = hf_u32_add(&limiter->evict_turn, 1, __ATOMIC_RELAXED);
        struct limiter_shard *shard =
            &limiter->shards[turn & (limiter->shard_count - 1)];
        uint32_t most = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
        uint32_t gone = 0;
        hf_mutex_lock(&shard->mutex);
        uint32_t seen = limiter_evict(limiter, shard, most, now_ns, &gone);
        hf_mutex_unlock(&shard->mutex);
        evicted += gone;
        count -= seen < count ? seen : count;
    }
    return evicted;
}

static void sum_local(struct hf_limiter_stats *out,
                      const struct limiter_local *local)
{
    /* Relaxed: figures. */
    out->allowed += hf_u64_load(&local->allowed, __ATOMIC_RELAXED);
    out->denied += hf_u64_load(&local->denied, __ATOMIC_RELAXED);
    out->shadow_denied += hf_u64_load(&local->shadow_denied, __ATOMIC_RELAXED);
    out->refused += hf_u64_load(&local->refused, __ATOMIC_RELAXED);
}

void hf_limiter_stats(const struct hf_limiter *limiter,
                      struct hf_limiter_stats *out)
{
    const struct limiter_local *local;
    uint32_t slot = 0;

    if (limiter == NULL || out == NULL)
        return;
    /* Relaxed throughout: figures. */
    *out = (struct hf_limiter_stats){
        .keys = hf_u64_load(&limiter->keys, __ATOMIC_RELAXED),
        .keys_max = limiter->keys_max,
        .bytes = sizeof *limiter +
                 limiter->shard_count * sizeof(struct limiter_shard) +
                 hf_u64_load(&limiter->arena.bytes, __ATOMIC_RELAXED) +
                 hf_u64_load(&limiter->array_bytes, __ATOMIC_RELAXED),
        .holds = hf_u64_load(&limiter->holds.open, __ATOMIC_RELAXED),
        .rules = hf_u64_load(&limiter->rules.named, __ATOMIC_RELAXED),
    };
    sum_local(out, &limiter->spare);
    while ((local = hf_locals_next(&limiter->locals, &slot)) != NULL)
        sum_local(out, local);
    for (uint32_t i = 0; i < limiter->shard_count; i++)
        out->evictions +=
            hf_u64_load(&limiter->shards[i].evictions, __ATOMIC_RELAXED);
}
