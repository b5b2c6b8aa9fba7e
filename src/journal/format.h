/* format.h - what the files hold: bytes to meaning and back. Pure.
 *
 * All numbers are little endian; offsets and lengths are in bytes. A checksum
 * is XXH3-64 with the seed that is named beside it.
 *
 *   segment    one header block, then batches; each starts at a block
 *   +--------+---------+------------------+-----------------------------+
 *   | header | batch 7 | batch 8          | zeros, or what an earlier   |
 *   | block  |         |                  | life of the file left there |
 *   +--------+---------+------------------+-----------------------------+
 *   0        4096      8192  ...
 *
 *   header block                      batch
 *    0  magic "HFSEGM01"               0  magic "HFBATC01"
 *    8  checksum of 16..4096, seed 0   8  checksum of 16..40+length,
 *   16  u32 version 2                     seed = the segment's salt
 *   20  u32 block size 4096           16  u64 number
 *   24  u64 number of first batch     24  u64 synced
 *   32  u64 synced                    32  u32 length of the records
 *   40  u64 salt                      36  u32 count of records
 *   48  u64 size of the file          40  records: u32 length, bytes
 *   56  u64 first batch of the            zeros up to the next block
 *       segment before it, 0: none
 *   64  zeros
 *
 * `synced` is the highest batch number that was known to be on disk for good
 * when these bytes were written. `salt` is random for every life of a file, so
 * that batches of an earlier life, or bytes that a client sent, can never pass
 * for batches of this one. Version 1 has zeros from 48 on.
 *
 *   snapshot   header, pieces, end
 *    0  magic "HFSNAP01"               piece: u32 length, u32 0,
 *    8  checksum of 16..32, seed 0            checksum of the bytes, seed =
 *   16  u32 version 1, u32 0                  index of the piece, bytes
 *   24  u64 last batch contained       end:   u32 0xffffffff, u32 0,
 *                                             checksum of the next 16, seed 0,
 *                                             u64 pieces, u64 last batch
 *
 *   manifest   two blocks, written in turn; the higher serial counts
 *    0  magic "HFMANI01"              32  u64 segment that must be there
 *    8  checksum of 16..4096, seed 0  40  u64 snapshot that must be there
 *   16  u32 version 1                 48  u64 synced
 *   20  u32 1: clean end, 0: none     56  u64 note of the owner
 *   24  u64 serial                    64  zeros
 *
 * Threads: nothing here is shared.
 */
#ifndef JOURNAL_FORMAT_H
#define JOURNAL_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "holdfast/status.h"

#define JOURNAL_BLOCK        4096u
#define BATCH_HEADER_BYTES   40u
#define BATCH_RECORD_BYTES   4u /* in front of every record */
#define SNAPSHOT_HEAD_BYTES  32u
#define SNAPSHOT_FRAME_BYTES 16u
#define SNAPSHOT_END_BYTES   32u
#define SNAPSHOT_PIECE_MAX   (UINT32_MAX - 1)

struct segment_header {
    uint64_t first;    /* number of the first batch */
    uint64_t synced;   /* highest batch known durable when it was made */
    uint64_t salt;     /* seeds the checksums of its batches */
    uint64_t bytes;    /* size of the file; 0: version 1, which did not say */
    uint64_t previous; /* first batch of the segment before it; 0: none */
};

/* Writes one whole block; of version 1 if `bytes` is 0. */
void segment_header_encode(const struct segment_header *header, char *block);
/* HF_CORRUPT unless `block`, of JOURNAL_BLOCK bytes, is a segment's header. */
enum hf_status segment_header_decode(const char *block,
                                     struct segment_header *out);

struct batch {
    uint64_t number;
    uint64_t synced;
    uint32_t count;          /* records */
    struct hf_bytes records; /* with their lengths; see batch_record() */
    size_t disk_bytes;       /* with header and padding */
};

/* Bytes on disk of a batch with `len` bytes of records (lengths included). */
size_t batch_disk_bytes(size_t len);

/* Completes a batch in place: `data` holds room for the header, then
 * `batch->records.len` bytes of records, then room for the padding. */
void batch_encode(char *data, const struct batch *batch, uint64_t salt);

/* Reads the batch at the start of `bytes`; it points into them. HF_MORE: needs
 * `out->disk_bytes` of them. HF_CORRUPT: there is no valid batch here. */
enum hf_status batch_decode(struct hf_bytes bytes, uint64_t salt,
                            struct batch *out);

/* The number in the header at the start of `block`, valid or not; 0 if there
 * is no header. `*disk_bytes` is its claim. To tell what a torn batch was. */
uint64_t batch_claim(const char *block, size_t *disk_bytes);

/* Writes a record's length in front of its bytes. */
void batch_record_encode(char *out, uint32_t len);
/* The record at `*at`, and moves on; HF_EMPTY at the end. `records` must have
 * been accepted by batch_decode() or written by this process. */
enum hf_status batch_record(struct hf_bytes records, size_t *at,
                            struct hf_bytes *record);

/* What must be in the folder. */
struct manifest_slot {
    uint64_t serial;   /* one more with every write */
    bool clean;        /* ended well: `synced` is the last batch of all */
    uint64_t segment;  /* newest segment that may hold batches; 0: none */
    uint64_t snapshot; /* newest snapshot; 0: none */
    uint64_t synced;   /* highest batch known durable */
    uint64_t note;     /* the owner's */
};

/* Writes one whole block. */
void manifest_encode(const struct manifest_slot *slot, char *block);
/* HF_CORRUPT unless `block`, of JOURNAL_BLOCK bytes, is such a slot. */
enum hf_status manifest_decode(const char *block, struct manifest_slot *out);

void snapshot_head_encode(char *out, uint64_t last);
enum hf_status snapshot_head_decode(const char *in, uint64_t *last);
/* The frame in front of a piece. */
void snapshot_frame_encode(char *out, struct hf_bytes piece, uint64_t index);
/* Length of the piece behind the frame; HF_EMPTY if it is the end mark. */
enum hf_status snapshot_frame_decode(const char *in, uint32_t *len);
bool snapshot_piece_valid(const char *frame, struct hf_bytes piece,
                          uint64_t index);
void snapshot_end_encode(char *out, uint64_t pieces, uint64_t last);
bool snapshot_end_valid(const char *in, uint64_t pieces, uint64_t last);

#endif
