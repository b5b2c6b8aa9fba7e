/* reply.h - one form for all replies; the codec of a protocol writes it.
 *
 *   handler --> reply_put_map(2) key number key text --> codec --> bytes
 *
 * A handler puts values one after the other and does not know the protocol.
 * A list of n is followed by n values, a map of n by n times a key and a
 * value; counts come first, so nothing is built up and nothing is copied.
 * RESP2 and RESP3 are two codecs; one that has to close what it opened, as
 * JSON does, can count the values itself.
 *
 * A put that finds no memory sets `failed` and the rest of the reply is of no
 * use: whoever sends the reply looks once, at the end.
 *
 * Threads: none of it is shared; one thread at a time.
 */
#ifndef RESP_REPLY_H
#define RESP_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct reply_codec;

struct reply {
    struct hf_buf *out;
    const struct reply_codec *codec;
    bool failed;
};

/* The key of a field that is told often, made once. */
#define REPLY_FIELD_MAX 25u
struct reply_field {
    char wire[32]; /* as RESP has it, padded */
    size_t len;    /* without the padding */
    struct hf_bytes name;
    char unused[8]; /* 64 bytes, so that one of many is found by a shift */
};

struct reply_codec {
    int version; /* of RESP, as HELLO counts them */
    void (*number)(struct reply *reply, int64_t number);
    void (*text)(struct reply *reply, struct hf_bytes text);
    void (*simple)(struct reply *reply, struct hf_bytes text);
    void (*null)(struct reply *reply);
    void (*list)(struct reply *reply, size_t count);
    void (*map)(struct reply *reply, size_t pairs);
    void (*key)(struct reply *reply, struct hf_bytes name);
    void (*field)(struct reply *reply, const struct reply_field *field);
    void (*field_number)(struct reply *reply, const struct reply_field *field,
                         int64_t number);
    /* An error is one line: control bytes become spaces. */
    void (*error)(struct reply *reply, struct hf_bytes code,
                  struct hf_bytes sentence);
    /* What nobody asked for, a list of `count`. NULL: the protocol has none. */
    void (*push)(struct reply *reply, size_t count);
};

extern const struct reply_codec resp2_codec;
extern const struct reply_codec resp3_codec;

/* `name` has REPLY_FIELD_MAX bytes at most and stays. */
void reply_field_make(struct reply_field *field, const char *name);

static inline void reply_put_number(struct reply *reply, int64_t number)
{
    reply->codec->number(reply, number);
}

static inline void reply_put_bytes(struct reply *reply, struct hf_bytes bytes)
{
    reply->codec->text(reply, bytes);
}

static inline void reply_put_text(struct reply *reply, const char *text)
{
    reply->codec->text(reply, hf_bytes_text(text));
}

/* A short word of the protocol itself: OK, PONG. */
static inline void reply_put_simple(struct reply *reply, const char *word)
{
    reply->codec->simple(reply, hf_bytes_text(word));
}

static inline void reply_put_null(struct reply *reply)
{
    reply->codec->null(reply);
}

static inline void reply_put_list(struct reply *reply, size_t count)
{
    reply->codec->list(reply, count);
}

static inline void reply_put_map(struct reply *reply, size_t pairs)
{
    reply->codec->map(reply, pairs);
}

static inline void reply_put_key(struct reply *reply, const char *name)
{
    reply->codec->key(reply, hf_bytes_text(name));
}

static inline void reply_pair_text(struct reply *reply, const char *name,
                                   const char *text)
{
    reply_put_key(reply, name);
    reply_put_text(reply, text);
}

static inline void reply_pair_number(struct reply *reply, const char *name,
                                     int64_t number)
{
    reply_put_key(reply, name);
    reply_put_number(reply, number);
}

#endif
