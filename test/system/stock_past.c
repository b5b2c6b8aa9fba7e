/* stock_past.c - histories, numbers of the past and audits of real servers,
 * over kills, snapshots, retention and damage. tests: also under sanitizers
 */
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/little.h"
#include "base/random.h"
#include "journal/format.h"
#include "support/pages.h"
#include "support/server.h"

#define SEGMENT_BYTES  (1u << 20)
#define SNAPSHOT_BYTES (1u << 20)

static struct test_server server;
static struct test_wire wire;
static char dir[512];
static struct pages pages;
static struct pages others;

static void start_with(struct test_server_opts opts)
{
    opts.dir = dir;
    opts.durability = "none";
    test_server_begin(&server, &wire, &opts);
}

static void start_again(void)
{
    start_with((struct test_server_opts){.segment_bytes = SEGMENT_BYTES,
                                         .snapshot_bytes = UINT64_MAX});
}

static void new_folder(void)
{
    static int count;

    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
}

static void stop(void)
{
    test_server_finish(&server, &wire);
    pages_free(&pages);
    pages_free(&others);
    pages = others = (struct pages){0};
}

/* ---- What was told, to be told again. ---- */

static const char *const skus[] = {"apple", "pear", "fig"};
#define SKUS     3u
#define TOLD_MAX 4000u
static struct told_numbers {
    const char *sku;
    int64_t version;
    int64_t numbers[5]; /* total available reserved sold updated_ms */
} told[TOLD_MAX];
static size_t told_count;

static void take_numbers(struct hf_bytes reply, int64_t out[5])
{
    out[0] = test_number(reply, "total");
    out[1] = test_number(reply, "available");
    out[2] = test_number(reply, "reserved");
    out[3] = test_number(reply, "sold");
    out[4] = test_number(reply, "updated_ms");
}

static void note(const char *sku)
{
    struct hf_bytes reply = test_ask(&wire, "STOCK GET %s", sku);

    if (reply.data[0] == '-')
        return; /* there is none */
    CHECK(told_count < TOLD_MAX);
    told[told_count].sku = sku;
    told[told_count].version = test_number(reply, "version");
    take_numbers(reply, told[told_count++].numbers);
}

/* Something happens, and what there is then is noted. */
static void step(struct hf_random *random)
{
    const char *sku = skus[hf_random_below(random, SKUS)];
    const char *other = skus[hf_random_below(random, SKUS)];
    int n = (int)hf_random_below(random, 20);
    int id = (int)hf_random_below(random, 30);

    switch (hf_random_below(random, 12)) {
    case 0:
    case 1:
        (void)test_ask(&wire, "STOCK SET %s %d", sku, 20 * n);
        break;
    case 2:
        (void)test_ask(&wire, "STOCK ADD %s %d", sku, n + 1);
        break;
    case 3:
        (void)test_ask(&wire, "CONFIRM r%d", id);
        break;
    case 4:
        (void)test_ask(&wire, "CANCEL r%d", id);
        break;
    case 5:
        (void)test_ask(&wire, "EXTEND r%d TTL 5", id);
        break;
    case 6:
        if (n < 5)
            (void)test_ask(&wire, "STOCK DEL %s", sku);
        break;
    case 7:
        if (n == 0)
            CHECK_DONE(test_ask(&wire, "FLUSHALL"));
        break;
    default:
        (void)test_ask(&wire, "RESERVE r%d ITEM %s 1 ITEM %s 2 TTL %d", id, sku,
                       other, 1 + n);
        break;
    }
    for (size_t i = 0; i < SKUS; i++)
        note(skus[i]);
}

/* All that was told is told again; returns how often it is not known. */
static size_t ask_again(void)
{
    size_t unknown = 0;

    for (size_t i = 0; i < told_count; i++) {
        const struct told_numbers *had = &told[i];
        int64_t found[5];
        struct hf_bytes reply =
            test_ask(&wire, "STOCK GET %s AT %" PRId64, had->sku, had->version);
        if (test_is_error(reply, "STATE")) {
            unknown++;
            continue;
        }
        take_numbers(reply, found);
        for (size_t j = 0; j < 5; j++) {
            if (found[j] != had->numbers[j])
                test_fail(__FILE__, __LINE__,
                          "%s at %" PRId64 ": number %zu was %" PRId64
                          ", is %" PRId64 ": %.*s",
                          had->sku, had->version, j, had->numbers[j], found[j],
                          HF_SHOW(reply));
        }
        CHECK_EQ(test_number(reply, "version"), had->version);
        CHECK_EQ(test_number(reply, "at"), had->version);
    }
    return unknown;
}

TEST(what_was_told_of_a_product_is_told_again_by_its_number)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    new_folder();
    told_count = 0;
    start_again();
    for (int life = 0; life < 4; life++) {
        for (int i = 0; i < 200; i++)
            step(&random);
        CHECK_EQ(ask_again(), 0);
        if (life % 2 == 0)
            test_server_kill(&server);
        else
            CHECK_EQ(test_server_stop(&server), 0);
        start_again();
        CHECK_EQ(ask_again(), 0);
    }
    CHECK(told_count > 500);
    stop();
}

/* ---- Retention. ---- */

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

/* The number that an error tells behind these words. */
static int64_t number_after(struct hf_bytes reply, const char *words)
{
    const char *at = memmem(reply.data, reply.len, words, strlen(words));

    CHECK(at != NULL);
    return strtoll(at + strlen(words), NULL, 10);
}

TEST(what_is_not_kept_is_refused_with_the_number_from_which_on_it_is)
{
    static const char *const more[] = {"--events-keep-bytes", "1000000", NULL};

    new_folder();
    start_with((struct test_server_opts){.more = more});
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 10"));
    CHECK_DONE(test_ask(&wire, "RESERVE a ITEM apple 2"));
    do /* old files go now and then */
        change(5000);
    while (test_number(test_ask(&wire, "STOCK HISTORY apple"), "gap") <= 2);
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 20"));
    int64_t second = test_number(test_ask(&wire, "STOCK GET apple"), "version");
    change(500);
    CHECK_DONE(test_ask(&wire, "CONFIRM a"));
    struct hf_bytes reply = test_ask(&wire, "STOCK GET apple AT 2");
    CHECK_ERROR(reply, "STATE");
    CHECK_EQ(number_after(reply, "are from "), second);
    reply = test_ask(&wire, "STOCK GET apple AT %" PRId64, second);
    CHECK_EQ(test_number(reply, "total"), 20);
    CHECK_EQ(test_number(reply, "reserved"), 2);
    CHECK_EQ(test_number(reply, "sold"), 0);
    CHECK_EQ(test_number(reply, "version"), second);
    reply = test_ask(&wire, "STOCK HISTORY apple");
    CHECK(test_number(reply, "gap") > 2);
    CHECK_EQ(test_length(test_part(reply, "events")), 2);
    reply = test_ask(&wire, "RESERVATION HISTORY a");
    CHECK_EQ(test_length(test_part(reply, "events")), 1);
    stop();
}

TEST(without_a_feed_there_is_no_past)
{
    static const char *const more[] = {"--events-keep-bytes", "0", NULL};

    new_folder();
    start_with((struct test_server_opts){.more = more});
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 10"));
    CHECK_ERROR(test_ask(&wire, "STOCK HISTORY apple"), "STATE");
    CHECK_ERROR(test_ask(&wire, "RESERVATION HISTORY apple"), "STATE");
    CHECK_ERROR(test_ask(&wire, "STOCK GET apple AT 1"), "STATE");
    CHECK_EQ(test_number(test_ask(&wire, "STOCK AUDIT apple"), "total"), 10);
    stop();
}

TEST(wrong_questions_about_the_past_are_refused)
{
    new_folder();
    start_again();
    CHECK_DONE(test_ask(&wire, "STOCK SET AT 10"));
    CHECK_ERROR(test_ask(&wire, "STOCK GET AT AT 9"), "BADARG"); /* to come */
    CHECK_EQ(test_number(test_ask(&wire, "stock get AT at 1"), "total"), 10);
    CHECK_EQ(test_number(test_ask(&wire, "STOCK AT AT 1"), "total"), 10);
    CHECK_ERROR(test_ask(&wire, "STOCK GET AT AT x"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "STOCK AT AT"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "STOCK GET nothing AT 1"), "NOTFOUND");
    CHECK_EQ(test_length(test_ask(&wire, "STOCK GET AT x")), 2);
    CHECK_ERROR(test_ask(&wire, "STOCK HISTORY AT FROM -1"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "STOCK HISTORY AT COUNT 1001"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "STOCK HISTORY AT WAIT 5"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "STOCK AUDIT nothing"), "NOTFOUND");
    CHECK_DONE(test_ask(&wire, "MULTI"));
    CHECK_ERROR(test_ask(&wire, "STOCK GET AT AT 1"), "ERR");
    CHECK_ERROR(test_ask(&wire, "STOCK AUDIT AT"), "ERR");
    CHECK_ERROR(test_ask(&wire, "EXEC"), "EXECABORT");
    stop();
}

/* ---- Histories. ---- */

/* All pages of a history; `command` is STOCK HISTORY and a name. */
static void read_history(const char *command, const char *more)
{
    size_t had;

    pages_clear(&pages, 0);
    do {
        had = pages.count;
        pages_add(&pages, test_ask(&wire, "%s FROM %" PRId64 " %s", command,
                                   pages.next, more));
    } while (pages.count > had);
}

static void expect_same(void)
{
    CHECK_EQ(pages.count, others.count);
    CHECK(hf_bytes_equal(hf_buf_bytes(&pages.bytes),
                         hf_buf_bytes(&others.bytes)));
}

/* What EVENTS tells of its channel is the same, but for flushes. */
TEST(a_history_has_what_the_feed_has_of_it)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    new_folder();
    start_again();
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 1000"));
    CHECK_DONE(test_ask(&wire, "STOCK SET pear 1000"));
    for (int i = 0; i < 300; i++) {
        int id = i / 3 + (int)hf_random_below(&random, 40);
        (void)test_ask(&wire, "RESERVE r%d ITEM %s 1 ITEM %s 1 TTL 3600000", id,
                       skus[i % 2], skus[i % 3 == 0]);
        if (i % 3 == 0)
            (void)test_ask(&wire, i % 2 ? "CONFIRM r%d" : "CANCEL r%d", id);
    }
    for (int life = 0; life < 2; life++) {
        pages_clear(&others, 0);
        pages_read(&others, &wire, "MATCH hf:stock:pear COUNT 1000");
        CHECK(others.count > 100);
        read_history("STOCK HISTORY pear", "COUNT 7");
        CHECK(pages.pages > 10);
        expect_same();
        read_history("STOCK HISTORY pear", "COUNT 1000");
        CHECK_EQ(pages.pages, 2); /* and one without events */
        expect_same();
        pages_clear(&others, 0);
        pages_read(&others, &wire, "MATCH hf:reservation:r40");
        CHECK(others.count > 0);
        read_history("RESERVATION HISTORY r40", "COUNT 3");
        expect_same();
        change(30000); /* memory has the last few megabytes only */
        test_server_kill(&server);
        start_again();
    }
    stop();
}

/* ---- Audits. ---- */

static void audit(const char *sku, int64_t *from)
{
    struct hf_bytes reply = test_ask(&wire, "STOCK AUDIT %s", sku);
    int64_t found[5];
    int64_t has[5];

    CHECK_DONE(reply);
    take_numbers(reply, found);
    CHECK(test_number(reply, "to") >= test_number(reply, "from"));
    CHECK(test_number(reply, "steps") >= 0);
    *from = test_number(reply, "from");
    take_numbers(test_ask(&wire, "STOCK GET %s", sku), has);
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ(found[i], has[i]);
}

static void await_at_least(const char *figure, int64_t value)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    while (test_info(&wire, figure) < value)
        CHECK(test_now_ms() < end_ms);
}

TEST(an_audit_derives_the_numbers_from_the_oldest_snapshot_on)
{
    int64_t from;

    new_folder();
    start_with((struct test_server_opts){.segment_bytes = SEGMENT_BYTES,
                                         .snapshot_bytes = SNAPSHOT_BYTES});
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 100"));
    CHECK_DONE(test_ask(&wire, "RESERVE a ITEM apple 2"));
    CHECK_DONE(test_ask(&wire, "RESERVE b ITEM apple 3"));
    CHECK_DONE(test_ask(&wire, "CONFIRM b"));
    struct hf_bytes reply = test_ask(&wire, "STOCK AUDIT apple");
    CHECK_EQ(test_number(reply, "from"), 0);
    CHECK_EQ(test_number(reply, "to"), 4);
    CHECK_EQ(test_number(reply, "steps"), 4);
    audit("apple", &from);
    CHECK_EQ(from, 0);
    change(30000);
    await_at_least("snapshots_total", 1);
    audit("apple", &from);
    CHECK(from > 4);
    CHECK_DONE(test_ask(&wire, "CONFIRM a"));
    audit("apple", &from);
    test_server_kill(&server);
    start_again();
    audit("apple", &from);
    CHECK(from > 4);
    audit("product-0-0000000000000000000000000000000000000000", &from);
    stop();
}

TEST(there_is_one_audit_at_a_time)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
    struct test_wire second = {.fd = -1};
    bool busy = false;

    new_folder();
    start_again();
    change(40000);
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 100"));
    test_server_connect(&server, &second);
    while (!busy) { /* the first may have ended */
        CHECK(test_now_ms() < end_ms);
        TEST_SEND(&wire, "STOCK AUDIT apple");
        TEST_SEND(&second, "STOCK AUDIT apple");
        bool a = test_is_error(TEST_ANSWER(&wire), "BUSY");
        bool b = test_is_error(TEST_ANSWER(&second), "BUSY");
        CHECK(!a || !b);
        busy = a || b;
    }
    CHECK_EQ(test_number(test_ask(&wire, "STOCK AUDIT apple"), "total"), 100);
    test_wire_close(&second);
    stop();
}

/* Its client goes, or the server stops or is killed, while it runs. */
TEST(an_audit_may_be_left_alone)
{
    struct test_wire second = {.fd = -1};
    int64_t from;

    new_folder();
    start_again();
    change(40000);
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 100"));
    test_server_connect(&server, &second);
    TEST_SEND(&second, "STOCK AUDIT apple");
    test_wire_close(&second);
    struct hf_bytes reply;
    do
        reply = test_ask(&wire, "STOCK AUDIT apple");
    while (test_is_error(reply, "BUSY"));
    CHECK_EQ(test_number(reply, "total"), 100);
    for (int i = 0; i < 2; i++) {
        TEST_SEND(&wire, "STOCK AUDIT apple");
        if (i == 0)
            test_server_kill(&server);
        else
            CHECK_EQ(test_server_stop(&server), 0);
        start_again();
        audit("apple", &from);
    }
    stop();
}

/* Changes the journal of a server that runs, in the segment in which a product
 * is named: `edit` is given its bytes, and where the name stands. */
static void tamper(const char *name, void (*edit)(char *bytes, char *place))
{
    static char bytes[SEGMENT_BYTES];
    char pattern[600];
    bool done = false;
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/journal-*.seg", dir);
    CHECK_EQ(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc && !done; i++) {
        int file = open(found.gl_pathv[i], O_RDWR);
        CHECK(file >= 0);
        ssize_t len = pread(file, bytes, sizeof bytes, 0);
        char *place =
            len > 0 ? memmem(bytes, (size_t)len, name, strlen(name)) : NULL;
        if (place != NULL) {
            edit(bytes, place);
            CHECK_EQ(pwrite(file, bytes, (size_t)len, 0), len);
            done = true;
        }
        close(file);
    }
    globfree(&found);
    CHECK(done);
}

static void damage(char *bytes, char *place)
{
    (void)bytes;
    *place = 'A';
}

/* The 100 units of a STOCK SET become 101, and its batch is valid again. */
static void forge(char *bytes, char *place)
{
    struct segment_header header;
    struct batch batch;
    char *at = bytes + JOURNAL_BLOCK;
    char hundred[8];

    CHECK_EQ(segment_header_decode(bytes, &header), HF_OK);
    for (;; at += batch.disk_bytes) {
        CHECK_EQ(
            batch_decode(hf_bytes(at, SEGMENT_BYTES - (size_t)(at - bytes)),
                         header.salt, &batch),
            HF_OK);
        if (place < at + batch.disk_bytes)
            break;
    }
    hf_put_u64(hundred, 100);
    char *units = memmem(at, batch.disk_bytes, hundred, sizeof hundred);
    CHECK(units != NULL);
    *units = 101;
    batch_encode(at, &batch, header.salt);
}

TEST(an_audit_finds_a_journal_that_was_changed)
{
    new_folder();
    start_again();
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 100"));
    CHECK_DONE(test_ask(&wire, "STOCK SET pear 100"));
    CHECK_DONE(test_ask(&wire, "STOCK AUDIT pear"));
    tamper("apple", damage);
    struct hf_bytes reply = test_ask(&wire, "STOCK AUDIT pear");
    CHECK_ERROR(reply, "ERR");
    CHECK(memmem(reply.data, reply.len, "cannot be read", 14) != NULL);
    CHECK_DONE(test_ask(&wire, "STOCK ADD pear 1")); /* the server goes on */
    CHECK_EQ(test_number(test_ask(&wire, "STOCK GET pear"), "total"), 101);
    test_wire_close(&wire);
    CHECK_EQ(test_server_stop(&server), 0);
}

TEST(an_audit_finds_numbers_that_the_server_has_not)
{
    new_folder();
    start_again();
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 100"));
    CHECK_DONE(test_ask(&wire, "STOCK SET pear 100"));
    CHECK_DONE(test_ask(&wire, "RESERVE r ITEM apple 3"));
    tamper("apple", forge);
    struct hf_bytes reply = test_ask(&wire, "STOCK AUDIT apple");
    CHECK_ERROR(reply, "ERR");
    static const char differs[] = "had total 100, reserved 3, sold 0, by the "
                                  "journal up to 3 these are 101, 3, 0";
    CHECK(memmem(reply.data, reply.len, differs, sizeof differs - 1) != NULL);
    CHECK_EQ(test_info(&wire, "audit_failures_total"), 1);
    CHECK_DONE(test_ask(&wire, "STOCK AUDIT pear"));
    stop();
}
