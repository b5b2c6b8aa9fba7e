/* bounds.h - every limit of the engine, by name.
 *
 * The constants are part of the format: a record beyond them is not a record.
 * The settings in `struct hold_bounds` are part of the state: they change by a
 * command, so that a replay decides as the first run did.
 */
#ifndef HOLD_BOUNDS_H
#define HOLD_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define HOLD_NAME_MAX    512u       /* bytes: lock, resource */
#define HOLD_SKU_MAX     256u       /* bytes: product */
#define HOLD_ID_MAX      128u       /* bytes: reservation, request */
#define HOLD_OWNER_MAX   256u       /* bytes */
#define HOLD_REASON_MAX  256u       /* bytes */
#define HOLD_ATTRS_MAX   16u        /* attributes of one product */
#define HOLD_ATTRS_BYTES 1024u      /* of them, with 4 bytes for each */
#define HOLD_ATTR_MAX    64u        /* bytes: name of an attribute */
#define HOLD_ITEMS_MAX   128u       /* different products in one reservation */
#define HOLD_PLACES_MAX  10u        /* places that one reservation names */
#define HOLD_MEMBERS_MAX 100u       /* reservations in one group of them */
#define HOLD_EXPECT_MAX  16u        /* announced of one product */
#define HOLD_GROUP_MAX   128u       /* commands in one group */
#define HOLD_GROUP_BYTES 32768u     /* of them, as records */
#define HOLD_SET_MAX     64u        /* names in one set of locks */
#define HOLD_NOTE_MAX    256u       /* bytes: note, result, name of a session */
#define HOLD_PERMITS_MAX INT32_MAX  /* of one counting lock */
#define HOLD_QUEUE_MAX   10000u     /* waiters of one lock */
#define HOLD_COUNT_MAX   UINT32_MAX /* re-entries of one lock */

#define HOLD_TTL_MAX_MS 1000000000000000u /* 31,000 years */
#define HOLD_STOCK_MAX  INT64_MAX         /* units of one product */

/* Of LIMIT, which the engine does not know: server and clients share them. */
#define LIMIT_RATE_MAX   1000000000u    /* permits, and burst */
#define LIMIT_PER_MAX_MS 4000000000000u /* 126 years */

/* Things that fall due, handled by one command at most. */
#define HOLD_STEP_MAX 256u

/* Waits and related names that the sweep of one command looks at: when it has
 * come to so many, it stops. */
#define HOLD_WALK_MAX 100000u

/* A lock with more grants and waits waits for the sweep, too. */
#define HOLD_SETTLE_MAX 8u

/* Steps of a search for a deadlock. */
#define HOLD_DETECT_MAX 100000u

/* Longest list in one answer, and the steps taken for it: one for each record
 * looked at and one for each byte compared with the pattern. */
#define HOLD_LIST_MAX  1000u
#define HOLD_STEPS_MAX 20000u

struct hold_bounds {
    uint64_t locks_max;   /* held at once */
    uint64_t waiters_max; /* of one lock; at most HOLD_QUEUE_MAX */
    uint64_t products_max;
    uint64_t reservations_max; /* pending, and ended ones still remembered */
    uint64_t fences_max;       /* resources with a newest token */
    uint64_t requests_max;     /* REQ ids remembered */
    uint64_t request_keep_ms;  /* how long a REQ id is remembered */
    uint64_t ended_keep_ms;    /* how long an ended reservation is */
    uint64_t holders_max;      /* of one lock, shared or counting */
    uint64_t sessions_max;
    uint64_t wound_grace_ms; /* from WOUNDWAIT's wound to the end */
    uint64_t tree_names_max; /* in use below a TREE */
    uint64_t classes_max;    /* of reservations */
    /* of reservations without a class: */
    uint64_t reserve_ttl_ms;  /* TTL, if it is not given */
    uint64_t grace_ms;        /* in which one that expired may be confirmed */
    uint64_t extends_max;     /* how often one may be extended; 0: any */
    uint64_t extend_total_ms; /* from its creation on, at most; 0: any */
};

#define HOLD_BOUNDS_COUNT (sizeof(struct hold_bounds) / sizeof(uint64_t))

/* A row for each, in the order of the struct. */
struct hold_bound {
    const char *name;    /* in records and refusals */
    const char *setting; /* as users write it */
    uint64_t usual;      /* what an engine starts with; 0: it may be 0 */
    uint64_t max;        /* more is taken for it */
    const char *help;
};
extern const struct hold_bound hold_bound_rows[HOLD_BOUNDS_COUNT];

static inline uint64_t *hold_bound(struct hold_bounds *bounds, size_t row)
{
    return (uint64_t *)(void *)((char *)bounds + row * sizeof(uint64_t));
}

/* What an engine starts with. */
struct hold_bounds hold_bounds_default(void);
/* Sets one by name; no other name has an effect. */
void hold_bounds_set(struct hold_bounds *bounds, struct hf_bytes name,
                     uint64_t value);

#endif
