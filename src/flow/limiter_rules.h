/* limiter_rules.h - rules by name and by number: see limiter_rules.c. */
#ifndef FLOW_LIMITER_RULES_H
#define FLOW_LIMITER_RULES_H

#include "base/atomic.h"
#include "flow/limiter_words.h"
#include "holdfast/limiter.h"
#include "sync/mutex.h"

#define VERSIONS_MAX  65536u
#define VERSION_CHUNK 64u
#define POLICY_CHUNK  64u
#define NAME_HEADS    256u
#define VERSION_NONE  UINT32_MAX
#define PLAN_WORDS    (sizeof(struct hf_rate_plan) / 8)

/* `users` of a version: how many cells, and these. */
#define USERS_RETIRED (1u << 31) /* no longer the rule: goes with the last */
#define USERS_DEAD    (1u << 30) /* its memory waits for another rule */

/* Changes only while it is dead. All atomic: it is also read by who finds out
 * only afterwards that it was not what it looked for. */
struct limiter_version {
    _Alignas(64) struct hf_atomic_u32 users; /* (a) */
    struct hf_atomic_u32 family;             /* (a) policy, or FAMILY_OWN */
    struct hf_atomic_u32 generation;         /* (a) of the policy */
    struct hf_atomic_u32 shadow;             /* (a) */
    struct hf_atomic_u32 stamp; /* (a) goes up when it becomes another */
    struct hf_atomic_u64 plan[PLAN_WORDS];              /* (a) hf_rate_plan */
    struct hf_atomic_u64 keep_back[HF_LIMITER_CLASSES]; /* (a) */
    struct hf_atomic_u64 given[4]; /* (a) kind, permits, span_ns, burst */
    struct hf_atomic_u64 name[HF_NAME_BYTES / 8]; /* (a) of its rule */
    uint32_t next; /* (r) free, or of the same hash */
};

struct limiter_policy {
    struct hf_atomic_u32 current;    /* (a) version, or VERSION_NONE */
    struct hf_atomic_u32 generation; /* (a) goes up when it is removed */
    uint32_t next;                   /* (r) 1 + slot: free, or same hash */
    char name[HF_NAME_BYTES];        /* (r) "" if it is free */
};

struct limiter_rules { /* (r) under the mutex */
    struct hf_mutex mutex;
    struct hf_atomic_ptr versions[VERSIONS_MAX / VERSION_CHUNK]; /* (a) */
    struct hf_atomic_ptr
        policies[HF_LIMITER_RULES_MAX / POLICY_CHUNK]; /* (a) */
    uint32_t version_top;                              /* (r) */
    uint32_t version_free;                             /* (r) 1 + number */
    uint32_t policy_top;                               /* (r) */
    uint32_t policy_free;                              /* (r) 1 + slot */
    struct hf_atomic_u64 named;                        /* (a) */
    uint32_t by_name[NAME_HEADS];                      /* (r) 1 + slot */
    uint32_t by_numbers[NAME_HEADS]; /* (r) 1 + version, of FAMILY_OWN */
};

#endif
