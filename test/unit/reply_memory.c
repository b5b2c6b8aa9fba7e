/* reply_memory.c - tests of replies without memory: a client is told all of a
 * reply, or an error, or is closed. Half a reply is never sent. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/server.h"
#include "support/test.h"

#define TURNS_MAX 100000

static struct server server;
static int client;
static char told[1u << 18];
static char whole[1u << 18];

static void connect_client(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server.config.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(client >= 0);
    CHECK_EQ(connect(client, (struct sockaddr *)&to, sizeof to), 0);
}

/* Lets the server run until it has nothing to do; what came, or -1: closed. */
static ssize_t hear(char *out, size_t room)
{
    size_t len = 0;

    for (int turn = 0; turn < TURNS_MAX; turn++) {
        uv_run(&server.loop, UV_RUN_NOWAIT);
        ssize_t got = recv(client, out + len, room - len, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return -1;
        len += got > 0 ? (size_t)got : 0;
        if (len >= 7 && memcmp(out + len - 7, "+PONG\r\n", 7) == 0)
            return (ssize_t)len - 7;
    }
    return 0;
}

/* Sends a line, and PING, whose answer ends the reply. */
static ssize_t ask(const char *line, char *out, size_t room)
{
    char text[512];
    int len = snprintf(text, sizeof text, "%s\r\nPING\r\n", line);

    CHECK_EQ(send(client, text, (size_t)len, MSG_NOSIGNAL), len);
    return hear(out, room);
}

/* What is there without numbers, which change with time. */
static size_t words_of(char *text, size_t len)
{
    size_t kept = 0;

    for (size_t i = 0; i < len; i++) {
        if (strchr("0123456789.e+-", text[i]) == NULL)
            text[kept++] = text[i];
    }
    return kept;
}

static void hello(bool three)
{
    connect_client();
    if (three)
        CHECK(ask("HELLO 3", told, sizeof told) > 0);
}

static void check_line(const char *line, bool three)
{
    hello(three);
    ssize_t len = ask(line, whole, sizeof whole);
    CHECK(len > 0);
    size_t words = words_of(whole, (size_t)len);
    bool more = true;
    for (uint64_t at = 0; more; at++) {
        uint64_t before = hf_memory_count();
        hf_memory_fail_once(at);
        len = ask(line, told, sizeof told);
        hf_memory_fail_never();
        more = hf_memory_count() - before > at;
        CHECK(at < 10000);
        if (len < 0) { /* closed */
            close(client);
            hello(three);
            continue;
        }
        CHECK(len > 0);
        if (told[0] == '-')
            continue;
        len = (ssize_t)words_of(told, (size_t)len);
        if ((size_t)len != words || memcmp(told, whole, words) != 0)
            test_fail(__FILE__, __LINE__, "half a reply to %s: %.*s, not %.*s",
                      line, (int)len, told, (int)words, whole);
    }
    close(client);
}

TEST(with_one_allocation_that_fails_a_reply_is_whole_or_none)
{
    static const char *const lines[] = {
        "ECHO text",
        "NOSUCH",
        "LOCK a OWNER o",
        "LOCKINFO a",
        "LOCK a OWNER p",
        "LOCK a OWNER p WAIT 1",
        "LOCKS",
        "STOCK SET s 1000",
        "STOCK GET s t",
        "STOCK LIST",
        "RESERVE r ITEM s 1",
        "RESERVATION r",
        "LIMIT DEFINE p RATE 5 PER 1000",
        "LIMIT POLICIES",
        "LIMIT k POLICY p HEADERS PEEK",
        "LIMIT k RATE 1 PER 100000",
        "CL.THROTTLE k 1000000 1 1",
        "CONFIG GET *",
        "COMMAND",
        "COMMAND DOCS",
        "COMMAND LIST",
        "HELP",
        "CLIENT INFO",
        "INFO",
        "METRICS",
    };
    struct config config = config_default();
    char error[JOURNAL_ERROR_MAX];

    test_folder_in_memory();
    config.port = 0;
    config.durability = JOURNAL_NONE;
    config.segment_bytes = 1u << 20;
    config.log_level = HF_LOG_ERROR;
    config.dir = test_folder();
    CHECK_EQ(server_open(&server, &config, error), HF_OK);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        check_line(lines[i], false);
        check_line(lines[i], true);
    }
    server_close(&server);
}
