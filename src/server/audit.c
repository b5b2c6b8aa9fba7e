/* audit.c - begins an audit, compares, answers; and the task that replays. */
#include "server/audit.h"

#include <assert.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "hold/book.h"
#include "hold/image.h"
#include "journal/journal.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/reply.h"
#include "server/server.h"

struct audit { /* (l) the loop's  (t) the task's until `ended` */
    struct server *server;
    struct wait *wait;       /* (l) NULL: nobody wants to know any more */
    bool begun;              /* (l) */
    struct hold_numbers now; /* (l) what the server's engine had */
    uint64_t now_seq;        /* (l) at this number */
    struct log_replay replay;
    struct journal_machine machine;
    struct hf_hash_seed seed;
    struct hf_atomic_u32 ended;    /* 1: what follows is the loop's */
    enum hf_status status;         /* (t) */
    struct hold_numbers derived;   /* (t) */
    uint64_t from_seq;             /* (t) where the records begin */
    uint64_t to_seq;               /* (t) */
    uint64_t records;              /* (t) */
    uint64_t steps;                /* (t) */
    char error[JOURNAL_ERROR_MAX]; /* (t) what is wrong; "": nothing */
    size_t sku_len;
    char sku[HOLD_SKU_MAX];
};

static struct hf_bytes sku_of(const struct audit *audit)
{
    return hf_bytes(audit->sku, audit->sku_len);
}

/* ---- The task. ---- */

struct auditor {
    struct audit *audit;
    struct hold_engine *engine;
    struct hold_book *book;
    bool opened; /* the book is */
    struct hold_command command;
};

static void destroy(void *machine)
{
    struct auditor *auditor = machine;

    if (auditor == NULL)
        return;
    hold_book_free(auditor->book);
    hold_free(auditor->engine);
    hf_free(auditor);
}

static void *create(void *context)
{
    struct audit *audit = context;
    struct auditor *auditor = hf_alloc_zeroed(sizeof *auditor);

    if (auditor == NULL)
        return NULL;
    auditor->audit = audit;
    auditor->engine = hold_new(audit->seed);
    auditor->book = hold_book_new(audit->seed, sku_of(audit));
    if (auditor->engine == NULL || auditor->book == NULL ||
        hold_tell(auditor->engine) != HF_OK) {
        destroy(auditor);
        return NULL;
    }
    return auditor;
}

static enum hf_status load(void *machine, struct hf_bytes piece)
{
    return hold_load(((struct auditor *)machine)->engine, piece);
}

/* What the book found is told with the number that it had come to. */
static enum hf_status judge(struct auditor *auditor, enum hf_status status)
{
    struct audit *audit = auditor->audit;

    if (status == HF_CORRUPT && audit->error[0] == '\0')
        snprintf(audit->error, sizeof audit->error, AUDIT_WRONG,
                 (unsigned long long)hold_seq(auditor->engine),
                 hold_book_wrong(auditor->book));
    return status;
}

/* With what the snapshot brought. */
static enum hf_status open_book(struct auditor *auditor)
{
    if (auditor->opened)
        return HF_OK;
    auditor->opened = true;
    auditor->audit->from_seq = hold_seq(auditor->engine);
    return judge(auditor, hold_book_open(auditor->book, auditor->engine));
}

static enum hf_status apply(void *machine, struct hf_bytes record)
{
    struct auditor *auditor = machine;
    enum hf_status status = open_book(auditor);
    bool again = true;

    if (status != HF_OK)
        return status;
    auditor->audit->records++;
    if (hold_decode(record, &auditor->command) != HF_OK ||
        !hold_kind_is_write(auditor->command.kind))
        return HF_CORRUPT;
    if (hold_prepare(auditor->engine, &auditor->command) != HF_OK)
        return HF_NOMEM;
    while (again && status == HF_OK) {
        const struct hold_out *out = hold_apply(auditor->engine, record);
        again = out->code == HOLD_AGAIN;
        for (size_t i = 0; i < out->event_count && status == HF_OK; i++)
            status = hold_book_event(auditor->book, &out->events[i]);
        if (status == HF_OK)
            status = hold_book_compare(auditor->book, auditor->engine);
        status = judge(auditor, status);
    }
    return status;
}

/* The state goes here, too: freeing it takes a while. */
static void done(void *context, void *state, enum hf_status status,
                 const char *error)
{
    struct audit *audit = context;
    struct auditor *auditor = state;

    if (status == HF_OK)
        status = open_book(auditor);
    if (status == HF_OK)
        status =
            judge(auditor, hold_book_finish(auditor->book, auditor->engine));
    if (status != HF_OK && audit->error[0] == '\0')
        snprintf(audit->error, sizeof audit->error, "%s",
                 error[0] != '\0' ? error : hf_status_text(status));
    if (status == HF_OK) {
        audit->derived = hold_book_numbers(auditor->book, sku_of(audit));
        audit->to_seq = hold_seq(auditor->engine);
        audit->steps = hold_book_steps(auditor->book);
    }
    audit->status = status;
    destroy(auditor);
    hf_u32_store(&audit->ended, 1, __ATOMIC_RELEASE); /* all of it is there */
    uv_async_send(&audit->server->audits.wake);
}

/* ---- The answer. ---- */

static void leave(struct server *server, struct wait *wait)
{
    struct audits *audits = &server->audits;

    assert(audits->audit != NULL && audits->audit->wait == wait);
    audits->audit->wait = NULL;
    waits_remove(&server->waits, wait);
    if (!audits->audit->begun) {
        hf_free(audits->audit);
        audits->audit = NULL;
    }
}

void audit_wait_left(struct server *server, struct wait *wait)
{
    leave(server, wait);
}

/* Its reply was put, after it was detached: a connection that has no memory
 * for the reply closes, and ends its wait. */
static void finish(struct server *server, struct conn *conn, struct wait *wait)
{
    uint64_t came_ns = wait->came_ns;

    leave(server, wait);
    answer_done(conn);
    table_took(server, hf_bytes_text("STOCK AUDIT"), came_ns);
}

void audit_wait_stop(struct server *server, struct wait *wait)
{
    struct conn *conn = waits_detach(&server->waits, wait);

    answer_error(server, conn, ERROR_STOPPING);
    finish(server, conn, wait);
}

static void put_result(struct reply *reply, const struct audit *audit)
{
    reply_put_map(reply, 9);
    reply_put_key(reply, "sku");
    reply_put_bytes(reply, sku_of(audit));
    reply_pair_number(reply, "from", (int64_t)audit->from_seq);
    reply_pair_number(reply, "to", (int64_t)audit->to_seq);
    reply_pair_number(reply, "records", (int64_t)audit->records);
    reply_pair_number(reply, "steps", (int64_t)audit->steps);
    reply_put_numbers(reply, &audit->derived);
}

/* What was derived must be what the server had. */
static void compare(struct audit *audit)
{
    const struct hold_numbers *a = &audit->derived;
    const struct hold_numbers *b = &audit->now;

    if (audit->status != HF_OK ||
        (audit->to_seq == audit->now_seq && a->exists == b->exists &&
         a->total == b->total && a->reserved == b->reserved &&
         a->sold == b->sold))
        return;
    audit->status = HF_CORRUPT;
    snprintf(audit->error, sizeof audit->error, AUDIT_DIFFERS,
             (unsigned long long)audit->now_seq, (unsigned long long)b->total,
             (unsigned long long)b->reserved, (unsigned long long)b->sold,
             (unsigned long long)audit->to_seq, (unsigned long long)a->total,
             (unsigned long long)a->reserved, (unsigned long long)a->sold);
}

static void tell(struct server *server, const struct audit *audit)
{
    struct conn *conn = waits_detach(&server->waits, audit->wait);

    if (audit->status == HF_OK)
        put_result(&conn->reply, audit);
    else
        answer_error(server, conn, ERROR_AUDIT, PRINTED(sku_of(audit)),
                     audit->error);
    finish(server, conn, audit->wait);
}

static void on_wake(uv_async_t *handle)
{
    struct server *server = handle->data;
    struct audit *audit = server->audits.audit;

    if (audit == NULL || hf_u32_load(&audit->ended, __ATOMIC_ACQUIRE) == 0)
        return; /* acquire: the task's part is the loop's from here on */
    compare(audit);
    if (audit->status == HF_OK)
        server->audits.count++;
    else
        server->audits.failures++;
    if (audit->status == HF_CORRUPT)
        hf_log_write(server->report.log, HF_LOG_ERROR,
                     "the audit of '%.*s' found: %s", PRINTED(sku_of(audit)),
                     audit->error);
    if (audit->wait != NULL)
        tell(server, audit);
    hf_free(audit);
    server->audits.audit = NULL;
    server_turn(server);
}

/* ---- The command. ---- */

/* Every batch that is on disk has been applied, and no other one is on its
 * way. */
static bool is_moment(const struct server *server)
{
    return server->flight_count == 0 && !server->applying;
}

void audits_begin(struct server *server)
{
    struct audit *audit = server->audits.audit;

    if (audit == NULL || audit->begun || !is_moment(server))
        return;
    audit->now = hold_numbers(server->engine, sku_of(audit));
    audit->now_seq = hold_seq(server->engine);
    enum hf_status status = log_replay(server->log, &audit->replay);
    audit->begun = status == HF_OK;
    if (status == HF_OK || status == HF_PENDING)
        return;
    struct conn *conn = waits_detach(&server->waits, audit->wait);
    if (status == HF_NOTFOUND)
        answer_error(server, conn, ERROR_NO_AUDIT);
    else
        answer_refused(server, conn, HF_IO);
    finish(server, conn, audit->wait);
}

static struct audit *audit_new(struct server *server, struct hf_bytes sku)
{
    struct audit *audit = hf_alloc_zeroed(sizeof *audit);

    if (audit == NULL)
        return NULL;
    audit->server = server;
    audit->machine = (struct journal_machine){.context = audit,
                                              .create = create,
                                              .destroy = destroy,
                                              .apply = apply,
                                              .load = load};
    audit->replay = (struct log_replay){
        .machine = &audit->machine, .done = done, .context = audit};
    memcpy(audit->sku, sku.data, sku.len);
    audit->sku_len = sku.len;
    if (server_random(&audit->seed, sizeof audit->seed) == HF_OK)
        return audit;
    hf_free(audit);
    return NULL;
}

/* It waits from here on; false: no memory. */
static bool park(struct server *server, struct conn *conn, struct hf_bytes sku)
{
    struct wait *wait = hf_alloc_zeroed(sizeof *wait);
    struct audit *audit = audit_new(server, sku);

    if (wait != NULL)
        *wait = (struct wait){.kind = WAIT_AUDIT,
                              .came_ns = server->heard_ns,
                              .deadline_ns = UINT64_MAX};
    if (wait == NULL || audit == NULL ||
        waits_add(&server->waits, wait, conn) != HF_OK) {
        hf_free(audit);
        hf_free(wait);
        return false;
    }
    audit->wait = wait;
    server->audits.audit = audit;
    return true;
}

void audit_stock(const struct asked *asked)
{
    struct server *server = asked->server;
    struct hf_bytes sku = hf_bytes("", 0);
    char error[PARSE_ERROR_MAX];

    if (parse_text(asked->args[0], "sku", HOLD_SKU_MAX, &sku, error) != HF_OK)
        answer_bad(server, asked->conn, HF_INVALID, error);
    else if (server->audits.audit != NULL)
        answer_error(server, asked->conn, ERROR_AUDITING);
    else if (!hold_numbers(server->engine, sku).exists)
        answer_error(server, asked->conn, ERROR_NO_PRODUCT, PRINTED(sku));
    else if (!park(server, asked->conn, sku)) /* else it begins when it can */
        answer_refused(server, asked->conn, HF_NOMEM);
}

int audits_open(struct server *server)
{
    int code = uv_async_init(&server->loop, &server->audits.wake, on_wake);

    server->audits.wake.data = server;
    return code;
}

void audits_close(struct server *server)
{
    hf_free(server->audits.audit);
    server->audits.audit = NULL;
}
