/* format.c - encoding and decoding, as drawn in the header. */
#include "journal/format.h"

#include <assert.h>

#include <xxhash.h>

#include "base/little.h"
#include "journal/journal.h"

#define SEGMENT_MAGIC   "HFSEGM01"
#define BATCH_MAGIC     "HFBATC01"
#define SNAPSHOT_MAGIC  "HFSNAP01"
#define MANIFEST_MAGIC  "HFMANI01"
#define MAGIC_BYTES     8
#define SEGMENT_VERSION 2u
#define FORMAT_VERSION  1u
#define SNAPSHOT_ENDING UINT32_MAX

static uint64_t checksum(const char *data, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, len, seed);
}

/* What is sealed begins with a magic and the checksum of what follows. */
static void seal(char *data, size_t bytes, const char *magic, uint64_t seed)
{
    memcpy(data, magic, MAGIC_BYTES);
    hf_put_u64(data + 8, checksum(data + 16, bytes - 16, seed));
}

static bool is_sealed(const char *data, size_t bytes, const char *magic,
                      uint64_t seed)
{
    return memcmp(data, magic, MAGIC_BYTES) == 0 &&
           hf_get_u64(data + 8) == checksum(data + 16, bytes - 16, seed);
}

void segment_header_encode(const struct segment_header *header, char *block)
{
    memset(block, 0, JOURNAL_BLOCK);
    hf_put_u32(block + 16,
               header->bytes == 0 ? FORMAT_VERSION : SEGMENT_VERSION);
    hf_put_u32(block + 20, JOURNAL_BLOCK);
    hf_put_u64(block + 24, header->first);
    hf_put_u64(block + 32, header->synced);
    hf_put_u64(block + 40, header->salt);
    hf_put_u64(block + 48, header->bytes);
    hf_put_u64(block + 56, header->previous);
    seal(block, JOURNAL_BLOCK, SEGMENT_MAGIC, 0);
}

enum hf_status segment_header_decode(const char *block,
                                     struct segment_header *out)
{
    uint32_t version = hf_get_u32(block + 16);

    if (!is_sealed(block, JOURNAL_BLOCK, SEGMENT_MAGIC, 0) ||
        hf_get_u32(block + 20) != JOURNAL_BLOCK)
        return HF_CORRUPT;
    out->first = hf_get_u64(block + 24);
    out->synced = hf_get_u64(block + 32);
    out->salt = hf_get_u64(block + 40);
    out->bytes = hf_get_u64(block + 48);
    out->previous = hf_get_u64(block + 56);
    if (version != (out->bytes == 0 ? FORMAT_VERSION : SEGMENT_VERSION))
        return HF_CORRUPT;
    return out->first > out->previous && out->first > out->synced ? HF_OK
                                                                  : HF_CORRUPT;
}

void manifest_encode(const struct manifest_slot *slot, char *block)
{
    memset(block, 0, JOURNAL_BLOCK);
    hf_put_u32(block + 16, FORMAT_VERSION);
    hf_put_u32(block + 20, slot->clean);
    hf_put_u64(block + 24, slot->serial);
    hf_put_u64(block + 32, slot->segment);
    hf_put_u64(block + 40, slot->snapshot);
    hf_put_u64(block + 48, slot->synced);
    hf_put_u64(block + 56, slot->note);
    seal(block, JOURNAL_BLOCK, MANIFEST_MAGIC, 0);
}

enum hf_status manifest_decode(const char *block, struct manifest_slot *out)
{
    if (!is_sealed(block, JOURNAL_BLOCK, MANIFEST_MAGIC, 0) ||
        hf_get_u32(block + 16) != FORMAT_VERSION || hf_get_u32(block + 20) > 1)
        return HF_CORRUPT;
    out->clean = hf_get_u32(block + 20) == 1;
    out->serial = hf_get_u64(block + 24);
    out->segment = hf_get_u64(block + 32);
    out->snapshot = hf_get_u64(block + 40);
    out->synced = hf_get_u64(block + 48);
    out->note = hf_get_u64(block + 56);
    return HF_OK;
}

size_t batch_disk_bytes(size_t len)
{
    size_t bytes = BATCH_HEADER_BYTES + len;

    return (bytes + JOURNAL_BLOCK - 1) / JOURNAL_BLOCK * JOURNAL_BLOCK;
}

void batch_encode(char *data, const struct batch *batch, uint64_t salt)
{
    size_t len = batch->records.len;
    size_t used = BATCH_HEADER_BYTES + len;

    assert(batch->number > batch->synced);
    assert(batch->count > 0);
    assert(len <= JOURNAL_BATCH_MAX);
    hf_put_u64(data + 16, batch->number);
    hf_put_u64(data + 24, batch->synced);
    hf_put_u32(data + 32, (uint32_t)len);
    hf_put_u32(data + 36, batch->count);
    seal(data, used, BATCH_MAGIC, salt);
    memset(data + used, 0, batch_disk_bytes(len) - used);
}

/* True if `records` is exactly `count` records, none empty or too long. */
static bool records_fit(struct hf_bytes records, uint32_t count)
{
    size_t at = 0;

    for (; count > 0; count--) {
        if (records.len - at < BATCH_RECORD_BYTES)
            return false;
        uint32_t len = hf_get_u32(records.data + at);
        at += BATCH_RECORD_BYTES;
        if (len == 0 || len > JOURNAL_RECORD_MAX || len > records.len - at)
            return false;
        at += len;
    }
    return at == records.len;
}

enum hf_status batch_decode(struct hf_bytes bytes, uint64_t salt,
                            struct batch *out)
{
    const char *data = bytes.data;

    if (bytes.len < BATCH_HEADER_BYTES) {
        out->disk_bytes = JOURNAL_BLOCK;
        return HF_MORE;
    }
    if (memcmp(data, BATCH_MAGIC, MAGIC_BYTES) != 0)
        return HF_CORRUPT;
    size_t len = hf_get_u32(data + 32);
    if (len == 0 || len > JOURNAL_BATCH_MAX)
        return HF_CORRUPT;
    out->disk_bytes = batch_disk_bytes(len);
    if (bytes.len < out->disk_bytes)
        return HF_MORE;
    if (hf_get_u64(data + 8) !=
        checksum(data + 16, BATCH_HEADER_BYTES - 16 + len, salt))
        return HF_CORRUPT;
    out->number = hf_get_u64(data + 16);
    out->synced = hf_get_u64(data + 24);
    out->count = hf_get_u32(data + 36);
    out->records = hf_bytes(data + BATCH_HEADER_BYTES, len);
    if (out->number <= out->synced || out->count == 0 ||
        !records_fit(out->records, out->count))
        return HF_CORRUPT;
    return HF_OK;
}

uint64_t batch_claim(const char *block, size_t *disk_bytes)
{
    if (memcmp(block, BATCH_MAGIC, MAGIC_BYTES) != 0)
        return 0;
    *disk_bytes = batch_disk_bytes(hf_get_u32(block + 32));
    return hf_get_u64(block + 16);
}

void batch_record_encode(char *out, uint32_t len)
{
    hf_put_u32(out, len);
}

enum hf_status batch_record(struct hf_bytes records, size_t *at,
                            struct hf_bytes *record)
{
    if (*at >= records.len)
        return HF_EMPTY;
    assert(records.len - *at > BATCH_RECORD_BYTES);
    uint32_t len = hf_get_u32(records.data + *at);
    *at += BATCH_RECORD_BYTES;
    assert(len <= records.len - *at);
    *record = hf_bytes(records.data + *at, len);
    *at += len;
    return HF_OK;
}

void snapshot_head_encode(char *out, uint64_t last)
{
    memset(out, 0, SNAPSHOT_HEAD_BYTES);
    hf_put_u32(out + 16, FORMAT_VERSION);
    hf_put_u64(out + 24, last);
    seal(out, SNAPSHOT_HEAD_BYTES, SNAPSHOT_MAGIC, 0);
}

enum hf_status snapshot_head_decode(const char *in, uint64_t *last)
{
    if (!is_sealed(in, SNAPSHOT_HEAD_BYTES, SNAPSHOT_MAGIC, 0) ||
        hf_get_u32(in + 16) != FORMAT_VERSION)
        return HF_CORRUPT;
    *last = hf_get_u64(in + 24);
    return HF_OK;
}

void snapshot_frame_encode(char *out, struct hf_bytes piece, uint64_t index)
{
    assert(piece.len <= SNAPSHOT_PIECE_MAX);
    hf_put_u32(out, (uint32_t)piece.len);
    hf_put_u32(out + 4, 0);
    hf_put_u64(out + 8, checksum(piece.data, piece.len, index));
}

enum hf_status snapshot_frame_decode(const char *in, uint32_t *len)
{
    *len = hf_get_u32(in);
    return *len == SNAPSHOT_ENDING ? HF_EMPTY : HF_OK;
}

bool snapshot_piece_valid(const char *frame, struct hf_bytes piece,
                          uint64_t index)
{
    return hf_get_u32(frame) == piece.len && hf_get_u32(frame + 4) == 0 &&
           hf_get_u64(frame + 8) == checksum(piece.data, piece.len, index);
}

void snapshot_end_encode(char *out, uint64_t pieces, uint64_t last)
{
    hf_put_u32(out, SNAPSHOT_ENDING);
    hf_put_u32(out + 4, 0);
    hf_put_u64(out + 16, pieces);
    hf_put_u64(out + 24, last);
    hf_put_u64(out + 8, checksum(out + 16, 16, 0));
}

bool snapshot_end_valid(const char *in, uint64_t pieces, uint64_t last)
{
    char expected[SNAPSHOT_END_BYTES];

    snapshot_end_encode(expected, pieces, last);
    return memcmp(in, expected, SNAPSHOT_END_BYTES) == 0;
}
