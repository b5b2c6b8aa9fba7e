/* tree.h - TREE: a lock on a name that is about all names below it, too.
 *
 * Two requests for different names are related if one of them has TREE and the
 * other one's name is below. They conflict unless both are shared, or they are
 * of one holder. What a request meets at related names is found in two ways:
 *
 *   above   its name cut off before each '/', looked up (above.h)
 *   below   if it has TREE itself: the names that begin with its own, from the
 *           ordered index (path.h)
 *
 * A name has a `struct tree` while a grant or a wait there has TREE, or names
 * below are closed by DELAY. While there is none, all of this costs a look at
 * their number. The work for one request is bounded by tree-names-max.
 */
#ifndef HOLD_TREE_H
#define HOLD_TREE_H

#include "hold/above.h"
#include "hold/part.h"
#include "hold/path.h"

/* A lock record is added to and removed from the indexes here only. `hash` is
 * that of the name, `is_path` whether it has a '/'. 0 without memory (never, if
 * promised). */
uint32_t lock_add_path(struct hold_engine *e, uint32_t number);
void lock_remove_path(struct hold_engine *e, uint32_t number);

static inline bool name_is_path(struct hf_bytes name)
{
    return hf_bytes_have(name, '/');
}

static inline uint32_t lock_add(struct hold_engine *e, uint32_t hash,
                                struct hf_bytes name, bool is_path)
{
    uint32_t number = hf_index_add_hashed(&e->locks, hash, name);

    return is_path && number != 0 ? lock_add_path(e, number) : number;
}

static inline void lock_remove(struct hold_engine *e, uint32_t number)
{
    if (lock_at(e, number)->path != 0)
        lock_remove_path(e, number);
    hf_index_remove(&e->locks, number);
}

/* What a lock's path and TREE may take. */
void tree_need(struct hold_engine *e, struct need *need, bool path,
               uint64_t flags);

/* The TREE in use of a lock; NULL: none. */
static inline const struct tree *tree_of(const struct hold_engine *e,
                                         const struct lock *lock)
{
    return (lock->path & LOCK_HAS_TREE) != 0
               ? tree_at(e, lock->path & ~LOCK_HAS_TREE)
               : NULL;
}

/* The same of one that has a TREE, to be changed. */
static inline struct tree *tree_edit_of(struct hold_engine *e, uint32_t lock)
{
    return tree_edit(e, lock_at(e, lock)->path & ~LOCK_HAS_TREE);
}

/* The lock has a TREE from now on: false without memory (never, if promised).
 */
bool tree_use(struct hold_engine *e, uint32_t lock);
/* Ends it, if nothing uses it. */
void tree_settle(struct hold_engine *e, uint32_t lock);
/* A part is among the grants while a TREE is in use, or has one itself. */
void tree_granted(struct hold_engine *e, const struct part *part);
/* One with TREE is not any more; is in the queue; is not any more. */
void tree_ended(struct hold_engine *e, const struct part *part);
void tree_queued(struct hold_engine *e, uint32_t part);
void tree_left(struct hold_engine *e, uint32_t part);

/* Does no other holder have a related name against this grant? */
bool tree_is_alone(const struct hold_engine *e, const struct part *grant,
                   bool covered);

/* Does a TREE in that mode meet all that one below it would, at the names below
 * both? Then those are looked at once for a set, not for each of its names. */
static inline bool tree_covers(struct hf_bytes above, enum lock_mode above_mode,
                               struct hf_bytes name, enum lock_mode mode)
{
    return (above_mode != MODE_SHARED || mode == MODE_SHARED) &&
           path_is_below(name, above);
}
/* Is a part with TREE covered by one before it in its group, whose first is
 * `first`? */
bool is_covered(const struct hold_engine *e, uint32_t first,
                const struct part *part);

/* Could related names matter to the request? */
static inline bool has_relatives(const struct hold_engine *e,
                                 const struct wanted *wanted)
{
    return wanted->tree || e->trees.used > 0;
}

/* The locks at related names: those above that have a TREE in use, the shortest
 * name first, then those below, in order. */
struct relatives {
    const struct hold_engine *e;
    const struct wanted *wanted;
    struct hf_bytes name; /* that is wanted */
    uint32_t lock;        /* that it is at */
    bool above;           /* that one is */
    bool walks;           /* those below */
    uint32_t looked;      /* names and parts that were looked at */
    struct above upwards;
    struct path_walk walk;
};
static inline struct relatives relatives_of(const struct hold_engine *e,
                                            struct hf_bytes name,
                                            const struct wanted *wanted)
{
    return (struct relatives){
        .e = e, .wanted = wanted, .name = name, .upwards = {.name = name}};
}
/* Goes to the next; false: that was all. */
bool relatives_next(struct relatives *r);
/* At this lock: is it closed; the first grant, or wait that is before it, that
 * conflicts, and the one after `part`; 0: none. */
bool relative_is_closed(const struct relatives *r);
uint32_t relative_grant(struct relatives *r);
uint32_t relative_next_grant(struct relatives *r, uint32_t part);
uint32_t relative_wait(struct relatives *r);
uint32_t relative_next_wait(struct relatives *r, uint32_t part);
/* How much was looked at since this was asked last. */
static inline uint32_t relatives_looked(struct relatives *r)
{
    uint32_t looked = r->looked;

    r->looked = 0;
    return looked;
}

/* Waits and related names count as looked at: of more than HOLD_WALK_MAX the
 * sweep leaves the rest to the next step. So the number must follow from the
 * state alone, not from what was known already and took no work. */
void count_walked(struct hold_engine *e, uint32_t names, uint32_t work);

/* What stops a request: at its own name, or first at a related one; 0 as the
 * lock: nothing. */
struct stop {
    uint32_t lock;
    uint32_t part;   /* 0: it is closed */
    uint32_t looked; /* what was looked at */
    bool above;
};
struct stop find_stop(const struct hold_engine *e, struct hf_bytes name,
                      const struct wanted *wanted, bool barge);
static inline bool is_related_free(const struct hold_engine *e,
                                   struct hf_bytes name,
                                   const struct wanted *wanted, bool barge)
{
    return !has_relatives(e, wanted) ||
           find_stop(e, name, wanted, barge).lock == 0;
}
/* The same for a wait in the queue of that lock. */
bool is_stopped_related(struct hold_engine *e, uint32_t lock,
                        const struct wanted *wanted);
static inline bool waits_for_related(struct hold_engine *e, uint32_t lock,
                                     const struct wanted *wanted)
{
    return has_relatives(e, wanted) && is_stopped_related(e, lock, wanted);
}
/* OVERLOADED, if there are too many names below a TREE, or below all of a set
 * or of a group. */
bool refuse_tree_names(struct hold_engine *e, struct hf_bytes name,
                       uint32_t lock, const struct wanted *wanted);

/* Would the part wait for the request at a related name, which is before it? */
bool is_related_overtaken(const struct hold_engine *e, const struct part *part,
                          struct hf_bytes name, const struct wanted *wanted);

/* Does a LOCK depend on related names? */
bool tree_is_asked(const struct hold_engine *e, const struct hold_command *c);

/* Something ended there, with TREE or not: whoever waits at a related name is
 * served. */
void serve_relatives(struct hold_engine *e, uint32_t lock, bool tree);
static inline void serve_related(struct hold_engine *e, uint32_t lock,
                                 bool tree)
{
    if (e->trees.used > 0)
        serve_relatives(e, lock, tree);
}

#endif
