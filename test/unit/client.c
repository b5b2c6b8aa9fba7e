/* client.c - tests of how a connection fails, and of what people are told. */
#include "cli/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <unistd.h>

#include "cli/call.h"
#include "support/test.h"

#define MS ((uint64_t)1000000)
/* A deadline that nobody reaches. */
#define LONG_NS (client_now_ns() + 60000 * MS)

static struct client_address address;
static struct client client;
static struct client_target target;

static const char *explain(enum hf_status status)
{
    static char reason[CLIENT_REASON_MAX];

    client_explain(&client, &address, status, reason);
    return reason;
}

#define CHECK_REASON(status, expected)                  \
    do {                                                \
        const char *reason_ = explain(status);          \
        CHECK_TEXT(reason_, strlen(reason_), expected); \
    } while (0)

/* A socket on a port of its own that listens, or is only bound. */
static int bind_port(bool listens)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof here;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_EQ(bind(fd, (struct sockaddr *)&here, len), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&here, &len), 0);
    if (listens)
        CHECK_EQ(listen(fd, 8), 0);
    address.host = "127.0.0.1";
    address.port = ntohs(here.sin_port);
    return fd;
}

static enum hf_status ping(uint64_t deadline_ns)
{
    struct hf_bytes word = hf_bytes_text("PING");
    struct hf_bytes reply;

    return client_call(&client, 1, &word, deadline_ns, &reply);
}

TEST(nobody_listens)
{
    int fd = bind_port(false);
    char expected[200];

    CHECK_EQ(client_open(&client, &address, LONG_NS, &target), HF_IO);
    snprintf(expected, sizeof expected,
             "127.0.0.1:%d: connection refused: is the server running? "
             "(holdfast serve)",
             (int)address.port);
    CHECK_REASON(HF_IO, expected);
    client_close(&client); /* which does not forget why */
    CHECK_REASON(HF_IO, expected);
    close(fd);
}

/* A name of two addresses, of which one listens at most. */
TEST(a_name_whose_first_address_is_refused_is_tried_further)
{
    int fd = bind_port(true);

    address.host = "localhost";
    CHECK_EQ(client_open(&client, &address, LONG_NS, &target), HF_OK);
    CHECK(client.reached);
    client_close(&client);
    close(fd);
}

TEST(a_name_that_stands_for_nothing)
{
    address.host = "no host has blanks";
    address.port = 1;
    CHECK_EQ(client_open(&client, &address, LONG_NS, &target), HF_NOTFOUND);
    CHECK(strncmp(explain(HF_NOTFOUND),
                  "cannot look up the host 'no host has blanks': ", 46) == 0);
    CHECK(strlen(explain(HF_NOTFOUND)) > 46);
}

TEST(a_server_that_does_not_answer_in_time)
{
    int fd = bind_port(true);

    CHECK_EQ(client_open(&client, &address, LONG_NS, &target), HF_OK);
    CHECK_EQ(ping(client_now_ns()), HF_TIMEOUT);
    CHECK(strstr(explain(HF_TIMEOUT),
                 ": timed out: connected, but no answer came") != NULL);
    client_close(&client);
    close(fd);
}

TEST(a_server_that_ends_the_connection)
{
    int fd = bind_port(true);
    char dropped[64];

    CHECK_EQ(client_open(&client, &address, LONG_NS, &target), HF_OK);
    int peer = accept(fd, NULL, NULL);
    CHECK(peer >= 0);
    CHECK_EQ(shutdown(peer, SHUT_WR), 0);
    CHECK_EQ(ping(LONG_NS), HF_CLOSED);
    CHECK(strstr(explain(HF_CLOSED),
                 ": the server closed the connection before it answered") !=
          NULL);
    CHECK(recv(peer, dropped, sizeof dropped, 0) > 0);
    /* and by a reset */
    struct linger now = {.l_onoff = 1};
    CHECK_EQ(setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(peer);
    CHECK_EQ(ping(LONG_NS), HF_IO);
    CHECK(strstr(explain(HF_IO), ": the connection was lost: ") != NULL);
    client_close(&client);
    close(fd);
}

TEST(something_that_does_not_speak_the_protocol)
{
    int fd = bind_port(true);

    CHECK_EQ(client_open(&client, &address, LONG_NS, &target), HF_OK);
    int peer = accept(fd, NULL, NULL);
    CHECK_EQ(send(peer, "HTTP/1.1 400 Bad Request\r\n", 26, 0), 26);
    CHECK_EQ(ping(LONG_NS), HF_INVALID);
    CHECK(strstr(explain(HF_INVALID), ": the answer is not understood") !=
          NULL);
    client_close(&client);
    close(peer);
    close(fd);
}

TEST(sentences_for_what_a_test_cannot_bring_about)
{
    address.host = "::1";
    address.port = 7420;
    client = (struct client){.fd = -1};
    CHECK_REASON(HF_TIMEOUT, "[::1]:7420: timed out: nobody took the "
                             "connection within 5 s");
    client.error = EHOSTUNREACH;
    CHECK_REASON(HF_IO, "[::1]:7420: cannot connect: No route to host");
    client = (struct client){.fd = -1, .reached = true};
    CHECK_REASON(HF_IO, "[::1]:7420: the connection was lost");
    CHECK_REASON(HF_NOMEM, "[::1]:7420: out of memory");
}

/* However long the server was asked to wait, the answer has its time still. */
TEST(a_call_waits_longer_than_the_server_does)
{
    struct call call = {0};

    CHECK_EQ(call_patience_ns(&call), CLIENT_REPLY_MS * MS);
    call.wait_ms = 9000;
    CHECK_EQ(call_patience_ns(&call), (9000 + CLIENT_REPLY_MS) * MS);
    call.wait_ms = 4000000000000; /* the longest wait that LIMIT takes */
    CHECK(call_patience_ns(&call) > 4000000000000 * MS);
    CHECK(call_patience_ns(&call) + client_now_ns() > call_patience_ns(&call));
}
