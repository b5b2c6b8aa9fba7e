/* hold_settled.c - while more is due than one step sweeps, what is about other
 * products does not wait for it, and what is about the same ones does.
 */
#include "support/engine.h"

TEST_ONE_THREAD;

enum { MANY = 1500, TTL_MS = 100 };

/* All apples are reserved; a pear is, and a plum was, for longer. */
static void fill(void)
{
    engine_start();
    engine_set("apple", MANY);
    engine_set("pear", 10);
    engine_set("plum", 10);
    for (unsigned i = 0; i < MANY; i++)
        engine_do("RESERVE r%u ITEM apple 1 TTL %u", i, TTL_MS);
    engine_do("RESERVE p1 ITEM pear 1 TTL %u", 2 * TTL_MS);
}

/* More is due than one step sweeps. */
static void start_backlog(void)
{
    fill();
    engine_now_us += TTL_MS * MS;
    CHECK_EQ(engine_tick()->event_count, HOLD_STEP_MAX);
    CHECK(hold_is_behind(engine));
}

/* Carries out the command of that line; true if it had to wait: for all that is
 * due, or until it depends on nothing of that. */
static bool waits(const char *line)
{
    const struct hold_out *out = engine_do("%s", line);
    bool again = out->code == HOLD_AGAIN;

    while (out->code == HOLD_AGAIN)
        out = engine_again();
    return again;
}

TEST(what_is_about_other_products_is_carried_out_at_once)
{
    static const char *const lines[] = {
        "RESERVE new ITEM pear 9 TTL 5",
        "RESERVE * ITEM pear 4 ITEM plum 10 TTL 5",
        "RESERVE new ITEM pear 50 ITEM plum 1 BEST TTL 5",
        "RESERVE new ITEM pear 11 TTL 5", /* SHORT */
        "RESERVE new ITEM none 1 TTL 5",
        "RESERVE new ITEM plum 11 TTL 5 WAIT 100",
        "RESERVE p1 ITEM pear 1 TTL 5", /* is known */
        "RESERVE r0 ITEM pear 1 TTL 5", /* has ended */
        "RESERVE new ITEM pear 1 TTL 5 REQ q",
        "STOCK SET pear 100",
        "STOCK SET other 100",
        "STOCK ADD pear -9",
        "STOCK LOW pear 20",
        "STOCK ATTR pear colour green",
        "STOCK LIMIT pear 2"};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        start_backlog();
        const struct hold_command *c = engine_parse("%s", lines[i]);
        CHECK(!hold_is_exact(engine, c));
        CHECK(!waits(lines[i]));
        CHECK(hold_is_behind(engine));
        CHECK_ENGINE();
    }
}

TEST(what_may_depend_on_more_waits_for_all_that_is_due)
{
    static const char *const lines[] = {
        "RESERVE new ITEM apple 1 TTL 5",
        "RESERVE new ITEM apple 1 ITEM pear 1 TTL 5",
        "RESERVE r900 ITEM pear 1 TTL 5", /* is over */
        "RESERVE new ITEM pear 1 GROUP g TTL 5",
        "RESERVE new ITEM pear 1 PLACE here TTL 5",
        "RESERVE new ITEM pear 99 PREORDER TTL 5",
        "STOCK SET apple 2000",
        "STOCK DEL plum",
        "STOCK EXPECT pear 5 AT 5000000 REF x",
        "STOCK ARRIVE pear 5",
        "WAITLIST JOIN pear 1 OWNER ann"};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        start_backlog();
        const struct hold_command *c = engine_parse("%s", lines[i]);
        CHECK(hold_is_exact(engine, c));
        CHECK(waits(lines[i]));
        CHECK_EQ(hold_is_behind(engine), i == 2); /* r900 has ended now */
        CHECK_ENGINE();
    }
}

TEST(a_question_about_other_products_is_answered_at_once)
{
    start_backlog();
    EXPECT_BEGINS(engine_get("pear"), "OK sku=pear total=10 available=9 ");
    EXPECT_BEGINS(engine_get("pear plum none"), "OK {sku=pear ");
    EXPECT(engine_get("apple"), "EARLY");
    EXPECT(engine_get("pear apple"), "EARLY");
    EXPECT(engine_do("STOCK LIST"), "EARLY");
    engine_now_us += TTL_MS * MS; /* now the pear is over, too */
    EXPECT(engine_get("pear"), "EARLY");
    EXPECT_BEGINS(engine_get("plum"), "OK sku=plum total=10 available=10 ");
}

/* At a bound, what is over would make room. */
TEST(at_the_bound_of_reservations_all_that_is_due_comes_first)
{
    start_backlog();
    engine_bound("reservations_max", MANY + 2);
    CHECK(!waits("RESERVE one ITEM plum 1 TTL 5"));
    CHECK(waits("RESERVE two ITEM plum 1 TTL 5"));
}

/* When the first of a product ends is not forgotten while some of it is
 * reserved, and never known too late. */
TEST(a_product_is_settled_until_its_first_reservation_ends)
{
    fill();
    engine_now_us++; /* it comes behind the apples */
    engine_do("RESERVE p2 ITEM pear 1 TTL %u", TTL_MS);
    engine_do("RESERVE l1 ITEM plum 1 TTL %u", TTL_MS);
    engine_cancel("p2", "");
    engine_cancel("l1", "");
    engine_do("RESERVE l2 ITEM plum 1 TTL %u", 2 * TTL_MS);
    engine_now_us += TTL_MS * MS - 1;
    engine_tick();
    CHECK(!waits("RESERVE a ITEM pear 1 TTL 5"));
    engine_now_us++;
    CHECK(hold_is_behind(engine));
    CHECK(!waits("RESERVE b ITEM plum 1 TTL 5"));
    CHECK(hold_is_behind(engine));
    CHECK(waits("RESERVE c ITEM pear 1 TTL 5"));
    CHECK_ENGINE();
}

TEST(a_reservation_that_is_to_end_earlier_counts_for_all_its_products)
{
    for (unsigned i = 0; i < 2; i++) {
        fill();
        engine_do("RESERVE both ITEM pear 1 ITEM plum 1 TTL %u", 2 * TTL_MS);
        engine_extend("both", TTL_MS);
        CHECK_ENGINE();
        engine_now_us += TTL_MS * MS;
        engine_tick();
        CHECK(hold_is_behind(engine));
        CHECK(waits(i == 0 ? "RESERVE new ITEM pear 9 TTL 5"
                           : "RESERVE new ITEM plum 10 TTL 5"));
    }
}

TEST(a_reservation_that_is_to_end_earlier_counts_from_then_on)
{
    for (unsigned group = 0; group < 3; group++) {
        fill();
        if (group == 0)
            engine_extend("p1", TTL_MS);
        else
            engine_group(NULL, group == 1 ? "EXTEND p1 TTL 100"
                                          : "EXTEND p1 TTL 100; CANCEL none");
        CHECK_ENGINE();
        engine_now_us += TTL_MS * MS;
        engine_tick();
        CHECK(hold_is_behind(engine));
        CHECK_EQ(waits("RESERVE new ITEM pear 9 TTL 5"), group < 2);
        CHECK_ENGINE();
    }
}

/* Units of the apple let somebody have his pear, who comes before others. */
TEST(a_product_that_somebody_waits_for_is_not_settled)
{
    fill();
    engine_do("RESERVE both ITEM apple %u ITEM pear 9 TTL 5000 WAIT 5000",
              MANY);
    engine_now_us += TTL_MS * MS - 1;
    EXPECT_BEGINS(engine_do("RESERVE new ITEM pear 9 TTL 5"),
                  "SHORT sku=pear requested=9 available=9 waiting=1");
    engine_now_us++;
    EXPECT(engine_get("pear"), "EARLY");
    CHECK(waits("RESERVE new ITEM pear 9 TTL 5"));
    EXPECT_BEGINS(engine_get("pear"), "OK sku=pear total=10 available=0 ");
    EXPECT_BEGINS(engine_reservation("both"), "OK id=both status=PENDING ");
    CHECK_ENGINE();
}

/* Once it has the apples, others of that id are in conflict with it. */
TEST(an_id_that_waits_is_not_settled)
{
    fill();
    engine_do("WAITLIST JOIN apple %u OWNER ann ID w TTL 5000", MANY);
    engine_now_us += TTL_MS * MS;
    const struct hold_out *out = engine_do("RESERVE w ITEM pear 1 TTL 5");
    CHECK_EQ(out->code, HOLD_AGAIN);
    while (out->code == HOLD_AGAIN)
        out = engine_again();
    EXPECT(out, "CONFLICT id=w");
}

/* What is over stays so. */
TEST(a_clock_that_goes_back_settles_nothing)
{
    start_backlog();
    engine_now_us -= 1;
    EXPECT(engine_get("apple"), "EARLY");
    CHECK(waits("RESERVE new ITEM apple 1 TTL 5"));
}

TEST(a_late_confirm_leaves_the_time_of_its_product)
{
    fill();
    engine_bound("grace_ms", TTL_MS);
    engine_do("RESERVE late ITEM plum 1 TTL 1");
    engine_now_us += 1 * MS;
    engine_do("RESERVE l1 ITEM plum 1 TTL %u", 2 * TTL_MS);
    EXPECT_BEGINS(engine_do("CONFIRM late"), "OK id=late status=CONFIRMED ");
    CHECK_ENGINE();
    engine_now_us += (TTL_MS - 1) * MS;
    engine_tick();
    CHECK(hold_is_behind(engine));
    EXPECT_BEGINS(engine_get("plum"), "OK sku=plum total=10 available=8 ");
    CHECK(!waits("RESERVE new ITEM plum 1 TTL 500"));
    CHECK_ENGINE();
}

/* When the apples are over it has its own, or its wait is over. */
TEST(what_is_about_one_that_waits_comes_behind_what_lets_it_be_served)
{
    static const char *const lines[] = {
        "CONFIRM w", "CANCEL w", "EXTEND w TTL 700", "CANCEL w ITEM apple 1"};
    static const char *const told[] = {
        "OK id=w status=CONFIRMED ", "OK id=w status=CANCELLED ",
        "OK id=w status=PENDING expires_ms=700 ", "OK id=w status=PENDING "};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        for (unsigned in_time = 0; in_time < 2; in_time++) {
            fill();
            engine_do("WAITLIST JOIN apple %u OWNER ann ID w TTL 5000 WAIT %u",
                      MANY, in_time ? 5 * TTL_MS : TTL_MS);
            engine_now_us += TTL_MS * MS;
            const struct hold_out *out = engine_do("%s", lines[i]);
            CHECK_EQ(out->code, HOLD_AGAIN);
            while (out->code == HOLD_AGAIN)
                out = engine_again();
            EXPECT_BEGINS(out, in_time ? told[i] : "NOTFOUND id=w");
            CHECK_ENGINE();
        }
    }
}

/* What comes first depends on it, so it is a part of the state. */
TEST(an_image_taken_in_between_decides_alike)
{
    static const char *const lines[] = {
        "RESERVE a ITEM pear 1 TTL 50", "RESERVE b ITEM plum 1 TTL 50",
        "RESERVE c ITEM plum 1 TTL 50", "RESERVE d ITEM apple 1 TTL 50"};
    uint64_t digests[2];

    for (unsigned again = 0; again < 2; again++) {
        fill();
        engine_do("RESERVE l1 ITEM plum 1 TTL %u", TTL_MS);
        engine_do("RESERVE l2 ITEM plum 1 TTL %u", 3 * TTL_MS);
        engine_cancel("l1", ""); /* nothing of it is due, which is not known */
        engine_now_us += TTL_MS * MS;
        engine_tick();
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
            if (again == 1)
                engine_reload();
            CHECK_EQ(waits(lines[i]), i == 1);
        }
        digests[again] = hold_digest(engine);
    }
    CHECK(digests[0] == digests[1]);
}

static void restart(uint64_t flags)
{
    static struct hold_command c;

    c = (struct hold_command){
        .kind = HOLD_RESTART, .now_us = engine_now_us, .flags = flags};
    CHECK_EQ(engine_apply(&c)->code, HOLD_OK);
}

/* What a server wrote before there was this rule is replayed without it: the
 * numbers are those that clients were told. */
TEST(in_a_journal_of_an_earlier_build_all_that_is_due_comes_first)
{
    for (unsigned again = 0; again < 2; again++) {
        engine_start();
        restart(HOLD_GRAPH);
        engine_set("apple", MANY);
        engine_set("pear", 10);
        engine_set("plum", 10);
        engine_do("RESERVE p1 ITEM pear 1 TTL 5000");
        for (unsigned i = 0; i < MANY; i++)
            engine_do("RESERVE r%u ITEM apple 1 TTL %u", i, TTL_MS);
        engine_now_us += TTL_MS * MS;
        if (again == 1)
            engine_reload();
        CHECK(waits("RESERVE a ITEM plum 1 TTL 5000"));
        CHECK_EQ(hold_seq(engine), 3 + 1 + 2 * MANY + 1);
        for (unsigned i = 0; i < MANY; i++)
            engine_do("RESERVE s%u ITEM apple 1 TTL %u", i, TTL_MS);
        engine_do("WAITLIST JOIN apple 1 OWNER ann ID w");
        engine_now_us += TTL_MS * MS;
        engine_tick();
        CHECK(!waits("CONFIRM w"));
        CHECK(hold_is_behind(engine));
        CHECK(waits("RESERVE t ITEM plum 1 TTL 5000"));
        for (unsigned i = 0; i < MANY - 1; i++)
            engine_do("RESERVE t%u ITEM apple 1 TTL %u", i, TTL_MS);
        /* a start of this build */
        restart(HOLD_GRAPH | HOLD_SETTLED);
        engine_set("fig", 10);
        engine_do("RESERVE f1 ITEM fig 1 TTL 5000");
        if (again == 1)
            engine_reload();
        engine_now_us += TTL_MS * MS;
        engine_tick();
        CHECK(!waits("RESERVE b ITEM fig 1 TTL 5000"));
        CHECK(hold_is_behind(engine));
        /* reserved by the rules of before: its end is not known */
        CHECK(waits("RESERVE c ITEM pear 1 TTL 5000"));
        CHECK_ENGINE();
    }
}
