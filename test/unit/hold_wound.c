/* hold_wound.c - tests of WAITDIE and WOUNDWAIT, where age decides who waits.
 */
#include "base/random.h"
#include "support/engine.h"

TEST_ONE_THREAD;

/* Sessions 1 to `count`, the first is the oldest. */
static void start_sessions(unsigned count)
{
    engine_start();
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(engine_session(9000000), i + 1);
}

TEST(with_waitdie_only_the_older_may_wait)
{
    start_sessions(3);
    engine_do("LOCK door OWNER ann SESSION 2 NOTE mine"); /* 4 */
    engine_now_us += 30 * MS;
    EXPECT(engine_do("LOCK door OWNER bob SESSION 3 WAIT 900 DEADLOCK WAITDIE"),
           "DEADLOCK name=door reason=younger length=1 cycle=["
           "{owner=ann session=2 name=door mode=exclusive since_ms=30 "
           "note=mine}]");
    EXPECT(engine_do("LOCK door OWNER bob SESSION 1 WAIT 900 DEADLOCK WAITDIE"),
           "WAITING ticket=5");
    /* behind one who waits and is older there is no waiting either */
    EXPECT(engine_do("LOCK door OWNER eve SESSION 3 DEADLOCK WAITDIE WAIT 9"),
           "DEADLOCK name=door reason=younger length=1 cycle=["
           "{owner=ann session=2 name=door mode=exclusive since_ms=30 "
           "note=mine}]");
    engine_do("UNLOCK door 4"); /* bob has it */
    EXPECT(engine_do("LOCK door OWNER eve SESSION 2 WAIT 9 DEADLOCK WAITDIE"),
           "DEADLOCK name=door reason=younger length=1 cycle=["
           "{owner=bob session=1 name=door mode=exclusive since_ms=0 note=}]");
    /* without waiting it is as any other */
    EXPECT_BEGINS(engine_do("LOCK door OWNER eve SESSION 2 DEADLOCK WAITDIE"),
                  "BUSY name=door owner=bob ");
    CHECK_ENGINE();
}

TEST(priority_comes_before_age)
{
    start_sessions(2);
    engine_do("LOCK door OWNER ann SESSION 1 PRIORITY 2");
    CHECK_EQ(engine_do("LOCK door OWNER bob SESSION 2 WAIT 900 PRIORITY 1 "
                       "DEADLOCK WAITDIE")
                 ->code,
             HOLD_WAITING);
    engine_do("LOCK gate OWNER bob SESSION 2 PRIORITY 1");
    CHECK_EQ(engine_do("LOCK gate OWNER ann SESSION 1 WAIT 900 PRIORITY 2 "
                       "DEADLOCK WAITDIE")
                 ->code,
             HOLD_DEADLOCK);
}

TEST(equal_ages_are_told_apart_by_the_owner)
{
    start_sessions(1);
    engine_do("LOCK door OWNER bob SESSION 1");
    CHECK_EQ(engine_do("LOCK door OWNER ann SESSION 1 WAIT 9 DEADLOCK WAITDIE")
                 ->code,
             HOLD_WAITING);
    CHECK_EQ(engine_do("LOCK door OWNER eve SESSION 1 WAIT 9 DEADLOCK WAITDIE")
                 ->code,
             HOLD_DEADLOCK);
}

/* In the queue the older go first. */
TEST(waits_by_age_stand_in_the_order_of_their_sessions)
{
    start_sessions(3);
    engine_do("LOCK door OWNER zoe TTL 900000"); /* 4 */
    EXPECT(engine_do("LOCK door OWNER c SESSION 3 FOREVER DEADLOCK WOUNDWAIT"),
           "WAITING ticket=6"); /* zoe, who came later, was wounded by 5 */
    engine_do("LOCK door OWNER a SESSION 1 FOREVER DEADLOCK WOUNDWAIT");
    engine_do("LOCK door OWNER b SESSION 2 FOREVER DEADLOCK WOUNDWAIT");
    EXPECT_BEGINS(engine_do("LOCK door OWNER kim"),
                  "BUSY name=door owner=zoe expires_ms=1000 waiting=3 "
                  "position=4");
    const struct hold_out *out = engine_do("UNLOCK door 4");
    CHECK_EQ(out->answers[0].ticket, 7);
    CHECK_ENGINE();
}

TEST(with_woundwait_the_older_takes_and_the_younger_waits)
{
    start_sessions(2);
    engine_do("LOCK door OWNER bob SESSION 2"); /* 3 */
    engine_do("LOCK gate OWNER ann SESSION 1"); /* 4 */
    const struct hold_out *out = engine_do(
        "LOCK door OWNER ann SESSION 1 TTL 7000 WAIT 9000 DEADLOCK WOUNDWAIT");
    EXPECT(out, "WAITING ticket=6");
    EXPECT_EVENTS(out, "5 LOCK_WOUNDED door");
    CHECK_EQ(out->events[0].token, 3);
    EXPECT(engine_do("HELD door 3"), "OK"); /* until its grace is over */
    out =
        engine_do("LOCK gate OWNER bob SESSION 2 WAIT 9000 DEADLOCK WOUNDWAIT");
    EXPECT(out, "WAITING ticket=7");
    EXPECT_EVENTS(out, "");
    engine_now_us += 999 * MS;
    EXPECT_EVENTS(engine_tick(), "");
    engine_now_us += 1 * MS;
    out = engine_tick();
    EXPECT_EVENTS(out, "8 LOCK_EXPIRED door; 9 LOCK_GRANTED door");
    EXPECT_ANSWERS(out, "6:OK token=9 safe_ms=7000 count=1 waited_ms=1000");
    EXPECT(engine_do("RENEW door 3 TTL 5"), "LOST name=door token=3");
    CHECK_ENGINE();
}

TEST(a_wounded_grant_cannot_be_lengthened)
{
    start_sessions(2);
    engine_bound("wound_grace_ms", 300);
    engine_do("LOCK door OWNER bob SESSION 2 TTL 9000"); /* 3 */
    engine_do("LOCK door OWNER ann SESSION 1 FOREVER DEADLOCK WOUNDWAIT");
    EXPECT(engine_do("RENEW door 3 TTL 5000"), "OK safe_ms=300");
    EXPECT(engine_do("LOCK door OWNER bob SESSION 2 TTL 9000"),
           "OK token=3 safe_ms=300 count=2 waited_ms=0");
    EXPECT(engine_do("LOCK door OWNER bob SESSION 2"),
           "OK token=3 safe_ms=300 count=3 waited_ms=0");
    EXPECT(engine_do("RENEW door 3 TTL 100"), "OK safe_ms=100"); /* shorter */
    EXPECT(engine_do("RENEW door 3 TTL 200"), "OK safe_ms=100");
    engine_reload();
    EXPECT(engine_do("RENEW door 3 TTL 200"), "OK safe_ms=100");
    engine_now_us += 100 * MS;
    const struct hold_out *out = engine_tick();
    CHECK_EQ(out->events[0].kind, EVENT_LOCK_EXPIRED);
    CHECK_EQ(out->answer_count, 1);
    CHECK_ENGINE();
}

TEST(a_grant_is_wounded_once)
{
    start_sessions(3);
    engine_do("LOCK door OWNER bob SESSION 3"); /* 4 */
    engine_do("LOCK door OWNER ann SESSION 2 FOREVER DEADLOCK WOUNDWAIT");
    engine_now_us += 400 * MS;
    EXPECT_EVENTS(
        engine_do("LOCK door OWNER eve SESSION 1 FOREVER DEADLOCK WOUNDWAIT"),
        "");
    EXPECT(engine_do("RENEW door 4 TTL 9000"), "OK safe_ms=600");
}

/* A set is wounded whole, by the name where it is met first, and told once. */
TEST(a_set_is_wounded_whole_and_told_once)
{
    start_sessions(2);
    engine_do("LOCKSET OWNER bob SESSION 2 NAME a NAME b NAME c"); /* 3 */
    const struct hold_out *out = engine_do(
        "LOCKSET OWNER ann SESSION 1 NAME b NAME c FOREVER DEADLOCK WOUNDWAIT");
    EXPECT_EVENTS(out, "6 LOCK_WOUNDED a");
    CHECK_EQ(out->events[0].token, 3);
    EXPECT(engine_do("RENEWSET 3 TTL 9000"), "OK safe_ms=1000");
    EXPECT(engine_do("LOCKSET OWNER bob SESSION 2 NAME a NAME b NAME c"),
           "OK token=3 safe_ms=1000 count=2 waited_ms=0");
    engine_reload();
    EXPECT(engine_do("RENEWSET 3 TTL 9000"), "OK safe_ms=1000");
    engine_now_us += 1000 * MS;
    out = engine_tick();
    CHECK_EQ(out->event_count, 5);
    CHECK_EQ(out->events[2].kind, EVENT_LOCK_EXPIRED);
    CHECK_EQ(out->answer_count, 1);
    CHECK_ENGINE();
}

TEST(only_conflicting_grants_are_wounded)
{
    start_sessions(3);
    engine_do("LOCK door OWNER r1 SESSION 2 SHARED"); /* 4 */
    engine_do("LOCK door OWNER w SESSION 3 FOREVER DEADLOCK NONE");
    const struct hold_out *out = engine_do(
        "LOCK door OWNER r2 SESSION 1 SHARED FOREVER DEADLOCK WOUNDWAIT");
    EXPECT_EVENTS(out, "6 LOCK_GRANTED door"); /* it is before w */
    out = engine_do("LOCK door OWNER x SESSION 1 FOREVER DEADLOCK WOUNDWAIT");
    EXPECT_EVENTS(out, "7 LOCK_WOUNDED door"); /* r2 is as old, and before */
    CHECK_EQ(out->events[0].token, 4);
}

TEST(the_wounds_of_one_request_are_bounded)
{
    for (unsigned extra = 0; extra < 2; extra++) {
        start_sessions(2);
        for (unsigned i = 0; i < HOLD_STEP_MAX + extra; i++)
            engine_do("LOCK door OWNER r%u SESSION 2 SHARED", i);
        uint64_t before = hold_digest(engine);
        const struct hold_out *out = engine_do(
            "LOCK door OWNER ann SESSION 1 FOREVER DEADLOCK WOUNDWAIT");
        if (extra == 0) {
            CHECK_EQ(out->code, HOLD_WAITING);
            CHECK_EQ(out->event_count, HOLD_STEP_MAX);
        } else {
            EXPECT(out, "OVERLOADED name=wounds-max maximum=256");
            CHECK(hold_digest(engine) == before);
        }
        CHECK_ENGINE();
    }
}

TEST(revoking_with_grace_is_a_wound)
{
    engine_start();
    engine_do("LOCK door OWNER ann TTL 9000");
    engine_do("LOCK door OWNER bob TTL 9000 WAIT 9000");
    const struct hold_out *out = engine_do("REVOKE door 1 GRACE 500");
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "3 LOCK_WOUNDED door");
    EXPECT(engine_do("RENEW door 1 TTL 9000"), "OK safe_ms=500");
    EXPECT(engine_do("REVOKE door 1 GRACE 900"), "OK"); /* not later */
    engine_now_us += 500 * MS;
    EXPECT_ANSWERS(engine_tick(),
                   "2:OK token=7 safe_ms=9000 count=1 waited_ms=500");
    EXPECT(engine_do("REVOKE door 1"), "NOTHELD name=door token=1");
    out = engine_do("REVOKE door 7");
    EXPECT_EVENTS(out, "8 LOCK_LOST door");
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    CHECK_ENGINE();
}

TEST(what_was_revoked_with_more_grace_is_wounded_all_the_same)
{
    start_sessions(3);
    engine_do("LOCK door OWNER bob SESSION 3"); /* 4 */
    engine_do("REVOKE door 4 GRACE 90000");
    const struct hold_out *out = engine_do(
        "LOCK door OWNER ann SESSION 2 TTL 5000 FOREVER DEADLOCK WOUNDWAIT");
    EXPECT_EVENTS(out, "6 LOCK_WOUNDED door");
    EXPECT(engine_do("RENEW door 4 TTL 9000"), "OK safe_ms=1000");
    EXPECT_EVENTS(
        engine_do("LOCK door OWNER eve SESSION 1 FOREVER DEADLOCK WOUNDWAIT"),
        "");
    engine_now_us += 1000 * MS;
    CHECK_EQ(engine_tick()->answer_count, 1);
    CHECK_ENGINE();
}

TEST(age_decides_and_nobody_barges_past_it)
{
    static const char *const policies[] = {"WOUNDWAIT", "WAITDIE"};

    for (unsigned i = 0; i < 2; i++) {
        start_sessions(3);
        engine_do("LOCK a OWNER zoe SESSION 3");
        engine_do("LOCKSET OWNER bob SESSION 2 NAME a NAME b FOREVER "
                  "DEADLOCK %s",
                  policies[i]);
        EXPECT_BEGINS(engine_do("LOCK b OWNER eve SESSION %u BARGE DEADLOCK %s",
                                i == 0 ? 3 : 1, policies[i]),
                      "BUSY name=b owner=bob ");
        EXPECT_BEGINS(engine_do("LOCK b OWNER kim BARGE"), "OK ");
    }
}

/* Of one session who is named first is older, in queues as well. */
TEST(owners_of_one_session_wait_in_the_order_of_their_names)
{
    start_sessions(1);
    engine_do("LOCK a OWNER ann SESSION 1"); /* 2 */
    engine_do("LOCKSET OWNER bob SESSION 1 NAME a NAME b FOREVER "
              "DEADLOCK WOUNDWAIT");
    EXPECT_BEGINS(
        engine_do("LOCK b OWNER ann SESSION 1 FOREVER DEADLOCK WOUNDWAIT"),
        "OK ");
    CHECK_ENGINE();
}

/* ---- Nobody is stuck, and the most senior is never turned away. ---- */

enum { WORKERS = 6, NAMES = 4, ENOUGH = 3 };

/* Each asks for one thing after the other; the first is the most senior. */
struct worker {
    uint64_t ticket;        /* 0: it does not wait */
    uint64_t tokens[NAMES]; /* of single locks; 0: it does not hold that */
    uint64_t set;           /* token; 0: none */
    unsigned wants;         /* the name that it waits for; NAMES: a set */
    unsigned finished;
};

static struct worker workers[WORKERS];

enum {
    MODES = 1,      /* also shared and counting */
    SETS = 2,       /* also sets of two */
    PRIORITIES = 4, /* the first have the better one, and the younger session */
    OWNERS = 8,     /* two of one session */
    BARGE = 16,     /* some say so */
    TREES = 32,     /* also with TREE */
    KINDS = 64
};

struct torture {
    const char *policy;
    unsigned kind;
};

static uint64_t *token_at(struct worker *worker, unsigned name)
{
    return name == NAMES ? &worker->set : &worker->tokens[name];
}

static void take_answers(const struct hold_out *out)
{
    for (size_t i = 0; i < out->answer_count; i++) {
        unsigned w = 0;
        while (workers[w].ticket != out->answers[i].ticket)
            CHECK(++w < WORKERS);
        CHECK_EQ(out->answers[i].code, HOLD_OK);
        workers[w].ticket = 0;
        *token_at(&workers[w], workers[w].wants) =
            (uint64_t)reply_get_number(out->answers[i].body, FIELD_TOKEN);
    }
    for (size_t i = 0; i < out->event_count; i++) {
        const struct hold_event *event = &out->events[i];
        for (unsigned k = 0; k < WORKERS * (NAMES + 1); k++) {
            uint64_t *token =
                token_at(&workers[k / (NAMES + 1)], k % (NAMES + 1));
            if (event->kind == EVENT_LOCK_EXPIRED && *token == event->token)
                *token = 0;
        }
    }
}

/* With trees each is below the one before it. */
static const char *name_of(const struct torture *torture, unsigned name)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    static const char *const paths[] = {"a", "a/b", "a/b/c", "a/b/c/d"};

    return ((torture->kind & TREES) != 0 ? paths : names)[name];
}

static void give_all(const struct torture *torture, struct worker *worker)
{
    for (unsigned name = 0; name <= NAMES; name++) {
        unsigned long long token = *token_at(worker, name);
        *token_at(worker, name) = 0;
        if (token != 0 && name == NAMES)
            take_answers(engine_do("UNLOCKSET %llu", token));
        else if (token != 0)
            take_answers(
                engine_do("UNLOCK %s %llu", name_of(torture, name), token));
    }
}

/* The first is the most senior, by whatever counts. */
static void write_terms(const struct torture *torture, unsigned who,
                        unsigned chance, char out[128])
{
    unsigned session = who + 1;
    unsigned priority = 0;

    if ((torture->kind & PRIORITIES) != 0) {
        session = WORKERS - 1 - who / 2 * 2 + who % 2;
        priority = who / 2;
    }
    if ((torture->kind & OWNERS) != 0)
        session = (session + 1) / 2;
    bool barges = (torture->kind & BARGE) != 0 && chance % 2 == 0;
    bool tree = (torture->kind & TREES) != 0 && chance / 4 % 2 == 0;
    snprintf(out, 128,
             "OWNER w%u SESSION %u PRIORITY %u FOREVER DEADLOCK %s%s%s", who,
             session, priority, torture->policy, barges ? " BARGE" : "",
             tree ? " TREE" : "");
}

static const struct hold_out *ask(const struct torture *torture, unsigned who,
                                  unsigned name, unsigned chance)
{
    static const char *const modes[] = {"", " SHARED", " SHARED",
                                        " PERMITS 2 OF 3"};
    bool has_modes = (torture->kind & MODES) != 0;
    unsigned mode = (torture->kind & TREES) != 0 ? chance % 3 : chance % 4;
    char terms[128];

    write_terms(torture, who, chance, terms);
    if (name < NAMES)
        return engine_do("LOCK %s %s%s", name_of(torture, name), terms,
                         has_modes ? modes[mode] : "");
    return engine_do("LOCKSET %s NAME %s NAME %s%s", terms,
                     name_of(torture, chance % 2),
                     name_of(torture, 2 + chance / 2 % 2),
                     has_modes && chance % 3 == 0 ? " SHARED" : "");
}

/* One request, or the end of its work. */
static void act(const struct torture *torture, unsigned who, unsigned name,
                unsigned chance)
{
    struct worker *worker = &workers[who];
    unsigned held = 0;

    for (unsigned i = 0; i <= NAMES; i++)
        held += *token_at(worker, i) != 0;
    if (held >= ENOUGH || chance == 0) {
        worker->finished += held >= ENOUGH;
        give_all(torture, worker);
        return;
    }
    if (*token_at(worker, name) != 0)
        return;
    const struct hold_out *out = ask(torture, who, name, chance);
    worker->wants = name;
    worker->ticket = out->ticket;
    if (out->code == HOLD_OK)
        *token_at(worker, name) = engine_token(out);
    if (out->code == HOLD_DEADLOCK) {
        CHECK(who > 0);
        CHECK(strcmp(torture->policy, "WAITDIE") == 0);
        give_all(torture, worker);
    } else {
        take_answers(out);
    }
}

/* Is a wait led round in a circle? Nobody is, if those who do not wait go on:
 * they give all back, and then everybody who waited has come in turn. */
static void drain(const struct torture *torture)
{
    for (int round = 0; round < 100; round++) {
        unsigned waiting = 0;
        for (unsigned i = 0; i < WORKERS; i++) {
            if (workers[i].ticket == 0)
                give_all(torture, &workers[i]);
            waiting += workers[i].ticket != 0;
        }
        if (waiting == 0)
            return;
        engine_now_us += 10 * MS; /* the wounded lose what they have */
        take_answers(engine_tick());
    }
    test_fail(__FILE__, __LINE__, "some wait for ever: %s %u", torture->policy,
              torture->kind);
}

static void run(const struct torture *torture)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    memset(workers, 0, sizeof workers);
    start_sessions(WORKERS);
    engine_bound("wound_grace_ms", 10);
    for (int step = 1; step <= 5000; step++) {
        engine_now_us += 1 * MS;
        take_answers(engine_tick());
        unsigned who = (unsigned)hf_random_below(&random, WORKERS);
        unsigned name = (unsigned)hf_random_below(
            &random, (torture->kind & SETS) != 0 ? NAMES + 1 : NAMES);
        unsigned chance = (unsigned)hf_random_below(&random, 16);
        if (workers[who].ticket == 0)
            act(torture, who, name, chance);
        if (step % 200 == 0) {
            CHECK_ENGINE();
            drain(torture);
        }
    }
    CHECK(workers[0].finished > 3);
}

static void run_all(const char *policy)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct torture torture = {policy, kind};
        run(&torture);
    }
}

TEST(with_waitdie_nobody_is_stuck_and_the_oldest_is_never_refused)
{
    run_all("WAITDIE");
}

TEST(with_woundwait_nobody_is_stuck_or_refused)
{
    run_all("WOUNDWAIT");
}
