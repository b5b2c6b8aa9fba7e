/* answer.c - what a client is told, and how long it took. */
#include "server/answer.h"

#include <stdio.h>

#include "server/conn.h"
#include "server/server.h"

static void give(struct server *server, struct conn *conn, enum hold_code code,
                 struct hf_bytes body, uint64_t age_ms)
{
    if (conn == NULL || conn->closing)
        return;
    if (code != HOLD_OK)
        metrics_refused(&server->metrics, code);
    if (reply_write(&conn->out, conn->version, code, body, age_ms) == HF_OK)
        conn_touch(conn);
    else
        conn_close_no_memory(conn); /* better no answer than half of one */
}

void answer_give(struct server *server, struct conn *conn, enum hold_code code,
                 struct hf_bytes body)
{
    give(server, conn, code, body, 0);
}

void answer_applied(struct server *server, struct conn *conn,
                    enum hold_code code, struct hf_bytes body)
{
    uint64_t now_us = server_now_us(server);
    uint64_t as_of_us = hold_now_us(server->engine);
    uint64_t age_us = now_us > as_of_us ? now_us - as_of_us : 0;

    give(server, conn, code, body, (age_us + 999) / 1000);
}

void answer_error(struct server *server, struct conn *conn, const char *text)
{
    if (conn == NULL || conn->closing)
        return;
    metrics_failed(&server->metrics, text);
    if (resp_error(&conn->out, hf_bytes_text(text)) == HF_OK)
        conn_touch(conn);
    else
        conn_close_no_memory(conn);
}

void answer_now(struct server *server)
{
    server->answer_ns = hf_clock_now_ns(server->clock);
}

/* The request that came then is answered now. */
uint64_t answer_note(struct server *server, enum hold_kind kind,
                     uint64_t came_ns)
{
    uint64_t took_ns = server->answer_ns - came_ns;

    metrics_answered(&server->metrics, kind, took_ns);
    return took_ns;
}

void answer_note_grant(struct server *server, uint64_t took_ns)
{
    hf_window_record(server->metrics.acquire_ns, took_ns, server->answer_ns);
}

void answer_failed(struct server *server, struct conn *conn)
{
    char text[JOURNAL_ERROR_MAX + 64];

    snprintf(text, sizeof text,
             "JOURNAL not acknowledged, writes are "
             "refused: %s",
             journal_error(server->journal));
    answer_error(server, conn, text);
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
    } else if (why == HF_FULL) {
        report_behind(&server->report, conn);
        answer_error(server, conn, "OVERLOADED the disk does not keep up");
    } else {
        answer_no_memory(server, conn);
        answer_error(server, conn,
                     "OVERLOADED no memory: memory-max-bytes is reached, or "
                     "the machine has no more");
    }
}

void answer_timeout(struct server *server, struct conn *conn)
{
    answer_error(server, conn,
                 server->stopping
                     ? "TIMEOUT the server stops, nobody waits any more"
                     : "TIMEOUT waited for the lock while the disk did not "
                       "answer");
}
