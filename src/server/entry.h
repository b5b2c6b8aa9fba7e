/* entry.h - what one commit covers: requests in the order of their arrival,
 * with their records in one buffer.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_ENTRY_H
#define SERVER_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "hold/command.h"

struct conn;
struct group_holds;
struct lock_wait;

/* One request of a batch: to be journaled, or a question queued in order. */
struct entry {
    struct conn *conn; /* NULL: the server's own, or the wait leads to it */
    struct group_holds *holds; /* of the limits of a group */
    char *denied;              /* why one of them is; freed when told */
    struct lock_wait *wait;    /* a request that may wait, or see `verdict` */
    uint64_t came_ns;          /* when it was read */
    enum hold_kind kind;
    uint32_t at; /* where its record is in the batch's */
    uint32_t len;
    uint32_t owed;          /* OK and QUEUED to be told first: see group.h */
    enum hf_status refused; /* not HF_OK: could not be taken */
    bool owed_first;        /* with OK */
    bool verdict;           /* on `wait`: the server's own */
    bool ask;               /* not journaled */
    bool shared;            /* counted in its client's share of REQ ids */
    bool succeeded;         /* and stays so */
    bool told;              /* journaled without effect: see lock_wait.h */
    bool dropped;           /* nobody wants it any more */
    bool binds;             /* promised that its session can be bound */
    bool spent;             /* what was held is */
    bool gives_back;        /* an UNLOCK that ends a grant to one who is gone */
    bool keeps;             /* an UNLOCK for which such a LOCK is journaled */
};

/* What one commit covers. */
struct batch {
    struct entry *entries;
    size_t count;
    size_t cap;
    struct hf_buf records;
    bool has_tick;
    uint64_t wait_count; /* entries that may wait */
    uint64_t weight;     /* names below a TREE that they will look at */
    bool may_orphan;     /* has a LOCK that is given back if its client goes */
    bool reenters;       /* has a LOCK with WAIT of one who holds the lock */
    /* since the log has it: */
    enum hf_status end;    /* HF_PENDING: on its way */
    uint64_t record_count; /* that the log was given */
    uint64_t byte_count;   /* of them */
    uint64_t begun_ns;
};

/* A new entry at the end; NULL without memory. */
struct entry *entry_add(struct batch *batch, enum hold_kind kind,
                        uint64_t came_ns);
/* Makes room for the record of `command`, or HF_NOMEM. */
enum hf_status entry_reserve(struct batch *batch,
                             const struct hold_command *command);
/* What it has of its own; its holds are not settled. */
void entry_free(struct entry *entry);
/* Encodes it as the entry's record; there is room. */
void entry_put(struct batch *batch, struct entry *entry,
               const struct hold_command *command);
struct hf_bytes entry_record(const struct batch *batch,
                             const struct entry *entry);

#endif
