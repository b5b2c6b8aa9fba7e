/* admin.c - what a server tells about itself, its commands and its clients.
 * tests: also under sanitizers
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hold/engine.h"
#include "support/server.h"
#include "support/test.h"

static struct test_server server;
static struct test_wire wire;

static void start(void)
{
    test_server_begin(&server, &wire,
                      &(struct test_server_opts){.durability = "none"});
}

static void stop(void)
{
    test_server_finish(&server, &wire);
}

#define CHECK_BULK(reply, expected)                    \
    do {                                               \
        struct hf_bytes text_ = test_bulk(reply);      \
        CHECK_TEXT(text_.data, text_.len, (expected)); \
    } while (0)

static bool begins(struct hf_bytes text, const char *start)
{
    return text.len >= strlen(start) &&
           memcmp(text.data, start, strlen(start)) == 0;
}

static bool contains(struct hf_bytes text, const char *part)
{
    return memmem(text.data, text.len, part, strlen(part)) != NULL;
}

/* COMMAND and a question, kept while others are asked. */
static struct hf_buf kept;

static struct hf_bytes keep(struct hf_bytes reply)
{
    kept.len = 0;
    CHECK_EQ(hf_buf_append(&kept, reply.data, reply.len), HF_OK);
    return hf_buf_bytes(&kept);
}

/* The client comes over IPv4, and its address is an IPv6 one all the same. */
TEST(who_comes_from_the_same_machine_to_an_ipv6_address_may_use_admin_commands)
{
    static const char *const more[] = {"--bind", "::", NULL};
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has_ipv6 =
        fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0;

    if (fd >= 0)
        close(fd);
    if (!has_ipv6)
        return; /* nothing to be seen on this machine */
    test_server_begin(
        &server, &wire,
        &(struct test_server_opts){.durability = "none", .more = more});
    CHECK(test_is(test_ask(&wire, "FLUSHALL"), "+OK\r\n"));
    stop();
}

TEST(every_command_is_listed_described_and_helped_with)
{
    start();
    struct hf_bytes list = keep(test_ask(&wire, "COMMAND LIST"));
    size_t count = test_length(list);
    CHECK(count > 30);
    char expected[32];
    snprintf(expected, sizeof expected, ":%zu\r\n", count);
    CHECK(test_is(test_ask(&wire, "COMMAND COUNT"), expected));
    CHECK_EQ(test_length(test_ask(&wire, "COMMAND")), count);
    CHECK_EQ(test_length(test_ask(&wire, "COMMAND INFO")), count);
    CHECK_EQ(test_length(test_ask(&wire, "COMMAND DOCS")), 2 * count);
    CHECK_EQ(test_length(test_ask(&wire, "HELP")), count);
    for (size_t i = 0; i < count; i++) {
        struct hf_bytes name = test_bulk(test_element(list, i));
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)name.len, name.data);
        for (size_t k = 0; k < name.len; k++)
            CHECK((name.data[k] >= 'a' && name.data[k] <= 'z') ||
                  name.data[k] == '|' || name.data[k] == '.');
        struct hf_bytes told = test_ask(&wire, "COMMAND INFO %s", text);
        CHECK_EQ(test_length(told), 1);
        CHECK_EQ(test_length(test_element(told, 0)), 6);
        CHECK_BULK(test_element(test_element(told, 0), 0), text);
        told = test_ask(&wire, "COMMAND DOCS %s", text);
        CHECK_EQ(test_length(told), 2);
        CHECK_BULK(test_element(told, 0), text);
        struct hf_bytes docs = test_element(told, 1);
        CHECK_EQ(test_length(docs), 8);
        CHECK_BULK(test_element(docs, 0), "summary");
        CHECK_BULK(test_element(docs, 2), "since");
        CHECK_BULK(test_element(docs, 4), "group");
        CHECK_BULK(test_element(docs, 6), "syntax");
    }
    /* also as HELP writes it */
    static const char spaced[] =
        "*3\r\n$7\r\nCOMMAND\r\n$4\r\nINFO\r\n$9\r\nStock Set\r\n";
    test_wire_add_raw(&wire, spaced, sizeof spaced - 1);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    struct hf_bytes shown = TEST_ANSWER(&wire);
    CHECK(memmem(shown.data, shown.len, "stock|set", 9) != NULL);
    stop();
}

/* Also those of names with two words, if only the first is known. */
TEST(who_gets_a_command_wrong_is_shown_its_forms)
{
    static const struct {
        const char *asked;
        const char *code;
        const char *forms;
    } rows[] = {
        {"COMMAND NOSUCH", "BADARG",
         "COMMAND COUNT | COMMAND LIST | COMMAND DOCS [name ...] | COMMAND "
         "INFO [name ...] | COMMAND"},
        {"COMMAND COUNT 1", "BADARG", "the form is: COMMAND COUNT"},
        {"CLIENT", "BADARG",
         "CLIENT ID | CLIENT INFO | CLIENT GETNAME | CLIENT SETNAME name | "
         "CLIENT SETINFO attribute value"},
        {"client nosuch", "BADARG",
         "unknown command 'client nosuch', the forms are"},
        {"CLIENT SETNAME", "BADARG", "the form is: CLIENT SETNAME name"},
        {"HELLO 2 AUTH a b c d e", "BADARG",
         "HELLO [version [SETNAME name] [AUTH user password]]"},
        {"config nosuch", "BADARG",
         "CONFIG GET pattern [pattern ...] | CONFIG "},
        {"STOCK", "BADARG", "[REF text] [REQ id] | STOCK ADD"},
        {"LIMIT", "BADARG", "LIMIT DEFINE name RATE n PER ms [BURST n]"},
        {"nosuch x", "ERR",
         "unknown command 'nosuch'. HELP lists all commands"},
        {"STOC", "ERR", "unknown command 'STOC'. HELP lists all commands"},
    };

    start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hf_bytes told = keep(test_ask(&wire, "%s", rows[i].asked));
        CHECK_ERROR(told, rows[i].code);
        if (!contains(told, rows[i].forms))
            test_fail(__FILE__, __LINE__, "%s: %.*s", rows[i].asked,
                      (int)told.len, told.data);
    }
    stop();
}

/* Words of the shortest request, whether it writes, and where its key is. */
TEST(clients_are_told_how_to_call_a_command)
{
    static const struct {
        const char *name;
        const char *words;
        const char *flag;
        const char *key;
    } rows[] = {
        {"lock", ":-4", "+write", ":1"},
        {"unlock", ":-3", "+write", ":1"},
        {"renew", ":-5", "+write", ":1"},
        {"locks", ":-1", "+readonly", ":1"},
        {"lockinfo", ":-2", "+readonly", ":1"},
        {"fence", ":-3", "+write", ":1"},
        {"fence|del", ":-3", "+write", ":1"},
        {"STOCK|SET", ":-4", "+write", ":1"},
        {"stock|get", ":-3", "+readonly", ":1"},
        {"reserve", ":-5", "+write", ":1"},
        {"limit", ":-2", "+write", ":0"},
        {"ping", ":-1", "+readonly", ":0"},
        {"ECHO", ":-2", "+readonly", ":0"},
        {"config|set", ":-4", "+readonly", ":0"},
    };
    char expected[16];

    start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hf_bytes told =
            test_element(test_ask(&wire, "COMMAND INFO %s", rows[i].name), 0);
        snprintf(expected, sizeof expected, "%s\r\n", rows[i].words);
        CHECK(test_is(test_element(told, 1), expected));
        snprintf(expected, sizeof expected, "%s\r\n", rows[i].flag);
        CHECK(test_is(test_element(test_element(told, 2), 0), expected));
        snprintf(expected, sizeof expected, "%s\r\n", rows[i].key);
        for (size_t k = 3; k < 6; k++)
            CHECK(test_is(test_element(told, k), expected));
    }
    struct hf_bytes several = test_ask(&wire, "COMMAND INFO ping nosuch Echo");
    CHECK_EQ(test_length(several), 2);
    CHECK_BULK(test_element(test_element(several, 0), 0), "ping");
    CHECK_EQ(test_length(test_ask(&wire, "COMMAND INFO lockx loc")), 0);
    stop();
}

TEST(help_is_for_whole_words)
{
    start();
    struct hf_bytes help = test_ask(&wire, "HELP lock");
    CHECK_EQ(test_length(help), 1);
    CHECK_BULK(test_element(help, 0),
               "LOCK name OWNER owner [TTL ms] [WAIT ms] [SESSION id] [PERMITS "
               "n OF max] [MAXHOLD ms] [DELAY ms] [NOTE text] [DEADLOCK "
               "DETECT|WAITDIE|WOUNDWAIT|NONE] [PRIORITY 0|1|2|3] [TREE] "
               "[SHARED] [FOREVER] [BARGE] [REQ id] - Takes a lock, waits in "
               "its queue, or re-enters it");
    help = test_ask(&wire, "HELP STOCK");
    CHECK(test_length(help) > 3);
    for (size_t i = 0; i < test_length(help); i++)
        CHECK(begins(test_bulk(test_element(help, i)), "STOCK "));
    CHECK_EQ(test_length(test_ask(&wire, "HELP Fence")), 2);
    CHECK_ERROR(test_ask(&wire, "HELP LOC"), "NOTFOUND");
    CHECK_ERROR(test_ask(&wire, "HELP LOCKX"), "NOTFOUND");
    CHECK_ERROR(test_ask(&wire, "HELP XLOCK"), "NOTFOUND");
    CHECK_ERROR(test_ask(&wire, "HELP zzzzzzzzzzzzzzzzzzzzzzzzzzzz"),
                "NOTFOUND");
    stop();
}

TEST(small_talk)
{
    start();
    CHECK_REPLY(test_ask(&wire, "PING"), "+PONG");
    CHECK_BULK(test_ask(&wire, "PING you"), "you");
    CHECK_ERROR(test_ask(&wire, "PING you there"), "BADARG");
    CHECK_BULK(test_ask(&wire, "ECHO you"), "you");
    CHECK_ERROR(test_ask(&wire, "ECHO"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "ECHO you there"), "BADARG");
    CHECK_REPLY(test_ask(&wire, "SELECT 0"), "+OK");
    CHECK_ERROR(test_ask(&wire, "SELECT 1"), "BADARG");
    CHECK_REPLY(test_ask(&wire, "QUIT"), "+OK");
    CHECK(test_wire_ends(&wire));
    stop();
}

TEST(a_client_has_a_protocol_a_number_and_a_name)
{
    char line[64];
    char name[65];

    start();
    CHECK_REPLY(test_ask(&wire, "CLIENT GETNAME"), "$-1");
    struct hf_bytes hello = test_ask(&wire, "HELLO");
    CHECK_EQ(test_length(hello), 14);
    CHECK_EQ(test_number(hello, "proto"), 2);
    int64_t id = test_number(hello, "id");
    CHECK(id > 0);
    struct hf_bytes text = test_text(hello, "server");
    CHECK_TEXT(text.data, text.len, "holdfast");
    CHECK_ERROR(test_ask(&wire, "HELLO 1"), "NOPROTO");
    CHECK_ERROR(test_ask(&wire, "HELLO 4"), "NOPROTO");
    CHECK_ERROR(test_ask(&wire, "HELLO x"), "NOPROTO");
    CHECK_ERROR(test_ask(&wire, "HELLO SETNAME ann"), "NOPROTO");
    CHECK_ERROR(test_ask(&wire, "HELLO 2 AUTH"), "ERR");
    CHECK_ERROR(test_ask(&wire, "HELLO 2 SETNAME \x7f"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "HELLO 2 AUTH a b"), "ERR");
    CHECK_ERROR(test_ask(&wire, "HELLO 3 SETNAME"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "HELLO 3 NOSUCH x"), "BADARG");
    CHECK_EQ(test_number(test_ask(&wire, "HELLO 2 SETNAME ann"), "proto"), 2);
    CHECK_BULK(test_ask(&wire, "CLIENT GETNAME"), "ann");
    CHECK_REPLY(test_ask(&wire, "CLIENT SETNAME bob"), "+OK");
    CHECK_BULK(test_ask(&wire, "CLIENT GETNAME"), "bob");
    snprintf(line, sizeof line, ":%lld\r\n", (long long)id);
    CHECK(test_is(test_ask(&wire, "CLIENT ID"), line));
    snprintf(line, sizeof line, "id=%lld name=bob resp=2\n", (long long)id);
    CHECK_BULK(test_ask(&wire, "CLIENT INFO"), line);
    memset(name, 'n', sizeof name);
    name[64] = '\0';
    CHECK_ERROR(test_ask(&wire, "CLIENT SETNAME %s", name), "BADARG");
    CHECK_REPLY(test_ask(&wire, "CLIENT SETNAME %s", name + 1), "+OK");
    CHECK_BULK(test_ask(&wire, "CLIENT GETNAME"), name + 1);
    CHECK_ERROR(test_ask(&wire, "CLIENT SETNAME \x7f"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "CLIENT SETNAME \x1f"), "BADARG");
    CHECK_REPLY(test_ask(&wire, "CLIENT SETNAME ~!"), "+OK");
    CHECK_REPLY(test_ask(&wire, "CLIENT SETINFO LIB-NAME x"), "+OK");
    static const char *const bad[] = {"ID x",    "INFO x",      "GETNAME x",
                                      "SETNAME", "SETNAME a b", "SETINFO a",
                                      "NOSUCH"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_ERROR(test_ask(&wire, "CLIENT %s", bad[i]), "BADARG");
    CHECK_BULK(test_ask(&wire, "CLIENT GETNAME"), "~!");
    CHECK(begins(test_ask(&wire, "HELLO 3"), "%7\r\n"));
    CHECK_REPLY(test_ask(&wire, "CLIENT SETNAME x"), "+OK");
    snprintf(line, sizeof line, "id=%lld name=x resp=3\n", (long long)id);
    CHECK_BULK(test_ask(&wire, "CLIENT INFO"), line);
    stop();
}

/* Tools of others read these lines by their names; events_total is one for each
 * event. */
static const char *const info_lines[] = {
    "# Server",
    "holdfast_version",
    "redis_mode",
    "process_id",
    "uptime_in_seconds",
    "tcp_port",
    "# Clients",
    "connected_clients",
    "maxclients",
    "blocked_clients",
    "pushed_grants",
    "# Memory",
    "engine_bytes",
    "engine_max_bytes",
    "# Persistence",
    "loading",
    "durability",
    "journal_failed",
    "journal_error",
    "journal_batches",
    "journal_records_total",
    "journal_bytes_total",
    "journal_slow_commits_total",
    "journal_waiting_ms",
    "journal_sync_last_us",
    "journal_sync_max_us",
    "journal_disk_bytes",
    "journal_replayed",
    "snapshots_total",
    "snapshot_bytes",
    "snapshot_failures_total",
    "snapshot_running",
    "audits_total",
    "audit_failures_total",
    "# Log",
    "log_level",
    "log_lines_total",
    "log_dropped_total",
    "log_failed_total",
    "log_cut",
    "log_rotated",
    "log_waiting_bytes",
    "disk_free_bytes",
    "# Stats",
    "total_connections_received",
    "rejected_connections",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "alarms",
    "total_commands_processed",
    "total_error_replies",
    "refused_without_journal_total",
    "commits_total",
    "cleanup_lag_seconds_count",
    "cleanup_lag_seconds_sum",
    "requests_dropped_total",
    "requests_refused_total",
    "requests_share_refused_total",
    "turn_work_max",
    "turn_all_max",
    "turn_sweeps_max",
    "turn_applied_max",
    "turn_steps_max",
    "events_total",
    "limit_decisions_total{decision=\"allowed\"}",
    "limit_decisions_total{decision=\"denied\"}",
    "# Latency",
    "lock_acquire_seconds{quantile=\"0.5\"}",
    "lock_acquire_seconds{quantile=\"0.95\"}",
    "lock_acquire_seconds{quantile=\"0.99\"}",
    "lock_acquire_seconds{quantile=\"1\"}",
    "lock_acquire_seconds_count",
    "lock_acquire_seconds_sum",
    "lock_wait_seconds_count{result=\"granted\"}",
    "lock_wait_seconds_sum{result=\"granted\"}",
    "lock_wait_seconds_count{result=\"timeout\"}",
    "lock_wait_seconds_sum{result=\"timeout\"}",
    "lock_wait_seconds_count{result=\"left\"}",
    "lock_wait_seconds_sum{result=\"left\"}",
    "stock_wait_seconds_count{result=\"granted\"}",
    "stock_wait_seconds_sum{result=\"granted\"}",
    "stock_wait_seconds_count{result=\"timeout\"}",
    "stock_wait_seconds_sum{result=\"timeout\"}",
    "stock_wait_seconds_count{result=\"left\"}",
    "stock_wait_seconds_sum{result=\"left\"}",
    "lock_hold_seconds_count",
    "lock_hold_seconds_sum",
    "reservation_confirm_seconds_count",
    "reservation_confirm_seconds_sum",
    "# Events",
    "feed_first",
    "feed_last",
    "feed_bytes",
    "feed_files",
    "feed_lost_total",
    "feed_failures_total",
    "feed_waiters",
    "subscriptions",
    "pubsub_channels",
    "pubsub_patterns",
    "published_total",
    "delivered_total",
    "subscribers_cut_total",
    "pattern_steps_max",
    "# Holds",
    "sequence",
    "locks",
    "lock_waiters",
    "lock_sets",
    "lock_trees",
    "lock_double_grants_total",
    "sessions",
    "products",
    "reservations",
    "reservations_pending",
    "stock_waiters",
    "fences",
    "requests",
    "limit_keys",
    "limit_bytes",
    "limit_policies",
    "limit_holds",
    "limit_waiters",
    "limit_shadow_denied_total",
    "# Alerts",
    "alert{rule=\"lock_acquire_slow\"}",
    "alert{rule=\"locks_expire\"}",
    "alert{rule=\"sessions_expire\"}",
    "alert{rule=\"fence_rejected\"}",
    "alert{rule=\"requests_refused\"}",
    "alert{rule=\"audit_failed\"}",
    "alert{rule=\"feed_lost\"}",
    "alert{rule=\"feed_failed\"}",
    "alert{rule=\"lock_granted_twice\"}",
    "alert{rule=\"reservation_success\"}",
    "alert{rule=\"reservation_expiry\"}",
    "alert{rule=\"cleanup_behind\"}",
    "alert{rule=\"reservation_overdue\"}",
    "reservation_recent_success_ratio",
    "reservation_recent_expiry_ratio",
    "cleanup_behind_seconds",
    "reservation_overdue_seconds",
};
#define INFO_LINES (sizeof info_lines / sizeof info_lines[0])

/* Walks the lines of INFO; empty ones stand before a section. */
static bool next_line(struct hf_bytes text, size_t *at, struct hf_bytes *line)
{
    do {
        if (*at >= text.len)
            return false;
        const char *end = memchr(text.data + *at, '\r', text.len - *at);
        CHECK(end != NULL && end[1] == '\n');
        *line = hf_bytes(text.data + *at, (size_t)(end - text.data) - *at);
        *at += line->len + 2;
    } while (line->len == 0);
    return true;
}

static void check_line(struct hf_bytes text, size_t *at, const char *expected)
{
    bool title = expected[0] == '#';
    struct hf_bytes line;

    CHECK(next_line(text, at, &line));
    const char *end = memchr(line.data, ':', line.len);
    CHECK(title == (end == NULL));
    CHECK_TEXT(line.data, title ? line.len : (size_t)(end - line.data),
               expected);
}

TEST(info_has_every_line_in_its_section)
{
    struct hf_bytes line;
    size_t at = 0;
    char name[64];

    start();
    struct hf_bytes text = keep(test_bulk(test_ask(&wire, "INFO")));
    for (size_t i = 0; i < INFO_LINES; i++) {
        if (strcmp(info_lines[i], "events_total") != 0) {
            check_line(text, &at, info_lines[i]);
            continue;
        }
        for (unsigned k = 0; k < HOLD_EVENT_COUNT; k++) {
            snprintf(name, sizeof name, "events_total{event=\"%s\"}",
                     hold_event_name((enum hold_event_kind)k));
            check_line(text, &at, name);
        }
    }
    CHECK(!next_line(text, &at, &line));
    for (size_t i = 0; i < INFO_LINES; i++) {
        if (info_lines[i][0] != '#')
            continue;
        snprintf(name, sizeof name, "%s", info_lines[i] + 2);
        struct hf_bytes part = test_bulk(test_ask(&wire, "INFO %s", name));
        snprintf(name, sizeof name, "%s\r\n", info_lines[i]);
        CHECK(contains(part, name) && contains(text, name));
        CHECK(part.len < text.len / 2);
    }
    static const char *const whole[] = {"all", "everything", "default"};
    for (size_t i = 0; i < 3; i++) {
        text = test_bulk(test_ask(&wire, "INFO %s", whole[i]));
        CHECK(contains(text, "# Server") && contains(text, "# Holds"));
    }
    CHECK_REPLY(test_ask(&wire, "INFO nosuch"), "$0\r\n");
    stop();
}

TEST(info_tells_what_is_there)
{
    struct test_wire other;

    start();
    CHECK_EQ(test_info(&wire, "process_id"), server.pid);
    CHECK_EQ(test_info(&wire, "connected_clients"), 1);
    test_server_connect(&server, &other);
    CHECK_REPLY(test_ask(&other, "PING"), "+PONG");
    CHECK_EQ(test_info(&wire, "connected_clients"), 2);
    CHECK_EQ(test_info(&wire, "loading"), 0);
    CHECK_DONE(test_ask(&wire, "STOCK SET apple 5"));
    CHECK_DONE(test_ask(&wire, "RESERVE r1 ITEM apple 1"));
    CHECK_DONE(test_ask(&wire, "RESERVE r2 ITEM apple 1 REQ q"));
    CHECK_DONE(test_ask(&wire, "CONFIRM r2"));
    CHECK_DONE(test_ask(&wire, "FENCE disk 1"));
    CHECK_DONE(test_ask(&wire, "LOCK door OWNER ann"));
    CHECK_EQ(test_info(&wire, "products"), 1);
    CHECK_EQ(test_info(&wire, "reservations"), 2);
    CHECK_EQ(test_info(&wire, "reservations_pending"), 1);
    CHECK_EQ(test_info(&wire, "fences"), 1);
    CHECK_EQ(test_info(&wire, "requests"), 1);
    CHECK_EQ(test_info(&wire, "locks"), 1);
    CHECK_EQ(test_info(&wire, "lock_waiters"), 0);
    CHECK_EQ(test_info(&wire, "blocked_clients"), 0);
    CHECK_EQ(test_info(&wire, "sequence"), 6);
    /* after a repair `sequence` has as many digits as this */
    CHECK_REPLY(
        test_ask(&wire, "CONFIG SET memory-max-bytes %lld", 1234567890123456LL),
        "+OK");
    CHECK_EQ(test_info(&wire, "engine_max_bytes"), 1234567890123456LL);
    TEST_SEND(&other, "LOCK door OWNER bob WAIT 60000");
    while (test_info(&wire, "lock_waiters") == 0)
        ;
    CHECK_EQ(test_info(&wire, "lock_waiters"), 1);
    CHECK_EQ(test_info(&wire, "blocked_clients"), 1);
    test_wire_close(&other);
    while (test_info(&wire, "connected_clients") == 2)
        ;
    CHECK_EQ(test_info(&wire, "connected_clients"), 1);
    stop();
}

TEST(settings_are_shown_by_pattern)
{
    static const struct {
        const char *name;
        const char *value;
    } rows[] = {{"durability", "none"},
                {"save", ""},
                {"appendonly", "no"},
                {"databases", "1"},
                {"log-level", "info"}};

    start();
    size_t all = test_length(test_ask(&wire, "CONFIG GET *"));
    CHECK(all > 40 && all % 2 == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hf_bytes told = test_ask(&wire, "CONFIG GET %s", rows[i].name);
        CHECK_EQ(test_length(told), 2);
        CHECK_BULK(test_element(told, 0), rows[i].name);
        struct hf_bytes value = test_text(told, rows[i].name);
        CHECK_TEXT(value.data, value.len, rows[i].value);
    }
    CHECK_EQ(test_length(test_ask(&wire, "CONFIG GET nosuch")), 0);
    /* once, whatever number of patterns match */
    CHECK_EQ(test_length(test_ask(&wire, "CONFIG GET save s*e databases")), 4);
    CHECK_EQ(test_length(test_ask(&wire, "CONFIG GET nosuch log-l*")), 2);
    CHECK_EQ(test_length(test_ask(&wire, "CONFIG GET * *")), all);
    stop();
}

TEST(settings_change_within_their_range)
{
    start();
    CHECK_REPLY(test_ask(&wire, "CONFIG SET locks-max 77"), "+OK");
    struct hf_bytes told = test_ask(&wire, "CONFIG GET locks-max");
    CHECK_BULK(test_element(told, 1), "77");
    CHECK_REPLY(test_ask(&wire, "CONFIG SET requests-share 1"), "+OK");
    CHECK_REPLY(test_ask(&wire, "CONFIG SET requests-share 100"), "+OK");
    CHECK_REPLY(test_ask(&wire, "CONFIG SET requests-share 101"),
                "-BADARG requests-share is a number from 1 to 100");
    CHECK_ERROR(test_ask(&wire, "CONFIG SET requests-share 0"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "CONFIG SET requests-share x"), "BADARG");
    told = test_ask(&wire, "CONFIG GET requests-share");
    CHECK_BULK(test_element(told, 1), "100");
    CHECK_ERROR(test_ask(&wire, "CONFIG SET segment-bytes 2000000"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "CONFIG SET nosuch 1"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "CONFIG SET log-level loud"), "BADARG");
    CHECK_REPLY(test_ask(&wire, "CONFIG SET log-level error"), "+OK");
    told = test_ask(&wire, "CONFIG GET log-level");
    CHECK_BULK(test_element(told, 1), "error");
    stop();
}
