/* above.c - finds the names above one that have a TREE in use. */
#include "hold/above.h"

#include "hold/tree.h"

/* The next above `name` that is longer than `*len`, which becomes its length.
 */
static uint32_t look_up(const struct hold_engine *e, struct hf_bytes name,
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

/* Goes through what was found last, if that is for this name; else anew. */
static void begin(const struct hold_engine *e, struct above *walk)
{
    struct hold_above *above = e->above;
    size_t len = walk->name.len;

    while (len > 0 && walk->name.data[len - 1] != '/')
        len--;
    len -= len > 0;
    if (above->changes != e->tree_changes || above->len != len ||
        memcmp(above->name, walk->name.data, len) != 0) {
        above->number++;
        above->changes = e->tree_changes;
        above->len = (uint32_t)len;
        above->count = 0;
        above->is_complete = false;
        above->uses = 0;
        memcpy(above->name, walk->name.data, len);
    }
    walk->number = above->number;
}

/* Finds one more, or that there is none. */
static void extend(const struct hold_engine *e, struct hf_bytes name)
{
    struct hold_above *above = e->above;
    size_t len = above->count == 0 ? 0 : above->found[above->count - 1].len;
    uint32_t looked = 0;
    uint32_t lock = look_up(e, name, &len, &looked);

    above->is_complete = lock == 0;
    if (lock == 0) {
        above->end_cost = looked;
        return;
    }
    assert(above->count < HOLD_NAME_MAX);
    above->found[above->count].lock = lock;
    above->found[above->count].len = (uint16_t)len;
    above->found[above->count].cost = (uint16_t)looked;
    above->count++;
}

uint32_t above_next(const struct hold_engine *e, struct above *walk,
                    uint32_t *looked)
{
    const struct hold_above *above = e->above;

    if (walk->number == 0)
        begin(e, walk);
    if (walk->number != above->number) /* another walk has begun anew */
        return look_up(e, walk->name, &walk->len, looked);
    if (walk->next == above->count && !above->is_complete)
        extend(e, walk->name);
    if (walk->next < above->count) {
        walk->len = above->found[walk->next].len;
        *looked += above->found[walk->next].cost;
        return above->found[walk->next++].lock;
    }
    if (walk->len < walk->name.len)
        *looked += above->end_cost;
    walk->len = walk->name.len;
    return 0;
}

/* Is nothing there that a shared request could wait for? */
static bool is_open(const struct hold_engine *e, const struct lock *lock)
{
    const struct tree *tree = tree_of(e, lock);
    bool closed =
        lock->mark != 0 && mark_at(e, lock->mark)->below_us > e->now_us;

    return !closed && tree->writer == 0 &&
           (tree->grants == 0 ||
            part_at(e, lock->grants.first)->mode == MODE_SHARED);
}

static void find_open(const struct hold_engine *e, struct hf_bytes name)
{
    struct hold_above *above = e->above;

    while (!above->is_complete)
        extend(e, name);
    above->uses = e->tree_uses;
    above->is_open = true;
    above->all_cost = above->count + above->end_cost;
    for (uint32_t i = 0; i < above->count && above->is_open; i++) {
        above->all_cost += above->found[i].cost;
        above->is_open = is_open(e, lock_at(e, above->found[i].lock));
    }
}

bool above_is_open(const struct hold_engine *e, struct above *walk,
                   uint32_t *looked)
{
    const struct hold_above *above = e->above;

    begin(e, walk);
    if (above->uses != e->tree_uses)
        find_open(e, walk->name);
    if (!above->is_open)
        return false;
    walk->next = above->count;
    walk->len = walk->name.len;
    *looked += above->all_cost;
    return true;
}
