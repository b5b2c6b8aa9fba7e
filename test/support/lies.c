/* lies.c - a reply changed so that it is not true. */
#include "support/lies.h"

#include <inttypes.h>
#include <stdio.h>

#include "resp/resp.h"
#include "support/test.h"

static bool change_number(struct hf_buf *reply, const char *field, int64_t by)
{
    struct resp_value value;
    char text[64];

    if (resp_field(hf_buf_bytes(reply), field, &value) != HF_OK ||
        value.kind != RESP_NUMBER || value.number + by < 0)
        return false;
    int old_len = snprintf(text, sizeof text, "%s\r\n:%" PRId64 "\r\n", field,
                           value.number);
    char *at = memmem(reply->data, reply->len, text, (size_t)old_len);
    CHECK(at != NULL);
    size_t start = (size_t)(at - reply->data);
    size_t rest = reply->len - start - (size_t)old_len;
    int len = snprintf(text, sizeof text, "%s\r\n:%" PRId64 "\r\n", field,
                       value.number + by);
    CHECK_EQ(hf_buf_reserve(reply, 32), HF_OK);
    memmove(reply->data + start + len, reply->data + start + old_len, rest);
    memcpy(reply->data + start, text, (size_t)len);
    reply->len = start + (size_t)len + rest;
    return true;
}

static bool say_instead(struct hf_buf *reply, const char *text)
{
    reply->len = 0;
    CHECK_EQ(hf_buf_format(reply, "%s\r\n", text), HF_OK);
    return true;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool test_lie(enum lie lie, const char *asked, struct hf_buf *reply)
{
    bool fine = reply->data[0] != '-';
    char *status;

    switch (lie) {
    case LIE_TOKEN:
        return starts(asked, "LOCK ") && fine &&
               change_number(reply, "token", 1);
    case LIE_SAFE:
        return (starts(asked, "LOCK ") || starts(asked, "RENEW ")) && fine &&
               change_number(reply, "safe_ms", 100000);
    case LIE_COUNT:
        return starts(asked, "LOCK ") && fine &&
               change_number(reply, "count", 1);
    case LIE_FREE:
        return starts(asked, "LOCKINFO") && fine &&
               say_instead(reply, "-NOTFOUND nobody holds the lock");
    case LIE_GRANT:
        return starts(asked, "LOCK ") && reply->data[1] == 'B' &&
               say_instead(reply, "*8\r\n$5\r\ntoken\r\n:99999\r\n$7\r\n"
                                  "safe_ms\r\n:500\r\n$5\r\ncount\r\n:1\r\n"
                                  "$9\r\nwaited_ms\r\n:0");
    case LIE_RESERVED:
        return starts(asked, "STOCK GET") && fine &&
               change_number(reply, "reserved", 1) &&
               change_number(reply, "available", -1);
    case LIE_SOLD:
        return starts(asked, "STOCK GET") && fine &&
               change_number(reply, "sold", 1) &&
               change_number(reply, "available", -1);
    case LIE_TOTAL:
        return starts(asked, "STOCK GET") && fine &&
               change_number(reply, "total", 1) &&
               change_number(reply, "available", 1);
    case LIE_STATUS:
        status = memmem(reply->data, reply->len, "$9\r\nCONFIRMED", 13);
        if (!starts(asked, "RESERVATION ") || status == NULL)
            return false;
        memcpy(status + 4, "CANCELLED", 9);
        return true;
    case LIE_LOST:
        return starts(asked, "RENEW ") && fine &&
               say_instead(reply, "-LOST lock is no longer held");
    default:
        return false;
    }
}
