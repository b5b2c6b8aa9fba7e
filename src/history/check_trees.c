/* check_trees.c - a hold with TREE excludes those of names below it, and has
 * its turn among them. */
#include "history/locks.h"

/* Is `name` below `above`? */
static bool is_below(struct hf_bytes name, struct hf_bytes above)
{
    return name.len > above.len && name.data[above.len] == '/' &&
           memcmp(name.data, above.data, above.len) == 0;
}

bool trees_relate(const struct check *c, struct hf_bytes a, struct hf_bytes b)
{
    return c->trees && (is_below(a, b) || is_below(b, a));
}

void trees_add(struct check *c, struct hf_bytes name, const struct hold *hold)
{
    if (!c->trees)
        return;
    struct branch *branch = check_push(c, &c->branches, sizeof *branch);
    *branch = (struct branch){.key = {name, {hold->token}}, .hold = *hold};
}

/* May both be of one holder? */
static bool may_be_one(const struct hold *a, const struct hold *b)
{
    return (a->owner.data == NULL || b->owner.data == NULL ||
            hf_bytes_equal(a->owner, b->owner)) &&
           (a->session == CHECK_UNKNOWN || b->session == CHECK_UNKNOWN ||
            a->session == b->session);
}

static void judge(struct check *c, const struct branch *tree,
                  const struct branch *below)
{
    bool first = tree->hold.token < below->hold.token;
    const struct hold *earlier = first ? &tree->hold : &below->hold;
    const struct hold *later = first ? &below->hold : &tree->hold;

    if (later->hi < earlier->closed && modes_exclude(earlier, later) &&
        !may_be_one(earlier, later))
        check_found(c, "exclusion", later->proof->id, earlier->proof->id,
                    "lock %.*s: token %llu was given while %.*s above it was "
                    "held with TREE and token %llu, or the other way round",
                    SHOW(below->key.name),
                    (unsigned long long)below->hold.token, SHOW(tree->key.name),
                    (unsigned long long)tree->hold.token);
}

/* Who comes later waits behind a TREE above, or before a name below. */
static void judge_order(struct check *c, const struct branch *tree,
                        const struct branch *below)
{
    bool first = tree->hold.begin->lo < below->hold.begin->lo;
    const struct fact *early = (first ? tree : below)->hold.begin;
    const struct fact *late = (first ? below : tree)->hold.begin;

    if (early->token > late->token &&
        check_us(c, early->lo) + ORDER_SLACK_US < check_us(c, late->lo) &&
        early->call->run_end == late->call->run_end &&
        early->call->terms.priority == late->call->terms.priority &&
        !hf_bytes_equal(early->owner, late->owner))
        check_found(c, "fifo", late->call->id, early->call->id,
                    "lock %.*s below %.*s with TREE: who came later was given "
                    "token %llu before %llu",
                    SHOW(below->key.name), SHOW(tree->key.name),
                    (unsigned long long)late->token,
                    (unsigned long long)early->token);
}

void trees_judge(struct check *c)
{
    const struct branch *all = c->branches.data;

    for (size_t i = 0; i < c->branches.count; i++) {
        const struct fact *begin = all[i].hold.begin;
        if (begin == NULL || !begin->call->terms.tree)
            continue;
        for (size_t k = 0; k < c->branches.count; k++) {
            if (!is_below(all[k].key.name, all[i].key.name))
                continue;
            judge(c, &all[i], &all[k]);
            if (lock_was_queued(&all[i].hold) && lock_was_queued(&all[k].hold))
                judge_order(c, &all[i], &all[k]);
        }
    }
}
