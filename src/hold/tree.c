/* tree.c - what requests with TREE, and those below, meet at other names. */
#include "hold/tree.h"

/* ---- Names above. ---- */

/* The next lock above `name` that has a TREE in use and a name longer than
 * `*len`, which becomes its length; 0: none. Counts those looked up. */
static uint32_t look_above(const struct hold_engine *e, struct hf_bytes name,
                           size_t *len, uint32_t *looked)
{
    while (*len < name.len) {
        size_t from = *len + 1;
        const char *slash =
            from >= name.len ? NULL
                             : memchr(name.data + from, '/', name.len - from);
        *len = slash == NULL ? name.len : (size_t)(slash - name.data);
        if (slash == NULL || e->tree_lens[*len] == 0)
            continue;
        uint32_t number = hf_index_find(&e->locks, hf_bytes(name.data, *len));
        ++*looked;
        if (number != 0 && tree_of(e, lock_at(e, number)) != NULL)
            return number;
    }
    return 0;
}

static uint32_t next_above(const struct hold_engine *e, struct hf_bytes name,
                           size_t *len)
{
    uint32_t looked = 0;

    return look_above(e, name, len, &looked);
}

/* The name is counted by the trees above it. */
static void count_name(struct hold_engine *e, uint32_t number)
{
    struct hf_bytes name = lock_name(e, number);
    size_t len = 0;
    uint32_t above;

    while (e->trees.used > 0 && (above = next_above(e, name, &len)) != 0)
        tree_of(e, lock_at(e, above))->below++;
}

/* It is not any more; those that it stopped look at the one after it. */
static void forget_name(struct hold_engine *e, uint32_t number)
{
    struct path_walk walk = {.top = e->path_root};
    struct hf_bytes name = lock_name(e, number);
    size_t len = 0;
    uint32_t above;

    while (e->trees.used > 0 && (above = next_above(e, name, &len)) != 0) {
        struct tree *tree = tree_of(e, lock_at(e, above));
        tree->below--;
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
    lock_at(e, number)->path = path;
    count_name(e, number);
    return number;
}

static void end_tree(struct hold_engine *e, struct lock *lock)
{
    uint32_t number = lock->path & ~LOCK_HAS_TREE;

    lock->path = tree_at(e, number)->path;
    e->tree_lens[lock->named.name.len]--;
    hf_slab_give(&e->trees, number);
}

void lock_remove_path(struct hold_engine *e, uint32_t number)
{
    struct lock *lock = lock_at(e, number);

    if (tree_of(e, lock) != NULL)
        end_tree(e, lock);
    if (lock->path == 0)
        return;
    forget_name(e, number);
    path_remove(e, lock->path);
}

static uint32_t count_below(const struct hold_engine *e, struct hf_bytes name,
                            uint64_t most)
{
    struct path_walk walk;
    uint32_t count = 0;

    for (uint32_t n = path_first(e, name, &walk); n != 0 && count < most;
         n = path_next(e, &walk))
        count++;
    return count;
}

bool tree_use(struct hold_engine *e, uint32_t number)
{
    struct lock *lock = lock_at(e, number);

    if (tree_of(e, lock) != NULL)
        return true;
    uint32_t tree = hf_slab_take(&e->trees);
    if (tree == 0)
        return false;
    *tree_at(e, tree) = (struct tree){
        .lock = number,
        .path = lock->path,
        .below = count_below(e, lock_name(e, number), UINT32_MAX),
    };
    lock->path = tree | LOCK_HAS_TREE;
    e->tree_lens[lock->named.name.len]++;
    return true;
}

void tree_settle(struct hold_engine *e, uint32_t number)
{
    struct lock *lock = lock_at(e, number);
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
    return tree_of(e, lock_at(e, part->lock));
}

void tree_granted(struct hold_engine *e, const struct part *part)
{
    if (part->tree)
        use(e, part)->grants++;
    if (!tree_is_alone(e, part))
        e->double_grants++; /* never, as the others */
}

void tree_ended(struct hold_engine *e, const struct part *part)
{
    struct tree *tree = tree_of(e, lock_at(e, part->lock));

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
    struct tree *tree = tree_of(e, lock_at(e, part->lock));

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
                      : look_above(r->e, r->name, &r->len, &r->looked);
        if (r->lock != 0)
            return true;
        r->above = false;
        r->walks = true;
        r->lock = r->wanted->tree ? path_first(r->e, r->name, &r->walk) : 0;
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

bool tree_is_alone(const struct hold_engine *e, const struct part *grant)
{
    struct wanted wanted = {.owner = part_owner(e, grant),
                            .session = part_claim(e, grant)->session,
                            .mode = (enum lock_mode)grant->mode,
                            .tree = grant->tree};
    struct relatives r = relatives_of(e, lock_name(e, grant->lock), &wanted);

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

/* Related names were looked at: of more than HOLD_WALK_MAX the sweep leaves the
 * rest to the next step. So the number must follow from the state alone. */
static void count_walked(struct hold_engine *e, uint32_t names)
{
    e->walked += names;
    if (e->walked >= HOLD_WALK_MAX && e->steps < HOLD_STEP_MAX)
        e->steps = HOLD_STEP_MAX;
    e->out.work += names;
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

/* The names below: a TREE that waits is looked at whenever something ends
 * there. What stopped it last mostly does so still; if not, the look goes round
 * all names from there. So many ends in one step take little more than one such
 * round. Two are kept: what stops all but its own holder, and what stops that
 * one. So many waits of one queue take little more than two. */
static bool is_stopped_below(struct hold_engine *e, struct relatives *r,
                             struct tree *tree)
{
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
        r->lock = path_next(e, &r->walk);
        if (r->lock == 0)
            r->lock = path_first(e, r->name, &r->walk);
    } while (r->lock != begun);
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
        count_walked(e, 1);
        if (stopped)
            return true;
    }
    r->looked = 0;
    while (!stopped && relatives_next(r) && r->above)
        stopped = stops(r);
    count_walked(e, relatives_looked(r));
    if (stopped)
        keep_stop(e->stops.above, r->lock);
    return stopped;
}

bool is_stopped_related(struct hold_engine *e, uint32_t number,
                        const struct wanted *wanted)
{
    struct relatives r = relatives_of(e, lock_name(e, number), wanted);

    return is_stopped_above(e, number, &r) ||
           (r.lock != 0 &&
            is_stopped_below(e, &r, tree_of(e, lock_at(e, number))));
}

static void reply_stop(struct hf_buf *body, const struct hold_engine *e,
                       struct stop stop)
{
    const struct lock *lock = lock_at(e, stop.lock);
    struct hf_bytes owner = hf_bytes("", 0);
    int64_t expires_ms = 0;

    if (stop.part == 0) {
        const struct mark *mark = mark_at(e, lock->mark);
        expires_ms = left_ms(e, stop.above ? mark->below_us : mark->closed_us);
    } else {
        const struct part *part = part_at(e, stop.part);
        owner = part_owner(e, part);
        expires_ms = part->waits ? 0 : grant_safe_ms(e, part);
    }
    reply_field_text(body, FIELD_OWNER, owner);
    reply_field_number(body, FIELD_EXPIRES_MS, expires_ms);
}

bool refuse_related(struct hold_engine *e, struct hf_bytes name,
                    uint32_t number, const struct wanted *wanted,
                    struct stop stop)
{
    const struct lock *lock = number == 0 ? NULL : lock_at(e, number);
    struct hf_buf *body = refuse(e, HOLD_BUSY, stop.above ? 7 : 6);

    reply_field_text(body, FIELD_NAME, name);
    reply_stop(body, e, stop);
    reply_field_number(body, FIELD_WAITING, lock == NULL ? 0 : lock->waiting);
    reply_field_number(body, FIELD_POSITION,
                       lock == NULL ? 1 : queue_position(e, lock, wanted));
    reply_field_text(body, FIELD_RELATED, lock_name(e, stop.lock));
    if (stop.above)
        reply_field_number(body, FIELD_TREE, 1);
    return true;
}

/* ---- Bounds. ---- */

static bool is_full_above(const struct hold_engine *e, struct hf_bytes name)
{
    size_t len = 0;
    uint32_t above = 0;

    if (e->trees.used == 0)
        return false;
    while ((above = next_above(e, name, &len)) != 0 &&
           tree_of(e, lock_at(e, above))->below < e->bounds.tree_names_max)
        ;
    return above != 0;
}

bool refuse_tree_names(struct hold_engine *e, struct hf_bytes name,
                       uint32_t number, const struct wanted *wanted)
{
    uint64_t most = e->bounds.tree_names_max;
    const struct tree *tree =
        number == 0 ? NULL : tree_of(e, lock_at(e, number));

    if (wanted->tree) {
        uint32_t count =
            tree != NULL ? tree->below : count_below(e, name, most + 1);
        e->out.work += count; /* they are looked at */
        if (count > most)
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

void serve_relatives(struct hold_engine *e, uint32_t number, bool tree)
{
    struct hf_bytes name = lock_name(e, number);
    struct path_walk walk;
    uint32_t names = 0;
    size_t len = 0;
    uint32_t n;

    while ((n = next_above(e, name, &len)) != 0) {
        if (tree_of(e, lock_at(e, n))->waits > 0)
            serve_later(e, n);
    }
    n = tree ? path_first(e, name, &walk) : 0;
    for (; n != 0; n = path_next(e, &walk)) {
        if (lock_at(e, n)->waiting > 0)
            serve_later(e, n);
        names++;
    }
    count_walked(e, names);
}
