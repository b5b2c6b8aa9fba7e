/* hold_joined.c - tests of WAITLIST: waits for stock without a connection. */
#include "support/starve.h"

/* One apple, which ann has until 5 seconds from now. */
static void one_apple(void)
{
    engine_start();
    engine_set("apple", 1);
    engine_reserve("a", "apple 1", 5000);
}

static const struct hold_out *join(const char *id, const char *more)
{
    return engine_do("WAITLIST JOIN apple 1 OWNER bob ID %s TTL 1000%s", id,
                     more);
}

TEST(an_offer_is_made_when_it_is_its_turn_and_expires_to_the_next)
{
    one_apple();
    EXPECT(join("b", ""), "OK id=b status=WAITING position=1");
    EXPECT(join("c", ""), "OK id=c status=WAITING position=2");
    engine_now_us += 7 * MS;
    const struct hold_out *out = engine_cancel("a", "");
    EXPECT_ANSWERS(out, "");
    EXPECT_EVENTS(out, "5 CANCELLED a; 6 OFFERED b");
    CHECK_EQ(out->events[1].age_us, 7 * MS);
    EXPECT_BEGINS(engine_reservation("b"),
                  "OK id=b status=PENDING expires_ms=1000");
    engine_now_us += 1000 * MS;
    EXPECT_EVENTS(engine_tick(), "7 RESERVATION_EXPIRED b; 8 OFFERED c");
    EXPECT_BEGINS(engine_confirm("c"), "OK id=c status=CONFIRMED");
    CHECK_ENGINE();
}

TEST(an_offer_is_made_at_once_if_there_is_stock_and_nobody_waits)
{
    engine_start();
    engine_set("apple", 2);
    const struct hold_out *out = join("b", "");
    EXPECT(out, "OK id=b status=PENDING expires_ms=1000 "
                "items=[{sku=apple quantity=1}]");
    EXPECT_EVENTS(out, "2 OFFERED b");
    CHECK(out->events[0].age_us == HOLD_NO_AGE); /* nobody waited */
    engine_do("RESERVE w ITEM apple 5 WAIT 1000");
    EXPECT(join("c", ""), "OK id=c status=WAITING position=2");
    EXPECT_BEGINS(engine_do("WAITLIST JOIN apple 1 OWNER eve PRIORITY 3"),
                  "OK id=");
    CHECK_ENGINE();
}

TEST(both_kinds_wait_in_one_queue)
{
    one_apple();
    join("b", "");
    engine_do("RESERVE c ITEM apple 1 TTL 1000 WAIT 9000");
    join("d", "");
    engine_now_us += 7 * MS;
    EXPECT(engine_do("WAITLIST LIST apple"),
           "OK waiters=[{id=b owner=bob quantity=1 priority=0 waited_ms=7 "
           "position=1 connected=0} {id=c owner= quantity=1 priority=0 "
           "waited_ms=7 position=2 connected=1} {id=d owner=bob quantity=1 "
           "priority=0 waited_ms=7 position=3 connected=0}] cursor=0");
    EXPECT(engine_do("WAITLIST LIST apple CURSOR 2 COUNT 1"),
           "OK waiters=[{id=c owner= quantity=1 priority=0 waited_ms=7 "
           "position=2 connected=1}] cursor=3");
    EXPECT(engine_do("WAITLIST LIST pear"), "NOTFOUND sku=pear");
    const struct hold_out *out = engine_add("apple", 3);
    CHECK_EQ(out->answer_count, 1);
    EXPECT_EVENTS(out, "6 STOCK_CHANGED apple; 7 OFFERED b; 8 RESERVED c; "
                       "9 OFFERED d");
    CHECK_ENGINE();
}

TEST(a_priority_is_shown_while_it_waits)
{
    one_apple();
    join("b", " PRIORITY 2");
    engine_do("RESERVE c ITEM apple 1 WAIT 9000 PRIORITY 1");
    EXPECT(engine_reservation("b"),
           "OK id=b status=WAITING expires_ms=0 items=[{sku=apple quantity=1}] "
           "owner=bob created_ms=1000000 ended_ms=0 reason= class= extends=0 "
           "priority=2");
    engine_reload();
    CHECK(strstr(engine_reply_text(engine_reservation("c")), " priority=1") !=
          NULL);
    engine_cancel("a", "");
    CHECK(strstr(engine_reply_text(engine_reservation("c")), "priority") ==
          NULL);
    CHECK_ENGINE();
}

TEST(a_question_about_who_waits_is_early_while_anything_is_due)
{
    one_apple();
    join("b", "");
    join("c", " WAIT 5000");
    engine_now_us += 4999 * MS;
    EXPECT_BEGINS(engine_reservation("c"), "OK id=c status=WAITING");
    engine_now_us += 1 * MS;
    EXPECT(engine_reservation("b"), "EARLY"); /* it has the apple */
    EXPECT(engine_reservation("c"), "EARLY"); /* it waits no more */
    engine_tick();
    EXPECT_BEGINS(engine_reservation("b"), "OK id=b status=PENDING");
    EXPECT(engine_reservation("c"), "NOTFOUND id=c");
    CHECK_ENGINE();
}

TEST(a_repeated_join_tells_the_position_and_changes_nothing)
{
    one_apple();
    join("b", "");
    join("c", "");
    uint64_t before = hold_digest(engine);
    EXPECT(join("c", ""), "OK id=c status=WAITING position=2");
    EXPECT(engine_do("WAITLIST JOIN apple 2 OWNER bob ID c"),
           "STATE id=c status=WAITING");
    EXPECT(engine_do("RESERVE c ITEM apple 1"), "STATE id=c status=WAITING");
    CHECK(hold_digest(engine) == before);
    EXPECT(join("a", ""), "OK id=a status=PENDING expires_ms=5000 "
                          "items=[{sku=apple quantity=1}]");
    CHECK_ENGINE();
}

TEST(who_leaves_lets_the_next_one_in)
{
    engine_start();
    engine_set("apple", 1);
    engine_do("WAITLIST JOIN apple 2 OWNER bob ID b");
    join("c", "");
    EXPECT(engine_do("WAITLIST LEAVE pear b"), "NOTFOUND id=b");
    EXPECT(engine_do("WAITLIST LEAVE apple x"), "NOTFOUND id=x");
    EXPECT_EVENTS(engine_do("WAITLIST LEAVE apple b"), "4 OFFERED c");
    EXPECT(engine_reservation("b"), "NOTFOUND id=b");
    EXPECT(engine_do("WAITLIST LEAVE apple c"), "STATE id=c status=PENDING");
    engine_do("RESERVE w ITEM apple 5 WAIT 1000");
    EXPECT(engine_do("WAITLIST LEAVE apple w"), "NOTFOUND id=w");
    CHECK_ENGINE();
}

TEST(it_stays_so_long_and_not_longer)
{
    one_apple();
    join("b", " WAIT 100");
    join("c", "");
    engine_now_us += 100 * MS;
    const struct hold_out *out = engine_tick();
    EXPECT_ANSWERS(out, "");
    EXPECT(engine_reservation("b"), "NOTFOUND id=b");
    EXPECT_EVENTS(engine_cancel("a", ""), "5 CANCELLED a; 6 OFFERED c");
    CHECK_ENGINE();
}

TEST(it_survives_restarts_and_images)
{
    one_apple();
    join("b", " PRIORITY 1");
    join("c", "");
    engine_do("RESERVE w ITEM apple 1 WAIT 1000");
    engine_restart(100);
    uint64_t before = hold_digest(engine);
    engine_reload();
    CHECK(hold_digest(engine) == before);
    CHECK_ENGINE();
    EXPECT(engine_do("WAITLIST LIST apple"),
           "OK waiters=[{id=c owner=bob quantity=1 priority=0 waited_ms=0 "
           "position=1 connected=0} {id=b owner=bob quantity=1 priority=1 "
           "waited_ms=0 position=2 connected=0}] cursor=0");
    EXPECT_EVENTS(engine_add("apple", 1), "106 STOCK_CHANGED apple; "
                                          "107 OFFERED c");
    EXPECT_ANSWERS(engine_flush(), ""); /* nobody is there to be told */
    CHECK_ENGINE();
}

TEST(a_ticket_of_one_who_is_not_connected_ends_nothing)
{
    one_apple();
    join("b", ""); /* 3 */
    EXPECT_ANSWERS(engine_abandon(3), "");
    EXPECT_BEGINS(engine_reservation("b"), "OK id=b status=WAITING");
    CHECK_ENGINE();
}

TEST(a_req_is_told_its_first_answer_again)
{
    one_apple();
    EXPECT(join("b", " REQ q"), "OK id=b status=WAITING position=1");
    engine_cancel("a", "");
    EXPECT(join("b", " REQ q"), "OK id=b status=WAITING position=1");
    EXPECT(join("b", " WAIT 9 REQ q"), "CONFLICT id=q");
    CHECK_ENGINE();
}

TEST(an_offer_needs_no_memory)
{
    struct hold_command c = {.kind = HOLD_WAITLIST_JOIN,
                             .owner = hf_bytes_text("an owner of some length"),
                             .request = hf_bytes_text("a request"),
                             .ttl_ms = 1000};

    engine_start();
    engine_set("apple", 0);
    c.now_us = engine_now_us;
    hold_add_item(&c, hf_bytes_text("apple"), 1);
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    struct hold_command add = {.kind = HOLD_STOCK_ADD,
                               .name = hf_bytes_text("apple"),
                               .now_us = engine_now_us,
                               .amount = 1};
    CHECK_EQ(starve(&add)->event_count, 2);
    CHECK_ENGINE();
}

TEST(records_that_are_none_are_refused)
{
    struct hold_command c = {.kind = HOLD_WAITLIST_JOIN,
                             .owner = hf_bytes_text("ann"),
                             .ttl_ms = 1000};
    struct hold_command out;
    char record[HOLD_RECORD_MAX];

    CHECK_EQ(hold_decode(hf_bytes(record, hold_encode(&c, record)), &out),
             HF_CORRUPT); /* no item */
    hold_add_item(&c, hf_bytes_text("apple"), 1);
    CHECK_EQ(hold_decode(hf_bytes(record, hold_encode(&c, record)), &out),
             HF_OK);
    hold_add_item(&c, hf_bytes_text("pear"), 1);
    CHECK_EQ(hold_decode(hf_bytes(record, hold_encode(&c, record)), &out),
             HF_CORRUPT);
    c.item_count = 1;
    c.items[0].quantity = 0;
    CHECK_EQ(hold_decode(hf_bytes(record, hold_encode(&c, record)), &out),
             HF_CORRUPT);
}
