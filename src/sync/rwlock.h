/* rwlock.h - what stamped locks need of read-write locks, and users do not. */
#ifndef SYNC_RWLOCK_H
#define SYNC_RWLOCK_H

#include "holdfast/rwlock.h"

/* The reader goes on as the writer. HF_TIMEOUT: others are inside, and it goes
 * on as a reader; it must not insist, since they might insist too. HF_INVALID:
 * nobody reads. HF_CLOSED. */
enum hf_status hf_rwlock_try_upgrade(struct hf_rwlock *lock);

#endif
