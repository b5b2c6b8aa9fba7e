/* lease.c - tests of when a lease is renewed, warned about and given up. */
#include "cli/lease.h"

#include <unistd.h>

#include "support/test.h"

#define MS ((uint64_t)1000000)

TEST(instants_come_in_order_and_before_the_end)
{
    static const uint64_t spans_ms[] = {100, 101, 300, 1000, 30000, 86400000};
    for (size_t i = 0; i < sizeof spans_ms / sizeof *spans_ms; i++) {
        struct lease lease = {0};
        uint64_t asked_ns = 777 * MS;
        uint64_t end_ns = asked_ns + spans_ms[i] * MS;
        lease_extend(&lease, asked_ns, spans_ms[i]);
        CHECK_EQ(lease.since_ns, asked_ns);
        CHECK(asked_ns < lease_renew_ns(&lease));
        CHECK(lease_renew_ns(&lease) < lease_warn_ns(&lease));
        CHECK(lease_warn_ns(&lease) < lease_kill_ns(&lease));
        CHECK(lease_kill_ns(&lease) < lease.safe_ns);
        CHECK(lease.safe_ns < end_ns);
        CHECK(end_ns - lease.safe_ns >= spans_ms[i] * MS / 100);
        CHECK(lease_renew_ns(&lease) <= asked_ns + spans_ms[i] * MS / 3);
    }
}

TEST(a_hold_without_time_is_over_at_once)
{
    struct lease lease = {0};
    lease_extend(&lease, 500, 0);
    CHECK_EQ(lease.safe_ns, 500);
    CHECK_EQ(lease_kill_ns(&lease), 500);
    lease_extend(&lease, 500, 1);
    CHECK_EQ(lease.safe_ns, 500);
}

TEST(an_absurd_time_from_the_server_does_not_wrap_round)
{
    struct lease lease = {0};
    lease_extend(&lease, 500, UINT64_MAX);
    CHECK(lease.safe_ns > 500);
    CHECK(lease.safe_ns <= 500 + LEASE_TTL_MAX_MS * MS);
}

/* Nobody listens at the address, so every try fails at once. */
TEST(without_a_server_it_asks_again_and_never_claims_to_be_renewed)
{
    struct lease lease = {.name = "a", .owner = "o", .ttl_ms = 3000};
    struct sockaddr_in *nowhere = (struct sockaddr_in *)&lease.target.address;
    nowhere->sin_family = AF_INET;
    nowhere->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    nowhere->sin_port = htons(1);
    lease.target.len = sizeof *nowhere;
    lease.client.fd = -1;
    lease_extend(&lease, 1000 * MS, 3000);
    uint64_t safe_ns = lease.safe_ns;
    uint64_t now_ns = 1000 * MS;

    CHECK_EQ(lease_wake_ns(&lease), lease_renew_ns(&lease));
    CHECK_EQ(lease_step(&lease, now_ns), HF_OK);
    CHECK_EQ(lease.client.fd, -1); /* too early to ask */
    int turns = 0;
    while (now_ns < lease_kill_ns(&lease)) {
        uint64_t wake_ns = lease_wake_ns(&lease);
        CHECK(wake_ns > now_ns);
        now_ns = wake_ns;
        CHECK_EQ(lease_step(&lease, now_ns), HF_OK);
        CHECK_EQ(lease.safe_ns, safe_ns);
        turns++;
    }
    CHECK(turns >= 3);
    CHECK(turns < 1000);
    client_close(&lease.client);
}

/* A server that speaks from a script: what it says, and what it was asked. */
static int answer_with(struct lease *lease, const char *reply)
{
    int ends[2];

    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    lease->client = (struct client){.fd = ends[0], .reached = true};
    CHECK_EQ(write(ends[1], reply, strlen(reply)), (ssize_t)strlen(reply));
    return ends[1];
}

/* 30 s from 1,000 ms on; the renewal at 11 s says how much is left. */
static void renew_once(struct lease *lease, const char *reply)
{
    *lease = (struct lease){.name = "a", .owner = "o", .ttl_ms = 30000};
    lease_extend(lease, 1000 * MS, 30000);
    int server = answer_with(lease, reply);
    CHECK_EQ(lease_step(lease, 11000 * MS), HF_OK);
    close(server);
    client_close(&lease->client);
}

TEST(a_renewal_moves_all_instants)
{
    struct lease lease;
    renew_once(&lease, "%1\r\n$7\r\nsafe_ms\r\n:30000\r\n");
    CHECK_EQ(lease.since_ns, 11000 * MS);
    CHECK_EQ(lease.retry_ns, 0);
}

/* Revoked with a grace time of a second: the work is told to stop at once, and
 * is stopped before the grace time is over. */
TEST(an_end_that_stands_is_not_asked_away)
{
    struct lease lease;
    renew_once(&lease, "%1\r\n$7\r\nsafe_ms\r\n:1000\r\n");
    CHECK_EQ(lease.since_ns, 1000 * MS);
    CHECK(lease.safe_ns < 12000 * MS);
    CHECK(lease_warn_ns(&lease) <= 11000 * MS);
    CHECK(lease_kill_ns(&lease) < lease.safe_ns);
    CHECK(lease.retry_ns > 11300 * MS);
}

TEST(a_push_of_a_loss_calls_for_a_renewal_before_its_time)
{
    struct lease lease = {.name = "a", .owner = "o", .ttl_ms = 30000};
    char sent[200] = "";
    lease_extend(&lease, 1000 * MS, 30000);
    int server = answer_with(&lease, ">3\r\n$11\r\nlock_wanted\r\n$1\r\na\r\n"
                                     ":0\r\n");
    CHECK_EQ(lease_step(&lease, 2000 * MS), HF_OK);
    CHECK(read(server, sent, sizeof sent - 1) < 0);
    const char *lost = ">3\r\n$12\r\nlock_wounded\r\n$1\r\na\r\n:0\r\n";
    CHECK_EQ(write(server, lost, strlen(lost)), (ssize_t)strlen(lost));
    CHECK_EQ(lease_step(&lease, 2001 * MS), HF_OK);
    CHECK(read(server, sent, sizeof sent - 1) > 0);
    CHECK(strstr(sent, "RENEW") != NULL);
    lost = "-LOST it is gone\r\n";
    CHECK_EQ(write(server, lost, strlen(lost)), (ssize_t)strlen(lost));
    CHECK_EQ(lease_step(&lease, 2002 * MS), HF_CLOSED);
    close(server);
    client_close(&lease.client);
}

/* The request that a kind sends, as RESP. */
static const struct {
    enum lease_kind kind;
    const char *renew;
    const char *give;
} kinds[] = {
    {LEASE_LOCK,
     "*5\r\n$5\r\nRENEW\r\n$1\r\na\r\n$1\r\n7\r\n$3\r\nTTL\r\n$5\r\n30000\r\n",
     "*3\r\n$6\r\nUNLOCK\r\n$1\r\na\r\n$1\r\n7\r\n"},
    {LEASE_SET,
     "*4\r\n$8\r\nRENEWSET\r\n$1\r\n7\r\n$3\r\nTTL\r\n$5\r\n30000\r\n",
     "*2\r\n$9\r\nUNLOCKSET\r\n$1\r\n7\r\n"},
    {LEASE_ELECTION,
     "*5\r\n$5\r\nRENEW\r\n$1\r\na\r\n$1\r\n7\r\n$3\r\nTTL\r\n$5\r\n30000\r\n",
     "*3\r\n$6\r\nRESIGN\r\n$1\r\na\r\n$1\r\n7\r\n"},
    {LEASE_SESSION, "*3\r\n$7\r\nSESSION\r\n$4\r\nKEEP\r\n$1\r\n7\r\n",
     "*3\r\n$7\r\nSESSION\r\n$5\r\nCLOSE\r\n$1\r\n7\r\n"},
};

TEST(each_kind_is_renewed_and_given_back_by_its_own_words)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct lease lease = {
            .kind = kinds[i].kind, .name = "a", .ttl_ms = 30000, .token = 7};
        char sent[200] = "";
        lease_extend(&lease, 1000 * MS, 30000);
        int server = answer_with(&lease, "");
        CHECK_EQ(lease_step(&lease, 11000 * MS), HF_OK);
        CHECK(read(server, sent, sizeof sent - 1) > 0);
        CHECK(strcmp(sent, kinds[i].renew) == 0);
        client_close(&lease.client);
        close(server);

        lease.asked_ns = 0;
        server = answer_with(&lease, "+OK\r\n");
        memset(sent, 0, sizeof sent);
        CHECK_EQ(lease_release(&lease), HF_OK);
        CHECK(read(server, sent, sizeof sent - 1) > 0);
        CHECK(strcmp(sent, kinds[i].give) == 0);
        close(server);
        client_close(&lease.client);
    }
}

/* A session has no token and no safe_ms, but the same to tell by others. */
TEST(a_grant_is_read_by_the_fields_of_its_kind)
{
    static const struct {
        enum lease_kind kind;
        bool counting;
        const char *reply;
        uint64_t fence;
    } rows[] = {
        {LEASE_LOCK, false, "%2\r\n+token\r\n:9\r\n+safe_ms\r\n:30000\r\n", 9},
        {LEASE_LOCK, true, "%2\r\n+token\r\n:9\r\n+safe_ms\r\n:30000\r\n", 0},
        {LEASE_LOCK, false,
         "%3\r\n+token\r\n:9\r\n+safe_ms\r\n:30000\r\n+fence\r\n:8\r\n", 8},
        {LEASE_SESSION, false, "%2\r\n+session\r\n:9\r\n+ttl_ms\r\n:30000\r\n",
         9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lease lease = {.kind = rows[i].kind,
                              .counting = rows[i].counting,
                              .name = "a",
                              .ttl_ms = 30000};
        struct words request = {0};
        struct hf_bytes error;
        words_text(&request, "PING");
        int server = answer_with(&lease, rows[i].reply);
        CHECK_EQ(lease_take(&lease, &request, LEASE_FOREVER, &error), HF_OK);
        CHECK_EQ(lease.token, 9);
        CHECK_EQ(lease.fence, rows[i].fence);
        close(server);
        client_close(&lease.client);
    }
}

/* Refused, or not understood: the two are told apart. */
TEST(what_is_no_grant_is_no_lease)
{
    struct words request = {0};
    struct hf_bytes error = {0};

    words_text(&request, "PING");
    struct lease lease = {.name = "a", .ttl_ms = 30000};
    int server = answer_with(&lease, "-BUSY it is\r\n");
    CHECK_EQ(lease_take(&lease, &request, 0, &error), HF_FAILED);
    CHECK(lease_starts(error, "BUSY"));
    client_close(&lease.client);
    close(server);
    server = answer_with(&lease, "+OK\r\n");
    CHECK_EQ(lease_take(&lease, &request, 0, &error), HF_INVALID);
    client_close(&lease.client);
    close(server);
    server = answer_with(&lease, "HTTP/1.1 400 Bad Request\r\n");
    CHECK_EQ(lease_take(&lease, &request, 0, &error), HF_INVALID);
    client_close(&lease.client);
    close(server);
}
