/* hold_bundle.c - tests of groups of reservations: GROUP CONFIRM, CANCEL. */
#include "hold/bundle.h"

#include "support/starve.h"

#define GROUP(g, status, n)   "OK group=" g " status=" status " count=" #n
#define SHOWN(id, status, ms) "{id=" id " status=" status " expires_ms=" #ms "}"

/* Two of a trip, and one of nobody's. */
static void start_trip(void)
{
    engine_start();
    CHECK_EQ(hold_tell(engine), HF_OK);
    engine_set("bed", 10);
    engine_set("seat", 10);
    engine_do("RESERVE a ITEM seat 2 GROUP trip TTL 1000");
    engine_do("RESERVE b ITEM bed 1 GROUP trip TTL 2000");
    engine_do("RESERVE c ITEM bed 4 TTL 9000");
}

TEST(all_of_a_group_are_confirmed)
{
    start_trip();
    const struct hold_out *out = engine_do("GROUP CONFIRM trip");
    EXPECT(out, GROUP("trip", "CONFIRMED", 2));
    EXPECT_EVENTS(out, "6 CONFIRMED a; 7 CONFIRMED b");
    EXPECT_BEGINS(engine_do("RESERVATION b"), "OK id=b status=CONFIRMED");
    EXPECT_BEGINS(engine_do("RESERVATION c"), "OK id=c status=PENDING");
    EXPECT_BEGINS(engine_get("bed"),
                  "OK sku=bed total=10 available=5 reserved=4 sold=1");
    EXPECT(engine_do("GROUP CONFIRM trip"), "NOTFOUND group=trip");
    EXPECT(engine_do("GROUP SHOW trip"), "NOTFOUND group=trip");
    CHECK_ENGINE();
}

TEST(all_of_a_group_are_cancelled_with_a_reason)
{
    start_trip();
    const struct hold_out *out = engine_do("GROUP CANCEL trip REASON rain");
    EXPECT(out, GROUP("trip", "CANCELLED", 2));
    EXPECT_EVENTS(out, "6 CANCELLED a; 7 CANCELLED b");
    CHECK(hf_bytes_is(out->events[1].note, "rain"));
    CHECK(hf_bytes_is(out->events[1].group, "trip"));
    EXPECT_BEGINS(engine_get("seat"), "OK sku=seat total=10 available=10 ");
    EXPECT(engine_do("RESERVATION b"),
           "OK id=b status=CANCELLED expires_ms=0 items=[{sku=bed quantity=1}] "
           "owner= created_ms=1000000 ended_ms=1000000 reason=rain class= "
           "extends=0");
    CHECK_ENGINE();
}

TEST(a_group_is_shown_in_the_order_of_making)
{
    start_trip();
    EXPECT(engine_do("GROUP SHOW trip"),
           "OK group=trip count=2 reservations=[" SHOWN(
               "a", "PENDING", 1000) " " SHOWN("b", "PENDING", 2000) "] "
                                                                     "cursor="
                                                                     "0");
    EXPECT(engine_do("GROUP SHOW trip COUNT 1"),
           "OK group=trip count=2 reservations=[" SHOWN("a", "PENDING",
                                                        1000) "] cursor=1");
    EXPECT(engine_do("GROUP SHOW trip COUNT 1 CURSOR 1"),
           "OK group=trip count=2 reservations=[" SHOWN("b", "PENDING",
                                                        2000) "] cursor=0");
    EXPECT(engine_do("RESERVATION a"),
           "OK id=a status=PENDING expires_ms=1000 items=[{sku=seat "
           "quantity=2}] owner= created_ms=1000000 ended_ms=0 reason= class= "
           "extends=0 group=trip");
    CHECK_ENGINE();
}

TEST(one_that_expired_stops_the_others)
{
    start_trip();
    engine_now_us += 1500000;
    EXPECT(engine_do("GROUP CONFIRM trip"), "EXPIRED id=a expires_ms=500");
    EXPECT(engine_do("GROUP SHOW trip"),
           "OK group=trip count=2 reservations=[" SHOWN(
               "a", "EXPIRED", 0) " " SHOWN("b", "PENDING", 500) "] cursor=0");
    engine_reload();
    CHECK_ENGINE();
    EXPECT(engine_do("GROUP CANCEL trip"), GROUP("trip", "CANCELLED", 1));
    EXPECT(engine_do("GROUP CANCEL trip"), "NOTFOUND group=trip");
    EXPECT_BEGINS(engine_do("RESERVATION a"), "OK id=a status=EXPIRED");
    CHECK_ENGINE();
}

TEST(a_group_of_which_all_expired_is_not_cancelled_and_is_forgotten)
{
    start_trip();
    engine_now_us += 3000000;
    EXPECT(engine_do("GROUP CANCEL trip"), "EXPIRED id=a expires_ms=2000");
    engine_now_us += 3600000000;
    engine_tick();
    engine_tick();
    EXPECT(engine_do("GROUP CANCEL trip"), "NOTFOUND group=trip");
    CHECK_ENGINE();
}

/* In the time of grace, too: by itself, and the others go on. */
TEST(a_late_one_is_confirmed_by_itself)
{
    start_trip();
    engine_do("CLASS SET slow GRACE 9000");
    engine_do("RESERVE d ITEM seat 1 GROUP trip TTL 10 CLASS slow");
    engine_now_us += 100000;
    EXPECT(engine_do("GROUP CONFIRM trip"), "EXPIRED id=d expires_ms=90");
    EXPECT_BEGINS(engine_do("CONFIRM d"), "OK ");
    EXPECT(engine_do("GROUP CONFIRM trip"), GROUP("trip", "CONFIRMED", 2));
    CHECK_ENGINE();
}

TEST(what_ended_by_itself_is_no_member)
{
    start_trip();
    engine_do("CONFIRM a");
    EXPECT(engine_do("GROUP CANCEL trip"), GROUP("trip", "CANCELLED", 1));
    EXPECT_BEGINS(engine_do("RESERVATION a"), "OK id=a status=CONFIRMED");
    engine_do("RESERVE d ITEM seat 1 GROUP trip");
    engine_do("CANCEL d");
    EXPECT(engine_do("GROUP CONFIRM trip"), "NOTFOUND group=trip");
    CHECK_ENGINE();
}

TEST(one_that_waits_is_cancelled_and_stops_a_confirm)
{
    start_trip();
    engine_set("gold", 0);
    EXPECT_BEGINS(engine_do("WAITLIST JOIN gold 1 OWNER ann ID w GROUP trip"),
                  "OK id=w status=WAITING");
    EXPECT(engine_do("GROUP CONFIRM trip"), "STATE id=w status=WAITING");
    engine_reload();
    CHECK_ENGINE();
    EXPECT_BEGINS(engine_do("RESERVATION a"), "OK id=a status=PENDING");
    EXPECT(engine_do("GROUP CANCEL trip"), GROUP("trip", "CANCELLED", 3));
    EXPECT(engine_do("RESERVATION w"), "NOTFOUND id=w");
    EXPECT_BEGINS(engine_do("STOCK DEL gold"), "OK");
    CHECK_ENGINE();
}

TEST(an_offer_is_of_the_group_that_waited)
{
    start_trip();
    engine_set("gold", 0);
    engine_do("WAITLIST JOIN gold 1 OWNER ann ID w GROUP trip");
    const struct hold_out *out = engine_do("STOCK ADD gold 1");
    CHECK(hf_bytes_is(out->events[1].group, "trip"));
    EXPECT(engine_do("GROUP CONFIRM trip"), GROUP("trip", "CONFIRMED", 3));
    CHECK_ENGINE();
}

TEST(what_a_cancel_frees_goes_to_the_first_who_waits)
{
    start_trip();
    engine_do("WAITLIST JOIN bed 6 OWNER ann ID w");
    EXPECT_EVENTS(engine_do("GROUP CANCEL trip"),
                  "7 CANCELLED a; 8 CANCELLED b; 9 OFFERED w");
    CHECK_ENGINE();
}

TEST(who_waits_connected_has_no_group)
{
    struct hold_command c = {
        .kind = HOLD_RESERVE, .wait_ms = 5, .bundle = hf_bytes_text("trip")};

    CHECK_EQ(hold_find_wrong(&c), WRONG_WAIT_GROUP);
    c.wait_ms = 0;
    CHECK_EQ(hold_find_wrong(&c), HOLD_RIGHT);
}

TEST(a_group_has_a_bound)
{
    engine_start();
    engine_set("bed", 1000);
    for (unsigned i = 0; i < HOLD_MEMBERS_MAX; i++)
        engine_do("RESERVE r%u ITEM bed 1 GROUP g", i);
    EXPECT(engine_do("RESERVE more ITEM bed 1 GROUP g"),
           "OVERLOADED name=group-members maximum=100");
    engine_do("CANCEL r7");
    EXPECT_BEGINS(engine_do("RESERVE more ITEM bed 1 GROUP g"), "OK ");
    CHECK_EQ(engine_do("GROUP CANCEL g REASON rain")->event_count,
             HOLD_MEMBERS_MAX);
    CHECK_ENGINE();
}

/* All commands of one step together. */
TEST(a_step_ends_no_more_than_a_group_may_have)
{
    engine_start();
    engine_set("bed", 1000);
    for (unsigned i = 0; i < HOLD_MEMBERS_MAX; i++)
        engine_do("RESERVE r%u ITEM bed 1 GROUP g", i);
    engine_do("RESERVE s ITEM bed 1 GROUP h");
    EXPECT_BEGINS(engine_group(NULL, "GROUP CANCEL h; GROUP CONFIRM g"),
                  "EXECABORT position=2 count=2 ");
    EXPECT_BEGINS(engine_do("RESERVATION s"), "OK id=s status=PENDING");
    EXPECT_BEGINS(engine_group(NULL, "CONFIRM s; GROUP CONFIRM g"), "OK ");
    CHECK_ENGINE();
}

TEST(a_group_of_commands_that_is_refused_ends_nothing)
{
    start_trip();
    EXPECT_BEGINS(engine_group(NULL, "RESERVE d ITEM bed 1 GROUP trip; GROUP "
                                     "CONFIRM trip; CONFIRM nothing"),
                  "EXECABORT position=3 ");
    CHECK_ENGINE();
    EXPECT_BEGINS(engine_do("GROUP SHOW trip"), "OK group=trip count=2 ");
    EXPECT_BEGINS(engine_group(NULL, "RESERVE d ITEM bed 1 GROUP trip; GROUP "
                                     "CONFIRM trip"),
                  "OK ");
    EXPECT_BEGINS(engine_do("RESERVATION d"), "OK id=d status=CONFIRMED");
    CHECK_ENGINE();
}

TEST(an_image_keeps_groups_and_their_order)
{
    start_trip();
    engine_do("RESERVE d ITEM seat 1 GROUP other");
    engine_reload();
    CHECK_ENGINE();
    EXPECT_EVENTS(engine_do("GROUP CONFIRM trip"),
                  "7 CONFIRMED a; 8 CONFIRMED b");
    engine_do("FLUSHALL");
    EXPECT(engine_do("GROUP SHOW other"), "NOTFOUND group=other");
    CHECK_ENGINE();
}

/* With the most that each may have, and products that tell that they are low.
 */
TEST(a_step_has_room_for_all_that_a_group_tells)
{
    engine_start();
    for (unsigned i = 0; i < HOLD_ITEMS_MAX; i++) {
        engine_do("STOCK SET p%03u 100", i);
        engine_do("STOCK LOW p%03u 50", i);
    }
    for (unsigned i = 0; i < HOLD_MEMBERS_MAX; i++) {
        struct hold_command c = {.kind = HOLD_RESERVE,
                                 .ttl_ms = 100000,
                                 .bundle = hf_bytes_text("g"),
                                 .now_us = engine_now_us};
        static char names[HOLD_ITEMS_MAX][8];
        for (unsigned k = 0; k < HOLD_ITEMS_MAX; k++) {
            snprintf(names[k], sizeof names[k], "p%03u", k);
            hold_add_item(&c, hf_bytes_text(names[k]), 1);
        }
        CHECK_EQ(starve(&c)->code, HOLD_OK);
    }
    struct hold_command end = {.kind = HOLD_GROUP_CANCEL,
                               .name = hf_bytes_text("g"),
                               .reason = hf_bytes_text("a long enough reason"),
                               .now_us = engine_now_us};
    const struct hold_out *out = starve(&end);
    CHECK_EQ(out->code, HOLD_OK);
    CHECK_EQ(out->event_count, HOLD_MEMBERS_MAX + HOLD_ITEMS_MAX);
    CHECK_ENGINE();
}

TEST(groups_that_end_leave_no_memory_behind)
{
    size_t before = 0;

    engine_start();
    engine_set("bed", 1000);
    for (int i = 0; i < 3000; i++) {
        engine_do("RESERVE r%d ITEM bed 1 GROUP a-group-of-number-%d", i, i);
        engine_do("GROUP %s a-group-of-number-%d", i % 2 ? "CONFIRM" : "CANCEL",
                  i);
        engine_do("STOCK ADD bed 1");
        engine_now_us += 3600000000;
        engine_tick();
        if (i == 10)
            before = memory_bytes();
    }
    CHECK_EQ(memory_bytes(), before);
    CHECK_ENGINE();
}

/* However many commands of a step end groups, they have so many members. */
TEST(what_a_step_may_take_back_is_counted_once)
{
    char commands[20 * 16 + 1] = "";
    size_t before;

    engine_start();
    EXPECT_BEGINS(engine_group(NULL, "GROUP CANCEL a"), "EXECABORT ");
    before = engine->undo.cap;
    for (size_t i = 0; i < 20; i++)
        snprintf(commands + 16 * i, 17, "GROUP CANCEL a; ");
    EXPECT_BEGINS(engine_group(NULL, commands), "EXECABORT ");
    CHECK(engine->undo.cap < 2 * before);
}
