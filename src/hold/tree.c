/* tree.c - what requests with TREE, and those below, meet at other names. */
#include "hold/tree.h"

/* ---- Names below. ---- */

/* How many a TREE has. */
static uint32_t names_below(struct hold_engine *e, const struct tree *tree)
{
    if (tree->below == TREE_UNCOUNTED)
        tree_edit_of(e, tree->lock)->below =
            path_count(e, lock_name(e, tree->lock), UINT32_MAX);
    return tree->below;
}

/* The name is counted by the trees above it. */
static void count_name(struct hold_engine *e, uint32_t number)
{
    struct above walk = {.name = lock_name(e, number)};
    uint32_t above;

    while ((above = next_above(e, &walk)) != 0) {
        struct tree *tree = tree_edit_of(e, above);
        tree->below += tree->below != TREE_UNCOUNTED;
    }
}

/* It is not any more; those that it stopped look at the one after it. */
static void forget_name(struct hold_engine *e, uint32_t number)
{
    struct path_walk walk = {.top = e->path_root};
    struct above upwards = {.name = lock_name(e, number)};
    uint32_t above;

    while ((above = next_above(e, &upwards)) != 0) {
        struct tree *tree = tree_edit_of(e, above);
        tree->below -= tree->below != TREE_UNCOUNTED;
        for (int i = 0; i < 2; i++) {
            if (tree->stops[i] != number)
                continue;
            path_go(&walk, lock_at(e, number)->path);
            tree->stops[i] = path_next(e, &walk);
        }
    }
}

/* ---- Records. ---- */

void tree_need(struct hold_engine *e, struct need *need, bool path,
               uint64_t flags)
{
    bool tree = (flags & HOLD_TREE) != 0;

    if (path)
        need_item(need, &e->paths);
    if (tree)
        need_item(need, &e->trees);
}

uint32_t lock_add_path(struct hold_engine *e, uint32_t number)
{
    uint32_t path = path_add(e, number);

    if (path == 0) {
        hf_index_remove(&e->locks, number);
        return 0;
    }
    lock_edit(e, number)->path = path;
    count_name(e, number);
    return number;
}

static void end_tree(struct hold_engine *e, struct lock *lock)
{
    uint32_t number = lock->path & ~LOCK_HAS_TREE;

    lock->path = tree_at(e, number)->path;
    e->tree_changes++;
    e->tree_lens[lock->named.name.len]--;
    hf_slab_give(&e->trees, number);
}

void lock_remove_path(struct hold_engine *e, uint32_t number)
{
    struct lock *lock = lock_edit(e, number);

    if (tree_of(e, lock) != NULL)
        end_tree(e, lock);
    if (lock->path == 0)
        return;
    forget_name(e, number);
    path_remove(e, lock->path);
}

bool tree_use(struct hold_engine *e, uint32_t number)
{
    struct lock *lock = lock_edit(e, number);

    if (tree_of(e, lock) != NULL)
        return true;
    uint32_t tree = hf_slab_take(&e->trees);
    if (tree == 0)
        return false;
    *tree_edit(e, tree) = (struct tree){
        .lock = number,
        .path = lock->path,
        .below = TREE_UNCOUNTED,
    };
    lock->path = tree | LOCK_HAS_TREE;
    e->tree_changes++;
    e->tree_lens[lock->named.name.len]++;
    return true;
}

void tree_settle(struct hold_engine *e, uint32_t number)
{
    struct lock *lock = lock_edit(e, number);
    const struct tree *tree = tree_of(e, lock);

    if (tree == NULL || (tree->grants | tree->waits) != 0 ||
        (lock->mark != 0 && mark_at(e, lock->mark)->below_us != 0))
        return;
    end_tree(e, lock);
}

static struct tree *use(struct hold_engine *e, const struct part *part)
{
    bool done = tree_use(e, part->lock);

    assert(done); /* promised */
    (void)done;
    return tree_edit_of(e, part->lock);
}

bool is_covered(const struct hold_engine *e, uint32_t first,
                const struct part *part)
{
    struct hf_bytes name = lock_name(e, part->lock);

    for (uint32_t n = first; part_at(e, n) != part; n = part_at(e, n)->more) {
        if (tree_covers(lock_name(e, part_at(e, n)->lock),
                        (enum lock_mode)part_at(e, n)->mode, name,
                        (enum lock_mode)part->mode))
            return true;
    }
    return false;
}

void tree_granted(struct hold_engine *e, const struct part *part)
{
    bool covered = part->tree && part->group != 0 &&
                   is_covered(e, set_at(e, part->group)->first, part);

    e->tree_stops += part->mode != MODE_SHARED;
    if (part->tree) {
        struct tree *tree = use(e, part);
        tree->grants++;
        covered = covered ||
                  (part->mode == MODE_SHARED && tree->open == e->tree_stops);
    }
    if (!tree_is_alone(e, part, covered))
        e->double_grants++; /* never, as the others */
}

void tree_ended(struct hold_engine *e, const struct part *part)
{
    struct tree *tree = tree_edit_of(e, part->lock);

    assert(tree->grants > 0);
    tree->grants--;
}

/* The part is in the queue: is it before `first`, which is one of them? */
static bool comes_before(const struct hold_engine *e, uint32_t number,
                         uint32_t first)
{
    const struct part *part = part_at(e, number);
    struct wanted wanted = waiter_wants(e, waiter_at(e, part->group), part);

    return first == 0 || !is_before(e, part_at(e, first), &wanted);
}

void tree_queued(struct hold_engine *e, uint32_t number)
{
    const struct part *part = part_at(e, number);
    struct tree *tree = use(e, part);

    tree->waits++;
    if (comes_before(e, number, tree->first))
        tree->first = number;
    if (part->mode != MODE_SHARED && comes_before(e, number, tree->writer))
        tree->writer = number;
}

/* The next one with TREE in the queue that shares or not, from `n` on. */
static uint32_t find_wait(const struct hold_engine *e, uint32_t n, bool writer)
{
    while (n != 0 && (!part_at(e, n)->tree ||
                      (writer && part_at(e, n)->mode == MODE_SHARED)))
        n = part_at(e, n)->place.next;
    return n;
}

void tree_left(struct hold_engine *e, uint32_t number)
{
    const struct part *part = part_at(e, number);
    struct tree *tree = tree_edit_of(e, part->lock);

    assert(tree->waits > 0);
    tree->waits--;
    if (tree->first == number)
        tree->first = find_wait(e, part->place.next, false);
    if (tree->writer == number)
        tree->writer = find_wait(e, part->place.next, true);
}

/* ---- Relatives. ---- */

bool relatives_next(struct relatives *r)
{
    r->looked++;
    if (!r->walks) {
        r->above = true;
        r->lock = r->e->trees.used == 0
                      ? 0
                      : above_next(r->e, &r->upwards, &r->looked);
        if (r->lock != 0)
            return true;
        r->above = false;
        r->walks = true;
        r->lock = r->wanted->tree == TREE_ALL
                      ? path_first(r->e, r->name, &r->walk)
                      : 0;
        return r->lock != 0;
    }
    r->lock = path_next(r->e, &r->walk);
    return r->lock != 0;
}

bool relative_is_closed(const struct relatives *r)
{
    const struct lock *lock = lock_at(r->e, r->lock);

    if (!r->above)
        return is_closed(r->e, lock);
    return lock->mark != 0 &&
           mark_at(r->e, lock->mark)->below_us > r->e->now_us;
}

/* The first part that conflicts in a list, from `n` on; of waits, only if it is
 * before the request. */
static uint32_t find_conflict(struct relatives *r, uint32_t n)
{
    bool shared = r->wanted->mode == MODE_SHARED;

    for (; n != 0; n = part_at(r->e, n)->place.next) {
        const struct part *part = part_at(r->e, n);
        r->looked++;
        if (part->waits && !is_before(r->e, part, r->wanted))
            return 0;
        if ((part->tree || !r->above) &&
            !(shared && part->mode == MODE_SHARED) &&
            !part_is_of(r->e, part, r->wanted->session, r->wanted->owner))
            break;
    }
    return n;
}

uint32_t relative_grant(struct relatives *r)
{
    const struct lock *lock = lock_at(r->e, r->lock);
    uint32_t n = lock->grants.first;

    if (n == 0 || (r->above && tree_of(r->e, lock)->grants == 0) ||
        (r->wanted->mode == MODE_SHARED &&
         part_at(r->e, n)->mode == MODE_SHARED))
        return 0;
    return find_conflict(r, n);
}

uint32_t relative_next_grant(struct relatives *r, uint32_t part)
{
    return find_conflict(r, part_at(r->e, part)->place.next);
}

uint32_t relative_wait(struct relatives *r)
{
    const struct lock *lock = lock_at(r->e, r->lock);
    const struct tree *tree = r->above ? tree_of(r->e, lock) : NULL;
    uint32_t n;

    if (r->wanted->mode == MODE_SHARED)
        n = r->above ? tree->writer : lock->writer;
    else
        n = r->above ? tree->first : lock->queue.first;
    return find_conflict(r, n);
}

uint32_t relative_next_wait(struct relatives *r, uint32_t part)
{
    return find_conflict(r, part_at(r->e, part)->place.next);
}

/* Does nothing above stop it? Then the walk goes on below. */
static bool is_open_above(struct relatives *r)
{
    return r->e->trees.used > 0 && r->wanted->mode == MODE_SHARED &&
           above_is_open(r->e, &r->upwards, &r->looked);
}

bool tree_is_alone(const struct hold_engine *e, const struct part *grant,
                   bool covered)
{
    struct wanted wanted = {.owner = part_owner(e, grant),
                            .session = part_claim(e, grant)->session,
                            .mode = (enum lock_mode)grant->mode,
                            .tree = covered ? TREE_COVERED : grant->tree};
    struct relatives r = relatives_of(e, lock_name(e, grant->lock), &wanted);

    if (is_open_above(&r))
        r.looked = 0;
    while (relatives_next(&r)) {
        if (relative_grant(&r) != 0)
            return false;
    }
    return true;
}

struct stop find_stop(const struct hold_engine *e, struct hf_bytes name,
                      const struct wanted *wanted, bool barge)
{
    struct relatives r = relatives_of(e, name, wanted);
    uint32_t part = 0;

    while (relatives_next(&r)) {
        if (relative_is_closed(&r) || (part = relative_grant(&r)) != 0 ||
            (!barge && (part = relative_wait(&r)) != 0))
            return (struct stop){r.lock, part, r.looked, r.above};
    }
    return (struct stop){0, 0, r.looked, false};
}

static bool stops(struct relatives *r)
{
    return relative_is_closed(r) || relative_grant(r) != 0 ||
           relative_wait(r) != 0;
}

void count_walked(struct hold_engine *e, uint32_t names, uint32_t work)
{
    e->walked += names;
    if (e->walked >= HOLD_WALK_MAX && e->steps < HOLD_STEP_MAX)
        e->steps = HOLD_STEP_MAX;
    e->out.work += work;
}

/* Goes to the name below that stopped a wait last, if there is such a name. */
static bool go_on(struct relatives *r, uint32_t stop)
{
    if (stop == 0 || hf_index_used(&r->e->locks, stop) == NULL ||
        !path_is_below(lock_name(r->e, stop), r->name))
        return false;
    const struct lock *lock = lock_at(r->e, stop);
    const struct tree *own = tree_of(r->e, lock);
    path_go(&r->walk, own != NULL ? own->path : lock->path);
    r->lock = stop;
    return true;
}

static void keep_stop(uint32_t stops[2], uint32_t lock)
{
    stops[1] = stops[0];
    stops[0] = lock;
}

/* Is nothing there that a reader could wait for? */
static bool is_open(const struct hold_engine *e, const struct lock *lock)
{
    return lock->writer == 0 && !is_closed(e, lock) &&
           (lock->granted == 0 ||
            part_at(e, lock->grants.first)->mode == MODE_SHARED);
}

/* The names below: a TREE that waits is looked at whenever something ends
 * there. What stopped it last mostly does so still; if not, the look goes round
 * all names from there. So many ends in one step take little more than one such
 * round. Two are kept: what stops all but its own holder, and what stops that
 * one. So many waits of one queue take little more than two. That nothing stops
 * readers is kept as well, for all of them who are let in. */
static bool is_stopped_below(struct hold_engine *e, struct relatives *r,
                             struct tree *tree)
{
    bool open = r->wanted->mode == MODE_SHARED;

    if (open && tree->open == e->tree_stops)
        return false;
    for (int i = 2; i-- > 0;) {
        if (!go_on(r, tree->stops[i]))
            continue;
        e->out.work++;
        if (stops(r))
            return true;
    }
    uint32_t begun = r->lock;
    do {
        e->out.work++;
        if (stops(r)) {
            keep_stop(tree->stops, r->lock);
            return true;
        }
        open = open && is_open(e, lock_at(e, r->lock));
        r->lock = path_next(e, &r->walk);
        if (r->lock == 0)
            r->lock = path_first(e, r->name, &r->walk);
    } while (r->lock != begun);
    if (open)
        tree->open = e->tree_stops;
    return false;
}

/* The names above, of which there may be hundreds. Those that stopped others in
 * the same queue come first. */
static bool is_stopped_above(struct hold_engine *e, uint32_t number,
                             struct relatives *r)
{
    bool stopped = false;

    if (e->stops.of != number) {
        e->stops.of = number;
        e->stops.above[0] = e->stops.above[1] = 0;
    }
    r->above = true;
    for (int i = 0; i < 2 && e->stops.above[i] != 0; i++) {
        r->lock = e->stops.above[i];
        stopped = stops(r);
        count_walked(e, 1, 1);
        if (stopped)
            return true;
    }
    r->looked = 0;
    uint64_t before = e->above->finds;
    bool open = is_open_above(r);
    while (!stopped && relatives_next(r) && r->above)
        stopped = stops(r);
    uint32_t looked = relatives_looked(r);
    uint32_t finds = (uint32_t)(e->above->finds - before);
    count_walked(e, looked, finds + (open ? 1 : looked - r->upwards.next));
    if (stopped)
        keep_stop(e->stops.above, r->lock);
    return stopped;
}

bool is_stopped_related(struct hold_engine *e, uint32_t number,
                        const struct wanted *wanted)
{
    struct relatives r = relatives_of(e, lock_name(e, number), wanted);

    return is_stopped_above(e, number, &r) ||
           (r.lock != 0 && is_stopped_below(e, &r, tree_edit_of(e, number)));
}

/* ---- Bounds. ---- */

/* The shortest name above has the most below. */
static bool is_full_above(struct hold_engine *e, struct hf_bytes name)
{
    struct above walk = {.name = name};
    uint32_t above = next_above(e, &walk);

    return above != 0 && names_below(e, tree_of(e, lock_at(e, above))) >=
                             e->bounds.tree_names_max;
}

bool refuse_tree_names(struct hold_engine *e, struct hf_bytes name,
                       uint32_t number, const struct wanted *wanted)
{
    uint64_t most = e->bounds.tree_names_max;
    const struct tree *tree =
        number == 0 ? NULL : tree_of(e, lock_at(e, number));

    if (wanted->tree == TREE_ALL) {
        uint32_t count =
            tree != NULL ? names_below(e, tree) : path_count(e, name, most + 1);
        e->out.work += count; /* they are looked at */
        e->below += count;
        if (e->below > most)
            return refuse_overload(e, "tree-names-max", most);
    }
    return number == 0 && is_full_above(e, name) &&
           refuse_overload(e, "tree-names-max", most);
}

bool tree_is_asked(const struct hold_engine *e, const struct hold_command *c)
{
    if ((c->flags & HOLD_TREE) != 0)
        return true;
    return e->trees.used > 0 && c->name.len > 0 && name_is_path(c->name);
}

/* ---- Others who wait. ---- */

bool is_related_overtaken(const struct hold_engine *e, const struct part *part,
                          struct hf_bytes name, const struct wanted *wanted)
{
    struct hf_bytes other = lock_name(e, part->lock);

    return ((wanted->tree && path_is_below(other, name)) ||
            (part->tree && path_is_below(name, other))) &&
           (wanted->mode != MODE_SHARED || part->mode != MODE_SHARED) &&
           !part_is_of(e, part, wanted->session, wanted->owner) &&
           !is_before(e, part, wanted);
}

/* Are all below listed already? If they were for the same TREE, or for the last
 * name and this is below it, and none of them was served since. */
static bool is_listed_below(const struct hold_engine *e,
                            const struct tree *tree, struct hf_bytes name)
{
    const struct hold_above *above = e->above;

    return tree->listed == e->serve_turns ||
           (above->listed == e->serve_turns &&
            path_is_below(name,
                          hf_bytes(above->listed_name, above->listed_len)));
}

/* Lists those below who wait; returns how many names there are. */
static uint32_t list_below(struct hold_engine *e, struct tree *tree,
                           uint32_t *work)
{
    struct hf_bytes name = lock_name(e, tree->lock);
    struct hold_above *above = e->above;
    struct path_walk walk;
    uint32_t names = 0;

    if (is_listed_below(e, tree, name)) {
        if (e->walked >= HOLD_WALK_MAX)
            return 0; /* no matter how many more */
        *work += tree->below == TREE_UNCOUNTED ? names_below(e, tree) : 0;
        return names_below(e, tree);
    }
    for (uint32_t n = path_first(e, name, &walk); n != 0;
         n = path_next(e, &walk)) {
        if (lock_at(e, n)->waiting > 0)
            serve_later(e, n);
        names++;
    }
    tree->below = names;
    tree->listed = above->listed = e->serve_turns;
    above->listed_len = name.len & UINT16_MAX;
    memcpy(above->listed_name, name.data, name.len);
    *work += names;
    return names;
}

void serve_relatives(struct hold_engine *e, uint32_t number, bool tree)
{
    struct above upwards = {.name = lock_name(e, number)};
    struct tree *own = tree ? tree_edit_of(e, number) : NULL;
    uint32_t work = 0;
    uint32_t n;

    assert(!tree || own != NULL); /* it is settled later */
    while ((n = next_above(e, &upwards)) != 0) {
        if (tree_of(e, lock_at(e, n))->waits > 0)
            serve_later(e, n);
    }
    uint32_t names = own == NULL ? 0 : list_below(e, own, &work);
    count_walked(e, names, work);
}
