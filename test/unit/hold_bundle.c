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

/* A trip of three, of which `d` and `e` have expired, in their time of grace.
 */
static void start_late(void)
{
    start_trip();
    engine_do("CLASS SET slow GRACE 900");
    engine_do("RESERVE d ITEM seat 1 GROUP trip TTL 10 CLASS slow");
    engine_do("RESERVE e ITEM bed 2 ITEM seat 3 GROUP trip TTL 20 CLASS slow");
    engine_now_us += 100000;
    engine_tick();
}

TEST(a_late_one_may_be_confirmed_by_itself)
{
    start_late();
    EXPECT_BEGINS(engine_do("CONFIRM d"), "OK ");
    EXPECT(engine_do("GROUP CONFIRM trip"), GROUP("trip", "CONFIRMED", 3));
    CHECK_ENGINE();
}

TEST(late_ones_are_confirmed_with_the_others)
{
    start_late();
    const struct hold_out *out = engine_do("GROUP CONFIRM trip");
    EXPECT(out, GROUP("trip", "CONFIRMED", 4));
    EXPECT_EVENTS(out, "11 CONFIRMED a; 12 CONFIRMED b; 13 CONFIRMED_LATE d; "
                       "14 CONFIRMED_LATE e");
    CHECK(hf_bytes_is(out->events[2].group, "trip"));
    EXPECT_BEGINS(engine_get("seat"),
                  "OK sku=seat total=10 available=4 reserved=0 sold=6");
    EXPECT_BEGINS(engine_get("bed"),
                  "OK sku=bed total=10 available=3 reserved=4 sold=3");
    EXPECT_BEGINS(engine_do("RESERVATION e"), "OK id=e status=CONFIRMED");
    EXPECT(engine_do("GROUP SHOW trip"), "NOTFOUND group=trip");
    CHECK_ENGINE();
    engine_reload();
    CHECK_ENGINE();
}

/* Each has enough, both together have not. */
TEST(late_ones_need_enough_for_all_of_them)
{
    start_late();
    engine_do("RESERVE f ITEM seat 5 TTL 500");
    uint64_t digest = hold_digest(engine);
    EXPECT(engine_do("GROUP CONFIRM trip"),
           "SHORT sku=seat requested=4 available=3");
    CHECK_EQ(hold_digest(engine), digest);
    EXPECT_BEGINS(engine_group(NULL, "GROUP CONFIRM trip"),
                  "EXECABORT position=1 ");
    CHECK_EQ(hold_digest(engine), digest);
    EXPECT_BEGINS(engine_group(NULL, "CANCEL f; GROUP CONFIRM trip"), "OK ");
    EXPECT_BEGINS(engine_get("seat"),
                  "OK sku=seat total=10 available=4 reserved=0 sold=6");
    CHECK_ENGINE();
}

TEST(late_ones_do_not_take_what_others_wait_for)
{
    start_late();
    engine_do("RESERVE f ITEM bed 3 TTL 500");
    engine_do("WAITLIST JOIN bed 9 OWNER ann ID w");
    engine_do("WAITLIST JOIN seat 9 OWNER ann ID v");
    EXPECT(engine_do("GROUP CONFIRM trip"),
           "SHORT sku=bed requested=2 available=2 waiting=1 items=["
           "{sku=bed requested=2 available=2 waiting=1} "
           "{sku=seat requested=4 available=8 waiting=1}]");
    engine_do("WAITLIST LEAVE bed w");
    engine_do("WAITLIST LEAVE seat v");
    EXPECT(engine_do("GROUP CONFIRM trip"), GROUP("trip", "CONFIRMED", 4));
    CHECK_ENGINE();
}

TEST(late_ones_are_refused_when_grace_is_over_or_a_product_is_gone)
{
    start_late();
    engine_do("RESERVE f ITEM gold 1"); /* there is none */
    engine_set("gold", 1);
    engine_do("RESERVE f ITEM gold 1 GROUP trip TTL 10 CLASS slow");
    engine_now_us += 10000;
    engine_tick();
    engine_delete("gold");
    EXPECT(engine_do("GROUP CONFIRM trip"), "NOTFOUND sku=gold");
    engine_now_us += 800000; /* of `d`, to its microsecond */
    EXPECT(engine_do("GROUP CONFIRM trip"), "EXPIRED id=d expires_ms=900");
    CHECK_ENGINE();
}

/* In a group of commands they are late, too, and all of it is taken back. */
TEST(late_ones_that_are_sold_in_a_group_are_taken_back)
{
    start_late();
    engine_do("STOCK LOW seat 5");
    uint64_t digest = hold_digest(engine);
    EXPECT_BEGINS(engine_group(NULL, "GROUP CONFIRM trip; CONFIRM none"),
                  "EXECABORT position=2 ");
    CHECK_EQ(hold_digest(engine), digest);
    CHECK_ENGINE();
    const struct hold_out *out = engine_group(NULL, "GROUP CONFIRM trip");
    EXPECT_EVENTS(out, "12 CONFIRMED a; 13 CONFIRMED b; 14 CONFIRMED_LATE d; "
                       "15 CONFIRMED_LATE e; 16 STOCK_LOW seat");
    CHECK_ENGINE();
}

/* The refusal names no more products than can be kept for a REQ, whatever
 * their names. */
TEST(what_late_ones_lack_is_kept_for_a_req)
{
    char first[16 * (HOLD_SKU_MAX + 80)];
    int len = HOLD_SKU_MAX;

    engine_start();
    engine_bound("grace_ms", 1000);
    for (int i = 0; i < 20; i++) {
        engine_do("STOCK SET %0*d %lld", len, i, (long long)INT64_MAX);
        engine_do("RESERVE r%d ITEM %0*d %lld GROUP g TTL 10", i, len, i,
                  (long long)INT64_MAX);
    }
    engine_now_us += 10000;
    for (int i = 0; i < 20; i++) {
        engine_do("RESERVE s%d ITEM %0*d %lld", i, len, i,
                  (long long)INT64_MAX - 1000000000);
        engine_do("WAITLIST JOIN %0*d 2000000000 OWNER ann", len, i);
    }
    EXPECT_BEGINS(engine_group("y", "GROUP CONFIRM g"), "EXECABORT ");
    snprintf(first, sizeof first, "%s",
             engine_reply_text(engine_do("GROUP CONFIRM g REQ x")));
    CHECK(strncmp(first, "SHORT", 5) == 0);
    engine_now_us += 1000000;
    EXPECT(engine_do("GROUP CONFIRM g REQ x"), first);
    CHECK_ENGINE();
}

/* More than any product may have. */
TEST(what_late_ones_want_together_may_be_too_much_for_a_number)
{
    engine_start();
    engine_bound("grace_ms", 1000);
    engine_do("STOCK SET sand %lld", (long long)INT64_MAX);
    for (int i = 0; i < 3; i++) {
        engine_do("RESERVE r%d ITEM sand %lld GROUP g TTL 10", i,
                  (long long)INT64_MAX);
        engine_now_us += 10000;
        engine_tick();
    }
    EXPECT(engine_do("GROUP CONFIRM g"),
           "SHORT sku=sand requested=9223372036854775807 "
           "available=9223372036854775807");
    CHECK_ENGINE();
}

/* Each of many has other products; as many steps as they have items. */
TEST(what_many_late_ones_want_is_added_up_by_product)
{
    enum { PRODUCTS = 40, ITEMS = 25, STEP = 7 };
    static const unsigned short_of[] = {3, 4, 17, 39};
    uint64_t wanted[PRODUCTS] = {0};
    char line[1024];

    engine_start();
    engine_bound("grace_ms", 1000);
    for (unsigned k = 0; k < PRODUCTS; k++) {
        snprintf(line, sizeof line, "p%02u", k);
        engine_set(line, 100000);
    }
    for (unsigned i = 0; i < HOLD_MEMBERS_MAX; i++) {
        size_t len = (size_t)snprintf(line, sizeof line,
                                      "RESERVE r%u GROUP g TTL 10", i);
        for (unsigned k = 0; k < ITEMS; k++) {
            unsigned product = (i * STEP + k * (1 + i % 3)) % PRODUCTS;
            wanted[product] += 1 + i;
            len += (size_t)snprintf(line + len, sizeof line - len,
                                    " ITEM p%02u %u", product, 1 + i);
        }
        EXPECT_BEGINS(engine_do("%s", line), "OK ");
    }
    engine_now_us += 10000;
    engine_tick();
    for (unsigned k = 0; k < PRODUCTS; k++) {
        snprintf(line, sizeof line, "p%02u", k);
        engine_set(line, (int64_t)wanted[k]);
    }
    for (size_t i = 0; i < sizeof short_of / sizeof short_of[0]; i++) {
        snprintf(line, sizeof line, "p%02u", short_of[i]);
        engine_add(line, -1);
    }
    const char *told = engine_reply_text(engine_do("GROUP CONFIRM g"));
    for (size_t i = 0; i < sizeof short_of / sizeof short_of[0]; i++) {
        uint64_t units = wanted[short_of[i]];
        snprintf(line, sizeof line, "{sku=p%02u requested=%llu available=%llu}",
                 short_of[i], (unsigned long long)units,
                 (unsigned long long)(units - 1));
        const char *found = strstr(told, line);
        CHECK(found != NULL);
        told = found; /* in the order of their names */
    }
    CHECK(strchr(told + 1, '{') == NULL);
    CHECK(hold_answer_now(engine, engine_parse("GROUP CONFIRM g")) != NULL);
    CHECK(hold_work(engine) <= (ITEMS + 2) * HOLD_MEMBERS_MAX);
    for (size_t i = 0; i < sizeof short_of / sizeof short_of[0]; i++) {
        snprintf(line, sizeof line, "p%02u", short_of[i]);
        engine_add(line, 1);
    }
    EXPECT(engine_do("GROUP CONFIRM g"), GROUP("g", "CONFIRMED", 100));
    for (unsigned k = 0; k < PRODUCTS; k++) {
        snprintf(line, sizeof line, "p%02u", k);
        CHECK_EQ(reply_get_number(engine_get(line)->body, FIELD_AVAILABLE), 0);
    }
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
