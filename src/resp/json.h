/* json.h - replies and texts in JSON (RFC 8259).
 *
 * Any bytes may come in: what is not UTF-8 becomes U+FFFD, byte by byte, so
 * that the output is always valid.
 *
 *   struct json_reply json;
 *   json_reply_init(&json, &buf);
 *   reply_put_map(&json.reply, 1); ...        as with every codec
 */
#ifndef RESP_JSON_H
#define RESP_JSON_H

#include "resp/reply.h"

/* Lists and maps inside each other. */
#define JSON_DEPTH_MAX 8u

/* The codec closes what was opened: it counts what is to come. */
struct json_reply {
    struct reply reply; /* first: what the codec is called with */
    uint32_t depth;
    struct {
        size_t left; /* values */
        bool map;
        bool begun; /* one was put */
    } levels[JSON_DEPTH_MAX];
};

void json_reply_init(struct json_reply *json, struct hf_buf *out);

/* Appends `text` in quotes. HF_NOMEM: the buffer ends in part of it. */
enum hf_status json_string(struct hf_buf *out, struct hf_bytes text);

#endif
