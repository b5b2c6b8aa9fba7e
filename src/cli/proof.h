/* proof.h - checks a journal's records while they are replayed.
 *
 *   record -> engine -> events -> does each follow from those before it?
 *
 * The checks rest on what the engine tells (events and answers to questions),
 * and keep a book of their own on who holds what:
 *
 *   sequence      every event has a higher number than the one before
 *   locks         a lock is granted only when its last hold was given back or
 *                 its time was over; re-entered, renewed and released only
 *                 while held
 *   products      the numbers of each, re-derived from the events: after
 *                 every change available + reserved + sold = total, nothing
 *                 negative, and the engine has the same (hold/book.h)
 *   reservations  made once, of units that are free, ended once, with those
 *                 units, extended only while pending
 *   feed          the files of events have the same events, byte by byte, in
 *                 the same order, but for what they say they have not; what is
 *                 older than the records cannot be compared
 *
 * and at the end the engine's own invariants hold over the whole state.
 */
#ifndef CLI_PROOF_H
#define CLI_PROOF_H

#include "base/index.h"
#include "feed/scan.h"
#include "hold/book.h"

#define PROOF_ERROR_MAX 512

/* What was seen; valid also after the first thing that is wrong. */
struct proof_result {
    uint64_t records;
    uint64_t events[HOLD_EVENT_COUNT];
    uint64_t event_count;
    uint64_t product_checks;
    uint64_t first_seq; /* where the records start; what is below is in the
                           snapshot */
    uint64_t last_seq;
    uint64_t digest;
    uint64_t feed_files;
    uint64_t feed_same;        /* events in them that the records bring about */
    uint64_t feed_before;      /* that are older */
    uint64_t feed_beyond;      /* that are newer: the next start drops them */
    uint64_t feed_missing;     /* events that are not in them, as they say */
    struct hold_counts counts; /* at the end */
    char wrong[PROOF_ERROR_MAX]; /* "" if nothing is */
};

struct proof;

/* NULL without memory. `result` must outlive the proof. */
struct proof *proof_new(struct hf_hash_seed seed, struct proof_result *result);
/* These have the form of a journal's machine: `proof` is a struct proof. */
void proof_free(void *proof);

/* HF_CORRUPT: `result->wrong` tells what; it is "" if the bytes are no record
 * or no piece of a snapshot at all. */
enum hf_status proof_load(void *proof, struct hf_bytes piece);
enum hf_status proof_apply(void *proof, struct hf_bytes record);
/* The files of events are compared, too, from here on: before the first record.
 * The proof closes the scan. */
void proof_compare(struct proof *proof, struct feed_scan *scan);
/* Has every event told, in order, from here on: before the first record. Those
 * that the files of events have from before the records come first, without a
 * book, and have not been proved. */
typedef void proof_watch_fn(void *context, const struct hold_event *event,
                            uint64_t now_us, const struct hold_book *book);
void proof_watch(struct proof *proof, proof_watch_fn *watch, void *context);
/* After the last record; `unclean`: the end was not that of a clean stop. */
enum hf_status proof_finish(struct proof *proof, bool unclean);

#endif
