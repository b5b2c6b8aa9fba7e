/* writebehind_kill.c - kill -9 of a process that writes behind with a log.
 * tests: also under sanitizers
 *
 * A child puts with several threads; each notes in shared memory what it tries
 * and what was acknowledged. It is killed at a random moment. What is in the
 * real database is looked at as it is; then another child opens the log again,
 * flushes and looks once more. Then the next round, with the same files.
 *
 *   acknowledged  is there
 *   tried         is there with all of its keys, or not at all
 *   every key     is what the thread's calls up to one of these two made of it
 *   pairs         that all threads put as groups are equal, always
 *
 * WRITEBEHIND_KILLS sets the number of rounds, TEST_SEED what happens in them.
 */
#include <libpq-fe.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/random.h"
#include "holdfast/writebehind.h"
#include "support/postgres.h"
#include "support/test.h"

#define THREADS 6
#define PAIRS   5
#define KINDS   4

enum { GOOD = 0, BAD_OPEN = 10, BAD_STORE, BAD_PAIR, BAD_ORDER, BAD_LOST };

/* Shared with the children. */
static struct shared {
    struct hf_atomic_u64 tried[THREADS], acknowledged[THREADS];
    struct hf_atomic_u64 recovered;
    char text[256]; /* what was wrong */
} * shared;

static struct {
    char path[512], folder[512];
    const char *conninfo; /* NULL: SQLite */
} test;

/* ---- What thread `t` does with its call number `n`, n = 1, 2, 3, ... ---- */

struct call {
    struct hf_store_change changes[6];
    char keys[6][16], value[24];
    size_t count;
};

static void add(struct call *call, bool remove, const char *key)
{
    struct hf_store_change *change = &call->changes[call->count];

    snprintf(call->keys[call->count], sizeof call->keys[0], "%s", key);
    *change = (struct hf_store_change){.key = call->keys[call->count],
                                       .key_len = strlen(key),
                                       .value = call->value,
                                       .value_len = strlen(call->value),
                                       .remove = remove};
    call->count++;
}

static void make_call(struct call *call, int t, uint64_t n)
{
    struct hf_random random;
    char key[16];

    hf_random_init(&random, n * THREADS + (uint64_t)t);
    call->count = 0;
    snprintf(call->value, sizeof call->value, "%d.%llu", t,
             (unsigned long long)n);
    switch (n % KINDS) {
    case 0: /* a single put */
        snprintf(key, sizeof key, "own%d", t);
        add(call, false, key);
        break;
    case 1: /* a key that comes and goes */
        snprintf(key, sizeof key, "now%d", t);
        add(call, n / KINDS % 2 == 1, key);
        break;
    case 2: /* a group of this thread's */
        for (int half = 0; half < 2; half++) {
            snprintf(key, sizeof key, "group%d.%d", t, half);
            add(call, false, key);
        }
        break;
    default: /* pairs that all threads share */
        for (int i = 0; i < 3; i++) {
            int pair = (int)hf_random_below(&random, PAIRS);
            for (int half = 0; half < 2; half++) {
                snprintf(key, sizeof key, "pair%d.%d", pair, half);
                add(call, false, key);
            }
        }
    }
}

/* What the calls 1 .. n left in the key of this kind; "" for nothing. */
static void expected(char out[24], int t, uint64_t n, unsigned kind)
{
    struct call call;

    while (n > 0 && n % KINDS != kind)
        n--;
    out[0] = 0;
    if (n == 0)
        return;
    make_call(&call, t, n);
    if (!call.changes[0].remove)
        memcpy(out, call.value, sizeof call.value);
}

/* ---- The child that puts. ---- */

static void fatal(void *context, enum hf_status why,
                  const struct hf_store_change *group, size_t count)
{
    (void)context, (void)group, (void)count;
    snprintf(shared->text, sizeof shared->text, "dead: %s",
             hf_status_text(why));
    _exit(BAD_STORE);
}

static enum hf_status open_store(struct hf_store *store)
{
    struct hf_store_sqlite_opts sqlite = {.path = test.path, .relaxed = true};
    struct hf_store_postgres_opts postgres = {.conninfo = test.conninfo,
                                              .writer = "kill"};

    return test.conninfo == NULL ? hf_store_sqlite_open(store, &sqlite)
                                 : hf_store_postgres_open(store, &postgres);
}

static struct hf_writebehind *open_behind(struct hf_store *store)
{
    struct hf_writebehind *behind;
    struct hf_writebehind_opts opts = {.store = store,
                                       .dead = fatal,
                                       .batch_max = 50,
                                       .dirty_max = 200,
                                       .age_ns = 2000000,
                                       .pause_max_ns = 50000000,
                                       .log_dir = test.folder,
                                       .segment_bytes = 16384,
                                       .log_bytes = 1048576};
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);
    enum hf_status status;

    do /* the server may be away */
        status = open_store(store);
    while (hf_store_may_retry(status) &&
           hf_clock_now_ns(hf_clock_system()) < deadline_ns);
    if (status == HF_OK)
        status = hf_writebehind_open(&behind, &opts);
    if (status == HF_OK)
        return behind;
    snprintf(shared->text, sizeof shared->text, "open: %s",
             hf_status_text(status));
    _exit(BAD_OPEN);
}

struct putter {
    struct hf_writebehind *behind;
    int index;
};

static void *putter_main(void *context)
{
    struct putter *self = context;
    uint64_t n =
        hf_u64_load(&shared->acknowledged[self->index], __ATOMIC_RELAXED);
    struct call call;

    for (;;) {
        n++;
        make_call(&call, self->index, n);
        hf_u64_store(&shared->tried[self->index], n, __ATOMIC_SEQ_CST);
        if (hf_writebehind_put_all(self->behind, call.changes, call.count,
                                   HF_FOREVER) != HF_OK)
            _exit(BAD_STORE);
        hf_u64_store(&shared->acknowledged[self->index], n, __ATOMIC_SEQ_CST);
    }
}

static void put_for_ever(void)
{
    static struct putter putters[THREADS];
    static pthread_t threads[THREADS];
    static struct hf_store store;
    struct hf_writebehind *behind = open_behind(&store);

    for (int i = 0; i < THREADS; i++) {
        putters[i] = (struct putter){behind, i};
        if (pthread_create(&threads[i], NULL, putter_main, &putters[i]) != 0)
            _exit(BAD_OPEN);
    }
    pthread_join(threads[0], NULL);
}

/* ---- The child that looks. ---- */

static sqlite3 *sqlite;
static PGconn *postgres;

static void look_begin(void)
{
    if (test.conninfo == NULL) {
        if (sqlite3_open(test.path, &sqlite) != SQLITE_OK)
            _exit(BAD_STORE);
        return;
    }
    /* All that is looked at is as of one moment: the database may still be
     * committing what the killed one sent last. */
    postgres = PQconnectdb(test.conninfo);
    PGresult *begun =
        PQexec(postgres, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    if (PQresultStatus(begun) != PGRES_COMMAND_OK)
        _exit(BAD_STORE);
    PQclear(begun);
}

static void look_end(void)
{
    sqlite3_close(sqlite);
    PQfinish(postgres);
    sqlite = NULL;
    postgres = NULL;
}

/* The value of a key in the database, "" if there is none. */
static void look_sqlite(const char *key, char out[24])
{
    sqlite3_stmt *statement;

    if (sqlite3_prepare_v2(sqlite, "SELECT value FROM holdfast WHERE key = ?1",
                           -1, &statement, NULL) != SQLITE_OK)
        return; /* no table yet */
    sqlite3_bind_blob(statement, 1, key, (int)strlen(key), SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW)
        snprintf(out, 24, "%.*s", sqlite3_column_bytes(statement, 0),
                 (const char *)sqlite3_column_blob(statement, 0));
    sqlite3_finalize(statement);
}

static void look_postgres(const char *key, char out[24])
{
    const char *values[] = {key};
    const int lengths[] = {(int)strlen(key)};
    const int formats[] = {1};
    PGresult *result = PQexecParams(
        postgres, "SELECT value FROM holdfast WHERE key = $1::bytea", 1, NULL,
        values, lengths, formats, 1);

    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
        snprintf(out, 24, "%.*s", PQgetlength(result, 0, 0),
                 PQgetvalue(result, 0, 0));
    PQclear(result);
}

/* Key "name" a, or "name" a.b; b < 0: there is none. */
static void look(char out[24], const char *name, int a, int b)
{
    char key[32];

    if (b < 0)
        snprintf(key, sizeof key, "%s%d", name, a);
    else
        snprintf(key, sizeof key, "%s%d.%d", name, a, b);
    out[0] = 0;
    if (test.conninfo == NULL)
        look_sqlite(key, out);
    else
        look_postgres(key, out);
}

static void wrong(int code, const char *what, int index, const char *a,
                  const char *b)
{
    snprintf(shared->text, sizeof shared->text, "%s %d: \"%s\" \"%s\"", what,
             index, a, b);
    _exit(code);
}

/* Groups are whole, at any time. */
static void check_pairs(void)
{
    char a[24], b[24];

    for (int i = 0; i < PAIRS; i++) {
        look(a, "pair", i, 0);
        look(b, "pair", i, 1);
        if (strcmp(a, b) != 0)
            wrong(BAD_PAIR, "pair", i, a, b);
    }
    for (int t = 0; t < THREADS; t++) {
        look(a, "group", t, 0);
        look(b, "group", t, 1);
        if (strcmp(a, b) != 0)
            wrong(BAD_PAIR, "group", t, a, b);
    }
}

/* Number n of a value "t.n" of thread t; 0 for "". */
static uint64_t number_of(const char *value)
{
    const char *dot = strchr(value, '.');

    return dot == NULL ? 0 : strtoull(dot + 1, NULL, 10);
}

/* Nothing in the database is newer than what was tried. */
static void check_order(void)
{
    char own[24];

    for (int t = 0; t < THREADS; t++) {
        look(own, "own", t, -1);
        if (number_of(own) > hf_u64_load(&shared->tried[t], __ATOMIC_SEQ_CST))
            wrong(BAD_ORDER, "own", t, own, "");
    }
}

/* Is it what the first n calls of the thread made of it? */
static bool is_after(int t, uint64_t n, char found[3][24])
{
    char should[24];

    for (unsigned kind = 0; kind < 3; kind++) {
        expected(should, t, n, kind);
        if (strcmp(should, found[kind]) != 0)
            return false;
    }
    return true;
}

static void check_all(void)
{
    for (int t = 0; t < THREADS; t++) {
        uint64_t n = hf_u64_load(&shared->acknowledged[t], __ATOMIC_SEQ_CST);
        uint64_t tried = hf_u64_load(&shared->tried[t], __ATOMIC_SEQ_CST);
        char found[3][24], should[24];
        look(found[0], "own", t, -1);
        look(found[1], "now", t, -1);
        look(found[2], "group", t, 0);
        bool before = is_after(t, n, found);
        bool after = is_after(t, tried, found);
        expected(should, t, n, 0);
        if (!before && !after)
            wrong(BAD_LOST, "thread", t, found[0], should);
        /* The call that was on its way is repeated, unless it is there: then
         * doing it again would change nothing, either. */
    }
}

static void look_then_recover(void)
{
    struct hf_store store;
    struct hf_writebehind_stats stats;

    look_begin();
    check_pairs();
    check_order();
    look_end();
    struct hf_writebehind *behind = open_behind(&store);
    hf_writebehind_stats(behind, &stats);
    hf_u64_add(&shared->recovered, stats.recovered, __ATOMIC_RELAXED);
    if (hf_writebehind_flush(behind, HF_FOREVER) != HF_OK ||
        hf_writebehind_close(behind, HF_FOREVER) != HF_OK)
        _exit(BAD_STORE);
    hf_store_close(&store);
    look_begin();
    check_pairs();
    check_all();
    look_end();
}

/* ---- The parent. ---- */

static pid_t start(void (*body)(void))
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        body();
        _exit(GOOD);
    }
    return pid;
}

static uint64_t acknowledged(void)
{
    uint64_t sum = 0;

    for (int t = 0; t < THREADS; t++)
        sum += hf_u64_load(&shared->acknowledged[t], __ATOMIC_SEQ_CST);
    return sum;
}

static void check_exit(pid_t pid, bool killed, int round)
{
    int status;

    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != GOOD)
        test_fail(__FILE__, __LINE__, "round %d: child ended with %x: %s",
                  round, (unsigned)status, shared->text);
}

/* Lets it go on for a random while: so many calls, or so many looks. */
static void let_run(struct hf_random *random, pid_t pid)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);
    uint64_t until = acknowledged() + hf_random_below(random, 400);
    uint64_t looks = hf_random_below(random, 3000);
    bool by_calls = hf_random_below(random, 3) > 0;

    while (by_calls ? acknowledged() < until : looks-- > 0) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        if (waitpid(pid, NULL, WNOHANG) != 0)
            test_fail(__FILE__, __LINE__, "the child ended: %s", shared->text);
        sched_yield();
    }
}

static int kills(int usual)
{
    const char *asked = getenv("WRITEBEHIND_KILLS");
    const char *san = getenv("HOLDFAST_SAN");

    if (asked != NULL)
        return (int)strtol(asked, NULL, 10);
    return san != NULL && san[0] != 0 ? usual / 10 : usual;
}

static void begin(const char *conninfo)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    const char *folder = test_folder();
    snprintf(test.path, sizeof test.path, "%s/db", folder);
    snprintf(test.folder, sizeof test.folder, "%s/log", folder);
    test.conninfo = conninfo;
}

static void end(int rounds)
{
    uint64_t calls = acknowledged();
    uint64_t recovered = hf_u64_load(&shared->recovered, __ATOMIC_RELAXED);

    printf("%d kills, %llu calls acknowledged, %llu changes found in the log\n",
           rounds, (unsigned long long)calls, (unsigned long long)recovered);
    CHECK(calls > 0 && recovered > 0);
    munmap(shared, sizeof *shared);
}

TEST(sqlite_has_all_that_was_acknowledged_after_every_kill)
{
    struct hf_random random;
    int rounds = kills(120);

    hf_random_init(&random, test_seed());
    begin(NULL);
    for (int round = 0; round < rounds; round++) {
        pid_t pid = start(put_for_ever);
        let_run(&random, pid);
        kill(pid, SIGKILL);
        check_exit(pid, true, round);
        pid = start(look_then_recover);
        /* Recovery is killed now and then, too. */
        bool again = hf_random_below(&random, 4) == 0;
        if (again) {
            for (uint64_t n = hf_random_below(&random, 2000); n > 0; n--)
                sched_yield();
            kill(pid, SIGKILL);
        }
        check_exit(pid, again, round);
        if (again)
            check_exit(start(look_then_recover), false, round);
    }
    end(rounds);
}

TEST(postgres_has_all_that_was_acknowledged_after_every_kill)
{
    struct test_postgres *server = test_postgres_start(NULL);
    struct hf_random random;
    int rounds = kills(20);

    hf_random_init(&random, test_seed());
    begin(server->conninfo);
    for (int round = 0; round < rounds; round++) {
        pid_t pid = start(put_for_ever);
        let_run(&random, pid);
        if (round % 4 == 3) { /* the server, under load; it comes back */
            test_postgres_kill(server);
            test_postgres_restart(server);
            let_run(&random, pid);
        }
        kill(pid, SIGKILL);
        check_exit(pid, true, round);
        check_exit(start(look_then_recover), false, round);
    }
    end(rounds);
    test_postgres_end(server);
}
