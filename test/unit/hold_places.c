/* hold_places.c - tests of sku@place: RESERVE with PLACE, STOCK PLACES. */
#include "hold/places.h"
#include "support/engine.h"

TEST_ONE_THREAD;

#define ITEMS(id, items) \
    "OK id=" id " status=PENDING expires_ms=600000 items=[" items "]"
#define ONE(sku, n) "{sku=" sku " quantity=" #n "}"

/* pen: 5, 3, 9; ink: 4, 0, 2; cap: only in lyon. */
static void three_places(void)
{
    static const struct {
        const char *sku;
        int64_t total;
    } rows[] = {{"pen@berlin", 5}, {"pen@paris", 3}, {"pen@lyon", 9},
                {"ink@berlin", 4}, {"ink@paris", 0}, {"ink@lyon", 2},
                {"cap@lyon", 1}};

    engine_start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        engine_set(rows[i].sku, rows[i].total);
}

#define BERLIN_PARIS_LYON "PLACE berlin PLACE paris PLACE lyon"

TEST(without_split_all_comes_from_the_first_place_that_has_all)
{
    three_places();
    EXPECT(engine_do("RESERVE a ITEM pen 6 " BERLIN_PARIS_LYON),
           ITEMS("a", ONE("pen@lyon", 6)));
    EXPECT(engine_do("RESERVE b ITEM pen 3 PLACE paris PLACE berlin"),
           ITEMS("b", ONE("pen@paris", 3)));
    EXPECT(engine_do("RESERVE c ITEM pen 3 ITEM ink 2 " BERLIN_PARIS_LYON),
           ITEMS("c", ONE("ink@berlin", 2) " " ONE("pen@berlin", 3)));
    EXPECT_EVENTS(engine_do("RESERVE d ITEM cap 1 SPLIT NONE PLACE berlin "
                            "PLACE lyon"),
                  "11 RESERVED d");
    CHECK_ENGINE();
}

TEST(without_split_a_refusal_is_about_the_place_that_lacks_the_least)
{
    three_places();
    EXPECT(engine_do("RESERVE a ITEM pen 6 PLACE berlin PLACE paris"),
           "SHORT sku=pen@berlin requested=6 available=5");
    EXPECT(engine_do("RESERVE a ITEM pen 6 PLACE paris PLACE berlin"),
           "SHORT sku=pen@paris requested=6 available=3");
    /* berlin has no cap, lyon too little ink, paris lacks all */
    EXPECT(engine_do("RESERVE a ITEM cap 1 ITEM ink 4 ITEM pen 4 PLACE paris "
                     "PLACE lyon PLACE berlin"),
           "SHORT sku=ink@lyon requested=4 available=2");
    EXPECT(engine_do("RESERVE a ITEM ink 5 ITEM pen 6 PLACE berlin"),
           "SHORT sku=ink@berlin requested=5 available=4 items=["
           "{sku=ink@berlin requested=5 available=4} "
           "{sku=pen@berlin requested=6 available=5}]");
    EXPECT(engine_do("RESERVE a ITEM cap 1 PLACE berlin PLACE paris"),
           "NOTFOUND sku=cap@berlin");
    EXPECT(engine_do("RESERVE a ITEM pen 1 PLACE rome"),
           "NOTFOUND sku=pen@rome");
    CHECK_ENGINE();
}

TEST(order_takes_the_first_places_first)
{
    three_places();
    EXPECT(engine_do("RESERVE a ITEM pen 7 SPLIT ORDER " BERLIN_PARIS_LYON),
           ITEMS("a", ONE("pen@berlin", 5) " " ONE("pen@paris", 2)));
    EXPECT(engine_do("RESERVE b ITEM pen 10 SPLIT ORDER " BERLIN_PARIS_LYON),
           ITEMS("b", ONE("pen@lyon", 9) " " ONE("pen@paris", 1)));
    EXPECT(engine_do("RESERVE c ITEM pen 1 SPLIT ORDER " BERLIN_PARIS_LYON),
           "SHORT sku=pen requested=1 available=0");
    CHECK_ENGINE();
}

TEST(most_takes_the_place_with_most_units_first)
{
    three_places();
    EXPECT(engine_do("RESERVE a ITEM pen 11 SPLIT MOST " BERLIN_PARIS_LYON),
           ITEMS("a", ONE("pen@berlin", 2) " " ONE("pen@lyon", 9)));
    engine_set("pen@lyon", 12); /* berlin, paris and lyon have 3 */
    EXPECT(engine_do("RESERVE b ITEM pen 4 SPLIT MOST PLACE paris PLACE lyon "
                     "PLACE berlin"),
           ITEMS("b", ONE("pen@lyon", 1) " " ONE("pen@paris", 3)));
    CHECK_ENGINE();
}

TEST(fewest_takes_as_few_places_as_all_items_together_can_do_with)
{
    three_places();
    /* MOST would begin with lyon: two places as well, but later ones */
    EXPECT(engine_do("RESERVE a ITEM pen 8 SPLIT FEWEST PLACE paris PLACE "
                     "berlin"),
           ITEMS("a", ONE("pen@berlin", 5) " " ONE("pen@paris", 3)));
    engine_cancel("a", "");
    EXPECT(engine_do("RESERVE b ITEM pen 8 SPLIT FEWEST " BERLIN_PARIS_LYON),
           ITEMS("b", ONE("pen@lyon", 8)));
    engine_cancel("b", "");
    /* each alone would be of one place; lyon has too little ink for both */
    EXPECT(engine_do("RESERVE c ITEM pen 8 ITEM ink 4 SPLIT FEWEST PLACE lyon "
                     "PLACE berlin PLACE paris"),
           ITEMS("c", ONE("ink@berlin", 4) " " ONE("pen@lyon", 8)));
    engine_cancel("c", "");
    /* cap is in lyon only, so that pens come from there, too */
    EXPECT(
        engine_do(
            "RESERVE d ITEM pen 5 ITEM cap 1 SPLIT FEWEST " BERLIN_PARIS_LYON),
        ITEMS("d", ONE("cap@lyon", 1) " " ONE("pen@lyon", 5)));
    engine_cancel("d", "");
    /* two of them are enough in two ways: the first as given */
    engine_set("pen@lyon", 5);
    engine_set("pen@paris", 5);
    EXPECT(engine_do("RESERVE e ITEM pen 9 SPLIT FEWEST PLACE lyon PLACE "
                     "berlin PLACE paris"),
           ITEMS("e", ONE("pen@berlin", 4) " " ONE("pen@lyon", 5)));
    CHECK_ENGINE();
}

/* Every choice of up to ten places, by trying all of them. */
TEST(fewest_is_exact_for_ten_places)
{
    static const unsigned has[2][10] = {{3, 1, 4, 1, 5, 9, 2, 6, 5, 3},
                                        {2, 7, 1, 8, 2, 8, 1, 8, 2, 8}};
    char places[256] = "";

    engine_start();
    for (unsigned k = 0; k < 10; k++) {
        char sku[16];
        snprintf(sku, sizeof sku, "a@p%u", k);
        engine_set(sku, has[0][k]);
        sku[0] = 'b';
        engine_set(sku, has[1][k]);
        snprintf(places + strlen(places), sizeof places - strlen(places),
                 " PLACE p%u", k);
    }
    for (unsigned a = 1; a <= 39; a += 2) {
        for (unsigned b = 1; b <= 47; b += 3) {
            int fewest = 11;
            unsigned best = 0;
            for (unsigned set = 1; set < 1024; set++) {
                unsigned sums[2] = {0, 0};
                for (unsigned k = 0; k < 10; k++) {
                    sums[0] += set >> k & 1 ? has[0][k] : 0;
                    sums[1] += set >> k & 1 ? has[1][k] : 0;
                }
                if (sums[0] < a || sums[1] < b)
                    continue;
                int count = __builtin_popcount(set);
                unsigned differ = set ^ best;
                if (count < fewest ||
                    (count == fewest && (set & (differ & -differ)) != 0)) {
                    fewest = count;
                    best = set;
                }
            }
            const struct hold_out *out =
                engine_do("RESERVE r%u-%u ITEM a %u ITEM b %u SPLIT FEWEST%s",
                          a, b, a, b, places);
            const char *text = engine_reply_text(out);
            unsigned used = 0;
            CHECK_EQ(out->code, HOLD_OK);
            for (unsigned k = 0; k < 10; k++) {
                char name[8];
                snprintf(name, sizeof name, "@p%u ", k);
                used |= (strstr(text, name) != NULL ? 1u : 0u) << k;
            }
            CHECK_EQ(used, best);
            engine_do("CANCEL r%u-%u", a, b);
        }
    }
    CHECK_ENGINE();
}

TEST(what_others_wait_for_is_not_taken)
{
    three_places();
    engine_do("RESERVE w ITEM pen@berlin 6 WAIT 1000");
    EXPECT(engine_do("RESERVE a ITEM pen 3 PLACE berlin PLACE paris"),
           ITEMS("a", ONE("pen@paris", 3)));
    EXPECT(engine_do("RESERVE b ITEM pen 4 SPLIT ORDER PLACE berlin PLACE "
                     "paris"),
           "SHORT sku=pen requested=4 available=5 waiting=1");
    EXPECT(engine_do("RESERVE b ITEM pen 4 PLACE berlin"),
           "SHORT sku=pen@berlin requested=4 available=5 waiting=1");
    CHECK_ENGINE();
}

TEST(asked_again_it_shows_what_the_first_got)
{
    three_places();
    engine_do("RESERVE a ITEM pen 7 SPLIT ORDER " BERLIN_PARIS_LYON);
    EXPECT(engine_do("RESERVE a ITEM pen 7 SPLIT ORDER " BERLIN_PARIS_LYON),
           ITEMS("a", ONE("pen@berlin", 5) " " ONE("pen@paris", 2)));
    EXPECT(engine_do("RESERVE a ITEM pen 7 SPLIT MOST PLACE paris PLACE "
                     "berlin"),
           ITEMS("a", ONE("pen@berlin", 5) " " ONE("pen@paris", 2)));
    static const char *const others[] = {
        "ITEM pen 6 SPLIT ORDER PLACE berlin PLACE paris",
        "ITEM pen 8 SPLIT ORDER PLACE berlin PLACE paris",
        "ITEM pen 7 SPLIT ORDER PLACE berlin PLACE lyon",
        "ITEM pen 7 PLACE berlin PLACE paris",
        "ITEM pen 7 ITEM ink 1 SPLIT ORDER PLACE berlin PLACE paris",
        "ITEM ink 7 SPLIT ORDER PLACE berlin PLACE paris",
        "ITEM pen 7"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        EXPECT(engine_do("RESERVE a %s", others[i]), "CONFLICT id=a");
    EXPECT(engine_do("RESERVE a ITEM pen@berlin 5 ITEM pen@paris 2"),
           ITEMS("a", ONE("pen@berlin", 5) " " ONE("pen@paris", 2)));
    engine_do("CANCEL a ITEM pen@paris 2");
    EXPECT(engine_do("RESERVE a ITEM pen 7 SPLIT ORDER " BERLIN_PARIS_LYON),
           "CONFLICT id=a");
    EXPECT(engine_do("RESERVE a ITEM pen 5 " BERLIN_PARIS_LYON),
           ITEMS("a", ONE("pen@berlin", 5)));
    engine_do("CONFIRM a");
    EXPECT(engine_do("RESERVE a ITEM pen 5 " BERLIN_PARIS_LYON),
           "STATE id=a status=CONFIRMED");
    CHECK_ENGINE();
}

TEST(a_request_told_again_is_the_first_answer)
{
    three_places();
    const char *text =
        "RESERVE * ITEM pen 17 SPLIT MOST REQ q " BERLIN_PARIS_LYON;
    char first[512];
    snprintf(first, sizeof first, "%s",
             engine_reply_text(engine_do("%s", text)));
    CHECK(strstr(first, "pen@berlin quantity=5") != NULL);
    EXPECT(engine_do("%s", text), first);
    EXPECT(engine_do("RESERVE b ITEM pen 1 ITEM ink 9 SPLIT FEWEST REQ "
                     "s " BERLIN_PARIS_LYON),
           "SHORT sku=ink requested=9 available=6 items=["
           "{sku=ink requested=9 available=6} "
           "{sku=pen requested=1 available=0}]");
    CHECK_ENGINE();
}

/* ---- STOCK PLACES. ---- */

#define PLACED(place, total, available, reserved, sold, version) \
    "{sku=pen@" place " total=" #total " available=" #available  \
    " reserved=" #reserved " sold=" #sold " version=" #version   \
    " updated_ms=1000000 low=0 waiting=0 place=" place "}"

TEST(places_are_listed_by_name_with_their_sums)
{
    three_places();
    engine_do("RESERVE a ITEM pen 7 SPLIT ORDER " BERLIN_PARIS_LYON);
    engine_do("RESERVE b ITEM pen 2 PLACE lyon");
    engine_do("CONFIRM b");
    static const char all[] =
        "OK sku=pen total=17 available=8 reserved=7 sold=2 count=3 "
        "places=[" PLACED("berlin", 5, 0, 5, 0, 8) " " PLACED(
            "lyon", 9, 7, 0, 2, 10) " " PLACED("paris", 3, 1, 2, 0,
                                               8) "] cursor=0";
    EXPECT(engine_do("STOCK PLACES pen"), all);
    engine_reload();
    EXPECT(engine_do("STOCK PLACES pen"), all);
    EXPECT(engine_do("STOCK PLACES pen COUNT 1"),
           "OK sku=pen total=17 available=8 reserved=7 sold=2 count=3 "
           "places=[" PLACED("berlin", 5, 0, 5, 0, 8) "] cursor=1");
    EXPECT(engine_do("STOCK PLACES pen CURSOR 2"),
           "OK sku=pen total=17 available=8 reserved=7 sold=2 count=3 "
           "places=[" PLACED("paris", 3, 1, 2, 0, 8) "] cursor=0");
    EXPECT(engine_do("STOCK PLACES pen CURSOR 3"),
           "OK sku=pen total=17 available=8 reserved=7 sold=2 count=3 "
           "places=[] cursor=0");
    EXPECT(engine_do("STOCK PLACES pencil"), "NOTFOUND sku=pencil");
    EXPECT(engine_do("STOCK PLACES pen@paris"), "NOTFOUND sku=pen@paris");
    CHECK_ENGINE();
}

TEST(the_last_at_parts_a_name_unless_a_part_is_empty)
{
    engine_start();
    engine_set("a@b@c", 1);
    engine_set("a@b", 2);
    engine_set("@c", 3);
    engine_set("a@", 4);
    engine_set("a", 5);
    EXPECT_BEGINS(engine_do("STOCK PLACES a@b"), "OK sku=a@b total=1 ");
    EXPECT_BEGINS(engine_do("STOCK PLACES a"), "OK sku=a total=2 ");
    EXPECT(engine_do("RESERVE r ITEM a@b 1 PLACE c"),
           ITEMS("r", ONE("a@b@c", 1)));
    CHECK_EQ(hf_index_count(&engine->places), 2);
    CHECK_ENGINE();
}

TEST(a_product_without_a_place_takes_no_memory_for_it)
{
    engine_start();
    for (unsigned i = 0; i < 100; i++) {
        char sku[16];
        snprintf(sku, sizeof sku, "sku%u", i);
        engine_set(sku, 1);
    }
    CHECK_EQ(engine->places.slab.used + engine->forks.used, 0);
    engine_set("sku@x", 1);
    CHECK_EQ(engine->places.slab.used, 1);
    CHECK_EQ(engine->forks.used, 0);
    CHECK_ENGINE();
}

TEST(places_go_with_their_products)
{
    three_places();
    engine_delete("pen@lyon");
    EXPECT_BEGINS(engine_do("STOCK PLACES pen"),
                  "OK sku=pen total=8 available=8 reserved=0 sold=0 count=2 ");
    engine_delete("pen@berlin");
    engine_delete("pen@paris");
    EXPECT(engine_do("STOCK PLACES pen"), "NOTFOUND sku=pen");
    EXPECT_BEGINS(engine_do("STOCK PLACES ink"), "OK sku=ink total=6 ");
    CHECK_ENGINE();
    engine_flush();
    EXPECT(engine_do("STOCK PLACES ink"), "NOTFOUND sku=ink");
    engine_set("ink@b", 1);
    EXPECT_BEGINS(engine_do("STOCK PLACES ink"), "OK sku=ink total=1 ");
    CHECK_ENGINE();
}

TEST(sums_are_exact_at_the_instant_of_an_expiry)
{
    three_places();
    for (unsigned i = 0; i < 3 * HOLD_STEP_MAX; i++) {
        engine_add("pen@berlin", 1);
        engine_do("RESERVE r%u ITEM pen 1 PLACE berlin TTL 1000", i);
    }
    engine_now_us += 1000 * MS - 1;
    engine_tick();
    EXPECT_BEGINS(engine_do("STOCK PLACES pen"),
                  "OK sku=pen total=785 available=17 reserved=768 sold=0 ");
    engine_now_us += 1; /* more than one step sweeps */
    engine_tick();
    CHECK(hold_is_behind(engine));
    EXPECT(engine_do("STOCK PLACES pen"), "EARLY");
    while (hold_is_behind(engine))
        engine_tick();
    EXPECT_BEGINS(engine_do("STOCK PLACES pen"),
                  "OK sku=pen total=785 available=785 reserved=0 sold=0 ");
    CHECK_ENGINE();
}

TEST(a_sum_beyond_a_number_is_told_as_the_highest)
{
    engine_start();
    engine_set("pen@a", INT64_MAX);
    engine_set("pen@b", INT64_MAX);
    EXPECT_BEGINS(engine_do("STOCK PLACES pen"),
                  "OK sku=pen total=9223372036854775807 "
                  "available=9223372036854775807 reserved=0 sold=0 count=2 ");
    EXPECT_BEGINS(engine_do("RESERVE r ITEM pen 9223372036854775807 SPLIT "
                            "FEWEST PLACE a PLACE b"),
                  "OK id=r");
    EXPECT_BEGINS(engine_do("STOCK PLACES pen"),
                  "OK sku=pen total=9223372036854775807 "
                  "available=9223372036854775807 "
                  "reserved=9223372036854775807 sold=0 ");
    engine_delete("pen@b");
    EXPECT_BEGINS(engine_do("STOCK PLACES pen"),
                  "OK sku=pen total=9223372036854775807 available=0 ");
    CHECK_ENGINE();
}

TEST(a_group_that_is_refused_leaves_places_as_they_were)
{
    three_places();
    uint64_t before = hold_digest(engine);
    EXPECT_BEGINS(
        engine_group(NULL,
                     "STOCK SET pen@a 4; STOCK SET cup@a 4; STOCK DEL "
                     "ink@lyon; STOCK DEL cap@lyon; RESERVE r ITEM pen 8 SPLIT "
                     "FEWEST PLACE a PLACE berlin; CONFIRM r; STOCK PLACES "
                     "pen; STOCK PLACES nothing"),
        "EXECABORT position=8");
    CHECK_EQ(hold_digest(engine), before);
    EXPECT(engine_do("STOCK PLACES cup"), "NOTFOUND sku=cup");
    EXPECT_BEGINS(
        engine_do("STOCK PLACES pen"),
        "OK sku=pen total=17 available=17 reserved=0 sold=0 count=3 ");
    EXPECT_BEGINS(engine_do("STOCK PLACES cap"), "OK sku=cap total=1 ");
    CHECK_ENGINE();
    EXPECT_BEGINS(engine_group(NULL,
                               "STOCK SET pen@a 4; RESERVE r ITEM pen 8 SPLIT "
                               "FEWEST PLACE a PLACE berlin; STOCK PLACES pen "
                               "COUNT 1"),
                  "OK {");
    EXPECT_BEGINS(
        engine_do("STOCK PLACES pen"),
        "OK sku=pen total=21 available=13 reserved=8 sold=0 count=4 ");
    CHECK_ENGINE();
}

/* 2,000 places, in pages; work stays bounded. */
TEST(a_listing_goes_on_where_it_ended)
{
    char last[32] = "";
    uint64_t cursor = 0;
    size_t count = 0;

    engine_start();
    for (unsigned i = 0; i < 2000; i++) {
        char sku[32];
        snprintf(sku, sizeof sku, "pen@p%u", i * 7919 % 2000);
        engine_set(sku, 1);
    }
    do {
        const struct hold_out *out = engine_do("STOCK PLACES pen CURSOR %llu",
                                               (unsigned long long)cursor);
        size_t at = 0;
        CHECK(out->work <= HOLD_STEPS_MAX + 2 * HOLD_NAME_MAX);
        CHECK_EQ(reply_next(out->body, &at).count, 8);
        while (reply_next_field(out->body, &at) != FIELD_PLACES)
            reply_skip(out->body, &at);
        uint32_t on_page = reply_next(out->body, &at).count;
        CHECK(on_page > 0 && on_page <= HOLD_LIST_MAX);
        for (uint32_t i = 0; i < on_page; i++) {
            size_t from = at;
            reply_skip(out->body, &at);
            struct hf_bytes place = reply_get_text(
                hf_bytes(out->body.data + from, at - from), FIELD_PLACE);
            CHECK(hf_bytes_compare(hf_bytes_text(last), place) < 0);
            snprintf(last, sizeof last, "%.*s", HF_SHOW(place));
            count++;
        }
        CHECK_EQ(reply_next_field(out->body, &at), FIELD_CURSOR);
        cursor = (uint64_t)reply_next(out->body, &at).number;
    } while (cursor != 0);
    CHECK_EQ(count, 2000);
    CHECK_ENGINE();
}

/* ---- Records. ---- */

TEST(a_list_of_places_is_checked_in_a_record)
{
    static const struct {
        const char *places;
        bool good;
    } rows[] = {{"a", true},
                {"a@b", true},
                {"a@b@a", false},
                {"@a", false},
                {"a@", false},
                {"a@@b", false},
                {"0@1@2@3@4@5@6@7@8@9", true},
                {"0@1@2@3@4@5@6@7@8@9@x", false}};
    char record[1024];
    static struct hold_command found;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hold_command c = {.kind = HOLD_RESERVE,
                                 .note = hf_bytes_text(rows[i].places)};
        hold_add_item(&c, hf_bytes_text("pen"), 1);
        size_t len = hold_encode(&c, record);
        CHECK_EQ(hold_decode(hf_bytes(record, len), &found),
                 rows[i].good ? HF_OK : HF_CORRUPT);
        c.wait_ms = 1;
        len = hold_encode(&c, record);
        CHECK_EQ(hold_decode(hf_bytes(record, len), &found), HF_CORRUPT);
    }
    struct hold_command alone = {.kind = HOLD_RESERVE,
                                 .flags = 1u << HOLD_SPLIT_SHIFT};
    hold_add_item(&alone, hf_bytes_text("pen"), 1);
    CHECK_EQ(hold_find_wrong(&alone), WRONG_SPLIT);
    struct hold_command lock = {.kind = HOLD_LOCK,
                                .flags = 1u << HOLD_SPLIT_SHIFT};
    CHECK_EQ(hold_find_wrong(&lock), WRONG_KEY);
}

TEST(items_times_places_are_no_more_than_a_reservation_may_have)
{
    struct hold_command c = {.kind = HOLD_RESERVE};
    char names[65][8];

    (void)hold_add_place(&c, hf_bytes_text("a"));
    (void)hold_add_place(&c, hf_bytes_text("b"));
    for (unsigned i = 0; i < 65; i++) {
        snprintf(names[i], sizeof names[i], "s%u", i);
        hold_add_item(&c, hf_bytes_text(names[i]), 1);
        c.flags = (uint64_t)SPLIT_MOST << HOLD_SPLIT_SHIFT;
        CHECK_EQ(hold_find_wrong(&c), i < 64 ? HOLD_RIGHT : WRONG_TOO_SPLIT);
        c.flags = 0;
        CHECK_EQ(hold_find_wrong(&c), HOLD_RIGHT);
    }
}

/* ---- What hold_check() sees. ---- */

TEST(wrong_sums_and_places_out_of_order_are_seen)
{
    struct hf_bytes pen = hf_bytes_text("pen");

    three_places();
    struct places *places =
        hf_index_at(&engine->places, hf_index_find(&engine->places, pen));
    places->sold++;
    BROKEN("the sums over pen are wrong");
    places->sold--;
    struct fork *fork = hf_slab_at(&engine->forks, places->root >> 1);
    uint32_t under = fork->under[0];
    fork->under[0] = fork->under[1];
    fork->under[1] = under;
    BROKEN("the places of pen are out of order");
    fork->under[1] = fork->under[0];
    fork->under[0] = under;
    CHECK_ENGINE();
    hf_index_remove(&engine->places,
                    hf_index_find(&engine->places, hf_bytes_text("cap")));
    BROKEN("7 products are of a place, not 6");
}
