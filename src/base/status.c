/* status.c - texts of the status codes, in the order of the enum. */
#include "holdfast/status.h"

static const char *const texts[HF_STATUS_COUNT] = {
    [HF_OK] = "ok",
    [HF_INVALID] = "invalid argument",
    [HF_NOMEM] = "out of memory",
    [HF_FULL] = "limit reached",
    [HF_EMPTY] = "empty",
    [HF_NOTFOUND] = "not found",
    [HF_EXISTS] = "exists already",
    [HF_TIMEOUT] = "timed out",
    [HF_CLOSED] = "closed",
    [HF_CANCELLED] = "cancelled",
    [HF_PENDING] = "pending",
    [HF_MORE] = "more input needed",
    [HF_IO] = "input/output error",
    [HF_CORRUPT] = "corrupt data",
    [HF_FAILED] = "task failed",
    [HF_DEADLOCK] = "deadlock",
    [HF_CONTENDED] = "contended",
};

const char *hf_status_text(enum hf_status status)
{
    if ((unsigned)status >= HF_STATUS_COUNT)
        return "unknown status";
    return texts[status];
}
