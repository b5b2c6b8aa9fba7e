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
#include "flow/limiter_bucket.h"
#include "flow/limiter_hold.h"

#define KEYS_MAX_DEFAULT  UINT64_C(1000000000)
#define HOLDS_MAX_DEFAULT UINT64_C(1000000000)
#define FULL_SWEEP        1000u
#define SHARDS_DEFAULT    64u
#define SHARDS_MAX        256u

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
    row->wait_p99_ns = hf_waits_percentile_ns(&limiter->waits, 99);
}

static void limiter_free(struct hf_limiter *limiter)
{
    if (limiter->shards != NULL)
        hf_limiter_shards_destroy(limiter);
    hf_limiter_top_destroy(limiter);
    hf_limiter_holds_destroy(limiter);
    hf_limiter_rules_destroy(limiter);
    hf_limiter_arena_destroy(&limiter->arena);
    hf_locals_destroy(&limiter->locals);
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
    struct hf_limiter *limiter = hf_alloc_lines(sizeof *limiter);
    if (limiter == NULL)
        return HF_NOMEM;
    limiter->clock = opts->clock != NULL ? opts->clock : hf_clock_system();
    limiter->keys_max = opts->keys_max != 0 ? opts->keys_max : KEYS_MAX_DEFAULT;
    limiter->holds_max =
        opts->holds_max != 0 ? opts->holds_max : HOLDS_MAX_DEFAULT;
    limiter->log_bytes_max =
        opts->log_bytes_max != 0 ? opts->log_bytes_max : UINT64_MAX;
    struct hf_hash_seed seed = seed_make(limiter, opts->seed);
    hf_hasher_init(&limiter->hash, seed);
    limiter->holds.first =
        1 + (uint32_t)(seed.key[0] % (LIMITER_GENERATIONS / 2));
    status = hf_locals_init(&limiter->locals, sizeof(struct limiter_local));
    if (status == HF_OK)
        status = hf_limiter_arena_init(&limiter->arena);
    if (status == HF_OK)
        status = hf_limiter_rules_init(limiter, opts->rule);
    if (status == HF_OK)
        status = hf_limiter_shards_init(
            limiter, opts->shards != 0 ? opts->shards : SHARDS_DEFAULT);
    if (status != HF_OK) {
        limiter_free(limiter);
        return status;
    }
    hf_listed_add(&limiter->listed, "limiter", opts->name, limiter_fill);
    *out = limiter;
    return HF_OK;
}

void hf_limiter_shutdown(struct hf_limiter *limiter)
{
    if (limiter == NULL)
        return;
    /* Release: what was done before it was shut. */
    hf_u32_store(&limiter->closed, 1, __ATOMIC_RELEASE);
    hf_limiter_wait_call_all(limiter);
}

void hf_limiter_close(struct hf_limiter *limiter)
{
    if (limiter == NULL)
        return;
    hf_limiter_shutdown(limiter);
    hf_listed_remove(&limiter->listed);
    limiter_free(limiter);
}

/* ---- What every call begins with. ---- */

struct limiter_local *hf_limiter_local_mine(struct hf_limiter *limiter)
{
    struct limiter_local *local =
        hf_locals_quick(&limiter->locals, sizeof *local);

    if (local == NULL)
        local = hf_locals_mine(&limiter->locals, sizeof *local);
    return local != NULL ? local : &limiter->spare;
}

static bool call_valid(const struct hf_limiter *limiter,
                       const struct hf_limiter_call *call)
{
    return limiter != NULL && call != NULL && call->asks != NULL &&
           call->count >= 1 && call->count <= HF_LIMITER_ASKS_MAX &&
           call->priority < HF_LIMITER_CLASSES;
}

static uint64_t now_of(const struct hf_limiter *limiter, uint64_t now_ns)
{
    return now_ns != 0 ? now_ns : hf_clock_now_ns(limiter->clock);
}

/* ---- The quick way. ---- */

/* One decision, as far as it has come. */
struct quick {
    struct limiter_key key;
    uint32_t number;
    uint32_t word; /* the lock, when the cell was read */
    struct limiter_cell *cell;
    uint64_t state;
    const struct limiter_known *known;
    uint64_t keep_back;
    uint64_t wait_ns;
};

/* The thread's copy of a version; made if it has none. */
static inline const struct limiter_known *known_get(struct hf_limiter *limiter,
                                                    struct limiter_local *local,
                                                    uint32_t number)
{
    struct limiter_known *known = &local->known[number % KNOWN_MAX];
    const struct limiter_version *version = limiter_version_at(limiter, number);

    /* Acquire: the look at the lock that follows comes last. */
    if (__builtin_expect(known->version == number + 1 &&
                             known->stamp ==
                                 hf_u32_load(&version->stamp, __ATOMIC_ACQUIRE),
                         1))
        return known;
    hf_limiter_version_know(version, number, known);
    return known;
}

/* True if the ask means this version of a rule. */
static inline bool known_fits(struct hf_limiter *limiter,
                              const struct limiter_known *known,
                              const struct hf_limiter_ask *ask)
{
    if (ask->own == NULL)
        return limiter_rule_version(limiter, ask->rule) == known->version - 1;
    const struct hf_rate_rule *own = &ask->own->rate;
    return known->given.kind == own->kind &&
           known->given.permits == own->permits &&
           known->given.span_ns == own->span_ns &&
           known->given.burst == own->burst &&
           known->shadow == ask->own->shadow &&
           memcmp(known->keep_back, ask->own->keep_back,
                  sizeof known->keep_back) == 0;
}

/* Reads the cell as it is at quick->word. HF_PENDING: not the quick way;
 * HF_MORE: it was changed meanwhile. */
static inline enum hf_status quick_read(struct hf_limiter *limiter,
                                        struct limiter_local *local,
                                        const struct hf_limiter_ask *ask,
                                        uint32_t priority, struct quick *quick)
{
    struct limiter_cell *cell = quick->cell;
    /* Acquire, here and below: the look at the lock at the end comes last. */
    uint32_t version = hf_u32_load(&cell->version, __ATOMIC_ACQUIRE);
    uint32_t identity = hf_u32_load(&cell->identity, __ATOMIC_ACQUIRE);

    quick->state = hf_u64_load(&cell->words[0], __ATOMIC_ACQUIRE);
    quick->known = known_get(limiter, local, version);
    quick->keep_back = quick->known->keep_back[priority];
    bool fits = !(identity & IDENTITY_HOLDS) &&
                known_fits(limiter, quick->known, ask) &&
                quick->known->plan.words == 1;
    if (__builtin_expect(
            hf_u32_load(&cell->lock, __ATOMIC_ACQUIRE) == quick->word, 1))
        return fits ? HF_OK : HF_PENDING;
    /* The copy may be of something half changed. */
    local->known[version % KNOWN_MAX].version = 0;
    return HF_MORE;
}

static inline void quick_answer(const struct quick *quick, uint64_t state,
                                uint64_t now_ns,
                                struct hf_limiter_answer *answer)
{
    struct rate_state words = {{state, 0}};
    struct hf_rate_answer told;
    bool shadow = quick->known->shadow;
    bool denied = quick->wait_ns != 0 && !shadow;

    hf_rate_state_tell(&quick->known->plan, &words, now_ns, &told);
    answer->allowed = !denied;
    answer->denied_by = denied ? 0 : HF_LIMITER_NOBODY;
    answer->shadow = quick->wait_ns != 0 && shadow;
    answer->limit = told.limit;
    answer->remaining =
        told.remaining -
        (told.remaining < quick->keep_back ? told.remaining : quick->keep_back);
    answer->retry_after_ns = denied ? quick->wait_ns : 0;
    answer->reset_after_ns = told.reset_ns;
    answer->taken_ns = told.taken_ns;
    answer->rule[0] = 0;
    if (denied)
        memcpy(answer->rule, quick->known->name, sizeof answer->rule);
}

/* Of one word, and not on a line: out of the way of those that are. */
static __attribute__((noinline)) uint64_t
slower_wait(const struct hf_rate_plan *plan, uint64_t state, uint64_t cost,
            uint64_t keep_back, uint64_t now_ns, uint64_t *next)
{
    struct rate_state words = {{state, 0}};
    struct rate_state after = words;
    uint64_t wait_ns =
        hf_rate_state_take(plan, &words, cost, keep_back, now_ns, &after);

    *next = after.word[0];
    return wait_ns;
}

/* The wait, or 0 and the word after the take. */
static inline uint64_t quick_wait(const struct quick *quick, uint64_t cost,
                                  uint64_t now_ns, uint64_t *next)
{
    const struct hf_rate_plan *plan = &quick->known->plan;

    if (__builtin_expect(rate_on_line(plan), 1))
        return rate_line_take(plan, quick->state, cost, quick->keep_back,
                              now_ns, next);
    return slower_wait(plan, quick->state, cost, quick->keep_back, now_ns,
                       next);
}

/* HF_PENDING: the general way is to be gone. `answer` may be NULL. */
static inline enum hf_status quick_take(struct hf_limiter *limiter,
                                        struct limiter_local *local,
                                        const struct hf_limiter_ask *ask,
                                        uint32_t priority, bool peek,
                                        uint64_t now_ns, struct quick *quick,
                                        struct hf_limiter_answer *answer)
{
    enum hf_status status = limiter_key_make(limiter, ask, &quick->key);
    uint64_t next = 0;

    if (status != HF_OK)
        return status;
    if (__builtin_expect(local == &limiter->spare, 0))
        return HF_PENDING; /* of all threads: it keeps no copies */
    do {
        quick->number = limiter_find(limiter, &quick->key, &quick->word);
        if (quick->number == 0)
            return HF_PENDING;
        quick->cell = limiter_cell_at(limiter, quick->number);
        status = quick_read(limiter, local, ask, priority, quick);
        if (__builtin_expect(status == HF_MORE, 0))
            continue;
        if (status != HF_OK)
            return status;
        quick->wait_ns = quick_wait(quick, ask->cost, now_ns, &next);
        if (quick->wait_ns != 0 || peek || ask->cost == 0)
            next = quick->state;
        if (next == quick->state)
            break;
    } while (status == HF_MORE || !limiter_lock_seen(quick->cell, quick->word));
    if (next != quick->state) {
        /* Relaxed: unlock releases. */
        hf_u64_store(&quick->cell->words[0], next, __ATOMIC_RELAXED);
        limiter_unlock(limiter, quick->cell);
    }
    if (answer != NULL)
        quick_answer(quick, next, now_ns, answer);
    return HF_OK;
}

static uint32_t bits_of(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

static inline void count_answer(struct hf_limiter *limiter,
                                struct limiter_local *local,
                                const struct hf_limiter_call *call,
                                const struct hf_limiter_answer *answer)
{
    if (__builtin_expect(answer->shadow != 0, 0))
        limiter_count(&local->shadow_denied, bits_of(answer->shadow));
    if (answer->allowed) {
        limiter_count(&local->allowed, 1);
    } else {
        limiter_count(&local->denied, 1);
        const struct hf_limiter_ask *ask = &call->asks[answer->denied_by];
        struct limiter_key key = {.hash = 0};
        (void)limiter_key_make(limiter, ask, &key);
        hf_limiter_top_note(limiter, local, key.hash, ask, answer->rule);
    }
}

static void count_failure(struct limiter_local *local, enum hf_status status)
{
    if (status == HF_FULL || status == HF_NOMEM || status == HF_INVALID)
        limiter_count(&local->refused, 1);
}

static inline enum hf_status decide(struct hf_limiter *limiter,
                                    struct limiter_local *local,
                                    const struct hf_limiter_call *call,
                                    bool peek, uint64_t now_ns,
                                    struct hf_limiter_answer *answer)
{
    enum hf_status status = HF_PENDING;
    struct quick quick;

    if (call->count == 1)
        status = quick_take(limiter, local, &call->asks[0], call->priority,
                            peek, now_ns, &quick, answer);
    if (status == HF_PENDING)
        status = hf_limiter_many(limiter, local, call, peek, now_ns, answer);
    return status;
}

static inline enum hf_status may_ask(const struct hf_limiter *limiter,
                                     const struct hf_limiter_call *call,
                                     const struct hf_limiter_answer *answer)
{
    if (!call_valid(limiter, call) || answer == NULL)
        return HF_INVALID;
    return limiter_shut(limiter) ? HF_CLOSED : HF_OK;
}

enum hf_status hf_limiter_take(struct hf_limiter *limiter,
                               const struct hf_limiter_call *call,
                               struct hf_limiter_answer *answer)
{
    enum hf_status status = may_ask(limiter, call, answer);

    if (status != HF_OK)
        return status;
    struct limiter_local *local = hf_limiter_local_mine(limiter);
    status = decide(limiter, local, call, false, now_of(limiter, call->now_ns),
                    answer);
    if (status == HF_OK)
        count_answer(limiter, local, call, answer);
    else
        count_failure(local, status);
    return status;
}

enum hf_status hf_limiter_try(struct hf_limiter *limiter,
                              const struct hf_limiter_call *call,
                              struct hf_limiter_answer *answer)
{
    struct limiter_local *local = hf_limiter_local_mine(limiter);
    enum hf_status status =
        decide(limiter, local, call, false, call->now_ns, answer);

    if (status == HF_OK && answer->allowed)
        count_answer(limiter, local, call, answer);
    return status;
}

enum hf_status hf_limiter_peek(struct hf_limiter *limiter,
                               const struct hf_limiter_call *call,
                               struct hf_limiter_answer *answer)
{
    enum hf_status status = may_ask(limiter, call, answer);

    if (status != HF_OK)
        return status;
    return decide(limiter, hf_limiter_local_mine(limiter), call, true,
                  now_of(limiter, call->now_ns), answer);
}

enum hf_status hf_limiter_acquire(struct hf_limiter *limiter,
                                  const struct hf_limiter_call *call,
                                  uint64_t deadline_ns,
                                  struct hf_limiter_answer *answer)
{
    struct hf_limiter_answer unused;

    if (!call_valid(limiter, call))
        return HF_INVALID;
    if (limiter_shut(limiter))
        return HF_CLOSED;
    if (answer == NULL)
        answer = &unused;
    *answer = (struct hf_limiter_answer){.allowed = true};
    enum hf_status status =
        hf_limiter_await(limiter, call, deadline_ns, answer);
    struct limiter_local *local = hf_limiter_local_mine(limiter);
    if (status == HF_TIMEOUT && answer->allowed) {
        /* It was never its turn. */
        (void)decide(limiter, local, call, true,
                     hf_clock_now_ns(limiter->clock), answer);
        answer->denied_by = answer->allowed ? 0 : answer->denied_by;
        answer->allowed = false;
    }
    if ((status == HF_TIMEOUT || status == HF_FULL) && !answer->allowed)
        count_answer(limiter, local, call, answer);
    else
        count_failure(local, status);
    return status;
}

bool hf_limiter_allow(struct hf_limiter *limiter, const char *key)
{
    struct hf_limiter_answer answer;
    struct quick quick;

    if (limiter == NULL || key == NULL || limiter_shut(limiter))
        return false;
    struct limiter_local *local = hf_limiter_local_mine(limiter);
    struct hf_limiter_ask ask = {.key = key, .key_len = strlen(key), .cost = 1};
    uint64_t now_ns = hf_clock_now_ns(limiter->clock);
    if (quick_take(limiter, local, &ask, 0, false, now_ns, &quick, NULL) ==
        HF_OK) {
        bool allowed = quick.wait_ns == 0 || quick.known->shadow;
        limiter_count(allowed ? &local->allowed : &local->denied, 1);
        if (quick.wait_ns != 0 && quick.known->shadow)
            limiter_count(&local->shadow_denied, 1);
        if (!allowed)
            hf_limiter_top_note(limiter, local, quick.key.hash, &ask,
                                quick.known->name);
        return allowed;
    }
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = now_ns};
    return hf_limiter_take(limiter, &call, &answer) == HF_OK && answer.allowed;
}

enum hf_status hf_limiter_refund(struct hf_limiter *limiter,
                                 const struct hf_limiter_call *call,
                                 uint64_t taken_ns)
{
    if (!call_valid(limiter, call))
        return HF_INVALID;
    return hf_limiter_give_back(limiter, hf_limiter_local_mine(limiter), call,
                                taken_ns);
}

enum hf_status hf_limiter_hold(struct hf_limiter *limiter,
                               const struct hf_limiter_call *call,
                               uint64_t hold_ns,
                               struct hf_limiter_answer *answer, uint64_t *hold)
{
    if (!call_valid(limiter, call) || answer == NULL || hold == NULL ||
        hold_ns == 0)
        return HF_INVALID;
    if (limiter_shut(limiter))
        return HF_CLOSED;
    struct limiter_local *local = hf_limiter_local_mine(limiter);
    uint64_t now_ns = now_of(limiter, call->now_ns);
    enum hf_status status = hf_limiter_hold_parts(limiter, local, call, hold_ns,
                                                  now_ns, answer, hold);
    if (status == HF_FULL) {
        /* Holds of keys that nobody uses may be over. */
        (void)hf_limiter_sweep(limiter, FULL_SWEEP, now_ns);
        status = hf_limiter_hold_parts(limiter, local, call, hold_ns, now_ns,
                                       answer, hold);
    }
    if (status == HF_OK)
        count_answer(limiter, local, call, answer);
    else
        count_failure(local, status);
    return status;
}

enum hf_status hf_limiter_settle(struct hf_limiter *limiter, uint64_t hold,
                                 uint64_t cost, uint64_t now_ns)
{
    if (limiter == NULL)
        return HF_INVALID;
    return hf_limiter_hold_settle(limiter, hold, cost, now_of(limiter, now_ns));
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
        uint32_t seen = hf_limiter_evict(limiter, shard, most, now_ns, &gone);
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
        .waiters = hf_u32_load(&limiter->waiting, __ATOMIC_RELAXED),
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
