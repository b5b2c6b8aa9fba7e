/* stock_commit.c - the connection of a stock to PostgreSQL is cut at a commit:
 * before the server hears of it, or before the client hears of its answer. In
 * both cases it is found out what became of it, and done once.
 *
 * tests: also under sanitizers
 */
#include <arpa/inet.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "holdfast/stock_postgres.h"
#include "support/postgres.h"
#include "support/test.h"

/* ---- What lies between: it forwards, and cuts where it is told. ---- */

#define PAIRS_MAX 32

enum { CLIENT, SERVER };

static struct {
    int listener;
    uint16_t port;        /* where it listens */
    uint16_t server_port; /* where it connects to */
    int pairs[PAIRS_MAX][2];
    int pair_count;
    pthread_mutex_t mutex; /* of what is below */
    const char *cut_at;    /* bytes; NULL: nothing is cut */
    int cut_from;          /* by whom they are sent */
    int cuts;              /* so far */
    /* Its tickets are then gone; NULL: nobody's. */
    struct hf_stock *_Atomic after_cut;
    atomic_bool is_late; /* what is cut is kept, with the server's end */
    atomic_int late_end; /* -1: there is none */
    char late[1 << 16];
    size_t late_len;
    atomic_bool end;
    pthread_t thread;
} relay = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void cut_at(const char *bytes, int from)
{
    pthread_mutex_lock(&relay.mutex);
    relay.cut_at = bytes;
    relay.cut_from = from;
    relay.cuts = 0;
    pthread_mutex_unlock(&relay.mutex);
}

static int count_cuts(void)
{
    pthread_mutex_lock(&relay.mutex);
    int cuts = relay.cuts;
    pthread_mutex_unlock(&relay.mutex);
    return cuts;
}

/* Is it to be cut here? Once. */
static bool is_cut(const char *data, size_t len, int from)
{
    pthread_mutex_lock(&relay.mutex);
    bool is = relay.cut_at != NULL && relay.cut_from == from &&
              memmem(data, len, relay.cut_at, strlen(relay.cut_at) + 1) != NULL;
    if (is) {
        relay.cut_at = NULL;
        relay.cuts++;
        memcpy(relay.late, data, len);
        relay.late_len = len;
    }
    pthread_mutex_unlock(&relay.mutex);
    return is;
}

/* The server gets after all what was cut; returns when it has ended. */
static void deliver_late(void)
{
    char data[4096];

    CHECK(relay.late_end >= 0);
    pthread_mutex_lock(&relay.mutex);
    (void)send(relay.late_end, relay.late, relay.late_len, MSG_NOSIGNAL);
    pthread_mutex_unlock(&relay.mutex);
    shutdown(relay.late_end, SHUT_WR);
    while (read(relay.late_end, data, sizeof data) > 0)
        ;
    close(relay.late_end);
    relay.is_late = false;
    relay.late_end = -1;
}

static void drop(int pair)
{
    close(relay.pairs[pair][CLIENT]);
    if (relay.is_late && relay.late_end < 0)
        relay.late_end = relay.pairs[pair][SERVER];
    else
        close(relay.pairs[pair][SERVER]);
    relay.pair_count--;
    memcpy(relay.pairs[pair], relay.pairs[relay.pair_count],
           sizeof relay.pairs[pair]);
}

static struct sockaddr_in address(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static void take_client(void)
{
    struct sockaddr_in at = address(relay.server_port);
    int client = accept(relay.listener, NULL, NULL);
    int server = socket(AF_INET, SOCK_STREAM, 0);

    if (client < 0 || server < 0 || relay.pair_count == PAIRS_MAX ||
        connect(server, (struct sockaddr *)&at, sizeof at) != 0)
        abort();
    relay.pairs[relay.pair_count][CLIENT] = client;
    relay.pairs[relay.pair_count++][SERVER] = server;
}

/* False: the pair is over. */
static bool forward(int pair, int from)
{
    static char data[1 << 16];
    ssize_t got = read(relay.pairs[pair][from], data, sizeof data);

    if (got <= 0 || is_cut(data, (size_t)got, from))
        return false;
    for (ssize_t sent = 0; sent < got;) {
        ssize_t more = send(relay.pairs[pair][!from], data + sent,
                            (size_t)(got - sent), MSG_NOSIGNAL);
        if (more <= 0)
            return false;
        sent += more;
    }
    return true;
}

static void *run_relay(void *context)
{
    struct pollfd fds[1 + 2 * PAIRS_MAX];

    (void)context;
    while (!relay.end) {
        int pairs = relay.pair_count;
        fds[0] = (struct pollfd){.fd = relay.listener, .events = POLLIN};
        for (int i = 0; i < 2 * pairs; i++)
            fds[1 + i] = (struct pollfd){.fd = relay.pairs[i / 2][i % 2],
                                         .events = POLLIN};
        (void)poll(fds, (nfds_t)(1 + 2 * pairs), 10);
        for (int i = pairs - 1; i >= 0; i--)
            for (int from = CLIENT; from <= SERVER; from++)
                if (fds[1 + 2 * i + from].revents != 0 && !forward(i, from)) {
                    if (count_cuts() > 0 && relay.after_cut != NULL)
                        (void)hf_stock_set(relay.after_cut, "ticket", 0);
                    relay.after_cut = NULL;
                    drop(i);
                    break;
                }
        if (fds[0].revents != 0)
            take_client();
    }
    while (relay.pair_count > 0)
        drop(0);
    return NULL;
}

static void begin_relay(uint16_t server_port)
{
    struct sockaddr_in at = address(0);
    socklen_t len = sizeof at;

    relay.server_port = server_port;
    relay.listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(relay.listener >= 0);
    CHECK_EQ(bind(relay.listener, (struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQ(listen(relay.listener, 8), 0);
    CHECK_EQ(getsockname(relay.listener, (struct sockaddr *)&at, &len), 0);
    relay.port = ntohs(at.sin_port);
    relay.end = false;
    relay.late_end = -1;
    relay.after_cut = NULL;
    CHECK_EQ(pthread_create(&relay.thread, NULL, run_relay, NULL), 0);
}

static void end_relay(void)
{
    relay.end = true;
    pthread_join(relay.thread, NULL);
    close(relay.listener);
}

/* ---- Stocks behind it. ---- */

static struct test_postgres *server;
static struct hf_stock *stock;

static char schema[16];

static void begin(enum hf_stock_strategy strategy)
{
    static int count;
    char conninfo[256];

    if (server == NULL)
        server = test_postgres_start(NULL);
    begin_relay(server->port);
    snprintf(conninfo, sizeof conninfo,
             "%s port=%u sslmode=disable gssencmode=disable", server->conninfo,
             relay.port);
    snprintf(schema, sizeof schema, "s%d", count++);
    CHECK_EQ(
        hf_stock_postgres_open(
            &stock, &(struct hf_stock_postgres_opts){.conninfo = conninfo,
                                                     .schema = schema,
                                                     .strategy = strategy,
                                                     .connections = 1,
                                                     .timeout_ms = 60000,
                                                     .lock_timeout_ms = 60000}),
        HF_OK);
    CHECK_EQ(hf_stock_set(stock, "ticket", 10), HF_OK);
}

static void end(void)
{
    hf_stock_close(stock);
    end_relay();
}

static void has(uint64_t available, uint64_t reserved, uint64_t sold)
{
    struct hf_stock_product found;

    CHECK_EQ(hf_stock_get(stock, "ticket", &found), HF_OK);
    CHECK_EQ(found.available, available);
    CHECK_EQ(found.reserved, reserved);
    CHECK_EQ(found.sold, sold);
}

/* Every kind of change, with a cut in each. */
static void change_all(const char *bytes, int from)
{
    struct hf_stock_item item = {"ticket", 2};
    struct hf_stock_answer answer;
    struct hf_stock_postgres_stats stats;
    int cuts = 0;

    cut_at(bytes, from);
    CHECK_EQ(hf_stock_add(stock, "ticket", 5), HF_OK);
    cuts += count_cuts();
    has(15, 0, 0);
    cut_at(bytes, from);
    CHECK_EQ(hf_stock_reserve(stock, "a", &item, 1, 0, &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_PENDING);
    cuts += count_cuts();
    cut_at(NULL, from);
    CHECK_EQ(hf_stock_reserve(stock, "b", &item, 1, 0, &answer), HF_OK);
    has(11, 4, 0);
    cut_at(bytes, from);
    CHECK_EQ(hf_stock_confirm(stock, "a", &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_CONFIRMED);
    cuts += count_cuts();
    cut_at(bytes, from);
    CHECK_EQ(hf_stock_cancel(stock, "b", NULL), HF_OK);
    cuts += count_cuts();
    has(13, 0, 2);
    hf_stock_postgres_stats(stock, &stats);
    CHECK(cuts >= 3);
    CHECK_EQ(stats.unknown, cuts);
    CHECK_EQ(stats.reconnects, cuts);
}

TEST(a_commit_whose_answer_is_lost_was_made)
{
    for (int i = 0; i < 3; i++) {
        begin((enum hf_stock_strategy)i);
        change_all("COMMIT", SERVER);
        end();
    }
}

TEST(a_commit_that_never_came_is_made_again)
{
    for (int i = 0; i < 3; i++) {
        begin((enum hf_stock_strategy)i);
        change_all("commit", CLIENT);
        end();
    }
}

TEST(a_statement_whose_answer_is_lost_is_found_by_its_reservation)
{
    struct hf_stock_item item = {"ticket", 2};
    struct hf_stock_answer answer;
    struct hf_stock_postgres_stats stats;

    begin(HF_STOCK_ATOMIC);
    cut_at("SELECT 1", SERVER);
    CHECK_EQ(hf_stock_reserve(stock, "a", &item, 1, 0, &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_PENDING);
    CHECK_EQ(count_cuts(), 1);
    has(8, 2, 0);
    cut_at("take", CLIENT);
    CHECK_EQ(hf_stock_reserve(stock, "b", &item, 1, 0, &answer), HF_OK);
    CHECK_EQ(count_cuts(), 1);
    has(6, 4, 0);
    hf_stock_postgres_stats(stock, &stats);
    CHECK_EQ(stats.unknown, 2);
    end();
}

/* Reservations that are over as soon as the database's clock has moved. */
static void reserve_what_expires(int count)
{
    struct hf_stock_item item = {"ticket", 1};
    struct hf_stock_answer answer = {.state = HF_STOCK_PENDING};
    char id[16] = "";

    for (int i = 0; i < count; i++) {
        snprintf(id, sizeof id, "e%d", i);
        CHECK_EQ(hf_stock_reserve(stock, id, &item, 1, 1, NULL), HF_OK);
    }
    while (answer.state == HF_STOCK_PENDING)
        CHECK_EQ(hf_stock_look(stock, id, &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_EXPIRED);
}

TEST(a_sweep_whose_commit_is_cut_gives_back_once)
{
    static const struct {
        const char *bytes;
        int from;
    } cuts[] = {{"COMMIT", SERVER}, {"commit", CLIENT}};
    struct hf_stock_postgres_stats stats;
    uint32_t count;

    for (int i = 0; i < 2; i++) {
        begin(HF_STOCK_PESSIMISTIC);
        CHECK_EQ(hf_stock_postgres_sweep(stock, 0, NULL), HF_OK); /* connects */
        reserve_what_expires(3);
        cut_at(cuts[i].bytes, cuts[i].from);
        uint32_t total = 0;
        /* The session that was cut may hold its rows for a moment longer. */
        for (int j = 0; total < 3 && j < 100000; j++) {
            CHECK_EQ(hf_stock_postgres_sweep(stock, 0, &count), HF_OK);
            total += count;
        }
        CHECK_EQ(total, 3);
        CHECK_EQ(count_cuts(), 1);
        CHECK_EQ(hf_stock_postgres_sweep(stock, 0, &count), HF_OK);
        CHECK_EQ(count, 0);
        has(10, 0, 0);
        hf_stock_postgres_stats(stock, &stats);
        CHECK_EQ(stats.unknown, 1);
        CHECK_EQ(stats.expired, 3);
        end();
    }
}

static atomic_int waiting;

static void note_answer(struct hf_stock_request *request)
{
    (void)request;
    atomic_fetch_sub(&waiting, 1);
}

/* Of 40 changes in one batch each is made once, and each is told so. */
TEST(a_batch_whose_commit_is_cut_is_made_once)
{
    struct hf_stock_request requests[40];

    for (int i = 0; i < 3; i++) {
        begin((enum hf_stock_strategy)i);
        for (int j = 0; j < 40; j++)
            requests[j] = (struct hf_stock_request){.call = HF_STOCK_ADD,
                                                    .name = "ticket",
                                                    .units = 1,
                                                    .done = note_answer};
        cut_at("COMMIT", SERVER);
        waiting = 40;
        CHECK_EQ(hf_stock_submit(stock, requests, 40), HF_OK);
        while (waiting > 0)
            sched_yield();
        for (int j = 0; j < 40; j++)
            CHECK_EQ(requests[j].status, HF_OK);
        CHECK_EQ(count_cuts(), 1);
        has(50, 0, 0);
        end();
    }
}

/* Refused after its connection was lost, it must not be carried out then. */
TEST(a_statement_that_comes_too_late_does_nothing)
{
    struct hf_stock_item item = {"ticket", 2};
    struct hf_stock_answer answer;
    struct hf_stock *other;

    begin(HF_STOCK_ATOMIC);
    CHECK_EQ(hf_stock_postgres_open(
                 &other,
                 &(struct hf_stock_postgres_opts){.conninfo = server->conninfo,
                                                  .schema = schema}),
             HF_OK);
    relay.is_late = true;
    relay.after_cut = other;
    cut_at("take", CLIENT);
    CHECK_EQ(hf_stock_reserve(stock, "a", &item, 1, 0, &answer), HF_EMPTY);
    CHECK_EQ(hf_stock_set(other, "ticket", 10), HF_OK);
    deliver_late();
    has(10, 0, 0);
    CHECK_EQ(hf_stock_look(stock, "a", &answer), HF_NOTFOUND);
    hf_stock_close(other);
    end();
}
