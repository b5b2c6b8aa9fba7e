/* image.h - the whole state as bytes: snapshots, digests, and a proof.
 *
 * An image is a sequence of pieces, each a run of whole entries:
 *
 *   entry   1 byte kind, then its numbers (8 bytes each) and texts (2 bytes
 *           length and the bytes), in the order of the engine's structures
 *
 * The first entry of the first piece is the head (format, sequence, time,
 * bounds). Waiters follow their lock in the order of the queue; ended
 * reservations come in the order in which they ended, and so do the requests
 * that succeeded, and those that were refused.
 * Little endian.
 */
#ifndef HOLD_IMAGE_H
#define HOLD_IMAGE_H

#include "hold/engine.h"

/* Writes the state piece by piece, each of at most HOLD_PIECE_MAX bytes. */
#define HOLD_PIECE_MAX (256u * 1024)
typedef enum hf_status hold_sink(void *context, const void *data, size_t len);
enum hf_status hold_save(struct hold_engine *engine, hold_sink *sink,
                         void *context);

/* Reads the next piece into an engine that was new before the first one.
 * HF_CORRUPT, HF_NOMEM: the engine is of no further use. */
enum hf_status hold_load(struct hold_engine *engine, struct hf_bytes piece);

/* Every grant, in no order, also one that is over and was not swept. A status
 * other than HF_OK ends the walk and is returned. */
struct hold_held {
    struct hf_bytes name;
    uint64_t token;
    uint64_t expires_us;
    uint64_t count; /* of a set: with its first name, with the others 1 */
    uint8_t mode;   /* 0 exclusive, 1 shared, 2 counting */
};
typedef enum hf_status hold_visit(void *context, const struct hold_held *held);
enum hf_status hold_each_lock(const struct hold_engine *engine,
                              hold_visit *visit, void *context);

/* Equal states have equal digests, however they were reached. */
uint64_t hold_digest(struct hold_engine *engine);

/* Checks every invariant over the whole state. HF_CORRUPT: `error` (256 bytes)
 * names the first that is broken and where. */
enum hf_status hold_check(const struct hold_engine *engine, char *error);

#endif
