/* answer.c - what a client is told, and how long it took. */
#include "server/answer.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/conn.h"
#include "server/errors.h"
#include "server/reply.h"
#include "server/server.h"

#define SENTENCE_BYTES 1024u

void answer_done(struct conn *conn)
{
    if (conn->reply.failed)
        conn_close_no_memory(conn); /* better no answer than half of one */
    else
        conn_touch(conn);
}

static void give(struct server *server, struct conn *conn, enum hold_code code,
                 struct hf_bytes body, uint64_t age_ms)
{
    if (conn == NULL || conn->closing)
        return;
    if (code != HOLD_OK)
        metrics_refused(&server->metrics, code);
    reply_write(&conn->reply, code, body, age_ms);
    answer_done(conn);
}

void answer_give(struct server *server, struct conn *conn, enum hold_code code,
                 struct hf_bytes body)
{
    give(server, conn, code, body, 0);
}

void answer_applied(struct server *server, struct conn *conn,
                    enum hold_code code, struct hf_bytes body)
{
    uint64_t now_us = server->epoch_us + server->answer_ns / 1000;
    uint64_t as_of_us = hold_now_us(server->engine);
    uint64_t age_us = now_us > as_of_us ? now_us - as_of_us : 0;

    give(server, conn, code, body, (age_us + 999) / 1000);
}

static void tell(struct server *server, struct conn *conn, enum hold_code code,
                 const char *name, const char *sentence)
{
    metrics_refused(&server->metrics, code);
    conn->reply.codec->error(&conn->reply, hf_bytes_text(name),
                             hf_bytes_text(sentence));
    answer_done(conn);
}

void answer_error(struct server *server, struct conn *conn, enum hold_code code,
                  const char *sentence, ...)
{
    char text[SENTENCE_BYTES];
    va_list facts;

    if (conn == NULL || conn->closing)
        return;
    va_start(facts, sentence);
    vsnprintf(text, sizeof text, sentence, facts);
    va_end(facts);
    tell(server, conn, code, hold_code_name(code), text);
}

void answer_line(struct server *server, struct conn *conn, enum hold_code code,
                 const char *line)
{
    if (conn != NULL && !conn->closing)
        tell(server, conn, code, "", line);
}

enum hold_code answer_bad_code(enum hf_status status)
{
    return status == HF_NOTFOUND ? HOLD_NOTFOUND
           : status == HF_FAILED ? HOLD_ERR
           : status == HF_EMPTY  ? HOLD_NOSCRIPT
                                 : HOLD_BADARG;
}

void answer_bad(struct server *server, struct conn *conn, enum hf_status status,
                const char *sentence)
{
    answer_error(server, conn, answer_bad_code(status), "%s", sentence);
}

void answer_read_begin(struct server *server)
{
    server->heard_ns = hf_clock_now_ns(server->clock);
}

void answer_note_now(struct server *server, size_t index)
{
    if (server->noted_count == SERVER_NOTED_MAX)
        answer_read_end(server);
    server->noted[server->noted_count++] = (uint16_t)index;
}

void answer_read_end(struct server *server)
{
    if (server->noted_count == 0)
        return;
    uint64_t took_ns = hf_clock_now_ns(server->clock) - server->heard_ns;
    while (server->noted_count > 0)
        metrics_took(&server->metrics, server->noted[--server->noted_count],
                     took_ns);
}

void answer_now(struct server *server)
{
    server->answer_ns = hf_clock_now_ns(server->clock);
}

uint64_t answer_note(struct server *server, enum hold_kind kind,
                     uint64_t came_ns)
{
    uint64_t took_ns = server->answer_ns - came_ns;

    metrics_took(&server->metrics, server->metrics.by_kind[kind], took_ns);
    return took_ns;
}

void answer_note_grant(struct server *server, uint64_t took_ns)
{
    hf_window_record(server->metrics.acquire_ns, took_ns, server->answer_ns);
}

void answer_failed(struct server *server, struct conn *conn)
{
    answer_error(server, conn, ERROR_JOURNAL, log_error(server->log));
}

void answer_no_memory(struct server *server, const struct conn *conn)
{
    struct hold_counts counts;

    hold_count(server->engine, &counts);
    report_no_memory(&server->report, conn, counts.memory_bytes);
}

void answer_refused(struct server *server, struct conn *conn,
                    enum hf_status why)
{
    if (why == HF_IO) {
        answer_failed(server, conn);
    } else if (why == HF_INVALID) {
        answer_error(server, conn, ERROR_GROUP_REPLY);
    } else if (why == HF_FULL) {
        report_behind(&server->report, conn);
        answer_error(server, conn, ERROR_DISK);
    } else {
        answer_no_memory(server, conn);
        answer_error(server, conn, ERROR_MEMORY);
    }
}

void answer_timeout(struct server *server, struct conn *conn)
{
    if (server->stopping)
        answer_error(server, conn, ERROR_STOPPING);
    else
        answer_error(server, conn, ERROR_STALLED);
}
