/* inspect.h - every open object of this process, and how it is doing.
 *
 * Whatever the library opens is listed from open to close: its kind, its name,
 * and the few figures that tell a healthy object from a sick one.
 *
 *   kind  name    depth capacity oldest_ms rejected wait_p99_us
 *   ring  orders     17     1024         -        3           -
 *
 * Threads: any call from any thread, also while objects open and close. Rows
 *          are collected under a lock and handed out after it.
 * Memory:  the text is written into the caller's buffer.
 *
 * Example:
 *
 *   char text[4096];
 *   size_t len = hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text);
 *   assert(len > 0 && len < sizeof text);
 *   printf("%s", text);
 */
#ifndef HOLDFAST_INSPECT_H
#define HOLDFAST_INSPECT_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_NAME_BYTES                                      \
    32 /* of an object, with the final zero; longer is cut \
        */

/* A figure that this kind of object does not have. */
#define HF_INSPECT_NONE UINT64_MAX

struct hf_inspect_row {
    char kind[HF_NAME_BYTES];
    char name[HF_NAME_BYTES]; /* empty if it was opened without one */
    uint64_t depth;           /* items inside */
    uint64_t capacity;        /* HF_INSPECT_NONE: without bound */
    uint64_t oldest_ns;       /* age of the oldest item */
    uint64_t rejected;        /* refused because full or closed */
    uint64_t wait_p99_ns;     /* 99 of 100 waits were shorter */
};

enum hf_inspect_form {
    HF_INSPECT_TEXT,       /* a table for people */
    HF_INSPECT_PROMETHEUS, /* text exposition format */
};

/* Calls `visit` for every open object, oldest first, outside any lock.
 * HF_INVALID if visit is NULL; HF_NOMEM: nobody was visited. */
enum hf_status hf_inspect(void (*visit)(void *context,
                                        const struct hf_inspect_row *row),
                          void *context);

/* Writes the table into `out`, cut at `cap` and always terminated if cap > 0.
 * Returns the length it has uncut, or 0 without memory. */
size_t hf_inspect_text(enum hf_inspect_form form, char *out, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
