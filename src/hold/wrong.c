/* wrong.c - arguments that do not go together. */
#include "hold/command.h"
#include "hold/schema.h"

/* A RESERVE takes all from its places, or nothing, and at once. */
static enum hold_wrong find_wrong_places(const struct hold_command *c)
{
    const uint64_t fitting = HOLD_SPLIT_MASK | (uint64_t)HOLD_PRIORITY_MAX
                                                   << HOLD_PRIORITY_SHIFT;
    size_t longest;

    if (c->note.len == 0)
        return (c->flags & HOLD_SPLIT_MASK) != 0 ? WRONG_SPLIT : HOLD_RIGHT;
    if (c->wait_ms > 0 || c->mins || (c->flags & ~fitting) != 0)
        return WRONG_PLACE_SOME;
    if (hold_count_places(c->note, &longest) == 0)
        return WRONG_PLACE_LIST;
    if (hold_most_items(c) > HOLD_ITEMS_MAX)
        return WRONG_TOO_SPLIT;
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (c->items[i].sku.len + 1 + longest > HOLD_SKU_MAX)
            return WRONG_PLACE_LONG;
    }
    return HOLD_RIGHT;
}

/* One item, of which all is wanted. */
static enum hold_wrong find_wrong_preorder(const struct hold_command *c)
{
    if (c->wait_ms > 0 || c->mins || c->note.len > 0 || c->bundle.len > 0 ||
        (c->flags & (HOLD_BEST | HOLD_SPLIT_MASK)) != 0)
        return WRONG_BOOK_SOME;
    return c->item_count > 1 ? WRONG_BOOK_MANY : HOLD_RIGHT;
}

enum hold_wrong hold_find_other_wrong(const struct hold_command *c)
{
    enum hold_policy policy = hold_policy(c);
    uint64_t permits = c->permits & UINT32_MAX;
    uint64_t of = c->permits >> 32;
    uint64_t flags = hold_is_key(c->kind) ? HOLD_KEY_FLAGS : HOLD_LOCK_FLAGS;

    if (c->kind == HOLD_RESERVE) {
        enum hold_wrong wrong =
            hold_may_book(c) ? find_wrong_preorder(c) : find_wrong_places(c);
        if (wrong != HOLD_RIGHT)
            return wrong;
        flags |= HOLD_SPLIT_MASK | HOLD_PREORDER;
    }
    if (c->kind == HOLD_RESTART)
        flags |= HOLD_SETTLED;
    if ((c->flags & HOLD_BEST) != 0 && c->kind != HOLD_RESERVE)
        return WRONG_BEST;
    if ((c->flags & ~(flags | HOLD_BEST)) != 0)
        return WRONG_KEY;
    if (c->wait_ms > 0 && c->bundle.len > 0)
        return WRONG_WAIT_GROUP;
    if (c->wait_ms > 0 && (c->mins || (c->flags & HOLD_BEST) != 0))
        return WRONG_WAIT_SOME;
    if (c->wait_ms > 0 && (c->flags & HOLD_FOREVER) != 0)
        return WRONG_TWO_WAITS;
    if (c->permits != 0 && (c->flags & HOLD_SHARED) != 0)
        return WRONG_TWO_MODES;
    if (c->permits != 0 && (permits - 1 >= of || of > HOLD_PERMITS_MAX))
        return WRONG_PERMITS_OF;
    if ((policy == POLICY_WAITDIE || policy == POLICY_WOUNDWAIT) &&
        c->session == 0)
        return WRONG_NO_SESSION;
    if (c->kind == HOLD_UNLOCK && c->note.len > 0 && c->done_ms == 0)
        return WRONG_RESULT;
    if (c->permits != 0 && (c->flags & HOLD_TREE) != 0)
        return WRONG_TREE;
    return HOLD_RIGHT;
}
