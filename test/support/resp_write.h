/* resp_write.h - the writers of the codecs one by one, into a buffer. */
#ifndef SUPPORT_RESP_WRITE_H
#define SUPPORT_RESP_WRITE_H

#include "resp/reply.h"

#define RESP_WRITER(name, parameters, version, call)                   \
    static inline enum hf_status name parameters                       \
    {                                                                  \
        struct reply reply = {.out = out,                              \
                              .codec = (version) == 3 ? &resp3_codec   \
                                                      : &resp2_codec}; \
        reply.codec->call;                                             \
        return reply.failed ? HF_NOMEM : HF_OK;                        \
    }

RESP_WRITER(resp_simple, (struct hf_buf * out, const char *text), 2,
            simple(&reply, hf_bytes_text(text)))
RESP_WRITER(resp_error, (struct hf_buf * out, struct hf_bytes text), 2,
            error(&reply, hf_bytes("", 0), text))
RESP_WRITER(resp_number, (struct hf_buf * out, int64_t value), 2,
            number(&reply, value))
RESP_WRITER(resp_bulk, (struct hf_buf * out, struct hf_bytes bytes), 2,
            text(&reply, bytes))
RESP_WRITER(resp_array, (struct hf_buf * out, size_t count), 2,
            list(&reply, count))
RESP_WRITER(resp_map, (struct hf_buf * out, int version, size_t pairs), version,
            map(&reply, pairs))
RESP_WRITER(resp_null, (struct hf_buf * out, int version), version,
            null(&reply))

#endif
