/* audit.h - the stock that `holdfast bench` sells, and the proof afterwards.
 *
 * Products are `bench:00000000` upwards. Before and after the run the sums of
 * all (or, for many products, of evenly spaced ones) are read; every product
 * must add up, and if all were read, exactly as much must have been reserved
 * or sold as was acknowledged.
 */
#ifndef CLI_AUDIT_H
#define CLI_AUDIT_H

#include "cli/client.h"
#include "cli/record.h"

#define AUDIT_PRODUCTS_MAX 20000 /* more than that are sampled */

struct audit {
    uint64_t products; /* how many were read */
    bool all;          /* that is every one */
    uint64_t broken;   /* of them do not add up */
    uint64_t reserved; /* sum over all of them */
    uint64_t sold;
};

/* Sets the stock of `keys` products to `total` each. HF_INVALID: refused. */
enum hf_status audit_prepare(const struct client_address *address,
                             uint64_t keys, uint64_t total,
                             struct record *record);
enum hf_status audit_read(const struct client_address *address, uint64_t keys,
                          struct audit *out, struct record *record);

#endif
