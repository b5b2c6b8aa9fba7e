/* locks.c - tests of the lock manager: what one thread can see. */
#include "holdfast/locks.h"

#include "base/memory.h"
#include "holdfast/inspect.h"
#include "support/locking.h"

TEST_ONE_THREAD;

static enum hf_status acquire(struct hf_locks *locks, const char *name,
                              struct hf_locks_request request)
{
    return hf_locks_acquire(locks, name, &request, HF_NOW, NULL);
}

TEST(bad_options_are_refused)
{
    struct hf_locks *locks;
    struct hf_locks_opts opts = {.policy = (enum hf_locks_policy)4};

    CHECK_EQ(hf_locks_open(&locks, &opts), HF_INVALID);
    opts = (struct hf_locks_opts){.waiters_max = 10001};
    CHECK_EQ(hf_locks_open(&locks, &opts), HF_INVALID);
    opts = (struct hf_locks_opts){.holders_max = 10001};
    CHECK_EQ(hf_locks_open(&locks, &opts), HF_INVALID);
    opts = (struct hf_locks_opts){.names_max = (1u << 29) + 1};
    CHECK_EQ(hf_locks_open(&locks, &opts), HF_INVALID);
    opts = (struct hf_locks_opts){
        .waiters_max = 10000, .holders_max = 10000, .names_max = 1u << 29};
    CHECK_EQ(hf_locks_open(&locks, &opts), HF_OK);
    hf_locks_close(locks);
    hf_locks_close(NULL);
}

TEST(bad_requests_are_refused)
{
    struct hf_locks *locks = locking_open(NULL);
    const struct hf_backoff_opts wrong = {.jitter = (enum hf_jitter)9};
    const struct hf_locks_request requests[] = {
        {.mode = (enum hf_locks_mode)3},
        {.permits = 1, .of = 2},
        {.of = 1},
        {.mode = HF_LOCKS_SHARED, .permits = 1, .of = 2},
        {.mode = HF_LOCKS_COUNTING},
        {.mode = HF_LOCKS_COUNTING, .of = 2},
        {.mode = HF_LOCKS_COUNTING, .permits = 3, .of = 2},
        {.mode = HF_LOCKS_COUNTING, .permits = 1, .of = 1u << 31},
        {.mode = HF_LOCKS_COUNTING, .permits = 1, .of = 2, .tree = true},
        {.priority = 4},
        {.owner = ""},
        {.session = UINT64_MAX},
        {.retry = &wrong},
    };

    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        CHECK_EQ(acquire(locks, "a", requests[i]), HF_INVALID);
    CHECK_EQ(acquire(locks, "", requests[10]), HF_INVALID);
    CHECK_EQ(hf_locks_renew(locks, "a", 1, 0), HF_INVALID);
    CHECK_EQ(hf_locks_renew_set(locks, 1, 0), HF_INVALID);
    CHECK_EQ(hf_locks_session_close(locks, 0), HF_INVALID);
    CHECK_EQ(locking_stats(locks, NULL).held, 0);
    hf_locks_close(locks);
}

TEST(texts_have_a_longest)
{
    struct hf_locks *locks = locking_open(NULL);
    char text[HF_LOCKS_NAME_MAX + 2];
    uint64_t session;

    memset(text, 'x', sizeof text);
    text[HF_LOCKS_NAME_MAX + 1] = '\0';
    CHECK_EQ(hf_locks_acquire(locks, text, NULL, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_locks_release(locks, text, 0), HF_INVALID);
    text[HF_LOCKS_NAME_MAX] = '\0';
    CHECK_EQ(hf_locks_acquire(locks, text, NULL, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_locks_release(locks, text, 0), HF_OK);
    text[HF_LOCKS_OWNER_MAX + 1] = '\0';
    CHECK_EQ(acquire(locks, "a", (struct hf_locks_request){.owner = text}),
             HF_INVALID);
    CHECK_EQ(acquire(locks, "a", (struct hf_locks_request){.note = text}),
             HF_INVALID);
    CHECK_EQ(hf_locks_session_open(locks, text, &session), HF_INVALID);
    text[HF_LOCKS_OWNER_MAX] = '\0';
    CHECK_EQ(acquire(locks, "a",
                     (struct hf_locks_request){.owner = text, .note = text}),
             HF_OK);
    CHECK_EQ(hf_locks_session_open(locks, text, &session), HF_OK);
    hf_locks_close(locks);
}

TEST(a_lock_is_held_until_it_was_released_as_often_as_acquired)
{
    struct hf_locks *locks = locking_open(NULL);
    struct hf_locks_answer first;
    struct hf_locks_answer answer;

    CHECK(!hf_locks_holds(locks, "a", 0));
    CHECK_EQ(hf_locks_release(locks, "a", 0), HF_NOTFOUND);
    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, &first), HF_OK);
    CHECK(first.token > 0);
    CHECK_EQ(first.fence, first.token);
    CHECK_EQ(first.count, 1);
    CHECK_EQ(first.attempts, 1);
    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_FOREVER, &answer), HF_OK);
    CHECK_EQ(answer.token, first.token);
    CHECK_EQ(answer.count, 2);
    CHECK_EQ(hf_locks_release(locks, "a", 0), HF_OK);
    CHECK(hf_locks_holds(locks, "a", 0));
    CHECK(hf_locks_holds(locks, "a", first.token));
    CHECK(!hf_locks_holds(locks, "b", first.token));
    CHECK_EQ(hf_locks_release(locks, "a", first.token), HF_OK);
    CHECK(!hf_locks_holds(locks, "a", 0));
    CHECK(!hf_locks_holds(locks, "a", first.token));
    CHECK_EQ(hf_locks_release(locks, "a", first.token), HF_NOTFOUND);
    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, &answer), HF_OK);
    CHECK(answer.token > first.token);
    hf_locks_close(locks);
}

TEST(an_owner_may_have_a_name)
{
    struct hf_locks *locks = locking_open(NULL);
    struct hf_locks_request request = {.owner = "job"};
    struct hf_locks_answer answer;

    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, &answer), HF_OK);
    CHECK(!hf_locks_holds(locks, "a", 0));
    CHECK(hf_locks_holds(locks, "a", answer.token));
    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_TIMEOUT);
    CHECK_EQ(locking_try(locks, "job", "a", HF_LOCKS_EXCLUSIVE), HF_OK);
    CHECK_EQ(hf_locks_release(locks, "a", 0), HF_NOTFOUND);
    CHECK_EQ(hf_locks_release(locks, "a", answer.token), HF_OK);
    CHECK_EQ(hf_locks_release(locks, "a", answer.token), HF_OK);
    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_OK);
    hf_locks_close(locks);
}

TEST(readers_share_and_have_one_fence)
{
    struct hf_locks *locks = locking_open(NULL);
    struct hf_locks_request read = {.mode = HF_LOCKS_SHARED, .owner = "one"};
    struct hf_locks_answer one;
    struct hf_locks_answer two;

    CHECK_EQ(hf_locks_acquire(locks, "a", &read, HF_NOW, &one), HF_OK);
    read.owner = "two";
    CHECK_EQ(hf_locks_acquire(locks, "a", &read, HF_NOW, &two), HF_OK);
    CHECK(two.token > one.token);
    CHECK_EQ(two.fence, one.token);
    CHECK_EQ(locking_try(locks, "three", "a", HF_LOCKS_EXCLUSIVE), HF_TIMEOUT);
    CHECK_EQ(locking_try(locks, "one", "a", HF_LOCKS_EXCLUSIVE), HF_EXISTS);
    CHECK_EQ(hf_locks_release(locks, "a", one.token), HF_OK);
    CHECK_EQ(locking_try(locks, "three", "a", HF_LOCKS_EXCLUSIVE), HF_TIMEOUT);
    CHECK_EQ(hf_locks_release(locks, "a", two.token), HF_OK);
    CHECK_EQ(locking_try(locks, "three", "a", HF_LOCKS_EXCLUSIVE), HF_OK);
    CHECK_EQ(locking_try(locks, "one", "a", HF_LOCKS_SHARED), HF_TIMEOUT);
    hf_locks_close(locks);
}

TEST(a_tree_is_held_with_all_names_below)
{
    struct hf_locks *locks = locking_open(NULL);
    struct hf_locks_request tree = {.owner = "ann", .tree = true};
    struct hf_locks_request other = {.owner = "bob"};
    struct hf_locks_answer answer;

    CHECK_EQ(hf_locks_acquire(locks, "db", &tree, HF_NOW, &answer), HF_OK);
    CHECK_EQ(hf_locks_acquire(locks, "db/1", &other, HF_NOW, NULL), HF_TIMEOUT);
    CHECK_EQ(hf_locks_acquire(locks, "db-1", &other, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_locks_release(locks, "db", answer.token), HF_OK);
    CHECK_EQ(hf_locks_acquire(locks, "db/1", &other, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_locks_acquire(locks, "db", &tree, HF_NOW, NULL), HF_TIMEOUT);
    hf_locks_close(locks);
}

TEST(permits_are_counted)
{
    struct hf_locks *locks = locking_open(NULL);
    struct hf_locks_request request = {
        .mode = HF_LOCKS_COUNTING, .permits = 2, .of = 3, .owner = "one"};
    struct hf_locks_answer answer;

    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, &answer), HF_OK);
    request.owner = "two";
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_TIMEOUT);
    request.permits = 1;
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_OK);
    request.owner = "three";
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_TIMEOUT);
    request.of = 4;
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_EXISTS);
    request.of = 3;
    CHECK_EQ(hf_locks_downgrade(locks, "a", answer.token), HF_EXISTS);
    CHECK_EQ(hf_locks_release(locks, "a", answer.token), HF_OK);
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_OK);
    hf_locks_close(locks);
}

TEST(a_set_is_taken_whole_or_not_at_all)
{
    struct hf_locks *locks = locking_open(NULL);
    const struct hf_locks_item both[] = {{.name = "b"},
                                         {.name = "a", .shared = true}};
    const struct hf_locks_item twice[] = {{.name = "a"}, {.name = "a"}};
    struct hf_locks_item many[HF_LOCKS_SET_MAX + 1];
    char names[HF_LOCKS_SET_MAX + 1][4];
    struct hf_locks_request read = {.mode = HF_LOCKS_SHARED};
    struct hf_locks_answer answer;

    CHECK_EQ(locking_try(locks, "other", "b", HF_LOCKS_SHARED), HF_OK);
    CHECK_EQ(hf_locks_acquire_set(locks, both, 2, NULL, HF_NOW, &answer),
             HF_TIMEOUT);
    CHECK_EQ(answer.count, 0);
    CHECK(!hf_locks_holds(locks, "a", 0));
    CHECK_EQ(locking_stats(locks, NULL).held, 1);
    CHECK_EQ(hf_locks_acquire_set(locks, both, 0, NULL, HF_NOW, NULL),
             HF_INVALID);
    CHECK_EQ(hf_locks_acquire_set(locks, twice, 2, NULL, HF_NOW, NULL),
             HF_INVALID);
    CHECK_EQ(hf_locks_acquire_set(locks, both, 2, &read, HF_NOW, NULL),
             HF_INVALID);
    for (int i = 0; i <= (int)HF_LOCKS_SET_MAX; i++) {
        names[i][0] = 's';
        names[i][1] = (char)('0' + i / 10);
        names[i][2] = (char)('0' + i % 10);
        names[i][3] = '\0';
        many[i] = (struct hf_locks_item){.name = names[i]};
    }
    CHECK_EQ(hf_locks_acquire_set(locks, many, HF_LOCKS_SET_MAX + 1, NULL,
                                  HF_NOW, NULL),
             HF_INVALID);
    CHECK_EQ(hf_locks_acquire_set(locks, many, HF_LOCKS_SET_MAX, NULL, HF_NOW,
                                  &answer),
             HF_OK);
    CHECK_EQ(locking_stats(locks, NULL).held, 1 + HF_LOCKS_SET_MAX);
    CHECK_EQ(hf_locks_release_set(locks, answer.token), HF_OK);
    CHECK_EQ(locking_stats(locks, NULL).held, 1);
    hf_locks_close(locks);
}

TEST(a_set_is_reentered_and_released_as_one)
{
    struct hf_locks *locks = locking_open(NULL);
    const struct hf_locks_item both[] = {{.name = "b"},
                                         {.name = "a", .shared = true}};
    struct hf_locks_answer answer;
    struct hf_locks_answer again;

    CHECK_EQ(hf_locks_acquire_set(locks, both, 2, NULL, HF_NOW, &answer),
             HF_OK);
    CHECK_EQ(hf_locks_acquire_set(locks, both, 2, NULL, HF_NOW, &again), HF_OK);
    CHECK_EQ(again.token, answer.token);
    CHECK_EQ(again.count, 2);
    CHECK(hf_locks_holds(locks, "a", 0));
    CHECK(hf_locks_holds(locks, "b", answer.token));
    CHECK_EQ(hf_locks_acquire_set(locks, both, 1, NULL, HF_NOW, NULL),
             HF_EXISTS);
    CHECK_EQ(hf_locks_acquire(locks, "b", NULL, HF_NOW, NULL), HF_EXISTS);
    CHECK_EQ(hf_locks_release(locks, "a", 0), HF_EXISTS);
    CHECK_EQ(hf_locks_downgrade(locks, "b", 0), HF_EXISTS);
    CHECK_EQ(locking_try(locks, "other", "a", HF_LOCKS_SHARED), HF_OK);
    CHECK_EQ(hf_locks_release_set(locks, answer.token), HF_OK);
    CHECK(hf_locks_holds(locks, "b", 0));
    CHECK_EQ(hf_locks_release_set(locks, answer.token), HF_OK);
    CHECK(!hf_locks_holds(locks, "b", 0));
    CHECK_EQ(hf_locks_release_set(locks, answer.token), HF_NOTFOUND);
    CHECK_EQ(hf_locks_release_set(locks, 0), HF_NOTFOUND);
    hf_locks_close(locks);
}

TEST(a_downgrade_lets_readers_in_and_no_writer)
{
    struct hf_locks *locks = locking_open(NULL);

    CHECK_EQ(hf_locks_downgrade(locks, "a", 0), HF_NOTFOUND);
    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_OK);
    CHECK_EQ(locking_try(locks, "other", "a", HF_LOCKS_SHARED), HF_TIMEOUT);
    CHECK_EQ(hf_locks_downgrade(locks, "a", 0), HF_OK);
    CHECK_EQ(hf_locks_downgrade(locks, "a", 0), HF_OK);
    CHECK_EQ(locking_try(locks, "other", "a", HF_LOCKS_SHARED), HF_OK);
    CHECK_EQ(locking_try(locks, "writer", "a", HF_LOCKS_EXCLUSIVE), HF_TIMEOUT);
    CHECK_EQ(hf_locks_release(locks, "a", 0), HF_OK);
    hf_locks_close(locks);
}

TEST(bounds_are_kept)
{
    struct hf_locks_opts opts = {.names_max = 2, .holders_max = 2};
    struct hf_locks *locks = locking_open(&opts);

    CHECK_EQ(locking_try(locks, "one", "a", HF_LOCKS_SHARED), HF_OK);
    CHECK_EQ(locking_try(locks, "two", "a", HF_LOCKS_SHARED), HF_OK);
    CHECK_EQ(locking_try(locks, "three", "a", HF_LOCKS_SHARED), HF_FULL);
    CHECK_EQ(locking_try(locks, "one", "b", HF_LOCKS_SHARED), HF_OK);
    CHECK_EQ(locking_try(locks, "one", "c", HF_LOCKS_SHARED), HF_FULL);
    hf_locks_close(locks);
}

TEST(a_hold_with_a_ttl_ends_with_it)
{
    struct test_clock clock = {.now_ns = 5000};
    struct hf_locks_opts opts = {.clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    const struct hf_locks_item item = {.name = "set"};
    struct hf_locks_request request = {.ttl_ns = 1};
    struct hf_locks_answer answer;
    struct hf_locks_answer set;

    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, &answer), HF_OK);
    test_clock_advance(&clock, 999000);
    CHECK(hf_locks_holds(locks, "a", 0));
    CHECK_EQ(locking_try(locks, "other", "a", HF_LOCKS_EXCLUSIVE), HF_TIMEOUT);
    test_clock_advance(&clock, 1000);
    CHECK(!hf_locks_holds(locks, "a", 0));
    CHECK(!hf_locks_holds(locks, "a", answer.token));
    CHECK_EQ(hf_locks_release(locks, "a", answer.token), HF_NOTFOUND);
    CHECK_EQ(hf_locks_renew(locks, "a", answer.token, 1000), HF_NOTFOUND);

    request.ttl_ns = 2000000;
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_locks_acquire_set(locks, &item, 1, &request, HF_NOW, &set),
             HF_OK);
    test_clock_advance(&clock, 1999000);
    CHECK_EQ(hf_locks_renew(locks, "a", 0, 2000000), HF_OK);
    CHECK_EQ(hf_locks_renew_set(locks, set.token, 2000000), HF_OK);
    test_clock_advance(&clock, 1999000);
    CHECK(hf_locks_holds(locks, "a", 0));
    CHECK(hf_locks_holds(locks, "set", set.token));
    test_clock_advance(&clock, 1000);
    CHECK_EQ(locking_stats(locks, NULL).held, 0);
    CHECK_EQ(hf_locks_renew_set(locks, set.token, 2000000), HF_NOTFOUND);

    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_OK);
    test_clock_advance(&clock, UINT64_C(1) << 60);
    CHECK(hf_locks_holds(locks, "a", 0)); /* without a TTL: for ever */
    hf_locks_close(locks);
}

TEST(a_session_that_is_closed_ends_all_that_it_holds)
{
    struct hf_locks *locks = locking_open(NULL);
    const struct hf_locks_item item = {.name = "set"};
    struct hf_locks_request request = {.owner = "job"};
    uint64_t session;
    uint64_t other;

    CHECK_EQ(hf_locks_session_open(locks, "work", &session), HF_OK);
    CHECK_EQ(hf_locks_session_open(locks, NULL, &other), HF_OK);
    CHECK(other > session);
    request.session = session;
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_locks_acquire_set(locks, &item, 1, &request, HF_NOW, NULL),
             HF_OK);
    request.session = other; /* another owner, though of the same name */
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_TIMEOUT);
    CHECK_EQ(hf_locks_session_close(locks, session), HF_OK);
    CHECK_EQ(locking_stats(locks, NULL).held, 0);
    CHECK_EQ(hf_locks_acquire(locks, "a", &request, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_locks_session_close(locks, session), HF_NOTFOUND);
    request.session = session;
    CHECK_EQ(hf_locks_acquire(locks, "b", &request, HF_NOW, NULL), HF_NOTFOUND);
    hf_locks_close(locks);
}

TEST(a_large_session_ends_in_one_call)
{
    struct hf_locks *locks = locking_open(NULL);
    struct hf_locks_request request = {.owner = "job"};
    char name[] = "a00";

    CHECK_EQ(hf_locks_session_open(locks, NULL, &request.session), HF_OK);
    for (int i = 0; i < 1000; i++) {
        name[0] = (char)('a' + i / 100);
        name[1] = (char)('0' + i / 10 % 10);
        name[2] = (char)('0' + i % 10);
        CHECK_EQ(hf_locks_acquire(locks, name, &request, HF_NOW, NULL), HF_OK);
    }
    CHECK_EQ(hf_locks_session_close(locks, request.session), HF_OK);
    CHECK_EQ(locking_stats(locks, NULL).held, 0);
    hf_locks_close(locks);
}

TEST(figures_are_kept_of_the_first_names)
{
    struct hf_locks_opts opts = {.counted_names = 2};
    struct hf_locks *locks = locking_open(&opts);
    struct hf_locks_stats stats;

    CHECK_EQ(hf_locks_stats(locks, "a", &stats), HF_NOTFOUND);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_OK);
    CHECK_EQ(locking_try(locks, "other", "a", HF_LOCKS_SHARED), HF_TIMEOUT);
    CHECK_EQ(locking_try(locks, "one", "b", HF_LOCKS_SHARED), HF_OK);
    CHECK_EQ(locking_try(locks, "two", "b", HF_LOCKS_SHARED), HF_OK);
    CHECK_EQ(locking_try(locks, "two", "c", HF_LOCKS_SHARED), HF_OK);
    stats = locking_stats(locks, "a");
    CHECK_EQ(stats.acquired, 3);
    CHECK_EQ(stats.contended, 0);
    CHECK_EQ(stats.timeouts, 1);
    CHECK_EQ(stats.held, 1);
    CHECK_EQ(stats.waited_p99_ns, HF_INSPECT_NONE);
    CHECK_EQ(locking_stats(locks, "b").held, 2);
    CHECK_EQ(hf_locks_stats(locks, "c", &stats), HF_NOTFOUND);
    stats = locking_stats(locks, NULL);
    CHECK_EQ(stats.acquired, 6);
    CHECK_EQ(stats.timeouts, 1);
    CHECK_EQ(stats.held, 3);
    CHECK_EQ(stats.waiting, 0);
    CHECK_EQ(stats.waited_p99_ns, HF_INSPECT_NONE);
    hf_locks_close(locks);
}

TEST(a_manager_is_listed)
{
    struct hf_locks_opts opts = {.name = "mine", .names_max = 77};
    struct hf_locks *locks = locking_open(&opts);
    char text[4096];

    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, NULL), HF_OK);
    CHECK(hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text) < sizeof text);
    CHECK(strstr(text, "locks") != NULL);
    CHECK(strstr(text, "mine") != NULL);
    CHECK(strstr(text, " 77 ") != NULL);
    hf_locks_close(locks);
    CHECK(hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text) < sizeof text);
    CHECK(strstr(text, "mine") == NULL);
}

static void count_visit(void *context, const struct hf_locks_holder *holder)
{
    (void)holder;
    ++*(int *)context;
}

/* Everything once; false: some call had no memory. */
static bool use_all(void)
{
    const struct hf_locks_item items[] = {{.name = "b"}, {.name = "c"}};
    struct hf_locks_opts opts = {.policy = HF_LOCKS_WAITDIE};
    struct hf_locks_request request = {.note = "why"};
    struct hf_locks *locks = NULL;
    struct hf_locks_answer answer = {0};
    uint64_t session = 0;
    int visited = 0;
    char text[100];

    enum hf_status status = hf_locks_open(&locks, &opts);
    if (status != HF_OK) {
        CHECK_EQ(status, HF_NOMEM);
        return false;
    }
    enum hf_status seen[] = {
        hf_locks_acquire(locks, "a", &request, HF_FOREVER, NULL),
        hf_locks_acquire_set(locks, items, 2, NULL, HF_FOREVER, &answer),
        hf_locks_session_open(locks, "piece", &session),
    };
    bool done = true;
    for (int i = 0; i < 3; i++) {
        CHECK(seen[i] == HF_OK || seen[i] == HF_NOMEM);
        done = done && seen[i] == HF_OK;
    }
    CHECK_EQ(hf_locks_holds(locks, "a", 0), seen[0] == HF_OK);
    CHECK_EQ(hf_locks_holds(locks, "b", 0), seen[1] == HF_OK);
    status = hf_locks_holders(locks, "a", count_visit, &visited);
    CHECK(status == (seen[0] == HF_OK ? HF_OK : HF_NOTFOUND) ||
          status == HF_NOMEM);
    CHECK_EQ(visited, status == HF_OK);
    done = done && status == HF_OK &&
           hf_locks_graph(locks, HF_LOCKS_DOT, text, sizeof text) > 0;
    if (seen[1] == HF_OK)
        CHECK_EQ(hf_locks_release_set(locks, answer.token), HF_OK);
    if (seen[0] == HF_OK)
        CHECK_EQ(hf_locks_release(locks, "a", 0), HF_OK);
    CHECK_EQ(locking_stats(locks, NULL).held, 0);
    hf_locks_close(locks);
    return done;
}

TEST(without_memory_nothing_changes)
{
    uint64_t before = hf_memory_count();

    CHECK(use_all());
    uint64_t count = hf_memory_count() - before;
    CHECK(count > 10);
    for (uint64_t i = 0; i < count; i++) {
        hf_memory_fail_once(i);
        (void)use_all();
        hf_memory_fail_after(i);
        (void)use_all();
        hf_memory_fail_never();
    }
}
