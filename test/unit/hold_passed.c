/* hold_passed.c - tests of how often a set that waits is passed by requests for
 * single names that come later, however many there are. */
#include "base/random.h"
#include "support/engine.h"

TEST_ONE_THREAD;

#define NAMES_MAX   5u
#define SINGLES_MAX 3000u
#define STEPS       400u
#define ROUNDS      300u

/* A request for one name. */
struct single {
    unsigned name;
    bool writer;
    bool later; /* than the set */
    bool held;
    uint64_t ticket; /* while it waits */
    uint64_t token;
};

static struct storm {
    struct hf_random random;
    unsigned names;
    bool shared[NAMES_MAX];     /* the set wants that name so */
    unsigned before[NAMES_MAX]; /* writers who hold it or wait for it already */
    unsigned turns[NAMES_MAX];  /* of readers who came later than the set */
    uint64_t fence[NAMES_MAX];  /* of the last turn */
    uint64_t ticket;            /* of the set */
    bool granted;
    struct single singles[SINGLES_MAX];
    unsigned count;
} storm;

static unsigned below(unsigned bound)
{
    return (unsigned)hf_random_below(&storm.random, bound);
}

/* A writer never passes the set. Readers pass it where it is a writer, and
 * those of one turn have one fence. */
static void note_grant(struct single *single, struct hf_bytes body)
{
    uint64_t fence = (uint64_t)reply_get_number(body, FIELD_FENCE);

    single->held = true;
    single->ticket = 0;
    single->token = (uint64_t)reply_get_number(body, FIELD_TOKEN);
    if (!single->later || storm.granted)
        return;
    CHECK(!single->writer);
    if (storm.shared[single->name] || fence == storm.fence[single->name])
        return;
    storm.turns[single->name]++;
    storm.fence[single->name] = fence;
}

static void note_answers(const struct hold_out *out)
{
    for (uint32_t i = 0; i < out->answer_count; i++) {
        const struct hold_answer *answer = &out->answers[i];
        CHECK_EQ(answer->code, HOLD_OK);
        if (answer->ticket == storm.ticket) {
            storm.granted = true;
            continue;
        }
        unsigned n = 0;
        while (storm.singles[n].ticket != answer->ticket)
            CHECK(++n < storm.count);
        note_grant(&storm.singles[n], answer->body);
    }
}

static void ask(unsigned name, bool writer, bool later)
{
    CHECK(storm.count < SINGLES_MAX);
    struct single *single = &storm.singles[storm.count];
    const struct hold_out *out =
        engine_do("LOCK n%u OWNER o%u FOREVER%s", name, storm.count,
                  writer ? "" : " SHARED");

    storm.count++;
    *single = (struct single){.name = name, .writer = writer, .later = later};
    if (out->code == HOLD_WAITING)
        single->ticket = out->ticket;
    else
        note_grant(single, out->body);
    note_answers(out);
    if (!later && writer)
        storm.before[name]++;
}

/* Gives back one of those that are held, if there are any. */
static bool give_back(void)
{
    unsigned n = storm.count == 0 ? 0 : below(storm.count);

    for (unsigned i = 0; i < storm.count; i++, n = (n + 1) % storm.count) {
        struct single *single = &storm.singles[n];
        if (!single->held)
            continue;
        single->held = false;
        note_answers(engine_do("UNLOCK n%u %llu", single->name,
                               (unsigned long long)single->token));
        return true;
    }
    return false;
}

/* So many requests for each name come first, the set after them; of the first
 * name there is a writer. */
static void begin(uint64_t seed, unsigned first_max)
{
    char words[200] = "";
    size_t len = 0;

    memset(&storm, 0, sizeof storm);
    hf_random_init(&storm.random, seed);
    storm.names = 2 + below(NAMES_MAX - 1);
    engine_start();
    ask(0, true, false);
    for (unsigned i = 0; i < storm.names; i++) {
        for (unsigned n = below(first_max + 1); n > 0 && i > 0; n--)
            ask(i, below(2) == 0, false);
        storm.shared[i] = i > 0 && below(3) == 0;
        len += (size_t)snprintf(words + len, sizeof words - len, " NAME n%u%s",
                                i, storm.shared[i] ? " SHARED" : "");
    }
    const struct hold_out *out =
        engine_do("LOCKSET OWNER set%s FOREVER", words);
    CHECK_EQ(out->code, HOLD_WAITING);
    storm.ticket = out->ticket;
}

/* Runs until the set is granted; returns how many turns of readers passed it,
 * and how many names there were at most. */
static unsigned run(void)
{
    unsigned turns = 0;

    for (unsigned i = 0; i < STEPS && !storm.granted; i++) {
        if (below(2) == 0)
            ask(below(storm.names), below(3) == 0, true);
        else
            give_back();
    }
    while (!storm.granted)
        CHECK(give_back());
    for (unsigned i = 0; i < storm.names; i++) {
        CHECK(storm.turns[i] <= storm.before[i]);
        turns += storm.turns[i];
    }
    CHECK_ENGINE();
    return turns;
}

/* With one writer before it at each name at most. */
TEST(a_set_that_waits_is_passed_by_one_turn_of_readers_at_each_name)
{
    unsigned most = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        begin(test_seed() + round, 1);
        unsigned turns = run();
        CHECK(turns <= storm.names);
        most = turns > most ? turns : most;
    }
    CHECK(most > 1); /* it happens, at several names of one set */
}

/* A turn with each writer before it, as for a single writer. */
TEST(and_by_one_turn_with_each_writer_before_it)
{
    unsigned most = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        begin(test_seed() + round, 4);
        unsigned turns = run();
        most = turns > most ? turns : most;
    }
    CHECK(most > NAMES_MAX / 2);
}

/* Readers come and go all the time, and a new one comes before the last has
 * gone: the set gets its names as soon as the one that it waits for is free. */
TEST(readers_without_end_do_not_keep_a_set_waiting)
{
    memset(&storm, 0, sizeof storm);
    engine_start();
    engine_do("LOCK n0 OWNER ann TTL 90000");        /* 1 */
    engine_do("LOCK n1 OWNER old SHARED TTL 90000"); /* 2 */
    EXPECT(engine_do("LOCKSET OWNER set NAME n0 NAME n1 TTL 500 FOREVER"),
           "WAITING ticket=3");
    for (unsigned i = 0; i < 1000; i++)
        CHECK_EQ(engine_do("LOCK n1 OWNER r%u SHARED FOREVER", i)->code,
                 HOLD_WAITING);
    EXPECT_ANSWERS(engine_do("UNLOCK n1 2"), "");
    const struct hold_out *out = engine_do("UNLOCK n0 1");
    CHECK_EQ(out->answer_count, 1);
    CHECK_EQ(out->answers[0].ticket, 3);
    engine_stop();
}
