/* above.h - the names above one that have a TREE in use; for this folder only.
 *
 *   db/orders/42   is below   db   and   db/orders
 *
 * They are looked up by their hashes: the name cut off before each '/', if some
 * TREE in use has a name of that length. A name may have hundreds above it, and
 * thousands of waits there, or beside and below each other, may be granted in
 * one step. So what was found for the last name is kept, and the next one
 * begins where the two part, as long as no TREE comes or goes. It is also kept
 * how many of them stop no reader, as long as nothing comes that may. This is
 * no state: nothing but time depends on it.
 */
#ifndef HOLD_ABOVE_H
#define HOLD_ABOVE_H

#include "hold/state.h"

/* What was looked up, in order, as far as it was asked for. */
struct hold_above {
    uint64_t number;  /* of times that it began anew, or at another '/' */
    uint64_t changes; /* of the trees, when it did */
    size_t len;       /* of the name, with its last '/' */
    size_t at;        /* of the one that was looked up last, or need not be */
    uint32_t count;   /* of those looked up */
    uint64_t finds;   /* how often one was, ever */
    bool is_complete;
    uint32_t open;  /* the first so many do not stop a shared request */
    uint64_t stops; /* of the trees, when that was found out */
    char name[HOLD_NAME_MAX];
    struct {
        uint32_t lock; /* 0: it has no TREE */
        uint16_t len;
        uint16_t found;      /* locks, up to this one */
    } looked[HOLD_NAME_MAX]; /* parts may be empty: "///" */
    /* The last name of which all below were listed to be served, and the turn
     * of serving in which they were: see tree.c. */
    uint64_t listed;
    uint32_t listed_len;
    char listed_name[HOLD_NAME_MAX];
};

/* A walk: {.name = name}. */
struct above {
    struct hf_bytes name;
    size_t len; /* of the one it is at */
    uint32_t next;
    uint64_t number; /* of what it goes through; 0: not begun */
};

/* The next lock above that has a TREE in use, the shortest name first; 0: no
 * more. Adds to `*looked` how many are to be looked up for it. */
uint32_t above_next(const struct hold_engine *e, struct above *walk,
                    uint32_t *looked);

/* Does none of them stop a shared request, whoever asks? Then the walk, not
 * begun, is at its end, and `*looked` has what it would have counted, with one
 * for each that is found. */
bool above_is_open(const struct hold_engine *e, struct above *walk,
                   uint32_t *looked);

/* The same as above_next(), not counted. */
static inline uint32_t next_above(const struct hold_engine *e,
                                  struct above *walk)
{
    uint32_t looked = 0;

    return e->trees.used == 0 ? 0 : above_next(e, walk, &looked);
}

#endif
