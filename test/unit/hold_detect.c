/* hold_detect.c - how many steps a search for a deadlock takes: so many for
 * each who waits, and never more than its bound and one queue.
 */
#include "support/engine.h"

TEST_ONE_THREAD;

enum { MANY = HOLD_QUEUE_MAX };

#define EXPECT_WAITS(out) CHECK_EQ((out)->code, HOLD_WAITING)

/* Of one search: the last step before it gives up may go through a queue or
 * through the grants of a lock; and each name of a set is a step before. */
#define WORK_MAX (HOLD_DETECT_MAX + 2 * HOLD_QUEUE_MAX + 2 * HOLD_SET_MAX)

/* The steps of the request, which is not carried out. */
static uint64_t steps_of(const char *words)
{
    (void)hold_answer_now(engine, engine_parse("%s", words));
    return hold_work(engine);
}

/* o0 holds n0; each of the others holds a name and waits for the one before.
 */
static void make_chain(unsigned length)
{
    engine_start();
    for (unsigned i = 0; i < length; i++)
        engine_do("LOCK n%u OWNER o%u", i, i);
    for (unsigned i = 1; i < length; i++)
        EXPECT_WAITS(
            engine_do("LOCK n%u OWNER o%u FOREVER DEADLOCK NONE", i - 1, i));
}

TEST(a_chain_is_two_steps_for_each_who_waits)
{
    char words[100];

    for (unsigned length = MANY / 10; length <= MANY; length *= 10) {
        make_chain(length);
        snprintf(words, sizeof words, "LOCK n%u OWNER o0 FOREVER", length - 1);
        CHECK(steps_of(words) <= 2 * length + 10);
        EXPECT_BEGINS(engine_do("%s", words), "DEADLOCK");
        snprintf(words, sizeof words, "LOCK n%u OWNER eve FOREVER", length - 1);
        CHECK(steps_of(words) <= 2 * length + 10);
        EXPECT_WAITS(engine_do("%s", words));
    }
    CHECK_ENGINE();
}

/* All hold what is asked for, and wait for a name each. */
TEST(a_star_is_a_few_steps_for_each_who_waits)
{
    engine_start();
    engine_bound("holders_max", HOLD_QUEUE_MAX);
    for (unsigned i = 0; i < MANY; i++) {
        engine_do("LOCK hub OWNER o%u SHARED", i);
        engine_do("LOCK n%u OWNER ann", i);
        EXPECT_WAITS(
            engine_do("LOCK n%u OWNER o%u FOREVER DEADLOCK NONE", i, i));
    }
    CHECK(steps_of("LOCK hub OWNER eve FOREVER") <= 4 * MANY + 10);
    EXPECT_WAITS(engine_do("LOCK hub OWNER eve FOREVER"));
    EXPECT_BEGINS(engine_do("LOCK hub OWNER ann FOREVER"), "DEADLOCK");
    CHECK_ENGINE();
}

static uint64_t oldest; /* a session */

/* So many wait for the same `width` names; the request is left as words. */
static const char *make_sets(unsigned count, unsigned width)
{
    static char names[HOLD_SET_MAX * 16];
    static char words[sizeof names + 100];
    size_t len = 0;

    engine_start();
    oldest = engine_session(900000);
    for (unsigned i = 0; i < width; i++) {
        engine_do("LOCK n%u OWNER ann", i);
        len +=
            (size_t)snprintf(names + len, sizeof names - len, " NAME n%u", i);
    }
    for (unsigned i = 0; i < count; i++)
        EXPECT_WAITS(
            engine_do("LOCKSET OWNER o%u FOREVER DEADLOCK NONE%s", i, names));
    snprintf(words, sizeof words, "LOCKSET OWNER eve FOREVER%s", names);
    return words;
}

TEST(sets_are_two_steps_for_each_name_of_each_who_waits)
{
    const char *words = make_sets(5000, 8);

    CHECK(steps_of(words) <= 2 * 8 * 5000 + 100);
    EXPECT_WAITS(engine_do("%s", words));
    CHECK_ENGINE();
}

TEST(a_search_through_wide_sets_is_given_up)
{
    const char *words = make_sets(MANY - 1, HOLD_SET_MAX);

    CHECK(steps_of(words) <= WORK_MAX);
    EXPECT(engine_do("%s", words), "OVERLOADED name=detect-max maximum=100000");
    CHECK_ENGINE();
}

/* One wait leads to the queues of all names of its set. */
TEST(a_search_through_one_wide_set_is_given_up)
{
    const char *words = make_sets(MANY - 1, HOLD_SET_MAX);

    (void)words;
    engine_do("LOCK door OWNER o%u", MANY - 2); /* the last of them */
    CHECK(steps_of("LOCK door OWNER eve FOREVER") <= WORK_MAX);
    EXPECT(engine_do("LOCK door OWNER eve FOREVER"),
           "OVERLOADED name=detect-max maximum=100000");
}

/* One owner holds a lock and waits very often. */
static void make_holder(const char *hold)
{
    engine_start();
    engine_do("LOCK door OWNER bob%s", hold);
    for (unsigned i = 0; i < 15; i++) {
        engine_do("LOCK n%u OWNER ann", i);
        for (unsigned k = 0; k < MANY; k++)
            EXPECT_WAITS(
                engine_do("LOCK n%u OWNER bob FOREVER DEADLOCK NONE", i));
    }
}

TEST(a_search_through_the_waits_of_one_holder_is_given_up)
{
    make_holder("");
    CHECK(steps_of("LOCK door OWNER eve FOREVER") <= WORK_MAX);
    EXPECT(engine_do("LOCK door OWNER eve FOREVER"),
           "OVERLOADED name=detect-max maximum=100000");
}

/* Who is stuck is found in 150 rounds, since the last of a chain goes on first.
 * In each of them the waits of bob are looked through for one that is stuck.
 */
TEST(a_look_at_the_waits_of_a_holder_of_permits_is_counted)
{
    enum { WAITS = 9000, CHAIN = 150 };

    engine_start();
    engine_do("LOCK x OWNER eve");
    engine_do("LOCK pool OWNER bob PERMITS 1 OF 1");
    for (unsigned i = 0; i < WAITS; i++) {
        engine_do("LOCK n%u OWNER ann", i);
        EXPECT_WAITS(engine_do("LOCK n%u OWNER bob FOREVER DEADLOCK NONE", i));
    }
    for (unsigned i = 0; i < CHAIN; i++)
        engine_do("LOCK d%u OWNER c%u", i, i);
    for (unsigned i = 0; i + 1 < CHAIN; i++)
        EXPECT_WAITS(engine_do("LOCK d%u OWNER c%u FOREVER", i + 1, i));
    EXPECT_WAITS(engine_do("LOCK d0 OWNER bob FOREVER DEADLOCK NONE"));
    EXPECT_WAITS(engine_do("LOCK x OWNER bob FOREVER DEADLOCK NONE"));
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 1 OF 1 FOREVER"),
           "OVERLOADED name=detect-max maximum=100000");
}

/* The same bound for one who is judged by its age, and is the oldest. */
TEST(a_look_at_the_ages_in_wide_queues_is_given_up)
{
    const char *words = make_sets(MANY - 1, HOLD_SET_MAX);
    char request[2000];

    snprintf(request, sizeof request, "%s DEADLOCK WAITDIE SESSION %llu", words,
             (unsigned long long)oldest);
    CHECK(steps_of(request) > HOLD_DETECT_MAX);
    CHECK(steps_of(request) <= WORK_MAX);
    EXPECT(engine_do("%s", request),
           "OVERLOADED name=detect-max maximum=100000");
    CHECK_ENGINE();
}
