/* simulate_graph.c - is WAITGRAPH what the model says?
 *
 * The edges are derived from the model's arrays and compared as a set, however
 * they are spread over pages.
 */
#include "sim/engine/simulate_parts.h"

/* Of more than that the engine shows only some. */
#define SHOWN_MAX 100u
/* So many waits are looked at, for the sake of time. */
#define WAITS_MAX 300u

/* Entries as the answer has them: how many, and the sum of their hashes. */
struct edges {
    size_t count;
    uint64_t sum;
    bool some; /* there are more than are shown */
};

static void add_entry(struct edges *edges, const char *entry, size_t len)
{
    edges->count++;
    edges->sum += model_hash(0, entry, len);
}

/* One name of a wait, looked at from one place. */
struct side {
    const struct model *model;
    const struct model_wait *wait;
    const struct model_want *want;
    uint32_t place;
    uint64_t now_us;
};

static void add(struct edges *edges, const struct side *side, const char *by,
                struct hf_bytes holder)
{
    static char space[4096];
    struct hf_buf out = {space, 0, sizeof space};
    const struct model_claim *claim = &side->wait->claim;
    const char *mode = model_mode_name(side->want->mode);
    uint64_t waited_us = side->now_us - side->wait->queued_us;

    reply_map(&out, 9);
    reply_field_text(&out, FIELD_OWNER, model_bytes(&claim->owner));
    reply_field_number(&out, FIELD_SESSION, (int64_t)claim->session);
    reply_field_text(&out, FIELD_NAME,
                     model_name_bytes(side->model, side->want->name));
    reply_field_text(&out, FIELD_MODE, hf_bytes_text(mode));
    reply_field_number(&out, FIELD_WAITED_MS, (int64_t)(waited_us / 1000));
    reply_field_text(&out, FIELD_NOTE, model_bytes(&claim->note));
    reply_field_text(&out, FIELD_BY, hf_bytes_text(by));
    reply_field_text(&out, FIELD_HOLDER, holder);
    reply_field_number(&out, FIELD_TREE, claim->tree);
    add_entry(edges, out.data, out.len);
}

/* To those who hold the place against it. */
static void add_grants(struct edges *edges, const struct side *side)
{
    const struct model *model = side->model;
    uint64_t used = model_used_permits(model, side->want->name);

    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_claim *held = &model->grants[i].claim;
        if (model_conflicts(model, &side->wait->claim, side->want, side->place,
                            &model->grants[i], used))
            add(edges, side, "grant", model_bytes(&held->owner));
    }
}

/* To those before it; in its own queue, back to the nearest that is not shared.
 */
static void add_waits(struct edges *edges, const struct side *side)
{
    const struct model_wait *queue[MODEL_MAX];
    size_t count = model_queue(side->model, side->place, queue);

    edges->some = edges->some || count > SHOWN_MAX;
    while (count-- > 0) {
        const struct model_wait *other = queue[count];
        if (!model_is_before(other, side->wait))
            continue;
        if (model_stops(side->model, other, side->wait, side->want,
                        side->place))
            add(edges, side, "queue", model_bytes(&other->claim.owner));
        if (side->place == side->want->name &&
            model_want_of(&other->claim, side->place)->mode != MODEL_SHARED)
            break;
    }
}

static void add_want(struct edges *edges, struct side *side)
{
    uint32_t places[MODEL_MAX + 1];
    size_t count = model_places(side->model, side->want->name,
                                side->wait->claim.tree, NULL, places);
    size_t before = edges->count;

    for (size_t i = 0; i < count; i++) {
        side->place = places[i];
        add_grants(edges, side);
        if (model_closed_until(side->model, side->want->name, side->place) >
            side->now_us)
            add(edges, side, "closed", hf_bytes("", 0));
        add_waits(edges, side);
    }
    edges->some = edges->some || edges->count - before > SHOWN_MAX;
}

static struct edges edges_of(const struct model *model, uint64_t now_us)
{
    struct edges edges = {0, 0, false};
    struct side side = {.model = model, .now_us = now_us};

    for (size_t i = 0; i < model->wait_count && !edges.some; i++) {
        side.wait = &model->waits[i];
        for (size_t n = 0; n < side.wait->claim.want_count; n++) {
            side.want = &side.wait->claim.wants[n];
            add_want(&edges, &side);
        }
    }
    return edges;
}

/* Adds a page; returns the next cursor. */
static uint64_t read_page(struct hf_bytes body, struct edges *edges)
{
    size_t at = 0;

    reply_next(body, &at);
    reply_next_field(body, &at);
    uint32_t count = reply_next(body, &at).count;
    for (; count > 0; count--) {
        size_t start = at;
        reply_skip(body, &at);
        add_entry(edges, body.data + start, at - start);
    }
    reply_next_field(body, &at);
    return (uint64_t)reply_next(body, &at).number;
}

void sim_compare_graph(struct sim *sim, struct hold_command *command)
{
    const struct model *model = sim->model;
    uint64_t now_us =
        command->now_us > model->now_us ? command->now_us : model->now_us;
    struct edges found = {0, 0, false};
    bool behind = model_is_behind(model, now_us);

    command->cursor = 0;
    command->flags = 0;
    do {
        const struct hold_out *out = hold_ask(sim->engine, command);
        if (behind != (out == NULL))
            sim_fail(sim, "waitgraph", "found: it was %s",
                     out == NULL ? "not told" : "told too early");
        if (out == NULL || behind)
            return;
        command->cursor = read_page(out->body, &found);
    } while (command->cursor != 0);
    if (model->wait_count > WAITS_MAX)
        return;
    struct edges expected = edges_of(model, now_us);
    if (expected.some)
        return;
    sim->edges += found.count;
    if (expected.count != found.count || expected.sum != found.sum)
        sim_fail(sim, "waitgraph", "expected: %zu edges\nfound:    %zu, %s",
                 expected.count, found.count,
                 expected.count == found.count ? "not the same"
                                               : "not so many");
}
