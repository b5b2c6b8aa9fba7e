/* remote.h - a log that several machines keep, in the simulation.
 *
 *   commit --> flying --> flying --> flying --> ended, in this order
 *                                      |
 *                            what is in the log is there for good
 *
 * It keeps several commits on their way, each of which takes its time, and it
 * may stop leading:
 *
 *   leads --lapse--> does not lead --> leads again
 *                          |
 *                          '--> another server leads: it appends something, and
 *                               a client of its own is told so; some time later
 *                               the server hears of it, and what is on its way
 *                               ends with an error
 *
 * Of what is on its way when the other takes over, or when the server dies, the
 * first few are in the log all the same. Nothing else is lost. The faults of
 * the disk are faults here, too: a batch that takes long, a batch that fails
 * (the other takes over at once), a death at some call.
 */
#ifndef SIM_SERVER_REMOTE_H
#define SIM_SERVER_REMOTE_H

#include "journal/journal.h"
#include "sim/server/world.h"

#define REMOTE_FLIGHTS_MAX 8

struct mix;
struct server;

struct remote_mix {
    uint64_t flights;  /* most at once; 0: the journal on disk is used */
    uint64_t lapse_ns; /* about that long between two lapses; 0: none */
    uint64_t taken;    /* of 1000 lapses, so many end with another leader */
};

/* An empty log; `server` is asked for its time. */
void remote_begin(const struct mix *mix, const struct server *server);
void remote_end(void);
/* As journal_open(). */
enum hf_status remote_open(struct log **out, const struct journal_opts *opts,
                           void **machine, char *error);
/* The server dies: what is on its way is in the log, or not. */
void remote_cut(void);
/* When the last batch was done; UINT64_MAX: one is under way. */
uint64_t remote_done_ns(void);

#endif
