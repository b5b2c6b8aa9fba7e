/* crash.c - kill -9 under load, restart, and was everybody told the truth?
 * tests: also under sanitizers
 *
 * Every round on the same folder: several connections ask for locks (shared,
 * with permits, in sets and sessions, too), stock, reservations and groups, the
 * server is killed at a random moment and started again. What nobody answered
 * is asked about, requests are repeated, and everything that there is is read.
 * All calls and answers of all rounds are one history, which the checker judges
 * at the end: nothing acknowledged is lost, numbers grow, sums agree
 * (history/README.md has the rules).
 *
 * One promise is judged here, as only the wire knows the order: one
 * connection's commands are carried out in order, so of those without an
 * answer none is there that was sent after one that is not.
 *
 * CRASH_ROUNDS sets the number of rounds, TEST_SEED what is asked in them,
 * CRASH_HISTORY a file to keep the history in.
 */
#include <glob.h>
#include <inttypes.h>
#include <signal.h>

#include "base/memory.h"
#include "holdfast/clock.h"
#include "support/history.h"
#include "support/load.h"
#include "support/server.h"
#include "support/test.h"

#define SEGMENT_BYTES  1048576
#define SNAPSHOT_BYTES 4194304
#define ENOUGH         20000 /* answers, to have met what is rare */

struct crash {
    struct load load;
    struct test_server server;
    struct test_server_opts opts;
    struct test_wire wire;
    struct hf_random random;
    int round;
    uint64_t told;
    uint64_t unanswered;
};

/* Kept across tests: a failed one jumps out of everything. */
static struct crash *crash;

#define ASK(...) test_load_ask(&crash->load, &crash->wire, __VA_ARGS__)

static void connect_test(void)
{
    test_server_connect(&crash->server, &crash->wire);
    crash->load.client++;
    test_load_mark(&crash->load, crash->load.client, HISTORY_OPEN);
}

static void close_test(void)
{
    test_wire_close(&crash->wire);
    test_load_mark(&crash->load, crash->load.client, HISTORY_CLOSED);
}

/* Is what the command made there? The second word is its name. */
static bool is_there(const struct load_op *op)
{
    const char *name = strchr(op->text, ' ') + 1;
    int len = (int)strcspn(name, " ");
    struct hf_bytes reply = op->object == 0 ? ASK("RESERVATION %.*s", len, name)
                                            : ASK("LOCKINFO %.*s", len, name);

    return !test_is_error(reply, "NOTFOUND");
}

static void check_order(const struct load_worker *worker)
{
    const struct load_op *missing = NULL;

    for (int i = 0; i < worker->flight_count; i++) {
        const struct load_op *op = &worker->flight[i];
        if (op->kind != LOAD_TRACE)
            continue;
        bool there = is_there(op);
        if (there && missing != NULL)
            test_fail(__FILE__, __LINE__,
                      "round %d: \"%s\" is there, but not \"%s\" before it",
                      crash->round, op->text, missing->text);
        if (!there && missing == NULL)
            missing = op;
    }
}

/* What was asked without an answer, and what was answered, once more. */
static void repeat(const struct load_worker *worker)
{
    for (int i = 0; i < worker->flight_count; i++) {
        if (strstr(worker->flight[i].text, " REQ ") != NULL &&
            worker->flight[i].kind != LOAD_GROUP)
            ASK("%s", worker->flight[i].text);
    }
    for (int i = 0; worker->group[0][0] != '\0' && i < LOAD_GROUPED; i++)
        ASK("%s", worker->group[i]);
    for (int i = 0; i < LOAD_REPEATS; i += 4) {
        if (worker->repeats[i][0] != '\0')
            ASK("%s", worker->repeats[i]);
    }
}

static void read_all(void)
{
    for (int i = 0; i < LOAD_LOCKS; i++)
        ASK("LOCKINFO lock-%d", i);
    for (int i = 0; i < LOAD_SKUS; i++)
        ASK("STOCK GET sku-%d", i);
    for (int i = 0; i < LOAD_WORKERS; i++) {
        const struct load_worker *worker = &crash->load.workers[i];
        ASK("STOCK GET own-%d", i);
        for (int j = 0; j < LOAD_IDS; j++) {
            if (worker->ids[j][0] != '\0')
                ASK("RESERVATION %s", worker->ids[j]);
        }
    }
    ASK("STOCK GET trace");
    ASK("STOCK GET sku-0 sku-1 sku-2 sku-3 sku-4 sku-5 sku-6 sku-7");
}

static void look(void)
{
    connect_test();
    read_all();
    for (int i = 0; i < LOAD_WORKERS; i++) {
        const struct load_worker *worker = &crash->load.workers[i];
        crash->unanswered += (uint64_t)worker->flight_count;
        check_order(worker);
        repeat(worker);
    }
    close_test();
}

/* Starts it; now and then after a start that was killed before it was ready. */
static void start(void)
{
    test_load_mark(&crash->load, 0, HISTORY_START);
    if (hf_random_below(&crash->random, 8) == 0) {
        uint64_t wait_ns = hf_random_below(&crash->random, 20000000);
        test_server_launch(&crash->server, &crash->opts);
        uint64_t end = hf_clock_now_ns(hf_clock_system()) + wait_ns;
        while (hf_clock_now_ns(hf_clock_system()) < end)
            ;
        test_server_kill(&crash->server);
    }
    test_server_start(&crash->server, &crash->opts);
}

static void burst(void)
{
    struct load *load = &crash->load;

    load->port = crash->server.port;
    load->pid = crash->server.pid;
    load->target = hf_random_below(&crash->random, 1200);
    load->linger_ns = hf_random_below(&crash->random, 300000);
    test_load_run(load);
    test_server_signal(&crash->server, SIGKILL);
    CHECK_EQ(test_server_end(&crash->server), 128 + SIGKILL);
    test_load_mark(load, 0, HISTORY_CRASH);
    crash->told += atomic_load(&load->told);
}

/* What is left must be sound, and the rounds must have met snapshots and all
 * kinds of commands. */
static void check_folder(const char *dir)
{
    const char *verify[] = {"verify", dir, NULL};
    char pattern[512];
    glob_t found;
    struct hf_buf said = {0};
    int status = test_holdfast(&said, verify);
    uint64_t refusals = 0;

    if (status != 0)
        test_fail(__FILE__, __LINE__, "verify ended with %d: %s", status,
                  said.data);
    hf_buf_destroy(&said);
    if (crash->told < ENOUGH)
        return;
    for (int kind = 0; kind < LOAD_KINDS; kind++) {
        uint64_t answers = 0;
        for (int i = 0; i < LOAD_WORKERS; i++)
            answers += crash->load.workers[i].answers[kind];
        CHECK(answers > 0);
    }
    for (int i = 0; i < LOAD_WORKERS; i++)
        refusals += crash->load.workers[i].refusals;
    CHECK(refusals > 0);
    snprintf(pattern, sizeof pattern, "%s/snapshot-*", dir);
    CHECK_EQ(glob(pattern, 0, NULL, &found), 0);
    globfree(&found);
}

static void check_history(const char *durability)
{
    static struct history_report report;
    const char *path = getenv("CRASH_HISTORY");
    char error[HISTORY_ERROR_MAX];

    if (path != NULL)
        CHECK_EQ(test_save_history(crash->load.history, path, error), HF_OK);
    CHECK_EQ(history_check(crash->load.history, NULL, &report), HF_OK);
    printf("%s: %d rounds, %" PRIu64 " answered, %" PRIu64
           " unanswered; checked %" PRIu64 " calls, %" PRIu64
           " grants, %" PRIu64 " reservations, %" PRIu64 " reads\n",
           durability, crash->round, crash->told, crash->unanswered,
           report.calls, report.grants, report.reservations, report.reads);
    if (report.violations == 0) {
        CHECK(report.calls > 0 && report.reads > 0);
        return;
    }
    history_story(crash->load.history, &report, 0, stdout);
    test_fail(__FILE__, __LINE__, "%" PRIu64 " violations, the first: %s: %s",
              report.violations, report.found[0].rule, report.found[0].text);
}

static int rounds(int usual)
{
    const char *text = getenv("CRASH_ROUNDS");
    uint64_t count = test_is_sanitized() ? 30 : 200;

    if (text != NULL)
        (void)hf_parse_u64(hf_bytes_text(text), &count);
    int part = (int)(count * (uint64_t)usual / 200);
    return part > 0 ? part : 1;
}

static void prepare(const char *durability)
{
    if (crash != NULL)
        test_load_destroy(&crash->load);
    hf_free(crash);
    crash = hf_alloc_zeroed(sizeof *crash);
    CHECK(crash != NULL);
    crash->opts = (struct test_server_opts){.dir = test_folder(),
                                            .durability = durability,
                                            .segment_bytes = SEGMENT_BYTES,
                                            .snapshot_bytes = SNAPSHOT_BYTES};
    hf_random_init(&crash->random, test_seed());
    test_load_init(&crash->load, test_seed() * 1000);
    test_load_mark(&crash->load, 0, HISTORY_START);
    test_server_start(&crash->server, &crash->opts);
    connect_test();
    for (int i = 0; i < LOAD_SKUS; i++)
        CHECK_DONE(ASK("STOCK SET sku-%d %d", i, LOAD_STOCK));
    for (int i = 0; i < LOAD_WORKERS; i++)
        CHECK_DONE(ASK("STOCK SET own-%d 1", i));
    CHECK_DONE(ASK("STOCK SET trace 1000000"));
    close_test();
}

static void run(const char *durability, int count)
{
    prepare(durability);
    for (crash->round = 0; crash->round < count; crash->round++) {
        burst();
        start();
        look();
    }
    CHECK_EQ(test_server_stop(&crash->server), 0);
    check_history(durability);
    check_folder(crash->opts.dir);
    test_load_destroy(&crash->load);
    hf_free(crash);
    crash = NULL;
}

TEST(nothing_acknowledged_is_lost_with_durability_always)
{
    run("always", rounds(200));
}

TEST(nothing_handed_to_the_system_is_lost_with_durability_interval)
{
    run("interval", rounds(20));
}

TEST(nothing_handed_to_the_system_is_lost_with_durability_none)
{
    run("none", rounds(20));
}
