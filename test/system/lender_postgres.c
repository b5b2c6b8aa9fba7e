/* lender_postgres.c - hf_lender on connections to a real PostgreSQL, which is
 * stopped, killed and started again under load.
 *
 * tests: also under sanitizers
 */
#include "holdfast/lender_postgres.h"

#include <libpq-fe.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "support/postgres.h"
#include "support/test.h"
#include "support/threads.h"

#define WAIT_MS   60000
#define THREADS   6
#define LENT_MAX  4
#define OUTAGES   4
#define EACH_STEP 100 /* queries before the next outage */

/* A connection, and how often the server had gone when it was last found to be
 * alive. Each outage is counted in `begun` before the server is told to go, and
 * in `ended` when it serves again. */
struct session {
    PGconn *conn;
    uint32_t begun;
    uint32_t ended;
};

static struct {
    struct hf_lender *lender;
    struct hf_lender_opts postgres; /* what hf_lender_postgres set */
    struct hf_atomic_u32 begun;
    struct hf_atomic_u32 ended;
    struct hf_atomic_u32 stop;
    struct hf_atomic_u32 good;    /* queries that were answered */
    struct hf_atomic_u32 lost;    /* that were not, in an outage */
    struct hf_atomic_u32 dead;    /* that were not, without one */
    struct hf_atomic_u32 refused; /* borrows that failed */
    struct hf_atomic_u32 progress[THREADS];
    struct hf_atomic_u32 turn;
    struct hf_atomic_ptr leaked; /* the name of who */
    enum hf_status seen[THREADS];
    uint64_t deadline_ns[THREADS];
    uint64_t ended_ns[THREADS];
} test;

static uint32_t get(const struct hf_atomic_u32 *word)
{
    return hf_u32_load(word, __ATOMIC_SEQ_CST);
}

static void add(struct hf_atomic_u32 *word)
{
    hf_u32_add(word, 1, __ATOMIC_SEQ_CST);
}

static uint64_t now(void)
{
    return hf_clock_now_ns(hf_clock_system());
}

static uint32_t await_at_least(const struct hf_atomic_u32 *word, uint32_t count)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, WAIT_MS);

    while (get(word) < count && now() < end_ns)
        sched_yield();
    return get(word);
}

static struct hf_lender_stats figures(void)
{
    struct hf_lender_stats stats;

    hf_lender_stats(test.lender, &stats);
    return stats;
}

/* The answer's first field, "" if it has none; NULL: the query failed. */
static const char *ask(PGconn *conn, const char *sql, char answer[64])
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);

    answer[0] = '\0';
    if (status == PGRES_TUPLES_OK && PQntuples(result) > 0)
        snprintf(answer, 64, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ? answer
                                                                   : NULL;
}

static void must_ask(PGconn *conn, const char *sql, const char *expected)
{
    char answer[64];

    if (ask(conn, sql, answer) == NULL)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, PQerrorMessage(conn));
    CHECK_TEXT(answer, strlen(answer), expected);
}

/* ---- The server goes, and comes back. ---- */

static int session_create(void *context, void **resource)
{
    struct session *session = malloc(sizeof *session);
    void *conn = NULL;

    if (session == NULL)
        return 1;
    session->ended = get(&test.ended);
    session->begun = get(&test.begun);
    if (test.postgres.create(context, &conn) != 0) {
        free(session);
        return 1;
    }
    session->conn = conn;
    *resource = session;
    return 0;
}

static void session_destroy(void *context, void *resource)
{
    struct session *session = resource;

    test.postgres.destroy(context, session->conn);
    free(session);
}

static int session_validate(void *context, void *resource)
{
    struct session *session = resource;

    session->ended = get(&test.ended);
    session->begun = get(&test.begun);
    return test.postgres.validate(context, session->conn);
}

static int session_reset(void *context, void *resource)
{
    return test.postgres.reset(context, ((struct session *)resource)->conn);
}

/* A query on what was lent fails only if an outage overlapped the time from
 * the beginning of the last look at the connection to the query's end. */
static void load_body(void *argument)
{
    uint32_t index =
        (uint32_t)((struct hf_atomic_u32 *)argument - test.progress);

    while (get(&test.stop) == 0) {
        struct hf_loan loan;
        char answer[64];
        if (hf_lender_borrow(test.lender, "load",
                             hf_clock_after_ms(NULL, WAIT_MS), &loan)) {
            add(&test.refused);
            return;
        }
        struct session *session = loan.resource;
        if (ask(session->conn, "select 1", answer) != NULL) {
            add(&test.good);
            add(&test.progress[index]);
            (void)hf_lender_return(test.lender, &loan);
            continue;
        }
        bool outage = session->begun != session->ended ||
                      get(&test.begun) != session->begun;
        add(outage ? &test.lost : &test.dead);
        (void)hf_lender_discard(test.lender, &loan);
    }
}

static void open_for(const struct test_postgres *postgres,
                     struct hf_lender_opts opts)
{
    memset(&test, 0, sizeof test);
    CHECK_EQ(hf_lender_postgres(&opts, postgres->conninfo), HF_OK);
    test.postgres = opts;
    CHECK_EQ(hf_lender_open(&test.lender, &opts), HF_OK);
}

static void outages(struct test_postgres *postgres)
{
    for (uint32_t i = 0; i < OUTAGES; i++) {
        uint32_t goal = get(&test.good) + EACH_STEP;
        CHECK(await_at_least(&test.good, goal) >= goal);
        add(&test.begun);
        if (i % 2 == 0)
            test_postgres_stop(postgres);
        else
            test_postgres_kill(postgres);
        test_postgres_restart(postgres);
        add(&test.ended);
    }
}

static void outages_under_load(bool unfair)
{
    struct test_postgres *postgres = test_postgres_start(NULL);
    struct hf_thread threads[THREADS];
    struct hf_lender_opts opts = {
        .max = LENT_MAX, .min = 1, .unfair = unfair, .pause_max_ns = 50000000};

    memset(&test, 0, sizeof test);
    CHECK_EQ(hf_lender_postgres(&opts, postgres->conninfo), HF_OK);
    test.postgres = opts;
    opts.create = session_create;
    opts.destroy = session_destroy;
    opts.validate = session_validate;
    opts.reset = session_reset;
    CHECK_EQ(hf_lender_open(&test.lender, &opts), HF_OK);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(
            hf_thread_start(&threads[i], "load", load_body, &test.progress[i]),
            HF_OK);
    outages(postgres);
    for (int i = 0; i < THREADS; i++) { /* each goes on */
        uint32_t goal = get(&test.progress[i]) + 5;
        CHECK(await_at_least(&test.progress[i], goal) >= goal);
    }
    add(&test.stop);
    for (int i = 0; i < THREADS; i++)
        hf_thread_join(&threads[i]);
    struct hf_lender_stats stats = figures();
    CHECK_EQ(get(&test.dead), 0);
    CHECK_EQ(get(&test.refused), 0);
    CHECK_EQ(stats.borrows, get(&test.good) + get(&test.lost));
    CHECK(stats.broken >= OUTAGES); /* those were replaced */
    CHECK(stats.created > stats.broken);
    CHECK_EQ(stats.created, stats.destroyed + stats.idle);
    CHECK_EQ(stats.out, 0);
    hf_lender_close(test.lender);
    test_postgres_end(postgres);
}

TEST(nobody_gets_a_dead_one_while_the_server_comes_and_goes)
{
    outages_under_load(false);
}

TEST(nor_if_it_is_unfair)
{
    outages_under_load(true);
}

/* ---- Order. ---- */

static void await_waiting(uint32_t count)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, WAIT_MS);

    while (figures().waiting != count && now() < end_ns)
        sched_yield();
}

/* Each comes when the one before it waits, and signs in a table. */
static void order_body(void *context, int index)
{
    struct hf_loan loan;
    char sql[64];
    char answer[64];

    (void)context;
    (void)await_at_least(&test.turn, (uint32_t)index);
    if (index == 0) {
        test.seen[0] = hf_lender_borrow(
            test.lender, "first", hf_clock_after_ms(NULL, WAIT_MS), &loan);
        for (uint32_t i = 1; i < THREADS; i++) {
            add(&test.turn);
            await_waiting(i);
        }
    } else {
        test.seen[index] = hf_lender_borrow(
            test.lender, "next", hf_clock_after_ms(NULL, WAIT_MS), &loan);
    }
    if (test.seen[index] != HF_OK)
        return;
    snprintf(sql, sizeof sql, "insert into line (who) values (%d)", index);
    if (ask(loan.resource, sql, answer) == NULL)
        add(&test.dead);
    (void)hf_lender_return(test.lender, &loan);
}

TEST(who_waits_is_served_in_order)
{
    struct test_postgres *postgres = test_postgres_start(NULL);
    struct hf_loan loan;

    open_for(postgres, (struct hf_lender_opts){.max = 1});
    CHECK_EQ(hf_lender_borrow(test.lender, "test",
                              hf_clock_after_ms(NULL, WAIT_MS), &loan),
             HF_OK);
    must_ask(loan.resource, "create table line (at serial, who int)", "");
    CHECK_EQ(hf_lender_return(test.lender, &loan), HF_OK);
    test_threads(THREADS, order_body, NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(test.seen[i], HF_OK);
    CHECK_EQ(get(&test.dead), 0);
    CHECK_EQ(hf_lender_borrow(test.lender, "test",
                              hf_clock_after_ms(NULL, WAIT_MS), &loan),
             HF_OK);
    must_ask(loan.resource,
             "select string_agg(who::text, ' ' order by at) "
             "from line",
             "0 1 2 3 4 5");
    CHECK_EQ(hf_lender_return(test.lender, &loan), HF_OK);
    CHECK_EQ(figures().created, 1);
    hf_lender_close(test.lender);
    test_postgres_end(postgres);
}

/* ---- Deadlines, leaks, transactions. ---- */

static void deadline_body(void *context, int index)
{
    struct hf_loan loan;

    (void)context;
    test.deadline_ns[index] = now() + (uint64_t)index * 20000000;
    test.seen[index] =
        hf_lender_borrow(test.lender, "late", test.deadline_ns[index], &loan);
    test.ended_ns[index] = now();
}

/* Never before, and after it only by noise, for which there is much room. */
TEST(deadlines_are_kept)
{
    struct test_postgres *postgres = test_postgres_start(NULL);
    struct hf_loan loan;

    open_for(postgres, (struct hf_lender_opts){.max = 1, .times = true});
    CHECK_EQ(hf_lender_borrow(test.lender, "holder",
                              hf_clock_after_ms(NULL, WAIT_MS), &loan),
             HF_OK);
    test_threads(THREADS, deadline_body, NULL);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(test.seen[i], HF_TIMEOUT);
        CHECK(test.ended_ns[i] >= test.deadline_ns[i]);
        CHECK(test.ended_ns[i] - test.deadline_ns[i] < UINT64_C(10000000000));
    }
    CHECK_EQ(figures().timeouts, THREADS);
    CHECK_EQ(hf_lender_return(test.lender, &loan), HF_OK);
    hf_lender_close(test.lender);
    test_postgres_end(postgres);
}

static void note_leak(void *context, const struct hf_lender_note *note)
{
    (void)context;
    if (note->event == HF_LENDER_LEAKED)
        hf_ptr_store(&test.leaked, (void *)(uintptr_t)note->who,
                     __ATOMIC_SEQ_CST);
}

static void note_out(void *context, const struct hf_lender_note *note)
{
    *(struct hf_lender_note *)context = *note;
}

TEST(a_leak_is_told_once_and_names_the_borrower)
{
    struct test_postgres *postgres = test_postgres_start(NULL);
    struct hf_lender_note note = {.who = ""};
    struct hf_loan loan;
    struct hf_loan quick;

    open_for(postgres, (struct hf_lender_opts){.max = 2,
                                               .leak_ns = 20000000,
                                               .observe = note_leak});
    CHECK_EQ(hf_lender_borrow(test.lender, "nightly report",
                              hf_clock_after_ms(NULL, WAIT_MS), &loan),
             HF_OK);
    uint64_t end_ns = hf_clock_after_ms(NULL, WAIT_MS);
    while (figures().leaked == 0 && now() < end_ns)
        sched_yield();
    const char *who;
    while ((who = hf_ptr_load(&test.leaked, __ATOMIC_SEQ_CST)) == NULL &&
           now() < end_ns)
        sched_yield();
    CHECK(who != NULL);
    CHECK_TEXT(who, strlen(who), "nightly report");
    CHECK_EQ(hf_lender_out(test.lender, note_out, &note), 1);
    CHECK_TEXT(note.who, strlen(note.who), "nightly report");
    CHECK(note.held_ns >= 20000000);
    CHECK(note.resource == loan.resource);
    CHECK_EQ(note.event, HF_LENDER_LEAKED);
    CHECK_EQ(hf_lender_borrow(test.lender, "quick",
                              hf_clock_after_ms(NULL, WAIT_MS), &quick),
             HF_OK);
    CHECK_EQ(hf_lender_return(test.lender, &quick), HF_OK);
    CHECK_EQ(hf_lender_return(test.lender, &loan), HF_OK);
    CHECK_EQ(figures().leaked, 1);
    hf_lender_close(test.lender);
    test_postgres_end(postgres);
}

TEST(what_a_borrower_left_open_is_closed_before_the_next)
{
    struct test_postgres *postgres = test_postgres_start(NULL);
    uint64_t deadline_ns = hf_clock_after_ms(NULL, WAIT_MS);
    struct hf_loan loan;

    open_for(postgres, (struct hf_lender_opts){.max = 1});
    CHECK_EQ(hf_lender_borrow(test.lender, "a", deadline_ns, &loan), HF_OK);
    must_ask(loan.resource, "create table t as select 1 as n", "");
    must_ask(loan.resource, "begin", "");
    must_ask(loan.resource, "delete from t", "");
    PGconn *before = loan.resource;
    CHECK_EQ(hf_lender_return(test.lender, &loan), HF_OK);
    CHECK_EQ(hf_lender_borrow(test.lender, "b", deadline_ns, &loan), HF_OK);
    CHECK(loan.resource == before);
    CHECK_EQ(PQtransactionStatus(loan.resource), PQTRANS_IDLE);
    must_ask(loan.resource, "select count(*) from t", "1");
    /* in the midst of a copy: no use to anybody */
    PQclear(PQexec(loan.resource, "copy t from stdin"));
    CHECK_EQ(hf_lender_return(test.lender, &loan), HF_OK);
    CHECK_EQ(figures().broken, 1);
    CHECK_EQ(hf_lender_borrow(test.lender, "c", deadline_ns, &loan), HF_OK);
    must_ask(loan.resource, "select count(*) from t", "1");
    /* the server ends the session of one that is idle */
    CHECK_EQ(hf_lender_return(test.lender, &loan), HF_OK);
    test_postgres_kill(postgres);
    test_postgres_restart(postgres);
    CHECK_EQ(hf_lender_borrow(test.lender, "d", deadline_ns, &loan), HF_OK);
    must_ask(loan.resource, "select count(*) from t", "1");
    CHECK_EQ(figures().broken, 2);
    CHECK_EQ(hf_lender_return(test.lender, &loan), HF_OK);
    hf_lender_close(test.lender);
    test_postgres_end(postgres);
}
