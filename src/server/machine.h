/* machine.h - the engine as the state that the journal keeps. */
#ifndef SERVER_MACHINE_H
#define SERVER_MACHINE_H

#include "base/hash.h"
#include "journal/journal.h"

/* A machine is a `struct hold_engine`. `seed` keys the tables of each engine
 * and must outlive them; so does the result, which the next call changes. */
const struct journal_machine *server_machine(const struct hf_hash_seed *seed);

#endif
