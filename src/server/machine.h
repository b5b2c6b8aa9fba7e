/* machine.h - the engine as the state that the journal keeps. */
#ifndef SERVER_MACHINE_H
#define SERVER_MACHINE_H

#include "base/hash.h"
#include "feed/feed.h"
#include "journal/journal.h"

/* A machine is a `struct hold_engine`, whose tables `seed` keys. What opening
 * the log replays is told to `feed`, if it is not NULL; all that is before a
 * snapshot is settled there first. One server a process. */
const struct journal_machine *server_machine(struct hf_hash_seed seed,
                                             struct feed *feed);
/* The log was opened. */
void server_machine_opened(void);

#endif
