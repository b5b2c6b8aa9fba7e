/* Tests of hf_lender when resources cannot be made, or are made but no good:
 * pauses, deadlines, and what the borrower is told. */
#include "base/thread.h"
#include "support/lending.h"
#include "support/threads.h"

static struct hf_lender_opts threaded(uint32_t min, uint32_t max)
{
    struct hf_lender_opts opts = opts_of(min, max);

    opts.direct = false;
    opts.validate = thing_validate;
    opts.pause_ns = 1000;
    opts.pause_max_ns = 4000;
    return opts;
}

static void await_broken(struct hf_lender *lender, uint64_t want)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, 60000);

    while (stats_of(lender).broken < want &&
           hf_clock_now_ns(hf_clock_system()) < end_ns)
        hf_thread_pause();
    CHECK_EQ(stats_of(lender).broken, want);
}

/* ---- New ones that are no good. ---- */

/* Each pause is at least half of its ceiling, which doubles: in it nothing is
 * made, whoever waits. `max` leaves room for more. */
static void pauses(bool unfair, uint32_t max)
{
    static const uint64_t ceilings_ns[] = {1000, 2000, 4000, 4000};
    struct hf_lender_opts opts = threaded(0, max);
    struct borrower borrower = {.deadline_ns = HF_FOREVER};
    struct hf_thread thread;

    opts.unfair = unfair;
    hf_u32_store(&things.spoil, 4, __ATOMIC_SEQ_CST);
    borrower.lender = open_with(&opts);
    CHECK_EQ(hf_thread_start(&thread, "borrower", borrower_run, &borrower),
             HF_OK);
    for (uint32_t i = 0; i < 4; i++) {
        await_broken(borrower.lender, i + 1);
        test_clock_await_sleepers(&hands, 2); /* the thread, and who waits */
        test_clock_advance(&hands, ceilings_ns[i] / 2 - 1);
        test_clock_await_sleepers(&hands, 2);
        CHECK_EQ(things_read(&things.made), i + 1);
        CHECK_EQ(stats_of(borrower.lender).code, 1);
        test_clock_advance(&hands, ceilings_ns[i] / 2 + 1);
    }
    hf_thread_join(&thread);
    CHECK_EQ(borrower.status, HF_OK);
    CHECK_EQ(things_read(&things.made), 5);
    CHECK_EQ(stats_of(borrower.lender).validated, 5);
    CHECK_EQ(stats_of(borrower.lender).code, 0);
    CHECK_EQ(hf_lender_return(borrower.lender, &borrower.loan), HF_OK);
    end(borrower.lender);
}

TEST(a_new_one_that_is_not_valid_counts_as_one_that_failed)
{
    pauses(false, 1);
    pauses(true, 1);
}

TEST(a_pause_holds_also_where_there_is_room_for_more)
{
    pauses(false, 8);
}

/* One that was good once has only grown old: the next is made at once. */
TEST(one_that_broke_later_is_replaced_without_a_pause)
{
    struct hf_lender_opts opts = threaded(0, 1);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan;

    CHECK_EQ(hf_lender_borrow(lender, "b", HF_FOREVER, &loan), HF_OK);
    hf_u32_store(&things.all[0].bad, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    CHECK_EQ(hf_lender_borrow(lender, "b", HF_FOREVER, &loan), HF_OK);
    CHECK_EQ(things_read(&things.made), 2);
    CHECK_EQ(stats_of(lender).broken, 1);
    CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    end(lender);
}

/* ---- Deadlines. ---- */

#define SLOW_NS 400

/* A validate that takes its time. */
static int slow_validate(void *context, void *resource)
{
    test_clock_advance(&hands, SLOW_NS);
    return thing_validate(context, resource);
}

static void late(bool unfair)
{
    struct hf_lender_opts opts = opts_of(0, 3);
    struct hf_loan loans[3];

    opts.unfair = unfair;
    opts.validate = slow_validate;
    struct hf_lender *lender = open_with(&opts);
    for (int i = 0; i < 3; i++)
        loans[i] = borrow(lender, NULL);
    for (int i = 0; i < 3; i++) {
        hf_u32_store(&things.all[i].bad, 1, __ATOMIC_SEQ_CST);
        give_back(lender, &loans[i]);
    }
    /* the first takes longer than there is time: the others are left alone,
     * and nothing is created */
    loans[0].code = 5;
    CHECK_EQ(hf_lender_borrow(lender, "b", hands.now_ns + 50, &loans[0]),
             HF_TIMEOUT);
    CHECK_EQ(stats_of(lender).validated, 1);
    CHECK_EQ(stats_of(lender).broken, 1);
    CHECK_EQ(stats_of(lender).idle, 2);
    CHECK_EQ(stats_of(lender).timeouts, 1);
    CHECK_EQ(stats_of(lender).created, 3);
    CHECK_EQ(loans[0].code, 0); /* no create failed */
    /* there is time for two */
    CHECK_EQ(hf_lender_borrow(lender, "b", hands.now_ns + 450, &loans[0]),
             HF_TIMEOUT);
    CHECK_EQ(stats_of(lender).validated, 3);
    CHECK_EQ(stats_of(lender).timeouts, 2);
    loans[0] = borrow(lender, NULL); /* made for it */
    give_back(lender, &loans[0]);
    end(lender);
}

TEST(who_is_late_begins_no_other_validate)
{
    late(false);
    late(true);
}

TEST(what_turns_out_to_be_fit_is_lent_though_it_is_late)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    opts.validate = slow_validate;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan = borrow(lender, NULL);

    give_back(lender, &loan);
    CHECK_EQ(hf_lender_borrow(lender, "b", hands.now_ns + 50, &loan), HF_OK);
    CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    end(lender);
}

/* Whoever gives up leaves the wish for another behind. */
TEST(who_is_late_leaves_a_wish)
{
    struct hf_lender_opts opts = threaded(0, 1);
    struct hf_loan loan;

    opts.validate = slow_validate;
    struct hf_lender *lender = open_with(&opts);
    CHECK_EQ(hf_lender_borrow(lender, "b", HF_FOREVER, &loan), HF_OK);
    hf_u32_store(&things.all[0].bad, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    CHECK_EQ(hf_lender_borrow(lender, "b", hands.now_ns + 50, &loan),
             HF_TIMEOUT);
    uint64_t end_ns = hf_clock_after_ms(NULL, 60000);
    while (stats_of(lender).created < 2 &&
           hf_clock_now_ns(hf_clock_system()) < end_ns)
        hf_thread_pause();
    CHECK_EQ(stats_of(lender).created, 2);
    end(lender);
}

/* ---- Why. ---- */

TEST(who_waits_in_vain_learns_why)
{
    struct hf_lender_opts opts = threaded(0, 1);
    struct borrower borrower = {.deadline_ns = 0};
    struct hf_thread thread;

    hf_u32_store(&things.fail, UINT32_MAX, __ATOMIC_SEQ_CST);
    borrower.lender = open_with(&opts);
    borrower.deadline_ns = hands.now_ns + 100;
    CHECK_EQ(hf_thread_start(&thread, "borrower", borrower_run, &borrower),
             HF_OK);
    uint64_t end_ns = hf_clock_after_ms(NULL, 60000);
    while (stats_of(borrower.lender).failed == 0 &&
           hf_clock_now_ns(hf_clock_system()) < end_ns)
        hf_thread_pause();
    test_clock_await_sleepers(&hands, 2);
    test_clock_advance(&hands, 100);
    hf_thread_join(&thread);
    CHECK_EQ(borrower.status, HF_TIMEOUT);
    CHECK_EQ(borrower.loan.code, 7);
    CHECK_EQ(stats_of(borrower.lender).code, 7);
    end(borrower.lender);
}

TEST(who_creates_for_itself_learns_why)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan = {.resource = NULL};

    hf_u32_store(&things.fail, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(hf_lender_borrow(lender, "b", HF_FOREVER, &loan), HF_FAILED);
    CHECK_EQ(loan.code, 7);
    CHECK_EQ(stats_of(lender).code, 7);
    loan = borrow(lender, "b");
    CHECK_EQ(stats_of(lender).code, 0);
    struct hf_loan none = {.code = 3};
    CHECK_EQ(hf_lender_borrow(lender, "c", HF_NOW, &none), HF_TIMEOUT);
    CHECK_EQ(none.code, 0); /* it is out: nothing is wrong */
    give_back(lender, &loan);
    end(lender);
}

static int last_code;

static void note_code(void *context, const struct hf_lender_note *note)
{
    (void)context;
    if (note->event == HF_LENDER_BROKEN)
        last_code = note->code;
}

static int say_9(void *context, void *resource)
{
    (void)context;
    (void)resource;
    return 9;
}

TEST(what_validate_and_reset_say_is_told)
{
    struct hf_lender_opts opts = opts_of(0, 1);

    opts.observe = note_code;
    for (int i = 0; i < 2; i++) {
        opts.validate = i == 0 ? say_9 : NULL;
        opts.reset = i == 1 ? say_9 : NULL;
        last_code = 0;
        struct hf_lender *lender = open_with(&opts);
        struct hf_loan loan = borrow(lender, NULL);
        give_back(lender, &loan);
        if (i == 0) {
            loan = borrow(lender, NULL);
            give_back(lender, &loan);
        }
        CHECK_EQ(last_code, 9);
        end(lender);
    }
}

TEST(an_eager_open_makes_them_or_fails)
{
    for (uint32_t round = 0; round < 4; round++) {
        struct hf_lender_opts opts = opts_of(round / 2 * 3, 4);
        struct hf_lender *lender = NULL;
        uint32_t wanted = opts.min > 0 ? opts.min : 1;
        opts.eager = true;
        opts.direct = round % 2 == 0;
        CHECK_EQ(hf_lender_open(&lender, &opts), HF_OK);
        CHECK_EQ(stats_of(lender).idle, wanted);
        CHECK_EQ(stats_of(lender).created, wanted);
        end(lender);
    }
}

static int fail_third(void *context, void **resource)
{
    return things_read(&things.made) == 2 ? 11
                                          : thing_create(context, resource);
}

TEST(an_eager_open_that_fails_leaves_nothing)
{
    struct hf_lender_opts opts = opts_of(3, 4);
    struct hf_lender *lender = NULL;

    opts.eager = true;
    opts.direct = false;
    opts.create = fail_third;
    CHECK_EQ(hf_lender_open(&lender, &opts), HF_FAILED);
    CHECK(lender == NULL);
    CHECK_EQ(things_read(&things.events[HF_LENDER_FAILED]), 1);
    CHECK_EQ(things_read(&things.events[HF_LENDER_CREATED]), 2);
    CHECK_EQ(things_read(&things.alive), 0);
    CHECK_EQ(things_read(&things.wrong), 0);
}

TEST(an_eager_open_without_a_thread_leaves_nothing)
{
    struct hf_lender_opts opts = opts_of(2, 2);
    struct hf_lender *lender = NULL;

    opts.eager = true;
    opts.direct = false;
    hf_thread_fail_after(0);
    CHECK_EQ(hf_lender_open(&lender, &opts), HF_NOMEM);
    hf_thread_fail_never();
    CHECK(lender == NULL);
    CHECK_EQ(things_read(&things.alive), 0);
}
