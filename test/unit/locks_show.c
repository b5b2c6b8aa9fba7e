/* locks_show.c - tests of what the lock manager shows: holders, the graph. */
#include "holdfast/locks.h"

#include "support/locking.h"

#define MS UINT64_C(1000000)

struct seen {
    struct hf_locks_holder holders[4];
    char owners[4][16];
    char notes[4][16];
    int count;
};

static void see(void *context, const struct hf_locks_holder *holder)
{
    struct seen *seen = context;

    CHECK(seen->count < 4);
    seen->holders[seen->count] = *holder;
    memcpy(seen->owners[seen->count], holder->owner, strlen(holder->owner) + 1);
    memcpy(seen->notes[seen->count], holder->note, strlen(holder->note) + 1);
    seen->count++;
}

/* Two readers hold "a", a writer and a set with "b" wait for it. */
static struct {
    struct test_clock clock;
    struct hf_locks *locks;
    struct locking_call writer;
    struct locking_call set;
    struct hf_locks_answer readers[2];
} test;

static const struct hf_locks_item both[] = {{.name = "b\"q"}, {.name = "a"}};

static void begin(void)
{
    memset(&test, 0, sizeof test);
    test.clock.now_ns = 1000;
    struct hf_locks_opts opts = {.clock = test_clock(&test.clock)};
    struct hf_locks_request read = {
        .mode = HF_LOCKS_SHARED, .owner = "r1", .note = "reads"};

    test.locks = locking_open(&opts);
    CHECK_EQ(hf_locks_acquire(test.locks, "a", &read, HF_NOW, &test.readers[0]),
             HF_OK);
    CHECK_EQ(hf_locks_acquire(test.locks, "a", &read, HF_NOW, &test.readers[0]),
             HF_OK);
    read.owner = "r2";
    read.note = NULL;
    test_clock_advance(&test.clock, 5 * MS);
    CHECK_EQ(hf_locks_acquire(test.locks, "a", &read, HF_NOW, &test.readers[1]),
             HF_OK);
    test.writer =
        (struct locking_call){.locks = test.locks,
                              .name = "a",
                              .request = {.owner = "w", .note = "writes"},
                              .deadline_ns = HF_FOREVER};
    locking_start(&test.writer);
    locking_await_waiting(test.locks, 1);
    test_clock_advance(&test.clock, 2 * MS);
    test.set = (struct locking_call){.locks = test.locks,
                                     .items = both,
                                     .count = 2,
                                     .request = {.owner = "s"},
                                     .deadline_ns = HF_FOREVER};
    locking_start(&test.set);
    locking_await_waiting(test.locks, 2);
}

static void end(bool close)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_locks_release(test.locks, "a", test.readers[i / 2].token),
                 HF_OK);
    locking_join(&test.writer);
    CHECK_EQ(hf_locks_release(test.locks, "a", test.writer.answer.token),
             HF_OK);
    locking_join(&test.set);
    CHECK_EQ(test.set.status, HF_OK);
    if (close)
        hf_locks_close(test.locks);
}

TEST(holders_and_those_who_wait_are_told)
{
    struct seen seen = {.count = 0};
    static const char *const owners[] = {"r1", "r2", "w", "s"};
    static const char *const notes[] = {"reads", "", "writes", ""};
    static const uint64_t since[] = {7 * MS, 2 * MS, 2 * MS, 0};

    begin();
    CHECK_EQ(hf_locks_holders(test.locks, "a", see, &seen), HF_OK);
    CHECK_EQ(seen.count, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_TEXT(seen.owners[i], strlen(seen.owners[i]), owners[i]);
        CHECK_TEXT(seen.notes[i], strlen(seen.notes[i]), notes[i]);
        CHECK_EQ(seen.holders[i].since_ns, since[i]);
        CHECK_EQ(seen.holders[i].token, i < 2 ? test.readers[i].token : 0);
        CHECK_EQ(seen.holders[i].mode,
                 i < 2 ? HF_LOCKS_SHARED : HF_LOCKS_EXCLUSIVE);
    }
    CHECK_EQ(seen.holders[0].count, 2);
    CHECK_EQ(seen.holders[1].count, 1);
    CHECK_EQ(hf_locks_holders(test.locks, "none", see, &seen), HF_NOTFOUND);
    CHECK_EQ(locking_stats(test.locks, "a").waiting, 2);
    end(true);
}

TEST(the_graph_tells_who_waits_for_whom)
{
    static const char *const text =
        "w -> r1: a, exclusive, 2 ms, held\n"
        "w -> r2: a, exclusive, 2 ms, held\n"
        "s -> r1: a, exclusive, 0 ms, held\n"
        "s -> r2: a, exclusive, 0 ms, held\n"
        "s -> w: a, exclusive, 0 ms, before it\n"
        "x -> s: b\"q, exclusive, 0 ms, before it\n";
    static const char *const dot =
        "digraph waits {\n"
        "  \"w\" -> \"r1\" [label=\"a\"];\n"
        "  \"w\" -> \"r2\" [label=\"a\"];\n"
        "  \"s\" -> \"r1\" [label=\"a\"];\n"
        "  \"s\" -> \"r2\" [label=\"a\"];\n"
        "  \"s\" -> \"w\" [label=\"a\", style=dashed];\n"
        "  \"x\" -> \"s\" [label=\"b\\\"q\", style=dashed];\n"
        "}\n";
    struct locking_call last;
    char out[1000];

    begin();
    last = (struct locking_call){.locks = test.locks,
                                 .name = both[0].name,
                                 .request = {.owner = "x"},
                                 .deadline_ns = HF_FOREVER};
    locking_start(&last);
    locking_await_waiting(test.locks, 3);
    size_t len = hf_locks_graph(test.locks, HF_LOCKS_TEXT, out, sizeof out);
    CHECK_TEXT(out, len, text);
    len = hf_locks_graph(test.locks, HF_LOCKS_DOT, out, sizeof out);
    CHECK_TEXT(out, len, dot);
    CHECK_EQ(hf_locks_graph(test.locks, HF_LOCKS_TEXT, out, 4), strlen(text));
    CHECK_TEXT(out, strlen(out), "w -");
    CHECK_EQ(hf_locks_graph(test.locks, HF_LOCKS_TEXT, NULL, 0), strlen(text));
    end(false);
    CHECK_EQ(hf_locks_release_set(test.locks, test.set.answer.token), HF_OK);
    locking_join(&last);
    CHECK_EQ(hf_locks_graph(test.locks, HF_LOCKS_TEXT, out, sizeof out), 0);
    CHECK_TEXT(out, strlen(out), "");
    hf_locks_close(test.locks);
}

/* More than one page of the engine's. */
TEST(a_large_graph_is_told_whole)
{
    enum { MANY = 1100 };
    static struct locking_call calls[MANY];
    struct test_clock clock = {.now_ns = 1000};
    struct hf_locks_opts opts = {.waiters_max = MANY,
                                 .clock = test_clock(&clock)};
    struct hf_locks *locks = locking_open(&opts);
    struct hf_locks_answer answer;
    pthread_attr_t small;
    size_t lines = 0;

    CHECK_EQ(hf_locks_acquire(locks, "a", NULL, HF_NOW, &answer), HF_OK);
    CHECK_EQ(pthread_attr_init(&small), 0);
    CHECK_EQ(pthread_attr_setstacksize(&small, 256 * 1024), 0);
    for (int i = 0; i < MANY; i++) {
        calls[i] = (struct locking_call){
            .locks = locks, .name = "a", .deadline_ns = HF_FOREVER};
        CHECK_EQ(
            pthread_create(&calls[i].thread, &small, locking_run, &calls[i]),
            0);
    }
    locking_await_waiting(locks, MANY);
    size_t len = hf_locks_graph(locks, HF_LOCKS_TEXT, NULL, 0);
    char *text = malloc(len + 1);
    CHECK_EQ(hf_locks_graph(locks, HF_LOCKS_TEXT, text, len + 1), len);
    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    CHECK_EQ(lines, 2 * MANY - 1); /* and the one before each */
    free(text);
    hf_locks_shutdown(locks);
    for (int i = 0; i < MANY; i++) {
        locking_join(&calls[i]);
        CHECK_EQ(calls[i].status, HF_CLOSED);
    }
    hf_locks_close(locks);
}
