/* check_graph.c - proves that the graph of locks is in order. */
#include <stdarg.h>

#include "hold/check_parts.h"
#include "hold/expect.h"
#include "hold/tree.h"
#include "hold/waitlist.h"

#define ERROR_BYTES 256

enum hf_status check_broken(const struct checker *checker, const char *format,
                            ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(checker->error, ERROR_BYTES, format, args);
    va_end(args);
    return HF_CORRUPT;
}

/* The entry at `position` is this thing's. */
static bool is_in_heap(const struct hold_engine *e, uint32_t position,
                       enum due_kind kind, uint32_t number)
{
    const struct hf_heap_entry *entry = hf_agenda_at(&e->due, position);

    return entry != NULL &&
           entry->ref == ((uint32_t)kind << DUE_SHIFT | number);
}

bool check_in_heap(const struct hold_engine *e, uint32_t position,
                   enum due_kind kind, uint32_t number, uint64_t when)
{
    return is_in_heap(e, position, kind, number) &&
           hf_agenda_when(&e->due, position) == when;
}

/* What is summed up while the locks are walked. */
struct sums {
    uint64_t parts;
    uint64_t waited;
    uint64_t bytes;
    uint64_t held;
    uint64_t marks;
    uint64_t paths;
    uint64_t trees;
};

static enum hf_status check_single(struct checker *checker, uint32_t number)
{
    const struct hold_engine *e = checker->e;
    const struct part *part = part_at(e, number);

    checker->singles++;
    if (part->token == 0 || part->token > e->seq || part->count == 0)
        return check_broken(checker, "lock %.*s has token %llu, count %u",
                            HF_SHOW(lock_name(e, part->lock)),
                            (unsigned long long)part->token, part->count);
    if (!is_in_heap(e, part->due, DUE_GRANT, number))
        return check_broken(checker, "lock %.*s is not among what is due",
                            HF_SHOW(lock_name(e, part->lock)));
    return HF_OK;
}

/* The grants of a lock go together: one exclusive, or all shared, or as many
 * permits as there are. */
static enum hf_status check_grants(struct checker *checker, uint32_t number,
                                   struct sums *sums)
{
    const struct hold_engine *e = checker->e;
    const struct lock *lock = lock_at(e, number);
    struct hf_bytes name = hf_index_name(&e->locks, lock);
    uint64_t last = 0;
    uint64_t used = 0;
    uint32_t count = 0;
    uint32_t prev = 0;
    enum hf_status status = HF_OK;

    for (uint32_t n = lock->grants.first; n != 0 && status == HF_OK;
         n = part_at(e, n)->place.next) {
        const struct part *part = part_at(e, n);
        const struct part *first = part_at(e, lock->grants.first);
        if (part->lock != number || part->waits || part->place.prev != prev ||
            part_token(e, part) <= last)
            return check_broken(checker, "the grants of %.*s are not in order",
                                HF_SHOW(name));
        if (part->key && (part->group != 0 || part->claim.session != 0 ||
                          part->tree || part->mode == MODE_SHARED))
            return check_broken(checker, "the key %.*s is not one",
                                HF_SHOW(name));
        if (part->mode != first->mode ||
            (part->mode == MODE_EXCLUSIVE && count > 0))
            return check_broken(checker, "lock %.*s was granted twice",
                                HF_SHOW(name));
        last = part_token(e, part);
        used += part->mode == MODE_COUNTING ? part->permits : 0;
        count++;
        prev = n;
        if (part->group == 0)
            status = check_single(checker, n);
    }
    if (status != HF_OK)
        return status;
    if (count != lock->granted || lock->grants.last != prev)
        return check_broken(checker, "lock %.*s counts %u grants and has %u",
                            HF_SHOW(name), lock->granted, count);
    if (count > 0 && used > 0 && (used != lock->used || used > lock->max))
        return check_broken(checker, "lock %.*s has %llu of %u permits out",
                            HF_SHOW(name), (unsigned long long)used, lock->max);
    sums->parts += count;
    sums->held += count > 0;
    return HF_OK;
}

static enum hf_status check_queue(struct checker *checker, uint32_t number,
                                  struct sums *sums)
{
    const struct hold_engine *e = checker->e;
    const struct lock *lock = lock_at(e, number);
    uint32_t count = 0;
    uint32_t several = 0;
    uint32_t writer = 0;
    uint32_t readers = 0;
    uint32_t prev = 0;

    for (uint32_t n = lock->queue.first; n != 0;
         n = part_at(e, n)->place.next) {
        const struct part *part = part_at(e, n);
        if (part->lock != number || !part->waits || part->place.prev != prev)
            return check_broken(checker, "a part is not linked to its lock");
        const struct waiter *waiter = waiter_at(e, part->group);
        struct wanted wanted = waiter_wants(e, waiter, part);
        if (prev != 0 && !is_before(e, part_at(e, prev), &wanted))
            return check_broken(checker, "a queue is not in order");
        several += waiter->names > 1;
        readers += part->mode == MODE_SHARED;
        if (writer == 0 && part->mode != MODE_SHARED)
            writer = n;
        if (++count > lock->waiting)
            break;
        prev = n;
    }
    if (writer != lock->writer || readers != lock->readers)
        return check_broken(checker, "a queue has other writers or readers");
    if (count != lock->waiting || lock->queue.last != prev ||
        several != lock->several)
        return check_broken(
            checker, "a queue counts %u waiters and has %u, of several %u, %u",
            lock->waiting, count, lock->several, several);
    sums->parts += count;
    sums->waited += count;
    sums->bytes += count * (uint64_t)lock->named.name.len;
    return HF_OK;
}

static enum hf_status check_mark(struct checker *checker, uint32_t number)
{
    const struct hold_engine *e = checker->e;
    uint32_t mark = lock_at(e, number)->mark;

    if (mark != 0 && (mark_at(e, mark)->lock != number ||
                      !check_in_heap(e, mark_at(e, mark)->due, DUE_MARK, mark,
                                     mark_due_us(mark_at(e, mark)))))
        return check_broken(checker, "a mark is not in order");
    return HF_OK;
}

static enum hf_status check_tree_counts(struct checker *checker,
                                        const struct lock *lock)
{
    const struct hold_engine *e = checker->e;
    struct hf_bytes name = hf_index_name(&e->locks, lock);
    const struct tree *tree = tree_of(e, lock);
    struct tree found = {.lock = tree->lock,
                         .path = tree->path,
                         .stops = {tree->stops[0], tree->stops[1]},
                         .listed = tree->listed,
                         .open = tree->open};
    struct path_walk walk;
    uint32_t n;

    for (n = lock->grants.first; n != 0; n = part_at(e, n)->place.next)
        found.grants += part_at(e, n)->tree;
    for (n = lock->queue.first; n != 0; n = part_at(e, n)->place.next) {
        const struct part *part = part_at(e, n);
        found.waits += part->tree;
        if (part->tree && found.first == 0)
            found.first = n;
        if (part->tree && part->mode != MODE_SHARED && found.writer == 0)
            found.writer = n;
    }
    for (n = path_first(e, name, &walk); n != 0; n = path_next(e, &walk))
        found.below++;
    if (tree->below == TREE_UNCOUNTED)
        found.below = TREE_UNCOUNTED;
    if (memcmp(tree, &found, sizeof found) != 0)
        return check_broken(checker, "the TREE of %.*s is not in order",
                            HF_SHOW(name));
    bool closes = lock->mark != 0 && mark_at(e, lock->mark)->below_us != 0;
    if (found.grants + found.waits == 0 && !closes)
        return check_broken(checker, "the TREE of %.*s is idle, but kept",
                            HF_SHOW(name));
    return HF_OK;
}

/* Its place in the ordered index, and its TREE. */
static enum hf_status check_tree(struct checker *checker, uint32_t number,
                                 struct sums *sums)
{
    const struct hold_engine *e = checker->e;
    const struct lock *lock = lock_at(e, number);
    struct hf_bytes name = hf_index_name(&e->locks, lock);
    const struct tree *tree = tree_of(e, lock);
    uint32_t path = tree != NULL ? tree->path : lock->path;
    bool has_tree = lock->mark != 0 && mark_at(e, lock->mark)->below_us != 0;

    if ((path != 0) != name_is_path(name) ||
        (path != 0 && path_at(e, path)->lock != number) ||
        (tree != NULL && tree->lock != number))
        return check_broken(checker, "the path of %.*s is wrong",
                            HF_SHOW(name));
    for (uint32_t n = lock->grants.first; n != 0;
         n = part_at(e, n)->place.next) {
        if (!part_at(e, n)->tree)
            continue;
        has_tree = true;
        if (!tree_is_alone(e, part_at(e, n), false))
            return check_broken(checker, "a name below %.*s was granted, too",
                                HF_SHOW(name));
    }
    if (has_tree && tree == NULL)
        return check_broken(checker, "the TREE of %.*s is missing",
                            HF_SHOW(name));
    sums->paths += path != 0;
    sums->trees += tree != NULL;
    return tree == NULL ? HF_OK : check_tree_counts(checker, lock);
}

static enum hf_status check_lock(struct checker *checker, uint32_t number,
                                 struct sums *sums)
{
    const struct hold_engine *e = checker->e;
    const struct lock *lock = lock_at(e, number);
    struct hf_bytes name = hf_index_name(&e->locks, lock);

    if (hf_index_find(&e->locks, name) != number)
        return check_broken(checker, "lock %.*s is not found by its name",
                            HF_SHOW(name));
    if ((lock->granted | lock->waiting | lock->mark) == 0 || lock->is_listed)
        return check_broken(checker, "lock %.*s is idle, but kept",
                            HF_SHOW(name));
    enum hf_status status = check_grants(checker, number, sums);
    if (status == HF_OK)
        status = check_queue(checker, number, sums);
    sums->marks += lock->mark != 0;
    if (status == HF_OK)
        status = check_mark(checker, number);
    return status == HF_OK ? check_tree(checker, number, sums) : status;
}

static enum hf_status check_waiters(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    uint64_t counted = 0;

    for (uint32_t i = 1; i < hf_index_top(&e->waiters); i++) {
        const struct waiter *waiter = hf_index_used(&e->waiters, i);
        if (waiter == NULL)
            continue;
        if (waiter_find(e, waiter->ticket) != i ||
            !check_in_heap(e, waiter->due, DUE_WAITER, i, waiter->deadline_us))
            return check_broken(checker, "waiter %llu is not in order",
                                (unsigned long long)waiter->ticket);
        uint32_t names = 0;
        for (uint32_t n = waiter->first; n != 0; n = part_at(e, n)->more) {
            if (part_at(e, n)->group != i || !part_at(e, n)->waits ||
                ++names > waiter->names)
                return check_broken(checker, "waiter %llu has another's part",
                                    (unsigned long long)waiter->ticket);
        }
    }
    for (uint32_t i = 1; i < hf_index_top(&e->holders); i++) {
        const struct holder *holder = hf_index_used(&e->holders, i);
        uint32_t w = holder == NULL ? 0 : holder->waiters.first;
        uint64_t last = 0; /* they are in order, so there is an end */
        for (; w != 0 && waiter_at(e, w)->order > last;
             w = waiter_at(e, w)->peers.next) {
            counted += waiter_at(e, w)->holder == i;
            last = waiter_at(e, w)->order;
        }
    }
    if (counted != hf_index_count(&e->waiters))
        return check_broken(checker, "%u waiters, of which %llu have a holder",
                            hf_index_count(&e->waiters),
                            (unsigned long long)counted);
    return HF_OK;
}

static enum hf_status check_sets(struct checker *checker)
{
    const struct hold_engine *e = checker->e;

    for (uint32_t i = 1; i < hf_index_top(&e->sets); i++) {
        const struct set *set = hf_index_used(&e->sets, i);
        uint32_t names = 0;
        if (set == NULL)
            continue;
        for (uint32_t n = set->first; n != 0 && names <= set->names;
             n = part_at(e, n)->more) {
            if (part_at(e, n)->group != i || part_at(e, n)->waits)
                break; /* what follows is not known */
            names++;
        }
        if (names != set->names || set_find(e, set->token) != i ||
            set->count == 0 ||
            !check_in_heap(e, set->due, DUE_SET, i, set->expires_us))
            return check_broken(checker, "set %llu is not in order",
                                (unsigned long long)set->token);
    }
    return HF_OK;
}

static enum hf_status check_sessions(struct checker *checker)
{
    const struct hold_engine *e = checker->e;

    for (uint32_t i = 1; i < hf_index_top(&e->sessions); i++) {
        const struct session *session = hf_index_used(&e->sessions, i);
        uint32_t parts = 0;
        uint64_t last = 0;
        if (session == NULL)
            continue;
        for (uint32_t n = session->parts.first;
             n != 0 && session_order(e, part_at(e, n)) > last;
             n = part_at(e, n)->kin.next) {
            parts += part_claim(e, part_at(e, n))->session == i;
            last = session_order(e, part_at(e, n));
        }
        if (parts != session->grants + session->waits ||
            session_find(e, session->id) != i ||
            !check_in_heap(e, session->due, DUE_SESSION, i,
                           session->expires_us))
            return check_broken(checker, "session %llu is not in order",
                                (unsigned long long)session->id);
    }
    return HF_OK;
}

enum hf_status check_graph(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    struct sums sums = {0};
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->locks); i++) {
        if (hf_index_used(&e->locks, i) != NULL)
            status = check_lock(checker, i, &sums);
    }
    if (status != HF_OK)
        return status;
    struct told_room room = waitlist_sums(e);
    struct told_room booked = expect_sums(e);
    if (sums.parts != e->parts.used ||
        sums.waited + room.events + booked.events != e->waited_parts ||
        sums.bytes + room.event_bytes + booked.event_bytes != e->waited_bytes ||
        sums.held != e->held || sums.marks != e->marks.used ||
        e->serve.first != 0 || sums.trees != e->trees.used)
        return check_broken(checker, "the sums over all locks are wrong");
    if (!path_check(e, sums.paths))
        return check_broken(checker, "the names are not in order");
    status = check_waiters(checker);
    if (status == HF_OK)
        status = check_sets(checker);
    return status == HF_OK ? check_sessions(checker) : status;
}
