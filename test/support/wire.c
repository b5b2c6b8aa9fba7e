/* wire.c - a Redis client for tests. */
#include "support/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "holdfast/clock.h"
#include "resp/resp.h"
#include "support/test.h"

#define CHUNK_BYTES 65536
#define WORDS_MAX   600

uint64_t test_now_ms(void)
{
    return hf_clock_now_ns(hf_clock_system()) / 1000000;
}

enum hf_status test_wire_open(struct test_wire *wire, uint16_t port)
{
    return test_wire_open_from(wire, port, INADDR_LOOPBACK);
}

enum hf_status test_wire_open_from(struct test_wire *wire, uint16_t port,
                                   uint32_t host)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    int one = 1;

    *wire = (struct test_wire){.fd = -1};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    wire->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (wire->fd < 0)
        return HF_IO;
    from.sin_addr.s_addr = htonl(host);
    if (bind(wire->fd, (struct sockaddr *)&from, sizeof from) != 0 ||
        connect(wire->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        fcntl(wire->fd, F_SETFL, O_NONBLOCK) != 0) {
        close(wire->fd);
        wire->fd = -1;
        return HF_IO;
    }
    (void)setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return HF_OK;
}

void test_wire_close(struct test_wire *wire)
{
    if (wire->fd > 0)
        close(wire->fd);
    hf_buf_destroy(&wire->out);
    hf_buf_destroy(&wire->in);
    *wire = (struct test_wire){.fd = -1};
}

/* A test without memory has nothing left to test. */
static void must(enum hf_status status)
{
    if (status != HF_OK)
        abort();
}

void test_wire_add_args(struct test_wire *wire, size_t count,
                        const struct hf_bytes *args)
{
    must(resp_encode(&wire->out, count, args));
}

void test_wire_add_raw(struct test_wire *wire, const void *data, size_t len)
{
    must(hf_buf_append(&wire->out, data, len));
}

static void add_text(struct test_wire *wire, const char *format, va_list args)
{
    struct hf_bytes words[WORDS_MAX];
    char text[16384];
    size_t count = 0;
    char *rest = text;
    int len = vsnprintf(text, sizeof text, format, args);

    if (len < 0 || (size_t)len >= sizeof text)
        abort();
    for (char *word; (word = strsep(&rest, " ")) != NULL; count++) {
        if (count == WORDS_MAX)
            abort();
        words[count] = hf_bytes_text(word);
    }
    test_wire_add_args(wire, count, words);
}

void test_wire_add(struct test_wire *wire, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_text(wire, format, args);
    va_end(args);
}

/* Takes in what has arrived. HF_EMPTY: nothing has. */
static enum hf_status take_in(struct test_wire *wire)
{
    if (wire->at > 0) {
        hf_buf_consume(&wire->in, wire->at);
        wire->at = 0;
    }
    must(hf_buf_reserve(&wire->in, CHUNK_BYTES));
    ssize_t got =
        recv(wire->fd, wire->in.data + wire->in.len, CHUNK_BYTES, MSG_DONTWAIT);
    if (got > 0) {
        wire->in.len += (size_t)got;
        return HF_OK;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return HF_EMPTY;
    return HF_CLOSED;
}

static enum hf_status wait_for(struct test_wire *wire, short events,
                               uint64_t end_ms)
{
    struct pollfd one = {.fd = wire->fd, .events = events};

    for (;;) {
        uint64_t now = test_now_ms();
        if (now >= end_ms)
            return HF_TIMEOUT;
        if (poll(&one, 1, (int)(end_ms - now)) > 0)
            return HF_OK;
    }
}

enum hf_status test_wire_send(struct test_wire *wire)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
    size_t sent = 0;
    enum hf_status status = HF_OK;

    if (wire->fd < 0)
        return HF_CLOSED;
    while (status == HF_OK && sent < wire->out.len) {
        ssize_t got = send(wire->fd, wire->out.data + sent,
                           wire->out.len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (got > 0) {
            sent += (size_t)got;
            continue;
        }
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            status = HF_CLOSED;
            break;
        }
        status = wait_for(wire, POLLIN | POLLOUT, end_ms);
        if (status == HF_OK && take_in(wire) == HF_CLOSED)
            status = HF_CLOSED;
    }
    wire->out.len = 0;
    return status;
}

enum hf_status test_wire_read_within(struct test_wire *wire, int64_t limit_ms,
                                     struct hf_bytes *reply)
{
    uint64_t end_ms = test_now_ms() + (uint64_t)limit_ms;

    if (wire->fd < 0)
        return HF_CLOSED;
    for (;;) {
        struct hf_bytes rest =
            hf_bytes(wire->in.data + wire->at, wire->in.len - wire->at);
        size_t used = 0;
        enum hf_status status =
            rest.len == 0 ? HF_MORE : resp_skip(rest, &used);
        if (status == HF_OK) {
            *reply = hf_bytes(rest.data, used);
            wire->at += used;
            return HF_OK;
        }
        if (status != HF_MORE)
            return status;
        status = take_in(wire);
        if (status == HF_EMPTY)
            status = wait_for(wire, POLLIN, end_ms);
        if (status != HF_OK)
            return status;
    }
}

enum hf_status test_wire_read(struct test_wire *wire, struct hf_bytes *reply)
{
    return test_wire_read_within(wire, TEST_WIRE_DEADLINE_MS, reply);
}

bool test_wire_ends(struct test_wire *wire)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    for (;;) {
        wire->at = wire->in.len;
        enum hf_status status = take_in(wire);
        if (status == HF_CLOSED)
            return true;
        if (status == HF_EMPTY && wait_for(wire, POLLIN, end_ms) != HF_OK)
            return false;
    }
}

struct hf_bytes test_ask(struct test_wire *wire, const char *format, ...)
{
    struct hf_bytes reply;
    va_list args;

    va_start(args, format);
    add_text(wire, format, args);
    va_end(args);
    enum hf_status status = test_wire_send(wire);
    if (status == HF_OK)
        status = test_wire_read(wire, &reply);
    if (status != HF_OK)
        test_fail(__FILE__, __LINE__, "no reply to \"%s\": %s", format,
                  hf_status_text(status));
    return reply;
}

struct hf_bytes test_answer(struct test_wire *wire, const char *file, int line)
{
    struct hf_bytes reply;
    enum hf_status status = test_wire_read(wire, &reply);

    if (status != HF_OK)
        test_fail(file, line, "no reply: %s", hf_status_text(status));
    return reply;
}

bool test_is(struct hf_bytes reply, const char *raw)
{
    return hf_bytes_equal(reply, hf_bytes_text(raw));
}

bool test_is_error(struct hf_bytes reply, const char *code)
{
    size_t len = strlen(code);

    return reply.len > len + 1 && reply.data[0] == '-' &&
           !memcmp(reply.data + 1, code, len) &&
           (reply.data[1 + len] == ' ' || reply.data[1 + len] == '\r');
}

int64_t test_number(struct hf_bytes reply, const char *field)
{
    struct resp_value value;

    if (resp_field(reply, field, &value) != HF_OK || value.kind != RESP_NUMBER)
        return TEST_NO_NUMBER;
    return value.number;
}

struct hf_bytes test_bulk(struct hf_bytes reply)
{
    const char *start = memchr(reply.data, '\n', reply.len);

    CHECK(reply.len > 5 && reply.data[0] == '$' && start != NULL);
    start++;
    return hf_bytes(start, (size_t)(reply.data + reply.len - 2 - start));
}

double test_info_real(struct test_wire *wire, const char *name)
{
    struct hf_bytes info = test_ask(wire, "INFO");
    char line[80];
    int len = snprintf(line, sizeof line, "\n%s:", name);
    const char *at = memmem(info.data, info.len, line, (size_t)len);

    if (at == NULL)
        test_fail(__FILE__, __LINE__, "INFO has no %s", name);
    return strtod(at + len, NULL);
}

int64_t test_info(struct test_wire *wire, const char *name)
{
    return (int64_t)test_info_real(wire, name);
}

struct hf_bytes test_text(struct hf_bytes reply, const char *field)
{
    struct resp_value value;

    if (resp_field(reply, field, &value) != HF_OK || value.text.len == 0)
        return hf_bytes("", 0);
    return value.text;
}

/* Moves `*at` behind the header; how many values follow it, one by one. */
static size_t open_list(struct hf_bytes list, size_t *at)
{
    struct resp_value head;

    if (list.len == 0 || resp_read(list, at, &head) != HF_OK)
        return 0;
    if (head.kind == RESP_ARRAY || head.kind == RESP_PUSH)
        return (size_t)head.number;
    return head.kind == RESP_MAP ? (size_t)head.number * 2 : 0;
}

struct hf_bytes test_part(struct hf_bytes reply, const char *field)
{
    size_t at = 0;
    size_t count = open_list(reply, &at);

    for (size_t i = 0; i + 1 < count; i += 2) {
        struct resp_value key;
        if (resp_read(reply, &at, &key) != HF_OK)
            break;
        size_t start = at;
        if (resp_skip(reply, &at) != HF_OK)
            break;
        if (hf_bytes_equal(key.text, hf_bytes_text(field)))
            return hf_bytes(reply.data + start, at - start);
    }
    return hf_bytes("", 0);
}

size_t test_length(struct hf_bytes array)
{
    size_t at = 0;

    return open_list(array, &at);
}

struct hf_bytes test_element(struct hf_bytes array, size_t index)
{
    size_t at = 0;
    size_t count = open_list(array, &at);

    for (size_t i = 0; i < count; i++) {
        size_t start = at;
        if (resp_skip(array, &at) != HF_OK)
            break;
        if (i == index)
            return hf_bytes(array.data + start, at - start);
    }
    return hf_bytes("", 0);
}
