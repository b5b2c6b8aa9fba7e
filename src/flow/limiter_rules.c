/* limiter_rules.c - rules by name, and what they were before.
 *
 * A policy is a name and the number of its current version. To change a rule
 * is to make a new version: keys that still have words of the old one are
 * brought over when they are next used. Numbers that come with calls are
 * versions too, of no policy; equal numbers share one.
 *
 * A version is used by cells. It counts them, so that its memory can be given
 * to another rule when it is no longer the rule and the last has gone. Who
 * starts to use one counts first and looks for RETIRED after, and whether it
 * still is what it looked for; who retires one marks first and looks for users
 * after.
 */
#include <string.h>

#include "base/memory.h"
#include "flow/limiter_state.h"

#define DEFAULT_BURST  10u
#define DEFAULT_PER_NS UINT64_C(1000000000)

/* ---- Versions. ---- */

static uint32_t numbers_head(const struct hf_limiter_rule *rule)
{
    uint64_t mixed =
        ((uint64_t)rule->rate.permits * 31 + rule->rate.burst) * 31 +
        rule->rate.span_ns;

    mixed *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 56) % NAME_HEADS;
}

bool hf_limiter_version_is(const struct limiter_version *version,
                           const struct hf_limiter_rule *rule)
{
    bool same = true;

    /* Acquire: so that the look at the lock that follows comes after. */
    for (uint32_t i = 0; i < HF_LIMITER_CLASSES; i++)
        same &= hf_u64_load(&version->keep_back[i], __ATOMIC_ACQUIRE) ==
                rule->keep_back[i];
    return same &&
           hf_u64_load(&version->given[0], __ATOMIC_ACQUIRE) ==
               (uint64_t)rule->rate.kind &&
           hf_u64_load(&version->given[1], __ATOMIC_ACQUIRE) ==
               rule->rate.permits &&
           hf_u64_load(&version->given[2], __ATOMIC_ACQUIRE) ==
               rule->rate.span_ns &&
           hf_u64_load(&version->given[3], __ATOMIC_ACQUIRE) ==
               rule->rate.burst &&
           hf_u32_load(&version->shadow, __ATOMIC_ACQUIRE) ==
               (uint32_t)rule->shadow;
}

void hf_limiter_version_know(const struct limiter_version *version,
                             uint32_t number, struct limiter_known *known)
{
    known->version = number + 1;
    /* Acquire, here and below: the look at the lock that follows comes last. */
    known->stamp = hf_u32_load(&version->stamp, __ATOMIC_ACQUIRE);
    known->shadow = hf_u32_load(&version->shadow, __ATOMIC_ACQUIRE) != 0;
    limiter_version_plan(version, &known->plan);
    hf_limiter_version_name(version, known->name);
    for (uint32_t i = 0; i < HF_LIMITER_CLASSES; i++)
        known->keep_back[i] =
            hf_u64_load(&version->keep_back[i], __ATOMIC_ACQUIRE);
    known->given = (struct hf_rate_rule){
        .kind = (enum hf_rate_kind)hf_u64_load(&version->given[0],
                                               __ATOMIC_ACQUIRE),
        .permits = (uint32_t)hf_u64_load(&version->given[1], __ATOMIC_ACQUIRE),
        .span_ns = hf_u64_load(&version->given[2], __ATOMIC_ACQUIRE),
        .burst = (uint32_t)hf_u64_load(&version->given[3], __ATOMIC_ACQUIRE),
    };
}

void hf_limiter_version_name(const struct limiter_version *version,
                             char name[HF_NAME_BYTES])
{
    uint64_t words[HF_NAME_BYTES / 8];

    /* Acquire: as above. */
    for (uint32_t i = 0; i < HF_NAME_BYTES / 8; i++)
        words[i] = hf_u64_load(&version->name[i], __ATOMIC_ACQUIRE);
    memcpy(name, words, sizeof words);
}

/* Relaxed: whoever is led to the version finds it through a release. */
static void version_fill(struct limiter_version *version, const char *name,
                         const struct hf_limiter_rule *rule,
                         const struct hf_rate_plan *plan, uint32_t family,
                         uint32_t generation)
{
    uint64_t words[PLAN_WORDS];
    uint64_t name_words[HF_NAME_BYTES / 8] = {0};

    hf_u32_add(&version->stamp, 1, __ATOMIC_RELAXED);
    memcpy(name_words, name, strlen(name));
    for (uint32_t i = 0; i < HF_NAME_BYTES / 8; i++)
        hf_u64_store(&version->name[i], name_words[i], __ATOMIC_RELAXED);
    memcpy(words, plan, sizeof words);
    for (uint32_t i = 0; i < PLAN_WORDS; i++)
        hf_u64_store(&version->plan[i], words[i], __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < HF_LIMITER_CLASSES; i++)
        hf_u64_store(&version->keep_back[i], rule->keep_back[i],
                     __ATOMIC_RELAXED);
    hf_u64_store(&version->given[0], (uint64_t)rule->rate.kind,
                 __ATOMIC_RELAXED);
    hf_u64_store(&version->given[1], rule->rate.permits, __ATOMIC_RELAXED);
    hf_u64_store(&version->given[2], rule->rate.span_ns, __ATOMIC_RELAXED);
    hf_u64_store(&version->given[3], rule->rate.burst, __ATOMIC_RELAXED);
    hf_u32_store(&version->shadow, rule->shadow, __ATOMIC_RELAXED);
    hf_u32_store(&version->family, family, __ATOMIC_RELAXED);
    hf_u32_store(&version->generation, generation, __ATOMIC_RELAXED);
}

static void version_read(const struct limiter_version *version,
                         struct hf_limiter_rule *rule)
{
    *rule = (struct hf_limiter_rule){
        .rate = {.kind = (enum hf_rate_kind)hf_u64_load(&version->given[0],
                                                        __ATOMIC_RELAXED),
                 .permits = (uint32_t)hf_u64_load(&version->given[1],
                                                  __ATOMIC_RELAXED),
                 .span_ns = hf_u64_load(&version->given[2], __ATOMIC_RELAXED),
                 .burst = (uint32_t)hf_u64_load(&version->given[3],
                                                __ATOMIC_RELAXED)},
        .shadow = hf_u32_load(&version->shadow, __ATOMIC_RELAXED) != 0,
    };
    for (uint32_t i = 0; i < HF_LIMITER_CLASSES; i++)
        rule->keep_back[i] =
            hf_u64_load(&version->keep_back[i], __ATOMIC_RELAXED);
}

static void numbers_unlink(struct hf_limiter *limiter, uint32_t number)
{
    struct limiter_version *version = limiter_version_at(limiter, number);
    struct hf_limiter_rule rule;

    version_read(version, &rule);
    uint32_t *link = &limiter->rules.by_numbers[numbers_head(&rule)];
    while (*link != number + 1)
        link = &limiter_version_at(limiter, *link - 1)->next;
    *link = version->next;
}

/* Frees a version that is retired and has no user; once. (r) */
static void version_reap(struct hf_limiter *limiter, uint32_t number)
{
    struct limiter_version *version = limiter_version_at(limiter, number);
    uint32_t retired = USERS_RETIRED;

    /* Acquire: what its users did. */
    if (!hf_u32_cas(&version->users, &retired, USERS_DEAD, __ATOMIC_ACQUIRE))
        return;
    if (hf_u32_load(&version->family, __ATOMIC_RELAXED) == FAMILY_OWN)
        numbers_unlink(limiter, number);
    version->next = limiter->rules.version_free;
    limiter->rules.version_free = number + 1;
}

/* (r) */
static void version_retire(struct hf_limiter *limiter, uint32_t number)
{
    struct limiter_version *version = limiter_version_at(limiter, number);

    /* seq_cst, with the add of who starts to use it: see above. */
    hf_u32_or(&version->users, USERS_RETIRED, __ATOMIC_SEQ_CST);
    version_reap(limiter, number);
}

void hf_limiter_version_drop(struct hf_limiter *limiter, uint32_t number)
{
    struct limiter_version *version = limiter_version_at(limiter, number);

    /* Release: what we did with it. */
    if (hf_u32_sub(&version->users, 1, __ATOMIC_RELEASE) != (USERS_RETIRED | 1))
        return;
    hf_mutex_lock(&limiter->rules.mutex);
    version_reap(limiter, number);
    hf_mutex_unlock(&limiter->rules.mutex);
}

/* One more user, if it is still a rule. */
static bool version_take(struct hf_limiter *limiter, uint32_t number)
{
    struct limiter_version *version = limiter_version_at(limiter, number);

    /* Acquire: the rule. seq_cst: see above. */
    if (!(hf_u32_add(&version->users, 1, __ATOMIC_SEQ_CST) &
          (USERS_RETIRED | USERS_DEAD)))
        return true;
    hf_limiter_version_drop(limiter, number);
    return false;
}

/* Numbers that no key uses any more. (r) */
static void versions_collect(struct hf_limiter *limiter)
{
    for (uint32_t i = 0; i < limiter->rules.version_top; i++) {
        struct limiter_version *version = limiter_version_at(limiter, i);
        uint32_t unused = 0;
        if (hf_u32_load(&version->family, __ATOMIC_RELAXED) == FAMILY_OWN &&
            hf_u32_cas(&version->users, &unused, USERS_RETIRED,
                       __ATOMIC_SEQ_CST))
            version_reap(limiter, i);
    }
}

/* A dead version's number; HF_FULL, HF_NOMEM. (r) */
static enum hf_status version_make(struct hf_limiter *limiter, uint32_t *number)
{
    struct limiter_rules *rules = &limiter->rules;

    if (rules->version_free == 0 && rules->version_top == VERSIONS_MAX)
        versions_collect(limiter);
    if (rules->version_free != 0) {
        *number = rules->version_free - 1;
        rules->version_free = limiter_version_at(limiter, *number)->next;
        return HF_OK;
    }
    if (rules->version_top == VERSIONS_MAX)
        return HF_FULL;
    if (rules->version_top % VERSION_CHUNK == 0) {
        size_t bytes = VERSION_CHUNK * sizeof(struct limiter_version);
        struct limiter_version *chunk = hf_alloc_lines(bytes);
        if (chunk == NULL)
            return HF_NOMEM;
        for (uint32_t i = 0; i < VERSION_CHUNK; i++)
            hf_u32_store(&chunk[i].users, USERS_DEAD, __ATOMIC_RELAXED);
        /* Release: the chunk. */
        hf_ptr_store(&rules->versions[rules->version_top / VERSION_CHUNK],
                     chunk, __ATOMIC_RELEASE);
    }
    *number = rules->version_top++;
    return HF_OK;
}

/* The version lives, with no user; others may have counted themselves for a
 * moment. Release: what it says. */
static void version_revive(struct limiter_version *version)
{
    hf_u32_and(&version->users, ~USERS_DEAD, __ATOMIC_RELEASE);
}

bool hf_limiter_version_lives(const struct hf_limiter *limiter,
                              const struct limiter_version *version)
{
    uint32_t family = hf_u32_load(&version->family, __ATOMIC_RELAXED);

    if (family == FAMILY_OWN)
        return true;
    struct limiter_policy *chunk = hf_ptr_load(
        &limiter->rules.policies[family / POLICY_CHUNK], __ATOMIC_ACQUIRE);
    /* Relaxed: a rule that goes while we look is as if it went after. */
    return hf_u32_load(&chunk[family % POLICY_CHUNK].generation,
                       __ATOMIC_RELAXED) ==
           hf_u32_load(&version->generation, __ATOMIC_RELAXED);
}

/* ---- Numbers that come with calls. ---- */

static enum hf_status own_make(struct hf_limiter *limiter,
                               const struct hf_limiter_rule *rule,
                               uint32_t *number)
{
    struct hf_rate_plan plan;
    enum hf_status status = hf_rate_plan_make(&plan, &rule->rate);

    if (status == HF_OK)
        status = version_make(limiter, number);
    if (status != HF_OK)
        return status;
    struct limiter_version *version = limiter_version_at(limiter, *number);
    uint32_t *head = &limiter->rules.by_numbers[numbers_head(rule)];
    version_fill(version, "", rule, &plan, FAMILY_OWN, 0);
    version->next = *head;
    *head = *number + 1;
    version_revive(version);
    return HF_OK;
}

static enum hf_status own_use(struct hf_limiter *limiter,
                              struct limiter_local *local,
                              const struct hf_limiter_rule *rule,
                              uint32_t *number)
{
    enum hf_status status = HF_OK;

    if (local != &limiter->spare && local->own_version != 0 &&
        version_take(limiter, local->own_version - 1)) {
        *number = local->own_version - 1;
        struct limiter_version *version = limiter_version_at(limiter, *number);
        /* Relaxed: we are a user. */
        if (hf_u32_load(&version->family, __ATOMIC_RELAXED) == FAMILY_OWN &&
            hf_limiter_version_is(version, rule))
            return HF_OK;
        hf_limiter_version_drop(limiter, *number);
    }
    hf_mutex_lock(&limiter->rules.mutex);
    uint32_t found = limiter->rules.by_numbers[numbers_head(rule)];
    while (found != 0 &&
           !hf_limiter_version_is(limiter_version_at(limiter, found - 1), rule))
        found = limiter_version_at(limiter, found - 1)->next;
    *number = found - 1;
    if (found == 0)
        status = own_make(limiter, rule, number);
    /* It is not retired: only who has this lock retires numbers. */
    if (status == HF_OK)
        hf_u32_add(&limiter_version_at(limiter, *number)->users, 1,
                   __ATOMIC_SEQ_CST);
    hf_mutex_unlock(&limiter->rules.mutex);
    if (status == HF_OK && local != &limiter->spare)
        local->own_version = *number + 1;
    return status;
}

enum hf_status hf_limiter_version_use(struct hf_limiter *limiter,
                                      struct limiter_local *local,
                                      const struct hf_limiter_ask *ask,
                                      uint32_t *number)
{
    if (ask->own != NULL)
        return own_use(limiter, local, ask->own, number);
    for (;;) {
        *number = limiter_rule_version(limiter, ask->rule);
        if (*number == VERSION_NONE)
            return HF_NOTFOUND;
        if (!version_take(limiter, *number))
            continue;
        /* Between the look and the count its memory may have been given to
         * another rule: only now does it stay what it is. */
        if (limiter_rule_version(limiter, ask->rule) == *number)
            return HF_OK;
        hf_limiter_version_drop(limiter, *number);
    }
}

/* ---- Names. ---- */

static uint32_t name_head(const char *name)
{
    uint32_t mixed = 5381;

    for (; *name != 0; name++)
        mixed = mixed * 33 + (unsigned char)*name;
    return mixed % NAME_HEADS;
}

static struct limiter_policy *policy_at(struct hf_limiter *limiter,
                                        uint32_t slot)
{
    struct limiter_policy *chunk = hf_ptr_load(
        &limiter->rules.policies[slot / POLICY_CHUNK], __ATOMIC_RELAXED);
    return &chunk[slot % POLICY_CHUNK];
}

/* 1 + its slot, or 0. (r) */
static uint32_t policy_find(struct hf_limiter *limiter, const char *name)
{
    uint32_t found = limiter->rules.by_name[name_head(name)];

    while (found != 0 && strcmp(policy_at(limiter, found - 1)->name, name) != 0)
        found = policy_at(limiter, found - 1)->next;
    return found;
}

static uint32_t policy_number(struct hf_limiter *limiter, uint32_t slot)
{
    uint32_t generation =
        hf_u32_load(&policy_at(limiter, slot)->generation, __ATOMIC_RELAXED);
    return generation << 16 | slot;
}

/* A slot without a name; HF_FULL, HF_NOMEM. (r) */
static enum hf_status policy_make(struct hf_limiter *limiter, uint32_t *slot)
{
    struct limiter_rules *rules = &limiter->rules;

    if (rules->policy_free != 0) {
        *slot = rules->policy_free - 1;
        rules->policy_free = policy_at(limiter, *slot)->next;
        return HF_OK;
    }
    if (rules->policy_top == HF_LIMITER_RULES_MAX)
        return HF_FULL;
    if (rules->policy_top % POLICY_CHUNK == 0) {
        struct limiter_policy *chunk =
            hf_alloc_zeroed(POLICY_CHUNK * sizeof *chunk);
        if (chunk == NULL)
            return HF_NOMEM;
        for (uint32_t i = 0; i < POLICY_CHUNK; i++)
            hf_u32_store(&chunk[i].current, VERSION_NONE, __ATOMIC_RELAXED);
        /* Release: the chunk. */
        hf_ptr_store(&rules->policies[rules->policy_top / POLICY_CHUNK], chunk,
                     __ATOMIC_RELEASE);
    }
    *slot = rules->policy_top++;
    return HF_OK;
}

static void policy_name(struct hf_limiter *limiter, uint32_t slot,
                        const char *name)
{
    struct limiter_policy *policy = policy_at(limiter, slot);
    uint32_t *head = &limiter->rules.by_name[name_head(name)];

    memcpy(policy->name, name, strlen(name) + 1);
    policy->next = *head;
    *head = slot + 1;
    /* Relaxed: a figure. */
    hf_u64_add(&limiter->rules.named, 1, __ATOMIC_RELAXED);
}

/* Gives a policy, new or not, a version with this rule. (r) */
static enum hf_status define(struct hf_limiter *limiter, const char *name,
                             const struct hf_limiter_rule *rule,
                             uint32_t *number)
{
    uint32_t found = policy_find(limiter, name);
    uint32_t slot = found - 1;
    uint32_t version;
    struct hf_rate_plan plan;
    enum hf_status status = hf_rate_plan_make(&plan, &rule->rate);

    if (status == HF_OK)
        status = version_make(limiter, &version);
    if (status != HF_OK)
        return status;
    if (found == 0 && (status = policy_make(limiter, &slot)) != HF_OK) {
        limiter_version_at(limiter, version)->next =
            limiter->rules.version_free;
        limiter->rules.version_free = version + 1;
        return status;
    }
    struct limiter_policy *policy = policy_at(limiter, slot);
    uint32_t old = hf_u32_load(&policy->current, __ATOMIC_RELAXED);
    version_fill(limiter_version_at(limiter, version), name, rule, &plan, slot,
                 hf_u32_load(&policy->generation, __ATOMIC_RELAXED));
    version_revive(limiter_version_at(limiter, version));
    if (found == 0)
        policy_name(limiter, slot, name);
    /* seq_cst: before the old one is marked, so that who finds that mark finds
     * this one; see hf_limiter_version_use. */
    hf_u32_store(&policy->current, version, __ATOMIC_SEQ_CST);
    if (old != VERSION_NONE)
        version_retire(limiter, old);
    if (number != NULL)
        *number = policy_number(limiter, slot);
    return HF_OK;
}

static bool name_fits(const char *name)
{
    return name != NULL && name[0] != 0 && strlen(name) < HF_NAME_BYTES;
}

enum hf_status hf_limiter_define(struct hf_limiter *limiter, const char *name,
                                 const struct hf_limiter_rule *rule,
                                 uint32_t *number)
{
    if (limiter == NULL || rule == NULL || !name_fits(name))
        return HF_INVALID;
    hf_mutex_lock(&limiter->rules.mutex);
    enum hf_status status = define(limiter, name, rule, number);
    hf_mutex_unlock(&limiter->rules.mutex);
    if (status == HF_OK)
        hf_limiter_wait_call_all(limiter); /* it may allow more */
    return status;
}

enum hf_status hf_limiter_remove(struct hf_limiter *limiter, const char *name)
{
    if (limiter == NULL || !name_fits(name))
        return HF_INVALID;
    struct limiter_rules *rules = &limiter->rules;
    hf_mutex_lock(&rules->mutex);
    uint32_t found = policy_find(limiter, name);
    if (found > 1) {
        struct limiter_policy *policy = policy_at(limiter, found - 1);
        uint32_t old = hf_u32_load(&policy->current, __ATOMIC_RELAXED);
        uint32_t *link = &rules->by_name[name_head(name)];
        while (*link != found)
            link = &policy_at(limiter, *link - 1)->next;
        *link = policy->next;
        policy->name[0] = 0;
        policy->next = rules->policy_free;
        rules->policy_free = found;
        hf_u32_store(&policy->current, VERSION_NONE, __ATOMIC_SEQ_CST);
        /* Release: that there is no version. */
        hf_u32_add(&policy->generation, 1, __ATOMIC_RELEASE);
        version_retire(limiter, old);
        hf_u64_sub(&rules->named, 1, __ATOMIC_RELAXED);
    }
    hf_mutex_unlock(&rules->mutex);
    if (found > 1)
        hf_limiter_wait_call_all(limiter);
    return found == 0 ? HF_NOTFOUND : found == 1 ? HF_INVALID : HF_OK;
}

enum hf_status hf_limiter_find(struct hf_limiter *limiter, const char *name,
                               uint32_t *number, struct hf_limiter_rule *rule)
{
    if (limiter == NULL || !name_fits(name))
        return HF_INVALID;
    hf_mutex_lock(&limiter->rules.mutex);
    uint32_t found = policy_find(limiter, name);
    if (found != 0 && number != NULL)
        *number = policy_number(limiter, found - 1);
    if (found != 0 && rule != NULL)
        version_read(
            limiter_version_at(
                limiter, hf_u32_load(&policy_at(limiter, found - 1)->current,
                                     __ATOMIC_RELAXED)),
            rule);
    hf_mutex_unlock(&limiter->rules.mutex);
    return found == 0 ? HF_NOTFOUND : HF_OK;
}

enum hf_status hf_limiter_list(struct hf_limiter *limiter,
                               void (*visit)(void *context, const char *name,
                                             uint32_t number,
                                             const struct hf_limiter_rule *),
                               void *context)
{
    char name[HF_NAME_BYTES];
    struct hf_limiter_rule rule;
    uint32_t top;

    if (limiter == NULL || visit == NULL)
        return HF_INVALID;
    for (uint32_t slot = 0;; slot++) {
        hf_mutex_lock(&limiter->rules.mutex);
        top = limiter->rules.policy_top;
        name[0] = 0;
        uint32_t number = 0;
        if (slot < top && policy_at(limiter, slot)->name[0] != 0) {
            struct limiter_policy *policy = policy_at(limiter, slot);
            memcpy(name, policy->name, sizeof name);
            number = policy_number(limiter, slot);
            version_read(
                limiter_version_at(
                    limiter, hf_u32_load(&policy->current, __ATOMIC_RELAXED)),
                &rule);
        }
        hf_mutex_unlock(&limiter->rules.mutex);
        if (slot >= top)
            return HF_OK;
        if (name[0] != 0)
            visit(context, name, number, &rule);
    }
}

/* ---- Beginning and end. ---- */

enum hf_status hf_limiter_rules_init(struct hf_limiter *limiter,
                                     const struct hf_limiter_rule *rule)
{
    static const struct hf_limiter_rule classic = {
        .rate = {
            .permits = 1, .span_ns = DEFAULT_PER_NS, .burst = DEFAULT_BURST}};

    return define(limiter, "default", rule != NULL ? rule : &classic, NULL);
}

void hf_limiter_rules_destroy(struct hf_limiter *limiter)
{
    for (uint32_t i = 0; i < VERSIONS_MAX / VERSION_CHUNK; i++)
        hf_free(hf_ptr_load(&limiter->rules.versions[i], __ATOMIC_RELAXED));
    for (uint32_t i = 0; i < HF_LIMITER_RULES_MAX / POLICY_CHUNK; i++)
        hf_free(hf_ptr_load(&limiter->rules.policies[i], __ATOMIC_RELAXED));
}
