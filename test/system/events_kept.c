/* events_kept.c - the feed over restarts, crashes, snapshots and damage: what
 * is told is right, and what is missing is told.
 * tests: also under sanitizers
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "resp/resp.h"
#include "support/hear.h"
#include "support/pages.h"
#include "support/server.h"

#define SEGMENT_BYTES  (1u << 20)
#define SNAPSHOT_BYTES (1u << 20)

static struct test_server server;
static struct test_wire wire;
static char dir[512];
static struct pages before;
static struct pages after;

static void start_with(const struct test_server_opts *opts)
{
    struct test_server_opts given = *opts;

    given.dir = dir;
    if (given.durability == NULL)
        given.durability = "none";
    test_server_begin(&server, &wire, &given);
}

static void start_again(void)
{
    start_with(&(struct test_server_opts){0});
}

static void new_folder(void)
{
    static int count;

    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
    pages_clear(&before, 0);
    pages_clear(&after, 0);
}

static void stop(void)
{
    test_server_finish(&server, &wire);
    pages_free(&before);
    pages_free(&after);
}

/* So many changes, about 120 bytes each as events. */
static void change(int count)
{
    for (int done = 0; done < count; done += 500) {
        for (int i = 0; i < 500; i++)
            test_wire_add(&wire, "STOCK SET product-%d-%040d %d", i % 7, 0,
                          done + i);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        for (int i = 0; i < 500; i++)
            CHECK_DONE(TEST_ANSWER(&wire));
    }
}

static void read_from(struct pages *pages, int64_t from)
{
    pages_clear(pages, from);
    pages_read(pages, &wire, "COUNT 1000");
}

static void expect_same(void)
{
    CHECK_EQ(after.count, before.count);
    CHECK(hf_bytes_equal(hf_buf_bytes(&after.bytes),
                         hf_buf_bytes(&before.bytes)));
}

static void await_at_least(const char *figure, int64_t value)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    while (test_info(&wire, figure) < value)
        CHECK(test_now_ms() < end_ms);
}

/* Seals some segments, and waits for the snapshot of them. */
static void make_snapshot(int64_t number)
{
    change(30000);
    await_at_least("snapshots_total", number);
}

TEST(the_answer_is_the_same_after_a_restart)
{
    static const int ends[] = {SIGTERM, SIGKILL};

    for (size_t i = 0; i < 2; i++) {
        new_folder();
        start_again();
        change(1000);
        read_from(&before, 0);
        CHECK_EQ(before.count, 1000);
        CHECK_EQ(before.gaps, 0);
        for (int round = 0; round < 3; round++) {
            CHECK(test_server_signal(&server, ends[i]));
            (void)test_server_end(&server);
            start_again();
            read_from(&after, 0);
            CHECK_EQ(after.gaps, 0);
            expect_same();
            change(500);
            read_from(&before, 0);
            CHECK_EQ(before.count, 1000 + 500 * (round + 1));
        }
        stop();
    }
}

/* Its events are only in the feed's files then. */
TEST(the_feed_has_what_the_journal_has_dropped)
{
    new_folder();
    start_with(&(struct test_server_opts){.segment_bytes = SEGMENT_BYTES,
                                          .snapshot_bytes = SNAPSHOT_BYTES});
    make_snapshot(1);
    make_snapshot(2);
    read_from(&before, 0);
    CHECK_EQ(before.gaps, 0);
    test_server_kill(&server);
    start_again();
    CHECK(test_info(&wire, "journal_replayed") < (int64_t)before.count / 2);
    read_from(&after, 0);
    CHECK_EQ(after.gaps, 0);
    expect_same();
    stop();
}

/* ---- Readers that go on. ---- */

#define TOLD_MAX 20000
static int64_t told[TOLD_MAX]; /* tokens, by LOCK */
static size_t told_count;

/* Locks that were asked for and not answered yet. */
static size_t asked;

static void ask_locks(int count)
{
    static uint64_t number;

    for (int i = 0; i < count; i++)
        test_wire_add(&wire, "LOCK l%" PRIu64 " OWNER ann TTL 3600000",
                      number++);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    asked += (size_t)count;
}

/* Takes in what is answered, all of it or so many. */
static void take_tokens(size_t count)
{
    struct hf_bytes reply;

    while (count > 0 && asked > 0 && test_wire_read(&wire, &reply) == HF_OK) {
        CHECK(told_count < TOLD_MAX);
        told[told_count] = test_number(reply, "token");
        CHECK(told[told_count] > 0);
        told_count++;
        asked--;
        count--;
    }
}

static void expect_all_told(const struct pages *heard)
{
    size_t at = 0;

    for (size_t i = 0; i < told_count; i++) {
        while (at < heard->count && pages_seq(heard, at) < told[i])
            at++;
        if (at == heard->count || pages_seq(heard, at) != told[i])
            test_fail(__FILE__, __LINE__, "%" PRId64 " is not in the feed",
                      told[i]);
    }
}

/* Feed and state agree, also where the server was killed. */
static void expect_proved(void)
{
    const char *const args[] = {"verify", dir, NULL};
    struct hf_buf said = {0};

    if (test_holdfast(&said, args) != 0)
        test_fail(__FILE__, __LINE__, "%s", said.data);
    hf_buf_destroy(&said);
}

/* A consumer reads while locks are granted; then all is killed, in the middle
 * of it, and the consumer goes on from its last number. What it heard is in
 * strict order, so nothing was told twice. */
static void check_consumer(const char *durability, uint64_t seed)
{
    const struct test_server_opts opts = {.durability = durability,
                                          .segment_bytes = SEGMENT_BYTES,
                                          .snapshot_bytes = SNAPSHOT_BYTES};
    struct test_wire consumer = {.fd = -1};
    struct hf_random random;

    hf_random_init(&random, seed);
    new_folder();
    told_count = 0;
    for (int round = 0; round < 6; round++) {
        start_with(&opts);
        test_server_connect(&server, &consumer);
        int batches = 1 + (int)hf_random_below(&random, 12);
        for (int i = 0; i < batches; i++) {
            ask_locks(200);
            TEST_SEND(&consumer, "EVENTS FROM %" PRId64 " WAIT 10000",
                      before.next);
            take_tokens(hf_random_below(&random, 400));
            pages_add(&before, TEST_ANSWER(&consumer));
        }
        ask_locks(100);
        test_wire_add(&consumer, "EVENTS FROM %" PRId64, before.next);
        CHECK_EQ(test_wire_send(&consumer), HF_OK);
        test_server_kill(&server); /* its last answer may be on its way */
        take_tokens(SIZE_MAX);
        asked = 0;
        expect_proved();
        test_wire_close(&consumer);
    }
    start_with(&opts);
    pages_read(&before, &wire, "COUNT 1000 MATCH hf:lock:*");
    CHECK_EQ(before.gaps, 0);
    CHECK(told_count > 1000);
    expect_all_told(&before);
    read_from(&after, 0);
    CHECK_EQ(after.gaps, 0);
    expect_same();
    stop();
}

TEST(a_consumer_that_goes_on_after_a_crash_misses_nothing)
{
    check_consumer("none", test_seed());
    check_consumer("interval", test_seed() + 1);
    check_consumer("always", test_seed() + 2);
}

/* ---- Subscribers that go on in the feed. ---- */

static void add_told(int64_t seq)
{
    CHECK(told_count < TOLD_MAX);
    CHECK(told_count == 0 || seq > told[told_count - 1]);
    told[told_count++] = seq;
}

static void listen_to_locks(struct test_wire *ear)
{
    test_server_connect(&server, ear);
    CHECK_DONE(test_ask(ear, "HELLO 3"));
    TEST_SEND(ear, "PSUBSCRIBE hf:lock:*");
    expect_count(ear, "psubscribe", "hf:lock:*", 1);
}

/* Reads so many messages; what was in the feed is known. */
static void hear_locks(struct test_wire *ear, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hf_bytes message = TEST_ANSWER(ear);
        CHECK_EQ(test_length(message), 4);
        CHECK(is_text(test_element(message, 0), "pmessage"));
        int64_t seq =
            test_json_number(test_bulk(test_element(message, 3)), "seq");
        if (told_count == 0 || seq > told[told_count - 1])
            add_told(seq);
    }
}

static void read_what_was_missed(void)
{
    pages_clear(&after, told_count == 0 ? 0 : told[told_count - 1]);
    pages_read(&after, &wire, "MATCH hf:lock:*");
    CHECK_EQ(after.gaps, 0);
    for (size_t i = 0; i < after.count; i++)
        add_told(pages_seq(&after, i));
}

/* It subscribes first and reads the feed then, while there are changes; it
 * dies with the server, having read some of what it was told. What it has heard
 * in the end is the feed, each event once. */
static void check_subscriber(const char *durability)
{
    enum { ROUNDS = 5, LOCKS = 300 };
    const struct test_server_opts opts = {.durability = durability};
    struct test_wire ear = {.fd = -1};
    struct test_wire other = {.fd = -1};
    struct hf_random random;

    hf_random_init(&random, test_seed());
    new_folder();
    told_count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        start_with(&opts);
        test_server_connect(&server, &other);
        ask_locks(LOCKS); /* before it is back */
        for (; asked > 0; asked--)
            CHECK_DONE(TEST_ANSWER(&wire));
        listen_to_locks(&ear);
        for (int i = 0; i < LOCKS; i++)
            test_wire_add(&other, "LOCK o%d-%d OWNER bob", round, i);
        CHECK_EQ(test_wire_send(&other), HF_OK);
        read_what_was_missed();
        hear_locks(&ear, hf_random_below(&random, LOCKS + 1));
        test_server_kill(&server);
        test_wire_close(&ear);
        test_wire_close(&other);
    }
    start_with(&opts);
    read_what_was_missed();
    pages_read(&before, &wire, "COUNT 1000 MATCH hf:lock:*");
    CHECK_EQ(before.gaps, 0);
    CHECK(told_count >= (size_t)ROUNDS * LOCKS);
    CHECK_EQ(told_count, before.count);
    for (size_t i = 0; i < told_count; i++)
        CHECK_EQ(told[i], pages_seq(&before, i));
    stop();
}

TEST(a_subscriber_that_goes_on_in_the_feed_after_a_crash_misses_nothing)
{
    check_subscriber("none");
    check_subscriber("always");
}

/* ---- Gaps. ---- */

TEST(what_is_not_kept_any_more_is_a_gap)
{
    static const char *const more[] = {"--events-keep-bytes", "100000", NULL};
    const struct test_server_opts opts = {.more = more};

    new_folder();
    start_with(&opts);
    read_from(&before, 0);
    for (int i = 0; i < 10; i++) { /* so that nothing is missed */
        change(500);
        pages_read(&before, &wire, "COUNT 1000");
    }
    CHECK_EQ(before.count, 5000);
    CHECK_EQ(before.gaps, 0);
    CHECK_EQ(test_server_stop(&server), 0);
    start_with(&opts);
    read_from(&after, 0);
    CHECK_EQ(after.gaps, 1);
    CHECK(after.count > 0 && after.count < before.count);
    size_t skipped = before.count - after.count;
    CHECK(after.gap >= pages_seq(&before, skipped - 1));
    CHECK(after.gap < pages_seq(&before, skipped));
    CHECK(after.bytes.len < before.bytes.len);
    CHECK(memcmp(before.bytes.data + before.bytes.len - after.bytes.len,
                 after.bytes.data, after.bytes.len) == 0);
    CHECK_EQ(test_info(&wire, "feed_first"), after.gap);
    /* who waits is told of the gap at once */
    struct hf_bytes reply = test_ask(&wire, "EVENTS FROM 0 WAIT 3600000 COUNT "
                                            "1 MATCH nothing");
    CHECK_EQ(test_number(reply, "gap"), after.gap);
    /* and from the gap on there is none */
    read_from(&before, after.gap);
    CHECK_EQ(before.gaps, 0);
    expect_same();
    stop();
}

/* Age is that of the last event in a file; the last file stays. */
TEST(old_files_go)
{
    static const char *const more[] = {"--events-keep-ms", "1",
                                       "--events-keep-bytes", "600000", NULL};
    const struct test_server_opts opts = {.more = more};

    new_folder();
    start_with(&opts);
    change(10000);
    CHECK_EQ(test_server_stop(&server), 0);
    start_with(&opts);
    change(500);
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
    while (test_info(&wire, "feed_files") > 1)
        CHECK(test_now_ms() < end_ms);
    read_from(&after, 0);
    CHECK_EQ(after.gaps, 1);
    CHECK(after.count >= 500 && after.count < 10500);
    stop();
}

/* As after an update from a version that had no feed. */
TEST(a_folder_without_files_of_events_is_told_from_its_journal_on)
{
    static const char *const none[] = {"--events-keep-bytes", "0", NULL};
    struct test_server_opts opts = {.more = none};

    new_folder();
    start_with(&opts);
    change(1000);
    CHECK_EQ(test_server_stop(&server), 0);
    start_again();
    read_from(&after, 0);
    CHECK_EQ(after.gaps, 0);
    CHECK_EQ(after.count, 1000); /* the journal has all of them */
    stop();
    new_folder();
    opts.segment_bytes = SEGMENT_BYTES;
    opts.snapshot_bytes = SNAPSHOT_BYTES;
    start_with(&opts);
    make_snapshot(1);
    CHECK_EQ(test_server_stop(&server), 0);
    start_again();
    read_from(&after, 0);
    CHECK_EQ(after.gaps, 1); /* up to the snapshot */
    change(500);
    read_from(&before, after.next);
    CHECK_EQ(before.gaps, 0);
    CHECK_EQ(before.count, 500);
    stop();
}

/* ---- A disk that fails. ---- */

TEST(a_full_disk_of_the_feed_stops_nothing_and_loses_nothing)
{
    new_folder();
    start_with(&(struct test_server_opts){.fault = "write:0:feed"});
    change(1000);
    await_at_least("feed_failures_total", 1);
    change(1000);
    read_from(&before, 0);
    CHECK_EQ(before.count, 2000);
    CHECK_EQ(test_info(&wire, "feed_bytes"), 0);
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
    while (strstr(test_server_said(&server), "events cannot be written") ==
           NULL)
        CHECK(test_now_ms() < end_ms);
    CHECK(test_server_signal(&server, SIGUSR1)); /* there is room again */
    await_at_least("feed_bytes", 100000);
    read_from(&after, 0);
    expect_same();
    test_server_kill(&server);
    start_again();
    read_from(&after, 0);
    CHECK_EQ(after.gaps, 0);
    expect_same();
    stop();
}

/* Until memory has no more room for what waits. */
TEST(a_disk_that_stays_full_makes_a_gap_that_is_told)
{
    new_folder();
    start_with(&(struct test_server_opts){.fault = "write:0:feed"});
    while (test_info(&wire, "feed_lost_total") == 0)
        change(10000);
    read_from(&before, 0);
    CHECK_EQ(before.gaps, 0); /* it comes at the end */
    CHECK(test_server_signal(&server, SIGUSR1));
    await_at_least("feed_bytes", 8 << 20);
    change(500);
    read_from(&after, before.next);
    CHECK(after.gaps == 1 || before.next >= test_info(&wire, "feed_last"));
    CHECK(after.count >= 500);
    stop();
}

/* ---- Damage. ---- */

/* The name of a file of events: the first, or the last. */
static void find_file(bool last, char out[1024])
{
    char best[256] = "";
    DIR *folder = opendir(dir);
    const struct dirent *entry;

    CHECK(folder != NULL);
    while ((entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, "events-", 7) != 0)
            continue;
        int order = strcmp(entry->d_name, best);
        if (best[0] == '\0' || (last ? order > 0 : order < 0))
            snprintf(best, sizeof best, "%s", entry->d_name);
    }
    closedir(folder);
    CHECK(best[0] != '\0');
    snprintf(out, 1024, "%s/%s", dir, best);
}

enum damage { FLIP, CUT, REMOVE, DAMAGES };

static void damage(bool last, enum damage how, uint32_t permille)
{
    char path[1024];
    struct stat info;
    char byte;

    find_file(last, path);
    CHECK_EQ(stat(path, &info), 0);
    off_t at = info.st_size * permille / 1000;
    if (how == REMOVE)
        CHECK_EQ(unlink(path), 0);
    if (how == CUT)
        CHECK_EQ(truncate(path, at), 0);
    if (how != FLIP)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* Each event that was told before is told again as it was, or is within a gap
 * that is told. */
static void expect_no_lie(void)
{
    size_t at = 0;
    size_t place = 0;
    struct pages page = {.next = 0};

    do {
        int64_t from = page.next;
        pages_clear(&page, from);
        pages_add(&page, test_ask(&wire, "EVENTS FROM %" PRId64, from));
        while (at < before.count && pages_seq(&before, at) <= page.gap) {
            size_t end = place;
            CHECK_EQ(resp_skip(hf_buf_bytes(&before.bytes), &end), HF_OK);
            place = end;
            at++;
        }
        CHECK(at + page.count <= before.count);
        CHECK(page.bytes.len <= before.bytes.len - place);
        CHECK(memcmp(before.bytes.data + place, page.bytes.data,
                     page.bytes.len) == 0);
        at += page.count;
        place += page.bytes.len;
    } while (page.count > 0 || page.gaps > 0);
    CHECK_EQ(at, before.count);
    pages_free(&page);
}

/* With a snapshot, so that a replay does not have them. */
static void check_damage(bool last, enum damage how, uint32_t permille)
{
    static const char *const more[] = {"--events-keep-bytes", "4000000", NULL};
    const struct test_server_opts opts = {.segment_bytes = SEGMENT_BYTES,
                                          .snapshot_bytes = SNAPSHOT_BYTES,
                                          .more = more};

    new_folder();
    start_with(&opts);
    make_snapshot(1);
    change(500);
    read_from(&before, 0);
    CHECK_EQ(test_server_stop(&server), 0);
    damage(last, how, permille);
    start_with(&opts);
    expect_no_lie();
    change(500);
    read_from(&after, before.next);
    CHECK_EQ(after.count, 500);
    CHECK_EQ(after.gaps, 0);
    test_server_kill(&server);
    start_with(&opts);
    read_from(&before, pages_seq(&after, 0) - 1);
    expect_same();
    stop();
}

TEST(damage_to_a_file_of_events_is_a_gap_and_never_a_lie)
{
    for (int last = 0; last < 2; last++) {
        for (unsigned how = 0; how < DAMAGES; how++) {
            check_damage(last == 1, (enum damage)how, 0);
            if (how == REMOVE)
                continue;
            check_damage(last == 1, (enum damage)how, 3);
            check_damage(last == 1, (enum damage)how, 500);
            check_damage(last == 1, (enum damage)how, 999);
        }
    }
}
