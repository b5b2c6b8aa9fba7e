/* store_postgres_link.c - see store_postgres_link.h. */
#include "stores/store_postgres_link.h"

#include <assert.h>
#include <libpq-fe.h>
#include <poll.h>

#define STATEMENT "s"

/* ---- Errors. ---- */

static bool is_class(const char *state, const char *class)
{
    return strncmp(state, class, strlen(class)) == 0;
}

/* What concerns the server or the moment may pass; what concerns this batch
 * will not. */
static enum hf_status status_of(const char *state)
{
    if (state == NULL || is_class(state, "08") || is_class(state, "58") ||
        is_class(state, "25006"))
        return HF_IO; /* no connection, its disk, a server that only reads */
    if (is_class(state, "53200"))
        return HF_NOMEM;
    if (is_class(state, "53"))
        return HF_FULL; /* disk full, too many connections */
    if (is_class(state, "40") || is_class(state, "55P03") ||
        is_class(state, "57014"))
        return HF_TIMEOUT; /* deadlock, lock, statement_timeout */
    if (is_class(state, "57"))
        return HF_IO; /* it shuts down, or starts */
    if (is_class(state, "XX001") || is_class(state, "XX002"))
        return HF_CORRUPT;
    /* Our statements do not change: it is the table that is wrong. */
    return is_class(state, "42") ? HF_NOTFOUND : HF_FAILED;
}

static enum hf_status note(struct store_link *link, enum hf_status status,
                           const char *text)
{
    size_t len = strcspn(text, "\n");

    link->state[0] = '\0';
    (void)snprintf(link->text, sizeof link->text, "%.*s", (int)len, text);
    return status;
}

static void drop(struct store_link *link)
{
    PQfinish(link->conn);
    link->conn = NULL;
}

static enum hf_status lost(struct store_link *link)
{
    (void)note(link, HF_IO, PQerrorMessage(link->conn));
    drop(link);
    return HF_IO;
}

/* ---- Waiting. ---- */

/* Until the socket is ready; false: too late, or it broke. */
static bool await_socket(struct store_link *link, short events,
                         uint64_t deadline_ns)
{
    struct pollfd poll_fd = {.fd = PQsocket(link->conn), .events = events};
    uint64_t now_ns = hf_clock_now_ns(hf_clock_system());

    if (now_ns >= deadline_ns)
        return false;
    uint64_t ms = (deadline_ns - now_ns) / HF_NS_PER_MS + 1;
    (void)poll(&poll_fd, 1, ms < INT32_MAX ? (int)ms : INT32_MAX);
    return true; /* whoever asked looks again */
}

/* Sends what is buffered, taking in what comes meanwhile. */
static bool send_all(struct store_link *link, uint64_t deadline_ns)
{
    int left;

    while ((left = PQflush(link->conn)) > 0)
        if (!await_socket(link, POLLIN | POLLOUT, deadline_ns) ||
            PQconsumeInput(link->conn) == 0)
            return false;
    return left == 0;
}

static bool await_result(struct store_link *link, uint64_t deadline_ns)
{
    while (PQisBusy(link->conn))
        if (!await_socket(link, POLLIN, deadline_ns) ||
            PQconsumeInput(link->conn) == 0)
            return false;
    return true;
}

/* What a result that is no good says. */
static enum hf_status judge(struct store_link *link, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    enum hf_status status =
        note(link, status_of(state),
             text == NULL ? PQerrorMessage(link->conn) : text);

    if (state != NULL)
        (void)snprintf(link->state, sizeof link->state, "%s", state);
    return status;
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* The answer to what was sent: the last result, if there are several. */
static enum hf_status receive(struct store_link *link, PGresult **result)
{
    /* The server gives up first; this is for one that does not answer. */
    uint64_t deadline_ns =
        hf_clock_after_ms(hf_clock_system(), 2 * (uint64_t)link->timeout_ms);
    PGresult *last = NULL;

    if (!send_all(link, deadline_ns))
        return lost(link);
    for (;;) {
        if (!await_result(link, deadline_ns)) {
            PQclear(last);
            return lost(link);
        }
        PGresult *next = PQgetResult(link->conn);
        if (next == NULL)
            break;
        PQclear(last);
        last = next;
    }
    if (is_good(last)) {
        *result = last;
        return HF_OK;
    }
    enum hf_status answer = judge(link, last);
    PQclear(last);
    if (PQstatus(link->conn) != CONNECTION_OK)
        drop(link);
    return answer;
}

enum hf_status hf_store_link_query(struct store_link *link, const char *sql,
                                   PGresult **result)
{
    return PQsendQuery(link->conn, sql) ? receive(link, result) : lost(link);
}

enum hf_status hf_store_link_run(struct store_link *link, const char *sql)
{
    PGresult *result;
    enum hf_status status = hf_store_link_query(link, sql, &result);

    if (status == HF_OK)
        PQclear(result);
    return status;
}

enum hf_status hf_store_link_ask(struct store_link *link,
                                 const char *const *values, const int *lengths,
                                 PGresult **result)
{
    static const int binary[LINK_PARAMS_MAX] = {1, 1, 1};

    assert(link->params <= LINK_PARAMS_MAX);
    if (!PQsendQueryPrepared(link->conn, STATEMENT, link->params, values,
                             lengths, binary, 1))
        return lost(link);
    return receive(link, result);
}

/* ---- Several at once. ---- */

static bool send_step(struct store_link *link, const struct link_step *step)
{
    int binary[16];

    assert(step->params <= (int)(sizeof binary / sizeof binary[0]));
    if (step->sql != NULL)
        return PQsendPrepare(link->conn, step->name, step->sql, 0, NULL);
    for (int i = 0; i < step->params; i++)
        binary[i] = 1;
    return PQsendQueryPrepared(link->conn, step->name, step->params,
                               step->values, step->lengths, binary, 1);
}

/* The next result of the pipeline; NULL: the connection is lost, or (*end) the
 * results of one step are over. */
static PGresult *next_result(struct store_link *link, uint64_t deadline_ns,
                             bool *end)
{
    *end = false;
    if (!await_result(link, deadline_ns))
        return NULL;
    PGresult *result = PQgetResult(link->conn);
    *end = result == NULL;
    return result;
}

/* One result for each step and one for the end of all; between them are ends.
 * Counts the good ones: after a bad one there are none. */
static enum hf_status receive_all(struct store_link *link, uint64_t deadline_ns,
                                  int count, PGresult **results, int *good)
{
    enum hf_status status = HF_OK;
    bool end;

    for (;;) {
        PGresult *result = next_result(link, deadline_ns, &end);
        if (result == NULL && end && PQstatus(link->conn) == CONNECTION_OK)
            continue;
        if (result == NULL)
            return lost(link);
        ExecStatusType kind = PQresultStatus(result);
        if (kind == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            break;
        }
        if (is_good(result) && *good < count && status == HF_OK) {
            results[(*good)++] = result;
            continue;
        }
        if (status == HF_OK)
            status = judge(link, result);
        PQclear(result);
    }
    if (status == HF_OK && *good < count)
        status = note(link, HF_IO, "an answer is missing");
    return status;
}

enum hf_status hf_store_link_trip(struct store_link *link,
                                  const struct link_step *steps, int count,
                                  PGresult **results)
{
    uint64_t deadline_ns =
        hf_clock_after_ms(hf_clock_system(), 2 * (uint64_t)link->timeout_ms);
    int good = 0;

    assert(count <= LINK_STEPS_MAX);
    if (!PQenterPipelineMode(link->conn))
        return lost(link);
    for (int i = 0; i < count; i++)
        if (!send_step(link, &steps[i]))
            return lost(link);
    if (!PQpipelineSync(link->conn) || !send_all(link, deadline_ns))
        return lost(link);
    enum hf_status status =
        receive_all(link, deadline_ns, count, results, &good);
    if (link->conn != NULL && PQexitPipelineMode(link->conn) == 0 &&
        status == HF_OK)
        status = lost(link);
    if (status == HF_OK)
        return HF_OK;
    for (int i = 0; i < good; i++)
        PQclear(results[i]);
    if (link->conn != NULL && PQstatus(link->conn) != CONNECTION_OK)
        drop(link);
    return status;
}

/* ---- Connecting. ---- */

/* What earlier connections of this writer have not finished never ends after
 * this. */
static enum hf_status end_others(struct store_link *link)
{
    char timeout[24];
    const char *values[] = {link->writer, timeout};
    PGresult *result;

    (void)snprintf(timeout, sizeof timeout, "%u", link->timeout_ms);
    if (!PQsendQueryParams(
            link->conn,
            "SELECT pg_terminate_backend(pid, $2::bigint) "
            "FROM pg_stat_activity WHERE application_name = $1 "
            "AND datname = current_database() AND pid <> pg_backend_pid()",
            2, NULL, values, NULL, NULL, 0))
        return lost(link);
    enum hf_status status = receive(link, &result);
    if (status != HF_OK)
        return status;
    for (int i = 0; i < PQntuples(result); i++)
        if (PQgetvalue(result, i, 0)[0] != 't')
            status = note(link, HF_IO, "an earlier writer does not end");
    PQclear(result);
    return status;
}

static enum hf_status set_up(struct store_link *link)
{
    char sql[64];
    PGresult *result;
    enum hf_status status = HF_OK;

    (void)snprintf(sql, sizeof sql, "SET statement_timeout = %u",
                   link->timeout_ms);
    if (PQsetnonblocking(link->conn, 1) != 0)
        return lost(link);
    if (link->writer != NULL)
        status = end_others(link);
    if (status == HF_OK)
        status = hf_store_link_run(link, sql);
    if (status != HF_OK || link->statement == NULL)
        return status;
    if (!PQsendPrepare(link->conn, STATEMENT, link->statement, 0, NULL))
        return lost(link);
    status = receive(link, &result);
    if (status == HF_OK)
        PQclear(result);
    return status;
}

enum hf_status hf_store_link_make(struct store_link *link, bool *again)
{
    char seconds[24];
    const char *const names[] = {"dbname", "connect_timeout",
                                 "application_name", NULL};
    const char *const values[] = {
        link->conninfo, seconds,
        link->writer == NULL ? "holdfast" : link->writer, NULL};

    *again = false;
    if (link->conn != NULL && PQstatus(link->conn) == CONNECTION_OK)
        return HF_OK;
    drop(link);
    (void)snprintf(seconds, sizeof seconds, "%u",
                   (link->timeout_ms + 999) / 1000);
    link->conn = PQconnectdbParams(names, values, 1);
    if (link->conn == NULL)
        return note(link, HF_NOMEM, "out of memory");
    if (PQstatus(link->conn) != CONNECTION_OK)
        return lost(link);
    enum hf_status status = set_up(link);
    if (status != HF_OK) {
        drop(link);
        return status;
    }
    *again = link->was_made;
    link->was_made = true;
    return HF_OK;
}

void hf_store_link_destroy(struct store_link *link)
{
    drop(link);
}
