/* history.h - STOCK HISTORY, RESERVATION HISTORY, STOCK AT: the feed about one.
 *
 *   asked --> page of memory, or search by the feed's thread --> take --.
 *                ^                                                      |
 *                '------------- more is to be looked at ----------------+
 *                                                                       v
 *                                                                     reply
 *
 * A search goes through all that is kept, which may be much, for one client. So
 * files are searched by the feed's thread, a bounded part at a time, and the
 * loop looks at pages of memory within the budget of a turn. Who asks waits
 * meanwhile, as for events.
 *
 * STOCK AT is also asked for as STOCK GET sku AT number.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_HISTORY_H
#define SERVER_HISTORY_H

#include "feed/feed.h"
#include "server/table.h"
#include "server/waits.h"

extern const struct shape history_stock_shape, history_reservation_shape,
    history_at_shape;
command_fn history_stock, history_reservation, history_at;

/* STOCK GET sku AT number becomes STOCK AT sku number. */
void history_rewrite(struct resp_request *request);

/* A search has ended that was begun for it. */
void history_found(struct server *server, struct wait *wait,
                   const struct feed_page *page);
/* Those who were left to this turn go on. */
void history_serve(struct server *server);
bool history_has_work(const struct server *server);

/* The feed is about to be closed. */
void history_forget(struct server *server);

/* waits.c */
wait_fn history_wait_left, history_wait_stop;

#endif
