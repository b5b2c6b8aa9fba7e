/* lies.h - a reply changed so that it is not true. */
#ifndef TEST_SUPPORT_LIES_H
#define TEST_SUPPORT_LIES_H

#include <stdbool.h>

#include "base/bytes.h"

enum lie {
    LIE_NONE,
    LIE_TOKEN, /* one more than was given */
    LIE_SAFE,
    LIE_COUNT,
    LIE_FREE,  /* though it is held */
    LIE_GRANT, /* to one who was refused */
    LIE_RESERVED,
    LIE_SOLD,
    LIE_TOTAL,
    LIE_STATUS,
    LIE_LOST,
    LIES,
};

/* Changes the reply to what was asked; false: this lie does not fit it. */
bool test_lie(enum lie lie, const char *asked, struct hf_buf *reply);

#endif
