/* path.c - the ordered index of names. */
#include "hold/path.h"

#include "hold/part.h"

static uint32_t name_ref(uint32_t number)
{
    return number << 1 | 1;
}

static uint32_t node_ref(uint32_t number)
{
    return number << 1;
}

static bool is_name(uint32_t ref)
{
    return (ref & 1) != 0;
}

static struct hf_bytes name_of(const struct hold_engine *e, uint32_t number)
{
    return lock_name(e, path_at(e, number)->lock);
}

static uint32_t above_of(const struct hold_engine *e, uint32_t ref)
{
    const struct path *path = path_at(e, ref >> 1);

    return is_name(ref) ? path->above : path->up;
}

static void set_above(struct hold_engine *e, uint32_t ref, uint32_t up)
{
    struct path *path = path_edit(e, ref >> 1);

    *(is_name(ref) ? &path->above : &path->up) = up;
}

/* Hangs `ref` on the node `up`, in the place of `old`. */
static void hang(struct hold_engine *e, uint32_t up, uint32_t old, uint32_t ref)
{
    if (up == 0)
        e->path_root = ref;
    else
        path_edit(e, up)->under[path_at(e, up)->under[1] == old] = ref;
    set_above(e, ref, up);
}

/* The name by whose bits the way down goes as by those of `name`. */
static uint32_t descend(const struct hold_engine *e, struct hf_bytes name)
{
    uint32_t ref = e->path_root;

    while (!is_name(ref)) {
        const struct path *node = path_at(e, ref >> 1);
        ref = node->under[path_bit(name, node->bit)];
    }
    return ref;
}

uint32_t path_add(struct hold_engine *e, uint32_t lock)
{
    uint32_t number = hf_slab_take(&e->paths);

    if (number == 0)
        return 0;
    struct path *path = path_edit(e, number);
    path->lock = lock;
    path->bit = PATH_NO_NODE;
    if (e->path_root == 0) {
        e->path_root = name_ref(number);
        return number;
    }
    struct hf_bytes name = lock_name(e, lock);
    uint32_t ref = descend(e, name);
    uint32_t bit = path_difference(name, name_of(e, ref >> 1));
    uint32_t up = above_of(e, ref);
    while (up != 0 && path_at(e, up)->bit > bit) {
        ref = node_ref(up);
        up = path_at(e, up)->up;
    }
    uint32_t side = path_bit(name, bit);
    path->bit = bit;
    hang(e, up, ref, node_ref(number));
    path->under[side] = name_ref(number);
    path->under[1 - side] = ref;
    path->above = number;
    set_above(e, ref, number);
    return number;
}

/* The name goes, and with it the node that it hangs on. If that is not the one
 * in its own record, it takes over the place of the latter. */
void path_remove(struct hold_engine *e, uint32_t number)
{
    const struct path *path = path_at(e, number);
    uint32_t gone = path->above;

    if (gone == 0) {
        e->path_root = 0;
        hf_slab_give(&e->paths, number);
        return;
    }
    struct path *node = path_edit(e, gone);
    uint32_t other = node->under[node->under[0] == name_ref(number)];
    hang(e, node->up, node_ref(gone), other);
    node->bit = PATH_NO_NODE;
    if (gone != number && path->bit != PATH_NO_NODE) {
        node->bit = path->bit;
        node->under[0] = path->under[0];
        node->under[1] = path->under[1];
        hang(e, path->up, node_ref(number), node_ref(gone));
        set_above(e, node->under[0], gone);
        set_above(e, node->under[1], gone);
    }
    hf_slab_give(&e->paths, number);
}

/* The first name under a reference. */
static uint32_t find_first(const struct hold_engine *e, uint32_t ref)
{
    while (!is_name(ref))
        ref = path_at(e, ref >> 1)->under[0];
    return ref;
}

uint32_t path_first(const struct hold_engine *e, struct hf_bytes name,
                    struct path_walk *walk)
{
    /* '/' is among the bits that those below have in common */
    uint32_t common = (uint32_t)(name.len + 1) << 4;
    uint32_t ref = e->path_root;

    while (ref != 0 && !is_name(ref)) {
        const struct path *node = path_at(e, ref >> 1);
        if (node->bit >= common)
            break;
        uint32_t i = node->bit >> 4;
        ref = node->under[i < name.len
                              ? path_bit(name, node->bit)
                              : path_bit(hf_bytes("/", 1), node->bit & 15)];
    }
    if (ref == 0)
        return 0;
    walk->top = ref;
    walk->at = find_first(e, ref);
    uint32_t lock = path_at(e, walk->at >> 1)->lock;
    return path_is_below(lock_name(e, lock), name) ? lock : 0;
}

uint32_t path_next(const struct hold_engine *e, struct path_walk *walk)
{
    uint32_t ref = walk->at;

    while (ref != walk->top) {
        uint32_t up = above_of(e, ref);
        const struct path *node = path_at(e, up);
        if (node->under[0] == ref) {
            walk->at = find_first(e, node->under[1]);
            return path_at(e, walk->at >> 1)->lock;
        }
        ref = node_ref(up);
    }
    return 0;
}

uint32_t path_count(const struct hold_engine *e, struct hf_bytes name,
                    uint64_t most)
{
    struct path_walk walk;
    uint32_t count = 0;

    for (uint32_t n = path_first(e, name, &walk); n != 0 && count < most;
         n = path_next(e, &walk))
        count++;
    return count;
}

bool path_check(const struct hold_engine *e, uint64_t count)
{
    struct hf_bytes last = hf_bytes("", 0);
    struct path_walk walk = {e->path_root, 0};
    uint64_t found = 0;

    if (e->path_root == 0)
        return count == 0;
    walk.at = find_first(e, e->path_root);
    uint32_t lock = path_at(e, walk.at >> 1)->lock;
    for (; lock != 0 && found <= count; lock = path_next(e, &walk)) {
        struct hf_bytes name = lock_name(e, lock);
        if (hf_bytes_compare(last, name) >= 0 ||
            descend(e, name) != name_ref(walk.at >> 1))
            return false;
        last = name;
        found++;
    }
    return found == count && e->paths.used == count;
}
