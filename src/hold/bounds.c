/* bounds.c - the settings of the engine: a row each. */
#include "hold/bounds.h"

#define RECORDS_MAX (1u << 29)

const struct hold_bound hold_bound_rows[HOLD_BOUNDS_COUNT] = {
    {"locks_max", "locks-max", 10000000, RECORDS_MAX, "locks held at once"},
    {"waiters_max", "waiters-max", HOLD_QUEUE_MAX, HOLD_QUEUE_MAX,
     "clients in the queue of one lock, or of one product"},
    {"products_max", "products-max", 100000000, RECORDS_MAX, "products"},
    {"reservations_max", "reservations-max", 10000000, RECORDS_MAX,
     "reservations, with ended ones still remembered"},
    {"fences_max", "fences-max", 1000000, RECORDS_MAX,
     "resources with a newest token"},
    {"requests_max", "requests-max", 1000000, RECORDS_MAX,
     "REQ ids remembered at once"},
    {"request_keep_ms", "request-keep-ms", 600000, HOLD_TTL_MAX_MS,
     "how long a REQ id is remembered"},
    {"ended_keep_ms", "ended-keep-ms", 600000, HOLD_TTL_MAX_MS,
     "how long an ended reservation is remembered"},
    {"holders_max", "holders-max", 1000, HOLD_QUEUE_MAX,
     "holders of one lock, shared or counting; more wait"},
    {"sessions_max", "sessions-max", 1000000, RECORDS_MAX, "sessions"},
    {"wound_grace_ms", "wound-grace-ms", 1000, HOLD_TTL_MAX_MS,
     "how long a holder keeps a lock that an older one takes from it"},
    {"tree_names_max", "tree-names-max", 10000, 1000000,
     "names in use below one that is locked with TREE"},
    {"classes_max", "classes-max", 100, 1000, "classes of reservations"},
    {"reserve_ttl_ms", "reserve-ttl-ms", 600000, HOLD_TTL_MAX_MS,
     "TTL of a reservation that has none, and no class that has one"},
    {"grace_ms", "grace-ms", 0, HOLD_TTL_MAX_MS,
     "how long after its end a reservation may still be confirmed"},
    {"extends_max", "extends-max", 0, UINT32_MAX,
     "how often a reservation may be extended; 0: any number of times"},
    {"extend_total_ms", "extend-total-ms", 0, HOLD_TTL_MAX_MS,
     "how long a reservation may be extended to last in all; 0: any time"},
};

struct hold_bounds hold_bounds_default(void)
{
    struct hold_bounds bounds;

    for (size_t i = 0; i < HOLD_BOUNDS_COUNT; i++)
        *hold_bound(&bounds, i) = hold_bound_rows[i].usual;
    return bounds;
}

void hold_bounds_set(struct hold_bounds *bounds, struct hf_bytes name,
                     uint64_t value)
{
    for (size_t i = 0; i < HOLD_BOUNDS_COUNT; i++) {
        const struct hold_bound *row = &hold_bound_rows[i];
        if (hf_bytes_equal(name, hf_bytes_text(row->name)))
            *hold_bound(bounds, i) = value < row->max ? value : row->max;
    }
}
