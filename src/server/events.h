/* events.h - EVENTS: the durable feed, as clients read it.
 *
 *   EVENTS FROM n --> memory? --> reply
 *                       | no            (nothing yet, and WAIT: until there is)
 *                       v
 *                     read by the feed's thread --> reply
 *
 * Threads: the loop's; the feed's thread only wakes it.
 */
#ifndef SERVER_EVENTS_H
#define SERVER_EVENTS_H

#include <uv.h>

#include "feed/feed.h"
#include "server/table.h"
#include "server/waits.h"

struct event_wait;
struct search;

struct events {
    struct feed *feed; /* NULL: events are not kept */
    uv_async_t wake;   /* something was read */
    bool woken;        /* `wake` is open */
    bool news; /* there are events since those who wait were looked at */
    struct event_wait *first; /* those who wait */
    struct search *searches;  /* and those who search: history.h */
    uint64_t failures;        /* of the disk, as far as told */
};

extern const struct shape events_read_shape;
command_fn events_read;

/* Puts an event as a map. */
void event_put(struct reply *reply, const struct hold_event *event,
               uint64_t now_us);

/* Before the log is opened: opens the feed, if events are kept. */
enum hf_status events_open(struct server *server, char *error);
/* When it was opened, and the loop is there. */
void events_start(struct server *server);
/* Before the log is closed, and after. */
void events_stop(struct server *server, bool clean);
void events_close(struct server *server);
void events_tend(struct server *server);

/* What a call of the engine gave is kept, and told to all who want to know. */
void events_tell(struct server *server, const struct hold_out *out);
/* True while nothing is to be applied, so that the feed loses nothing: its disk
 * is slow. */
bool events_are_behind(struct server *server);
/* Somebody waits for a lock, under that ticket: so are its holders. */
void events_wanted(struct server *server, struct hf_bytes name,
                   uint64_t ticket);
/* Those who wait for events are told, if there are some. */
void events_serve(struct server *server);

/* waits.c */
wait_fn events_wait_due, events_wait_left;

#endif
