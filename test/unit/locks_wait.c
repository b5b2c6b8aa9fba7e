/* locks_wait.c - tests of the lock manager with threads that wait: order,
 * deadlines, deadlocks. */
#include "holdfast/locks.h"

#include "base/atomic.h"
#include "base/memory.h"
#include "holdfast/inspect.h"
#include "support/locking.h"

#define MS UINT64_C(1000000)

TEST(each_thread_is_an_owner)
{
    struct hf_locks *locks = locking_open(NULL);
    struct locking_call call = {
        .locks = locks, .name = "a", .deadline_ns = HF_NOW};

    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_OK);
    locking_start(&call);
    locking_join(&call);
    CHECK_EQ(call.status, HF_TIMEOUT);
    CHECK_EQ(call.answer.position, 1);
    CHECK_EQ(hf_locks_release(locks, "a", 0), HF_OK);
    locking_start(&call);
    locking_join(&call);
    CHECK_EQ(call.status, HF_OK);
    /* It ended and holds it still; another thread, in its slot, does not. */
    locking_start(&call);
    locking_join(&call);
    CHECK_EQ(call.status, HF_TIMEOUT);
    hf_locks_close(locks);
}

TEST(who_waits_is_served_in_order)
{
    struct hf_locks *locks = locking_open(NULL);
    struct locking_call calls[3] = {{0}};
    uint64_t token = locking_take(locks, "main", "a");

    for (uint32_t i = 0; i < 3; i++)
        locking_wait_as(&calls[i], locks,
                        i == 0   ? "x"
                        : i == 1 ? "y"
                                 : "z",
                        "a", HF_LOCKS_EXCLUSIVE, i + 1);
    CHECK_EQ(hf_locks_release(locks, "a", token), HF_OK);
    for (uint32_t i = 0; i < 3; i++) {
        locking_join(&calls[i]);
        CHECK_EQ(locking_stats(locks, "a").waiting, 2 - i);
        CHECK(calls[i].answer.token > token);
        token = calls[i].answer.token;
        CHECK_EQ(hf_locks_release(locks, "a", token), HF_OK);
    }
    struct hf_locks_stats stats = locking_stats(locks, "a");
    CHECK_EQ(stats.acquired, 4);
    CHECK_EQ(stats.contended, 3);
    CHECK(stats.waited_ns >= stats.waited_max_ns);
    CHECK(locking_stats(locks, NULL).waited_p99_ns != HF_INSPECT_NONE);
    hf_locks_close(locks);
}

TEST(priorities_come_first_and_barging_passes_those_who_wait)
{
    struct hf_locks *locks = locking_open(NULL);
    struct locking_call late = {0};
    struct locking_call set;
    const struct hf_locks_item both[] = {{.name = "a"}, {.name = "b"}};
    uint64_t token = locking_take(locks, "main", "b");

    set = (struct locking_call){.locks = locks,
                                .items = both,
                                .count = 2,
                                .request = {.owner = "set", .priority = 1},
                                .deadline_ns = HF_FOREVER};
    locking_start(&set);
    locking_await_waiting(locks, 1);
    /* "a" is free, but waited for. */
    CHECK_EQ(locking_try(locks, "x", "a", HF_LOCKS_EXCLUSIVE), HF_OK);
    struct hf_locks_request low = {.owner = "y", .priority = 2};
    CHECK_EQ(hf_locks_release(locks, "a", 0), HF_NOTFOUND);
    CHECK_EQ(hf_locks_acquire(locks, "c", &low, HF_NOW, NULL), HF_OK);
    locking_wait_as(&late, locks, "z", "a", HF_LOCKS_EXCLUSIVE, 2);
    struct hf_locks_request again = {.owner = "x"};
    struct hf_locks_answer answer;
    CHECK_EQ(hf_locks_acquire(locks, "a", &again, HF_NOW, &answer), HF_OK);
    CHECK_EQ(hf_locks_release(locks, "a", answer.token), HF_OK);
    CHECK_EQ(hf_locks_release(locks, "a", answer.token), HF_OK);
    locking_pass_on(&late); /* before the set, which has priority 1 */
    CHECK_EQ(hf_locks_acquire(locks, "a", &low, HF_NOW, &answer), HF_TIMEOUT);
    CHECK_EQ(answer.waiting, 1);
    CHECK_EQ(answer.position, 2);
    low.barge = true;
    CHECK_EQ(hf_locks_acquire(locks, "a", &low, HF_NOW, &answer), HF_OK);
    CHECK_EQ(hf_locks_release(locks, "a", answer.token), HF_OK);
    CHECK_EQ(hf_locks_release(locks, "b", token), HF_OK);
    locking_join(&set);
    CHECK_EQ(set.status, HF_OK);
    CHECK_EQ(hf_locks_release_set(locks, set.answer.token), HF_OK);
    hf_locks_close(locks);
}

TEST(a_wait_ends_at_its_deadline)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    struct locking_call first = {0};
    struct locking_call call = {.locks = locks,
                                .name = "a",
                                .request = {.owner = "late"},
                                .deadline_ns = 1000 + 5 * MS};
    uint64_t token = locking_take(locks, "main", "a");

    CHECK_EQ(hf_locks_acquire(locks, "a", &call.request, 1000, NULL),
             HF_TIMEOUT);
    locking_wait_as(&first, locks, "first", "a", HF_LOCKS_EXCLUSIVE, 1);
    locking_start(&call);
    locking_await_waiting(locks, 2);
    test_clock_await_sleepers(&clock, 2);
    test_clock_advance(&clock, 5 * MS - 1);
    CHECK_EQ(locking_stats(locks, NULL).waiting, 2);
    test_clock_advance(&clock, 1);
    locking_join(&call);
    CHECK_EQ(call.status, HF_TIMEOUT);
    CHECK_EQ(call.answer.position, 2);
    CHECK_EQ(call.answer.waiting, 1);
    CHECK_EQ(call.answer.waited_ns, 5 * MS);
    CHECK_EQ(locking_stats(locks, "a").timeouts, 2);
    CHECK_EQ(locking_stats(locks, "a").waited_max_ns, 5 * MS);
    test_clock_advance(&clock, MS);
    CHECK_EQ(hf_locks_release(locks, "a", token), HF_OK);
    locking_pass_on(&first);
    CHECK_EQ(first.answer.waited_ns, 6 * MS);
    hf_locks_close(locks);
}

TEST(the_queue_has_a_bound)
{
    struct hf_locks_opts opts = {.waiters_max = 1};
    struct hf_locks *locks = locking_open(&opts);
    struct locking_call call = {0};
    struct hf_locks_request other = {.owner = "other"};
    uint64_t token = locking_take(locks, "main", "a");

    locking_wait_as(&call, locks, "one", "a", HF_LOCKS_EXCLUSIVE, 1);
    CHECK_EQ(hf_locks_acquire(locks, "a", &other, HF_FOREVER, NULL), HF_FULL);
    CHECK_EQ(hf_locks_release(locks, "a", token), HF_OK);
    locking_pass_on(&call);
    hf_locks_close(locks);
}

static void check_link(const struct hf_locks_link *link, const char *owner,
                       const char *name, enum hf_locks_mode mode,
                       const char *note)
{
    CHECK_TEXT(link->owner, strlen(link->owner), owner);
    CHECK_TEXT(link->name, strlen(link->name), name);
    CHECK_EQ(link->mode, mode);
    CHECK_TEXT(link->note, strlen(link->note), note);
}

TEST(a_deadlock_is_refused_and_told)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    struct locking_call call = {
        .locks = locks,
        .name = "a",
        .request = {.owner = "x", .mode = HF_LOCKS_SHARED, .note = "reads"},
        .deadline_ns = HF_FOREVER};
    struct hf_locks_request request = {.owner = "main", .note = "writes"};
    struct hf_locks_answer answer;
    uint64_t a = locking_take(locks, "main", "a");
    uint64_t b = locking_take(locks, "x", "b");

    locking_start(&call);
    locking_await_waiting(locks, 1);
    test_clock_advance(&clock, 7 * MS);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(hf_locks_acquire(locks, "b", &request,
                                  i == 0 ? HF_FOREVER : clock.now_ns + 1,
                                  &answer),
                 HF_DEADLOCK);
        CHECK_EQ(answer.length, 2);
        CHECK_EQ(answer.link_count, 2);
        check_link(&answer.links[0], "main", "b", HF_LOCKS_EXCLUSIVE, "writes");
        CHECK_EQ(answer.links[0].since_ns, 0);
        check_link(&answer.links[1], "x", "a", HF_LOCKS_SHARED, "reads");
        CHECK_EQ(answer.links[1].since_ns, 7 * MS);
        hf_locks_answer_free(&answer);
        CHECK_EQ(answer.link_count, 0);
        hf_locks_answer_free(&answer);
    }
    /* A try does not wait, and nobody need read the answer. */
    CHECK_EQ(hf_locks_acquire(locks, "b", &request, HF_NOW, NULL), HF_TIMEOUT);
    CHECK_EQ(hf_locks_acquire(locks, "b", &request, clock.now_ns, NULL),
             HF_TIMEOUT);
    CHECK_EQ(hf_locks_acquire(locks, "b", &request, HF_FOREVER, NULL),
             HF_DEADLOCK);
    CHECK_EQ(locking_stats(locks, "b").deadlocks, 3);
    /* Without memory it is refused all the same. */
    hf_memory_fail_after(0);
    CHECK_EQ(hf_locks_acquire(locks, "b", &request, HF_FOREVER, &answer),
             HF_DEADLOCK);
    hf_memory_fail_never();
    CHECK_EQ(answer.link_count, 0);
    CHECK_EQ(answer.length, 2);
    CHECK_EQ(hf_locks_release(locks, "a", a), HF_OK);
    locking_pass_on(&call);
    CHECK_EQ(hf_locks_release(locks, "b", b), HF_OK);
    hf_locks_close(locks);
}

TEST(a_deadlock_through_a_set_is_found)
{
    struct hf_locks *locks = locking_open(NULL);
    const struct hf_locks_item items[] = {{.name = "a"}, {.name = "c"}};
    struct locking_call set = {.locks = locks,
                               .items = items,
                               .count = 2,
                               .request = {.owner = "x"},
                               .deadline_ns = HF_FOREVER};
    struct hf_locks_request request = {.owner = "main"};
    uint64_t a = locking_take(locks, "main", "a");
    uint64_t b = locking_take(locks, "x", "b");

    locking_start(&set);
    locking_await_waiting(locks, 1);
    CHECK_EQ(hf_locks_acquire(locks, "b", &request, HF_FOREVER, NULL),
             HF_DEADLOCK);
    CHECK_EQ(hf_locks_release(locks, "a", a), HF_OK);
    locking_join(&set);
    CHECK_EQ(set.status, HF_OK);
    CHECK_EQ(hf_locks_release_set(locks, set.answer.token), HF_OK);
    CHECK_EQ(hf_locks_release(locks, "b", b), HF_OK);
    hf_locks_close(locks);
}

TEST(policy_none_waits_where_others_refuse)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock),
                                 .policy = HF_LOCKS_NONE};
    struct hf_locks *locks = locking_open(&opts);
    struct locking_call first = {0};
    struct locking_call second = {.locks = locks,
                                  .name = "b",
                                  .request = {.owner = "main"},
                                  .deadline_ns = 1000 + MS};
    uint64_t a = locking_take(locks, "main", "a");
    uint64_t b = locking_take(locks, "x", "b");

    locking_wait_as(&first, locks, "x", "a", HF_LOCKS_EXCLUSIVE, 1);
    locking_start(&second);
    locking_await_waiting(locks, 2);
    test_clock_await_sleepers(&clock, 2);
    test_clock_advance(&clock, MS);
    locking_join(&second);
    CHECK_EQ(second.status, HF_TIMEOUT);
    CHECK_EQ(hf_locks_release(locks, "a", a), HF_OK);
    locking_pass_on(&first);
    CHECK_EQ(hf_locks_release(locks, "b", b), HF_OK);
    hf_locks_close(locks);
}

/* ---- By age. ---- */

TEST(with_waitdie_the_younger_is_refused_and_the_older_waits)
{
    struct hf_locks_opts opts = {.policy = HF_LOCKS_WAITDIE};
    struct hf_locks *locks = locking_open(&opts);
    struct hf_locks_request old = {.owner = "old"};
    struct hf_locks_request young = {.owner = "young"};
    struct locking_call call = {0};
    struct hf_locks_answer answer;

    CHECK_EQ(hf_locks_acquire(locks, "a", &old, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_locks_session_open(locks, NULL, &old.session), HF_OK);
    CHECK_EQ(hf_locks_session_open(locks, NULL, &young.session), HF_OK);
    CHECK_EQ(hf_locks_acquire(locks, "a", &old, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_locks_acquire(locks, "b", &young, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_locks_acquire(locks, "a", &young, HF_FOREVER, &answer),
             HF_DEADLOCK);
    CHECK_EQ(answer.link_count, 1);
    check_link(&answer.links[0], "old", "a", HF_LOCKS_EXCLUSIVE, "");
    CHECK_EQ(answer.links[0].session, old.session);
    hf_locks_answer_free(&answer);
    call.request.session = old.session;
    locking_wait_as(&call, locks, "old", "b", HF_LOCKS_EXCLUSIVE, 1);
    CHECK_EQ(hf_locks_session_close(locks, young.session), HF_OK);
    locking_pass_on(&call);
    hf_locks_close(locks);
}

TEST(a_thread_has_an_age_of_its_own)
{
    struct hf_locks_opts opts = {.policy = HF_LOCKS_WAITDIE};
    struct hf_locks *locks = locking_open(&opts);
    struct locking_call call = {
        .locks = locks, .name = "a", .deadline_ns = HF_FOREVER};

    CHECK(!hf_locks_holds(locks, "a", 0));
    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_OK);
    CHECK(hf_locks_holds(locks, "a", 0));
    locking_start(&call); /* younger than this thread */
    locking_join(&call);
    CHECK_EQ(call.status, HF_DEADLOCK);
    hf_locks_answer_free(&call.answer);
    CHECK_EQ(hf_locks_release(locks, "a", 0), HF_OK);
    hf_locks_close(locks);
}

/* The first thread ends, with or without a lock; the next one has its place. */
TEST(a_thread_does_not_inherit_the_age_of_one_that_ended)
{
    for (int holds = 0; holds < 2; holds++) {
        struct hf_locks_opts opts = {.policy = HF_LOCKS_WAITDIE};
        struct hf_locks *locks = locking_open(&opts);
        struct locking_call first = {.locks = locks, .name = "b"};
        struct locking_call second = {
            .locks = locks, .name = "a", .deadline_ns = HF_FOREVER};
        struct hf_locks_request other = {.owner = "other"};
        CHECK_EQ(hf_locks_session_open(locks, NULL, &other.session), HF_OK);
        if (!holds)
            CHECK_EQ(hf_locks_acquire(locks, "b", &other, HF_NOW, NULL), HF_OK);
        locking_start(&first);
        locking_join(&first);
        CHECK_EQ(first.status, holds ? HF_OK : HF_TIMEOUT);
        hf_locks_answer_free(&first.answer);
        CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_OK);
        locking_start(&second); /* younger than this thread */
        locking_join(&second);
        CHECK_EQ(second.status, HF_DEADLOCK);
        hf_locks_answer_free(&second.answer);
        CHECK_EQ(hf_locks_acquire(locks, "b", NULL, HF_NOW, NULL), HF_TIMEOUT);
        hf_locks_close(locks);
    }
}

struct told {
    int count;
    struct hf_locks_note last;
    char name[16];
};

static void observe(void *context, const struct hf_locks_note *note)
{
    struct told *told = context;

    told->count++;
    told->last = *note;
    memcpy(told->name, note->name, strlen(note->name) + 1);
}

TEST(with_woundwait_the_older_takes_after_the_grace_time)
{
    struct test_clock clock = {.now_ns = 1000};
    struct told told = {0};
    struct hf_locks_opts opts = {.policy = HF_LOCKS_WOUNDWAIT,
                                 .grace_ns = 3 * MS,
                                 .observe = observe,
                                 .context = &told,
                                 .clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    struct hf_locks_request old = {.owner = "old"};
    struct hf_locks_request young = {.owner = "young"};
    struct locking_call call = {0};
    struct hf_locks_answer answer;

    CHECK_EQ(hf_locks_session_open(locks, NULL, &old.session), HF_OK);
    CHECK_EQ(hf_locks_session_open(locks, NULL, &young.session), HF_OK);
    CHECK_EQ(hf_locks_acquire(locks, "a", &young, HF_NOW, &answer), HF_OK);
    CHECK_EQ(told.count, 0);
    call.request.session = old.session;
    locking_wait_as(&call, locks, "old", "a", HF_LOCKS_EXCLUSIVE, 1);
    CHECK_EQ(told.count, 1);
    CHECK_EQ(told.last.event, HF_LOCKS_WOUNDED);
    CHECK_EQ(told.last.token, answer.token);
    CHECK_TEXT(told.name, strlen(told.name), "a");
    CHECK(hf_locks_holds(locks, "a", answer.token));
    test_clock_await_sleepers(&clock, 1);
    test_clock_advance(&clock, 3 * MS - 1);
    CHECK(hf_locks_holds(locks, "a", answer.token));
    test_clock_await_sleepers(&clock, 1);
    test_clock_advance(&clock, 1); /* nobody calls: who waits keeps the time */
    locking_join(&call);
    CHECK_EQ(call.status, HF_OK);
    CHECK_EQ(told.count, 2);
    CHECK_EQ(told.last.event, HF_LOCKS_EXPIRED);
    CHECK(!hf_locks_holds(locks, "a", answer.token));
    CHECK_EQ(hf_locks_session_close(locks, old.session), HF_OK);
    CHECK_EQ(told.count, 3);
    CHECK_EQ(told.last.event, HF_LOCKS_LOST);
    hf_locks_close(locks);
}
