/* damage.c - what a server makes of the files that it finds.
 * tests: also under sanitizers
 *
 * Damage before the end of the journal is refused and mended by hand, after a
 * clean stop also damage to the end; a torn end is cut; no token is given
 * twice, whatever was lost; a folder has one server at a time; an orderly end
 * and a restart change nothing, and time goes on.
 */
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "journal/format.h"
#include "support/scene.h"
#include "support/server.h"
#include "support/test.h"

#define WRITES        200
#define FOR_EVER_MS   3600000
#define SEGMENT_BYTES (4u << 20) /* quickly made, and room for all writes */

static struct test_server server;
static struct test_wire wire;

static void start(void)
{
    test_server_begin(
        &server, &wire,
        &(struct test_server_opts){.segment_bytes = SEGMENT_BYTES});
}

/* So many writes, one batch each, and then kill -9. */
static void write_and_kill(void)
{
    start();
    for (int i = 0; i < WRITES; i++)
        CHECK_DONE(test_ask(&wire, "LOCK lock-%d OWNER tester TTL %d", i,
                            FOR_EVER_MS));
    test_wire_close(&wire);
    test_server_kill(&server);
}

/* How many locks there are; they must be the first ones. */
static int count_locks(void)
{
    int count = 0;

    while (count < WRITES &&
           test_number(test_ask(&wire, "LOCKINFO lock-%d", count), "token") > 0)
        count++;
    for (int i = count; i < WRITES; i++)
        CHECK_ERROR(test_ask(&wire, "LOCKINFO lock-%d", i), "NOTFOUND");
    return count;
}

static const char *in_folder(const char *name)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

/* The newest segment: the only one with batches in it, without a repair. */
static int open_segment(char *name, size_t len)
{
    char pattern[512];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/journal-*.seg", test_folder());
    CHECK_EQ(glob(pattern, 0, NULL, &found), 0);
    const char *path = found.gl_pathv[found.gl_pathc - 1];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    snprintf(name, len, "%s", strrchr(path, '/') + 1);
    globfree(&found);
    return fd;
}

/* Where batch number `index` of the segment begins; behind the last one if
 * there are fewer, whose count is then in `*count`. */
static off_t find_batch(int fd, int index, int *count)
{
    char block[JOURNAL_BLOCK];
    off_t at = JOURNAL_BLOCK;
    size_t bytes;
    int i = 0;

    for (; i < index; i++) {
        if (pread(fd, block, sizeof block, at) != sizeof block ||
            batch_claim(block, &bytes) == 0)
            break;
        at += (off_t)bytes;
    }
    *count = i;
    return at;
}

static void flip(int fd, off_t at)
{
    char byte;

    CHECK_EQ(pread(fd, &byte, 1, at), 1);
    byte = (char)(byte ^ 0x40);
    CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
}

/* The server must refuse to start; `said` gets why. */
static void expect_refusal(struct hf_buf *said)
{
    struct test_server_opts opts = {.dir = test_folder()};
    struct test_server other;

    test_server_launch(&other, &opts);
    bool ready = test_server_ready(&other);
    const char *text = test_server_said(&other);
    said->len = 0;
    CHECK_EQ(hf_buf_append(said, text, strlen(text) + 1), HF_OK);
    if (ready)
        test_server_kill(&other);
    CHECK(!ready);
    int status = test_server_end(&other);
    CHECK(status != 0 && status < 126);
}

static void expect_words(const struct hf_buf *said, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strstr(said->data, *words) == NULL)
            test_fail(__FILE__, __LINE__, "expected \"%s\" in: %s", *words,
                      said->data);
    }
}

TEST(damage_in_the_middle_is_refused_and_can_be_repaired)
{
    char name[64];
    char offset[32];
    struct hf_buf said = {0};
    int count;

    write_and_kill();
    int fd = open_segment(name, sizeof name);
    off_t at = find_batch(fd, WRITES / 2, &count);
    CHECK_EQ(count, WRITES / 2);
    flip(fd, at + 60);
    close(fd);
    snprintf(offset, sizeof offset, "%lld", (long long)at);
    const char *const words[] = {name, offset, "holdfast repair", NULL};
    expect_refusal(&said);
    expect_words(&said, words);
    /* to verify is to refuse as well */
    const char *const verify[] = {"verify", test_folder(), NULL};
    said.len = 0;
    CHECK(test_holdfast(&said, verify) != 0);
    expect_words(&said, (const char *const[]){name, offset, NULL});
    /* a repair tells first and changes nothing */
    const char *const look[] = {"repair", test_folder(), NULL};
    said.len = 0;
    (void)test_holdfast(&said, look);
    expect_words(&said, (const char *const[]){name, "--apply", NULL});
    expect_refusal(&said);
    const char *const apply[] = {"repair", test_folder(), "--apply", NULL};
    said.len = 0;
    CHECK_EQ(test_holdfast(&said, apply), 0);
    said.len = 0;
    CHECK_EQ(test_holdfast(&said, verify), 0);
    start();
    int left = count_locks();
    CHECK(left >= WRITES / 2 - 2 && left < WRITES);
    CHECK_DONE(test_ask(&wire, "LOCK again OWNER tester"));
    test_wire_close(&wire);
    CHECK_EQ(test_server_stop(&server), 0);
    hf_buf_destroy(&said);
}

TEST(damage_at_any_byte_of_a_batch_is_noticed)
{
    static const off_t places[] = {0, 7, 8, 15, 16, 24, 32, 36, 40, 44, 70};
    struct hf_buf said = {0};
    char name[64];
    int count;

    write_and_kill();
    int fd = open_segment(name, sizeof name);
    off_t at = find_batch(fd, WRITES / 3, &count);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        flip(fd, at + places[i]);
        expect_refusal(&said);
        flip(fd, at + places[i]);
    }
    flip(fd, 20); /* the segment's own header */
    expect_refusal(&said);
    flip(fd, 20);
    close(fd);
    start();
    CHECK_EQ(count_locks(), WRITES);
    test_wire_close(&wire);
    CHECK_EQ(test_server_stop(&server), 0);
    hf_buf_destroy(&said);
}

/* One line of notice, and nothing lost but the torn batch. */
static void expect_cut(int locks)
{
    start();
    int found = count_locks();
    if (found != locks)
        test_fail(__FILE__, __LINE__, "expected %d locks, found %d: %s", locks,
                  found, test_server_said(&server));
    const char *text = test_server_said(&server);
    int lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    CHECK(lines >= 2 && lines <= 8); /* ready and its hints, and the notice */
    CHECK_DONE(test_ask(&wire, "FENCE after 1"));
    test_wire_close(&wire);
    test_server_kill(&server);
    start(); /* the cut is for good */
    CHECK_EQ(count_locks(), locks);
    test_wire_close(&wire);
    CHECK_EQ(test_server_stop(&server), 0);
}

TEST(a_torn_batch_behind_the_last_one_is_cut)
{
    char block[JOURNAL_BLOCK];
    char name[64];
    int count;

    write_and_kill();
    int fd = open_segment(name, sizeof name);
    off_t end = find_batch(fd, INT32_MAX, &count);
    off_t last = find_batch(fd, count - 1, &count);
    CHECK(end > last);
    /* as a write looks of which only the beginning reached the disk */
    CHECK_EQ(pread(fd, block, sizeof block, last), sizeof block);
    block[16]++; /* the next number, whose checksum does not fit */
    memset(block + 50, 0, sizeof block - 50);
    CHECK_EQ(pwrite(fd, block, sizeof block, end), sizeof block);
    close(fd);
    expect_cut(WRITES);
}

TEST(a_torn_last_batch_is_cut)
{
    static const char zeros[JOURNAL_BLOCK] = {0};
    char name[64];
    int count;

    write_and_kill();
    int fd = open_segment(name, sizeof name);
    (void)find_batch(fd, INT32_MAX, &count);
    off_t last = find_batch(fd, count - 1, &count);
    CHECK_EQ(pwrite(fd, zeros, 600, last + 45), 600);
    close(fd);
    expect_cut(WRITES - 1);
}

static int64_t lock(const char *name)
{
    int64_t token = test_number(
        test_ask(&wire, "LOCK %s OWNER tester TTL %d", name, FOR_EVER_MS),
        "token");

    CHECK(token > 0);
    return token;
}

static void stop(void)
{
    test_server_finish(&server, &wire);
}

/* Server and verify refuse with these words; a repair shows them or not, and
 * then the server starts. */
static void refused_and_repaired(const char *const *words)
{
    struct hf_buf said = {0};
    const char *const verify[] = {"verify", test_folder(), NULL};
    const char *const look[] = {"repair", test_folder(), NULL};
    const char *const apply[] = {"repair", test_folder(), "--apply", NULL};

    expect_refusal(&said);
    expect_words(&said, words);
    expect_words(&said, (const char *const[]){"holdfast repair", NULL});
    said.len = 0;
    CHECK(test_holdfast(&said, verify) != 0);
    expect_words(&said, words);
    said.len = 0;
    CHECK_EQ(test_holdfast(&said, look), 0);
    expect_words(&said, (const char *const[]){"--apply", NULL});
    expect_refusal(&said);
    said.len = 0;
    CHECK_EQ(test_holdfast(&said, apply), 0);
    said.len = 0;
    CHECK_EQ(test_holdfast(&said, verify), 0);
    expect_words(&said, (const char *const[]){"skips sequence numbers", NULL});
    start();
    hf_buf_destroy(&said);
}

TEST(after_a_clean_stop_damage_to_the_last_batch_is_refused)
{
    char name[64];
    char offset[32];
    int count;

    start();
    (void)lock("first");
    int64_t told = lock("last");
    stop();
    int fd = open_segment(name, sizeof name);
    (void)find_batch(fd, INT32_MAX, &count);
    off_t last = find_batch(fd, count - 1, &count);
    flip(fd, last + 45);
    close(fd);
    snprintf(offset, sizeof offset, "offset %lld", (long long)last);
    refused_and_repaired((const char *const[]){name, offset, NULL});
    CHECK_ERROR(test_ask(&wire, "LOCKINFO last"), "NOTFOUND");
    CHECK(lock("again") > told);
    stop();
}

TEST(a_segment_that_is_missing_or_cut_is_refused_by_name)
{
    for (int i = 0; i < 4; i++) {
        bool cut = i % 2 == 0;
        char name[64];

        start();
        int64_t told = lock("last");
        if (i < 2)
            stop();
        else
            test_server_kill(&server);
        int fd = open_segment(name, sizeof name);
        if (cut)
            CHECK_EQ(ftruncate(fd, 3 * JOURNAL_BLOCK), 0);
        else
            CHECK_EQ(unlinkat(AT_FDCWD, in_folder(name), 0), 0);
        close(fd);
        refused_and_repaired(
            (const char *const[]){name, cut ? "12288 bytes" : "missing", NULL});
        CHECK(lock("again") > told);
        stop();
    }
}

/* Every crash moves the numbers on by a gap, and a repair that leaves nothing
 * must not go back behind that. */
TEST(no_token_is_given_twice_even_if_everything_is_lost)
{
    char name[64];
    int64_t told = 0;

    for (int i = 0; i < 4; i++) {
        start();
        int64_t token = lock("lock");
        CHECK(i == 0 || token - told >= INT64_C(1) << 32);
        CHECK(i == 0 || token - told < INT64_C(1) << 33);
        told = token;
        CHECK_DONE(test_ask(&wire, "UNLOCK lock %lld", (long long)token));
        test_wire_close(&wire);
        test_server_kill(&server);
    }
    start(); /* unclean once more; and now cleanly */
    told = lock("lock");
    stop();
    start();
    CHECK_DONE(test_ask(&wire, "UNLOCK lock %lld", (long long)told));
    int64_t token = lock("lock");
    CHECK(token > told && token < told + 100); /* no gap */
    told = token;
    stop();
    int fd = open_segment(name, sizeof name);
    close(fd);
    CHECK_EQ(unlink(in_folder(name)), 0);
    refused_and_repaired((const char *const[]){name, "missing", NULL});
    CHECK_ERROR(test_ask(&wire, "LOCKINFO lock"), "NOTFOUND");
    CHECK(lock("lock") > told);
    stop();
}

/* The starts that are dropped had skipped numbers, and no note says so. The
 * second time one of those had skipped all that the first repair let it. */
TEST(no_token_is_given_twice_if_the_manifest_is_lost_as_well)
{
    static const char name[] = "journal-0000000000000001.seg";
    int64_t told = 0;
    int count;

    for (int i = 0; i < 4; i++) {
        start();
        told = lock("lock");
        CHECK_DONE(test_ask(&wire, "UNLOCK lock %lld", (long long)told));
        test_wire_close(&wire);
        test_server_kill(&server);
    }
    for (int i = 0; i < 2; i++) {
        int fd = open(in_folder(name), O_RDWR | O_CLOEXEC);
        CHECK(fd >= 0);
        flip(fd, find_batch(fd, 1 - i, &count) + 100);
        close(fd);
        CHECK_EQ(unlink(in_folder("manifest")), 0);
        refused_and_repaired((const char *const[]){name, NULL});
        CHECK_ERROR(test_ask(&wire, "LOCKINFO lock"), "NOTFOUND");
        CHECK(lock("lock") > told);
        told = test_number(test_ask(&wire, "LOCKINFO lock"), "token");
        stop();
    }
}

static bool verifies_clean(void)
{
    struct hf_buf said = {0};
    const char *const verify[] = {"verify", test_folder(), NULL};

    CHECK_EQ(test_holdfast(&said, verify), 0);
    bool clean = strstr(said.data, "skips sequence numbers") == NULL;
    hf_buf_destroy(&said);
    return clean;
}

static void fail_to_listen(const struct test_server_opts *opts)
{
    test_server_launch(&server, opts);
    CHECK(!test_server_ready(&server));
    CHECK(test_server_end(&server) != 0);
}

TEST(a_journal_that_fails_is_no_clean_end_and_a_failed_start_is_none)
{
    static const char *const nowhere[] = {"--bind", "203.0.113.1", NULL};
    struct test_server_opts opts = {.dir = test_folder(), .more = nowhere};

    start();
    (void)lock("lock");
    stop();
    CHECK(verifies_clean());
    fail_to_listen(&opts);
    CHECK(verifies_clean());
    start();
    test_wire_close(&wire);
    test_server_kill(&server);
    fail_to_listen(&opts);
    CHECK(!verifies_clean());
    start();
    stop();
    CHECK(verifies_clean());
    opts =
        (struct test_server_opts){.dir = test_folder(), .fault = "write:1:eio"};
    test_server_start(&server, &opts);
    test_server_connect(&server, &wire);
    CHECK_ERROR(test_ask(&wire, "LOCK more OWNER tester"), "JOURNAL");
    test_wire_close(&wire);
    (void)test_server_stop(&server);
    CHECK(!verifies_clean());
}

TEST(a_folder_has_one_server_at_a_time)
{
    struct test_scene *scene = test_scene_open();
    struct hf_buf said = {0};

    expect_refusal(&said);
    expect_words(&said, (const char *const[]){test_folder(), NULL});
    CHECK_REPLY(test_ask(&scene->good, "PING"), "+PONG");
    hf_buf_destroy(&said);
    test_scene_close(scene);
}

TEST(an_orderly_end_keeps_everything_and_says_so)
{
    struct hf_buf before = {0};
    struct hf_buf after = {0};
    struct test_wire waiter;
    struct test_wire idle;

    start();
    for (int i = 0; i < 100; i++) {
        CHECK_DONE(test_ask(&wire, "STOCK SET sku-%d %d", i, i + 10));
        CHECK_DONE(test_ask(&wire, "RESERVE r-%d ITEM sku-%d 2 TTL %d", i, i,
                            FOR_EVER_MS));
        CHECK_DONE(test_ask(&wire, "LOCK lock-%d OWNER tester TTL %d", i,
                            FOR_EVER_MS));
        if (i % 2 == 0)
            CHECK_DONE(test_ask(&wire, "CONFIRM r-%d", i));
    }
    test_show(&wire, &before);
    /* neither an idle client nor one that waits holds up the end */
    test_server_connect(&server, &idle);
    test_server_connect(&server, &waiter);
    TEST_SEND(&waiter, "LOCK lock-0 OWNER other WAIT %d", FOR_EVER_MS);
    CHECK_EQ(test_server_stop(&server), 0);
    CHECK(test_wire_ends(&waiter));
    CHECK(test_wire_ends(&idle));
    test_wire_close(&waiter);
    test_wire_close(&idle);
    start();
    test_show(&wire, &after);
    CHECK(before.len > 1000);
    CHECK(hf_bytes_equal(hf_buf_bytes(&before), hf_buf_bytes(&after)));
    CHECK_EQ(test_number(test_ask(&wire, "STOCK GET sku-4"), "sold"), 2);
    test_wire_close(&wire);
    CHECK_EQ(test_server_stop(&server), 0);
    hf_buf_destroy(&before);
    hf_buf_destroy(&after);
}

TEST(time_never_goes_back_over_restarts)
{
    int64_t left_ms = FOR_EVER_MS;
    uint64_t start_ms;

    start();
    CHECK_DONE(test_ask(&wire, "LOCK long OWNER tester TTL %d", FOR_EVER_MS));
    start_ms = test_now_ms();
    for (int i = 0; i < 12; i++) {
        int64_t now_left_ms =
            test_number(test_ask(&wire, "LOCKINFO long"), "expires_ms");
        CHECK(now_left_ms > 0 && now_left_ms <= left_ms);
        left_ms = now_left_ms;
        int64_t passed_ms = (int64_t)(test_now_ms() - start_ms);
        /* nor does it run ahead by more than the test has taken */
        CHECK(left_ms >= FOR_EVER_MS - passed_ms - 5000);
        test_wire_close(&wire);
        if (i % 2 == 0)
            test_server_kill(&server);
        else
            CHECK_EQ(test_server_stop(&server), 0);
        start();
    }
    test_wire_close(&wire);
    CHECK_EQ(test_server_stop(&server), 0);
}

TEST(a_hold_runs_out_while_no_server_runs)
{
    int64_t token;
    uint64_t taken_ms;

    start();
    taken_ms = test_now_ms();
    CHECK_DONE(test_ask(&wire, "STOCK SET bolt 5"));
    CHECK_DONE(test_ask(&wire, "RESERVE brief ITEM bolt 2 TTL 300"));
    token = test_number(test_ask(&wire, "LOCK brief OWNER tester TTL 300"),
                        "token");
    CHECK(token > 0);
    do { /* whoever is there when it has run out must know */
        CHECK(test_now_ms() < taken_ms + TEST_WIRE_DEADLINE_MS);
        test_wire_close(&wire);
        test_server_kill(&server);
        start();
    } while (test_number(test_ask(&wire, "LOCKINFO brief"), "token") == token);
    CHECK(test_now_ms() >= taken_ms + 299);
    CHECK_ERROR(test_ask(&wire, "LOCKINFO brief"), "NOTFOUND");
    CHECK(test_number(test_ask(&wire, "LOCK brief OWNER other"), "token") >
          token);
    CHECK_ERROR(test_ask(&wire, "CONFIRM brief"), "EXPIRED");
    CHECK_EQ(test_number(test_ask(&wire, "STOCK GET bolt"), "available"), 5);
    test_wire_close(&wire);
    CHECK_EQ(test_server_stop(&server), 0);
}
