/* wire.h - a Redis client for tests: blocking, pipelined, deaf or rude.
 *
 *   add, add, add ... send ... read, read, read
 *
 * Commands gather in `out` until they are sent. While sending, replies are
 * taken in, so that a long pipeline cannot lock both sides up. Every wait has
 * a deadline that a slow machine does not reach.
 *
 * Threads: one wire, one thread. All but test_ask may be called outside the
 * test's own thread.
 */
#ifndef TEST_SUPPORT_WIRE_H
#define TEST_SUPPORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "holdfast/status.h"

#define TEST_WIRE_DEADLINE_MS 60000

/* Milliseconds of a clock that never goes back. */
uint64_t test_now_ms(void);

struct test_wire {
    int fd;            /* -1: not open */
    struct hf_buf out; /* commands that are not sent yet */
    struct hf_buf in;  /* what has arrived */
    size_t at;         /* bytes of `in` that were given out */
};

/* HF_IO: nobody listens there, or no descriptor is left. */
enum hf_status test_wire_open(struct test_wire *wire, uint16_t port);
/* The same from another address of this machine, such as 127.0.0.2. */
enum hf_status test_wire_open_from(struct test_wire *wire, uint16_t port,
                                   uint32_t host);
/* Also on a wire that is closed already or was never more than zeros. */
void test_wire_close(struct test_wire *wire);

/* A command of words with one space between them. */
void test_wire_add(struct test_wire *wire, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void test_wire_add_args(struct test_wire *wire, size_t count,
                        const struct hf_bytes *args);
void test_wire_add_raw(struct test_wire *wire, const void *data, size_t len);

/* HF_OK: all of `out` is with the system. HF_CLOSED, HF_TIMEOUT. */
enum hf_status test_wire_send(struct test_wire *wire);
/* The next whole reply, valid until the next call. HF_CLOSED: none comes;
 * HF_TIMEOUT; HF_INVALID: not RESP. */
enum hf_status test_wire_read(struct test_wire *wire, struct hf_bytes *reply);
/* The same with another deadline. */
enum hf_status test_wire_read_within(struct test_wire *wire, int64_t limit_ms,
                                     struct hf_bytes *reply);
/* True once the server has closed; what it still said is dropped. */
bool test_wire_ends(struct test_wire *wire);

/* Adds, sends and reads; the test fails if no reply comes. */
struct hf_bytes test_ask(struct test_wire *wire, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a command and sends all of `out`; the test fails if it cannot. */
#define TEST_SEND(wire, ...)                   \
    do {                                       \
        test_wire_add((wire), __VA_ARGS__);    \
        CHECK_EQ(test_wire_send(wire), HF_OK); \
    } while (0)
/* The next reply; the test fails if none comes. */
#define TEST_ANSWER(wire) test_answer((wire), __FILE__, __LINE__)
struct hf_bytes test_answer(struct test_wire *wire, const char *file, int line);

/* What a reply says. */
#define TEST_NO_NUMBER INT64_MIN
bool test_is(struct hf_bytes reply, const char *raw);
/* Is it the error with this code? */
bool test_is_error(struct hf_bytes reply, const char *code);
/* The field's number, or TEST_NO_NUMBER. */
int64_t test_number(struct hf_bytes reply, const char *field);
/* The text of a reply that is a bulk string; the test fails if it is none. */
struct hf_bytes test_bulk(struct hf_bytes reply);
/* Asks for INFO: the number in the line with this name, which must be there. */
double test_info_real(struct test_wire *wire, const char *name);
int64_t test_info(struct test_wire *wire, const char *name);
/* The field's text, or "". */
struct hf_bytes test_text(struct hf_bytes reply, const char *field);
/* The whole value of a field, header and all, or an empty one. */
struct hf_bytes test_part(struct hf_bytes reply, const char *field);
/* Values of an array, a push or a map; 0 of anything else. */
size_t test_length(struct hf_bytes array);
struct hf_bytes test_element(struct hf_bytes array, size_t index);

#define CHECK_ERROR(reply, code)                                          \
    do {                                                                  \
        struct hf_bytes reply_ = (reply);                                 \
        if (!test_is_error(reply_, code))                                 \
            test_fail(__FILE__, __LINE__, "expected -%s, got %.*s", code, \
                      (int)(reply_.len < 200 ? reply_.len : 200),         \
                      reply_.data);                                       \
    } while (0)

#define CHECK_REPLY(reply, raw)                                         \
    do {                                                                \
        struct hf_bytes reply_ = (reply);                               \
        if (!test_is(reply_, raw "\r\n"))                               \
            test_fail(__FILE__, __LINE__, "expected %s, got %.*s", raw, \
                      (int)(reply_.len < 200 ? reply_.len : 200),       \
                      reply_.data);                                     \
    } while (0)

/* Any reply that is no error. */
#define CHECK_DONE(reply)                                               \
    do {                                                                \
        struct hf_bytes reply_ = (reply);                               \
        if (reply_.len == 0 || reply_.data[0] == '-')                   \
            test_fail(__FILE__, __LINE__, "expected success, got %.*s", \
                      (int)(reply_.len < 200 ? reply_.len : 200),       \
                      reply_.data);                                     \
    } while (0)

#endif
