/* journal_segment.c - tests of the window through which a segment is read. */
#include "journal/segment.h"

#include <unistd.h>

#include "journal/disk.h"
#include "journal/journal.h"
#include "support/test.h"

TEST_ONE_THREAD;

#define MIB (1u << 20)

static char error[JOURNAL_ERROR_MAX];

/* A batch with one record, of one byte. */
static void put_batch(const struct segment *segment, uint64_t number,
                      uint64_t offset)
{
    char block[JOURNAL_BLOCK] = "";
    struct batch batch = {.number = number,
                          .count = 1,
                          .records = hf_bytes(block + BATCH_HEADER_BYTES,
                                              BATCH_RECORD_BYTES + 1)};

    batch_record_encode(block + BATCH_HEADER_BYTES, 1);
    batch_encode(block, &batch, segment->header.salt);
    CHECK_EQ(pwrite(segment->fd, block, sizeof block, (off_t)offset),
             (ssize_t)sizeof block);
}

/* The number of the batch at `offset`; 0 if there is none. */
static uint64_t batch_at(struct segment_reader *reader, uint64_t offset)
{
    struct batch batch;
    size_t claim_bytes;

    if (segment_reader_batch(reader, offset, &batch, error) != HF_OK)
        return 0;
    CHECK_EQ(segment_reader_claim(reader, offset, &claim_bytes), batch.number);
    return batch.number;
}

/* One read brings a MiB. */
TEST(a_batch_is_found_wherever_the_window_was)
{
    static char fill[SEGMENT_FILL_BYTES];
    static const uint64_t offsets[] = {JOURNAL_BLOCK, MIB, 2 * MIB, 3 * MIB,
                                       4 * MIB - JOURNAL_BLOCK};
    enum { COUNT = sizeof offsets / sizeof offsets[0] };
    struct segment_reader reader;
    struct journal_io *io;
    struct folder folder;
    struct segment segment;
    char block[JOURNAL_BLOCK];
    char path[256];

    snprintf(path, sizeof path, "%s/data", test_folder());
    CHECK_EQ(journal_io_plain(&io), HF_OK);
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_OK);
    CHECK_EQ(segment_make(&folder, 0, 4 * MIB, fill, false, error), HF_OK);
    CHECK_EQ(segment_open(&folder, 0, (struct segment_header){.first = 1},
                          false, block, &segment, error),
             HF_OK);
    for (int i = 0; i < COUNT; i++)
        put_batch(&segment, (uint64_t)i + 1, offsets[i]);
    segment_reader_init(&reader, &folder);
    for (int from = 0; from < COUNT; from++) {
        for (int to = 0; to < COUNT; to++) {
            CHECK_EQ(segment_reader_open(&reader, 1, error), HF_OK);
            CHECK_EQ(batch_at(&reader, offsets[from]), from + 1);
            CHECK_EQ(batch_at(&reader, offsets[to]), to + 1);
        }
    }
    CHECK_EQ(batch_at(&reader, 2 * MIB - JOURNAL_BLOCK), 0);
    CHECK_EQ(batch_at(&reader, 4 * MIB), 0);
    segment_reader_destroy(&reader);
    close(segment.fd);
    folder_close(&folder);
    io->close(io);
}
