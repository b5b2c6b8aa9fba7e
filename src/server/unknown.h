/* unknown.h - commands of Redis that are not known here: they are told why.
 *
 * Threads: any.
 */
#ifndef SERVER_UNKNOWN_H
#define SERVER_UNKNOWN_H

#include "base/bytes.h"

enum unknown {
    UNKNOWN_ALL,   /* nobody's command */
    UNKNOWN_OTHER, /* what it works on is not kept here */
    UNKNOWN_WATCH,
};
enum unknown unknown_is(struct hf_bytes name);

#endif
