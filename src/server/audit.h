/* audit.h - STOCK AUDIT: a product's numbers, derived from the journal.
 *
 *   loop     asked --> nothing on its way? --> numbers as of now, begins
 *                                                |
 *   task     oldest snapshot --> records --> engine, events --> book
 *                                                |
 *   loop     the same numbers at the same number? --> reply
 *
 * A task of the process's pool replays what the journal has on disk into an
 * engine of its own, and a book (hold/book.h) proves each step of the product.
 * The loop notes what its own engine has at a moment at which every batch that
 * is on disk has been applied, so that both can be compared. It costs the state
 * a second time in memory, as a snapshot does, and there is one at a time;
 * until it ends no snapshot is made.
 *
 * Threads: the loop's; the task only tells that it has ended.
 */
#ifndef SERVER_AUDIT_H
#define SERVER_AUDIT_H

#include <uv.h>

#include "server/table.h"
#include "server/waits.h"

struct audit;

struct audits {
    struct audit *audit; /* NULL: there is none */
    uv_async_t wake;     /* it has ended */
    uint64_t count;      /* that have ended well */
    uint64_t failures;
};

command_fn audit_stock;

/* When the loop is there; a code of libuv. */
int audits_open(struct server *server);
/* After the log and the connections were closed. */
void audits_close(struct server *server);
/* Begins one that waits for a moment to begin, if this is one. */
void audits_begin(struct server *server);

/* waits.c */
wait_fn audit_wait_left, audit_wait_stop;

#endif
