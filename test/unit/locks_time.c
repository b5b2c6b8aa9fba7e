/* locks_time.c - tests of the lock manager with threads that wait: what ends by
 * time, retries, the end. */
#include "holdfast/locks.h"

#include "support/locking.h"

#define MS UINT64_C(1000000)

TEST(a_hold_that_expires_goes_to_the_next_without_a_call)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    struct hf_locks_request request = {.owner = "main", .ttl_ns = 4 * MS};
    struct locking_call calls[3] = {{0}};

    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_OK);
    for (uint32_t i = 0; i < 3; i++) {
        calls[i] = (struct locking_call){.locks = locks,
                                         .name = "a",
                                         .request = {.owner = i == 0   ? "x"
                                                              : i == 1 ? "y"
                                                                       : "z",
                                                     .ttl_ns = 2 * MS},
                                         .deadline_ns = HF_FOREVER};
        locking_start(&calls[i]);
        locking_await_waiting(locks, i + 1);
    }
    test_clock_await_sleepers(&clock, 3);
    test_clock_advance(&clock, 4 * MS);
    locking_join(&calls[0]); /* it kept the time; another has to now */
    CHECK_EQ(calls[0].answer.waited_ns, 4 * MS);
    test_clock_await_sleepers(&clock, 2);
    test_clock_advance(&clock, 2 * MS);
    locking_join(&calls[1]);
    test_clock_await_sleepers(&clock, 1);
    test_clock_advance(&clock, 2 * MS);
    locking_join(&calls[2]);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(calls[i].status, HF_OK);
    hf_locks_close(locks);
}

TEST(a_time_that_comes_while_others_sleep_is_kept)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    struct hf_locks_request request = {.owner = "main", .ttl_ns = 4 * MS};
    struct locking_call call = {0};

    CHECK_EQ(locking_try(locks, "main", "a", HF_LOCKS_EXCLUSIVE), HF_OK);
    locking_wait_as(&call, locks, "x", "a", HF_LOCKS_EXCLUSIVE, 1);
    test_clock_await_sleepers(&clock, 1);
    /* Nothing was due; now the hold gets an end, and then an earlier one. */
    CHECK_EQ(hf_locks_renew(locks, "a", 0, 9 * MS), HF_NOTFOUND);
    request.ttl_ns = 0;
    struct hf_locks_answer answer;
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, &answer), HF_OK);
    CHECK_EQ(hf_locks_renew(locks, "a", answer.token, 9 * MS), HF_OK);
    CHECK_EQ(hf_locks_renew(locks, "a", answer.token, 3 * MS), HF_OK);
    locking_join_by(&call, &clock, MS); /* which calls nothing */
    CHECK_EQ(call.status, HF_OK);
    hf_locks_close(locks);
}

TEST(a_refused_request_is_tried_again)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    const struct hf_backoff_opts backoff = {.base_ns = MS,
                                            .cap_ns = MS,
                                            .jitter = HF_JITTER_NONE,
                                            .attempts_max = 2};
    struct locking_call call = {.locks = locks,
                                .name = "a",
                                .request = {.owner = "x", .retry = &backoff},
                                .deadline_ns = HF_FOREVER};
    uint64_t token = locking_take(locks, "main", "a");

    for (int patient = 0; patient < 2; patient++) {
        call.request.patience_ns = patient ? MS : 0;
        locking_start(&call);
        locking_join_by(&call, &clock, MS);
        CHECK_EQ(call.status, HF_TIMEOUT);
        CHECK_EQ(call.answer.attempts, 3);
        CHECK(patient || call.answer.waited_ns == 0);
    }
    CHECK_EQ(locking_stats(locks, "a").timeouts, 6);
    call.deadline_ns = clock.now_ns + MS; /* no time for another pause */
    locking_start(&call);
    test_clock_await_sleepers(&clock, 1);
    test_clock_advance(&clock, MS);
    locking_join(&call);
    CHECK_EQ(call.status, HF_TIMEOUT);
    CHECK_EQ(call.answer.attempts, 1);
    CHECK_EQ(call.answer.waited_ns, MS);

    call.deadline_ns = HF_FOREVER;
    call.request.patience_ns = 0;
    locking_start(&call);
    test_clock_await_sleepers(&clock, 1);
    CHECK_EQ(hf_locks_release(locks, "a", token), HF_OK);
    locking_join_by(&call, &clock, MS);
    CHECK_EQ(call.status, HF_OK);
    CHECK_EQ(call.answer.attempts, 2);
    hf_locks_close(locks);
}

TEST(a_deadlock_is_tried_again_and_told_once)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    const struct hf_backoff_opts backoff = {.base_ns = MS, .attempts_max = 2};
    struct locking_call first = {0};
    struct locking_call call = {.locks = locks,
                                .name = "b",
                                .request = {.owner = "main",
                                            .retry = &backoff,
                                            .patience_ns = 1000 * MS},
                                .deadline_ns = HF_FOREVER};
    uint64_t a = locking_take(locks, "main", "a");

    (void)locking_take(locks, "x", "b");
    locking_wait_as(&first, locks, "x", "a", HF_LOCKS_EXCLUSIVE, 1);
    locking_start(&call);
    locking_join_by(&call, &clock, MS);
    CHECK_EQ(call.status, HF_DEADLOCK);
    CHECK_EQ(call.answer.attempts, 3);
    CHECK_EQ(call.answer.link_count, 2);
    hf_locks_answer_free(&call.answer);
    CHECK_EQ(hf_locks_release(locks, "a", a), HF_OK);
    locking_pass_on(&first);
    hf_locks_close(locks);
}

TEST(shutdown_lets_all_leave)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    const struct hf_backoff_opts backoff = {.base_ns = MS};
    struct locking_call calls[3] = {{0}};
    uint64_t token = locking_take(locks, "main", "a");

    locking_wait_as(&calls[0], locks, "x", "a", HF_LOCKS_EXCLUSIVE, 1);
    locking_wait_as(&calls[1], locks, "y", "a", HF_LOCKS_SHARED, 2);
    calls[2] =
        (struct locking_call){.locks = locks,
                              .name = "a",
                              .request = {.owner = "z", .retry = &backoff},
                              .deadline_ns = HF_FOREVER};
    locking_start(&calls[2]);
    test_clock_await_sleepers(&clock, 3);
    hf_locks_shutdown(locks);
    hf_locks_shutdown(locks);
    for (int i = 0; i < 3; i++) {
        locking_join(&calls[i]);
        CHECK_EQ(calls[i].status, HF_CLOSED);
    }
    CHECK_EQ(hf_locks_acquire(locks, "b", NULL, HF_NOW, NULL), HF_CLOSED);
    CHECK_EQ(hf_locks_release(locks, "a", token), HF_OK);
    CHECK_EQ(locking_stats(locks, NULL).waiting, 0);
    hf_locks_close(locks);
}

TEST(a_shutdown_finds_a_hold_whose_time_is_over)
{
    for (uint32_t count = 1; count <= 2; count++) {
        struct test_clock clock = {.now_ns = 1000};
        struct hf_locks_opts opts = {.clock = test_clock(&clock)};
        struct hf_locks *locks = locking_open(&opts);
        struct hf_locks_request request = {.owner = "main", .ttl_ns = 4 * MS};
        struct locking_call calls[2] = {{0}};

        CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_OK);
        for (uint32_t i = 0; i < count; i++)
            locking_wait_as(&calls[i], locks, i == 0 ? "x" : "y", "a",
                            HF_LOCKS_EXCLUSIVE, i + 1);
        test_clock_await_sleepers(&clock, count);
        /* and nobody was woken by it yet; relaxed: a time, and nothing else */
        (void)__atomic_add_fetch(&clock.now_ns, 4 * MS, __ATOMIC_RELAXED);
        hf_locks_shutdown(locks);
        for (uint32_t i = 0; i < count; i++) {
            locking_join(&calls[i]);
            CHECK_EQ(calls[i].status, i == 0 ? HF_OK : HF_CLOSED);
        }
        CHECK_EQ(hf_locks_release(locks, "a", calls[0].answer.token), HF_OK);
        CHECK_EQ(locking_stats(locks, NULL).held, 0);
        hf_locks_close(locks);
    }
}

/* One whose answer is thrown away must not leave a cycle behind. */
TEST(a_cycle_is_not_told_to_one_who_leaves_at_the_shutdown)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    const struct hf_backoff_opts backoff = {.base_ns = MS};
    struct locking_call first = {0};
    struct locking_call call = {.locks = locks,
                                .name = "b",
                                .request = {.owner = "main", .retry = &backoff},
                                .deadline_ns = HF_FOREVER};

    call.request.patience_ns = 10 * MS;
    (void)locking_take(locks, "main", "a");
    (void)locking_take(locks, "x", "b");
    locking_wait_as(&first, locks, "x", "a", HF_LOCKS_EXCLUSIVE, 1);
    locking_start(&call);
    test_clock_await_sleepers(&clock, 2); /* it was refused, and pauses */
    hf_locks_shutdown(locks);
    locking_join(&call);
    locking_join(&first);
    CHECK_EQ(call.status, HF_CLOSED);
    CHECK_EQ(call.answer.link_count, 0);
    CHECK_EQ(call.answer.length, 0);
    CHECK(call.answer.links == NULL);
    hf_locks_close(locks);
}

TEST(one_whom_the_leaving_of_another_lets_through_holds)
{
    struct hf_locks *locks = locking_open(NULL);
    struct locking_call reader;
    struct locking_call writer = {0};
    uint64_t token = locking_take(locks, "main", "a");

    reader = (struct locking_call){
        .locks = locks,
        .name = "a",
        .request = {.owner = "x", .mode = HF_LOCKS_SHARED, .priority = 3},
        .deadline_ns = HF_FOREVER};
    locking_start(&reader);
    locking_await_waiting(locks, 1);
    locking_wait_as(&writer, locks, "y", "a", HF_LOCKS_EXCLUSIVE, 2);
    CHECK_EQ(hf_locks_downgrade(locks, "a", token), HF_OK);
    hf_locks_shutdown(locks); /* the writer goes first, and was in the way */
    locking_join(&writer);
    locking_join(&reader);
    CHECK_EQ(writer.status, HF_CLOSED);
    CHECK_EQ(reader.status, HF_OK);
    CHECK_EQ(hf_locks_release(locks, "a", reader.answer.token), HF_OK);
    CHECK_EQ(hf_locks_release(locks, "a", token), HF_OK);
    hf_locks_close(locks);
}

TEST(who_waits_with_a_closed_session_is_told)
{
    struct hf_locks *locks = locking_open(NULL);
    struct locking_call call = {0};

    CHECK_EQ(locking_try(locks, "main", "a", HF_LOCKS_EXCLUSIVE), HF_OK);
    CHECK_EQ(hf_locks_session_open(locks, NULL, &call.request.session), HF_OK);
    locking_wait_as(&call, locks, "x", "a", HF_LOCKS_EXCLUSIVE, 1);
    CHECK_EQ(hf_locks_session_close(locks, call.request.session), HF_OK);
    locking_join(&call);
    CHECK_EQ(call.status, HF_NOTFOUND);
    hf_locks_close(locks);
}
