/* journal_reader.c - fuzzes what reads the journal's files.
 *
 * The input is taken as a segment: a header block, then blocks that may hold
 * batches. Whatever it is, decoding must stay inside the bytes given and must
 * accept no batch whose checksum is wrong. A fuzzer does not find checksums,
 * so the same bytes are tried again with the checksum put right, which leads
 * it to the checks behind.
 */
#include <assert.h>

#include <xxhash.h>

#include "journal/format.h"
#include "journal/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t read_u64(const char *in)
{
    uint64_t value = 0;

    for (int i = 7; i >= 0; i--)
        value = value << 8 | (uint8_t)in[i];
    return value;
}

static void write_u64(char *out, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        out[i] = (char)(uint8_t)(value >> (8 * i));
}

/* An accepted batch keeps every promise of the format. */
static void check_batch(struct hf_bytes bytes, uint64_t salt,
                        const struct batch *batch)
{
    size_t hashed = BATCH_HEADER_BYTES - 16 + batch->records.len;
    struct hf_bytes record;
    uint32_t count = 0;
    size_t at = 0;

    assert(batch->disk_bytes <= bytes.len);
    assert(batch->disk_bytes % JOURNAL_BLOCK == 0);
    assert(batch->number > batch->synced);
    assert(read_u64(bytes.data + 8) ==
           XXH3_64bits_withSeed(bytes.data + 16, hashed, salt));
    while (batch_record(batch->records, &at, &record) == HF_OK) {
        assert(record.len > 0);
        assert(record.len <= JOURNAL_RECORD_MAX);
        assert(record.data + record.len <= bytes.data + batch->disk_bytes);
        count++;
    }
    assert(count == batch->count);
}

static void try_batch(struct hf_bytes bytes, uint64_t salt)
{
    struct batch batch;
    size_t claim;
    enum hf_status status = batch_decode(bytes, salt, &batch);

    if (status == HF_OK)
        check_batch(bytes, salt, &batch);
    else
        assert(status == HF_CORRUPT ||
               (status == HF_MORE && batch.disk_bytes > bytes.len));
    if (bytes.len >= BATCH_HEADER_BYTES)
        (void)batch_claim(bytes.data, &claim);
}

/* Puts the magic and the checksum right, if the length allows it. */
static void mend(char *data, size_t len, uint64_t salt)
{
    if (len < JOURNAL_BLOCK)
        return;
    memcpy(data, "HFBATC01", 8);
    size_t records = (size_t)(read_u64(data + 32) & UINT32_MAX);
    if (records > len - BATCH_HEADER_BYTES)
        return;
    write_u64(data + 8,
              XXH3_64bits_withSeed(data + 16, BATCH_HEADER_BYTES - 16 + records,
                                   salt));
}

static void try_snapshot(const char *data, size_t size)
{
    uint64_t last;
    uint32_t len;

    if (size >= SNAPSHOT_HEAD_BYTES)
        (void)snapshot_head_decode(data, &last);
    if (size < SNAPSHOT_FRAME_BYTES)
        return;
    if (snapshot_frame_decode(data, &len) == HF_OK &&
        len <= size - SNAPSHOT_FRAME_BYTES)
        (void)snapshot_piece_valid(
            data, hf_bytes(data + SNAPSHOT_FRAME_BYTES, len), 0);
    if (size >= SNAPSHOT_END_BYTES)
        (void)snapshot_end_valid(data, 1, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    struct segment_header header = {.salt = 0};
    struct manifest_slot slot;
    char *data = malloc(size > 0 ? size : 1);

    if (data == NULL)
        return 0;
    memcpy(data, input, size);
    try_snapshot(data, size);
    if (size >= JOURNAL_BLOCK && segment_header_decode(data, &header) == HF_OK)
        assert(header.synced < header.first);
    if (size >= JOURNAL_BLOCK && manifest_decode(data, &slot) == HF_OK)
        assert(slot.clean == (data[20] == 1));
    try_batch(hf_bytes(data, size), header.salt);
    for (size_t at = 0; at < size; at += JOURNAL_BLOCK) {
        try_batch(hf_bytes(data + at, size - at), header.salt);
        mend(data + at, size - at, header.salt);
        try_batch(hf_bytes(data + at, size - at), header.salt);
    }
    free(data);
    return 0;
}
