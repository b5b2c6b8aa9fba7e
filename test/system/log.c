/* log.c - what the server tells those who run it, and what it never tells.
 * tests: also under sanitizers
 *
 * Each test has a server whose log is a file of its own.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/server.h"
#include "support/test.h"

#define DEADLINE_MS 60000

static struct {
    struct test_server server;
    struct test_wire wire;
    char path[512];
    struct hf_buf text; /* what the log held when it was last read */
} scene;

/* All of the log, with an end mark. */
static const char *read_log(void)
{
    char part[4096];
    ssize_t got;
    int fd = open(scene.path, O_RDONLY | O_CLOEXEC);

    scene.text.len = 0;
    while (fd >= 0 && (got = read(fd, part, sizeof part)) > 0)
        CHECK_EQ(hf_buf_append(&scene.text, part, (size_t)got), HF_OK);
    CHECK_EQ(hf_buf_append(&scene.text, "", 1), HF_OK);
    if (fd >= 0)
        close(fd);
    return scene.text.data;
}

static size_t count_of(const char *text, const char *what)
{
    size_t count = 0;

    for (; (text = strstr(text, what)) != NULL; text++)
        count++;
    return count;
}

/* Until the log has it; whoever waits in vain is shown the log. */
static void await_line(const char *what)
{
    uint64_t end_ms = test_now_ms() + DEADLINE_MS;

    while (strstr(read_log(), what) == NULL) {
        if (test_now_ms() > end_ms)
            test_fail(__FILE__, __LINE__, "no '%s' in: %.1500s", what,
                      scene.text.data);
        (void)poll(NULL, 0, 2);
    }
}

#define MORE_MAX 10

static void start_with(struct test_server_opts opts, const char *const *more)
{
    const char *args[MORE_MAX + 3] = {"--log-file", scene.path};

    for (int i = 0; more != NULL && more[i] != NULL; i++)
        args[2 + i] = more[i];
    opts.more = args;
    test_server_start(&scene.server, &opts);
    test_server_connect(&scene.server, &scene.wire);
}

static const char *begin(struct test_server_opts opts, const char *const *more)
{
    const char *folder = test_folder();
    static char data[512];

    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(scene.path, sizeof scene.path, "%s/log", folder);
    opts.dir = data;
    start_with(opts, more);
    return data;
}

static void end(void)
{
    test_server_finish(&scene.server, &scene.wire);
}

/* ---- Start and stop. ---- */

TEST(start_and_stop_are_told_with_their_facts)
{
    const char *data = begin((struct test_server_opts){.dir = NULL}, NULL);
    char expected[1024];

    /* the line that people and programs wait for is where it was */
    CHECK(strncmp(test_server_said(&scene.server), "ready 127.0.0.1:", 16) ==
          0);
    await_line(" info  started version=");
    snprintf(expected, sizeof expected, " address=127.0.0.1:%d dir=%s ",
             scene.server.port, data);
    CHECK(strstr(read_log(), expected) != NULL);
    CHECK(strstr(read_log(), " durability=always pid=") != NULL);
    CHECK(strstr(read_log(), " info  recovered dir=") != NULL);
    CHECK(strstr(read_log(), " batches=0 records=0 ") != NULL);
    for (int i = 0; i < 3; i++)
        CHECK_DONE(test_ask(&scene.wire, "STOCK SET f %d", i + 1));
    end();
    CHECK(strstr(read_log(), " info  stopping reason=SIGTERM clients=") !=
          NULL);
    CHECK(strstr(read_log(), " info  stopped drain_ms=") != NULL);
    /* nothing of it on the standard error: that is for who has no log */
    start_with((struct test_server_opts){.dir = data}, NULL);
    CHECK(strstr(test_server_said(&scene.server), "started") == NULL);
    await_line(" batches=4 records=4 "); /* the restart's own and three */
    end();
}

TEST(without_a_file_the_log_is_on_the_standard_error)
{
    struct test_server_opts opts = {.dir = test_folder()};
    struct test_server server;

    test_server_start(&server, &opts);
    uint64_t end_ms = test_now_ms() + DEADLINE_MS;
    while (strstr(test_server_said(&server), " info  started version=") ==
           NULL) {
        CHECK(test_now_ms() < end_ms);
        (void)poll(NULL, 0, 2);
    }
    CHECK_EQ(test_server_stop(&server), 0);
}

TEST(json_is_one_object_a_line)
{
    static const char *const more[] = {"--log-format", "json", NULL};
    static const char head[] = "{\"time\":\"20";

    begin((struct test_server_opts){.dir = NULL}, more);
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET idle-ms 90000"), "+OK");
    end();
    CHECK(strstr(read_log(), "\"message\":\"started\",\"version\":\"") != NULL);
    CHECK(strstr(read_log(), "\"message\":\"setting changed\",\"client\":1,"
                             "\"from\":\"127.0.0.1:") != NULL);
    CHECK(strstr(read_log(), "\"setting\":\"idle-ms\",\"was\":\"0\","
                             "\"is\":\"90000\"}\n") != NULL);
    for (const char *at = scene.text.data; *at != '\0';) {
        const char *line_end = strchr(at, '\n');
        CHECK(line_end != NULL);
        CHECK(strncmp(at, head, sizeof head - 1) == 0);
        CHECK_EQ(line_end[-1], '}');
        at = line_end + 1;
    }
}

TEST(a_second_signal_is_told_before_the_end)
{
    begin((struct test_server_opts){.fault = "write:1:stall"}, NULL);
    TEST_SEND(&scene.wire, "STOCK SET f 1");
    await_line("the disk is slow");
    test_server_signal(&scene.server, SIGTERM);
    await_line("stopping reason=SIGTERM");
    test_server_signal(&scene.server, SIGINT);
    CHECK_EQ(test_server_end(&scene.server), 1);
    CHECK(strstr(read_log(), " warn  stopped without waiting") != NULL);
    test_wire_close(&scene.wire);
}

/* The loop has ended, most likely, and the journal waits for the disk. */
TEST(a_second_signal_ends_a_stop_whose_disk_hangs)
{
    begin((struct test_server_opts){.fault = "write:0:gate",
                                    .durability = "none"},
          NULL);
    CHECK_EQ(test_ask(&scene.wire, "STOCK SET f 1").data[0], '*');
    test_server_shut(&scene.server);
    test_server_signal(&scene.server, SIGTERM);
    await_line("stopping reason=SIGTERM");
    (void)poll(NULL, 0, 200);
    CHECK(strstr(read_log(), "stopped") == NULL);
    test_server_signal(&scene.server, SIGTERM);
    int status = test_server_end(&scene.server);
    CHECK(status == 128 + SIGTERM || status == 1);
    test_wire_close(&scene.wire);
}

/* One client's share first; then that of all, who come from other addresses. */
TEST(a_full_table_of_req_ids_is_told)
{
    static const char *const small[] = {"--requests-max", "4", NULL};

    begin((struct test_server_opts){.dir = NULL}, small);
    for (int i = 0; i < 3; i++)
        (void)test_ask(&scene.wire, "STOCK SET f 1 REQ r%d", i);
    await_line(" warn  REQ refused, the client has filled its share client=");
    CHECK(strstr(read_log(), "requests-max is reached") == NULL);
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET requests-share 100"), "+OK");
    for (int i = 3; i < 6; i++)
        (void)test_ask(&scene.wire, "STOCK SET f 1 REQ r%d", i);
    await_line(" warn  REQ refused, requests-max is reached");
    end();
}

TEST(a_start_that_fails_is_told)
{
    const char *data = begin((struct test_server_opts){.dir = NULL}, NULL);
    struct hf_buf said = {0};

    /* another one for the same folder, with the same log */
    CHECK(test_holdfast(&said, (const char *const[]){
                                   "serve", "--port", "0", "--dir", data,
                                   "--log-file", scene.path, NULL}) != 0);
    CHECK(strstr(said.data, "holdfast serve: ") != NULL);
    hf_buf_destroy(&said);
    CHECK(strstr(read_log(), " error start failed version=") != NULL);
    /* a log that cannot be is a mistake of the command line */
    CHECK(test_holdfast(&said,
                        (const char *const[]){"serve", "--port", "0", "--dir",
                                              data, "--log-file",
                                              "/nowhere/at/all", NULL}) == 1);
    CHECK(strstr(said.data, "cannot open the log /nowhere/at/all: No such "
                            "file") != NULL);
    hf_buf_destroy(&said);
    end();
}

/* A handler of the sanitizer's would call it a failure of ours. */
TEST(a_crash_loses_no_line)
{
    if (test_is_sanitized())
        return;
    for (int i = 0; i < 5; i++) {
        begin((struct test_server_opts){.dir = NULL}, NULL);
        CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET idle-ms %d", 90001 + i),
                    "+OK");
        test_server_signal(&scene.server, i % 2 ? SIGSEGV : SIGABRT);
        CHECK_EQ(test_server_end(&scene.server),
                 128 + (i % 2 ? SIGSEGV : SIGABRT));
        CHECK(strstr(read_log(), "setting=idle-ms was=0 is=9000") != NULL);
        test_wire_close(&scene.wire);
    }
}

/* ---- The disk. ---- */

TEST(a_slow_disk_is_told_and_when_it_is_well_again)
{
    begin((struct test_server_opts){.fault = "write:1:stall"}, NULL);
    TEST_SEND(&scene.wire, "STOCK SET f 1");
    await_line(" warn  the disk is slow waiting_ms=");
    test_server_signal(&scene.server, SIGUSR1);
    CHECK_DONE(TEST_ANSWER(&scene.wire));
    await_line(" info  the disk is well again slow_commits=");
    /* however often it was slow: once a minute */
    CHECK_EQ(count_of(read_log(), "the disk is slow"), 1);
    end();
}

TEST(a_journal_that_fails_is_told_once)
{
    begin((struct test_server_opts){.fault = "write:1:eio"}, NULL);
    for (int i = 0; i < 10; i++)
        CHECK_ERROR(test_ask(&scene.wire, "STOCK SET f %d", i + 1), "JOURNAL");
    await_line(" error the journal has failed, writes are refused why=\"write "
               "of batch ");
    end();
    CHECK_EQ(count_of(read_log(), "the journal has failed"), 1);
}

TEST(a_torn_tail_is_told)
{
    const char *data =
        begin((struct test_server_opts){.fault = "write:1:short"}, NULL);

    for (int i = 0; i < 1000; i++) /* a batch of many blocks */
        test_wire_add(&scene.wire, "STOCK SET a-rather-long-name-%d 1", i);
    CHECK_EQ(test_wire_send(&scene.wire), HF_OK);
    await_line("the journal has failed");
    end();
    start_with((struct test_server_opts){.dir = data}, NULL);
    await_line(" warn  torn tail cut dir=");
    end();
}

TEST(snapshots_are_told)
{
    begin((struct test_server_opts){.segment_bytes = 1 << 20,
                                    .snapshot_bytes = 65536},
          NULL);
    for (int i = 0; i < 300; i++)
        CHECK_DONE(test_ask(&scene.wire, "STOCK SET f %d", i + 1));
    await_line(" info  snapshot begun journal_bytes=");
    await_line(" info  snapshot finished bytes=");
    end();
}

TEST(little_room_on_the_disk_is_told)
{
    static const char *const more[] = {"--disk-warn-bytes",
                                       "9000000000000000000", NULL};

    begin((struct test_server_opts){.dir = NULL}, more);
    await_line(" warn  little room on the disk dir=");
    CHECK(test_info(&scene.wire, "disk_free_bytes") > 0);
    end();
}

/* ---- Clients. ---- */

TEST(clients_that_are_refused_or_closed_are_told_with_the_reason)
{
    struct test_wire other;

    begin((struct test_server_opts){.dir = NULL}, NULL);
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET maxclients 1"), "+OK");
    test_server_connect(&scene.server, &other);
    CHECK(test_wire_ends(&other));
    test_wire_close(&other);
    await_line(" warn  client refused client=2 from=127.0.0.1:");
    CHECK(strstr(read_log(), " maxclients=1\n") != NULL);
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET maxclients 100"), "+OK");
    test_server_connect(&scene.server, &other);
    CHECK_DONE(test_ask(&other, "CLIENT SETNAME silent"));
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET idle-ms 1"), "+OK");
    CHECK(test_wire_ends(&other));
    test_wire_close(&other);
    await_line(" warn  client closed client=3 name=silent from=127.0.0.1:");
    CHECK(strstr(read_log(), " why=idle\n") != NULL);
    test_wire_close(&scene.wire);
    test_server_connect(&scene.server, &scene.wire);
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET idle-ms 0"), "+OK");
    end();
}

TEST(memory_that_is_used_up_is_told_not_too_often)
{
    begin((struct test_server_opts){.dir = NULL}, NULL);
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET memory-max-bytes 1"), "+OK");
    for (int i = 0; i < 1000; i++)
        CHECK_ERROR(test_ask(&scene.wire, "LOCK l%d OWNER o TTL 1000", i),
                    "OVERLOADED");
    await_line(" warn  request refused, no memory client=1 from=127.0.0.1:");
    CHECK(count_of(read_log(), "request refused, no memory") < 20);
    end();
}

TEST(a_thousand_bad_clients_do_not_flood_the_log)
{
    struct test_wire bad;

    begin((struct test_server_opts){.dir = NULL}, NULL);
    for (int i = 0; i < 1000; i++) {
        test_server_connect(&scene.server, &bad);
        test_wire_add_raw(&bad, "*x\r\n", 4);
        CHECK_EQ(test_wire_send(&bad), HF_OK);
        CHECK(test_wire_ends(&bad));
        test_wire_close(&bad);
    }
    await_line(" why=\"protocol error\" detail=\"");
    end();
    /* ten at once and one in ten seconds */
    CHECK(count_of(read_log(), "client closed") >= 10);
    CHECK(count_of(read_log(), "client closed") < 100);
}

/* Lines are as they must be whatever clients send, and the log never has what
 * they sent as arguments. */
TEST(nothing_that_clients_send_forges_a_line_or_gives_a_secret_away)
{
    static const char *const more[] = {"--log-level", "debug", NULL};
    static const char *const names[] = {
        "a\nforged",   "a\r\nforged line", "\x1b[31mforged", "a\0forged",
        "for\"ged\\=", "forged \xc2\x9b",  "%s%n%s%n"};
    static const char broken[] = "*1\nforged\x1b\n\0line\r\n";
    struct test_wire bad;

    begin((struct test_server_opts){.dir = NULL}, more);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t len = i == 3 ? 8 : strlen(names[i]);
        struct hf_bytes args[] = {hf_bytes_text("CLIENT"),
                                  hf_bytes_text("SETNAME"),
                                  hf_bytes(names[i], len)};
        test_server_connect(&scene.server, &bad);
        test_wire_add_args(&bad, 3, args);
        CHECK_EQ(test_wire_send(&bad), HF_OK);
        (void)TEST_ANSWER(&bad);
        test_wire_add_raw(&bad, broken, sizeof broken - 1);
        CHECK_EQ(test_wire_send(&bad), HF_OK);
        CHECK(test_wire_ends(&bad));
        test_wire_close(&bad);
    }
    (void)test_ask(&scene.wire, "HELLO 3 AUTH default s3cr3t");
    (void)test_ask(&scene.wire, "AUTH s3cr3t");
    (void)test_ask(&scene.wire, "CONFIG SET requirepass s3cr3t");
    (void)test_ask(&scene.wire, "CONFIG SET log-level s3cr3t");
    (void)test_ask(&scene.wire, "LOCK s3cr3t OWNER s3cr3t REQ s3cr3t");
    (void)test_ask(&scene.wire, "s3cr3t");
    end();
    const char *log = read_log();
    CHECK(strstr(log, "debug connection opened client=") != NULL);
    CHECK(strstr(log, "debug connection closed client=") != NULL);
    CHECK(strstr(log, "name=\"for\\\"ged\\\\=\"") != NULL);
    CHECK(strstr(log, "s3cr3t") == NULL);
    for (const char *at = log; *at != '\0'; at = strchr(at, '\n') + 1) {
        CHECK(strncmp(at, "20", 2) == 0); /* a line begins with its time */
        for (const char *c = at; *c != '\n'; c++)
            CHECK(*c >= ' ' && *c <= '~');
    }
}

TEST(admin_commands_and_settings_are_told)
{
    begin((struct test_server_opts){.dir = NULL}, NULL);
    CHECK_DONE(test_ask(&scene.wire, "CLIENT SETNAME operator"));
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET locks-max 777"), "+OK");
    CHECK_DONE(test_ask(&scene.wire, "FLUSHALL"));
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET log-level error"), "+OK");
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET locks-max 778"), "+OK");
    CHECK_REPLY(test_ask(&scene.wire, "CONFIG SET log-level info"), "+OK");
    CHECK_ERROR(test_ask(&scene.wire, "CONFIG SET log-level loud"), "BADARG");
    CHECK_ERROR(test_ask(&scene.wire, "CONFIG SET log-file /x"), "BADARG");
    end();
    const char *log = read_log();
    CHECK(strstr(log, " info  setting changed client=1 name=operator "
                      "from=127.0.0.1:") != NULL);
    CHECK(strstr(log, " setting=locks-max was=10000000 is=777\n") != NULL);
    CHECK(strstr(log, " command=FLUSHALL\n") != NULL);
    CHECK(strstr(log, " setting=log-level was=info is=error\n") != NULL);
    CHECK(strstr(log, "is=778") == NULL);
    CHECK(strstr(log, " setting=log-level was=error is=info\n") != NULL);
}

/* ---- The log's own disk. ---- */

static void open_and_close_connections(int count)
{
    struct test_wire wire;

    for (int i = 0; i < count; i++) {
        test_server_connect(&scene.server, &wire);
        CHECK_REPLY(test_ask(&wire, "PING"), "+PONG");
        test_wire_close(&wire);
    }
}

TEST(a_log_file_is_rotated_and_few_are_kept)
{
    static const char *const more[] = {"--log-level",
                                       "debug",
                                       "--log-rotate-bytes",
                                       "8192",
                                       "--log-rotate-keep",
                                       "2",
                                       NULL};
    char path[600];
    struct stat info;

    begin((struct test_server_opts){.dir = NULL}, more);
    open_and_close_connections(400);
    CHECK(test_info(&scene.wire, "log_rotated") >= 3);
    CHECK_EQ(test_info(&scene.wire, "log_dropped_total"), 0);
    end();
    for (int i = 0; i <= 2; i++) {
        snprintf(path, sizeof path, i ? "%s.%d" : "%s", scene.path, i);
        CHECK_EQ(stat(path, &info), 0);
        CHECK(info.st_size > 0);
        CHECK(info.st_size <= 8192);
    }
    snprintf(path, sizeof path, "%s.3", scene.path);
    CHECK(stat(path, &info) != 0);
}

TEST(a_log_on_a_stalled_disk_stops_nobody)
{
    static const char *const more[] = {"--log-level", "debug", NULL};
    const char *folder = test_folder();
    char data[600];

    /* a pipe that nobody reads stands for the disk */
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(scene.path, sizeof scene.path, "%s/log", folder);
    CHECK_EQ(mkfifo(scene.path, 0600), 0);
    int pipe_fd = open(scene.path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    CHECK(pipe_fd >= 0);
    CHECK(fcntl(pipe_fd, F_SETPIPE_SZ, 4096) > 0);
    start_with((struct test_server_opts){.dir = data}, more);
    for (int i = 0; i < 200 && test_info(&scene.wire, "log_dropped_total") == 0;
         i++)
        open_and_close_connections(50);
    CHECK(test_info(&scene.wire, "log_dropped_total") > 0);
    CHECK(test_info(&scene.wire, "log_waiting_bytes") > 0);
    for (int i = 0; i < 100; i++) /* and it does its work */
        CHECK_DONE(test_ask(&scene.wire, "STOCK SET f %d", i + 1));
    /* nor does it keep the server from ending */
    end();
    close(pipe_fd);
}

TEST(a_log_on_a_full_disk_stops_nobody)
{
    static const char *const more[] = {"--log-level", "debug", NULL};
    const char *folder = test_folder();
    char data[600];

    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(scene.path, sizeof scene.path, "/dev/full");
    start_with((struct test_server_opts){.dir = data}, more);
    open_and_close_connections(100);
    uint64_t end_ms = test_now_ms() + DEADLINE_MS;
    while (test_info(&scene.wire, "log_failed_total") < 100)
        CHECK(test_now_ms() < end_ms);
    CHECK_EQ(test_info(&scene.wire, "log_lines_total"), 0);
    for (int i = 0; i < 100; i++)
        CHECK_DONE(test_ask(&scene.wire, "STOCK SET f %d", i + 1));
    end();
}
