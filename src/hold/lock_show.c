/* lock_show.c - questions about locks. */
#include "hold/tree.h"

/* The longest list of holders, and of waiters. */
#define SHOW_MAX 100u

static uint32_t count_of(const struct hold_engine *e, const struct part *grant)
{
    return grant->group == 0 ? grant->count : set_at(e, grant->group)->count;
}

static void reply_mode(struct hf_buf *body, const struct part *part)
{
    reply_field_text(body, FIELD_MODE,
                     hf_bytes_text(mode_name((enum lock_mode)part->mode)));
}

static void reply_tree(struct hf_buf *body, const struct part *part)
{
    reply_field_number(body, FIELD_TREE, part->tree);
}

static void reply_session(struct hf_buf *body, const struct hold_engine *e,
                          const struct claim *claim)
{
    uint64_t id = claim->session == 0 ? 0 : session_at(e, claim->session)->id;

    reply_field_number(body, FIELD_SESSION, (int64_t)id);
}

static void reply_note(struct hf_buf *body, const struct hold_engine *e,
                       const struct claim *claim)
{
    struct hf_bytes note = hf_bytes("", 0);

    if (claim->terms != 0)
        note = hf_text_bytes(&e->texts, terms_at(e, claim->terms)->note);
    reply_field_text(body, FIELD_NOTE, note);
}

/* The oldest grant of a lock; `more` fields follow. */
static void reply_lock(struct hf_buf *body, const struct hold_engine *e,
                       const struct lock *lock, uint32_t more)
{
    const struct part *grant = part_at(e, lock->grants.first);

    reply_map(body, 6 + more);
    reply_field_text(body, FIELD_NAME, hf_index_name(&e->locks, lock));
    reply_field_text(body, FIELD_OWNER, part_owner(e, grant));
    reply_field_number(body, FIELD_TOKEN, (int64_t)part_token(e, grant));
    reply_field_number(body, FIELD_EXPIRES_MS, grant_safe_ms(e, grant));
    reply_field_number(body, FIELD_COUNT, count_of(e, grant));
    reply_field_number(body, FIELD_WAITING, lock->waiting);
}

static void show_lock(struct hold_engine *e, const void *record)
{
    const struct lock *lock = record;

    reply_lock(&e->body, e, lock, 1);
    reply_tree(&e->body, part_at(e, lock->grants.first));
}

static bool is_held(const void *record)
{
    return ((const struct lock *)record)->granted > 0;
}

void lock_list(struct hold_engine *e, const struct hold_command *c)
{
    list_page(e, c, FIELD_LOCKS, &e->locks, is_held, show_lock);
}

static void reply_oldest(struct hf_buf *body, const struct hold_engine *e,
                         const struct lock *lock)
{
    const struct part *grant = part_at(e, lock->grants.first);
    const struct claim *claim = part_claim(e, grant);

    reply_lock(body, e, lock, 8);
    reply_field_number(body, FIELD_HELD_MS,
                       passed_ms(e, part_acquired_us(e, grant)));
    reply_mode(body, grant);
    reply_session(body, e, claim);
    reply_field_number(body, FIELD_NAMES,
                       grant->group == 0 ? 0 : set_at(e, grant->group)->names);
    reply_note(body, e, claim);
    reply_tree(body, grant);
}

/* The same of a name that nobody holds. */
static void reply_unheld(struct hf_buf *body, const struct hold_engine *e,
                         const struct lock *lock)
{
    const struct mark *mark = lock->mark == 0 ? NULL : mark_at(e, lock->mark);
    bool done = mark != NULL && mark->done_us > e->now_us;
    uint64_t until_us = done ? mark->done_us : mark ? mark->closed_us : 0;
    const char *mode = done ? "done" : is_closed(e, lock) ? "closed" : "free";

    reply_map(body, 14);
    reply_field_text(body, FIELD_NAME, hf_index_name(&e->locks, lock));
    reply_field_text(body, FIELD_OWNER, hf_bytes("", 0));
    reply_field_number(body, FIELD_TOKEN, 0);
    reply_field_number(body, FIELD_EXPIRES_MS, left_ms(e, until_us));
    reply_field_number(body, FIELD_COUNT, 0);
    reply_field_number(body, FIELD_WAITING, lock->waiting);
    reply_field_number(body, FIELD_HELD_MS, 0);
    reply_field_text(body, FIELD_MODE, hf_bytes_text(mode));
    reply_field_number(body, FIELD_SESSION, 0);
    reply_field_number(body, FIELD_NAMES, 0);
    reply_field_text(body, FIELD_NOTE,
                     done ? hf_text_bytes(&e->texts, mark->result)
                          : hf_bytes("", 0));
    reply_field_number(body, FIELD_TREE, 0);
}

static void reply_holder(struct hf_buf *body, const struct hold_engine *e,
                         const struct part *grant)
{
    const struct claim *claim = part_claim(e, grant);

    reply_map(body, 10);
    reply_field_text(body, FIELD_OWNER, part_owner(e, grant));
    reply_session(body, e, claim);
    reply_field_number(body, FIELD_TOKEN, (int64_t)part_token(e, grant));
    reply_mode(body, grant);
    reply_field_number(body, FIELD_PERMITS, grant->permits);
    reply_field_number(body, FIELD_COUNT, count_of(e, grant));
    reply_field_number(body, FIELD_EXPIRES_MS, grant_safe_ms(e, grant));
    reply_field_number(body, FIELD_HELD_MS,
                       passed_ms(e, part_acquired_us(e, grant)));
    reply_note(body, e, claim);
    reply_tree(body, grant);
}

static void reply_waiter(struct hf_buf *body, const struct hold_engine *e,
                         const struct part *part)
{
    const struct waiter *waiter = waiter_at(e, part->group);

    reply_map(body, 8);
    reply_field_text(body, FIELD_OWNER, part_owner(e, part));
    reply_session(body, e, &waiter->claim);
    reply_mode(body, part);
    reply_field_number(body, FIELD_PERMITS, part->permits);
    reply_field_number(body, FIELD_PRIORITY, part->priority);
    reply_field_number(body, FIELD_WAITED_MS, passed_ms(e, waiter->queued_us));
    reply_note(body, e, &waiter->claim);
    reply_tree(body, part);
}

/* The first of a list of parts, each as `show` writes it. */
static void reply_parts(struct hold_engine *e, enum hold_field field,
                        uint32_t first, uint32_t count,
                        void (*show)(struct hf_buf *body,
                                     const struct hold_engine *e,
                                     const struct part *part))
{
    uint32_t left = count < SHOW_MAX ? count : SHOW_MAX;

    e->out.work += left * SHOW_STEPS;
    reply_field(&e->body, field);
    reply_list(&e->body, left);
    for (uint32_t n = first; left-- > 0; n = part_at(e, n)->place.next)
        show(&e->body, e, part_at(e, n));
}

void lock_info(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->locks, c->name);

    if (number == 0) {
        reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_NAME, c->name);
        return;
    }
    const struct lock *lock = lock_at(e, number);
    if (lock->granted > 0)
        reply_oldest(&e->body, e, lock);
    else
        reply_unheld(&e->body, e, lock);
    reply_parts(e, FIELD_HOLDERS, lock->grants.first, lock->granted,
                reply_holder);
    reply_parts(e, FIELD_WAITERS, lock->queue.first, lock->waiting,
                reply_waiter);
}

/* ---- Who waits for whom. ---- */

/* What is looked at for one part: holders, waits before it, and parts at
 * related names, so many of each. */
#define EDGES_MAX 100u

/* The longest edge, as an entry and as a line: texts, escaped. */
#define EDGE_BYTES (2 * HOLD_OWNER_MAX + HOLD_NAME_MAX + HOLD_NOTE_MAX + 160)
#define DOT_BYTES  (2 * (2 * HOLD_OWNER_MAX + HOLD_NAME_MAX) + 64)
/* A text that is longer takes no more lines. */
#define DOT_FULL (HF_TEXT_MAX - DOT_BYTES - 32)

/* What somebody waits for. */
enum edge { EDGE_GRANT, EDGE_QUEUE, EDGE_CLOSED };

/* One page of edges. */
struct graph {
    struct hold_engine *e;
    void (*show)(struct hold_engine *e, const struct part *part,
                 struct hf_bytes holder, enum edge edge);
    uint32_t most;
    size_t bytes;   /* with more than these it is full */
    uint32_t count; /* of edges in it */
    bool full;
    uint64_t told; /* of the edges of one waiter, in this page or before */
    uint64_t skip; /* so many of them were before */
};

/* Takes an edge to another part; 0: to nobody, for a name is closed. False if
 * the page is full. */
static bool take_edge(struct graph *g, const struct part *part, uint32_t to)
{
    struct hold_engine *e = g->e;

    e->out.work++;
    if (g->told >= g->skip && (g->count == g->most || e->body.len > g->bytes)) {
        g->full = true;
        return false;
    }
    if (g->told++ < g->skip)
        return true;
    if (to == 0)
        g->show(e, part, hf_bytes("", 0), EDGE_CLOSED);
    else
        g->show(e, part, part_owner(e, part_at(e, to)),
                part_at(e, to)->waits ? EDGE_QUEUE : EDGE_GRANT);
    g->count++;
    return true;
}

/* To all who hold the name, if that conflicts. */
static bool take_grants(struct graph *g, const struct part *part,
                        const struct wanted *wanted)
{
    const struct hold_engine *e = g->e;
    const struct lock *lock = lock_at(e, part->lock);
    uint32_t n = lock->grants.first;

    if (n == 0 || !conflicts(lock, wanted, part_at(e, n)))
        return true;
    for (uint32_t i = 0; n != 0 && i < EDGES_MAX; i++) {
        if (!take_edge(g, part, n))
            return false;
        n = part_at(e, n)->place.next;
    }
    return true;
}

/* To the waits before it, back to the nearest that is not shared, which waits
 * for all before it. If that one is too far, to the first of its kind. */
static bool take_queue(struct graph *g, const struct part *part,
                       const struct wanted *wanted)
{
    const struct hold_engine *e = g->e;
    const struct lock *lock = lock_at(e, part->lock);
    uint32_t n = part->place.prev;

    for (uint32_t i = 0; n != 0 && i < EDGES_MAX; i++) {
        bool shared = part_at(e, n)->mode == MODE_SHARED;
        g->e->out.work++;
        if (!(shared && wanted->mode == MODE_SHARED) && !take_edge(g, part, n))
            return false;
        n = shared ? part_at(e, n)->place.prev : 0;
    }
    bool more = n != 0 && lock->writer != 0 &&
                is_before(e, part_at(e, lock->writer), wanted);
    return !more || take_edge(g, part, lock->writer);
}

/* To those at related names. */
static bool take_relatives(struct graph *g, const struct part *part,
                           const struct wanted *wanted)
{
    const struct hold_engine *e = g->e;
    struct relatives r = relatives_of(e, lock_name(e, part->lock), wanted);
    uint32_t left = EDGES_MAX;
    bool room = true;

    while (room && left > 0 && relatives_next(&r)) {
        if (relative_is_closed(&r)) {
            room = take_edge(g, part, 0);
            left--;
        }
        for (uint32_t n = relative_grant(&r); n != 0 && room && left > 0;
             n = relative_next_grant(&r, n), left--)
            room = take_edge(g, part, n);
        for (uint32_t n = relative_wait(&r); n != 0 && room && left > 0;
             n = relative_next_wait(&r, n), left--)
            room = take_edge(g, part, n);
    }
    g->e->out.work += relatives_looked(&r);
    return room;
}

/* All that a part waits for. A name of a set that waits for another one has
 * none. */
static bool take_edges(struct graph *g, const struct part *part)
{
    const struct hold_engine *e = g->e;
    struct wanted wanted = waiter_wants(e, waiter_at(e, part->group), part);

    if (!take_grants(g, part, &wanted) ||
        (is_closed(e, lock_at(e, part->lock)) && !take_edge(g, part, 0)) ||
        !take_queue(g, part, &wanted))
        return false;
    return !has_relatives(e, &wanted) || take_relatives(g, part, &wanted);
}

/* A cursor is the waiter to go on with, and above it how many of its edges were
 * told. */
#define CURSOR_SHIFT 32

/* Shows the edges of all who wait, from the cursor on. Returns the next cursor;
 * 0: that was all. */
static uint64_t show_edges(struct graph *g, uint64_t cursor)
{
    struct hold_engine *e = g->e;
    uint32_t top = hf_index_top(&e->waiters);
    uint32_t number = (uint32_t)cursor;

    g->skip = cursor >> CURSOR_SHIFT;
    for (number += number == 0; number < top && e->out.work < HOLD_STEPS_MAX;
         number++) {
        const struct waiter *waiter = hf_index_used(&e->waiters, number);
        uint32_t n = waiter == NULL ? 0 : waiter->first;
        e->out.work++;
        g->told = 0;
        while (n != 0 && take_edges(g, part_at(e, n)))
            n = part_at(e, n)->more;
        if (g->full)
            return number | g->told << CURSOR_SHIFT;
        g->skip = 0;
    }
    return number < top ? number : 0;
}

static void show_edge(struct hold_engine *e, const struct part *part,
                      struct hf_bytes holder, enum edge edge)
{
    static const char *const names[] = {"grant", "queue", "closed"};
    const struct waiter *waiter = waiter_at(e, part->group);
    struct hf_buf *body = &e->body;

    reply_map(body, 9);
    reply_field_text(body, FIELD_OWNER, part_owner(e, part));
    reply_session(body, e, &waiter->claim);
    reply_field_text(body, FIELD_NAME, lock_name(e, part->lock));
    reply_mode(body, part);
    reply_field_number(body, FIELD_WAITED_MS, passed_ms(e, waiter->queued_us));
    reply_note(body, e, &waiter->claim);
    reply_field_text(body, FIELD_BY, hf_bytes_text(names[edge]));
    reply_field_text(body, FIELD_HOLDER, holder);
    reply_tree(body, part);
}

static void put(struct hold_engine *e, struct hf_bytes text)
{
    memcpy(e->body.data + e->body.len, text.data, text.len);
    e->body.len += text.len;
}

/* In quotes, as Graphviz has it. */
static void put_quoted(struct hold_engine *e, struct hf_bytes text)
{
    put(e, hf_bytes("\"", 1));
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '"' || c == '\\')
            put(e, hf_bytes("\\", 1));
        bool plain = (unsigned char)c >= ' ' && c != 127;
        put(e, plain ? hf_bytes(&c, 1) : hf_bytes("?", 1));
    }
    put(e, hf_bytes("\"", 1));
}

static void show_dot(struct hold_engine *e, const struct part *part,
                     struct hf_bytes holder, enum edge edge)
{
    static const char *const styles[] = {"", ", style=dashed",
                                         ", style=dotted"};

    put(e, hf_bytes_text("  "));
    put_quoted(e, part_owner(e, part));
    put(e, hf_bytes_text(" -> "));
    put_quoted(e, edge == EDGE_CLOSED ? hf_bytes_text("(closed)") : holder);
    put(e, hf_bytes_text(" [label="));
    put_quoted(e, lock_name(e, part->lock));
    put(e, hf_bytes_text(styles[edge]));
    put(e, hf_bytes_text("];\n"));
}

void lock_waitgraph(struct hold_engine *e, const struct hold_command *c)
{
    uint64_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    bool dot = (c->flags & HOLD_DOT) != 0;
    struct graph g = {.e = e,
                      .show = show_edge,
                      .most = (uint32_t)most,
                      .bytes = e->body.cap - 2 * EDGE_BYTES};

    if (dot) {
        reply_text(&e->body, hf_bytes("", 0));
        size_t start = e->body.len;
        put(e, hf_bytes_text("digraph waits {\n"));
        g.show = show_dot;
        g.most = HOLD_LIST_MAX;
        g.bytes = DOT_FULL;
        if (show_edges(&g, c->cursor) != 0)
            put(e, hf_bytes_text("  /* and more */\n"));
        put(e, hf_bytes_text("}\n"));
        hf_put_u16(e->body.data + start - 2, (uint16_t)(e->body.len - start));
        return;
    }
    reply_map(&e->body, 2);
    reply_field(&e->body, FIELD_EDGES);
    reply_list(&e->body, 0);
    size_t count_at = e->body.len - 4;
    uint64_t cursor = show_edges(&g, c->cursor);
    hf_put_u32(e->body.data + count_at, g.count);
    reply_field_number(&e->body, FIELD_CURSOR, (int64_t)cursor);
}

void lock_held(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t lock = hf_index_find(&e->locks, c->name);

    e->out.work += lock == 0 ? 0 : lock_at(e, lock)->granted;
    if (grant_find(e, lock, c->token) == 0)
        refuse_token(e, c, HOLD_LOST);
}

uint64_t hold_token_of(const struct hold_engine *e, struct hf_bytes name,
                       uint64_t session, struct hf_bytes owner)
{
    uint32_t lock = hf_index_find(&e->locks, name);
    uint32_t number = session == 0 ? 0 : session_find(e, session);

    if (lock == 0 || (number == 0) != (session == 0))
        return 0;
    uint32_t grant = grant_of(e, lock_at(e, lock), number, owner);
    return grant == 0 ? 0 : part_token(e, part_at(e, grant));
}

void lock_bound_safe(struct hold_engine *e, const struct hold_command *c)
{
    struct hf_bytes body = hf_buf_bytes(&e->body);
    bool renews = c->kind == HOLD_RENEW || c->kind == HOLD_RENEWSET;
    uint64_t token =
        renews ? c->token : (uint64_t)reply_get_number(body, FIELD_TOKEN);
    uint32_t set = set_find(e, token);
    uint32_t number =
        set != 0 ? set_at(e, set)->first
                 : grant_find(e, hf_index_find(&e->locks, c->name), token);
    int64_t safe_ms = 0;

    if (number != 0 && !part_is_over(e, part_at(e, number)))
        safe_ms = grant_safe_ms(e, part_at(e, number));
    if (safe_ms < reply_get_number(body, FIELD_SAFE_MS))
        reply_set_number(&e->body, FIELD_SAFE_MS, safe_ms);
}

/* The grant that the holder has on that lock at that time; 0: none. */
static uint32_t own_at(const struct hold_engine *e, uint32_t lock,
                       uint32_t session, const struct hold_command *c)
{
    uint32_t number =
        lock == 0 ? 0 : grant_of(e, lock_at(e, lock), session, c->owner);

    if (number == 0 || part_expires_us(e, part_at(e, number)) <= c->now_us ||
        (session != 0 && session_at(e, session)->expires_us <= c->now_us))
        return 0;
    return number;
}

uint64_t hold_reenters(const struct hold_engine *e,
                       const struct hold_command *c)
{
    uint32_t session = c->session == 0 ? 0 : session_find(e, c->session);
    uint32_t names = c->item_count > 0 ? c->item_count : 1;
    uint32_t found = 0;

    for (uint32_t i = 0; i < names && found == 0; i++) {
        uint32_t lock = hf_index_find(
            &e->locks, c->item_count > 0 ? c->items[i].sku : c->name);
        found = own_at(e, lock, session, c);
    }
    return found == 0 ? 0 : part_token(e, part_at(e, found));
}

uint64_t hold_oldest_token(const struct hold_engine *e, struct hf_bytes name)
{
    uint32_t lock = hf_index_find(&e->locks, name);

    if (lock == 0 || lock_at(e, lock)->granted == 0)
        return 0;
    return part_token(e, part_at(e, lock_at(e, lock)->grants.first));
}

/* Names below that one, if it has a TREE or will have one. */
static uint64_t weight_at(const struct hold_engine *e, struct hf_bytes name,
                          bool asked)
{
    uint32_t number = asked ? 0 : hf_index_find(&e->locks, name);

    return asked || (number != 0 && tree_of(e, lock_at(e, number)) != NULL)
               ? path_count(e, name, e->bounds.tree_names_max)
               : 0;
}

uint64_t hold_weight(const struct hold_engine *e, const struct hold_command *c)
{
    bool asked = (c->flags & HOLD_TREE) != 0;
    const struct hold_operation *operation = &hold_operations[c->kind];
    bool takes = (operation->options & HOLD_BIT(ARG_TREE)) != 0;
    uint32_t set =
        operation->gives_lock && operation->of_set ? set_find(e, c->token) : 0;
    uint64_t weight = 0;

    if (asked ? !takes : e->trees.used == 0 || !operation->gives_lock)
        return 0;
    for (uint32_t i = 0; i < c->item_count; i++)
        weight += weight_at(e, c->items[i].sku, asked);
    for (uint32_t n = set == 0 ? 0 : set_at(e, set)->first; n != 0;
         n = part_at(e, n)->more)
        weight += weight_at(e, lock_name(e, part_at(e, n)->lock), false);
    return c->name.len == 0 ? weight : weight_at(e, c->name, asked);
}
