/* lease.c - tests of when a lease is renewed, warned about and given up. */
#include "cli/lease.h"

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
