/* durability.c - a disk that fails, fills up or hangs under a real server.
 * tests: also under sanitizers
 *
 * The fault write:N:KIND makes the server's write number N to its journal
 * fail (eio, enospc, short) or hang until SIGUSR1 (stall). Whatever the kind
 * and the number, what was acknowledged stays and what can be told is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/server.h"
#include "support/test.h"

#define INDEX_MAX   10
#define FOR_EVER_MS 3600000
#define GLANCE_MS   50 /* before it is asked whether the disk hangs */

static struct test_server server;
static struct test_wire wire;
static char dir[512]; /* the server's */

static void new_folder(void)
{
    static int count;

    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
}

/* A new server on the folder; one that a failed test left goes. */
static void start(const char *durability, const char *fault)
{
    test_server_begin(&server, &wire,
                      &(struct test_server_opts){.dir = dir,
                                                 .durability = durability,
                                                 .fault = fault});
}

static void stop(void)
{
    test_server_finish(&server, &wire);
}

/* Write number i: three kinds in turn, all of which last. */
static void add_write(struct test_wire *to, int i)
{
    if (i % 3 == 0)
        test_wire_add(to, "LOCK lock-%d OWNER tester TTL %d", i, FOR_EVER_MS);
    else if (i % 3 == 1)
        test_wire_add(to, "STOCK SET sku-%d 10", i);
    else
        test_wire_add(to, "RESERVE r-%d ITEM sku-%d 3 TTL %d", i, i - 1,
                      FOR_EVER_MS);
}

static bool is_there(struct test_wire *to, int i)
{
    if (i % 3 == 0)
        return test_number(test_ask(to, "LOCKINFO lock-%d", i), "token") > 0;
    if (i % 3 == 1)
        return test_number(test_ask(to, "STOCK GET sku-%d", i), "total") == 10;
    bool shown = test_text(test_ask(to, "RESERVATION r-%d", i), "id").len > 0;
    struct hf_bytes stock = test_ask(to, "STOCK GET sku-%d", i - 1);
    int64_t reserved = test_number(stock, "reserved");
    CHECK(shown ? reserved == 3 : reserved <= 0);
    return shown;
}

/* Everything below `told` is there, and nothing behind it but perhaps the one
 * that was under way. */
static void check_kept(int told, bool one_more)
{
    for (int i = 0; i < told; i++) {
        if (!is_there(&wire, i))
            test_fail(__FILE__, __LINE__, "write %d was told and is lost", i);
    }
    if (!one_more)
        CHECK(!is_there(&wire, told));
    CHECK(!is_there(&wire, told + 3));
}

/* A server that cannot write answers all that needs no writing. */
static void check_reads(int told)
{
    CHECK_REPLY(test_ask(&wire, "PING"), "+PONG");
    CHECK_EQ(test_number(test_ask(&wire, "LIMIT k RATE 5 PER 1000"), "allowed"),
             1);
    CHECK_DONE(test_ask(&wire, "LOCKS"));
    CHECK_DONE(test_ask(&wire, "STOCK LIST"));
    CHECK_DONE(test_ask(&wire, "INFO"));
    check_kept(told, false);
}

static bool names_reason(struct hf_bytes reply, const char *kind)
{
    const char *reason = strerror(!strcmp(kind, "enospc") ? ENOSPC : EIO);

    return reply.len > strlen("-JOURNAL \r\n") + 5 &&
           (!strcmp(kind, "short") ||
            memmem(reply.data, reply.len, reason, strlen(reason)) != NULL);
}

/* Writes until one is refused; how many were acknowledged. */
static int write_until_refused(const char *kind, int most)
{
    for (int told = 0; told < most; told++) {
        struct hf_bytes reply;
        add_write(&wire, told);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        reply = TEST_ANSWER(&wire);
        if (reply.data[0] != '-')
            continue;
        CHECK_ERROR(reply, "JOURNAL");
        if (!names_reason(reply, kind))
            test_fail(__FILE__, __LINE__, "%s: no reason in %.*s", kind,
                      (int)reply.len, reply.data);
        return told;
    }
    test_fail(__FILE__, __LINE__, "%s: the fault never came", kind);
}

static void fail_at(const char *durability, int index, const char *kind)
{
    char fault[64];
    struct test_server_opts opts = {.dir = dir, .durability = durability};

    snprintf(fault, sizeof fault, "write:%d:%s", index, kind);
    opts.fault = fault;
    test_server_launch(&server, &opts);
    int told = 0;
    if (test_server_ready(&server)) {
        test_server_connect(&server, &wire);
        told = write_until_refused(kind, index + 3);
        for (int i = 0; i < 3; i++)
            CHECK_ERROR(test_ask(&wire, "LOCK more OWNER o"), "JOURNAL");
        CHECK_ERROR(test_ask(&wire, "STOCK SET more 1"), "JOURNAL");
        check_reads(told);
        test_wire_close(&wire);
    } else if (index > 1) {
        test_fail(__FILE__, __LINE__, "%s: it did not start: %s", fault,
                  test_server_said(&server));
    }
    test_server_signal(&server, index % 2 == 0 ? SIGKILL : SIGTERM);
    (void)test_server_end(&server);
    start(durability, NULL);
    check_kept(told, true);
    CHECK_ERROR(test_ask(&wire, "UNLOCK more 1"), "NOTHELD");
    CHECK_DONE(test_ask(&wire, "STOCK SET afterwards 5"));
    CHECK_DONE(test_ask(&wire, "STOCK DEL afterwards"));
    stop();
}

static void fail_at_every_index(const char *kind)
{
    for (int index = 0; index <= INDEX_MAX; index++) {
        new_folder();
        fail_at("always", index, kind);
    }
}

TEST(an_error_at_any_write_loses_nothing_and_stops_further_writes)
{
    fail_at_every_index("eio");
}

TEST(no_space_at_any_write_loses_nothing_and_stops_further_writes)
{
    fail_at_every_index("enospc");
}

TEST(a_short_write_anywhere_loses_nothing_and_stops_further_writes)
{
    fail_at_every_index("short");
}

TEST(a_write_that_fails_stops_further_writes_in_the_other_modes_too)
{
    static const char *const kinds[] = {"eio", "enospc", "short"};

    for (int i = 0; i < 3; i++) {
        new_folder();
        fail_at("interval", 4, kinds[i]);
        new_folder();
        fail_at("none", 4, kinds[i]);
    }
}

TEST(a_failing_batch_is_refused_as_a_whole_to_all_who_wait_for_it)
{
    struct hf_bytes reply;
    int told = 0;
    int refused = 0;

    new_folder();
    start("always", "write:4:eio");
    for (int i = 0; i < 300; i++)
        add_write(&wire, i);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 300; i++) {
        reply = TEST_ANSWER(&wire);
        if (reply.data[0] == '-') {
            /* what needs a refused one is refused for its own reason */
            CHECK(test_is_error(reply, "JOURNAL") ||
                  test_is_error(reply, "NOTFOUND"));
            refused++;
        } else {
            CHECK_EQ(refused, 0);
            told++;
        }
    }
    if (refused == 0) /* few large batches: go on until it comes */
        (void)write_until_refused("eio", 10);
    for (int i = 0; i < told; i++)
        CHECK(is_there(&wire, i));
    test_wire_close(&wire);
    test_server_kill(&server);
    start("always", NULL);
    for (int i = 0; i < told; i++)
        CHECK(is_there(&wire, i));
    stop();
}

TEST(a_wait_comes_to_an_end_although_the_journal_has_failed)
{
    struct test_wire waiter;
    struct hf_bytes reply;
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    new_folder();
    start("always", "write:6:eio");
    CHECK_DONE(test_ask(&wire, "LOCK gate OWNER first TTL %d", FOR_EVER_MS));
    CHECK_DONE(test_ask(&wire, "LOCK brief OWNER first TTL 700"));
    test_server_connect(&server, &waiter);
    TEST_SEND(&waiter, "LOCK gate OWNER other WAIT 700");
    for (int i = 1; !test_is_error(test_ask(&wire, "FENCE f %d", i), "JOURNAL");
         i++)
        CHECK(i < 20);
    reply = TEST_ANSWER(&waiter);
    CHECK(test_is_error(reply, "TIMEOUT") || test_is_error(reply, "JOURNAL"));
    /* what is over is not shown, and its end cannot be noted */
    while (!test_is_error(test_ask(&wire, "LOCKINFO brief"), "JOURNAL"))
        CHECK(test_now_ms() < end_ms);
    test_wire_close(&waiter);
    test_wire_close(&wire);
    test_server_kill(&server);
}

/* Writes until the disk hangs, which is when one is not answered although all
 * before write number `index` are on disk. Returns its number among ours. */
static int write_until_stalled(struct test_wire *other, int64_t index)
{
    enum hf_status status;

    for (int i = 0; i < 40; i++) {
        struct hf_bytes reply;
        add_write(&wire, i);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        do {
            status = test_wire_read_within(&wire, GLANCE_MS, &reply);
            if (status == HF_TIMEOUT &&
                test_info(other, "journal_batches") == index)
                return i;
        } while (status == HF_TIMEOUT);
        CHECK_EQ(status, HF_OK);
        CHECK_DONE(reply);
    }
    test_fail(__FILE__, __LINE__, "the disk never hung");
}

static void check_life_while_stalled(struct test_wire *other, int told)
{
    for (int i = 0; i < 100; i++) {
        CHECK_REPLY(test_ask(other, "PING"), "+PONG");
        CHECK_EQ(test_number(test_ask(other, "LIMIT k%d RATE 5 PER 1000", i),
                             "allowed"),
                 1);
    }
    for (int i = 0; i < told; i++)
        CHECK(is_there(other, i));
    CHECK(!is_there(other, told)); /* not before it is on disk */
}

TEST(while_the_disk_hangs_the_rest_goes_on)
{
    static const int indexes[] = {4, 5, 9};

    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
        char fault[64];
        struct test_wire other;
        struct test_wire late;
        new_folder();
        snprintf(fault, sizeof fault, "write:%d:stall", indexes[i]);
        start("always", fault);
        test_server_connect(&server, &other);
        test_server_connect(&server, &late);
        int told = write_until_stalled(&other, indexes[i]);
        check_life_while_stalled(&other, told);
        uint64_t asked_ms = test_now_ms();
        CHECK_ERROR(test_ask(&other, "LOCK lock-0 OWNER other WAIT 200"),
                    "TIMEOUT");
        CHECK(test_now_ms() - asked_ms < TEST_WIRE_DEADLINE_MS / 2);
        TEST_SEND(&late, "STOCK SET late 3");
        check_life_while_stalled(&other, told);
        CHECK(test_server_signal(&server, SIGUSR1));
        CHECK_DONE(TEST_ANSWER(&wire));
        CHECK_DONE(TEST_ANSWER(&late));
        CHECK(is_there(&other, told));
        CHECK_DONE(test_ask(&other, "STOCK DEL late"));
        test_wire_close(&other);
        test_wire_close(&late);
        stop();
        start("always", NULL);
        check_kept(told + 1, false);
        stop();
    }
}

/* Its record comes before the one that gives the lock free, both after the
 * disk hung: the grant finds nobody and must go on. */
TEST(a_lock_is_not_left_with_one_who_was_told_that_its_time_is_over)
{
    struct test_wire holder;
    struct test_wire gone;
    struct test_wire watcher;

    new_folder();
    start("always", "write:4:stall");
    test_server_connect(&server, &holder);
    test_server_connect(&server, &gone);
    test_server_connect(&server, &watcher);
    int64_t token = test_number(
        test_ask(&holder, "LOCK x OWNER holder TTL %d", FOR_EVER_MS), "token");
    (void)write_until_stalled(&holder, 4);
    static const char field[] = "total_commands_processed";
    int64_t before = test_info(&watcher, field);
    TEST_SEND(&gone, "LOCK x OWNER gone TTL %d WAIT 2000", FOR_EVER_MS);
    int64_t asked = 1;
    while (test_info(&watcher, field) <= before + asked)
        asked++; /* until the server has it */
    TEST_SEND(&holder, "UNLOCK x %" PRId64, token);
    CHECK_ERROR(TEST_ANSWER(&gone), "TIMEOUT");
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(TEST_ANSWER(&wire));
    CHECK_DONE(TEST_ANSWER(&holder));
    CHECK(test_number(test_ask(&gone, "LOCK x OWNER next WAIT 30000"),
                      "token") > token);
    test_wire_close(&holder);
    test_wire_close(&gone);
    test_wire_close(&watcher);
    stop();
}

TEST(a_time_out_told_while_the_disk_hung_is_not_a_grant_when_asked_again)
{
    struct test_wire other;

    new_folder();
    start("always", "write:3:stall");
    test_server_connect(&server, &other);
    (void)write_until_stalled(&other, 3);
    CHECK_ERROR(test_ask(&other, "LOCK free OWNER me TTL %d WAIT 50 REQ one",
                         FOR_EVER_MS),
                "TIMEOUT");
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(TEST_ANSWER(&wire));
    for (int i = 1; i < 5; i++) /* by now all that was under way has ended */
        CHECK_DONE(test_ask(&wire, "FENCE f %d", i));
    int64_t told = test_number(
        test_ask(&other, "LOCK free OWNER me TTL %d WAIT 50 REQ one",
                 FOR_EVER_MS),
        "token");
    int64_t held = test_number(test_ask(&other, "LOCKINFO free"), "token");
    if (told != held)
        test_fail(__FILE__, __LINE__,
                  "told to hold token %" PRId64 ", which is not so (%" PRId64
                  ")",
                  told, held);
    test_wire_close(&other);
    stop();
}

TEST(a_wait_that_began_before_the_disk_hung_ends_in_time)
{
    struct test_wire waiter;
    struct test_wire other;
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    new_folder();
    start("always", "write:6:stall");
    test_server_connect(&server, &waiter);
    test_server_connect(&server, &other);
    CHECK_DONE(test_ask(&wire, "LOCK gate OWNER first TTL %d", FOR_EVER_MS));
    TEST_SEND(&waiter, "LOCK gate OWNER other WAIT 1500");
    while (test_number(test_ask(&other, "LOCKINFO gate"), "waiting") != 1)
        CHECK(test_now_ms() < end_ms);
    (void)write_until_stalled(&other, 6);
    CHECK_ERROR(TEST_ANSWER(&waiter), "TIMEOUT");
    CHECK_REPLY(test_ask(&other, "PING"), "+PONG");
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(TEST_ANSWER(&wire));
    while (test_number(test_ask(&other, "LOCKINFO gate"), "waiting") != 0)
        CHECK(test_now_ms() < end_ms);
    test_wire_close(&waiter);
    test_wire_close(&other);
    stop();
}

TEST(a_kill_while_the_disk_hangs_loses_nothing_that_was_told)
{
    struct test_wire other;

    new_folder();
    start("always", "write:7:stall");
    test_server_connect(&server, &other);
    int told = write_until_stalled(&other, 7);
    test_wire_close(&other);
    test_wire_close(&wire);
    test_server_kill(&server);
    start("always", NULL);
    check_kept(told, true);
    stop();
}

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t len = (ssize_t)strlen(text);
    bool done = fd >= 0 && write(fd, text, (size_t)len) == len;

    if (fd >= 0)
        close(fd);
    return done;
}

/* Whoever is not root becomes it in a name space of users. */
static bool become_root(void)
{
    char users[64];
    char groups[64];

    snprintf(users, sizeof users, "0 %u 1", (unsigned)getuid());
    snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getgid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           put("/proc/self/setgroups", "deny") &&
           put("/proc/self/uid_map", users) &&
           put("/proc/self/gid_map", groups);
}

/* A real file system of a few MiB, in a name space of our own. */
static bool mount_small(const char *folder)
{
    if (unshare(CLONE_NEWNS) != 0 && !become_root())
        return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", folder, "tmpfs", 0, "size=8m") == 0;
}

static void fill_up(const char *path)
{
    static char block[4096];
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    while (write(fd, block, sizeof block) > 0)
        ;
    CHECK_EQ(errno, ENOSPC);
    close(fd);
}

TEST(a_disk_that_is_really_full_refuses_writes_until_there_is_room)
{
    char folder[512];
    char filler[600];
    struct test_server_opts opts = {.dir = folder, .segment_bytes = 1048576};
    int told = 0;
    struct hf_bytes reply;

    snprintf(folder, sizeof folder, "%s/small", test_folder());
    snprintf(filler, sizeof filler, "%s/filler", folder);
    CHECK_EQ(mkdir(folder, 0700), 0);
    if (!mount_small(folder)) {
        printf("a full disk: no file system can be mounted here (%s); the "
               "injected error stands for it\n",
               strerror(errno));
        return;
    }
    test_server_start(&server, &opts);
    test_server_connect(&server, &wire);
    for (; told < 60; told++) {
        add_write(&wire, told);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        CHECK_DONE(TEST_ANSWER(&wire));
    }
    fill_up(filler);
    for (; told < 20000; told++) {
        add_write(&wire, told);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        reply = TEST_ANSWER(&wire);
        if (reply.data[0] == '-')
            break;
    }
    CHECK_ERROR(reply, "JOURNAL");
    CHECK(names_reason(reply, "enospc"));
    check_reads(told);
    test_wire_close(&wire);
    CHECK_EQ(unlink(filler), 0);
    (void)test_server_stop(&server);
    test_server_start(&server, &opts);
    test_server_connect(&server, &wire);
    check_kept(told, true);
    CHECK_DONE(test_ask(&wire, "STOCK SET room 1"));
    stop();
    CHECK_EQ(umount2(folder, MNT_DETACH), 0); /* the kernel may be late */
}

/* A snapshot needs a new segment, for which there is no room: the journal fails
 * without a commit under way, and everybody learns of it. */
TEST(a_journal_that_fails_in_the_background_is_noticed)
{
    static const char *const often[] = {"--snapshot-bytes", "65536", NULL};
    static char block[4096];
    char folder[512];
    char filler[600];
    struct test_server_opts opts = {
        .dir = folder, .segment_bytes = 1048576, .more = often};
    struct test_wire waiter;

    snprintf(folder, sizeof folder, "%s/tiny", test_folder());
    snprintf(filler, sizeof filler, "%s/filler", folder);
    CHECK_EQ(mkdir(folder, 0700), 0);
    if (!mount_small(folder)) {
        printf("no file system can be mounted here (%s)\n", strerror(errno));
        return;
    }
    int fd = open(filler, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    for (int i = 0; i < (8192 - 1700) / 4; i++)
        CHECK_EQ(write(fd, block, sizeof block), (ssize_t)sizeof block);
    close(fd);
    test_server_start(&server, &opts);
    test_server_connect(&server, &wire);
    test_server_connect(&server, &waiter);
    CHECK_DONE(test_ask(&wire, "LOCK x OWNER first TTL %d", FOR_EVER_MS));
    CHECK_DONE(test_ask(&wire, "LOCK brief OWNER first TTL 1"));
    TEST_SEND(&waiter, "LOCK x OWNER other WAIT %d", FOR_EVER_MS);
    for (int i = 0; i < 20; i++)
        (void)test_ask(&wire, "STOCK SET p%d 1", i);
    CHECK_ERROR(TEST_ANSWER(&waiter), "JOURNAL");
    CHECK_DONE(test_ask(&wire, "LOCKINFO x"));
    CHECK_ERROR(test_ask(&wire, "STOCK SET more 1"), "JOURNAL");
    CHECK_DONE(test_ask(&wire, "INFO"));
    test_wire_close(&waiter);
    test_wire_close(&wire);
    (void)test_server_stop(&server);
    CHECK_EQ(umount2(folder, MNT_DETACH), 0); /* the kernel may be late */
}
