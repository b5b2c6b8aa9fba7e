/* share.h - how much of the table of REQ ids one client has filled.
 *
 * A success under a REQ is remembered for `request-keep-ms`, whatever comes.
 * So that one client cannot take the whole table from the others, each may
 * have `requests-share` percent of `requests-max` remembered. A client is an
 * address, because connections cost nothing.
 *
 * A request counts when it is taken, and no more if it did not succeed. After a
 * restart the counts begin anew.
 *
 * What a client had remembered is counted in eighths of the time that it is
 * kept; the oldest eighth is forgotten as a whole, which is never too late.
 *
 *   |  3 |  0 | 12 |  7 | ... |    eighths, the newest on the left
 *
 * Threads: the loop's.
 */
#ifndef SERVER_SHARE_H
#define SERVER_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"

struct server;

#define SHARE_ADDRESS_BYTES 16u

struct shares {
    struct hf_texts texts;
    struct hf_index clients;
    size_t bytes;
};

enum hf_status shares_open(struct shares *shares);
void shares_close(struct shares *shares);
/* Nothing is remembered any more; what is on its way still counts. */
void shares_clear(struct shares *shares);
/* Forgets clients of whom nothing is remembered; now and then. */
void shares_tend(struct server *server);

/* True if the client's share is used up. */
bool share_is_spent(const struct server *server, struct hf_bytes address);
/* A request of it was taken. Without memory it is not counted. */
void share_take(struct server *server, struct hf_bytes address);
/* It was answered: with a success, which is remembered, or not. */
void share_settle(struct server *server, struct hf_bytes address, bool success);

#endif
