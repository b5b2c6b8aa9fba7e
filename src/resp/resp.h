/* resp.h - the Redis protocol: bytes to requests, replies to bytes.
 *
 *   request   *2\r\n$4\r\nLOCK\r\n$1\r\na\r\n    or inline:  LOCK a\r\n
 *   reply     +OK\r\n  -ERR text\r\n  :1\r\n  $1\r\na\r\n  *n  %n  _  #t
 *
 * Replies are written by the codecs of resp/reply.h.
 *
 * Decoding copies nothing: the arguments point into the caller's bytes. It is
 * a pure function of those bytes, so that a request cut anywhere is simply
 * decoded again when more has arrived.
 *
 * Threads: none of it is shared; one thread at a time.
 */
#ifndef RESP_RESP_H
#define RESP_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "holdfast/status.h"

/* Limits of one request; beyond them the framing is given up. */
#define RESP_ARGS_MAX    1024
#define RESP_BULK_MAX    (64u * 1024)
#define RESP_REQUEST_MAX (256u * 1024)
#define RESP_INLINE_MAX  (64u * 1024)

struct resp_request {
    size_t count; /* 0: an empty line, to be ignored */
    struct hf_bytes args[RESP_ARGS_MAX];
    size_t used;       /* bytes of input that the request took */
    const char *error; /* on HF_INVALID: what is wrong, for the client */
};

/* Decodes one request from the start of `input`. Inline quotes ("a b", 'a',
 * \n \r \t \b \a \\ \" \xHH) are resolved in place, which is why the input is
 * not const. HF_OK; HF_MORE: the request is not whole yet; HF_INVALID: framing
 * is lost, reply `error` and close. */
enum hf_status resp_decode(char *input, size_t len, struct resp_request *out);

/* A request as an array of bulks, for clients. */
enum hf_status resp_encode(struct hf_buf *out, size_t count,
                           const struct hf_bytes *args);

/* One value of a reply, for clients. */
enum resp_kind {
    RESP_SIMPLE,
    RESP_ERROR,
    RESP_NUMBER,
    RESP_BULK,
    RESP_ARRAY, /* `number` values follow */
    RESP_MAP,   /* `number` pairs follow */
    RESP_NULL,
    RESP_BOOL, /* number is 0 or 1 */
    RESP_PUSH, /* `number` values follow; no reply to anything */
};

struct resp_value {
    enum resp_kind kind;
    int64_t number;       /* of a number, bool, array or map */
    struct hf_bytes text; /* of a simple, error or bulk */
};

/* Reads the value at `*at` and moves `*at` behind it (behind the header only,
 * for an array or a map). HF_MORE: not whole; HF_INVALID: not RESP. */
enum hf_status resp_read(struct hf_bytes input, size_t *at,
                         struct resp_value *out);
/* Moves `*at` behind one whole reply with all that it contains. */
enum hf_status resp_skip(struct hf_bytes input, size_t *at);
/* In a flat field-value array or a map that is the reply at the start of
 * `input`: where the value of `field` is. HF_NOTFOUND. */
enum hf_status resp_find(struct hf_bytes input, const char *field, size_t *at);
/* The same, and reads it. */
enum hf_status resp_field(struct hf_bytes input, const char *field,
                          struct resp_value *out);
/* The same of a number; false: there is none. */
bool resp_field_number(struct hf_bytes input, const char *field, int64_t *out);

#endif
