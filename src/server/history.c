/* history.c - goes through the feed for what happened to one thing. */
#include "server/history.h"

#include <assert.h>

#include "base/memory.h"
#include "feed/past.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/reply.h"
#include "server/server.h"

#define COUNT_USUAL 100u
#define COUNT_MAX   1000u
/* Beyond so many bytes of events a page has enough. */
#define PAGE_BYTES (256u * 1024)
/* Steps for those who search, before clients have their turn again. */
#define SERVE_STEPS 50000u

/* What is asked. */
struct ask {
    struct hf_bytes name;
    uint64_t after;
    uint64_t count;
    uint64_t at;
};

struct search {
    struct wait base;
    struct search *prev; /* of those who wait */
    struct search *next;
    struct feed_read *read; /* not NULL: it is being read for it */
    const char *command;
    struct event_about about;
    uint64_t after; /* up to here all was looked at */
    /* Of a history: */
    uint64_t count; /* wanted; 0: numbers are */
    uint64_t found_count;
    struct hf_buf found; /* events */
    uint64_t gap;
    /* Of numbers: */
    struct past past;
    char name[HOLD_NAME_MAX];
};

#define AT(field) .place = offsetof(struct ask, field)
static const struct hold_arg options[] = {
    {"FROM", "number", .type = TYPE_NUMBER, AT(after), .max = INT64_MAX},
    {"COUNT", "n", .type = TYPE_NUMBER, AT(count), .min = 1, .max = COUNT_MAX},
};
enum { WORD_NONE, WORD_STOCK_SKU, WORD_RESERVATION_ID, WORD_NUMBER };
static const struct hold_arg words[] = {
    [WORD_STOCK_SKU] = {"sku", .type = TYPE_TEXT, AT(name),
                        .max = HOLD_SKU_MAX},
    [WORD_RESERVATION_ID] = {"id", .type = TYPE_TEXT, AT(name),
                             .max = HOLD_ID_MAX},
    [WORD_NUMBER] = {"number", .type = TYPE_NUMBER, AT(at), .max = INT64_MAX},
};
static struct vocabulary vocabulary = {
    .words = words, .options = options, .option_count = 2, .last = 1};
const struct shape history_stock_shape = {&vocabulary, {WORD_STOCK_SKU}, 3, 0};
const struct shape history_reservation_shape = {
    &vocabulary, {WORD_RESERVATION_ID}, 3, 0};
const struct shape history_at_shape = {
    &vocabulary, {WORD_STOCK_SKU, WORD_NUMBER}, 0, 0};

void history_rewrite(struct resp_request *request)
{
    if (request->count != 5 || !hf_bytes_is(request->args[3], "AT"))
        return;
    request->args[1] = request->args[3];
    request->args[3] = request->args[4];
    request->count = 4;
}

/* ---- Looking at events. ---- */

/* An event about it; false: that is enough. */
static bool take_event(struct search *search, const struct hold_event *event,
                       uint64_t now_us, struct hf_bytes bytes,
                       enum hf_status *status)
{
    if (search->count == 0) {
        past_event(&search->past, event, now_us);
        return true;
    }
    *status = hf_buf_append(&search->found, bytes.data, bytes.len);
    search->found_count += *status == HF_OK;
    search->after = event->seq;
    return *status == HF_OK && search->found_count < search->count &&
           search->found.len < PAGE_BYTES;
}

/* Something is missing between what was looked at and that number. True: what
 * was found is told first. */
static bool take_gap(struct search *search, uint64_t to)
{
    if (search->count == 0) {
        past_gap(&search->past, search->after, to);
    } else {
        if (search->found_count > 0)
            return true;
        search->gap = to;
    }
    search->after = to;
    return false;
}

/* HF_OK: that is enough; HF_PENDING: there may be more; HF_NOMEM. */
static enum hf_status take_page(struct search *search,
                                const struct feed_page *page, uint64_t *steps)
{
    enum hf_status status = HF_OK;
    struct hold_event event;
    uint64_t now_us;

    if (page->gap > search->after && take_gap(search, page->gap))
        return HF_OK;
    for (size_t at = 0; at < page->events.len; ++*steps) {
        struct hf_bytes rest =
            hf_bytes(page->events.data + at, page->events.len - at);
        size_t len = event_decode(rest, &event, &now_us);
        assert(len > 0); /* it was checked, or is our own */
        at += len;
        if (event.seq > page->after && event.seq <= page->up_to &&
            event_is_about(&event, &search->about) &&
            !take_event(search, &event, now_us, hf_bytes(rest.data, len),
                        &status))
            return status;
    }
    search->after = page->up_to;
    return HF_PENDING;
}

/* Goes on with what memory has, as far as the turn's budget allows. HF_OK: it
 * is done. HF_PENDING: files are to be read. HF_FULL: in the next turn.
 * HF_NOMEM. */
static enum hf_status go_on(struct server *server, struct conn *conn,
                            struct search *search)
{
    uint64_t most = server->turn_steps + SERVE_STEPS;
    uint64_t now = hold_seq(server->engine);
    struct feed_page page;

    for (;;) {
        uint64_t steps = 0;
        if (feed_look(server->events.feed, search->after, &page) == HF_PENDING)
            return HF_PENDING;
        if (page.up_to <= search->after)
            break;
        enum hf_status status = take_page(search, &page, &steps);
        conn_spend(conn, steps);
        if (status != HF_PENDING)
            return status;
        if (server->turn_steps >= most)
            return HF_FULL;
    }
    if (search->after < now) /* the feed has lost the last ones */
        (void)take_gap(search, now);
    return HF_OK;
}

/* ---- Answers. ---- */

static void put_history(struct reply *reply, const struct search *search)
{
    struct hf_bytes rest = hf_buf_bytes(&search->found);
    struct hold_event event;
    uint64_t now_us;

    reply_put_map(reply, 3);
    reply_put_key(reply, "events");
    reply_put_list(reply, search->found_count);
    for (uint64_t i = 0; i < search->found_count; i++) {
        size_t len = event_decode(rest, &event, &now_us);
        rest = hf_bytes(rest.data + len, rest.len - len);
        event_put(reply, &event, now_us);
    }
    reply_pair_number(reply, "next", (int64_t)search->after);
    reply_pair_number(reply, "gap", (int64_t)search->gap);
}

static void put_numbers(struct reply *reply, const struct search *search,
                        const struct hold_numbers *numbers)
{
    bool versioned = numbers->version != 0;

    reply_put_map(reply, 8);
    reply_put_key(reply, "sku");
    reply_put_bytes(reply, search->about.name);
    reply_put_numbers(reply, numbers);
    reply_put_key(reply, "version");
    if (versioned)
        reply_put_number(reply, (int64_t)numbers->version);
    else
        reply_put_null(reply);
    reply_put_key(reply, "updated_ms");
    if (versioned)
        reply_put_number(reply, (int64_t)(numbers->updated_us / 1000));
    else
        reply_put_null(reply);
    reply_pair_number(reply, "at", (int64_t)search->past.at);
}

/* All was looked at. */
static void answer(struct server *server, struct conn *conn,
                   const struct search *search)
{
    struct hf_bytes sku = search->about.name;
    struct hold_numbers then;

    if (search->count > 0) {
        put_history(&conn->reply, search);
        return;
    }
    struct hold_numbers now = hold_numbers(server->engine, sku);
    if (past_numbers(&search->past, &now, &then) != HF_OK)
        answer_error(server, conn, ERROR_PAST, PRINTED(sku),
                     (unsigned long long)search->past.at,
                     (unsigned long long)past_known_from(&search->past));
    else if (!then.exists)
        answer_error(server, conn, ERROR_NOT_THEN, PRINTED(sku),
                     (unsigned long long)search->past.at);
    else
        put_numbers(&conn->reply, search, &then);
}

/* ---- Waiting. ---- */

static void leave(struct server *server, struct search *search)
{
    if (search->read != NULL)
        search->read->owner = NULL; /* freed when it is done */
    *(search->prev != NULL ? &search->prev->next : &server->events.searches) =
        search->next;
    if (search->next != NULL)
        search->next->prev = search->prev;
    hf_buf_destroy(&search->found);
    waits_remove(&server->waits, &search->base);
}

void history_wait_left(struct server *server, struct wait *base)
{
    leave(server, (struct search *)base);
}

/* Its reply was put, after it was detached: a connection that has no memory
 * for the reply closes, and ends its wait. */
static void finish(struct server *server, struct conn *conn,
                   struct search *search)
{
    uint64_t came_ns = search->base.came_ns;
    const char *command = search->command;

    leave(server, search);
    answer_done(conn);
    table_took(server, hf_bytes_text(command), came_ns);
}

void history_wait_stop(struct server *server, struct wait *base)
{
    struct conn *conn = waits_detach(&server->waits, base);

    answer_error(server, conn, ERROR_STOPPING);
    finish(server, conn, (struct search *)base);
}

/* What going on came to: answers, or has it go on later. */
static void settle(struct server *server, struct search *search,
                   enum hf_status status)
{
    if (status == HF_PENDING) {
        search->read = feed_search_start(server->events.feed, search->after,
                                         &search->about, &search->base);
        status = search->read != NULL ? HF_PENDING : HF_NOMEM;
    }
    if (status == HF_PENDING || status == HF_FULL)
        return;
    struct conn *conn = waits_detach(&server->waits, &search->base);
    if (status == HF_OK)
        answer(server, conn, search);
    else
        answer_refused(server, conn, status);
    finish(server, conn, search);
}

void history_found(struct server *server, struct wait *wait,
                   const struct feed_page *page)
{
    struct search *search = (struct search *)wait;
    uint64_t steps = 0;

    search->read = NULL;
    enum hf_status status = take_page(search, page, &steps);
    conn_spend(wait->conn, steps);
    if (status == HF_PENDING)
        status = go_on(server, wait->conn, search);
    settle(server, search, status);
}

bool history_has_work(const struct server *server)
{
    for (const struct search *search = server->events.searches; search != NULL;
         search = search->next) {
        if (search->read == NULL)
            return true;
    }
    return false;
}

void history_forget(struct server *server)
{
    for (struct search *search = server->events.searches; search != NULL;
         search = search->next)
        search->read = NULL;
}

/* One of them, the one that has waited longest: the next turn has the next. */
void history_serve(struct server *server)
{
    struct search *first = NULL;

    for (struct search *search = server->events.searches; search != NULL;
         search = search->next) {
        if (search->read == NULL)
            first = search;
    }
    if (first != NULL && !submit_is_spent(server))
        settle(server, first, go_on(server, first->base.conn, first));
}

/* Puts it among those who wait. False: no memory. */
static bool park(struct server *server, struct conn *conn,
                 struct search *search)
{
    search->base = (struct wait){.kind = WAIT_HISTORY,
                                 .came_ns = server->heard_ns,
                                 .deadline_ns = UINT64_MAX};
    if (waits_add(&server->waits, &search->base, conn) != HF_OK)
        return false;
    search->next = server->events.searches;
    if (search->next != NULL)
        search->next->prev = search;
    server->events.searches = search;
    return true;
}

/* ---- The commands. ---- */

static void begin(const struct asked *asked, struct search *search)
{
    struct server *server = asked->server;
    enum hf_status status = go_on(server, asked->conn, search);

    if (status == HF_OK) {
        answer(server, asked->conn, search);
    } else if (status == HF_NOMEM || !park(server, asked->conn, search)) {
        answer_refused(server, asked->conn, HF_NOMEM);
    } else if (status == HF_PENDING) {
        search->read = feed_search_start(server->events.feed, search->after,
                                         &search->about, &search->base);
        if (search->read != NULL)
            return;
        leave(server, search);
        answer_refused(server, asked->conn, HF_NOMEM);
        return;
    } else {
        return;
    }
    hf_buf_destroy(&search->found);
    hf_free(search);
}

/* Fills `ask`; false: answered. */
static bool parse(const struct asked *asked, const struct shape *shape,
                  struct ask *ask)
{
    struct server *server = asked->server;
    char error[PARSE_ERROR_MAX];
    struct parse p = {.shape = shape,
                      .args = asked->args,
                      .count = asked->count,
                      .out = ask,
                      .error = error};
    enum hf_status status = parse_shape(&p);

    if (status != HF_OK)
        answer_bad(server, asked->conn, status, error);
    else if (server->events.feed == NULL)
        answer_error(server, asked->conn, ERROR_NO_FEED);
    return status == HF_OK && server->events.feed != NULL;
}

static void search_for(const struct asked *asked, const char *command,
                       enum hold_subject subject, const struct ask *ask)
{
    struct search *search = hf_alloc_zeroed(sizeof *search);

    if (search == NULL) {
        answer_refused(asked->server, asked->conn, HF_NOMEM);
        return;
    }
    search->command = command;
    search->after = ask->after;
    search->count = ask->count;
    memcpy(search->name, ask->name.data, ask->name.len);
    search->about =
        (struct event_about){subject, hf_bytes(search->name, ask->name.len)};
    past_init(&search->past, search->about.name, ask->at);
    begin(asked, search);
}

void history_stock(const struct asked *asked)
{
    struct ask ask = {.count = COUNT_USUAL};

    if (parse(asked, &history_stock_shape, &ask))
        search_for(asked, "STOCK HISTORY", SUBJECT_PRODUCT, &ask);
}

void history_reservation(const struct asked *asked)
{
    struct ask ask = {.count = COUNT_USUAL};

    if (parse(asked, &history_reservation_shape, &ask))
        search_for(asked, "RESERVATION HISTORY", SUBJECT_RESERVATION, &ask);
}

void history_at(const struct asked *asked)
{
    struct server *server = asked->server;
    uint64_t now = hold_seq(server->engine);
    struct ask ask = {.count = 0};

    if (!parse(asked, &history_at_shape, &ask))
        return;
    if (ask.at > now)
        answer_error(server, asked->conn, ERROR_FUTURE,
                     (unsigned long long)ask.at, (unsigned long long)now);
    else
        search_for(asked, "STOCK AT", SUBJECT_PRODUCT, &ask);
}
