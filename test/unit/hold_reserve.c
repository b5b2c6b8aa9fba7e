/* hold_reserve.c - tests of reservations in full: in part, and what is not
 * possible. */
#include "support/engine.h"

TEST_ONE_THREAD;

static void start_shop(void)
{
    engine_start();
    engine_set("apple", 10);
    engine_set("pear", 5);
    engine_set("plum", 5);
}

TEST(a_confirm_of_some_items_sells_them_and_frees_the_rest)
{
    start_shop();
    engine_do("RESERVE r ITEM apple 3 ITEM pear 2 ITEM plum 1 TTL 1000");
    const struct hold_out *out =
        engine_do("CONFIRM r ITEM apple 2 ITEM pear 2");
    EXPECT(out, "OK id=r status=CONFIRMED expires_ms=0 items=["
                "{sku=apple quantity=2} {sku=pear quantity=2}]");
    EXPECT_EVENTS(out, "5 REDUCED r; 6 CONFIRMED r");
    engine_has("apple", 8, 0, 2);
    engine_has("pear", 3, 0, 2);
    engine_has("plum", 5, 0, 0);
    CHECK_ENGINE();
    engine_reload();
    EXPECT_BEGINS(engine_do("RESERVATION r"),
                  "OK id=r status=CONFIRMED expires_ms=0 items=["
                  "{sku=apple quantity=2} {sku=pear quantity=2}]");
    CHECK_ENGINE();
}

TEST(a_cancel_of_some_items_frees_them_and_the_rest_goes_on)
{
    start_shop();
    engine_do("RESERVE r ITEM apple 3 ITEM pear 2 TTL 1000");
    const struct hold_out *out =
        engine_do("CANCEL r ITEM apple 1 ITEM pear 2 REASON dear");
    EXPECT(out, "OK id=r status=PENDING expires_ms=1000 items=["
                "{sku=apple quantity=2}]");
    EXPECT_EVENTS(out, "5 REDUCED r");
    engine_has("apple", 8, 2, 0);
    engine_has("pear", 5, 0, 0);
    engine_reload();
    EXPECT(engine_do("CANCEL r ITEM apple 1"),
           "OK id=r status=PENDING expires_ms=1000 items=["
           "{sku=apple quantity=1}]");
    out = engine_do("CANCEL r ITEM apple 1");
    EXPECT(out, "OK id=r status=CANCELLED expires_ms=0 items=["
                "{sku=apple quantity=1}]");
    EXPECT_EVENTS(out, "7 CANCELLED r");
    engine_has("apple", 10, 0, 0);
    CHECK_ENGINE();
}

TEST(a_reservation_that_got_less_expires_with_the_rest)
{
    start_shop();
    engine_do("RESERVE r ITEM apple 3 ITEM pear 2 TTL 1000");
    engine_do("CANCEL r ITEM apple 2");
    engine_now_us += 1000 * MS;
    engine_tick();
    engine_has("apple", 10, 0, 0);
    engine_has("pear", 5, 0, 0);
    EXPECT(engine_do("CANCEL r ITEM apple 1"), "EXPIRED id=r expires_ms=0");
    CHECK_ENGINE();
}

TEST(what_a_reservation_does_not_have_changes_nothing)
{
    start_shop();
    engine_do("RESERVE r ITEM apple 3 ITEM plum 2 TTL 1000");
    uint64_t digest = hold_digest(engine);
    EXPECT(engine_do("CANCEL r ITEM apple 4"),
           "BADARG id=r sku=apple requested=4 reserved=3");
    EXPECT(engine_do("CONFIRM r ITEM apple 1 ITEM pear 1"),
           "BADARG id=r sku=pear requested=1 reserved=0");
    EXPECT(engine_do("CONFIRM r ITEM plum 2 ITEM zest 1"),
           "BADARG id=r sku=zest requested=1 reserved=0");
    EXPECT(engine_do("CANCEL r ITEM aaa 1 ITEM plum 9"),
           "BADARG id=r sku=aaa requested=1 reserved=0");
    CHECK_EQ(hold_digest(engine), digest);
}

TEST(all_items_by_name_are_as_a_whole_command)
{
    start_shop();
    engine_do("RESERVE r ITEM apple 3 ITEM pear 2 TTL 1000");
    EXPECT_EVENTS(engine_do("CONFIRM r ITEM pear 2 ITEM apple 3"),
                  "5 CONFIRMED r");
    engine_do("RESERVE q ITEM apple 3 TTL 1000");
    EXPECT_EVENTS(engine_do("CANCEL q ITEM apple 3"), "7 CANCELLED q");
    engine_has("apple", 7, 0, 3);
    CHECK_ENGINE();
}

TEST(a_group_that_is_refused_takes_back_what_was_given_back)
{
    start_shop();
    engine_do("RESERVE r ITEM apple 3 ITEM pear 2 TTL 1000");
    uint64_t digest = hold_digest(engine);
    EXPECT_BEGINS(engine_group(NULL, "CANCEL r ITEM apple 1; CONFIRM r ITEM "
                                     "pear 1; CONFIRM nobody"),
                  "EXECABORT position=3");
    CHECK_EQ(hold_digest(engine), digest);
    EXPECT_BEGINS(engine_group(NULL, "CANCEL r ITEM apple 1; CONFIRM r ITEM "
                                     "pear 1"),
                  "OK ");
    engine_has("apple", 10, 0, 0);
    engine_has("pear", 4, 0, 1);
    CHECK_ENGINE();
}

TEST(a_repeated_request_gives_the_first_answer_once)
{
    start_shop();
    engine_do("RESERVE r ITEM apple 3 TTL 1000");
    EXPECT(engine_do("CANCEL r ITEM apple 1 REQ q"),
           "OK id=r status=PENDING expires_ms=1000 items=["
           "{sku=apple quantity=2}]");
    EXPECT(engine_do("CANCEL r ITEM apple 1 REQ q"),
           "OK id=r status=PENDING expires_ms=1000 items=["
           "{sku=apple quantity=2}]");
    EXPECT(engine_do("CANCEL r ITEM apple 2 REQ q"), "CONFLICT id=q");
    engine_has("apple", 8, 2, 0);
}

TEST(best_takes_each_item_whole_or_not_at_all)
{
    start_shop();
    const struct hold_out *out = engine_do(
        "RESERVE r ITEM apple 3 ITEM pear 6 ITEM plum 5 BEST TTL 1000");
    EXPECT(out, "OK id=r status=PENDING expires_ms=1000 items=["
                "{sku=apple quantity=3} {sku=plum quantity=5}] failed=["
                "{sku=pear requested=6 available=5}]");
    EXPECT_EVENTS(out, "4 RESERVED r");
    engine_has("apple", 7, 3, 0);
    engine_has("pear", 5, 0, 0);
    engine_has("plum", 0, 5, 0);
    EXPECT(engine_do("RESERVE q ITEM plum 1 BEST TTL 1000"),
           "SHORT sku=plum requested=1 available=0");
    EXPECT(engine_do("RESERVE q ITEM apple 1 BEST TTL 1000"),
           "OK id=q status=PENDING expires_ms=1000 items=["
           "{sku=apple quantity=1}] failed=[]");
    EXPECT(engine_do("RESERVE p ITEM apple 1 ITEM nothing 1 BEST"),
           "NOTFOUND sku=nothing");
    CHECK_ENGINE();
    engine_reload();
    CHECK_ENGINE();
}

TEST(min_takes_as_much_as_there_is)
{
    start_shop();
    EXPECT(engine_do("RESERVE a ITEM apple 8 MIN 1 ITEM pear 5 MIN 5 TTL 1000"),
           "OK id=a status=PENDING expires_ms=1000 items=["
           "{sku=apple quantity=8} {sku=pear quantity=5}]");
    EXPECT(engine_do("RESERVE b ITEM apple 8 MIN 3 TTL 1000"),
           "SHORT sku=apple requested=8 available=2");
    EXPECT(engine_do("RESERVE b ITEM apple 8 MIN 2 ITEM plum 5 TTL 1000"),
           "OK id=b status=PENDING expires_ms=1000 items=["
           "{sku=apple quantity=2} {sku=plum quantity=5}]");
    engine_has("apple", 0, 10, 0);
    CHECK_ENGINE();
}

TEST(the_same_sku_twice_adds_quantities_and_minimums_up)
{
    start_shop();
    EXPECT(engine_do("RESERVE a ITEM apple 8 MIN 7 ITEM apple 4 TTL 1000"),
           "SHORT sku=apple requested=12 available=10");
    EXPECT(engine_do("RESERVE a ITEM apple 8 MIN 6 ITEM apple 4 TTL 1000"),
           "OK id=a status=PENDING expires_ms=1000 items=["
           "{sku=apple quantity=10}]");
}

TEST(best_with_min_fails_what_is_below_its_minimum)
{
    start_shop();
    EXPECT(
        engine_do("RESERVE a ITEM apple 12 MIN 11 ITEM pear 9 MIN 2 BEST TTL "
                  "1000"),
        "OK id=a status=PENDING expires_ms=1000 items=["
        "{sku=pear quantity=5}] failed=["
        "{sku=apple requested=12 available=10}]");
    EXPECT(engine_do("RESERVE b ITEM apple 12 MIN 11 ITEM pear 9 MIN 2 BEST"),
           "SHORT sku=apple requested=12 available=10 items=["
           "{sku=apple requested=12 available=10} "
           "{sku=pear requested=9 available=0}]");
}

/* A retry gets what the first call may have got, and nothing is taken twice. */
TEST(a_repeated_best_shows_the_reservation)
{
    start_shop();
    engine_do("RESERVE r ITEM apple 3 ITEM pear 6 BEST TTL 1000");
    EXPECT(engine_do("RESERVE r ITEM apple 3 ITEM pear 6 BEST TTL 1000"),
           "OK id=r status=PENDING expires_ms=1000 items=["
           "{sku=apple quantity=3}]");
    EXPECT(engine_do("RESERVE r ITEM apple 3 ITEM pear 6 TTL 1000"),
           "CONFLICT id=r");
    EXPECT(engine_do("RESERVE r ITEM apple 2 BEST TTL 1000"), "CONFLICT id=r");
    EXPECT(engine_do("RESERVE r ITEM pear 2 BEST TTL 1000"), "CONFLICT id=r");
    engine_do("RESERVE m ITEM pear 9 MIN 2 TTL 1000");
    EXPECT(engine_do("RESERVE m ITEM pear 9 MIN 2 TTL 1000"),
           "OK id=m status=PENDING expires_ms=1000 items=["
           "{sku=pear quantity=5}]");
    EXPECT(engine_do("RESERVE m ITEM pear 9 MIN 6 TTL 1000"), "CONFLICT id=m");
    engine_has("apple", 7, 3, 0);
    engine_has("pear", 0, 5, 0);
}

TEST(what_best_got_is_kept_for_its_request)
{
    start_shop();
    EXPECT(engine_do("RESERVE * ITEM apple 3 ITEM pear 6 BEST TTL 1000 REQ q"),
           "OK id=000000YGJ00000000000000004 status=PENDING expires_ms=1000 "
           "items=[{sku=apple quantity=3}] failed=["
           "{sku=pear requested=6 available=5}]");
    engine_set("pear", 99);
    EXPECT_BEGINS(
        engine_do("RESERVE * ITEM apple 3 ITEM pear 6 BEST TTL 1000 REQ q"),
        "OK id=");
    engine_has("apple", 7, 3, 0);
    EXPECT(engine_do("RESERVE * ITEM apple 3 ITEM pear 6 TTL 1000 REQ q"),
           "CONFLICT id=q");
}

/* Every state and every command: what is not possible is told, and nothing
 * changes. */
TEST(every_forbidden_step_is_refused_and_changes_nothing)
{
    static const char *const ids[] = {"sold", "back", "late", "none"};
    static const char *const refusals[][4] = {
        {"STATE id=sold status=CONFIRMED", "STATE id=back status=CANCELLED",
         "EXPIRED id=late expires_ms=0", "NOTFOUND id=none"},
        {"STATE id=sold status=CONFIRMED", "STATE id=back status=CANCELLED",
         "STATE id=late status=EXPIRED", NULL},
    };
    static const struct {
        const char *words;
        int row;
    } commands[] = {
        {"CONFIRM %s", 0},
        {"CONFIRM %s ITEM apple 1", 0},
        {"CONFIRM %s ITEM apple 99", 0},
        {"CANCEL %s", 0},
        {"CANCEL %s ITEM apple 1", 0},
        {"CANCEL %s ITEM nothing 1 REASON x", 0},
        {"EXTEND %s TTL 5000", 0},
        {"RESERVE %s ITEM apple 2 TTL 5000", 1},
        {"RESERVE %s ITEM pear 1 TTL 5000", 1},
        {"RESERVE %s ITEM apple 99", 1},
    };

    start_shop();
    for (int i = 0; i < 3; i++)
        engine_do("RESERVE %s ITEM apple 2 TTL 1000", ids[i]);
    engine_do("CONFIRM sold");
    engine_do("CANCEL back");
    engine_now_us += 1000 * MS;
    engine_tick();
    for (int reloaded = 0; reloaded < 2; reloaded++) {
        uint64_t digest = hold_digest(engine);
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
            for (int id = 0; id < 4; id++) {
                char words[128];
                const char *refusal = refusals[commands[i].row][id];
                if (refusal == NULL)
                    continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                snprintf(words, sizeof words, commands[i].words, ids[id]);
#pragma GCC diagnostic pop
                EXPECT(engine_do("%s", words), refusal);
                CHECK_EQ(hold_digest(engine), digest);
            }
        }
        engine_reload();
    }
    engine_has("apple", 8, 0, 2);
    CHECK_ENGINE();
}

static enum hf_status round_trip(const struct hold_command *c,
                                 struct hold_command *out)
{
    static char record[HOLD_RECORD_MAX];

    return hold_decode(hf_bytes(record, hold_encode(c, record)), out);
}

TEST(minimums_are_there_for_each_item_or_for_none)
{
    static struct hold_command command;
    static struct hold_command decoded;

    command = (struct hold_command){.kind = HOLD_RESERVE, .ttl_ms = 5};
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("pear"), 3), HF_OK);
    CHECK(!command.mins);
    CHECK_EQ(hold_add_some(&command, hf_bytes_text("apple"), 4, 2), HF_OK);
    CHECK(command.mins);
    CHECK_EQ(hold_add_some(&command, hf_bytes_text("pear"), 2, 1), HF_OK);
    CHECK_EQ(command.items[1].least, 4);
    CHECK_EQ(round_trip(&command, &decoded), HF_OK);
    CHECK(decoded.mins);
    CHECK_EQ(decoded.items[0].least, 2);
    CHECK_EQ(decoded.items[1].least, 4);
    command.items[0].least = 5; /* more than all */
    CHECK_EQ(round_trip(&command, &decoded), HF_CORRUPT);
    command.items[0].least = 0;
    CHECK_EQ(round_trip(&command, &decoded), HF_CORRUPT);
    command.items[0].least = 4; /* all of each: that has another form */
    command.items[1].least = 5;
    CHECK_EQ(round_trip(&command, &decoded), HF_CORRUPT);
    command.items[1].least = 4;
    command.kind = HOLD_CONFIRM;
    command.name = hf_bytes_text("r");
    CHECK_EQ(round_trip(&command, &decoded), HF_CORRUPT);
    command.kind = HOLD_CONFIRM;
    command.mins = false;
    CHECK_EQ(round_trip(&command, &decoded), HF_OK);
    command.flags = HOLD_BEST;
    CHECK_EQ(round_trip(&command, &decoded), HF_CORRUPT);
}
