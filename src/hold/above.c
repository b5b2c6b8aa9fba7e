/* above.c - finds the names above one that have a TREE in use. */
#include "hold/above.h"

#include "hold/tree.h"

/* The next name above `name` that is longer than `*len`, which becomes its
 * length, and is looked up; false: none. `*lock` is 0 if it has no TREE. */
static bool look_up(const struct hold_engine *e, struct hf_bytes name,
                    size_t *len, uint32_t *lock)
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
        bool has_tree = number != 0 && tree_of(e, lock_at(e, number)) != NULL;
        *lock = has_tree ? number : 0;
        return true;
    }
    return false;
}

/* How long the part of the name is that its names above are in: up to its last
 * '/'. */
static size_t folder_len(struct hf_bytes name)
{
    size_t len = name.len;

    while (len > 0 && name.data[len - 1] != '/')
        len--;
    return len;
}

/* How much of the folder is that of the last name, too. */
static size_t common_len(const struct hold_above *above, const char *name,
                         size_t len)
{
    size_t same = 0;

    if (len == above->len && memcmp(above->name, name, len) == 0)
        return len;
    while (same < len && same < above->len && above->name[same] == name[same])
        same++;
    return same;
}

/* Goes through what was found last, as far as that is for this name, too. */
static void begin(const struct hold_engine *e, struct above *walk, size_t len)
{
    struct hold_above *above = e->above;
    size_t same = above->changes == e->tree_changes
                      ? common_len(above, walk->name.data, len)
                      : 0;

    if (same < len || same < above->len || above->changes != e->tree_changes) {
        above->number++;
        above->changes = e->tree_changes;
        above->is_complete = false;
        while (above->count > 0 && above->looked[above->count - 1].len >= same)
            above->count--;
        if (above->at >= same)
            above->at = same == 0 ? 0 : same - 1;
        if (above->open > above->count)
            above->open = above->count;
        memcpy(above->name + same, walk->name.data + same, len - same);
        above->len = len;
    }
    walk->number = above->number;
}

/* Looks one more up, or finds out that there is none. */
static void extend(const struct hold_engine *e, struct hf_bytes name)
{
    struct hold_above *above = e->above;
    uint32_t found =
        above->count == 0 ? 0 : above->looked[above->count - 1].found;
    uint32_t lock;

    if (!look_up(e, name, &above->at, &lock)) {
        above->is_complete = true;
        return;
    }
    assert(above->count < HOLD_NAME_MAX);
    above->finds++;
    above->looked[above->count].lock = lock;
    above->looked[above->count].len = (uint16_t)above->at;
    above->looked[above->count].found = (uint16_t)(found + (lock != 0));
    above->count++;
}

/* The same without what was found for the last name. */
static uint32_t next_anew(const struct hold_engine *e, struct above *walk,
                          uint32_t *looked)
{
    uint32_t lock = 0;

    while (lock == 0 && look_up(e, walk->name, &walk->len, &lock))
        ++*looked;
    return lock;
}

uint32_t above_next(const struct hold_engine *e, struct above *walk,
                    uint32_t *looked)
{
    const struct hold_above *above = e->above;

    if (walk->number == 0) {
        size_t len = folder_len(walk->name);
        if (len == 0)
            return 0;
        begin(e, walk, len);
    }
    if (walk->number != above->number) /* another walk has begun anew */
        return next_anew(e, walk, looked);
    for (;;) {
        if (walk->next == above->count && !above->is_complete)
            extend(e, walk->name);
        if (walk->next == above->count)
            break;
        uint32_t lock = above->looked[walk->next].lock;
        walk->len = above->looked[walk->next++].len;
        ++*looked;
        if (lock != 0)
            return lock;
    }
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

bool above_is_open(const struct hold_engine *e, struct above *walk,
                   uint32_t *looked)
{
    struct hold_above *above = e->above;
    size_t len = folder_len(walk->name);

    if (len == 0)
        return true;
    begin(e, walk, len);
    if (above->stops != e->tree_stops)
        above->open = 0;
    above->stops = e->tree_stops;
    while (!above->is_complete)
        extend(e, walk->name);
    for (; above->open < above->count; above->open++) {
        uint32_t lock = above->looked[above->open].lock;
        if (lock != 0 && !is_open(e, lock_at(e, lock)))
            return false;
    }
    walk->next = above->count;
    walk->len = walk->name.len;
    if (above->count > 0)
        *looked += above->count + above->looked[above->count - 1].found;
    return true;
}
