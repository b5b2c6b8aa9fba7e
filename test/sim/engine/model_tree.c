/* model_tree.c - TREE in the model: names that are related by their paths. */
#include <assert.h>

#include "sim/engine/model_lock.h"

bool model_is_below(const struct model *model, uint32_t name, uint32_t above)
{
    struct hf_bytes x = model_name_bytes(model, name);
    struct hf_bytes p = model_name_bytes(model, above);

    return x.len > p.len && x.data[p.len] == '/' &&
           memcmp(x.data, p.data, p.len) == 0;
}

bool model_tree_conflicts(const struct model *model,
                          const struct model_claim *a,
                          const struct model_want *on_a,
                          const struct model_claim *b,
                          const struct model_want *on_b)
{
    bool covers = (a->tree && model_is_below(model, on_b->name, on_a->name)) ||
                  (b->tree && model_is_below(model, on_a->name, on_b->name));

    return covers && !model_same_holder(a, b) && !model_compatible(on_a, on_b);
}

static bool is_name_before(const struct model *model, uint32_t a, uint32_t b)
{
    struct hf_bytes x = model_name_bytes(model, a);
    struct hf_bytes y = model_name_bytes(model, b);
    int order = memcmp(x.data, y.data, x.len < y.len ? x.len : y.len);

    return order != 0 ? order < 0 : x.len < y.len;
}

/* Adds a name to a list that is sorted by its bytes, unless it is there. */
static void add_sorted(const struct model *model, uint32_t name, uint32_t *list,
                       size_t *count)
{
    size_t at = *count;

    for (size_t i = 0; i < *count; i++) {
        if (list[i] == name)
            return;
    }
    assert(*count < MODEL_MAX);
    for (; at > 0 && is_name_before(model, name, list[at - 1]); at--)
        list[at] = list[at - 1];
    list[at] = name;
    (*count)++;
}

/* The names that are looked at for one name. */
struct places {
    const struct model *model;
    uint32_t name;
    bool tree;
    size_t count;
    uint32_t *list;
};

static void add_related(struct places *places, uint32_t other)
{
    const struct model *model = places->model;

    if (model_is_below(model, places->name, other) ||
        (places->tree && model_is_below(model, other, places->name)))
        add_sorted(model, other, places->list, &places->count);
}

static void add_claim(struct places *places, const struct model_claim *claim)
{
    for (size_t i = 0; i < claim->want_count; i++)
        add_related(places, claim->wants[i].name);
}

size_t model_places(const struct model *model, uint32_t name, bool tree,
                    const struct model_wait *new, uint32_t *out)
{
    struct places places = {model, name, tree, 0, out + 1};

    for (size_t i = 0; i < model->grant_count; i++)
        add_claim(&places, &model->grants[i].claim);
    for (size_t i = 0; i < model->wait_count; i++)
        add_claim(&places, &model->waits[i].claim);
    for (size_t i = 0; i < model->mark_count; i++)
        add_related(&places, model->marks[i].name);
    if (new != NULL)
        add_claim(&places, &new->claim);
    out[0] = name;
    return places.count + 1;
}

/* Is there a TREE of that name among the waits? */
static bool is_tree_waited(const struct model *model, uint32_t name)
{
    for (size_t i = 0; i < model->wait_count; i++) {
        const struct model_claim *claim = &model->waits[i].claim;
        if (claim->tree && model_want_of(claim, name) != NULL)
            return true;
    }
    return false;
}

bool model_tree_in_use(const struct model *model, uint32_t name)
{
    const struct model_mark *mark =
        model_find_mark((struct model *)model, name);

    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_claim *claim = &model->grants[i].claim;
        if (claim->tree && model_want_of(claim, name) != NULL)
            return true;
    }
    return is_tree_waited(model, name) || (mark != NULL && mark->tree_us != 0);
}

bool model_any_tree(const struct model *model)
{
    for (uint32_t i = 0; i < model->name_count; i++) {
        if (model_tree_in_use(model, i))
            return true;
    }
    return false;
}

void model_call_related(struct model *model, uint32_t name, bool turn,
                        bool tree)
{
    uint32_t places[MODEL_MAX + 1];
    size_t count = model_places(model, name, tree, NULL, places);

    model_call(model, name, turn);
    for (size_t i = 1; i < count; i++) {
        if (model_is_below(model, places[i], name)
                ? model_waiting(model, places[i]) > 0
                : is_tree_waited(model, places[i]))
            model_call(model, places[i], false);
    }
}

uint64_t model_closed_until(const struct model *model, uint32_t name,
                            uint32_t place)
{
    const struct model_mark *mark =
        model_find_mark((struct model *)model, place);

    if (mark == NULL)
        return 0;
    return model_is_below(model, name, place) ? mark->tree_us : mark->delay_us;
}

/* The bound of names below a TREE. */

static size_t count_below(struct model *model, uint32_t above)
{
    size_t count = 0;

    for (uint32_t i = 0; i < model->name_count; i++)
        count += model_is_below(model, i, above) && model_is_in_use(model, i);
    return count;
}

/* Is there no room for the name below the trees above it? */
static bool is_tree_full(struct model *model, uint32_t name)
{
    for (uint32_t i = 0; i < model->name_count; i++) {
        if (model_is_below(model, name, i) && model_tree_in_use(model, i) &&
            count_below(model, i) >= model->bounds.tree_names_max)
            return true;
    }
    return false;
}

/* Does another name of the claim meet all that this one meets below? */
static bool is_covered(struct model *model, const struct model_claim *claim,
                       const struct model_want *want)
{
    for (size_t i = 0; i < claim->want_count; i++) {
        const struct model_want *other = &claim->wants[i];
        if (model_is_below(model, want->name, other->name) &&
            (other->mode != MODEL_SHARED || want->mode == MODEL_SHARED))
            return true;
    }
    return false;
}

bool model_exceeds_tree(struct model *model, const struct model_claim *claim)
{
    uint64_t max = model->bounds.tree_names_max;

    if (!model->grouping)
        model->below = 0;
    for (size_t i = 0; i < claim->want_count; i++) {
        uint32_t name = claim->wants[i].name;
        if (claim->tree && !is_covered(model, claim, &claim->wants[i]))
            model->below += count_below(model, name);
        if (model->below <= max &&
            (model_is_in_use(model, name) || !is_tree_full(model, name)))
            continue;
        model_overloaded(model, "tree-names-max", max);
        model->figures[FIGURE_TREE_FULL]++;
        return true;
    }
    return false;
}

bool model_check_trees(const struct model *model)
{
    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_claim *a = &model->grants[i].claim;
        for (size_t j = 0; j < i; j++) {
            const struct model_claim *b = &model->grants[j].claim;
            if (!a->tree && !b->tree)
                continue;
            for (size_t n = 0; n < a->want_count * b->want_count; n++) {
                if (model_tree_conflicts(model, a, &a->wants[n % a->want_count],
                                         b, &b->wants[n / a->want_count]))
                    return false;
            }
        }
    }
    return true;
}
