/* listed.h - what an object carries to be found by hf_inspect().
 *
 *   struct hf_ring { struct hf_listed listed; ... };
 *   hf_listed_add(&ring->listed, "ring", opts->name, ring_fill);   on open
 *   hf_listed_remove(&ring->listed);                               on close
 *
 * Threads: safe from any thread.
 */
#ifndef SYNC_LISTED_H
#define SYNC_LISTED_H

#include "holdfast/inspect.h"

struct hf_listed {
    struct hf_listed *next;   /* (m) of the list */
    struct hf_listed *prev;   /* (m) */
    const char *kind;         /* (i) */
    char name[HF_NAME_BYTES]; /* (i) */
    /* Fills in the figures that the object has; the others are none already.
     * Must be quick and take no lock that is held while opening or closing. */
    void (*fill)(const struct hf_listed *listed, struct hf_inspect_row *row);
};

/* `name` may be NULL and is copied. */
void hf_listed_add(struct hf_listed *listed, const char *kind, const char *name,
                   void (*fill)(const struct hf_listed *listed,
                                struct hf_inspect_row *row));
/* When it returns, no fill of this object runs or will run. */
void hf_listed_remove(struct hf_listed *listed);

#endif
