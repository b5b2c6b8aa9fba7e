/* scan.h - the files of a feed, event by event, while no server has them.
 *
 * Threads: one.
 * Memory:  what is told lasts until the next call.
 */
#ifndef FEED_SCAN_H
#define FEED_SCAN_H

#include "feed/feed.h"

struct feed_scan;

struct feed_scanned {
    struct hf_bytes event; /* as event.h has it; empty at the end */
    uint64_t seq;
    /* Between the event before and this one the files have not what is above
     * the first and up to the second of these numbers. */
    uint64_t missing_from;
    uint64_t missing_to;
    const char *file; /* where it is */
    uint64_t offset;
    bool torn; /* at the end: something else is behind the last block there */
};

/* HF_IO, HF_NOMEM: `error` says why. */
enum hf_status feed_scan_open(struct feed_scan **out, const char *dir,
                              char error[FEED_ERROR_MAX]);
/* NULL is fine. */
void feed_scan_close(struct feed_scan *scan);
size_t feed_scan_files(const struct feed_scan *scan);

/* The next event. HF_EMPTY: that was all. HF_CORRUPT: the file is damaged
 * there, and the next one does not have what is missing. */
enum hf_status feed_scan_next(struct feed_scan *scan, struct feed_scanned *out);

#endif
