/* sale.h - hundreds of reservations of one product that end at one instant.
 *
 *   opened     stocked    carts     all wait       the end    buyers
 *   |---------|-------------------|---------------|---|--------|------->
 *                                                   a slow batch
 *
 * Somebody stocks a product of its own; everybody reserves units of it, each
 * until the end of the sale, for which all wait, while the disk hangs as a
 * rule; then all want what the reservations have given back, or read it.
 * More end at once than the server handles in one step.
 */
#ifndef SIM_SERVER_SALE_H
#define SIM_SERVER_SALE_H

#include "base/bytes.h"
#include "sim/server/world.h"

struct words;

void sale_begin(void);
/* A sale begins, unless there is one. */
void sale_open(void);
/* No fault is to strike now. */
bool sale_is_calm(void);
/* The request number `number` of a client's turn: false if the sale has
 * nothing (more) for it, and its turn is its own. */
bool sale_request(struct dice *dice, uint64_t client, uint64_t number,
                  struct words *out);
/* Learns from a reply. */
void sale_learn(const struct words *words, struct hf_bytes reply);
#endif
