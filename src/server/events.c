/* events.c - EVENTS, and where events go. */
#include "server/events.h"

#include <assert.h>

#include "base/memory.h"
#include "hold/subject.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/history.h"
#include "server/machine.h"
#include "server/server.h"

#define COUNT_USUAL 100u
#define COUNT_MAX   1000u
#define WAIT_MAX_MS 3600000u
#define MATCH_MAX   256u
/* Beyond so many bytes of events a page has enough. */
#define PAGE_BYTES (256u * 1024)
/* Steps for one page: one for each event, and what its comparison takes. */
#define PAGE_STEPS 20000u
/* Steps for those who wait, before clients have their turn again. */
#define SERVE_STEPS 50000u

/* What is asked. */
struct ask {
    uint64_t after;
    uint64_t count;
    uint64_t wait_ms;
    struct hf_bytes match; /* empty: all */
    uint64_t gap;          /* up to there something is missing */
};

struct event_wait {
    struct wait base;
    struct event_wait *prev; /* of those who wait */
    struct event_wait *next;
    struct feed_read *read; /* not NULL: it is being read for it */
    struct ask ask;
    char match[MATCH_MAX];
};

#define AT(field) .place = offsetof(struct ask, field)
static const struct hold_arg options[] = {
    {"FROM", "number", .type = TYPE_NUMBER, AT(after), .max = INT64_MAX},
    {"COUNT", "n", .type = TYPE_NUMBER, AT(count), .min = 1, .max = COUNT_MAX},
    {"WAIT", "ms", .type = TYPE_NUMBER, AT(wait_ms), .max = WAIT_MAX_MS},
    {"MATCH", "pattern", .type = TYPE_TEXT, AT(match), .max = MATCH_MAX},
};
static const struct hold_arg words[] = {{.name = NULL}};
static struct vocabulary vocabulary = {
    .words = words, .options = options, .option_count = 4, .last = 3};
const struct shape events_read_shape = {&vocabulary, {0}, 15, 1};

/* ---- One event. ---- */

static const char *mode_of(const struct hold_event *event)
{
    static const char *const modes[] = {"exclusive", "shared", "counting"};

    return modes[event->mode];
}

static void put_items(struct reply *reply, struct hf_bytes items)
{
    struct hold_item item;
    size_t count = 0;

    for (size_t at = 0; hold_next_item(items, &at, &item);)
        count++;
    reply_put_key(reply, "items");
    reply_put_list(reply, count);
    for (size_t at = 0; hold_next_item(items, &at, &item);) {
        reply_put_map(reply, 2);
        reply_put_key(reply, "sku");
        reply_put_bytes(reply, item.sku);
        reply_pair_number(reply, "quantity", (int64_t)item.quantity);
    }
}

static void put_text(struct reply *reply, const char *name,
                     struct hf_bytes text)
{
    reply_put_key(reply, name);
    reply_put_bytes(reply, text);
}

/* What the numbers of an event about a product are called, or NULL. */
struct numbers {
    const char *total;
    const char *available;
    const char *token;
};

static struct numbers numbers_of(const struct hold_event *event)
{
    switch (event->kind) {
    case EVENT_STOCK_ATTRIBUTES:
    case EVENT_STOCK_DELETED:
        return (struct numbers){NULL, NULL, NULL};
    case EVENT_STOCK_LIMIT:
        return (struct numbers){"total", "available", "limit"};
    case EVENT_ARRIVAL_EXPECTED:
    case EVENT_ARRIVAL_LATE:
        return (struct numbers){"announced", NULL, "expected_ms"};
    case EVENT_ARRIVAL_SHORT:
        return (struct numbers){"announced", "arrived", "uncovered"};
    default:
        if (hold_event_subject(event->kind) == SUBJECT_PRODUCT)
            return (struct numbers){"total", "available", NULL};
        if (hold_event_subject(event->kind) == SUBJECT_LOCK ||
            event->kind == EVENT_FENCE_RAISED)
            return (struct numbers){NULL, NULL, "token"};
        return (struct numbers){NULL, NULL, NULL};
    }
}

static void put_number(struct reply *reply, const char *name, uint64_t number)
{
    if (name != NULL)
        reply_pair_number(reply, name, (int64_t)number);
}

void event_put(struct reply *reply, const struct hold_event *event,
               uint64_t now_us)
{
    enum hold_subject subject = hold_event_subject(event->kind);
    struct numbers numbers = numbers_of(event);
    bool lock = subject == SUBJECT_LOCK;
    bool reservation = subject == SUBJECT_RESERVATION;
    bool attribute = event->kind == EVENT_STOCK_ATTRIBUTES;
    bool extra = subject == SUBJECT_PRODUCT && event->owner.len > 0;
    bool aged = event->age_us != HOLD_NO_AGE;
    bool note = event->note.len > 0;

    reply_put_map(reply, 3u + (subject != SUBJECT_ALL) + 2u * lock +
                             2u * reservation + (numbers.total != NULL) +
                             (numbers.available != NULL) +
                             (numbers.token != NULL) + aged + note + extra +
                             (event->group.len > 0));
    reply_pair_number(reply, "seq", (int64_t)event->seq);
    reply_pair_text(reply, "kind", hold_event_name(event->kind));
    reply_pair_number(reply, "at_ms", (int64_t)(now_us / 1000));
    if (subject != SUBJECT_ALL)
        put_text(reply, hold_subjects[subject].key, event->name);
    if (lock || reservation)
        put_text(reply, "owner", event->owner);
    put_number(reply, numbers.token, event->token);
    if (lock)
        reply_pair_text(reply, "mode", mode_of(event));
    if (reservation)
        put_items(reply, event->items);
    put_number(reply, numbers.total, event->total);
    put_number(reply, numbers.available, event->available);
    if (aged)
        reply_pair_number(
            reply, event->kind == EVENT_OFFERED ? "waited_ms" : "held_ms",
            (int64_t)(event->age_us / 1000));
    if (event->group.len > 0)
        put_text(reply, "group", event->group);
    if (note)
        put_text(reply, attribute ? "attribute" : hold_subjects[subject].note,
                 event->note);
    if (extra)
        put_text(reply, attribute ? "value" : "ref", event->owner);
}

/* ---- A page of them. ---- */

/* What of a page is wanted. */
struct chosen {
    size_t from; /* the first one, in the events of the page */
    size_t count;
    uint64_t next; /* the number to go on from */
    bool early;    /* the page has more, which was not looked at */
    uint64_t steps;
};

/* The next event of the page that is wanted; false: that was all, or it takes
 * too many steps. */
static bool next_wanted(const struct feed_page *page, const struct ask *ask,
                        size_t *at, struct hold_event *event, uint64_t *now_us,
                        uint64_t *steps)
{
    while (*at < page->events.len && *steps < PAGE_STEPS) {
        size_t len = event_decode(
            hf_bytes(page->events.data + *at, page->events.len - *at), event,
            now_us);
        assert(len > 0); /* it was checked, or is our own */
        *at += len;
        ++*steps;
        if (event->seq > page->after && event->seq <= page->up_to &&
            (ask->match.len == 0 || event_matches(event, ask->match, steps)))
            return true;
    }
    return false;
}

static struct chosen choose(const struct feed_page *page, const struct ask *ask)
{
    struct chosen chosen = {0};
    struct hold_event event = {.seq = page->after};
    uint64_t now_us;
    size_t bytes = 0;
    size_t at = 0;

    while (chosen.count < ask->count && bytes < PAGE_BYTES &&
           next_wanted(page, ask, &at, &event, &now_us, &chosen.steps)) {
        if (chosen.count == 0)
            chosen.from = at - event_bytes(&event);
        chosen.count++;
        bytes += event_bytes(&event);
    }
    chosen.early = at < page->events.len;
    chosen.next = page->up_to;
    if (chosen.early && event.seq < page->up_to) /* the last looked at */
        chosen.next = event.seq > page->after ? event.seq : page->after;
    return chosen;
}

static void put_page(struct reply *reply, const struct feed_page *page,
                     const struct ask *ask, const struct chosen *chosen)
{
    struct hold_event event;
    size_t at = chosen->from;
    uint64_t steps = 0;
    uint64_t now_us;

    reply_put_map(reply, 3);
    reply_put_key(reply, "events");
    reply_put_list(reply, chosen->count);
    for (size_t i = 0; i < chosen->count; i++) {
        bool more = next_wanted(page, ask, &at, &event, &now_us, &steps);
        assert(more);
        (void)more;
        event_put(reply, &event, now_us);
    }
    reply_pair_number(reply, "next", (int64_t)chosen->next);
    reply_pair_number(reply, "gap", (int64_t)ask->gap);
}

/* Answers with what the page has, and goes on behind it, or with why not.
 * False: nothing of it is wanted. */
static bool answer_page(struct conn *conn, const struct feed_page *page,
                        struct ask *ask)
{
    if (page->gap != 0)
        ask->gap = page->gap;
    struct chosen chosen = choose(page, ask);
    conn_spend(conn, chosen.steps);
    if (chosen.steps > EVENT_STEPS_MAX) { /* of which one event has most */
        answer_error(conn->server, conn, ERROR_SLOW_PATTERN);
        return true;
    }
    ask->after = chosen.next;
    if (chosen.count == 0 && ask->gap == 0 && !chosen.early)
        return false;
    put_page(&conn->reply, page, ask, &chosen);
    return true;
}

/* HF_OK: answered. HF_EMPTY: there is nothing yet. HF_PENDING: it is to be
 * read. */
static enum hf_status answer_now_if(struct server *server, struct conn *conn,
                                    struct ask *ask)
{
    struct feed_page page;
    enum hf_status status;

    do {
        status = feed_look(server->events.feed, ask->after, &page);
        if (status == HF_OK && page.up_to <= ask->after)
            return HF_EMPTY;
    } while (status == HF_OK && !answer_page(conn, &page, ask));
    return status;
}

static void answer_empty(struct conn *conn, const struct ask *ask)
{
    struct feed_page page = {{NULL, 0}, 0, 0, 0};
    struct chosen chosen = {.next = ask->after};

    put_page(&conn->reply, &page, ask, &chosen);
}

/* ---- Waiting. ---- */

static void leave(struct server *server, struct event_wait *wait)
{
    if (wait->read != NULL)
        wait->read->owner = NULL; /* freed when it is done */
    *(wait->prev != NULL ? &wait->prev->next : &server->events.first) =
        wait->next;
    if (wait->next != NULL)
        wait->next->prev = wait->prev;
    waits_remove(&server->waits, &wait->base);
}

void events_wait_left(struct server *server, struct wait *base)
{
    leave(server, (struct event_wait *)base);
}

/* Its reply was put; without memory for that it may be gone already. */
static void finish(struct server *server, struct conn *conn)
{
    struct event_wait *wait = (struct event_wait *)conn->wait;

    if (wait == NULL)
        return;
    uint64_t came_ns = wait->base.came_ns;
    leave(server, wait);
    answer_done(conn);
    table_took(server, hf_bytes_text("EVENTS"), came_ns);
}

/* Its time has come, or the server stops. While it is read for it waits on. */
void events_wait_due(struct server *server, struct wait *base)
{
    struct event_wait *wait = (struct event_wait *)base;

    if (wait->read != NULL && !server->stopping) {
        waits_look(&server->waits, base, UINT64_MAX);
        return;
    }
    answer_empty(base->conn, &wait->ask);
    finish(server, base->conn);
}

/* Begins to read for it; false without memory. */
static bool read_for(struct server *server, struct event_wait *wait)
{
    wait->read =
        feed_read_start(server->events.feed, wait->ask.after, &wait->base);
    return wait->read != NULL;
}

/* Looks again: answers, waits on, or waits to be read for. */
static void look_again(struct server *server, struct event_wait *wait)
{
    struct conn *conn = wait->base.conn;
    bool over = hf_clock_now_ns(server->clock) >= wait->base.deadline_ns;
    enum hf_status status = answer_now_if(server, conn, &wait->ask);

    if (status == HF_PENDING && !read_for(server, wait))
        status = HF_NOMEM;
    if (status == HF_EMPTY && over) {
        answer_empty(conn, &wait->ask);
        status = HF_OK;
    }
    if (status == HF_NOMEM)
        answer_refused(server, conn, status);
    if (status == HF_OK || status == HF_NOMEM)
        finish(server, conn);
    else if (status == HF_EMPTY)
        waits_look(&server->waits, &wait->base, wait->base.deadline_ns);
}

/* It comes first the next time, and behind all those who were before it. */
static void go_on_with(struct events *events, struct event_wait *wait)
{
    struct event_wait *last = wait;

    if (wait->prev == NULL)
        return;
    while (last->next != NULL)
        last = last->next;
    last->next = events->first;
    events->first->prev = last;
    wait->prev->next = NULL;
    wait->prev = NULL;
    events->first = wait;
}

void events_serve(struct server *server)
{
    uint64_t most = server->turn_steps + SERVE_STEPS;
    struct event_wait *next;

    if (!server->events.news)
        return;
    server->events.news = false;
    for (struct event_wait *wait = server->events.first; wait != NULL;
         wait = next) {
        if (server->turn_steps >= most) {
            server->events.news = true;
            go_on_with(&server->events, wait);
            return;
        }
        next = wait->next;
        if (wait->read == NULL)
            look_again(server, wait);
    }
}

static void serve_read(struct server *server, struct event_wait *wait,
                       const struct feed_page *page)
{
    struct conn *conn = wait->base.conn;

    wait->read = NULL;
    if (answer_page(conn, page, &wait->ask))
        finish(server, conn);
    else
        look_again(server, wait);
}

static void on_wake(uv_async_t *handle)
{
    struct server *server = handle->data;
    struct feed_read *read;

    while ((read = feed_read_next(server->events.feed)) != NULL) {
        struct wait *wait = read->owner;
        if (wait != NULL && wait->kind == WAIT_HISTORY)
            history_found(server, wait, &read->page);
        else if (wait != NULL)
            serve_read(server, (struct event_wait *)wait, &read->page);
        feed_read_free(read);
    }
    server_turn(server);
}

/* HF_EMPTY: until there is something; HF_PENDING: until it was read. */
static void park(struct server *server, struct conn *conn,
                 const struct ask *ask, enum hf_status status)
{
    struct event_wait *wait = hf_alloc_zeroed(sizeof *wait);

    if (wait == NULL) {
        answer_refused(server, conn, HF_NOMEM);
        return;
    }
    wait->ask = *ask;
    wait->ask.match = hf_bytes(wait->match, ask->match.len);
    if (ask->match.len > 0)
        memcpy(wait->match, ask->match.data, ask->match.len);
    wait->base = (struct wait){.kind = WAIT_FEED,
                               .came_ns = server->heard_ns,
                               .deadline_ns = server->heard_ns +
                                              ask->wait_ms * HF_NS_PER_MS};
    if (waits_add(&server->waits, &wait->base, conn) != HF_OK) {
        hf_free(wait);
        answer_refused(server, conn, HF_NOMEM);
        return;
    }
    wait->next = server->events.first;
    if (wait->next != NULL)
        wait->next->prev = wait;
    server->events.first = wait;
    if (ask->wait_ms > 0) /* else it is only read for */
        waits_queue(&wait->base);
    if (status == HF_PENDING && !read_for(server, wait)) {
        leave(server, wait);
        answer_refused(server, conn, HF_NOMEM);
    }
}

void events_read(const struct asked *asked)
{
    struct server *server = asked->server;
    struct ask ask = {.count = COUNT_USUAL};
    char error[PARSE_ERROR_MAX];
    struct parse p = {.shape = &events_read_shape,
                      .args = asked->args,
                      .count = asked->count,
                      .out = &ask,
                      .error = error};
    enum hf_status status = parse_shape(&p);

    if (status != HF_OK) {
        answer_bad(server, asked->conn, status,
                   p.missing ? WRONG_EVENTS : error);
        return;
    }
    if (server->events.feed == NULL) {
        answer_error(server, asked->conn, ERROR_NO_FEED);
        return;
    }
    uint64_t newest = hold_seq(server->engine);
    if (ask.after > newest) { /* what comes up to there would not be told */
        answer_error(server, asked->conn, ERROR_NO_SUCH_EVENTS,
                     (unsigned long long)ask.after, (unsigned long long)newest);
        return;
    }
    status = answer_now_if(server, asked->conn, &ask);
    if (status == HF_EMPTY && ask.wait_ms == 0)
        answer_empty(asked->conn, &ask);
    else if (status != HF_OK)
        park(server, asked->conn, &ask, status);
}

/* ---- The feed. ---- */

static void wake(void *context)
{
    struct server *server = context;

    uv_async_send(&server->events.wake);
}

enum hf_status events_open(struct server *server, char *error)
{
    const struct feed_opts opts = {
        .dir = server->config.dir,
        .io = server->config.io,
        .keep_bytes = server->config.events_keep_bytes,
        .keep_ms = server->config.events_keep_ms,
        .wake = wake,
        .context = server,
    };
    struct events *events = &server->events;

    if (opts.keep_bytes == 0)
        return HF_OK;
    int code = uv_async_init(&server->loop, &events->wake, on_wake);
    if (code != 0) {
        snprintf(error, JOURNAL_ERROR_MAX, "loop: %s", uv_strerror(code));
        return HF_IO;
    }
    events->wake.data = server;
    events->woken = true;
    return feed_open(&events->feed, &opts, error);
}

void events_start(struct server *server)
{
    if (server->events.feed != NULL)
        feed_start(server->events.feed, hold_seq(server->engine));
}

void events_stop(struct server *server, bool clean)
{
    if (server->events.feed != NULL)
        feed_stop(server->events.feed, clean);
}

/* Reads that nobody will be told of go with the feed. */
void events_close(struct server *server)
{
    for (struct event_wait *wait = server->events.first; wait != NULL;
         wait = wait->next)
        wait->read = NULL;
    history_forget(server);
    feed_close(server->events.feed);
    server->events.feed = NULL;
}

void events_tend(struct server *server)
{
    struct events *events = &server->events;
    struct feed_stats stats;
    char error[FEED_ERROR_MAX];

    if (events->feed == NULL)
        return;
    feed_tend(events->feed, hf_clock_now_ns(server->clock),
              server_now_us(server));
    feed_stats(events->feed, &stats);
    if (stats.failures != events->failures) {
        feed_error(events->feed, error);
        report_feed(&server->report, error);
        events->failures = stats.failures;
    }
}

bool events_are_behind(struct server *server)
{
    return feed_is_behind(server->events.feed, server->clock);
}

void events_tell(struct server *server, const struct hold_out *out)
{
    if (out->event_count > 0) {
        push_events(server, out);
        subscribe_events(server, out);
        server->events.news = server->events.first != NULL;
    }
    feed_take(server->events.feed, out);
}

void events_wanted(struct server *server, struct hf_bytes name, uint64_t ticket)
{
    push_wanted(server, name);
    subscribe_wanted(server, name, ticket);
}
