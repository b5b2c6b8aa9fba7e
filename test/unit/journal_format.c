/* journal_format.c - tests of the file format: every byte counts. */
#include "journal/format.h"

#include <sys/mman.h>
#include <xxhash.h>

#include "base/little.h"
#include "journal/journal.h"
#include "support/test.h"

#define SALT 0x1122334455667788u

/* A batch of two records, "one" and "three". */
static struct batch build(char *block)
{
    struct batch batch = {.number = 7, .synced = 5, .count = 2};
    char *at = block + BATCH_HEADER_BYTES;

    batch_record_encode(at, 3);
    memcpy(at + 4, "one", 3);
    batch_record_encode(at + 7, 5);
    memcpy(at + 11, "three", 5);
    batch.records = hf_bytes(at, 16);
    batch_encode(block, &batch, SALT);
    return batch;
}

TEST(a_batch_comes_back)
{
    char block[JOURNAL_BLOCK];
    struct batch batch;
    struct hf_bytes record;
    size_t at = 0;

    build(block);
    CHECK_EQ(batch_decode(hf_bytes(block, sizeof block), SALT, &batch), HF_OK);
    CHECK_EQ(batch.number, 7);
    CHECK_EQ(batch.synced, 5);
    CHECK_EQ(batch.count, 2);
    CHECK_EQ(batch.disk_bytes, JOURNAL_BLOCK);
    CHECK_EQ(batch_record(batch.records, &at, &record), HF_OK);
    CHECK_TEXT(record.data, record.len, "one");
    CHECK_EQ(batch_record(batch.records, &at, &record), HF_OK);
    CHECK_TEXT(record.data, record.len, "three");
    CHECK_EQ(batch_record(batch.records, &at, &record), HF_EMPTY);
}

/* Files written by one version must be readable by the next. */
TEST(the_bytes_of_a_batch_and_a_header_are_fixed)
{
    static const char batch_bytes[] =
        "HFBATC01"
        "\x00\x00\x00\x00\x00\x00\x00\x00" /* checksum, not compared */
        "\x07\0\0\0\0\0\0\0"
        "\x05\0\0\0\0\0\0\0"
        "\x10\0\0\0"
        "\x02\0\0\0"
        "\x03\0\0\0one"
        "\x05\0\0\0three";
    static const char header_bytes[] = "\x02\0\0\0"
                                       "\0\x10\0\0"
                                       "\x09\0\0\0\0\0\0\0"
                                       "\x08\0\0\0\0\0\0\0"
                                       "\x88\x77\x66\x55\x44\x33\x22\x11"
                                       "\0\0\x01\0\0\0\0\0"
                                       "\x05\0\0\0\0\0\0\0";
    static const char slot_bytes[] = "\x01\0\0\0"
                                     "\x01\0\0\0"
                                     "\x02\0\0\0\0\0\0\0"
                                     "\x03\0\0\0\0\0\0\0"
                                     "\x04\0\0\0\0\0\0\0"
                                     "\x05\0\0\0\0\0\0\0"
                                     "\x06\0\0\0\0\0\0\0";
    static const char zeros[JOURNAL_BLOCK];
    char block[JOURNAL_BLOCK];
    struct segment_header header = {9, 8, SALT, 65536, 5};
    struct manifest_slot slot = {2, true, 3, 4, 5, 6};

    build(block);
    CHECK(memcmp(block, batch_bytes, 8) == 0);
    CHECK(memcmp(block + 16, batch_bytes + 16, sizeof batch_bytes - 17) == 0);
    memset(block, 0xff, sizeof block);
    segment_header_encode(&header, block);
    CHECK(memcmp(block, "HFSEGM01", 8) == 0);
    CHECK(memcmp(block + 16, header_bytes, sizeof header_bytes - 1) == 0);
    CHECK(memcmp(block + 64, zeros, sizeof block - 64) == 0);
    memset(block, 0xff, sizeof block);
    manifest_encode(&slot, block);
    CHECK(memcmp(block, "HFMANI01", 8) == 0);
    CHECK(memcmp(block + 16, slot_bytes, sizeof slot_bytes - 1) == 0);
    CHECK(memcmp(block + 64, zeros, sizeof block - 64) == 0);
}

TEST(the_bytes_of_a_snapshot_are_fixed)
{
    static const char head_bytes[] = "\x01\0\0\0"
                                     "\0\0\0\0"
                                     "\x2a\0\0\0\0\0\0";
    static const char end_bytes[] = "\x04\0\0\0\0\0\0\0"
                                    "\x2a\0\0\0\0\0\0";
    char bytes[SNAPSHOT_HEAD_BYTES + 1];

    memset(bytes, 0xff, sizeof bytes);
    snapshot_head_encode(bytes, 42);
    CHECK(memcmp(bytes, "HFSNAP01", 8) == 0);
    CHECK(memcmp(bytes + 16, head_bytes, sizeof head_bytes) == 0);
    memset(bytes, 0xff, sizeof bytes);
    snapshot_frame_encode(bytes, hf_bytes_text("piece"), 3);
    CHECK(memcmp(bytes, "\x05\0\0\0\0\0\0", 8) == 0);
    CHECK_EQ(bytes[SNAPSHOT_FRAME_BYTES], (char)0xff);
    memset(bytes, 0xff, sizeof bytes);
    snapshot_end_encode(bytes, 4, 42);
    CHECK(memcmp(bytes, "\xff\xff\xff\xff\0\0\0", 8) == 0);
    CHECK(memcmp(bytes + 16, end_bytes, sizeof end_bytes) == 0);
    CHECK_EQ(bytes[SNAPSHOT_END_BYTES], (char)0xff);
}

/* The writer and the reader of these files could agree on another one. */
TEST(a_checksum_is_over_the_documented_bytes_with_the_documented_seed)
{
    char block[JOURNAL_BLOCK];
    struct batch batch = build(block);
    struct segment_header header = {9, 8, SALT, 65536, 5};
    struct manifest_slot slot = {2, true, 3, 4, 5, 6};

    CHECK(hf_get_u64(block + 8) ==
          XXH3_64bits_withSeed(block + 16, 40 - 16 + batch.records.len, SALT));
    segment_header_encode(&header, block);
    CHECK(hf_get_u64(block + 8) ==
          XXH3_64bits_withSeed(block + 16, 4096 - 16, 0));
    manifest_encode(&slot, block);
    CHECK(hf_get_u64(block + 8) ==
          XXH3_64bits_withSeed(block + 16, 4096 - 16, 0));
    snapshot_head_encode(block, 42);
    CHECK(hf_get_u64(block + 8) ==
          XXH3_64bits_withSeed(block + 16, 32 - 16, 0));
    snapshot_frame_encode(block, hf_bytes_text("piece"), 3);
    CHECK(hf_get_u64(block + 8) == XXH3_64bits_withSeed("piece", 5, 3));
    snapshot_end_encode(block, 4, 42);
    CHECK(hf_get_u64(block + 8) == XXH3_64bits_withSeed(block + 16, 16, 0));
}

TEST(a_batch_with_any_bit_changed_is_no_batch)
{
    char block[JOURNAL_BLOCK];
    struct batch batch = build(block);
    size_t used = BATCH_HEADER_BYTES + batch.records.len;

    for (size_t bit = 0; bit < used * 8; bit++) {
        block[bit / 8] ^= (char)(1 << bit % 8);
        enum hf_status status =
            batch_decode(hf_bytes(block, sizeof block), SALT, &batch);
        CHECK(status == HF_CORRUPT || status == HF_MORE);
        block[bit / 8] ^= (char)(1 << bit % 8);
    }
    CHECK_EQ(batch_decode(hf_bytes(block, sizeof block), SALT + 1, &batch),
             HF_CORRUPT);
    CHECK_EQ(batch_decode(hf_bytes(block, sizeof block), SALT, &batch), HF_OK);
}

TEST(a_batch_cut_short_asks_for_what_it_needs)
{
    char block[JOURNAL_BLOCK];
    struct batch batch;

    char *space = mmap(NULL, 2 * (size_t)JOURNAL_BLOCK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(space != MAP_FAILED);
    CHECK_EQ(mprotect(space + JOURNAL_BLOCK, JOURNAL_BLOCK, PROT_NONE), 0);
    build(block);
    for (size_t len = 0; len < sizeof block; len++) {
        char *cut =
            space + JOURNAL_BLOCK - len; /* nothing may be read behind */
        memcpy(cut, block, len);
        CHECK_EQ(batch_decode(hf_bytes(cut, len), SALT, &batch), HF_MORE);
        CHECK_EQ(batch.disk_bytes, JOURNAL_BLOCK);
    }
    munmap(space, 2 * (size_t)JOURNAL_BLOCK);
}

/* The checksum holds but the records do not fill the batch. */
TEST(records_that_do_not_fit_are_refused_whatever_the_checksum_says)
{
    static const uint32_t lengths[] = {
        0, 2, 4, 12, JOURNAL_RECORD_MAX + 1, UINT32_MAX};
    char block[JOURNAL_BLOCK];
    struct batch out;

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct batch batch = build(block);
        batch_record_encode(block + BATCH_HEADER_BYTES, lengths[i]);
        batch_encode(block, &batch, SALT);
        CHECK_EQ(batch_decode(hf_bytes(block, sizeof block), SALT, &out),
                 HF_CORRUPT);
    }
    for (uint32_t count = 1; count < 5; count++) {
        struct batch batch = build(block);
        batch.count = count;
        batch_encode(block, &batch, SALT);
        CHECK_EQ(batch_decode(hf_bytes(block, sizeof block), SALT, &out),
                 count == 2 ? HF_OK : HF_CORRUPT);
    }
}

TEST(a_segment_header_with_any_bit_changed_is_none)
{
    char block[JOURNAL_BLOCK];
    struct segment_header header = {9, 8, SALT, 65536, 5};
    struct segment_header back = {0, 0, 0, 0, 0};

    segment_header_encode(&header, block);
    for (size_t bit = 0; bit < sizeof block * 8; bit += bit < 512 ? 1 : 13) {
        block[bit / 8] ^= (char)(1 << bit % 8);
        CHECK_EQ(segment_header_decode(block, &back), HF_CORRUPT);
        block[bit / 8] ^= (char)(1 << bit % 8);
    }
    CHECK_EQ(segment_header_decode(block, &back), HF_OK);
    CHECK_EQ(back.first, 9);
    CHECK_EQ(back.synced, 8);
    CHECK_EQ(back.salt, SALT);
    CHECK_EQ(back.bytes, 65536);
    CHECK_EQ(back.previous, 5);
}

TEST(a_segment_header_of_version_1_is_still_read)
{
    char block[JOURNAL_BLOCK];
    struct segment_header header = {9, 8, SALT, 0, 0};
    struct segment_header back = {0, 0, 0, 1, 1};

    segment_header_encode(&header, block);
    CHECK_EQ(block[16], 1);
    CHECK_EQ(segment_header_decode(block, &back), HF_OK);
    CHECK_EQ(back.first, 9);
    CHECK_EQ(back.bytes, 0);
    CHECK_EQ(back.previous, 0);
    header = (struct segment_header){9, 9, SALT, 65536, 5};
    segment_header_encode(&header, block);
    CHECK_EQ(segment_header_decode(block, &back), HF_CORRUPT);
    header = (struct segment_header){9, 8, SALT, 65536, 9};
    segment_header_encode(&header, block);
    CHECK_EQ(segment_header_decode(block, &back), HF_CORRUPT);
}

TEST(a_manifest_with_any_bit_changed_is_none)
{
    char block[JOURNAL_BLOCK];
    struct manifest_slot slot = {2, true, 3, 4, 5, 6};
    struct manifest_slot back = {.clean = false};

    manifest_encode(&slot, block);
    for (size_t bit = 0; bit < sizeof block * 8; bit += bit < 512 ? 1 : 13) {
        block[bit / 8] ^= (char)(1 << bit % 8);
        CHECK_EQ(manifest_decode(block, &back), HF_CORRUPT);
        block[bit / 8] ^= (char)(1 << bit % 8);
    }
    CHECK_EQ(manifest_decode(block, &back), HF_OK);
    CHECK_EQ(back.serial, 2);
    CHECK(back.clean);
    CHECK_EQ(back.segment, 3);
    CHECK_EQ(back.snapshot, 4);
    CHECK_EQ(back.synced, 5);
    CHECK_EQ(back.note, 6);
}

TEST(snapshot_frames_notice_changed_moved_and_missing_pieces)
{
    char head[SNAPSHOT_HEAD_BYTES];
    char frame[SNAPSHOT_FRAME_BYTES];
    char end[SNAPSHOT_END_BYTES];
    uint64_t last;
    uint32_t len;

    snapshot_head_encode(head, 42);
    CHECK_EQ(snapshot_head_decode(head, &last), HF_OK);
    CHECK_EQ(last, 42);
    snapshot_frame_encode(frame, hf_bytes_text("piece"), 3);
    CHECK_EQ(snapshot_frame_decode(frame, &len), HF_OK);
    CHECK_EQ(len, 5);
    CHECK(snapshot_piece_valid(frame, hf_bytes_text("piece"), 3));
    CHECK(!snapshot_piece_valid(frame, hf_bytes_text("piecf"), 3));
    CHECK(!snapshot_piece_valid(frame, hf_bytes_text("piece"), 2));
    CHECK(!snapshot_piece_valid(frame, hf_bytes_text("pieces"), 3));
    frame[4] = 1; /* always 0 */
    CHECK(!snapshot_piece_valid(frame, hf_bytes_text("piece"), 3));
    snapshot_end_encode(end, 4, 42);
    CHECK_EQ(snapshot_frame_decode(end, &len), HF_EMPTY);
    CHECK(snapshot_end_valid(end, 4, 42));
    CHECK(!snapshot_end_valid(end, 5, 42));
    CHECK(!snapshot_end_valid(end, 4, 43));
}

/* A word of a block is changed, and the checksum is right again. */
static void put_word(char *block, size_t at, uint32_t word, size_t bytes)
{
    hf_put_u32(block + at, word);
    hf_put_u64(block + 8, XXH3_64bits_withSeed(block + 16, bytes - 16, 0));
}

TEST(a_block_of_another_version_or_kind_is_none_whatever_the_checksum_says)
{
    struct segment_header header = {9, 8, SALT, 65536, 5};
    struct manifest_slot slot = {2, true, 3, 4, 5, 6};
    char block[JOURNAL_BLOCK];
    char head[SNAPSHOT_HEAD_BYTES];
    uint64_t last;

    segment_header_encode(&header, block);
    for (uint32_t version = 0; version < 5; version++) {
        put_word(block, 16, version, sizeof block);
        CHECK_EQ(segment_header_decode(block, &header),
                 version == 2 ? HF_OK : HF_CORRUPT);
    }
    put_word(block, 16, 2, sizeof block);
    put_word(block, 20, JOURNAL_BLOCK / 2, sizeof block);
    CHECK_EQ(segment_header_decode(block, &header), HF_CORRUPT);
    header = (struct segment_header){9, 8, SALT, 0, 0};
    segment_header_encode(&header, block);
    for (uint32_t version = 0; version < 5; version++) {
        put_word(block, 16, version, sizeof block);
        CHECK_EQ(segment_header_decode(block, &header),
                 version == 1 ? HF_OK : HF_CORRUPT);
    }
    manifest_encode(&slot, block);
    for (uint32_t word = 0; word < 4; word++) {
        put_word(block, 16, word, sizeof block);
        CHECK_EQ(manifest_decode(block, &slot), word == 1 ? HF_OK : HF_CORRUPT);
        put_word(block, 16, 1, sizeof block);
        put_word(block, 20, word, sizeof block); /* clean or not */
        CHECK_EQ(manifest_decode(block, &slot), word <= 1 ? HF_OK : HF_CORRUPT);
        CHECK(word > 1 || slot.clean == (word == 1));
    }
    snapshot_head_encode(head, 42);
    for (uint32_t version = 0; version < 4; version++) {
        put_word(head, 16, version, sizeof head);
        CHECK_EQ(snapshot_head_decode(head, &last),
                 version == 1 ? HF_OK : HF_CORRUPT);
    }
}
