/* locks_show.c - what a lock manager tells: answers, figures, who waits for
 * whom.
 *
 * The engine's answers are trees of bytes (hold/reply.h), valid until its next
 * command. Texts in them have no final zero.
 */
#include <assert.h>

#include "base/memory.h"
#include "locks/locks_state.h"

/* ---- Reading. ---- */

/* One who holds or waits, in an answer of the engine. */
struct entry {
    struct hf_bytes owner;
    struct hf_bytes name;
    struct hf_bytes mode;
    struct hf_bytes note;
    struct hf_bytes by;
    struct hf_bytes holder;
    uint64_t session;
    uint64_t token;
    uint64_t permits;
    uint64_t count;
    uint64_t since_ms;
};

static struct hf_bytes *text_of(struct entry *entry, enum hold_field field)
{
    switch (field) {
    case FIELD_OWNER:
        return &entry->owner;
    case FIELD_NAME:
        return &entry->name;
    case FIELD_MODE:
        return &entry->mode;
    case FIELD_NOTE:
        return &entry->note;
    case FIELD_BY:
        return &entry->by;
    case FIELD_HOLDER:
        return &entry->holder;
    default:
        return NULL;
    }
}

static uint64_t *number_of(struct entry *entry, enum hold_field field)
{
    switch (field) {
    case FIELD_SESSION:
        return &entry->session;
    case FIELD_TOKEN:
        return &entry->token;
    case FIELD_PERMITS:
        return &entry->permits;
    case FIELD_COUNT:
        return &entry->count;
    case FIELD_SINCE_MS:
    case FIELD_HELD_MS:
    case FIELD_WAITED_MS:
        return &entry->since_ms;
    default:
        return NULL;
    }
}

/* The entry at `*at`, which moves behind it: a map of numbers and texts. */
static struct entry next_entry(struct hf_bytes body, size_t *at)
{
    struct entry entry = {.owner = {"", 0}};
    struct reply_node map = reply_next(body, at);

    assert(map.kind == REPLY_MAP);
    for (uint32_t i = 0; i < map.count; i++) {
        enum hold_field field = reply_next_field(body, at);
        struct reply_node node = reply_next(body, at);
        struct hf_bytes *text = text_of(&entry, field);
        uint64_t *number = number_of(&entry, field);
        if (text != NULL && node.kind == REPLY_TEXT)
            *text = node.text;
        if (number != NULL && node.kind == REPLY_NUMBER)
            *number = (uint64_t)node.number;
    }
    return entry;
}

/* Skips a value. */
static void skip(struct hf_bytes body, size_t *at)
{
    struct reply_node node = reply_next(body, at);
    bool is_map = node.kind == REPLY_MAP;

    for (uint32_t i = 0; (is_map || node.kind == REPLY_LIST) && i < node.count;
         i++) {
        if (is_map)
            (void)reply_next_field(body, at);
        skip(body, at);
    }
}

/* How many entries a map has in the list under `field`, and where they begin.
 */
static uint32_t find_list(struct hf_bytes body, enum hold_field field,
                          size_t *at)
{
    *at = 0;
    struct reply_node map = reply_next(body, at);
    for (uint32_t i = 0; i < map.count; i++) {
        if (reply_next_field(body, at) == field) {
            struct reply_node list = reply_next(body, at);
            assert(list.kind == REPLY_LIST);
            return list.count;
        }
        skip(body, at);
    }
    return 0;
}

static enum hf_locks_mode mode_of(struct hf_bytes text)
{
    assert(text.len > 0);
    return text.data[0] == 'e'   ? HF_LOCKS_EXCLUSIVE
           : text.data[0] == 's' ? HF_LOCKS_SHARED
                                 : HF_LOCKS_COUNTING;
}

/* ---- Answers. ---- */

static const char *copy_text(char **place, struct hf_bytes text)
{
    char *copy = *place;

    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *place += text.len + 1;
    return copy;
}

/* Without memory the links are left out. */
static void read_cycle(struct hf_bytes body, struct hf_locks_answer *answer)
{
    size_t at;
    uint32_t count = find_list(body, FIELD_CYCLE, &at);

    answer->length = (uint32_t)reply_get_number(body, FIELD_LENGTH);
    /* A text has three bytes before it there, and one behind it here. */
    answer->links = hf_alloc(count * sizeof *answer->links + body.len);
    if (answer->links == NULL)
        return;
    char *place = (char *)(answer->links + count);
    answer->link_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct entry entry = next_entry(body, &at);
        answer->links[i] = (struct hf_locks_link){
            .owner = copy_text(&place, entry.owner),
            .name = copy_text(&place, entry.name),
            .mode = mode_of(entry.mode),
            .session = entry.session,
            .since_ns = entry.since_ms * NS_PER_MS,
            .note = copy_text(&place, entry.note),
        };
    }
}

void hf_locks_answer_free(struct hf_locks_answer *answer)
{
    if (answer == NULL)
        return;
    hf_free(answer->links);
    answer->links = NULL;
    answer->link_count = 0;
}

static void read_grant(struct hf_bytes body, struct hf_locks_answer *answer)
{
    size_t at = 0;

    if (body.len == 0)
        return;
    struct reply_node map = reply_next(body, &at);
    for (uint32_t i = 0; i < map.count; i++) {
        enum hold_field field = reply_next_field(body, &at);
        uint64_t number = (uint64_t)reply_next(body, &at).number;
        if (field == FIELD_TOKEN)
            answer->token = answer->fence = number;
        else if (field == FIELD_COUNT)
            answer->count = (uint32_t)number;
        else if (field == FIELD_FENCE)
            answer->fence = number;
    }
}

enum hf_status hf_locks_read_answer(enum hold_code code, struct hf_bytes body,
                                    struct hf_locks_answer *answer)
{
    switch (code) {
    case HOLD_OK:
        read_grant(body, answer);
        return HF_OK;
    case HOLD_BUSY:
    case HOLD_TIMED_OUT:
        answer->waiting = (uint32_t)reply_get_number(body, FIELD_WAITING);
        answer->position = (uint32_t)reply_get_number(body, FIELD_POSITION);
        return HF_TIMEOUT;
    case HOLD_DEADLOCK:
        read_cycle(body, answer);
        return HF_DEADLOCK;
    case HOLD_NOTHELD:
    case HOLD_LOST:
        return HF_NOTFOUND;
    case HOLD_STATE:
        return HF_EXISTS;
    default:
        assert(code == HOLD_OVERLOADED);
        return HF_FULL;
    }
}

/* ---- Figures. ---- */

static void add(struct hf_locks_stats *stats, enum hf_status status,
                bool waited, uint64_t waited_ns)
{
    stats->acquired += status == HF_OK;
    stats->contended += status == HF_OK && waited;
    stats->timeouts += status == HF_TIMEOUT;
    stats->deadlocks += status == HF_DEADLOCK;
    stats->waited_ns += waited_ns;
    if (waited_ns > stats->waited_max_ns)
        stats->waited_max_ns = waited_ns;
}

void hf_locks_count(struct hf_locks *locks, const struct locks_wanted *wanted,
                    enum hf_status status, bool waited, uint64_t waited_ns)
{
    add(&locks->all, status, waited, waited_ns);
    for (size_t i = 0; i < wanted->count; i++) {
        struct hf_bytes name = hf_bytes_text(wanted->items[i].name);
        uint32_t hash = hf_index_hash(&locks->names, name);
        uint32_t number = hf_index_find_hashed(&locks->names, hash, name);
        if (number == 0 && hf_index_count(&locks->names) < locks->counted_names)
            number = hf_index_add_hashed(&locks->names, hash, name);
        if (number != 0)
            add(&((struct locks_figures *)hf_index_at(&locks->names, number))
                     ->stats,
                status, waited, waited_ns);
    }
}

/* What the engine tells of a name; NULL: it is not in use. */
static const struct hold_out *ask(struct hf_locks *locks, struct hf_bytes name)
{
    struct hold_command *c = hf_locks_command(locks, HOLD_LOCK_INFO);

    c->name = name;
    const struct hold_out *out = hold_ask(locks->engine, c);
    assert(out != NULL); /* time has passed */
    return out->code == HOLD_OK ? out : NULL;
}

static enum hf_status stats_of(struct hf_locks *locks, struct hf_bytes name,
                               struct hf_locks_stats *stats)
{
    uint32_t number = hf_index_find(&locks->names, name);
    size_t at;

    if (number == 0)
        return HF_NOTFOUND;
    *stats =
        ((struct locks_figures *)hf_index_at(&locks->names, number))->stats;
    stats->waited_p99_ns = HF_INSPECT_NONE;
    const struct hold_out *out = ask(locks, name);
    if (out != NULL) {
        stats->held = find_list(out->body, FIELD_HOLDERS, &at);
        stats->waiting = (uint32_t)reply_get_number(out->body, FIELD_WAITING);
    }
    return HF_OK;
}

enum hf_status hf_locks_stats(struct hf_locks *locks, const char *name,
                              struct hf_locks_stats *out)
{
    struct hold_counts counts;
    enum hf_status status = HF_OK;

    if (locks == NULL || out == NULL)
        return HF_INVALID;
    hf_locks_lock(locks);
    hf_locks_pass_time(locks);
    if (name != NULL) {
        status = stats_of(locks, hf_bytes_text(name), out);
    } else {
        hold_count(locks->engine, &counts);
        *out = locks->all;
        out->held = (uint32_t)counts.locks;
        out->waiting = (uint32_t)counts.waiters;
        out->waited_p99_ns = hf_waits_percentile_ns(&locks->waits, 99);
    }
    hf_locks_unlock(locks);
    return status;
}

/* ---- Holders. ---- */

static void visit_list(struct hf_bytes body, enum hold_field field,
                       void (*visit)(void *context,
                                     const struct hf_locks_holder *holder),
                       void *context)
{
    size_t at;
    uint32_t count = find_list(body, field, &at);

    for (uint32_t i = 0; i < count; i++) {
        char texts[HF_LOCKS_OWNER_MAX + HF_LOCKS_NOTE_MAX + 2];
        char *place = texts;
        struct entry entry = next_entry(body, &at);
        struct hf_locks_holder holder = {
            .owner = copy_text(&place, entry.owner),
            .session = entry.session,
            .token = entry.token,
            .mode = mode_of(entry.mode),
            .permits = (uint32_t)entry.permits,
            .count = (uint32_t)entry.count,
            .since_ns = entry.since_ms * NS_PER_MS,
            .note = copy_text(&place, entry.note),
        };
        visit(context, &holder);
    }
}

enum hf_status hf_locks_holders(
    struct hf_locks *locks, const char *name,
    void (*visit)(void *context, const struct hf_locks_holder *holder),
    void *context)
{
    struct hf_buf body = {NULL, 0, 0};
    enum hf_status status = HF_NOTFOUND;

    if (locks == NULL || name == NULL || visit == NULL)
        return HF_INVALID;
    hf_locks_lock(locks);
    hf_locks_pass_time(locks);
    const struct hold_out *out = ask(locks, hf_bytes_text(name));
    if (out != NULL)
        status = hf_buf_append(&body, out->body.data, out->body.len);
    hf_locks_unlock(locks);
    if (status == HF_OK) {
        visit_list(hf_buf_bytes(&body), FIELD_HOLDERS, visit, context);
        visit_list(hf_buf_bytes(&body), FIELD_WAITERS, visit, context);
    }
    hf_buf_destroy(&body);
    return status;
}

/* ---- The graph. ---- */

/* One page of it, from the cursor on; moves the cursor. */
static enum hf_status put_page(struct hf_locks *locks, uint64_t *cursor,
                               struct hf_buf *text)
{
    struct hold_command *c = hf_locks_command(locks, HOLD_WAITGRAPH);
    enum hf_status status = HF_OK;
    size_t at;

    c->cursor = *cursor;
    const struct hold_out *out = hold_ask(locks->engine, c);
    assert(out != NULL); /* time has passed */
    uint32_t count = find_list(out->body, FIELD_EDGES, &at);
    for (uint32_t i = 0; i < count && status == HF_OK; i++) {
        struct entry who = next_entry(out->body, &at);
        bool held = who.by.data[0] == 'g';
        status = hf_buf_format(
            text, "%.*s -> %.*s: %.*s, %.*s, %llu ms, %s\n", HF_SHOW(who.owner),
            HF_SHOW(who.holder), HF_SHOW(who.name), HF_SHOW(who.mode),
            (unsigned long long)who.since_ms, held ? "held" : "before it");
    }
    (void)reply_next_field(out->body, &at);
    *cursor = (uint64_t)reply_next(out->body, &at).number;
    return status;
}

static enum hf_status put_dot(struct hf_locks *locks, struct hf_buf *text)
{
    struct hold_command *c = hf_locks_command(locks, HOLD_WAITGRAPH);
    size_t at = 0;

    c->flags = HOLD_DOT;
    const struct hold_out *out = hold_ask(locks->engine, c);
    assert(out != NULL); /* time has passed */
    struct hf_bytes all = reply_next(out->body, &at).text;
    return hf_buf_append(text, all.data, all.len);
}

size_t hf_locks_graph(struct hf_locks *locks, enum hf_locks_form form,
                      char *out, size_t cap)
{
    struct hf_buf text = {NULL, 0, 0};
    enum hf_status status = HF_OK;
    uint64_t cursor = 0;

    if (locks == NULL || (unsigned)form > HF_LOCKS_DOT)
        return hf_buf_hand_out(&text, out, cap);
    hf_locks_lock(locks);
    hf_locks_pass_time(locks);
    if (form == HF_LOCKS_DOT) {
        status = put_dot(locks, &text);
    } else {
        do
            status = put_page(locks, &cursor, &text);
        while (cursor != 0 && status == HF_OK);
    }
    hf_locks_unlock(locks);
    if (status != HF_OK)
        text.len = 0;
    return hf_buf_hand_out(&text, out, cap);
}
