/* Tests of hf_lender: what it lends, takes back, refuses and retires. Its
 * thread, and those who wait: lender_wait.c. */
#include "holdfast/lender.h"

#include "base/memory.h"
#include "holdfast/lender_postgres.h"
#include "keep/lender_state.h"
#include "support/lending.h"
#include "support/test.h"

TEST(bad_input_is_refused)
{
    struct hf_lender_opts good = opts_of(0, 2);
    struct hf_lender_opts opts;
    struct hf_lender *lender = NULL;
    struct hf_pool *pool = (struct hf_pool *)&good;

    CHECK_EQ(hf_lender_open(NULL, &good), HF_INVALID);
    CHECK_EQ(hf_lender_open(&lender, NULL), HF_INVALID);
#define REFUSED(field, value)                                 \
    do {                                                      \
        opts = good;                                          \
        opts.field = (value);                                 \
        CHECK_EQ(hf_lender_open(&lender, &opts), HF_INVALID); \
    } while (0)
    REFUSED(create, NULL);
    REFUSED(destroy, NULL);
    REFUSED(min, 3);
    REFUSED(max, HF_LENDER_MAX + 1);
    REFUSED(room, 1);
    REFUSED(room, HF_LENDER_MAX + 1);
    REFUSED(spread, 101);
    REFUSED(pool, pool);
    opts = good;
    opts.pause_ns = 10;
    opts.pause_max_ns = 9;
    CHECK_EQ(hf_lender_open(&lender, &opts), HF_INVALID);
    CHECK(lender == NULL);
    CHECK_EQ(hf_lender_postgres(NULL, ""), HF_INVALID);
    CHECK_EQ(hf_lender_postgres(&opts, NULL), HF_INVALID);
}

TEST(null_changes_nothing)
{
    struct hf_lender_opts opts = opts_of(0, 2);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan;

    CHECK_EQ(hf_lender_borrow(NULL, "a", HF_NOW, &loan), HF_INVALID);
    CHECK_EQ(hf_lender_borrow(lender, "a", HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_lender_return(NULL, &loan), HF_INVALID);
    CHECK_EQ(hf_lender_return(lender, NULL), HF_INVALID);
    CHECK_EQ(hf_lender_discard(NULL, &loan), HF_INVALID);
    CHECK_EQ(hf_lender_discard(lender, NULL), HF_INVALID);
    CHECK_EQ(hf_lender_await(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_lender_await(lender, HF_NOW), HF_INVALID); /* not shut */
    CHECK_EQ(hf_lender_resize(NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_lender_out(NULL, NULL, NULL), 0);
    CHECK(hf_lender_tend(NULL) == HF_FOREVER);
    hf_lender_stats(NULL, NULL);
    hf_lender_stats(lender, NULL);
    hf_lender_renew(NULL);
    hf_lender_shutdown(NULL);
    hf_lender_close(NULL);
    CHECK_EQ(stats_of(lender).borrows, 0);
    end(lender);
}

TEST(what_is_returned_is_lent_again)
{
    struct hf_lender_opts opts = opts_of(0, 2);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan a = borrow(lender, "a");
    struct hf_loan b = borrow(lender, "b");
    struct hf_loan c;

    CHECK(a.resource != b.resource);
    CHECK_EQ(hf_lender_borrow(lender, "c", HF_NOW, &c), HF_TIMEOUT);
    CHECK_EQ(stats_of(lender).out, 2);
    give_back(lender, &a);
    CHECK_EQ(stats_of(lender).idle, 1);
    c = borrow(lender, "c");
    CHECK(c.resource == a.resource);
    CHECK(c.id != a.id);
    give_back(lender, &b);
    give_back(lender, &c);
    struct hf_lender_stats stats = stats_of(lender);
    CHECK_EQ(stats.borrows, 3);
    CHECK_EQ(stats.returns, 3);
    CHECK_EQ(stats.timeouts, 1);
    CHECK_EQ(stats.created, 2);
    CHECK_EQ(stats.idle, 2);
    CHECK_EQ(stats.out, 0);
    CHECK_EQ(stats.max, 2);
    end(lender);
}

TEST(a_thread_gets_the_one_it_had_last)
{
    struct hf_lender_opts opts = opts_of(0, 3);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan a = borrow(lender, NULL);
    struct hf_loan b = borrow(lender, NULL);
    struct hf_loan c = borrow(lender, NULL);

    give_back(lender, &a);
    give_back(lender, &b);
    give_back(lender, &c);
    for (int i = 0; i < 3; i++) {
        struct hf_loan again = borrow(lender, NULL);
        CHECK(again.resource == c.resource);
        give_back(lender, &again);
    }
    end(lender);
}

TEST(a_foreign_or_returned_loan_is_refused_and_changes_nothing)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    struct hf_lender *lender = open_with(&opts);
    struct hf_lender *other = open_with(&opts);
    struct hf_loan old = borrow(lender, "old");
    struct hf_loan foreign = borrow(other, "foreign");

    give_back(lender, &old);
    CHECK_EQ(hf_lender_return(lender, &old), HF_INVALID);
    CHECK_EQ(hf_lender_discard(lender, &old), HF_INVALID);
    struct hf_loan now = borrow(lender, "now");
    CHECK(now.resource == old.resource);
    CHECK_EQ(hf_lender_return(lender, &old), HF_INVALID); /* lent to another */
    CHECK_EQ(hf_lender_discard(lender, &old), HF_INVALID);
    CHECK_EQ(hf_lender_return(lender, &foreign), HF_INVALID);
    struct hf_loan made_up = now;
    made_up.id += 1; /* a slot that is not there */
    CHECK_EQ(hf_lender_return(lender, &made_up), HF_INVALID);
    made_up.id = now.id + (1 << 16); /* a loan that is not yet */
    CHECK_EQ(hf_lender_return(lender, &made_up), HF_INVALID);
    CHECK_EQ(stats_of(lender).out, 1);
    CHECK_EQ(stats_of(lender).refused, 7);
    CHECK_EQ(stats_of(lender).broken, 0);
    give_back(lender, &now);
    give_back(other, &foreign);
    hf_lender_close(other);
    end(lender);
}

TEST(what_broke_is_replaced)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan a = borrow(lender, "a");

    thing_end(a.resource);
    CHECK_EQ(hf_lender_discard(lender, &a), HF_OK);
    CHECK_EQ(things_read(&things.alive), 0);
    CHECK_EQ(hf_lender_return(lender, &a), HF_INVALID);
    struct hf_loan b = borrow(lender, "b");
    CHECK_EQ(number_of(&b), 1);
    give_back(lender, &b);
    CHECK_EQ(stats_of(lender).broken, 1);
    CHECK_EQ(stats_of(lender).borrows, 2);
    CHECK_EQ(stats_of(lender).returns, 2);
    CHECK_EQ(things_read(&things.events[HF_LENDER_BROKEN]), 1);
    end(lender);
}

TEST(validate_finds_what_broke_and_the_borrower_gets_another)
{
    struct hf_lender_opts opts = opts_of(0, 3);
    opts.validate = thing_validate;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loans[3];

    for (int i = 0; i < 3; i++)
        loans[i] = borrow(lender, NULL);
    CHECK_EQ(stats_of(lender).validated, 0); /* they are new */
    for (int i = 0; i < 3; i++)
        give_back(lender, &loans[i]);
    hf_u32_store(&things.all[0].bad, 1, __ATOMIC_SEQ_CST);
    hf_u32_store(&things.all[2].bad, 1, __ATOMIC_SEQ_CST);
    struct hf_loan loan = borrow(lender, NULL);
    CHECK_EQ(number_of(&loan), 1);
    CHECK_EQ(stats_of(lender).broken, 2);
    CHECK_EQ(stats_of(lender).validated, 3);
    CHECK_EQ(stats_of(lender).borrows, 4);
    give_back(lender, &loan);
    hf_u32_store(&things.all[1].bad, 1, __ATOMIC_SEQ_CST);
    loan = borrow(lender, NULL); /* none is fit: a new one */
    CHECK_EQ(number_of(&loan), 3);
    give_back(lender, &loan);
    end(lender);
}

TEST(one_that_came_back_just_now_is_trusted)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    opts.validate = thing_validate;
    opts.trust_ns = 500;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan = borrow(lender, NULL);

    give_back(lender, &loan);
    test_clock_advance(&hands, 499);
    loan = borrow(lender, NULL);
    give_back(lender, &loan);
    CHECK_EQ(stats_of(lender).validated, 0);
    test_clock_advance(&hands, 500);
    loan = borrow(lender, NULL);
    CHECK_EQ(stats_of(lender).validated, 1);
    give_back(lender, &loan);
    end(lender);
    opts.trust_ns = HF_FOREVER;
    lender = open_with(&opts);
    loan = borrow(lender, NULL);
    give_back(lender, &loan);
    test_clock_advance(&hands, 1 << 30);
    loan = borrow(lender, NULL);
    CHECK_EQ(stats_of(lender).validated, 0);
    give_back(lender, &loan);
    end(lender);
}

TEST(reset_is_called_before_the_next_has_it)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    opts.reset = thing_reset;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan = borrow(lender, NULL);

    give_back(lender, &loan);
    CHECK_EQ(things_read(&things.resets), 1);
    CHECK_EQ(hf_lender_return(lender, &loan), HF_INVALID);
    CHECK_EQ(things_read(&things.resets), 1);
    loan = borrow(lender, NULL);
    hf_u32_store(&things.all[0].bad, 1, __ATOMIC_SEQ_CST);
    give_back(lender, &loan);
    CHECK_EQ(stats_of(lender).broken, 1);
    loan = borrow(lender, NULL);
    CHECK_EQ(number_of(&loan), 1);
    give_back(lender, &loan);
    end(lender);
}

TEST(a_create_that_fails_is_told_to_a_direct_borrower)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan;

    hf_u32_store(&things.fail, 2, __ATOMIC_SEQ_CST);
    CHECK_EQ(hf_lender_borrow(lender, "a", HF_FOREVER, &loan), HF_FAILED);
    CHECK_EQ(hf_lender_borrow(lender, "a", HF_FOREVER, &loan), HF_FAILED);
    loan = borrow(lender, "a");
    give_back(lender, &loan);
    CHECK_EQ(stats_of(lender).failed, 2);
    CHECK_EQ(stats_of(lender).borrows, 1);
    CHECK_EQ(things_read(&things.events[HF_LENDER_FAILED]), 2);
    end(lender);
}

TEST(too_old_goes_when_idle_or_when_it_comes_back)
{
    struct hf_lender_opts opts = opts_of(0, 2);
    opts.age_ns = 1000;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan a = borrow(lender, "a");
    struct hf_loan b = borrow(lender, "b");

    give_back(lender, &b);
    uint64_t next_ns = hf_lender_tend(lender);
    CHECK(next_ns >= hands.now_ns + 900 && next_ns <= hands.now_ns + 1000);
    test_clock_advance(&hands, 899);
    (void)hf_lender_tend(lender);
    CHECK_EQ(stats_of(lender).retired, 0);
    test_clock_advance(&hands, 101);
    (void)hf_lender_tend(lender);
    CHECK_EQ(things_read(&things.alive), 1);
    CHECK_EQ(stats_of(lender).retired, 1);
    give_back(lender, &a);
    CHECK_EQ(things_read(&things.alive), 0);
    CHECK_EQ(stats_of(lender).retired, 2);
    CHECK_EQ(stats_of(lender).broken, 0);
    end(lender);
}

TEST(ages_are_spread)
{
    struct hf_lender_opts opts = opts_of(40, 40);
    opts.age_ns = 100000;
    opts.spread = 50;
    struct hf_lender *lender = open_with(&opts);
    uint64_t steps = 0;
    uint64_t next_ns = hf_lender_tend(lender);

    CHECK_EQ(stats_of(lender).idle, 40);
    CHECK_EQ(hf_lender_resize(lender, 0, 40), HF_OK);
    uint64_t born_ns = hands.now_ns;
    next_ns = hf_lender_tend(lender);
    while (next_ns != HF_FOREVER) {
        CHECK(next_ns >= born_ns + 50000 && next_ns <= born_ns + 100000);
        test_clock_advance(&hands, next_ns - hands.now_ns);
        next_ns = hf_lender_tend(lender);
        steps++;
    }
    CHECK_EQ(stats_of(lender).retired, 40);
    CHECK(steps > 30); /* not all at once */
    end(lender);
}

TEST(idle_for_too_long_goes_down_to_min)
{
    struct hf_lender_opts opts = opts_of(1, 3);
    opts.idle_ns = 1000;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loans[3];

    (void)hf_lender_tend(lender);
    CHECK_EQ(stats_of(lender).created, 1); /* min */
    for (int i = 0; i < 3; i++)
        loans[i] = borrow(lender, NULL);
    test_clock_advance(&hands, 5000);
    (void)hf_lender_tend(lender);
    CHECK_EQ(stats_of(lender).retired, 0); /* they are not idle */
    for (int i = 0; i < 3; i++)
        give_back(lender, &loans[i]);
    CHECK(hf_lender_tend(lender) == hands.now_ns + 1000);
    test_clock_advance(&hands, 999);
    (void)hf_lender_tend(lender);
    CHECK_EQ(stats_of(lender).idle, 3);
    test_clock_advance(&hands, 1);
    (void)hf_lender_tend(lender);
    CHECK_EQ(stats_of(lender).idle, 1);
    CHECK_EQ(stats_of(lender).retired, 2);
    end(lender);
}

TEST(a_leak_is_told_once_with_the_name)
{
    struct hf_lender_opts opts = opts_of(0, 2);
    opts.leak_ns = 1000;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan a = borrow(lender, "the report");

    CHECK(hf_lender_tend(lender) == hands.now_ns + 1000);
    test_clock_advance(&hands, 999);
    struct hf_loan b = borrow(lender, "another");
    CHECK(hf_lender_tend(lender) == hands.now_ns + 1);
    CHECK_EQ(stats_of(lender).leaked, 0);
    test_clock_advance(&hands, 1);
    (void)hf_lender_tend(lender);
    (void)hf_lender_tend(lender);
    CHECK_EQ(stats_of(lender).leaked, 1);
    CHECK_TEXT(things_leak(&things), strlen(things_leak(&things)),
               "the report");
    CHECK_EQ(things.leak_held_ns.value, 1000);
    CHECK_EQ(things_read(&things.events[HF_LENDER_LEAKED]), 1);
    give_back(lender, &a);
    give_back(lender, &b);
    a = borrow(lender, "again"); /* a new loan can leak as well */
    test_clock_advance(&hands, 1000);
    (void)hf_lender_tend(lender);
    CHECK_EQ(stats_of(lender).leaked, 2);
    CHECK_TEXT(things_leak(&things), strlen(things_leak(&things)), "again");
    give_back(lender, &a);
    end(lender);
}

static char seen[256];

static void list(void *context, const struct hf_lender_note *note)
{
    size_t len = strlen(seen);

    (void)context;
    snprintf(seen + len, sizeof seen - len, "%s %lld %lld;", note->who,
             (long long)note->since_ns, (long long)note->held_ns);
}

TEST(what_is_out_is_listed)
{
    struct hf_lender_opts opts = opts_of(0, 3);
    opts.times = true;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan a = borrow(lender, "a");
    struct hf_loan b = borrow(lender, "b");

    test_clock_advance(&hands, 50);
    struct hf_loan c = borrow(lender, NULL);
    give_back(lender, &b);
    seen[0] = '\0';
    CHECK_EQ(hf_lender_out(lender, list, NULL), 2);
    CHECK_TEXT(seen, strlen(seen), "a 1000000 50; 1000050 0;");
    give_back(lender, &a);
    give_back(lender, &c);
    CHECK_EQ(hf_lender_out(lender, list, NULL), 0);
    end(lender);
    opts.times = false;
    lender = open_with(&opts);
    a = borrow(lender, "a");
    seen[0] = '\0';
    CHECK_EQ(hf_lender_out(lender, list, NULL), 1);
    CHECK_TEXT(seen, strlen(seen), "a -1 -1;");
    give_back(lender, &a);
    end(lender);
}

TEST(the_end_waits_for_what_is_out_and_tells)
{
    struct hf_lender_opts opts = opts_of(0, 3);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan a = borrow(lender, "a");
    struct hf_loan b = borrow(lender, "b");
    struct hf_loan c;

    give_back(lender, &b);
    hf_lender_shutdown(lender);
    hf_lender_shutdown(lender);
    CHECK_EQ(things_read(&things.alive), 1); /* what was idle is gone */
    CHECK_EQ(hf_lender_borrow(lender, "c", HF_FOREVER, &c), HF_CLOSED);
    CHECK_EQ(hf_lender_await(lender, HF_NOW), HF_TIMEOUT);
    seen[0] = '\0';
    CHECK_EQ(hf_lender_out(lender, list, NULL), 1);
    CHECK_TEXT(seen, strlen(seen), "a -1 -1;");
    give_back(lender, &a);
    CHECK_EQ(hf_lender_await(lender, HF_NOW), HF_OK);
    CHECK_EQ(stats_of(lender).destroyed, 2);
    CHECK_EQ(stats_of(lender).retired, 0);
    end(lender);
}

static void change_bounds(bool unfair)
{
    struct hf_lender_opts opts = opts_of(0, 2);
    opts.room = 4;
    opts.unfair = unfair;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loans[4];

    CHECK_EQ(hf_lender_resize(lender, 0, 5), HF_INVALID);
    CHECK_EQ(hf_lender_resize(lender, 0, 0), HF_INVALID);
    CHECK_EQ(hf_lender_resize(lender, 3, 2), HF_INVALID);
    CHECK_EQ(stats_of(lender).max, 2);
    CHECK_EQ(hf_lender_resize(lender, 1, 4), HF_OK);
    for (int i = 0; i < 4; i++)
        loans[i] = borrow(lender, NULL);
    give_back(lender, &loans[3]);
    CHECK_EQ(hf_lender_resize(lender, 0, 2), HF_OK);
    CHECK_EQ(things_read(&things.alive), 3); /* the idle one went */
    give_back(lender, &loans[0]);
    CHECK_EQ(things_read(&things.alive), 2);
    give_back(lender, &loans[1]);
    CHECK_EQ(things_read(&things.alive), 2);
    give_back(lender, &loans[2]);
    CHECK_EQ(stats_of(lender).idle, 2);
    CHECK_EQ(stats_of(lender).retired, 2);
    end(lender);
}

TEST(bounds_can_be_changed)
{
    change_bounds(false);
    change_bounds(true);
}

/* The number of a loan is longer than an id has room for. */
TEST(ids_go_on_when_their_numbers_begin_again)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan = borrow(lender, NULL);
    struct hf_loan old;

    give_back(lender, &loan);
    lender->slots[0].word.value |= ((UINT64_C(1) << 48) - 2) * SLOT_LOAN;
    for (int i = 0; i < 4; i++) {
        old = loan;
        loan = borrow(lender, NULL);
        CHECK(loan.id != old.id);
        CHECK_EQ(hf_lender_return(lender, &old), HF_INVALID);
        give_back(lender, &loan);
    }
    end(lender);
}

TEST(renew_replaces_all_there_is)
{
    struct hf_lender_opts opts = opts_of(0, 2);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan a = borrow(lender, NULL);
    struct hf_loan b = borrow(lender, NULL);

    give_back(lender, &b);
    hf_lender_renew(lender);
    CHECK_EQ(things_read(&things.alive), 1);
    b = borrow(lender, NULL);
    CHECK_EQ(number_of(&b), 2);
    give_back(lender, &a);
    give_back(lender, &b);
    CHECK_EQ(stats_of(lender).idle, 1); /* the new one */
    CHECK_EQ(stats_of(lender).retired, 2);
    end(lender);
}

static void look(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->kind, "lender") == 0 && strcmp(row->name, "db") == 0)
        *(struct hf_inspect_row *)context = *row;
}

TEST(it_is_listed)
{
    struct hf_lender_opts opts = opts_of(0, 2);
    opts.name = "db";
    opts.leak_ns = HF_FOREVER;
    struct hf_lender *lender = open_with(&opts);
    struct hf_inspect_row row = {.depth = 99};
    struct hf_loan a = borrow(lender, "a");
    struct hf_loan b;

    test_clock_advance(&hands, 30);
    b = borrow(lender, "b");
    CHECK_EQ(hf_lender_borrow(lender, "c", HF_NOW, &b), HF_TIMEOUT);
    CHECK_EQ(hf_inspect(look, &row), HF_OK);
    CHECK_EQ(row.depth, 2);
    CHECK_EQ(row.capacity, 2);
    CHECK_EQ(row.oldest_ns, 30);
    CHECK_EQ(row.rejected, 1);
    give_back(lender, &a);
    give_back(lender, &b);
    end(lender);
    row.depth = 99;
    CHECK_EQ(hf_inspect(look, &row), HF_OK);
    CHECK_EQ(row.depth, 99);
}

TEST(no_memory_is_told_and_nothing_is_left)
{
    struct hf_lender_opts opts = opts_of(0, 2);
    struct hf_lender *lender = NULL;
    enum hf_status status = HF_NOMEM;
    uint64_t count = 0;

    for (; status == HF_NOMEM; count++) {
        opts.direct = count % 2 == 0;
        hf_memory_fail_after(count / 2);
        status = hf_lender_open(&lender, &opts);
        hf_memory_fail_never();
    }
    CHECK_EQ(status, HF_OK);
    CHECK(count > 4);
    hf_memory_fail_after(0); /* what is open needs none */
    struct hf_loan loan = borrow(lender, NULL);
    give_back(lender, &loan);
    hf_memory_fail_never();
    end(lender);
}
