/* hold_waitlist.c - tests of requests that wait for stock. */
#include "support/starve.h"

#define APPLE(id, quantity)                                                \
    "OK id=" id                                                            \
    " status=PENDING expires_ms=1000 items=[{sku=apple quantity=" quantity \
    "}]"

/* One apple, which ann has until 5 seconds from now. */
static void one_apple(void)
{
    engine_start();
    engine_set("apple", 1);
    engine_reserve("a", "apple 1", 5000);
}

static const struct hold_out *wait_for(const char *id, const char *items,
                                       const char *more)
{
    return engine_do("RESERVE %s %s TTL 1000 WAIT 4000%s", id, items, more);
}

TEST(what_is_cancelled_goes_to_the_first_who_waits_in_the_same_step)
{
    one_apple();
    EXPECT_BEGINS(wait_for("b", "ITEM apple 1", ""), "WAITING");
    CHECK_EQ(engine_last()->wait_ms, 4000);
    EXPECT_BEGINS(wait_for("c", "ITEM apple 1", ""), "WAITING");
    EXPECT(engine_get("apple"),
           "OK sku=apple total=1 available=0 reserved=1 sold=0 version=2 "
           "updated_ms=1000000 low=0 waiting=2 attributes={}");
    const struct hold_out *out = engine_cancel("a", "");
    EXPECT_BEGINS(out, "OK id=a status=CANCELLED");
    EXPECT_ANSWERS(out, "3:" APPLE("b", "1"));
    EXPECT_EVENTS(out, "5 CANCELLED a; 6 RESERVED b");
    EXPECT_BEGINS(engine_reservation("b"), "OK id=b status=PENDING");
    EXPECT_BEGINS(engine_reservation("c"), "OK id=c status=WAITING");
    CHECK_ENGINE();
}

TEST(what_expires_goes_to_the_next_at_its_instant)
{
    one_apple();
    engine_do("RESERVE b ITEM apple 1 TTL 1000 WAIT 9000");
    engine_now_us += 5000 * MS - 1;
    EXPECT_ANSWERS(engine_tick(), "");
    engine_now_us += 1;
    CHECK_EQ(hold_next_due_us(engine), engine_now_us);
    EXPECT_ANSWERS(engine_tick(), "3:" APPLE("b", "1"));
    CHECK_ENGINE();
}

TEST(a_wait_is_over_at_its_very_deadline)
{
    one_apple();
    engine_do("RESERVE b ITEM apple 1 TTL 1000 WAIT 5000");
    engine_now_us += 5000 * MS; /* a expires first, at the same instant */
    const struct hold_out *out = engine_tick();
    EXPECT_ANSWERS(out, "3:TIMEOUT sku=apple waited_ms=5000 waiting=0 "
                        "position=1");
    EXPECT_EVENTS(out, "4 RESERVATION_EXPIRED a");
    CHECK_ENGINE();
}

TEST(new_stock_goes_to_those_who_wait_in_their_order)
{
    one_apple();
    wait_for("b", "ITEM apple 2", "");
    wait_for("c", "ITEM apple 1", "");
    wait_for("d", "ITEM apple 3", "");
    EXPECT_ANSWERS(engine_add("apple", 1), ""); /* b comes first, wants two */
    EXPECT_ANSWERS(engine_set("apple", 4),
                   "3:" APPLE("b", "2") "; 4:" APPLE("c", "1"));
    EXPECT_ANSWERS(engine_add("apple", 3), "5:" APPLE("d", "3"));
    CHECK_ENGINE();
}

TEST(while_somebody_waits_others_are_short_of_what_is_free)
{
    engine_start();
    engine_set("apple", 3);
    wait_for("b", "ITEM apple 4", "");
    EXPECT_BEGINS(engine_reserve("c", "apple 1", 1000),
                  "SHORT sku=apple requested=1 available=3 waiting=1");
    EXPECT_BEGINS(engine_reserve("c", "apple 9", 1000),
                  "SHORT sku=apple requested=9 available=3 waiting=1");
    EXPECT_BEGINS(wait_for("c", "ITEM apple 1", ""), "WAITING");
    engine_now_us += 4000 * MS; /* b gives up, and c too */
    EXPECT_ANSWERS(engine_tick(),
                   "2:TIMEOUT sku=apple waited_ms=4000 waiting=1 position=1; "
                   "3:TIMEOUT sku=apple waited_ms=4000 waiting=0 position=1");
    EXPECT_BEGINS(engine_reserve("c", "apple 1", 1000), "OK id=c");
    CHECK_ENGINE();
}

TEST(a_wait_that_ends_in_front_lets_the_next_one_in)
{
    engine_start();
    engine_set("apple", 3);
    engine_do("RESERVE b ITEM apple 4 TTL 1000 WAIT 10");
    wait_for("c", "ITEM apple 1", "");
    engine_now_us += 10 * MS;
    EXPECT_ANSWERS(engine_tick(),
                   "2:TIMEOUT sku=apple waited_ms=10 waiting=1 position=1; "
                   "3:" APPLE("c", "1"));
    wait_for("d", "ITEM apple 4", "");
    wait_for("e", "ITEM apple 2", "");
    EXPECT_ANSWERS(engine_abandon(5), "6:" APPLE("e", "2"));
    CHECK_ENGINE();
}

TEST(priorities_come_first_and_then_age)
{
    one_apple();
    wait_for("b", "ITEM apple 1", " PRIORITY 2");
    wait_for("c", "ITEM apple 1", " PRIORITY 1");
    wait_for("d", "ITEM apple 1", " PRIORITY 1");
    wait_for("e", "ITEM apple 1", "");
    EXPECT_ANSWERS(
        engine_add("apple", 3),
        "6:" APPLE("e", "1") "; 4:" APPLE("c", "1") "; 5:" APPLE("d", "1"));
    EXPECT_BEGINS(wait_for("f", "ITEM apple 1", " PRIORITY 2"), "WAITING");
    engine_add("apple", 1);
    CHECK_ENGINE();
}

TEST(who_has_a_better_priority_takes_what_the_first_cannot_use_yet)
{
    engine_start();
    engine_set("apple", 1);
    wait_for("b", "ITEM apple 2", " PRIORITY 1");
    EXPECT_BEGINS(wait_for("c", "ITEM apple 1", " PRIORITY 1"), "WAITING");
    EXPECT(wait_for("d", "ITEM apple 1", ""), APPLE("d", "1"));
    CHECK_ENGINE();
}

TEST(several_products_are_had_all_at_once_or_not_at_all)
{
    engine_start();
    engine_set("apple", 1);
    engine_set("pear", 0);
    EXPECT_BEGINS(wait_for("b", "ITEM apple 1 ITEM pear 1", ""), "WAITING");
    EXPECT_BEGINS(wait_for("c", "ITEM apple 1", ""),
                  "WAITING"); /* b is first */
    EXPECT_BEGINS(engine_get("apple"),
                  "OK sku=apple total=1 available=1 reserved=0");
    EXPECT_BEGINS(wait_for("d", "ITEM pear 1", ""), "WAITING");
    const struct hold_out *out = engine_add("pear", 2);
    EXPECT_ANSWERS(out, "3:OK id=b status=PENDING expires_ms=1000 "
                        "items=[{sku=apple quantity=1} {sku=pear quantity=1}]; "
                        "5:OK id=d status=PENDING expires_ms=1000 "
                        "items=[{sku=pear quantity=1}]");
    EXPECT_ANSWERS(engine_cancel("b", ""), "4:" APPLE("c", "1"));
    CHECK_ENGINE();
}

TEST(one_who_is_first_in_one_queue_only_keeps_its_place)
{
    engine_start();
    engine_set("apple", 0);
    engine_set("pear", 0);
    wait_for("b", "ITEM apple 1", "");
    wait_for("c", "ITEM apple 1 ITEM pear 1", "");
    wait_for("d", "ITEM pear 1", "");
    EXPECT_ANSWERS(engine_add("pear", 1), "");
    EXPECT_ANSWERS(engine_add("apple", 1), "3:" APPLE("b", "1"));
    EXPECT_ANSWERS(engine_abandon(4), "5:OK id=d status=PENDING "
                                      "expires_ms=1000 "
                                      "items=[{sku=pear quantity=1}]");
    CHECK_ENGINE();
}

TEST(a_group_serves_once_after_its_last_command)
{
    one_apple();
    wait_for("b", "ITEM apple 1", "");
    const struct hold_out *out =
        engine_group(NULL, "CANCEL a; RESERVE c ITEM apple 1");
    EXPECT_BEGINS(out, "EXECABORT position=2"); /* b is first */
    EXPECT_ANSWERS(out, "");
    EXPECT_BEGINS(engine_reservation("a"), "OK id=a status=PENDING");
    out = engine_group(NULL, "CANCEL a; STOCK SET apple 3; STOCK GET apple");
    EXPECT_ANSWERS(out, "3:" APPLE("b", "1"));
    CHECK(strstr(engine_reply_text(out), "available=3 reserved=0") != NULL);
    CHECK_ENGINE();
}

TEST(an_id_that_waits_is_taken_and_cannot_be_confirmed)
{
    one_apple();
    wait_for("b", "ITEM apple 1", "");
    EXPECT(engine_reserve("b", "apple 1", 1000), "STATE id=b status=WAITING");
    EXPECT(engine_reserve("b", "apple 2", 1000), "STATE id=b status=WAITING");
    EXPECT(engine_confirm("b"), "STATE id=b status=WAITING");
    EXPECT(engine_cancel("b", ""), "STATE id=b status=WAITING");
    EXPECT(engine_extend("b", 5), "STATE id=b status=WAITING");
    EXPECT(engine_reservation("b"),
           "OK id=b status=WAITING expires_ms=0 items=[{sku=apple quantity=1}] "
           "owner= created_ms=1000000 ended_ms=0 reason= class= extends=0 "
           "priority=0");
    engine_now_us += 4000 * MS;
    engine_tick();
    EXPECT(engine_reservation("b"), "NOTFOUND id=b");
    CHECK_ENGINE();
}

TEST(a_repeated_req_takes_the_wait_over_and_is_told_its_end_again)
{
    one_apple();
    EXPECT_BEGINS(wait_for("*", "ITEM apple 1", " REQ q"), "WAITING"); /* 3 */
    wait_for("c", "ITEM apple 1", "");
    const struct hold_out *out = wait_for("*", "ITEM apple 1", " REQ q");
    EXPECT_BEGINS(out, "WAITING");
    CHECK_EQ(out->ticket, 5);
    EXPECT_ANSWERS(out, "3:MOVED");
    EXPECT_ANSWERS(engine_abandon(3), "");
    engine_reload();
    out = engine_cancel("a", "");
    CHECK_EQ(out->answer_count, 1); /* it kept its place */
    CHECK_EQ(out->answers[0].ticket, 5);
    EXPECT_BEGINS(wait_for("*", "ITEM apple 1", " REQ q"),
                  "OK id=000000YGJ00000000000000003 status=PENDING");
    CHECK_ENGINE();
}

TEST(a_timeout_is_kept_for_its_req)
{
    one_apple();
    wait_for("b", "ITEM apple 1", " REQ q");
    engine_now_us += 4000 * MS;
    engine_tick();
    EXPECT(wait_for("b", "ITEM apple 1", " REQ q"),
           "TIMEOUT sku=apple waited_ms=4000 waiting=0 position=1");
    engine_cancel("a", "");
    EXPECT(wait_for("b", "ITEM apple 1", " REQ q"),
           "TIMEOUT sku=apple waited_ms=4000 waiting=0 position=1");
    CHECK_ENGINE();
}

TEST(what_was_told_before_the_engine_knew_stands)
{
    struct hold_command c = {.kind = HOLD_TIMEOUT};

    one_apple();
    wait_for("b", "ITEM apple 1", " REQ q"); /* 3 */
    engine_cancel("a", "");
    c.now_us = engine_now_us;
    c.note = hf_bytes_text("b");
    c.token = hold_reserved_by(engine, c.note);
    c.request = hf_bytes_text("q");
    const struct hold_out *out = engine_apply(&c);
    EXPECT_EVENTS(out, "6 CANCELLED b");
    EXPECT(wait_for("b", "ITEM apple 1", " REQ q"), "TIMEOUT");
    EXPECT_EVENTS(engine_apply(&c), ""); /* once */
    EXPECT(engine_reserve("d", "apple 1", 1000), APPLE("d", "1"));
    c.note = hf_bytes_text("d"); /* that is another number */
    EXPECT_EVENTS(engine_apply(&c), "");
    CHECK_ENGINE();
}

TEST(what_is_given_up_goes_to_the_next)
{
    struct hold_command c = {.kind = HOLD_ABANDON};

    one_apple();
    wait_for("b", "ITEM apple 1", ""); /* 3 */
    wait_for("c", "ITEM apple 1", "");
    engine_cancel("a", "");
    c.now_us = engine_now_us;
    c.note = hf_bytes_text("b");
    c.token = hold_reserved_by(engine, c.note);
    EXPECT_ANSWERS(engine_apply(&c), "4:" APPLE("c", "1"));
    CHECK_ENGINE();
}

TEST(a_restart_drops_who_waits_and_a_flush_tells_them)
{
    one_apple();
    wait_for("b", "ITEM apple 1", " REQ q");
    EXPECT_ANSWERS(engine_restart(100), "");
    EXPECT(engine_reservation("b"), "NOTFOUND id=b");
    EXPECT_BEGINS(wait_for("b", "ITEM apple 1", " REQ q"), "WAITING");
    uint64_t ticket = hold_seq(engine);
    const struct hold_out *out = engine_flush();
    CHECK_EQ(out->answer_count, 1);
    CHECK_EQ(out->answers[0].ticket, ticket);
    CHECK_EQ(out->answers[0].code, HOLD_NOTHELD);
    engine_set("apple", 0);
    EXPECT_BEGINS(wait_for("b", "ITEM apple 1", ""), "WAITING");
    CHECK_ENGINE();
}

TEST(too_many_who_wait_are_refused)
{
    one_apple();
    engine_bound("waiters_max", 2);
    wait_for("b", "ITEM apple 1", "");
    wait_for("c", "ITEM apple 1", "");
    EXPECT(wait_for("d", "ITEM apple 1", ""),
           "OVERLOADED name=waiters-max maximum=2");
    engine_bound("reservations_max", 3);
    engine_bound("waiters_max", 9);
    EXPECT(wait_for("d", "ITEM apple 1", ""),
           "OVERLOADED name=reservations-max maximum=3");
    CHECK_ENGINE();
}

TEST(a_product_that_is_waited_for_is_not_deleted)
{
    engine_start();
    engine_set("apple", 0);
    wait_for("b", "ITEM apple 1", "");
    EXPECT(engine_delete("apple"), "STATE sku=apple reserved=0 waiting=1");
    engine_abandon(2);
    EXPECT(engine_delete("apple"), "OK");
    EXPECT(wait_for("b", "ITEM apple 1", ""), "NOTFOUND sku=apple");
    CHECK_ENGINE();
}

TEST(a_wait_that_is_over_is_not_served_before_it_is_swept)
{
    engine_start();
    engine_set("apple", 600);
    for (unsigned i = 0; i < 600; i++)
        engine_do("RESERVE r%u ITEM apple 1 TTL 10", i);
    engine_do("RESERVE b ITEM apple 1 TTL 1000 WAIT 11"); /* 602 */
    engine_do("RESERVE c ITEM apple 1 TTL 1000 WAIT 9000");
    engine_now_us += 50 * MS;
    const struct hold_out *out = engine_cancel("r599", ""); /* it is over */
    EXPECT_BEGINS(out, "EXPIRED id=r599");
    EXPECT_ANSWERS(out, "");
    CHECK(hold_is_behind(engine));
    while (hold_is_behind(engine))
        out = engine_tick();
    EXPECT_ANSWERS(out, "602:TIMEOUT sku=apple waited_ms=50 waiting=1 "
                        "position=1; 603:" APPLE("c", "1"));
    CHECK_ENGINE();
}

TEST(an_image_keeps_who_waits_in_order)
{
    one_apple();
    wait_for("b", "ITEM apple 2", " OWNER bob PRIORITY 1");
    wait_for("c", "ITEM apple 1", "");
    uint64_t before = hold_digest(engine);
    engine_reload();
    CHECK(hold_digest(engine) == before);
    CHECK_ENGINE();
    EXPECT_ANSWERS(engine_add("apple", 3),
                   "4:" APPLE("c", "1") "; 3:" APPLE("b", "2"));
}

TEST(serving_needs_no_memory)
{
    struct hold_command c = {.kind = HOLD_RESERVE,
                             .name = hf_bytes_text("a reservation with an id"),
                             .owner = hf_bytes_text("an owner of some length"),
                             .request = hf_bytes_text("a request"),
                             .ttl_ms = 1000,
                             .wait_ms = 1000};

    engine_start();
    engine_set("apple", 0);
    engine_set("pear", 0);
    c.now_us = engine_now_us;
    hold_add_item(&c, hf_bytes_text("apple"), 1);
    hold_add_item(&c, hf_bytes_text("pear"), 1);
    CHECK_EQ(starve(&c)->code, HOLD_WAITING);
    CHECK_EQ(starve(&c)->answer_count, 1); /* moved */
    engine_add("apple", 1);
    struct hold_command add = {.kind = HOLD_STOCK_ADD,
                               .name = hf_bytes_text("pear"),
                               .now_us = engine_now_us,
                               .amount = 1};
    const struct hold_out *out = starve(&add);
    CHECK_EQ(out->answer_count, 1);
    CHECK_EQ(out->answers[0].code, HOLD_OK);
    CHECK_EQ(starve(&c)->code, HOLD_OK); /* kept */
    CHECK_ENGINE();
}

/* All of them are prepared before the first is applied. */
TEST(long_answers_have_room)
{
    static struct hold_command commands[10];
    static char skus[40][64];
    static char ids[10][8];

    engine_start();
    for (unsigned i = 0; i < 40; i++) {
        snprintf(skus[i], sizeof skus[i], "a-product-with-a-long-name-%02u", i);
        engine_set(skus[i], i > 0 ? 1000 : 0);
    }
    for (unsigned i = 0; i < 10; i++) {
        struct hold_command *c = &commands[i];
        snprintf(ids[i], sizeof ids[i], "r%u", i);
        *c = (struct hold_command){.kind = HOLD_RESERVE,
                                   .name = hf_bytes_text(ids[i]),
                                   .now_us = engine_now_us,
                                   .ttl_ms = 1000,
                                   .wait_ms = 1000};
        for (unsigned j = 0; j < 40; j++)
            hold_add_item(c, hf_bytes_text(skus[j]), 1);
        CHECK_EQ(hold_prepare(engine, c), HF_OK);
    }
    for (unsigned i = 0; i < 10; i++)
        CHECK_EQ(apply_starved(&commands[i])->code, HOLD_WAITING);
    const struct hold_out *out = engine_add(skus[0], 10);
    CHECK_EQ(out->answer_count, 10);
    for (unsigned i = 0; i < 10; i++)
        CHECK(out->answers[i].body.len > 40 * 40);
    CHECK_ENGINE();
}

TEST(ten_thousand_who_wait_are_served_in_one_step)
{
    engine_start();
    engine_set("apple", 0);
    for (unsigned i = 0; i < 10000; i++)
        engine_do("RESERVE r%u ITEM apple 1 TTL 1000 WAIT 1000", i);
    EXPECT_BEGINS(wait_for("one-more", "ITEM apple 1", ""),
                  "OVERLOADED name=waiters-max maximum=10000");
    const struct hold_out *out = engine_add("apple", 10000);
    CHECK_EQ(out->answer_count, 10000);
    for (unsigned i = 0; i < 10000; i++)
        CHECK_EQ(out->answers[i].ticket, 2 + i);
    CHECK(out->work < 40000);
    CHECK_ENGINE();
}
