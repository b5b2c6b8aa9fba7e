/* events_proof.c - `holdfast verify` holds the files of events against the
 * journal: any lie in them is told with its place.
 * tests: also under sanitizers
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/little.h"
#include "feed/event.h"
#include "support/json.h"
#include "support/pages.h"
#include "support/server.h"

#define HEAD   48
#define EVENTS 300
#define LARGE  (1 << 20)

static struct test_server server;
static struct test_wire wire;
static char dir[512];
static char path[1024]; /* of its last file of events */
static char name[256];  /* without the folder */
static char file[LARGE];
static size_t len;
static struct hf_buf said;

static void serve(const struct test_server_opts *opts)
{
    struct test_server_opts given = *opts;

    given.dir = dir;
    given.durability = "none";
    test_server_begin(&server, &wire, &given);
}

static void change(int count)
{
    for (int i = 0; i < count; i += 3) {
        test_wire_add(&wire, "STOCK SET pen %d", i + 10);
        test_wire_add(&wire, "LOCK l%d OWNER ann NOTE why", i);
        test_wire_add(&wire, "STOCK SET ink %d", i + 10);
    }
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < count; i++)
        CHECK_DONE(TEST_ANSWER(&wire));
}

static void find_file(void)
{
    DIR *folder = opendir(dir);
    const struct dirent *entry;

    CHECK(folder != NULL);
    name[0] = '\0';
    while ((entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, "events-", 7) == 0 &&
            strcmp(entry->d_name, name) > 0)
            snprintf(name, sizeof name, "%s", entry->d_name);
    }
    closedir(folder);
    CHECK(name[0] != '\0');
    snprintf(path, sizeof path, "%s/%s", dir, name);
}

static void load(void)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    ssize_t got = read(fd, file, LARGE);
    close(fd);
    CHECK(got > HEAD && got < LARGE);
    len = (size_t)got;
}

static void store(const char *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, data, bytes), bytes);
    close(fd);
}

/* A folder with events that are in one block, after a clean stop. */
static void make_folder(void)
{
    static int count;

    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
    serve(&(struct test_server_opts){0});
    change(EVENTS);
    test_server_finish(&server, &wire);
    find_file();
    load();
    CHECK_EQ(hf_get_u32(file + 44), EVENTS);
}

static int verify(const char *option)
{
    const char *const args[] = {"verify", dir, option, NULL};

    said.len = 0;
    return test_holdfast(&said, args);
}

static void expect_proved(int64_t same)
{
    if (verify("--json") != 0)
        test_fail(__FILE__, __LINE__, "%s", said.data);
    struct hf_bytes text = hf_bytes(said.data, strcspn(said.data, "\n"));
    CHECK(test_json_is_object(text));
    CHECK_EQ(test_json_number(text, "feed_events"), same);
}

/* The file's name, an offset and the sentence. */
static void expect_wrong(const char *what)
{
    CHECK_EQ(verify(NULL), 1);
    if (strstr(said.data, name) == NULL || strstr(said.data, what) == NULL ||
        strstr(said.data, "offset ") == NULL)
        test_fail(__FILE__, __LINE__, "expected %s and %s, got %s", name, what,
                  said.data);
}

/* Where the event is; it has a fixed length before its name. */
static size_t event_offset(int index)
{
    size_t at = HEAD;

    for (int i = 0; i < index; i++)
        at += hf_get_u32(file + at);
    return at;
}

/* The block is whole again: it says what it has now. */
static void seal(int events)
{
    hf_put_u32(file + 40, (uint32_t)(len - HEAD));
    hf_put_u32(file + 44, (uint32_t)events);
    hf_put_u64(file + 8, XXH3_64bits(file + 16, len - 16));
    store(file, len);
}

TEST(a_feed_that_agrees_is_proved)
{
    make_folder();
    expect_proved(EVENTS);
    CHECK_EQ(verify(NULL), 0);
    CHECK(strstr(said.data, "feed: 300 events in 1 files") != NULL);
}

TEST(what_was_not_written_at_a_crash_is_not_wrong)
{
    make_folder();
    serve(&(struct test_server_opts){0});
    change(EVENTS);
    test_server_kill(&server);
    CHECK_EQ(verify("--json"), 0);
    serve(&(struct test_server_opts){0});
    test_server_finish(&server, &wire);
    expect_proved(2 * EVENTS);
}

TEST(older_events_than_the_journal_s_are_counted)
{
    const struct test_server_opts opts = {.segment_bytes = 1 << 20,
                                          .snapshot_bytes = 1 << 20};

    make_folder();
    serve(&opts);
    while (test_info(&wire, "snapshots_total") == 0)
        change(3000);
    test_server_finish(&server, &wire);
    CHECK_EQ(verify("--json"), 0);
    struct hf_bytes text = hf_bytes(said.data, strcspn(said.data, "\n"));
    CHECK(test_json_number(text, "feed_older") > 1000);
    CHECK_EQ(test_json_number(text, "feed_missing"), 0);
}

TEST(a_byte_of_an_event_that_was_changed_is_told)
{
    static const size_t places[] = {24, 33, 41, 50, 57, EVENT_HEAD_BYTES};

    make_folder();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        load();
        file[event_offset(100) + places[i]] ^= 1;
        seal(EVENTS);
        expect_wrong("is not what the journal tells");
        file[event_offset(100) + places[i]] ^= 1;
        seal(EVENTS);
    }
    expect_proved(EVENTS);
}

TEST(an_event_that_is_missing_is_told)
{
    static const int places[] = {0, 100, EVENTS - 1};

    for (size_t i = 0; i < 3; i++) {
        make_folder();
        size_t at = event_offset(places[i]);
        size_t gone = hf_get_u32(file + at);
        memmove(file + at, file + at + gone, len - at - gone);
        len -= gone;
        seal(EVENTS - 1);
        expect_wrong("is missing");
    }
}

/* After a crash numbers were skipped: there is room for one. */
TEST(an_event_that_never_was_is_told)
{
    make_folder();
    serve(&(struct test_server_opts){0});
    test_server_kill(&server);
    serve(&(struct test_server_opts){0});
    change(3);
    test_server_finish(&server, &wire);
    find_file();
    load();
    /* the last block has the three: the first of them gets an older number */
    size_t block = 0;
    while (block + HEAD + hf_get_u32(file + block + 40) < len)
        block += HEAD + hf_get_u32(file + block + 40);
    uint64_t seq = hf_get_u64(file + block + HEAD + 16);
    hf_put_u64(file + block + HEAD + 16, seq - 1);
    hf_put_u64(file + block + 16, seq - 2);
    hf_put_u64(file + block + 8,
               XXH3_64bits(file + block + 16, len - block - 16));
    store(file, len);
    expect_wrong("is not what the journal tells");
}

/* As a journal would be that lost its end, and does not say so. */
TEST(an_event_beyond_the_journal_s_end_is_told)
{
    make_folder();
    size_t at = event_offset(EVENTS - 1);
    size_t more = len - at;
    memcpy(file + len, file + at, more);
    uint64_t seq = hf_get_u64(file + at + 16) + 5;
    hf_put_u64(file + len + 16, seq);
    hf_put_u64(file + 24, seq);
    len += more;
    seal(EVENTS + 1);
    expect_wrong("is beyond the journal's end");
}

TEST(damage_is_told_with_its_offset)
{
    make_folder();
    static const size_t cuts[] = {10, HEAD, HEAD + 20, 5000};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        load();
        size_t whole = len;
        store(file, cuts[i]);
        expect_wrong("is damaged");
        len = whole;
        store(file, len);
    }
    file[5000] ^= 4;
    store(file, len);
    expect_wrong("is damaged");
    /* the server starts all the same, and has them from its journal */
    serve(&(struct test_server_opts){0});
    struct pages pages = {.next = 0};
    pages_read(&pages, &wire, "COUNT 1000");
    CHECK(pages.count == EVENTS && pages.gaps == 0);
    pages_free(&pages);
    test_server_finish(&server, &wire);
    expect_proved(EVENTS);
}

/* Whole by its checksum, and no events: neither the server nor the proof
 * believes it. */
TEST(blocks_that_are_no_events_are_damage)
{
    static const struct {
        size_t place;
        unsigned char value;
    } lies[] = {{0, 1}, {4, 99}, {5, 3}, {6, 255}, {7, 255}, {12, 1}, {23, 1}};

    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        make_folder();
        file[event_offset(50) + lies[i].place] = (char)lies[i].value;
        seal(EVENTS);
        expect_wrong("is damaged");
        serve(&(struct test_server_opts){0});
        CHECK_DONE(test_ask(&wire, "EVENTS FROM 0"));
        test_server_finish(&server, &wire);
    }
}
