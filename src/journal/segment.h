/* segment.h - one segment file: made, opened for writing, read.
 *
 *   nothing --make--> spare --open--> journal-N.seg --recycle--> spare
 *
 * A spare is a file of full size whose every block has been written, so that
 * a batch written into it later changes no metadata (about half the cost of
 * writing into a file that grows). Its life as a segment begins when a header
 * with a new salt is on disk and it has been renamed; before that nothing in
 * it counts.
 */
#ifndef JOURNAL_SEGMENT_H
#define JOURNAL_SEGMENT_H

#include "journal/folder.h"
#include "journal/format.h"

/* Size of the writes that fill a new file. */
#define SEGMENT_FILL_BYTES (256u * 1024)

/* A segment open for writing. */
struct segment {
    int fd;
    uint64_t bytes;  /* size of the file */
    uint64_t offset; /* where the next batch goes */
    struct segment_header header;
};

/* Makes spare `slot`, `bytes` long. `fill` is aligned memory of
 * SEGMENT_FILL_BYTES zeros. On failure nothing is left behind. */
enum hf_status segment_make(struct folder *folder, int slot, uint64_t bytes,
                            const char *fill, bool direct, char *error);

/* Turns spare `slot` into the segment that `header` describes, but for the
 * salt and the size, which are found here. `block` is aligned memory of one
 * block. After a failure the spare may be lost. */
enum hf_status segment_open(struct folder *folder, int slot,
                            struct segment_header header, bool always,
                            char *block, struct segment *out, char *error);

/* Opens an existing segment to write on at out->offset, which the caller has
 * set along with `bytes` and `header`. */
enum hf_status segment_reopen(struct folder *folder, bool always,
                              struct segment *out, char *error);

/* Reads batches of one segment, through a window of the file in memory. */
struct segment_reader {
    struct folder *folder;
    int fd;
    uint64_t bytes; /* size of the file */
    struct segment_header header;
    char *window; /* file bytes at .. at + len */
    size_t cap;
    uint64_t at;
    size_t len;
};

void segment_reader_init(struct segment_reader *reader, struct folder *folder);
void segment_reader_destroy(struct segment_reader *reader);

/* Turns to the segment named `first`. HF_NOTFOUND; HF_CORRUPT: the header is
 * damaged or belongs to another name; HF_IO; HF_NOMEM. */
enum hf_status segment_reader_open(struct segment_reader *reader,
                                   uint64_t first, char *error);

/* The batch at `offset`, which lasts until the next call. HF_CORRUPT: there is
 * none, or its padding is not all zeros (version 1: that does not matter);
 * HF_EMPTY: the file ends here; HF_IO; HF_NOMEM. */
enum hf_status segment_reader_batch(struct segment_reader *reader,
                                    uint64_t offset, struct batch *out,
                                    char *error);

/* What the header at `offset` claims to be, though it is not valid: its
 * number, or 0. For reports only. */
uint64_t segment_reader_claim(struct segment_reader *reader, uint64_t offset,
                              size_t *disk_bytes);

#endif
