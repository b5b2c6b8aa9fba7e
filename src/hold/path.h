/* path.h - the names in use that have a '/', in order; for this folder only.
 *
 * A name is below another if it begins with that one and a '/'. All names below
 * one are next to each other in the order of their bytes, so a tree over the
 * bits of the names has them under one node:
 *
 *              (bit 3)                names: db/a  db/b  x/y
 *             /       \
 *        (bit 51)      x/y            a node is the first bit in which the
 *        /      \                     names under it differ
 *     db/a      db/b
 *
 * There is one node less than there are names. So each record has room for a
 * name and for a node, which need not be next to each other, and adding a name
 * takes one record. Nothing is stored of names that are not in use.
 *
 * A bit is named by the place of its byte and, in the lowest four bits, its
 * place there: 0 says whether there is such a byte, 1 to 8 are its bits, the
 * highest first. So a name that ends comes before those that go on.
 */
#ifndef HOLD_PATH_H
#define HOLD_PATH_H

#include "hold/state.h"

/* A reference to a node or, with the lowest bit, to a name; 0: none. */
struct path {
    uint32_t lock;     /* the name; never 0 */
    uint32_t above;    /* the node that the name hangs on; 0: it is alone */
    uint32_t up;       /* of the node; 0: it is the root */
    uint32_t under[2]; /* of the node: references, by the value of the bit */
    uint32_t bit;      /* of the node; PATH_NO_NODE: it is not in use */
};
#define PATH_NO_NODE UINT32_MAX

static inline const struct path *path_at(const struct hold_engine *e,
                                         uint32_t number)
{
    return hf_slab_at(&e->paths, number);
}
static inline struct path *path_edit(struct hold_engine *e, uint32_t number)
{
    return hf_undo_keep(&e->undo, hf_slab_at(&e->paths, number),
                        sizeof(struct path));
}

/* The value of a bit of the name. */
static inline uint32_t path_bit(struct hf_bytes name, uint32_t bit)
{
    uint32_t i = bit >> 4;
    uint32_t k = bit & 15;

    if (i >= name.len)
        return 0;
    return k == 0 ? 1 : (uint32_t)(unsigned char)name.data[i] >> (8 - k) & 1;
}

/* The first bit in which two names differ. */
static inline uint32_t path_difference(struct hf_bytes a, struct hf_bytes b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    size_t i = 0;

    while (i < len && a.data[i] == b.data[i])
        i++;
    assert(i < a.len || i < b.len); /* they are different names */
    if (i == len)
        return (uint32_t)i << 4;
    unsigned x = (unsigned char)a.data[i] ^ (unsigned)(unsigned char)b.data[i];
    return (uint32_t)i << 4 | (uint32_t)(__builtin_clz(x) - 23);
}

/* Adds the name of a lock; 0 without memory (never, if promised). */
uint32_t path_add(struct hold_engine *e, uint32_t lock);
void path_remove(struct hold_engine *e, uint32_t number);

/* The names below `name`, in order, while nothing is added or removed: the
 * first, and the one after; 0: no more. They are locks. */
struct path_walk {
    uint32_t top; /* a reference */
    uint32_t at;
};
uint32_t path_first(const struct hold_engine *e, struct hf_bytes name,
                    struct path_walk *walk);
uint32_t path_next(const struct hold_engine *e, struct path_walk *walk);
/* Goes to the name of that record, which is one of them. */
static inline void path_go(struct path_walk *walk, uint32_t number)
{
    walk->at = number << 1 | 1;
}

/* How many there are, up to `most`. */
uint32_t path_count(const struct hold_engine *e, struct hf_bytes name,
                    uint64_t most);

/* True if `name` is below `above`. */
static inline bool path_is_below(struct hf_bytes name, struct hf_bytes above)
{
    return name.len > above.len && name.data[above.len] == '/' &&
           memcmp(name.data, above.data, above.len) == 0;
}

/* Proves that all is in order: every name is found, `count` of them. */
bool path_check(const struct hold_engine *e, uint64_t count);

#endif
