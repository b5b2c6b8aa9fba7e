/* model_deadlock.c - the policies, by brute force.
 *
 * The graph is made from nothing for every request. Nodes are the request and
 * the waits; edges go from who waits to what keeps it waiting. Who is stuck is
 * found by taking away whoever is not, until nobody more can be taken away.
 */
#include <assert.h>

#include "sim/engine/model_lock.h"

#define NODES_MAX  (MODEL_MAX + 1)
#define CYCLE_MAX  64u
#define NOBODY     UINT32_MAX
#define AGE_OF_NEW UINT64_MAX

/* Node 0 is the request, the others are the waits in their array. */
struct graph {
    struct model *model;
    const struct model_wait *new; /* NULL: the state as it is */
    uint32_t node_count;
    bool stuck[NODES_MAX];
    bool keeps[MODEL_MAX]; /* grants that are not given back */
};

/* Why one waits for another. */
struct edge {
    uint32_t from;
    uint32_t to;
    const struct model_want *want;
    uint32_t place; /* where it is kept from it */
    bool by_grant;  /* else by a place in the queue */
};

/* Edges in the order in which they are looked at. */
struct edges {
    size_t count;
    size_t room;
    struct edge *list;
};

static const struct model_wait *wait_at(const struct graph *g, uint32_t node)
{
    return node == 0 ? g->new : &g->model->waits[node - 1];
}

static bool is_live(const struct graph *g, uint32_t node)
{
    const struct model_wait *wait = wait_at(g, node);

    return wait != NULL &&
           !model_wait_is_over(g->model, wait, g->model->now_us);
}

static bool is_holder(const struct graph *g, uint32_t node,
                      const struct model_claim *claim)
{
    return model_same_holder(&wait_at(g, node)->claim, claim);
}

/* The places of a name, those of the request among them. */
static size_t list_places(const struct graph *g, const struct model_wait *wait,
                          const struct model_want *want, uint32_t *out)
{
    return model_places(g->model, want->name, wait->claim.tree, g->new, out);
}

/* The grants at a place that keep `wait` from a name: those of others that
 * conflict with it, as far as they are kept. */
static size_t list_grants(const struct graph *g, const struct model_wait *wait,
                          const struct model_want *want, uint32_t place,
                          const bool *keeps, const struct model_grant **out)
{
    struct model *model = g->model;
    uint64_t used = 0;
    size_t count = 0;
    size_t found = 0;

    if (model_find_reentry(model, &wait->claim) != NULL)
        return 0;
    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_grant *grant = &model->grants[i];
        const struct model_want *held = model_want_of(&grant->claim, place);
        bool own = model_same_holder(&grant->claim, &wait->claim);
        if (held == NULL || model_grant_is_over(model, grant, model->now_us) ||
            (!own && keeps != NULL && !keeps[i]))
            continue;
        used += held->permits;
        if (!own)
            out[count++] = grant;
    }
    for (size_t i = 0; i < count; i++) {
        if (model_conflicts(model, &wait->claim, want, place, out[i], used))
            out[found++] = out[i];
    }
    return found;
}

/* Does `node` stand before `wait` at a place, and stop it? */
static bool stops(const struct graph *g, uint32_t node,
                  const struct model_wait *wait, const struct model_want *want,
                  uint32_t place)
{
    return is_live(g, node) &&
           model_stops(g->model, wait_at(g, node), wait, want, place);
}

static void add_edge(struct edges *edges, struct edge edge)
{
    assert(edges->count < edges->room);
    edges->list[edges->count++] = edge;
}

/* From `node` to all whom a grant belongs to. */
static void add_holder(const struct graph *g, struct edge edge,
                       const struct model_claim *holder, struct edges *out)
{
    if (g->new != NULL && is_holder(g, 0, holder)) {
        edge.to = 0;
        add_edge(out, edge);
        return;
    }
    for (uint32_t i = 1; i < g->node_count; i++) {
        edge.to = i;
        if (is_live(g, i) && is_holder(g, i, holder))
            add_edge(out, edge);
    }
}

/* The edges of a node at one place. */
static void add_edges_at(const struct graph *g, struct edge edge,
                         struct edges *out)
{
    const struct model_grant *grants[MODEL_MAX];
    const struct model_wait *queue[MODEL_MAX];
    const struct model_wait *wait = wait_at(g, edge.from);
    size_t count = list_grants(g, wait, edge.want, edge.place, NULL, grants);

    edge.by_grant = true;
    for (size_t i = 0; i < count; i++)
        add_holder(g, edge, &grants[i]->claim, out);
    edge.by_grant = false;
    count = model_queue(g->model, edge.place, queue);
    for (size_t i = 0; i < count; i++) {
        edge.to = (uint32_t)(queue[i] - g->model->waits) + 1;
        if (stops(g, edge.to, wait, edge.want, edge.place))
            add_edge(out, edge);
    }
    edge.to = 0;
    if (stops(g, 0, wait, edge.want, edge.place))
        add_edge(out, edge);
}

/* All edges of a node. */
static void list_edges(const struct graph *g, uint32_t node, struct edges *out)
{
    const struct model_wait *wait = wait_at(g, node);
    uint32_t places[MODEL_MAX + 1];

    out->count = 0;
    for (size_t n = 0; n < wait->claim.want_count; n++) {
        const struct model_want *want = &wait->claim.wants[n];
        size_t count = list_places(g, wait, want, places);
        for (size_t i = 0; i < count; i++)
            add_edges_at(
                g,
                (struct edge){.from = node, .want = want, .place = places[i]},
                out);
    }
}

static struct edges *edge_space(void)
{
    static struct edge list[1u << 18];
    static struct edges edges = {.room = sizeof list / sizeof list[0],
                                 .list = list};

    return &edges;
}

/* Breadth first from node 0 over nodes that are `allowed`: `reached_by` gets
 * the edge that each was reached by. Returns the edge that leads back to node
 * 0; its `from` is NOBODY if there is none. */
static struct edge walk(const struct graph *g, const bool *allowed,
                        struct edge *reached_by)
{
    static uint32_t queue[NODES_MAX];
    struct edges *edges = edge_space();
    uint32_t count = 1;
    struct edge back = {.from = NOBODY};

    for (uint32_t i = 0; i < g->node_count; i++)
        reached_by[i].from = NOBODY;
    queue[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        list_edges(g, queue[i], edges);
        for (size_t j = 0; j < edges->count; j++) {
            struct edge edge = edges->list[j];
            if (edge.to == 0 && back.from == NOBODY)
                back = edge;
            if (edge.to == 0 || reached_by[edge.to].from != NOBODY ||
                (allowed != NULL && !allowed[edge.to]))
                continue;
            reached_by[edge.to] = edge;
            queue[count++] = edge.to;
        }
    }
    return back;
}

static bool is_blocked_at(const struct graph *g, const struct model_wait *wait,
                          const struct model_want *want, uint32_t place)
{
    const struct model_grant *grants[MODEL_MAX];

    if (list_grants(g, wait, want, place, g->keeps, grants) > 0)
        return true;
    for (uint32_t i = 0; i < g->node_count; i++) {
        if (g->stuck[i] && stops(g, i, wait, want, place))
            return true;
    }
    return false;
}

static bool is_blocked(const struct graph *g, uint32_t node)
{
    const struct model_wait *wait = wait_at(g, node);
    uint32_t places[MODEL_MAX + 1];

    for (size_t n = 0; n < wait->claim.want_count; n++) {
        const struct model_want *want = &wait->claim.wants[n];
        size_t count = list_places(g, wait, want, places);
        for (size_t i = 0; i < count; i++) {
            if (is_blocked_at(g, wait, want, places[i]))
                return true;
        }
    }
    return false;
}

/* A holder that is not stuck gives back what it has. */
static void find_kept(struct graph *g)
{
    struct model *model = g->model;

    for (size_t i = 0; i < model->grant_count; i++) {
        g->keeps[i] = false;
        for (uint32_t j = 0; j < g->node_count && !g->keeps[i]; j++)
            g->keeps[i] =
                g->stuck[j] && is_holder(g, j, &model->grants[i].claim);
    }
}

/* The largest set of nodes, of those that are marked, which keep each other
 * waiting. */
static void find_stuck(struct graph *g)
{
    bool changed = true;

    while (changed) {
        changed = false;
        find_kept(g);
        for (uint32_t i = 0; i < g->node_count; i++) {
            if (g->stuck[i] && !is_blocked(g, i)) {
                g->stuck[i] = false;
                changed = true;
            }
        }
    }
}

static void write_entry(struct hf_buf *out, struct hf_bytes name,
                        const struct model_claim *claim, enum model_mode mode,
                        uint64_t since_us)
{
    reply_map(out, 6);
    reply_field_text(out, FIELD_OWNER, model_bytes(&claim->owner));
    reply_field_number(out, FIELD_SESSION, (int64_t)claim->session);
    reply_field_text(out, FIELD_NAME, name);
    reply_field_text(out, FIELD_MODE, hf_bytes_text(model_mode_name(mode)));
    reply_field_number(out, FIELD_SINCE_MS, (int64_t)(since_us / 1000));
    reply_field_text(out, FIELD_NOTE, model_bytes(&claim->note));
}

static void count_cycle(const struct graph *g, const struct edge *cycle,
                        uint32_t length)
{
    uint64_t *figures = g->model->figures;
    bool set = false;
    bool shared = false;
    bool counting = false;
    bool by_wait = false;
    bool tree = false;

    for (uint32_t i = 0; i < length; i++) {
        set |= wait_at(g, cycle[i].from)->claim.is_set;
        shared |= cycle[i].want->mode == MODEL_SHARED;
        counting |= cycle[i].want->mode == MODEL_COUNTING;
        by_wait |= !cycle[i].by_grant;
        tree |= cycle[i].place != cycle[i].want->name;
    }
    figures[FIGURE_CYCLE_SET] += set;
    figures[FIGURE_CYCLE_SHARED] += shared;
    figures[FIGURE_CYCLE_COUNTING] += counting;
    figures[FIGURE_CYCLE_WAIT] += by_wait;
    figures[FIGURE_CYCLE_TREE] += tree;
    figures[FIGURE_CYCLE_BEHIND] += !cycle[length - 1].by_grant;
    figures[length > 6 ? FIGURE_CYCLE_MORE : FIGURE_CYCLE_2 + length - 2]++;
}

static void refuse_cycle(const struct graph *g, struct edge back,
                         const struct edge *reached_by)
{
    static struct edge cycle[NODES_MAX];
    struct model *model = g->model;
    uint32_t length = 1;

    for (uint32_t at = back.from; at != 0; at = reached_by[at].from)
        length++;
    cycle[length - 1] = back;
    for (uint32_t i = length - 1; i > 0; i--)
        cycle[i - 1] = reached_by[cycle[i].from];
    struct hf_buf *out = model_reply(model, HOLD_DEADLOCK);
    reply_map(out, 4);
    reply_field_text(out, FIELD_NAME,
                     model_name_bytes(model, cycle[0].want->name));
    reply_field_text(out, FIELD_REASON, hf_bytes_text("cycle"));
    reply_field_number(out, FIELD_LENGTH, length);
    reply_field(out, FIELD_CYCLE);
    reply_list(out, length < CYCLE_MAX ? length : CYCLE_MAX);
    for (uint32_t i = 0; i < length && i < CYCLE_MAX; i++) {
        const struct model_wait *wait = wait_at(g, cycle[i].from);
        write_entry(out, model_name_bytes(model, cycle[i].want->name),
                    &wait->claim, cycle[i].want->mode,
                    model->now_us - wait->queued_us);
    }
    count_cycle(g, cycle, length);
}

static bool detect(struct model *model, const struct model_wait *wait)
{
    static struct graph g;
    static struct edge reached_by[NODES_MAX];

    g.model = model;
    g.new = wait;
    g.node_count = (uint32_t)model->wait_count + 1;
    bool leads_back = walk(&g, NULL, reached_by).from != NOBODY;
    for (uint32_t i = 0; i < g.node_count; i++)
        g.stuck[i] = i == 0 || reached_by[i].from != NOBODY;
    find_stuck(&g);
    struct edge back = walk(&g, g.stuck, reached_by);
    model->figures[FIGURE_SEARCHED]++;
    if (!g.stuck[0] || back.from == NOBODY) {
        model->figures[FIGURE_NOT_STUCK] += leads_back;
        return false;
    }
    refuse_cycle(&g, back, reached_by);
    return true;
}

/* Does the holder do one thing at a time, and does it ask for detection? */
static bool is_orderly(const struct graph *g, uint32_t node)
{
    const struct model_wait *wait = wait_at(g, node);
    const struct model *model = g->model;

    if (wait->claim.policy != POLICY_DETECT)
        return false;
    for (uint32_t i = 1; i < g->node_count; i++) {
        if (i != node && is_live(g, i) && is_holder(g, i, &wait->claim))
            return false;
    }
    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_grant *grant = &model->grants[i];
        if (grant->token > wait->order &&
            model_same_holder(&grant->claim, &wait->claim))
            return false;
    }
    return true;
}

enum model_circle model_find_circle(struct model *model)
{
    static struct graph g;
    enum model_circle circle = MODEL_NO_CIRCLE;

    g.model = model;
    g.new = NULL;
    g.node_count = (uint32_t)model->wait_count + 1;
    for (uint32_t i = 0; i < g.node_count; i++)
        g.stuck[i] = is_live(&g, i);
    find_stuck(&g);
    for (uint32_t i = 1; i < g.node_count; i++) {
        if (g.stuck[i] && !is_orderly(&g, i))
            return MODEL_ALLOWED_CIRCLE;
        if (g.stuck[i])
            circle = MODEL_CIRCLE;
    }
    return circle;
}

/* Seniority. */

static bool is_senior(const struct model_claim *a, uint64_t a_age,
                      const struct model_claim *b, uint64_t b_age)
{
    a_age = a->session != 0 ? a->session : a_age;
    b_age = b->session != 0 ? b->session : b_age;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a_age != b_age)
        return a_age < b_age;
    size_t len = a->owner.len < b->owner.len ? a->owner.len : b->owner.len;
    int order = memcmp(a->owner.data, b->owner.data, len);
    return order != 0 ? order < 0 : a->owner.len < b->owner.len;
}

static void refuse_younger(struct model *model, const struct model_want *want,
                           uint32_t place, const struct model_claim *senior,
                           uint64_t since_us)
{
    struct hf_bytes name = model_name_bytes(model, want->name);
    struct hf_buf *out = model_reply(model, HOLD_DEADLOCK);
    enum model_mode mode = model_want_of(senior, place)->mode;

    reply_map(out, 4);
    reply_field_text(out, FIELD_NAME, name);
    reply_field_text(out, FIELD_REASON, hf_bytes_text("younger"));
    reply_field_number(out, FIELD_LENGTH, 1);
    reply_field(out, FIELD_CYCLE);
    reply_list(out, 1);
    write_entry(out, model_name_bytes(model, place), senior, mode,
                model->now_us - since_us);
    model->figures[FIGURE_TREE_YOUNGER] += place != want->name;
}

static struct model_grant *conflicting(struct model *model,
                                       const struct model_wait *wait,
                                       const struct model_want *want,
                                       uint32_t place, size_t i)
{
    struct model_grant *grant = &model->grants[i];
    uint64_t used = 0;

    for (size_t j = 0; j < model->grant_count; j++) {
        const struct model_want *held =
            model_want_of(&model->grants[j].claim, want->name);
        used += held == NULL ? 0 : held->permits;
    }
    return !model_same_holder(&grant->claim, &wait->claim) &&
                   model_conflicts(model, &wait->claim, want, place, grant,
                                   used)
               ? grant
               : NULL;
}

static bool die_at(struct model *model, const struct model_wait *wait,
                   const struct model_want *want, uint32_t place)
{
    const struct model_wait *queue[MODEL_MAX];

    for (size_t i = 0; i < model->grant_count; i++) {
        struct model_grant *grant = conflicting(model, wait, want, place, i);
        if (grant == NULL ||
            !is_senior(&grant->claim, grant->token, &wait->claim, AGE_OF_NEW))
            continue;
        refuse_younger(model, want, place, &grant->claim, grant->acquired_us);
        model->figures[FIGURE_YOUNGER]++;
        return true;
    }
    size_t count = model_queue(model, place, queue);
    for (size_t i = 0; i < count; i++) {
        const struct model_wait *other = queue[i];
        if (!model_stops(model, other, wait, want, place) ||
            model_same_holder(&other->claim, &wait->claim) ||
            !is_senior(&other->claim, other->order, &wait->claim, AGE_OF_NEW))
            continue;
        refuse_younger(model, want, place, &other->claim, other->queued_us);
        model->figures[FIGURE_YOUNGER_WAIT]++;
        return true;
    }
    return false;
}

/* WAITDIE: only an older one waits. */
static bool die(struct model *model, const struct model_wait *wait)
{
    uint32_t places[MODEL_MAX + 1];

    for (size_t n = 0; n < wait->claim.want_count; n++) {
        const struct model_want *want = &wait->claim.wants[n];
        size_t count =
            model_places(model, want->name, wait->claim.tree, NULL, places);
        for (size_t i = 0; i < count; i++) {
            if (die_at(model, wait, want, places[i]))
                return true;
        }
    }
    return false;
}

static uint64_t wound_end_us(const struct model *model)
{
    return model->now_us + model->bounds.wound_grace_ms * 1000;
}

static void add_juniors_at(struct model *model, const struct model_wait *wait,
                           const struct model_want *want, uint32_t place,
                           struct model_grant **out, size_t *count)
{
    for (size_t i = 0; i < model->grant_count; i++) {
        struct model_grant *grant = conflicting(model, wait, want, place, i);
        bool known = false;
        for (size_t j = 0; j < *count; j++)
            known |= out[j] == grant;
        if (grant == NULL || known ||
            (grant->sealed && grant->expires_us <= wound_end_us(model)) ||
            !is_senior(&wait->claim, AGE_OF_NEW, &grant->claim, grant->token))
            continue;
        out[(*count)++] = grant;
        model->figures[FIGURE_TREE_WOUND] += place != want->name;
    }
}

/* Those that an older one wounds, by its names, their places and tokens. */
static size_t list_juniors(struct model *model, const struct model_wait *wait,
                           struct model_grant **out)
{
    uint32_t places[MODEL_MAX + 1];
    size_t found = 0;

    for (size_t n = 0; n < wait->claim.want_count; n++) {
        const struct model_want *want = &wait->claim.wants[n];
        size_t count =
            model_places(model, want->name, wait->claim.tree, NULL, places);
        for (size_t i = 0; i < count; i++)
            add_juniors_at(model, wait, want, places[i], out, &found);
    }
    return found;
}

/* WOUNDWAIT: younger ones lose what an older one waits for. */
static bool wound(struct model *model, const struct model_wait *wait)
{
    uint64_t end_us = wound_end_us(model);
    struct model_grant *juniors[MODEL_MAX];
    size_t count = list_juniors(model, wait, juniors);

    if (count > HOLD_STEP_MAX) {
        model_overloaded(model, "wounds-max", HOLD_STEP_MAX);
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        struct model_grant *grant = juniors[i];
        model_seal(model, grant, end_us, "wounded",
                   model_bytes(&wait->claim.owner));
        model->figures[grant->claim.is_set ? FIGURE_WOUND_SET : FIGURE_WOUND]++;
    }
    return false;
}

bool model_refuse_deadlock(struct model *model, struct model_wait *wait)
{
    switch (wait->claim.policy) {
    case POLICY_DETECT:
        return detect(model, wait);
    case POLICY_WAITDIE:
        return die(model, wait);
    case POLICY_WOUNDWAIT:
        return wound(model, wait);
    default:
        return false;
    }
}
