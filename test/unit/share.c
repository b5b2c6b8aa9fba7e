/* share.c - tests of how much of the requests one address may fill. */
#include "server/share.h"

#include "server/server.h"
#include "support/clock.h"
#include "support/test.h"

TEST_ONE_THREAD;

#define EIGHTH_NS UINT64_C(1000000000)

static struct server server;
static struct test_clock hands;
static const struct hf_bytes ann = {"ann", 3};
static const struct hf_bytes bob = {"bob", 3};

/* Five of ten requests for one, kept for eight seconds. */
static void start(void)
{
    server = (struct server){.config = config_default()};
    hands = (struct test_clock){.now_ns = 100 * EIGHTH_NS};
    server.clock = test_clock(&hands);
    server.config.bounds.requests_max = 10;
    server.config.bounds.request_keep_ms = 8000;
    CHECK_EQ(server.config.requests_share, 50);
    CHECK_EQ(shares_open(&server.shares), HF_OK);
}

static void ask(struct hf_bytes who, int count, bool success)
{
    while (count-- > 0) {
        share_take(&server, who);
        share_settle(&server, who, success);
    }
}

TEST(what_is_on_its_way_counts_and_what_failed_does_not)
{
    start();
    CHECK(!share_is_spent(&server, ann));
    ask(ann, 100, false);
    CHECK(!share_is_spent(&server, ann));
    ask(ann, 4, true);
    CHECK(!share_is_spent(&server, ann));
    share_take(&server, ann);
    CHECK(share_is_spent(&server, ann));
    CHECK(!share_is_spent(&server, bob));
    share_settle(&server, ann, false);
    CHECK(!share_is_spent(&server, ann));
    ask(ann, 1, true);
    CHECK(share_is_spent(&server, ann));
    shares_clear(&server.shares);
    CHECK(!share_is_spent(&server, ann));
    shares_close(&server.shares);
}

/* One success a second: each is forgotten eight to nine seconds later. */
TEST(successes_of_all_eighths_are_summed_up_and_forgotten_one_by_one)
{
    start();
    for (int i = 0; i < 5; i++) {
        CHECK(!share_is_spent(&server, ann));
        ask(ann, 1, true);
        if (i < 4)
            test_clock_advance(&hands, EIGHTH_NS);
    }
    for (int i = 4; i < 9; i++) {
        CHECK(share_is_spent(&server, ann));
        test_clock_advance(&hands, EIGHTH_NS);
    }
    CHECK(!share_is_spent(&server, ann)); /* the first is gone */
    ask(ann, 1, true);
    CHECK(share_is_spent(&server, ann));
    test_clock_advance(&hands, EIGHTH_NS); /* and the second */
    CHECK(!share_is_spent(&server, ann));
    ask(ann, 1, true);
    CHECK(share_is_spent(&server, ann));
    test_clock_advance(&hands, 8 * EIGHTH_NS);
    shares_tend(&server);
    CHECK_EQ(hf_index_count(&server.shares.clients), 1);
    test_clock_advance(&hands, EIGHTH_NS);
    CHECK(!share_is_spent(&server, ann));
    shares_tend(&server);
    CHECK_EQ(hf_index_count(&server.shares.clients), 0);
    shares_close(&server.shares);
}

TEST(a_share_is_rounded_down_and_one_at_least)
{
    static const struct {
        uint64_t requests_max;
        uint64_t percent;
        int most;
    } rows[] = {{10, 50, 5}, {11, 50, 5}, {1, 1, 1}, {199, 1, 1},
                {200, 1, 2}, {7, 100, 7}, {3, 99, 2}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start();
        server.config.bounds.requests_max = rows[i].requests_max;
        server.config.requests_share = rows[i].percent;
        ask(ann, rows[i].most - 1, true);
        CHECK(!share_is_spent(&server, ann));
        ask(ann, 1, true);
        CHECK(share_is_spent(&server, ann));
        shares_close(&server.shares);
    }
}
